/* OpenMP ordered, wrong: part of the work is outside of it.
 *
 * Category: openmp-lock
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: a race on `sum`, which is changed after the ordered part; `last` is inside. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, N = 60 };

int last = -1, disorder;
long sum;

int main(void)
{
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(THREADS)
    for (int i = 0; i < N; i++) {
#pragma omp ordered
        {
            disorder += last != i - 1; // NORACE: ordered
            last = i;                  // NORACE: ordered
        }
        sum += i; // RACE sum: outside
        usleep(20);
    }
    printf("disorder %d\n", disorder); // NORACE: after the region
    return sum > N * N;                // NORACE: after the region
}
