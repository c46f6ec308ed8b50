/* OpenMP loops: reductions of several kinds, lastprivate, collapse, static chunks reused without a barrier, simd.
 *
 * Category: openmp-loop
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. Two static loops with the same bounds give each iteration to the same thread (OpenMP 5, 2.9.2), so
 * the `nowait` between them is right. That needs knowledge of the schedule, not of barriers. */
#include <stdio.h>

enum { THREADS = 3, N = 120 };

static int first[N], second[N], matrix[10][12];

int main(void)
{
    long sum = 0;
    int last = 0, most = 0, scratch = 0;
#pragma omp parallel for num_threads(THREADS) reduction(+ : sum) reduction(max : most) lastprivate(last) \
    private(scratch)
    for (int i = 0; i < N; i++) {
        scratch = i * 7 % 31;               // NORACE: private
        sum += scratch;                     // NORACE: reduction
        most = scratch > most ? scratch : most; // NORACE: reduction
        last = i;                           // NORACE: lastprivate
    }
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < N; i++)
            first[i] = i; // NORACE: own iteration
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++)
            second[i] = first[i] * 2; // NORACE: the same thread wrote it
#pragma omp for collapse(2) schedule(dynamic, 5)
        for (int i = 0; i < 10; i++)
            for (int k = 0; k < 12; k++)
                matrix[i][k] = second[i * 12 + k]; // NORACE: after the barrier, own cell
    }
    for (int i = 0; i < 10; i++)
        sum += matrix[i][i]; // NORACE: after the region
    printf("sum %ld, most %d, last %d\n", sum, most, last); // NORACE: after the regions
    return 0;
}
