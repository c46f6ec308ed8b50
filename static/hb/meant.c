/* Where a thread is meant to be alive. A program that waits for its thread at the end of its input, or when a flag says
 * that there is one, has paths on which it goes on without having waited, and most of them are never taken: what such a
 * path alone makes race is less sure. Only the ranking asks.
 *
 * Such a life ends wherever a call may wait for the thread, or may call a function that does; and no error is come back
 * from. */
#include "static/hb/join.h"

#include <stdlib.h>

/* A handle of which nothing is known may be that of any thread, and a loop of joins is for what a loop has created. */
static bool may_wait(const hb *h, const join_call *join, uint32_t thread)
{
    const hb_origin *o = &h->origins.data[thread];
    if (join->sync->kind != SYNC_JOIN) return false;
    if (!join->threads.len || join_has_number(&join->threads, thread)) return true;
    return join->loop && o->sites.len && join_loop_of(h, o->sites.data[0].instance, o->sites.data[0].insn) &&
           h->instances[o->sites.data[0].instance].func == h->instances[join->instance].func;
}

typedef struct {
    uint32_t instance, block;
} wait_block;

typedef struct {
    const hb *h; /* first, as life_closes has them */
    const join_state *joins;
    VEC(wait_block) calls; /* where one waits for it, or calls a function that may */
    struct meant_span { /* those of the instance that was asked about last */
        uint32_t instance, first, end;
    } *span;
} meant_walk;

static bool cuts(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    const meant_walk *m = w->with;
    const join_state *s = m->joins;
    for (uint32_t j = 0; hb_bit(s->instances, instance) && j < s->joins.len; j++)
        if (s->joins.data[j].instance == instance && s->joins.data[j].call == call &&
            may_wait(m->h, &s->joins.data[j], s->of))
            return true;
    return false;
}

/* Those that may wait for it, and their callers: not of a function that never returns, as when a program gives up. */
static void find_waits(const hb *h, const join_state *s, uint64_t *waits, hb_numbers *cutters)
{
    hb_numbers work = {0};
    for (uint32_t j = 0; j < s->joins.len; j++) {
        uint32_t i = s->joins.data[j].instance;
        if (!may_wait(h, &s->joins.data[j], s->of) || hb_bit(waits, i)) continue;
        hb_set(waits, i);
        vec_push(cutters, i);
        vec_push(&work, i);
    }
    while (work.len) {
        uint32_t callee = work.data[--work.len];
        if (hb_instance_code(h, callee) && !hb_instance_code(h, callee)->returns) continue;
        for (uint32_t k = h->in_first[callee]; k < h->in_first[callee + 1]; k++) {
            const pta_call_edge *e = &h->edges[h->in_edge[k]];
            if (hb_spawns(h, e) || hb_bit(waits, e->caller)) continue;
            hb_set(waits, e->caller);
            vec_push(&work, e->caller);
        }
    }
    vec_free(&work);
}

static int by_instance(const void *a, const void *b)
{
    const hb_point *x = a, *y = b;
    if (x->instance != y->instance) return x->instance < y->instance ? -1 : 1;
    return x->insn < y->insn ? -1 : x->insn > y->insn;
}

static void find_calls(const hb *h, const join_state *s, const uint64_t *waits, hb_points *out)
{
    for (uint32_t j = 0; j < s->joins.len; j++)
        if (may_wait(h, &s->joins.data[j], s->of))
            vec_push(out, (hb_point){s->joins.data[j].instance, s->joins.data[j].call->insn});
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_bit(waits, i) || (hb_instance_code(h, i) && !hb_instance_code(h, i)->returns)) continue;
        for (uint32_t k = h->in_first[i]; k < h->in_first[i + 1]; k++) {
            const pta_call_edge *e = &h->edges[h->in_edge[k]];
            bool named = h->program->calls.data[e->call].func != PTA_NO_FUNC;
            if (named && !hb_spawns(h, e) && hb_instance_code(h, e->caller))
                vec_push(out, (hb_point){e->caller, h->call_insn[e->call]});
        }
    }
}

enum { MOST_WAITS = 8 }; /* a function with more of them, as an interpreter has, does not wait for one thread */

/* Its calls are looked at from here on. */
static void find_span(const meant_walk *m, uint32_t instance)
{
    uint32_t low = 0, high = m->calls.len, end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->calls.data[middle].instance < instance)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < m->calls.len && m->calls.data[end].instance == instance;)
        end++;
    *m->span = (struct meant_span){instance, low, end - low <= MOST_WAITS ? end : low};
}

/* The branch goes past a call that waits for the thread, to where that comes as well: `if (there is one) wait for it`.
 */
static bool goes_past(const meant_walk *m, uint32_t instance, uint32_t from, uint32_t edge)
{
    const lift_func *f = hb_instance_code(m->h, instance);
    const lift_block *b = &f->blocks[from];
    if (m->span->instance != instance) find_span(m, instance);
    if (m->span->first == m->span->end) return false;
    if (b->end_kind != END_BRANCH || b->succ_count != 2) return false;
    uint32_t to = f->edges[edge].to, other = f->edges[edge == b->first_succ ? edge + 1 : b->first_succ].to;
    if (to == other) return false;
    for (uint32_t i = m->span->first; i < m->span->end; i++) {
        uint32_t wait = m->calls.data[i].block;
        bool leads = wait == other || hb_goes_on_to(f, other, wait), misses = wait != to && !hb_goes_on_to(f, to, wait);
        if (leads && misses && hb_goes_on_to(f, wait, to)) return true;
    }
    return false;
}

static bool closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    return goes_past(w->with, instance, from, edge) || life_closes(w, instance, from, edge);
}

const hb_region *hb_life_meant(const hb *h, uint32_t origin)
{
    hb_life *life = &h->lives[origin];
    const hb_origin *o = &h->origins.data[origin];
    if (o->kind != HB_THREAD || (o->by && (o->by->kind == SYNC_TEAM || o->by->kind == SYNC_TASK))) return &life->live;
    if (life->has_meant) return &life->meant;
    life->has_meant = true;
    uint64_t *waits = base_alloc_zero(h->words, sizeof *waits);
    hb_numbers cutters = {0};
    struct meant_span span = {.instance = HB_NONE};
    meant_walk m = {.h = h, .joins = h->joins, .span = &span};
    hb_points calls = {0};
    h->joins->of = origin;
    find_waits(h, m.joins, waits, &cutters);
    find_calls(h, m.joins, waits, &calls);
    if (calls.len) qsort(calls.data, calls.len, sizeof *calls.data, by_instance);
    for (uint32_t i = 0; i < calls.len; i++) {
        vec_push(&cutters, calls.data[i].instance);
        vec_push(&m.calls, ((wait_block){calls.data[i].instance, hb_block_of(hb_instance_code(h, calls.data[i].instance), calls.data[i].insn)}));
    }
    vec_free(&calls);
    for (uint32_t i = 0; i < o->sites.len; i++)
        vec_push(&cutters, o->sites.data[i].instance);
    hb_setup_cutters(h, origin, &cutters);
    hb_walk walk = {.cuts = cuts,
                    .closes = closes,
                    .with = &m,
                    .cutters = cutters.data,
                    .cutter_count = cutters.len,
                    .waits = waits,
                    .calm = true,
                    .kept = true,
                    .origin = HB_NONE};
    hb_region_walk(h, &walk, o->sites.data, o->sites.len, &life->meant);
    vec_free(&cutters);
    vec_free(&m.calls);
    free(waits);
    return &life->meant;
}
