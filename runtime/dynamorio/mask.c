/* The program's signal masks, made real.
 *
 * DynamoRIO keeps every signal unblocked in the kernel, and only remembers what the program has blocked: what arrives
 * nevertheless waits in DynamoRIO until it is unblocked, or is sent on to a thread that takes it. Of that, whoever
 * takes blocked signals out of the kernel learns nothing: sigwait misses a signal that came before it, sigpending and
 * signalfd too, and a timer's signal for the one thread that waits for it (libc's own, for SIGEV_THREAD) is sent on to
 * a thread that it ends. A mask is not inherited by a new thread or a new program either, and what the kernel gives to
 * a thread while DynamoRIO takes it over is lost. So the mask that the program asks for is set in the kernel too.
 *
 * What holds: a thread blocks nothing in the kernel that DynamoRIO does not believe to be blocked, and none of
 * RESERVED. To that end signals are blocked before DynamoRIO hears of it and unblocked after; handlers begin without
 * further signals blocked in the kernel (DynamoRIO keeps those of sa_mask waiting), and sigreturn, for which DynamoRIO
 * keeps the kernel's mask as it is, first sets what it will return to.
 *
 * A new thread or program inherits a mask, but DynamoRIO unblocks all right before the first instruction. It is blocked
 * again at the first event ("settled"). What waits in the kernel already is put aside meanwhile, and who has created a thread,
 * or sends a signal, waits for new threads to settle, a little. */
#include "runtime/dynamorio/client.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

/* longer: the thread waits for something that we keep from happening */
enum { SETTLE_MS = 2000, CREATED_MS = 100, SETTLE_YIELDS = 200, ASIDE_MOST = 1000 };

#define BIT(number) (1ull << ((number)-1))
/* Faults, and what DynamoRIO suspends threads with: they must arrive. */
static const uint64_t RESERVED =
    BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | BIT(SIGSYS) | BIT(SIGSTKFLT);

static void set_real(int how, uint64_t set, uint64_t *before)
{
    set &= ~RESERVED;
    client_system_call(SYS_rt_sigprocmask, how, (long)&set, (long)before, sizeof set);
}

static bool read_set(uint64_t addr, uint64_t size, uint64_t *set)
{
    size_t done;
    return addr && size == sizeof *set && dr_safe_read((void *)addr, sizeof *set, set, &done);
}

/* --- the beginning of a thread ------------------------------------------------------------------------------------ */

static bool are_settled(void)
{
    return __atomic_load_n(&client.unsettled, __ATOMIC_RELAXED) <= 0;
}

static void wait_until_settled(int ms)
{
    for (int i = 0; i < SETTLE_YIELDS && !are_settled(); i++)
        dr_thread_yield();
    for (int i = 0; i < ms && !are_settled(); i++)
        dr_sleep(1);
}

void mask_thread_expected(void)
{
    __atomic_fetch_add(&client.unsettled, 1, __ATOMIC_RELAXED);
}

void mask_thread_unexpected(void)
{
    __atomic_fetch_sub(&client.unsettled, 1, __ATOMIC_RELAXED);
}

/* Signals that come because there is a new thread, be it from another process, find its mask. */
void mask_thread_created(void)
{
    wait_until_settled(CREATED_MS);
}

struct client_aside { /* a signal for the process: nobody has known the thread yet */
    struct client_aside *next;
    siginfo_t info;
};

static void put_aside(void *drcontext, client_thread *t)
{
    const uint64_t blocked = t->mask & ~RESERVED;
    const struct timespec no_time = {0};
    struct client_aside **end = &t->aside;
    siginfo_t info;
    for (int i = 0; i < ASIDE_MOST; i++) {
        if (client_system_call(SYS_rt_sigtimedwait, (long)&blocked, (long)&info, (long)&no_time, sizeof blocked) <= 0)
            return;
        *end = dr_thread_alloc(drcontext, sizeof **end);
        **end = (struct client_aside){.info = info};
        end = &(*end)->next;
    }
}

/* The kernel lets only the first thread say who else had sent a signal. */
static void put_back(void *drcontext, client_thread *t)
{
    const long process = dr_get_process_id();
    while (t->aside) {
        struct client_aside *first = t->aside;
        t->aside = first->next;
        if (client_system_call(SYS_rt_sigqueueinfo, process, first->info.si_signo, (long)&first->info, 0))
            client_system_call(SYS_kill, process, first->info.si_signo, 0, 0);
        dr_thread_free(drcontext, first, sizeof *first);
    }
}

void mask_begin(void *drcontext, client_thread *t)
{
    client_system_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&t->mask, sizeof t->mask);
    t->unsettled = true;
    put_aside(drcontext, t);
}

void mask_settle(void *drcontext, client_thread *t)
{
    if (!t->unsettled) return;
    t->unsettled = false;
    set_real(SIG_BLOCK, t->mask, NULL);
    put_back(drcontext, t);
    mask_thread_unexpected();
}

void mask_forked(client_thread *t)
{
    client.unsettled = t->unsettled;
}

/* --- system calls ------------------------------------------------------------------------------------------------- */

/* A mask for the time of one call (DynamoRIO takes it out of the call): where it is. */
static bool temporary_mask(void *drcontext, int number, uint64_t *set)
{
    struct {
        uint64_t set, size;
    } argument;
    size_t done;
    switch (number) {
    case SYS_ppoll:
        return read_set(dr_syscall_get_param(drcontext, 3), dr_syscall_get_param(drcontext, 4), set);
    case SYS_epoll_pwait:
        return read_set(dr_syscall_get_param(drcontext, 4), dr_syscall_get_param(drcontext, 5), set);
    default:
        return dr_syscall_get_param(drcontext, 5) &&
               dr_safe_read((void *)dr_syscall_get_param(drcontext, 5), sizeof argument, &argument, &done) &&
               read_set(argument.set, argument.size, set);
    }
}

/* Without the return address, which is popped when the call is made, a frame begins with its ucontext. */
static bool returned_mask(void *drcontext, uint64_t *set)
{
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_CONTROL};
    return dr_get_mcontext(drcontext, &mc) && read_set(mc.xsp + offsetof(ucontext_t, uc_sigmask), sizeof *set, set);
}

/* What is to be blocked is at once, what is to be unblocked after the call: then the mask is t->mask. */
static void change_mask(void *drcontext, client_thread *t)
{
    uint64_t set, before;
    const int how = (int)dr_syscall_get_param(drcontext, 0);
    if (!read_set(dr_syscall_get_param(drcontext, 1), dr_syscall_get_param(drcontext, 3), &set)) return;
    if (how == SIG_BLOCK) set_real(SIG_BLOCK, set, NULL);
    if (how != SIG_SETMASK && how != SIG_UNBLOCK) return;
    set_real(SIG_BLOCK, how == SIG_SETMASK ? set : 0, &before);
    t->mask = how == SIG_SETMASK ? set : before & ~set;
    t->masked = true;
}

static bool sends_signal(int number)
{
    switch (number) {
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_timer_settime:
        return true;
    default:
        return false;
    }
}

bool mask_wants(int number)
{
    switch (number) {
    case SYS_rt_sigprocmask:
    case SYS_rt_sigreturn:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_signalfd:
    case SYS_signalfd4:
        return true;
    default:
        return sends_signal(number);
    }
}

/* False: the call has been made. */
bool mask_before_call(void *drcontext, client_thread *t, int number)
{
    uint64_t set;
    mask_settle(drcontext, t);
    switch (number) {
    case SYS_rt_sigprocmask:
        change_mask(drcontext, t);
        break;
    case SYS_rt_sigreturn:
        if (returned_mask(drcontext, &set)) set_real(SIG_SETMASK, set, NULL);
        break;
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
        t->masked = temporary_mask(drcontext, number, &set);
        if (t->masked) set_real(SIG_SETMASK, set, &t->mask);
        break;
    case SYS_signalfd: /* DynamoRIO's own has to see the signals arrive */
    case SYS_signalfd4:
        dr_syscall_set_result(drcontext, (reg_t)client_system_call(number, (long)dr_syscall_get_param(drcontext, 0),
                                                                   (long)dr_syscall_get_param(drcontext, 1),
                                                                   (long)dr_syscall_get_param(drcontext, 2),
                                                                   (long)dr_syscall_get_param(drcontext, 3)));
        return false;
    default:
        if (sends_signal(number)) wait_until_settled(SETTLE_MS);
        break;
    }
    return true;
}

void mask_after_call(client_thread *t)
{
    if (t->masked) set_real(SIG_SETMASK, t->mask, NULL);
    t->masked = false;
}
