/* How fast and how precise the pointer analysis is, as tables; tools/bench-pointer finds programs for it.
 *
 *   pta_bench [--scratch] [--updates] [--precision] [--scale] [--processor] [--context C]... [--algorithm A]...
 *             [--threads N]... [--edits N] [--reset-edits N] [--seed N] [--seconds N] [--memory MB] [--ran FILE]
 *             [--wild N] NAME=FILE[,FILE]...
 *
 * A program is one file or several modules. Without one of the first four options: --scratch and --updates.
 * --processor: the time of the processor is measured, of all threads together, for machines that others use too.
 * --edits: random statements that are deleted and inserted again (2000), --reset-edits: of them with `reset` (a tenth).
 * --seconds: limit of each measurement: an analysis from scratch, or all edits of one row. --memory: limit of the
 * address space of each. What goes beyond says so in its row. --ran: what libsharing.so (tests/dynamorio) has recorded of a run of
 * the program; with --precision, how many of the instructions that ran are shared by the analysis, and were. --wild: another
 * threshold for wild pointers (pta_options). Exit 0: all rows are there, with or without numbers. */
#include "tests/tools/pta_bench/table.h"

#include <stdio.h>

enum { MAX_PROGRAMS = 64, MAX_CONTEXTS = 8, MAX_THREADS = 4, ALGORITHMS = 3 };

typedef struct {
    char name[64];
    char *paths[TOOL_MODULES];
    uint32_t count;
} bench_program;

typedef struct {
    bool scratch, updates, precision, scale;
    const char *contexts[MAX_CONTEXTS];
    uint32_t context_count;
    pta_algorithm algorithms[ALGORITHMS];
    uint32_t algorithm_count;
    uint32_t threads[MAX_THREADS], thread_count;
    uint32_t edits, reset_edits, seed, wild;
    bench_limits limits;
    bench_program programs[MAX_PROGRAMS];
    uint32_t program_count;
    const char *ran;
} bench;

static int usage(void)
{
    fprintf(stderr,
            "usage: pta_bench [--scratch] [--updates] [--precision] [--scale] [--processor] [--context C]... [--algorithm A]... "
            "[--threads N]...\n"
            "       [--edits N] [--reset-edits N] [--seed N] [--seconds N] [--memory MB] [--ran FILE] [--wild N] "
            "NAME=FILE[,FILE]...\n");
    return 2;
}

static pta_options options_of(const bench *b, uint32_t context)
{
    pta_options options = {0};
    tool_context(b->contexts[context], &options);
    options.wild_at = b->wild;
    return options;
}

static void run_scratch(bench *b)
{
    table_scratch_head();
    for (uint32_t i = 0; i < b->program_count; i++)
        for (uint32_t c = 0; c < b->context_count; c++) {
            bench_program *p = &b->programs[i];
            scratch_result r[SCRATCH_KINDS];
            for (unsigned k = 0; k < SCRATCH_KINDS; k++) {
                pta_options options = options_of(b, c);
                options.once = k < 2;
                options.jobs = 1 + (int)(k % 2);
                measure_scratch(&b->limits, p->paths, p->count, &options, &r[k]);
            }
            table_scratch(p->name, b->contexts[c], r, b->limits.seconds);
        }
}

static void run_updates(bench *b)
{
    edit_plan plan = {.edits = b->edits, .seed = b->seed};
    for (uint32_t a = 0; a < b->algorithm_count; a++)
        for (uint32_t t = 0; t < b->thread_count && plan.column_count < MAX_COLUMNS; t++) {
            uint32_t every = b->algorithms[a] == PTA_RESET ? (b->edits + b->reset_edits - 1) / b->reset_edits : 1;
            plan.columns[plan.column_count++] = (edit_column){b->algorithms[a], (int)b->threads[t], every ? every : 1};
        }
    table_edits_head(&plan);
    for (uint32_t i = 0; i < b->program_count; i++)
        for (uint32_t c = 0; c < b->context_count; c++) {
            edit_result r;
            plan.options = options_of(b, c);
            measure_edits(&b->limits, b->programs[i].paths, b->programs[i].count, &plan, &r);
            table_edits(b->programs[i].name, b->contexts[c], &plan, &r, &b->limits);
            edit_result_free(&r);
        }
}

static void run_precision(bench *b)
{
    table_share_head();
    for (uint32_t i = 0; i < b->program_count; i++) {
        share_result first;
        for (uint32_t c = 0; c < b->context_count; c++) {
            share_result r, *to = c ? &r : &first;
            pta_options options = options_of(b, c);
            options.once = true;
            measure_share(&b->limits, b->programs[i].paths, b->programs[i].count, &options, b->ran, to);
            table_share(b->programs[i].name, b->contexts[c], to, &first, b->limits.seconds);
        }
    }
}

static void run_scale(bench *b)
{
    scratch_result rows[MAX_PROGRAMS];
    table_scale_head();
    for (uint32_t c = 0; c < b->context_count; c++) {
        for (uint32_t i = 0; i < b->program_count; i++) {
            pta_options options = options_of(b, c);
            options.once = true;
            measure_scratch(&b->limits, b->programs[i].paths, b->programs[i].count, &options, &rows[i]);
            table_scale(b->programs[i].name, b->contexts[c], &rows[i], b->limits.seconds);
        }
        table_growth(b->contexts[c], rows, b->program_count);
    }
}

/* NAME=FILE,FILE; the argument is cut up. */
static bool add_program(bench *b, char *text)
{
    char *files = strchr(text, '=');
    if (!files || files == text || b->program_count == MAX_PROGRAMS) return false;
    *files++ = 0;
    bench_program *p = &b->programs[b->program_count++];
    snprintf(p->name, sizeof p->name, "%s", text);
    for (char *rest = files, *file; (file = strsep(&rest, ","));) {
        if (!*file || p->count == TOOL_MODULES) return false;
        p->paths[p->count++] = file;
    }
    return true;
}

static bool set_flag(bench *b, const char *name)
{
    bool *flag = !strcmp(name, "--scratch")     ? &b->scratch
                 : !strcmp(name, "--updates")   ? &b->updates
                 : !strcmp(name, "--precision") ? &b->precision
                 : !strcmp(name, "--scale")     ? &b->scale
                 : !strcmp(name, "--processor") ? &b->limits.processor
                                                : NULL;
    if (flag) *flag = true;
    return flag;
}

static bool set_option(bench *b, const char *name, const char *value)
{
    const struct {
        const char *name;
        uint32_t *to;
    } numbers[] = {{"--edits", &b->edits},
                   {"--reset-edits", &b->reset_edits},
                   {"--seed", &b->seed},
                   {"--wild", &b->wild},
                   {"--seconds", &b->limits.seconds},
                   {"--memory", &b->limits.memory}};
    pta_options unused;
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name)) return tool_number(value, numbers[i].to);
    if (!strcmp(name, "--context") && b->context_count < MAX_CONTEXTS && tool_context(value, &unused)) {
        b->contexts[b->context_count++] = value;
        return true;
    }
    if (!strcmp(name, "--ran")) b->ran = value;
    if (!strcmp(name, "--ran")) return true;
    if (!strcmp(name, "--algorithm") && b->algorithm_count < ALGORITHMS)
        return tool_algorithm(value, &b->algorithms[b->algorithm_count++]);
    return !strcmp(name, "--threads") && b->thread_count < MAX_THREADS &&
           tool_number(value, &b->threads[b->thread_count]) && b->threads[b->thread_count++];
}

static void set_defaults(bench *b)
{
    static const char *const contexts[] = {"none", "origin", "cfa:1", "cfa:2"};
    static const pta_algorithm algorithms[] = {PTA_RESET, PTA_REACH, PTA_IPA};
    if (!b->scratch && !b->updates && !b->precision && !b->scale) b->scratch = b->updates = true;
    for (unsigned i = 0; !b->context_count && i < 4; i++)
        b->contexts[i] = contexts[i];
    if (!b->context_count) b->context_count = 4;
    for (unsigned i = 0; !b->algorithm_count && i < ALGORITHMS; i++)
        b->algorithms[i] = algorithms[i];
    if (!b->algorithm_count) b->algorithm_count = ALGORITHMS;
    if (!b->thread_count) b->threads[0] = 1, b->threads[1] = 2, b->thread_count = 2;
    if (!b->reset_edits) b->reset_edits = b->edits / 10 ? b->edits / 10 : 1;
}

int main(int argc, char **argv)
{
    static bench b = {.edits = 2000, .seed = 1};
    for (int at = 1; at < argc; at++) {
        if (strncmp(argv[at], "--", 2) ? add_program(&b, argv[at]) : set_flag(&b, argv[at])) continue;
        if (strncmp(argv[at], "--", 2) || at + 1 == argc || !set_option(&b, argv[at], argv[at + 1])) return usage();
        at++;
    }
    if (!b.program_count || !b.edits) return usage();
    set_defaults(&b);
    if (b.scratch) run_scratch(&b);
    if (b.updates) run_updates(&b);
    if (b.precision) run_precision(&b);
    if (b.scale) run_scale(&b);
    return 0;
}
