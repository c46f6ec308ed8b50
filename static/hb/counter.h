/* What counts in loops. */
#ifndef RACE_HB_COUNTER_H
#define RACE_HB_COUNTER_H

#include "static/hb/value.h"

/* v is a phi of the header of a loop (+ 1) that grows by a constant each time round. */
bool count_step(const ir_func *ir, uint32_t loop, ir_value v, int64_t *step);
/* The only leaf of a sum that counts in a loop; the others do not change in it. `step` is that of the sum. */
bool count_leaf(const ir_func *ir, uint32_t loop, const value_sum *sum, ir_value *counter, int64_t *step);
/* The numbers that a phi of a loop goes through, by what it starts from and what it is compared with: [first, end). False: it does
 * not count up from one sum. `end` may not be known. */
bool count_range(const ir_func *ir, ir_value phi, value_sum *first, value_sum *end);
int64_t count_stride(const ir_func *ir, ir_value phi); /* 0: it does not count */

#endif
