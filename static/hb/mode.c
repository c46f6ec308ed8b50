/* What a thread is told to do: a variable that says so, which it tests, and tests again further down:
 *
 *     while (next(&job))                           void request(struct job *job)
 *         if (mode == READ) request(job);          {
 *         else if (mode == WRITE) reply(job);          if (mode != IDLE) { put_off(job); return; }
 *                                                      execute(job);
 *
 * Such a thread comes to execute() only if somebody changes the variable between the two tests; most programs see to it
 * that nobody does. Only how sure a warning is depends on it (HB_AGAINST).
 *
 * For each variable that is tested near the begin of a thread: the values that it may have at each block and call, as
 * the tests on the way say, over the calls of the thread. Nothing is known any more where the thread may have waited
 * for a condition, nor by tests under a lock, which may be made to look once more; nor of a variable that the thread
 * itself stores to. */
#include "static/hb/doubt.h"

#include <stdlib.h>

enum { NEAR = 2 }; /* calls from the begin of a thread */

typedef struct {          /* a branch on a variable */
    uint32_t block, insn; /* which loads it */
    uint64_t on[2];       /* values with which it goes over the first edge of its block, and the second */
} mode_test;

typedef struct {
    bool asked;
    VEC(mode_test) tests; /* by block */
} mode_func;

typedef struct hb_modes {
    mode_func *funcs;
} hb_modes;

typedef struct { /* one variable of one thread */
    hb *h;
    uint32_t origin;
    const uint64_t *runs; /* instances that it surely runs */
    uint32_t extent;
    uint64_t *values; /* per instance: where it begins; 0: it does not come there */
    hb_numbers work;
    uint64_t *at; /* per block of the function that is gone through: where it begins */
} flow;

/* --- tests ------------------------------------------------------------------------------------------------------------- */

static bool may_wait_in(hb *h, uint32_t instance, uint32_t from, uint32_t until)
{
    const hb_func *own = &h->funcs[h->instances[instance].func];
    for (uint32_t c = hb_first_call(own, from); c < own->call_count && own->calls[c].insn < until; c++)
        if (hb_call_may_wait(h, instance, &own->calls[c])) return true;
    return false;
}

/* No call lies between a load and the end of a block, and one way only leads there. */
static bool is_fresh(const lift_func *f, const hb_func *own, uint32_t load, uint32_t block)
{
    uint32_t from = hb_block_of(f, load);
    for (unsigned steps = 0; steps < 8; steps++) {
        const lift_block *b = &f->blocks[block];
        uint32_t call = hb_first_call(own, block == from ? load : b->first_insn);
        if (call < own->call_count && own->calls[call].insn < b->first_insn + b->insn_count) return false;
        if (block == from) return true;
        if (b->pred_count != 1) return false;
        block = f->edges[f->preds[b->first_pred]].from;
    }
    return false;
}

/* The tests of a function, whatever they test; what was loaded before a call is not looked at, since it may have
 * waited. */
static const mode_func *tests_of(hb *h, uint32_t func)
{
    mode_func *m = &h->modes->funcs[func];
    if (m->asked) return m;
    m->asked = true;
    const lift_func *f = hb_code(h, func);
    const hb_func *own = &h->funcs[func];
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        value_condition c;
        if (block->end_kind != END_BRANCH || block->succ_count != 2 || f->ir->blocks[b].rpo == UINT32_MAX) continue;
        if (!value_test(f->ir, b, true, &c) || !c.a || c.b) continue;
        const ir_insn *load = &f->ir->insns[value_plain(f->ir, c.a, 4)];
        if (load->op != IR_LOAD) continue;
        if (!is_fresh(f, own, load->insn, b)) continue;
        uint64_t taken = hb_values_of(&c);
        c.code ^= 1;
        uint64_t not_taken = hb_values_of(&c);
        bool first = f->edges[block->first_succ].kind == EDGE_TAKEN;
        vec_push(&m->tests, ((mode_test){b, load->insn, {first ? taken : not_taken, first ? not_taken : taken}}));
    }
    return m;
}

/* The variable that an instance loads there; HB_NONE: none. */
static uint32_t variable_at(const hb *h, uint32_t instance, uint32_t insn)
{
    const hb_touch *t = hb_touch_at(h, instance, insn);
    if (!t || t->flags != IR_READ || t->place_count != 1) return HB_NONE;
    const hb_place *p = &h->places.data[t->first_place];
    return p->place.exact && h->program->sites.data[p->place.site].kind == PTA_STATIC ? p->extent : HB_NONE;
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

static const mode_test *test_at(const flow *f, const mode_func *tests, uint32_t instance, uint32_t block)
{
    for (uint32_t t = 0; t < tests->tests.len; t++)
        if (tests->tests.data[t].block == block)
            return variable_at(f->h, instance, tests->tests.data[t].insn) == f->extent ? &tests->tests.data[t] : NULL;
    return NULL;
}

static bool is_locked(hb *h, uint32_t instance, uint32_t insn)
{
    uint32_t set = hb_locks_at(h, (hb_point){instance, insn});
    return set == UINT32_MAX || hb_holds_locks(h, set);
}

/* Through a block that begins with some values; to its end. */
static uint64_t behind_block(const flow *f, uint32_t instance, const lift_block *b, uint64_t values)
{
    return may_wait_in(f->h, instance, b->first_insn, b->first_insn + b->insn_count) ? HB_ANY : values;
}

/* The values at the begin of each block of an instance, in f->at. */
static void go_through(flow *f, uint32_t instance)
{
    const lift_func *code = hb_instance_code(f->h, instance);
    const mode_func *tests = tests_of(f->h, f->h->instances[instance].func);
    f->at = base_realloc(f->at, code->block_count * sizeof *f->at);
    memset(f->at, 0, code->block_count * sizeof *f->at);
    hb_numbers work = {0};
    f->at[0] = f->values[instance];
    vec_push(&work, 0);
    while (work.len) {
        uint32_t block = work.data[--work.len];
        const lift_block *b = &code->blocks[block];
        uint64_t values = behind_block(f, instance, b, f->at[block]);
        const mode_test *test = test_at(f, tests, instance, block);
        if (test && is_locked(f->h, instance, test->insn)) test = NULL, values = HB_ANY;
        for (uint32_t i = 0; i < b->succ_count; i++) {
            uint32_t to = code->edges[b->first_succ + i].to;
            uint64_t there = test ? values & test->on[i] : values;
            if (hb_is_doubted(f->h, f->origin, instance, to) || (f->at[to] | there) == f->at[to]) continue;
            f->at[to] |= there;
            vec_push(&work, to);
        }
        for (uint32_t to = 0; b->end_kind == END_UNKNOWN && to < code->block_count;
             to++) /* it may go anywhere in the function */
            if (f->at[to] != HB_ANY && !hb_is_doubted(f->h, f->origin, instance, to)) {
                f->at[to] = HB_ANY;
                vec_push(&work, to);
            }
    }
    vec_free(&work);
}

static bool is_tested(const flow *f, uint32_t instance)
{
    const mode_func *tests = tests_of(f->h, f->h->instances[instance].func);
    for (uint32_t t = 0; t < tests->tests.len; t++)
        if (variable_at(f->h, instance, tests->tests.data[t].insn) == f->extent) return true;
    return false;
}

static void go_to(flow *f, uint32_t instance, uint64_t values)
{
    if (!hb_bit(f->runs, instance) || (f->values[instance] | values) == f->values[instance]) return;
    f->values[instance] |= values;
    vec_push(&f->work, instance);
}

/* On to all that an instance calls. */
static void go_on(flow *f, uint32_t instance)
{
    const hb *h = f->h;
    const lift_func *code = hb_instance_code(h, instance);
    const hb_func *own = &h->funcs[h->instances[instance].func];
    bool tested = code && is_tested(f, instance);
    uint64_t values = f->values[instance];
    if (tested)
        go_through(f, instance);
    else if (code && values != HB_ANY && may_wait_in(f->h, instance, 0, code->insn_count))
        values = HB_ANY;
    for (uint32_t e = h->out_first[instance]; e < h->out_first[instance + 1]; e++) {
        if (hb_spawns(h, &h->edges[e])) continue;
        uint32_t insn = h->call_insn[h->edges[e].call], block = code ? hb_block_of(code, insn) : 0;
        if (code && hb_is_doubted(h, f->origin, instance, block)) continue;
        if (tested) {
            uint32_t from = code->blocks[block].first_insn;
            values = f->at[block] && own->call_count && may_wait_in(f->h, instance, from, insn) ? HB_ANY : f->at[block];
        }
        go_to(f, h->edges[e].callee, values);
    }
}

/* --- what is not come to ------------------------------------------------------------------------------------------------ */

/* The thread stores to the variable itself where it comes to; not into an array that it may be in. */
static bool is_stored(flow *f)
{
    const hb *h = f->h;
    const hb_extent *variable = hb_extent_at(h, f->extent);
    uint32_t count;
    const hb_use *writes = hb_writes_to(h, variable->object, &count);
    for (uint32_t i = 0; i < count; i++) {
        const hb_touch *t = &h->touches.data[writes[i].touch];
        if (!f->values[t->instance] || !h->places.data[writes[i].place].place.exact ||
            !hb_overlap(hb_extent_at(h, h->places.data[writes[i].place].extent), variable))
            continue;
        const lift_func *code = hb_instance_code(h, t->instance);
        uint32_t block = code ? hb_block_of(code, t->insn) : 0;
        if (code && hb_is_doubted(h, f->origin, t->instance, block)) continue;
        if (!code || !is_tested(f, t->instance)) return true;
        go_through(f, t->instance);
        if (f->at[block]) return true;
    }
    return false;
}

static void follow(hb *h, uint32_t origin, uint32_t extent)
{
    const hb_origin *o = &h->origins.data[origin];
    flow f = {.h = h,
              .origin = origin,
              .runs = o->within[HB_AGAINST],
              .extent = extent,
              .values = base_alloc_zero(h->instance_count, sizeof *f.values)};
    go_to(&f, o->instance, HB_ANY);
    while (f.work.len)
        go_on(&f, f.work.data[--f.work.len]);
    if (!is_stored(&f))
        for (uint32_t i = 0; i < h->instance_count; i++)
            if (f.values[i] && hb_instance_code(h, i) && is_tested(&f, i)) {
                go_through(&f, i);
                hb_doubt_blocks(h, origin, i, f.at);
            }
    free(f.values);
    free(f.at);
    vec_free(&f.work);
}

/* The variables that are tested near the begin of a thread. */
static void find_variables(hb *h, uint32_t instance, const uint64_t *runs, unsigned depth, hb_numbers *out)
{
    const mode_func *tests = hb_instance_code(h, instance) ? tests_of(h, h->instances[instance].func) : NULL;
    for (uint32_t t = 0; tests && t < tests->tests.len; t++) {
        uint32_t extent = variable_at(h, instance, tests->tests.data[t].insn);
        bool known = extent == HB_NONE;
        for (uint32_t i = 0; i < out->len && !known; i++)
            known = out->data[i] == extent;
        if (!known) vec_push(out, extent);
    }
    for (uint32_t e = h->out_first[instance]; depth < NEAR && e < h->out_first[instance + 1]; e++)
        if (!hb_spawns(h, &h->edges[e]) && hb_bit(runs, h->edges[e].callee))
            find_variables(h, h->edges[e].callee, runs, depth + 1, out);
}

void hb_modes_find(hb *h, uint32_t origin)
{
    const hb_origin *o = &h->origins.data[origin];
    hb_numbers variables = {0};
    if (!h->modes) {
        h->modes = base_alloc_zero(1, sizeof *h->modes);
        h->modes->funcs = base_alloc_zero(h->program->funcs.len, sizeof *h->modes->funcs);
    }
    find_variables(h, o->instance, o->within[HB_AGAINST], 0, &variables);
    for (uint32_t i = 0; i < variables.len; i++)
        follow(h, origin, variables.data[i]);
    vec_free(&variables);
}

void hb_modes_close(hb *h)
{
    if (!h->modes) return;
    for (uint32_t f = 0; f < h->program->funcs.len; f++)
        vec_free(&h->modes->funcs[f].tests);
    free(h->modes->funcs);
    free(h->modes);
}
