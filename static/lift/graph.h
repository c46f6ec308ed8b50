/* The depth-first walk that dom.c and loop.c both stand on. Private to static/lift; implemented in dom.c. */
#ifndef RACE_LIFT_GRAPH_H
#define RACE_LIFT_GRAPH_H

#include "static/lift/lift.h"

enum { GRAPH_UNREACHED = UINT32_MAX };

/* Nodes of the walk are called by their pre-order number; 0 is the entry. All arrays lie in one allocation. */
typedef struct {
    uint32_t count;   /* reachable blocks */
    uint32_t *block;  /* node -> block */
    uint32_t *parent; /* node -> its parent in the depth-first tree; of 0: 0 */
    uint32_t *number; /* block -> node, or GRAPH_UNREACHED */
    uint32_t *post;   /* blocks in post-order */
    uint32_t *storage;
} graph_walk;

void graph_walk_open(graph_walk *walk, const lift_func *func);
void graph_walk_close(graph_walk *walk);

#endif
