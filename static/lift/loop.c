/* The loop nest of a function. Havlak's loops ("Nesting of reducible and irreducible loops") found with Ramalingam's
 * correction that makes it almost linear ("Identifying loops in almost linear time", section 3): headers are taken
 * innermost first; a loop found is collapsed onto its header (union-find); an edge that is neither a tree edge nor a
 * back edge is put into the graph only when the lowest common ancestor of its ends is reached, so that nothing but the
 * body is ever looked at.
 *
 * A loop of a reducible graph is the union of the natural loops of one header. A strongly connected region with
 * several entries gets as header the one that the depth-first walk met first, and is marked irreducible. */
#include "static/lift/graph.h"

#include <stdlib.h>

static uint32_t loop_find(uint32_t *up, uint32_t v)
{
    while (up[v] != v) {
        up[v] = up[up[v]];
        v = up[v];
    }
    return v;
}

typedef struct {
    uint32_t from, to; /* nodes */
    uint32_t next;     /* of the same list, + 1 */
} loop_edge;

typedef struct {
    const lift_func *func;
    const graph_walk *walk;
    uint32_t *up;       /* node -> header it is collapsed onto, in steps */
    uint32_t *header;   /* node -> header of the innermost loop around it and not its own; GRAPH_UNREACHED: none */
    uint32_t *loop;     /* node -> the loop it heads + 1 */
    uint32_t *reach;    /* node -> for irreducible marks: outermost header that an edge enters beside; else unreached */
    uint32_t *last;     /* node -> last node of its depth-first subtree */
    uint32_t *pending;  /* node -> edges whose ends have it as lowest common ancestor, + 1 */
    uint32_t *incoming; /* node -> such edges once put in, by collapsed target, + 1 */
    uint32_t *work;
    uint32_t *storage;
    loop_edge *edges;
    uint32_t loop_count;
} loop_search;

static bool loop_below(const loop_search *s, uint32_t above, uint32_t v)
{
    return above <= v && v <= s->last[above];
}

/* Sorts every edge that is neither tree nor back edge under the lowest common ancestor of its ends (Tarjan's offline
 * method: a subtree that is complete is merged into its parent). */
static void loop_ancestors(loop_search *s)
{
    const graph_walk *walk = s->walk;
    uint32_t count = 0;
    for (uint32_t v = 0; v < walk->count; v++)
        s->up[v] = v;
    for (uint32_t v = 0; v < walk->count; v++) {
        for (uint32_t u = v ? v - 1 : 0; v && u != walk->parent[v]; u = walk->parent[u])
            s->up[u] = walk->parent[u];
        const lift_block *b = &s->func->blocks[walk->block[v]];
        for (uint32_t i = 0; i < b->succ_count; i++) {
            uint32_t to = walk->number[s->func->edges[b->first_succ + i].to];
            if (loop_below(s, to, v)) continue;            /* a back edge */
            if (to > v && walk->parent[to] == v) continue; /* a tree edge, or one beside it */
            uint32_t at = to > v ? v : loop_find(s->up, to);
            s->edges[count] = (loop_edge){v, to, s->pending[at]};
            s->pending[at] = ++count;
        }
    }
    for (uint32_t v = 0; v < walk->count; v++)
        s->up[v] = v;
}

/* An edge from outside enters at `to` the loops collapsed so far around it, other than one headed by `to` itself. */
static void loop_entered(loop_search *s, uint32_t to, uint32_t outermost)
{
    uint32_t inner = s->header[to];
    if (to == outermost || inner == GRAPH_UNREACHED) return;
    if (s->reach[inner] == GRAPH_UNREACHED || outermost < s->reach[inner]) s->reach[inner] = outermost;
}

static void loop_put_in(loop_search *s, uint32_t at)
{
    for (uint32_t e = s->pending[at], next; e != 0; e = next) {
        loop_edge *edge = &s->edges[e - 1];
        next = edge->next;
        uint32_t to = loop_find(s->up, edge->to);
        loop_entered(s, edge->to, to);
        edge->next = s->incoming[to];
        s->incoming[to] = e;
    }
}

static void loop_take(loop_search *s, uint32_t header, uint32_t from, uint32_t *work_count)
{
    uint32_t v = loop_find(s->up, from);
    if (v == header) return;
    s->up[v] = header; /* marks it as taken; nobody asks for its own root again */
    s->header[v] = header;
    s->work[(*work_count)++] = v;
}

static void loop_collect(loop_search *s, uint32_t header)
{
    const graph_walk *walk = s->walk;
    const lift_block *b = &s->func->blocks[walk->block[header]];
    uint32_t work_count = 0;
    bool found = false;
    for (uint32_t i = 0; i < b->pred_count; i++) {
        uint32_t from = walk->number[s->func->edges[s->func->preds[b->first_pred + i]].from];
        if (from == GRAPH_UNREACHED || !loop_below(s, header, from)) continue;
        found = true;
        loop_take(s, header, from, &work_count);
    }
    if (!found) return;
    s->loop[header] = ++s->loop_count;
    while (work_count > 0) {
        uint32_t v = s->work[--work_count];
        loop_take(s, header, walk->parent[v], &work_count);
        for (uint32_t e = s->incoming[v]; e != 0; e = s->edges[e - 1].next)
            loop_take(s, header, s->edges[e - 1].from, &work_count);
    }
}

/* Fills ir->loops in the order of their headers in the walk: a header comes after those of the loops around it. */
static void loop_fill(ir_func *ir, loop_search *s)
{
    const graph_walk *walk = s->walk;
    ir->loop_count = s->loop_count;
    ir->loops = arena_alloc(&ir->memory, (size_t)s->loop_count * sizeof *ir->loops);
    uint32_t filled = 0;
    for (uint32_t v = 0; v < walk->count; v++) {
        uint32_t around = s->header[v] == GRAPH_UNREACHED ? 0 : s->loop[s->header[v]];
        uint32_t in = around;
        if (s->loop[v]) {
            s->loop[v] = in = ++filled;
            ir->loops[in - 1] = (ir_loop){
                .header = walk->block[v], .parent = around, .depth = around ? ir->loops[around - 1].depth + 1 : 1};
        }
        ir->blocks[walk->block[v]].loop = in;
    }
    for (uint32_t i = s->loop_count; i-- > 0;) { /* inner before outer: a mark climbs to the outermost loop entered */
        uint32_t v = walk->number[ir->loops[i].header], to = s->reach[v], around = s->header[v];
        if (to == GRAPH_UNREACHED) continue;
        ir->loops[i].irreducible = true;
        if (to != v && (s->reach[around] == GRAPH_UNREACHED || to < s->reach[around])) s->reach[around] = to;
    }
}

/* Lays the blocks out so that those of an inner loop are a part of the range of the loop around it: header, then the
 * blocks in no inner loop in reverse post-order, then the inner loops. */
static void loop_lay_out(ir_func *ir)
{
    uint32_t total = 0;
    uint32_t *own = base_alloc_zero((size_t)ir->loop_count * 2, sizeof *own), *cursor = own + ir->loop_count;
    for (uint32_t i = 0; i < ir->rpo_count; i++) {
        uint32_t in = ir->blocks[ir->rpo[i]].loop;
        if (!in) continue;
        own[in - 1]++;
        total++;
    }
    for (uint32_t i = ir->loop_count; i-- > 0;) {
        ir->loops[i].block_count += own[i];
        if (ir->loops[i].parent) ir->loops[ir->loops[i].parent - 1].block_count += ir->loops[i].block_count;
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < ir->loop_count; i++) {
        uint32_t *next = ir->loops[i].parent ? &cursor[ir->loops[i].parent - 1] : &first;
        ir->loops[i].first_block = *next;
        *next += ir->loops[i].block_count;
        cursor[i] = ir->loops[i].first_block + own[i];
    }
    ir->loop_blocks = arena_alloc(&ir->memory, (size_t)total * sizeof *ir->loop_blocks);
    for (uint32_t i = 0; i < ir->loop_count; i++) {
        ir->loop_blocks[ir->loops[i].first_block] = ir->loops[i].header;
        own[i] = ir->loops[i].first_block + 1;
    }
    for (uint32_t i = 0; i < ir->rpo_count; i++) {
        uint32_t b = ir->rpo[i], in = ir->blocks[b].loop;
        if (in && ir->loops[in - 1].header != b) ir->loop_blocks[own[in - 1]++] = b;
    }
    free(own);
}

/* Requires ir_dominators. Leaves ir->loops outer before inner, ir->loop_blocks and blocks[].loop; blocks that cannot be
 * reached are in no loop. */
void ir_loops(ir_func *ir)
{
    graph_walk walk;
    graph_walk_open(&walk, ir->func);
    uint32_t n = walk.count;
    enum { ARRAYS = 8 };
    loop_search s = {.func = ir->func, .walk = &walk};
    uint32_t *storage = s.storage = base_alloc_zero((size_t)n * ARRAYS, sizeof *s.storage);
    uint32_t **arrays[ARRAYS] = {&s.up, &s.header, &s.loop, &s.reach, &s.last, &s.pending, &s.incoming, &s.work};
    for (int i = 0; i < ARRAYS; i++)
        *arrays[i] = storage + (size_t)n * i;
    s.edges = base_alloc((size_t)ir->func->edge_count * sizeof *s.edges);

    for (uint32_t v = 0; v < n; v++) {
        s.last[v] = v;
        s.header[v] = s.reach[v] = GRAPH_UNREACHED;
    }
    for (uint32_t v = n; v-- > 1;)
        if (s.last[v] > s.last[walk.parent[v]]) s.last[walk.parent[v]] = s.last[v];
    for (uint32_t b = 0; b < ir->func->block_count; b++)
        ir->blocks[b].loop = 0;

    loop_ancestors(&s);
    for (uint32_t v = n; v-- > 0;) {
        loop_put_in(&s, v);
        loop_collect(&s, v);
    }
    loop_fill(ir, &s);
    loop_lay_out(ir);
    free(s.edges);
    free(s.storage);
    graph_walk_close(&walk);
}
