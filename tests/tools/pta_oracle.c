/* The run-time oracle of the pointer analysis.
 *
 *   pta_oracle --list MODULE...                                          what libaccesses.so wants to know
 *   pta_oracle [--context C]... [--max N] [--strip] --record FILE... -- MODULE...
 *
 * The second checks the records of runs (tests/dynamorio/accesses.c) against the points-to sets of the modules
 * together: for each instruction that accessed memory, the object that it accessed must be in its set, and the offset
 * too. Misses are printed by instruction, at most N of them (20), with the object at run time and the set in words.
 * C is none, origin[:K] or cfa:K (none); each is checked. --strip: as if the files had no symbols. Last line of each
 * context:
 *
 *   N accesses checked, N object misses, N offset misses, N instructions
 *
 * Exit 0: no miss; 1: some; 2: nothing could be checked. */
#include "pta_oracle/oracle.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    VEC(const char *) records;
    VEC(const char *) contexts;
    VEC(char *) paths;
    uint32_t max;
    bool list, strip;
} arguments;

static int usage(void)
{
    fprintf(stderr, "usage: pta_oracle --list MODULE...\n"
                    "       pta_oracle [--context C]... [--max N] [--strip] --record FILE... -- MODULE...\n");
    return 2;
}

static bool parse(int argc, char **argv, arguments *a)
{
    bool records = false, modules = false;
    for (int i = 1; i < argc; i++) {
        if (modules || (argv[i][0] != '-' && !records)) {
            char *path = realpath(argv[i], NULL);
            if (!path) {
                perror(argv[i]);
                return false;
            }
            vec_push(&a->paths, path);
        } else if (!strcmp(argv[i], "--")) {
            modules = true;
        } else if (!strcmp(argv[i], "--list")) {
            a->list = true;
        } else if (!strcmp(argv[i], "--strip")) {
            a->strip = true;
        } else if (!strcmp(argv[i], "--record")) {
            records = true;
        } else if (!strcmp(argv[i], "--context") && i + 1 < argc) {
            vec_push(&a->contexts, argv[++i]);
        } else if (!strcmp(argv[i], "--max") && i + 1 < argc) {
            a->max = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (argv[i][0] == '-') {
            return false;
        } else {
            vec_push(&a->records, argv[i]);
        }
    }
    if (!a->contexts.len) vec_push(&a->contexts, "none");
    return a->paths.len && (a->list || a->records.len);
}

static bool context_of(const char *text, pta_options *o)
{
    const char *k = strchr(text, ':');
    size_t len = k ? (size_t)(k - text) : strlen(text);
    o->k = k ? (unsigned)strtoul(k + 1, NULL, 10) : 1;
    if (len == 4 && !strncmp(text, "none", len))
        o->context = PTA_CONTEXT_NONE;
    else if (len == 6 && !strncmp(text, "origin", len))
        o->context = PTA_CONTEXT_ORIGIN;
    else if (len == 3 && !strncmp(text, "cfa", len))
        o->context = PTA_CONTEXT_CFA;
    else
        return false;
    return true;
}

static int check_context(pta_program *program, const seen_list *list, const char *context, uint32_t max)
{
    race_error error;
    pta_options options = {.once = true};
    pta *p;
    if (!context_of(context, &options)) return usage();
    if (pta_open(program, &options, &p, &error)) {
        fprintf(stderr, "pta_oracle: %s\n", error.text);
        return 2;
    }
    check_counts n = {0};
    pta_stats stats;
    pta_statistics(p, &stats);
    printf("context %s: solved in %.1f s, %" PRIu64 " facts\n", context, stats.seconds, stats.facts);
    check_all(p, program, list, max, &n);
    pta_close(p);
    printf("  own frame: %" PRIu64 " to slots, %" PRIu64 " to objects; stack arguments: %" PRIu64 "; thread control "
           "block: %" PRIu64 "\n",
           n.promoted, n.own, n.arguments, n.thread);
    printf("  addresses that are no expression: %" PRIu64 "; instructions in no function: %" PRIu64 "\n", n.wide,
           n.unlifted);
    printf("  memory of others was matched by external: %" PRIu64 ", library: %" PRIu64 ", heap: %" PRIu64
           "; what has escaped by external: %" PRIu64 "\n",
           n.external[0], n.external[1], n.external[2], n.escaped);
    printf("  instructions with a miss: %" PRIu64 " of %" PRIu64 " that access memory, %" PRIu64 " that ran; misses in "
           "functions that are never called: %" PRIu64 "\n",
           n.missed_instructions, n.instructions, list->executed, n.never_called);
    printf("%" PRIu64 " accesses checked, %" PRIu64 " object misses, %" PRIu64 " offset misses, %" PRIu64
           " instructions\n",
           n.checked, n.objects_missed, n.offsets_missed, n.instructions);
    return n.objects_missed || n.offsets_missed ? 1 : n.checked ? 0 : 2;
}

static int check(const arguments *a, lift_module **modules)
{
    race_error error;
    seen_list list = {0};
    for (uint32_t i = 0; i < a->records.len; i++)
        if (record_read(a->records.data[i], a->paths.data, a->paths.len, &list, &error)) {
            fprintf(stderr, "pta_oracle: %s\n", error.text);
            record_free(&list);
            return 2;
        }
    for (uint32_t i = 0; i < list.notes.len; i++)
        printf("record: %s\n", list.notes.data[i]);
    if (list.skipped) printf("record: %" PRIu64 " lines were not understood\n", list.skipped);
    pta_program *program = pta_program_open(modules, a->paths.len, 0);
    int code = 0;
    for (uint32_t i = 0; i < a->contexts.len; i++) {
        int one = check_context(program, &list, a->contexts.data[i], a->max);
        if (one > code) code = one;
    }
    pta_program_close(program);
    record_free(&list);
    return code;
}

int main(int argc, char **argv)
{
    arguments a = {.max = 20};
    race_error error;
    int code = 0;
    uint32_t opened = 0;
    if (!parse(argc, argv, &a)) return usage();
    image **images = base_alloc_zero(a.paths.len, sizeof *images);
    lift_module **modules = base_alloc_zero(a.paths.len, sizeof *modules);
    for (; opened < a.paths.len && !code; opened++) {
        if (image_open(a.paths.data[opened], &images[opened], &error)) {
            fprintf(stderr, "pta_oracle: %s\n", error.text);
            code = 2;
            break;
        }
        modules[opened] = lift_open(images[opened], &(lift_options){.flow_only = a.list, .ignore_symbols = a.strip});
        if (a.list) list_write(stdout, modules[opened], a.paths.data[opened]);
    }
    if (!a.list && !code) code = check(&a, modules);
    for (uint32_t i = 0; i < opened; i++) {
        lift_close(modules[i]);
        image_close(images[i]);
    }
    for (uint32_t i = 0; i < a.paths.len; i++)
        free(a.paths.data[i]);
    free(images);
    free(modules);
    vec_free(&a.paths);
    vec_free(&a.records);
    vec_free(&a.contexts);
    return code;
}
