/* OpenMP work-sharing loops: private and reduction variables, and what is left shared.
 *
 * Category: openmp-loop
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `last`, which all iterations write, and on `shifted`, since `nowait` removes the barrier that the
 * second loop needs. The loops with reduction, and with the barrier, are right. */
#include <stdio.h>

enum { N = 1000, THREADS = 3 };

int squares[N];
int halves[N];
int shifted[N];
int result[N];
int last;

__attribute__((noinline)) static void remember(int i)
{
    last = i; // RACE last
}

int main(void)
{
    long sum = 0, total = 0;
#pragma omp parallel for num_threads(THREADS) reduction(+ : sum)
    for (int i = 0; i < N; i++) {
        squares[i] = i * i; // NORACE: own iteration
        sum += i;           // NORACE: reduction
        remember(i);
    }
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp for
        for (int i = 0; i < N; i++)
            halves[i] = squares[i] / 2; // NORACE: own iteration
#pragma omp for
        for (int i = 0; i < N; i++)
            squares[i] = halves[N - 1 - i]; // NORACE: the first loop ends with a barrier
#pragma omp for nowait
        for (int i = 0; i < N; i++)
            shifted[i] = i; // RACE shifted
#pragma omp for reduction(+ : total)
        for (int i = 0; i < N; i++) {
            result[i] = shifted[N - 1 - i]; // RACE shifted: other threads may still be in the loop before
            total += squares[i] & 1;        // NORACE: own iteration of a loop that a barrier ended
        }
    }
    printf("sum %ld, total %ld\n", sum, total); // NORACE: after the regions
    return last >= N || result[0] > N;          // NORACE: after the regions
}
