/* Asynchronous cancellation.
 *
 * libc cancels a thread by a signal whose handler it installs when the first thread is cancelled, by a system call of its
 * own. In a thread that may be cancelled at any instruction, that signal may come inside of the core, and its handler
 * unwinds the stack from there. So before the first thread becomes such a one, libc is made to install its handler, by
 * cancelling a thread of ours, and the handler is then called as the program's are: outside of the core, with the program's
 * own registers (signal.c). Other threads are cancelled in libc only, where nothing of ours runs. */
#include "runtime/probe/probe.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

enum { SIGNAL_OF_CANCEL = 32, KERNEL_SET = 8 };

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int cancel_function(pthread_t);
typedef int join_function(pthread_t, void **);
typedef int type_function(int, int *);
typedef int pause_function(void);

static void *wait_for_end(void *pause)
{
    for (;;)
        ((pause_function *)pause)();
    return NULL;
}

/* False: libc's handler is not where it was expected. */
static bool take_handler(void)
{
    create_function *create = (create_function *)symbol_next("pthread_create");
    cancel_function *cancel = (cancel_function *)symbol_next("pthread_cancel");
    join_function *join = (join_function *)symbol_next("pthread_join");
    void *pause = symbol_next("pause");
    pthread_t thread;
    uint64_t all = ~(uint64_t)0, mask;
    if (!create || !cancel || !join || !pause) return false;
    /* the thread inherits the mask: it must not take signals of the program's */
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, KERNEL_SET, 0, 0);
    bool created = !create(&thread, NULL, wait_for_end, pause);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SET, 0, 0);
    if (!created) return false;
    cancel(thread);
    join(thread, NULL);
    return signal_take(SIGNAL_OF_CANCEL);
}

__attribute__((visibility("default"))) int pthread_setcanceltype(int type, int *old)
{
    static uint32_t lock;
    static bool tried;
    type_function *real = (type_function *)symbol_next("pthread_setcanceltype");
    type_function *set_state = (type_function *)symbol_next("pthread_setcancelstate");
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS && probe.ready && set_state) {
        int state;
        set_state(PTHREAD_CANCEL_DISABLE, &state); /* joining is a place to be cancelled at */
        sys_lock(&lock);
        if (!tried && !take_handler())
            report_say(probe.report, "asynchronous cancellation cannot be followed: a thread that is cancelled in a check may crash");
        tried = true;
        sys_unlock(&lock);
        set_state(state, &state);
    }
    return real(type, old);
}
