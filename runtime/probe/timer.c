/* Timers that run a function in a thread of its own (SIGEV_THREAD). libc makes these threads, out of our sight, so the
 * function that it calls is ours, and the thread gets its ft_thread there: a child of one that no thread has, which is
 * made when the first timer is. What is done before a timer is created or set is ordered before what its threads do.
 *
 * What is kept of a timer stays when it is deleted: libc may be about to call its function. */
#include "runtime/probe/probe.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SLAB = 1 << 14 };

typedef struct {
    void (*function)(union sigval value);
    union sigval value;
    uint64_t creation; /* where it is created: the call's return address */
} timer_record;

typedef int create_function(clockid_t, struct sigevent *, timer_t *);
typedef int set_function(timer_t, int, const struct itimerspec *, struct itimerspec *);

static struct {
    uint32_t lock;
    ft_thread *parent;
    timer_record *slab;
    size_t left;
} timers;

static timer_record *new_record(void)
{
    timer_record *r = NULL;
    sys_lock(&timers.lock);
    if (!timers.left) {
        timers.slab = sys_map(NULL, SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        timers.left = timers.slab ? SLAB / sizeof *r : 0;
    }
    if (timers.left) {
        r = timers.slab++;
        timers.left--;
    }
    sys_unlock(&timers.lock);
    return r;
}

static void created(void *record)
{
    const timer_record *r = record;
    sys_lock(&timers.lock);
    if (!timers.parent) timers.parent = ft_fork(probe_self.thread, report_call_site(probe.report, r->creation));
    sys_unlock(&timers.lock);
    ft_release(probe_self.thread, (uint64_t)r);
}

static void set(void *unused)
{
    (void)unused;
    ft_release(probe_self.thread, (uint64_t)&timers);
}

static void begun(void *record)
{
    ft_acquire(probe_self.thread, (uint64_t)record);
    ft_acquire(probe_self.thread, (uint64_t)&timers);
}

static void notified(union sigval value)
{
    timer_record *r = value.sival_ptr;
    if (probe.ready && !probe.disabled && probe_self.thread == &probe.nobody) {
        sys_lock(&timers.lock);
        ft_thread *thread = timers.parent ? ft_fork(timers.parent, report_call_site(probe.report, r->creation)) : NULL;
        sys_unlock(&timers.lock);
        if (thread) thread_adopt(thread);
        if (probe_sees()) probe_in_core(begun, r);
    }
    r->function(r->value);
}

EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    create_function *real = (create_function *)symbol_next("timer_create");
    timer_record *r = probe_sees() && event && event->sigev_notify == SIGEV_THREAD ? new_record() : NULL;
    if (!r) return real(clock, event, timer);
    *r = (timer_record){event->sigev_notify_function, event->sigev_value, (uint64_t)__builtin_return_address(0)};
    probe_in_core(created, r);
    struct sigevent own;
    memcpy(&own, event, sizeof own);
    own.sigev_notify_function = notified;
    own.sigev_value.sival_ptr = r;
    return real(clock, &own, timer);
}

EXPORT int timer_settime(timer_t timer, int flags, const struct itimerspec *to,
                                                         struct itimerspec *was)
{
    if (probe_sees()) probe_in_core(set, NULL);
    return ((set_function *)symbol_next("timer_settime"))(timer, flags, to, was);
}

void timer_forked(void)
{
    timers.lock = 0;
    timers.parent = NULL; /* timers stay with the parent */
}
