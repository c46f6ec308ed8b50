/* OpenMP task dependences: out before in, in together, inout one after the other.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. */
#include <stdio.h>

enum { THREADS = 3, STEPS = 5 };

static int source, left, right, joined, chain;

int main(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    {
#pragma omp task depend(out : source)
        source = 5; // NORACE: before the readers
#pragma omp task depend(in : source) depend(out : left)
        left = source + 1; // NORACE: after the writer, beside the other reader
#pragma omp task depend(in : source) depend(out : right)
        right = source + 2; // NORACE: after the writer, beside the other reader
#pragma omp task depend(in : left, right)
        joined = left * right; // NORACE: after both
#pragma omp task depend(inout : source)
        source = 6; // NORACE: after all readers
        for (int i = 0; i < STEPS; i++) {
#pragma omp task depend(inout : chain)
            chain = chain * 2 + 1; // NORACE: one after the other
        }
    }
    printf("%d %d %d\n", source, joined, chain); // NORACE: after the region
    return 0;
}
