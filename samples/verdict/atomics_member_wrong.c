/* A counter that is atomic, and beside it, in the same struct on the heap, a sum that is not: threads add to both.
 *
 * Category: atomics-c11
 * Verdict: a race on the sum: what is atomic beside it orders nothing, since each thread adds to the sum first. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, TURNS = 1000 };

struct account {
    atomic_long turns;
    long sum;
};

static void *work(void *argument)
{
    struct account *account = argument;
    for (int i = 0; i < TURNS; i++) {
        account->sum += i; // RACE
        atomic_store_explicit(&account->turns, i, memory_order_relaxed); // NORACE: atomic
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct account *account = calloc(1, sizeof *account);
    if (!account) return 2;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, account)) return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%s\n", account->sum > 0 ? "done" : "nothing");
    free(account);
    return 0;
}
