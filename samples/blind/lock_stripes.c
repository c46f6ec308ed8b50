/* A hash table with a lock per stripe of buckets. Adding takes the right stripe's lock, `drop` computes the wrong one.
 *
 * Category: lock-array
 * Verdict: a race on the bucket counts between `add` and `drop`. The totals per stripe, which both reach with the index
 * of the lock they hold, are right. A detector that takes the locks of an array for one lock misses the race, one that
 * trusts none of them reports the totals. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { STRIPES = 4, BUCKETS = 16, ROUNDS = 160 };

pthread_mutex_t locks[STRIPES];
int buckets[BUCKETS];
long totals[STRIPES];

__attribute__((noinline)) static void add(unsigned key)
{
    unsigned bucket = key % BUCKETS, stripe = bucket % STRIPES;
    pthread_mutex_lock(&locks[stripe]);
    buckets[bucket]++; // RACE bucket
    totals[stripe]++;  // NORACE: the same index as the lock's
    if (bucket == 6) usleep(300); // so that the other thread gets on
    pthread_mutex_unlock(&locks[stripe]);
}

__attribute__((noinline)) static void drop(unsigned key)
{
    unsigned bucket = key % BUCKETS, stripe = bucket / STRIPES;
    pthread_mutex_lock(&locks[stripe]);
    buckets[bucket]--; // RACE bucket: under the lock of another stripe
    totals[stripe]++;  // NORACE: the same index as the lock's
    pthread_mutex_unlock(&locks[stripe]);
}

static void *adder(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ROUNDS; i++)
        add(i);
    return NULL;
}

static void *dropper(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ROUNDS; i++)
        drop(i);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&locks[i], NULL);
    if (pthread_create(&threads[0], NULL, adder, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, dropper, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    long sum = 0;
    for (int i = 0; i < STRIPES; i++)
        sum += totals[i]; // NORACE: after the joins
    printf("sum %ld\n", sum);
    return 0;
}
