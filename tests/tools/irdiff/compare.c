/* What the IR predicted against what the machine did, for one machine instruction. */
#include "irdiff.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

__attribute__((format(printf, 2, 3))) static bool differs(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, COMPARE_TEXT, format, args);
    va_end(args);
    return false;
}

/* --- accesses, as sets of bytes ----------------------------------------------------------------------------------- */

static int by_address(const void *x, const void *y)
{
    const mem_access *a = x, *b = y;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* The ranges of one kind, sorted and merged. */
static void ranges(const access_list *from, bool write, bool sure_only, access_list *to)
{
    vec_clear(to);
    for (uint32_t i = 0; i < from->len; i++) {
        const mem_access *a = &from->data[i];
        if ((write ? a->write : a->read) && !(sure_only && a->maybe)) vec_push(to, *a);
    }
    if (to->len) qsort(to->data, to->len, sizeof *to->data, by_address);
    uint32_t count = 0;
    for (uint32_t i = 0; i < to->len; i++) {
        mem_access *last = count ? &to->data[count - 1] : NULL;
        if (last && to->data[i].addr <= last->addr + last->size) {
            uint64_t end = to->data[i].addr + to->data[i].size;
            if (end > last->addr + last->size) last->size = end - last->addr;
        } else {
            to->data[count++] = to->data[i];
        }
    }
    to->len = count;
}

static const mem_access *not_within(const access_list *inner, const access_list *outer)
{
    for (uint32_t i = 0, k = 0; i < inner->len; i++) {
        const mem_access *a = &inner->data[i];
        while (k < outer->len && outer->data[k].addr + outer->data[k].size <= a->addr)
            k++;
        if (k == outer->len || outer->data[k].addr > a->addr ||
            outer->data[k].addr + outer->data[k].size < a->addr + a->size)
            return a;
    }
    return NULL;
}

bool compare_accesses(const interpreter *in, access_list *performed, access_list scratch[4], char *why)
{
    for (int write = 0; write < 2; write++) {
        access_list *done = &scratch[0], *may = &scratch[1], *must = &scratch[2];
        ranges(performed, write, false, done);
        ranges(&in->predicted, write, false, may);
        ranges(&in->predicted, write, true, must);
        const mem_access *a = in->wide ? NULL : not_within(done, may);
        if (a)
            return differs(why, "%s of [%" PRIx64 ", +%" PRIu64 ") is not predicted", write ? "write" : "read", a->addr,
                           a->size);
        a = not_within(must, done);
        if (a)
            return differs(why, "%s of [%" PRIx64 ", +%" PRIu64 ") is predicted, not done", write ? "write" : "read",
                           a->addr, a->size);
    }
    return true;
}

/* --- control ------------------------------------------------------------------------------------------------------ */

static bool counter_branches(const interpreter *in, const ir_insn *insn, ZydisMnemonic mnemonic, bool *taken)
{
    value counter = interpret_value(in, insn->a), flags = insn->c ? interpret_value(in, insn->c) : (value){0, 0};
    if (counter.known != ~0ull) return false;
    uint64_t n = insn->width == 4 ? (uint32_t)counter.bits : counter.bits;
    int zero = interpret_condition(flags, 4);
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
        *taken = n == 0;
        return true;
    case ZYDIS_MNEMONIC_LOOP:
        *taken = n != 0;
        return true;
    case ZYDIS_MNEMONIC_LOOPE:
        *taken = n != 0 && zero == 1;
        return zero >= 0;
    case ZYDIS_MNEMONIC_LOOPNE:
        *taken = n != 0 && zero == 0;
        return zero >= 0;
    default:
        return false;
    }
}

bool compare_predicted_target(const interpreter *in, const step *s, uint64_t *target)
{
    const ir_func *ir = in->ir;
    uint64_t next = s->insn->addr + s->insn->len + in->bias, direct = lift_target(s->insn) + in->bias;
    *target = s->insn->flow == FLOW_JUMP ? direct : next;
    for (uint32_t v = s->from; v < s->to; v++) {
        const ir_insn *insn = &ir->insns[v];
        value at;
        bool taken;
        switch ((ir_op)insn->op) {
        case IR_CALL:
        case IR_TAIL:
            if (insn->op == IR_TAIL && insn->scale) break; /* the branch tells */
            if (ir->args[insn->a + IR_CALL_TARGET])
                at = interpret_value(in, ir->args[insn->a + IR_CALL_TARGET]);
            else
                at = (value){(uint64_t)insn->imm + in->bias, ~0ull};
            *target = at.bits;
            return at.known == ~0ull;
        case IR_SWITCH:
            *target = interpret_value(in, insn->a).bits;
            return interpret_value(in, insn->a).known == ~0ull;
        case IR_BRANCH:
            if (insn->imm < 0) {
                if (!counter_branches(in, insn, s->zydis.mnemonic, &taken)) return false;
            } else {
                int holds = interpret_condition(interpret_value(in, insn->c), (unsigned)insn->imm);
                if (holds < 0) return false;
                taken = holds;
            }
            *target = taken ? direct : next;
            return true;
        case IR_RET:
        case IR_TRAP:
            return false;
        default:
            break;
        }
    }
    return true;
}

bool compare_target(const interpreter *in, const step *s, const machine *after, irdiff_stats *stats, char *why)
{
    uint64_t target;
    if (!compare_predicted_target(in, s, &target)) return true;
    if (s->kind.jumps) stats->targets++;
    if (target == after->rip) return true;
    return differs(why, "goes to %" PRIx64 ", predicted %" PRIx64, after->rip - in->bias, target - in->bias);
}

/* --- arguments and handovers -------------------------------------------------------------------------------------- */

static const uint16_t call_vars[IR_CALL_ARGS] = {[IR_CALL_TARGET] = IR_NOVAR,
                                                 [IR_CALL_RDI] = IR_RDI,
                                                 [IR_CALL_RSI] = IR_RSI,
                                                 [IR_CALL_RDX] = IR_RDX,
                                                 [IR_CALL_RCX] = IR_RCX,
                                                 [IR_CALL_R8] = IR_R8,
                                                 [IR_CALL_R9] = IR_R9,
                                                 [IR_CALL_RSP] = IR_RSP,
                                                 [IR_CALL_RAX] = IR_RAX,
                                                 [IR_CALL_R10] = IR_R10,
                                                 [IR_CALL_XMM0] = IR_VECTOR,
                                                 [IR_CALL_XMM0 + 1] = IR_VECTOR + 8,
                                                 [IR_CALL_XMM0 + 2] = IR_VECTOR + 16,
                                                 [IR_CALL_XMM0 + 3] = IR_VECTOR + 24,
                                                 [IR_CALL_XMM0 + 4] = IR_VECTOR + 32,
                                                 [IR_CALL_XMM0 + 5] = IR_VECTOR + 40,
                                                 [IR_CALL_XMM0 + 6] = IR_VECTOR + 48,
                                                 [IR_CALL_XMM0 + 7] = IR_VECTOR + 56};
static const uint16_t ret_vars[IR_RET_ARGS] = {
    [IR_RET_RAX] = IR_RAX, [IR_RET_RDX] = IR_RDX, [IR_RET_XMM0] = IR_VECTOR, [IR_RET_XMM1] = IR_VECTOR + 8,
    [IR_RET_RSP] = IR_RSP, [IR_RET_RBX] = IR_RBX, [IR_RET_RBP] = IR_RBP,     [IR_RET_R12] = IR_R12,
    [IR_RET_R13] = IR_R13, [IR_RET_R14] = IR_R14, [IR_RET_R15] = IR_R15};
static const uint16_t syscall_vars[] = {IR_RAX, IR_RDI, IR_RSI, IR_RDX, IR_R10, IR_R8, IR_R9};

bool compare_arguments(const interpreter *in, const step *s, const machine *before, irdiff_stats *stats, char *why)
{
    for (uint32_t v = s->from; v < s->to; v++) {
        const ir_insn *insn = &in->ir->insns[v];
        bool call = insn->op == IR_CALL || insn->op == IR_TAIL;
        const uint16_t *vars = call ? call_vars : insn->op == IR_RET ? ret_vars : syscall_vars;
        uint32_t count = call                 ? IR_CALL_ARGS
                         : insn->op == IR_RET ? IR_RET_ARGS
                                              : sizeof syscall_vars / sizeof *syscall_vars;
        if (!call && insn->op != IR_RET && insn->op != IR_SYSCALL) continue;
        for (uint32_t i = 0; i < insn->b; i++) {
            ir_value arg = in->ir->args[insn->a + i];
            if (!arg || (call && i == IR_CALL_TARGET)) continue;
            uint16_t var = i < count ? vars[i] : in->ir->insns[arg].var;
            value said = interpret_value(in, arg), is = interpret_var(in, var, before);
            uint64_t place;
            if (i >= count && (var < IR_SLOT || !interpret_slot(in, &in->ir->slots[var - IR_SLOT], &place) ||
                               place != before->gpr[IR_RSP] + 8 * (i - count + (insn->op == IR_TAIL))))
                return differs(why, "argument %u (v%u) is not the slot at the stack pointer", i, arg);
            if (said.known != ~0ull || is.known != ~0ull) continue;
            stats->arguments++;
            if (said.bits != is.bits)
                return differs(why, "argument %u (v%u) is %" PRIx64 ", the machine has %" PRIx64, i, arg, said.bits,
                               is.bits);
        }
    }
    return true;
}

typedef struct {
    const interpreter *in;
    const machine *m;
    handover_list *all;
    uint32_t to;
} handover_context;

static void hand_over(const handover_context *c, uint16_t var, ir_value v)
{
    const ir_func *ir = c->in->ir;
    const ir_block *here = &ir->blocks[c->in->block];
    handover h = {.block = c->to, .var = var, .v = v};
    if (var == IR_NOVAR || !v) return;
    if (v < here->first || v >= here->first + here->count) h.at_entry = interpret_var(c->in, ir->insns[v].var, c->m);
    vec_push(c->all, h);
}

static void hand_over_operand(void *context, ir_value v)
{
    const handover_context *c = context;
    const ir_block *to = &c->in->ir->blocks[c->to];
    uint8_t op = c->in->ir->insns[v].op;
    if (v >= to->first && v < to->first + to->count) return;
    if (op != IR_UNDEF) hand_over(c, c->in->ir->insns[v].var, v);
}

/* The argument of a phi for the edge is the content of the phi's variable at the end of this block. */
void compare_handover_begin(const interpreter *in, const machine *m, handover_list *all)
{
    const ir_func *ir = in->ir;
    const lift_func *func = ir->func;
    const lift_block *b = &func->blocks[in->block];
    vec_clear(all);
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
        handover_context c = {in, m, all, func->edges[e].to};
        const lift_block *to = &func->blocks[c.to];
        const ir_block *irb = &ir->blocks[c.to];
        uint32_t position = 0;
        if (c.to == in->block) continue; /* its values would be those of the iteration before */
        while (position < to->pred_count && func->preds[to->first_pred + position] != e)
            position++;
        for (uint32_t v = irb->first; v < irb->first + irb->count; v++) {
            const ir_insn *insn = &ir->insns[v];
            if (insn->op != IR_PHI) {
                interpret_operands(ir, insn, hand_over_operand, &c);
            } else if (position < insn->b) {
                ir_value arg = ir->args[insn->a + position];
                if (arg && ir->insns[arg].op != IR_UNDEF) hand_over(&c, insn->var, arg);
            }
        }
    }
}

bool compare_handover(const interpreter *in, const handover_list *all, uint32_t block, const machine *m,
                      irdiff_stats *stats, char *why)
{
    const ir_block *here = &in->ir->blocks[in->block];
    for (uint32_t i = 0; i < all->len; i++) {
        const handover *h = &all->data[i];
        if (h->block != block) continue;
        bool own = h->v >= here->first && h->v < here->first + here->count;
        value said = own ? interpret_value(in, h->v) : h->at_entry, is = interpret_var(in, h->var, m);
        if (said.known != ~0ull || is.known != ~0ull) continue;
        stats->passed++;
        if (said.bits == is.bits) continue;
        char name[16];
        return differs(why, "block %" PRIx64 " takes v%u for %s: %" PRIx64 ", the machine has %" PRIx64,
                       in->ir->func->blocks[block].start, h->v, ir_var_name(in->ir, h->var, name), said.bits, is.bits);
    }
    return true;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

bool compare_stores(const interpreter *in, const step *s, irdiff_stats *stats, char *why)
{
    for (uint32_t v = s->from; v < s->to; v++) {
        const ir_insn *insn = &in->ir->insns[v];
        if (insn->op != IR_STORE) continue;
        const ir_insn *access = &in->ir->insns[insn->a];
        value stored = interpret_value(in, insn->b);
        bool sure;
        uint64_t addr = interpret_address(in, access, &sure), now = 0;
        if (!sure || stored.known != ~0ull || insn->width > 8 || (access->flags & (IR_REP | IR_WIDE))) continue;
        if (!memory_read(in->mem, addr + (uint64_t)insn->imm, &now, insn->width)) continue;
        stats->stores++;
        uint64_t want = insn->width == 8 ? stored.bits : stored.bits & ((1ull << (8 * insn->width)) - 1);
        if (now != want)
            return differs(why, "v%u stores %" PRIx64 ", memory at %" PRIx64 " holds %" PRIx64, v, want,
                           addr + (uint64_t)insn->imm, now);
    }
    return true;
}

static bool is_exact(uint8_t op)
{
    return op != IR_OPAQUE && op != IR_UNDEF && op != IR_ENTRY && op != IR_PHI;
}

typedef struct {
    ir_value v;
    bool found;
} use_search;

static void find_use(void *context, ir_value v)
{
    use_search *s = context;
    s->found |= v == s->v;
}

static bool is_used(const ir_func *ir, uint32_t from, uint32_t to, ir_value v)
{
    use_search search = {.v = v};
    for (uint32_t i = from; i < to && !search.found; i++)
        interpret_operands(ir, &ir->insns[i], find_use, &search);
    return search.found;
}

/* A definition that is used by the rest of the instruction and by nothing else is a step on the way: the definition
 * that followed it was needed by nobody and is gone. */
static bool is_intermediate(const interpreter *in, const handover_list *handovers, const step *s, uint32_t v)
{
    const ir_block *b = &in->ir->blocks[in->block];
    if (!is_used(in->ir, v + 1, s->to, v) || is_used(in->ir, s->to, b->first + b->count, v)) return false;
    for (uint32_t i = 0; i < handovers->len; i++)
        if (handovers->data[i].v == v) return false;
    return true;
}

static bool is_final(const ir_func *ir, const step *s, uint32_t v)
{
    for (uint32_t later = v + 1; later < s->to; later++)
        if (ir->insns[later].var == ir->insns[v].var) return false;
    return true;
}

bool compare_definitions(const interpreter *in, const handover_list *handovers, const step *s, const machine *after,
                         irdiff_stats *stats, char *why)
{
    for (uint32_t v = s->from; v < s->to; v++) {
        const ir_insn *insn = &in->ir->insns[v];
        value said = interpret_value(in, v);
        int32_t offset;
        uint8_t base;
        if (insn->op == IR_ACCESS) continue;
        if (said.known == ~0ull && ir_frame_offset(in->ir, v, &offset, &base) && (!base || in->has_realigned)) {
            uint64_t place = (base ? in->realigned_sp : in->entry_sp) + (uint64_t)(int64_t)offset;
            stats->frames++;
            if (said.bits != place)
                return differs(why, "v%u is %" PRIx64 ", its place in the frame %" PRIx64, v, said.bits, place);
        }
        if (insn->var == IR_NOVAR || !is_final(in->ir, s, v)) continue;
        value is = interpret_var(in, insn->var, after);
        if (insn->op == IR_RESULT || insn->op == IR_CLOBBER) {
            stats->called++;
            continue;
        }
        if (!is_exact(insn->op) || !is.known) {
            stats->opaque++;
            continue;
        }
        if (!said.known) {
            stats->unknown++;
            continue;
        }
        stats->exact++;
        if (((said.bits ^ is.bits) & said.known) && !is_intermediate(in, handovers, s, v))
            return differs(why, "v%u is %" PRIx64 ", the machine has %" PRIx64 " (bits %" PRIx64 ")", v,
                           said.bits & said.known, is.bits & said.known, said.known);
    }
    return true;
}
