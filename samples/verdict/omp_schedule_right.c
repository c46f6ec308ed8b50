/* OpenMP loops with other schedules: dynamic, guided, runtime, static in chunks; threadprivate; nested regions.
 *
 * Category: openmp-loop
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. */
#include <omp.h>
#include <stdio.h>

enum { THREADS = 3, N = 100 };

static int dynamic[N], guided[N], chunks[N], runtime[N];
static int inner[THREADS][2];
static int calls;
#pragma omp threadprivate(calls)

int main(void)
{
    long sum = 0;
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp for schedule(dynamic, 3)
        for (int i = 0; i < N; i++) {
            dynamic[i] = i; // NORACE: own iteration
            calls++;        // NORACE: a copy for each thread
        }
#pragma omp for schedule(guided)
        for (int i = 0; i < N; i++)
            guided[i] = dynamic[N - 1 - i]; // NORACE: after the barrier
#pragma omp for schedule(static, 7)
        for (int i = 0; i < N; i++)
            chunks[i] = guided[i] + dynamic[i]; // NORACE: after the barrier
#pragma omp for schedule(runtime)
        for (int i = 0; i < N; i++)
            runtime[i] = chunks[(i * 7) % N]; // NORACE: after the barrier
        int me = omp_get_thread_num();
#pragma omp parallel num_threads(2)
        inner[me][omp_get_thread_num()] = me; // NORACE: each outer thread has its row
    }
    for (int i = 0; i < N; i++)
        sum += runtime[i]; // NORACE: after the region
    for (int i = 0; i < THREADS; i++)
        sum += inner[i][0]; // NORACE: after the region
    printf("sum %ld\n", sum);
    return calls > N;
}
