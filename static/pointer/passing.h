/* Inside static/pointer: the registers in which functions are given arguments, and give results. */
#ifndef RACE_POINTER_PASSING_H
#define RACE_POINTER_PASSING_H

#include "static/pointer/generate.h"

enum { PASSING_ARGS = 6, PASSING_ALL = (1 << PASSING_ARGS) - 1, PASSING_RET = 1, PASSING_RET2 = 2 };

typedef struct passing_memo passing_memo;

/* Finds pta_func.takes and pta_func.gives of all functions of the modules, `about` one of each. `before`: what was kept of the
 * program before, or NULL. Returns what is to be kept, or NULL if nothing is. */
passing_memo *passing_find(pta_program *program, const generate_module *about, passing_memo *before);
void passing_forget(passing_memo *memo);

/* Per IR value of a function: whether it is what happens to be left in a register, so that no call means it as an argument.
 * free() the result. */
bool *passing_leavings(const pta_program *program, const generate_module *about, uint32_t func);

/* --- of one function alone: passing_local.c ------------------------------------------------------------------------------- */

enum { PASSING_SECOND = 1 << PASSING_ARGS }; /* beside arguments: the second result of a call */
enum { PASSING_USED = UINT32_MAX, PASSING_ENDED = UINT32_MAX - 1 }; /* entries that are no argument of a call */

static const uint8_t passing_call_args[PASSING_ARGS] = {IR_CALL_RDI, IR_CALL_RSI, IR_CALL_RDX, IR_CALL_RCX, IR_CALL_R8, IR_CALL_R9};

static inline uint32_t passing_entry(uint32_t call, unsigned argument)
{
    return call * (PASSING_ARGS + 1) + argument;
}

/* What was in the second register before a call, which the callee may spare. */
static inline uint32_t passing_spared(uint32_t call)
{
    return passing_entry(call, PASSING_ARGS);
}

typedef struct {
    ir_value call;
    uint32_t name;               /* generate_name */
    uint8_t from[PASSING_ARGS];  /* what each argument is made of: bits of own arguments, and PASSING_SECOND */
    uint8_t meant;               /* bits of arguments: means_second is only so if the callee does not read this one */
    bool tail;
} passing_call;

typedef struct {
    uint32_t entry; /* where it is wanted: passing_entry, passing_spared, PASSING_USED, or PASSING_ENDED: in the second register at
                       the end */
    uint32_t call;  /* whose second result: number in `calls` */
} passing_second;

typedef struct { /* the arguments of its calls that are leavings, when what is known of the callees was this */
    uint64_t known;
    uint8_t *bits; /* per call */
} passing_left;

typedef struct {
    bool known;
    uint16_t takes; /* by declaration */
    uint8_t gives;
    uint8_t sure;  /* arguments that are declared */
    bool pair;     /* it is declared to return two registers */
    uint8_t used;  /* arguments that it reads itself */
    uint8_t ended; /* arguments that its second result is made of */
    bool means_second;    /* the second result is computed for nothing else */
    VEC(uint32_t) taken;  /* functions of the module whose address it has */
    VEC(passing_call) calls;
    VEC(passing_second) seconds; /* by entry */
    VEC(passing_left) left;
} passing_local;

void passing_read(const lift_module *module, const lift_func *func, passing_local *out);
void passing_local_free(passing_local *local);
unsigned passing_argument(const ir_insn *insn); /* + 1: the argument that a value is on entry; 0: none */

#endif
