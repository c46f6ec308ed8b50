/* OpenMP regions: explicit barriers, the implicit ones at the end of `for` and of the region, private copies.
 *
 * Category: openmp-region
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. */
#include <omp.h>
#include <stdio.h>

enum { THREADS = 3, N = 300 };

static int parts[THREADS];
static int grid[2][N];
static int rounds;

int main(void)
{
    int sum = 0, scale = 2;
#pragma omp parallel num_threads(THREADS) firstprivate(scale)
    {
        int me = omp_get_thread_num();
        scale += me;            // NORACE: private
        parts[me] = scale * me; // NORACE: own element
#pragma omp barrier
        int next = parts[(me + 1) % THREADS]; // NORACE: after the barrier
#pragma omp barrier
        parts[me] = next; // NORACE: after the second barrier
        for (int step = 0; step < 4; step++) {
            int (*old)[N] = &grid[step % 2], (*new)[N] = &grid[(step + 1) % 2];
#pragma omp for
            for (int i = 0; i < N; i++)
                (*new)[i] = (*old)[(i + 1) % N] + 1; // NORACE: the loop before ended with a barrier
#pragma omp single
            rounds++; // NORACE: single, with a barrier at its end
        }
    }
    for (int i = 0; i < THREADS; i++)
        sum += parts[i]; // NORACE: after the region
    printf("sum %d, grid %d, rounds %d\n", sum, grid[0][7], rounds); // NORACE: after the region
    return 0;
}
