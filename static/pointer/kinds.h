/* Which values of a function are pointers and which are numbers, as far as its own code tells. */
#ifndef RACE_POINTER_KINDS_H
#define RACE_POINTER_KINDS_H

#include "static/lift/lift.h"

typedef enum {
    KIND_UNKNOWN = 0,
    KIND_POINTER = 1,
    KIND_NUMBER = 2,
    KIND_BOTH = 3 /* the evidence disagrees: nothing is concluded */
} value_kind;

/* Whether a number in the code may be an address: only in a program at a fixed address. Compilers also use addresses that lie
 * somewhat behind their object. */
bool kinds_is_address(const image *img, int64_t value);

/* One per IR value; free() the result. */
uint8_t *kinds_infer(const image *img, const ir_func *ir);

/* Per value: whether an instruction uses all of its bytes, by more than calls that find it in a register; through copies and
 * phis. free() the result. */
bool *kinds_used(const ir_func *ir);

#endif
