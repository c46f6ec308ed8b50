/* Timers that ring once, while this thread and another do nothing but make checks that take long: each epoch is new. The
 * loop ends when the handler says so, which is the only thing that can end it.
 *
 * No timer rings before the other thread runs code of its own: DynamoRIO loses a signal for the process that the kernel gives to a
 * thread which it is still taking over (27 of 36 runs without our client; none of 80 once the thread runs). */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static long counter;
static atomic_int rung; /* either thread may be given the signal */
static int begun, stop;

static void on_alarm(int number)
{
    rung += number == SIGALRM;
}

static void *company(void *unused)
{
    __atomic_exchange_n(&begun, 1, __ATOMIC_SEQ_CST);
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
    while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
        usleep(1000);
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
