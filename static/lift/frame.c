/* The stack pointer and the frame: where accesses lie in it, and which of its bytes only they can reach.
 *
 * First, forward data flow: each general register is either the stack pointer at entry plus a constant, or something
 * else. That gives every access through rsp, rbp or a copy of them its place in the frame. Then escapes: slot.c makes a
 * variable of a slot if nobody can reach it but the direct accesses seen here. An address of the frame that leaves our
 * sight (an argument, a stored value, an index added, a merge with another value) escapes; what it can reach depends
 * on what is known of the function:
 *
 *   unoptimised, with DWARF   the variable that the address lies in, or the array that it ends; any array when an index
 *                             is added: such code takes no other addresses
 *   optimised, with DWARF     the variables near the address, since optimisers bias addresses by an element or two, or the
 *                             unnamed object that it is in, up to the next variable
 *   anything else             the whole frame, except the places where the unwind rows say that callee-saved registers
 *                             are kept: no C object is there
 *
 * Functions that the flow analysis does not know in full, or that call setjmp and its kind, keep all slots in memory. */
#include "static/lift/slot.h"

#include <stdlib.h>

enum { REGS = 16 };

typedef struct {
    raw_func *raw;
    const ir_func *ir;
    image_unwind_row *rows; /* of the function's FDE, read when first needed */
    uint32_t row_count;
    bool rows_read;
    uint32_t realign;    /* the instruction that realigns the stack pointer, 0: none */
    bool lost;           /* paths with different stack pointers meet */
    int32_t pointer;     /* what rbp is after push %rbp; mov %rsp, %rbp at the start, else FRAME_OTHER */
    bool pointer_escapes;
    bool indexes;        /* an index is added to a place in the frame */
    VEC(int32_t) escapes;
    slot_spans killed;  /* what can be reached otherwise */
    slot_places direct; /* accesses at a known place */
} frame;

/* --- the stack pointer --------------------------------------------------------------------------------------------- */

/* Inside this file a value may also be a place in the frame plus an unknown index: gcc -O0 writes x[i].a as
 * i * 40 + rbp, then subtracts the place of x. It is followed through constants like an exact one; other files never
 * see it. */
enum { FRAME_INDEXED = 1 << 30 };

static bool is_indexed(int32_t v)
{
    return frame_is(v) && v > FRAME_INDEXED - FRAME_LIMIT;
}

static bool is_exact(int32_t v)
{
    return frame_is(v) && !is_indexed(v);
}

static int32_t without_index(int32_t v)
{
    return is_indexed(v) ? v - FRAME_INDEXED : v;
}

static int32_t with_index(int32_t v)
{
    return is_exact(v) ? v + FRAME_INDEXED : v;
}

static int32_t frame_add(int32_t v, int64_t by)
{
    if (!frame_is(v)) return v;
    int32_t origin = (is_indexed(v) ? FRAME_INDEXED : 0) + (without_index(v) > FRAME_LIMIT ? FRAME_REALIGNED : 0);
    if (by > FRAME_LIMIT || by < -FRAME_LIMIT) return FRAME_OTHER;
    int64_t offset = (int64_t)(v - origin) + by;
    return offset > FRAME_LIMIT / 2 || offset < -FRAME_LIMIT / 2 ? FRAME_OTHER : (int32_t)offset + origin;
}

static int32_t operand(const frame *f, const int32_t *regs, ir_value v)
{
    if (!v) return FRAME_OTHER;
    if (!(v & RAW_VAR)) return f->raw->frame[v];
    uint32_t var = v & ~RAW_VAR;
    return var < REGS ? regs[var] : FRAME_OTHER;
}

/* A place in the frame and something that is none, added or subtracted. */
static int32_t evaluate_index(const ir_insn *insn, int32_t a, int32_t b)
{
    if (frame_is(a) == frame_is(b)) return FRAME_OTHER;
    if (frame_is(b) && (insn->op == IR_SUB || insn->scale != 1)) return FRAME_OTHER;
    return with_index(frame_add(frame_is(a) ? a : b, insn->op == IR_LEA ? insn->imm : 0));
}

/* alloca: the stack pointer is below all slots. */
static int32_t known_rsp(const ir_insn *insn, int32_t v)
{
    return insn->var == IR_RSP && is_indexed(v) ? FRAME_OTHER : v;
}

static int32_t evaluate(frame *f, const int32_t *regs, uint32_t i)
{
    const ir_insn *insn = &f->raw->code.data[i];
    if (insn->width != 8 || raw_has_args(insn->op)) return FRAME_OTHER;
    int32_t a = operand(f, regs, insn->a);
    switch (insn->op) {
    case IR_PAD: /* pass_edge has seen to it */
    case IR_COPY: return known_rsp(insn, a);
    case IR_LEA:
        return known_rsp(insn, insn->b ? evaluate_index(insn, a, operand(f, regs, insn->b)) : frame_add(a, insn->imm));
    case IR_SUB: return known_rsp(insn, insn->b ? evaluate_index(insn, a, operand(f, regs, insn->b)) : FRAME_OTHER);
    case IR_AND: /* and $-N, %rsp */
        if (insn->b || !is_exact(a) || a > FRAME_LIMIT || insn->imm >= 0 || (insn->imm & -insn->imm) != -insn->imm)
            return FRAME_OTHER;
        if (insn->imm >= -8) return a & (int32_t)insn->imm; /* the stack pointer is a multiple of 8 */
        if (insn->var != IR_RSP || (f->realign && f->realign != i)) return FRAME_OTHER;
        f->realign = i;
        return FRAME_REALIGNED;
    default: return FRAME_OTHER;
    }
}

/* Evaluates a block from `regs`, leaving raw->frame of its instructions and `regs` at its end. */
static void run_block(frame *f, uint32_t block, int32_t *regs)
{
    raw_func *raw = f->raw;
    for (uint32_t i = raw->first[block]; i < raw->first[block + 1]; i++) {
        raw->frame[i] = evaluate(f, regs, i);
        if (raw->code.data[i].var < REGS) regs[raw->code.data[i].var] = raw->frame[i];
    }
}

static void read_rows(frame *f)
{
    if (f->rows_read) return;
    f->rows_read = true;
    const image_fde *fde = image_fde_at(f->raw->img, f->raw->func->entry);
    if (fde && fde->start == f->raw->func->entry) f->row_count = image_unwind_rows(f->raw->img, fde, &f->rows);
}

/* The registers with which an edge is taken: on the way to a landing pad the unwinder pops pushed arguments. */
static void pass_edge(frame *f, const lift_edge *edge, int32_t *regs)
{
    if (edge->kind != EDGE_PAD || !frame_is(regs[IR_RSP])) return;
    const lift_block *block = &f->raw->func->blocks[edge->from];
    uint64_t call = f->raw->func->insns[block->first_insn + block->insn_count - 1].addr;
    read_rows(f);
    uint32_t size = 0;
    for (uint32_t i = 0; i < f->row_count && f->rows[i].addr <= call; i++)
        size = f->rows[i].args_size;
    regs[IR_RSP] = frame_add(regs[IR_RSP], size);
}

/* `pad`: a landing pad. gcc does not always keep the argument size right where a frame pointer makes it needless: then
 * the stack pointer is simply not known there, but no slot is reached through it. */
static bool merge_into(frame *f, int32_t *into, const int32_t *from, bool pad)
{
    bool changed = false;
    for (unsigned r = 0; r < REGS; r++) {
        int32_t was = into[r];
        if (was == FRAME_UNREACHED)
            into[r] = from[r];
        else if (was != from[r] && was != FRAME_OTHER) {
            into[r] = FRAME_OTHER;
            bool framed = pad && frame_is(from[IR_RBP]);
            if (r == IR_RSP && from[r] != FRAME_OTHER && !framed) f->lost = true;
        }
        changed |= into[r] != was;
    }
    return changed;
}

static void solve(frame *f)
{
    raw_func *raw = f->raw;
    const lift_func *func = raw->func;
    raw->frame = base_alloc((size_t)raw->code.len * sizeof *raw->frame);
    raw->frame_in = base_alloc((size_t)func->block_count * REGS * sizeof *raw->frame_in);
    for (uint32_t i = 0; i < raw->code.len; i++)
        raw->frame[i] = FRAME_OTHER;
    for (size_t i = 0; i < (size_t)func->block_count * REGS; i++)
        raw->frame_in[i] = FRAME_UNREACHED;
    if (!func->block_count) return;
    for (unsigned r = 0; r < REGS; r++)
        raw->frame_in[r] = FRAME_OTHER;
    raw->frame_in[IR_RSP] = 0;

    bool *dirty = base_alloc_zero(func->block_count, sizeof *dirty);
    dirty[0] = true;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t n = 0; n < f->ir->rpo_count; n++) {
            uint32_t b = f->ir->rpo[n];
            if (!dirty[b]) continue;
            dirty[b] = false;
            int32_t regs[REGS];
            memcpy(regs, raw->frame_in + (size_t)b * REGS, sizeof regs);
            run_block(f, b, regs);
            const lift_block *block = &func->blocks[b];
            for (uint32_t e = 0; e < block->succ_count; e++) {
                const lift_edge *edge = &func->edges[block->first_succ + e];
                uint32_t to = edge->to;
                pass_edge(f, edge, regs); /* landing pads come last */
                if (merge_into(f, raw->frame_in + (size_t)to * REGS, regs, edge->kind == EDGE_PAD)) {
                    dirty[to] = true;
                    again |= f->ir->blocks[to].rpo <= n;
                }
            }
        }
    }
    free(dirty);
}

/* push %rbp; mov %rsp, %rbp: the cheap sign of unoptimised code, asked before DWARF is read. */
static int32_t frame_pointer(const frame *f)
{
    const raw_func *raw = f->raw;
    if (!raw->func->block_count) return FRAME_OTHER;
    for (uint32_t i = raw->first[0]; i < raw->first[1] && raw->code.data[i].insn < 4; i++)
        if (raw->code.data[i].var == IR_RBP && is_exact(raw->frame[i])) return raw->frame[i];
    return FRAME_OTHER;
}

/* --- what escapes --------------------------------------------------------------------------------------------------- */

static void escape(frame *f, int32_t v)
{
    if (!frame_is(v)) return;
    v = without_index(v);
    f->pointer_escapes |= v == f->pointer;
    for (uint32_t i = 0; i < f->escapes.len && i < 64; i++)
        if (f->escapes.data[i] == v) return;
    vec_push(&f->escapes, v);
}

/* An index leads to the object where it is added, unless that is the bare frame pointer, which points to none: then to
 * where the constants that are added later lead, which are looked at in either case. See also kill_variables. */
static void index_into(frame *f, int32_t v)
{
    f->indexes = true;
    if (without_index(v) != f->pointer) escape(f, v);
}

static void kill(frame *f, int32_t start, int32_t end)
{
    if (start < end) vec_push(&f->killed, (slot_span){start, end});
}

static bool is_live_after(const frame *f, const ir_insn *insn, uint32_t block)
{
    const lift_block *b = &f->raw->func->blocks[block];
    if (insn->insn + 1 >= b->first_insn + b->insn_count) return true;
    return f->ir->live[insn->insn + 1] >> insn->var & 1;
}

static void escape_args(frame *f, const int32_t *regs, const ir_insn *insn)
{
    for (uint32_t k = 0; k < insn->b; k++) {
        bool spared = ((insn->op == IR_CALL || insn->op == IR_TAIL) && k == IR_CALL_RSP) ||
                      (insn->op == IR_RET && k >= IR_RET_RSP);
        if (!spared) escape(f, operand(f, regs, f->raw->args.data[insn->a + k]));
    }
}

static void look_at_access(frame *f, const int32_t *regs, uint32_t i)
{
    ir_insn *insn = &f->raw->code.data[i];
    int32_t a = operand(f, regs, insn->a), b = operand(f, regs, insn->b);
    if (frame_is(b)) index_into(f, insn->scale == 1 ? frame_add(b, insn->imm) : b);
    escape(f, operand(f, regs, insn->c));
    if (!frame_is(a)) return;
    int32_t at = frame_add(a, insn->imm);
    if (insn->b || is_indexed(a) || !frame_is(at)) {
        index_into(f, at);
        return;
    }
    if (insn->scale != 1 || (insn->flags & (IR_REP | IR_WIDE))) {
        escape(f, at);
        return;
    }
    insn->flags |= IR_FRAME;
    if ((insn->flags & (IR_COND | IR_ATOMIC)) || insn->width > 64 || !insn->width)
        kill(f, at, at + (insn->width ? insn->width : 1));
    else
        vec_push(&f->direct, (slot_place){at, i});
}

static void look_at(frame *f, const int32_t *regs, uint32_t i, uint32_t block)
{
    const ir_insn *insn = &f->raw->code.data[i];
    if (insn->op == IR_ACCESS) {
        look_at_access(f, regs, i);
        return;
    }
    if (raw_has_args(insn->op)) {
        escape_args(f, regs, insn);
        return;
    }
    switch (insn->op) {
    case IR_CMP:
    case IR_TEST:
    case IR_FLAGRES:
    case IR_BRANCH:
    case IR_SWITCH:
    case IR_LOAD: return; /* a is the access */
    case IR_STORE: escape(f, operand(f, regs, insn->b)); return;
    case IR_RESULT:
    case IR_CLOBBER:
        if (insn->var < REGS && is_live_after(f, insn, block)) escape(f, operand(f, regs, insn->b));
        return;
    default:
        if (is_indexed(f->raw->frame[i])) index_into(f, f->raw->frame[i]);
        if (frame_is(f->raw->frame[i])) return; /* still in sight */
        if (insn->var == IR_RSP) return;        /* alloca: below all slots */
        escape(f, operand(f, regs, insn->a));
        escape(f, operand(f, regs, insn->b));
    }
}

/* Requires solve: walks all reachable blocks once more with their final states. */
static void find_escapes(frame *f)
{
    raw_func *raw = f->raw;
    const lift_func *func = raw->func;
    for (uint32_t n = 0; n < f->ir->rpo_count; n++) {
        uint32_t b = f->ir->rpo[n];
        int32_t regs[REGS];
        memcpy(regs, raw->frame_in + (size_t)b * REGS, sizeof regs);
        for (uint32_t i = raw->first[b]; i < raw->first[b + 1]; i++) {
            raw->frame[i] = evaluate(f, regs, i);
            look_at(f, regs, i, b);
            if (raw->code.data[i].var < REGS) regs[raw->code.data[i].var] = raw->frame[i];
        }
        const lift_block *block = &func->blocks[b];
        for (uint32_t e = 0; e < block->succ_count; e++) {
            uint32_t to = func->edges[block->first_succ + e].to;
            const int32_t *in = raw->frame_in + (size_t)to * REGS;
            uint32_t live = func->blocks[to].insn_count ? f->ir->live[func->blocks[to].first_insn] : UINT32_MAX;
            for (unsigned r = 0; r < REGS; r++)
                if (frame_is(regs[r]) && in[r] == FRAME_OTHER && (live >> r & 1)) escape(f, regs[r]);
        }
    }
}

/* --- what an escape can reach ---------------------------------------------------------------------------------------- */

static bool returns_twice(const frame *f)
{
    static const char *const names[] = {"setjmp", "_setjmp", "__sigsetjmp", "sigsetjmp", "vfork", "getcontext", "savectx"};
    const raw_func *raw = f->raw;
    for (uint32_t i = 0; i < raw->func->insn_count; i++) {
        const lift_insn *insn = &raw->func->insns[i];
        const char *name = NULL;
        if (insn->flow == FLOW_CALL) {
            const image_plt *plt = image_plt_at(raw->img, lift_target(insn));
            const image_symbol *symbol = plt ? NULL : image_symbol_at(raw->img, lift_target(insn));
            name = plt ? plt->name : symbol ? symbol->name : NULL;
        } else if (insn->flow == FLOW_CALL_SLOT) {
            const image_reloc *reloc = image_reloc_at(raw->img, lift_target(insn));
            name = reloc ? reloc->name : NULL;
        }
        for (unsigned k = 0; name && k < sizeof names / sizeof *names; k++)
            if (!strcmp(name, names[k])) return true;
    }
    return false;
}

static bool has_unknown_jump(const lift_func *func)
{
    for (uint32_t b = 0; b < func->block_count; b++)
        if (func->blocks[b].end_kind == END_UNKNOWN) return true;
    return false;
}

/* CFA-relative to entry-relative: the return address lies at CFA-8, where the stack pointer is at entry. */
static int64_t from_cfa(int64_t offset)
{
    return offset + 8;
}

/* A pointer past the end comes back into an array (`p = buffer + sizeof buffer; *--p = 0`). Of anything else nobody
 * takes the end without the start, so the address is that of what starts there. */
static bool has_array(const image_type *type, unsigned depth)
{
    if (!type || depth > 8) return true;
    if (type->kind != IMAGE_TYPE_STRUCT && type->kind != IMAGE_TYPE_UNION)
        return type->kind == IMAGE_TYPE_ARRAY || type->kind == IMAGE_TYPE_OTHER;
    for (uint32_t i = 0; i < type->member_count; i++)
        if (has_array(type->members[i].type, depth + 1)) return true;
    return false;
}

static bool frame_variable(const image_variable *var, int64_t *start, int64_t *end)
{
    if (var->place != IMAGE_PLACE_FRAME) return false;
    int64_t size = var->type && var->type->size ? (int64_t)var->type->size : 1;
    *start = from_cfa(var->offset);
    *end = *start + size;
    return size > 0 && size <= FRAME_LIMIT && *start >= -FRAME_LIMIT && *start <= FRAME_LIMIT;
}

enum { BIAS = 64 }; /* bytes that an optimiser may move the base of an index away from its array */

static bool leads_to(int64_t at, const image_variable *var, int64_t start, int64_t end, bool optimised)
{
    if (optimised) return at >= start - BIAS && at <= end + BIAS;
    return at >= start && (at < end || (at == end && has_array(var->type, 0)));
}

static void kill_variables(frame *f, const image_function *debug)
{
    /* clang -O0 takes constants out of an index: x[i + 5] may count from a place behind x, but x is an array. */
    for (uint32_t k = 0; f->indexes && !debug->is_optimised && k < debug->variable_count; k++) {
        int64_t start, end;
        if (frame_variable(&debug->variables[k], &start, &end) && has_array(debug->variables[k].type, 0))
            kill(f, (int32_t)start, (int32_t)end);
    }
    for (uint32_t i = 0; i < f->escapes.len; i++) {
        int64_t at = f->escapes.data[i], above = at >= 8 ? INT32_MAX / 4 : 0, start, end;
        bool inside = false;
        for (uint32_t k = 0; k < debug->variable_count; k++) {
            const image_variable *var = &debug->variables[k];
            if (!frame_variable(var, &start, &end)) continue;
            inside |= at >= start && at < end;
            if (start > at && start < above) above = start;
            if (leads_to(at, var, start, end, debug->is_optimised)) kill(f, (int32_t)start, (int32_t)end);
        }
        if (!inside) kill(f, (int32_t)at, (int32_t)above); /* an unnamed object, up to the next thing that is known */
    }
}

/* Everything but the places of saved registers and the return address. */
static void kill_all(frame *f)
{
    read_rows(f);
    static const uint8_t kept[] = {3, 6, 12, 13, 14, 15}; /* rbx, rbp, r12 to r15 in DWARF */
    int32_t saved[8] = {0}; /* the return address at 0 */
    unsigned n = 1;
    for (unsigned k = 0; k < sizeof kept; k++)
        for (uint32_t i = 0; i < f->row_count; i++) {
            int32_t at = f->rows[i].saved[kept[k]];
            if (at == IMAGE_UNWIND_UNSAVED || at == IMAGE_UNWIND_COMPLEX || at > 0 || at < -4096) continue;
            saved[n++] = (int32_t)from_cfa(at);
            break;
        }
    for (unsigned i = 1; i < n; i++) /* sorted by place */
        for (unsigned k = i; k > 0 && saved[k] < saved[k - 1]; k--) {
            int32_t swap = saved[k];
            saved[k] = saved[k - 1], saved[k - 1] = swap;
        }
    int32_t from = -FRAME_LIMIT;
    for (unsigned i = 0; i < n; i++) {
        kill(f, from, saved[i]);
        from = saved[i] + 8;
    }
    kill(f, from, INT32_MAX - 1);
}

static void kill_reachable(frame *f)
{
    if (!f->escapes.len && !f->indexes) return;
    const image_function *debug = NULL;
    if (f->raw->img->has_debug && !f->realign) debug = image_function_at(f->raw->img, f->raw->func->entry);
    if (debug && debug->start != f->raw->func->entry) debug = NULL;
    if (debug && (debug->is_optimised || (frame_is(f->pointer) && !f->pointer_escapes)))
        kill_variables(f, debug);
    else
        kill_all(f);
}

bool raw_frame(raw_func *raw, const ir_func *ir, bool promote_slots)
{
    frame f = {.raw = raw, .ir = ir};
    bool good = true;
    solve(&f);
    f.pointer = frame_pointer(&f);
    find_escapes(&f);
    raw->frame_known = !f.lost;
    raw->frame_escapes = f.escapes.len > 0 || f.indexes;
    if (promote_slots && !f.lost && !has_unknown_jump(raw->func) && !returns_twice(&f)) {
        kill_reachable(&f);
        good = raw_slots(raw, ir, f.direct, f.killed);
    }
    for (uint32_t i = 0; i < raw->code.len; i++)
        if (is_indexed(raw->frame[i])) raw->frame[i] = FRAME_OTHER;
    for (size_t i = 0; i < (size_t)raw->func->block_count * REGS; i++)
        if (is_indexed(raw->frame_in[i])) raw->frame_in[i] = FRAME_OTHER;
    free(f.rows);
    vec_free(&f.escapes);
    vec_free(&f.killed);
    vec_free(&f.direct);
    return good;
}
