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

typedef struct {
    uint32_t *index, *low, *order; /* per component: order of visit, ...; order: components, successors first */
    uint32_t *group;               /* per component: number of its strongly connected group */
    uint32_t next, groups, ordered;
    bool labels; /* edges with a label count too */
    VEC(uint32_t) stack;
    struct { struct visit { uint32_t component, member, edge; } *data; uint32_t len, cap; } visits;
} tarjan;

/* What others leave to SET_WILD it lists: its set is not theirs, even on a cycle. */
static bool is_tame(const pta *p, uint32_t component)
{
    return p->nodes.data[component].set.tame;
}

static bool next_successor(const pta *p, const tarjan *t, struct visit *v, uint32_t *to)
{
    for (;;) {
        const graph_node *m = &p->nodes.data[v->member];
        while (v->edge < m->out.len) {
            const graph_edge *e = &p->edges.data[m->out.data[v->edge++]];
            if (e->label && !t->labels) continue;
            *to = graph_component(p, e->to);
            if (*to == v->component || (!t->labels && (is_tame(p, *to) || is_tame(p, v->component)))) continue;
            return true;
        }
        if (m->next == v->component) return false;
        v->member = m->next;
        v->edge = 0;
    }
}

static void visit(const pta *p, tarjan *t, uint32_t root)
{
    vec_push(&t->visits, (struct visit){root, root, 0});
    t->index[root] = t->low[root] = ++t->next;
    vec_push(&t->stack, root);
    while (t->visits.len) {
        struct visit *v = &t->visits.data[t->visits.len - 1];
        uint32_t c = v->component, to;
        if (next_successor(p, t, v, &to)) {
            if (!t->index[to]) {
                t->index[to] = t->low[to] = ++t->next;
                vec_push(&t->stack, to);
                vec_push(&t->visits, (struct visit){to, to, 0});
            } else if (t->group[to] == UINT32_MAX && t->index[to] < t->low[c]) {
                t->low[c] = t->index[to];
            }
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
    tarjan t = {.labels = labels};
    t.index = base_alloc_zero(n, sizeof *t.index);
    t.low = base_alloc(n * sizeof *t.low);
    t.order = base_alloc(n * sizeof *t.order);
    t.group = base_alloc(n * sizeof *t.group);
    memset(t.group, 0xff, n * sizeof *t.group);
    for (uint32_t i = 0; i < n; i++)
        if (p->nodes.data[i].component == i && !t.index[i]) visit(p, &t, i);
    return t;
}

static void free_tarjan(tarjan *t)
{
    free(t->index);
    free(t->low);
    free(t->order);
    free(t->group);
    vec_free(&t->stack);
    vec_free(&t->visits);
}

/* Uses of a component that is about to be merged see what they have not seen yet of `all`. */
static void catch_up(pta *p, uint32_t component, const pta_set *all)
{
    graph_node *c = &p->nodes.data[component];
    if (!c->used) return;
    uint32_t fresh = c->fresh.len;
    keys_sort(c->fresh.data, &fresh);
    uint32_t member = component;
    do {
        const graph_node *m = &p->nodes.data[member];
        for (uint32_t u = 0; u < m->uses.len; u++) {
            uint32_t f = 0, s = 0;
            for (uint32_t i = 0; i < all->len; i++) {
                while (f < fresh && c->fresh.data[f] < all->keys[i])
                    f++;
                while (s < c->set.len && c->set.keys[s] < all->keys[i])
                    s++;
                bool known = s < c->set.len && c->set.keys[s] == all->keys[i];
                bool unseen = f < fresh && c->fresh.data[f] == all->keys[i];
                if (!known || unseen) vec_push(&p->pending, (use_key){.use = m->uses.data[u], .key = all->keys[i]});
            }
        }
        member = m->next;
    } while (member != component);
}

/* The union with the older rank of each key: that one was derived from outside of the cycle. Where it is not closed, a class
 * closes it, as young as the step at hand. */
static void join_sets(pta_set *to, const pta_set *from, uint64_t rank, set_world world)
{
    pta_set out = {.cap = to->len + from->len};
    out.keys = base_alloc((size_t)out.cap * sizeof *out.keys);
    out.ranks = base_alloc((size_t)out.cap * sizeof *out.ranks);
    uint32_t a = 0, b = 0;
    while (a < to->len || b < from->len) {
        bool has_a = a < to->len && (b >= from->len || to->keys[a] <= from->keys[b]);
        bool has_b = b < from->len && (a >= to->len || from->keys[b] <= to->keys[a]);
        out.keys[out.len] = has_a ? to->keys[a] : from->keys[b];
        uint64_t oldest = has_a ? to->ranks[a] : UINT64_MAX;
        if (has_b && from->ranks[b] < oldest) oldest = from->ranks[b];
        out.ranks[out.len++] = oldest;
        a += has_a;
        b += has_b;
    }
    key_list close = {0}, added = {0};
    for (uint32_t i = 0; i < out.len;) {
        uint32_t object = key_object(out.keys[i]), end = i;
        while (end < out.len && key_object(out.keys[end]) == object)
            end++;
        offset_t cover = set_closure(out.keys + i, end - i, world.shapes[object]);
        if (cover && set_find(&out, key_make(object, cover)) == UINT32_MAX) vec_push(&close, key_make(object, cover));
        i = end;
    }
    free(to->keys);
    free(to->ranks);
    *to = out;
    set_add(to, close.data, close.len, rank, world, &added);
    vec_free(&close);
    vec_free(&added);
    set_count(to);
    set_add(to, NULL, 0, rank, world, &added); /* wild by now, perhaps */
    vec_free(&added);
}

static bool is_same(const pta_set *a, const pta_set *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->keys, b->keys, a->len * sizeof *a->keys));
}

/* Merges components into the first of them. */
static void merge(pta *p, const uint32_t *components, uint32_t count)
{
    pta_set all = {0};
    for (uint32_t i = 0; i < count; i++)
        join_sets(&all, &p->nodes.data[components[i]].set, p->now, graph_world(p));
    bool same = true, used = false, word = true;
    uint32_t tells = 0;
    for (uint32_t i = 0; i < count; i++) {
        same &= is_same(&p->nodes.data[components[i]].set, &all);
        used |= p->nodes.data[components[i]].used;
        if (!tells) tells = p->nodes.data[components[i]].tells;
        word &= p->nodes.data[components[i]].word;
        catch_up(p, components[i], &all);
    }
    key_list delta = {0};
    for (uint32_t i = 0; same && i < count; i++) {
        const graph_node *c = &p->nodes.data[components[i]];
        for (uint32_t k = 0; k < c->delta.len; k++)
            vec_push(&delta, c->delta.data[k]);
    }
    for (uint32_t i = 0; !same && i < all.len; i++) { /* what some member did not know */
        bool everywhere = true;
        for (uint32_t k = 0; k < count && everywhere; k++) {
            const graph_node *c = &p->nodes.data[components[k]];
            everywhere = set_find(&c->set, all.keys[i]) != UINT32_MAX && !c->delta.len;
        }
        if (!everywhere) vec_push(&delta, all.keys[i]);
    }
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
    c->delta.data = delta.data;
    c->delta.len = delta.len;
    c->delta.cap = delta.cap;
    c->used = used;
    c->tells = tells;
    c->word = word;
}

static void number_levels(pta *p)
{
    tarjan t = run_tarjan(p, true);
    uint32_t *level = base_alloc_zero(t.groups + 1, sizeof *level);
    for (uint32_t i = t.ordered; i-- > 0;) { /* predecessors first */
        uint32_t component = t.order[i], group = t.group[component], member = component;
        do {
            const graph_node *m = &p->nodes.data[member];
            for (uint32_t k = 0; k < m->out.len; k++) {
                uint32_t to = t.group[graph_component(p, p->edges.data[m->out.data[k]].to)];
                if (to != group && level[to] <= level[group]) level[to] = level[group] + 1;
            }
            member = m->next;
        } while (member != component);
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
