/* Home-made spinning: a lock that works (exchange), a lock that does not (look, then set), a volatile stop flag.
 *
 * Category: spin-loop
 * Verdict: races on `broken_lock` itself, on `unsafe`, which it fails to guard, and on `stop`: volatile is not
 * synchronisation. `safe` is under the exchange lock. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { ROUNDS = 100 };

int good_lock;
volatile int broken_lock;
volatile int stop;
long safe;
long unsafe;

static void good_enter(void)
{
    while (__sync_lock_test_and_set(&good_lock, 1)) // NORACE: atomic
        sched_yield();
}

static void good_leave(void)
{
    __sync_lock_release(&good_lock); // NORACE: a store with release order
}

static void broken_enter(void)
{
    while (broken_lock) // RACE broken_lock
        sched_yield();
    broken_lock = 1; // RACE broken_lock: both may get here
}

static void broken_leave(void)
{
    broken_lock = 0; // RACE broken_lock
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        good_enter();
        safe++; // NORACE: under the good lock
        good_leave();
    }
    for (int i = 0; i < ROUNDS; i++) {
        broken_enter();
        unsafe++; // RACE unsafe
        broken_leave();
    }
    return NULL;
}

static void *idle(void *unused)
{
    (void)unused;
    long turns = 0;
    while (!stop) { // RACE stop
        turns++;
        sched_yield();
    }
    return (void *)turns;
}

int main(void)
{
    pthread_t threads[2], idler;
    if (pthread_create(&idler, NULL, idle, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    stop = 1; // RACE stop
    pthread_join(idler, NULL);
    printf("safe %ld\n", safe);  // NORACE: after the joins
    return unsafe > 2 * ROUNDS; // NORACE: after the joins
}
