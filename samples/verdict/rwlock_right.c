/* Reader-writer lock with all its ways in: rdlock, tryrdlock, timedrdlock, wrlock, trywrlock, timedwrlock.
 *
 * Category: rwlock
 * Verdict: no race. Reads under a read lock, writes under the write lock, try variants on their success branch. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 50 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static long first, second;
static int writes;

static struct timespec soon(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    return until;
}

static int enter_to_read(int way)
{
    struct timespec until = soon();
    switch (way % 3) {
    case 0: return pthread_rwlock_rdlock(&lock);
    case 1: return pthread_rwlock_tryrdlock(&lock);
    default: return pthread_rwlock_timedrdlock(&lock, &until);
    }
}

static void *reader(void *result)
{
    long wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (enter_to_read(i)) continue;
        wrong += first != second; // NORACE: writers exclude readers
        pthread_rwlock_unlock(&lock);
    }
    *(long *)result = wrong; // NORACE: own result
    return NULL;
}

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec until = soon();
        int busy = i % 3 == 0   ? pthread_rwlock_wrlock(&lock)
                   : i % 3 == 1 ? pthread_rwlock_trywrlock(&lock)
                                : pthread_rwlock_timedwrlock(&lock, &until);
        if (busy) continue;
        first += i;  // NORACE: exclusive
        second += i; // NORACE: exclusive
        writes++;    // NORACE: exclusive
        pthread_rwlock_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    long wrong[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, reader, &wrong[i])) return 2;
    for (int i = 2; i < 4; i++)
        if (pthread_create(&threads[i], NULL, writer, NULL)) return 2;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("wrong %ld\n", wrong[0] + wrong[1]); // NORACE: after the joins
    return writes == 0;                         // NORACE: after the joins
}
