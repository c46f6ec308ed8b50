/* OpenMP regions, wrong: a barrier forgotten between write and read, a shared loop counter, `master` without a barrier.
 *
 * Category: openmp-region
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `parts`, on `turns` and on `announced` (`master` has no barrier at its end). */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3 };

int parts[THREADS];
int seen[THREADS];
int turns;
int announced;
int ordered_by_barrier;

__attribute__((noinline)) static void region(int me)
{
    parts[me] = me + 1; // RACE parts
    usleep(10);
    seen[me] = parts[(me + 1) % THREADS]; // RACE parts: no barrier in between
    usleep(10);
    turns++; // RACE turns: shared
    usleep(10);
}

int main(void)
{
    int sum = 0;
#pragma omp parallel num_threads(THREADS)
    {
        region(omp_get_thread_num());
#pragma omp master
        {
            ordered_by_barrier = 5; // NORACE: read after the barrier
            announced = 7;          // RACE announced
        }
        usleep(100);
        seen[omp_get_thread_num()] += announced; // RACE announced: no barrier after master
#pragma omp barrier
        seen[omp_get_thread_num()] += ordered_by_barrier; // NORACE: after the barrier
    }
    for (int i = 0; i < THREADS; i++)
        sum += seen[i] >= 5; // NORACE: after the region
    printf("%d\n", sum);
    return turns > THREADS; // NORACE: after the region
}
