/* The values of one context: what each IR instruction may point to, and what number it may be.
 *
 * Sums are taken from their linear form; everything else is its own rule below. Values only grow. */
#include "reach.h"

#include <stdlib.h>

ir_value walk_argument(const ir_func *ir, const ir_insn *insn, uint32_t k)
{
    return k < insn->b ? ir->args[insn->a + k] : 0;
}

void state_join(reach *r, state *into, const state *from)
{
    r->changed |= pointers_join(&into->to, &from->to);
    r->changed |= number_join(&into->num, &from->num);
}

static number number_of(const context *c, const linear *form, uint32_t but)
{
    number sum = {.count = 1, .offset = {form->constant}};
    for (uint32_t i = 0; i < form->count; i++)
        if (i != but) sum = number_sum(&sum, &c->values[form->value[i]].num, form->factor[i]);
    return sum;
}

static void pointers_of(const context *c, const linear *form, pointers *out)
{
    for (uint32_t i = 0; i < form->count; i++) {
        const pointers *base = &c->values[form->value[i]].to;
        if (form->factor[i] != 1 || !base->len) continue;
        number rest = number_of(c, form, i);
        for (uint32_t k = 0; k < base->len; k++)
            for (uint32_t n = 0; n < rest.count; n++) {
                pointer p = base->data[k];
                p.offset = (int64_t)((uint64_t)p.offset + (uint64_t)rest.offset[n]);
                strides_join(&p.by, &rest.by);
                pointers_add(out, p);
            }
    }
}

void reach_address(const context *c, const ir_insn *access, pointers *out)
{
    linear form = {.constant = access->imm};
    if (access->flags & IR_WIDE) return;
    if (access->a && !linear_add(&form, &c->forms[access->a], 1, 0)) return;
    if (access->b && !linear_add(&form, &c->forms[access->b], access->scale, 0)) return;
    pointers_of(c, &form, out);
}

void state_add_root(reach *r, state *into, root at, int64_t offset)
{
    r->changed |= pointers_add(&into->to, (pointer){.root = root_intern(r, at), .offset = offset});
}

void state_add_number(reach *r, state *into, number n)
{
    r->changed |= number_join(&into->num, &n);
}

static void eval_entry(reach *r, uint32_t at, uint16_t var, state *into)
{
    context *c = &r->contexts.data[at];
    const ir_func *ir = c->func->ir;
    if (var == IR_RSP) {
        state_add_root(r, into, (root){.kind = ROOT_FRAME, .context = at}, 0);
    } else if (var == IR_FSBASE) {
        state_add_root(r, into, (root){.kind = ROOT_THREAD}, 0);
    } else if (var < PARAMS) {
        state_join(r, into, &c->params[var]);
    } else if (var >= IR_SLOT && ir->slots[var - IR_SLOT].base == 0) { /* a promoted argument on the stack */
        pointers found = {0};
        object_load(r,
                    (pointer){.root = root_intern(r, (root){.kind = ROOT_FRAME, .context = at}),
                              .offset = ir->slots[var - IR_SLOT].offset},
                    &found);
        r->changed |= pointers_join(&into->to, &found);
        vec_free(&found);
        state_add_number(r, into, ANY_NUMBER);
    }
}

static void eval_load(reach *r, uint32_t at, const ir_insn *insn, state *into)
{
    state_add_number(r, into, ANY_NUMBER);
    if (insn->width != 8) return;
    const context *c = &r->contexts.data[at];
    pointers from = {0}, found = {0};
    reach_address(c, &c->func->ir->insns[insn->a], &from);
    for (uint32_t i = 0; i < from.len; i++) {
        from.data[i].offset += insn->imm;
        object_load(r, from.data[i], &found);
    }
    r->changed |= pointers_join(&into->to, &found);
    vec_free(&from);
    vec_free(&found);
}

static void eval_opaque(reach *r, uint32_t at, const ir_insn *insn, state *into)
{
    const context *c = &r->contexts.data[at];
    const ir_func *ir = c->func->ir;
    state_add_number(r, into, ANY_NUMBER);
    for (uint32_t k = 0; k < insn->b; k++) {
        const pointers *from = &c->values[walk_argument(ir, insn, k)].to;
        for (uint32_t i = 0; i < from->len; i++) {
            pointer p = from->data[i];
            strides_add(&p.by, 1);
            r->changed |= pointers_add(&into->to, p);
        }
    }
}

/* What a constant mask leaves: each combination of two bits or fewer, else multiples of the lowest one. */
static number masked(const context *c, const ir_insn *insn)
{
    int64_t constant = insn->imm;
    if ((insn->b && !number_is(&c->values[insn->b].num, &constant)) || constant == 0) return ANY_NUMBER;
    uint64_t mask = (uint64_t)constant, low = mask & (0 - mask), high = mask - low;
    if (high & (high - 1)) return (number){.count = 1, .by = {1, {low}}};
    return (number){.count = high ? 4 : 2, .offset = {0, (int64_t)low, (int64_t)high, (int64_t)mask}};
}

static number if_small(const number *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (n->by.count || n->offset[i] < 0 || n->offset[i] > 127) return ANY_NUMBER;
    return *n;
}

/* xor %ecx, %ecx; setb %cl: 0 or 1 */
static number inserted(const context *c, const ir_insn *insn)
{
    int64_t before;
    if (insn->imm || !number_is(&c->values[insn->a].num, &before) || before) return ANY_NUMBER;
    return if_small(&c->values[insn->b].num);
}

/* setb %cl; movzbl %cl, %ecx: the same */
static number narrowed(const context *c, const ir_insn *insn)
{
    const ir_insn *from = &c->func->ir->insns[insn->a];
    bool low = from->op == IR_INSERT && from->imm == 0 && from->width == insn->width;
    return if_small(&c->values[low ? from->b : insn->a].num);
}

static void eval_own(reach *r, uint32_t at, ir_value v, state *into)
{
    const context *c = &r->contexts.data[at];
    const ir_func *ir = c->func->ir;
    const ir_insn *insn = &ir->insns[v];
    int32_t offset;
    uint8_t base;
    switch (insn->op) {
    case IR_ENTRY:
        eval_entry(r, at, insn->var, into);
        return;
    case IR_ADDRESS:
        state_add_root(r, into, (root){.kind = ROOT_MODULE}, insn->imm);
        return;
    case IR_PHI:
        for (uint32_t k = 0; k < insn->b; k++)
            state_join(r, into, &c->values[walk_argument(ir, insn, k)]);
        return;
    case IR_SELECT:
        state_join(r, into, &c->values[insn->a]);
        state_join(r, into, &c->values[insn->b]);
        return;
    case IR_INSERT:
        if (insn->width == 8)
            state_join(r, into, &c->values[insn->b]);
        else
            state_add_number(r, into, inserted(c, insn));
        return;
    case IR_COPY:
        state_add_number(r, into, narrowed(c, insn));
        return; /* the others are linear forms */
    case IR_EXTRACT:
        if (insn->width == 8 && insn->imm == 0)
            state_join(r, into, &c->values[insn->a]);
        else
            state_add_number(r, into, ANY_NUMBER);
        return;
    case IR_LOAD:
        eval_load(r, at, insn, into);
        return;
    case IR_OPAQUE:
        eval_opaque(r, at, insn, into);
        return;
    case IR_RESULT:
    case IR_CLOBBER:
        walk_result(r, at, insn, into);
        return;
    case IR_AND:
        if (ir_frame_offset(ir, v, &offset, &base) && base)
            state_add_root(r, into, (root){.kind = ROOT_ALIGNED, .context = at}, offset);
        else
            state_add_number(r, into, masked(c, insn));
        return;
    case IR_ACCESS:
    case IR_UNDEF:
        return;
    default:
        state_add_number(r, into, ANY_NUMBER);
    }
}

void walk_value(reach *r, uint32_t at, ir_value v)
{
    context *c = &r->contexts.data[at];
    const linear *form = &c->forms[v];
    if (form->count == 1 && form->value[0] == v && form->factor[0] == 1 && form->constant == 0) {
        eval_own(r, at, v, &c->values[v]); /* may move the contexts, but not their values */
        return;
    }
    pointers found = {0};
    pointers_of(c, form, &found);
    r->changed |= pointers_join(&c->values[v].to, &found);
    vec_free(&found);
    number sum = number_of(c, form, UINT32_MAX);
    r->changed |= number_join(&c->values[v].num, &sum);
}
