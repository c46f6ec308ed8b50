/* Numbers that follow from the result, not from the way to it: instances in the order of their functions and contexts,
 * contexts in that of their bases and calls, bases as their rules say. So two analyses with the same result give the
 * same answers, number by number, whatever they have solved, followed or dropped before. */
#include "static/pointer/view.h"

#include <stdlib.h>

static _Thread_local const pta *sorted; /* for qsort */

static int by_base(const void *a, const void *b)
{
    return sorted->rules->compare(sorted, *(const uint32_t *)a, *(const uint32_t *)b);
}

static int by_context(const void *a, const void *b)
{
    uint32_t s = *(const uint32_t *)a, t = *(const uint32_t *)b;
    const graph_context *x = &sorted->contexts.data[s], *y = &sorted->contexts.data[t];
    if (x->base != y->base) return sorted->view->base_of[x->base] < sorted->view->base_of[y->base] ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t c = view_call_of(sorted, x->calls[i]), d = view_call_of(sorted, y->calls[i]);
        if (c != d) return c < d ? -1 : 1;
    }
    return 0;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t *none(uint32_t count)
{
    uint32_t *all = base_alloc(((size_t)count + 1) * sizeof *all);
    memset(all, 0xff, ((size_t)count + 1) * sizeof *all);
    return all;
}

/* The contexts that live instances have, and those without calls for their bases and threads: their objects have no
 * others. */
static void list_contexts(pta *p, id_list *contexts, id_list *bases)
{
    id_list marked = {0};
    map64 seen = {0}, known = {0};
    vec_push(&marked, 0);
    for (uint32_t i = 0; i < p->instances.len; i++)
        if (p->instances.data[i].live) vec_push(&marked, p->instances.data[i].context);
    for (uint32_t i = 0; i < marked.len; i++) {
        uint32_t *at = map_at(&seen, marked.data[i]);
        if (*at != MAP_NONE) continue;
        *at = 1;
        vec_push(contexts, marked.data[i]);
        uint32_t base = p->contexts.data[marked.data[i]].base, *first = map_at(&known, base);
        if (*first != MAP_NONE) continue;
        *first = 1;
        vec_push(bases, base);
        vec_push(&marked, context_intern(p, (graph_context){.base = base}));
        vec_push(&marked, context_intern(p, (graph_context){.base = p->rules->thread(p, base)}));
    }
    vec_free(&marked);
    map_free(&seen);
    map_free(&known);
}

static void number_instances(pta *p)
{
    struct pta_view *v = p->view;
    VEC(uint64_t) keys = {0};
    map64 of = {0};
    for (uint32_t i = 0; i < p->instances.len; i++) {
        const graph_instance *instance = &p->instances.data[i];
        if (!instance->live) continue;
        uint64_t key = (uint64_t)view_func_of(p, instance->func) << 32 | v->context_of[instance->context];
        vec_push(&keys, key);
        *map_at(&of, key) = i;
    }
    if (keys.len) qsort(keys.data, keys.len, sizeof *keys.data, by_key);
    v->instance_count = keys.len;
    v->instances = none(keys.len);
    v->instance_of = none(p->instances.len);
    for (uint32_t i = 0; i < keys.len; i++) {
        v->instances[i] = map_get(&of, keys.data[i]);
        v->instance_of[v->instances[i]] = i;
    }
    vec_free(&keys);
    map_free(&of);
}

void view_open(pta *p)
{
    view_close(p);
    id_list contexts = {0}, bases = {0};
    struct pta_view *v = base_alloc_zero(1, sizeof *v);
    list_contexts(p, &contexts, &bases);
    p->view = v;
    sorted = p;
    qsort(bases.data, bases.len, sizeof *bases.data, by_base);
    uint32_t most = 0;
    for (uint32_t i = 0; i < bases.len; i++)
        if (bases.data[i] > most) most = bases.data[i];
    v->base_of = none(most + 1);
    for (uint32_t i = 0; i < bases.len; i++)
        v->base_of[bases.data[i]] = i;
    qsort(contexts.data, contexts.len, sizeof *contexts.data, by_context);
    v->context_count = contexts.len;
    v->contexts = none(contexts.len);
    v->context_of = none(p->contexts.len);
    for (uint32_t i = 0; i < contexts.len; i++) {
        v->contexts[i] = contexts.data[i];
        v->context_of[contexts.data[i]] = i;
    }
    number_instances(p);
    vec_free(&contexts);
    vec_free(&bases);
}

void view_close(pta *p)
{
    if (!p->view) return;
    free(p->view->instances);
    free(p->view->contexts);
    free(p->view->instance_of);
    free(p->view->context_of);
    free(p->view->base_of);
    free(p->view);
    p->view = NULL;
}
