/* Numbers modulo a stride, and linear forms.
 *
 * Unoptimised code computes i * 24 as (i + i * 2) << 3, optimised code steps a pointer by 24: both must come out as
 * "multiples of 24", so sums are collected over equal terms before anything is approximated. Wrap-around is ignored. */
#include "reach.h"

#include <stdlib.h>

uint64_t number_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t t = a % b;
        a = b, b = t;
    }
    return a;
}

bool number_join(number *into, number from)
{
    if (!from.known) return false;
    if (!into->known) {
        *into = from;
        return true;
    }
    uint64_t apart = from.offset > into->offset ? (uint64_t)from.offset - (uint64_t)into->offset
                                                : (uint64_t)into->offset - (uint64_t)from.offset;
    uint64_t stride = number_gcd(number_gcd(into->stride, from.stride), apart);
    if (stride == into->stride) return false;
    into->stride = stride;
    return true;
}

bool linear_add(linear *a, const linear *b, int64_t scale, int64_t constant)
{
    linear sum = *a;
    sum.constant = (int64_t)((uint64_t)sum.constant + (uint64_t)b->constant * (uint64_t)scale + (uint64_t)constant);
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t k = 0;
        while (k < sum.count && sum.value[k] != b->value[i])
            k++;
        if (k == sum.count) {
            if (sum.count == LINEAR_TERMS) return false;
            sum.value[sum.count] = b->value[i];
            sum.factor[sum.count++] = 0;
        }
        sum.factor[k] += b->factor[i] * scale;
        if (sum.factor[k] == 0) {
            sum.count--;
            sum.value[k] = sum.value[sum.count], sum.factor[k] = sum.factor[sum.count];
        }
    }
    *a = sum;
    return true;
}

static linear itself(ir_value v)
{
    return (linear){.count = 1, .value = {v}, .factor = {1}};
}

static bool small(int64_t n)
{
    return n > -(INT64_C(1) << 31) && n < INT64_C(1) << 31;
}

/* b of a two-operand operation when it is a constant */
static bool constant_operand(const linear *forms, const ir_insn *insn, int64_t *value)
{
    *value = insn->b ? forms[insn->b].constant : insn->imm;
    return (!insn->b || forms[insn->b].count == 0) && small(*value);
}

static linear form_of(const linear *forms, const ir_func *ir, ir_value v)
{
    static const linear zero = {0};
    const ir_insn *insn = &ir->insns[v];
    const linear *a = insn->op >= IR_COPY && insn->op <= IR_NOT && insn->a ? &forms[insn->a] : &zero;
    linear sum = zero;
    int64_t by;
    if (insn->op == IR_CONST) return (linear){.constant = insn->imm};
    if (insn->width < 4 || insn->op < IR_COPY || insn->op > IR_NOT) return itself(v);
    bool fits = false;
    switch (insn->op) {
    case IR_COPY:
    case IR_SEXT: return *a;
    case IR_LEA:
        fits = linear_add(&sum, a, 1, insn->imm) && (!insn->b || linear_add(&sum, &forms[insn->b], insn->scale, 0));
        break;
    case IR_SUB:
        fits = linear_add(&sum, a, 1, insn->b ? 0 : (int64_t)(0 - (uint64_t)insn->imm)) && (!insn->b || linear_add(&sum, &forms[insn->b], -1, 0));
        break;
    case IR_MUL:
        if (constant_operand(forms, insn, &by)) fits = linear_add(&sum, a, by, 0);
        else if (insn->b && a->count == 0 && small(a->constant)) fits = linear_add(&sum, &forms[insn->b], a->constant, 0);
        break;
    case IR_SHL:
        if (constant_operand(forms, insn, &by) && by >= 0 && by < 31) fits = linear_add(&sum, a, INT64_C(1) << by, 0);
        break;
    case IR_NEG: fits = linear_add(&sum, a, -1, 0); break;
    case IR_NOT: fits = linear_add(&sum, a, -1, -1); break;
    default: break;
    }
    for (uint32_t i = 0; i < sum.count; i++)
        fits = fits && small(sum.factor[i]);
    return fits ? sum : itself(v);
}

linear *linear_forms(const ir_func *ir)
{
    linear *forms = base_alloc_zero(ir->insn_count + 1, sizeof *forms);
    for (ir_value v = 1; v < ir->insn_count; v++)
        forms[v] = itself(v);
    /* definitions come before uses in this order, but for phis, which are their own forms */
    for (uint32_t n = 0; n < ir->rpo_count; n++) {
        const ir_block *block = &ir->blocks[ir->rpo[n]];
        for (ir_value v = block->first; v < block->first + block->count; v++)
            forms[v] = form_of(forms, ir, v);
    }
    return forms;
}
