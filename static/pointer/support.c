/* What supports a fact when a reason for it has gone: one of its incoming neighbours (IPA: dissertation, section 3.2,
 * theorems 1 and 2), or several together, when it is a class that is their closure, or SET_WILD of a pointer that is wild by
 * itself. Ranks tell what may count: support that is older than the fact does not depend on it. */
#include "static/pointer/graph.h"

uint64_t support_edge(const pta *p, const graph_edge *e, pta_key key)
{
    uint64_t oldest = GRAPH_SUSPECT;
    if (e->from == NO_NODE) return e->key == key ? e->rank : GRAPH_SUSPECT;
    const pta_set *set = &p->nodes.data[e->from].set;
    if (!e->label) {
        uint32_t at = set_find(set, key);
        if (at != UINT32_MAX) oldest = set->ranks[at];
        return oldest > e->rank ? oldest : e->rank;
    }
    uint32_t object = key_object(key);
    for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++)
        if (set->ranks[i] < oldest && graph_transfer(p, set->keys[i], &p->labels.data[e->label]) == key) oldest = set->ranks[i];
    return oldest > e->rank ? oldest : e->rank;
}

/* What an edge brings of one object, from facts older than `below`. */
static void collect(const pta *p, const graph_edge *e, uint32_t object, uint64_t below, key_list *out, uint64_t *rank)
{
    if (e->rank >= below) return;
    uint32_t before = out->len;
    if (e->from == NO_NODE) {
        if (key_object(e->key) == object) vec_push(out, e->key);
    } else {
        const pta_set *set = &p->nodes.data[e->from].set;
        for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++) {
            if (set->ranks[i] >= below) continue;
            pta_key key = e->label ? graph_transfer(p, set->keys[i], &p->labels.data[e->label]) : set->keys[i];
            if (!key) continue;
            vec_push(out, key);
            if (set->ranks[i] > *rank) *rank = set->ranks[i];
        }
    }
    if (out->len > before && e->rank > *rank) *rank = e->rank;
}

/* Whether a class is the closure of what several neighbours bring. */
static bool is_closure(const pta *p, uint32_t node, pta_key key, uint64_t below, uint64_t *rank)
{
    key_list found = {0}, added = {0};
    pta_set all = {0};
    const id_list *in = &p->nodes.data[node].in;
    *rank = 0;
    for (uint32_t i = 0; i < in->len; i++)
        collect(p, &p->edges.data[in->data[i]], key_object(key), below, &found, rank);
    keys_sort(found.data, &found.len);
    set_add(&all, found.data, found.len, 0, graph_world(p), &added);
    bool yes = set_find(&all, key) != UINT32_MAX;
    vec_free(&added);
    set_free(&all);
    vec_free(&found);
    return yes;
}

/* Whether a set is wild by itself; what has made it so may be as old as SET_WILD is. */
static bool is_wild_by_itself(const pta *p, const pta_set *set, uint64_t below, uint64_t *rank)
{
    uint32_t loose = 0, last = 0;
    *rank = 0;
    for (uint32_t i = 0; i < set->len; i++) {
        bool counts = set->ranks[i] <= below && set->ranks[i] < GRAPH_SUSPECT;
        if (!counts || !set_is_loose(set->keys[i]) || key_object(set->keys[i]) == last) continue;
        last = key_object(set->keys[i]);
        loose++;
        if (set->ranks[i] > *rank) *rank = set->ranks[i];
    }
    return loose > set_wild_at(set, graph_world(p));
}

static bool is_joint(const pta *p, uint32_t node, pta_key key, uint64_t below, uint64_t *rank)
{
    if (key == set_wild_key()) return is_wild_by_itself(p, &p->nodes.data[node].set, below, rank);
    return !offset_is_single(key_offset(key)) && is_closure(p, node, key, below, rank);
}

bool support_find(const pta *p, uint32_t node, uint32_t fact, uint64_t below, support *found, uint64_t *work)
{
    const pta_set *set = &p->nodes.data[node].set;
    const id_list *in = &p->nodes.data[node].in;
    pta_key key = set->keys[fact];
    uint32_t reason = set->reasons[fact];
    *found = (support){.reason = reason};
    if (reason != SET_NO_REASON && p->edges.data[reason].to == node) {
        found->rank = support_edge(p, &p->edges.data[reason], key);
        if (found->rank < below) return true;
        found->hope = found->rank < GRAPH_SUSPECT;
    }
    for (uint32_t i = 0; i < in->len; i++) {
        const graph_edge *e = &p->edges.data[in->data[i]];
        ++*work;
        if (e->rank >= GRAPH_SUSPECT || (found->hope && e->rank >= below)) continue;
        found->reason = in->data[i];
        found->rank = support_edge(p, e, key);
        if (found->rank < below) return true;
        found->hope |= found->rank < GRAPH_SUSPECT;
    }
    found->reason = SET_NO_REASON;
    *work += in->len;
    if (reason != SET_NO_REASON) return false; /* it never was more than what one neighbour brought */
    if (is_joint(p, node, key, below, &found->rank)) return true;
    found->hope = found->hope || is_joint(p, node, key, GRAPH_SUSPECT, &found->rank);
    return false;
}

support support_listed(pta *p, uint32_t object, uint64_t *work)
{
    support found = {.reason = SET_NO_REASON, .rank = GRAPH_SUSPECT};
    const id_list *holders = holders_of(p, object);
    *work += holders->len;
    for (uint32_t i = 0; i < holders->len; i++) {
        const graph_node *from = &p->nodes.data[holders->data[i]];
        if (!from->tells) continue;
        uint64_t told = p->edges.data[from->tells - 1].rank;
        for (uint32_t k = set_group(&from->set, object); k < from->set.len && key_object(from->set.keys[k]) == object; k++) {
            uint64_t rank = from->set.ranks[k] > told ? from->set.ranks[k] : told;
            if (rank < found.rank) found = (support){.reason = from->tells - 1, .rank = rank};
        }
    }
    return found;
}
