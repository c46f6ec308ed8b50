/* Inside static/hb: the calls that wait for threads, which join.c finds and life.c asks. */
#ifndef RACE_HB_JOIN_H
#define RACE_HB_JOIN_H

#include "static/hb/channel.h"
#include "static/hb/counter.h"

typedef struct {
    uint32_t instance;
    const hb_call *call;
    const sync_entry *sync;
    hb_numbers threads; /* origins that it may wait for */
    bool certain;       /* it waits for nothing else */
    bool last;          /* of joins that together wait for every element of an array */
    bool has_from;
    pta_place from;     /* the variable that holds the handle */
    uint32_t loop;      /* of the function, + 1; 0: none */
    hb_edges edges;     /* of a join that may give up: where it has not */
} join_call;

typedef struct hb_joins {
    VEC(join_call) joins;
    hb_numbers cutters;
    uint64_t *instances; /* that have some of them; bits */
    uint32_t of;   /* the origin that is looked at */
    bool trusting; /* a join that may mean several threads means this one: to be checked afterwards */
} join_state;

static inline uint32_t join_loop_of(const hb *h, uint32_t instance, uint32_t insn)
{
    const lift_func *f = hb_instance_code(h, instance);
    return f->ir->blocks[hb_block_of(f, insn)].loop;
}

static inline bool join_in_loop(const ir_func *ir, uint32_t loop, uint32_t block)
{
    for (uint32_t l = ir->blocks[block].loop; l; l = ir->loops[l - 1].parent)
        if (l == loop) return true;
    return false;
}

static inline bool join_has_number(const hb_numbers *list, uint32_t n)
{
    for (uint32_t i = 0; i < list->len; i++)
        if (list->data[i] == n) return true;
    return false;
}

/* There is only ever one such thread, and nothing else that the join may mean. */
bool join_is_only(const hb *h, const join_call *join, uint32_t thread);
void joins_find(hb *h, join_state *s);
/* The edges that are not gone over while the thread lives whose life is looked for: of hb_walk. */
bool life_closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge);

#endif
