/* The IR of one function: all passes in their order, and small questions about it. */
#include "static/lift/raw.h"

#include <stdlib.h>

static uint64_t written_by(const raw_func *raw)
{
    uint64_t written = 0;
    for (uint32_t i = 1; i < raw->code.len; i++) {
        const ir_insn *insn = &raw->code.data[i];
        bool perhaps = (insn->op == IR_RESULT || insn->op == IR_CLOBBER) && insn->b;
        if (insn->var != IR_NOVAR && !perhaps) written |= ir_written_bit(insn->var);
    }
    return written;
}

ir_func *ir_build(const image *img, const lift_func *func)
{
    ir_func *ir = base_alloc_zero(1, sizeof *ir);
    ir->func = func;
    ir->blocks = arena_alloc(&ir->memory, (size_t)func->block_count * sizeof *ir->blocks);
    ir_dominators(ir);
    ir_loops(ir);
    ir_liveness(img, ir);

    raw_func raw = {.img = img, .func = func};
    raw_lower(&raw);
    if (!raw_frame(&raw, ir, true)) {
        raw_free(&raw);
        raw = (raw_func){.img = img, .func = func};
        raw_lower(&raw);
        raw_frame(&raw, ir, false);
    }
    ir->written = written_by(&raw);
    raw_to_ssa(&raw, ir);
    raw_free(&raw);
    return ir;
}

void ir_free(ir_func *ir)
{
    if (!ir) return;
    arena memory = ir->memory;
    free(ir);
    arena_free(&memory);
}

bool ir_frame_offset(const ir_func *ir, ir_value v, int32_t *offset, uint8_t *base)
{
    int32_t at = ir->frame[v];
    if (!frame_is(at)) return false;
    *base = at > FRAME_LIMIT;
    *offset = *base ? at - FRAME_REALIGNED : at;
    return true;
}

ir_value ir_origin(const ir_func *ir, ir_value v)
{
    while (v && ir->insns[v].op == IR_COPY && ir->insns[v].width == 8)
        v = ir->insns[v].a;
    return v;
}

const char *ir_var_name(const ir_func *ir, uint16_t var, char buffer[16])
{
    static const char *const registers[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi",   "rdi",   "r8",
                                            "r9",  "r10", "r11", "r12", "r13", "r14", "r15",   "flags", "fsbase",
                                            "gsbase", "x87", "masks", "df"};
    if (var < sizeof registers / sizeof *registers) return registers[var];
    if (var >= IR_SLOT && var - IR_SLOT < (int)ir->slot_count) {
        const ir_slot *slot = &ir->slots[var - IR_SLOT];
        snprintf(buffer, 16, "%s%c%x", slot->base ? "al" : "sp", slot->offset < 0 ? '-' : '+', (unsigned)abs(slot->offset));
    } else if (var >= IR_VECTOR && var < IR_SLOT) {
        snprintf(buffer, 16, "xmm%u.%u", (var - IR_VECTOR) / 8u, (var - IR_VECTOR) % 8u);
    } else {
        snprintf(buffer, 16, "?%u", (unsigned)var);
    }
    return buffer;
}

const char *ir_op_name(ir_op op)
{
    static const char *const names[IR_OP_COUNT] = {
        [IR_NONE] = "none",     [IR_ENTRY] = "entry",     [IR_UNDEF] = "undef",     [IR_CONST] = "const",
        [IR_ADDRESS] = "address", [IR_COPY] = "copy",     [IR_SEXT] = "sext",       [IR_LEA] = "lea",
        [IR_SUB] = "sub",       [IR_MUL] = "mul",         [IR_AND] = "and",         [IR_OR] = "or",
        [IR_XOR] = "xor",       [IR_SHL] = "shl",         [IR_SHR] = "shr",         [IR_SAR] = "sar",
        [IR_NEG] = "neg",       [IR_NOT] = "not",         [IR_INSERT] = "insert",   [IR_EXTRACT] = "extract",
        [IR_SELECT] = "select", [IR_PHI] = "phi",         [IR_OPAQUE] = "opaque",   [IR_CMP] = "cmp",
        [IR_TEST] = "test",     [IR_FLAGRES] = "flagres", [IR_ACCESS] = "access",   [IR_LOAD] = "load",
        [IR_STORE] = "store",   [IR_CALL] = "call",       [IR_TAIL] = "tail",       [IR_RESULT] = "result",
        [IR_CLOBBER] = "clobber", [IR_PAD] = "pad",       [IR_BRANCH] = "branch", [IR_SWITCH] = "switch",   [IR_RET] = "ret",
        [IR_SYSCALL] = "syscall", [IR_TRAP] = "trap",
    };
    return op < IR_OP_COUNT ? names[op] : "?";
}
