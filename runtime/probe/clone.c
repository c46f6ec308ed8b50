/* Processes and threads that are made without libc's being told.
 *
 * A process with memory of its own is one like fork's, whose handlers (pthread_atfork) do not run: what the core's
 * other threads had in hand must be let go of all the same. A thread that is no pthread has no thread-local storage of
 * its own, and so no place for what is kept of a thread: from there on the whole program runs as if there were no
 * engine. A child that shares memory while its parent waits is one of vfork. */
#include "runtime/probe/probe.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int clone_function(int (*)(void *), void *, int, void *, ...);
typedef pid_t fork_function(void);

typedef struct {
    int (*function)(void *);
    void *argument;
} child_start;

/* In a copy of its parent's memory, where its parent's stack still is; it runs on another one, of which nothing is
 * known. */
static int begin_child(void *start)
{
    const child_start *s = start;
    probe_thread *self = &probe_self;
    self->stack_low = self->stack_high = 0;
    self->stack_is_fixed = true;
    process_forked();
    return s->function(s->argument);
}

int clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    clone_function *real = (clone_function *)symbol_next("clone");
    va_list list; /* what the flags do not ask for is not looked at */
    va_start(list, argument);
    void *parent = va_arg(list, void *), *storage = va_arg(list, void *), *child = va_arg(list, void *);
    va_end(list);
    child_start start = {function, argument};
    if (probe.ready && function && !(flags & CLONE_VM))
        return real(begin_child, stack, flags, &start, parent, storage, child);
    if (probe.ready && !(flags & CLONE_VFORK)) module_disable("it makes threads without libc");
    return real(function, stack, flags, argument, parent, storage, child);
}

pid_t _Fork(void);
EXPORT pid_t _Fork(void)
{
    const pid_t pid = ((fork_function *)symbol_next("_Fork"))();
    if (!pid) process_forked();
    return pid;
}

/* fork, clone or clone3 with memory and stack of its own, by libc's syscall(). */
long probe_fork_by_system(long number, long a, long b, long c, long d, long e);
long probe_fork_by_system(long number, long a, long b, long c, long d, long e)
{
    const long result = sys_call(number, a, b, c, d, e, 0);
    if (!result) process_forked();
    return result < 0 ? probe_syscall_error(result) : result;
}
