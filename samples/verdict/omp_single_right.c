/* OpenMP single (with its barrier, with copyprivate) and sections.
 *
 * Category: openmp-region
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. */
#include <omp.h>
#include <stdio.h>

enum { THREADS = 3 };

static int setup, copies[THREADS], left, right, both;

int main(void)
{
#pragma omp parallel num_threads(THREADS)
    {
        int value = 0;
#pragma omp single
        setup = 4; // NORACE: one thread, and a barrier at the end
#pragma omp single copyprivate(value)
        value = setup * 2; // NORACE: after the barrier
        copies[omp_get_thread_num()] = value + setup; // NORACE: own element, after the barriers
#pragma omp sections
        {
#pragma omp section
            left = setup + 1; // NORACE: one section
#pragma omp section
            right = setup + 2; // NORACE: one section
        }
#pragma omp single nowait
        both = left + right; // NORACE: the sections end with a barrier
    }
    printf("%d %d %d\n", copies[0], copies[THREADS - 1], both); // NORACE: after the region
    return 0;
}
