/* Release and acquire by the compilers' builtins on variables of plain type: neither the instruction (a plain move) nor
 * the type tells that they are atomic.
 *
 * Category: atomics-builtin
 * Verdict: no race. In machine code it looks the same as the wrong version with plain accesses; a detector that works
 * on binaries reports it, or misses the wrong version. Counts as a false alarm where it is reported. The spin loop and
 * the exchange are recognisable. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct config {
    int size;
};

static struct config *current;
static int spins_done;
static int locked;
static long guarded;

__attribute__((noinline)) static void install(int size)
{
    struct config *config = malloc(sizeof *config);
    if (!config) abort();
    config->size = size;                                  // NORACE: before the release
    __atomic_store_n(&current, config, __ATOMIC_RELEASE); // NORACE: atomic
}

__attribute__((noinline)) static int size_now(void)
{
    struct config *config = __atomic_load_n(&current, __ATOMIC_ACQUIRE); // NORACE: atomic
    return config ? config->size : 0;                                    // NORACE: after the acquire
}

static void *work(void *unused)
{
    (void)unused;
    int sum = size_now();
    for (int i = 0; i < 50; i++) {
        while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE)) { // NORACE: atomic
        }
        guarded++; // NORACE: under the exchange lock
        __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); // NORACE: atomic
    }
    __atomic_fetch_add(&spins_done, 1, __ATOMIC_RELEASE); // NORACE: atomic
    return (void *)(long)sum;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    install(12);
    while (__atomic_load_n(&spins_done, __ATOMIC_ACQUIRE) < 2) { // NORACE: atomic
    }
    printf("guarded %ld\n", guarded); // NORACE: both have said that they are done
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(current); // NORACE: after the joins
    return 0;
}
