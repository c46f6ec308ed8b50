/* Support that is younger than what it is to support. When nothing older supports a fact any more, something younger
 * often does that has nothing to do with it: it was only found later. To suspect the fact, and all that follows from
 * it, and to clear them again (suspect.c) costs as much as there are of them, which may be half of the result.
 *
 * So the proof of what is younger is followed back first, by the reasons that are noted, as far as it is not older than
 * the fact: what is older cannot depend on it. If the fact is not met on the way, the ranks of that proof are lowered,
 * each to just above what it rests on, below that of the fact, as one reorders a graph whose topological order is kept
 * up to date. To lower a rank harms nobody: whatever follows from it stays younger.
 *
 * That takes few steps or it is given up, as it may well be that everything which is younger depends on the fact. */
#include "static/pointer/delete.h"

enum { FACT, EDGE, LIFE, CALL };
enum { CALLERS = 4, DEEPEST = 4000 };

typedef struct {
    uint8_t kind;
    uint32_t of, at; /* node and place in its set; edge; instance; instance and which of its callers */
    uint64_t rank;   /* that it may have; GRAPH_SUSPECT: unknown, or it depends on the fact */
} premise;

typedef struct {
    const pta *p;
    uint8_t kind; /* what is to be supported: a fact, or a life */
    uint32_t of, at;
    uint64_t below; /* its rank */
    uint64_t left;  /* steps */
    uint32_t depth;
    map64 known;           /* number in `premises` */
    VEC(premise) premises; /* what a premise rests on comes before it, but for what is unknown */
} search;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t after(const search *s, uint64_t a, uint64_t b)
{
    uint64_t rank = later(a, b);
    return rank < GRAPH_SUSPECT && rank + 1 < s->below ? rank + 1 : GRAPH_SUSPECT;
}

static uint64_t rank_of_fact(search *s, uint32_t node, uint32_t at);
static uint64_t rank_of_life(search *s, uint32_t instance);

/* Whether a rank has to be found; `*rank` when not. */
static bool is_open(search *s, uint8_t kind, uint32_t of, uint32_t at, uint64_t *rank)
{
    if (*rank < s->below || *rank >= GRAPH_SUSPECT) return false;
    bool itself = kind == s->kind && of == s->of && at == s->at;
    uint64_t name = ((uint64_t)kind << 60) ^ ((uint64_t)of << 28) ^ at;
    uint32_t known = itself ? MAP_NONE : map_get(&s->known, name);
    *rank = known == MAP_NONE ? GRAPH_SUSPECT : s->premises.data[known].rank;
    if (itself || known != MAP_NONE || !s->left || s->depth >= DEEPEST || at >> 28) return false;
    s->left--;
    return true;
}

static uint64_t note(search *s, uint8_t kind, uint32_t of, uint32_t at, uint64_t rank)
{
    uint64_t name = ((uint64_t)kind << 60) ^ ((uint64_t)of << 28) ^ at;
    *map_at(&s->known, name) = s->premises.len;
    vec_push(&s->premises, (premise){kind, of, at, rank});
    return rank;
}

/* Of what a use does for a key; `young`: what it rests on is not younger than that. */
static uint64_t rank_of_use(search *s, uint32_t use, pta_key key, uint64_t young)
{
    const pta *p = s->p;
    uint32_t instance = p->uses.data[use].instance, pointer = key ? graph_pointer_node(p, use) : NO_NODE;
    if (p->instances.data[instance].rank > young) return GRAPH_SUSPECT;
    uint64_t life = rank_of_life(s, instance);
    if (pointer == NO_NODE || life >= GRAPH_SUSPECT) return life;
    uint32_t at = set_find(&p->nodes.data[pointer].set, key);
    if (at == UINT32_MAX || p->nodes.data[pointer].set.ranks[at] > young) return GRAPH_SUSPECT;
    return later(life, rank_of_fact(s, pointer, at));
}

static uint64_t rank_of_call(search *s, uint32_t instance, uint32_t at)
{
    const call_in *call = &s->p->instances.data[instance].callers.data[at];
    uint64_t rank = call->rank;
    if (!is_open(s, CALL, instance, at, &rank)) return rank;
    rank = rank_of_use(s, call->use, call->key, call->rank);
    return note(s, CALL, instance, at, after(s, rank, 0));
}

static uint64_t rank_of_life(search *s, uint32_t instance)
{
    const graph_instance *i = &s->p->instances.data[instance];
    uint64_t rank = i->rank, found = GRAPH_SUSPECT;
    if (!is_open(s, LIFE, instance, 0, &rank)) return rank;
    s->depth++;
    for (uint32_t c = 0, tried = 0; c < i->callers.len && found >= GRAPH_SUSPECT && tried < CALLERS; c++) {
        if (i->callers.data[c].rank >= i->rank) continue;
        found = after(s, rank_of_call(s, instance, c), 0);
        tried++;
    }
    s->depth--;
    return note(s, LIFE, instance, 0, found);
}

static uint64_t rank_of_edge(search *s, uint32_t edge)
{
    const graph_edge *e = &s->p->edges.data[edge];
    uint64_t rank = e->rank;
    if (!is_open(s, EDGE, edge, 0, &rank)) return rank;
    s->depth++;
    if (e->use != UINT32_MAX)
        rank = after(s, rank_of_use(s, e->use, e->key, e->rank), 0);
    else if (e->from != NO_NODE && s->p->nodes.data[e->from].tells == edge + 1) /* for SET_WILD, which comes first */
        rank = s->p->nodes.data[e->from].set.ranks[0] <= e->rank ? after(s, rank_of_fact(s, e->from, 0), 0)
                                                                 : GRAPH_SUSPECT;
    else
        rank = after(s, 0, 0); /* between words: it is there for no reason */
    s->depth--;
    return note(s, EDGE, edge, 0, rank);
}

/* Of what an edge makes into a key; of facts older than `young`. */
static uint64_t rank_over(search *s, uint32_t edge, pta_key key, uint64_t young)
{
    const pta *p = s->p;
    const graph_edge *e = &p->edges.data[edge];
    if (e->rank >= young) return GRAPH_SUSPECT;
    if (e->from == NO_NODE) return e->key == key ? rank_of_edge(s, edge) : GRAPH_SUSPECT;
    const pta_set *set = &p->nodes.data[e->from].set;
    uint32_t object = key_object(key);
    for (uint32_t i = set_group(set, object); i < set->len && key_object(set->keys[i]) == object; i++) {
        if (set->ranks[i] >= young ||
            (e->label ? graph_transfer(p, set->keys[i], &p->labels.data[e->label]) : set->keys[i]) != key)
            continue;
        uint64_t rank = rank_of_edge(s, edge);
        if (rank >= GRAPH_SUSPECT) return rank;
        rank = later(rank, rank_of_fact(s, e->from, i));
        if (rank < GRAPH_SUSPECT) return rank;
    }
    return GRAPH_SUSPECT;
}

/* Of the objects that make a set wild by itself: as many as it takes; of facts not younger than `young`. */
static uint64_t rank_by_itself(search *s, uint32_t node, uint64_t young)
{
    const pta_set *set = &s->p->nodes.data[node].set;
    uint32_t most = set_wild_at(set, graph_world(s->p)), enough = 0, left = set->loose, last = 0;
    uint64_t rank = 0;
    for (uint32_t i = 0; i < set->len && enough <= most && enough + left > most; i++) {
        if (!set_is_loose(set->keys[i]) || key_object(set->keys[i]) == last) continue;
        last = key_object(set->keys[i]);
        left--;
        uint64_t one = set->ranks[i] <= young ? rank_of_fact(s, node, i) : GRAPH_SUSPECT;
        if (one >= GRAPH_SUSPECT) continue;
        rank = later(rank, one);
        enough++;
    }
    return enough > most ? rank : GRAPH_SUSPECT;
}

/* Of a class that is the closure of what several neighbours bring; of facts older than `young`. */
static uint64_t rank_of_closure(search *s, uint32_t node, pta_key class, uint64_t young)
{
    const pta *p = s->p;
    const id_list *in = &p->nodes.data[node].in;
    key_list keys = {0}, added = {0};
    pta_set all = {0};
    uint64_t rank = 0;
    uint32_t object = key_object(class);
    for (uint32_t i = 0; i < in->len && s->left; i++) {
        const graph_edge *e = &p->edges.data[in->data[i]];
        const pta_set *set = e->from == NO_NODE ? NULL : &p->nodes.data[e->from].set;
        if (e->rank >= young || (!set && key_object(e->key) != object)) continue;
        for (uint32_t k = set ? set_group(set, object) : 0; k < (set ? set->len : 1); k++) {
            if (set && key_object(set->keys[k]) != object) break;
            pta_key key = !set       ? e->key
                          : e->label ? graph_transfer(p, set->keys[k], &p->labels.data[e->label])
                                     : set->keys[k];
            if (!key || (set && set->ranks[k] >= young)) continue;
            uint64_t one = later(rank_of_edge(s, in->data[i]), set ? rank_of_fact(s, e->from, k) : 0);
            if (one >= GRAPH_SUSPECT) continue;
            rank = later(rank, one);
            vec_push(&keys, key);
        }
    }
    keys_sort(keys.data, &keys.len);
    set_add(&all, keys.data, keys.len, 0, graph_world(p), &added);
    if (set_find(&all, class) == UINT32_MAX) rank = GRAPH_SUSPECT;
    vec_free(&keys);
    vec_free(&added);
    set_free(&all);
    return rank;
}

static uint64_t rank_of_fact(search *s, uint32_t node, uint32_t at)
{
    const pta_set *set = &s->p->nodes.data[node].set;
    uint64_t rank = set->ranks[at];
    if (!is_open(s, FACT, node, at, &rank)) return rank;
    uint32_t reason = set->reasons[at];
    s->depth++;
    if (reason != SET_NO_REASON)
        rank =
            s->p->edges.data[reason].to == node ? rank_over(s, reason, set->keys[at], set->ranks[at]) : GRAPH_SUSPECT;
    else if (set->keys[at] == set_wild_key())
        rank = rank_by_itself(s, node, set->ranks[at]);
    else
        rank = rank_of_closure(s, node, set->keys[at], set->ranks[at]);
    s->depth--;
    return note(s, FACT, node, at, after(s, rank, 0));
}

/* Everything that was found, whether it is part of the proof or not: it rests on nothing that is younger. */
static void lower(pta *p, const search *s)
{
    for (uint32_t i = 0; i < s->premises.len; i++) {
        const premise *a = &s->premises.data[i];
        if (a->rank >= GRAPH_SUSPECT) continue;
        switch (a->kind) {
        case FACT:
            p->nodes.data[a->of].set.ranks[a->at] = a->rank;
            break;
        case EDGE:
            p->edges.data[a->of].rank = a->rank;
            break;
        case LIFE:
            p->instances.data[a->of].rank = a->rank;
            break;
        case CALL:
            p->instances.data[a->of].callers.data[a->at].rank = a->rank;
            break;
        }
    }
}

static search begin(const pta *p, uint8_t kind, uint32_t of, uint32_t at, uint64_t rank)
{
    return (search){.p = p, .kind = kind, .of = of, .at = at, .below = rank, .left = p->deletion->repairs};
}

static bool end(pta *p, search *s, bool found)
{
    if (found) lower(p, s);
    p->deletion->repairs = s->left;
    map_free(&s->known);
    vec_free(&s->premises);
    return found;
}

bool repair_fact(pta *p, uint32_t node, uint32_t at, uint32_t over)
{
    pta_set *set = &p->nodes.data[node].set;
    const id_list *in = &p->nodes.data[node].in;
    search s = begin(p, FACT, node, at, set->ranks[at]);
    pta_key key = set->keys[at];
    bool found = false;
    for (uint32_t i = 0; i < (over == NO_EDGE ? in->len : 1) && !found && s.left; i++) {
        uint32_t edge = over == NO_EDGE ? in->data[i] : over;
        s.left--;
        found = rank_over(&s, edge, key, GRAPH_SUSPECT) < GRAPH_SUSPECT;
        if (found) set->reasons[at] = edge;
    }
    if (!found && s.left && over == NO_EDGE && !offset_is_single(key_offset(key))) {
        uint64_t rank = key == set_wild_key() ? rank_by_itself(&s, node, GRAPH_SUSPECT - 1)
                                              : rank_of_closure(&s, node, key, GRAPH_SUSPECT);
        found = rank < GRAPH_SUSPECT;
        if (found) set->reasons[at] = SET_NO_REASON;
    }
    return end(p, &s, found);
}

bool repair_life(pta *p, uint32_t instance)
{
    const graph_instance *i = &p->instances.data[instance];
    search s = begin(p, LIFE, instance, 0, i->rank);
    bool found = false;
    for (uint32_t c = 0; c < i->callers.len && !found && s.left; c++) {
        s.left--;
        found = rank_of_call(&s, instance, c) < GRAPH_SUSPECT;
    }
    return end(p, &s, found);
}
