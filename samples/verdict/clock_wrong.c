/* The waits that name their clock, wrong: a time that has passed already, so that all of them give up at once, and the
 * work is done all the same.
 *
 * Category: trylock
 * Verdict: races on `handed` (sem_clockwait gave up) and on `table_value` (pthread_rwlock_clockrdlock gave up).
 * `guarded` is only touched by who has the lock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
sem_t filled, held;
int handed;
int table_value;
int guarded;

static void *produce(void *unused)
{
    (void)unused;
    pthread_rwlock_wrlock(&table);
    guarded = 1; // NORACE: exclusive
    sem_post(&held);
    usleep(5000);
    handed = 5; // RACE handed: the other side has given up
    usleep(10);
    table_value = 6; // RACE table: the other side has no lock
    usleep(10);
    pthread_rwlock_unlock(&table);
    sem_post(&filled);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    struct timespec past = {1, 0};
    sem_init(&filled, 0, 0);
    sem_init(&held, 0, 0);
    if (pthread_create(&thread, NULL, produce, NULL)) return 2;
    sem_wait(&held);
    int late = sem_clockwait(&filled, CLOCK_MONOTONIC, &past);
    int sum = handed; // RACE handed
    usleep(10);
    int busy = pthread_rwlock_clockrdlock(&table, CLOCK_MONOTONIC, &past);
    sum += table_value; // RACE table
    usleep(10);
    if (!busy) {
        sum += guarded; // NORACE: only with the lock
        pthread_rwlock_unlock(&table);
    }
    pthread_join(thread, NULL);
    printf("%d %d\n", table_value, handed); // NORACE: after the join
    return sum > 12 || late > 0;
}
