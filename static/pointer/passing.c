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

#include "static/pointer/kinds.h"
#include "static/pointer/map.h"
#include "static/pointer/maps.h"

typedef struct {
    passing_local *local; /* of a function with code, or NULL */
    uint32_t *callees;    /* per call; PTA_NO_FUNC: of a pointer */
    uint8_t sure;         /* arguments that are read, or declared */
    bool gives2, queued;
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
    uint32_t *callees;      /* of all functions */
    bool *wanted;           /* per call, as `callees`: its second result */
    VEC(uint32_t) results;  /* calls of one function whose second results are wanted */
    VEC(uint64_t) work;     /* func << 32 | argument that is read */
    VEC(uint32_t) seconds;  /* functions whose second result is wanted */
    bool pointers_give2;    /* somebody reads the second result of a call through a pointer */
    bool *taken, *outside;  /* per function: its address is taken; it may be called from outside */
} passing;

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

static void want_argument(passing *p, uint32_t func, unsigned argument)
{
    if (p->funcs[func].sure >> argument & 1) return;
    p->funcs[func].sure |= (uint8_t)(1u << argument);
    vec_push(&p->work, (uint64_t)func << 32 | argument);
}

static void want_arguments(passing *p, uint32_t func, uint8_t bits)
{
    for (unsigned a = 0; a < PASSING_ARGS; a++)
        if (bits >> a & 1) want_argument(p, func, a);
}

/* What is in the second return register when a function ends; tail calls leave it to their callees. */
static void want_second(passing *p, uint32_t func)
{
    passing_func *f = &p->funcs[func];
    if (f->gives2 || !f->callees || !(p->program->funcs.data[func].gives & PASSING_RET2)) return;
    f->gives2 = true;
    vec_push(&p->seconds, func);
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

static void push_seconds(passing *p, uint32_t func, uint32_t entry)
{
    const passing_func *f = &p->funcs[func];
    uint32_t low = 0, high = f->local->seconds.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (f->local->seconds.data[mid].entry < entry)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < f->local->seconds.len && f->local->seconds.data[low].entry == entry; low++) {
        uint32_t call = f->local->seconds.data[low].call;
        bool *wanted = &p->wanted[f->callees - p->callees + call];
        if (!*wanted) vec_push(&p->results, call);
        *wanted = true;
    }
}

/* The second results that are wanted at an entry, and what they may still be from before their calls. */
static void want_seconds(passing *p, uint32_t func, uint32_t entry)
{
    push_seconds(p, func, entry);
    while (p->results.len) {
        uint32_t call = p->results.data[--p->results.len];
        push_seconds(p, func, passing_spared(call));
        want_second_of(p, p->funcs[func].callees[call]);
    }
}

static void follow_second(passing *p, uint32_t func)
{
    const passing_func *f = &p->funcs[func];
    want_arguments(p, func, f->local->ended);
    want_seconds(p, func, PASSING_ENDED);
    for (uint32_t i = 0; i < f->local->calls.len; i++)
        if (f->local->calls.data[i].tail && f->callees[i] != PTA_NO_FUNC) want_second(p, f->callees[i]);
}

/* What callers pass there is wanted. */
static void follow_argument(passing *p, uint32_t func, unsigned argument)
{
    for (uint32_t i = p->first[func]; i < p->first[func + 1]; i++) {
        uint32_t caller = p->sites[i].func;
        uint8_t from = p->funcs[caller].local->calls.data[p->sites[i].call].from[argument];
        want_arguments(p, caller, from & PASSING_ALL);
        if (from & PASSING_SECOND) want_seconds(p, caller, passing_entry(p->sites[i].call, argument));
    }
}

/* Whether a function computes its second result for nothing else; `declared`: arguments that each function surely reads. Those of
 * functions behind it are not asked, which keeps the answer what it was when values were followed one by one. */
static bool means_second(const passing *p, uint32_t func, const uint8_t *declared)
{
    const passing_func *f = &p->funcs[func];
    if (!f->local || !f->local->means_second) return false;
    for (uint32_t i = 0; i < f->local->calls.len; i++)
        if (f->callees[i] <= func && declared[f->callees[i]] & f->local->calls.data[i].meant) return false;
    return true;
}

static void find_wanted(passing *p)
{
    uint32_t count = p->program->funcs.len;
    uint8_t *declared = base_alloc(count);
    for (uint32_t f = 0; f < count; f++) {
        declared[f] = p->funcs[f].sure;
        for (unsigned a = 0; a < PASSING_ARGS; a++)
            if (declared[f] >> a & 1) vec_push(&p->work, (uint64_t)f << 32 | a);
    }
    for (uint32_t f = 0; f < count; f++) {
        const passing_local *local = p->funcs[f].local;
        if (local && p->funcs[f].callees) {
            want_arguments(p, f, local->used);
            want_seconds(p, f, PASSING_USED);
        }
        if (p->outside[f] || (local && local->pair) || means_second(p, f, declared)) want_second(p, f);
    }
    while (p->work.len || p->seconds.len) {
        if (p->seconds.len) {
            follow_second(p, p->seconds.data[--p->seconds.len]);
            continue;
        }
        uint64_t item = p->work.data[--p->work.len];
        follow_argument(p, (uint32_t)(item >> 32), (unsigned)(item & UINT32_MAX));
    }
    free(declared);
}

/* --- calls ---------------------------------------------------------------------------------------------------------------- */

/* A value that is not made of others: what a register has that nobody put anything into. */
static bool is_left(const pta_program *program, const ir_insn *insn, const pta_func *f, uint32_t callee, bool wanted)
{
    if (insn->op == IR_UNDEF) return true;
    if (insn->op == IR_CLOBBER) return insn->var < IR_FLAGS;
    unsigned argument = passing_argument(insn);
    if (argument) return !(f->takes >> (argument - 1) & 1);
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
            if (program->funcs.data[callees[v]].takes >> a & 1) wanted[ir->args[insn->a + passing_call_args[a]]] = true;
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

/* All that the leavings of a function depend on besides its code. */
static uint64_t leavings_known(const passing *p, uint32_t func)
{
    const passing_func *f = &p->funcs[func];
    const pta_func *funcs = p->program->funcs.data;
    uint64_t hash = map_hash((uint64_t)funcs[func].takes << 8 | funcs[func].gives);
    for (uint32_t i = 0; i < f->local->calls.len; i++) {
        uint32_t callee = f->callees[i];
        uint64_t one = callee == PTA_NO_FUNC          ? 0
                       : callee == p->program->unknown ? 1
                                                       : 2 | (uint64_t)funcs[callee].gives << 8 | (uint64_t)funcs[callee].takes << 16;
        hash = map_hash(hash * 31 + one);
    }
    return hash;
}

/* Per call of a function: bits of the arguments that are leavings. */
static const uint8_t *leavings_of(const passing *p, uint32_t func)
{
    const passing_func *f = &p->funcs[func];
    uint64_t known = leavings_known(p, func);
    for (uint32_t i = 0; i < f->local->left.len; i++)
        if (f->local->left.data[i].known == known) return f->local->left.data[i].bits;
    const pta_func *of = &p->program->funcs.data[func];
    const ir_func *ir = of->lift->ir;
    uint8_t *bits = base_alloc_zero(f->local->calls.len + 1, 1);
    bool *left = passing_leavings(p->program, &p->about[of->module], func);
    for (uint32_t i = 0; i < f->local->calls.len; i++)
        for (unsigned a = 0; a < PASSING_ARGS; a++) {
            ir_value v = ir->args[ir->insns[f->local->calls.data[i].call].a + passing_call_args[a]];
            if (v && left[v]) bits[i] |= (uint8_t)(1u << a);
        }
    free(left);
    vec_push(&f->local->left, (passing_left){known, bits});
    return bits;
}

/* A function that one call passes leavings in a register to takes no argument there, unless it reads it. */
static void blame_calls(passing *p)
{
    VEC(uint32_t) queue = {0};
    for (uint32_t f = 0; f < p->program->funcs.len; f++) {
        if (!p->funcs[f].callees) continue;
        p->funcs[f].queued = true;
        vec_push(&queue, f);
    }
    while (queue.len) {
        uint32_t func = queue.data[--queue.len];
        passing_func *f = &p->funcs[func];
        f->queued = false;
        const uint8_t *left = leavings_of(p, func);
        for (uint32_t i = 0; i < f->local->calls.len; i++) {
            uint32_t callee = f->callees[i];
            passing_func *to = callee == PTA_NO_FUNC ? NULL : &p->funcs[callee];
            if (!to || !to->callees) continue;
            uint16_t *takes = &p->program->funcs.data[callee].takes, blamed = (uint16_t)(left[i] & *takes & ~to->sure);
            if (!blamed) continue;
            *takes &= (uint16_t)~blamed;
            if (!to->queued) vec_push(&queue, callee);
            to->queued = true;
        }
    }
    vec_free(&queue);
}

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

struct passing_memo {
    passing_local *locals; /* of the functions of all modules, which come first in a program */
    uint32_t *first;       /* per module */
    uint32_t module_count, count;
};

/* What is known of each function alone: from before, where its module was there, or read. */
static passing_memo *open_memo(const pta_program *program, passing_memo *before)
{
    passing_memo *memo = base_alloc_zero(1, sizeof *memo);
    memo->module_count = program->module_count;
    memo->first = base_alloc_zero(program->module_count + 1, sizeof *memo->first);
    for (uint32_t m = 0; m < program->module_count; m++)
        memo->first[m + 1] = memo->first[m] + program->modules[m]->func_count;
    memo->count = memo->first[program->module_count];
    memo->locals = base_alloc_zero(memo->count + 1, sizeof *memo->locals);
    for (uint32_t m = 0; m < program->module_count; m++) {
        uint32_t was = program->maps->modules[m].was;
        for (uint32_t f = 0; f < program->modules[m]->func_count; f++) {
            passing_local *local = &memo->locals[memo->first[m] + f], *old = NULL;
            if (before && was != PTA_NO_MODULE) old = &before->locals[before->first[was] + f];
            if (old && old->known) {
                *local = *old;
                *old = (passing_local){0};
            } else {
                passing_read(program->modules[m], program->modules[m]->funcs[f], local);
            }
        }
    }
    return memo;
}

void passing_forget(passing_memo *memo)
{
    if (!memo) return;
    for (uint32_t i = 0; i < memo->count; i++)
        passing_local_free(&memo->locals[i]);
    free(memo->locals);
    free(memo->first);
    free(memo);
}

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

/* Its declaration, and the functions that it names. */
static void read_code(passing *p, uint32_t func, passing_local *local, uint32_t *callees)
{
    passing_func *f = &p->funcs[func];
    pta_func *of = &p->program->funcs.data[func];
    f->local = local;
    f->sure = local->sure;
    of->takes = local->takes;
    of->gives = local->gives;
    if (!of->lift->ir) return;
    f->callees = callees;
    for (uint32_t i = 0; i < local->taken.len; i++)
        p->taken[p->program->maps->modules[of->module].first_func + local->taken.data[i]] = true;
    for (uint32_t i = 0; i < local->calls.len; i++) {
        callees[i] = generate_named(p->program, &p->about[of->module], of->module, local->calls.data[i].name);
        if (callees[i] != PTA_NO_FUNC) p->first[callees[i] + 2]++;
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
        for (uint32_t i = 0; p->funcs[f].callees && i < p->funcs[f].local->calls.len; i++)
            if (p->funcs[f].callees[i] != PTA_NO_FUNC)
                p->sites[p->first[p->funcs[f].callees[i] + 1]++] = (passing_site){f, i};
}

passing_memo *passing_find(pta_program *program, const generate_module *about, passing_memo *before)
{
    passing p = {.program = program, .about = about};
    uint32_t count = program->funcs.len;
    size_t call_count = 0;
    p.funcs = base_alloc_zero(count, sizeof *p.funcs);
    p.first = base_alloc_zero(count + 2, sizeof *p.first);
    p.taken = base_alloc_zero(count, sizeof *p.taken);
    p.outside = base_alloc_zero(count, sizeof *p.outside);
    for (uint32_t m = 0; m < program->module_count; m++)
        note_addresses(&p, m);
    passing_memo *memo = open_memo(program, before);
    for (uint32_t i = 0; i < memo->count; i++)
        call_count += memo->locals[i].calls.len;
    p.callees = base_alloc((call_count + memo->count) * sizeof *p.callees);
    p.wanted = base_alloc_zero(call_count + memo->count, sizeof *p.wanted);
    uint32_t *callees = p.callees;
    for (uint32_t f = 0; f < count; f++) {
        const pta_func *func = &program->funcs.data[f];
        if (!func->lift) {
            read_model(program, f, &p.funcs[f]);
            continue;
        }
        passing_local *local = &memo->locals[memo->first[func->module] + func->lift->id];
        read_code(&p, f, local, callees);
        callees += local->calls.len + 1; /* so that one without calls has a place of its own, too */
    }
    group_calls(&p);
    find_wanted(&p);
    for (uint32_t f = 0; f < count; f++) {
        program->funcs.data[f].takes |= p.funcs[f].sure;
        if (p.funcs[f].callees && !p.funcs[f].gives2) program->funcs.data[f].gives &= (uint8_t)~PASSING_RET2;
    }
    blame_calls(&p);
    free(p.funcs);
    free(p.first);
    free(p.sites);
    free(p.callees);
    free(p.wanted);
    vec_free(&p.results);
    free(p.taken);
    free(p.outside);
    vec_free(&p.work);
    vec_free(&p.seconds);
    return memo;
}
