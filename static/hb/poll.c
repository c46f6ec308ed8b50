/* Loads that poll: a loop does nothing but load a variable until that tells it to stop. A compiler moves a plain load out of such a
 * loop, so that in the source it is an atomic one, although the instruction is the same. Without optimisation that is no proof: it
 * counts only where all others write the variable with atomic instructions, so that `while (!done)` on a plain flag is reported. */
#include "static/hb/private.h"
#include "static/hb/value.h"

static bool in_loop(const ir_func *ir, uint32_t loop, uint32_t block)
{
    for (uint32_t l = ir->blocks[block].loop; l; l = ir->loops[l - 1].parent)
        if (l == loop) return true;
    return false;
}

static bool is_idle_call(const hb *h, uint32_t func, uint32_t insn)
{
    static const char *const idle[] = {"sched_yield", "usleep", "nanosleep", "pthread_yield", "thrd_yield", "sleep", "__kmpc_flush"};
    const hb_call *call = hb_call_at(h, func, insn);
    uint32_t callee = call ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
    for (unsigned i = 0; callee != PTA_NO_FUNC && i < sizeof idle / sizeof *idle; i++)
        if (!strcmp(h->program->funcs.data[callee].name, idle[i])) return true;
    return false;
}

/* The loop writes to nothing that others see. */
static bool is_idle(const hb *h, uint32_t func, const ir_func *ir, uint32_t loop)
{
    const ir_loop *l = &ir->loops[loop - 1];
    for (uint32_t b = 0; b < l->block_count; b++) {
        const ir_block *block = &ir->blocks[ir->loop_blocks[l->first_block + b]];
        for (ir_value v = block->first; v < block->first + block->count; v++) {
            const ir_insn *insn = &ir->insns[v];
            if (insn->op == IR_STORE && !(ir->insns[insn->a].flags & IR_FRAME)) return false;
            if (insn->op == IR_SYSCALL || insn->op == IR_TAIL || (insn->op == IR_CALL && !is_idle_call(h, func, insn->insn))) return false;
        }
    }
    return true;
}

/* The loop is left, or not, because of a value. */
static bool decides(const ir_func *ir, uint32_t loop, ir_value v)
{
    const ir_loop *l = &ir->loops[loop - 1];
    for (uint32_t b = 0; b < l->block_count; b++) {
        uint32_t block = ir->loop_blocks[l->first_block + b];
        const lift_block *code = &ir->func->blocks[block];
        value_condition c;
        bool leaves = false;
        for (uint32_t e = code->first_succ; e < code->first_succ + code->succ_count; e++)
            leaves |= !in_loop(ir, loop, ir->func->edges[e].to);
        if (!leaves || code->end_kind != END_BRANCH || !value_test(ir, block, true, &c)) continue;
        ir_value sides[] = {c.a, c.b};
        for (unsigned i = 0; i < 2; i++) {
            if (!sides[i]) continue;
            if (sides[i] == v) return true;
            const ir_insn *phi = &ir->insns[sides[i]];
            for (uint32_t k = 0; phi->op == IR_PHI && k < phi->b; k++)
                if (value_plain(ir, ir->args[phi->a + k], 4) == v) return true;
        }
    }
    return false;
}

static bool all_atomic(const hb *h, const hb_place *place)
{
    uint32_t count;
    const hb_use *writes = hb_writes_over_extent(h, place->extent, &count);
    for (uint32_t i = 0; i < count; i++)
        if (!(h->touches.data[writes[i].touch].flags & IR_ATOMIC)) return false;
    return count > 0;
}

bool hb_polls(const hb *h, const hb_touch *t, const hb_place *place)
{
    const lift_func *f = hb_code(h, t->func);
    if (t->flags & (IR_WRITE | IR_ATOMIC | HB_LIBRARY) || !t->ir || f->ir->insns[t->ir].op != IR_ACCESS) return false;
    uint32_t loop = f->ir->blocks[hb_block_of(f, t->insn)].loop;
    if (!loop) return false;
    for (ir_value v = t->ir + 1; v < f->ir->insn_count && f->ir->insns[v].insn == t->insn; v++)
        if (f->ir->insns[v].op == IR_LOAD && f->ir->insns[v].a == t->ir)
            return decides(f->ir, loop, v) && is_idle(h, t->func, f->ir, loop) && all_atomic(h, place);
    return false;
}

bool hb_changes_atomically(const hb *h, const hb_place *place)
{
    enum { FEW = 4 }; /* places of a store that is meant for this one */
    uint32_t count;
    const hb_use *writes = hb_writes_over_extent(h, place->extent, &count);
    for (uint32_t i = 0; i < count; i++) {
        const hb_touch *t = &h->touches.data[writes[i].touch];
        if (t->flags & IR_ATOMIC && t->place_count <= FEW) return true;
    }
    return false;
}

bool hb_decides(const hb *h, const hb_touch *t)
{
    const lift_func *f = hb_code(h, t->func);
    ir_value found = 0;
    for (ir_value v = t->ir + 1; v < f->ir->insn_count && f->ir->insns[v].insn == t->insn && !found; v++)
        if (f->ir->insns[v].op == IR_LOAD && f->ir->insns[v].a == t->ir) found = v;
    for (uint32_t b = 0; found && b < f->block_count; b++) {
        value_condition c;
        if (f->blocks[b].end_kind == END_BRANCH && value_test(f->ir, b, true, &c) && (c.a == found || c.b == found)) return true;
    }
    return false;
}
