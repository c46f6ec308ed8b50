/* Signals of the program.
 *
 * Its handlers are called by ours. While the thread is in the core, an asynchronous signal waits: everything is blocked
 * until the core is left, then the signal is sent to the thread once more. (The core itself could put checks off, but a
 * handler may also take locks, or leave by longjmp.) A handler is shown the state that the program would have without
 * us: a signal that comes inside of a trampoline has the address of the original instruction and the registers as they
 * were before the check; what is undone is found by reading the trampoline's own pushes and pops. When the handler
 * returns without having changed anything, the thread goes on where it was; when it has changed the state, in the
 * program or, if the address was displaced, at its place in the trampoline. When it goes on elsewhere, and the address that it
 * was shown was in the middle of what was displaced, the bytes there are put back: it may come back there by itself.
 *
 * A fault that the program has no handler for ends it as it would without us: at the original address, after its bytes
 * were put back, so that a core dump shows the program's own state.
 *
 * Handlers that are installed by system calls of the program's own see trampolines, and run at any time: checks in them
 * are put off by the core, atomics in them are not seen while the core is busy. */
#include "runtime/probe/emit.h"
#include "runtime/probe/insn.h"
#include "runtime/probe/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { SIGNALS = 65, KERNEL_SET = 8, TRAP_SIGNAL = SIGILL, RESUME_FLAG = 0x10000 };
#define TRAP_BIT (1ul << (TRAP_SIGNAL - 1))

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);

static struct {
    uint32_t lock;
    struct sigaction program[SIGNALS]; /* what it has installed, where ours is */
    sigaction_function *real_sigaction;
    bool owns_trap;
} signals;

extern const char probe_enter_check_busy[], probe_enter_check_idle[], probe_enter_check_popf[], probe_enter_check_rest[],
    probe_enter_check_end[];
extern const char probe_enter_quick_left[], probe_enter_quick_full[], probe_enter_quick_end[];

/* --- the program's own state -------------------------------------------------------------------------------------- */

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
    undo_walk(&u, start, pc);
    undo_apply(&u, regs, s->kind == SPAN_MOVED ? moved_pc(s, start, pc) : s->pc);
    return true;
}

static void undo_registers(const probe_registers *r, greg_t *regs)
{
    for (unsigned i = 0; i < 16; i++)
        regs[greg_of[i]] = (greg_t)r->general[i];
    regs[REG_RSP] = (greg_t)r->stack;
    regs[REG_EFL] = (greg_t)r->flags;
    regs[REG_RIP] = (greg_t)probe.records[r->record].pc;
}

/* From `from`, where `u` is right, to where it was interrupted; then everything is as it was at the site, whose record lies on
 * the stack. */
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

/* The state of the program itself, instead of ours. False: it is its own already. */
static bool show_program(greg_t *regs)
{
    const uint64_t pc = (uint64_t)regs[REG_RIP];
    const probe_module *m = module_of_trampoline(pc);
    if (m) return undo_trampoline(m, regs);
    if (pc >= (uint64_t)probe_enter_check && pc < (uint64_t)probe_enter_check_end) return undo_entry(regs);
    if (pc >= (uint64_t)probe_enter_quick && pc < (uint64_t)probe_enter_quick_end) return undo_quick(regs);
    if (pc >= (uint64_t)probe_first && pc < (uint64_t)probe_first_end) return undo_first(regs);
    return undo_jump(regs);
}

/* Where to go on for an address of the program: its bytes may be gone. */
static uint64_t real_place(uint64_t pc)
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

/* The handler goes on elsewhere. Where the program was, it may have put on the stack, as a call does, or anywhere, to come back
 * to: Go preempts its threads like that. */
static void come_back_to(uint64_t was, uint64_t is)
{
    const probe_module *m = was != is ? module_of_code(was) : NULL;
    if (m) patch_give_back((probe_module *)m, was);
}

/* --- delivery ----------------------------------------------------------------------------------------------------- */

static bool is_fault(int number, const siginfo_t *info)
{
    const bool kind = number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
                      number == SIGTRAP || number == SIGSYS;
    return kind && info->si_code > 0;
}

typedef struct { /* what a handler of the program may overwrite by running trampolines itself */
    uint64_t atomic;
    probe_rep rep[PROBE_REPS];
    probe_registers *inside;
} between;

static void tell_signal(void *number)
{
    sync_signalled(&probe.engine, &probe_self.sync, *(const int *)number);
}

static void run_handler(int number, siginfo_t *info, ucontext_t *context)
{
    probe_thread *self = &probe_self;
    const struct sigaction *action = &signals.program[number];
    between kept = {.atomic = self->atomic, .inside = self->inside};
    memcpy(kept.rep, self->rep, sizeof kept.rep);
    greg_t *regs = context->uc_mcontext.gregs;
    gregset_t real, shown;
    memcpy(real, regs, sizeof real);
    bool changed = true;
    if (self->inside)
        undo_registers(self->inside, regs);
    else
        changed = show_program(regs);
    self->inside = NULL;
    memcpy(shown, regs, sizeof shown);
    if (self->thread != &probe.nobody && !self->busy) probe_in_core(tell_signal, &number);
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(number, info, context);
    else
        action->sa_handler(number);
    if (memcmp(shown, regs, sizeof shown)) { /* it goes on in the program, and who delivers it late is never come back to */
        come_back_to((uint64_t)shown[REG_RIP], (uint64_t)regs[REG_RIP]);
        regs[REG_RIP] = (greg_t)real_place((uint64_t)regs[REG_RIP]);
    } else {
        if (changed) memcpy(regs, real, sizeof real);
        self->inside = kept.inside;
    }
    self->atomic = kept.atomic;
    memcpy(self->rep, kept.rep, sizeof kept.rep);
}

/* A read of ours that was to find out whether there is something. */
static bool is_peek(const siginfo_t *info, greg_t *regs)
{
    const uint64_t pc = (uint64_t)regs[REG_RIP];
    if (info->si_code <= 0 || pc < (uint64_t)probe_peek || pc >= (uint64_t)probe_peek_fault) return false;
    regs[REG_RIP] = (greg_t)probe_peek_fault;
    return true;
}

static void send_again(const siginfo_t *info, int number)
{
    const long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0), tid = sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    sys_call(SYS_rt_tgsigqueueinfo, pid, tid, number, (long)info, 0, 0);
}

static void event_signal(int number, siginfo_t *info, void *context)
{
    probe_thread *self = &probe_self;
    ucontext_t *uc = context;
    if (is_fault(number, info) && is_peek(info, uc->uc_mcontext.gregs)) {
        struct sigaction again = signals.program[number];
        again.sa_sigaction = event_signal;
        again.sa_flags |= SA_SIGINFO;
        if (again.sa_flags & (int)SA_RESETHAND) signals.real_sigaction(number, &again, NULL); /* it was for that only */
        return;
    }
    const bool is_busy = self->busy || probe_is_in_first(self->thread);
    if (!is_busy || is_fault(number, info)) {
        run_handler(number, info, uc);
        return;
    }
    if (self->pending) { /* two came at once, and the other one was put off when this handler was about to run */
        const uint64_t all = ~(uint64_t)0;
        sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, KERNEL_SET, 0, 0);
        send_again(info, number);
    } else {
        self->signal = *info;
        self->signal.si_signo = number;
    }
    memcpy(&self->signal_mask, &uc->uc_sigmask, KERNEL_SET); /* of two, that of the outer one */
    memset(&uc->uc_sigmask, 0xff, KERNEL_SET);
    self->pending = 1;
}

void probe_deliver(probe_registers *registers)
{
    probe_thread *self = &probe_self;
    siginfo_t info = self->signal;
    const uint64_t mask = self->signal_mask;
    probe_registers *outer = self->inside;
    self->inside = registers;
    self->pending = 0;
    send_again(&info, info.si_signo);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SET, 0, 0);
    self->inside = outer;
}

/* --- faults without a handler ------------------------------------------------------------------------------------- */

static bool is_deadly(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL;
}

static void event_fault(int number, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (is_peek(info, regs)) return;
    if (module_of_trampoline((uint64_t)regs[REG_RIP]) && show_program(regs)) {
        const probe_module *m = module_of_code((uint64_t)regs[REG_RIP]);
        const patch_group *g = m ? module_group_at(m, (uint64_t)regs[REG_RIP]) : NULL;
        if (g) patch_restore(m, g);
    }
    struct sigaction plain = {.sa_handler = SIG_DFL}; /* it happens again, or is sent again */
    signals.real_sigaction(number, &plain, NULL);
    if (info->si_code <= 0)
        sys_call(SYS_tgkill, sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0), sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), number, 0,
                 0, 0);
}

static const struct sigaction fault_action = {.sa_sigaction = event_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

/* --- traps -------------------------------------------------------------------------------------------------------- */

static void event_trap(int number, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint64_t pc = (uint64_t)regs[REG_RIP];
    const probe_module *m = module_of_code(pc);
    const patch_group *g = m ? module_group_at(m, pc) : NULL;
    if (g && g->start == pc && g->way == WAY_TRAP && info->si_code > 0) {
        regs[REG_RIP] = (greg_t)g->tramp;
        regs[REG_EFL] &= ~(greg_t)RESUME_FLAG; /* a debugger's breakpoint there counts */
        return;
    }
    const struct sigaction *action = &signals.program[number];
    if (action->sa_handler == SIG_IGN && info->si_code <= 0) return;
    if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
        event_signal(number, info, context);
        return;
    }
    signals.owns_trap = false;
    event_fault(number, info, context);
}

static bool is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && (action->sa_sigaction == event_signal ||
                                             action->sa_sigaction == event_trap || action->sa_sigaction == event_fault);
}

bool signal_own_trap(void)
{
    if (signals.owns_trap) return true;
    struct sigaction ours = {.sa_sigaction = event_trap, .sa_flags = SA_SIGINFO | SA_NODEFER}, was;
    if (!signals.real_sigaction || signals.real_sigaction(TRAP_SIGNAL, NULL, &was)) return false;
    if (!is_ours(&was)) signals.program[TRAP_SIGNAL] = was;
    signals.owns_trap = !signals.real_sigaction(TRAP_SIGNAL, &ours, NULL);
    return signals.owns_trap;
}

/* --- what the program calls --------------------------------------------------------------------------------------- */

#define EXPORT __attribute__((visibility("default")))

static sigaction_function *real_sigaction(void)
{
    sigaction_function *f = __atomic_load_n(&signals.real_sigaction, __ATOMIC_RELAXED);
    if (f) return f;
    f = (sigaction_function *)symbol_next("sigaction");
    __atomic_store_n(&signals.real_sigaction, f, __ATOMIC_RELAXED);
    return f;
}

/* Requires that no signal comes and the lock. */
static int exchange(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction ours, was, before = signals.program[number];
    if (number == TRAP_SIGNAL && signals.owns_trap) {
        if (action) signals.program[number] = *action;
        if (old) *old = before;
        return 0;
    }
    const bool has_handler = action && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
    if (action) {
        ours = *action;
        if (is_deadly(number) && action->sa_handler == SIG_DFL) {
            ours = fault_action;
            signals.program[number] = *action;
        }
        if (has_handler) {
            ours.sa_sigaction = event_signal;
            ours.sa_flags |= SA_SIGINFO;
            signals.program[number] = *action; /* before it can be called */
        }
        ours.sa_mask.__val[0] &= ~TRAP_BIT;
    }
    int result = real_sigaction()(number, action ? &ours : NULL, &was);
    if (result) {
        signals.program[number] = before;
        return result;
    }
    if (is_ours(&was)) was = before;
    if (old) *old = was;
    return result;
}

EXPORT int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    if (number < 1 || number >= SIGNALS || !probe.ready) return real_sigaction()(number, action, old);
    uint64_t all = ~(uint64_t)0, mask;
    struct sigaction copy, was;
    if (action) {
        copy = *action;
        wrap_call_before("sigaction", (uint64_t)number, (uint64_t)__builtin_return_address(0));
    }
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, KERNEL_SET, 0, 0);
    sys_lock(&signals.lock);
    int result = exchange(number, action ? &copy : NULL, &was);
    sys_unlock(&signals.lock);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SET, 0, 0);
    if (!result && old) *old = was;
    return result;
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    if (number >= 1 && number < SIGNALS) action.sa_mask.__val[0] = 1ul << (number - 1);
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler);
EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler)
{
    return signal(number, handler);
}

typedef int mask_function(int, const sigset_t *, sigset_t *);

/* Traps must not be blocked: the kernel would end the process. The first one may come with a module that is loaded later, so
 * their signal never is, but the program is told what it has asked for. */
static int change_mask(const char *name, int how, const sigset_t *set, sigset_t *old)
{
    mask_function *f = (mask_function *)symbol_next(name);
    const bool has_trap = set && set->__val[0] & TRAP_BIT, was_blocked = probe_self.blocks_trap;
    sigset_t copy;
    if (set && how != SIG_UNBLOCK) {
        copy = *set;
        copy.__val[0] &= ~TRAP_BIT;
    }
    const int result = f(how, set && how != SIG_UNBLOCK ? &copy : set, old);
    if (result) return result;
    if (set && (has_trap || how == SIG_SETMASK)) probe_self.blocks_trap = has_trap && how != SIG_UNBLOCK;
    if (old && was_blocked) old->__val[0] |= TRAP_BIT;
    return 0;
}

EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    return change_mask("sigprocmask", how, set, old);
}

EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    return change_mask("pthread_sigmask", how, set, old);
}

void signal_start(void)
{
    struct sigaction now;
    for (int number = 1; number < SIGNALS; number++)
        if (is_deadly(number) && !real_sigaction()(number, NULL, &now) && now.sa_handler == SIG_DFL)
            real_sigaction()(number, &fault_action, NULL);
    uint64_t trap = TRAP_BIT, was = 0; /* what has started the program may have blocked it */
    sys_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&trap, (long)&was, KERNEL_SET, 0, 0);
    probe_self.blocks_trap = was & TRAP_BIT;
}

bool signal_take(int number)
{
    struct { /* as the kernel has it */
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } now;
    if (sys_call(SYS_rt_sigaction, number, 0, (long)&now, KERNEL_SET, 0, 0) || !(now.flags & SA_SIGINFO)) return false;
    signals.program[number] = (struct sigaction){.sa_sigaction = now.handler, .sa_flags = SA_SIGINFO};
    now.handler = event_signal;
    return !sys_call(SYS_rt_sigaction, number, (long)&now, 0, KERNEL_SET, 0, 0);
}

void signal_forked(void)
{
    signals.lock = 0; /* its holder is not in this process */
}
