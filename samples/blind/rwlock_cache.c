/* A cache under a reader-writer lock. Readers count their hits while they hold the lock only for reading.
 *
 * Category: rwlock
 * Verdict: a race on `cache.hits`: two readers hold the lock at the same time and both write. The entries are written
 * under the write lock and read under the read lock, which is right. */
#include <pthread.h>
#include <stdio.h>

enum { ENTRIES = 16, ROUNDS = 300 };

struct cache {
    pthread_rwlock_t lock;
    int entries[ENTRIES];
    int version;
    long hits;
    long updates;
};

struct cache cache = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static int lookup(struct cache *c, int key)
{
    pthread_rwlock_rdlock(&c->lock);
    int value = c->entries[key % ENTRIES]; // NORACE: writers hold the lock exclusively
    int version = c->version;              // NORACE: writers hold the lock exclusively
    c->hits++;                             // RACE hits: another reader does the same
    pthread_rwlock_unlock(&c->lock);
    return value + version;
}

static void update(struct cache *c, int key, int value)
{
    pthread_rwlock_wrlock(&c->lock);
    c->entries[key % ENTRIES] = value; // NORACE: exclusive
    c->version++;                      // NORACE: exclusive
    c->updates++;                      // NORACE: exclusive
    pthread_rwlock_unlock(&c->lock);
}

static void *reader(void *result)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        sum += lookup(&cache, i);
    *(long *)result = sum; // NORACE: each reader has a result of its own
    return NULL;
}

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++)
        update(&cache, i, i);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    long results[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, reader, &results[i])) return 2;
    for (int i = 2; i < 4; i++)
        if (pthread_create(&threads[i], NULL, writer, NULL)) return 2;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%ld updates, version %d\n", cache.updates, cache.version); // NORACE: after the joins
    return results[0] + results[1] < 0 || cache.hits > 2 * ROUNDS;    // NORACE: after the joins
}
