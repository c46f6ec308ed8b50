/* One machine instruction: its length, what it does to control flow, and the address it names.
 *
 * The bulk of the code is decoded without operands, straight from what Zydis leaves in `raw`: this is the inner loop of
 * discovery. Operands are decoded again, on demand, by the few passes that want them. */
#include "static/lift/flow.h"

/* What ZydisDecoderInit makes for 64-bit mode, as a constant that all threads share. */
static const ZydisDecoder decoder = {
    .machine_mode = ZYDIS_MACHINE_MODE_LONG_64,
    .stack_width = ZYDIS_STACK_WIDTH_64,
    .decoder_mode =
        {
            [ZYDIS_DECODER_MODE_MPX] = ZYAN_TRUE,
            [ZYDIS_DECODER_MODE_CET] = ZYAN_TRUE,
            [ZYDIS_DECODER_MODE_LZCNT] = ZYAN_TRUE,
            [ZYDIS_DECODER_MODE_TZCNT] = ZYAN_TRUE,
            [ZYDIS_DECODER_MODE_WBNOINVD] = ZYAN_TRUE,
            [ZYDIS_DECODER_MODE_CLDEMOTE] = ZYAN_TRUE,
        },
};

/* Of jmp and call only the direct form is listed here; flow_decode looks at the operand. */
static const uint8_t flow_of[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
    [ZYDIS_MNEMONIC_JMP] = FLOW_JUMP,
    [ZYDIS_MNEMONIC_CALL] = FLOW_CALL,
    [ZYDIS_MNEMONIC_RET] = FLOW_RET,
    [ZYDIS_MNEMONIC_IRET] = FLOW_RET,
    [ZYDIS_MNEMONIC_IRETD] = FLOW_RET,
    [ZYDIS_MNEMONIC_IRETQ] = FLOW_RET,
    [ZYDIS_MNEMONIC_SYSRET] = FLOW_RET,
    [ZYDIS_MNEMONIC_SYSEXIT] = FLOW_RET,
    [ZYDIS_MNEMONIC_UIRET] = FLOW_RET,
    [ZYDIS_MNEMONIC_SYSCALL] = FLOW_SYSCALL,
    [ZYDIS_MNEMONIC_SYSENTER] = FLOW_SYSCALL,
    [ZYDIS_MNEMONIC_INT] = FLOW_TRAP,
    [ZYDIS_MNEMONIC_INT1] = FLOW_TRAP,
    [ZYDIS_MNEMONIC_INT3] = FLOW_TRAP,
    [ZYDIS_MNEMONIC_HLT] = FLOW_TRAP,
    [ZYDIS_MNEMONIC_UD0] = FLOW_TRAP,
    [ZYDIS_MNEMONIC_UD1] = FLOW_TRAP,
    [ZYDIS_MNEMONIC_UD2] = FLOW_TRAP,
    [ZYDIS_MNEMONIC_XBEGIN] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_LOOP] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_LOOPE] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_LOOPNE] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JCXZ] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JECXZ] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JRCXZ] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JB] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JBE] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JL] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JLE] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNB] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNBE] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNL] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNLE] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNO] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNP] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNS] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JNZ] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JO] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JP] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JS] = FLOW_BRANCH,
    [ZYDIS_MNEMONIC_JZ] = FLOW_BRANCH,
};

static bool has_segment(const ZydisDecodedInstruction *zi)
{
    return zi->attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS);
}

bool flow_decode_any(const uint8_t *bytes, uint64_t available, flow_raw *raw)
{
    ZydisDecodedInstruction zi;
    if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, available, &zi))) return false;
    const ZydisDecodedInstructionRaw *r = &zi.raw;
    bool modrm = zi.attributes & ZYDIS_ATTRIB_HAS_MODRM, far = zi.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    *raw = (flow_raw){.mnemonic = (uint16_t)zi.mnemonic, .len = zi.length};
    bool plain = !has_segment(&zi) && zi.address_width == 64 && !far;
    raw->rip = modrm && plain && r->modrm.mod == 0 && r->modrm.rm == 5;
    raw->has_disp32 = plain && r->disp.size == 32;
    raw->disp = (int32_t)r->disp.value;
    if (r->imm[0].is_relative)
        raw->relative = (int32_t)r->imm[0].value.s;
    else
        raw->indirect = modrm || far;
    raw->has_imm = r->imm[0].size >= 32 && !r->imm[0].is_relative;
    raw->imm = zi.operand_width == 32 && r->imm[0].size == 32 ? (uint32_t)r->imm[0].value.u : r->imm[0].value.u;
    return true;
}

static uint8_t trap(const flow_raw *raw, const uint8_t *bytes, uint64_t available)
{
    if (raw->mnemonic == ZYDIS_MNEMONIC_INT) {
        uint8_t vector = bytes[raw->len - 1];
        return vector == 0x80 ? FLOW_SYSCALL : vector == 3 ? FLOW_PLAIN : FLOW_TRAP;
    }
    /* A breakpoint goes on when the signal is handled; a run of them is padding. */
    if (raw->mnemonic == ZYDIS_MNEMONIC_INT3 || raw->mnemonic == ZYDIS_MNEMONIC_INT1)
        return available > raw->len && bytes[raw->len] != bytes[0] ? FLOW_PLAIN : FLOW_TRAP;
    return FLOW_TRAP;
}

/* The address that it names; `absolute`: by an immediate or displacement too. */
static flow_ref reference(const flow_raw *raw, uint64_t next, bool absolute)
{
    if (raw->rip)
        return (flow_ref){.addr = next + (uint64_t)(int64_t)raw->disp,
                          .kind = raw->mnemonic == ZYDIS_MNEMONIC_LEA ? REF_POINTER : REF_ACCESS,
                          .stored = absolute && raw->has_imm ? raw->imm : 0};
    if (absolute && raw->has_imm) return (flow_ref){.addr = raw->imm, .kind = REF_POINTER};
    if (absolute && raw->has_disp32) return (flow_ref){.addr = (uint64_t)(int64_t)raw->disp, .kind = REF_ACCESS};
    return (flow_ref){.kind = REF_NONE};
}

bool flow_decode(const uint8_t *bytes, uint64_t available, uint64_t addr, bool absolute, lift_insn *insn,
                 flow_ref *ref)
{
    flow_raw raw;
    if (!flow_decode_fast(bytes, available, &raw) && !flow_decode_any(bytes, available, &raw)) return false;
    *insn = (lift_insn){.addr = addr, .mnemonic = raw.mnemonic, .len = raw.len, .flow = flow_of[raw.mnemonic]};
    switch (insn->flow) {
    case FLOW_JUMP:
    case FLOW_CALL:
        insn->relative = raw.relative;
        if (!raw.indirect) break;
        insn->relative = raw.rip ? raw.disp : 0;
        insn->flow = insn->flow == FLOW_JUMP ? (raw.rip ? FLOW_JUMP_SLOT : FLOW_JUMP_IND)
                                             : (raw.rip ? FLOW_CALL_SLOT : FLOW_CALL_IND);
        break;
    case FLOW_BRANCH: insn->relative = raw.relative; break;
    case FLOW_TRAP: insn->flow = trap(&raw, bytes, available); break;
    default: break;
    }
    *ref = reference(&raw, addr + raw.len, absolute);
    return true;
}

bool lift_decode(const image *img, uint64_t addr, lift_insn *insn)
{
    uint64_t available = 0;
    flow_ref ref;
    const uint8_t *bytes = image_bytes(img, addr, &available);
    return bytes && image_is_code(img, addr) && flow_decode(bytes, available, addr, false, insn, &ref);
}

bool flow_operands(const image *img, const lift_insn *insn, ZydisDecodedInstruction *zi,
                   ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT])
{
    uint64_t available = 0;
    const uint8_t *bytes = image_bytes(img, insn->addr, &available);
    return bytes && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, available, zi, ops));
}

uint32_t flow_padding(const uint8_t *bytes, uint64_t available)
{
    if (!available) return 0;
    if (bytes[0] == 0xcc || bytes[0] == 0x90) return 1;
    if (bytes[0] == 0) {
        /* zeros that reach an aligned address or the end are filling; `add %al,(%rax)` in code is never meant */
        return 1;
    }
    if (bytes[0] != 0x66 && bytes[0] != 0x0f && bytes[0] != 0x2e && bytes[0] != 0xf3) return 0;
    lift_insn insn;
    flow_ref ref;
    if (!flow_decode(bytes, available, 0, false, &insn, &ref)) return 0;
    return insn.mnemonic == ZYDIS_MNEMONIC_NOP ? insn.len : 0;
}
