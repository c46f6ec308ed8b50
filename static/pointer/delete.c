/* Deletion. When an edge goes, each fact whose reason it was is questioned. A fact is kept when one of its incoming
 * neighbours still brings it (IPA: dissertation, section 3.2, theorems 1 and 2), which is its reason then, else it is
 * a suspect, and what it is the reason of is questioned in turn.
 *
 * The theorems hold for a graph whose edges are given. Here edges depend on facts, and a fact may support itself:
 * after `p = head` is gone from `p = head; while (p) p = p->next`, an object whose `next` leads to itself would keep
 * the load alive by which it gets to p. Ranks rule that out: a neighbour counts only if its fact and the edge are both
 * older than the fact in question, and every fact is younger than its reason. What is younger but does not depend on it
 * is made older (repair.c). Suspects are cleared when something supports them that is not suspect itself (suspect.c). Only the
 * others are taken away, with the edges and calls that depend on them. What is taken away along with them, or for want of a
 * better proof, comes back with a new rank when what is left still derives it (delete and rederive), so the result is exactly
 * that of an analysis from scratch.
 *
 * SET_WILD is a fact as others are, and what the wilderness lists is questioned when a wild pointer has lost it. Much
 * of what SET_WILD stands for is not kept (dormant.c). When it stands for something no more, which is all for a node
 * that is wild no more, and an object everywhere that the wilderness lists no more, it is derived again from what the
 * neighbours have.
 *
 * Taking away and deriving again may cost more than an analysis from scratch, where everything depends on everything.
 * It is given up then.
 *
 * What is still dear are deletions that take the first proof away by which pointers in the midst of it all are wild: of
 * memcached's, 2 % of the edits take 93 % of the time, the others 0.2 ms on average. In half of them fewer than a hundred
 * facts of 22,000 change in the result, but nearly all that is wild falls, since what would prove it by other ways lies dormant or was forgotten.
 * None of these has made it faster: to let sets collect twice as much before they are wild (what falls came by the same few
 * statements, and there is more of it: 3 times slower); to look for another wild pointer, or for enough to make one, upstream of
 * the one that falls, in what is older (a third are found, and such proofs last no longer than others did); the same among all
 * suspects before they are taken away (half are found; the rest needs edges that only what lies dormant would bring); to
 * make what is prone wild with 2 objects or 1.
 *
 * Contexts come first, as in SHARP (dissertation, section 4.4.1): an instance is a function in a context, with variables and
 * edges of its own, so what is left of the call graph tells which of them are invalid, and all that they are goes at once. It
 * serves every kind of context, since calls are noted by instance: with call strings all strings that a deleted call is part of
 * are found that way, with origins all that a deleted creation started.
 *
 * The two older algorithms do the same without looking at neighbours: `reach` takes away each fact that the change
 * reaches, `reset` empties every set that it reaches. */
#include "static/pointer/delete.h"

enum { REPAIRS = 20000, REPAIRS_EACH = 4 }; /* steps for repairs in one deletion, and more for each fact in doubt */

struct deletion *delete_state(pta *p)
{
    if (!p->deletion) {
        p->deletion = base_alloc_zero(1, sizeof *p->deletion);
        p->deletion->repairs = REPAIRS;
    }
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
    struct deletion *d = delete_state(p);
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

void delete_question(pta *p, uint32_t node, uint32_t at)
{
    const pta_set *set = set_of(p, node);
    if (set->ranks[at] >= GRAPH_SUSPECT) return;
    if (node != p->wilderness) {
        push_question(p, (question){set->ranks[at], node, set->keys[at]});
        return;
    }
    uint8_t *about = &p->wild.data[key_object(set->keys[at])]; /* once for all that have lost it */
    if (*about & SET_IN_DOUBT) return;
    vec_push(&delete_state(p)->doubted, key_object(set->keys[at]));
    *about |= SET_IN_DOUBT;
}

static bool is_class(pta_key key)
{
    return !offset_is_single(key_offset(key));
}

/* The fact whose reason it was is in doubt, and each class of the object that may owe its form to the key. */
void delete_ask(pta *p, uint32_t node, pta_key key, uint32_t edge)
{
    if (!key) return;
    const pta_set *set = set_of(p, node);
    bool all = p->options.algorithm != PTA_IPA;
    for (uint32_t i = set_group(set, key_object(key)); i < set->len && key_object(set->keys[i]) == key_object(key); i++) {
        bool same = set->keys[i] == key;
        if (!all && set->reasons[i] != SET_NO_REASON && (!same || set->reasons[i] != edge)) continue;
        const pta_shape *shape = p->shapes.data[key_object(key)];
        if (same || (is_class(set->keys[i]) && offset_covers(key_offset(set->keys[i]), key_offset(key), shape)))
            delete_question(p, node, i);
    }
}

/* Whether an edge brings something of an object. */
static bool has_brought(const pta *p, const graph_edge *e, uint32_t object)
{
    if (e->from == NO_NODE) return key_object(e->key) == object;
    const pta_set *from = set_of(p, e->from);
    uint32_t at = set_group(from, object);
    return at < from->len && key_object(from->keys[at]) == object;
}

void delete_ask_all(pta *p, uint32_t edge)
{
    const graph_edge *e = &p->edges.data[edge];
    const pta_set *to = set_of(p, e->to);
    delete_state(p)->work += to->len / 16;
    for (uint32_t i = 0; i < to->len; i++)
        if (to->reasons[i] == edge || (to->reasons[i] == SET_NO_REASON && has_brought(p, e, key_object(to->keys[i]))))
            delete_question(p, e->to, i);
}

void delete_edge(pta *p, uint32_t edge)
{
    const graph_edge e = p->edges.data[edge];
    if (p->options.algorithm == PTA_IPA) {
        delete_ask_all(p, edge);
        graph_remove_edge(p, edge);
        return;
    }
    graph_remove_edge(p, edge);
    const pta_set *from = e.from == NO_NODE ? NULL : set_of(p, e.from);
    if (!from) delete_ask(p, e.to, e.key, edge);
    for (uint32_t i = 0; from && i < from->len; i++)
        delete_ask(p, e.to, e.label ? graph_transfer(p, from->keys[i], &p->labels.data[e.label]) : from->keys[i], edge);
}

/* --- calls --------------------------------------------------------------------------------------------------------------- */

/* An instance without an older caller is suspect; in the older algorithms it goes. */
static void check_life(pta *p, uint32_t instance)
{
    graph_instance *i = &p->instances.data[instance];
    if (!i->live || i->root) return;
    if (p->options.algorithm == PTA_IPA) {
        suspect_life(p, instance);
        return;
    }
    i->live = false;
    vec_push(&delete_state(p)->dying, instance);
}

static void hush(pta *p, uint32_t node);

/* What the variables of an instance hold, all at once: whatever depended on it is suspect or gone, as its statements and the
 * calls that led to it are. */
static void empty_variables(pta *p, uint32_t instance)
{
    const graph_instance *i = &p->instances.data[instance];
    uint32_t count = p->program->funcs.data[i->func].var_count;
    for (uint32_t v = 0; v < count; v++) {
        uint32_t node = graph_var(i, v);
        hush(p, node);
        graph_note(p, node);
        set_of(p, node)->len = set_of(p, node)->loose = 0;
    }
}

static void die(pta *p, uint32_t instance)
{
    graph_instance *i = &p->instances.data[instance];
    i->live = false;
    p->targets_changed = true;
    vec_push(&delete_state(p)->unborn, instance);
    uint32_t count = p->program->funcs.data[i->func].stmts.len;
    for (uint32_t s = 0; s < count; s++)
        delete_use(p, graph_use_of(&p->instances.data[instance], s));
    if (p->options.algorithm == PTA_IPA) empty_variables(p, instance);
}

/* What a call through `key` reaches goes; NO_KEY: a direct call. */
static void retract_calls(pta *p, uint32_t use, pta_key key)
{
    call_list *calls = &delete_state(p)->calls;
    graph_calls(p, use, key, calls);
    for (uint32_t i = 0; i < calls->len; i++) {
        graph_instance *callee = &p->instances.data[calls->data[i].callee];
        callee->callers.data[calls->data[i].at] = callee->callers.data[callee->callers.len - 1];
        callee->callers.len--;
        check_life(p, calls->data[i].callee);
    }
}

/* Whether an edge passes something to an instance, or back, in a call. */
static bool is_passed(const pta *p, const graph_edge *e, uint32_t callee)
{
    const graph_instance *to = &p->instances.data[callee], *from = &p->instances.data[p->uses.data[e->use].instance];
    const pta_call *call = &p->program->calls.data[graph_stmt(p, e->use)->ref];
    if (e->to >= to->first_node && e->to < to->first_node + PTA_PARAMS) return true;
    return (e->from == to->first_node + PTA_RET && call->ret != PTA_NO_VAR && e->to == graph_var(from, call->ret)) ||
           (e->from == to->first_node + PTA_RET2 && call->ret2 != PTA_NO_VAR && e->to == graph_var(from, call->ret2));
}

void delete_call(pta *p, uint32_t use, uint32_t func, pta_key key)
{
    call_list *calls = &delete_state(p)->calls;
    vec_clear(calls);
    graph_calls_to(p, use, func, key, calls);
    p->targets_changed = true;
    for (uint32_t i = 0; i < calls->len; i++) {
        graph_instance *callee = &p->instances.data[calls->data[i].callee];
        for (uint32_t e = p->uses.data[use].edges, next; e != NO_EDGE; e = next) {
            next = p->edges.data[e].next;
            if (p->edges.data[e].key == key && is_passed(p, &p->edges.data[e], calls->data[i].callee)) delete_edge(p, e);
        }
        callee->callers.data[calls->data[i].at] = callee->callers.data[callee->callers.len - 1];
        callee->callers.len--;
        check_life(p, calls->data[i].callee);
    }
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
        const pta_set *set = pointer == NO_NODE ? NULL : set_of(p, pointer);
        if (!set) retract_calls(p, use, NO_KEY);
        for (uint32_t i = 0; set && i < set->len; i++)
            retract_calls(p, use, set->keys[i]);
    }
    while (p->uses.data[use].edges != NO_EDGE)
        delete_edge(p, p->uses.data[use].edges);
}

/* --- facts --------------------------------------------------------------------------------------------------------------- */

/* What depended on a key that a node no longer has. */
static void retract_uses(pta *p, uint32_t node, pta_key key)
{
    for (uint32_t u = 0; u < p->nodes.data[node].uses.len; u++) {
        uint32_t use = p->nodes.data[node].uses.data[u];
        for (uint32_t e = p->uses.data[use].edges, next; e != NO_EDGE; e = next) {
            next = p->edges.data[e].next;
            if (p->edges.data[e].key == key) delete_edge(p, e);
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
    if (!lost->len) vec_push(&delete_state(p)->losers, node);
    vec_push(lost, object);
}

static void take_one(pta *p, uint32_t node, pta_key key)
{
    pta_set *set = set_of(p, node);
    delete_state(p)->work += p->nodes.data[node].out.len + set->len / 16;
    set_remove(set, &key, 1);
    graph_note(p, node);
    note_loss(p, node, key_object(key));
    if (node == p->wilderness) {
        p->wild.data[key_object(key)] &= (uint8_t)~SET_IN_WILD;
        vec_push(&delete_state(p)->tamed, key_object(key));
    }
    bool by_itself = set_is_wild(set) && (p->options.algorithm != PTA_IPA || set->reasons[0] == SET_NO_REASON);
    if (by_itself && set_is_loose(key)) delete_question(p, node, 0); /* perhaps it was one of just enough */
    for (uint32_t i = 0; i < p->nodes.data[node].out.len; i++) {
        uint32_t edge = p->nodes.data[node].out.data[i];
        const graph_edge *e = &p->edges.data[edge];
        delete_ask(p, e->to, e->label ? graph_transfer(p, key, &p->labels.data[e->label]) : key, edge);
    }
    retract_uses(p, node, key);
}

/* The node tells the wilderness nothing any more. */
static void hush(pta *p, uint32_t node)
{
    uint32_t tells = p->nodes.data[node].tells;
    p->nodes.data[node].tells = 0;
    if (!tells) return;
    graph_note_wild(p, node);
    delete_edge(p, tells - 1);
}

/* A key goes; a class with all keys of its object. After SET_WILD, what lay dormant goes where it has not been sent. */
static void take_away(pta *p, uint32_t node, pta_key key)
{
    const pta_set *set = set_of(p, node);
    if (key == set_wild_key()) {
        hush(p, node);
        vec_push(&delete_state(p)->woken, node);
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
    uint32_t at = set_find(set, key);
    support found;
    if (at == UINT32_MAX) return;
    switch (p->options.algorithm) {
    case PTA_IPA:
        if (set->ranks[at] >= GRAPH_SUSPECT) return;
        if (support_find(p, node, at, set->ranks[at], &found, &p->deletion->work))
            set->reasons[at] = found.reason;
        else if (!found.hope || !repair_fact(p, node, at, NO_EDGE))
            suspect_fact(p, node, at, found.hope);
        break;
    case PTA_REACH: take_away(p, node, key); break;
    case PTA_RESET:
        while (set_of(p, node)->len)
            take_away(p, node, set_of(p, node)->keys[set_of(p, node)->len - 1]);
        break;
    }
}

/* Suspects that nothing has cleared go. */
static void convict(pta *p)
{
    struct deletion *d = p->deletion;
    id_list waning = d->waning;
    d->waning = (id_list){0};
    d->waned = 0;
    for (uint32_t i = 0; i < waning.len; i++)
        if (p->instances.data[waning.data[i]].rank >= GRAPH_SUSPECT) die(p, waning.data[i]);
    for (uint32_t i = 0; i < d->suspects.len; i++) {
        const suspect s = d->suspects.data[i];
        uint32_t at = set_find(set_of(p, s.node), s.key);
        if (at != UINT32_MAX && set_of(p, s.node)->ranks[at] >= GRAPH_SUSPECT) take_away(p, s.node, s.key);
    }
    vec_clear(&d->suspects);
    vec_free(&waning);
}

/* --- all of it --------------------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What wild pointers point into stays as long as one of them is known to point there. */
static void answer_doubts(pta *p)
{
    struct deletion *d = p->deletion;
    pta_set *wild = set_of(p, p->wilderness);
    id_list doubted = d->doubted;
    d->doubted = (id_list){0};
    for (uint32_t i = 0; i < doubted.len; i++) {
        p->wild.data[doubted.data[i]] &= (uint8_t)~SET_IN_DOUBT;
        uint32_t at = set_group(wild, doubted.data[i]);
        if (at >= wild->len || key_object(wild->keys[at]) != doubted.data[i]) continue;
        if (p->options.algorithm != PTA_IPA) {
            answer(p, p->wilderness, wild->keys[at]);
            continue;
        }
        support found = support_listed(p, doubted.data[i], &d->work);
        bool hope = found.rank < GRAPH_SUSPECT;
        if (found.rank < wild->ranks[at])
            wild->reasons[at] = found.reason;
        else if (wild->ranks[at] < GRAPH_SUSPECT && (!hope || !repair_fact(p, p->wilderness, at, found.reason)))
            suspect_fact(p, p->wilderness, at, hope);
    }
    vec_free(&doubted);
}

/* Edges that may be looked at before it is given up. */
static uint64_t patience(const pta *p)
{
    return p->options.algorithm == PTA_IPA ? 200000 + 24 * p->live_edges + 8 * p->scratch : UINT64_MAX;
}

/* The next thing in doubt. False: there is none. */
static bool decide(pta *p)
{
    struct deletion *d = p->deletion;
    if (d->dying.len) {
        die(p, d->dying.data[--d->dying.len]);
    } else if (d->waned < d->waning.len) {
        suspect_statements(p, d->waning.data[d->waned++]);
    } else if (d->questions.len) {
        question q = pop_question(d);
        d->repairs += REPAIRS_EACH;
        answer(p, q.node, q.key);
    } else if (d->doubted.len) {
        answer_doubts(p);
    } else if (d->suspects.len || d->waning.len) {
        suspect_clear(p);
        if (d->work < d->most) convict(p);
    } else {
        return false;
    }
    return true;
}

/* Contexts that nothing leads to any more go before any fact is looked at. */
static void drop_contexts(pta *p)
{
    struct deletion *d = p->deletion;
    id_list gone = {0};
    suspect_contexts(p, &gone);
    for (uint32_t i = 0; i < gone.len; i++)
        die(p, gone.data[i]);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->waning.len; i++)
        if (p->instances.data[d->waning.data[i]].live) d->waning.data[kept++] = d->waning.data[i];
    d->waning.len = kept;
    vec_free(&gone);
}

bool delete_run(pta *p)
{
    struct deletion *d = delete_state(p);
    d->most = patience(p);
    d->work = 0;
    if (d->waning.len) drop_contexts(p);
    while (d->work < d->most && decide(p))
        ;
    if (d->work >= d->most) return false;
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
    solve_wake_objects(p, d->tamed.data, d->tamed.len);
    for (uint32_t i = 0; i < d->woken.len; i++)
        solve_wake(p, d->woken.data[i]);
    solve_rederive(p, lost.data, lost.len);
    vec_free(&lost);
    vec_clear(&d->unborn);
    vec_clear(&d->losers);
    vec_clear(&d->woken);
    vec_clear(&d->tamed);
    d->repairs = REPAIRS; /* of the next one */
    return true;
}

void delete_close(pta *p)
{
    if (!p->deletion) return;
    vec_free(&p->deletion->questions);
    vec_free(&p->deletion->suspects);
    vec_free(&p->deletion->waning);
    vec_free(&p->deletion->cleared);
    vec_free(&p->deletion->revived);
    vec_free(&p->deletion->dying);
    vec_free(&p->deletion->calls);
    vec_free(&p->deletion->losers);
    vec_free(&p->deletion->woken);
    vec_free(&p->deletion->unborn);
    vec_free(&p->deletion->doubted);
    vec_free(&p->deletion->tamed);
    free(p->deletion);
}
