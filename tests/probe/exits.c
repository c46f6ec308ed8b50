/* Signals that come while threads end: their handlers access memory, up to the very last moment.
 *
 * Prints how many threads were made. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 1000 };

static long cells[4096];
static atomic_long handled, ending;

static void handler(int number)
{
    (void)number;
    long n = atomic_fetch_add(&handled, 1);
    for (int i = 0; i < 8; i++)
        ((volatile long *)cells)[(n * 8 + i) % 4096] = n; /* first accesses of their epochs */
}

static void *work(void *number)
{
    ((volatile long *)cells)[(long)number % 4096] = 1;
    atomic_store(&ending, (long)number + 1);
    while (!number &&
           !atomic_load(&handled)) /* on a busy machine all others may have ended before their signals come */
        sched_yield();
    return NULL;
}

int main(void)
{
    signal(SIGUSR1, handler);
    long made = 0;
    for (long i = 0; i < THREADS; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, work, (void *)i)) return 2;
        while (atomic_load(&ending) <= i)
            sched_yield();
        for (int k = 0; k < 100; k++)
            pthread_kill(t, SIGUSR1);
        pthread_join(t, NULL);
        made++;
    }
    printf("%ld threads\n", made);
    return atomic_load(&handled) == 0;
}
