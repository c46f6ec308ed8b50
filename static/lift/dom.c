/* Dominators of a function's blocks, by Lengauer and Tarjan's algorithm ("A fast algorithm for finding dominators in a
 * flowgraph", the version with path compression only: O(m log n), no bad case, which matters since code is hostile
 * input). Everything is iterative: a block chain of any length costs no stack. */
#include "static/lift/graph.h"

#include <stdlib.h>

void graph_walk_open(graph_walk *walk, const lift_func *func)
{
    uint32_t n = func->block_count;
    uint32_t *storage = base_alloc((size_t)n * 6 * sizeof *storage);
    *walk = (graph_walk){.block = storage,
                         .parent = storage + n,
                         .number = storage + (size_t)2 * n,
                         .post = storage + (size_t)3 * n,
                         .storage = storage};
    uint32_t *stack = storage + (size_t)4 * n, *left = storage + (size_t)5 * n; /* successors not yet looked at */
    for (uint32_t b = 0; b < n; b++)
        walk->number[b] = GRAPH_UNREACHED;
    if (n == 0) return;

    uint32_t depth = 0, finished = 0;
    walk->number[0] = 0;
    walk->block[0] = walk->parent[0] = 0;
    walk->count = 1;
    stack[depth] = 0;
    left[depth++] = func->blocks[0].succ_count;
    while (depth > 0) {
        const lift_block *b = &func->blocks[stack[depth - 1]];
        if (left[depth - 1] == 0) {
            walk->post[finished++] = stack[--depth];
            continue;
        }
        /* From the last to the first, so that in reverse post-order the fall-through successor comes next. */
        uint32_t to = func->edges[b->first_succ + --left[depth - 1]].to;
        if (walk->number[to] != GRAPH_UNREACHED) continue;
        walk->number[to] = walk->count;
        walk->block[walk->count] = to;
        walk->parent[walk->count++] = walk->number[stack[depth - 1]];
        stack[depth] = to;
        left[depth++] = func->blocks[to].succ_count;
    }
}

void graph_walk_close(graph_walk *walk)
{
    free(walk->storage);
    *walk = (graph_walk){0};
}

/* The forest of nodes already processed. `best` of a node is the one with the smallest semidominator on the path from
 * it up to, and without, the root of its tree. */
typedef struct {
    uint32_t *semi, *best, *ancestor; /* ancestor UINT32_MAX: a root */
    uint32_t *path;                   /* scratch for compression */
} dom_forest;

static uint32_t dom_eval(dom_forest *f, uint32_t v)
{
    if (f->ancestor[v] == UINT32_MAX) return v;
    uint32_t depth = 0;
    for (uint32_t u = v; f->ancestor[f->ancestor[u]] != UINT32_MAX; u = f->ancestor[u])
        f->path[depth++] = u;
    while (depth > 0) {
        uint32_t u = f->path[--depth], up = f->ancestor[u];
        if (f->semi[f->best[up]] < f->semi[f->best[u]]) f->best[u] = f->best[up];
        f->ancestor[u] = f->ancestor[up];
    }
    return f->best[v];
}

/* Immediate dominators by node; idom[0] = 0. */
static void dom_compute(const lift_func *func, const graph_walk *walk, uint32_t *idom)
{
    uint32_t n = walk->count;
    uint32_t *storage = base_alloc((size_t)n * 6 * sizeof *storage);
    dom_forest f = {storage, storage + n, storage + (size_t)2 * n, storage + (size_t)3 * n};
    uint32_t *bucket = storage + (size_t)4 * n, *next = storage + (size_t)5 * n; /* nodes by semidominator; 0 ends */
    for (uint32_t v = 0; v < n; v++) {
        f.semi[v] = f.best[v] = v;
        f.ancestor[v] = UINT32_MAX;
        bucket[v] = 0;
    }
    idom[0] = 0;
    for (uint32_t w = n; w-- > 1;) {
        const lift_block *b = &func->blocks[walk->block[w]];
        for (uint32_t i = 0; i < b->pred_count; i++) {
            uint32_t v = walk->number[func->edges[func->preds[b->first_pred + i]].from];
            if (v == GRAPH_UNREACHED) continue;
            uint32_t u = dom_eval(&f, v);
            if (f.semi[u] < f.semi[w]) f.semi[w] = f.semi[u];
        }
        next[w] = bucket[f.semi[w]];
        bucket[f.semi[w]] = w;
        uint32_t p = walk->parent[w];
        f.ancestor[w] = p;
        for (uint32_t v = bucket[p]; v != 0; v = next[v]) {
            uint32_t u = dom_eval(&f, v);
            idom[v] = f.semi[u] < f.semi[v] ? u : p;
        }
        bucket[p] = 0;
    }
    for (uint32_t w = 1; w < n; w++)
        if (idom[w] != f.semi[w]) idom[w] = idom[idom[w]];
    free(storage);
}

/* Numbers the dominator tree in pre-order, siblings in reverse post-order: a block comes after its dominator there, so
 * two sweeps do it without walking the tree. */
static void dom_number(ir_func *ir)
{
    ir_block *blocks = ir->blocks;
    for (uint32_t i = 0; i < ir->rpo_count; i++)
        blocks[ir->rpo[i]].dom_out = 1; /* for now: blocks in its subtree */
    for (uint32_t i = ir->rpo_count; i-- > 1;)
        blocks[blocks[ir->rpo[i]].idom].dom_out += blocks[ir->rpo[i]].dom_out;

    uint32_t *next = base_alloc((size_t)ir->func->block_count * sizeof *next);
    for (uint32_t i = 0; i < ir->rpo_count; i++) {
        ir_block *b = &blocks[ir->rpo[i]];
        uint32_t size = b->dom_out;
        b->dom_in = i ? next[b->idom] : 0;
        b->dom_out = b->dom_in + size - 1;
        next[ir->rpo[i]] = b->dom_in + 1;
        if (i) next[b->idom] += size;
    }
    free(next);
}

/* Requires ir->func and ir->blocks (one per block of the graph). */
void ir_dominators(ir_func *ir)
{
    const lift_func *func = ir->func;
    graph_walk walk;
    graph_walk_open(&walk, func);
    for (uint32_t b = 0; b < func->block_count; b++) {
        ir->blocks[b].idom = b;
        ir->blocks[b].rpo = UINT32_MAX;
        ir->blocks[b].dom_in = UINT32_MAX; /* inside no interval */
        ir->blocks[b].dom_out = 0;
    }
    ir->rpo_count = walk.count;
    ir->rpo = arena_alloc(&ir->memory, (size_t)walk.count * sizeof *ir->rpo);
    for (uint32_t i = 0; i < walk.count; i++) {
        ir->rpo[i] = walk.post[walk.count - 1 - i];
        ir->blocks[ir->rpo[i]].rpo = i;
    }
    if (walk.count > 0) {
        uint32_t *idom = base_alloc((size_t)walk.count * sizeof *idom);
        dom_compute(func, &walk, idom);
        for (uint32_t v = 0; v < walk.count; v++)
            ir->blocks[walk.block[v]].idom = walk.block[idom[v]];
        free(idom);
        dom_number(ir);
    }
    graph_walk_close(&walk);
}

/* An unreachable block dominates itself only, and is dominated by no other. */
bool ir_dominates(const ir_func *ir, uint32_t a, uint32_t b)
{
    const ir_block *x = &ir->blocks[a], *y = &ir->blocks[b];
    return a == b || (x->dom_in < y->dom_in && y->dom_in <= x->dom_out);
}
