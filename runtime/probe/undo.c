/* The state of the program itself, where a thread was interrupted in code of ours: what trampolines and entry.S have
 * pushed and changed so far is found by reading their own instructions. */
#include "runtime/probe/emit.h"
#include "runtime/probe/insn.h"
#include "runtime/probe/probe.h"

#include <string.h>
#include <ucontext.h>

extern const char probe_enter_check_busy[], probe_enter_check_idle[], probe_enter_check_popf[],
    probe_enter_check_rest[], probe_enter_check_end[];
extern const char probe_enter_quick_left[], probe_enter_quick_full[], probe_enter_quick_end[];

typedef struct {
    int64_t sp;        /* of the stack pointer, relative to the program's */
    int64_t where[16]; /* saved registers, likewise; 0: not saved */
    int64_t flags_at;  /* saved flags, likewise; 0: not there */
    bool flags_in_rax, overflow_in_rax;
    bool flags_in_rbx; /* with overflow */
} undo;

static bool is_quick_call(const uint8_t *at, const insn *i)
{
    uint32_t slot;
    if (i->opcode != 0xff || i->modrm != 0x14 || i->disp_size != 4) return false;
    memcpy(&slot, at + i->disp_at, sizeof slot);
    return slot == (uint32_t)(uint64_t)&probe.low[LOW_QUICK];
}

/* Follows one instruction of ours. */
static void undo_step(undo *u, const uint8_t *at, const insn *i)
{
    const uint8_t reg = (uint8_t)((i->opcode & 7) | (i->rex & 1) << 3);
    int32_t disp = 0;
    if (i->map == 1 && i->opcode == 0x90) u->overflow_in_rax = true; /* seto */
    if (i->map) return;
    if ((i->opcode & 0xf8) == 0x50) {
        u->sp -= 8;
        u->where[reg] = u->sp;
    } else if ((i->opcode & 0xf8) == 0x58) {
        u->where[reg] = 0;
        u->sp += 8;
    }
    if (is_quick_call(at, i)) { /* it takes rax off the stack */
        u->sp += 8;
        u->where[RAX] = 0;
    }
    switch (i->opcode) {
    case 0x68:
        u->sp -= 8;
        break; /* push $number */
    case 0x04:
        u->overflow_in_rax = false;
        break; /* add $127, %al: it is where it belongs */
    case 0x8b: /* mov 8(%rsp), %rax */
        if (i->rex == 0x48 && i->modrm == 0x44 && i->disp_size == 1 && at[i->disp_at] == 8) u->where[RAX] = 0;
        break;
    case 0x8f: /* popq (%rsp) */
        u->sp += 8;
        break;
    case 0x9c:
        u->sp -= 8;
        u->flags_at = u->sp;
        break;
    case 0x9d:
        u->flags_at = 0;
        u->sp += 8;
        break;
    case 0x9f:
        u->flags_in_rax = true;
        break;
    case 0x9e:
        u->flags_in_rax = u->overflow_in_rax = u->flags_in_rbx = false, u->flags_at = 0;
        break;
    case 0x8d: /* lea disp(%rsp), %rsp */
        if ((i->modrm & 0x3f) != 0x24 || i->rex != 0x48) break;
        if (i->disp_size == 1) disp = (int8_t)at[i->disp_at];
        if (i->disp_size == 4) memcpy(&disp, at + i->disp_at, sizeof disp);
        u->sp += disp;
        break;
    default:
        break;
    }
}

/* Follows our code from `from` up to pc. */
static void undo_walk(undo *u, uint64_t from, uint64_t pc)
{
    insn i;
    while (from < pc && insn_decode((const uint8_t *)from, INSN_MAX, &i) && from + i.length <= pc) {
        undo_step(u, (const uint8_t *)from, &i);
        from += i.length;
    }
}

static const int greg_of[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void undo_apply(const undo *u, greg_t *regs, uint64_t pc)
{
    const greg_t status = 0x8d5, rax = regs[REG_RAX], overflow = 0x800;
    const uint64_t sp = (uint64_t)regs[REG_RSP] - (uint64_t)u->sp;
    if (u->flags_at) memcpy(&regs[REG_EFL], (const void *)(sp + (uint64_t)u->flags_at), sizeof(greg_t));
    if (u->flags_in_rbx) {
        const greg_t rbx = regs[REG_RBX];
        regs[REG_EFL] = (regs[REG_EFL] & ~status) | (rbx >> 8 & 0xff & status) | (rbx & 1 ? overflow : 0);
    }
    if (u->flags_in_rax) {
        greg_t flags = regs[REG_EFL] & ~(status & ~overflow);
        flags |= rax >> 8 & 0xff & status;
        if (u->overflow_in_rax) flags = (flags & ~overflow) | (rax & 1 ? overflow : 0);
        regs[REG_EFL] = flags;
    }
    for (unsigned r = 0; r < 16; r++)
        if (u->where[r] && r != RSP) memcpy(&regs[greg_of[r]], (const void *)(sp + (uint64_t)u->where[r]), 8);
    regs[REG_RSP] = (greg_t)sp;
    regs[REG_RIP] = (greg_t)pc;
}

static const probe_span *span_at(const probe_module *m, uint64_t pc)
{
    const uint32_t at = (uint32_t)(pc - (uint64_t)m->code.arena);
    uint32_t from = 0, to = m->code.span_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (m->code.spans[middle].at <= at)
            from = middle + 1;
        else
            to = middle;
    }
    return from ? &m->code.spans[from - 1] : NULL;
}

/* What the program was about to do: a loop that has been taken or not is behind itself. */
static uint64_t moved_pc(const probe_span *s, uint64_t start, uint64_t pc)
{
    const uint8_t first = *(const uint8_t *)start;
    insn i;
    if (first < 0xe0 || first > 0xe3 || pc == start) return s->pc;
    const probe_module *m = module_of_code(s->pc);
    const patch_group *g = m ? module_group_at(m, s->pc) : NULL;
    int32_t to_target;
    if (!g || !insn_decode((const uint8_t *)start, INSN_MAX, &i)) return s->pc;
    memcpy(&to_target, (const uint8_t *)start + 5, sizeof to_target);
    return pc >= start + 4 ? start + 9 + (uint64_t)(int64_t)to_target : s->pc + 2;
}

enum { SYSTEM_CALL = 2 }; /* bytes of the instruction */

static bool undo_trampoline(const probe_module *m, greg_t *regs)
{
    const uint64_t pc = (uint64_t)regs[REG_RIP];
    const probe_span *s = span_at(m, pc);
    if (!s) return false;
    const uint64_t start = (uint64_t)m->code.arena + s->at;
    undo u = {0};
    if (s->kind == SPAN_SLOW) {
        u.sp = s->saved_count ? -PROBE_RED_ZONE : 0;
        for (unsigned i = 0; i < s->saved_count; i++)
            u.where[s->saved[i]] = u.sp -= 8;
        u.flags_in_rax = u.overflow_in_rax = s->flags_saved;
    }
    if (s->kind == SPAN_SYSTEM) u.sp = -(PROBE_RED_ZONE + 8);
    undo_walk(&u, start, pc);
    undo_apply(&u, regs, s->kind == SPAN_MOVED ? moved_pc(s, start, pc) : s->kind == SPAN_SYSTEM && regs[REG_RCX] ? s->pc + SYSTEM_CALL : s->pc);
    return true;
}

void undo_registers(const probe_registers *r, greg_t *regs)
{
    for (unsigned i = 0; i < 16; i++)
        regs[greg_of[i]] = (greg_t)r->general[i];
    regs[REG_RSP] = (greg_t)r->stack;
    regs[REG_EFL] = (greg_t)r->flags;
    regs[REG_RIP] = (greg_t)probe.records[r->record].pc;
}

/* From `from`, where `u` is right, to where it was interrupted; then everything is as it was at the site, whose record
 * lies on the stack. */
static bool undo_to_site(undo *u, greg_t *regs, uint64_t from)
{
    undo_walk(u, from, (uint64_t)regs[REG_RIP]);
    const uint64_t sp = (uint64_t)regs[REG_RSP] - (uint64_t)u->sp;
    uint64_t record;
    memcpy(&record, (const void *)(sp - PROBE_RED_ZONE - 8), sizeof record);
    undo_apply(u, regs, probe.records[record % PROBE_RECORDS].pc);
    return true;
}

/* In probe_enter_check, while it is not busy. */
static bool undo_entry(greg_t *regs)
{
    uint64_t pc = (uint64_t)regs[REG_RIP];
    if (pc >= (uint64_t)probe_enter_check_rest) { /* after a signal was delivered late: as if it were back already */
        regs[REG_RSP] = regs[REG_RBX];
        pc = (uint64_t)probe_enter_check_idle;
        regs[REG_RIP] = (greg_t)pc;
    }
    const int64_t outer = -(PROBE_RED_ZONE + 16); /* record and return address */
    undo u = {.sp = outer};
    uint64_t from = (uint64_t)probe_enter_check;
    if (pc >= (uint64_t)probe_enter_check_idle) {
        from = (uint64_t)(pc >= (uint64_t)probe_enter_check_popf ? probe_enter_check_popf : probe_enter_check_idle);
        for (int r = 15; r >= 0; r--) {
            u.sp -= 8;
            u.where[r] = u.sp;
        }
        u.flags_at = u.sp -= 8;
    }
    return undo_to_site(&u, regs, from);
}

/* In probe_enter_quick, while it is not busy. */
static bool undo_quick(greg_t *regs)
{
    const uint64_t pc = (uint64_t)regs[REG_RIP];
    static const uint8_t pushed[] = {RCX, RDX, RSI, RDI, R8, R9, R10, R11, RBX};
    undo u = {.sp = -(PROBE_RED_ZONE + 24)}; /* record, rax and return address */
    u.where[RAX] = -(PROBE_RED_ZONE + 16);
    uint64_t from = (uint64_t)probe_enter_quick;
    if (pc >= (uint64_t)probe_enter_quick_left) {
        from = (uint64_t)(pc >= (uint64_t)probe_enter_quick_full ? probe_enter_quick_full : probe_enter_quick_left);
        for (unsigned i = 0; i < sizeof pushed; i++) {
            u.sp -= 8;
            u.where[pushed[i]] = u.sp;
        }
        u.flags_in_rbx = true;
    }
    return undo_to_site(&u, regs, from);
}

/* In first.S: nothing is on the stack but the way back to the trampoline. */
static bool undo_first(greg_t *regs)
{
    memcpy(&regs[REG_RIP], (const void *)regs[REG_RSP], sizeof regs[REG_RIP]);
    regs[REG_RSP] += 8;
    const probe_module *m = module_of_trampoline((uint64_t)regs[REG_RIP]);
    return m && undo_trampoline(m, regs);
}

/* A jump on its way to a trampoline, in a gap or in a page of puns, or from the loader to us. */
static bool undo_jump(greg_t *regs)
{
    const uint64_t pc = (uint64_t)regs[REG_RIP], hooked = module_hooked(pc);
    if (hooked) {
        regs[REG_RIP] = (greg_t)hooked;
        return true;
    }
    const probe_module *m = module_of_code(pc);
    const patch_group *g = m ? module_group_at(m, pc) : NULL;
    if (g && pc > g->start && g->way == WAY_JUMP) {
        int32_t offset;
        memcpy(&offset, (const uint8_t *)pc + 1, sizeof offset);
        const probe_span *s = span_at(m, pc + PROBE_JUMP + (uint64_t)(int64_t)offset);
        if (s) regs[REG_RIP] = (greg_t)s->pc;
        return s != NULL;
    }
    for (m = m ? NULL : probe.modules; m; m = m->next)
        for (uint32_t i = 0; i < m->page_count; i++) {
            if (!m->loaded || pc - m->pages[i] > PROBE_PAGE - PROBE_FAR_JUMP) continue;
            uint64_t target;
            memcpy(&target, (const uint8_t *)pc + 6, sizeof target);
            const probe_span *s = span_at(m, target);
            if (s) regs[REG_RIP] = (greg_t)s->pc;
            return s != NULL;
        }
    return false;
}

bool undo_show_program(greg_t *regs)
{
    const uint64_t pc = (uint64_t)regs[REG_RIP];
    const probe_module *m = module_of_trampoline(pc);
    if (m) return undo_trampoline(m, regs);
    if (pc >= (uint64_t)probe_enter_check && pc < (uint64_t)probe_enter_check_end) return undo_entry(regs);
    if (pc >= (uint64_t)probe_enter_quick && pc < (uint64_t)probe_enter_quick_end) return undo_quick(regs);
    if (pc >= (uint64_t)probe_first && pc < (uint64_t)probe_first_end) return undo_first(regs);
    return undo_jump(regs);
}

uint64_t undo_real_place(uint64_t pc)
{
    const probe_module *m = module_of_code(pc);
    const patch_group *g = m ? module_group_at(m, pc) : NULL;
    if (!g || !g->tramp || pc == g->start) return pc;
    for (uint32_t i = 0; i < m->code.span_count; i++) {
        const probe_span *s = &m->code.spans[i];
        if (s->pc == pc && (s->kind == SPAN_CHECK || s->kind == SPAN_MOVED)) return (uint64_t)m->code.arena + s->at;
    }
    return pc;
}

/* Where the program was, the handler may have put on the stack, as a call does, or anywhere, to come back to: Go
 * preempts its threads like that. */
void undo_come_back_to(uint64_t was, uint64_t is)
{
    const probe_module *m = was != is ? module_of_code(was) : NULL;
    if (m) patch_give_back((probe_module *)m, was);
}
