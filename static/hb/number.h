/* Addresses as sums of values of several functions, and where their numbers come from. */
#ifndef RACE_HB_NUMBER_H
#define RACE_HB_NUMBER_H

#include "static/hb/gift.h"

enum { NUMBER_TERMS = 4, NUMBER_DEPTH = 5 };

typedef struct {
    uint32_t instance;
    ir_value leaf;
    int64_t factor;
} part_term;

typedef struct { /* as value_sum, with leaves of several functions */
    bool known;
    uint32_t count;
    part_term terms[NUMBER_TERMS];
    int64_t add;
    int64_t span; /* and somewhere in so many bytes from there on; 0: just there */
} part_sum;

/* --- number_part.c ---- */

/* Adds `by` times a value of an instance that an origin runs; parameters are followed to the calls that pass them. */
void part_expand(const hb *h, uint32_t origin, uint32_t instance, const value_sum *v, int64_t by, part_sum *out);
/* What a thread that is created alone is given as its first parameter, if that is a constant. */
bool part_constant(const hb *h, uint32_t origin, int param, int64_t *value);
/* The next call, from *at on (which begins with 0), by which an origin comes to an instance; NULL: no more. */
const pta_call_edge *part_caller(const hb *h, uint32_t origin, uint32_t instance, uint32_t *at);

/* The size of a row of an array of arrays, if a sum is the address of the first byte of some row; 0: it is not. What begins in a row
 * and has no other limit, like a string, stays in it: the same that the pointer analysis takes for granted of an index. */
int64_t part_row(const hb *h, const hb_touch *t, const value_sum *sum);
/* Takes off the length of the string that begins at the rest of the sum. */
bool part_drop_length(const hb *h, const hb_touch *t, const ir_func *ir, value_sum *sum);

static inline const ir_func *part_code(const hb *h, uint32_t instance)
{
    return hb_instance_code(h, instance)->ir;
}

static inline ir_value part_argument(const ir_func *ir, const hb_call *call, unsigned arg)
{
    return ir->args[ir->insns[call->value].a + IR_CALL_RDI + arg];
}

/* A constant that is not negative; -1: it is none. */
static inline int64_t part_number(const ir_func *ir, ir_value v)
{
    value_sum s = value_of(ir, v);
    return v && s.known && !s.count ? s.add : -1;
}

/* --- number_omp.c ---- */

/* What omp_get_thread_num has returned. */
bool omp_is_thread_number(const hb *h, uint32_t func, const ir_func *ir, ir_value v);
/* Where the iterations begin that OpenMP gives to this thread alone; equal `space`s are given out alike. */
bool omp_first_iteration(const hb *h, uint32_t origin, uint32_t instance, ir_value v, uint64_t *space);

#endif
