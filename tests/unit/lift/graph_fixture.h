/* Graphs for the tests of dom.c, loop.c and live.c: a lift_func made of edges alone, and a small random generator. */
#ifndef RACE_TEST_GRAPH_FIXTURE_H
#define RACE_TEST_GRAPH_FIXTURE_H

#include "static/lift/lift.h"

#include <stdlib.h>

typedef struct {
    uint32_t from, to;
} fixture_edge;

static inline uint32_t fixture_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Takes the edges in any order; end kinds are left at END_FALL. */
static inline ir_func *fixture_open(uint32_t blocks, const fixture_edge *edges, uint32_t edge_count)
{
    lift_func *f = base_alloc_zero(1, sizeof *f);
    f->block_count = blocks;
    f->edge_count = edge_count;
    f->blocks = base_alloc_zero(blocks, sizeof *f->blocks);
    f->edges = base_alloc_zero(edge_count, sizeof *f->edges);
    f->preds = base_alloc_zero(edge_count, sizeof *f->preds);
    for (uint32_t e = 0; e < edge_count; e++) {
        f->blocks[edges[e].from].succ_count++;
        f->blocks[edges[e].to].pred_count++;
    }
    for (uint32_t b = 1; b < blocks; b++) {
        f->blocks[b].first_succ = f->blocks[b - 1].first_succ + f->blocks[b - 1].succ_count;
        f->blocks[b].first_pred = f->blocks[b - 1].first_pred + f->blocks[b - 1].pred_count;
    }
    uint32_t *filled = base_alloc_zero(blocks, sizeof *filled);
    for (uint32_t e = 0; e < edge_count; e++) {
        uint32_t from = edges[e].from;
        f->edges[f->blocks[from].first_succ + filled[from]++] = (lift_edge){from, edges[e].to, EDGE_SWITCH};
    }
    memset(filled, 0, blocks * sizeof *filled);
    for (uint32_t e = 0; e < edge_count; e++) {
        uint32_t to = f->edges[e].to;
        f->preds[f->blocks[to].first_pred + filled[to]++] = e;
    }
    free(filled);
    ir_func *ir = base_alloc_zero(1, sizeof *ir);
    ir->func = f;
    ir->blocks = arena_alloc(&ir->memory, blocks * sizeof *ir->blocks);
    return ir;
}

static inline void fixture_close(ir_func *ir)
{
    lift_func *f = (lift_func *)ir->func;
    free(f->blocks);
    free(f->edges);
    free(f->preds);
    free(f->insns);
    free(f);
    arena_free(&ir->memory);
    free(ir);
}

/* Marks what is reached from `start` by edges, never entering block `without`. */
static inline void fixture_reach(const lift_func *f, uint32_t start, uint32_t without, bool backwards, bool *reached)
{
    uint32_t *stack = base_alloc(f->block_count * sizeof *stack), depth = 0;
    memset(reached, 0, f->block_count * sizeof *reached);
    if (start != without) {
        reached[start] = true;
        stack[depth++] = start;
    }
    while (depth > 0) {
        const uint32_t b = stack[--depth];
        for (uint32_t e = 0; e < f->edge_count; e++) {
            uint32_t at = backwards ? f->edges[e].to : f->edges[e].from;
            uint32_t to = backwards ? f->edges[e].from : f->edges[e].to;
            if (at != b || to == without || reached[to]) continue;
            reached[to] = true;
            stack[depth++] = to;
        }
    }
    free(stack);
}

#endif
