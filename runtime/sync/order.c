/* The order in which locks are taken: a graph whose edge a -> b says that somebody locked b while holding a. A cycle
 * whose edges come from different threads could have been a deadlock, unless
 *  - two of the edges have a lock in common that is held around them (a gate),
 *  - where two edges meet, the lock is held and wanted for reading only,
 *  - an edge was over before the thread of the newest one was created, or after it was joined,
 *  - the last lock was only tried.
 * A cycle is told once per set of places where its locks are taken.
 *
 * An edge that a thread has seen before costs one look at a table, without a lock. */
#include "runtime/sync/sync.h"

#include <string.h>

enum {
    ORDER_LOCKS = 1 << 14,
    ORDER_EDGES = 1 << 16,
    ORDER_SEEN = 1 << 18,
    ORDER_THREADS = 512, /* with a clock; later ones are taken as unordered */
    ORDER_GATES = 8,
    ORDER_TOLD = 1 << 10,
    ORDER_STEPS = 20000 /* of one search */
};

typedef struct {
    uint64_t addr;
    uint32_t next;  /* of its line, plus 1 */
    uint32_t edges; /* the first one from it, plus 1 */
} order_node;

typedef struct {
    uint32_t to, next; /* next: of the same node, plus 1 */
    uint32_t thread, time;
    ft_site site, held_site;
    uint8_t gate_count;
    bool held_shared, wanted_shared;
    uint32_t gates[ORDER_GATES];
    uint32_t from;
} order_edge;

struct order_graph {
    uint32_t lock;
    uint32_t node_count, edge_count;
    uint32_t lines[ORDER_LOCKS]; /* first node of a line, plus 1 */
    order_node nodes[ORDER_LOCKS];
    order_edge edges[ORDER_EDGES];
    uint64_t seen[ORDER_SEEN]; /* hashes of edges and threads */
    uint64_t told[ORDER_TOLD];
    uint32_t clock[ORDER_THREADS][ORDER_THREADS]; /* what each thread knows of each by fork and join */
};

order_graph *order_create(report *r)
{
    order_graph *g = report_memory(r, sizeof *g);
    if (g) g->clock[0][0] = 1;
    return g;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u ^ b * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

void order_forked_thread(order_graph *g, uint32_t parent, uint32_t child)
{
    if (child >= ORDER_THREADS) return;
    if (parent < ORDER_THREADS) {
        memcpy(g->clock[child], g->clock[parent], sizeof g->clock[child]);
        g->clock[parent][parent]++;
    }
    g->clock[child][child] = 1;
}

void order_joined_thread(order_graph *g, uint32_t thread, uint32_t child)
{
    if (thread >= ORDER_THREADS || child >= ORDER_THREADS) return;
    for (uint32_t i = 0; i < ORDER_THREADS; i++)
        if (i != thread && g->clock[child][i] > g->clock[thread][i]) g->clock[thread][i] = g->clock[child][i];
    g->clock[thread][child] = UINT32_MAX;
}

static uint32_t time_of(const order_graph *g, uint32_t thread)
{
    return thread < ORDER_THREADS ? g->clock[thread][thread] : 0;
}

static bool was_before(const order_graph *g, const order_edge *e, uint32_t now)
{
    return e->thread < ORDER_THREADS && now < ORDER_THREADS && e->thread != now && e->time &&
           e->time <= g->clock[now][e->thread];
}

/* --- nodes and edges (all require the lock) ----------------------------------------------------------------------- */

static uint32_t *line_of(order_graph *g, uint64_t addr)
{
    return &g->lines[mix(addr >> 6, 0) % ORDER_LOCKS];
}

/* Number plus 1; 0: there is none, and no room. */
static uint32_t node_at(order_graph *g, uint64_t addr, bool create)
{
    uint32_t *line = line_of(g, addr);
    for (uint32_t n = *line; n; n = g->nodes[n - 1].next)
        if (g->nodes[n - 1].addr == addr) return n;
    if (!create || g->node_count == ORDER_LOCKS) return 0;
    g->nodes[g->node_count] = (order_node){.addr = addr, .next = *line};
    *line = ++g->node_count;
    return *line;
}

/* The lock is no more: another one at its address is another node. What was seen of it stays, under no address. */
static void remove_node(order_graph *g, uint64_t addr)
{
    for (uint32_t *link = line_of(g, addr); *link; link = &g->nodes[*link - 1].next)
        if (g->nodes[*link - 1].addr == addr) {
            *link = g->nodes[*link - 1].next;
            return;
        }
}

void order_forget(sync_engine *engine, uint64_t lock)
{
    order_graph *g = engine->order;
    if (!g || !__atomic_load_n(line_of(g, lock), __ATOMIC_RELAXED)) return;
    report_lock(engine->report, &g->lock);
    remove_node(g, lock);
    report_unlock(&g->lock);
}

void order_forget_range(sync_engine *engine, uint64_t addr, uint64_t size)
{
    enum { LINE = 64, MANY = 4096 };
    order_graph *g = engine->order;
    if (!g || !__atomic_load_n(&g->node_count, __ATOMIC_RELAXED)) return;
    if (size > MANY) size = MANY; /* a lock deep inside of a large block is rare: a false cycle at worst */
    for (uint64_t line = addr / LINE * LINE; line < addr + size; line += LINE) {
        if (!__atomic_load_n(line_of(g, line), __ATOMIC_RELAXED)) continue;
        report_lock(engine->report, &g->lock);
        for (uint32_t *link = line_of(g, line); *link;) {
            order_node *node = &g->nodes[*link - 1];
            if (node->addr >= addr && node->addr < addr + size)
                *link = node->next;
            else
                link = &node->next;
        }
        report_unlock(&g->lock);
    }
}

/* --- cycles ------------------------------------------------------------------------------------------------------- */

typedef struct {
    order_graph *g;
    const order_edge *path[EVENT_MAX_CYCLE];
    uint32_t length, steps;
    uint32_t goal; /* node number */
    uint32_t now;  /* thread */
} search;

static bool have_common_gate(const order_edge *a, const order_edge *b)
{
    for (uint32_t i = 0; i < a->gate_count; i++)
        for (uint32_t k = 0; k < b->gate_count; k++)
            if (a->gates[i] == b->gates[k]) return true;
    return false;
}

/* May e come next on the path? */
static bool may_follow(const search *s, const order_edge *e)
{
    const order_edge *last = s->path[s->length - 1];
    if (last->wanted_shared && e->held_shared) return false;
    if (was_before(s->g, e, s->now)) return false;
    for (uint32_t i = 0; i < s->length; i++)
        if (s->path[i]->thread == e->thread || have_common_gate(s->path[i], e)) return false;
    return true;
}

static bool find_way(search *s, uint32_t node)
{
    if (s->length >= EVENT_MAX_CYCLE) return false;
    for (uint32_t n = s->g->nodes[node].edges; n; n = s->g->edges[n - 1].next) {
        const order_edge *e = &s->g->edges[n - 1];
        if (++s->steps > ORDER_STEPS) return false;
        if (!may_follow(s, e)) continue;
        s->path[s->length++] = e;
        bool closes = e->to == s->goal && !(e->wanted_shared && s->path[0]->held_shared);
        if (closes || find_way(s, e->to)) return true;
        s->length--;
    }
    return false;
}

static bool is_new(order_graph *g, const search *s)
{
    uint64_t hash = 1;
    for (uint32_t i = 0; i < s->length; i++)
        hash += mix(s->path[i]->site, 7); /* the same whatever edge comes first */
    for (uint32_t i = 0, at = (uint32_t)(hash % ORDER_TOLD); i < ORDER_TOLD; i++, at = (at + 1) % ORDER_TOLD) {
        if (g->told[at] == hash) return false;
        if (g->told[at]) continue;
        g->told[at] = hash;
        return true;
    }
    return false;
}

/* Adds an edge and looks for a cycle that it closes; how long the one is that is to be told, or 0. */
static uint32_t add_edge(order_graph *g, const order_edge *edge, report_edge cycle[EVENT_MAX_CYCLE])
{
    if (g->edge_count == ORDER_EDGES) return 0;
    order_edge *e = &g->edges[g->edge_count];
    *e = *edge;
    search s = {.g = g, .goal = e->from, .now = e->thread};
    s.path[s.length++] = e;
    bool found = find_way(&s, e->to);
    e->next = g->nodes[e->from].edges;
    g->nodes[e->from].edges = ++g->edge_count;
    if (!found || !is_new(g, &s)) return 0;
    for (uint32_t i = 0; i < s.length; i++)
        cycle[i] = (report_edge){.held = g->nodes[s.path[i]->from].addr,
                                 .wanted = g->nodes[s.path[i]->to].addr,
                                 .thread = s.path[i]->thread,
                                 .site = s.path[i]->site,
                                 .held_site = s.path[i]->held_site};
    return s.length;
}

/* --- threads and what they hold ----------------------------------------------------------------------------------- */

/* Has this thread added this edge, in the same place, before? */
static bool is_seen(order_graph *g, uint64_t held, uint64_t wanted, uint32_t thread, ft_site site)
{
    uint64_t hash = mix(mix(held, wanted), (uint64_t)thread << 32 | site) | 1;
    uint64_t *place = &g->seen[hash >> 20 & (ORDER_SEEN - 1)];
    if (__atomic_load_n(place, __ATOMIC_RELAXED) == hash) return true;
    __atomic_store_n(place, hash, __ATOMIC_RELAXED);
    return false;
}

static void take_edges(sync_engine *engine, sync_thread *t, uint64_t lock, bool is_shared, ft_site site)
{
    order_graph *g = engine->order;
    for (uint32_t i = 0; i < t->held_count; i++) {
        uint64_t held = t->held[i].lock;
        report_edge cycle[EVENT_MAX_CYCLE];
        if (held == lock || is_seen(g, held, lock, t->ft->number, site)) continue;
        report_lock(engine->report, &g->lock);
        uint32_t from = node_at(g, held, true), to = node_at(g, lock, true), length = 0;
        if (from && to) {
            order_edge e = {.from = from - 1,
                            .to = to - 1,
                            .thread = t->ft->number,
                            .time = time_of(g, t->ft->number),
                            .site = site,
                            .held_site = t->held[i].site,
                            .held_shared = t->held[i].is_shared,
                            .wanted_shared = is_shared};
            for (uint32_t k = 0; k < t->held_count && e.gate_count < ORDER_GATES; k++) {
                uint32_t gate = k == i || t->held[k].is_shared ? 0 : node_at(g, t->held[k].lock, true);
                if (gate) e.gates[e.gate_count++] = gate;
            }
            length = add_edge(g, &e, cycle);
        }
        report_unlock(&g->lock);
        if (length) report_deadlock(engine->report, cycle, length);
    }
}

void order_locked(sync_engine *engine, sync_thread *t, uint64_t lock, bool is_shared, bool tried, ft_site site)
{
    for (uint32_t i = 0; i < t->held_count; i++)
        if (t->held[i].lock == lock) {
            t->held[i].depth++;
            return;
        }
    if (engine->order && !tried && t->held_count && t->ft->core->concurrent) take_edges(engine, t, lock, is_shared, site);
    if (t->held_count == SYNC_HELD) return;
    t->held[t->held_count].lock = lock;
    t->held[t->held_count].site = site;
    t->held[t->held_count].depth = 1;
    t->held[t->held_count++].is_shared = is_shared;
}

void order_unlocked(sync_thread *t, uint64_t lock)
{
    for (uint32_t i = t->held_count; i-- > 0;) {
        if (t->held[i].lock != lock || --t->held[i].depth) continue;
        memmove(&t->held[i], &t->held[i + 1], (t->held_count - i - 1) * sizeof *t->held);
        t->held_count--;
        return;
    }
}
