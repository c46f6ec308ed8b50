/* Suspects: facts, edges, calls and lives of instances that were derived by way of something deleted, and for which no
 * older support is left. Half of them, in a large program, have support that is younger and does not depend on what was
 * deleted. To take them away and to derive them again would cost more than an analysis from scratch where much hangs on
 * one fact, such as SET_WILD in the midst of a cycle, while the result changes by next to nothing.
 *
 * So nothing is taken away at first. First suspicion spreads from reason to consequence: a suspect's rank is
 * GRAPH_SUSPECT, and thereby it supports nobody. What is not suspect then has a chain of reasons without suspects.
 * Then each suspect that something else supports is cleared, at a rank just above that of its support, and so are
 * those that it supports, and so forth. The ranks of what is cleared may be higher than before: whatever relied on their
 * being lower has been a suspect too. What is left in the end supports at most itself.
 *
 * The cost is that of visiting the suspects and their neighbours once each, whatever cycles they are on (the dissertation
 * splits and merges components for that end, section 3.2.1, which needs graphs whose edges are given). */
#include "static/pointer/delete.h"


static bool is_suspect(uint64_t rank)
{
    return rank >= GRAPH_SUSPECT;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* --- suspicion spreads ---------------------------------------------------------------------------------------------------- */

static void suspect_edge(pta *p, uint32_t edge)
{
    if (is_suspect(p->edges.data[edge].rank)) return;
    p->edges.data[edge].rank = GRAPH_SUSPECT;
    delete_ask_all(p, edge);
}

static void suspect_calls(pta *p, uint32_t use, pta_key key)
{
    call_list *calls = &p->deletion->calls;
    graph_calls(p, use, key, calls);
    for (uint32_t i = 0; i < calls->len; i++) {
        p->deletion->work += calls->data[i].at / 16;
        p->instances.data[calls->data[i].callee].callers.data[calls->data[i].at].rank = GRAPH_SUSPECT;
        suspect_life(p, calls->data[i].callee);
    }
}

void suspect_life(pta *p, uint32_t instance)
{
    graph_instance *i = &p->instances.data[instance];
    if (!i->live || i->root || is_suspect(i->rank)) return;
    delete_state(p)->work += i->callers.len;
    for (uint32_t c = 0; c < i->callers.len; c++)
        if (i->callers.data[c].rank < i->rank) return;
    if (repair_life(p, instance)) return;
    i->rank = GRAPH_SUSPECT;
    vec_push(&p->deletion->waning, instance);
}

/* The calls that an instance makes: `what` is done with each. */
static void each_call(pta *p, uint32_t instance, void what(pta *p, uint32_t use, pta_key key))
{
    const graph_instance *i = &p->instances.data[instance];
    uint32_t count = p->program->funcs.data[i->func].stmts.len;
    for (uint32_t s = 0; s < count; s++) {
        uint32_t use = graph_use_of(i, s);
        if (graph_stmt(p, use)->kind != PTA_CALL) continue;
        uint32_t pointer = graph_pointer_node(p, use);
        const pta_set *set = pointer == NO_NODE ? NULL : &p->nodes.data[pointer].set;
        if (!set) what(p, use, NO_KEY);
        for (uint32_t k = 0; set && k < set->len; k++)
            what(p, use, set->keys[k]);
    }
}

static void note_calls(pta *p, uint32_t use, pta_key key)
{
    call_list *calls = &p->deletion->calls;
    graph_calls(p, use, key, calls);
    for (uint32_t i = 0; i < calls->len; i++)
        vec_push(&p->deletion->revived, calls->data[i].callee);
}

/* Suspicion spreads over calls alone, and those are cleared that a call from elsewhere leads to. They stay in deletion->waning:
 * the call may be suspect for other reasons yet. */
void suspect_contexts(pta *p, id_list *invalid)
{
    struct deletion *d = p->deletion;
    for (uint32_t i = 0; i < d->waning.len; i++)
        each_call(p, d->waning.data[i], suspect_calls);
    uint8_t *valid = base_alloc_zero(p->instances.len, 1);
    for (uint32_t i = 0; i < d->waning.len; i++) {
        const graph_instance *instance = &p->instances.data[d->waning.data[i]];
        bool called = false;
        for (uint32_t c = 0; c < instance->callers.len && !called; c++)
            called = !is_suspect(instance->callers.data[c].rank);
        if (called) vec_push(&d->revived, d->waning.data[i]);
    }
    for (uint32_t i = 0; i < d->revived.len; i++) {
        uint32_t instance = d->revived.data[i];
        if (valid[instance] || !is_suspect(p->instances.data[instance].rank)) continue;
        valid[instance] = 1;
        each_call(p, instance, note_calls);
    }
    vec_clear(&d->revived);
    for (uint32_t i = 0; i < d->waning.len; i++)
        if (!valid[d->waning.data[i]]) vec_push(invalid, d->waning.data[i]);
    free(valid);
}

void suspect_statements(pta *p, uint32_t instance)
{
    const graph_instance *i = &p->instances.data[instance];
    uint32_t count = p->program->funcs.data[i->func].stmts.len;
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t e = p->uses.data[graph_use_of(i, s)].edges; e != NO_EDGE; e = p->edges.data[e].next)
            suspect_edge(p, e);
    each_call(p, instance, suspect_calls);
}

void suspect_fact(pta *p, uint32_t node, uint32_t at, bool hope)
{
    const graph_node *n = &p->nodes.data[node];
    pta_key key = n->set.keys[at];
    n->set.ranks[at] = GRAPH_SUSPECT;
    p->deletion->work += n->out.len;
    vec_push(&p->deletion->suspects, (suspect){node, key, hope});
    bool by_itself = set_is_wild(&n->set) && n->set.reasons[0] == SET_NO_REASON;
    if (by_itself && set_is_loose(key)) delete_question(p, node, 0); /* perhaps it was one of just enough */
    if (key == set_wild_key() && n->tells) suspect_edge(p, n->tells - 1);
    for (uint32_t i = 0; i < n->out.len; i++) {
        const graph_edge *e = &p->edges.data[n->out.data[i]];
        if (is_suspect(e->rank)) continue;
        delete_ask(p, e->to, e->label ? graph_transfer(p, key, &p->labels.data[e->label]) : key, n->out.data[i]);
    }
    for (uint32_t u = 0; u < n->uses.len; u++) {
        for (uint32_t e = p->uses.data[n->uses.data[u]].edges; e != NO_EDGE; e = p->edges.data[e].next)
            if (p->edges.data[e].key == key) suspect_edge(p, e);
        suspect_calls(p, n->uses.data[u], key);
    }
}

/* --- suspects are cleared --------------------------------------------------------------------------------------------------- */

/* A rank just above that of its reasons. */
static uint64_t rank_after(pta *p, uint64_t reasons)
{
    p->deletion->youngest = later(p->deletion->youngest, reasons + 1);
    return reasons + 1;
}

static void clear_fact(pta *p, uint32_t node, uint32_t at, uint32_t reason, uint64_t reasons)
{
    pta_set *set = &p->nodes.data[node].set;
    set->ranks[at] = rank_after(p, reasons);
    set->reasons[at] = reason;
    vec_push(&p->deletion->cleared, (fact_place){node, at});
}

static void review(pta *p, uint32_t node, uint32_t at)
{
    support found;
    if (!is_suspect(p->nodes.data[node].set.ranks[at])) return;
    if (support_find(p, node, at, GRAPH_SUSPECT, &found, &p->deletion->work)) clear_fact(p, node, at, found.reason, found.rank);
}

/* The rank of what a use does for a key; GRAPH_SUSPECT: it may do nothing. */
static uint64_t rank_of_use(const pta *p, uint32_t use, pta_key key)
{
    uint64_t life = p->instances.data[p->uses.data[use].instance].rank;
    uint32_t pointer = key ? graph_pointer_node(p, use) : NO_NODE;
    if (pointer == NO_NODE) return life;
    const pta_set *set = &p->nodes.data[pointer].set;
    uint32_t at = set_find(set, key);
    return at == UINT32_MAX ? GRAPH_SUSPECT : later(life, set->ranks[at]);
}

static void clear_edge(pta *p, uint32_t edge)
{
    graph_edge *e = &p->edges.data[edge];
    if (!is_suspect(e->rank)) return;
    uint64_t reasons = e->use == UINT32_MAX ? p->nodes.data[e->from].set.ranks[0] : rank_of_use(p, e->use, e->key);
    if (is_suspect(reasons)) return;
    e->rank = rank_after(p, reasons);
    const pta_set *to = &p->nodes.data[e->to].set;
    for (uint32_t i = 0; i < to->len; i++) {
        if (!is_suspect(to->ranks[i])) continue;
        uint64_t rank = support_edge(p, e, to->keys[i]);
        if (!is_suspect(rank))
            clear_fact(p, e->to, i, edge, rank);
        else if (to->reasons[i] == SET_NO_REASON)
            review(p, e->to, i);
    }
}

static void clear_calls(pta *p, uint32_t use, pta_key key)
{
    call_list *calls = &p->deletion->calls;
    graph_calls(p, use, key, calls);
    for (uint32_t i = 0; i < calls->len; i++) {
        graph_instance *callee = &p->instances.data[calls->data[i].callee];
        call_in *call = &callee->callers.data[calls->data[i].at];
        uint64_t reasons = is_suspect(call->rank) ? rank_of_use(p, use, key) : GRAPH_SUSPECT;
        if (is_suspect(reasons)) continue;
        call->rank = rank_after(p, reasons);
        if (!callee->live || !is_suspect(callee->rank)) continue;
        callee->rank = rank_after(p, call->rank);
        vec_push(&p->deletion->revived, calls->data[i].callee);
    }
}

/* What a fact that has been cleared brings over an edge. */
static void deliver(pta *p, uint32_t edge, pta_key key, uint64_t rank)
{
    const graph_edge *e = &p->edges.data[edge];
    pta_key brought = e->label ? graph_transfer(p, key, &p->labels.data[e->label]) : key;
    if (!brought || is_suspect(e->rank)) return;
    const pta_set *to = &p->nodes.data[e->to].set;
    uint32_t object = key_object(brought);
    for (uint32_t i = set_group(to, object); i < to->len && key_object(to->keys[i]) == object; i++) {
        if (!is_suspect(to->ranks[i])) continue;
        if (to->keys[i] == brought)
            clear_fact(p, e->to, i, edge, later(rank, e->rank));
        else if (to->reasons[i] == SET_NO_REASON &&
                 offset_covers(key_offset(to->keys[i]), key_offset(brought), p->shapes.data[object]))
            review(p, e->to, i);
    }
}

static void spread_fact(pta *p, fact_place fact)
{
    const graph_node *n = &p->nodes.data[fact.node];
    pta_key key = n->set.keys[fact.at];
    uint64_t rank = n->set.ranks[fact.at];
    if (key == set_wild_key() && n->tells) clear_edge(p, n->tells - 1);
    if (set_is_loose(key) && set_is_wild(&n->set)) review(p, fact.node, 0);
    p->deletion->work += n->out.len;
    for (uint32_t i = 0; i < n->out.len; i++)
        deliver(p, n->out.data[i], key, rank);
    for (uint32_t u = 0; u < n->uses.len; u++) {
        for (uint32_t e = p->uses.data[n->uses.data[u]].edges; e != NO_EDGE; e = p->edges.data[e].next)
            if (p->edges.data[e].key == key) clear_edge(p, e);
        clear_calls(p, n->uses.data[u], key);
    }
}

static void spread_life(pta *p, uint32_t instance)
{
    const graph_instance *i = &p->instances.data[instance];
    uint32_t count = p->program->funcs.data[i->func].stmts.len;
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t e = p->uses.data[graph_use_of(i, s)].edges; e != NO_EDGE; e = p->edges.data[e].next)
            clear_edge(p, e);
    each_call(p, instance, clear_calls);
}

static void review_life(pta *p, uint32_t instance)
{
    graph_instance *i = &p->instances.data[instance];
    if (!is_suspect(i->rank)) return;
    p->deletion->work += i->callers.len;
    for (uint32_t c = 0; c < i->callers.len; c++) {
        if (is_suspect(i->callers.data[c].rank)) continue;
        i->rank = rank_after(p, i->callers.data[c].rank);
        vec_push(&p->deletion->revived, instance);
        return;
    }
}

/* Tells of all that has been cleared. */
static void spread(pta *p)
{
    struct deletion *d = p->deletion;
    for (uint32_t facts = 0, lives = 0; d->work < d->most && (facts < d->cleared.len || lives < d->revived.len);) { /* in that order: proofs stay short */
        if (lives < d->revived.len)
            spread_life(p, d->revived.data[lives++]);
        else
            spread_fact(p, d->cleared.data[facts++]);
    }
    vec_clear(&d->cleared);
    vec_clear(&d->revived);
}

/* Of the wilderness. */
static void review_listed(pta *p, uint32_t at)
{
    const pta_set *listed = &p->nodes.data[p->wilderness].set;
    if (!is_suspect(listed->ranks[at])) return;
    support found = support_listed(p, key_object(listed->keys[at]), &p->deletion->work);
    if (!is_suspect(found.rank)) clear_fact(p, p->wilderness, at, found.reason, found.rank);
}

void suspect_clear(pta *p)
{
    struct deletion *d = p->deletion;
    for (uint32_t i = 0; i < d->waning.len; i++)
        review_life(p, d->waning.data[i]);
    for (uint32_t i = 0; i < d->suspects.len; i++) {
        const suspect *s = &d->suspects.data[i];
        if (!s->hope) continue;
        uint32_t at = set_find(&p->nodes.data[s->node].set, s->key);
        if (s->node == p->wilderness)
            review_listed(p, at);
        else
            review(p, s->node, at);
    }
    spread(p);
    while (p->now <= d->youngest) /* what comes is younger */
        graph_next_step(p);
}
