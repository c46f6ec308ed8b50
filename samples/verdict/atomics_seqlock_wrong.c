/* A sequence lock whose data is plain: readers look while the writer writes, and throw away what they saw. It works on
 * x86, and is a data race by the standard all the same; that is what a detector shall say.
 *
 * Category: atomics-c11
 * Verdict: races on `first` and `second`. `sequence` is atomic, `retries` is the reader's. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 100 };

atomic_uint sequence;
long first;
long spare[8];
long second;
int writes;

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&sequence, 1); // NORACE: atomic
        first = i;                      // RACE first
        usleep(3);
        second = i;                     // RACE second
        atomic_fetch_add(&sequence, 1); // NORACE: atomic
        writes++;                       // NORACE: the writer's
    }
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    long wrong = 0, retries = 0;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned before = atomic_load(&sequence); // NORACE: atomic
        long one = first;                         // RACE first
        usleep(2);
        long two = second; // RACE second
        usleep(1);
        if (before % 2 || atomic_load(&sequence) != before) {
            retries++; // NORACE: a local
            continue;
        }
        wrong += one != two;
    }
    return (void *)(retries < 0 ? -1 : wrong);
}

int main(void)
{
    pthread_t threads[2];
    void *wrong;
    if (pthread_create(&threads[0], NULL, writer, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, reader, NULL)) return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &wrong);
    printf("wrong %ld, writes %d\n", (long)wrong, writes); // NORACE: after the joins
    return 0;
}
