/* What the results of calls are declared to point to, by where they are kept: in a variable or a member that is
 * declared, in an argument of a function, as a result. An allocator returns no more than a place; this is what it is
 * for. */
#include "static/pointer/typed.h"

#include <stdlib.h>

enum { ROUNDS = 6 };

static const image_type conflict; /* it is kept as several things */

static void note(const image_type **made, ir_value v, const image_type *type)
{
    if (!v || !type || made[v] == type) return;
    made[v] = made[v] ? &conflict : type;
}

static bool is_byte(const image_type *type)
{
    return type && type->kind == IMAGE_TYPE_INT && type->size == 1;
}

static const image_type *pointed(typed_value value)
{
    return value.to && !value.at && !value.step && (value.to->kind == IMAGE_TYPE_STRUCT || is_byte(value.to)) ? value.to
                                                                                                              : NULL;
}

bool made_is_bytes(const generator *g, ir_value v)
{
    return is_byte(g->made[ir_origin(g->ir, v)]);
}

/* What the parameters of a function are declared to point to. */
static void note_arguments(const generator *g, const image_type **made, const ir_insn *call)
{
    static const uint8_t args[] = {IR_CALL_RDI, IR_CALL_RSI, IR_CALL_RDX, IR_CALL_RCX, IR_CALL_R8, IR_CALL_R9};
    uint32_t callee = generate_callee(g->program, g->module, g->func_id, call);
    const pta_func *f = callee == PTA_NO_FUNC ? NULL : &g->program->funcs.data[callee];
    if (!f || !f->lift) return;
    for (unsigned i = 0; i < sizeof args; i++)
        note(made, g->ir->args[call->a + args[i]],
             pointed(typed_parameter(g->program->modules[f->module]->img, f->lift, i)));
}

static void note_uses(const generator *g, const image_type **made, ir_value v)
{
    const ir_func *ir = g->ir;
    const ir_insn *insn = &ir->insns[v];
    switch (insn->op) {
    case IR_STORE:
        if (insn->width == 8)
            note(made, insn->b, pointed(typed_loaded(typed_access(g, &ir->insns[insn->a], insn->imm))));
        break;
    case IR_CALL:
    case IR_TAIL:
        note_arguments(g, made, insn);
        break;
    case IR_RET:
        note(made, ir->args[insn->a + IR_RET_RAX], pointed(typed_returned(g->img, g->func)));
        break;
    case IR_COPY:
        note(made, insn->a, pointed(g->types[v]));
        break;
    default:
        break;
    }
}

typed_value made_access(const generator *g, const ir_insn *access)
{
    typed_value place = typed_guessed(g, access);
    if (place.to || access->b || access->flags & (IR_WIDE | IR_REP | IR_FS | IR_GS)) return place;
    enum { FAR = 1 << 30 };
    int64_t at = access->imm;
    for (ir_value v = access->a; v && at > -FAR && at < FAR;) {
        const ir_insn *insn = &g->ir->insns[v];
        const image_type *type = g->made[v];
        if (type && type->kind == IMAGE_TYPE_STRUCT && at >= 0 && at < (int64_t)type->size) return (typed_value){.to = type, .at = at};
        if (insn->width != 8 || insn->b || (insn->op != IR_COPY && insn->op != IR_LEA)) break;
        if (insn->op == IR_LEA && (insn->imm <= -FAR || insn->imm >= FAR)) break;
        if (insn->op == IR_LEA) at += insn->imm;
        v = insn->a;
    }
    return place;
}

const image_type **made_infer(const generator *g)
{
    const ir_func *ir = g->ir;
    const image_type **made = base_alloc_zero(ir->insn_count, sizeof *made);
    if (!g->img->has_debug) return made;
    for (ir_value v = 1; v < ir->insn_count; v++)
        note_uses(g, made, v);
    bool changed = true;
    for (unsigned round = 0; changed && round < ROUNDS; round++) {
        changed = false;
        for (ir_value v = ir->insn_count; v-- > 1;) {
            const ir_insn *insn = &ir->insns[v];
            if (!made[v]) continue;
            const ir_value *from = insn->op == IR_PHI ? ir->args + insn->a : (ir_value[]){insn->a, insn->b};
            uint32_t count = insn->op == IR_PHI ? insn->b : insn->op == IR_SELECT ? 2 : insn->op == IR_COPY ? 1 : 0;
            for (uint32_t i = 0; i < count; i++) {
                const image_type *before = from[i] ? made[from[i]] : NULL;
                note(made, from[i], made[v]);
                changed |= from[i] && made[from[i]] != before;
            }
        }
    }
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (made[v] == &conflict) made[v] = NULL;
    return made;
}
