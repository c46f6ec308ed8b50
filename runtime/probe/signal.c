/* Signals of the program.
 *
 * Its handlers are called by ours. While the thread is in the core, an asynchronous signal waits: everything is blocked
 * until the core is left, then the signal is sent to the thread once more. (The core itself could put checks off, but a
 * handler may also take locks, or leave by longjmp.) A handler is shown the state that the program would have without
 * us (undo.c): a signal that comes inside of a trampoline has the address of the original instruction and the registers
 * as they were before the check. When the handler returns without having changed anything, the thread goes on where it
 * was; when it has changed the state, in the program or, if the address was displaced, at its place in the trampoline.
 * When it goes on elsewhere, and the address that it was shown was in the middle of what was displaced, the bytes there
 * are put back: it may come back there by itself.
 *
 * A fault that the program has no handler for ends it as it would without us: at the original address, after its bytes
 * were put back, so that a core dump shows the program's own state.
 *
 * System calls that libc's `syscall` or an instruction of the program's own makes are seen too (PLAN_SYSTEM). Handlers
 * that are installed by code without a plan see trampolines, and run at any time: checks in them are put off by the
 * core, atomics in them are not seen while the core is busy. */
#include "runtime/probe/emit.h"
#include "runtime/probe/probe.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { KERNEL_SET = 8, RESUME_FLAG = 0x10000, FIRST_QUEUED = 34, LATE_MARK = 0x72616365 };

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);

static struct {
    uint32_t lock;
    struct sigaction program[PROBE_SIGNALS]; /* what it has installed, where ours is */
    sigaction_function *real_sigaction;
    bool owns_trap;
    uint32_t ignored; /* how often a number that is queued was ignored */
} signals;

/* --- delivery ----------------------------------------------------------------------------------------------------- */

static bool is_fault(int number, const siginfo_t *info)
{
    const bool kind = number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
                      number == SIGTRAP || number == SIGSYS;
    return kind && info->si_code > 0;
}

static bool is_deadly(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL;
}

static void event_signal(int number, siginfo_t *info, void *context);
static void event_fault(int number, siginfo_t *info, void *context);
static const struct sigaction fault_action = {.sa_sigaction = event_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

/* The handler that is about to run was to do so once. */
static void reset_action(int number)
{
    signals.program[number] = (struct sigaction){.sa_handler = SIG_DFL};
    const bool is_trap = number == PROBE_TRAP_SIGNAL && signals.owns_trap;
    if (is_deadly(number) && !is_trap) signals.real_sigaction(number, &fault_action, NULL);
}

typedef struct { /* what a handler of the program may overwrite by running trampolines itself */
    uint64_t atomic;
    probe_rep rep[PROBE_REPS];
    probe_registers *inside;
    bool blocks_trap;
} between;

static void tell_signal(void *number)
{
    sync_signalled(&probe.engine, &probe_self.sync, *(const int *)number);
}

static void run_handler(int number, siginfo_t *info, ucontext_t *context)
{
    probe_thread *self = &probe_self;
    const struct sigaction action = signals.program[number];
    between kept = {.atomic = self->atomic, .inside = self->inside, .blocks_trap = self->blocks_trap};
    memcpy(kept.rep, self->rep, sizeof kept.rep);
    greg_t *regs = context->uc_mcontext.gregs;
    gregset_t real, shown;
    memcpy(real, regs, sizeof real);
    bool changed = true;
    if (self->inside)
        undo_registers(self->inside, regs);
    else
        changed = undo_show_program(regs);
    self->inside = NULL;
    memcpy(shown, regs, sizeof shown);
    if (self->thread != &probe.nobody && !self->busy && !probe.disabled) probe_in_core(tell_signal, &number);
    if (action.sa_flags & (int)SA_RESETHAND) reset_action(number);
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
    context->uc_sigmask.__val[0] &= ~PROBE_TRAP_BIT;
    if (memcmp(shown, regs,
               sizeof shown)) { /* it goes on in the program, and who delivers it late is never come back to */
        undo_come_back_to((uint64_t)shown[REG_RIP], (uint64_t)regs[REG_RIP]);
        regs[REG_RIP] = (greg_t)undo_real_place((uint64_t)regs[REG_RIP]);
    } else {
        if (changed) memcpy(regs, real, sizeof real);
        self->inside = kept.inside;
    }
    self->atomic = kept.atomic;
    self->blocks_trap = kept.blocks_trap;
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

/* The kernel has forgotten the handler, which was for one signal only, but it has not run. */
static void install_again(int number)
{
    struct sigaction again = signals.program[number];
    if (!(again.sa_flags & (int)SA_RESETHAND) || (number == PROBE_TRAP_SIGNAL && signals.owns_trap)) return;
    again.sa_sigaction = event_signal;
    again.sa_flags |= SA_SIGINFO;
    again.sa_mask.__val[0] &= ~PROBE_TRAP_BIT;
    signals.real_sigaction(number, &again, NULL);
}

static void send(const siginfo_t *info, int number)
{
    const long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0), tid = sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    sys_call(SYS_rt_tgsigqueueinfo, pid, tid, number, (long)info, 0, 0);
}

/* What was sent again stands in the kernel's queue behind what came meanwhile, but queued signals come in order. So it
 * is kept here as well, and marked there: whatever comes takes its place in the line that is kept here, and what is
 * first in that line is delivered; what is marked has its place already. */
static void send_again(probe_thread *self, const siginfo_t *info, int number)
{
    siginfo_t copy = *info;
    const uint32_t ignored = __atomic_load_n(&signals.ignored, __ATOMIC_ACQUIRE);
    if (self->late_since != ignored) self->late_count = 0;
    self->late_since = ignored;
    if (number >= FIRST_QUEUED && self->late_count < PROBE_LATE) {
        memmove(self->late + 1, self->late, self->late_count++ * sizeof *self->late);
        self->late[0] = copy;
        self->late[0].si_signo = number;
        copy.si_errno = LATE_MARK;
    }
    send(&copy, number);
}

static void take_in_order(probe_thread *self, int number, siginfo_t *info)
{
    const bool is_marked = number >= FIRST_QUEUED && info->si_errno == LATE_MARK;
    uint32_t i = 0;
    if (self->late_since != __atomic_load_n(&signals.ignored, __ATOMIC_ACQUIRE)) self->late_count = 0;
    while (i < self->late_count && self->late[i].si_signo != number)
        i++;
    if (is_marked) info->si_errno = 0;
    if (i == self->late_count) return;
    const siginfo_t first = self->late[i];
    self->late_count--;
    memmove(self->late + i, self->late + i + 1, (self->late_count - i) * sizeof first);
    if (!is_marked) self->late[self->late_count++] = *info;
    *info = first;
}

static void event_signal(int number, siginfo_t *info, void *context)
{
    probe_thread *self = &probe_self;
    ucontext_t *uc = context;
    if (is_fault(number, info) && is_peek(info, uc->uc_mcontext.gregs)) {
        install_again(number);
        return;
    }
    if (self->late_count || info->si_errno == LATE_MARK) take_in_order(self, number, info);
    const bool is_busy = self->busy || probe_is_in_first(self->thread);
    if (!is_busy || is_fault(number, info)) {
        run_handler(number, info, uc);
        return;
    }
    install_again(number);
    if (self->pending) { /* two came at once, and the other one was put off when this handler was about to run */
        const uint64_t all = ~(uint64_t)0;
        sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, KERNEL_SET, 0, 0);
        send_again(self, info, number);
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
    send_again(self, &info, info.si_signo);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SET, 0, 0);
    self->inside = outer;
}

/* --- faults without a handler ------------------------------------------------------------------------------------- */

static void event_fault(int number, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (is_peek(info, regs)) return;
    if (module_of_trampoline((uint64_t)regs[REG_RIP]) && undo_show_program(regs)) {
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
        const uint64_t mask = action->sa_mask.__val[0] & ~PROBE_TRAP_BIT; /* what the kernel would do for it */
        sys_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, KERNEL_SET, 0, 0);
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

/* Handlers of the program for this signal run where they want to: so do ours. */
static bool install_trap(void)
{
    const int flags = signals.program[PROBE_TRAP_SIGNAL].sa_flags & (SA_ONSTACK | SA_RESTART);
    const struct sigaction ours = {.sa_sigaction = event_trap, .sa_flags = SA_SIGINFO | SA_NODEFER | flags};
    return !signals.real_sigaction(PROBE_TRAP_SIGNAL, &ours, NULL);
}

bool signal_own_trap(void)
{
    if (signals.owns_trap) return true;
    struct sigaction was;
    if (!signals.real_sigaction || signals.real_sigaction(PROBE_TRAP_SIGNAL, NULL, &was)) return false;
    if (!is_ours(&was)) signals.program[PROBE_TRAP_SIGNAL] = was;
    signals.owns_trap = install_trap();
    return signals.owns_trap;
}

/* --- what the program calls --------------------------------------------------------------------------------------- */

#define CALLER ((uint64_t)__builtin_return_address(0))

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
    if (number == PROBE_TRAP_SIGNAL && signals.owns_trap) {
        if (action) signals.program[number] = *action;
        if (action) install_trap();
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
        ours.sa_mask.__val[0] &= ~PROBE_TRAP_BIT;
    }
    int result = real_sigaction()(number, action ? &ours : NULL, &was);
    if (result) {
        signals.program[number] = before;
        return result;
    }
    if (is_ours(&was)) was = before;
    if (old) *old = was;
    if (action && action->sa_handler == SIG_IGN && number >= FIRST_QUEUED)
        __atomic_add_fetch(&signals.ignored, 1, __ATOMIC_ACQ_REL);
    return result;
}

/* In a child of vfork: what its parent has installed stays as it is, and what it installs itself lasts until it becomes
 * another program. */
static int install_for_child(int number, const struct sigaction *action, struct sigaction *old)
{
    const bool is_trap = number == PROBE_TRAP_SIGNAL && signals.owns_trap;
    struct sigaction was;
    if (real_sigaction()(number, is_trap ? NULL : action, &was)) return -1;
    if (old) *old = is_ours(&was) ? signals.program[number] : was;
    return 0;
}

static int install(int number, const struct sigaction *action, struct sigaction *old, uint64_t back)
{
    if (number < 1 || number >= PROBE_SIGNALS || !probe.ready || probe.disabled) return real_sigaction()(number, action, old);
    if (!process_is_own()) return install_for_child(number, action, old);
    uint64_t all = ~(uint64_t)0, mask;
    struct sigaction copy, was;
    if (action) {
        copy = *action;
        wrap_call_before("sigaction", (uint64_t)number, back);
    }
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, KERNEL_SET, 0, 0);
    sys_lock(&signals.lock);
    int result = exchange(number, action ? &copy : NULL, &was);
    sys_unlock(&signals.lock);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SET, 0, 0);
    if (!result && old) *old = was;
    return result;
}

EXPORT int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    return install(number, action, old, CALLER);
}

EXPORT int __sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old);
EXPORT int __sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    return install(number, action, old, CALLER);
}

static __sighandler_t install_plain(int number, __sighandler_t handler, int flags, uint64_t back)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    if (!(flags & SA_NODEFER) && number >= 1 && number < PROBE_SIGNALS) action.sa_mask.__val[0] = 1ul << (number - 1);
    return install(number, &action, &old, back) ? SIG_ERR : old.sa_handler;
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    return install_plain(number, handler, SA_RESTART, CALLER);
}

EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler);
EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler)
{
    return install_plain(number, handler, SA_RESTART, CALLER);
}

EXPORT __sighandler_t ssignal(int number, __sighandler_t handler)
{
    return install_plain(number, handler, SA_RESTART, CALLER);
}

/* What `signal` is to programs that are compiled for plain POSIX. */
EXPORT __sighandler_t __sysv_signal(int number, __sighandler_t handler)
{
    return install_plain(number, handler, (int)SA_RESETHAND | SA_NODEFER, CALLER);
}

EXPORT __sighandler_t sysv_signal(int number, __sighandler_t handler)
{
    return install_plain(number, handler, (int)SA_RESETHAND | SA_NODEFER, CALLER);
}

EXPORT int sigignore(int number)
{
    const struct sigaction action = {.sa_handler = SIG_IGN};
    return install(number, &action, NULL, CALLER);
}

EXPORT __sighandler_t sigset(int number, __sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler}, old;
    sigset_t set, was;
    if (handler == SIG_ERR || number < 1 || number >= PROBE_SIGNALS) {
        errno = EINVAL;
        return SIG_ERR;
    }
    const bool holds = handler == SIG_HOLD;
    if (install(number, holds ? NULL : &action, &old, CALLER)) return SIG_ERR;
    set = (sigset_t){.__val = {1ul << (number - 1)}};
    if (sigprocmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &set, &was)) return SIG_ERR;
    return was.__val[0] & set.__val[0] ? SIG_HOLD : old.sa_handler;
}

void signal_start(void)
{
    struct sigaction now;
    for (int number = 1; number < PROBE_SIGNALS; number++)
        if (is_deadly(number) && !real_sigaction()(number, NULL, &now) && now.sa_handler == SIG_DFL)
            real_sigaction()(number, &fault_action, NULL);
    mask_start();
}

typedef struct { /* as the kernel has it */
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
} kernel_action;

/* rt_sigaction. libc makes the real call: what it lets handlers return by does the same as the program's own. */
bool signal_system_call(probe_registers *r)
{
    const unsigned long restorer_flag = 0x04000000;
    const int number = (int)r->general[RDI];
    const uint64_t action_at = r->general[RSI], old_at = r->general[RDX];
    kernel_action given = {0}, old_given;
    if ((uint32_t)r->general[RAX] != SYS_rt_sigaction || r->general[R10] != KERNEL_SET || number < 1 ||
        number >= PROBE_SIGNALS)
        return false;
    if (action_at && !probe_peek(&given, action_at, sizeof given)) return false;
    if (sys_call(SYS_rt_sigaction, number, 0, (long)old_at, KERNEL_SET, 0, 0)) return false; /* can it be written? */
    struct sigaction action = {.sa_flags = (int)(given.flags & ~restorer_flag), .sa_mask = {{given.mask}}}, old;
    action.sa_sigaction = given.handler;
    if (install(number, action_at ? &action : NULL, &old, 0)) return false;
    if (action_at) wrap_call_inside("sigaction", (uint64_t)number);
    old_given = (kernel_action){old.sa_sigaction, (unsigned long)(unsigned)old.sa_flags | restorer_flag,
                                old.sa_restorer, old.sa_mask.__val[0]};
    if (old_at) memcpy((void *)old_at, &old_given, sizeof old_given);
    r->general[RAX] = 0;
    return true;
}

long probe_syscall(long number, long a, long b, long c, long d);

long probe_syscall_error(long result)
{
    errno = (int)-result;
    return -1;
}

static void make_system_call(void *registers)
{
    probe_registers *r = registers;
    if (!signal_system_call(r) && !mask_system_call(r)) r->general[RCX] = 1; /* not made */
}

/* rt_sigaction or rt_sigprocmask, by libc's syscall(). */
long probe_syscall(long number, long a, long b, long c, long d)
{
    probe_registers r = {0};
    r.general[RAX] = (uint64_t)number, r.general[RDI] = (uint64_t)a, r.general[RSI] = (uint64_t)b;
    r.general[RDX] = (uint64_t)c, r.general[R10] = (uint64_t)d;
    if (probe.ready && !probe.disabled && !probe_self.busy)
        probe_in_core(make_system_call, &r);
    else
        r.general[RCX] = 1;
    const long result = r.general[RCX] ? sys_call(number, a, b, c, d, 0, 0) : (long)r.general[RAX];
    return result < 0 ? probe_syscall_error(result) : result;
}

bool signal_take(int number)
{
    kernel_action now;
    if (sys_call(SYS_rt_sigaction, number, 0, (long)&now, KERNEL_SET, 0, 0) || !(now.flags & SA_SIGINFO)) return false;
    signals.program[number] = (struct sigaction){.sa_sigaction = now.handler, .sa_flags = SA_SIGINFO};
    now.handler = event_signal;
    return !sys_call(SYS_rt_sigaction, number, (long)&now, 0, KERNEL_SET, 0, 0);
}

void signal_forked(void)
{
    signals.lock = 0; /* its holder is not in this process */
    probe_self.late_count = 0;
}
