/* Deletion. When an edge goes, each fact that it may have brought is questioned. A fact is kept when one of its incoming
 * neighbours still brings it (IPA: dissertation, section 3.2, theorems 1 and 2), else it is taken away, what it led to is
 * questioned in turn, and the edges and calls that depended on it go.
 *
 * The theorems hold for a graph whose edges are given. Here edges depend on facts, and a fact may support itself: after
 * `p = head` is gone from `p = head; while (p) p = p->next`, an object whose `next` leads to itself would keep the load
 * alive by which it gets to p. Ranks rule that out: a neighbour counts only if its fact and the edge are both older than
 * the fact in question, and every fact is younger than what it was first derived from. A fact that has only younger
 * support is taken away and comes back with a new rank when what is left still derives it (delete and rederive), so the
 * result is exactly that of an analysis from scratch.
 *
 * SET_WILD is a fact as others are, and what the wilderness lists is questioned when a wild pointer has lost it. A component
 * that is wild no more loses all it had, and what SET_WILD stands for no more is woken where it lies dormant.
 *
 * Taking away and deriving again may cost more than an analysis from scratch, where everything depends on everything. It is
 * given up then.
 *
 * The two older algorithms do the same without looking at neighbours: `reach` takes away each fact that the change reaches,
 * `reset` empties every set that it reaches. */
#include "static/pointer/graph.h"

typedef struct {
    uint32_t node;
    pta_key key;
} question;

struct deletion {
    VEC(question) questions;
    id_list losers;       /* components that have lost keys: graph_node.lost says of which objects */
    id_list unborn;       /* instances that nobody older calls */
    id_list doubted;      /* objects that the wilderness may list no more */
    id_list tamed;        /* those that it does not */
    uint64_t work;        /* edges looked at */
};

static struct deletion *state(pta *p)
{
    if (!p->deletion) p->deletion = base_alloc_zero(1, sizeof *p->deletion);
    return p->deletion;
}

static pta_set *set_of(const pta *p, uint32_t node)
{
    return &p->nodes.data[graph_component(p, node)].set;
}

/* A key may have gone: it, and each class of its object, which may owe its form to it. */
static void ask(pta *p, uint32_t node, pta_key key)
{
    if (!key) return;
    if (node == p->wilderness) { /* once for all that have lost it */
        uint8_t *about = &p->wild.data[key_object(key)];
        if (!(*about & SET_IN_WILD) || *about & SET_IN_DOUBT) return;
        vec_push(&state(p)->doubted, key_object(key));
        *about |= SET_IN_DOUBT;
        return;
    }
    const pta_set *set = set_of(p, node);
    for (uint32_t i = set_group(set, key_object(key)); i < set->len && key_object(set->keys[i]) == key_object(key); i++)
        if (set->keys[i] == key || (!offset_is_exact(key_offset(set->keys[i])) && offset_covers(key_offset(set->keys[i]), key_offset(key), p->shapes.data[key_object(key)])))
            vec_push(&state(p)->questions, (question){node, set->keys[i]});
}

static void retract_edge(pta *p, uint32_t edge)
{
    const graph_edge e = p->edges.data[edge];
    graph_remove_edge(p, edge);
    if (e.from == NO_NODE) {
        ask(p, e.to, e.key);
        return;
    }
    const pta_set *from = set_of(p, e.from);
    const graph_label *label = &p->labels.data[e.label];
    for (uint32_t i = 0; i < from->len; i++)
        ask(p, e.to, e.label ? graph_transfer(p, from->keys[i], label) : from->keys[i]);
}

/* --- calls --------------------------------------------------------------------------------------------------------------- */

static void check_life(pta *p, uint32_t instance)
{
    graph_instance *i = &p->instances.data[instance];
    if (!i->live || i->root) return;
    for (uint32_t c = 0; p->options.algorithm == PTA_IPA && c < i->callers.len; c++)
        if (i->callers.data[c].rank < i->rank && p->instances.data[p->uses.data[i->callers.data[c].use].instance].live) return;
    i->live = false;
    vec_push(&state(p)->unborn, instance);
    uint32_t first = i->first_use, count = p->program->funcs.data[i->func].stmts.len;
    for (uint32_t s = 0; s < count; s++)
        delete_use(p, first + s);
}

static void retract_call(pta *p, uint32_t use, uint32_t func, pta_key key)
{
    uint32_t caller = p->uses.data[use].instance, id = graph_stmt(p, use)->ref;
    unsigned twins = p->rules->twins(p, caller, id);
    for (unsigned twin = 0; twin < twins; twin++) {
        uint32_t context = context_callee(p, caller, id, func, twin);
        uint32_t callee = map_get(&p->instance_map, (uint64_t)func << 32 | context);
        if (callee == MAP_NONE) continue; /* the key lay dormant */
        graph_instance *i = &p->instances.data[callee];
        for (uint32_t c = 0; c < i->callers.len; c++) {
            if (i->callers.data[c].use != use || i->callers.data[c].key != key) continue;
            i->callers.data[c] = i->callers.data[--i->callers.len];
            check_life(p, callee);
            break;
        }
    }
}

/* What a call through `key` reaches goes. */
static void retract_calls(pta *p, uint32_t use, pta_key key)
{
    const pta_site *site = &p->program->sites.data[p->objects.data[key_object(key)].site];
    uint32_t caller = p->uses.data[use].instance, count = 0;
    const uint32_t *targets = NULL;
    if (site->kind == PTA_FUNCTION) retract_call(p, use, site->func, key);
    if (site->kind == PTA_WILD) targets = context_targets(p, caller, graph_stmt(p, use)->ref, &count);
    for (uint32_t i = 0; i < count; i++)
        retract_call(p, use, targets[i], key);
    bool lifted = p->program->funcs.data[p->instances.data[caller].func].lift;
    if (site->kind == PTA_EXTERNAL && lifted) retract_call(p, use, p->program->unknown, key);
}

void delete_use(pta *p, uint32_t use)
{
    const pta_stmt *stmt = graph_stmt(p, use);
    uint32_t pointer = graph_pointer_node(p, use);
    if (pointer != NO_NODE) {
        id_list *uses = &p->nodes.data[pointer].uses;
        uint32_t at = 0;
        while (at < uses->len && uses->data[at] != use)
            at++;
        if (at == uses->len) return; /* it was not there */
        uses->data[at] = uses->data[--uses->len];
    }
    if (stmt->kind == PTA_CALL) {
        if (pointer == NO_NODE) {
            if (p->program->calls.data[stmt->ref].func != PTA_NO_FUNC)
                retract_call(p, use, p->program->calls.data[stmt->ref].func, NO_KEY);
        } else {
            key_list keys = {0};
            const pta_set *set = set_of(p, pointer);
            for (uint32_t i = 0; i < set->len; i++)
                vec_push(&keys, set->keys[i]);
            for (uint32_t i = 0; i < keys.len; i++)
                retract_calls(p, use, keys.data[i]);
            vec_free(&keys);
        }
    }
    while (p->uses.data[use].edges != NO_EDGE)
        retract_edge(p, p->uses.data[use].edges);
}

/* --- facts --------------------------------------------------------------------------------------------------------------- */

/* What depended on keys of an object that a component no longer has. */
static void retract_object(pta *p, uint32_t component, uint32_t object, pta_key key)
{
    uint32_t member = component;
    do {
        for (uint32_t u = 0; u < p->nodes.data[member].uses.len; u++) {
            uint32_t use = p->nodes.data[member].uses.data[u];
            for (uint32_t e = p->uses.data[use].edges, next; e != NO_EDGE; e = next) {
                next = p->edges.data[e].next;
                pta_key on = p->edges.data[e].key;
                if (key_object(on) == object && set_find(set_of(p, component), on) == UINT32_MAX) retract_edge(p, e);
            }
            if (graph_stmt(p, use)->kind == PTA_CALL) retract_calls(p, use, key);
        }
        member = p->nodes.data[member].next;
    } while (member != component);
}

static void note_loss(pta *p, uint32_t component, uint32_t object)
{
    id_list *lost = &p->nodes.data[component].lost;
    if (lost->len && lost->data[lost->len - 1] == object) return;
    if (!lost->len) vec_push(&state(p)->losers, component);
    vec_push(lost, object);
}

static void take_one(pta *p, uint32_t component, pta_key key)
{
    set_remove(&p->nodes.data[component].set, &key, 1);
    note_loss(p, component, key_object(key));
    if (component == p->wilderness) {
        p->wild.data[key_object(key)] &= (uint8_t)~SET_IN_WILD;
        vec_push(&state(p)->tamed, key_object(key));
    }
    if (set_is_wild(&p->nodes.data[component].set) && set_is_loose(key)) /* perhaps it was one of just enough */
        vec_push(&state(p)->questions, (question){component, set_wild_key()});
    uint32_t member = component;
    do {
        for (uint32_t i = 0; i < p->nodes.data[member].out.len; i++) {
            const graph_edge *e = &p->edges.data[p->nodes.data[member].out.data[i]];
            if (!e->label && graph_component(p, e->to) == component) continue;
            ask(p, e->to, e->label ? graph_transfer(p, key, &p->labels.data[e->label]) : key);
        }
        member = p->nodes.data[member].next;
    } while (member != component);
    retract_object(p, component, key_object(key), key);
}

/* The component tells the wilderness nothing any more. */
static void hush(pta *p, uint32_t component)
{
    graph_node *c = &p->nodes.data[component];
    if (!c->tells) return;
    c->tells = false;
    for (uint32_t i = 0; i < c->out.len; i++) {
        const graph_edge *e = &p->edges.data[c->out.data[i]];
        if (e->to != p->wilderness || p->labels.data[e->label].stride != PTA_LOOSE) continue;
        retract_edge(p, c->out.data[i]);
        return;
    }
}

/* A key goes; a class with all keys of its object, and SET_WILD with all keys, since those that lie dormant have not been sent
 * everywhere. */
static void take_away(pta *p, uint32_t component, pta_key key)
{
    const pta_set *set = &p->nodes.data[component].set;
    if (key == set_wild_key()) {
        hush(p, component);
        take_one(p, component, key);
        while (set_of(p, component)->len)
            take_one(p, component, set_of(p, component)->keys[set_of(p, component)->len - 1]);
        return;
    }
    if (offset_is_exact(key_offset(key))) {
        take_one(p, component, key);
        return;
    }
    for (;;) {
        uint32_t at = set_group(set, key_object(key));
        if (at >= set->len || key_object(set->keys[at]) != key_object(key)) break;
        take_one(p, component, set->keys[at]);
    }
}

/* What an edge brings of one object to its target, from facts older than `rank`. */
static void collect(const pta *p, const graph_edge *e, uint32_t component, uint32_t object, uint64_t rank, key_list *out)
{
    if (e->rank >= rank) return;
    if (e->from == NO_NODE) {
        if (key_object(e->key) == object) vec_push(out, e->key);
        return;
    }
    uint32_t from = graph_component(p, e->from);
    if (from == component && !e->label) return;
    const pta_set *set = &p->nodes.data[from].set;
    for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++) {
        if (set->ranks[i] >= rank) continue;
        pta_key key = e->label ? graph_transfer(p, set->keys[i], &p->labels.data[e->label]) : set->keys[i];
        if (key) vec_push(out, key);
    }
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

/* Whether a key has support that is older than `rank`: from one neighbour, or a class as the closure of what several bring. */
static bool is_supported(const pta *p, uint32_t component, pta_key key, uint64_t rank)
{
    if (key == set_wild_key() && is_wild_by_itself(p, &p->nodes.data[component].set, rank)) return true;
    key_list found = {0};
    pta_set all = {0};
    bool yes = false;
    uint32_t member = component, object = key_object(key);
    do {
        const graph_node *m = &p->nodes.data[member];
        for (uint32_t i = 0; i < m->in.len && !yes; i++) {
            uint32_t before = found.len;
            p->deletion->work++;
            collect(p, &p->edges.data[m->in.data[i]], component, object, rank, &found);
            for (uint32_t k = before; k < found.len && !yes; k++)
                yes = found.data[k] == key;
        }
        member = m->next;
    } while (member != component && !yes);
    if (!yes && !offset_is_exact(key_offset(key)) && found.len) {
        key_list added = {0};
        uint32_t count = found.len;
        keys_sort(found.data, &count);
        set_add(&all, found.data, count, 0, graph_world(p), &added);
        yes = set_find(&all, key) != UINT32_MAX;
        vec_free(&added);
    }
    set_free(&all);
    vec_free(&found);
    return yes;
}

static void answer(pta *p, question q)
{
    uint32_t component = graph_component(p, q.node);
    const pta_set *set = &p->nodes.data[component].set;
    uint32_t at = set_find(set, q.key);
    if (at == UINT32_MAX) return;
    switch (p->options.algorithm) {
    case PTA_IPA:
        if (!is_supported(p, component, q.key, set->ranks[at])) take_away(p, component, q.key);
        break;
    case PTA_REACH: take_away(p, component, q.key); break;
    case PTA_RESET:
        while (p->nodes.data[component].set.len)
            take_away(p, component, p->nodes.data[component].set.keys[p->nodes.data[component].set.len - 1]);
        break;
    }
}

/* --- all of it --------------------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What wild pointers point into stays as long as one of them is known to point there. */
static void answer_doubt(pta *p, uint32_t object)
{
    p->wild.data[object] &= (uint8_t)~SET_IN_DOUBT;
    const pta_set *wild = set_of(p, p->wilderness);
    uint32_t at = set_group(wild, object);
    if (at < wild->len && key_object(wild->keys[at]) == object) answer(p, (question){p->wilderness, wild->keys[at]});
}

/* Edges that may be looked at before it is given up. */
static uint64_t patience(const pta *p)
{
    return p->options.algorithm == PTA_IPA ? 100000 + 4 * p->live_edges : UINT64_MAX;
}

bool delete_run(pta *p)
{
    struct deletion *d = state(p);
    uint64_t most = patience(p);
    d->work = 0;
    while ((d->questions.len || d->doubted.len) && d->work < most) {
        if (d->questions.len)
            answer(p, d->questions.data[--d->questions.len]);
        else
            answer_doubt(p, d->doubted.data[--d->doubted.len]);
    }
    if (d->work >= most) return false;
    graph_next_step(p);
    for (uint32_t i = 0; i < d->unborn.len; i++)
        if (p->instances.data[d->unborn.data[i]].callers.len) graph_make_live(p, d->unborn.data[i]);
    VEC(lost_fact) lost = {0};
    for (uint32_t i = 0; i < d->losers.len; i++) {
        graph_node *n = &p->nodes.data[d->losers.data[i]];
        uint32_t count = n->lost.len;
        qsort(n->lost.data, count, sizeof *n->lost.data, by_number);
        for (uint32_t k = 0; k < count; k++)
            if (!k || n->lost.data[k] != n->lost.data[k - 1]) vec_push(&lost, (lost_fact){d->losers.data[i], n->lost.data[k]});
        vec_free(&n->lost);
    }
    solve_rederive(p, lost.data, lost.len);
    for (uint32_t i = 0; i < d->tamed.len; i++)
        if (!(p->wild.data[d->tamed.data[i]] & SET_IN_WILD)) solve_wake_object(p, d->tamed.data[i]);
    vec_free(&lost);
    vec_clear(&d->unborn);
    vec_clear(&d->losers);
    vec_clear(&d->tamed);
    return true;
}

void delete_close(pta *p)
{
    if (!p->deletion) return;
    vec_free(&p->deletion->questions);
    vec_free(&p->deletion->losers);
    vec_free(&p->deletion->unborn);
    vec_free(&p->deletion->doubted);
    vec_free(&p->deletion->tamed);
    free(p->deletion);
}
