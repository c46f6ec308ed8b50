/* Lowering of what changes the flow: jumps, calls by the SysV ABI, returns, system calls. */
#include "static/lift/lower.h"

static const uint16_t call_registers[] = {
    [IR_CALL_RDI] = IR_RDI, [IR_CALL_RSI] = IR_RSI, [IR_CALL_RDX] = IR_RDX, [IR_CALL_RCX] = IR_RCX,
    [IR_CALL_R8] = IR_R8,   [IR_CALL_R9] = IR_R9,   [IR_CALL_RSP] = IR_RSP, [IR_CALL_RAX] = IR_RAX,
    [IR_CALL_R10] = IR_R10,
};

static const uint16_t clobbered[] = {IR_RCX, IR_RSI, IR_RDI, IR_R8, IR_R9, IR_R10, IR_R11, IR_FLAGS, IR_X87, IR_MASKS};

/* What var may be after a call: see IR_RESULT. Definitions that nobody needs are dropped by ssa.c. */
static void after_call(lower *l, ir_op op, uint16_t var, ir_value call, bool local)
{
    lower_emit(l, (ir_insn){.op = (uint8_t)op, .width = 8, .var = var, .a = call, .b = local ? lower_var(var) : 0});
}

static void define_after_call(lower *l, ir_value call, bool local)
{
    after_call(l, IR_RESULT, IR_RAX, call, local);
    after_call(l, IR_RESULT, IR_RDX, call, local);
    for (unsigned i = 0; i < sizeof clobbered / sizeof *clobbered; i++)
        after_call(l, IR_CLOBBER, clobbered[i], call, local && clobbered[i] != IR_FLAGS);
    for (unsigned reg = 0; reg < (l->raw->lanes == 8 ? 32 : 16); reg++)
        for (unsigned lane = 0; lane < l->raw->lanes; lane++)
            after_call(l, reg < 2 ? IR_RESULT : IR_CLOBBER, (uint16_t)(IR_VECTOR + 8 * reg + lane), call, local);
    lower_define(l, IR_DF, lower_const(l, 0)); /* the ABI's rule */
}

/* The address that the call goes to: `*imm` for a direct call or a GOT slot, else a value. */
static ir_value call_target(lower *l, int64_t *imm, bool *local)
{
    const lift_insn *insn = &l->raw->func->insns[l->at];
    *imm = 0;
    *local = false;
    switch (insn->flow) {
    case FLOW_CALL:
    case FLOW_JUMP:
    case FLOW_BRANCH:
        *imm = (int64_t)lift_target(insn);
        *local = !image_plt_at(l->raw->img, lift_target(insn));
        return 0;
    case FLOW_CALL_SLOT:
    case FLOW_JUMP_SLOT:
        *imm = (int64_t)lift_target(insn);
        return lower_read(l, &l->op[0]);
    default: {
        ir_value v = lower_read(l, &l->op[0]);
        return v & RAW_VAR ? lower_temp(l, IR_COPY, 8, v, 0, 0) : v;
    }
    }
}

static ir_value emit_call(lower *l, ir_op op, ir_value target, int64_t imm)
{
    ir_value args[IR_CALL_ARGS];
    args[IR_CALL_TARGET] = target;
    for (unsigned i = IR_CALL_RDI; i <= IR_CALL_R10; i++)
        args[i] = lower_var(call_registers[i]);
    for (unsigned i = 0; i < 8; i++)
        args[IR_CALL_XMM0 + i] = l->raw->lanes ? lower_var((uint16_t)(IR_VECTOR + 8 * i)) : 0;
    ir_value call = lower_args(l, op, 8, IR_NOVAR, args, IR_CALL_ARGS);
    l->raw->code.data[call].imm = imm;
    return call;
}

void lower_tail_call(lower *l, ir_value target, int64_t imm)
{
    emit_call(l, IR_TAIL, target, imm);
}

static void lower_call(lower *l, int aux)
{
    (void)aux;
    const lift_insn *insn = &l->raw->func->insns[l->at];
    int64_t imm;
    bool local;
    ir_value target = call_target(l, &imm, &local);
    ir_value back = lower_temp(l, IR_ADDRESS, 8, 0, 0, (int64_t)(insn->addr + insn->len));
    ir_value access = lower_access_at(l, (lower_address){.a = lower_var(IR_RSP), .scale = 1, .imm = -8}, 8,
                                      IR_WRITE | IR_IMPLICIT);
    lower_store(l, access, 8, 0, back);
    ir_value call = emit_call(l, IR_CALL, target, imm);
    if (!l->last || l->raw->func->blocks[l->block].succ_count) define_after_call(l, call, local);
}

static void lower_jump(lower *l, int aux)
{
    (void)aux;
    const lift_block *block = &l->raw->func->blocks[l->block];
    const lift_insn *insn = &l->raw->func->insns[l->at];
    int64_t imm;
    bool local;
    if (block->end_kind == END_TAIL || block->end_kind == END_TAIL_IND) {
        ir_value target = call_target(l, &imm, &local);
        lower_tail_call(l, target, imm);
    } else if (insn->flow != FLOW_JUMP) {
        ir_value target = call_target(l, &imm, &local);
        lower_emit(l, (ir_insn){.op = IR_SWITCH, .width = 8, .var = IR_NOVAR, .a = target, .imm = imm});
    }
}

static void lower_branch(lower *l, int aux)
{
    (void)aux;
    const lift_block *block = &l->raw->func->blocks[l->block];
    unsigned condition = l->insn.opcode & 15;
    if (block->tail && l->last) {
        ir_value call = emit_call(l, IR_TAIL, 0, (int64_t)lift_target(&l->raw->func->insns[l->at]));
        l->raw->code.data[call].c = lower_var(IR_FLAGS);
        l->raw->code.data[call].scale = (uint8_t)(condition + 1);
    }
    lower_emit(l, (ir_insn){.op = IR_BRANCH, .var = IR_NOVAR, .c = lower_var(IR_FLAGS), .imm = condition});
}

/* loop, loope, loopne, jrcxz, jecxz: on the counter; the first three decrement it. */
static void lower_counter(lower *l, int aux)
{
    unsigned width = l->insn.address_width / 8;
    ir_value counter = lower_var(IR_RCX);
    if (aux) {
        ir_value less = lower_temp(l, IR_LEA, width, counter, 0, -1);
        lower_define(l, IR_RCX, less);
    }
    lower_emit(l, (ir_insn){.op = IR_BRANCH, .width = (uint16_t)width, .var = IR_NOVAR, .a = lower_var(IR_RCX),
                            .c = lower_var(IR_FLAGS), .imm = -1});
}

static void lower_ret(lower *l, int aux)
{
    (void)aux;
    static const uint16_t vars[IR_RET_ARGS] = {
        [IR_RET_RAX] = IR_RAX, [IR_RET_RDX] = IR_RDX, [IR_RET_XMM0] = IR_VECTOR, [IR_RET_XMM1] = IR_VECTOR + 8,
        [IR_RET_RSP] = IR_RSP, [IR_RET_RBX] = IR_RBX, [IR_RET_RBP] = IR_RBP,     [IR_RET_R12] = IR_R12,
        [IR_RET_R13] = IR_R13, [IR_RET_R14] = IR_R14, [IR_RET_R15] = IR_R15,
    };
    ir_value args[IR_RET_ARGS];
    lower_access_at(l, (lower_address){.a = lower_var(IR_RSP), .scale = 1}, 8, IR_READ | IR_IMPLICIT);
    for (unsigned i = 0; i < IR_RET_ARGS; i++)
        args[i] = vars[i] < IR_VECTOR || l->raw->lanes ? lower_var(vars[i]) : 0;
    lower_args(l, IR_RET, 8, IR_NOVAR, args, IR_RET_ARGS);
}

static void lower_syscall(lower *l, int aux)
{
    (void)aux;
    static const uint16_t vars[] = {IR_RAX, IR_RDI, IR_RSI, IR_RDX, IR_R10, IR_R8, IR_R9};
    ir_value args[sizeof vars / sizeof *vars];
    for (unsigned i = 0; i < sizeof vars / sizeof *vars; i++)
        args[i] = lower_var(vars[i]);
    ir_value call = lower_args(l, IR_SYSCALL, 8, IR_NOVAR, args, sizeof vars / sizeof *vars);
    after_call(l, IR_RESULT, IR_RAX, call, false);
    after_call(l, IR_CLOBBER, IR_RCX, call, false);
    after_call(l, IR_CLOBBER, IR_R11, call, false);
    /* arch_prctl(ARCH_SET_FS) changes the base, in libc's start-up code only */
}

static void lower_trap(lower *l, int aux)
{
    (void)aux;
    lower_emit(l, (ir_insn){.op = IR_TRAP, .var = IR_NOVAR});
}

#define M(name) [ZYDIS_MNEMONIC_##name]

const lower_rule lower_control_rules[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
    M(CALL) = {lower_call, 0},       M(JMP) = {lower_jump, 0},        M(RET) = {lower_ret, 0},
    M(JO) = {lower_branch, 0},       M(JNO) = {lower_branch, 0},      M(JB) = {lower_branch, 0},
    M(JNB) = {lower_branch, 0},      M(JZ) = {lower_branch, 0},       M(JNZ) = {lower_branch, 0},
    M(JBE) = {lower_branch, 0},      M(JNBE) = {lower_branch, 0},     M(JS) = {lower_branch, 0},
    M(JNS) = {lower_branch, 0},      M(JP) = {lower_branch, 0},       M(JNP) = {lower_branch, 0},
    M(JL) = {lower_branch, 0},       M(JNL) = {lower_branch, 0},      M(JLE) = {lower_branch, 0},
    M(JNLE) = {lower_branch, 0},     M(LOOP) = {lower_counter, 1},    M(LOOPE) = {lower_counter, 1},
    M(LOOPNE) = {lower_counter, 1},  M(JRCXZ) = {lower_counter, 0},   M(JECXZ) = {lower_counter, 0},
    M(SYSCALL) = {lower_syscall, 0}, M(SYSENTER) = {lower_syscall, 0}, M(INT) = {lower_syscall, 0},
    M(INT3) = {lower_trap, 0},       M(INT1) = {lower_trap, 0},       M(UD0) = {lower_trap, 0},
    M(UD1) = {lower_trap, 0},        M(UD2) = {lower_trap, 0},        M(HLT) = {lower_trap, 0},
};
