/* The memory operands of a machine instruction as actions of a plan. Requires nothing but the bytes. */
#include "static/place/place.h"

#include <Zydis/Zydis.h>

/* The machine number of a 64- or 32-bit general register; PLAN_NOTHING for none. False: something else. */
static bool register_value(ZydisRegister reg, uint8_t *value)
{
    *value = PLAN_NOTHING;
    if (reg == ZYDIS_REGISTER_NONE) return true;
    ZydisRegisterClass class = ZydisRegisterGetClass(reg);
    if (class != ZYDIS_REGCLASS_GPR64 && class != ZYDIS_REGCLASS_GPR32) return false;
    *value = (uint8_t)(PLAN_REGISTER + ZydisRegisterGetId(reg));
    return true;
}

/* bt, bts, btr and btc with a register: it is a bit offset that may lead out of the operand. */
static bool is_bit_test(const ZydisDecodedInstruction *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_BT || insn->mnemonic == ZYDIS_MNEMONIC_BTS ||
           insn->mnemonic == ZYDIS_MNEMONIC_BTR || insn->mnemonic == ZYDIS_MNEMONIC_BTC;
}

static uint8_t bit_offset_register(ZydisRegister reg)
{
    return (uint8_t)(PLAN_REGISTER +
                     ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)));
}

static bool is_stack_access(const ZydisDecodedOperand *op)
{
    return op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
           (op->mem.base == ZYDIS_REGISTER_RSP || op->mem.base == ZYDIS_REGISTER_RBP);
}

static bool is_cmpxchg(ZydisMnemonic mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_CMPXCHG || mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B ||
           mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B;
}

/* A vector move under a mask: which bytes are accessed is in a vector or mask register. */
static bool is_masked(const ZydisDecodedInstruction *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ: return true;
    default: break;
    }
    return insn->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && insn->avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
           insn->avx.mask.mode != ZYDIS_MASK_MODE_DISABLED;
}

static bool is_vector(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
    for (unsigned i = 0; i < insn->operand_count_visible; i++) {
        if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        ZydisRegisterClass class = ZydisRegisterGetClass(ops[i].reg.value);
        if (class == ZYDIS_REGCLASS_XMM || class == ZYDIS_REGCLASS_YMM || class == ZYDIS_REGCLASS_ZMM) return true;
    }
    return false;
}

static place_operand convert(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops, unsigned at,
                             const lift_insn *from)
{
    const ZydisDecodedOperand *op = &ops[at];
    place_operand out = {.known = op->mem.type == ZYDIS_MEMOP_TYPE_MEM && insn->mnemonic != ZYDIS_MNEMONIC_XLAT &&
                                  !is_masked(insn)};
    plan_action *a = &out.action;
    *a = (plan_action){.kind = PLAN_CHECK,
                       .base = PLAN_NOTHING,
                       .index = PLAN_NOTHING,
                       .scale = 1,
                       .bits = PLAN_NOTHING,
                       .width = insn->address_width == 32 ? 4 : 8,
                       .counter = PLAN_NOTHING,
                       .count = 1,
                       .size = (uint32_t)op->size / 8};
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) a->flags |= PLAN_READ;
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) a->flags |= PLAN_WRITE;
    a->disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
    if (op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP) {
        a->base = PLAN_MODULE;
        a->disp += (int64_t)(from->addr + from->len);
    } else {
        out.known &= register_value(op->mem.base, &a->base) && register_value(op->mem.index, &a->index);
    }
    if (op->mem.scale && a->index != PLAN_NOTHING) a->scale = op->mem.scale;
    if (op->mem.segment == ZYDIS_REGISTER_FS) a->segment = PLAN_SEGMENT_FS;
    if (op->mem.segment == ZYDIS_REGISTER_GS) a->segment = PLAN_SEGMENT_GS;
    if (is_bit_test(insn) && at == 0 && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
        a->bits = bit_offset_register(ops[1].reg.value);
    out.known &= a->flags && a->size && a->size <= PLAN_MAX_ELEMENT;
    return out;
}

static void repeat(const ZydisDecodedInstruction *insn, plan_action *a)
{
    a->counter = PLAN_REGISTER + 1; /* rcx */
    a->count = 0;
    a->stride = (int32_t)a->size;
    a->flags |= PLAN_DOWN;
    bool scans = insn->meta.category == ZYDIS_CATEGORY_STRINGOP &&
                 (insn->attributes & (ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE));
    if (scans) a->flags |= PLAN_UNTIL;
}

static uint32_t written_registers(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
    uint32_t written = 0;
    for (unsigned i = 0; i < insn->operand_count; i++) {
        if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER || !(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) continue;
        ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[i].reg.value);
        if (ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64) written |= 1u << ZydisRegisterGetId(whole);
    }
    return written;
}

static bool is_ordering(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
    if (insn->attributes & (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_IS_PRIVILEGED)) return true;
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP: return true;
    default: break;
    }
    return insn->mnemonic == ZYDIS_MNEMONIC_XCHG &&
           (ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY || ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

bool place_decode(const image *img, const lift_insn *insn, place_insn *out)
{
    memset(out, 0, sizeof *out);
    uint64_t available;
    const uint8_t *bytes = image_bytes(img, insn->addr, &available);
    ZydisDecoder decoder;
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!bytes || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, available, &decoded, ops))) return false;
    out->is_vector = is_vector(&decoded, ops);
    out->is_exchange = is_cmpxchg(decoded.mnemonic);
    out->is_ordering = is_ordering(&decoded, ops);
    out->writes = written_registers(&decoded, ops);
    out->is_repeated = decoded.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    for (unsigned i = 0; i < decoded.operand_count; i++) {
        const ZydisDecodedOperand *op = &ops[i];
        if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN || is_stack_access(op))
            continue;
        if (out->operand_count == PLACE_OPERANDS) return false;
        place_operand *to = &out->operands[out->operand_count++];
        *to = convert(&decoded, ops, i, insn);
        if (out->is_repeated) repeat(&decoded, &to->action);
        if (out->is_repeated && decoded.address_width != 64) to->known = false; /* ecx counts: not expressible */
    }
    return true;
}
