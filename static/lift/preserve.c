/* What survives a call. gcc's -fipa-ra, on by default, lets a caller keep a value in a caller-saved register across a call to a
 * function of its own module that does not write it, so the IR of such a call says that the register may be as before. Whether
 * it may follows from the code of all functions: gcc looks at what a function and those that it calls ever write, not at paths,
 * and so does this.
 *
 * Requires the IR of all functions. Leaves IR_RESULT and IR_CLOBBER with an old value only where the callee writes neither the
 * register itself nor through another function. */
#include "static/lift/lift.h"

#include <stdlib.h>

typedef struct {
    uint32_t callee, caller;
} call_pair;

typedef VEC(call_pair) call_pairs;

static const lift_func *callee_of(const lift_module *m, const ir_insn *call)
{
    return call->imm ? lift_func_at(m, (uint64_t)call->imm) : NULL;
}

static int by_callee(const void *a, const void *b)
{
    const call_pair *x = a, *y = b;
    if (x->callee != y->callee) return x->callee < y->callee ? -1 : 1;
    return (x->caller > y->caller) - (x->caller < y->caller);
}

/* Notes whom a function calls. A jump out of the module writes everything. */
static void collect(const lift_module *m, const lift_func *f, call_pairs *pairs, uint64_t *written)
{
    const ir_func *ir = f->ir;
    *written = ir->written;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_CALL && ir->insns[v].op != IR_TAIL) continue;
        const lift_func *callee = callee_of(m, &ir->insns[v]);
        if (callee && callee != f) vec_push(pairs, (call_pair){callee->id, f->id});
        if (!callee && ir->insns[v].op == IR_TAIL) *written = UINT64_MAX;
    }
}

static uint32_t first_of(const call_pairs *pairs, uint32_t callee)
{
    uint32_t low = 0, high = pairs->len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (pairs->data[mid].callee < callee)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* What a function writes its callers write. */
static void close_written(const lift_module *m, const call_pairs *pairs, uint64_t *written)
{
    bool *queued = base_alloc((size_t)m->func_count * sizeof *queued);
    VEC(uint32_t) queue = {0};
    for (uint32_t i = 0; i < m->func_count; i++) {
        queued[i] = true;
        vec_push(&queue, i);
    }
    while (queue.len) {
        uint32_t callee = queue.data[--queue.len];
        queued[callee] = false;
        for (uint32_t i = first_of(pairs, callee); i < pairs->len && pairs->data[i].callee == callee; i++) {
            uint32_t caller = pairs->data[i].caller;
            uint64_t more = written[caller] | written[callee];
            if (more == written[caller]) continue;
            written[caller] = more;
            if (!queued[caller]) vec_push(&queue, caller);
            queued[caller] = true;
        }
    }
    vec_free(&queue);
    free(queued);
}

void lift_preserve(lift_module *m)
{
    call_pairs pairs = {0};
    uint64_t *written = base_alloc((size_t)m->func_count * sizeof *written);
    for (uint32_t i = 0; i < m->func_count; i++)
        collect(m, m->funcs[i], &pairs, &written[i]);
    if (pairs.len) qsort(pairs.data, pairs.len, sizeof *pairs.data, by_callee);
    close_written(m, &pairs, written);
    for (uint32_t i = 0; i < m->func_count; i++) {
        const ir_func *ir = m->funcs[i]->ir;
        for (ir_value v = 1; v < ir->insn_count; v++) {
            ir_insn *insn = &ir->insns[v];
            if ((insn->op != IR_RESULT && insn->op != IR_CLOBBER) || !insn->b) continue;
            const lift_func *callee = callee_of(m, &ir->insns[insn->a]);
            if (callee && written[callee->id] & ir_written_bit(insn->var)) insn->b = 0;
        }
    }
    free(written);
    vec_free(&pairs);
}
