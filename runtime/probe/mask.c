/* Signal masks of the program.
 *
 * The signal of traps must not be blocked while code of the program runs: the kernel would end the process. The first
 * trap may come with a module that is loaded later, so the signal never is blocked, but the program is told what it has
 * asked for. Not covered: masks in contexts that it has filled in by hand. */
#include "runtime/probe/emit.h"
#include "runtime/probe/probe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

typedef int mask_function(int, const sigset_t *, sigset_t *);
typedef int suspend_function(const sigset_t *);
typedef int attribute_function(pthread_attr_t *, const sigset_t *);

static sigset_t without_trap(const sigset_t *set)
{
    sigset_t copy = *set;
    copy.__val[0] &= ~PROBE_TRAP_BIT;
    return copy;
}

static int change_mask(const char *name, int how, const sigset_t *set, sigset_t *old)
{
    mask_function *f = (mask_function *)symbol_next(name);
    const bool has_trap = set && set->__val[0] & PROBE_TRAP_BIT, was_blocked = probe_self.blocks_trap;
    sigset_t copy;
    if (set) copy = how == SIG_UNBLOCK ? *set : without_trap(set);
    const int result = f(how, set ? &copy : NULL, old);
    if (result) return result;
    if (set && (has_trap || how == SIG_SETMASK) && process_is_own())
        probe_self.blocks_trap = has_trap && how != SIG_UNBLOCK;
    if (old && was_blocked) old->__val[0] |= PROBE_TRAP_BIT;
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

static int change_old_mask(int how, int bits)
{
    const sigset_t set = {.__val = {(uint32_t)bits}};
    sigset_t old;
    return change_mask("sigprocmask", how, &set, &old) ? -1 : (int)old.__val[0];
}

EXPORT int sigblock(int bits)
{
    return change_old_mask(SIG_BLOCK, bits);
}

EXPORT int sigsetmask(int bits)
{
    return change_old_mask(SIG_SETMASK, bits);
}

static int change_one(int how, int number)
{
    const bool is_one = number >= 1 && number < PROBE_SIGNALS;
    const sigset_t set = {.__val = {is_one ? 1ul << (number - 1) : 0}};
    if (!is_one) errno = EINVAL;
    return is_one ? change_mask("sigprocmask", how, &set, NULL) : -1;
}

EXPORT int sighold(int number)
{
    return change_one(SIG_BLOCK, number);
}

EXPORT int sigrelse(int number)
{
    return change_one(SIG_UNBLOCK, number);
}

/* Handlers run while it waits. */
EXPORT int sigsuspend(const sigset_t *set)
{
    const sigset_t copy = without_trap(set);
    return ((suspend_function *)symbol_next("sigsuspend"))(&copy);
}

EXPORT int pthread_attr_setsigmask_np(pthread_attr_t *attributes, const sigset_t *set)
{
    attribute_function *f = (attribute_function *)symbol_next("pthread_attr_setsigmask_np");
    if (!set) return f(attributes, NULL);
    const sigset_t copy = without_trap(set);
    return f(attributes, &copy);
}

void mask_during_call(probe_call *c)
{
    static const struct {
        const char *name;
        unsigned argument;
    } with_mask[] = {{"__ppoll_chk", 3}, {"epoll_pwait", 4}, {"epoll_pwait2", 4}, {"ppoll", 3}, {"pselect", 5}};
    for (unsigned i = 0; i < sizeof with_mask / sizeof *with_mask; i++) {
        if (strcmp(with_mask[i].name, sync_table[c->number].name)) continue;
        uint64_t *at = &c->args[with_mask[i].argument];
        if (!*at || !probe_peek(&c->mask, *at, sizeof c->mask)) return; /* the kernel will say so */
        c->mask &= ~PROBE_TRAP_BIT;
        *at = (uint64_t)&c->mask;
        return;
    }
}

/* rt_sigprocmask. While a signal waits for the core to be left, everything is blocked, and the program's mask is kept
 * aside. */
bool mask_system_call(probe_registers *r)
{
    probe_thread *self = &probe_self;
    const uint64_t how = r->general[RDI], set_at = r->general[RSI], old_at = r->general[RDX];
    const uint64_t all = ~(uint64_t)0;
    uint64_t set = 0, now;
    if ((uint32_t)r->general[RAX] != SYS_rt_sigprocmask || r->general[R10] != sizeof set) return false;
    if (set_at && (!probe_peek(&set, set_at, sizeof set) || how > SIG_SETMASK)) return false;
    if (sys_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)old_at, sizeof set, 0, 0))
        return false; /* can it be written? */
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&now, sizeof all, 0, 0);
    if (self->pending) now = self->signal_mask;
    uint64_t told = now | (self->blocks_trap ? PROBE_TRAP_BIT : 0);
    if (old_at) memcpy((void *)old_at, &told, sizeof told);
    if (set_at) {
        told = how == SIG_BLOCK ? told | set : how == SIG_UNBLOCK ? told & ~set : set;
        if (process_is_own()) self->blocks_trap = told & PROBE_TRAP_BIT;
        now = told & ~PROBE_TRAP_BIT;
    }
    if (self->pending)
        self->signal_mask = now;
    else
        sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&now, 0, sizeof now, 0, 0);
    r->general[RAX] = 0;
    return true;
}

void mask_start(void)
{
    uint64_t trap = PROBE_TRAP_BIT, was = 0; /* what has started the program may have blocked it */
    sys_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&trap, (long)&was, sizeof trap, 0, 0);
    probe_self.blocks_trap = was & PROBE_TRAP_BIT;
}
