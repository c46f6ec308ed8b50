/* Small functions that move pointers between what they are given: `list_add(list, node)`, `queue_pop(queue)`. One instance for all
 * callers would mix what all lists hold. An optimiser inlines most of them, so code without optimisation has many more: each call
 * has its own instance, as if they were inlined. Not so where very many call: that costs more than it tells. */
#include <stdlib.h>

#include "static/pointer/program.h"

enum { HELPER_STATEMENTS = 24, HELPER_CALLS = 3, HELPER_ROUNDS = 3, HELPER_CALLERS = 12 };

/* Bits of the parameters that each variable may come from, itself or by way of memory. */
static uint16_t *find_sources(const pta_program *program, const pta_func *f, const bool *helps)
{
    uint16_t *from = base_alloc_zero(f->var_count, sizeof *from);
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        from[i] = i == PTA_RSP ? 0 : (uint16_t)(1u << i);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < f->stmts.len; i++) {
            const pta_stmt *s = &f->stmts.data[i];
            uint32_t to = PTA_NO_VAR;
            uint16_t what = 0;
            if (s->kind == PTA_COPY || s->kind == PTA_LOAD) {
                to = s->dst.var;
                what = from[s->src.var];
            } else if (s->kind == PTA_CALL) {
                const pta_call *call = &program->calls.data[s->ref];
                to = call->func != PTA_NO_FUNC && helps[call->func] ? call->ret : PTA_NO_VAR;
                for (unsigned a = 0; a < PTA_PARAMS; a++)
                    if (call->args[a].var != PTA_NO_VAR) what |= from[call->args[a].var];
            }
            if (to == PTA_NO_VAR || !(what & ~from[to])) continue;
            from[to] |= what;
            changed = true;
        }
    }
    return from;
}

/* Whether a function stores one of its parameters into another, returns what one leads to, or leaves that to a helper. */
static bool is_helper(const pta_program *program, const pta_func *f, const bool *helps)
{
    if (f->stmts.len > HELPER_STATEMENTS) return false;
    uint32_t calls = 0;
    for (uint32_t i = 0; i < f->stmts.len; i++)
        calls += f->stmts.data[i].kind == PTA_CALL;
    if (calls > HELPER_CALLS) return false;
    uint16_t *from = find_sources(program, f, helps);
    bool found = false;
    for (uint32_t i = 0; i < f->stmts.len && !found; i++) {
        const pta_stmt *s = &f->stmts.data[i];
        if (s->kind == PTA_STORE) {
            found = from[s->dst.var] && from[s->src.var];
        } else if (s->kind == PTA_COPY && s->dst.var == PTA_RET) {
            found = from[s->src.var];
        } else if (s->kind == PTA_CALL) {
            const pta_call *call = &program->calls.data[s->ref];
            for (unsigned a = 0; a < PTA_PARAMS && call->func != PTA_NO_FUNC && helps[call->func]; a++)
                found |= call->args[a].var != PTA_NO_VAR && from[call->args[a].var];
        }
    }
    free(from);
    return found;
}

/* Per function: the calls that name it. */
static uint32_t *count_callers(const pta_program *program)
{
    uint32_t *callers = base_alloc_zero(program->funcs.len, sizeof *callers);
    for (uint32_t i = 0; i < program->calls.len; i++)
        if (program->calls.data[i].func != PTA_NO_FUNC) callers[program->calls.data[i].func]++;
    return callers;
}

void program_find_helpers(pta_program *program)
{
    bool *helps = base_alloc_zero(program->funcs.len, sizeof *helps);
    uint32_t *callers = count_callers(program);
    for (unsigned round = 0; round < HELPER_ROUNDS; round++) {
        VEC(uint32_t) found = {0};
        for (uint32_t f = 0; f < program->funcs.len; f++) {
            const pta_func *func = &program->funcs.data[f];
            if (!func->lift || func->root || helps[f] || callers[f] < 2 || callers[f] > HELPER_CALLERS) continue;
            if (is_helper(program, func, helps)) vec_push(&found, f);
        }
        for (uint32_t i = 0; i < found.len; i++)
            helps[found.data[i]] = program->funcs.data[found.data[i]].clone = true;
        vec_free(&found);
    }
    free(helps);
    free(callers);
}
