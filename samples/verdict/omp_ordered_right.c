/* OpenMP ordered: inside of it iterations go one after the other, in order.
 *
 * Category: openmp-lock
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. `last` and `hash` are touched in the ordered part only. */
#include <stdio.h>

enum { THREADS = 3, N = 60 };

static int values[N];
static int last = -1, disorder;
static unsigned hash;

int main(void)
{
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(THREADS)
    for (int i = 0; i < N; i++) {
        values[i] = i * i; // NORACE: own iteration
#pragma omp ordered
        {
            disorder += last != i - 1;                 // NORACE: ordered
            last = i;                                  // NORACE: ordered
            hash = hash * 31 + (unsigned)values[i]; // NORACE: ordered
            if (i) hash ^= (unsigned)values[i - 1];    // NORACE: that iteration's ordered part is over
        }
    }
    printf("hash %u, disorder %d\n", hash, disorder); // NORACE: after the region
    return 0;
}
