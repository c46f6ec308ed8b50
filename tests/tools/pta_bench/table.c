/* The tables, with the bars of what they must show. */
#include "tests/tools/pta_bench/table.h"

#include <math.h>
#include <stdio.h>

const char *table_end(bench_end end, uint32_t seconds, char text[32])
{
    if (end == BENCH_TIME)
        snprintf(text, 32, "> %u s", seconds);
    else
        snprintf(text, 32, "%s", end == BENCH_MEMORY ? "out of memory" : end == BENCH_FAILED ? "failed" : "done");
    return text;
}

/* --- from scratch ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name; /* how a program's begins */
    double seconds;
} scratch_bars[] = {{"memcached", 1}, {"redis", 5}, {"sqlite3", 20}, {"libsqlite3", 20}};
static const double MEMORY_BAR = 4096;

static double scratch_bar(const char *program)
{
    for (unsigned i = 0; i < sizeof scratch_bars / sizeof *scratch_bars; i++)
        if (!strncmp(program, scratch_bars[i].name, strlen(scratch_bars[i].name))) return scratch_bars[i].seconds;
    return 0;
}

void table_scratch_head(void)
{
    printf("\nFrom scratch: seconds with 1 and 2 threads, and peak memory of the process (MB), for one result (once) "
           "and for one that\n"
           "can be updated (open). Bars, with origin: memcached 1 s, redis 5 s, sqlite3 20 s, each within %.0f MB.\n\n",
           MEMORY_BAR);
    printf("%-22s %-9s %9s %7s %9s %6s %6s | %8s %8s %6s | %8s %8s %6s | %9s %9s  %s\n", "program", "context", "insns",
           "funcs", "stmts", "lift", "gen", "once 1", "once 2", "MB", "open 1", "open 2", "MB", "nodes", "facts",
           "bar");
}

static void print_seconds(const scratch_result *r, uint32_t limit)
{
    char text[32];
    if (r->end == BENCH_DONE)
        printf(" %8.3f", r->seconds);
    else
        printf(" %8s", r->end == BENCH_MEMORY ? "memory" : table_end(r->end, limit, text));
}

static bool meets(const scratch_result *one, const scratch_result *two, double bar)
{
    bool fast = (one->end == BENCH_DONE && one->seconds <= bar) || (two->end == BENCH_DONE && two->seconds <= bar);
    return fast && one->peak <= MEMORY_BAR && two->peak <= MEMORY_BAR;
}

void table_scratch(const char *program, const char *context, const scratch_result r[SCRATCH_KINDS], uint32_t limit)
{
    const scratch_result *any = &r[0];
    for (unsigned i = 0; i < SCRATCH_KINDS; i++)
        if (r[i].end == BENCH_DONE) any = &r[i];
    printf("%-22s %-9s %9.0f %7.0f %9.0f %6.2f %6.2f |", program, context, any->instructions, any->functions,
           any->statements, any->lift, any->generate);
    for (unsigned i = 0; i < SCRATCH_KINDS; i += 2) {
        print_seconds(&r[i], limit);
        print_seconds(&r[i + 1], limit);
        printf(" %6.0f |", fmax(r[i].peak, r[i + 1].peak));
    }
    printf(" %9.0f %9.0f ", any->nodes, any->facts);
    double bar = strcmp(context, "origin") ? 0 : scratch_bar(program);
    if (bar)
        printf(" %.0f s: once %s, open %s", bar, meets(&r[0], &r[1], bar) ? "ok" : "missed",
               meets(&r[2], &r[3], bar) ? "ok" : "missed");
    printf("\n");
    fflush(stdout);
}

/* --- edits ------------------------------------------------------------------------------------------------------- */

typedef struct {
    double median, mean, p99, worst;
} summary;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static summary summarise(double *values, uint32_t count) /* sorts them */
{
    summary s = {0};
    if (!count) return s;
    qsort(values, count, sizeof *values, by_value);
    for (uint32_t i = 0; i < count; i++)
        s.mean += values[i] / count;
    s.median = values[count / 2];
    s.p99 = values[(uint32_t)ceil(count * 0.99) - 1];
    s.worst = values[count - 1];
    return s;
}

/* How many times longer `other` took for the edits that both did; 0: there are none. */
static double times_faster(const column_result *c, const column_result *other)
{
    double mine = 0, theirs = 0;
    for (uint32_t i = 0, k = 0; i < c->samples.len && k < other->samples.len;) {
        const edit_sample *a = &c->samples.data[i], *b = &other->samples.data[k];
        if (a->edit == b->edit) {
            mine += a->deletion + a->insertion;
            theirs += b->deletion + b->insertion;
        }
        i += a->edit <= b->edit;
        k += b->edit <= a->edit;
    }
    return mine > 0 ? theirs / mine : 0;
}

void table_edits_head(const edit_plan *plan)
{
    uint32_t every = 1;
    for (uint32_t c = 0; c < plan->column_count; c++)
        if (plan->columns[c].algorithm == PTA_RESET) every = plan->columns[c].every;
    printf("\nEdits: a statement is deleted and inserted again, in each row before the next statement; milliseconds of "
           "the deletion, of\n"
           "the insertion and of both. x reset: how many times faster than reset with as many threads, over the "
           "statements that both\n"
           "did (reset: one of %u). Bars for ipa (of both): median 1, mean 10, p99 100, worst any, x reset 100.\n\n",
           every);
    printf("%-22s %-9s %-5s %2s %6s | %8s %8s %8s %8s | %8s %8s %8s %8s | %8s %8s %8s %8s | %7s  %s\n", "program",
           "context", "how", "th", "edits", "delete", "mean", "p99", "worst", "insert", "mean", "p99", "worst", "both",
           "mean", "p99", "worst", "x reset", "");
}

static void print_summary(const summary *s)
{
    printf(" %8.3f %8.3f %8.2f %8.1f |", s->median * 1e3, s->mean * 1e3, s->p99 * 1e3, s->worst * 1e3);
}

static void print_bars(const summary *both, double ratio)
{
    static const char *const names[] = {"median", "mean", "p99", "ratio"};
    const bool ok[] = {both->median <= 1e-3, both->mean <= 10e-3, both->p99 <= 100e-3, ratio == 0 || ratio >= 100};
    bool all = true;
    for (unsigned i = 0; i < 4; i++) {
        if (!ok[i]) printf("%s%s", all ? " missed: " : ", ", names[i]);
        all &= ok[i];
    }
    if (all) printf(" ok");
}

static void table_column(const char *program, const char *context, const edit_plan *plan, const edit_result *r,
                         uint32_t at, const bench_limits *limits)
{
    const edit_column *kind = &plan->columns[at];
    const column_result *c = &r->columns[at];
    char text[32];
    printf("%-22s %-9s %-5s %2d %6u |", program, context, tool_algorithms[kind->algorithm], kind->threads,
           c->samples.len);
    if (!c->samples.len) {
        printf(" %s\n", table_end(r->end == BENCH_DONE ? BENCH_TIME : r->end, limits->seconds, text));
        return;
    }
    double *values = base_alloc(c->samples.len * sizeof *values);
    summary s = {0};
    for (unsigned what = 0; what < 3; what++) {
        for (uint32_t i = 0; i < c->samples.len; i++)
            values[i] = (what != 1 ? c->samples.data[i].deletion : 0) + (what != 0 ? c->samples.data[i].insertion : 0);
        s = summarise(values, c->samples.len);
        print_summary(&s);
    }
    free(values);
    double ratio = 0;
    for (uint32_t k = 0; k < plan->column_count; k++)
        if (plan->columns[k].algorithm == PTA_RESET && plan->columns[k].threads == kind->threads)
            ratio = times_faster(c, &r->columns[k]);
    if (ratio)
        printf(" %7.1f ", ratio);
    else
        printf(" %7s ", "-");
    if (kind->algorithm == PTA_IPA) print_bars(&s, ratio);
    if (c->over) printf(" ended after %u s%s", limits->seconds, c->finished ? "" : " in an edit");
    if (!c->finished && !c->over) printf(" %s", table_end(r->end, limits->seconds * 2 * plan->column_count, text));
    if (c->finished && !c->equal) printf(" WRONG: not the relation of before");
    printf("\n");
}

void table_edits(const char *program, const char *context, const edit_plan *plan, const edit_result *r,
                 const bench_limits *limits)
{
    for (uint32_t c = 0; c < plan->column_count; c++)
        table_column(program, context, plan, r, c, limits);
    fflush(stdout);
}

/* --- precision --------------------------------------------------------------------------------------------------- */

void table_share_head(void)
{
    printf("\nPrecision. Accesses of code that runs, other than to the own frame; places: average points-to set of "
           "those that have one,\n"
           "over all instances of a function together and in one instance; max: the largest. Shared: access "
           "instructions, and pairs of\n"
           "instruction and origin, to what another origin accesses too (any), and where one of both writes (write). "
           "x: how many times\n"
           "fewer instructions are shared with a write than with the first context. Bar: origin halves them on "
           "memcached and redis.\n\n");
    printf("%-22s %-9s %7s %7s %9s %7s %8s %8s %7s | %8s %8s %8s | %9s %9s %9s %6s | %6s\n", "program", "context",
           "seconds", "origins", "accesses", "empty", "places", "in one", "max", "insns", "any", "write", "pairs",
           "any", "write", "local", "x");
}

void table_share(const char *program, const char *context, const share_result *r, const share_result *first,
                 uint32_t limit)
{
    char text[32];
    const share_counts *c = &r->counts;
    printf("%-22s %-9s ", program, context);
    if (r->end != BENCH_DONE) {
        printf("%s\n", table_end(r->end, limit, text));
        fflush(stdout);
        return;
    }
    printf("%7.2f %7.0f %9.0f %7.0f %8.2f %8.2f %7.0f | %8.0f %8.0f %8.0f | %9.0f %9.0f %9.0f %5.1f%% |", r->seconds,
           c->origins, c->accesses, c->accesses - c->pointed, c->pointed > 0 ? c->places / c->pointed : 0,
           c->in_instances > 0 ? c->places_in / c->in_instances : 0, c->largest, c->insns, c->insns_any, c->insns_write,
           c->pairs, c->pairs_any, c->pairs_write, c->pairs > 0 ? 100 * (1 - c->pairs_write / c->pairs) : 0);
    double ratio = first->end == BENCH_DONE && c->insns_write > 0 ? first->counts.insns_write / c->insns_write : 0;
    printf(" %6.2f", ratio);
    bool bar = !strcmp(context, "origin") && r != first &&
               (!strncmp(program, "memcached", 9) || !strncmp(program, "redis", 5));
    if (bar) printf("  %s", ratio >= 2 ? "ok" : "missed");
    if (c->insns_wild > 0)
        printf("\n%-32s %.0f instructions by wild pointers; without these accesses %.0f are shared with a write", "", c->insns_wild,
               c->insns_tame);
    if (c->ran > 0)
        printf("\n%-32s of %.0f instructions that ran: %.0f shared with a write, %.0f were in the run", "", c->ran, c->ran_write,
               c->ran_shared);
    printf("\n");
    fflush(stdout);
}

/* --- scale ------------------------------------------------------------------------------------------------------- */

void table_scale_head(void)
{
    printf("\nScale: from scratch for one result, all threads.\n\n%-22s %-9s %10s %8s %10s %8s %8s %9s %8s %11s\n",
           "program", "context", "insns", "funcs", "stmts", "lift", "generate", "seconds", "MB", "ns / stmt");
}

void table_scale(const char *program, const char *context, const scratch_result *r, uint32_t limit)
{
    char text[32];
    printf("%-22s %-9s %10.0f %8.0f %10.0f %8.2f %8.2f ", program, context, r->instructions, r->functions,
           r->statements, r->lift, r->generate);
    if (r->end == BENCH_DONE)
        printf("%9.3f %8.0f %11.0f\n", r->seconds, r->peak, r->statements > 0 ? r->seconds * 1e9 / r->statements : 0);
    else
        printf("%s\n", table_end(r->end, limit, text));
    fflush(stdout);
}

void table_growth(const char *context, const scratch_result *rows, uint32_t count)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].end != BENCH_DONE || rows[i].statements < 1 || rows[i].seconds <= 0) continue;
        double a = log(rows[i].statements), b = log(rows[i].seconds);
        n++, x += a, y += b, xx += a * a, xy += a * b;
    }
    double spread = n * xx - x * x;
    if (n >= 3 && spread > 1e-9)
        printf("%s: seconds grow with the %.2fth power of statements, over %.0f programs\n", context,
               (n * xy - x * y) / spread, n);
}
