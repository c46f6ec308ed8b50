/* Inside static/lift: a function's IR before it is SSA.
 *
 * The same instructions as in lift.h, but an operand is either a number of an earlier instruction or RAW_VAR | var: the
 * content of a variable at that point. Made by lower.c, rewritten by frame.c (stack slots become variables), turned
 * into SSA by ssa.c. */
#ifndef RACE_RAW_H
#define RACE_RAW_H

#include "static/lift/lift.h"

enum { RAW_VAR = 0x80000000u };

enum { /* raw->frame: offsets from the stack pointer at entry; those of the realigned frame are biased */
    FRAME_UNREACHED = INT32_MAX,
    FRAME_OTHER = INT32_MIN,
    FRAME_REALIGNED = 1 << 29, /* offset + this */
    FRAME_LIMIT = 1 << 28      /* larger offsets are FRAME_OTHER */
};

static inline bool frame_is(int32_t v)
{
    return v != FRAME_OTHER && v != FRAME_UNREACHED;
}

typedef struct {
    const image *img;
    const lift_func *func;
    VEC(ir_insn) code; /* [0] unused */
    VEC(ir_value) args;
    uint32_t *first;  /* per block its first instruction, and one more for the end */
    uint8_t lanes;    /* 8-byte lanes of a vector register that this function can tell apart: 0, 2, 4 or 8 */
    int32_t *frame;   /* per instruction of code, what its value is: an offset or FRAME_OTHER; made by raw_frame */
    int32_t *frame_in; /* per block, sixteen general registers on entry */
    bool frame_known, frame_escapes;
    VEC(ir_slot) slots;
} raw_func;

/* True for operations whose a and b are a range of raw->args. */
static inline bool raw_has_args(uint8_t op)
{
    return op == IR_PHI || op == IR_OPAQUE || op == IR_CALL || op == IR_TAIL || op == IR_RET || op == IR_SYSCALL;
}

/* lower.c. Requires the function's control flow. */
void raw_lower(raw_func *raw);
void raw_free(raw_func *raw);
/* frame.c. Requires raw_lower, dominators and liveness of registers; leaves accesses marked IR_FRAME and IR_PROMOTED.
 * False: `raw` is spoilt and has to be lowered again, without promotion. */
bool raw_frame(raw_func *raw, const ir_func *ir, bool promote_slots);
/* ssa.c. Requires raw_frame and dominators; fills ir's instructions. */
void raw_to_ssa(raw_func *raw, ir_func *ir);

#endif
