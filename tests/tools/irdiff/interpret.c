/* What each IR operation means. Written from the comments in lift.h, not from the lowering: this is the other opinion.
 */
#include "irdiff.h"

#include <stdlib.h>

static const value unknown = {0, 0};

static value known(uint64_t bits)
{
    return (value){bits, ~0ull};
}

static bool is_known(value v)
{
    return v.known == ~0ull;
}

static uint64_t low_bytes(uint64_t v, unsigned width)
{
    return width >= 8 ? v : v & ((1ull << (8 * width)) - 1);
}

static int64_t sign_extend(uint64_t v, unsigned width)
{
    return width >= 8 ? (int64_t)v : (int64_t)(v << (64 - 8 * width)) >> (64 - 8 * width);
}

void interpret_close(interpreter *in)
{
    free(in->values);
    vec_free(&in->predicted);
}

/* --- operands and variables --------------------------------------------------------------------------------------- */

static bool has_args(uint8_t op)
{
    return op == IR_PHI || op == IR_OPAQUE || op == IR_CALL || op == IR_TAIL || op == IR_RET || op == IR_SYSCALL;
}

void interpret_operands(const ir_func *ir, const ir_insn *insn, interpret_visit *visit, void *context)
{
    if (has_args(insn->op)) {
        for (uint32_t i = 0; i < insn->b; i++)
            if (ir->args[insn->a + i]) visit(context, ir->args[insn->a + i]);
    } else {
        if (insn->a) visit(context, insn->a);
        if (insn->b) visit(context, insn->b);
    }
    if (insn->c) visit(context, insn->c);
}

bool interpret_slot(const interpreter *in, const ir_slot *slot, uint64_t *addr)
{
    if (slot->base && !in->has_realigned) return false;
    *addr = (slot->base ? in->realigned_sp : in->entry_sp) + (uint64_t)(int64_t)slot->offset;
    return true;
}

value interpret_var(const interpreter *in, uint16_t var, const machine *m)
{
    if (var < 16) return known(m->gpr[var]);
    if (var == IR_FLAGS) return known(m->flags & FLAG_STATUS);
    if (var == IR_DF) return known(m->flags & FLAG_DF ? 1 : 0);
    if (var == IR_FSBASE) return known(m->fs);
    if (var == IR_GSBASE) return known(m->gs);
    if (var >= IR_VECTOR && var < IR_VECTOR + 256) {
        unsigned lane = (var - IR_VECTOR) % 8; /* the upper half of 512 bits is there only if the processor has it */
        if (lane >= 4 && !__builtin_cpu_supports("avx512f")) return unknown;
        return known(m->vector[(var - IR_VECTOR) / 8][lane]);
    }
    if (var >= IR_SLOT && (uint32_t)(var - IR_SLOT) < in->ir->slot_count) {
        const ir_slot *slot = &in->ir->slots[var - IR_SLOT];
        uint64_t addr, bits = 0;
        if (interpret_slot(in, slot, &addr) && slot->size <= 8 && memory_read(in->mem, addr, &bits, slot->size))
            return known(bits);
    }
    return unknown; /* x87, masks: not compared */
}

value interpret_value(const interpreter *in, ir_value v)
{
    return in->values[v];
}

typedef struct {
    interpreter *in;
    const machine *m;
} begin_context;

static void begin_operand(void *context, ir_value v)
{
    begin_context *c = context;
    interpreter *in = c->in;
    const ir_block *b = &in->ir->blocks[in->block];
    const ir_insn *def = &in->ir->insns[v];
    if (v >= b->first && v < b->first + b->count) return;
    if (def->op == IR_CONST)
        in->values[v] = def->var == IR_NOVAR ? known((uint64_t)def->imm) : interpret_var(in, def->var, c->m);
    else if (def->var != IR_NOVAR)
        in->values[v] = interpret_var(in, def->var, c->m);
    else
        in->values[v] = def->op == IR_ADDRESS ? known((uint64_t)def->imm + in->bias) : unknown;
}

void interpret_begin(interpreter *in, const machine *m)
{
    const ir_func *ir = in->ir;
    if (ir->insn_count > in->cap) {
        in->cap = ir->insn_count;
        in->values = base_realloc(in->values, (size_t)in->cap * sizeof *in->values);
    }
    const ir_block *b = &ir->blocks[in->block];
    begin_context c = {in, m};
    for (uint32_t v = b->first; v < b->first + b->count; v++) {
        const ir_insn *insn = &ir->insns[v];
        bool entered = insn->op == IR_PHI || insn->op == IR_ENTRY || insn->op == IR_UNDEF;
        in->values[v] = entered && insn->var != IR_NOVAR ? interpret_var(in, insn->var, m) : unknown;
        if (insn->op != IR_PHI) interpret_operands(ir, insn, begin_operand, &c);
    }
}

/* --- flags -------------------------------------------------------------------------------------------------------- */

static uint64_t flags_of_result(uint64_t r, unsigned width)
{
    uint64_t f = 0;
    if (low_bytes(r, width) == 0) f |= FLAG_ZF;
    if ((r >> (8 * width - 1)) & 1) f |= FLAG_SF;
    if (!__builtin_parity((unsigned)(r & 0xff))) f |= FLAG_PF;
    return f;
}

static value flags_of_sub(uint64_t a, uint64_t b, unsigned width)
{
    a = low_bytes(a, width), b = low_bytes(b, width);
    uint64_t r = low_bytes(a - b, width), f = flags_of_result(r, width);
    if (a < b) f |= FLAG_CF;
    if ((((a ^ b) & (a ^ r)) >> (8 * width - 1)) & 1) f |= FLAG_OF;
    if ((a ^ b ^ r) & 16) f |= FLAG_AF;
    return (value){f, FLAG_STATUS};
}

int interpret_condition(value flags, unsigned code)
{
    static const uint64_t needs[8] = {FLAG_OF, FLAG_CF, FLAG_ZF,           FLAG_CF | FLAG_ZF,
                                      FLAG_SF, FLAG_PF, FLAG_SF | FLAG_OF, FLAG_SF | FLAG_OF | FLAG_ZF};
    uint64_t need = needs[(code >> 1) & 7], f = flags.bits;
    if ((flags.known & need) != need) return -1;
    bool less = !!(f & FLAG_SF) != !!(f & FLAG_OF), holds;
    switch ((code >> 1) & 7) {
    case 6:
        holds = less;
        break;
    case 7:
        holds = less || (f & FLAG_ZF);
        break;
    default:
        holds = f & need;
        break;
    }
    return holds != (code & 1);
}

/* --- operations --------------------------------------------------------------------------------------------------- */

static uint64_t shift(ir_op op, uint64_t a, uint64_t count, unsigned width)
{
    unsigned n = (unsigned)(count & (width == 8 ? 63 : 31)), bits = 8 * width;
    if (op == IR_SAR) return (uint64_t)(sign_extend(a, width) >> (n < bits ? n : bits - 1));
    if (n >= bits) return 0;
    return op == IR_SHL ? a << n : low_bytes(a, width) >> n;
}

static uint64_t arithmetic(const ir_insn *insn, uint64_t a, uint64_t b)
{
    switch ((ir_op)insn->op) {
    case IR_SUB:
        return a - b;
    case IR_MUL:
        return a * b;
    case IR_AND:
        return a & b;
    case IR_OR:
        return a | b;
    case IR_XOR:
        return a ^ b;
    case IR_NEG:
        return -a;
    case IR_NOT:
        return ~a;
    default:
        return shift((ir_op)insn->op, a, b, insn->width);
    }
}

static value insert(const ir_insn *insn, uint64_t a, uint64_t b)
{
    uint64_t mask = low_bytes(~0ull, insn->width) << (8 * insn->imm);
    return known((a & ~mask) | ((b << (8 * insn->imm)) & mask));
}

static value evaluate(interpreter *in, const ir_insn *insn)
{
    const value one = known((uint64_t)insn->imm);
    bool args = has_args(insn->op);
    value a = !args && insn->a ? in->values[insn->a] : one, b = !args && insn->b ? in->values[insn->b] : one;
    unsigned w = insn->width;
    switch ((ir_op)insn->op) {
    case IR_CONST:
        return one;
    case IR_ADDRESS:
        return known((uint64_t)insn->imm + in->bias);
    case IR_PAD: /* state.c puts the stack pointer where it is after the unwinder */
    case IR_COPY:
        return is_known(a) ? known(low_bytes(a.bits, w)) : a.known && w == 8 ? a : unknown;
    case IR_SEXT:
        return is_known(a) ? known((uint64_t)sign_extend(a.bits, w)) : unknown;
    case IR_LEA: {
        value base = insn->a ? a : known(0), index = insn->b ? b : known(0);
        if (!is_known(base) || !is_known(index)) return unknown;
        return known(low_bytes(base.bits + index.bits * (insn->b ? insn->scale : 1) + (uint64_t)insn->imm, w));
    }
    case IR_SUB:
    case IR_MUL:
    case IR_AND:
    case IR_OR:
    case IR_XOR:
    case IR_SHL:
    case IR_SHR:
    case IR_SAR:
    case IR_NEG:
    case IR_NOT:
        return is_known(a) && is_known(b) ? known(low_bytes(arithmetic(insn, a.bits, b.bits), w)) : unknown;
    case IR_INSERT:
        return is_known(a) && is_known(b) ? insert(insn, a.bits, b.bits) : unknown;
    case IR_EXTRACT:
        return is_known(a) ? known(low_bytes(a.bits >> (8 * insn->imm), w)) : unknown;
    case IR_SELECT: {
        int holds = interpret_condition(in->values[insn->c], (unsigned)insn->imm);
        value v = holds < 0 ? unknown : holds ? in->values[insn->b] : in->values[insn->a];
        return is_known(v) ? known(low_bytes(v.bits, w)) : unknown;
    }
    case IR_CMP:
        return is_known(a) && is_known(b) ? flags_of_sub(a.bits, b.bits, w) : unknown;
    case IR_TEST:
        if (!is_known(a) || !is_known(b)) return unknown;
        return (value){flags_of_result(low_bytes(a.bits & b.bits, w), w), FLAG_STATUS & ~(uint64_t)FLAG_AF};
    case IR_FLAGRES: {
        if (!is_known(a)) return unknown;
        value f = {flags_of_result(low_bytes(a.bits, w), w), FLAG_ZF | FLAG_SF | FLAG_PF};
        if (insn->b && (b.known & FLAG_CF)) f.bits |= b.bits & FLAG_CF, f.known |= FLAG_CF;
        return f;
    }
    case IR_LOAD: {
        const ir_insn *access = &in->ir->insns[insn->a];
        bool sure;
        uint64_t bits = 0, addr = interpret_address(in, access, &sure);
        if (!sure || (access->flags & (IR_REP | IR_WIDE)) || w > 8) return unknown;
        return memory_read(in->mem, addr + (uint64_t)insn->imm, &bits, w) ? known(bits) : unknown;
    }
    default:
        return unknown; /* opaque, calls and what they leave, accesses, control */
    }
}

uint64_t interpret_address(const interpreter *in, const ir_insn *access, bool *sure)
{
    value a = access->a ? in->values[access->a] : known(0), b = access->b ? in->values[access->b] : known(0);
    *sure = is_known(a) && is_known(b);
    return a.bits + b.bits * (access->b ? access->scale : 1) + (uint64_t)access->imm;
}

static void predict(interpreter *in, const ir_insn *insn, const machine *m)
{
    bool sure;
    mem_access p = {.addr = interpret_address(in, insn, &sure),
                    .size = insn->width,
                    .read = insn->flags & IR_READ,
                    .write = insn->flags & IR_WRITE,
                    .maybe = insn->flags & IR_COND};
    if (insn->flags & IR_WIDE) {
        in->wide++;
        in->wide_on_stack |= p.write && p.addr - MEMORY_STACK < MEMORY_STACK_SIZE;
        return;
    }
    if (insn->flags & IR_REP && insn->c) {
        value count = in->values[insn->c];
        sure &= is_known(count);
        p.size = count.bits > UINT32_MAX ? UINT64_MAX : count.bits * insn->width;
        if ((m->flags & FLAG_DF) && count.bits) p.addr -= p.size - insn->width;
    }
    if (!sure) {
        in->lost = true;
        return;
    }
    if (p.size) vec_push(&in->predicted, p);
}

/* A value used while its bits are only partly known (flags) stays as it is; the others are computed when they can be.
 */
void interpret_before(interpreter *in, uint32_t from, uint32_t to, const machine *m)
{
    vec_clear(&in->predicted);
    in->wide = 0;
    in->wide_on_stack = false;
    in->lost = false;
    for (uint32_t v = from; v < to; v++) {
        const ir_insn *insn = &in->ir->insns[v];
        if (insn->op == IR_ACCESS)
            predict(in, insn, m);
        else
            in->values[v] = evaluate(in, insn);
        int32_t offset;
        uint8_t base;
        if (insn->op != IR_ACCESS && is_known(in->values[v]) && !in->has_realigned &&
            ir_frame_offset(in->ir, v, &offset, &base) && base == 1) {
            in->realigned_sp = in->values[v].bits - (uint64_t)(int64_t)offset;
            in->has_realigned = true;
        }
    }
}

static bool is_last_definition(const ir_func *ir, uint32_t v, uint32_t to)
{
    for (uint32_t later = v + 1; later < to; later++)
        if (ir->insns[later].var == ir->insns[v].var) return false;
    return true;
}

void interpret_after(interpreter *in, uint32_t from, uint32_t to, const machine *m)
{
    for (uint32_t v = from; v < to; v++) {
        const ir_insn *insn = &in->ir->insns[v];
        value *at = &in->values[v];
        if (insn->op == IR_ACCESS || is_known(*at)) continue;
        if (insn->op != IR_LOAD && !at->known) *at = evaluate(in, insn);
        if (is_known(*at) || insn->var == IR_NOVAR || !is_last_definition(in->ir, v, to)) continue;
        value now = interpret_var(in, insn->var, m);
        *at = (value){(at->bits & at->known) | (now.bits & ~at->known), now.known};
    }
}
