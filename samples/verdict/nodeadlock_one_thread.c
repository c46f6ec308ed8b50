/* Both lock orders occur, but in one thread, one after the other; the other thread takes one lock at a time.
 *
 * Category: no-deadlock
 * Alarm: gcc clang helgrind: their lock order does not ask which thread.
 * Verdict: neither deadlock nor race: a cycle needs two threads. The acquisitions are marked NORACE. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 50 };

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static long lefts, rights;

static void *both_orders(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&left);  // NORACE: no deadlock, this thread only
        pthread_mutex_lock(&right); // NORACE: no deadlock, this thread only
        lefts++;                    // NORACE: under `left`
        pthread_mutex_unlock(&right);
        pthread_mutex_unlock(&left);
        pthread_mutex_lock(&right); // NORACE: no deadlock, this thread only
        pthread_mutex_lock(&left);  // NORACE: no deadlock, this thread only
        rights++;                   // NORACE: under `right`
        pthread_mutex_unlock(&left);
        pthread_mutex_unlock(&right);
    }
    return NULL;
}

static void *one_at_a_time(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&left);
        lefts++; // NORACE: under `left`
        pthread_mutex_unlock(&left);
        pthread_mutex_lock(&right);
        rights++; // NORACE: under `right`
        pthread_mutex_unlock(&right);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, both_orders, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, one_at_a_time, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", lefts, rights); // NORACE: after the joins
    return 0;
}
