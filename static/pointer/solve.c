/* Insertion: difference propagation in steps, in the spirit of wave propagation. A step takes all components of the lowest
 * level that have news, sends them along their edges, and lets each receiver add what it did not know; senders and then
 * receivers are independent of each other, so both halves run in parallel, and the result does not depend on the number of
 * threads (change idempotency: dissertation, section 3.2.2). When no news is left, statements that go through pointers see the
 * new keys and add edges, which are the next news. */
#include <omp.h>
#include <stdlib.h>

#include "static/pointer/graph.h"

enum { INBOX = 1024 }; /* keys that wait unsorted */

typedef struct solve_lane { /* one thread's outgoing mail */
    key_list *inbox;        /* per node */
    id_list *reasons;       /* per node: the edges that brought what is in its inbox; NULL: nobody will ask */
    uint32_t *stamps;       /* per node: the sender that it was last reached by */
    uint32_t stamp;
    uint32_t capacity;
    id_list touched;
    key_list scratch, added;
    id_list scratch_reasons;
} solve_lane;

static void prepare_lanes(pta *p)
{
    if (!p->lanes) {
        p->lane_count = p->options.jobs > 0 ? p->options.jobs : omp_get_max_threads();
        p->lanes = base_alloc_zero((size_t)p->lane_count, sizeof *p->lanes);
    }
    for (int t = 0; t < p->lane_count; t++) {
        solve_lane *lane = &p->lanes[t];
        if (lane->capacity >= p->nodes.len) continue;
        uint32_t capacity = p->nodes.len + p->nodes.len / 2;
        lane->inbox = base_realloc(lane->inbox, (size_t)capacity * sizeof *lane->inbox);
        memset(lane->inbox + lane->capacity, 0, (size_t)(capacity - lane->capacity) * sizeof *lane->inbox);
        if (!p->options.once) {
            lane->reasons = base_realloc(lane->reasons, (size_t)capacity * sizeof *lane->reasons);
            memset(lane->reasons + lane->capacity, 0, (size_t)(capacity - lane->capacity) * sizeof *lane->reasons);
        }
        lane->stamps = base_realloc(lane->stamps, (size_t)capacity * sizeof *lane->stamps);
        memset(lane->stamps + lane->capacity, 0, (size_t)(capacity - lane->capacity) * sizeof *lane->stamps);
        lane->capacity = capacity;
    }
}

void solve_close(pta *p)
{
    for (int t = 0; t < p->lane_count; t++) {
        for (uint32_t i = 0; i < p->lanes[t].capacity; i++) {
            vec_free(&p->lanes[t].inbox[i]);
            if (p->lanes[t].reasons) vec_free(&p->lanes[t].reasons[i]);
        }
        free(p->lanes[t].inbox);
        free(p->lanes[t].reasons);
        free(p->lanes[t].stamps);
        vec_free(&p->lanes[t].touched);
        vec_free(&p->lanes[t].scratch);
        vec_free(&p->lanes[t].scratch_reasons);
        vec_free(&p->lanes[t].added);
    }
    free(p->lanes);
}

static void sort_with_reasons(key_list *keys, id_list *reasons)
{
    uint32_t n = keys->len;
    if (reasons)
        keys_sort_with(keys->data, reasons->data, &n);
    else
        keys_sort(keys->data, &n);
    keys->len = n;
    if (reasons) reasons->len = n;
}

static void shorten(key_list *inbox, id_list *reasons)
{
    if (inbox->len > INBOX && inbox->len > 2 * inbox->cap / 3) sort_with_reasons(inbox, reasons);
}

/* What the receiver does not know yet goes into its inbox; a long inbox is made short again. `keys` are sorted. */
static void send(const pta *p, solve_lane *lane, const pta_key *keys, uint32_t count, uint32_t edge, uint32_t to)
{
    uint32_t label = p->edges.data[edge].label;
    const pta_set *known = &p->nodes.data[to].set;
    key_list *inbox = &lane->inbox[to];
    uint32_t before = inbox->len;
    if (!label) {
        set_missing(known, keys, count, graph_world(p), inbox);
    } else {
        const graph_label *l = &p->labels.data[label];
        for (uint32_t i = 0; i < count; i++) {
            pta_key key = graph_transfer(p, keys[i], l);
            if (key && !set_knows(known, key, graph_world(p))) vec_push(inbox, key);
        }
    }
    if (!before && inbox->len) vec_push(&lane->touched, to);
    for (uint32_t i = before; lane->reasons && i < inbox->len; i++)
        vec_push(&lane->reasons[to], edge);
    shorten(inbox, lane->reasons ? &lane->reasons[to] : NULL);
}

/* A component has many edges to one receiver: only the first without a label carries anything. */
static void send_news(const pta *p, solve_lane *lane, uint32_t component)
{
    const graph_node *c = &p->nodes.data[component];
    uint32_t member = component, stamp = ++lane->stamp;
    lane->stamps[component] = stamp;
    do {
        const graph_node *m = &p->nodes.data[member];
        for (uint32_t i = 0; i < m->out.len; i++) {
            const graph_edge *e = &p->edges.data[m->out.data[i]];
            uint32_t to = graph_component(p, e->to);
            if (!e->label) {
                if (lane->stamps[to] == stamp) continue;
                lane->stamps[to] = stamp;
            }
            send(p, lane, c->delta.data, c->delta.len, m->out.data[i], to);
        }
        member = m->next;
    } while (member != component);
}

/* A component gets the keys in lane->scratch, for the reasons in lane->scratch_reasons. */
static void add_keys(pta *p, solve_lane *lane, uint32_t component, uint64_t rank)
{
    graph_node *c = &p->nodes.data[component];
    sort_with_reasons(&lane->scratch, lane->reasons ? &lane->scratch_reasons : NULL);
    vec_clear(&lane->added);
    uint32_t before = c->set.len;
    const uint32_t *reasons = lane->reasons ? lane->scratch_reasons.data : NULL;
    set_add_for(&c->set, lane->scratch.data, reasons, lane->scratch.len, rank, graph_world(p), &lane->added);
    if (p->options.once && set_is_wild(&c->set) && !c->set.tame) set_drop_covered(&c->set, graph_world(p));
    c->quiet |= c->set.len > before + lane->added.len;
    for (uint32_t i = 0; i < lane->added.len; i++) {
        vec_push(&c->delta, lane->added.data[i]);
        if (c->used) vec_push(&c->fresh, lane->added.data[i]);
    }
}

/* A receiver adds what it did not know. */
static void receive(pta *p, solve_lane *lane, uint32_t component, uint64_t rank)
{
    vec_clear(&lane->scratch);
    vec_clear(&lane->scratch_reasons);
    for (int t = 0; t < p->lane_count; t++) {
        key_list *inbox = &p->lanes[t].inbox[component];
        for (uint32_t i = 0; lane->reasons && i < inbox->len; i++)
            vec_push(&lane->scratch_reasons, p->lanes[t].reasons[component].data[i]);
        if (lane->reasons) vec_clear(&p->lanes[t].reasons[component]);
        vec_reserve(&lane->scratch, lane->scratch.len + inbox->len);
        if (inbox->len) memcpy(lane->scratch.data + lane->scratch.len, inbox->data, inbox->len * sizeof *inbox->data);
        lane->scratch.len += inbox->len;
        if (inbox->cap > 4096)
            vec_free(inbox);
        else
            vec_clear(inbox);
    }
    add_keys(p, lane, component, rank);
}

/* What a wild word holds, whoever loads it makes known. Where nothing will be deleted, nobody has to wait for that: a word that
 * very many load from would send them all that it holds, for nothing. */
static bool is_read(const pta *p, const graph_node *word)
{
    return p->options.once && word->read;
}

/* What components have that are wild becomes known to all wild pointers at once, before it goes any further: SET_WILD then
 * stands for it. */
static void tell_wilderness(pta *p, const uint32_t *components, uint32_t count, bool whole)
{
    solve_lane *lane = &p->lanes[0];
    uint32_t wilderness = graph_component(p, p->wilderness);
    uint32_t loose = graph_label_of(p, 0, PTA_LOOSE);
    vec_clear(&lane->scratch);
    vec_clear(&lane->scratch_reasons);
    for (uint32_t i = 0; i < count; i++) {
        const graph_node *c = &p->nodes.data[components[i]];
        if (components[i] == wilderness)
            for (uint32_t k = 0; k < c->delta.len; k++)
                p->wild.data[key_object(c->delta.data[k])] |= SET_IN_WILD;
        if (!set_is_wild(&c->set) || c->set.tame || (c->word && !is_read(p, c))) continue;
        bool first = whole || !c->tells;
        graph_make_wild(p, components[i]);
        c = &p->nodes.data[components[i]];
        const pta_key *keys = first ? c->set.keys : c->delta.data;
        for (uint32_t k = 0, n = first ? c->set.len : c->delta.len; k < n; k++) {
            pta_key key = graph_transfer(p, keys[k], &p->labels.data[loose]);
            if (!key || p->wild.data[key_object(key)] & SET_IN_WILD) continue;
            p->wild.data[key_object(key)] |= SET_IN_WILD;
            vec_push(&lane->scratch, key);
            vec_push(&lane->scratch_reasons, c->tells - 1);
        }
    }
    if (lane->scratch.len) {
        graph_next_step(p); /* younger than what was told */
        add_keys(p, lane, wilderness, p->now);
        graph_note(p, wilderness);
        holders_note(p, wilderness);
        graph_mark_dirty(p, wilderness);
        graph_mark_woken(p, wilderness);
    }
    for (uint32_t i = 0; p->options.once && i < count; i++) {
        pta_set *set = &p->nodes.data[components[i]].set;
        if (!set_is_wild(set) || set->tame) continue;
        set_drop_covered(set, graph_world(p));
        set_shrink(set);
    }
}

/* Components in one step that are worth a second thread. The machine may be busy, and a thread that waits for another spins: only where
 * there is much to do, unless somebody wants to see threads at work. */
static bool worth_sharing(const pta *p, uint32_t components)
{
    enum { SMALL = 64, LARGE = 2048 };
    return components > (p->options.patient || p->options.jobs <= 0 ? LARGE : SMALL);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Receivers in the order of their numbers, whichever thread has reached them: what is numbered next, instances and objects, then
 * has the same numbers too. */
static void finish_step(pta *p)
{
    id_list all = {0};
    for (int t = 0; t < p->lane_count; t++) {
        for (uint32_t i = 0; i < p->lanes[t].touched.len; i++) {
            uint32_t component = p->lanes[t].touched.data[i];
            if (p->nodes.data[component].touched) continue;
            p->nodes.data[component].touched = true;
            vec_push(&all, component);
        }
        vec_clear(&p->lanes[t].touched);
    }
    if (all.len > 1) qsort(all.data, all.len, sizeof *all.data, by_number);
    graph_next_step(p);
#pragma omp parallel for schedule(dynamic, 16) num_threads(p->lane_count) if (worth_sharing(p, all.len))
    for (uint32_t i = 0; i < all.len; i++)
        receive(p, &p->lanes[omp_get_thread_num()], all.data[i], p->now);
    tell_wilderness(p, all.data, all.len, false);
    for (uint32_t i = 0; i < all.len; i++) {
        graph_node *c = &p->nodes.data[all.data[i]];
        c->touched = false;
        graph_note(p, all.data[i]);
        holders_note(p, all.data[i]);
        p->toil += c->delta.len;
        if (c->delta.len) graph_mark_dirty(p, all.data[i]);
        if (c->fresh.len) graph_mark_woken(p, all.data[i]);
    }
    vec_free(&all);
}

/* Sorts keys and drops those that lie dormant by now. */
static void wake(const pta_set *set, set_world world, key_list *keys)
{
    uint32_t n = keys->len, kept = 0;
    keys_sort(keys->data, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!set_covers(set, keys->data[i], world)) keys->data[kept++] = keys->data[i];
    keys->len = kept;
}

/* One step of the lowest level with news. False: there is none. */
static bool step_level(pta *p)
{
    while (p->lowest < p->levels.len && !p->levels.data[p->lowest].len)
        p->lowest++;
    if (p->lowest >= p->levels.len) return false;
    id_list senders = p->levels.data[p->lowest];
    p->levels.data[p->lowest] = (id_list){0};
    for (uint32_t i = 0; i < senders.len; i++) {
        wake(&p->nodes.data[senders.data[i]].set, graph_world(p), &p->nodes.data[senders.data[i]].delta);
    }
#pragma omp parallel for schedule(dynamic, 16) num_threads(p->lane_count) if (worth_sharing(p, senders.len))
    for (uint32_t i = 0; i < senders.len; i++)
        send_news(p, &p->lanes[omp_get_thread_num()], senders.data[i]);
    for (uint32_t i = 0; i < senders.len; i++) {
        graph_node *c = &p->nodes.data[senders.data[i]];
        c->dirty = false;
        if (c->delta.cap > 4096)
            vec_free(&c->delta);
        else
            vec_clear(&c->delta);
    }
    vec_free(&senders);
    finish_step(p);
    return true;
}

/* Wild words that somebody begins to load from. */
static void tell_words(pta *p)
{
    id_list words = {0};
    for (uint32_t i = 0; p->options.once && i < p->new_edges.len; i++) {
        const graph_edge *e = &p->edges.data[p->new_edges.data[i]];
        if (e->to == NO_NODE || e->from == NO_NODE || !p->nodes.data[e->from].word) continue;
        if (p->nodes.data[e->to].word || p->nodes.data[graph_component(p, e->to)].set.tame) continue; /* they tell nothing either */
        uint32_t component = graph_component(p, e->from);
        graph_node *c = &p->nodes.data[component];
        if (c->read) continue;
        c->read = true;
        if (set_is_wild(&c->set)) vec_push(&words, component);
    }
    tell_wilderness(p, words.data, words.len, true);
    vec_free(&words);
}

/* The whole sets of the sources of new edges. */
static void send_new_edges(pta *p)
{
    prepare_lanes(p);
    tell_words(p);
    solve_lane *lane = &p->lanes[0];
    map64 sent = {0};
    key_list normal = {0};
    for (uint32_t i = 0; i < p->new_edges.len; i++) {
        graph_edge *e = &p->edges.data[p->new_edges.data[i]];
        if (e->to == NO_NODE) continue;
        uint32_t to = graph_component(p, e->to);
        if (e->from == NO_NODE) {
            send(p, lane, &e->key, 1, p->new_edges.data[i], to);
            if (!p->options.once) continue;
            e->to = NO_NODE; /* it is of no use any more */
            vec_push(&p->free_edges, p->new_edges.data[i]);
            p->live_edges--;
            continue;
        }
        uint32_t from = graph_component(p, e->from);
        if (from == to && !e->label) continue;
        uint32_t *once = e->label ? NULL : map_at(&sent, (uint64_t)from << 32 | to);
        if (once && *once != MAP_NONE) continue;
        if (once) *once = 0;
        vec_clear(&normal);
        const pta_set *set = &p->nodes.data[from].set;
        if (p->labels.data[e->label].stride == PTA_LOOSE) { /* also what lies dormant */
            send(p, lane, set->keys, set->len, p->new_edges.data[i], to);
            continue;
        }
        set_normal(set, graph_world(p), &normal);
        send(p, lane, normal.data, normal.len, p->new_edges.data[i], to);
    }
    vec_free(&normal);
    map_free(&sent);
    vec_clear(&p->new_edges);
    finish_step(p);
}

/* The same of the wilderness, which very many nodes tell something: of those that have something of the object. */
static void rederive_listed(pta *p, uint32_t object)
{
    const id_list *holders = holders_of(p, object);
    for (uint32_t i = 0; i < holders->len; i++) {
        const graph_node *n = &p->nodes.data[holders->data[i]];
        for (uint32_t k = set_group(&n->set, object); n->tells && k < n->set.len && key_object(n->set.keys[k]) == object; k++)
            send(p, &p->lanes[0], &n->set.keys[k], 1, n->tells - 1, p->wilderness);
    }
}

void solve_rederive(pta *p, const lost_fact *lost, uint32_t count)
{
    prepare_lanes(p);
    solve_lane *lane = &p->lanes[0];
    for (uint32_t i = 0; i < count; i++) {
        if (lost[i].node == p->wilderness) {
            rederive_listed(p, lost[i].object);
            continue;
        }
        uint32_t component = graph_component(p, lost[i].node), member = component;
        do {
            const graph_node *m = &p->nodes.data[member];
            for (uint32_t k = 0; k < m->in.len; k++) {
                const graph_edge *e = &p->edges.data[m->in.data[k]];
                if (e->from == NO_NODE) {
                    if (key_object(e->key) == lost[i].object) send(p, lane, &e->key, 1, m->in.data[k], component);
                    continue;
                }
                uint32_t from = graph_component(p, e->from);
                if (from == component && !e->label) continue;
                const pta_set *set = &p->nodes.data[from].set;
                uint32_t first = set_group(set, lost[i].object), end = first;
                while (end < set->len && key_object(set->keys[end]) == lost[i].object)
                    end++;
                while (first < end && set_covers(set, set->keys[first], graph_world(p)))
                    first++;
                uint32_t count_awake = first < end && !offset_is_single(key_offset(set->keys[first])) ? 1 : end - first;
                send(p, lane, set->keys + first, count_awake, m->in.data[k], component);
            }
            member = m->next;
        } while (member != component);
    }
    finish_step(p);
}

/* Keys of a node that have lain dormant, or their neighbours' have, go to its successors and its uses. */
static void wake_keys(pta *p, uint32_t node, uint32_t first, uint32_t end)
{
    graph_node *n = &p->nodes.data[node];
    for (uint32_t k = first; k < end; k++)
        vec_push(&n->delta, n->set.keys[k]);
    if (n->delta.len) graph_mark_dirty(p, node);
    for (uint32_t u = 0; u < n->uses.len; u++)
        for (uint32_t k = first; k < end; k++)
            vec_push(&p->pending, (use_key){.use = n->uses.data[u], .again = true, .key = n->set.keys[k]});
}

void solve_wake_objects(pta *p, const uint32_t *objects, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const id_list *holders = holders_of(p, objects[i]);
        for (uint32_t k = 0; k < holders->len; k++) {
            const pta_set *set = &p->nodes.data[holders->data[k]].set;
            uint32_t first = set_group(set, objects[i]), end = first;
            while (end < set->len && key_object(set->keys[end]) == objects[i])
                end++;
            wake_keys(p, holders->data[k], first, end);
        }
    }
}

void solve_wake(pta *p, uint32_t node)
{
    wake_keys(p, node, 0, p->nodes.data[node].set.len);
    prepare_lanes(p);
    key_list normal = {0};
    const graph_node *n = &p->nodes.data[node];
    for (uint32_t i = 0; i < n->in.len; i++) {
        const graph_edge *e = &p->edges.data[n->in.data[i]];
        vec_clear(&normal);
        if (e->from == NO_NODE)
            vec_push(&normal, e->key);
        else
            set_normal(&p->nodes.data[e->from].set, graph_world(p), &normal);
        send(p, &p->lanes[0], normal.data, normal.len, n->in.data[i], node);
    }
    vec_push(&p->lanes[0].touched, node); /* even if nothing is new: it may be wild by itself, for other keys than before */
    vec_free(&normal);
}

void solve_consider(pta *p, const uint32_t *nodes, uint32_t count)
{
    prepare_lanes(p);
    for (uint32_t i = 0; i < count; i++)
        vec_push(&p->lanes[0].touched, nodes[i]);
    finish_step(p);
}

/* The keys that a use has seen, sorted: of loads, stores and calls that pass something. */
static void seen_keys(const pta *p, uint32_t use, key_list *out)
{
    vec_clear(out);
    for (uint32_t e = p->uses.data[use].edges; e != NO_EDGE; e = p->edges.data[e].next)
        vec_push(out, p->edges.data[e].key);
    keys_sort(out->data, &out->len);
}

static bool is_among(const key_list *keys, pta_key key)
{
    const pta_set set = {.keys = keys->data, .len = keys->len};
    return set_find(&set, key) != UINT32_MAX;
}

static void apply_pending(pta *p)
{
    key_list seen = {0};
    call_list calls = {0};
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < p->pending.len; i++) {
        use_key pending = p->pending.data[i];
        uint32_t pointer = graph_component(p, graph_pointer_node(p, pending.use));
        if (set_covers(&p->nodes.data[pointer].set, pending.key, graph_world(p))) continue;
        if (pending.again && pending.use != last) seen_keys(p, last = pending.use, &seen);
        if (pending.again && i && p->pending.data[i - 1].use == last && p->pending.data[i - 1].key == pending.key) continue;
        if (pending.again) graph_calls(p, pending.use, pending.key, &calls);
        if (pending.again && (is_among(&seen, pending.key) || calls.len)) continue;
        graph_apply_key(p, pending.use, pending.key);
    }
    vec_clear(&p->pending);
    vec_free(&calls);
    vec_free(&seen);
}

static void apply_fresh(pta *p)
{
    id_list woken = p->woken;
    p->woken = (id_list){0};
    for (uint32_t i = 0; i < woken.len; i++) {
        uint32_t component = woken.data[i];
        key_list fresh = p->nodes.data[component].fresh;
        p->nodes.data[component].fresh = (key_list){0};
        wake(&p->nodes.data[component].set, graph_world(p), &fresh);
        p->nodes.data[component].woken = false;
        uint32_t member = component;
        do {
            for (uint32_t u = 0; u < p->nodes.data[member].uses.len; u++)
                for (uint32_t k = 0; k < fresh.len; k++)
                    graph_apply_key(p, p->nodes.data[member].uses.data[u], fresh.data[k]);
            member = p->nodes.data[member].next;
        } while (member != component);
        vec_free(&fresh);
    }
    vec_free(&woken);
    apply_pending(p);
}

static void bear(pta *p)
{
    while (p->born.len) {
        uint32_t instance = p->born.data[--p->born.len];
        graph_next_step(p); /* what it does is younger than its life */
        p->instances.data[instance].waiting = false;
        uint32_t count = p->program->funcs.data[p->instances.data[instance].func].stmts.len;
        for (uint32_t s = 0; s < count; s++)
            graph_add_use(p, graph_use_of(&p->instances.data[instance], s));
    }
}

/* Components that have become wild by being merged. */
static void tell_merged(pta *p)
{
    id_list merged = {0};
    prepare_lanes(p);
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].component == i && p->nodes.data[i].set.len > 1 && set_is_wild(&p->nodes.data[i].set)) vec_push(&merged, i);
    tell_wilderness(p, merged.data, merged.len, true);
    vec_free(&merged);
}

static int interrupted(const pta *p, race_error *error)
{
    if (p->options.stop && *p->options.stop) return base_fail(error, "interrupted");
    return 0;
}

int solve_run(pta *p, race_error *error)
{
    for (;;) {
        bear(p);
        if (p->options.once && p->new_edges.len > 1000 + p->nodes.len / 3) {
            scc_collapse(p);
            tell_merged(p);
        }
        for (bool more = true; more;) {
            if (interrupted(p, error)) return -1;
            if (p->most && p->toil > p->most) p->stale = true;
            if (p->stale) return 0;
            more = p->new_edges.len;
            if (more)
                send_new_edges(p);
            else
                more = step_level(p);
        }
        if (!p->woken.len && !p->pending.len) return 0;
        apply_fresh(p);
    }
}
