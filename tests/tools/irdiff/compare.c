/* What the IR predicted against what the machine did, for one machine instruction. */
#include "irdiff.h"

#include <inttypes.h>
#include <stdlib.h>

static bool differs(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#include <stdarg.h>

static bool differs(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, COMPARE_TEXT, format, args);
    va_end(args);
    return false;
}

/* --- accesses, as sets of bytes ------------------------------------------------------------------------------------- */

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
            return differs(why, "%s of [%" PRIx64 ", +%" PRIu64 ") is not predicted", write ? "write" : "read", a->addr, a->size);
        a = not_within(must, done);
        if (a)
            return differs(why, "%s of [%" PRIx64 ", +%" PRIu64 ") is predicted, not done", write ? "write" : "read", a->addr, a->size);
    }
    return true;
}

/* --- control ------------------------------------------------------------------------------------------------------------ */

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

/* --- values -------------------------------------------------------------------------------------------------------------- */

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

static bool is_final(const ir_func *ir, const step *s, uint32_t v)
{
    for (uint32_t later = v + 1; later < s->to; later++)
        if (ir->insns[later].var == ir->insns[v].var) return false;
    return true;
}

bool compare_definitions(const interpreter *in, const step *s, const machine *after, irdiff_stats *stats, char *why)
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
        if ((said.bits ^ is.bits) & said.known)
            return differs(why, "v%u is %" PRIx64 ", the machine has %" PRIx64 " (bits %" PRIx64 ")", v,
                           said.bits & said.known, is.bits & said.known, said.known);
    }
    return true;
}
