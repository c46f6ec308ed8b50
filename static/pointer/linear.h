/* Values as sums of multiples of other values, to know the strides of arrays. */
#ifndef RACE_POINTER_LINEAR_H
#define RACE_POINTER_LINEAR_H

#include "static/lift/lift.h"

static inline uint64_t linear_magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

/* As the processor adds. */
static inline int64_t linear_sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* v * scale is `*constant`, which is below 2^30, plus multiples of the result, which is below 2^19, whenever v has not wrapped;
 * 0: it is the constant.
 * `*back`: it may go down from there by the way it is computed (a difference, a loop that counts up to zero). */
uint64_t linear_stride(const ir_func *ir, ir_value v, int64_t scale, int64_t *constant, bool *back);

/* Compilers also compute addresses as `2 * p - q`, with two pointers into one object: a sum in which pointers (kinds.h) count
 * once in all. One of those of a + b * scale that are added, 0: it is no such sum. */
ir_value linear_pointer(const ir_func *ir, const uint8_t *kinds, ir_value a, ir_value b, int64_t scale);

#endif
