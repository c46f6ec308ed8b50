/* Unique pointers that a call empties. The constructor of std::thread has the state of the new thread in a unique_ptr on its
 * stack, which std::thread::_M_start_thread takes the state out of (libstdc++). Compilers give all such temporaries of a
 * function one place, so that the words of the frame do not tell which thread has which state, nor that what is destroyed
 * behind the call is null. The flow does: the one value that has been stored there on all ways, or zero behind the call.
 *
 * When the call throws there is no thread; what it leaves is destroyed by who has made it, before anybody else has seen it.
 * That counts as zero, too. Only where the address of the place is given to nothing but such calls, and to constructors and
 * destructors of that unique_ptr. */
#include "static/pointer/form.h"

#include <stdlib.h>
#include <string.h>

typedef enum { OTHER, STARTS, CONSTRUCTS, DESTROYS } call_kind;

#define UNKNOWN 0u
#define UNSEEN  UINT32_MAX

typedef struct {
    int32_t at;
    uint8_t base;
} place;

typedef struct {
    const generator *g;
    uint8_t *kinds; /* call_kind per value */
    place place;
    uint32_t *in; /* per block: what the place holds at its begin */
} flow;

static call_kind kind_of(const generator *g, const ir_insn *call)
{
    static const char starts[] = "_ZNSt6thread15_M_start_threadESt10unique_ptr",
                      pointer[] = "_ZNSt10unique_ptrINSt6thread6_StateESt14default_deleteIS1_EE";
    uint32_t callee = generate_callee(g->program, g->module, g->func_id, call);
    const char *name = callee == PTA_NO_FUNC ? NULL : g->program->funcs.data[callee].name;
    if (!name) return OTHER;
    if (!strncmp(name, starts, sizeof starts - 1)) return STARTS;
    if (strncmp(name, pointer, sizeof pointer - 1)) return OTHER;
    const char *member = name + sizeof pointer - 1;
    size_t length = strlen(member);
    if (member[0] == 'C' && length > 5 && !strcmp(member + length - 5, "EPS1_")) return CONSTRUCTS; /* of a pointer */
    return member[0] == 'D' ? DESTROYS : OTHER;
}

static unsigned argument_of(call_kind kind)
{
    return kind == STARTS ? IR_CALL_RSI : IR_CALL_RDI;
}

/* Whether `width` bytes at v + add are of the place, some of them; *exact: they begin where it does. */
static bool is_at(const flow *f, ir_value v, int64_t add, unsigned width, bool *exact)
{
    int32_t offset;
    uint8_t base;
    if (!v || !ir_frame_offset(f->g->ir, v, &offset, &base) || base != f->place.base) return false;
    *exact = offset + add == f->place.at;
    return offset + add < f->place.at + 8 && f->place.at < offset + add + (int64_t)width;
}

static bool is_place(const flow *f, ir_value v)
{
    bool exact;
    return is_at(f, v, 0, 1, &exact);
}

/* Whether a call is passed the address other than where it is known what becomes of it. Registers behind the arguments hold
 * what has been left there. */
static bool is_passed(const flow *f, ir_value v)
{
    static const unsigned arguments[] = {[OTHER] = 6, [STARTS] = 3, [CONSTRUCTS] = 2, [DESTROYS] = 1};
    const ir_insn *call = &f->g->ir->insns[v];
    call_kind kind = f->kinds[v];
    uint32_t callee = call->imm ? generate_callee(f->g->program, f->g->module, f->g->func_id, call) : PTA_NO_FUNC;
    for (unsigned a = IR_CALL_RDI; a < call->b; a++) {
        bool passes = a < IR_CALL_RDI + arguments[kind] || (kind == OTHER && a >= IR_CALL_ARGS);
        if (callee != PTA_NO_FUNC && a <= IR_CALL_R9) passes &= f->g->program->funcs.data[callee].takes >> (a - IR_CALL_RDI) & 1;
        if (passes && (kind == OTHER || a != argument_of(kind)) && is_place(f, f->g->ir->args[call->a + a])) return true;
    }
    return false;
}

/* Whether the address goes nowhere but to the calls that are known, and all accesses of the place are of its word. */
static bool is_private(const flow *f)
{
    const ir_func *ir = f->g->ir;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        bool exact;
        switch (insn->op) {
        case IR_STORE:
            if (insn->b && is_place(f, insn->b)) return false;
            break;
        case IR_ACCESS:
            if (!is_at(f, insn->a, insn->imm, insn->width, &exact)) break;
            if (insn->b || insn->width != 8 || !exact || insn->flags & (IR_REP | IR_WIDE | IR_PROMOTED)) return false;
            break;
        case IR_CALL:
        case IR_TAIL:
            if (is_passed(f, v)) return false;
            break;
        case IR_SYSCALL:
        case IR_OPAQUE:
            for (uint32_t a = 0; a < insn->b; a++)
                if (is_place(f, ir->args[insn->a + a])) return false;
            break;
        case IR_RET:
            for (unsigned a = IR_RET_RAX; a <= IR_RET_RDX; a++)
                if (is_place(f, ir->args[insn->a + a])) return false;
            break;
        default: break;
        }
    }
    return true;
}

/* What the place holds behind an instruction. `known`: per value, what it holds at the loads and calls that are asked about. */
static uint32_t step(const flow *f, ir_value v, uint32_t holds, uint32_t *known)
{
    const ir_func *ir = f->g->ir;
    const ir_insn *insn = &ir->insns[v];
    bool exact;
    if (insn->op == IR_LOAD || insn->op == IR_STORE) {
        const ir_insn *access = &ir->insns[insn->a];
        if (access->flags & IR_PROMOTED || !is_at(f, access->a, access->imm, access->width, &exact)) return holds;
        if (insn->op == IR_LOAD) {
            if (known && insn->width == 8) known[v] = holds;
            return holds;
        }
        if (insn->width != 8 || !insn->b || access->flags & (IR_COND | IR_ATOMIC)) return UNKNOWN;
        ir_value stored = ir_origin(ir, insn->b);
        return ir->insns[stored].op == IR_CONST && !ir->insns[stored].imm ? EMPTIED : stored;
    }
    if (insn->op != IR_CALL || f->kinds[v] == OTHER) return holds;
    ir_value at = ir->args[insn->a + argument_of(f->kinds[v])];
    if (!is_place(f, at)) return holds;
    if (f->kinds[v] == CONSTRUCTS) return ir_origin(ir, ir->args[insn->a + IR_CALL_RSI]);
    if (known) known[v] = holds;
    return EMPTIED;
}

static uint32_t through(const flow *f, uint32_t block, uint32_t *known)
{
    const ir_block *b = &f->g->ir->blocks[block];
    uint32_t holds = f->in[block];
    for (ir_value v = b->first; v < b->first + b->count; v++)
        holds = step(f, v, holds, known);
    return holds;
}

static void find_at(flow *f, uint32_t *known)
{
    const ir_func *ir = f->g->ir;
    const lift_func *func = f->g->func;
    f->in = base_alloc_zero(func->block_count, sizeof *f->in);
    for (uint32_t b = 0; b < func->block_count; b++)
        f->in[b] = b ? UNSEEN : UNKNOWN;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < ir->rpo_count; i++) {
            uint32_t b = ir->rpo[i];
            if (f->in[b] == UNSEEN) continue;
            uint32_t out = through(f, b, NULL);
            for (uint32_t e = func->blocks[b].first_succ; e < func->blocks[b].first_succ + func->blocks[b].succ_count; e++) {
                uint32_t *in = &f->in[func->edges[e].to], met = *in == UNSEEN || *in == out ? out : UNKNOWN;
                changed |= met != *in;
                *in = met;
            }
        }
    }
    for (uint32_t i = 0; i < ir->rpo_count; i++)
        if (f->in[ir->rpo[i]] != UNSEEN) through(f, ir->rpo[i], known);
    free(f->in);
}

/* What a constructor stores is not needed where all who look are answered by the flow. Without optimisation it stores it by
 * way of functions that all unique pointers share. */
static void leave_out(const flow *f, uint32_t *known)
{
    const ir_func *ir = f->g->ir;
    for (unsigned pass = 0; pass < 2; pass++)
        for (ir_value v = 1; v < ir->insn_count; v++) {
            const ir_insn *insn = &ir->insns[v];
            bool exact, takes = f->kinds[v] != OTHER && is_place(f, ir->args[insn->a + argument_of(f->kinds[v])]);
            bool loads = insn->op == IR_LOAD && !(ir->insns[insn->a].flags & IR_PROMOTED) &&
                         is_at(f, ir->insns[insn->a].a, ir->insns[insn->a].imm, ir->insns[insn->a].width, &exact);
            if (!pass && !known[v] && (loads || (takes && f->kinds[v] != CONSTRUCTS))) return;
            if (pass && takes && f->kinds[v] == CONSTRUCTS) known[v] = EMPTIED;
        }
}

uint32_t *emptied_find(const generator *g)
{
    const ir_func *ir = g->ir;
    flow f = {.g = g};
    bool any = false;
    for (ir_value v = 1; v < ir->insn_count && !any; v++)
        any = ir->insns[v].op == IR_CALL && ir->insns[v].imm && kind_of(g, &ir->insns[v]) == STARTS;
    if (!any) return NULL;
    uint32_t *known = base_alloc_zero(ir->insn_count, sizeof *known);
    f.kinds = base_alloc_zero(ir->insn_count, 1);
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (ir->insns[v].op == IR_CALL && ir->insns[v].imm) f.kinds[v] = (uint8_t)kind_of(g, &ir->insns[v]);
    VEC(place) done = {0};
    for (ir_value v = 1; v < ir->insn_count; v++) {
        ir_value at = f.kinds[v] == STARTS ? ir->args[ir->insns[v].a + IR_CALL_RSI] : 0;
        if (!at || !ir_frame_offset(ir, at, &f.place.at, &f.place.base)) continue;
        bool again = false;
        for (uint32_t i = 0; i < done.len && !again; i++)
            again = done.data[i].at == f.place.at && done.data[i].base == f.place.base;
        if (again) continue;
        vec_push(&done, f.place);
        if (!is_private(&f)) continue;
        find_at(&f, known);
        leave_out(&f, known);
    }
    vec_free(&done);
    free(f.kinds);
    return known;
}

unsigned emptied_argument(const generator *g, ir_value call)
{
    call_kind kind = kind_of(g, &g->ir->insns[call]);
    return kind == CONSTRUCTS ? IR_CALL_RSI : argument_of(kind);
}
