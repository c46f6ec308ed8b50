/* The three measurements: an analysis from scratch, edits of one, and what one says about sharing. */
#include "tests/tools/pta_bench/bench.h"

#include <stdio.h>

/* --- from scratch ------------------------------------------------------------------------------------------------ */

/* Opens an analysis within the limits; NULL: it took too long. */
static pta *open_limited(bench_child *child, pta_options options)
{
    pta *p;
    race_error error;
    options.stop = bench_stop();
    bench_arm(child->limits.seconds);
    int status = pta_open(child->program.program, &options, &p, &error);
    bool late = *bench_stop();
    bench_arm(0);
    if (status && !late) bench_fail(child, error.text);
    return p;
}

static void work_scratch(bench_child *child, const void *with)
{
    double start = bench_now(child);
    pta *p = open_limited(child, *(const pta_options *)with);
    double seconds = bench_now(child) - start;
    if (!p) return;
    pta_stats s;
    pta_statistics(p, &s);
    bench_tell(child, &(bench_note){
                          .kind = NOTE_VALUES,
                          .value = {seconds, bench_peak(), (double)s.nodes, (double)s.facts, (double)s.instances}});
}

static void take_scratch(void *to, const bench_note *note)
{
    scratch_result *r = to;
    const double *v = note->value;
    if (note->kind == NOTE_LOADED) {
        r->instructions = v[0], r->functions = v[1], r->statements = v[2], r->lift = v[3], r->generate = v[4];
    } else if (note->kind == NOTE_VALUES) {
        r->seconds = v[0], r->peak = v[1], r->nodes = v[2], r->facts = v[3], r->instances = v[4];
        r->end = BENCH_DONE;
    }
}

void measure_scratch(const bench_limits *limits, char *const *paths, uint32_t count, const pta_options *options,
                     scratch_result *result)
{
    *result = (scratch_result){.end = BENCH_TIME};
    bench_end end = bench_run(limits, paths, count, 1, work_scratch, options, take_scratch, result);
    if (end != BENCH_DONE) result->end = end;
}

/* --- edits ------------------------------------------------------------------------------------------------------- */

typedef VEC(pta_edit) statement_list;

/* The statements of code that runs and of the data it starts with, in random order; not those of models: nobody edits
 * them, and not those of functions that nothing calls: they cost nothing. */
static void candidates(const pta_program *program, const pta *p, uint64_t seed, statement_list *out)
{
    bool *runs = base_alloc_zero(program->funcs.len, sizeof *runs);
    pta_instance instance;
    for (uint32_t i = 0; i < pta_instance_count(p); i++)
        if (pta_instance_at(p, i, &instance)) runs[instance.func] = true;
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        const pta_func *func = &program->funcs.data[f];
        if (!runs[f] || !(func->lift || func->loader)) continue;
        for (uint32_t s = 0; s < func->stmts.len; s++)
            vec_push(out, (pta_edit){.func = f, .stmt = s});
    }
    free(runs);
    uint64_t state = tool_seed(seed);
    for (uint32_t i = out->len; i > 1; i--) {
        uint32_t k = tool_below(&state, i);
        pta_edit t = out->data[i - 1];
        out->data[i - 1] = out->data[k];
        out->data[k] = t;
    }
}

typedef struct {
    pta *p;
    uint64_t hash; /* of the relation before all edits */
    double left;   /* seconds that it may still take */
} column_state;

static double timed_update(const bench_child *child, column_state *c, const pta_edit *edit, bool limited)
{
    race_error error;
    if (limited) bench_arm(c->left);
    double start = bench_now(child), passed = tool_now();
    int status = pta_update(c->p, edit, 1, &error);
    double seconds = bench_now(child) - start;
    if (limited) bench_arm(0);
    c->left -= tool_now() - passed;
    return status ? -1 : seconds;
}

static void work_edits(bench_child *child, const void *with)
{
    const edit_plan *plan = with;
    pta_program *program = child->program.program;
    column_state columns[MAX_COLUMNS] = {0};
    statement_list all = {0};
    for (uint32_t c = 0; c < plan->column_count; c++) {
        pta_options options = plan->options;
        options.once = false;
        options.algorithm = plan->columns[c].algorithm;
        options.jobs = plan->columns[c].threads;
        columns[c] = (column_state){.p = open_limited(child, options), .left = child->limits.seconds};
        if (columns[c].p) columns[c].hash = pta_relation_hash(columns[c].p);
        if (columns[c].p && !all.len) candidates(program, columns[c].p, plan->seed, &all);
        bench_tell(child, &(bench_note){.kind = NOTE_COLUMN, .column = c, .value = {columns[c].p != NULL, 0, 0, 0}});
        if (!columns[c].p) return; /* the others would not be faster */
    }
    bench_tell(child, &(bench_note){.kind = NOTE_VALUES, .value = {all.len}});
    bool limited = child->limits.seconds;
    for (uint32_t e = 0; e < plan->edits && e < all.len; e++) {
        pta_edit gone = all.data[e], back = gone;
        back.insert = true;
        for (uint32_t turn = 0; turn < plan->column_count; turn++) {
            uint32_t c = (e + turn) % plan->column_count; /* nobody is always first */
            if (!columns[c].p || e % plan->columns[c].every) continue;
            double deletion = timed_update(child, &columns[c], &gone, limited);
            double insertion = deletion < 0 ? -1 : timed_update(child, &columns[c], &back, limited);
            if (insertion < 0) {
                program->funcs.data[gone.func].stmts.data[gone.stmt].dead = false;
            } else {
                bench_tell(child, &(bench_note){.kind = NOTE_SAMPLE, .column = c, .value = {e, deletion, insertion}});
            }
            if (insertion >= 0 && (!limited || columns[c].left > 0)) continue;
            bool equal = insertion >= 0 && pta_relation_hash(columns[c].p) == columns[c].hash;
            bench_tell(child, &(bench_note){.kind = NOTE_COLUMN, .column = c, .value = {1, 1, insertion >= 0, equal}});
            pta_close(columns[c].p);
            columns[c].p = NULL;
        }
    }
    for (uint32_t c = 0; c < plan->column_count; c++)
        if (columns[c].p)
            bench_tell(child, &(bench_note){.kind = NOTE_COLUMN,
                                            .column = c,
                                            .value = {1, 0, 1, pta_relation_hash(columns[c].p) == columns[c].hash}});
}

static void take_edits(void *to, const bench_note *note)
{
    edit_result *r = to;
    column_result *c = &r->columns[note->column];
    const double *v = note->value;
    if (note->kind == NOTE_VALUES) {
        r->candidates = v[0];
    } else if (note->kind == NOTE_SAMPLE) {
        vec_push(&c->samples, (edit_sample){(uint32_t)v[0], v[1], v[2]});
    } else if (note->kind == NOTE_COLUMN) {
        c->opened = v[0] != 0, c->over = v[1] != 0, c->finished = v[2] != 0, c->equal = v[3] != 0;
    }
}

void measure_edits(const bench_limits *limits, char *const *paths, uint32_t count, const edit_plan *plan,
                   edit_result *result)
{
    *result = (edit_result){0};
    bench_limits all = *limits;
    all.memory *= plan->column_count; /* one process holds the analyses of all columns */
    result->end = bench_run(&all, paths, count, 2 * plan->column_count, work_edits, plan, take_edits, result);
}

void edit_result_free(edit_result *result)
{
    for (uint32_t c = 0; c < MAX_COLUMNS; c++)
        vec_free(&result->columns[c].samples);
}

/* --- sharing ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const pta_options *options;
    const char *ran;
} share_work;

static void work_share(bench_child *child, const void *with)
{
    const share_work *work = with;
    const pta_options *options = work->options;
    pta *p = open_limited(child, *options);
    if (!p) return;
    pta_stats s;
    share_counts counts;
    pta_statistics(p, &s);
    share_count(p, child->program.program, options->context, work->ran, &counts);
    bench_note note = {.kind = NOTE_VALUES, .value = {s.seconds}};
    _Static_assert(sizeof counts + sizeof(double) <= sizeof note.value, "a note holds all counts");
    memcpy(note.value + 1, &counts, sizeof counts);
    bench_tell(child, &note);
}

static void take_share(void *to, const bench_note *note)
{
    share_result *r = to;
    if (note->kind == NOTE_LOADED) r->instructions = note->value[0];
    if (note->kind != NOTE_VALUES) return;
    r->seconds = note->value[0];
    memcpy(&r->counts, note->value + 1, sizeof r->counts);
    r->end = BENCH_DONE;
}

void measure_share(const bench_limits *limits, char *const *paths, uint32_t count, const pta_options *options, const char *ran,
                   share_result *result)
{
    share_work work = {options, ran};
    *result = (share_result){.end = BENCH_TIME};
    bench_end end = bench_run(limits, paths, count, 2, work_share, &work, take_share, result);
    if (end != BENCH_DONE) result->end = end;
}
