/* What values of a function are sums of, and what its branches compare. */
#ifndef RACE_HB_VALUE_H
#define RACE_HB_VALUE_H

#include "static/lift/lift.h"

enum { VALUE_TERMS = 3 };

typedef struct { /* the sum of leaf * factor, and a constant; terms by leaf */
    uint32_t count;
    struct {
        ir_value leaf;
        int64_t factor;
    } terms[VALUE_TERMS];
    int64_t add;
    bool known; /* false: too many terms */
} value_sum;

/* v as a sum, through copies, additions and multiplications by constants of 8 bytes. Loads of one variable that the function
 * does not store to are one leaf. */
value_sum value_of(const ir_func *ir, ir_value v);
value_sum value_address(const ir_func *ir, const ir_insn *access);
/* Equal but for the constant. */
bool value_same_terms(const value_sum *a, const value_sum *b);

/* The value whose low `width` bytes v has, through copies and extensions. */
ir_value value_plain(const ir_func *ir, ir_value v, unsigned width);
/* Both are the same number, or loads of one variable. */
bool value_alike(const ir_func *ir, ir_value a, ir_value b);
/* Both are instructions of the function: accesses whose addresses are equal sums, without looking through loads. */
bool value_same_access(const ir_func *ir, const ir_insn *x, const ir_insn *y);

typedef struct {
    uint8_t code;  /* of jcc: holds on the edge */
    ir_value a, b; /* compared; b 0: with imm */
    int64_t imm;
} value_condition;
enum { VALUE_EQUAL = 4, VALUE_NOT_EQUAL = 5 };

/* The same condition with its sides changed. */
static inline uint8_t value_mirror(uint8_t code)
{
    static const uint8_t mirror[16] = {0, 1, 7, 6, 4, 5, 3, 2, 8, 9, 10, 11, 15, 14, 13, 12};
    return mirror[code & 15];
}

ir_value value_branch(const ir_func *ir, uint32_t block); /* its IR_BRANCH, or 0 */
/* What a condition on a truth value says about what that was made of. False: nothing is known. */
bool value_explain(const ir_func *ir, value_condition *c);
/* What is known when a block's branch is taken, or not. */
bool value_test(const ir_func *ir, uint32_t block, bool taken, value_condition *out);

typedef struct { /* a value that is one of two */
    value_condition when; /* holds: */
    ir_value yes, no;
} value_choice;
bool value_chooses(const ir_func *ir, ir_value v, value_choice *out);
/* Together they are both of the two: `p < q ? p : q` and `p < q ? q : p`. */
bool value_complement(const ir_func *ir, const value_choice *x, const value_choice *y);

#endif
