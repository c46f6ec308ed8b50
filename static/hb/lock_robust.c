/* Robust mutexes. When their owner has died, taking one may fail for good: whoever does not look at the answer has no lock. With the
 * others a call that comes back has taken the lock, as far as a sound program is concerned. */
#include "static/hb/lock.h"

static void each_place(hb *h, uint32_t instance, const hb_call *call, int arg, pta_places *out)
{
    pta_operand what = h->program->calls.data[call->call].args[arg];
    vec_clear(out);
    if (what.var != PTA_NO_VAR) hb_points_to(h, instance, what, out);
}

static bool share(const pta_places *a, const pta_places *b)
{
    for (uint32_t i = 0; i < a->len; i++)
        for (uint32_t k = 0; k < b->len; k++)
            if (a->data[i].site == b->data[k].site && a->data[i].context == b->data[k].context) return true;
    return false;
}

/* Attributes that some call makes robust. */
static bool is_robust(hb *h, const pta_places *attributes)
{
    pta_places places = {0};
    bool found = false;
    for (uint32_t i = 0; i < h->instance_count && !found; i++) {
        const lift_func *f = hb_instance_code(h, i);
        const hb_func *own = f ? &h->funcs[h->instances[i].func] : NULL;
        for (uint32_t c = 0; own && c < own->call_count && !found; c++) {
            const hb_call *call = &own->calls[c];
            if (!call->sync || call->sync->kind != SYNC_ROBUST || !call->value) continue;
            const ir_insn *how = &f->ir->insns[value_plain(f->ir, lock_call_argument(f->ir, call, (unsigned)call->sync->other), 4)];
            each_place(h, i, call, call->sync->arg, &places);
            found = !(how->op == IR_CONST && !how->imm) && share(&places, attributes);
        }
    }
    vec_free(&places);
    return found;
}

void lock_find_robust(hb *h)
{
    pta_places attributes = {0}, locks = {0};
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *own = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < own->call_count; c++) {
            const hb_call *call = &own->calls[c];
            if (!call->sync || call->sync->kind != SYNC_LOCK_INIT) continue;
            each_place(h, i, call, call->sync->other, &attributes);
            if (!attributes.len || !is_robust(h, &attributes)) continue;
            each_place(h, i, call, call->sync->arg, &locks);
            for (uint32_t k = 0; k < locks.len; k++)
                vec_push(&h->locks->robust, (spin_place){locks.data[k]});
        }
    }
    vec_free(&attributes);
    vec_free(&locks);
}

/* Whether something is done with a value; to be in a register when something else is called is not. */
static bool is_used(const ir_func *ir, ir_value v, unsigned depth)
{
    if (depth > 4) return true;
    for (ir_value u = 1; u < ir->insn_count; u++) {
        const ir_insn *insn = &ir->insns[u];
        bool list = insn->op == IR_PHI || insn->op == IR_CALL || insn->op == IR_TAIL || insn->op == IR_RET || insn->op == IR_OPAQUE || insn->op == IR_SYSCALL;
        bool passes = insn->op == IR_PHI || insn->op == IR_COPY || insn->op == IR_CLOBBER;
        bool has = false;
        for (uint32_t i = 0; list && i < insn->b && !has; i++)
            has = ir->args[insn->a + i] == v && !((insn->op == IR_CALL || insn->op == IR_TAIL) && (i == IR_CALL_RAX || i == IR_CALL_R10));
        if (!list) has = insn->a == v || insn->b == v || insn->c == v;
        if (insn->op == IR_RESULT || (insn->op == IR_LOAD && insn->a == v) || u == v) continue;
        if (has && (!passes || is_used(ir, u, depth + 1))) return true;
    }
    return false;
}

bool lock_is_lost(const hb *h, uint32_t instance, const hb_call *call, uint32_t list)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    bool robust = false;
    uint32_t count;
    const pta_place *places = lock_places_of(h, list, &count);
    for (uint32_t i = 0; i < count && !robust; i++)
        for (uint32_t k = 0; k < h->locks->robust.len && !robust; k++) {
            const pta_place *p = &h->locks->robust.data[k].place;
            robust = p->site == places[i].site && p->context == places[i].context && p->offset == places[i].offset;
        }
    if (!robust || !call->value) return false;
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (ir->insns[v].op == IR_RESULT && ir->insns[v].var == IR_RAX && ir->insns[v].a == call->value) return !is_used(ir, v, 0);
    return true;
}
