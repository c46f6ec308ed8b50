/* Deletion. When an edge goes, each fact whose reason it was is questioned. A fact is kept when one of its incoming
 * neighbours still brings it (IPA: dissertation, section 3.2, theorems 1 and 2), which is its reason then, else it is
 * taken away, what it was the reason of is questioned in turn, and the edges and calls that depended on it go.
 *
 * The theorems hold for a graph whose edges are given. Here edges depend on facts, and a fact may support itself:
 * after `p = head` is gone from `p = head; while (p) p = p->next`, an object whose `next` leads to itself would keep
 * the load alive by which it gets to p. Ranks rule that out: a neighbour counts only if its fact and the edge are both
 * older than the fact in question, or can be made so (support.c), and every fact is younger than its reason. A fact
 * for which no such support is found is taken away and comes back with a new rank when what is left still derives it
 * (delete and rederive), so the result is exactly that of an analysis from scratch.
 *
 * SET_WILD is a fact as others are, and what the wilderness lists is questioned when a wild pointer has lost it. Much
 * of what SET_WILD stands for is not kept (dormant.c). When it stands for something no more, which is all for a node
 * that is wild no more, and an object everywhere that the wilderness lists no more, it is derived again from what the
 * neighbours have.
 *
 * Taking away and deriving again may cost more than an analysis from scratch, where everything depends on everything.
 * It is given up then.
 *
 * The two older algorithms do the same without looking at neighbours: `reach` takes away each fact that the change
 * reaches, `reset` empties every set that it reaches. */
#include "static/pointer/graph.h"

typedef struct {
    uint64_t rank; /* of the fact when it was asked about */
    uint32_t node;
    pta_key key;
} question;

struct deletion {
    VEC(question) questions; /* a heap: the oldest fact first, so that what a fact is derived from is decided before it */
    id_list losers;       /* nodes that have lost keys: graph_node.lost says of which objects */
    id_list woken;        /* nodes that have been wild */
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

/* Every node is a component of its own where something may be deleted. */
static pta_set *set_of(const pta *p, uint32_t node)
{
    return &p->nodes.data[node].set;
}

/* --- questions ----------------------------------------------------------------------------------------------------------- */

static void push_question(pta *p, question q)
{
    struct deletion *d = state(p);
    vec_push(&d->questions, q);
    question *heap = d->questions.data;
    uint32_t at = d->questions.len - 1;
    for (; at && heap[(at - 1) / 2].rank > q.rank; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = q;
}

static question pop_question(struct deletion *d)
{
    question *heap = d->questions.data, first = heap[0], last = heap[--d->questions.len];
    uint32_t at = 0, child, n = d->questions.len;
    while ((child = 2 * at + 1) < n) {
        if (child + 1 < n && heap[child + 1].rank < heap[child].rank) child++;
        if (heap[child].rank >= last.rank) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

static void question_fact(pta *p, uint32_t node, uint32_t at)
{
    const pta_set *set = set_of(p, node);
    if (node != p->wilderness) {
        push_question(p, (question){set->ranks[at], node, set->keys[at]});
        return;
    }
    uint8_t *about = &p->wild.data[key_object(set->keys[at])]; /* once for all that have lost it */
    if (*about & SET_IN_DOUBT) return;
    vec_push(&state(p)->doubted, key_object(set->keys[at]));
    *about |= SET_IN_DOUBT;
}

static bool is_class(pta_key key)
{
    return !offset_is_single(key_offset(key));
}

/* An edge does not bring a key any more: the fact whose reason it was is in doubt, and each class of the object that may owe its
 * form to the key. */
static void ask(pta *p, uint32_t node, pta_key key, uint32_t edge)
{
    if (!key) return;
    const pta_set *set = set_of(p, node);
    bool all = p->options.algorithm != PTA_IPA;
    for (uint32_t i = set_group(set, key_object(key)); i < set->len && key_object(set->keys[i]) == key_object(key); i++) {
        bool same = set->keys[i] == key;
        if (!all && set->reasons[i] != SET_NO_REASON && (!same || set->reasons[i] != edge)) continue;
        const pta_shape *shape = p->shapes.data[key_object(key)];
        if (same || (is_class(set->keys[i]) && offset_covers(key_offset(set->keys[i]), key_offset(key), shape)))
            question_fact(p, node, i);
    }
}

/* Whether an edge brought something of an object, when it has just been removed. */
static bool has_brought(const pta *p, const graph_edge *e, uint32_t object)
{
    if (e->from == NO_NODE) return key_object(e->key) == object;
    const pta_set *from = set_of(p, e->from);
    uint32_t at = set_group(from, object);
    return at < from->len && key_object(from->keys[at]) == object;
}

static void retract_edge(pta *p, uint32_t edge)
{
    const graph_edge e = p->edges.data[edge];
    graph_remove_edge(p, edge);
    const pta_set *to = set_of(p, e.to), *from = e.from == NO_NODE ? NULL : set_of(p, e.from);
    if (p->options.algorithm == PTA_IPA) {
        for (uint32_t i = 0; i < to->len; i++)
            if (to->reasons[i] == edge || (to->reasons[i] == SET_NO_REASON && has_brought(p, &e, key_object(to->keys[i]))))
                question_fact(p, e.to, i);
        return;
    }
    if (!from) ask(p, e.to, e.key, edge);
    for (uint32_t i = 0; from && i < from->len; i++)
        ask(p, e.to, e.label ? graph_transfer(p, from->keys[i], &p->labels.data[e.label]) : from->keys[i], edge);
}

/* --- calls --------------------------------------------------------------------------------------------------------------- */

static void check_life(pta *p, uint32_t instance)
{
    graph_instance *i = &p->instances.data[instance];
    if (!i->live || i->root) return;
    if (p->options.algorithm == PTA_IPA && support_life(p, instance, &state(p)->work)) return;
    i->live = false;
    p->targets_changed = true;
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
        p->targets_changed = true;
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

/* What depended on a key that a node no longer has. */
static void retract_uses(pta *p, uint32_t node, pta_key key)
{
    for (uint32_t u = 0; u < p->nodes.data[node].uses.len; u++) {
        uint32_t use = p->nodes.data[node].uses.data[u];
        for (uint32_t e = p->uses.data[use].edges, next; e != NO_EDGE; e = next) {
            next = p->edges.data[e].next;
            if (p->edges.data[e].key == key) retract_edge(p, e);
        }
        if (graph_stmt(p, use)->kind != PTA_CALL) continue;
        p->targets_changed = true;
        retract_calls(p, use, key);
    }
}

static void note_loss(pta *p, uint32_t node, uint32_t object)
{
    id_list *lost = &p->nodes.data[node].lost;
    if (lost->len && lost->data[lost->len - 1] == object) return;
    if (!lost->len) vec_push(&state(p)->losers, node);
    vec_push(lost, object);
}

static void take_one(pta *p, uint32_t node, pta_key key)
{
    pta_set *set = set_of(p, node);
    set_remove(set, &key, 1);
    note_loss(p, node, key_object(key));
    if (node == p->wilderness) {
        p->wild.data[key_object(key)] &= (uint8_t)~SET_IN_WILD;
        vec_push(&state(p)->tamed, key_object(key));
    }
    bool by_itself = set_is_wild(set) && (p->options.algorithm != PTA_IPA || set->reasons[0] == SET_NO_REASON);
    if (by_itself && set_is_loose(key)) question_fact(p, node, 0); /* perhaps it was one of just enough */
    for (uint32_t i = 0; i < p->nodes.data[node].out.len; i++) {
        uint32_t edge = p->nodes.data[node].out.data[i];
        const graph_edge *e = &p->edges.data[edge];
        ask(p, e->to, e->label ? graph_transfer(p, key, &p->labels.data[e->label]) : key, edge);
    }
    retract_uses(p, node, key);
}

/* The node tells the wilderness nothing any more. */
static void hush(pta *p, uint32_t node)
{
    uint32_t tells = p->nodes.data[node].tells;
    p->nodes.data[node].tells = 0;
    if (tells) retract_edge(p, tells - 1);
}

/* A key goes; a class with all keys of its object. After SET_WILD, what lay dormant goes where it has not been sent. */
static void take_away(pta *p, uint32_t node, pta_key key)
{
    const pta_set *set = set_of(p, node);
    if (key == set_wild_key()) {
        hush(p, node);
        vec_push(&state(p)->woken, node);
    }
    if (!is_class(key) || key == set_wild_key()) {
        take_one(p, node, key);
        return;
    }
    for (;;) {
        uint32_t at = set_group(set, key_object(key));
        if (at >= set->len || key_object(set->keys[at]) != key_object(key)) break;
        take_one(p, node, set->keys[at]);
    }
}

static void answer(pta *p, uint32_t node, pta_key key)
{
    pta_set *set = set_of(p, node);
    uint32_t at = set_find(set, key), reason;
    if (at == UINT32_MAX) return;
    switch (p->options.algorithm) {
    case PTA_IPA:
        if (support_find(p, node, at, &reason, &p->deletion->work))
            set->reasons[at] = reason;
        else
            take_away(p, node, key);
        break;
    case PTA_REACH: take_away(p, node, key); break;
    case PTA_RESET:
        while (set_of(p, node)->len)
            take_away(p, node, set_of(p, node)->keys[set_of(p, node)->len - 1]);
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
    if (at < wild->len && key_object(wild->keys[at]) == object) answer(p, p->wilderness, wild->keys[at]);
}

/* Edges that may be looked at before it is given up. */
static uint64_t patience(const pta *p)
{
    return p->options.algorithm == PTA_IPA ? 200000 + 8 * p->live_edges : UINT64_MAX;
}

static void wake_tamed(pta *p)
{
    const id_list *tamed = &p->deletion->tamed;
    for (uint32_t i = 0; i < tamed->len; i++)
        p->wild.data[tamed->data[i]] |= SET_IS_TAMED;
    solve_wake_objects(p);
    for (uint32_t i = 0; i < tamed->len; i++)
        p->wild.data[tamed->data[i]] &= (uint8_t)~SET_IS_TAMED;
}

bool delete_run(pta *p)
{
    struct deletion *d = state(p);
    uint64_t most = patience(p);
    d->work = 0;
    while ((d->questions.len || d->doubted.len) && d->work < most) {
        if (d->questions.len) {
            question q = pop_question(d);
            answer(p, q.node, q.key);
        } else {
            answer_doubt(p, d->doubted.data[--d->doubted.len]);
        }
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
    if (d->tamed.len) wake_tamed(p);
    for (uint32_t i = 0; i < d->woken.len; i++)
        solve_wake(p, d->woken.data[i]);
    solve_rederive(p, lost.data, lost.len);
    vec_free(&lost);
    vec_clear(&d->unborn);
    vec_clear(&d->losers);
    vec_clear(&d->woken);
    vec_clear(&d->tamed);
    return true;
}

void delete_close(pta *p)
{
    if (!p->deletion) return;
    vec_free(&p->deletion->questions);
    vec_free(&p->deletion->losers);
    vec_free(&p->deletion->woken);
    vec_free(&p->deletion->unborn);
    vec_free(&p->deletion->doubted);
    vec_free(&p->deletion->tamed);
    free(p->deletion);
}
