/* Unique pointers that a call empties. The constructor of std::thread has the state of the new thread in a unique_ptr on its
 * stack, which std::thread::_M_start_thread takes the state out of (libstdc++). Compilers give all such temporaries of a
 * function one place, so that the words of the frame do not tell which thread has which state, nor that what is destroyed
 * behind the call is null. The flow does: the one value that has been stored there on all ways, or zero behind the call.
 *
 * When the call throws there is no thread; what it leaves is destroyed by who has made it, before anybody else has seen it.
 * That counts as zero, too. Words in which compilers keep the address of the place for later are looked through. */
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
    uint32_t *kept; /* per value: of a load, what had been kept in a word of the frame for it, or 0 */
    uint32_t *in;   /* per block: what the place holds at its begin */
    bool *mixed;    /* per value: the address, or something else */
    VEC(place) words; /* of which it is known */
    place place;
    bool private; /* nobody else knows its address */
} flow;

static bool is_same(place a, place b)
{
    return a.at == b.at && a.base == b.base;
}

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

static ir_value origin_of(const flow *f, ir_value v)
{
    for (v = v ? ir_origin(f->g->ir, v) : 0; v && f->kept[v];)
        v = ir_origin(f->g->ir, f->kept[v]);
    return v;
}

/* Whether `width` bytes at v + add are of the place, some of them; *exact: they begin where it does. */
static bool is_at(const flow *f, ir_value v, int64_t add, unsigned width, bool *exact)
{
    int32_t offset;
    uint8_t base;
    v = origin_of(f, v);
    if (!v || !ir_frame_offset(f->g->ir, v, &offset, &base) || base != f->place.base) return false;
    *exact = offset + add == f->place.at;
    return offset + add < f->place.at + 8 && f->place.at < offset + add + (int64_t)width;
}

static bool is_place(const flow *f, ir_value v)
{
    bool exact;
    return v && (f->mixed[v] || is_at(f, v, 0, 1, &exact));
}

static bool is_kept(const flow *f, const ir_insn *store);

/* --- one place ------------------------------------------------------------------------------------------------------------------ */

/* Phis of registers may be of the address and of something else: most are of no use to anybody. */
static void find_mixed(const flow *f)
{
    const ir_func *ir = f->g->ir;
    memset(f->mixed, 0, ir->insn_count * sizeof *f->mixed);
    for (bool changed = true; changed;) {
        changed = false;
        for (ir_value v = 1; v < ir->insn_count; v++) {
            const ir_insn *insn = &ir->insns[v];
            bool exact, found = false;
            if (f->mixed[v] || is_at(f, v, 0, 1, &exact)) continue;
            if (insn->op == IR_PHI)
                for (uint32_t i = 0; i < insn->b && !found; i++)
                    found = is_place(f, ir->args[insn->a + i]);
            else if (insn->op == IR_SELECT || insn->op == IR_COPY || insn->op == IR_INSERT || insn->op == IR_EXTRACT || insn->op == IR_LEA)
                found = (insn->op != IR_LEA || insn->b || f->mixed[insn->a]) && (is_place(f, insn->a) || is_place(f, insn->b));
            else if (insn->op == IR_CLOBBER || insn->op == IR_RESULT)
                found = is_place(f, insn->b);
            f->mixed[v] = found;
            changed |= found;
        }
    }
}

/* Whether a call is passed the address other than where it is known what becomes of it. Registers behind the arguments hold
 * what has been left there. */
static bool is_passed(const flow *f, ir_value v)
{
    static const unsigned arguments[] = {[OTHER] = 6, [STARTS] = 3, [CONSTRUCTS] = 2, [DESTROYS] = 1};
    const ir_insn *call = &f->g->ir->insns[v];
    call_kind kind = f->kinds[v];
    uint32_t callee = call->imm ? generate_callee(f->g->program, f->g->module, f->g->func_id, call) : PTA_NO_FUNC;
    bool ended = false; /* arguments fill their registers in order */
    for (unsigned a = IR_CALL_RDI; a < call->b; a++) {
        ir_value passed = f->g->ir->args[call->a + a];
        ended |= callee == PTA_NO_FUNC && a <= IR_CALL_R9 && passed && f->g->left[passed];
        if (ended) break;
        bool passes = a < IR_CALL_RDI + arguments[kind] || (kind == OTHER && a >= IR_CALL_ARGS);
        if (callee != PTA_NO_FUNC && a >= IR_CALL_ARGS) passes &= f->g->program->funcs.data[callee].stack != 0;
        if (callee != PTA_NO_FUNC && a <= IR_CALL_R9) passes &= f->g->program->funcs.data[callee].takes >> (a - IR_CALL_RDI) & 1;
        if (passes && is_place(f, passed) && (kind == OTHER || a != argument_of(kind) || f->mixed[passed])) return true;
    }
    return false;
}

static bool gets_out(const flow *f, ir_value v)
{
    const ir_insn *insn = &f->g->ir->insns[v];
    switch (insn->op) {
    case IR_STORE: return insn->b && is_place(f, insn->b) && (f->mixed[insn->b] || !is_kept(f, insn));
    case IR_CALL:
    case IR_TAIL: return is_passed(f, v);
    case IR_SYSCALL:
    case IR_OPAQUE:
        for (uint32_t a = 0; a < insn->b; a++)
            if (is_place(f, f->g->ir->args[insn->a + a])) return true;
        return false;
    default: return false;
    }
}

/* Whether the address goes nowhere but to the calls that are known, and all accesses of the place are of its word. */
static bool is_private(const flow *f)
{
    const ir_func *ir = f->g->ir;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        bool exact;
        if (gets_out(f, v)) return false;
        if (insn->op == IR_RET)
            for (unsigned a = IR_RET_RAX; a <= IR_RET_RDX; a++)
                if (is_place(f, ir->args[insn->a + a])) return false;
        if (insn->op != IR_ACCESS) continue;
        if ((insn->a && f->mixed[insn->a]) || (insn->b && is_place(f, insn->b))) return false;
        if (!is_at(f, insn->a, insn->imm, insn->width, &exact)) continue;
        if (insn->b || insn->width != 8 || !exact || insn->flags & (IR_REP | IR_WIDE | IR_PROMOTED)) return false;
    }
    return true;
}

/* What the place holds behind an instruction. `known`: per value, what it holds at the loads and calls that are asked about.
 *
 * A place that is not private is that of other temporaries, too, at other times. Between the store of a state and the call
 * that takes it, and from there to whatever else is done with the place, it is that of the pointer. */
static uint32_t step(const flow *f, ir_value v, uint32_t holds, uint32_t *known)
{
    const ir_func *ir = f->g->ir;
    const ir_insn *insn = &ir->insns[v];
    bool exact;
    if (!f->private && gets_out(f, v)) return UNKNOWN;
    if (insn->op == IR_LOAD || insn->op == IR_STORE) {
        const ir_insn *access = &ir->insns[insn->a];
        if (insn->op == IR_STORE && ((access->a && f->mixed[access->a]) || (access->b && is_place(f, access->b)))) return UNKNOWN;
        if (access->flags & IR_PROMOTED || !is_at(f, access->a, access->imm, access->width, &exact)) return holds;
        bool word = exact && access->width == 8 && insn->width == 8 && !access->b && !(access->flags & (IR_COND | IR_ATOMIC | IR_REP | IR_WIDE));
        if (insn->op == IR_LOAD) {
            if (known && word && (f->private || holds == EMPTIED)) known[v] = holds;
            return holds;
        }
        if (!word || !insn->b) return UNKNOWN;
        ir_value stored = origin_of(f, insn->b);
        bool zero = ir->insns[stored].op == IR_CONST && !ir->insns[stored].imm;
        return !zero ? stored : f->private ? EMPTIED : UNKNOWN;
    }
    if (insn->op != IR_CALL || f->kinds[v] == OTHER) return holds;
    if (!is_place(f, ir->args[insn->a + argument_of(f->kinds[v])])) return holds;
    if (f->kinds[v] == CONSTRUCTS) return origin_of(f, ir->args[insn->a + IR_CALL_RSI]);
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

static void find_at(const flow *f, uint32_t *known)
{
    const ir_func *ir = f->g->ir;
    const lift_func *func = f->g->func;
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
}

static bool loads_place(const flow *f, ir_value v)
{
    const ir_insn *insn = &f->g->ir->insns[v];
    bool exact;
    if (insn->op != IR_LOAD) return false;
    const ir_insn *access = &f->g->ir->insns[insn->a];
    return !(access->flags & IR_PROMOTED) && is_at(f, access->a, access->imm, access->width, &exact);
}

/* What a constructor stores is not needed where all who look are answered by the flow. Without optimisation it stores it by
 * way of functions that all unique pointers share. */
static void leave_out(const flow *f, uint32_t *known)
{
    const ir_func *ir = f->g->ir;
    for (unsigned pass = 0; pass < 2; pass++)
        for (ir_value v = 1; v < ir->insn_count; v++) {
            bool takes = f->kinds[v] != OTHER && is_place(f, ir->args[ir->insns[v].a + argument_of(f->kinds[v])]);
            if (!pass && !known[v] && (loads_place(f, v) || (takes && f->kinds[v] != CONSTRUCTS))) return;
            if (pass && takes && f->kinds[v] == CONSTRUCTS) known[v] = EMPTIED;
        }
}

/* --- words that keep addresses ------------------------------------------------------------------------------------------------ */

static bool stores_word(const generator *g, const ir_insn *store, place *to)
{
    const ir_insn *access = &g->ir->insns[store->a];
    int32_t offset;
    uint8_t base;
    if (store->op != IR_STORE || store->width != 8 || access->width != 8 || !access->a || access->b || access->flags & IR_PROMOTED ||
        !ir_frame_offset(g->ir, access->a, &offset, &base))
        return false;
    *to = (place){offset + (int32_t)access->imm, base};
    return true;
}

/* Whether an address is stored in a word of the frame of which each load is known: kept for later. */
static bool is_kept(const flow *f, const ir_insn *store)
{
    flow word = {.g = f->g, .kept = f->kept};
    bool found = false;
    if (!stores_word(f->g, store, &word.place)) return false;
    for (uint32_t i = 0; i < f->words.len && !found; i++)
        found = is_same(f->words.data[i], word.place);
    for (ir_value v = 1; v < f->g->ir->insn_count && found; v++)
        found = f->kept[v] || !loads_place(&word, v);
    return found;
}

static void find_kept(flow *f)
{
    const ir_func *ir = f->g->ir;
    uint8_t *kinds = f->kinds, *none = base_alloc_zero(ir->insn_count, 1);
    uint32_t *known = base_alloc_zero(ir->insn_count, sizeof *known);
    VEC(place) done = {0};
    VEC(place) words = {0};
    f->kinds = none;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        int32_t offset;
        uint8_t base;
        const ir_insn *store = &ir->insns[v];
        if (!stores_word(f->g, store, &f->place) || !store->b || !ir_frame_offset(ir, ir_origin(ir, store->b), &offset, &base)) continue;
        bool again = false;
        for (uint32_t i = 0; i < done.len && !again; i++)
            again = is_same(done.data[i], f->place);
        if (again) continue;
        vec_push(&done, f->place);
        find_mixed(f);
        f->private = is_private(f);
        if (!f->private) continue;
        find_at(f, known);
        vec_push(&words, f->place);
    }
    f->words.data = words.data;
    f->words.len = words.len;
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (known[v] != EMPTIED) f->kept[v] = known[v];
    f->kinds = kinds;
    vec_free(&done);
    free(known);
    free(none);
}

/* --- all of them ---------------------------------------------------------------------------------------------------------------- */

emptied *emptied_find(const generator *g)
{
    const ir_func *ir = g->ir;
    flow f = {.g = g};
    bool any = false;
    for (ir_value v = 1; v < ir->insn_count && !any; v++)
        any = ir->insns[v].op == IR_CALL && ir->insns[v].imm && kind_of(g, &ir->insns[v]) == STARTS;
    if (!any) return NULL;
    emptied *found = base_alloc_zero(ir->insn_count, sizeof *found);
    uint32_t *known = base_alloc_zero(ir->insn_count, sizeof *known);
    f.kinds = base_alloc_zero(ir->insn_count, 1);
    f.kept = base_alloc_zero(ir->insn_count, sizeof *f.kept);
    f.mixed = base_alloc_zero(ir->insn_count, sizeof *f.mixed);
    f.in = base_alloc_zero(g->func->block_count, sizeof *f.in);
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (ir->insns[v].op == IR_CALL && ir->insns[v].imm) f.kinds[v] = (uint8_t)kind_of(g, &ir->insns[v]);
    find_kept(&f);
    VEC(place) done = {0};
    for (ir_value v = 1; v < ir->insn_count; v++) {
        ir_value at = f.kinds[v] == STARTS ? origin_of(&f, ir->args[ir->insns[v].a + IR_CALL_RSI]) : 0;
        if (!at || !ir_frame_offset(ir, at, &f.place.at, &f.place.base)) continue;
        bool again = false;
        for (uint32_t i = 0; i < done.len && !again; i++)
            again = is_same(done.data[i], f.place);
        if (again) continue;
        vec_push(&done, f.place);
        find_mixed(&f);
        f.private = is_private(&f);
        find_at(&f, known);
        if (f.private) leave_out(&f, known);
        for (ir_value u = 1; u < ir->insn_count; u++) {
            if (!known[u] || found[u].holds) continue;
            bool made = f.kinds[u] == CONSTRUCTS;
            found[u] = (emptied){known[u], f.place.at, (uint8_t)(made ? IR_CALL_RSI : argument_of(f.kinds[u])), made};
        }
    }
    vec_free(&done);
    vec_free(&f.words);
    free(known);
    free(f.kinds);
    free(f.kept);
    free(f.mixed);
    free(f.in);
    return found;
}
