/* Lowering of integer instructions: moves, arithmetic, comparisons, the stack, strings, atomic read-modify-write. */
#include "static/lift/lower.h"

static unsigned condition_of(const lower *l)
{
    return l->insn.opcode & 15;
}

static void flags_opaque(lower *l, const ir_value *args, uint32_t count)
{
    lower_args(l, IR_OPAQUE, 8, IR_FLAGS, args, count);
}

static void flags_define(lower *l, ir_op op, unsigned width, ir_value a, ir_value b, int64_t imm)
{
    lower_emit(l, (ir_insn){.op = (uint8_t)op, .width = (uint16_t)width, .var = IR_FLAGS, .a = a, .b = b, .imm = imm});
}

static void lower_nothing(lower *l, int aux)
{
    (void)l, (void)aux;
}

/* A destination that is read and written: its access, if it is memory, is one read-modify-write. */
static ir_value destination_open(lower *l, const ZydisDecodedOperand *op, ir_value *access)
{
    *access = 0;
    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY) return lower_read(l, op);
    *access = lower_access(l, op, lower_width(op), IR_READ | IR_WRITE);
    return lower_load(l, *access, lower_width(op), 0);
}

static void destination_close(lower *l, const ZydisDecodedOperand *op, ir_value access, ir_value v)
{
    if (access)
        lower_store(l, access, lower_width(op), 0, v);
    else
        lower_write_gpr(l, op->reg.value, lower_width(op), v);
}

static void lower_mov(lower *l, int aux)
{
    if (l->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && !lower_is_gpr(&l->op[0])) { /* segment, control, debug */
        lower_opaque(l, 0);
        return;
    }
    if (l->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && !lower_is_gpr(&l->op[1])) {
        lower_opaque(l, 0);
        return;
    }
    ir_value v = lower_read(l, &l->op[1]);
    if (l->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && l->op[0].size == 32) {
        ir_insn *constant = &l->raw->code.data[v];
        constant->width = 4;
        constant->imm = (uint32_t)constant->imm;
    }
    if (l->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
        unsigned width = lower_width(&l->op[0]);
        lower_store(l, lower_access(l, &l->op[0], width, IR_WRITE | (unsigned)aux), width, 0, v);
    } else {
        lower_write(l, &l->op[0], v);
    }
}

static void lower_movzx(lower *l, int aux)
{
    (void)aux;
    unsigned width = lower_width(&l->op[1]);
    lower_write(l, &l->op[0], lower_temp(l, IR_COPY, width, lower_read(l, &l->op[1]), 0, 0));
}

static void lower_movsx(lower *l, int aux)
{
    (void)aux;
    unsigned width = lower_width(&l->op[1]);
    lower_write(l, &l->op[0], lower_temp(l, IR_SEXT, width, lower_read(l, &l->op[1]), 0, 0));
}

/* cbw, cwde, cdqe: the accumulator from half its width; aux is the result's width. */
static void lower_extend_rax(lower *l, int aux)
{
    static const ZydisRegister reg[] = {[2] = ZYDIS_REGISTER_AX, [4] = ZYDIS_REGISTER_EAX, [8] = ZYDIS_REGISTER_RAX};
    ir_value v = lower_temp(l, IR_SEXT, (unsigned)aux / 2, lower_var(IR_RAX), 0, 0);
    lower_write_gpr(l, reg[aux], (unsigned)aux, v);
}

/* cwd, cdq, cqo: rdx becomes the sign of rax. */
static void lower_extend_rdx(lower *l, int aux)
{
    static const ZydisRegister reg[] = {[2] = ZYDIS_REGISTER_DX, [4] = ZYDIS_REGISTER_EDX, [8] = ZYDIS_REGISTER_RDX};
    ir_value wide = aux == 8 ? lower_var(IR_RAX) : lower_temp(l, IR_SEXT, (unsigned)aux, lower_var(IR_RAX), 0, 0);
    ir_value v = lower_temp(l, IR_SAR, 8, wide, 0, 63);
    lower_write_gpr(l, reg[aux], (unsigned)aux, v);
}

static void lower_lea(lower *l, int aux)
{
    (void)aux;
    unsigned width = lower_width(&l->op[0]);
    lower_address at = lower_address_of(l, &l->op[1]);
    if (!at.b && !at.imm && at.a && !(at.a & RAW_VAR)) { /* rip-relative, or cut to 32 bits already */
        lower_write_gpr(l, l->op[0].reg.value, width, at.a);
        return;
    }
    ir_value v = lower_emit(l, (ir_insn){.op = IR_LEA, .scale = at.scale, .width = (uint16_t)width, .var = IR_NOVAR,
                                         .a = at.a, .b = at.b, .imm = at.imm});
    lower_write_gpr(l, l->op[0].reg.value, width, v);
}

/* The second operand: a value, or none and `*imm`. */
static ir_value source(lower *l, const ZydisDecodedOperand *op, int64_t *imm)
{
    *imm = 0;
    if (op->type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return lower_read(l, op);
    *imm = op->imm.value.s;
    if (op->size >= 32 && lower_is_address(l, *imm, l->insn.raw.imm[0].offset)) return lower_immediate(l, op);
    return 0;
}

static bool same_register(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b)
{
    return a->type == ZYDIS_OPERAND_TYPE_REGISTER && b->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           a->reg.value == b->reg.value;
}

/* add, sub, and, or, xor: aux is the ir_op, IR_LEA for add. */
static void lower_alu(lower *l, int aux)
{
    const ZydisDecodedOperand *to = &l->op[0];
    unsigned width = lower_width(to);
    ir_value access;
    int64_t imm;
    if ((aux == IR_XOR || aux == IR_SUB) && same_register(to, &l->op[1])) {
        ir_value zero = lower_temp(l, IR_CONST, width, 0, 0, 0);
        lower_write_gpr(l, to->reg.value, width, zero);
        flags_define(l, IR_TEST, width, zero, 0, 0);
        return;
    }
    ir_value b = source(l, &l->op[1], &imm);
    ir_value a = destination_open(l, to, &access);
    if (aux == IR_SUB) flags_define(l, IR_CMP, width, a, b, b ? 0 : imm);
    ir_value v;
    if (aux == IR_SUB && !b)
        v = lower_temp(l, IR_LEA, width, a, 0, (int64_t)(0 - (uint64_t)imm));
    else
        v = lower_temp(l, (ir_op)aux, width, a, b, b ? 0 : imm);
    destination_close(l, to, access, v);
    if (aux == IR_LEA)
        flags_define(l, IR_FLAGRES, width, v, 0, 0);
    else if (aux != IR_SUB)
        flags_define(l, IR_TEST, width, v, v, 0);
}

/* inc and dec leave the carry flag alone; aux is what they add. */
static void lower_incdec(lower *l, int aux)
{
    const ZydisDecodedOperand *to = &l->op[0];
    unsigned width = lower_width(to);
    ir_value access, a = destination_open(l, to, &access);
    ir_value v = lower_temp(l, IR_LEA, width, a, 0, aux);
    destination_close(l, to, access, v);
    flags_define(l, IR_FLAGRES, width, v, lower_var(IR_FLAGS), 0);
}

static void lower_neg(lower *l, int aux)
{
    (void)aux;
    const ZydisDecodedOperand *to = &l->op[0];
    unsigned width = lower_width(to);
    ir_value access, a = destination_open(l, to, &access);
    flags_define(l, IR_CMP, width, lower_const(l, 0), a, 0);
    ir_value v = lower_temp(l, IR_NEG, width, a, 0, 0);
    destination_close(l, to, access, v);
}

static void lower_not(lower *l, int aux)
{
    (void)aux;
    ir_value access, a = destination_open(l, &l->op[0], &access);
    destination_close(l, &l->op[0], access, lower_temp(l, IR_NOT, lower_width(&l->op[0]), a, 0, 0));
}

/* shl, shr, sar. A count of zero leaves the flags as they were. */
static void lower_shift(lower *l, int aux)
{
    const ZydisDecodedOperand *to = &l->op[0];
    unsigned width = lower_width(to);
    bool fixed = l->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    int64_t imm = fixed ? l->op[1].imm.value.s & (width == 8 ? 63 : 31) : 0;
    ir_value count = fixed ? 0 : lower_read(l, &l->op[1]);
    ir_value access, a = destination_open(l, to, &access);
    if (aux == IR_SAR && width < 8) a = lower_temp(l, IR_SEXT, width, a, 0, 0);
    if (aux == IR_SHR && width < 8) a = lower_temp(l, IR_COPY, width, a, 0, 0);
    ir_value v = lower_temp(l, (ir_op)aux, width, a, count, imm);
    destination_close(l, to, access, v);
    if (fixed && imm)
        flags_define(l, IR_FLAGRES, width, v, 0, 0);
    else if (!fixed)
        flags_opaque(l, (ir_value[]){v, count, lower_var(IR_FLAGS)}, 3);
}

static void lower_imul(lower *l, int aux)
{
    (void)aux;
    if (l->insn.operand_count_visible == 1) {
        lower_opaque(l, 0);
        return;
    }
    unsigned width = lower_width(&l->op[0]);
    bool three = l->insn.operand_count_visible == 3;
    int64_t imm = 0;
    ir_value a = three ? lower_read(l, &l->op[1]) : lower_read(l, &l->op[0]);
    ir_value b = source(l, &l->op[three ? 2 : 1], &imm);
    ir_value v = lower_temp(l, IR_MUL, width, a, b, b ? 0 : imm);
    lower_write(l, &l->op[0], v);
    flags_opaque(l, &v, 1);
}

static void lower_cmp(lower *l, int aux)
{
    int64_t imm;
    unsigned width = lower_width(&l->op[0]);
    ir_value a = lower_read(l, &l->op[0]);
    ir_value b = source(l, &l->op[1], &imm);
    flags_define(l, (ir_op)aux, width, a, b, b ? 0 : imm);
}

static void lower_cmov(lower *l, int aux)
{
    (void)aux;
    unsigned width = lower_width(&l->op[0]);
    ir_value b = lower_read(l, &l->op[1]), a = lower_read(l, &l->op[0]);
    ir_value v = lower_emit(l, (ir_insn){.op = IR_SELECT, .width = (uint16_t)width, .var = IR_NOVAR, .a = a, .b = b,
                                         .c = lower_var(IR_FLAGS), .imm = condition_of(l)});
    lower_write(l, &l->op[0], v);
}

static void lower_setcc(lower *l, int aux)
{
    (void)aux;
    ir_value no = lower_const(l, 0), yes = lower_const(l, 1);
    ir_value v = lower_emit(l, (ir_insn){.op = IR_SELECT, .width = 1, .var = IR_NOVAR, .a = no, .b = yes,
                                         .c = lower_var(IR_FLAGS), .imm = condition_of(l)});
    lower_write(l, &l->op[0], v);
}

static ir_value fresh(lower *l, ir_value v)
{
    return v & RAW_VAR ? lower_temp(l, IR_COPY, 8, v, 0, 0) : v;
}

static void lower_xchg(lower *l, int aux)
{
    (void)aux;
    const ZydisDecodedOperand *x = &l->op[0], *y = &l->op[1];
    if (y->type == ZYDIS_OPERAND_TYPE_MEMORY) x = &l->op[1], y = &l->op[0];
    unsigned width = lower_width(x);
    if (x->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        ir_value access = lower_access(l, x, width, IR_READ | IR_WRITE | IR_ATOMIC);
        ir_value b = fresh(l, lower_read(l, y)), a = lower_load(l, access, width, 0);
        lower_write_gpr(l, y->reg.value, width, a);
        lower_store(l, access, width, 0, b);
        return;
    }
    ir_value a = fresh(l, lower_read(l, x)), b = fresh(l, lower_read(l, y));
    lower_write_gpr(l, y->reg.value, width, a);
    lower_write_gpr(l, x->reg.value, width, b);
}

static void lower_xadd(lower *l, int aux)
{
    (void)aux;
    const ZydisDecodedOperand *to = &l->op[0], *from = &l->op[1];
    unsigned width = lower_width(to);
    ir_value b = fresh(l, lower_read(l, from)), access;
    ir_value a = fresh(l, destination_open(l, to, &access));
    ir_value sum = lower_temp(l, IR_LEA, width, a, b, 0);
    lower_write_gpr(l, from->reg.value, width, a);
    destination_close(l, to, access, sum);
    flags_define(l, IR_FLAGRES, width, sum, 0, 0);
}

/* The destination gets the source if it equals the accumulator; the accumulator gets the old destination. */
static void lower_cmpxchg(lower *l, int aux)
{
    (void)aux;
    static const ZydisRegister reg[] = {[1] = ZYDIS_REGISTER_AL, [2] = ZYDIS_REGISTER_AX, [4] = ZYDIS_REGISTER_EAX,
                                        [8] = ZYDIS_REGISTER_RAX};
    const ZydisDecodedOperand *to = &l->op[0];
    unsigned width = lower_width(to);
    if (to->type != ZYDIS_OPERAND_TYPE_MEMORY) { /* processors differ in what they leave in the upper half */
        lower_opaque(l, 0);
        return;
    }
    ir_value from = fresh(l, lower_read(l, &l->op[1]));
    ir_value access = lower_access(l, to, width, IR_READ | IR_WRITE | IR_COND);
    ir_value old = lower_load(l, access, width, 0);
    ir_value flags = lower_emit(l, (ir_insn){.op = IR_CMP, .width = (uint16_t)width, .var = IR_FLAGS,
                                             .a = lower_var(IR_RAX), .b = old});
    ir_insn select = {.op = IR_SELECT, .width = (uint16_t)width, .var = IR_NOVAR, .c = flags, .imm = 4};
    select.a = old, select.b = from;
    ir_value stored = lower_emit(l, select);
    select.a = old, select.b = lower_var(IR_RAX);
    if (width == 4) { /* eax is written only when they differ: the upper half of rax survives a success */
        ir_value high = lower_temp(l, IR_COPY, 4, old, 0, 0);
        select.width = 8, select.a = high;
    }
    ir_value accumulator = lower_emit(l, select);
    if (width == 4)
        lower_define(l, IR_RAX, accumulator);
    else
        lower_write_gpr(l, reg[width], width, accumulator);
    lower_store(l, access, width, 0, stored);
}

static ir_value move_rsp(lower *l, int64_t by)
{
    return lower_emit(l, (ir_insn){.op = IR_LEA, .scale = 1, .width = 8, .var = IR_RSP, .a = lower_var(IR_RSP), .imm = by});
}

static ir_value stack_access(lower *l, unsigned width, unsigned flags)
{
    return lower_access_at(l, (lower_address){.a = lower_var(IR_RSP), .scale = 1}, width, flags | IR_IMPLICIT);
}

static void lower_push(lower *l, int aux)
{
    (void)aux;
    const ZydisDecodedOperand *op = &l->op[0];
    unsigned width = l->insn.operand_width / 8;
    bool segment = op->type == ZYDIS_OPERAND_TYPE_REGISTER && !lower_is_gpr(op);
    ir_value v = segment ? lower_args(l, IR_OPAQUE, width, IR_NOVAR, NULL, 0) : fresh(l, lower_read(l, op));
    move_rsp(l, -(int64_t)width);
    lower_store(l, stack_access(l, width, IR_WRITE), width, 0, v);
}

static void lower_pop(lower *l, int aux)
{
    (void)aux;
    const ZydisDecodedOperand *op = &l->op[0];
    unsigned width = l->insn.operand_width / 8;
    bool segment = op->type == ZYDIS_OPERAND_TYPE_REGISTER && !lower_is_gpr(op);
    ir_value v = lower_load(l, stack_access(l, width, IR_READ), width, 0);
    move_rsp(l, width);
    if (!segment) lower_write(l, op, v);
}

static void lower_leave(lower *l, int aux)
{
    (void)aux;
    unsigned width = l->insn.operand_width / 8;
    lower_emit(l, (ir_insn){.op = IR_COPY, .width = 8, .var = IR_RSP, .a = lower_var(IR_RBP)});
    ir_value v = lower_load(l, stack_access(l, width, IR_READ), width, 0);
    move_rsp(l, width);
    lower_write_gpr(l, width == 8 ? ZYDIS_REGISTER_RBP : ZYDIS_REGISTER_BP, width, v);
}

/* enter: with nesting level 0 it is push, mov, sub. Deeper levels copy frame pointers; no compiler makes them. */
static void lower_enter(lower *l, int aux)
{
    (void)aux;
    unsigned level = (unsigned)l->op[1].imm.value.u & 31;
    if (level || l->insn.operand_width != 64) {
        lower_access_at(l, (lower_address){.scale = 1, .flags = IR_WIDE}, 8, IR_READ | IR_WRITE | IR_IMPLICIT);
        ir_value in[] = {lower_var(IR_RSP), lower_var(IR_RBP)};
        ir_value all = lower_args(l, IR_OPAQUE, 8, IR_NOVAR, in, 2);
        lower_args(l, IR_OPAQUE, 8, IR_RSP, &all, 1);
        lower_args(l, IR_OPAQUE, 8, IR_RBP, &all, 1);
        return;
    }
    ir_value v = fresh(l, lower_var(IR_RBP));
    move_rsp(l, -8);
    lower_store(l, stack_access(l, 8, IR_WRITE), 8, 0, v);
    lower_emit(l, (ir_insn){.op = IR_COPY, .width = 8, .var = IR_RBP, .a = lower_var(IR_RSP)});
    move_rsp(l, -(int64_t)(l->op[0].imm.value.u & 0xffff));
}

static void lower_xlat(lower *l, int aux)
{
    (void)aux;
    ir_value index = lower_temp(l, IR_COPY, 1, lower_var(IR_RAX), 0, 0);
    if (l->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER || l->insn.address_width != 64 ||
        (l->insn.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS))) {
        lower_access_at(l, (lower_address){.a = lower_var(IR_RBX), .scale = 1, .flags = IR_WIDE}, 1, IR_READ);
        ir_value in[] = {lower_var(IR_RBX), index};
        lower_write_gpr(l, ZYDIS_REGISTER_AL, 1, lower_args(l, IR_OPAQUE, 1, IR_NOVAR, in, 2));
        return;
    }
    ir_value access = lower_access_at(l, (lower_address){.a = lower_var(IR_RBX), .b = index, .scale = 1}, 1, IR_READ);
    lower_write_gpr(l, ZYDIS_REGISTER_AL, 1, lower_load(l, access, 1, 0));
}

/* bt, bts, btr, btc: a register bit number reaches beyond the operand in memory. */
static void lower_bit(lower *l, int aux)
{
    (void)aux;
    const ZydisDecodedOperand *to = &l->op[0], *bit = &l->op[1];
    bool writes = l->insn.mnemonic != ZYDIS_MNEMONIC_BT;
    if (to->type != ZYDIS_OPERAND_TYPE_MEMORY || bit->type != ZYDIS_OPERAND_TYPE_REGISTER) {
        lower_opaque(l, 0);
        return;
    }
    unsigned width = lower_width(to);
    lower_address at = lower_address_of(l, to);
    ir_value number = lower_read(l, bit);
    if (width < 8) number = lower_temp(l, IR_SEXT, width, number, 0, 0);
    ir_value word = lower_temp(l, IR_SAR, 8, number, 0, width == 8 ? 6 : width == 4 ? 5 : 4);
    if (at.b)
        at.a = lower_emit(l, (ir_insn){.op = IR_LEA, .scale = at.scale, .width = 8, .var = IR_NOVAR, .a = at.a, .b = at.b});
    at.b = word, at.scale = (uint8_t)width;
    if (l->insn.address_width == 32) { /* the sum is cut to 32 bits, in front of a segment base */
        if (at.flags & (IR_FS | IR_GS)) at.flags |= IR_WIDE;
        at.a = lower_emit(l, (ir_insn){.op = IR_LEA, .scale = at.scale, .width = 4, .var = IR_NOVAR, .a = at.a, .b = at.b});
        at.b = 0, at.scale = 1;
    }
    unsigned flags = IR_READ | (writes ? IR_WRITE : 0) | (l->insn.attributes & ZYDIS_ATTRIB_HAS_LOCK ? IR_ATOMIC : 0);
    ir_value access = lower_access_at(l, at, width, flags);
    ir_value old = lower_load(l, access, width, 0);
    ir_value in[] = {old, number, lower_var(IR_FLAGS)};
    if (writes) lower_store(l, access, width, 0, lower_args(l, IR_OPAQUE, width, IR_NOVAR, in, 2));
    flags_opaque(l, in, 3);
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

enum { STRING_MOVS, STRING_STOS, STRING_LODS, STRING_SCAS, STRING_CMPS };

/* With 32-bit addresses, which no compiler uses: where they lead is left open. */
static void lower_string_narrow(lower *l)
{
    ir_value in[] = {lower_var(IR_RAX), lower_var(IR_RCX), lower_var(IR_RSI), lower_var(IR_RDI), lower_var(IR_FLAGS)};
    lower_access_at(l, (lower_address){.scale = 1, .flags = IR_WIDE}, l->insn.operand_width / 8, IR_READ | IR_WRITE | IR_COND);
    ir_value all = lower_args(l, IR_OPAQUE, 8, IR_NOVAR, in, 5);
    static const uint16_t changed[] = {IR_RAX, IR_RCX, IR_RSI, IR_RDI, IR_FLAGS};
    for (unsigned i = 0; i < sizeof changed / sizeof *changed; i++)
        lower_args(l, IR_OPAQUE, 8, changed[i], &all, 1);
}

static void lower_string(lower *l, int kind)
{
    if (l->insn.address_width != 64) {
        lower_string_narrow(l);
        return;
    }
    unsigned width = l->insn.operand_width / 8;
    if (l->insn.opcode == 0xa4 || l->insn.opcode == 0xa6 || l->insn.opcode == 0xaa || l->insn.opcode == 0xac ||
        l->insn.opcode == 0xae)
        width = 1;
    bool rep = l->insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    bool scans = kind == STRING_SCAS || kind == STRING_CMPS;
    bool uses_rsi = kind == STRING_MOVS || kind == STRING_LODS || kind == STRING_CMPS;
    bool uses_rdi = kind != STRING_LODS;
    unsigned flags = rep ? IR_REP | (scans ? IR_COND : 0) : 0;
    ir_value count = rep ? lower_var(IR_RCX) : 0;
    ir_value from = 0, to = 0, v = 0, w = 0;

    if (uses_rsi) {
        lower_address at = {.a = lower_var(IR_RSI), .scale = 1};
        ZydisRegister segment = l->insn.attributes & ZYDIS_ATTRIB_HAS_SEGMENT_FS   ? ZYDIS_REGISTER_FS
                                : l->insn.attributes & ZYDIS_ATTRIB_HAS_SEGMENT_GS ? ZYDIS_REGISTER_GS
                                                                                   : ZYDIS_REGISTER_NONE;
        if (segment != ZYDIS_REGISTER_NONE) {
            bool fs = segment == ZYDIS_REGISTER_FS;
            at = (lower_address){.a = lower_var(fs ? IR_FSBASE : IR_GSBASE), .b = lower_var(IR_RSI), .scale = 1,
                                 .flags = fs ? IR_FS : IR_GS};
        }
        from = lower_access_at(l, at, width, flags | IR_READ);
        l->raw->code.data[from].c = count;
    }
    if (uses_rdi) {
        bool writes = kind == STRING_MOVS || kind == STRING_STOS;
        to = lower_access_at(l, (lower_address){.a = lower_var(IR_RDI), .scale = 1}, width,
                             flags | (writes ? IR_WRITE : IR_READ));
        l->raw->code.data[to].c = count;
    }
    if (uses_rsi) v = lower_load(l, from, width, 0);
    if (kind == STRING_MOVS) lower_store(l, to, width, 0, v);
    if (kind == STRING_STOS) lower_store(l, to, width, 0, lower_var(IR_RAX));
    if (scans) w = lower_load(l, to, width, 0);
    if (kind == STRING_LODS) {
        static const ZydisRegister reg[] = {[1] = ZYDIS_REGISTER_AL, [2] = ZYDIS_REGISTER_AX, [4] = ZYDIS_REGISTER_EAX,
                                            [8] = ZYDIS_REGISTER_RAX};
        ir_value loaded = rep ? lower_args(l, IR_OPAQUE, width, IR_NOVAR, (ir_value[]){v, lower_var(IR_RAX)}, 2) : v;
        lower_write_gpr(l, reg[width], width, loaded);
    }
    if (scans) {
        ir_value a = kind == STRING_SCAS ? lower_var(IR_RAX) : v;
        if (rep)
            flags_opaque(l, (ir_value[]){a, w, count, lower_var(IR_FLAGS)}, 4);
        else
            flags_define(l, IR_CMP, width, a, w, 0);
    }

    /* step = width, or -width when the direction flag is set */
    ir_value back = lower_temp(l, IR_MUL, 8, lower_var(IR_DF), 0, -2 * (int64_t)width);
    ir_value step = lower_temp(l, IR_LEA, 8, back, 0, width);
    if (rep && !scans) step = lower_temp(l, IR_MUL, 8, step, count, 0);
    uint16_t moved[] = {IR_RSI, IR_RDI};
    for (unsigned i = 0; i < 2; i++) {
        if (!(i ? uses_rdi : uses_rsi)) continue;
        if (rep && scans)
            lower_args(l, IR_OPAQUE, 8, moved[i], (ir_value[]){lower_var(moved[i]), step, count}, 3);
        else
            lower_emit(l, (ir_insn){.op = IR_LEA, .scale = 1, .width = 8, .var = moved[i], .a = lower_var(moved[i]), .b = step});
    }
    if (rep && scans)
        lower_args(l, IR_OPAQUE, 8, IR_RCX, (ir_value[]){lower_var(IR_RCX)}, 1);
    else if (rep)
        lower_define(l, IR_RCX, lower_const(l, 0));
}

/* movsd and cmpsd are also names of vector instructions. */
static void lower_string_or_vector(lower *l, int kind)
{
    if (l->insn.meta.category == ZYDIS_CATEGORY_STRINGOP)
        lower_string(l, kind);
    else if (lower_vector_rules[l->insn.mnemonic].handle)
        lower_vector_rules[l->insn.mnemonic].handle(l, lower_vector_rules[l->insn.mnemonic].aux);
    else
        lower_opaque(l, 0);
}

static void lower_direction(lower *l, int aux)
{
    lower_define(l, IR_DF, lower_const(l, aux));
}

/* popf can set the direction flag as well as the status flags. */
static void lower_popf(lower *l, int aux)
{
    (void)aux;
    unsigned width = l->insn.operand_width / 8;
    ir_value v = lower_load(l, stack_access(l, width, IR_READ), width, 0);
    move_rsp(l, width);
    flags_opaque(l, &v, 1);
    lower_args(l, IR_OPAQUE, 8, IR_DF, &v, 1);
}

static void lower_pushf(lower *l, int aux)
{
    (void)aux;
    unsigned width = l->insn.operand_width / 8;
    ir_value v = lower_args(l, IR_OPAQUE, width, IR_NOVAR, (ir_value[]){lower_var(IR_FLAGS), lower_var(IR_DF)}, 2);
    move_rsp(l, -(int64_t)width);
    lower_store(l, stack_access(l, width, IR_WRITE), width, 0, v);
}

/* rdfsbase, wrfsbase and so on: aux is the variable; negative: written. */
static void lower_segment_base(lower *l, int aux)
{
    if (aux > 0)
        lower_write(l, &l->op[0], lower_temp(l, IR_COPY, lower_width(&l->op[0]), lower_var((uint16_t)aux), 0, 0));
    else
        lower_emit(l, (ir_insn){.op = IR_COPY, .width = (uint16_t)lower_width(&l->op[0]), .var = (uint16_t)-aux,
                                .a = lower_read(l, &l->op[0])});
}

#define M(name) [ZYDIS_MNEMONIC_##name]

#define CONDITIONAL(prefix, handler)                                                                                   \
    M(prefix##O) = {handler, 0}, M(prefix##NO) = {handler, 0}, M(prefix##B) = {handler, 0},                            \
    M(prefix##NB) = {handler, 0}, M(prefix##Z) = {handler, 0}, M(prefix##NZ) = {handler, 0},                           \
    M(prefix##BE) = {handler, 0}, M(prefix##NBE) = {handler, 0}, M(prefix##S) = {handler, 0},                          \
    M(prefix##NS) = {handler, 0}, M(prefix##P) = {handler, 0}, M(prefix##NP) = {handler, 0},                           \
    M(prefix##L) = {handler, 0}, M(prefix##NL) = {handler, 0}, M(prefix##LE) = {handler, 0},                           \
    M(prefix##NLE) = {handler, 0}

const lower_rule lower_scalar_rules[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
    M(MOV) = {lower_mov, 0},
    M(MOVNTI) = {lower_mov, IR_NONTEMPORAL},
    M(MOVZX) = {lower_movzx, 0},
    M(MOVSX) = {lower_movsx, 0},
    M(MOVSXD) = {lower_movsx, 0},
    M(CBW) = {lower_extend_rax, 2},
    M(CWDE) = {lower_extend_rax, 4},
    M(CDQE) = {lower_extend_rax, 8},
    M(CWD) = {lower_extend_rdx, 2},
    M(CDQ) = {lower_extend_rdx, 4},
    M(CQO) = {lower_extend_rdx, 8},
    M(LEA) = {lower_lea, 0},
    M(ADD) = {lower_alu, IR_LEA},
    M(SUB) = {lower_alu, IR_SUB},
    M(AND) = {lower_alu, IR_AND},
    M(OR) = {lower_alu, IR_OR},
    M(XOR) = {lower_alu, IR_XOR},
    M(INC) = {lower_incdec, 1},
    M(DEC) = {lower_incdec, -1},
    M(NEG) = {lower_neg, 0},
    M(NOT) = {lower_not, 0},
    M(SHL) = {lower_shift, IR_SHL},
    M(SHR) = {lower_shift, IR_SHR},
    M(SAR) = {lower_shift, IR_SAR},
    M(IMUL) = {lower_imul, 0},
    M(CMP) = {lower_cmp, IR_CMP},
    M(TEST) = {lower_cmp, IR_TEST},
    M(XCHG) = {lower_xchg, 0},
    M(XADD) = {lower_xadd, 0},
    M(CMPXCHG) = {lower_cmpxchg, 0},
    M(PUSH) = {lower_push, 0},
    M(POP) = {lower_pop, 0},
    M(LEAVE) = {lower_leave, 0},
    M(ENTER) = {lower_enter, 0},
    M(XLAT) = {lower_xlat, 0},
    M(PUSHF) = {lower_pushf, 0},
    M(PUSHFQ) = {lower_pushf, 0},
    M(POPF) = {lower_popf, 0},
    M(POPFQ) = {lower_popf, 0},
    M(BT) = {lower_bit, 0},
    M(BTS) = {lower_bit, 0},
    M(BTR) = {lower_bit, 0},
    M(BTC) = {lower_bit, 0},
    M(CLD) = {lower_direction, 0},
    M(STD) = {lower_direction, 1},
    M(MOVSB) = {lower_string, STRING_MOVS},
    M(MOVSW) = {lower_string, STRING_MOVS},
    M(MOVSD) = {lower_string_or_vector, STRING_MOVS},
    M(MOVSQ) = {lower_string, STRING_MOVS},
    M(STOSB) = {lower_string, STRING_STOS},
    M(STOSW) = {lower_string, STRING_STOS},
    M(STOSD) = {lower_string, STRING_STOS},
    M(STOSQ) = {lower_string, STRING_STOS},
    M(LODSB) = {lower_string, STRING_LODS},
    M(LODSW) = {lower_string, STRING_LODS},
    M(LODSD) = {lower_string, STRING_LODS},
    M(LODSQ) = {lower_string, STRING_LODS},
    M(SCASB) = {lower_string, STRING_SCAS},
    M(SCASW) = {lower_string, STRING_SCAS},
    M(SCASD) = {lower_string, STRING_SCAS},
    M(SCASQ) = {lower_string, STRING_SCAS},
    M(CMPSB) = {lower_string, STRING_CMPS},
    M(CMPSW) = {lower_string, STRING_CMPS},
    M(CMPSD) = {lower_string_or_vector, STRING_CMPS},
    M(CMPSQ) = {lower_string, STRING_CMPS},
    M(RDFSBASE) = {lower_segment_base, IR_FSBASE},
    M(RDGSBASE) = {lower_segment_base, IR_GSBASE},
    M(WRFSBASE) = {lower_segment_base, -IR_FSBASE},
    M(WRGSBASE) = {lower_segment_base, -IR_GSBASE},
    CONDITIONAL(CMOV, lower_cmov),
    CONDITIONAL(SET, lower_setcc),
    /* their memory operands are not accessed, or only as hints */
    M(NOP) = {lower_nothing, 0},
    M(ENDBR64) = {lower_nothing, 0},
    M(ENDBR32) = {lower_nothing, 0},
    M(PAUSE) = {lower_nothing, 0},
    M(PREFETCHNTA) = {lower_nothing, 0},
    M(PREFETCHT0) = {lower_nothing, 0},
    M(PREFETCHT1) = {lower_nothing, 0},
    M(PREFETCHT2) = {lower_nothing, 0},
    M(PREFETCHW) = {lower_nothing, 0},
    M(PREFETCHWT1) = {lower_nothing, 0},
    M(PREFETCH) = {lower_nothing, 0},
    M(CLFLUSH) = {lower_nothing, 0},
    M(CLFLUSHOPT) = {lower_nothing, 0},
    M(CLWB) = {lower_nothing, 0},
    M(CLDEMOTE) = {lower_nothing, 0},
    M(LFENCE) = {lower_nothing, 0},
    M(SFENCE) = {lower_nothing, 0},
    M(MFENCE) = {lower_nothing, 0},
};
