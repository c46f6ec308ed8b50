/* Signals that are blocked, and taken where it suits: by sigwait and its like, by a mask for the time of a call, by
 * threads and programs that inherit a mask. Prints what happened, a line each; alone it always prints the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static atomic_int handled;
static const struct timespec limit = {5, 0};

static sigset_t only(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

static void on_signal(int number)
{
    handled += number;
}

static int is_blocked(int number)
{
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, number);
}

static void say(const char *what, long value)
{
    printf("%s: %ld\n", what, value);
}

/* --- taken out of the kernel -------------------------------------------------------------------------------------- */

static void pending(void)
{
    sigset_t set = only(SIGUSR1), found;
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    sigpending(&found);
    say("pending", sigismember(&found, SIGUSR1));
    say("taken", sigtimedwait(&set, NULL, &limit));
    handled = 0;
    sigprocmask(SIG_UNBLOCK, &set, NULL); /* one for the thread, one for the process */
    say("the other is handled", handled);
}

static void *receive(void *result)
{
    sigset_t set = only(SIGUSR1), real_time = only(SIGRTMIN + 1), descriptor = only(SIGHUP);
    siginfo_t info;
    struct signalfd_siginfo read_info = {0};
    int number = 0, fd = signalfd(-1, &descriptor, SFD_CLOEXEC);
    *(long *)result += !sigwait(&set, &number) && number == SIGUSR1;
    for (int i = 0; i < 3; i++) /* in order */
        *(long *)result += sigtimedwait(&real_time, &info, &limit) == SIGRTMIN + 1 && info.si_value.sival_int == i;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    *(long *)result += poll(&poll_fd, 1, 5000) == 1;
    *(long *)result += read(fd, &read_info, sizeof read_info) == sizeof read_info && read_info.ssi_signo == SIGHUP;
    close(fd);
    return NULL;
}

static void *wait_for_it(void *result)
{
    sigset_t set = only(SIGTERM);
    int number;
    *(long *)result = sigwait(&set, &number) ? -1 : number;
    return NULL;
}

static void waited(void)
{
    sigset_t all, old;
    long result = 0;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (int round = 0; round < 5; round++) {
        if (pthread_create(&thread, NULL, receive, &result)) exit(2);
        pthread_kill(thread, SIGUSR1);
        for (int i = 0; i < 3; i++)
            pthread_sigqueue(thread, SIGRTMIN + 1, (union sigval){.sival_int = i});
        kill(getpid(), SIGHUP);
        pthread_join(thread, NULL);
    }
    say("received", result);
    if (pthread_create(&thread, NULL, wait_for_it, &result)) exit(2);
    if (!fork()) kill(getppid(), SIGTERM), _exit(0);
    pthread_join(thread, NULL);
    say("from another process", result);
    wait(NULL);
    struct timespec no_time = {0, 0};
    while (sigtimedwait(&all, NULL, &no_time) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* --- a timer's own thread ----------------------------------------------------------------------------------------- */

static atomic_int ticks;

static void on_timer(union sigval value)
{
    volatile long spins = 0; /* longer than a period */
    while (spins < 200000)
        spins++;
    ticks += value.sival_int;
}

static void timers(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 1};
    struct itimerspec often = {{0, 300000}, {0, 300000}}, never = {0};
    event.sigev_notify_function = on_timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL)) exit(2);
    for (int i = 0; i < 1000 && ticks < 20; i++)
        usleep(10000);
    timer_settime(timer, 0, &never, NULL);
    say("ticks", ticks >= 20);
    timer_delete(timer);
}

static void *nothing(void *unused)
{
    return unused;
}

/* A timer of the process that rings while threads begin and end. */
static void rings(void)
{
    int lost = 0;
    for (int round = 0; round < 40; round++) {
        pthread_t thread;
        struct itimerval soon = {.it_value = {.tv_usec = 50 + round * 37 % 400}};
        int before = handled;
        setitimer(ITIMER_REAL, &soon, NULL);
        if (pthread_create(&thread, NULL, nothing, NULL)) exit(2);
        for (int i = 0; i < 5000 && handled == before; i++)
            usleep(1000);
        lost += handled == before;
        pthread_join(thread, NULL);
    }
    say("lost rings", lost);
}

/* --- a mask for the time of a call -------------------------------------------------------------------------------- */

static long while_blocked(int how)
{
    sigset_t set = only(SIGUSR1), none;
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC), result = 0;
    sigemptyset(&none);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    handled = 0;
    switch (how) {
    case 0:
        result = ppoll(NULL, 0, &limit, &none);
        break;
    case 1:
        result = pselect(0, NULL, NULL, NULL, &limit, &none);
        break;
    case 2:
        result = epoll_pwait(fd, &event, 1, 5000, &none);
        break;
    case 3:
        result = sigsuspend(&none);
        break;
    }
    long seen = result == -1 && errno == EINTR && handled == SIGUSR1 && is_blocked(SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    close(fd);
    return seen;
}

static void calls(void)
{
    const char *const names[] = {"ppoll", "pselect", "epoll_pwait", "sigsuspend"};
    for (int how = 0; how < 4; how++)
        say(names[how], while_blocked(how));
}

/* --- what handlers leave ------------------------------------------------------------------------------------------ */

static sigjmp_buf out;

static void on_change(int number, siginfo_t *info, void *context)
{
    (void)info;
    sigaddset(&((ucontext_t *)context)->uc_sigmask, number == SIGUSR2 ? SIGHUP : SIGUSR2);
}

static void on_jump(int number)
{
    sigset_t set = only(SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    siglongjmp(out, number);
}

static void handlers(void)
{
    struct sigaction change = {.sa_sigaction = on_change, .sa_flags = SA_SIGINFO}, old;
    sigset_t set = only(SIGHUP), found;
    sigaction(SIGUSR2, &change, &old);
    raise(SIGUSR2);
    say("blocked by a handler's frame", is_blocked(SIGHUP));
    raise(SIGHUP);
    sigpending(&found);
    say("pending then", sigismember(&found, SIGHUP));
    say("taken then", sigtimedwait(&set, NULL, &limit));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigaction(SIGUSR2, &old, NULL);
    signal(SIGUSR1, on_jump);
    if (!sigsetjmp(out, 1)) raise(SIGUSR1);
    say("blocked after a jump", is_blocked(SIGHUP) + is_blocked(SIGUSR1));
    signal(SIGUSR1, on_signal);
    handled = 0;
    raise(SIGHUP);
    say("handled after a jump", handled);
}

/* --- what is inherited -------------------------------------------------------------------------------------------- */

static void program(char *name)
{
    sigset_t set = only(SIGUSR1);
    int status;
    sigprocmask(SIG_BLOCK, &set, NULL);
    fflush(stdout);
    if (!fork()) {
        raise(SIGUSR1);
        execl(name, name, "inherited", (char *)NULL);
        _exit(2);
    }
    wait(&status);
    say("status", status);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void inherited(void)
{
    sigset_t set = only(SIGUSR1), found;
    sigpending(&found);
    say("inherited", is_blocked(SIGUSR1));
    say("pending in the program", sigismember(&found, SIGUSR1));
    say("taken in the program", sigtimedwait(&set, NULL, &limit));
}

int main(int count, char **arguments)
{
    if (count > 1) {
        inherited();
        return 0;
    }
    signal(SIGUSR1, on_signal);
    signal(SIGHUP, on_signal);
    signal(SIGALRM, on_signal);
    pending();
    waited();
    calls();
    handlers();
    program(arguments[0]);
    timers();
    rings();
    return 0;
}
