/* The waits that name their clock: pthread_cond_clockwait, sem_clockwait, pthread_rwlock_clockrdlock and -wrlock.
 *
 * Category: trylock
 * Alarm: gcc clang helgrind drd: some of the clock variants are unknown to them.
 * Verdict: no race: each answer is looked at. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static sem_t filled;
static int ready, payload, handed;
static long first, second;

static const struct timespec *soon(struct timespec *until)
{
    clock_gettime(CLOCK_MONOTONIC, until);
    until->tv_sec += 5;
    return until;
}

static void *produce(void *unused)
{
    (void)unused;
    struct timespec until;
    payload = 4; // NORACE: before the flag
    pthread_mutex_lock(&lock);
    ready = 1; // NORACE: under the lock
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    handed = 5; // NORACE: before the post
    sem_post(&filled);
    for (int i = 0; i < ROUNDS; i++) {
        if (pthread_rwlock_clockwrlock(&table, CLOCK_MONOTONIC, soon(&until))) continue;
        first++;  // NORACE: exclusive
        second++; // NORACE: exclusive
        pthread_rwlock_unlock(&table);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    struct timespec until;
    int late = 0, wrong = 0, sum = 0;
    sem_init(&filled, 0, 0);
    if (pthread_create(&thread, NULL, produce, NULL)) return 2;
    pthread_mutex_lock(&lock);
    while (!ready && !late) // NORACE: under the lock
        late = pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, soon(&until));
    pthread_mutex_unlock(&lock);
    if (!late) sum += payload; // NORACE: the flag was seen
    if (!sem_clockwait(&filled, CLOCK_MONOTONIC, soon(&until))) sum += handed; // NORACE: the post was had
    for (int i = 0; i < ROUNDS; i++) {
        if (pthread_rwlock_clockrdlock(&table, CLOCK_MONOTONIC, soon(&until))) continue;
        wrong += first != second; // NORACE: writers are excluded
        pthread_rwlock_unlock(&table);
    }
    pthread_join(thread, NULL);
    printf("sum %d, wrong %d\n", sum, wrong);
    return 0;
}
