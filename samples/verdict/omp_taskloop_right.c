/* OpenMP taskloop, task reductions, and a doacross loop (ordered with sink and source).
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc clang helgrind drd: the runtime library's own synchronisation is not instrumented; Archer knows no
 * doacross.
 * Verdict: no race: taskloop waits for its tasks at the end, a doacross iteration waits for the one that it names. */
#include <stdio.h>

enum { THREADS = 3, N = 60 };

static int cells[N], copies[N], wave[N + 1];
static long total;

int main(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    {
#pragma omp taskloop grainsize(7)
        for (int i = 0; i < N; i++)
            cells[i] = i * 2; // NORACE: own iteration
#pragma omp taskloop num_tasks(4)
        for (int i = 0; i < N; i++)
            copies[i] = cells[N - 1 - i]; // NORACE: the first taskloop is complete
        for (int i = 0; i < N; i++)
            total += copies[i]; // NORACE: the second one too
    }
#pragma omp parallel for ordered(1) schedule(dynamic, 1) num_threads(THREADS)
    for (int i = 0; i < N; i++) {
        cells[i] += 1; // NORACE: own iteration
#pragma omp ordered depend(sink : i - 1)
        wave[i + 1] = wave[i] + cells[i]; // NORACE: the iteration before has passed its source
#pragma omp ordered depend(source)
        copies[i] = cells[i]; // NORACE: own iteration
    }
    printf("total %ld, wave %d, last %d\n", total, wave[N], copies[N - 1]); // NORACE: after the regions
    return 0;
}
