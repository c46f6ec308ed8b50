/* A flag that is atomic but relaxed orders nothing: the data behind it races.
 *
 * Category: atomics-relaxed
 * Verdict: a race on `data`. Cannot be found in machine code, neither statically nor at run time: on x86 a relaxed
 * store or load is the same plain move as a release store or an acquire load. The order was lost when the program was
 * compiled; only tools that see the source (ThreadSanitizer) can tell. Counts as missed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

atomic_int flag;
atomic_int hits;
int data;

static void *produce(void *unused)
{
    (void)unused;
    data = 5; // RACE data
    atomic_store_explicit(&flag, 1, memory_order_relaxed); // NORACE: atomic
    return NULL;
}

static void *consume(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&flag, memory_order_relaxed)) // NORACE: atomic
        atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed);
    return (void *)(long)data; // RACE data
}

int main(void)
{
    pthread_t producer, consumer;
    void *result;
    if (pthread_create(&consumer, NULL, consume, NULL)) return 2;
    if (pthread_create(&producer, NULL, produce, NULL)) return 2;
    pthread_join(producer, NULL);
    pthread_join(consumer, &result);
    int seen = data; // NORACE: after the joins
    printf("%s %d\n", hits < 0 ? "?" : "saw", seen);
    return result != (void *)5L;
}
