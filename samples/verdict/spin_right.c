/* POSIX spin locks, lock and trylock, one for each of two counters.
 *
 * Category: spinlock
 * Verdict: no race. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { ROUNDS = 100 };

struct counter {
    pthread_spinlock_t lock;
    long value;
};

static struct counter even, odd;

__attribute__((noinline)) static void count(struct counter *counter)
{
    pthread_spin_lock(&counter->lock);
    counter->value++; // NORACE: the lock of the same counter
    pthread_spin_unlock(&counter->lock);
}

__attribute__((noinline)) static void count_patiently(struct counter *counter)
{
    while (pthread_spin_trylock(&counter->lock))
        sched_yield();
    counter->value++; // NORACE: the loop ends with the lock held
    pthread_spin_unlock(&counter->lock);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        struct counter *counter = i % 2 ? &odd : &even;
        if (i % 3) count(counter);
        else count_patiently(counter);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_spin_init(&even.lock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&odd.lock, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", even.value, odd.value); // NORACE: after the joins
    pthread_spin_destroy(&even.lock);
    pthread_spin_destroy(&odd.lock);
    return 0;
}
