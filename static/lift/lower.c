/* Machine instructions to IR, not yet SSA.
 *
 * Two ways: a handler for every instruction that matters for pointers, addresses and conditions, found in a table by
 * mnemonic, and one general way for all others. The general way takes the operands as Zydis reports them, hidden ones
 * included: each memory operand becomes an access, each register written becomes an IR_OPAQUE of all that is read.
 * So no instruction is ever dropped, and an instruction set extension that nobody here has heard of is at worst
 * imprecise. */
#include "static/lift/lower.h"

#include <stdlib.h>

/* --- building blocks --------------------------------------------------------------------------------------------- */

ir_value lower_emit(lower *l, ir_insn insn)
{
    raw_func *raw = l->raw;
    insn.insn = l->at;
    vec_push(&raw->code, insn);
    return raw->code.len - 1;
}

ir_value lower_temp(lower *l, ir_op op, unsigned width, ir_value a, ir_value b, int64_t imm)
{
    return lower_emit(l, (ir_insn){.op = (uint8_t)op,
                                   .scale = 1,
                                   .width = (uint16_t)width,
                                   .var = IR_NOVAR,
                                   .a = a,
                                   .b = b,
                                   .imm = imm});
}

ir_value lower_const(lower *l, int64_t imm)
{
    return lower_temp(l, IR_CONST, 8, 0, 0, imm);
}

ir_value lower_args(lower *l, ir_op op, unsigned width, uint16_t var, const ir_value *args, uint32_t count)
{
    raw_func *raw = l->raw;
    uint32_t first = raw->args.len;
    for (uint32_t i = 0; i < count; i++)
        vec_push(&raw->args, args[i]);
    return lower_emit(l,
                      (ir_insn){.op = (uint8_t)op, .width = (uint16_t)width, .var = var, .a = first, .b = count});
}

/* True if `v` can become the definition of `var` where it stands: nothing since then has used or defined var. */
static bool can_define_in_place(const lower *l, uint16_t var, ir_value v)
{
    const raw_func *raw = l->raw;
    if (v & RAW_VAR) return false;
    const ir_insn *insn = &raw->code.data[v];
    if (insn->var != IR_NOVAR || insn->insn != l->at || insn->op == IR_ACCESS) return false;
    for (uint32_t i = v + 1; i < raw->code.len; i++) {
        const ir_insn *later = &raw->code.data[i];
        if (raw_has_args(later->op) || later->var == var) return false;
        if (later->a == lower_var(var) || later->b == lower_var(var) || later->c == lower_var(var)) return false;
    }
    return true;
}

void lower_define(lower *l, uint16_t var, ir_value v)
{
    if (can_define_in_place(l, var, v))
        l->raw->code.data[v].var = var;
    else
        lower_emit(l, (ir_insn){.op = IR_COPY, .width = 8, .var = var, .a = v});
}

bool lower_is_gpr(const ZydisDecodedOperand *op)
{
    if (op->type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    ZydisRegisterClass class = ZydisRegisterGetClass(op->reg.value);
    return class >= ZYDIS_REGCLASS_GPR8 && class <= ZYDIS_REGCLASS_GPR64;
}

bool lower_is_vector(const ZydisDecodedOperand *op)
{
    if (op->type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    ZydisRegisterClass class = ZydisRegisterGetClass(op->reg.value);
    return class == ZYDIS_REGCLASS_XMM || class == ZYDIS_REGCLASS_YMM || class == ZYDIS_REGCLASS_ZMM;
}

uint16_t lower_gpr(ZydisRegister reg, bool *high)
{
    unsigned id = (unsigned)ZydisRegisterGetId(reg);
    *high = false;
    if (ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR8 && id >= 4) { /* al..bl, ah..bh, spl..dil, r8b.. */
        *high = id < 8;
        id -= 4;
    }
    return (uint16_t)(IR_RAX + id);
}

uint16_t lower_lane(ZydisRegister reg, unsigned lane)
{
    return (uint16_t)(IR_VECTOR + 8 * (unsigned)ZydisRegisterGetId(reg) + lane);
}

unsigned lower_width(const ZydisDecodedOperand *op)
{
    return op->size / 8;
}

bool lower_is_address(const lower *l, int64_t value, unsigned field_offset)
{
    const image *img = l->raw->img;
    if (img->kind == IMAGE_OBJECT)
        return field_offset && image_reloc_at(img, l->raw->func->insns[l->at].addr + field_offset);
    return img->kind == IMAGE_EXEC && value >= 0x1000 && image_section_at(img, (uint64_t)value);
}

static ir_value lower_module_address(lower *l, uint64_t addr)
{
    return lower_temp(l, IR_ADDRESS, 8, 0, 0, (int64_t)addr);
}

ir_value lower_immediate(lower *l, const ZydisDecodedOperand *op)
{
    int64_t value = op->imm.value.s;
    unsigned which = l->insn.raw.imm[1].size && op->encoding == ZYDIS_OPERAND_ENCODING_UIMM8 ? 1 : 0;
    if (op->size >= 32 && lower_is_address(l, value, l->insn.raw.imm[which].offset))
        return lower_module_address(l, (uint64_t)value);
    return lower_const(l, value);
}

/* A register that takes part in an address: narrow ones (xlat's al) are zero-extended. */
static ir_value lower_address_part(lower *l, ZydisRegister reg)
{
    if (reg == ZYDIS_REGISTER_NONE) return 0;
    bool high;
    ZydisRegisterClass class = ZydisRegisterGetClass(reg);
    if (class < ZYDIS_REGCLASS_GPR8 || class > ZYDIS_REGCLASS_GPR64) return 0; /* eiz, riz */
    uint16_t var = lower_gpr(reg, &high);
    if (class == ZYDIS_REGCLASS_GPR64) return lower_var(var);
    return lower_temp(l, IR_COPY, class == ZYDIS_REGCLASS_GPR8 ? 1 : class == ZYDIS_REGCLASS_GPR16 ? 2 : 4,
                      lower_var(var), 0, 0);
}

lower_address lower_address_of(lower *l, const ZydisDecodedOperand *op)
{
    lower_address at = {.scale = 1};
    const lift_insn *insn = &l->raw->func->insns[l->at];
    bool narrow = l->insn.address_width == 32;

    if (op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP) {
        uint64_t addr = insn->addr + insn->len + (uint64_t)op->mem.disp.value;
        at.a = lower_module_address(l, addr);
        if (narrow) at.a = lower_temp(l, IR_COPY, 4, at.a, 0, 0);
    } else {
        /* Zydis 4.0 reports a base with 32-bit addresses where the encoding has none */
        bool baseless = (l->insn.attributes & ZYDIS_ATTRIB_HAS_SIB) && l->insn.raw.modrm.mod == 0 && l->insn.raw.sib.base == 5;
        at.a = baseless ? 0 : lower_address_part(l, op->mem.base);
        if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB || op->mem.type == ZYDIS_MEMOP_TYPE_MIB)
            at.flags = IR_WIDE;
        else
            at.b = lower_address_part(l, op->mem.index);
        at.scale = op->mem.scale && at.b ? op->mem.scale : 1;
        at.imm = op->mem.disp.has_displacement ? op->mem.disp.value : baseless ? l->insn.raw.disp.value : 0;
        bool flat = op->mem.segment != ZYDIS_REGISTER_FS && op->mem.segment != ZYDIS_REGISTER_GS;
        if (flat && at.imm && lower_is_address(l, at.imm, l->insn.raw.disp.offset)) {
            if (at.a && at.b) at.b = lower_emit(l, (ir_insn){.op = IR_LEA, .scale = at.scale, .width = 8,
                                                             .var = IR_NOVAR, .a = at.a, .b = at.b}), at.scale = 1;
            else if (at.a) at.b = at.a;
            at.a = lower_module_address(l, (uint64_t)at.imm);
            at.imm = 0;
        }
        if (narrow) {
            at.a = lower_emit(l, (ir_insn){.op = IR_LEA, .scale = at.scale, .width = 4, .var = IR_NOVAR, .a = at.a,
                                           .b = at.b, .imm = at.imm});
            at.b = 0, at.scale = 1, at.imm = 0;
        }
    }
    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN) return at;
    if (op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS) {
        bool fs = op->mem.segment == ZYDIS_REGISTER_FS;
        if (at.b || at.a)
            at.b = lower_emit(l, (ir_insn){.op = IR_LEA, .scale = at.scale, .width = 8, .var = IR_NOVAR, .a = at.a,
                                           .b = at.b, .imm = at.imm}),
            at.imm = 0;
        at.a = lower_var(fs ? IR_FSBASE : IR_GSBASE);
        at.scale = 1;
        at.flags |= fs ? IR_FS : IR_GS;
    }
    return at;
}

ir_value lower_access_at(lower *l, lower_address at, unsigned width, unsigned flags)
{
    return lower_emit(l, (ir_insn){.op = IR_ACCESS,
                                   .scale = at.scale,
                                   .width = (uint16_t)width,
                                   .var = IR_NOVAR,
                                   .flags = (uint16_t)(flags | at.flags),
                                   .a = at.a,
                                   .b = at.b,
                                   .imm = at.imm});
}

ir_value lower_access(lower *l, const ZydisDecodedOperand *op, unsigned width, unsigned flags)
{
    if (l->insn.attributes & ZYDIS_ATTRIB_HAS_LOCK) flags |= IR_ATOMIC;
    return lower_access_at(l, lower_address_of(l, op), width, flags);
}

ir_value lower_load(lower *l, ir_value access, unsigned width, unsigned offset)
{
    return lower_temp(l, IR_LOAD, width, access, 0, offset);
}

void lower_store(lower *l, ir_value access, unsigned width, unsigned offset, ir_value v)
{
    lower_temp(l, IR_STORE, width, access, v, offset);
}

ir_value lower_read(lower *l, const ZydisDecodedOperand *op)
{
    bool high;
    if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return lower_immediate(l, op);
    if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
        return lower_load(l, lower_access(l, op, lower_width(op), IR_READ), lower_width(op), 0);
    uint16_t var = lower_gpr(op->reg.value, &high);
    return high ? lower_temp(l, IR_EXTRACT, 1, lower_var(var), 0, 1) : lower_var(var);
}

void lower_write_gpr(lower *l, ZydisRegister reg, unsigned width, ir_value v)
{
    bool high;
    uint16_t var = lower_gpr(reg, &high);
    const ir_insn *last = v & RAW_VAR ? NULL : &l->raw->code.data[v];
    if (width >= 8 || (width == 4 && last && last->width == 4 && last->op != IR_SEXT))
        lower_define(l, var, v);
    else if (width == 4)
        lower_emit(l, (ir_insn){.op = IR_COPY, .width = 4, .var = var, .a = v});
    else
        lower_emit(l, (ir_insn){.op = IR_INSERT, .width = (uint16_t)width, .var = var, .a = lower_var(var), .b = v,
                                .imm = high});
}

void lower_write(lower *l, const ZydisDecodedOperand *op, ir_value v)
{
    unsigned width = lower_width(op);
    if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
        lower_store(l, lower_access(l, op, width, IR_WRITE), width, 0, v);
    else
        lower_write_gpr(l, op->reg.value, width, v);
}

/* --- the general way ------------------------------------------------------------------------------------------------ */

typedef struct {
    ir_value v[96];
    uint32_t count;
} inputs;

static void inputs_add(inputs *in, ir_value v)
{
    if (in->count < sizeof in->v / sizeof *in->v) in->v[in->count++] = v;
}

/* The variables of a register operand that is not a general register: first and number; 0 for those without any. */
static unsigned lower_other_vars(const lower *l, const ZydisDecodedOperand *op, uint16_t *first)
{
    switch (ZydisRegisterGetClass(op->reg.value)) {
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: {
        unsigned lanes = (unsigned)ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value) / 64;
        *first = lower_lane(op->reg.value, 0);
        return lanes < l->raw->lanes ? lanes : l->raw->lanes;
    }
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX: *first = IR_X87; return 1;
    case ZYDIS_REGCLASS_MASK: *first = IR_MASKS; return 1;
    default: break;
    }
    switch (op->reg.value) {
    case ZYDIS_REGISTER_X87CONTROL:
    case ZYDIS_REGISTER_X87STATUS:
    case ZYDIS_REGISTER_X87TAG: *first = IR_X87; return 1;
    default: return 0;
    }
}

static bool is_flags(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_REGISTER && ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_FLAGS;
}

static void opaque_read_register(lower *l, const ZydisDecodedOperand *op, inputs *in)
{
    uint16_t first = 0;
    if (lower_is_gpr(op)) {
        bool high;
        inputs_add(in, lower_var(lower_gpr(op->reg.value, &high)));
        return;
    }
    unsigned count = lower_other_vars(l, op, &first);
    for (unsigned i = 0; i < count; i++)
        inputs_add(in, lower_var((uint16_t)(first + i)));
}

static void opaque_write_register(lower *l, const ZydisDecodedOperand *op, ir_value all)
{
    uint16_t first = 0;
    if (lower_is_gpr(op)) {
        unsigned width = lower_width(op);
        lower_write_gpr(l, op->reg.value, width, lower_args(l, IR_OPAQUE, width, IR_NOVAR, &all, 1));
        return;
    }
    unsigned count = lower_other_vars(l, op, &first);
    for (unsigned i = 0; i < count; i++)
        lower_args(l, IR_OPAQUE, 8, (uint16_t)(first + i), &all, 1);
    if (lower_is_vector(op) && l->insn.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
        for (unsigned i = count; i < l->raw->lanes; i++)
            lower_define(l, lower_lane(op->reg.value, i), lower_const(l, 0));
}

/* What Zydis does not tell of an instruction. */
enum {
    QUIRK_COND = 1, /* not all bytes of the memory operand are accessed */
    QUIRK_WIDE = 2, /* which bytes it accesses depends on the processor's state */
    QUIRK_STATE = 4 /* restores vector, mask and x87 registers */
};

static const struct {
    ZydisMnemonic mnemonic;
    uint8_t quirks;
} quirks[] = {
    {ZYDIS_MNEMONIC_MASKMOVQ, QUIRK_COND},
    {ZYDIS_MNEMONIC_MASKMOVDQU, QUIRK_COND},
    {ZYDIS_MNEMONIC_VMASKMOVDQU, QUIRK_COND},
    {ZYDIS_MNEMONIC_VMASKMOVPS, QUIRK_COND},
    {ZYDIS_MNEMONIC_VMASKMOVPD, QUIRK_COND},
    {ZYDIS_MNEMONIC_VPMASKMOVD, QUIRK_COND},
    {ZYDIS_MNEMONIC_VPMASKMOVQ, QUIRK_COND},
    {ZYDIS_MNEMONIC_BNDMOV, QUIRK_COND}, /* a no-op without MPX */
    {ZYDIS_MNEMONIC_FXSAVE, QUIRK_COND}, /* some of its 512 bytes are left alone */
    {ZYDIS_MNEMONIC_FXSAVE64, QUIRK_COND},
    {ZYDIS_MNEMONIC_FXRSTOR, QUIRK_STATE | QUIRK_COND},
    {ZYDIS_MNEMONIC_FXRSTOR64, QUIRK_STATE | QUIRK_COND},
    {ZYDIS_MNEMONIC_XSAVE, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XSAVE64, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XSAVEC, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XSAVEC64, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XSAVEOPT, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XSAVEOPT64, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XSAVES, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XSAVES64, QUIRK_WIDE},
    {ZYDIS_MNEMONIC_XRSTOR, QUIRK_WIDE | QUIRK_STATE},
    {ZYDIS_MNEMONIC_XRSTOR64, QUIRK_WIDE | QUIRK_STATE},
    {ZYDIS_MNEMONIC_XRSTORS, QUIRK_WIDE | QUIRK_STATE},
    {ZYDIS_MNEMONIC_XRSTORS64, QUIRK_WIDE | QUIRK_STATE},
};

static unsigned quirks_of(ZydisMnemonic mnemonic)
{
    for (unsigned i = 0; i < sizeof quirks / sizeof *quirks; i++)
        if (quirks[i].mnemonic == mnemonic) return quirks[i].quirks;
    return 0;
}

static void opaque_write_state(lower *l, ir_value all)
{
    for (unsigned reg = 0; reg < (l->raw->lanes == 8 ? 32 : 16); reg++)
        for (unsigned lane = 0; lane < l->raw->lanes; lane++)
            lower_args(l, IR_OPAQUE, 8, (uint16_t)(IR_VECTOR + 8 * reg + lane), &all, 1);
    lower_args(l, IR_OPAQUE, 8, IR_X87, &all, 1);
    lower_args(l, IR_OPAQUE, 8, IR_MASKS, &all, 1);
}

void lower_opaque(lower *l, int aux)
{
    (void)aux;
    inputs in = {.count = 0};
    unsigned odd = quirks_of(l->insn.mnemonic);
    ir_value access[ZYDIS_MAX_OPERAND_COUNT] = {0};
    bool masked = l->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
                  l->insn.avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
                  l->insn.avx.mask.mode != ZYDIS_MASK_MODE_DISABLED;
    const ZydisAccessedFlags *touched = l->insn.cpu_flags; /* Zydis' operand alone misses adcx and adox */
    bool flags_read = touched && touched->tested;
    bool flags_written = touched && (touched->modified | touched->set_0 | touched->set_1 | touched->undefined);

    for (unsigned i = 0; i < l->insn.operand_count; i++) {
        const ZydisDecodedOperand *op = &l->op[i];
        bool writes = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
        bool keeps = writes && (masked || (lower_is_vector(op) && l->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY));
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            if (is_flags(op)) continue;
            if ((op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) || keeps || (op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE))
                opaque_read_register(l, op, &in);
        } else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type != ZYDIS_MEMOP_TYPE_AGEN && op->actions) {
            unsigned width = lower_width(op), flags = 0;
            if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) flags |= IR_READ;
            if (writes) flags |= IR_WRITE;
            if (masked || (op->actions & (ZYDIS_OPERAND_ACTION_CONDREAD | ZYDIS_OPERAND_ACTION_CONDWRITE))) flags |= IR_COND;
            if (!width || (odd & QUIRK_WIDE)) flags |= IR_WIDE;
            if (odd & QUIRK_COND) flags |= IR_COND;
            access[i] = lower_access(l, op, width, flags);
            if (flags & IR_READ)
                for (unsigned k = 0; k < width && k < 64; k += 8)
                    inputs_add(&in, lower_load(l, access[i], width - k < 8 ? width - k : 8, k));
        }
    }
    if (flags_read) inputs_add(&in, lower_var(IR_FLAGS));

    ir_value all = lower_args(l, IR_OPAQUE, 8, IR_NOVAR, in.v, in.count);
    for (unsigned i = 0; i < l->insn.operand_count; i++) {
        const ZydisDecodedOperand *op = &l->op[i];
        if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) continue;
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            opaque_write_register(l, op, all);
        } else if (access[i]) {
            unsigned width = lower_width(op);
            for (unsigned k = 0; k < width; k += 8)
                lower_store(l, access[i], width - k < 8 ? width - k : 8, k, all);
        }
    }
    if (odd & QUIRK_STATE) opaque_write_state(l, all);
    if (flags_written) lower_args(l, IR_OPAQUE, 8, IR_FLAGS, (ir_value[]){all, lower_var(IR_FLAGS)}, 2);
}

/* --- the driver ------------------------------------------------------------------------------------------------------- */

/* An instruction that can be decoded for flow but not in full, or whose block ends in undecodable bytes. */
static void lower_undecodable(lower *l)
{
    lower_emit(l, (ir_insn){.op = IR_TRAP, .var = IR_NOVAR});
}

static void lower_one(lower *l, ZydisDecoder *decoder)
{
    const lift_insn *insn = &l->raw->func->insns[l->at];
    uint64_t available = 0;
    const uint8_t *bytes = image_bytes(l->raw->img, insn->addr, &available);
    if (!bytes || available < insn->len ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, bytes, insn->len, &l->insn, l->op))) {
        lower_undecodable(l);
        return;
    }
    const lower_rule *tables[] = {lower_scalar_rules, lower_control_rules, lower_vector_rules};
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++) {
        const lower_rule *rule = &tables[i][l->insn.mnemonic];
        if (rule->handle) {
            rule->handle(l, rule->aux);
            return;
        }
    }
    lower_opaque(l, 0);
}

/* How many lanes of the vector registers the function can tell apart: none when it has no vector instruction, and no
 * more than the widest that it has. */
static uint8_t lower_lanes(const raw_func *raw)
{
    uint8_t lanes = 0;
    for (uint32_t i = 0; i < raw->func->insn_count; i++) {
        const lift_insn *insn = &raw->func->insns[i];
        bool scalar = lower_scalar_rules[insn->mnemonic].handle || lower_control_rules[insn->mnemonic].handle;
        if (scalar && !lower_vector_rules[insn->mnemonic].handle) continue;
        uint64_t available = 0;
        const uint8_t *bytes = image_bytes(raw->img, insn->addr, &available);
        if (!bytes) continue;
        if (!lanes) lanes = 2;
                unsigned skip = 0;
        while (skip < insn->len && (bytes[skip] == 0x64 || bytes[skip] == 0x65 || bytes[skip] == 0x67))
            skip++;
        if (skip < insn->len && bytes[skip] == 0x62) return 8; /* EVEX */
        if (skip + 2 < insn->len) {
            if (bytes[skip] == 0xc5 && (bytes[skip + 1] & 4)) lanes = 4; /* VEX.L */
            if (bytes[skip] == 0xc4 && (bytes[skip + 2] & 4)) lanes = 4;
        }
    }
    return lanes;
}

/* A block without instructions: the one before it falls into another function, or into bytes that do not decode. What it does is
 * done by the instruction that falls, which is the last one in front of it. */
static void lower_empty(lower *l, const lift_block *block)
{
    l->at = block->first_insn - (block->first_insn > 0);
    if (block->end_kind == END_TAIL)
        lower_tail_call(l, 0, (int64_t)block->start);
    else
        lower_undecodable(l);
}

void raw_lower(raw_func *raw)
{
    const lift_func *func = raw->func;
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    raw->lanes = lower_lanes(raw);
    vec_reserve(&raw->code, 16 + func->insn_count * 3);
    vec_push(&raw->code, (ir_insn){.op = IR_NONE, .var = IR_NOVAR});
    vec_push(&raw->args, 0);
    raw->first = base_alloc(((size_t)func->block_count + 1) * sizeof *raw->first);

    lower l = {.raw = raw};
    for (uint32_t b = 0; b < func->block_count; b++) {
        raw->first[b] = raw->code.len;
        const lift_block *block = &func->blocks[b];
        l.block = b;
        l.at = block->first_insn;
        if (block->is_pad)
            lower_emit(&l, (ir_insn){.op = IR_PAD, .width = 8, .var = IR_RSP, .a = lower_var(IR_RSP)});
        for (uint32_t i = 0; i < block->insn_count; i++) {
            l.at = block->first_insn + i;
            l.last = i + 1 == block->insn_count;
            lower_one(&l, &decoder);
        }
        if (!block->insn_count) lower_empty(&l, block);
    }
    raw->first[func->block_count] = raw->code.len;
}

void raw_free(raw_func *raw)
{
    vec_free(&raw->code);
    vec_free(&raw->args);
    vec_free(&raw->slots);
    free(raw->first);
    free(raw->frame);
    free(raw->frame_in);
}
