/* Deadlocks: cycles of the order in which locks are taken, whose steps different threads can be at, at the same time, without a
 * lock around them that keeps them apart. A lock of which there are many (`o->lock`) stands for all of its kind: taking one while
 * another is held is a cycle of one step, unless the code compares the two addresses first. */
#include "static/detect/private.h"

#include <stdlib.h>

typedef struct {
    uint32_t from, to; /* nodes */
    uint32_t held, taken; /* locks */
    uint32_t taking;
    uint32_t origin;
    bool held_shared;
} step;

typedef struct {
    detect *d;
    hb_takings takings;
    map64 nodes; /* kind of lock: number */
    uint32_t node_count;
    VEC(step) steps;
    uint32_t *first; /* per node: its steps, in steps */
} graph;

static uint32_t node_of(graph *g, uint64_t kind)
{
    uint32_t *at = map_at(&g->nodes, kind & ~(1ull << 63));
    if (*at == MAP_NONE) *at = g->node_count++;
    return *at;
}

static void add_steps(graph *g, uint32_t taking)
{
    detect *d = g->d;
    const hb_taking *t = &g->takings.data[taking];
    uint32_t taken = t->lock != HB_NONE ? t->lock : t->value, origin_count;
    bool many = false, held_many = false;
    uint64_t kind = taken != HB_NONE ? hb_lock_kind(d->h, taken, &many) : t->kind;
    if (!kind) kind = t->kind;
    if (!kind || t->tries) return;
    hb_origins(d->h, &origin_count);
    for (uint32_t i = 0; i < hb_set_size(d->h, t->held); i++) {
        uint32_t held = hb_set_lock(d->h, t->held, i);
        uint64_t held_kind = held == HB_NONE ? 0 : hb_lock_kind(d->h, held, &held_many);
        if (!held_kind || held == taken) continue;
        bool same = held_kind == kind;
        if (same && (!held_many || !many || taken == HB_NONE)) continue; /* taken again: recursive, or a mistake of another kind */
        if (same && t->value != HB_NONE && hb_compares(d->h, t->at, held, t->value)) continue;
        for (uint32_t o = 0; o < origin_count; o++)
            if (hb_runs(d->h, o, t->at.instance))
                vec_push(&g->steps, (step){node_of(g, held_kind), node_of(g, kind), held, taken, taking, o, hb_lock_shared(d->h, held)});
    }
}

static int by_nodes(const void *a, const void *b)
{
    const step *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    if (x->taking != y->taking) return x->taking < y->taking ? -1 : 1;
    if (x->origin != y->origin) return x->origin < y->origin ? -1 : 1;
    return x->held < y->held ? -1 : x->held > y->held;
}

/* A lock around both, besides those of the cycle. */
static bool have_gate(const graph *g, const step *a, const step *b)
{
    detect *d = g->d;
    uint32_t x = g->takings.data[a->taking].held, y = g->takings.data[b->taking].held;
    for (uint32_t i = 0; i < hb_set_size(d->h, x); i++) {
        uint32_t lock = hb_set_lock(d->h, x, i);
        if (lock == HB_NONE || hb_lock_is_value(d->h, lock)) continue;
        if (lock == a->held || lock == b->held) continue;
        for (uint32_t k = 0; k < hb_set_size(d->h, y); k++)
            if (hb_set_lock(d->h, y, k) == lock && !hb_lock_shared(d->h, lock)) return true;
    }
    return false;
}

static bool can_meet(const graph *g, const step *a, const step *b)
{
    uint32_t count;
    const hb_origin *origins = hb_origins(g->d->h, &count);
    if (a->origin == b->origin && (origins[a->origin].twin != HB_NONE || !origins[a->origin].overlaps)) return false;
    if (have_gate(g, a, b)) return false;
    return !shb_ordered(g->d->h, a->origin, g->takings.data[a->taking].at, b->origin, g->takings.data[b->taking].at, NULL);
}

/* Where the lock that is held was taken: in the same function if it can be, and as late as possible. */
static detect_access holder_of(const graph *g, const step *s)
{
    const hb_taking *best = NULL;
    detect *d = g->d;
    hb_point mine = hb_user_point(d->h, g->takings.data[s->taking].at), best_user = mine;
    bool was = false;
    for (uint32_t i = 0; i < g->takings.len; i++) {
        const hb_taking *t = &g->takings.data[i];
        if ((t->lock != s->held && t->value != s->held) || !hb_runs(d->h, s->origin, t->at.instance)) continue;
        hb_point user = hb_user_point(d->h, t->at); /* a guard of C++ takes it in its constructor */
        bool here = user.instance == mine.instance;
        if (here && user.insn >= mine.insn && best) continue;
        if (best && (was && !here)) continue;
        if (best && here == was && user.insn <= best_user.insn) continue;
        best = t;
        best_user = user;
        was = here;
    }
    detect_access a = {.func = PTA_NO_FUNC, .lock = s->held, .origin = s->origin};
    pta_instance instance;
    if (!best) return a;
    pta_instance_at(d->p, best->at.instance, &instance);
    a.at = best->at;
    a.func = instance.func;
    a.addr = d->program->funcs.data[instance.func].lift->insns[best->at.insn].addr;
    return a;
}

enum { LONGEST = 4 };

static void report(graph *g, const step *const *cycle, uint32_t length)
{
    detect *d = g->d;
    detect_warning w = {.kind = DETECT_DEADLOCK, .confidence = DETECT_HIGH, .why = "each thread can wait for a lock that the next one holds"};
    char name[256];
    w.accesses = base_alloc_zero(length, sizeof *w.accesses);
    w.access_count = length;
    w.holders = base_alloc_zero(length, sizeof *w.holders);
    w.location = base_format("%s", "");
    bool values = false;
    for (uint32_t i = 0; i < length; i++) {
        const hb_taking *t = &g->takings.data[cycle[i]->taking];
        uint32_t func;
        pta_instance instance;
        pta_instance_at(d->p, t->at.instance, &instance);
        func = instance.func;
        w.accesses[i] = (detect_access){.at = t->at, .func = func, .origin = cycle[i]->origin, .locks = t->held, .lock = cycle[i]->taken,
                                        .addr = d->program->funcs.data[func].lift->insns[t->at.insn].addr};
        w.holders[i] = holder_of(g, cycle[i]);
        values |= cycle[i]->taken == HB_NONE || hb_lock_is_value(d->h, cycle[i]->taken);
        if (cycle[i]->taken == HB_NONE)
            strcpy(name, "a lock");
        else
            hb_one_lock_name(d->h, cycle[i]->taken, name, sizeof name);
        char *longer = base_format("%s%s%s", w.location, i ? ", " : "", name);
        free(w.location);
        w.location = longer;
    }
    w.key = base_format("%s", w.location);
    w.reasons[w.reason_count++] = length == 1 ? "the order of two locks of one kind is not fixed" : "locks are taken in different orders";
    if (values) {
        w.confidence = DETECT_MEDIUM;
        w.rank = 20;
        w.reasons[w.reason_count++] = "the locks are members of objects that may be the same";
    }
    vec_push(&d->warnings, w);
}

/* Completes a cycle from its first `length` steps; true: one was found. */
static bool complete(graph *g, const step **cycle, uint32_t length, uint32_t start, uint64_t *work)
{
    const step *last = cycle[length - 1];
    if (last->to == start && length > 1) {
        report(g, cycle, length);
        return true;
    }
    if (length == LONGEST || (*work)++ > 200000) return false;
    for (uint32_t i = g->first[last->to]; i < g->first[last->to + 1]; i++) {
        const step *next = &g->steps.data[i];
        if (next->to < start || next->to == next->from) continue;
        bool fits = true;
        for (uint32_t k = 0; k < length && fits; k++)
            fits = (next->to == start || next->to != cycle[k]->from) && can_meet(g, cycle[k], next);
        if (!fits) continue;
        cycle[length] = next;
        if (complete(g, cycle, length + 1, start, work)) return true;
    }
    return false;
}

/* One warning for each pair of nodes that a cycle begins with. */
static void find_cycles(graph *g)
{
    uint64_t work = 0;
    for (uint32_t i = 0; i < g->steps.len;) {
        const step *s = &g->steps.data[i];
        uint32_t end = i;
        while (end < g->steps.len && g->steps.data[end].from == s->from && g->steps.data[end].to == s->to)
            end++;
        bool found = false;
        for (uint32_t k = i; k < end && !found; k++) {
            const step *cycle[LONGEST] = {&g->steps.data[k]};
            if (s->from == s->to) {
                for (uint32_t m = k; m < end && !found; m++)
                    if (can_meet(g, cycle[0], &g->steps.data[m])) {
                        report(g, cycle, 1);
                        found = true;
                    }
            } else if (s->to > s->from) {
                found = complete(g, cycle, 1, s->from, &work);
            }
        }
        i = end;
    }
}

void detect_deadlocks(detect *d)
{
    graph g = {.d = d};
    hb_lock_takings(d->h, &g.takings);
    for (uint32_t t = 0; t < g.takings.len; t++)
        add_steps(&g, t);
    if (g.steps.len) qsort(g.steps.data, g.steps.len, sizeof *g.steps.data, by_nodes);
    g.first = base_alloc_zero(g.node_count + 1, sizeof *g.first);
    for (uint32_t i = 0; i < g.steps.len; i++)
        g.first[g.steps.data[i].from + 1]++;
    for (uint32_t n = 0; n < g.node_count; n++)
        g.first[n + 1] += g.first[n];
    find_cycles(&g);
    free(g.first);
    vec_free(&g.takings);
    vec_free(&g.steps);
    map_free(&g.nodes);
}
