/* Contexts: what tells instances of one function apart. A context is the base that the chosen rules give (an origin, a call
 * string) and, for models and allocator wrappers, the calls that lead to them: each call of `malloc` is its own allocation. */
#include <stdio.h>

#include "static/pointer/graph.h"

unsigned context_one_twin(const pta *p, uint32_t caller, uint32_t call)
{
    (void)p, (void)caller, (void)call;
    return 1;
}

uint32_t context_one_thread(const pta *p, uint32_t base)
{
    (void)p, (void)base;
    return 0;
}

uint32_t context_intern(pta *p, graph_context context)
{
    uint64_t hash = context.base;
    for (uint32_t i = 0; i < context.count; i++)
        hash = map_hash(hash * 31 + context.calls[i] + 1);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&p->context_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = p->contexts.len;
            vec_push(&p->contexts, context);
            return *at;
        }
        const graph_context *known = &p->contexts.data[*at];
        if (known->base == context.base && known->count == context.count &&
            !memcmp(known->calls, context.calls, context.count * sizeof *context.calls))
            return *at;
    }
}

uint32_t context_callee(pta *p, uint32_t caller, uint32_t call, uint32_t func, unsigned twin)
{
    graph_context context = {.base = p->rules->enter(p, caller, call, func, twin)};
    if (p->program->funcs.data[func].clone) {
        const graph_instance *from = &p->instances.data[caller];
        const graph_context *outer = &p->contexts.data[from->context];
        enum { MOST = sizeof context.calls / sizeof *context.calls };
        uint32_t keep = p->program->funcs.data[from->func].clone ? outer->count : 0;
        if (keep == MOST) keep--;
        for (uint32_t i = 0; i < keep; i++)
            context.calls[i] = outer->calls[outer->count - keep + i];
        context.calls[keep] = call;
        context.count = keep + 1;
    }
    return context_intern(p, context);
}

/* --- calls through wild pointers -------------------------------------------------------------------------------------------- */

/* A call of a function, or of a clone of it: named without the base, so that it is the same with and without contexts. */
static uint64_t wild_key(const pta *p, uint32_t context, uint32_t call)
{
    const graph_context *c = &p->contexts.data[context];
    uint64_t hash = map_hash(call + 1ull);
    for (uint32_t i = 0; i < c->count; i++)
        hash = map_hash(hash * 31 + c->calls[i] + 1);
    return hash & ~(1ull << 63);
}

bool context_is_wild(const pta *p, uint32_t caller, uint32_t call)
{
    const graph_instance *from = &p->instances.data[caller];
    if (from->func == p->program->wild_call) return true;
    return p->program->calls.data[call].func == PTA_NO_FUNC && map_get(&p->wild_calls, wild_key(p, from->context, call)) == 1;
}

static uint32_t call_of(const pta *p, stmt_place at)
{
    return p->program->funcs.data[at.func].stmts.data[at.stmt].ref;
}

/* Also of a statement that is deleted: then it does not matter. */
static bool is_wild_in(const pta *plain, uint32_t instance, stmt_place at)
{
    const graph_instance *i = &plain->instances.data[instance];
    uint32_t var = plain->program->calls.data[call_of(plain, at)].target.var;
    return i->live && var != PTA_NO_VAR &&
           set_is_wild(&plain->nodes.data[graph_component(plain, i->first_node + var)].set);
}

void context_note_wild(pta *p, const pta *plain)
{
    for (uint32_t i = 0; i < p->wild_calls.capacity; i++)
        p->wild_calls.values[i] = 0;
    for (uint32_t i = 0; i < p->pointer_calls.len; i++) {
        stmt_place at = p->pointer_calls.data[i];
        const id_list *of = &plain->instances_of.data[at.func];
        for (uint32_t k = 0; k < of->len; k++)
            if (is_wild_in(plain, of->data[k], at))
                *map_at(&p->wild_calls, wild_key(plain, plain->instances.data[of->data[k]].context, call_of(plain, at))) = 1;
    }
}

void context_changed(const pta *p, const pta *plain, id_list *uses)
{
    pta now = {.pointer_calls = {.data = p->pointer_calls.data, .len = p->pointer_calls.len}};
    context_note_wild(&now, plain);
    for (uint32_t i = 0; i < p->pointer_calls.len; i++) {
        stmt_place at = p->pointer_calls.data[i];
        const id_list *of = &p->instances_of.data[at.func];
        bool dead = p->program->funcs.data[at.func].stmts.data[at.stmt].dead;
        for (uint32_t k = 0; k < of->len && !dead; k++) {
            const graph_instance *instance = &p->instances.data[of->data[k]];
            uint64_t key = wild_key(p, instance->context, call_of(p, at));
            bool was = map_get(&p->wild_calls, key) == 1, is = map_get(&now.wild_calls, key) == 1;
            if (was != is && instance->live && !instance->waiting) vec_push(uses, instance->first_use + at.stmt);
        }
    }
    map_free(&now.wild_calls);
}

void pta_describe_context(const pta *p, uint32_t context, char *to, size_t size)
{
    const graph_context *c = &p->contexts.data[context];
    p->rules->describe(p, c->base, to, size);
}
