/* Functions of which each call has its own instance, whatever the contexts are: allocator wrappers, so that each caller has its
 * own objects, small functions that start threads for others, and what an optimiser would have inlined. */
#include <stdlib.h>
#include <string.h>

#include "static/pointer/program.h"

enum { WRAPPER_STATEMENTS = 120 };

static bool calls_any(const pta_program *program, const pta_func *f, const uint8_t *of)
{
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        if (f->stmts.data[i].kind != PTA_CALL) continue;
        uint32_t callee = program->calls.data[f->stmts.data[i].ref].func;
        if (callee != PTA_NO_FUNC && of[callee]) return true;
    }
    return false;
}

/* A function that returns what an allocator or another wrapper has just given it. */
static bool is_wrapper(const pta_program *program, const pta_func *f, const uint8_t *allocates)
{
    if (f->stmts.len > WRAPPER_STATEMENTS || !calls_any(program, f, allocates)) return false;
    uint8_t *returned = base_alloc_zero(f->var_count, 1);
    returned[PTA_RET] = 1;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < f->stmts.len; i++) {
            const pta_stmt *stmt = &f->stmts.data[i];
            if (stmt->kind != PTA_COPY || !returned[stmt->dst.var] || returned[stmt->src.var]) continue;
            returned[stmt->src.var] = 1;
            changed = true;
        }
    }
    bool found = false, kept = false; /* what is stored somewhere is more than handed on, but for links of the object to itself */
    for (uint32_t i = 0; i < f->stmts.len && !kept; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        kept = stmt->kind == PTA_STORE && returned[stmt->src.var] && !returned[stmt->dst.var];
    }
    for (uint32_t i = 0; i < f->stmts.len && !found && !kept; i++) {
        if (f->stmts.data[i].kind != PTA_CALL) continue;
        const pta_call *call = &program->calls.data[f->stmts.data[i].ref];
        found = call->func != PTA_NO_FUNC && allocates[call->func] && call->ret != PTA_NO_VAR && returned[call->ret];
    }
    free(returned);
    return found;
}

static bool model_allocates(const pta_program *program, const pta_func *f)
{
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        if (stmt->kind == PTA_ADDR && program->sites.data[stmt->ref].kind == PTA_HEAP) return true;
    }
    return false;
}

/* A small function that starts threads for others: whose thread it is depends on who calls it. */
static bool is_spawner(const pta_program *program, const pta_func *f)
{
    for (uint32_t i = 0; f->stmts.len <= WRAPPER_STATEMENTS && i < f->stmts.len; i++) {
        if (f->stmts.data[i].kind != PTA_CALL) continue;
        uint32_t model = program->calls.data[f->stmts.data[i].ref].func;
        if (model == PTA_NO_FUNC || program->funcs.data[model].lift) continue;
        const pta_func *m = &program->funcs.data[model];
        for (uint32_t k = 0; k < m->stmts.len; k++)
            if (m->stmts.data[k].kind == PTA_CALL && program->calls.data[m->stmts.data[k].ref].spawn == PTA_SPAWN_THREAD &&
                !program->calls.data[m->stmts.data[k].ref].in_loop)
                return true;
    }
    return false;
}

/* What an optimiser would have inlined: members of guards, mutexes, atomics and threads of C++. */
static bool is_accessor(const pta_func *f)
{
    static const char *const prefixes[] = {
        "_ZNSt10lock_guardI", "_ZNSt11unique_lockI", "_ZNSt11scoped_lockI", "_ZNSt11shared_lockI", "_ZNSt5mutex", "_ZNSt12__mutex_base",
        "_ZNSt15recursive_mutex", "_ZNSt12shared_mutex", "_ZNSt22__shared_mutex_pthread", "_ZNSt6atomicI", "_ZNKSt6atomicI",
        "_ZNSt13__atomic_baseI", "_ZNKSt13__atomic_baseI", "_ZNSt11atomic_flag", "_ZNSt6threadC", "_ZNSt6threadD", "_ZNSt6threadaS",
        "_ZSt11__addressofI", "_ZSt4moveI", "_ZSt7forwardI", "_ZNSt18condition_variable",
        "_ZL20__gthread_mutex_lock", "_ZL22__gthread_mutex_unlock", "_ZL23__gthread_mutex_trylock",
    };
    for (unsigned i = 0; i < sizeof prefixes / sizeof *prefixes && f->stmts.len <= WRAPPER_STATEMENTS; i++)
        if (!strncmp(f->name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

enum { WRAPPER_ROUNDS = 3 }; /* wrappers of wrappers */

void program_find_wrappers(pta_program *program)
{
    uint8_t *allocates = base_alloc_zero(program->funcs.len, 1);
    for (uint32_t f = 0; f < program->funcs.len; f++)
        allocates[f] = !program->funcs.data[f].lift && program->funcs.data[f].clone &&
                       model_allocates(program, &program->funcs.data[f]);
    for (unsigned round = 0; round < WRAPPER_ROUNDS; round++) {
        VEC(uint32_t) found = {0};
        for (uint32_t f = 0; f < program->funcs.len; f++)
            if (program->funcs.data[f].lift && !allocates[f] && !program->funcs.data[f].root &&
                is_wrapper(program, &program->funcs.data[f], allocates))
                vec_push(&found, f);
        for (uint32_t i = 0; i < found.len; i++)
            allocates[found.data[i]] = program->funcs.data[found.data[i]].clone = true;
        vec_free(&found);
    }
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        pta_func *func = &program->funcs.data[f];
        if (func->lift && !func->root && !func->clone) func->clone = is_accessor(func) || is_spawner(program, func);
    }
    free(allocates);
}
