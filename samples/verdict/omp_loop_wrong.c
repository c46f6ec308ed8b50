/* OpenMP loops, wrong: a dependence between iterations, a scratch variable that should be private, a hand-made
 * reduction.
 *
 * Category: openmp-loop
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `waves` (element i-1 belongs to another thread at the edges of the chunks), on `scratch` and on
 * `sum`. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, N = 60 };

int waves[N + 1];
int scratch;
long sum;
int fine[N];

__attribute__((noinline)) int load(const int *from)
{
    return *from + 1; // RACE scratch: another thread's value, perhaps
}

__attribute__((noinline)) void body(int i)
{
    waves[i + 1] = waves[i] + 1; // RACE waves
    scratch = i * i;             // RACE scratch
    usleep(5);
    fine[i] = load(&scratch); // NORACE: own element
    sum += i;                 // RACE sum
    usleep(5);
}

int main(void)
{
#pragma omp parallel for num_threads(THREADS)
    for (int i = 0; i < N; i++)
        body(i);
    puts(fine[0] > 0 ? "done" : "?"); // NORACE: after the region
    return sum > N * N;               // NORACE: after the region
}
