/* Signals: setting the handler, sending and waiting come before what the handler, or who has waited, does. */
/* clang-format off */
#include "rows.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define MUST(call) ((call) ? (void)0 : row_failed(#call))
#define WEAK __attribute__((weak))
WEAK int __sigaction(int, const struct sigaction *, struct sigaction *);
WEAK sighandler_t __sysv_signal(int, sighandler_t);
WEAK sighandler_t sysv_signal(int, sighandler_t);
WEAK sighandler_t bsd_signal(int, sighandler_t);
sighandler_t plain_signal(int, sighandler_t) __asm__("signal");
sighandler_t sigset(int, sighandler_t);

enum { SIGNAL = SIGUSR1 };
static row_place *current;
static volatile sig_atomic_t handled;
static pthread_t main_thread;

__attribute__((noipa)) static void handler_right(int signal)
{
    current->data++;
    handled = signal;
}
__attribute__((noipa)) static void handler_wrong(int signal)
{
    current->data++;
    handled = signal;
}

static void mask(int how)
{
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGNAL);
    pthread_sigmask(how, &s, NULL);
}

/* Main handles what is for it, or for the process: the other thread has the signal blocked. */
static void handle(void)
{
    mask(SIG_UNBLOCK);
    while (!handled) usleep(100);
    mask(SIG_BLOCK);
}

/* --- handlers ----------------------------------------------------------------------------------------------------------- */

#define START                                                                                                                   \
    current = w;                                                                                                                \
    main_thread = pthread_self();                                                                                               \
    mask(SIG_BLOCK)
#define SETS(name, right, wrong)                                                                                                \
    PAIR_MORE(name, handler, START, TOUCH; right, handled = 0; row_raise(SIGNAL); handle(), wrong; TOUCH,                       \
              handled = 0; row_raise(SIGNAL); handle(), .wrong_other = "handler_wrong")
#define ACTION(handler) struct sigaction action = {.sa_handler = handler}
SETS(signal, plain_signal(SIGNAL, handler_right), plain_signal(SIGNAL, handler_wrong))
SETS(bsd_signal, bsd_signal(SIGNAL, handler_right), bsd_signal(SIGNAL, handler_wrong))
SETS(sysv_signal, sysv_signal(SIGNAL, handler_right), sysv_signal(SIGNAL, handler_wrong))
SETS(__sysv_signal, __sysv_signal(SIGNAL, handler_right), __sysv_signal(SIGNAL, handler_wrong))
SETS(sigset, sigset(SIGNAL, handler_right), sigset(SIGNAL, handler_wrong))
SETS(sigaction, ACTION(handler_right); MUST(!sigaction(SIGNAL, &action, NULL)), ACTION(handler_wrong);
     MUST(!sigaction(SIGNAL, &action, NULL)))
SETS(__sigaction, ACTION(handler_right); MUST(!__sigaction(SIGNAL, &action, NULL)),
     ACTION(handler_wrong); MUST(!__sigaction(SIGNAL, &action, NULL)))

/* --- senders ------------------------------------------------------------------------------------------------------------ */

#define PREPARE                                                                                                                 \
    START;                                                                                                                      \
    ACTION(is_wrong ? handler_wrong : handler_right);                                                                           \
    MUST(!sigaction(SIGNAL, &action, NULL));                                                                                    \
    handled = 0
#define SENDS(name, ...)                                                                                                        \
    PAIR_MORE(name, handler, PREPARE, TOUCH; MUST(!(__VA_ARGS__)), handle(), MUST(!(__VA_ARGS__)); TOUCH, handle(),             \
              .wrong_other = "handler_wrong")
SENDS(kill, kill(getpid(), SIGNAL))
SENDS(killpg, setpgid(0, 0) || killpg(getpgrp(), SIGNAL))
SENDS(tgkill, tgkill(getpid(), getpid(), SIGNAL))
SENDS(pthread_kill, pthread_kill(main_thread, SIGNAL))
SENDS(pthread_sigqueue, pthread_sigqueue(main_thread, SIGNAL, (union sigval){0}))
SENDS(sigqueue, sigqueue(getpid(), SIGNAL, (union sigval){0}))
/* It is for the thread itself. */
PAIR_MORE(raise, handler, PREPARE, TOUCH; mask(SIG_UNBLOCK); MUST(!raise(SIGNAL)), , mask(SIG_UNBLOCK); MUST(!raise(SIGNAL)),
     TOUCH,
          .wrong = "handler_wrong")

/* --- who waits ---------------------------------------------------------------------------------------------------------- */

#define SET sigset_t s; sigemptyset(&s); sigaddset(&s, SIGNAL)
#define SEND MUST(!pthread_kill(main_thread, SIGNAL))
HAND(sigwait, START, SEND, SET; int got; MUST(!sigwait(&s, &got)))
HAND(sigwaitinfo, START, SEND, SET; MUST(sigwaitinfo(&s, NULL) == SIGNAL))
HAND(sigtimedwait, START, SEND, SET; const struct timespec t = {.tv_sec = 100}; MUST(sigtimedwait(&s, NULL, &t) == SIGNAL))

#define PENDING mask(SIG_BLOCK); row_raise(SIGNAL); SET
RANGE(sigwait, WRITES(4, 0), NOT, PENDING; MUST(!sigwait(&s, (int *)p)))
RANGE(sigwaitinfo, WRITES(128, 0), NOT, PENDING; MUST(sigwaitinfo(&s, (void *)p) == SIGNAL))
RANGE(sigtimedwait, WRITES(128, 0), NOT, PENDING; const struct timespec t = {.tv_sec = 100}; MUST(sigtimedwait(&s, (void *)p,
     &t) == SIGNAL))
