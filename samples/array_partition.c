/* One array, divided among the threads by index: shared object, no race on its elements.
 *
 *   array_partition [CELLS]
 *
 * Verdict: one race, on `largest`, which every thread updates after its part. The cells are disjoint by index, which a
 * static analysis may fail to see and the checks at run time must. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, MOST = 4096 };

struct part {
    unsigned first, end; /* cells [first, end) */
};

unsigned cells[MOST];
struct part parts[THREADS];
unsigned largest;

static void *fill(void *argument)
{
    const struct part *part = argument;
    unsigned last = 0;
    for (unsigned i = part->first; i < part->end; i++) { // NORACE: each thread reads its own part
        cells[i] = i * 2654435761u; // NORACE: disjoint indices
        last = i;
    }
    if (largest < last) // RACE
        largest = last; // RACE
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    if (count > MOST) count = MOST;
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        parts[i].first = count * i / THREADS;
        parts[i].end = count * (i + 1) / THREADS;
        if (pthread_create(&threads[i], NULL, fill, &parts[i])) return 2;
    }
    unsigned sum = 0;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < count; i++)
        sum += cells[i]; // NORACE: after the joins
    printf("sum %u\n", sum);
    return largest >= MOST; // NORACE: after the joins
}
