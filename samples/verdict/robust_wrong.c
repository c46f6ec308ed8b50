/* A robust mutex whose owner dies, wrong: the next owner unlocks without repair, which makes the lock useless for good
 * (ENOTRECOVERABLE); the threads after that do not look at the answer and go on without a lock.
 *
 * Category: recursive
 * Verdict: a race on `value` between the two threads that come late. What the dead thread and the careless heir wrote
 * is ordered before. Which calls fail is known at run time only: a static detector that takes the call for a success
 * misses the race, unless it insists on the answer being looked at. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 50 };

pthread_mutex_t lock;
long value;
int died;

static void *dies(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    died = 1; // NORACE: under the lock, and joined
    return NULL;
}

static void *careless(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock); // ENOTRECOVERABLE
        value++;                   // RACE value: nobody has the lock
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread, threads[2];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &attributes);
    if (pthread_create(&thread, NULL, dies, NULL)) return 2;
    pthread_join(thread, NULL);
    int code = pthread_mutex_lock(&lock);
    value = died; // NORACE: the dead thread is joined
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, careless, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(code == EOWNERDEAD ? "owner died" : "?");
    return value > 2 * ROUNDS + 1; // NORACE: after the joins
}
