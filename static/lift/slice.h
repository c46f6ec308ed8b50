/* Inside static/lift: backward symbolic evaluation over decoded instructions, for jumptable.c.
 *
 * A path is walked against the flow of control. What is asked for is an expression over the registers and memory at the
 * current point; going back over an instruction substitutes what the instruction computed. The branches that were
 * passed give conditions, which are carried along and substituted in the same way, until one of them says something
 * about the expression. Nothing here knows what a jump table looks like. */
#ifndef RACE_SLICE_H
#define RACE_SLICE_H

#include "static/lift/flow.h"

/* --- expressions: 64-bit values, hash-consed, so that equal numbers mean equal expressions ----------------------- */

typedef uint16_t slice_expr; /* 0: nothing is known (and it equals nothing) */

typedef enum {
    X_ANY,   /* unknown */
    X_CONST, /* k */
    X_REG,   /* register k (0 to 15, in the order of IR_RAX) */
    X_MEM,   /* `bits` bits of memory at a, zero-extended */
    X_ADD,   /* a + b; a constant is always b */
    X_MUL,   /* a * k */
    X_ZX,    /* the low `bits` bits of a */
    X_SX,    /* the same, sign-extended */
    X_AND,   /* a & k */
    X_SHR,   /* a >> k */
    X_INSERT /* a with its low `bits` bits replaced by those of b */
} slice_op;

typedef struct {
    uint8_t op, bits;
    uint8_t size;  /* nodes of the tree */
    bool memory;   /* there is a X_MEM in it */
    bool any;      /* there is a X_ANY in it: equal to nothing, though its form may give a limit */
    uint16_t regs; /* registers in it */
    slice_expr a, b;
    uint64_t k;
} slice_node;

enum { SLICE_NODES = 4096, SLICE_TREE = 24 };

typedef struct {
    slice_node nodes[SLICE_NODES];
    uint32_t count;
    uint16_t hash[2 * SLICE_NODES];
} slice_pool;

void slice_pool_reset(slice_pool *pool);
slice_expr slice_const(slice_pool *pool, uint64_t k);
slice_expr slice_reg(slice_pool *pool, uint32_t reg);
slice_expr slice_mem(slice_pool *pool, slice_expr addr, uint32_t bits);
slice_expr slice_add(slice_pool *pool, slice_expr a, slice_expr b);
slice_expr slice_mul(slice_pool *pool, slice_expr a, uint64_t k);
slice_expr slice_zx(slice_pool *pool, slice_expr a, uint32_t bits);
slice_expr slice_sx(slice_pool *pool, slice_expr a, uint32_t bits);
slice_expr slice_and(slice_pool *pool, slice_expr a, uint64_t k);
slice_expr slice_shr(slice_pool *pool, slice_expr a, uint32_t k);
slice_expr slice_insert(slice_pool *pool, slice_expr a, slice_expr b, uint32_t bits);
/* x + k as x and k; k 0 when it has no constant part. */
slice_expr slice_split(const slice_pool *pool, slice_expr x, uint64_t *k);
/* x with every `leaf` in it replaced. */
slice_expr slice_replace(slice_pool *pool, slice_expr x, slice_expr leaf, slice_expr by);
/* Upper limit that its form alone gives. */
uint64_t slice_limit(const slice_pool *pool, slice_expr x);

/* --- conditions -------------------------------------------------------------------------------------------------- */

typedef enum {
    CC_O,
    CC_NO,
    CC_B,
    CC_NB,
    CC_Z,
    CC_NZ,
    CC_BE,
    CC_NBE,
    CC_S,
    CC_NS,
    CC_P,
    CC_NP,
    CC_L,
    CC_NL,
    CC_LE,
    CC_NLE,
    CC_NONE
} slice_cc; /* in the order of the encoding: a condition and its contrary differ in bit 0 */

typedef enum { TEST_CMP, TEST_AND, TEST_ADD, TEST_SHR } slice_test;

typedef struct { /* the flags of (a test b), of `bits` bits, satisfied cc */
    slice_expr a, b;
    uint8_t cc, bits, test;
} slice_fact;

enum { SLICE_FACTS = 6, SLICE_PENDING = 4 };

typedef struct {
    slice_expr x;  /* what is asked for */
    bool impossible; /* the conditions contradict each other: no execution comes this way */
    bool is_table; /* the outermost memory in x is a table of constants: nothing stores to it */
    uint8_t fact_count, pending_count;
    uint8_t pending[SLICE_PENDING]; /* conditions on the flags at the current point */
    slice_fact facts[SLICE_FACTS];
} slice_state;

/* The condition that holds after a branch was taken or not; CC_NONE: not one on flags. */
slice_cc slice_branch(const lift_insn *insn, bool taken);
void slice_assume(slice_state *state, slice_cc cc);

typedef struct { /* the function's frame: places whose address is taken. Others change by direct stores only */
    bool read;
    VEC(uint64_t) taken; /* register << 32 | displacement, sorted */
} slice_frame;

typedef struct {
    const image *img;
    const lift_func *view;
    slice_pool *pool;
    slice_frame *frame; /* of view; filled on first use */
} slice_context;

/* Goes back over one instruction. Returns 0 when that changed nothing in the state; 2 after a conditional move of
 * something that x needs, which gives two ways: `*other` is the second; else 1. */
int slice_back(const slice_context *c, const lift_insn *insn, slice_state *state, slice_state *other);

/* Does a fact of the state bound x? Then [*low, *high] holds it, unsigned. */
bool slice_bound(slice_pool *pool, const slice_state *state, slice_expr x, uint64_t *low, uint64_t *high);

/* False: a fact about constants that does not hold. */
bool slice_holds(const slice_pool *pool, const slice_fact *fact);

/* General registers that an instruction may write, 1 << register; SLICE_STORES and SLICE_FLAGS. */
enum { SLICE_STORES = 1 << 16, SLICE_FLAGS = 1 << 17 };
uint32_t slice_writes(const image *img, const lift_insn *insn);
/* The value of the jump's operand just before an indirect jump. */
slice_expr slice_operand(const slice_context *c, const lift_insn *insn);

#endif
