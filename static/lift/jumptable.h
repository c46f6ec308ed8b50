/* Inside static/lift: shared by jumpwalk.c, which finds where an indirect jump takes its target from, and jumptable.c,
 * which reads it there. */
#ifndef RACE_JUMPTABLE_H
#define RACE_JUMPTABLE_H

#include "static/lift/slice.h"

enum {
    MAX_ENTRIES = 1 << 14 /* of a table */
};

typedef struct {
    uint64_t table, plus; /* table: the address of entry 0 */
    uint64_t scale, step; /* entries are at table + index * scale; indices are multiples of step */
    uint8_t bits;         /* of an entry */
    bool is_signed;
} table_form;

typedef struct {
    table_form form;
    uint64_t low, high; /* of the index */
    bool weak;
} table_found;

typedef struct {
    uint32_t block;
    uint32_t insn; /* instructions of the block before this one are still to be gone over */
    bool indexed;  /* the form is known, state.x is the index */
    table_form form;
    uint64_t limit; /* of the index, by the forms it has had on the way */
    slice_state state;
} walk;

typedef struct {
    uint64_t key; /* block << 16 | expression; CONSTANT_AT_END: at the end of the block, else at its beginning */
    uint64_t value;
    uint32_t generation;
    bool found; /* else: not a constant, or, when value is 1, being searched for */
} constant_slot;

struct jump_memory {
    const lift_func *view;
    slice_pool pool;
    slice_frame frame;
    depth_memory depth;
    VEC(uint32_t) writes; /* per instruction what it writes, WRITES_KNOWN set when computed */
    VEC(walk) stack;
    VEC(walk) visited; /* states at the beginning of blocks */
    VEC(walk) entered; /* states at the end of blocks */
    VEC(uint32_t) entered_hash; /* of these: number + 1, by walk_hash */
    VEC(uint64_t) keys; /* of the constant search at work */
    VEC(table_found) tables;
    VEC(table_form) forms; /* that were met, bounded or not */
    constant_slot *constants;
    uint32_t constant_size, constant_used, generation;
    uint64_t steps; /* left */
};

static inline void jump_spend(jump_memory *m, uint64_t steps)
{
    m->steps -= m->steps < steps ? m->steps : steps;
}

/* Follows the operand of the jump at the end of the block backwards. True: every path has an answer, a constant in
 * result->targets or a table in m->tables. m->forms has all table accesses that were met. */
bool jump_walk(const flow_space *space, jump_memory *m, uint32_t block, jump_result *result);

#endif
