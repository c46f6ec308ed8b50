/* Opposite lock orders that cannot deadlock: the second lock is only tried, and the first let go when it fails.
 *
 * Category: no-deadlock
 * Verdict: neither deadlock nor race. The acquisitions are marked NORACE: a deadlock reported on them is a false
 * alarm. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { ROUNDS = 100 };

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static long both;

static void take_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    for (;;) {
        pthread_mutex_lock(first); // NORACE: no deadlock, the second is only tried
        if (!pthread_mutex_trylock(second)) // NORACE: no deadlock, never waits
            return;
        pthread_mutex_unlock(first);
        sched_yield();
    }
}

static void *forward(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        take_both(&left, &right);
        both++; // NORACE: both locks
        pthread_mutex_unlock(&right);
        pthread_mutex_unlock(&left);
    }
    return NULL;
}

static void *backward(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        take_both(&right, &left);
        both++; // NORACE: both locks
        pthread_mutex_unlock(&left);
        pthread_mutex_unlock(&right);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, forward, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, backward, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("both %ld\n", both); // NORACE: after the joins
    return 0;
}
