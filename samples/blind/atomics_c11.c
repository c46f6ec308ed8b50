/* C11 atomics: a counter, a release/acquire flag that guards plain data, a fence pair, and a compare-and-swap maximum.
 *
 * Category: atomics-c11
 * Alarm: gcc clang: on `fenced`; ThreadSanitizer does not follow fences.
 * Verdict: a race on `late`, written after the flag was released. The rest is atomic, or ordered by `ready`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 100 };

atomic_int counter;
atomic_int ready;
atomic_int fence_flag;
atomic_int maximum;
int payload;
int fenced;
int late;

static void raise_to(int value)
{
    int seen = atomic_load(&maximum); // NORACE: atomic
    while (seen < value && !atomic_compare_exchange_weak(&maximum, &seen, value)) { // NORACE: atomic
    }
}

static void *produce(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed); // NORACE: atomic
        raise_to(i);
    }
    payload = 7; // NORACE: before the release
    atomic_store_explicit(&ready, 1, memory_order_release);
    late = 8;   // RACE late: after the release
    fenced = 9; // NORACE: before the fence
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&fence_flag, 1, memory_order_relaxed);
    return NULL;
}

static void *consume(void *result)
{
    while (!atomic_load_explicit(&ready, memory_order_acquire)) { // NORACE: atomic
    }
    int sum = payload; // NORACE: after the acquire
    int early = late;  // RACE late
    while (!atomic_load_explicit(&fence_flag, memory_order_relaxed)) { // NORACE: atomic
    }
    atomic_thread_fence(memory_order_acquire);
    sum += fenced; // NORACE: the two fences synchronise
    raise_to(ROUNDS);
    *(int *)result = early > 8 ? -1 : sum; // NORACE: read after the join
    return NULL;
}

int main(void)
{
    pthread_t producer, consumer;
    int sum = 0;
    if (pthread_create(&producer, NULL, produce, NULL)) return 2;
    if (pthread_create(&consumer, NULL, consume, &sum)) return 2;
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    printf("counter %d, maximum %d, sum %d\n", counter, maximum, sum); // NORACE: after the joins
    return late != 8;                                                 // NORACE: after the joins
}
