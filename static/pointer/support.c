/* What still supports a fact, or the life of an instance, when one reason for it has gone. Support must be
 * well-founded: ranks say so, since a reason is older than what it is the reason of.
 *
 * Whether something is older is a matter of the order in which it was found, though, and in a large program half of
 * what supports a fact has come later than the fact, without depending on it. So ranks are made tight on demand: the
 * rank of something younger is lowered to just above the ranks of its own reasons, which may be lowered in the same
 * way first. When it gets below the rank of the fact in question, that is proof that it does not depend on it. Nothing
 * but the proof has to be looked at: what depends on a fact whose rank is lowered is still younger than it. */
#include "static/pointer/graph.h"

enum { DEPTH = 200 };    /* of a proof */
enum { VISITS = 200 };   /* in one search for proofs */
enum { CANDIDATES = 48 }; /* neighbours that are tried */

typedef struct {
    pta *p;
    uint64_t below; /* what all ranks of a proof must be below */
    map64 seen;     /* what could not be lowered so far, or is being tried */
    uint32_t visits, depth;
    uint64_t *work; /* edges looked at */
} proof;

static bool lower_life(proof *f, uint32_t instance);

/* Whether it is looked at for the first time, and within limits. */
static bool enter(proof *f, uint32_t id, uint32_t at)
{
    uint32_t *seen = map_at(&f->seen, (uint64_t)id << 32 | at);
    if (*seen != MAP_NONE || f->depth >= DEPTH || f->visits >= VISITS) return false;
    *seen = 0;
    f->visits++;
    f->depth++;
    return true;
}

static bool leave(proof *f, uint64_t *rank, uint64_t reasons, bool proved)
{
    f->depth--;
    if (!proved || reasons + 1 >= f->below) return false;
    *rank = reasons + 1;
    return true;
}

static bool lower_fact(proof *f, uint32_t node, uint32_t at);

static bool lower_key(proof *f, uint32_t node, pta_key key, uint64_t *reasons)
{
    const pta_set *set = &f->p->nodes.data[node].set;
    uint32_t at = set_find(set, key);
    if (at == UINT32_MAX || !lower_fact(f, node, at)) return false;
    if (set->ranks[at] > *reasons) *reasons = set->ranks[at];
    return true;
}

/* What a statement does is there because its instance is, and perhaps because of a key. */
static bool lower_use(proof *f, uint32_t use, pta_key key, uint64_t *reasons)
{
    uint32_t instance = f->p->uses.data[use].instance, pointer = key ? graph_pointer_node(f->p, use) : NO_NODE;
    if (!lower_life(f, instance)) return false;
    if (f->p->instances.data[instance].rank > *reasons) *reasons = f->p->instances.data[instance].rank;
    return pointer == NO_NODE || lower_key(f, pointer, key, reasons);
}

static bool lower_edge(proof *f, graph_edge *e)
{
    if (e->rank < f->below) return true;
    uint64_t reasons = 0;
    if (e->use != UINT32_MAX) {
        if (!lower_use(f, e->use, e->key, &reasons)) return false;
    } else if (f->p->labels.data[e->label].stride == PTA_LOOSE && !lower_key(f, e->from, set_wild_key(), &reasons)) {
        return false;
    }
    if (reasons + 1 >= f->below) return false;
    e->rank = reasons + 1;
    return true;
}

/* The oldest fact that an edge makes into a key. */
static uint32_t oldest_source(const pta *p, const graph_edge *e, pta_key key)
{
    const pta_set *set = &p->nodes.data[e->from].set;
    if (!e->label) return set_find(set, key);
    uint32_t oldest = UINT32_MAX, object = key_object(key);
    for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++) {
        bool older = oldest == UINT32_MAX || set->ranks[i] < set->ranks[oldest];
        if (older && graph_transfer(p, set->keys[i], &p->labels.data[e->label]) == key) oldest = i;
    }
    return oldest;
}

static bool lower_reason(proof *f, uint32_t edge, uint32_t node, pta_key key, uint64_t *reasons)
{
    graph_edge *e = &f->p->edges.data[edge];
    ++*f->work;
    if (e->to != node) return false; /* removed */
    if (e->from == NO_NODE) {
        if (e->key != key || !lower_edge(f, e)) return false;
        *reasons = e->rank;
        return true;
    }
    uint32_t source = oldest_source(f->p, e, key);
    if (source == UINT32_MAX || !lower_edge(f, e) || !lower_fact(f, e->from, source)) return false;
    uint64_t rank = f->p->nodes.data[e->from].set.ranks[source];
    *reasons = e->rank > rank ? e->rank : rank;
    return true;
}

/* SET_WILD of a node that is wild by itself: enough of what it is wild for. */
static bool lower_loose(proof *f, uint32_t node, uint64_t *reasons)
{
    const pta_set *set = &f->p->nodes.data[node].set;
    uint32_t loose = 0, last = 0;
    for (unsigned later = 0; later < 2; later++) /* what is old enough already comes first */
        for (uint32_t i = 0; i < set->len && loose <= f->p->options.wild_at; i++) {
            bool now = (set->ranks[i] >= f->below) == later;
            if (!now || !set_is_loose(set->keys[i]) || key_object(set->keys[i]) == last || !lower_fact(f, node, i)) continue;
            last = key_object(set->keys[i]);
            loose++;
            if (set->ranks[i] > *reasons) *reasons = set->ranks[i];
        }
    return loose > f->p->options.wild_at;
}

/* A class that is the closure of several keys: enough of them. */
static bool lower_closure(proof *f, uint32_t node, pta_key key, uint64_t *reasons)
{
    const graph_node *n = &f->p->nodes.data[node];
    key_list found = {0}, added = {0};
    pta_set all = {0};
    uint32_t object = key_object(key);
    for (uint32_t i = 0; i < n->in.len && i < CANDIDATES; i++) {
        graph_edge *e = &f->p->edges.data[n->in.data[i]];
        const pta_set *from = e->from == NO_NODE ? NULL : &f->p->nodes.data[e->from].set;
        uint32_t k = from ? set_group(from, object) : 0;
        bool brings = from ? k < from->len && key_object(from->keys[k]) == object : key_object(e->key) == object;
        ++*f->work;
        if (!brings || !lower_edge(f, e)) continue;
        if (!from) vec_push(&found, e->key);
        for (; from && k < from->len && key_object(from->keys[k]) == object; k++) {
            pta_key is = e->label ? graph_transfer(f->p, from->keys[k], &f->p->labels.data[e->label]) : from->keys[k];
            if (!is || !lower_fact(f, e->from, k)) continue;
            vec_push(&found, is);
            if (from->ranks[k] > *reasons) *reasons = from->ranks[k];
        }
        if (e->rank > *reasons) *reasons = e->rank;
    }
    keys_sort(found.data, &found.len);
    set_add(&all, found.data, found.len, 0, graph_world(f->p), &added);
    bool yes = set_find(&all, key) != UINT32_MAX;
    set_free(&all);
    vec_free(&found);
    vec_free(&added);
    return yes;
}

/* By its reason; SET_WILD, on which most depends, also by another. */
static bool lower_fact(proof *f, uint32_t node, uint32_t at)
{
    pta_set *set = &f->p->nodes.data[node].set;
    if (set->ranks[at] < f->below) return true;
    if (!enter(f, node, at)) return false;
    pta_key key = set->keys[at];
    uint64_t reasons = 0;
    uint32_t reason = set->reasons[at];
    bool proved = reason != SET_NO_REASON && lower_reason(f, reason, node, key, &reasons);
    if (!proved && key == set_wild_key() && set->loose > f->p->options.wild_at) {
        reasons = 0;
        reason = SET_NO_REASON;
        proved = lower_loose(f, node, &reasons);
    }
    if (!proved && reason == SET_NO_REASON && key != set_wild_key()) proved = lower_closure(f, node, key, &reasons);
    const id_list *in = &f->p->nodes.data[node].in;
    for (uint32_t i = 0; key == set_wild_key() && i < in->len && i < CANDIDATES && !proved; i++)
        proved = lower_reason(f, reason = in->data[i], node, key, &reasons);
    if (!leave(f, &set->ranks[at], reasons, proved)) return false;
    set->reasons[at] = reason;
    return true;
}

static bool lower_call(proof *f, call_in *call)
{
    if (!f->p->instances.data[f->p->uses.data[call->use].instance].live) return false;
    if (call->rank < f->below) return true;
    uint64_t reasons = 0;
    if (!lower_use(f, call->use, call->key, &reasons) || reasons + 1 >= f->below) return false;
    call->rank = reasons + 1;
    return true;
}

static bool lower_life(proof *f, uint32_t instance)
{
    graph_instance *i = &f->p->instances.data[instance];
    if (i->rank < f->below || i->root) return i->live;
    if (!i->live || !enter(f, instance, UINT32_MAX)) return false;
    uint64_t reasons = 0;
    bool proved = false;
    for (uint32_t c = 0; c < i->callers.len && c < CANDIDATES && !proved; c++) {
        proved = lower_call(f, &i->callers.data[c]);
        reasons = i->callers.data[c].rank;
    }
    return leave(f, &i->rank, reasons, proved);
}

/* --- facts --------------------------------------------------------------------------------------------------------------- */

/* What an edge brings of one object, from facts older than `rank`. */
static void collect(const pta *p, const graph_edge *e, uint32_t object, uint64_t rank, key_list *out)
{
    if (e->rank >= rank) return;
    if (e->from == NO_NODE) {
        if (key_object(e->key) == object) vec_push(out, e->key);
        return;
    }
    const pta_set *set = &p->nodes.data[e->from].set;
    for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++) {
        if (set->ranks[i] >= rank) continue;
        pta_key key = e->label ? graph_transfer(p, set->keys[i], &p->labels.data[e->label]) : set->keys[i];
        if (key) vec_push(out, key);
    }
}

/* Whether an edge brings a key, from facts older than `rank`. */
static bool brings(const pta *p, const graph_edge *e, pta_key key, uint64_t rank)
{
    if (e->rank >= rank) return false;
    if (e->from == NO_NODE) return e->key == key;
    const pta_set *set = &p->nodes.data[e->from].set;
    if (!e->label) {
        uint32_t at = set_find(set, key);
        return at != UINT32_MAX && set->ranks[at] < rank;
    }
    uint32_t object = key_object(key);
    for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++)
        if (set->ranks[i] < rank && graph_transfer(p, set->keys[i], &p->labels.data[e->label]) == key) return true;
    return false;
}

/* Whether a set was wild by itself, from facts older than `rank`. */
static bool is_wild_by_itself(const pta *p, const pta_set *set, uint64_t rank)
{
    uint32_t loose = 0, last = 0;
    for (uint32_t i = 0; i < set->len; i++) {
        if (!set_is_loose(set->keys[i]) || set->ranks[i] > rank || key_object(set->keys[i]) == last) continue;
        last = key_object(set->keys[i]);
        loose++;
    }
    return loose > p->options.wild_at;
}

static bool is_class(pta_key key)
{
    return !offset_is_single(key_offset(key));
}

/* Whether a class is the closure of what several neighbours bring, from facts older than `rank`. */
static bool is_closure(const pta *p, uint32_t node, pta_key key, uint64_t rank)
{
    key_list found = {0}, added = {0};
    pta_set all = {0};
    const id_list *in = &p->nodes.data[node].in;

    for (uint32_t i = 0; i < in->len; i++)
        collect(p, &p->edges.data[in->data[i]], key_object(key), rank, &found);
    keys_sort(found.data, &found.len);
    set_add(&all, found.data, found.len, 0, graph_world(p), &added);
    bool yes = set_find(&all, key) != UINT32_MAX;
    vec_free(&added);
    set_free(&all);
    vec_free(&found);
    return yes;
}

/* A reason that is younger and does not depend on the fact. */
static bool find_younger(pta *p, uint32_t node, uint32_t fact, uint32_t *reason, uint64_t *work)
{
    const graph_node *n = &p->nodes.data[node];
    proof f = {.p = p, .below = n->set.ranks[fact], .work = work};
    bool found = false;
    *map_at(&f.seen, (uint64_t)node << 32 | fact) = 0; /* no reason for itself */
    for (uint32_t i = 0, tried = 0; i < n->in.len && tried < CANDIDATES && f.visits < VISITS && !found; i++) {
        const graph_edge *e = &p->edges.data[n->in.data[i]];
        if (e->from != NO_NODE && oldest_source(p, e, n->set.keys[fact]) == UINT32_MAX) continue;
        uint64_t reasons;
        tried++;
        found = lower_reason(&f, n->in.data[i], node, n->set.keys[fact], &reasons);
        *reason = n->in.data[i];
    }
    map_free(&f.seen);
    return found;
}

bool support_find(pta *p, uint32_t node, uint32_t fact, uint32_t *reason, uint64_t *work)
{
    const pta_set *set = &p->nodes.data[node].set;
    pta_key key = set->keys[fact];
    uint64_t rank = set->ranks[fact];
    const id_list *in = &p->nodes.data[node].in;
    *reason = set->reasons[fact];
    if (*reason != SET_NO_REASON && p->edges.data[*reason].to == node && brings(p, &p->edges.data[*reason], key, rank)) return true;
    for (uint32_t i = 0; i < in->len; i++) {
        ++*work;
        if (!brings(p, &p->edges.data[in->data[i]], key, rank)) continue;
        *reason = in->data[i];
        return true;
    }
    *reason = SET_NO_REASON;
    if (key == set_wild_key() && is_wild_by_itself(p, set, rank)) return true;
    if (is_class(key) && key != set_wild_key() && is_closure(p, node, key, rank)) return true;
    return find_younger(p, node, fact, reason, work);
}

bool support_life(pta *p, uint32_t instance, uint64_t *work)
{
    graph_instance *i = &p->instances.data[instance];
    *work += i->callers.len;
    for (uint32_t c = 0; c < i->callers.len; c++)
        if (i->callers.data[c].rank < i->rank && p->instances.data[p->uses.data[i->callers.data[c].use].instance].live) return true;
    proof f = {.p = p, .below = i->rank, .work = work};
    bool found = false;
    *map_at(&f.seen, (uint64_t)instance << 32 | UINT32_MAX) = 0;
    for (uint32_t c = 0; c < i->callers.len && c < CANDIDATES && !found; c++)
        found = lower_call(&f, &i->callers.data[c]);
    map_free(&f.seen);
    return found;
}
