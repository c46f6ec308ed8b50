/* An index is often multiplied by shifts, sums and differences of itself: `8 * i - i` is a multiple of 7. A value is followed
 * back to a sum of few other values with factors, and what divides each factor divides the value. */
#include "static/pointer/linear.h"

#include "static/pointer/kinds.h"
#include "static/pointer/offset.h"

enum { TERMS = 4, DEPTH = 12, MAX_STRIDE = 1 << 19 };

typedef struct {
    ir_value value[TERMS];
    int64_t factor[TERMS];
    unsigned count;
    int64_t constant;
    bool full; /* more terms than there is room for, or a number that is */
    bool whole; /* values that are made of narrower ones are not followed */
    bool cut;   /* some value could have been followed further */
} sum;

static void add_value(sum *s, ir_value v, int64_t factor)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->value[i] == v) {
            s->full |= __builtin_add_overflow(s->factor[i], factor, &s->factor[i]);
            return;
        }
    if (s->count == TERMS) {
        s->full = true;
        return;
    }
    s->value[s->count] = v;
    s->factor[s->count++] = factor;
}

/* Factors stay small; anything else says nothing anyway. */
static bool is_small(int64_t v)
{
    return v > -(1ll << 30) && v < 1ll << 30;
}

static void add_constant(sum *s, int64_t imm, int64_t factor)
{
    s->full |= !is_small(imm) || __builtin_add_overflow(s->constant, imm * factor, &s->constant);
}

static void expand(const ir_func *ir, ir_value v, int64_t factor, unsigned depth, sum *s)
{
    if (!v || !factor) return;
    const ir_insn *insn = &ir->insns[v];
    if (depth >= DEPTH || !is_small(factor)) {
        s->cut = true;
        add_value(s, v, factor);
        return;
    }
    switch (insn->op) {
    case IR_CONST:
        add_constant(s, insn->imm, factor);
        break;
    case IR_COPY:
    case IR_SEXT:
        if (insn->width >= 4 && !(s->whole && (insn->op == IR_SEXT || insn->width < 8)))
            expand(ir, insn->a, factor, depth + 1, s);
        else
            add_value(s, v, factor);
        break;
    case IR_LEA:
        expand(ir, insn->a, factor, depth + 1, s);
        if (insn->b) expand(ir, insn->b, factor * insn->scale, depth + 1, s);
        add_constant(s, insn->imm, factor);
        break;
    case IR_SUB:
        expand(ir, insn->a, factor, depth + 1, s);
        if (insn->b)
            expand(ir, insn->b, -factor, depth + 1, s);
        else
            add_constant(s, insn->imm, -factor);
        break;
    case IR_NEG: expand(ir, insn->a, -factor, depth + 1, s); break;
    case IR_SHL:
        if (!insn->b && insn->imm >= 0 && insn->imm < 24)
            expand(ir, insn->a, factor * (1ll << insn->imm), depth + 1, s);
        else
            add_value(s, v, factor);
        break;
    case IR_MUL:
        if (!insn->b && is_small(insn->imm))
            expand(ir, insn->a, factor * insn->imm, depth + 1, s);
        else if (insn->b && ir->insns[insn->b].op == IR_CONST && is_small(ir->insns[insn->b].imm))
            expand(ir, insn->a, factor * ir->insns[insn->b].imm, depth + 1, s);
        else
            add_value(s, v, factor);
        break;
    default: add_value(s, v, factor); break;
    }
}

typedef struct {
    const ir_func *ir;
    ir_value path[DEPTH]; /* phis that are being looked at: multiples of the answer by induction */
    unsigned depth;
    bool back;
} walk;

static uint64_t divisor(walk *w, ir_value v, int64_t factor);

static uint64_t divisor_of_value(walk *w, ir_value v)
{
    const ir_insn *insn = &w->ir->insns[v];
    if (insn->op == IR_AND && !insn->b && insn->imm < 0) return linear_magnitude(insn->imm & -insn->imm);
    if (insn->op == IR_SELECT) return offset_gcd(divisor(w, insn->a, 1), divisor(w, insn->b, 1));
    if (insn->op != IR_PHI) return 1;
    for (unsigned i = 0; i < w->depth; i++)
        if (w->path[i] == v) return 0;
    if (w->depth == DEPTH) return 1;
    w->path[w->depth++] = v;
    uint64_t all = 0;
    for (uint32_t i = 0; i < insn->b && all != 1; i++)
        all = offset_gcd(all, divisor(w, w->ir->args[insn->a + i], 1));
    w->depth--;
    return all;
}

/* What divides the terms of a sum, its constant aside. */
static uint64_t divisor_of_terms(walk *w, const sum *s)
{
    uint64_t all = 0;
    if (s->full) return 1;
    for (unsigned i = 0; i < s->count && all != 1; i++) {
        if (!s->factor[i]) continue;
        if (s->factor[i] < 0) w->back = true;
        all = offset_gcd(all, divisor_of_value(w, s->value[i]) * linear_magnitude(s->factor[i]));
    }
    return all;
}

static uint64_t divisor(walk *w, ir_value v, int64_t factor)
{
    sum s = {0};
    expand(w->ir, v, factor, 0, &s);
    if (s.constant < 0) w->back = true;
    return offset_gcd(linear_magnitude(s.constant), divisor_of_terms(w, &s));
}

static uint64_t stride_of(const ir_func *ir, ir_value v, int64_t scale, bool whole, int64_t *constant, bool *back, bool *cut)
{
    walk w = {.ir = ir};
    sum s = {.whole = whole};
    expand(ir, v, scale, 0, &s);
    *cut = s.cut || s.full;
    uint64_t all = divisor_of_terms(&w, &s);
    *constant = s.full || !is_small(s.constant) ? 0 : s.constant;
    bool within = *constant != s.constant;
    if (within) all = offset_gcd(all, linear_magnitude(s.constant));
    *back = w.back || (within && !s.full && s.constant < 0);
    return all < MAX_STRIDE ? all : 1;
}

/* A value that is followed to its end on one way and not on another, longer one is two terms; what a narrow index is made of is
 * of no interest as a rule. */
uint64_t linear_stride(const ir_func *ir, ir_value v, int64_t scale, int64_t *constant, bool *back)
{
    bool cut, down;
    int64_t moved;
    uint64_t far = stride_of(ir, v, scale, false, constant, back, &cut);
    if (!cut || !far) return far;
    uint64_t near = stride_of(ir, v, scale, true, &moved, &down, &cut);
    if (near && near <= far) return far;
    *constant = moved;
    *back = down;
    return near;
}

ir_value linear_rounded(const ir_func *ir, ir_value v, uint64_t scale)
{
    const ir_insn *insn = &ir->insns[ir_origin(ir, v)];
    bool shift = insn->op == IR_SHR && insn->width == 8 && !insn->b && insn->imm > 0 && insn->imm < 8;
    return shift && 1ull << insn->imm == scale ? insn->a : 0;
}

ir_value linear_pointer(const ir_func *ir, const uint8_t *kinds, ir_value a, ir_value b, int64_t scale)
{
    sum s = {0};
    expand(ir, a, 1, 0, &s);
    expand(ir, b, scale, 0, &s);
    int64_t pointers = 0;
    ir_value added = 0;
    for (unsigned i = 0; i < s.count; i++) {
        if (!(kinds[s.value[i]] & KIND_POINTER)) continue;
        pointers += s.factor[i];
        if (s.factor[i] > 0) added = s.value[i];
    }
    return pointers == 1 && !s.full ? added : 0;
}
