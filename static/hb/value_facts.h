/* Inside of value.c: what is found once for each function. */
#ifndef RACE_HB_VALUE_FACTS_H
#define RACE_HB_VALUE_FACTS_H

#include "static/hb/value.h"

enum { VALUE_FACTS_DEPTHS = 2 };

/* --- value.c ---- */
/* The address of an access without looking through loads. */
value_sum value_shallow(const ir_func *ir, const ir_insn *access);
/* value_test, not asked before. */
bool value_find_test(const ir_func *ir, uint32_t block, bool taken, value_condition *out);

/* --- value_facts.c ---- */
/* The first load of the same variable, if nothing in the function stores to it; else the load. */
ir_value value_first_load(const ir_func *ir, ir_value load);
/* Where the answer of first_equal at a depth is kept; 0: it was not asked yet. */
ir_value *value_known_equal(const ir_func *ir, ir_value v, unsigned depth);
/* Bits: the blocks that ways lead to from a block without going round a loop. */
const uint64_t *value_blocks_behind(const ir_func *ir, uint32_t block);

#endif
