/* The smallest racy program: two threads add to two counters, and only one of the counters has a lock.
 *
 *   racy_counter [ROUNDS]
 *
 * Verdict: one race, on `unprotected`, between `add` in one thread and `add` in the other. `protected` is guarded by
 * `lock`, and what main reads after the joins is ordered. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long unprotected;
long protected;

static void *add(void *argument)
{
    long rounds = *(const long *)argument; // NORACE: both threads only read it
    for (long i = 0; i < rounds; i++) {
        unprotected++; // RACE
        pthread_mutex_lock(&lock);
        protected++; // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, add, &rounds)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("protected %ld of %ld\n", protected, 2 * rounds); // NORACE: after the joins
    return unprotected > 2 * rounds;                        // NORACE: after the joins
}
