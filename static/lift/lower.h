/* Inside static/lift: lowering of one machine instruction. lower.c has the driver and what all handlers use,
 * lower_scalar.c, lower_vector.c and lower_control.c the handlers, each with its table of mnemonics. */
#ifndef RACE_LOWER_H
#define RACE_LOWER_H

#include "static/lift/raw.h"

#include <Zydis/Zydis.h>

typedef struct {
    raw_func *raw;
    uint32_t at;    /* number of the machine instruction */
    uint32_t block; /* number of its block */
    bool last;      /* it is the last one of its block */
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
} lower;

typedef void lower_handler(lower *l, int aux);

typedef struct {
    lower_handler *handle;
    int aux;
} lower_rule;

/* One rule per ZydisMnemonic; a NULL handler means that another table or lower_opaque has it. */
extern const lower_rule lower_scalar_rules[ZYDIS_MNEMONIC_MAX_VALUE + 1];
extern const lower_rule lower_vector_rules[ZYDIS_MNEMONIC_MAX_VALUE + 1];
extern const lower_rule lower_control_rules[ZYDIS_MNEMONIC_MAX_VALUE + 1];

/* Any instruction, from what Zydis tells of its operands: every output depends on every input. */
void lower_opaque(lower *l, int aux);

/* lower_control.c: `target` is the value of an indirect target, or none and then `imm` the address. */
void lower_tail_call(lower *l, ir_value target, int64_t imm);

/* --- building blocks ------------------------------------------------------------------------------------------- */

static inline ir_value lower_var(uint16_t var)
{
    return RAW_VAR | var;
}

ir_value lower_emit(lower *l, ir_insn insn); /* fills in .insn; var 0 stays rax: pass IR_NOVAR for a temporary */
ir_value lower_temp(lower *l, ir_op op, unsigned width, ir_value a, ir_value b, int64_t imm);
ir_value lower_const(lower *l, int64_t imm);
ir_value lower_args(lower *l, ir_op op, unsigned width, uint16_t var, const ir_value *args, uint32_t count);
/* Makes `v` the new content of `var`: in place where possible, else by a copy. */
void lower_define(lower *l, uint16_t var, ir_value v);

typedef struct {
    ir_value a, b;
    uint8_t scale;
    uint16_t flags; /* IR_FS, IR_GS, IR_WIDE */
    int64_t imm;
} lower_address;

lower_address lower_address_of(lower *l, const ZydisDecodedOperand *op);
ir_value lower_access_at(lower *l, lower_address at, unsigned width, unsigned flags);
/* The access of a memory operand; adds IR_ATOMIC for a lock prefix. */
ir_value lower_access(lower *l, const ZydisDecodedOperand *op, unsigned width, unsigned flags);
ir_value lower_load(lower *l, ir_value access, unsigned width, unsigned offset);
void lower_store(lower *l, ir_value access, unsigned width, unsigned offset, ir_value v);

/* An immediate or displacement that is an address of the module: relocated here, or in range of a fixed-address one. */
bool lower_is_address(const lower *l, int64_t value, unsigned field_offset);
ir_value lower_immediate(lower *l, const ZydisDecodedOperand *op); /* IR_CONST or IR_ADDRESS */

bool lower_is_gpr(const ZydisDecodedOperand *op);
bool lower_is_vector(const ZydisDecodedOperand *op);
uint16_t lower_gpr(ZydisRegister reg, bool *high); /* variable of a general register of any size */
uint16_t lower_lane(ZydisRegister reg, unsigned lane);
unsigned lower_width(const ZydisDecodedOperand *op); /* bytes */
/* The content of a general register, memory or immediate operand; only the low bytes of its width have a meaning. */
ir_value lower_read(lower *l, const ZydisDecodedOperand *op);
/* Writes a general register or memory operand. */
void lower_write(lower *l, const ZydisDecodedOperand *op, ir_value v);
void lower_write_gpr(lower *l, ZydisRegister reg, unsigned width, ir_value v);

#endif
