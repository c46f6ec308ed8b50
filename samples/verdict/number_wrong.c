/* Threads that are numbered, but not each with a number of its own: a second round of threads begins while the first one works.
 *
 * Category: array-partition
 * Verdict: races on the elements of `sums`, which threads of both rounds have, and on `first`, which two threads write. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 2, THREADS = 3 };

long sums[THREADS];
int first;

static void *work(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < 20; i++) {
        sums[me] += i; // RACE sums: the other round has the same numbers
        usleep(20);
    }
    if (me == 0) first++; // RACE first: one thread of each round
    return NULL;
}

int main(void)
{
    pthread_t threads[ROUNDS][THREADS];
    for (int round = 0; round < ROUNDS; round++)
        for (long i = 0; i < THREADS; i++)
            if (pthread_create(&threads[round][i], NULL, work, (void *)i)) return 2;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[round][i], NULL);
    printf("%s\n", sums[0] > 0 && first > 0 ? "done" : "?"); // NORACE: after the joins
    return 0;
}
