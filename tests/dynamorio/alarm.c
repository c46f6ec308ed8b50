/* Timers that ring once, while this thread and another do nothing but make checks that take long: each epoch is new. The
 * loop ends when the handler says so, which is the only thing that can end it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static long counter;
static volatile sig_atomic_t rung;
static int stop;

static void on_alarm(int number)
{
    rung += number == SIGALRM;
}

static void *company(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
    return unused;
}

int main(void)
{
    pthread_t thread;
    int rounds = 0;
    signal(SIGALRM, on_alarm);
    if (pthread_create(&thread, NULL, company, NULL)) return 2;
    for (; rounds < 200; rounds++) {
        struct itimerval soon = {.it_value = {.tv_usec = 100 + rounds * 7 % 500}};
        int before = rung;
        setitimer(ITIMER_REAL, &soon, NULL);
        while (rung == before)
            __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_exchange_n(&stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    printf("%d of 200\n", rounds);
    return 0;
}
