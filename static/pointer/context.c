/* Contexts: what tells instances of one function apart. A context is the base that the chosen rules give (an origin, a call
 * string) and, for models and allocator wrappers, the calls that lead to them: each call of `malloc` is its own allocation. All calls
 * through pointers share one instance: a wild pointer calls it by way of program->wild_call, and one of its own that a pointer called
 * before it became wild would stay, although an analysis from scratch might never make it. */
#include <stdio.h>
#include <stdlib.h>

#include "static/pointer/view.h"

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

int context_compare_calls(const pta *p, const uint32_t *a, const uint32_t *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = view_call_of(p, a[i]), y = view_call_of(p, b[i]);
        if (x != y) return x < y ? -1 : 1;
    }
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
    if (p->program->funcs.data[func].clone && p->program->calls.data[call].func != PTA_NO_FUNC) {
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

/* In plain_targets: a count and that many functions, in order. Of a wild pointer program->wild_call alone. */

/* A call of a function, or of a clone of it: named without the base, so that it is the same with and without contexts. */
static uint64_t plain_key(const pta *p, uint32_t context, uint32_t call)
{
    const graph_context *c = &p->contexts.data[context];
    uint64_t hash = map_hash(call + 1ull);
    for (uint32_t i = 0; i < c->count; i++)
        hash = map_hash(hash * 31 + c->calls[i] + 1);
    return hash & ~(1ull << 63);
}

const uint32_t *context_targets(const pta *p, uint32_t caller, uint32_t call, uint32_t *count)
{
    const uint32_t *wild = &p->program->wild_call;
    *count = 1;
    if (p->rules == &context_none) return wild;
    uint32_t at = map_get(&p->plain_calls, plain_key(p, p->instances.data[caller].context, call));
    *count = at == MAP_NONE ? 0 : p->plain_targets.data[at];
    return at == MAP_NONE ? NULL : &p->plain_targets.data[at + 1];
}

bool context_is_wild(const pta *p, uint32_t caller, uint32_t call)
{
    if (p->instances.data[caller].func == p->program->wild_call) return true;
    if (p->program->calls.data[call].func != PTA_NO_FUNC) return false;
    uint32_t count;
    const uint32_t *targets = context_targets(p, caller, call, &count);
    return count == 1 && targets[0] == p->program->wild_call;
}

static uint32_t call_of(const pta *p, stmt_place at)
{
    return p->program->funcs.data[at.func].stmts.data[at.stmt].ref;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Also of a statement that is deleted: then it does not matter. */
static void note_instance(pta *p, const pta *plain, uint32_t instance, uint32_t call)
{
    const graph_instance *i = &plain->instances.data[instance];
    uint32_t var = plain->program->calls.data[call].target.var, first = p->plain_targets.len;
    if (!i->live || var == PTA_NO_VAR) return;
    const pta_set *set = &plain->nodes.data[graph_component(plain, graph_var(i, var))].set;
    vec_push(&p->plain_targets, 0);
    for (uint32_t k = 0; k < set->len && !set_is_wild(set); k++) {
        const pta_site *site = &plain->program->sites.data[plain->objects.data[key_object(set->keys[k])].site];
        if (site->kind == PTA_FUNCTION) vec_push(&p->plain_targets, site->func);
    }
    if (set_is_wild(set)) vec_push(&p->plain_targets, plain->program->wild_call);
    uint32_t count = p->plain_targets.data[first] = p->plain_targets.len - first - 1;
    if (count > 1) qsort(p->plain_targets.data + first + 1, count, sizeof *p->plain_targets.data, by_number);
    if (count)
        *map_at(&p->plain_calls, plain_key(plain, i->context, call)) = first;
    else
        p->plain_targets.len = first;
}

void context_note_plain(pta *p, const pta *plain)
{
    map_free(&p->plain_calls);
    p->plain_calls = (map64){0};
    vec_clear(&p->plain_targets);
    for (uint32_t i = 0; i < p->pointer_calls.len; i++) {
        const id_list *of = &plain->instances_of.data[p->pointer_calls.data[i].func];
        for (uint32_t k = 0; k < of->len; k++)
            note_instance(p, plain, of->data[k], call_of(plain, p->pointer_calls.data[i]));
    }
}

static bool is_same_target(const pta *a, const pta *b, uint64_t key)
{
    uint32_t x = map_get(&a->plain_calls, key), y = map_get(&b->plain_calls, key);
    if (x == MAP_NONE || y == MAP_NONE) return x == y;
    uint32_t count = a->plain_targets.data[x];
    return count == b->plain_targets.data[y] &&
           !memcmp(a->plain_targets.data + x, b->plain_targets.data + y, (count + 1) * sizeof *a->plain_targets.data);
}

static bool is_wild_call(const pta *p, uint32_t at)
{
    const uint32_t *targets = at == MAP_NONE ? NULL : &p->plain_targets.data[at];
    return targets && targets[0] == 1 && targets[1] == p->program->wild_call;
}

/* What a wild pointer, with contexts, calls no more and what it calls now. */
static void compare_targets(const pta *a, uint32_t x, const pta *b, uint32_t y, uint32_t use, retarget_list *out)
{
    const uint32_t *was = x == MAP_NONE ? NULL : &a->plain_targets.data[x], *is = y == MAP_NONE ? NULL : &b->plain_targets.data[y];
    uint32_t i = 0, k = 0, n = was ? was[0] : 0, m = is ? is[0] : 0;
    while (i < n || k < m) {
        bool gone = i < n && (k == m || was[1 + i] < is[1 + k]), more = k < m && (i == n || is[1 + k] < was[1 + i]);
        if (gone) vec_push(out, (retarget){use, was[1 + i], true});
        if (more) vec_push(out, (retarget){use, is[1 + k], false});
        i += !more;
        k += !gone;
    }
}

void context_changed(const pta *p, const pta *plain, id_list *uses, retarget_list *targets)
{
    pta now = {.program = p->program, .pointer_calls = {.data = p->pointer_calls.data, .len = p->pointer_calls.len}};
    context_note_plain(&now, plain);
    for (uint32_t i = 0; i < p->pointer_calls.len; i++) {
        stmt_place at = p->pointer_calls.data[i];
        const id_list *of = &p->instances_of.data[at.func];
        bool dead = p->program->funcs.data[at.func].stmts.data[at.stmt].dead;
        for (uint32_t k = 0; k < of->len && !dead; k++) {
            const graph_instance *instance = &p->instances.data[of->data[k]];
            if (!instance->live || instance->waiting) continue;
            uint64_t key = plain_key(p, instance->context, call_of(p, at));
            if (is_same_target(p, &now, key)) continue;
            uint32_t was = map_get(&p->plain_calls, key), is = map_get(&now.plain_calls, key), use = graph_use_of(instance, at.stmt);
            if (is_wild_call(p, was) != is_wild_call(&now, is))
                vec_push(uses, use);
            else if (set_is_wild(&p->nodes.data[graph_pointer_node(p, use)].set))
                compare_targets(p, was, &now, is, use, targets);
        }
    }
    map_free(&now.plain_calls);
    vec_free(&now.plain_targets);
}

void pta_describe_context(const pta *p, uint32_t context, char *to, size_t size)
{
    const graph_context *c = &p->contexts.data[view_context(p, context)];
    p->rules->describe(p, c->base, to, size);
}
