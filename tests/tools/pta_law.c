/* The law of the incremental pointer analysis: after any edits its result is that of an analysis from scratch.
 *
 *   pta_law [--context none|origin|cfa:K] [--algorithm ipa|reset|reach] [--edits N] [--every N] [--batch N] [--seed N] FILE...
 *
 * Deletes random statements and brings them back, up to --batch in one update, and compares the hash of the whole relation
 * with that of a fresh analysis after every --every updates. Last line: edits, comparisons, differences, and times. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "static/pointer/pointer.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

typedef VEC(pta_edit) edit_list;

static bool is_in(const edit_list *edits, uint32_t func, uint32_t stmt)
{
    for (uint32_t i = 0; i < edits->len; i++)
        if (edits->data[i].func == func && edits->data[i].stmt == stmt) return true;
    return false;
}

enum { FEW_DELETED = 20 };

static void choose(const pta_program *program, edit_list *deleted, uint32_t batch, uint64_t *state, edit_list *edits)
{
    vec_clear(edits);
    for (uint64_t n = 1 + next_random(state) % batch; n; n--) {
        if (deleted->len > FEW_DELETED && next_random(state) % 2) {
            uint32_t at = (uint32_t)(next_random(state) % deleted->len);
            pta_edit back = deleted->data[at];
            deleted->data[at] = deleted->data[--deleted->len];
            back.insert = true;
            vec_push(edits, back);
            continue;
        }
        uint32_t func = (uint32_t)(next_random(state) % program->funcs.len);
        const pta_func *f = &program->funcs.data[func];
        if (!f->stmts.len) continue;
        uint32_t stmt = (uint32_t)(next_random(state) % f->stmts.len);
        if (!f->stmts.data[stmt].dead && !is_in(edits, func, stmt)) vec_push(edits, (pta_edit){.func = func, .stmt = stmt});
    }
}

static bool is_equal(pta_program *program, const pta_options *options, const pta *p)
{
    race_error error;
    pta *fresh;
    if (pta_open(program, options, &fresh, &error)) return false;
    bool equal = pta_relation_hash(fresh) == pta_relation_hash(p);
    pta_close(fresh);
    return equal;
}

static int run(pta_program *program, const pta_options *options, uint32_t updates, uint32_t every, uint32_t batch, uint64_t seed)
{
    race_error error;
    pta *p;
    double start = now(), sum = 0, worst = 0;
    if (pta_open(program, options, &p, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    double scratch = now() - start;
    edit_list deleted = {0}, edits = {0};
    uint32_t compared = 0, different = 0;
    for (uint32_t i = 0; i < updates; i++) {
        choose(program, &deleted, batch, &seed, &edits);
        start = now();
        if (pta_update(p, edits.data, edits.len, &error)) {
            fprintf(stderr, "%s\n", error.text);
            return 2;
        }
        double seconds = now() - start;
        sum += seconds;
        if (seconds > worst) worst = seconds;
        for (uint32_t k = 0; k < edits.len; k++)
            if (!edits.data[k].insert) vec_push(&deleted, edits.data[k]);
        if (i % every) continue;
        compared++;
        if (!is_equal(program, options, p)) {
            printf("update %u of %u edits: another result than from scratch\n", i, edits.len);
            different++;
        }
    }
    printf("%u updates, %u compared, %u different; from scratch %.4f s, update mean %.6f s, worst %.4f s\n", updates, compared,
           different, scratch, updates ? sum / updates : 0, worst);
    vec_free(&deleted);
    vec_free(&edits);
    pta_close(p);
    return different ? 1 : 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: pta_law [--context C] [--algorithm A] [--edits N] [--every N] [--batch N] [--seed N] FILE...\n");
    return 2;
}

static bool set_context(pta_options *options, const char *text)
{
    options->k = 1;
    if (!strcmp(text, "none"))
        options->context = PTA_CONTEXT_NONE;
    else if (!strcmp(text, "origin"))
        options->context = PTA_CONTEXT_ORIGIN;
    else if (!strncmp(text, "cfa:", 4) && atoi(text + 4) > 0)
        options->context = PTA_CONTEXT_CFA, options->k = (unsigned)atoi(text + 4);
    else
        return false;
    return true;
}

static bool set_algorithm(pta_options *options, const char *text)
{
    static const char *const names[] = {[PTA_IPA] = "ipa", [PTA_RESET] = "reset", [PTA_REACH] = "reach"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i])) {
            options->algorithm = (pta_algorithm)i;
            return true;
        }
    return false;
}

enum { MODULES = 16 };

int main(int argc, char **argv)
{
    pta_options options = {.k = 1, .jobs = 1};
    uint32_t updates = 100, every = 1, batch = 1, count = 0;
    uint64_t seed = 1;
    lift_module *modules[MODULES];
    image *images[MODULES];
    race_error error;
    int at = 1;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        uint32_t number = (uint32_t)strtoul(argv[at + 1], NULL, 10);
        if (!strcmp(argv[at], "--edits"))
            updates = number;
        else if (!strcmp(argv[at], "--every") && number)
            every = number;
        else if (!strcmp(argv[at], "--batch") && number)
            batch = number;
        else if (!strcmp(argv[at], "--seed") && number)
            seed = number;
        else if (strcmp(argv[at], "--context") ? strcmp(argv[at], "--algorithm") || !set_algorithm(&options, argv[at + 1])
                                               : !set_context(&options, argv[at + 1]))
            return usage();
    }
    if (at == argc || argc - at > MODULES) return usage();
    for (; at < argc; at++, count++) {
        if (image_open(argv[at], &images[count], &error)) {
            fprintf(stderr, "%s\n", error.text);
            return 2;
        }
        modules[count] = lift_open(images[count], &(lift_options){.jobs = 1});
    }
    pta_program *program = pta_program_open(modules, count, 1);
    int status = run(program, &options, updates, every, batch, seed);
    pta_program_close(program);
    for (uint32_t i = 0; i < count; i++) {
        lift_close(modules[i]);
        image_close(images[i]);
    }
    return status;
}
