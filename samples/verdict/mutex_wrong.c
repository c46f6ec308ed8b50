/* Three mistakes with one mutex: a way out that forgot the lock, a read that "is only a read", and a value that is
 * carried past the unlock through a pointer.
 *
 * Category: mutex
 * Verdict: races on `total` (written after an early unlock), on `limit` (read without the lock) and on the entry that
 * `largest` returns a pointer to. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 100, ENTRIES = 4 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long total;
long limit = 1000;
long entries[ENTRIES];

__attribute__((noinline)) void add(int amount)
{
    pthread_mutex_lock(&lock);
    entries[amount % ENTRIES] += amount; // RACE entry: with the reader behind the pointer
    if (amount % 2) {
        pthread_mutex_unlock(&lock);
        total += amount; // RACE total: unlocked on this way
        return;
    }
    total -= amount; // RACE total: locked, but the other way is not
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) long *largest(void)
{
    pthread_mutex_lock(&lock);
    long *found = &entries[0];
    for (int i = 1; i < ENTRIES; i++)
        if (entries[i] > *found) // NORACE: under the lock
            found = &entries[i];
    pthread_mutex_unlock(&lock);
    return found;
}

static void *adder(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        add(i);
        usleep(20);
    }
    pthread_mutex_lock(&lock);
    limit += 10; // RACE limit: with the read without the lock
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        long *found = largest();
        sum += *found; // RACE entry: the lock is gone
        usleep(50);
    }
    sum += limit; // RACE limit: "only a read"
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[3];
    void *sum;
    if (pthread_create(&threads[0], NULL, reader, NULL)) return 2;
    for (int i = 1; i < 3; i++)
        if (pthread_create(&threads[i], NULL, adder, NULL)) return 2;
    pthread_join(threads[0], &sum);
    for (int i = 1; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("limit %ld\n", limit);          // NORACE: after the joins
    return total > 100000 || (long)sum < 0; // NORACE: after the joins
}
