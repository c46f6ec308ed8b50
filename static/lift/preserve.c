/* What survives a call. gcc's -fipa-ra, on by default, lets a caller keep a value in a caller-saved register across a call to a
 * function of its own module that does not write it, so the IR of such a call says that the register may be as before. Whether
 * it may follows from the code of all functions: gcc looks at what a function and those that it calls ever write, not at paths,
 * and so does this.
 *
 * Requires the IR of all functions. Leaves IR_RESULT and IR_CLOBBER with an old value only where the callee writes neither the
 * register itself nor through another function. */
#include "static/lift/lift.h"

#include <stdlib.h>

typedef struct { /* who calls whom, and what each function writes */
    const lift_module *module;
    uint32_t *first;   /* per function: of its callers, and one more for the end */
    uint32_t *callers;
    uint64_t *written;
} call_map;

static const lift_func *callee_of(const lift_module *m, const ir_insn *call)
{
    return call->imm ? lift_func_at(m, (uint64_t)call->imm) : NULL;
}

/* Each call of a function of the module; a jump out of it writes everything. Counts them in `first`, or notes them there. */
static void look_at(call_map *map, const lift_func *f, bool note)
{
    const ir_func *ir = f->ir;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_CALL && ir->insns[v].op != IR_TAIL) continue;
        const lift_func *callee = callee_of(map->module, &ir->insns[v]);
        if (!callee && ir->insns[v].op == IR_TAIL) map->written[f->id] = UINT64_MAX;
        if (!callee) continue;
        if (note)
            map->callers[--map->first[callee->id]] = f->id;
        else
            map->first[callee->id]++;
    }
}

static call_map map_calls(const lift_module *m)
{
    call_map map = {.module = m};
    map.first = base_alloc_zero(m->func_count + 1, sizeof *map.first);
    map.written = base_alloc((size_t)m->func_count * sizeof *map.written);
    for (uint32_t i = 0; i < m->func_count; i++)
        map.written[i] = m->funcs[i]->ir->written;
    for (uint32_t i = 0; i < m->func_count; i++)
        look_at(&map, m->funcs[i], false);
    for (uint32_t i = 0; i < m->func_count; i++)
        map.first[i + 1] += map.first[i];
    map.callers = base_alloc((size_t)map.first[m->func_count] * sizeof *map.callers);
    for (uint32_t i = 0; i < m->func_count; i++)
        look_at(&map, m->funcs[i], true);
    return map;
}

/* What a function writes its callers write. */
static void close_written(call_map *map)
{
    uint32_t count = map->module->func_count;
    bool *queued = base_alloc((size_t)count * sizeof *queued);
    VEC(uint32_t) queue = {0};
    for (uint32_t i = 0; i < count; i++) {
        queued[i] = true;
        vec_push(&queue, i);
    }
    while (queue.len) {
        uint32_t callee = queue.data[--queue.len];
        queued[callee] = false;
        for (uint32_t i = map->first[callee]; i < map->first[callee + 1]; i++) {
            uint32_t caller = map->callers[i];
            uint64_t more = map->written[caller] | map->written[callee];
            if (more == map->written[caller]) continue;
            map->written[caller] = more;
            if (!queued[caller]) vec_push(&queue, caller);
            queued[caller] = true;
        }
    }
    vec_free(&queue);
    free(queued);
}

void lift_preserve(lift_module *m)
{
    call_map map = map_calls(m);
    close_written(&map);
    for (uint32_t i = 0; i < m->func_count; i++) {
        const ir_func *ir = m->funcs[i]->ir;
        for (ir_value v = 1; v < ir->insn_count; v++) {
            ir_insn *insn = &ir->insns[v];
            if ((insn->op != IR_RESULT && insn->op != IR_CLOBBER) || !insn->b) continue;
            const lift_func *callee = callee_of(m, &ir->insns[insn->a]);
            if (callee && map.written[callee->id] & ir_written_bit(insn->var)) insn->b = 0;
        }
    }
    free(map.first);
    free(map.callers);
    free(map.written);
}
