/* Reader-writer lock, wrong: a cache that fills itself under the read lock, and an upgrade that forgets what it saw.
 *
 * Category: rwlock
 * Verdict: races on `cached` and `cached_for`, which readers write under the read lock. `source` is right, and the
 * upgrade (unlock, then wrlock, then look again) too. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 20 };

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
long source = 3;
long cached;
int cached_for = -1;
int grown;

__attribute__((noinline)) static long compute(int key)
{
    pthread_rwlock_rdlock(&lock);
    if (cached_for != key) {   // RACE cached_for: with other readers' writes
        cached = source * key; // RACE cached: a write under the read lock
        usleep(50);
        cached_for = key; // RACE cached_for: a write under the read lock
    }
    long value = cached; // RACE cached
    pthread_rwlock_unlock(&lock);
    return value;
}

__attribute__((noinline)) static void grow(void)
{
    pthread_rwlock_rdlock(&lock);
    int small = source < 100; // NORACE: writers exclude readers
    pthread_rwlock_unlock(&lock);
    if (!small) return;
    pthread_rwlock_wrlock(&lock);
    if (source < 100) { // NORACE: exclusive, looked at again
        source++;       // NORACE: exclusive
        grown++;        // NORACE: exclusive
    }
    pthread_rwlock_unlock(&lock);
}

static void *reader(void *unused)
{
    (void)unused;
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        sum += compute(i / 2);
    return (void *)sum;
}

static void *grower(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++)
        grow();
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, reader, NULL)) return 2;
    if (pthread_create(&threads[2], NULL, grower, NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("grown %d\n", grown); // NORACE: after the joins
    return 0;
}
