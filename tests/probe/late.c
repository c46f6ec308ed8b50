/* Signals that come while their thread is checked, and are delivered later: a handler that is for one signal only still
 * runs, and queued signals come in the order in which they were sent. A handler for the signal of traps runs on the
 * stack that it wants. Prints what every run must be. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { ONCE = 1500, BURSTS = 80, BURST = 40, CELLS = 4096 };

static int stop, ran, count, last, wrong, on_stack;
static long data[CELLS];
static char stack[1 << 16];

static void on_one(int number)
{
    (void)number;
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

static void on_queued(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    wrong += info->si_value.sival_int != last + 1 || info->si_errno;
    last = info->si_value.sival_int;
    __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
}

static void on_illegal(int number)
{
    char here;
    (void)number;
    on_stack = &here >= stack && &here < stack + sizeof stack;
}

static void *work(void *unused)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        for (int i = 0; i < 64; i++) {
            pthread_mutex_lock(&lock); /* a new epoch: no access is settled quickly */
            for (int k = 0; k < 8; k++)
                data[(i * 53 + k * 7) % CELLS]++;
            pthread_mutex_unlock(&lock);
        }
    return unused;
}

int main(void)
{
    pthread_t worker;
    int reset = 0, sent = 0;
    pthread_create(&worker, NULL, work, NULL);
    for (int i = 0; i < ONCE; i++) {
        struct sigaction action = {.sa_handler = on_one, .sa_flags = (int)SA_RESETHAND}, now;
        sigaction(SIGUSR1, &action, NULL);
        pthread_kill(worker, SIGUSR1);
        while (__atomic_load_n(&ran, __ATOMIC_SEQ_CST) <= i)
            sched_yield();
        sigaction(SIGUSR1, NULL, &now);
        reset += now.sa_handler == SIG_DFL;
    }
    printf("%d once, %d reset\n", ran, reset);
    struct sigaction queued = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN + 3, &queued, NULL);
    for (int i = 0; i < BURSTS; i++) {
        for (int k = 0; k < BURST; k++)
            pthread_sigqueue(worker, SIGRTMIN + 3, (union sigval){.sival_int = ++sent});
        while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < sent)
            sched_yield();
    }
    printf("%d queued, %d out of order\n", count, wrong);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(worker, NULL);
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction illegal = {.sa_handler = on_illegal, .sa_flags = SA_ONSTACK};
    sigaltstack(&other, NULL);
    sigaction(SIGILL, &illegal, NULL);
    raise(SIGILL);
    printf("on its stack %d\n", on_stack);
    return 0;
}
