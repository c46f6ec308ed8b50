/* pthread_mutex_timedlock and pthread_mutex_clocklock, their answer respected.
 *
 * Category: trylock
 * Alarm: gcc clang: ThreadSanitizer does not know pthread_mutex_clocklock.
 * Verdict: no race: `shared` is only touched after the call has returned 0; a time-out goes another way. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 50 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared;

static struct timespec in(clockid_t clock, long milliseconds)
{
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return until;
}

static void *impatient(void *result)
{
    long late = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec until = in(CLOCK_REALTIME, 1);
        if (pthread_mutex_timedlock(&lock, &until) == ETIMEDOUT) {
            late++;
            continue;
        }
        shared++; // NORACE: not timed out
        pthread_mutex_unlock(&lock);
    }
    *(long *)result = late; // NORACE: own result
    return NULL;
}

static void *patient(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec until = in(CLOCK_MONOTONIC, 5000);
        if (pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until)) continue;
        shared++; // NORACE: the lock was had
        if (i == 10) usleep(4000);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    long late = 0;
    if (pthread_create(&threads[0], NULL, impatient, &late)) return 2;
    if (pthread_create(&threads[1], NULL, patient, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", shared + late); // NORACE: after the joins
    return 0;
}
