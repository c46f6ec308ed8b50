/* Drops what no access, store or call can ever need. Registers that are no argument still hold something at every call, and
 * without this the leavings of all functions would flow through all functions. A parameter is needed when an access depends on
 * it, or an argument of a call whose callee needs it; calls through pointers need all of theirs. So do the parameters that
 * somebody wishes to ask about. */
#include <stdlib.h>

#include "static/pointer/program.h"

typedef struct {
    uint32_t func, call;
} call_site;

typedef struct {
    pta_program *program;
    uint32_t *first;   /* per function: number of its first variable */
    uint8_t *needed;   /* per variable */
    VEC(uint64_t) work; /* func << 32 | var */
    uint32_t *first_site; /* per function: its direct calls in `sites` */
    call_site *sites;
    bool *taken;       /* per function: its address is taken, or it is called from outside */
    bool ret_needed[2]; /* by some call through a pointer */
} pruner;

static void need(pruner *n, uint32_t func, uint32_t var)
{
    if (var == PTA_NO_VAR || n->needed[n->first[func] + var]) return;
    n->needed[n->first[func] + var] = 1;
    vec_push(&n->work, (uint64_t)func << 32 | var);
}

/* The direct calls of each function, grouped by callee. */
static void collect_sites(pruner *n)
{
    pta_program *program = n->program;
    n->first_site = base_alloc_zero(program->funcs.len + 2, sizeof *n->first_site);
    for (uint32_t i = 0; i < program->calls.len; i++)
        if (program->calls.data[i].func != PTA_NO_FUNC) n->first_site[program->calls.data[i].func + 2]++;
    for (uint32_t f = 0; f < program->funcs.len; f++)
        n->first_site[f + 2] += n->first_site[f + 1];
    n->sites = base_alloc((size_t)program->calls.len * sizeof *n->sites);
    for (uint32_t i = 0; i < program->calls.len; i++) {
        const pta_call *call = &program->calls.data[i];
        if (call->func != PTA_NO_FUNC) n->sites[n->first_site[call->func + 1]++] = (call_site){call->caller, i};
    }
}

static void need_returns(pruner *n, unsigned which)
{
    if (n->ret_needed[which]) return;
    n->ret_needed[which] = true;
    for (uint32_t f = 0; f < n->program->funcs.len; f++)
        if (n->taken[f]) need(n, f, PTA_RET + which);
}

static void seed(pruner *n)
{
    pta_program *program = n->program;
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        const pta_func *func = &program->funcs.data[f];
        const pta_wishes *wishes = program->wishes;
        uint16_t asked = wishes && wishes->asks ? wishes->asks(wishes->with, func->name) : 0;
        for (unsigned a = 0; a < PTA_PARAMS; a++)
            if (asked >> a & 1) need(n, f, a);
        for (uint32_t i = 0; i < func->access_count; i++)
            need(n, f, func->accesses[i].base.var);
        for (uint32_t i = 0; i < func->stmts.len; i++) {
            const pta_stmt *stmt = &func->stmts.data[i];
            if (stmt->kind == PTA_ADDR && program->sites.data[stmt->ref].kind == PTA_FUNCTION)
                n->taken[program->sites.data[stmt->ref].func] = true;
            if (stmt->kind == PTA_STORE) {
                need(n, f, stmt->dst.var);
                need(n, f, stmt->src.var);
            }
            if (stmt->kind != PTA_CALL) continue;
            const pta_call *call = &program->calls.data[stmt->ref];
            if (call->func != PTA_NO_FUNC) continue;
            need(n, f, call->target.var);
            for (unsigned a = 0; a < PTA_PARAMS; a++)
                need(n, f, call->args[a].var);
        }
    }
    need(n, program->outside, PTA_RET);
    need(n, program->wilderness, PTA_RET);
    need(n, program->wild_call, PTA_RET);
    need(n, program->wild_call, PTA_RET2);
}

/* What a needed variable depends on. */
static void follow(pruner *n, uint32_t func, uint32_t var, const uint32_t *heads, const uint32_t *next)
{
    const pta_program *program = n->program;
    const pta_func *f = &program->funcs.data[func];
    if (var < PTA_PARAMS)
        for (uint32_t i = n->first_site[func]; i < n->first_site[func + 1]; i++)
            need(n, n->sites[i].func, program->calls.data[n->sites[i].call].args[var].var);
    for (uint32_t i = heads[var]; i != UINT32_MAX; i = next[i]) {
        const pta_stmt *stmt = &f->stmts.data[i / 2];
        if (stmt->kind == PTA_COPY || stmt->kind == PTA_LOAD) need(n, func, stmt->src.var);
        if (stmt->kind != PTA_CALL) continue;
        const pta_call *call = &program->calls.data[stmt->ref];
        if (call->func != PTA_NO_FUNC)
            need(n, call->func, PTA_RET + i % 2);
        else
            need_returns(n, i % 2);
    }
}

typedef struct {
    uint32_t *heads, *next; /* definitions of each variable: statement * 2, + 1 for a second result */
} definitions;

static definitions define(const pta_program *program, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    definitions d = {base_alloc(f->var_count * sizeof *d.heads), base_alloc(2 * (size_t)f->stmts.len * sizeof *d.next)};
    memset(d.heads, 0xff, f->var_count * sizeof *d.heads);
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        uint32_t defined[2] = {PTA_NO_VAR, PTA_NO_VAR};
        if (stmt->kind == PTA_CALL) {
            defined[0] = program->calls.data[stmt->ref].ret;
            defined[1] = program->calls.data[stmt->ref].ret2;
        } else if (stmt->kind != PTA_STORE) {
            defined[0] = stmt->dst.var;
        }
        for (unsigned k = 0; k < 2; k++) {
            if (defined[k] == PTA_NO_VAR) continue;
            d.next[2 * i + k] = d.heads[defined[k]];
            d.heads[defined[k]] = 2 * i + k;
        }
    }
    return d;
}

static void drop(pruner *n)
{
    pta_program *program = n->program;
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        pta_func *func = &program->funcs.data[f];
        const uint8_t *needed = n->needed + n->first[f];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < func->stmts.len; i++) {
            const pta_stmt *stmt = &func->stmts.data[i];
            bool defines = stmt->kind == PTA_ADDR || stmt->kind == PTA_COPY || stmt->kind == PTA_LOAD;
            if (!defines || needed[stmt->dst.var]) func->stmts.data[kept++] = *stmt;
        }
        func->stmts.len = kept;
        for (unsigned a = 0; a < PTA_PARAMS; a++)
            func->needs |= (uint16_t)(needed[a] << a);
    }
    for (uint32_t i = 0; i < program->calls.len; i++) {
        pta_call *call = &program->calls.data[i];
        const uint8_t *needed = n->needed + n->first[call->caller];
        if (call->ret != PTA_NO_VAR && !needed[call->ret]) call->ret = PTA_NO_VAR;
        if (call->ret2 != PTA_NO_VAR && !needed[call->ret2]) call->ret2 = PTA_NO_VAR;
        for (unsigned a = 0; call->func != PTA_NO_FUNC && a < PTA_PARAMS; a++)
            if (!(program->funcs.data[call->func].needs >> a & 1)) call->args[a].var = PTA_NO_VAR;
    }
}

/* Variables are numbered anew without those that nothing mentions. */
static void renumber(pta_program *program)
{
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        pta_func *func = &program->funcs.data[f];
        uint32_t *map = base_alloc(func->var_count * sizeof *map);
        memset(map, 0xff, func->var_count * sizeof *map);
        uint32_t count = PTA_FIRST_LOCAL;
        for (uint32_t v = 0; v < PTA_FIRST_LOCAL; v++)
            map[v] = v;
#define MAP(x)                                                                                                         \
    do {                                                                                                               \
        if ((x) == PTA_NO_VAR) break;                                                                                  \
        if (map[x] == PTA_NO_VAR) map[x] = count++;                                                                    \
        (x) = map[x];                                                                                                  \
    } while (0)
        for (uint32_t i = 0; i < func->stmts.len; i++) {
            pta_stmt *stmt = &func->stmts.data[i];
            if (stmt->kind == PTA_CALL) {
                pta_call *call = &program->calls.data[stmt->ref];
                MAP(call->target.var);
                MAP(call->ret);
                MAP(call->ret2);
                for (unsigned a = 0; a < PTA_PARAMS; a++)
                    MAP(call->args[a].var);
                continue;
            }
            MAP(stmt->dst.var);
            MAP(stmt->src.var);
        }
        for (uint32_t i = 0; i < func->access_count; i++)
            MAP(func->accesses[i].base.var);
#undef MAP
        func->var_count = count;
        free(map);
    }
}

void program_prune(pta_program *program)
{
    pruner n = {.program = program};
    n.first = base_alloc((program->funcs.len + 1) * sizeof *n.first);
    n.first[0] = 0;
    definitions *defs = base_alloc(program->funcs.len * sizeof *defs);
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        n.first[f + 1] = n.first[f] + program->funcs.data[f].var_count;
        defs[f] = define(program, f);
    }
    n.needed = base_alloc_zero(n.first[program->funcs.len], 1);
    n.taken = base_alloc_zero(program->funcs.len, sizeof *n.taken);
    for (uint32_t f = 0; f < program->funcs.len; f++)
        n.taken[f] = program->funcs.data[f].root;
    collect_sites(&n);
    seed(&n);
    while (n.work.len) {
        uint64_t item = n.work.data[--n.work.len];
        follow(&n, (uint32_t)(item >> 32), (uint32_t)item, defs[item >> 32].heads, defs[item >> 32].next);
    }
    drop(&n);
    renumber(program);
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        free(defs[f].heads);
        free(defs[f].next);
    }
    free(defs);
    free(n.first);
    free(n.needed);
    free(n.taken);
    free(n.first_site);
    free(n.sites);
    vec_free(&n.work);
}
