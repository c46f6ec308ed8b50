/* Whether two programs of the same modules are the same, number by number: what of one was taken from a program before
 * it is what the other one has generated. */
#ifndef RACE_TEST_PROGRAM_SAME_H
#define RACE_TEST_PROGRAM_SAME_H

#include <stdio.h>

#include "static/pointer/pointer.h"

#define SAME_FAIL(...)                                                                                                 \
    do {                                                                                                               \
        snprintf(why, size, __VA_ARGS__);                                                                              \
        return false;                                                                                                  \
    } while (0)

static inline bool same_operand(pta_operand a, pta_operand b)
{
    return a.var == b.var && a.delta == b.delta;
}

static inline bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static inline bool same_site(const pta_site *a, const pta_site *b)
{
    return a->kind == b->kind && a->constant == b->constant && a->any == b->any && a->sized == b->sized &&
           a->counted == b->counted && a->module == b->module && a->func == b->func && a->start == b->start &&
           a->size == b->size && a->memory == b->memory && a->base == b->base && a->open == b->open &&
           a->align == b->align && same_name(a->name, b->name) && a->type == b->type && !a->shape == !b->shape;
}

static inline bool same_call(const pta_call *a, const pta_call *b)
{
    bool same = a->func == b->func && same_operand(a->target, b->target) && a->known == b->known && a->ret == b->ret &&
                a->ret2 == b->ret2 && a->caller == b->caller && a->addr == b->addr && a->makes == b->makes &&
                a->spawn == b->spawn && a->in_loop == b->in_loop;
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        same &= same_operand(a->args[i], b->args[i]);
    for (unsigned i = 0; i < PTA_SIZES; i++)
        same &= a->sizes[i].multiple == b->sizes[i].multiple && a->sizes[i].exact == b->sizes[i].exact &&
                a->sizes[i].param == b->sizes[i].param && a->sizes[i].delta == b->sizes[i].delta;
    return same;
}

static inline bool same_func(const pta_func *a, const pta_func *b, char *why, size_t size)
{
    if (a->lift != b->lift || a->module != b->module || !same_name(a->name, b->name))
        SAME_FAIL("%s: another function", a->name);
    if (a->takes != b->takes || a->gives != b->gives)
        SAME_FAIL("%s: takes %x %x, gives %x %x", a->name, a->takes, b->takes, a->gives, b->gives);
    if (a->needs != b->needs || a->stack != b->stack || a->clone != b->clone || a->root != b->root ||
        a->at_load != b->at_load || a->loader != b->loader || a->modelled != b->modelled)
        SAME_FAIL("%s: what is said of it: needs %x %x, clone %d %d", a->name, a->needs, b->needs, a->clone, b->clone);
    if (a->var_count != b->var_count || a->stmts.len != b->stmts.len || a->access_count != b->access_count)
        SAME_FAIL("%s: %u, %u statements, %u, %u variables", a->name, a->stmts.len, b->stmts.len, a->var_count,
                  b->var_count);
    for (uint32_t i = 0; i < a->stmts.len; i++) {
        const pta_stmt *x = &a->stmts.data[i], *y = &b->stmts.data[i];
        if (x->kind != y->kind || x->dead != y->dead || !same_operand(x->dst, y->dst) ||
            !same_operand(x->src, y->src) || x->stride != y->stride || x->ref != y->ref || x->insn != y->insn)
            SAME_FAIL("%s: statement %u: kind %u %u, ref %u %u", a->name, i, x->kind, y->kind, x->ref, y->ref);
    }
    for (uint32_t i = 0; i < a->access_count; i++) {
        const pta_access *x = &a->accesses[i], *y = &b->accesses[i];
        if (x->func != y->func || !same_operand(x->base, y->base) || x->stride != y->stride || x->insn != y->insn ||
            x->width != y->width || x->flags != y->flags)
            SAME_FAIL("%s: access %u", a->name, i);
    }
    return true;
}

/* False: `why` says what differs first. */
static inline bool same_program(const pta_program *a, const pta_program *b, char *why, size_t size)
{
    if (a->sites.len != b->sites.len || a->calls.len != b->calls.len || a->funcs.len != b->funcs.len)
        SAME_FAIL("%u, %u functions, %u, %u sites, %u, %u calls", a->funcs.len, b->funcs.len, a->sites.len,
                  b->sites.len, a->calls.len, b->calls.len);
    for (uint32_t i = 0; i < a->funcs.len; i++)
        if (!same_func(&a->funcs.data[i], &b->funcs.data[i], why, size)) return false;
    for (uint32_t i = 0; i < a->sites.len; i++)
        if (!same_site(&a->sites.data[i], &b->sites.data[i]))
            SAME_FAIL("site %u, %s", i, a->sites.data[i].name ? a->sites.data[i].name : "");
    for (uint32_t i = 0; i < a->calls.len; i++)
        if (!same_call(&a->calls.data[i], &b->calls.data[i]))
            SAME_FAIL("call %u in %s", i, a->funcs.data[a->calls.data[i].caller].name);
    if (a->stack != b->stack || a->unknown_calls != b->unknown_calls || a->unknown_accesses != b->unknown_accesses ||
        a->outside != b->outside || a->wilderness != b->wilderness || a->wild_call != b->wild_call)
        SAME_FAIL("what is said of the whole");
    return true;
}

/* The same of what modules were lifted to. */
static inline bool same_module(const lift_module *a, const lift_module *b, char *why, size_t size)
{
    if (a->func_count != b->func_count) SAME_FAIL("%s: %u, %u functions", a->img->path, a->func_count, b->func_count);
    for (uint32_t i = 0; i < a->func_count; i++) {
        const lift_func *x = a->funcs[i], *y = b->funcs[i];
        if (x->entry != y->entry || x->end != y->end || x->returns != y->returns || x->complete != y->complete ||
            x->guessed != y->guessed || x->insn_count != y->insn_count || x->block_count != y->block_count ||
            x->edge_count != y->edge_count || x->found != y->found || strcmp(x->name, y->name))
            SAME_FAIL("%s: %s: another function", a->img->path, x->name);
        if (!x->ir || !y->ir || x->ir->insn_count != y->ir->insn_count || x->ir->arg_count != y->ir->arg_count ||
            memcmp(x->ir->insns + 1, y->ir->insns + 1, (x->ir->insn_count - 1) * sizeof *x->ir->insns) ||
            (x->ir->arg_count && memcmp(x->ir->args, y->ir->args, x->ir->arg_count * sizeof *x->ir->args)) ||
            (x->insn_count && memcmp(x->ir->live, y->ir->live, x->insn_count * sizeof *x->ir->live)))
            SAME_FAIL("%s: %s: other IR", a->img->path, x->name);
    }
    return true;
}

#undef SAME_FAIL
#endif
