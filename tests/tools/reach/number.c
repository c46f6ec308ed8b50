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

uint64_t number_apart(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* --- strides ----------------------------------------------------------------------------------------------------- */

uint64_t strides_divisor(const strides *set)
{
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < set->count; i++)
        divisor = number_gcd(divisor, set->of[i]);
    return divisor;
}

/* One has to go: the multiple that is closest to what it is a multiple of, else all for their divisor. */
static void make_room(strides *set)
{
    uint32_t worst = MOST_STRIDES;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t k = i + 1; k < set->count; k++)
            if (set->of[i] % set->of[k] == 0 && set->of[i] / set->of[k] < least) {
                least = set->of[i] / set->of[k];
                worst = i;
            }
    if (worst == MOST_STRIDES) {
        set->of[0] = strides_divisor(set);
        set->count = 1;
        return;
    }
    for (set->count--; worst < set->count; worst++)
        set->of[worst] = set->of[worst + 1];
}

void strides_add(strides *set, uint64_t stride)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->of[i] == stride) return;
    if (!stride) return;
    if (set->count == MOST_STRIDES) {
        for (uint32_t i = 0; i < set->count; i++)
            if (stride % set->of[i] == 0) return; /* has been dropped before, or would be next */
        make_room(set);
    }
    uint32_t at = set->count++;
    for (; at > 0 && set->of[at - 1] < stride; at--)
        set->of[at] = set->of[at - 1];
    set->of[at] = stride;
}

void strides_join(strides *into, const strides *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        strides_add(into, from->of[i]);
}

bool strides_cover(const strides *p, const strides *q, uint64_t apart)
{
    for (uint32_t i = 0; i < q->count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < p->count; k++)
            found |= q->of[i] % p->of[k] == 0;
        if (!found) return false;
    }
    if (!apart) return true;
    /* a small stride of p alone belongs to an array at p's offset; what is elsewhere must have it too */
    for (uint32_t i = 0; i < p->count; i++) {
        if (apart % p->of[i]) continue;
        if (i == 0) return true;
        for (uint32_t k = 0; k < q->count; k++)
            if (q->of[k] == p->of[i]) return true;
    }
    return false;
}

/* --- numbers ----------------------------------------------------------------------------------------------------- */

/* The first offset stays, and the steps to the others become a stride. */
static void widen(number *n, int64_t extra)
{
    uint64_t step = number_apart(n->offset[0], extra);
    for (uint32_t i = 1; i < n->count; i++)
        step = number_gcd(step, number_apart(n->offset[0], n->offset[i]));
    n->count = 1;
    strides_add(&n->by, step);
}

static void add_offset(number *n, int64_t offset)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (strides_cover(&n->by, &n->by, number_apart(n->offset[i], offset))) return;
    if (n->count == MOST_OFFSETS)
        widen(n, offset);
    else
        n->offset[n->count++] = offset;
}

static bool same_number(const number *a, const number *b)
{
    return a->count == b->count && a->by.count == b->by.count &&
           !memcmp(a->offset, b->offset, a->count * sizeof *a->offset) &&
           !memcmp(a->by.of, b->by.of, a->by.count * sizeof *a->by.of);
}

bool number_join(number *into, const number *from)
{
    if (!from->count) return false;
    number before = *into;
    strides_join(&into->by, &from->by);
    for (uint32_t i = 0; i < from->count; i++)
        add_offset(into, from->offset[i]);
    return !same_number(&before, into);
}

number number_sum(const number *a, const number *b, int64_t factor)
{
    number sum = {.by = a->by};
    for (uint32_t i = 0; i < b->by.count; i++)
        strides_add(&sum.by, (factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor) * b->by.of[i]);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            add_offset(&sum, (int64_t)((uint64_t)a->offset[i] + (uint64_t)factor * (uint64_t)b->offset[k]));
    return sum;
}

bool number_is(const number *n, int64_t *value)
{
    if (n->count != 1 || n->by.count) return false;
    *value = n->offset[0];
    return true;
}

/* --- linear forms ------------------------------------------------------------------------------------------------ */

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
    case IR_SEXT:
        return *a;
    case IR_LEA:
        fits = linear_add(&sum, a, 1, insn->imm) && (!insn->b || linear_add(&sum, &forms[insn->b], insn->scale, 0));
        break;
    case IR_SUB:
        fits = linear_add(&sum, a, 1, insn->b ? 0 : (int64_t)(0 - (uint64_t)insn->imm)) &&
               (!insn->b || linear_add(&sum, &forms[insn->b], -1, 0));
        break;
    case IR_MUL:
        if (constant_operand(forms, insn, &by))
            fits = linear_add(&sum, a, by, 0);
        else if (insn->b && a->count == 0 && small(a->constant))
            fits = linear_add(&sum, &forms[insn->b], a->constant, 0);
        break;
    case IR_SHL:
        if (constant_operand(forms, insn, &by) && by >= 0 && by < 31) fits = linear_add(&sum, a, INT64_C(1) << by, 0);
        break;
    case IR_NEG:
        fits = linear_add(&sum, a, -1, 0);
        break;
    case IR_NOT:
        fits = linear_add(&sum, a, -1, -1);
        break;
    default:
        break;
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
