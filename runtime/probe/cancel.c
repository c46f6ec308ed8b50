/* Cancellation.
 *
 * libc cancels a thread by a signal, if it may be cancelled at any instruction or waits in a system call. A handler of the
 * program may run in the middle of such a call, so the signal may come anywhere, also inside of the core; and libc's handler
 * unwinds the stack from there. So that handler is called as the program's are: outside of the core, with the program's own
 * registers (signal.c). libc installs it when the first thread is cancelled, by a system call of its own. Therefore a thread
 * of ours is the first one. */
#include "runtime/probe/probe.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

enum { SIGNAL_OF_CANCEL = 32, KERNEL_SET = 8 };

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int cancel_function(pthread_t);
typedef int join_function(pthread_t, void **);
typedef int state_function(int, int *);
typedef int pause_function(void);

static struct {
    uint32_t lock;
    bool tried;
} cancelling;

static void *wait_for_end(void *pause)
{
    for (;;)
        ((pause_function *)pause)();
    return NULL;
}

/* False: libc's handler is not where it was expected. */
static bool take_handler(cancel_function *cancel)
{
    create_function *create = (create_function *)symbol_next("pthread_create");
    join_function *join = (join_function *)symbol_next("pthread_join");
    state_function *set_state = (state_function *)symbol_next("pthread_setcancelstate");
    void *pause = symbol_next("pause");
    pthread_t thread;
    uint64_t all = ~(uint64_t)0, mask;
    int state;
    if (!create || !join || !set_state || !pause) return false;
    /* the thread inherits the mask: it must not take signals of the program's */
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, KERNEL_SET, 0, 0);
    bool created = !create(&thread, NULL, wait_for_end, pause);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SET, 0, 0);
    if (!created) return false;
    set_state(PTHREAD_CANCEL_DISABLE, &state); /* joining is a place to be cancelled at */
    cancel(thread);
    join(thread, NULL);
    set_state(state, &state);
    return signal_take(SIGNAL_OF_CANCEL);
}

EXPORT int pthread_cancel(pthread_t thread)
{
    cancel_function *real = (cancel_function *)symbol_next("pthread_cancel");
    if (probe.ready && !__atomic_load_n(&cancelling.tried, __ATOMIC_ACQUIRE)) {
        sys_lock(&cancelling.lock);
        if (!cancelling.tried && !take_handler(real))
            report_say(probe.report, "cancellation cannot be followed: a thread that is cancelled in a check may crash");
        __atomic_store_n(&cancelling.tried, true, __ATOMIC_RELEASE);
        sys_unlock(&cancelling.lock);
    }
    return real(thread);
}
