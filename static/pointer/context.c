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

void pta_describe_context(const pta *p, uint32_t context, char *to, size_t size)
{
    const graph_context *c = &p->contexts.data[context];
    p->rules->describe(p, c->base, to, size);
}
