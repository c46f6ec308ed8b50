/* Lowering of vector moves, lane by lane.
 *
 * Compilers copy pairs of pointers with 16-byte moves, build them with movq + punpcklqdq or pinsrq, and clear them with
 * pxor: these have to be exact, or the pointers would be lost in an opaque value. What computes numbers is opaque.
 * A legacy SSE instruction leaves the lanes above 128 bits alone, a VEX or EVEX one clears them. */
#include "static/lift/lower.h"

enum { MAX_LANES = 8 };

typedef struct {
    ir_value v[MAX_LANES];
} lanes;

static bool is_legacy(const lower *l)
{
    return l->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

static bool is_masked(const lower *l)
{
    return l->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && l->insn.avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
           l->insn.avx.mask.mode != ZYDIS_MASK_MODE_DISABLED;
}


/* Every operand is a vector register, or memory; no mask, no broadcast. */
static bool is_plain(const lower *l)
{
    if (is_masked(l)) return false;
    if (l->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
        l->insn.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID)
        return false;
    for (unsigned i = 0; i < l->insn.operand_count_visible; i++)
        if (l->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && !lower_is_vector(&l->op[i])) return false;
    return true;
}

/* The destination's lanes in bytes: the widest vector operand. */
static unsigned lanes_of(const ZydisDecodedOperand *op)
{
    return (unsigned)ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value) / 64;
}

/* Reads `count` lanes of a vector register or of memory. They stay valid while the destination is written. */
static lanes read_lanes(lower *l, const ZydisDecodedOperand *op, unsigned count)
{
    lanes r = {{0}};
    if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        ir_value access = lower_access(l, op, count * 8, IR_READ);
        for (unsigned i = 0; i < count; i++)
            r.v[i] = lower_load(l, access, 8, i * 8);
    } else {
        bool overwritten = lower_is_vector(&l->op[0]) &&
                           ZydisRegisterGetId(l->op[0].reg.value) == ZydisRegisterGetId(op->reg.value);
        for (unsigned i = 0; i < count; i++) {
            r.v[i] = lower_var(lower_lane(op->reg.value, i));
            if (overwritten) r.v[i] = lower_temp(l, IR_COPY, 8, r.v[i], 0, 0);
        }
    }
    return r;
}

/* Makes v the content of the first `count` lanes; `clear`: lanes above them up to 128 bits become zero. */
static void write_lanes(lower *l, const ZydisDecodedOperand *op, lanes v, unsigned count, bool clear)
{
    for (unsigned i = 0; i < count; i++)
        lower_define(l, lower_lane(op->reg.value, i), v.v[i]);
    unsigned end = is_legacy(l) ? (clear ? 2 : 0) : l->raw->lanes;
    for (unsigned i = count; i < end; i++)
        lower_define(l, lower_lane(op->reg.value, i), lower_const(l, 0));
}

/* Full-register moves; aux: flags of the access. */
static void vector_move(lower *l, int aux)
{
    if (!is_plain(l)) {
        lower_opaque(l, 0);
        return;
    }
    bool store = l->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY;
    unsigned count = lanes_of(&l->op[store ? 1 : 0]);
    lanes v = read_lanes(l, &l->op[1], count);
    if (store) {
        ir_value access = lower_access(l, &l->op[0], count * 8, IR_WRITE | (unsigned)aux);
        for (unsigned i = 0; i < count; i++)
            lower_store(l, access, 8, i * 8, v.v[i]);
    } else {
        write_lanes(l, &l->op[0], v, count, false);
    }
}

/* movd, movq between a vector register and a general register, memory, or another vector register. */
static void vector_word(lower *l, int width)
{
    const ZydisDecodedOperand *to = &l->op[0], *from = &l->op[1];
    bool into = lower_is_vector(to), out = lower_is_vector(from);
    if ((!into && !out) || is_masked(l)) { /* MMX */
        lower_opaque(l, 0);
        return;
    }
    if ((to->type == ZYDIS_OPERAND_TYPE_REGISTER && !into && !lower_is_gpr(to)) ||
        (from->type == ZYDIS_OPERAND_TYPE_REGISTER && !out && !lower_is_gpr(from))) {
        lower_opaque(l, 0);
        return;
    }
    ir_value v;
    if (out)
        v = lower_temp(l, IR_COPY, (unsigned)width, lower_var(lower_lane(from->reg.value, 0)), 0, 0);
    else if (from->type == ZYDIS_OPERAND_TYPE_MEMORY)
        v = lower_load(l, lower_access(l, from, (unsigned)width, IR_READ), (unsigned)width, 0);
    else
        v = lower_temp(l, IR_COPY, (unsigned)width, lower_read(l, from), 0, 0);
    if (into)
        write_lanes(l, to, (lanes){{v}}, 1, true);
    else if (to->type == ZYDIS_OPERAND_TYPE_MEMORY)
        lower_store(l, lower_access(l, to, (unsigned)width, IR_WRITE), (unsigned)width, 0, v);
    else
        lower_write_gpr(l, to->reg.value, (unsigned)width, v);
}

/* movss, movsd: from memory they clear the rest, between registers they keep it. */
static void vector_scalar(lower *l, int width)
{
    const ZydisDecodedOperand *to = &l->op[0], *from = &l->op[l->insn.operand_count_visible - 1];
    if (!is_plain(l)) {
        lower_opaque(l, 0);
        return;
    }
    if (to->type == ZYDIS_OPERAND_TYPE_MEMORY || from->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        vector_word(l, width);
        return;
    }
    lanes rest = read_lanes(l, l->insn.operand_count_visible == 3 ? &l->op[1] : to, 2);
    lanes low = read_lanes(l, from, 1);
    rest.v[0] = width == 8 ? low.v[0] : lower_temp(l, IR_INSERT, (unsigned)width, rest.v[0], low.v[0], 0);
    write_lanes(l, to, rest, 2, false);
}

/* movlps, movhps and their pd forms; aux is the lane in the register. */
static void vector_half(lower *l, int lane)
{
    const ZydisDecodedOperand *to = &l->op[0], *from = &l->op[l->insn.operand_count_visible - 1];
    if (!is_plain(l)) {
        lower_opaque(l, 0);
        return;
    }
    if (to->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        ir_value v = lower_var(lower_lane(from->reg.value, (unsigned)lane));
        lower_store(l, lower_access(l, to, 8, IR_WRITE), 8, 0, v);
        return;
    }
    if (from->type != ZYDIS_OPERAND_TYPE_MEMORY) {
        lower_opaque(l, 0);
        return;
    }
    lanes v = read_lanes(l, l->insn.operand_count_visible == 3 ? &l->op[1] : to, 2);
    v.v[lane] = lower_load(l, lower_access(l, from, 8, IR_READ), 8, 0);
    write_lanes(l, to, v, 2, false);
}

/* Two-source shuffles of whole lanes. In each 128-bit part: result lane 0 is lane `first` of the first source, result
 * lane 1 is lane `second` of the second one (aux: 2 * second + first), which may be memory. */
static void vector_pair(lower *l, int aux)
{
    const ZydisDecodedOperand *to = &l->op[0], *y = &l->op[l->insn.operand_count_visible - 1];
    const ZydisDecodedOperand *x = l->insn.operand_count_visible == 3 ? &l->op[1] : to;
    if (!is_plain(l)) {
        lower_opaque(l, 0);
        return;
    }
    unsigned count = lanes_of(to), first = (unsigned)aux & 1, second = (unsigned)aux >> 1;
    lanes a = read_lanes(l, x, count), b = read_lanes(l, y, count), v = {{0}};
    for (unsigned i = 0; i < count; i += 2) {
        v.v[i] = a.v[i + first];
        v.v[i + 1] = b.v[i + second];
    }
    write_lanes(l, to, v, count, false);
}

/* movhlps: lane 0 from lane 1 of the last source. movlhps is vector_pair with lanes 0 and 0. */
static void vector_movhlps(lower *l, int aux)
{
    (void)aux;
    const ZydisDecodedOperand *to = &l->op[0], *y = &l->op[l->insn.operand_count_visible - 1];
    lanes v = read_lanes(l, l->insn.operand_count_visible == 3 ? &l->op[1] : to, 2);
    v.v[0] = read_lanes(l, y, 2).v[1];
    write_lanes(l, to, v, 2, false);
}

static unsigned last_immediate(const lower *l)
{
    return (unsigned)l->op[l->insn.operand_count_visible - 1].imm.value.u;
}

static void vector_shufpd(lower *l, int aux)
{
    (void)aux;
    unsigned visible = l->insn.operand_count_visible, imm = last_immediate(l);
    const ZydisDecodedOperand *to = &l->op[0], *y = &l->op[visible - 2], *x = visible == 4 ? &l->op[1] : to;
    if (!is_plain(l)) {
        lower_opaque(l, 0);
        return;
    }
    unsigned count = lanes_of(to);
    lanes a = read_lanes(l, x, count), b = read_lanes(l, y, count), v = {{0}};
    for (unsigned i = 0; i < count; i += 2) {
        v.v[i] = a.v[i + ((imm >> i) & 1)];
        v.v[i + 1] = b.v[i + ((imm >> (i + 1)) & 1)];
    }
    write_lanes(l, to, v, count, false);
}

static void vector_pshufd(lower *l, int aux)
{
    (void)aux;
    if (!is_plain(l)) {
        lower_opaque(l, 0);
        return;
    }
    unsigned count = lanes_of(&l->op[0]), imm = last_immediate(l);
    lanes a = read_lanes(l, &l->op[1], count), v = {{0}};
    for (unsigned i = 0; i < count; i++) {
        unsigned low = (imm >> (4 * (i & 1))) & 3, high = (imm >> (4 * (i & 1) + 2)) & 3, part = i & ~1u;
        if (high == low + 1 && !(low & 1)) { /* a whole lane */
            v.v[i] = a.v[part + low / 2];
            continue;
        }
        ir_value x = lower_temp(l, IR_EXTRACT, 4, a.v[part + low / 2], 0, 4 * (low & 1));
        ir_value y = lower_temp(l, IR_EXTRACT, 4, a.v[part + high / 2], 0, 4 * (high & 1));
        v.v[i] = lower_temp(l, IR_INSERT, 4, x, y, 4);
    }
    write_lanes(l, &l->op[0], v, count, false);
}

static void vector_vpermq(lower *l, int aux)
{
    (void)aux;
    if (!is_plain(l) || l->op[2].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        lower_opaque(l, 0);
        return;
    }
    unsigned count = lanes_of(&l->op[0]), imm = last_immediate(l);
    lanes a = read_lanes(l, &l->op[1], count), v = {{0}};
    for (unsigned i = 0; i < count; i++)
        v.v[i] = a.v[(i & ~3u) + ((imm >> (2 * (i & 3))) & 3)];
    write_lanes(l, &l->op[0], v, count, false);
}

/* psrldq and pslldq by eight bytes; aux is the lane that is cleared. */
static void vector_byte_shift(lower *l, int cleared)
{
    if (!is_plain(l) || last_immediate(l) != 8) {
        lower_opaque(l, 0);
        return;
    }
    const ZydisDecodedOperand *from = &l->op[l->insn.operand_count_visible - 2];
    unsigned count = lanes_of(&l->op[0]);
    lanes a = read_lanes(l, from, count), v = {{0}};
    for (unsigned i = 0; i < count; i += 2) {
        v.v[i + (unsigned)cleared] = lower_const(l, 0);
        v.v[i + 1 - (unsigned)cleared] = a.v[i + (unsigned)cleared];
    }
    write_lanes(l, &l->op[0], v, count, false);
}

/* pinsrq, pinsrd; aux is the width. */
static void vector_insert(lower *l, int width)
{
    unsigned visible = l->insn.operand_count_visible, per = 8 / (unsigned)width;
    unsigned index = last_immediate(l) % (2 * per);
    const ZydisDecodedOperand *from = &l->op[visible - 2];
    lanes v = read_lanes(l, visible == 4 ? &l->op[1] : &l->op[0], 2);
    ir_value in = from->type == ZYDIS_OPERAND_TYPE_MEMORY
                      ? lower_load(l, lower_access(l, from, (unsigned)width, IR_READ), (unsigned)width, 0)
                      : lower_temp(l, IR_COPY, (unsigned)width, lower_read(l, from), 0, 0);
    unsigned lane = index / per;
    v.v[lane] = width == 8 ? in : lower_temp(l, IR_INSERT, (unsigned)width, v.v[lane], in, index % per * (unsigned)width);
    write_lanes(l, &l->op[0], v, 2, false);
}

static void vector_extract(lower *l, int width)
{
    unsigned per = 8 / (unsigned)width, index = last_immediate(l) % (2 * per);
    ir_value lane = lower_var(lower_lane(l->op[1].reg.value, index / per));
    ir_value v = lower_temp(l, IR_EXTRACT, (unsigned)width, lane, 0, index % per * (unsigned)width);
    if (l->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
        lower_store(l, lower_access(l, &l->op[0], (unsigned)width, IR_WRITE), (unsigned)width, 0, v);
    else
        lower_write_gpr(l, l->op[0].reg.value, (unsigned)width, v);
}

/* vinserti128, vextracti128 and their f forms. */
static void vector_insert128(lower *l, int aux)
{
    (void)aux;
    if (!is_plain(l) || lanes_of(&l->op[0]) != 4) {
        lower_opaque(l, 0);
        return;
    }
    unsigned part = (last_immediate(l) & 1) * 2;
    lanes v = read_lanes(l, &l->op[1], 4), in = read_lanes(l, &l->op[2], 2);
    v.v[part] = in.v[0], v.v[part + 1] = in.v[1];
    write_lanes(l, &l->op[0], v, 4, false);
}

static void vector_extract128(lower *l, int aux)
{
    (void)aux;
    if (!is_plain(l) || lanes_of(&l->op[1]) != 4) {
        lower_opaque(l, 0);
        return;
    }
    unsigned part = (last_immediate(l) & 1) * 2;
    lanes all = read_lanes(l, &l->op[1], 4), v = {{all.v[part], all.v[part + 1]}};
    if (l->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
        ir_value access = lower_access(l, &l->op[0], 16, IR_WRITE);
        lower_store(l, access, 8, 0, v.v[0]);
        lower_store(l, access, 8, 8, v.v[1]);
    } else {
        write_lanes(l, &l->op[0], v, 2, false);
    }
}

/* movddup, vbroadcastsd, vpbroadcastq: lane 0 of each 128-bit part (aux 2), or of the source (aux 0), everywhere. */
static void vector_broadcast(lower *l, int aux)
{
    if (is_masked(l) || (l->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && !lower_is_vector(&l->op[1]))) {
        lower_opaque(l, 0);
        return;
    }
    unsigned count = lanes_of(&l->op[0]);
    bool narrow = aux == 0 || count == 2; /* 8 bytes are read from memory */
    lanes a = read_lanes(l, &l->op[1], narrow ? 1 : count), v = {{0}};
    for (unsigned i = 0; i < count; i++)
        v.v[i] = a.v[narrow ? 0 : i & ~1u];
    write_lanes(l, &l->op[0], v, count, false);
}

static void vector_broadcast128(lower *l, int aux)
{
    (void)aux;
    if (is_masked(l) || l->op[1].type != ZYDIS_OPERAND_TYPE_MEMORY) {
        lower_opaque(l, 0);
        return;
    }
    unsigned count = lanes_of(&l->op[0]);
    lanes a = read_lanes(l, &l->op[1], 2), v = {{0}};
    for (unsigned i = 0; i < count; i++)
        v.v[i] = a.v[i & 1];
    write_lanes(l, &l->op[0], v, count, false);
}

enum { BITWISE_ANDN = IR_OP_COUNT };

/* Lane-wise and, andn, or, xor, add, sub: exact, since tagged pointers and cleared registers come this way. */
static void vector_bitwise(lower *l, int aux)
{
    unsigned visible = l->insn.operand_count_visible;
    const ZydisDecodedOperand *to = &l->op[0], *y = &l->op[visible - 1], *x = visible == 3 ? &l->op[1] : to;
    if (!is_plain(l) || !lower_is_vector(to)) {
        lower_opaque(l, 0);
        return;
    }
    unsigned count = lanes_of(to);
    lanes v = {{0}};
    if ((aux == IR_XOR || aux == IR_SUB) && y->type == ZYDIS_OPERAND_TYPE_REGISTER && x->reg.value == y->reg.value) {
        for (unsigned i = 0; i < count; i++)
            v.v[i] = lower_const(l, 0);
    } else {
        lanes a = read_lanes(l, x, count), b = read_lanes(l, y, count);
        for (unsigned i = 0; i < count; i++) {
            ir_value left = aux == BITWISE_ANDN ? lower_temp(l, IR_NOT, 8, a.v[i], 0, 0) : a.v[i];
            v.v[i] = lower_temp(l, aux == BITWISE_ANDN ? IR_AND : (ir_op)aux, 8, left, b.v[i], 0);
        }
    }
    write_lanes(l, to, v, count, false);
}

/* vzeroupper (aux 2) and vzeroall (aux 0): lanes from aux on of the first sixteen registers. */
static void vector_zero(lower *l, int aux)
{
    for (unsigned reg = 0; reg < 16; reg++)
        for (unsigned lane = (unsigned)aux; lane < l->raw->lanes; lane++)
            lower_define(l, (uint16_t)(IR_VECTOR + 8 * reg + lane), lower_const(l, 0));
}

#define M(name)     [ZYDIS_MNEMONIC_##name]
#define BOTH(name, ...) M(name) = {__VA_ARGS__}, M(V##name) = {__VA_ARGS__}

const lower_rule lower_vector_rules[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
    BOTH(MOVAPS, vector_move, 0),
    BOTH(MOVAPD, vector_move, 0),
    BOTH(MOVUPS, vector_move, 0),
    BOTH(MOVUPD, vector_move, 0),
    BOTH(MOVDQA, vector_move, 0),
    BOTH(MOVDQU, vector_move, 0),
    BOTH(LDDQU, vector_move, 0),
    BOTH(MOVNTDQA, vector_move, 0),
    BOTH(MOVNTDQ, vector_move, IR_NONTEMPORAL),
    BOTH(MOVNTPS, vector_move, IR_NONTEMPORAL),
    BOTH(MOVNTPD, vector_move, IR_NONTEMPORAL),
    M(VMOVDQA32) = {vector_move, 0},
    M(VMOVDQA64) = {vector_move, 0},
    M(VMOVDQU8) = {vector_move, 0},
    M(VMOVDQU16) = {vector_move, 0},
    M(VMOVDQU32) = {vector_move, 0},
    M(VMOVDQU64) = {vector_move, 0},
    BOTH(MOVQ, vector_word, 8),
    BOTH(MOVD, vector_word, 4),
    BOTH(MOVSS, vector_scalar, 4),
    BOTH(MOVSD, vector_scalar, 8),
    BOTH(MOVLPS, vector_half, 0),
    BOTH(MOVLPD, vector_half, 0),
    BOTH(MOVHPS, vector_half, 1),
    BOTH(MOVHPD, vector_half, 1),
    BOTH(MOVHLPS, vector_movhlps, 0),
    BOTH(MOVLHPS, vector_pair, 0),
    BOTH(PUNPCKLQDQ, vector_pair, 0),
    BOTH(UNPCKLPD, vector_pair, 0),
    BOTH(PUNPCKHQDQ, vector_pair, 3),
    BOTH(UNPCKHPD, vector_pair, 3),
    BOTH(SHUFPD, vector_shufpd, 0),
    BOTH(PSHUFD, vector_pshufd, 0),
    M(VPERMQ) = {vector_vpermq, 0},
    M(VPERMPD) = {vector_vpermq, 0},
    BOTH(PSRLDQ, vector_byte_shift, 1),
    BOTH(PSLLDQ, vector_byte_shift, 0),
    BOTH(PINSRQ, vector_insert, 8),
    BOTH(PINSRD, vector_insert, 4),
    BOTH(PEXTRQ, vector_extract, 8),
    BOTH(PEXTRD, vector_extract, 4),
    M(VINSERTI128) = {vector_insert128, 0},
    M(VINSERTF128) = {vector_insert128, 0},
    M(VEXTRACTI128) = {vector_extract128, 0},
    M(VEXTRACTF128) = {vector_extract128, 0},
    BOTH(MOVDDUP, vector_broadcast, 2),
    M(VBROADCASTSD) = {vector_broadcast, 0},
    M(VPBROADCASTQ) = {vector_broadcast, 0},
    M(VBROADCASTI128) = {vector_broadcast128, 0},
    M(VBROADCASTF128) = {vector_broadcast128, 0},
    BOTH(PAND, vector_bitwise, IR_AND),
    BOTH(ANDPS, vector_bitwise, IR_AND),
    BOTH(ANDPD, vector_bitwise, IR_AND),
    BOTH(PANDN, vector_bitwise, BITWISE_ANDN),
    BOTH(ANDNPS, vector_bitwise, BITWISE_ANDN),
    BOTH(ANDNPD, vector_bitwise, BITWISE_ANDN),
    BOTH(POR, vector_bitwise, IR_OR),
    BOTH(ORPS, vector_bitwise, IR_OR),
    BOTH(ORPD, vector_bitwise, IR_OR),
    BOTH(PXOR, vector_bitwise, IR_XOR),
    BOTH(XORPS, vector_bitwise, IR_XOR),
    BOTH(XORPD, vector_bitwise, IR_XOR),
    BOTH(PADDQ, vector_bitwise, IR_LEA),
    BOTH(PSUBQ, vector_bitwise, IR_SUB),
    M(VPANDD) = {vector_bitwise, IR_AND},
    M(VPANDQ) = {vector_bitwise, IR_AND},
    M(VPANDND) = {vector_bitwise, BITWISE_ANDN},
    M(VPANDNQ) = {vector_bitwise, BITWISE_ANDN},
    M(VPORD) = {vector_bitwise, IR_OR},
    M(VPORQ) = {vector_bitwise, IR_OR},
    M(VPXORD) = {vector_bitwise, IR_XOR},
    M(VPXORQ) = {vector_bitwise, IR_XOR},
    M(VZEROUPPER) = {vector_zero, 2},
    M(VZEROALL) = {vector_zero, 0},
};
