/* At every call each register holds something, most of it leavings: what flowed there goes on through calls whose callees are not
 * known, as an argument that nobody passed. Which registers are arguments and results follows
 *
 *   - from the declaration, where there is debug information;
 *   - from use: a register that code reads before it writes it is an argument, and the second return register is a result when
 *     somebody reads it behind the call (both through any number of direct calls that only hand it on), or when the function
 *     computes it for nothing else;
 *   - from the calls: a register that one direct call of a function leaves as it is after another call is no argument of it.
 *
 * Use is believed more than a declaration: compilers change the arguments of functions that only they call. */
#include "static/pointer/passing.h"

#include <stdlib.h>

#include "static/pointer/form.h"
#include "static/pointer/kinds.h"

typedef struct {
    ir_value call;
    uint32_t callee; /* PTA_NO_FUNC: of a pointer */
} passing_call;

typedef struct {
    const ir_func *ir; /* NULL: no code */
    bool *wanted;      /* per value: somebody reads it, here or in another function */
    VEC(passing_call) calls;
    uint8_t sure;      /* arguments that are read, or declared */
    bool gives2, queued;
    bool pair;         /* it is declared to return two registers */
} passing_func;

typedef struct {
    uint32_t func, call; /* number in its list */
} passing_site;

typedef struct {
    pta_program *program;
    const generate_module *about;
    passing_func *funcs;
    uint32_t *first; /* per function: its direct calls in `sites` */
    passing_site *sites;
    VEC(uint64_t) work; /* func << 32 | value */
    VEC(uint32_t) seconds; /* functions whose second result is wanted */
    bool pointers_give2; /* somebody reads the second result of a call through a pointer */
    bool *taken, *outside; /* per function: its address is taken; it may be called from outside */
} passing;

static const uint8_t call_args[PASSING_ARGS] = {IR_CALL_RDI, IR_CALL_RSI, IR_CALL_RDX, IR_CALL_RCX, IR_CALL_R8, IR_CALL_R9};
static const uint8_t arg_of[IR_FLAGS] = { /* + 1 */
    [IR_RDI] = PTA_RDI + 1, [IR_RSI] = PTA_RSI + 1, [IR_RDX] = PTA_RDX + 1,
    [IR_RCX] = PTA_RCX + 1, [IR_R8] = PTA_R8 + 1,   [IR_R9] = PTA_R9 + 1,
};

static bool is_argument(const ir_insn *insn)
{
    return insn->op == IR_ENTRY && insn->var < IR_FLAGS && arg_of[insn->var];
}

/* --- declarations --------------------------------------------------------------------------------------------------------- */

static bool is_aggregate(const image_type *type)
{
    return !type || type->kind == IMAGE_TYPE_STRUCT || type->kind == IMAGE_TYPE_UNION || type->kind == IMAGE_TYPE_ARRAY ||
           type->kind == IMAGE_TYPE_OTHER;
}

/* The most registers that a value of a type may need. */
static unsigned most_registers(const image_type *type)
{
    if (is_aggregate(type)) return 2;
    return type->kind == IMAGE_TYPE_FLOAT ? 0 : type->size > 8 ? 2 : 1;
}

static const image_function *declaration(const pta_program *program, const pta_func *f)
{
    const image *img = program->modules[f->module]->img;
    const image_function *debug = img->has_debug ? image_function_at(img, f->lift->entry) : NULL;
    return debug && debug->start == f->lift->entry ? debug : NULL;
}

/* A function whose name has a suffix is a compiler's variant, with other arguments than declared. */
static void read_declaration(pta_program *program, uint32_t func, passing_func *about)
{
    pta_func *f = &program->funcs.data[func];
    const image_function *debug = declaration(program, f);
    f->takes = PASSING_ALL;
    f->gives = PASSING_RET | PASSING_RET2;
    if (!debug) return;
    about->pair = debug->returns && most_registers(debug->returns) > 1;
    if (!about->pair) f->gives = PASSING_RET;
    if (strchr(f->name, '.')) return;
    unsigned count = debug->returns && is_aggregate(debug->returns);
    for (uint32_t i = 0; i < debug->parameter_count && count < PASSING_ARGS; i++)
        count += most_registers(debug->variables[i].type);
    f->takes = count < PASSING_ARGS ? (uint16_t)((1u << count) - 1) : PASSING_ALL;
    about->sure = (uint8_t)f->takes;
}

/* What a model mentions. */
static void read_model(const pta_program *program, uint32_t func, passing_func *about)
{
    pta_func *f = &program->funcs.data[func];
    f->takes = 0;
    f->gives = PASSING_RET;
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        const pta_call *call = stmt->kind == PTA_CALL ? &program->calls.data[stmt->ref] : NULL;
        for (unsigned a = 0; a < PASSING_ARGS; a++) {
            bool mentions = call ? call->target.var == a : stmt->src.var == a || stmt->dst.var == a;
            for (unsigned k = 0; call && k < PTA_PARAMS; k++)
                mentions |= call->args[k].var == a;
            if (mentions) f->takes |= 1u << a;
        }
        if (stmt->kind != PTA_CALL && stmt->dst.var == PTA_RET2) f->gives |= PASSING_RET2;
        if (call && (call->ret == PTA_RET2 || call->ret2 == PTA_RET2)) f->gives |= PASSING_RET2;
    }
    if (func == program->unknown) f->takes = PASSING_ALL;
    about->sure = (uint8_t)(func == program->unknown ? 0 : f->takes);
    about->gives2 = f->gives & PASSING_RET2;
}

/* --- use ------------------------------------------------------------------------------------------------------------------ */

static void want(passing *p, uint32_t func, ir_value v)
{
    if (!v || p->funcs[func].wanted[v]) return;
    p->funcs[func].wanted[v] = true;
    vec_push(&p->work, (uint64_t)func << 32 | v);
}

/* What is in the second return register when a function ends; tail calls leave it to their callees. */
static void want_second(passing *p, uint32_t func)
{
    passing_func *f = &p->funcs[func];
    if (f->gives2 || !f->ir || !(p->program->funcs.data[func].gives & PASSING_RET2)) return;
    f->gives2 = true;
    vec_push(&p->seconds, func);
}

static void follow_second(passing *p, uint32_t func)
{
    const passing_func *f = &p->funcs[func];
    for (ir_value v = 1; v < f->ir->insn_count; v++)
        if (f->ir->insns[v].op == IR_RET) want(p, func, f->ir->args[f->ir->insns[v].a + IR_RET_RDX]);
    for (uint32_t i = 0; i < f->calls.len; i++)
        if (f->ir->insns[f->calls.data[i].call].op == IR_TAIL && f->calls.data[i].callee != PTA_NO_FUNC)
            want_second(p, f->calls.data[i].callee);
}

static void want_second_of(passing *p, uint32_t callee)
{
    if (callee != PTA_NO_FUNC) {
        want_second(p, callee);
    } else if (!p->pointers_give2) {
        p->pointers_give2 = true;
        for (uint32_t f = 0; f < p->program->funcs.len; f++)
            if (p->taken[f]) want_second(p, f);
    }
}

static void want_argument(passing *p, uint32_t func, unsigned argument)
{
    passing_func *f = &p->funcs[func];
    f->sure |= (uint8_t)(1u << argument);
    for (uint32_t i = p->first[func]; i < p->first[func + 1]; i++) {
        const passing_func *caller = &p->funcs[p->sites[i].func];
        const ir_insn *call = &caller->ir->insns[caller->calls.data[p->sites[i].call].call];
        want(p, p->sites[i].func, caller->ir->args[call->a + call_args[argument]]);
    }
}

/* What a wanted value is made of. */
static void follow(passing *p, uint32_t func, ir_value v)
{
    passing_func *f = &p->funcs[func];
    const ir_insn *insn = &f->ir->insns[v];
    if (is_argument(insn)) {
        want_argument(p, func, arg_of[insn->var] - 1u);
    } else if (insn->op == IR_COPY || insn->op == IR_EXTRACT) {
        want(p, func, insn->a);
    } else if (insn->op == IR_PHI) {
        for (uint32_t i = 0; i < insn->b; i++)
            want(p, func, f->ir->args[insn->a + i]);
    } else if (insn->op == IR_RESULT || insn->op == IR_CLOBBER) {
        want(p, func, insn->b);
        for (uint32_t i = 0; insn->op == IR_RESULT && insn->var == IR_RDX && i < f->calls.len; i++)
            if (f->calls.data[i].call == insn->a) want_second_of(p, f->calls.data[i].callee);
    }
}

/* Whether a value that is in the second return register at the end was computed to be there. */
static bool is_meant(const passing_func *f, ir_value v, unsigned depth)
{
    enum { DEPTH = 4 };
    const ir_insn *insn = &f->ir->insns[v];
    if (!v || depth > DEPTH || f->wanted[v]) return false;
    if (insn->op == IR_PHI) {
        for (uint32_t i = 0; i < insn->b; i++)
            if (!is_meant(f, f->ir->args[insn->a + i], depth + 1)) return false;
        return insn->b > 0;
    }
    return insn->op != IR_ENTRY && insn->op != IR_RESULT && insn->op != IR_CLOBBER && insn->op != IR_UNDEF && insn->op != IR_OPAQUE;
}

static bool means_second(const passing_func *f)
{
    bool ends = false;
    for (ir_value v = 1; f->ir && v < f->ir->insn_count; v++) {
        if (f->ir->insns[v].op != IR_RET) continue;
        if (!is_meant(f, f->ir->args[f->ir->insns[v].a + IR_RET_RDX], 0)) return false;
        ends = true;
    }
    return ends;
}

static void find_wanted(passing *p)
{
    for (uint32_t f = 0; f < p->program->funcs.len; f++) {
        const passing_func *func = &p->funcs[f];
        for (ir_value v = 1; func->ir && v < func->ir->insn_count; v++)
            if (func->wanted[v]) vec_push(&p->work, (uint64_t)f << 32 | v);
        for (unsigned a = 0; a < PASSING_ARGS; a++)
            if (func->sure >> a & 1) want_argument(p, f, a);
        if (p->outside[f] || func->pair || means_second(func)) want_second(p, f);
    }
    while (p->work.len || p->seconds.len) {
        if (p->seconds.len) {
            follow_second(p, p->seconds.data[--p->seconds.len]);
            continue;
        }
        uint64_t item = p->work.data[--p->work.len];
        follow(p, (uint32_t)(item >> 32), (uint32_t)item);
    }
}

/* --- calls ---------------------------------------------------------------------------------------------------------------- */

/* A value that is not made of others: what a register has that nobody put anything into. */
static bool is_left(const pta_program *program, const ir_insn *insn, const pta_func *f, uint32_t callee, bool wanted)
{
    if (insn->op == IR_UNDEF) return true;
    if (insn->op == IR_CLOBBER) return insn->var < IR_FLAGS;
    if (is_argument(insn)) return !(f->takes >> (arg_of[insn->var] - 1u) & 1);
    if (insn->op != IR_RESULT || (insn->var != IR_RAX && insn->var != IR_RDX)) return false;
    uint8_t which = insn->var == IR_RAX ? PASSING_RET : PASSING_RET2;
    if (callee == PTA_NO_FUNC || callee == program->unknown) return which == PASSING_RET2 && !wanted;
    return !(program->funcs.data[callee].gives & which);
}

typedef struct {
    const pta_program *program;
    const ir_func *ir;
    const pta_func *func;
    const uint32_t *callees; /* per value that is a call */
    const bool *wanted;
    bool *left;
} leavings;

static bool judge(const leavings *l, ir_value v)
{
    const ir_insn *insn = &l->ir->insns[v];
    if (insn->op == IR_COPY || insn->op == IR_EXTRACT) return l->left[insn->a];
    if (insn->op == IR_PHI) {
        for (uint32_t i = 0; i < insn->b; i++)
            if (l->ir->args[insn->a + i] && !l->left[l->ir->args[insn->a + i]]) return false;
        return true;
    }
    bool after = insn->op == IR_RESULT || insn->op == IR_CLOBBER;
    if (after && insn->b && !l->left[insn->b]) return false;
    if (after && l->ir->insns[insn->a].op == IR_SYSCALL) return insn->op == IR_CLOBBER;
    return is_left(l->program, insn, l->func, after ? l->callees[insn->a] : PTA_NO_FUNC, l->wanted[v]);
}

/* The largest set that its own rules do not contradict: a phi on a cycle is what enters the cycle. */
static void find_left(const leavings *l)
{
    memset(l->left, 1, l->ir->insn_count);
    l->left[0] = false;
    for (bool changed = true; changed;) {
        changed = false;
        for (ir_value v = 1; v < l->ir->insn_count; v++) {
            if (!l->left[v] || judge(l, v)) continue;
            l->left[v] = false;
            changed = true;
        }
    }
}

static uint32_t *callees_of(const pta_program *program, const generate_module *about, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    const ir_func *ir = f->lift->ir;
    uint32_t *callees = base_alloc((size_t)ir->insn_count * sizeof *callees);
    for (ir_value v = 0; v < ir->insn_count; v++)
        callees[v] = ir->insns[v].op == IR_CALL || ir->insns[v].op == IR_TAIL
                         ? generate_callee(program, about, func, &ir->insns[v])
                         : PTA_NO_FUNC;
    return callees;
}

/* With what is handed on to functions that take it. */
static bool *find_read(const pta_program *program, const pta_func *f, const uint32_t *callees)
{
    const ir_func *ir = f->lift->ir;
    bool *wanted = kinds_used(ir);
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        if (insn->op == IR_RET && f->gives & PASSING_RET2) wanted[ir->args[insn->a + IR_RET_RDX]] = true;
        for (unsigned a = 0; callees[v] != PTA_NO_FUNC && a < PASSING_ARGS; a++)
            if (program->funcs.data[callees[v]].takes >> a & 1) wanted[ir->args[insn->a + call_args[a]]] = true;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (ir_value v = ir->insn_count; v-- > 1;) {
            const ir_insn *insn = &ir->insns[v];
            bool copy = insn->op == IR_COPY || insn->op == IR_EXTRACT;
            if (!wanted[v] || (!copy && insn->op != IR_PHI)) continue;
            const ir_value *from = copy ? &insn->a : ir->args + insn->a;
            for (uint32_t i = 0; i < (copy ? 1 : insn->b); i++) {
                changed |= from[i] && !wanted[from[i]];
                wanted[from[i]] = true;
            }
        }
    }
    return wanted;
}

bool *passing_leavings(const pta_program *program, const generate_module *about, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    const ir_func *ir = f->lift->ir;
    uint32_t *callees = callees_of(program, about, func);
    bool *wanted = find_read(program, f, callees), *left = base_alloc((size_t)ir->insn_count);
    find_left(&(leavings){program, ir, f, callees, wanted, left});
    free(callees);
    free(wanted);
    return left;
}

/* A function that one call passes leavings in a register to takes no argument there, unless it reads it. */
static void blame_calls(passing *p)
{
    VEC(uint32_t) queue = {0};
    for (uint32_t f = 0; f < p->program->funcs.len; f++) {
        if (!p->funcs[f].ir) continue;
        p->funcs[f].queued = true;
        vec_push(&queue, f);
    }
    while (queue.len) {
        uint32_t func = queue.data[--queue.len];
        passing_func *f = &p->funcs[func];
        f->queued = false;
        bool *left = passing_leavings(p->program, &p->about[p->program->funcs.data[func].module], func);
        for (uint32_t i = 0; i < f->calls.len; i++) {
            uint32_t callee = f->calls.data[i].callee;
            passing_func *to = callee == PTA_NO_FUNC ? NULL : &p->funcs[callee];
            for (unsigned a = 0; to && to->ir && a < PASSING_ARGS; a++) {
                uint16_t bit = (uint16_t)(1u << a), *takes = &p->program->funcs.data[callee].takes;
                ir_value v = f->ir->args[f->ir->insns[f->calls.data[i].call].a + call_args[a]];
                if (to->sure & bit || !(*takes & bit) || !v || !left[v]) continue;
                *takes &= (uint16_t)~bit;
                if (!to->queued) vec_push(&queue, callee);
                to->queued = true;
            }
        }
        free(left);
    }
    vec_free(&queue);
}

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

static void note_address(const passing *p, bool *noted, uint32_t module, uint64_t addr)
{
    uint32_t func = image_is_code(p->program->modules[module]->img, addr) ? program_func_at(p->program, module, addr) : PTA_NO_FUNC;
    if (func != PTA_NO_FUNC) noted[func] = true;
}

static void note_addresses(const passing *p, uint32_t module)
{
    const image *img = p->program->modules[module]->img;
    for (uint32_t i = 0; i < img->reloc_count; i++)
        note_address(p, p->taken, module, img->relocs[i].target);
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        if (!img->symbols[i].exported) continue;
        note_address(p, p->taken, module, img->symbols[i].addr);
        note_address(p, p->outside, module, img->symbols[i].addr);
    }
}

static void read_code(passing *p, uint32_t func)
{
    passing_func *f = &p->funcs[func];
    const pta_func *of = &p->program->funcs.data[func];
    f->ir = of->lift->ir;
    f->wanted = kinds_used(f->ir);
    for (ir_value v = 1; v < f->ir->insn_count; v++) {
        const ir_insn *insn = &f->ir->insns[v];
        if (insn->op == IR_ADDRESS || insn->op == IR_CONST) note_address(p, p->taken, of->module, (uint64_t)insn->imm);
        if (insn->op != IR_CALL && insn->op != IR_TAIL) continue;
        uint32_t callee = generate_callee(p->program, &p->about[of->module], func, insn);
        vec_push(&f->calls, (passing_call){v, callee});
        if (callee != PTA_NO_FUNC) p->first[callee + 2]++;
    }
}

/* The direct calls of each function, grouped by callee. */
static void group_calls(passing *p)
{
    uint32_t count = p->program->funcs.len;
    for (uint32_t f = 0; f < count; f++)
        p->first[f + 2] += p->first[f + 1];
    p->sites = base_alloc((size_t)p->first[count + 1] * sizeof *p->sites);
    for (uint32_t f = 0; f < count; f++)
        for (uint32_t i = 0; i < p->funcs[f].calls.len; i++)
            if (p->funcs[f].calls.data[i].callee != PTA_NO_FUNC)
                p->sites[p->first[p->funcs[f].calls.data[i].callee + 1]++] = (passing_site){f, i};
}

void passing_find(pta_program *program, const generate_module *about)
{
    passing p = {.program = program, .about = about};
    uint32_t count = program->funcs.len;
    p.funcs = base_alloc_zero(count, sizeof *p.funcs);
    p.first = base_alloc_zero(count + 2, sizeof *p.first);
    p.taken = base_alloc_zero(count, sizeof *p.taken);
    p.outside = base_alloc_zero(count, sizeof *p.outside);
    for (uint32_t m = 0; m < program->module_count; m++)
        note_addresses(&p, m);
    for (uint32_t f = 0; f < count; f++) {
        if (!program->funcs.data[f].lift) {
            read_model(program, f, &p.funcs[f]);
            continue;
        }
        read_declaration(program, f, &p.funcs[f]);
        if (program->funcs.data[f].lift->ir) read_code(&p, f);
    }
    group_calls(&p);
    find_wanted(&p);
    for (uint32_t f = 0; f < count; f++) {
        program->funcs.data[f].takes |= p.funcs[f].sure;
        if (p.funcs[f].ir && !p.funcs[f].gives2) program->funcs.data[f].gives &= (uint8_t)~PASSING_RET2;
    }
    blame_calls(&p);
    for (uint32_t f = 0; f < count; f++) {
        free(p.funcs[f].wanted);
        vec_free(&p.funcs[f].calls);
    }
    free(p.funcs);
    free(p.first);
    free(p.sites);
    free(p.taken);
    free(p.outside);
    vec_free(&p.work);
    vec_free(&p.seconds);
}
