/* Origins (O2: dissertation, section 6.2.2): the context is the thread or event handler that runs the code, named by its entry
 * function and by the calls that create it, through wrappers. An origin created in a loop counts as two, so that what one of
 * its threads owns is told apart from what the other owns. With k > 1, the k - 1 origins that led to it are part of it. A
 * handler that is given nothing of its own is one origin, wherever it is registered.
 *
 * What is called through wild pointers has one more context, which stands for whichever origin it is. */
#include <stdio.h>
#include <stdlib.h>

#include "static/pointer/view.h"

typedef struct {
    uint32_t func;
    uint32_t call; /* that starts it: in a model */
    uint32_t calls[3], count; /* that lead to the model */
    uint32_t twin;
    uint32_t parent; /* origin, 0: none known */
} origin;

enum { ANY = 1 };

typedef struct {
    VEC(origin) origins; /* [0]: the program's start; [ANY]: whichever */
    map64 map;
} origin_state;

static uint32_t intern(origin_state *s, origin o)
{
    uint64_t hash = map_hash(((uint64_t)o.func << 32 | o.call) + o.twin);
    hash = map_hash(hash + o.parent);
    for (uint32_t i = 0; i < o.count; i++)
        hash = map_hash(hash * 31 + o.calls[i] + 1);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&s->map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = s->origins.len;
            vec_push(&s->origins, o);
            return *at;
        }
        const origin *known = &s->origins.data[*at];
        if (known->func == o.func && known->call == o.call && known->twin == o.twin && known->parent == o.parent &&
            known->count == o.count && !memcmp(known->calls, o.calls, o.count * sizeof *o.calls))
            return *at;
    }
}

/* The same origin with at most `depth` of those that led to it. */
static uint32_t shorten(origin_state *s, uint32_t id, unsigned depth)
{
    if (id <= ANY) return id;
    origin o = s->origins.data[id];
    o.parent = depth ? shorten(s, o.parent, depth - 1) : 0;
    return intern(s, o);
}

static origin_state *state(pta *p)
{
    if (!p->rules_state) {
        origin_state *s = p->rules_state = base_alloc_zero(1, sizeof *s);
        vec_push(&s->origins, (origin){.func = PTA_NO_FUNC});
        vec_push(&s->origins, (origin){.func = PTA_NO_FUNC});
    }
    return p->rules_state;
}

/* Whether an origin is given something of what it is created with: an argument that comes from a parameter of the model. */
static bool has_attributes(const pta_program *program, const pta_call *call)
{
    const pta_func *model = &program->funcs.data[call->caller];
    uint8_t *given = base_alloc_zero(model->var_count, 1);
    memset(given, 1, PTA_PARAMS);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < model->stmts.len; i++) {
            const pta_stmt *s = &model->stmts.data[i];
            if ((s->kind != PTA_COPY && s->kind != PTA_LOAD) || !given[s->src.var] || given[s->dst.var]) continue;
            given[s->dst.var] = 1;
            changed = true;
        }
    }
    bool found = false;
    for (unsigned i = 0; i < PTA_PARAMS && !found; i++)
        found = call->args[i].var != PTA_NO_VAR && given[call->args[i].var];
    free(given);
    return found;
}

static uint32_t enter(pta *p, uint32_t caller, uint32_t call, uint32_t func, unsigned twin)
{
    const graph_context *from = &p->contexts.data[p->instances.data[caller].context];
    origin_state *s = state(p);
    if (context_is_wild(p, caller, call)) return ANY;
    if (p->program->calls.data[call].spawn == PTA_SPAWN_NONE) return from->base;
    origin o = {.func = func, .call = call, .twin = twin};
    if (p->program->calls.data[call].spawn == PTA_SPAWN_THREAD || has_attributes(p->program, &p->program->calls.data[call])) {
        o.count = from->count;
        memcpy(o.calls, from->calls, sizeof o.calls);
    }
    if (p->options.k > 1) o.parent = shorten(s, from->base, p->options.k - 2);
    return intern(s, o);
}

static unsigned twins(const pta *p, uint32_t caller, uint32_t call)
{
    if (p->program->calls.data[call].spawn != PTA_SPAWN_THREAD) return 1;
    if (p->program->calls.data[call].in_loop) return 2;
    const graph_context *from = &p->contexts.data[p->instances.data[caller].context];
    for (uint32_t i = 0; i < from->count; i++)
        if (p->program->calls.data[from->calls[i]].in_loop) return 2;
    return 1;
}

/* Which thread runs an event handler is not known; they all count as the first. */
static uint32_t thread(const pta *p, uint32_t base)
{
    const origin_state *s = p->rules_state;
    if (base <= ANY) return base;
    return p->program->calls.data[s->origins.data[base].call].spawn == PTA_SPAWN_THREAD ? base : 0;
}

static uint64_t hash(const pta *p, uint32_t base)
{
    const origin_state *s = p->rules_state;
    if (base <= ANY || !s) return base;
    const origin *o = &s->origins.data[base];
    uint64_t h = map_hash(((uint64_t)view_func_of(p, o->func) << 32 | view_call_of(p, o->call)) + o->twin);
    for (uint32_t i = 0; i < o->count; i++)
        h = map_hash(h * 31 + view_call_of(p, o->calls[i]) + 1);
    return map_hash(h * 31 + hash(p, o->parent));
}

static int compare(const pta *p, uint32_t a, uint32_t b)
{
    const origin_state *s = p->rules_state;
    if (a <= ANY || b <= ANY || !s) return a < b ? -1 : a > b;
    const origin *x = &s->origins.data[a], *y = &s->origins.data[b];
    const uint32_t xs[] = {view_func_of(p, x->func), view_call_of(p, x->call), x->count, x->twin},
                   ys[] = {view_func_of(p, y->func), view_call_of(p, y->call), y->count, y->twin};
    for (unsigned i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i]) return xs[i] < ys[i] ? -1 : 1;
    int calls = context_compare_calls(p, x->calls, y->calls, x->count);
    return calls || x->parent == y->parent ? calls : compare(p, x->parent, y->parent);
}

static void describe(const pta *p, uint32_t base, char *to, size_t size)
{
    const origin_state *s = p->rules_state;
    if (!s || base <= ANY) {
        snprintf(to, size, base == ANY ? "any thread" : "main");
        return;
    }
    const origin *o = &s->origins.data[base];
    const pta_program *program = view_program(p);
    const pta_call *call = o->count ? &program->calls.data[view_call_of(p, o->calls[0])] : NULL;
    snprintf(to, size, "%s%s%s%s", program->funcs.data[view_func_of(p, o->func)].name, o->twin ? "'" : "", call ? " from " : "",
             call ? program->funcs.data[call->caller].name : "");
}

static void close_rules(pta *p)
{
    origin_state *s = p->rules_state;
    if (!s) return;
    vec_free(&s->origins);
    map_free(&s->map);
    free(s);
}

const context_rules context_origin = {enter, twins, thread, hash, compare, describe, close_rules};
