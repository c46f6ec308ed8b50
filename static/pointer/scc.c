/* Components: nodes on a cycle of edges without label have equal sets and become one. Levels are the longest paths in the
 * graph of all edges, its cycles seen as one. Only for a result that nothing will be deleted from (pta_options.once).
 *
 * Where statements come and go, cycles stay as they are, and no pass over the graph looks for them. The dissertation splits and
 * merges components (3.2.1), D4 too (3.1), so that the test of incoming neighbours holds: on a cycle a fact supports itself.
 * Here ranks tell that (delete.c), cycles of offsets included, and:
 *   - an edge that closes a cycle sends what its members lack, once to each of them; what the merged cycle is modulo the gcd of its
 *     offsets is what their sets are closed to (offset.h);
 *   - one that goes puts those facts into doubt whose reason it was, and what hangs on them; they and their incoming neighbours are
 *     looked at once (suspect.c), which is what it costs to tell whether a component splits and into what.
 * A merged component would have one rank for a key that came to some of its members over younger edges, which depend on facts
 * here: deletion could no longer tell what supports itself.
 *
 * What it would gain, without contexts, -O2 -g: of memcached's nodes 3 % are on such cycles, with 19 % of the facts, of redis' 8 %
 * and 26 %, of sqlite3's library 29 % and 37 %. Nearly all of them are one cycle of wild pointers, whose sets are SET_WILD and a few
 * more. From scratch, collapsing it makes lua twice as fast, redis and sqlite3's library no different beyond a
 * tenth or so, and memcached slower by two fifths. */
#include "static/pointer/graph.h"

typedef struct { /* the edges between components, in one array: a pass over lists of all nodes waits for memory most of the time */
    uint32_t *first; /* per node: its stretch of `to`, of a component's first node */
    uint32_t *to;
} edge_table;

/* What others leave to SET_WILD the tame ones list: their sets are not those of others, even on a cycle. */
static bool is_tame(const pta *p, uint32_t component)
{
    return p->nodes.data[component].set.tame;
}

/* Of edges without a label, between components that may become one; or of all. */
static edge_table table_edges(const pta *p, bool labels)
{
    uint32_t n = p->nodes.len, *component = base_alloc((n + 1) * sizeof *component), total = 0;
    edge_table t = {.first = base_alloc_zero(n + 2, sizeof *t.first)};
    for (uint32_t i = 0; i < n; i++)
        component[i] = p->nodes.data[i].component;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < p->edges.len; i++) {
            const graph_edge *e = &p->edges.data[i];
            if (e->to == NO_NODE || e->from == NO_NODE || (e->label && !labels)) continue;
            uint32_t from = component[e->from], to = component[e->to];
            if (from == to || (!labels && (is_tame(p, from) || is_tame(p, to)))) continue;
            if (pass)
                t.to[t.first[from + 1]++] = to;
            else
                t.first[from + 2]++;
        }
        for (uint32_t i = 2; !pass && i < n + 2; i++)
            total = t.first[i] += t.first[i - 1];
        if (!pass) t.to = base_alloc(((size_t)total + 1) * sizeof *t.to);
    }
    free(component);
    return t;
}

typedef struct {
    edge_table edges;
    uint32_t *index, *low, *order; /* per component: order of visit, ...; order: components, successors first */
    uint32_t *group;               /* per component: number of its strongly connected group */
    uint32_t next, groups, ordered;
    VEC(uint32_t) stack;
    struct { struct visit { uint32_t component, edge; } *data; uint32_t len, cap; } visits;
} tarjan;

static void enter(tarjan *t, uint32_t component)
{
    t->index[component] = t->low[component] = ++t->next;
    vec_push(&t->stack, component);
    vec_push(&t->visits, (struct visit){component, t->edges.first[component]});
}

static void visit(tarjan *t, uint32_t root)
{
    enter(t, root);
    while (t->visits.len) {
        struct visit *v = &t->visits.data[t->visits.len - 1];
        uint32_t c = v->component;
        if (v->edge < t->edges.first[c + 1]) {
            uint32_t to = t->edges.to[v->edge++];
            if (!t->index[to])
                enter(t, to);
            else if (t->group[to] == UINT32_MAX && t->index[to] < t->low[c])
                t->low[c] = t->index[to];
            continue;
        }
        t->visits.len--;
        if (t->visits.len) {
            uint32_t up = t->visits.data[t->visits.len - 1].component;
            if (t->low[c] < t->low[up]) t->low[up] = t->low[c];
        }
        if (t->low[c] != t->index[c]) continue;
        uint32_t member;
        do {
            member = t->stack.data[--t->stack.len];
            t->group[member] = t->groups;
            t->order[t->ordered++] = member;
        } while (member != c);
        t->groups++;
    }
}

static tarjan run_tarjan(const pta *p, bool labels)
{
    uint32_t n = p->nodes.len;
    tarjan t = {.edges = table_edges(p, labels)};
    t.index = base_alloc_zero(n, sizeof *t.index);
    t.low = base_alloc(n * sizeof *t.low);
    t.order = base_alloc(n * sizeof *t.order);
    t.group = base_alloc(n * sizeof *t.group);
    memset(t.group, 0xff, n * sizeof *t.group);
    for (uint32_t i = 0; i < n; i++)
        if (p->nodes.data[i].component == i && !t.index[i]) visit(&t, i);
    return t;
}

static void free_tarjan(tarjan *t)
{
    free(t->edges.first);
    free(t->edges.to);
    free(t->index);
    free(t->low);
    free(t->order);
    free(t->group);
    vec_free(&t->stack);
    vec_free(&t->visits);
}

/* Uses of a component that is about to be merged see what they have not seen yet of `all`, of its first `count` keys. */
static void catch_up(pta *p, uint32_t component, const pta_set *all, uint32_t count)
{
    graph_node *c = &p->nodes.data[component];
    if (!c->used) return;
    keys_sort(c->fresh.data, &c->fresh.len);
    key_list unseen = {0};
    for (uint32_t i = 0, f = 0, s = 0; i < count; i++) {
        while (f < c->fresh.len && c->fresh.data[f] < all->keys[i])
            f++;
        while (s < c->set.len && c->set.keys[s] < all->keys[i])
            s++;
        bool known = s < c->set.len && c->set.keys[s] == all->keys[i];
        bool fresh = f < c->fresh.len && c->fresh.data[f] == all->keys[i];
        if (!known || fresh) vec_push(&unseen, all->keys[i]);
    }
    uint32_t member = component;
    do {
        const graph_node *m = &p->nodes.data[member];
        for (uint32_t u = 0; u < m->uses.len; u++)
            for (uint32_t i = 0; i < unseen.len; i++)
                vec_push(&p->pending, (use_key){.use = m->uses.data[u], .key = unseen.data[i]});
        member = m->next;
    } while (member != component);
    vec_free(&unseen);
}

/* The closed union of their sets, without what lies dormant in it. */
static pta_set join_sets(const pta *p, const uint32_t *components, uint32_t count)
{
    pta_set all = {0};
    key_list keys = {0}, added = {0};
    for (uint32_t i = 0; i < count; i++)
        all.prone |= p->nodes.data[components[i]].set.prone;
    for (uint32_t i = 0; i < count; i++) {
        const pta_set *set = &p->nodes.data[components[i]].set;
        vec_reserve(&keys, keys.len + set->len);
        if (set->len) memcpy(keys.data + keys.len, set->keys, set->len * sizeof *set->keys);
        keys.len += set->len;
        if (keys.len > 1 << 16 && keys.len > 2 * (keys.cap / 3)) keys_sort(keys.data, &keys.len); /* which drops what repeats */
    }
    keys_sort(keys.data, &keys.len);
    set_add(&all, keys.data, keys.len, p->now, graph_world(p), &added);
    vec_free(&keys);
    vec_free(&added);
    return all;
}

/* What the successors of some of them have not seen: what not all of them have, and their news. */
static key_list join_deltas(const pta *p, const uint32_t *components, uint32_t count, const pta_set *all)
{
    key_list delta = {0};
    uint32_t *have = base_alloc_zero(all->len + 1, sizeof *have);
    for (uint32_t i = 0; i < count; i++) {
        const graph_node *c = &p->nodes.data[components[i]];
        for (uint32_t k = 0; k < c->set.len; k++) {
            uint32_t at = set_find(all, c->set.keys[k]);
            if (at != UINT32_MAX) have[at]++;
        }
        for (uint32_t k = 0; k < c->delta.len; k++)
            vec_push(&delta, c->delta.data[k]);
    }
    for (uint32_t k = 0; k < all->len; k++)
        if (have[k] < count) vec_push(&delta, all->keys[k]);
    free(have);
    keys_sort(delta.data, &delta.len);
    return delta;
}

/* Merges components into the first of them. */
static void merge(pta *p, const uint32_t *components, uint32_t count)
{
    pta_set all = join_sets(p, components, count);
    key_list delta = join_deltas(p, components, count, &all);
    bool used = false, word = true, read = false;
    uint32_t tells = 0;
    for (uint32_t i = 0; i < count; i++) {
        used |= p->nodes.data[components[i]].used;
        if (!tells) tells = p->nodes.data[components[i]].tells;
        word &= p->nodes.data[components[i]].word;
        read |= p->nodes.data[components[i]].read;
    }
    /* what wild pointers have is told to the wilderness next: it lies dormant then */
    bool told = set_is_wild(&all) && (!word || read);
    uint32_t awake = told ? set_group(&all, SET_EXTERNAL_OBJECT + 1) : all.len;
    for (uint32_t i = 0; i < count; i++)
        catch_up(p, components[i], &all, awake);
    uint32_t first = components[0];
    for (uint32_t i = 0; i < count; i++) {
        graph_node *c = &p->nodes.data[components[i]];
        set_free(&c->set);
        vec_free(&c->delta);
        vec_free(&c->fresh);
        if (!i) continue;
        uint32_t member = components[i];
        do {
            p->nodes.data[member].component = first;
            member = p->nodes.data[member].next;
        } while (member != components[i]);
        uint32_t next = p->nodes.data[first].next; /* join the rings */
        p->nodes.data[first].next = c->next;
        c->next = next;
    }
    graph_node *c = &p->nodes.data[first];
    c->set = all;
    c->delta = delta;
    c->used = used;
    c->tells = tells;
    c->word = word;
    c->read = read;
}

static void drop_edge(pta *p, uint32_t edge)
{
    p->edges.data[edge].to = NO_NODE;
    vec_push(&p->free_edges, edge);
    p->live_edges--;
}

/* Marks the edges of uses whose pointer is wild now that are there for keys which lie dormant: others bring what they bring. Only what
 * the loader stores is not stored by others: it writes constants. */
static bool *mark_dormant(const pta *p)
{
    bool *dormant = base_alloc_zero(p->edges.len + 1, sizeof *dormant);
    uint32_t *wild = base_alloc_zero(p->uses.len + 1, sizeof *wild); /* per use: the component of its pointer, + 1 */
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const graph_node *n = &p->nodes.data[i];
        if (!n->uses.len || !set_is_wild(&p->nodes.data[n->component].set)) continue;
        for (uint32_t u = 0; u < n->uses.len; u++)
            wild[n->uses.data[u]] = n->component + 1;
    }
    for (uint32_t i = 0; i < p->edges.len; i++) {
        const graph_edge *e = &p->edges.data[i];
        if (e->to == NO_NODE || e->use == UINT32_MAX || !e->key || !wild[e->use]) continue;
        if (graph_stmt(p, e->use)->kind == PTA_CALL) continue;
        if (p->program->funcs.data[p->instances.data[p->uses.data[e->use].instance].func].loader) continue;
        dormant[i] = set_covers(&p->nodes.data[wild[e->use] - 1].set, e->key, graph_world(p));
    }
    free(wild);
    return dormant;
}

/* Takes the edges away that bring nothing more: inside of a component, beside others between the same two, and dormant ones. */
static void drop_edges(pta *p)
{
    bool *dormant = mark_dormant(p);
    uint32_t *reached = base_alloc_zero(p->nodes.len, sizeof *reached); /* per component: from where it is, + 1 */
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        if (p->nodes.data[i].component != i) continue;
        reached[i] = i + 1;
        uint32_t member = i;
        do {
            id_list *out = &p->nodes.data[member].out;
            uint32_t kept = 0;
            for (uint32_t k = 0; k < out->len; k++) {
                const graph_edge *e = &p->edges.data[out->data[k]];
                uint32_t to = graph_component(p, e->to);
                if (dormant[out->data[k]] || (!e->label && reached[to] == i + 1)) {
                    drop_edge(p, out->data[k]);
                    continue;
                }
                if (!e->label) reached[to] = i + 1;
                out->data[kept++] = out->data[k];
            }
            out->len = kept;
            member = p->nodes.data[member].next;
        } while (member != i);
    }
    free(reached);
    free(dormant);
}

static void number_levels(pta *p)
{
    tarjan t = run_tarjan(p, true);
    uint32_t *level = base_alloc_zero(t.groups + 1, sizeof *level);
    for (uint32_t i = t.ordered; i-- > 0;) { /* predecessors first */
        uint32_t component = t.order[i], group = t.group[component];
        for (uint32_t k = t.edges.first[component]; k < t.edges.first[component + 1]; k++) {
            uint32_t to = t.group[t.edges.to[k]];
            if (to != group && level[to] <= level[group]) level[to] = level[group] + 1;
        }
    }
    for (uint32_t i = 0; i < t.ordered; i++)
        p->nodes.data[t.order[i]].level = level[t.group[t.order[i]]];
    free(level);
    free_tarjan(&t);
}

void scc_collapse(pta *p)
{
    for (uint32_t l = 0; l < p->levels.len; l++) {
        for (uint32_t i = 0; i < p->levels.data[l].len; i++)
            p->nodes.data[p->levels.data[l].data[i]].dirty = false;
        vec_clear(&p->levels.data[l]);
    }
    graph_next_step(p);
    tarjan t = run_tarjan(p, false);
    for (uint32_t i = 0; i < t.ordered;) {
        uint32_t end = i + 1;
        while (end < t.ordered && t.group[t.order[end]] == t.group[t.order[i]])
            end++;
        if (end - i > 1) merge(p, t.order + i, end - i);
        i = end;
    }
    free_tarjan(&t);
    drop_edges(p);
    number_levels(p);
    p->lowest = 0;
    id_list woken = p->woken;
    p->woken = (id_list){0};
    for (uint32_t i = 0; i < woken.len; i++)
        p->nodes.data[woken.data[i]].woken = false;
    vec_free(&woken);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        if (p->nodes.data[i].component != i) continue;
        if (p->nodes.data[i].delta.len) graph_mark_dirty(p, i);
        if (p->nodes.data[i].fresh.len) graph_mark_woken(p, i);
    }
}
