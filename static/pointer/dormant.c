/* Forgetting what lies dormant. Before a pointer becomes wild it has collected keys, which SET_WILD stands for from then on; where the
 * analysis knows next to nothing, they are nearly all facts there are, and deletion would have to keep every one of them true.
 *
 * In a result, what does not lie dormant is derived from what does not either: an edge that leaves a wild node carries SET_WILD
 * too. Few facts need dormant ones: what the wilderness lists has been told by one, a pointer is wild by itself for some,
 * and statements have seen some before they lay dormant, of which edges and calls remain. These, and the reasons for them, are
 * kept; all others go, with the edges that nothing is derived over. Nothing has to be derived again for that. When a node is wild no
 * more, or an object is listed no more, what is missing then comes from the neighbours (delete.c). */
#include <stdlib.h>

#include "static/pointer/graph.h"

typedef struct {
    uint32_t node, at; /* in its set */
} fact;

typedef struct {
    pta *p;
    uint64_t *first; /* per node: number of its first fact */
    uint8_t *needed; /* per fact */
    VEC(fact) work;
} sweeper;

static bool is_dormant(const pta *p, const pta_set *set, pta_key key)
{
    return set_is_wild(set) && p->wild.data[key_object(key)] & SET_IN_WILD;
}

static void need_at(sweeper *s, uint32_t node, uint32_t at)
{
    const pta_set *set = &s->p->nodes.data[node].set;
    if (!is_dormant(s->p, set, set->keys[at]) || s->needed[s->first[node] + at]) return;
    s->needed[s->first[node] + at] = 1;
    vec_push(&s->work, (fact){node, at});
}

static void need_key(sweeper *s, uint32_t node, pta_key key)
{
    uint32_t at = set_find(&s->p->nodes.data[node].set, key);
    if (at != UINT32_MAX) need_at(s, node, at);
}

/* What an edge is there for. */
static void need_edge(sweeper *s, const graph_edge *e)
{
    uint32_t pointer = e->use == UINT32_MAX || !e->key ? NO_NODE : graph_pointer_node(s->p, e->use);
    if (pointer != NO_NODE) need_key(s, pointer, e->key);
}

/* The facts of an object, older than `rank`, that an edge makes into `key`, or one of them is enough. NO_KEY: all. */
static void need_source(sweeper *s, const graph_edge *e, uint32_t object, pta_key key, uint64_t rank)
{
    if (e->from == NO_NODE) return;
    const pta_set *set = &s->p->nodes.data[e->from].set;
    for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++) {
        if (set->ranks[i] >= rank) continue;
        if (key && (e->label ? graph_transfer(s->p, set->keys[i], &s->p->labels.data[e->label]) : set->keys[i]) != key) continue;
        need_at(s, e->from, i);
        if (key) return;
    }
}

static void need_reason(sweeper *s, uint32_t node, uint32_t at)
{
    const graph_node *n = &s->p->nodes.data[node];
    pta_key key = n->set.keys[at];
    uint64_t rank = n->set.ranks[at];
    if (n->set.reasons[at] != SET_NO_REASON) {
        const graph_edge *e = &s->p->edges.data[n->set.reasons[at]];
        need_edge(s, e);
        need_source(s, e, key_object(key), key, rank);
        return;
    }
    if (key == set_wild_key()) {
        for (uint32_t i = 0; i < n->set.len; i++)
            if (set_is_loose(n->set.keys[i])) need_at(s, node, i); /* younger ones in reserve */
        return;
    }
    for (uint32_t i = 0; i < n->in.len; i++) {
        const graph_edge *e = &s->p->edges.data[n->in.data[i]];
        if (e->rank >= rank) continue;
        need_edge(s, e);
        need_source(s, e, key_object(key), NO_KEY, rank);
    }
}

static void mark(sweeper *s)
{
    pta *p = s->p;
    for (uint32_t n = 0; n < p->nodes.len; n++) {
        const pta_set *set = &p->nodes.data[n].set;
        for (uint32_t i = 0; i < set->len; i++)
            if (!is_dormant(p, set, set->keys[i])) need_reason(s, n, i);
    }
    for (uint32_t i = 0; i < p->instances.len; i++)
        for (uint32_t c = 0; c < p->instances.data[i].callers.len; c++) {
            const call_in *call = &p->instances.data[i].callers.data[c];
            if (call->key) need_key(s, graph_pointer_node(p, call->use), call->key);
        }
    while (s->work.len) {
        fact f = s->work.data[--s->work.len];
        need_reason(s, f.node, f.at);
    }
}

static bool is_forgotten(const sweeper *s, uint32_t node, uint32_t at)
{
    const pta_set *set = &s->p->nodes.data[node].set;
    return is_dormant(s->p, set, set->keys[at]) && !s->needed[s->first[node] + at];
}

static void drop_edges(sweeper *s)
{
    pta *p = s->p;
    for (uint32_t use = 0; use < p->uses.len; use++) {
        if (p->uses.data[use].edges == NO_EDGE) continue;
        uint32_t pointer = graph_pointer_node(p, use);
        if (pointer == NO_NODE || !set_is_wild(&p->nodes.data[pointer].set)) continue;
        for (uint32_t *link = &p->uses.data[use].edges; *link != NO_EDGE;) {
            uint32_t edge = *link, at = set_find(&p->nodes.data[pointer].set, p->edges.data[edge].key);
            if (at == UINT32_MAX || !is_forgotten(s, pointer, at)) {
                link = &p->edges.data[edge].next;
                continue;
            }
            *link = p->edges.data[edge].next;
            p->edges.data[edge].use = UINT32_MAX;
            graph_remove_edge(p, edge);
        }
    }
}

static void drop_facts(sweeper *s)
{
    for (uint32_t n = 0; n < s->p->nodes.len; n++) {
        pta_set *set = &s->p->nodes.data[n].set;
        if (!set_is_wild(set)) continue;
        key_list gone = {0};
        for (uint32_t i = 0; i < set->len; i++)
            if (is_forgotten(s, n, i)) vec_push(&gone, set->keys[i]);
        if (gone.len) set_remove(set, gone.data, gone.len);
        if (gone.len) set_shrink(set);
        vec_free(&gone);
    }
}

void dormant_forget(pta *p)
{
    p->made_wild = 0;
    sweeper s = {.p = p, .first = base_alloc(((size_t)p->nodes.len + 1) * sizeof *s.first)};
    s.first[0] = 0;
    for (uint32_t n = 0; n < p->nodes.len; n++)
        s.first[n + 1] = s.first[n] + p->nodes.data[n].set.len;
    s.needed = base_alloc_zero(s.first[p->nodes.len] + 1, sizeof *s.needed);
    mark(&s);
    drop_edges(&s);
    drop_facts(&s);
    free(s.first);
    free(s.needed);
    vec_free(&s.work);
}
