/* OpenMP tasks: taskwait, taskgroup, firstprivate data, and the barrier at the end of the region that ends all tasks.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. */
#include <stdio.h>

enum { THREADS = 3, N = 40 };

static int cells[N], group[4], tail, total;

__attribute__((noinline)) static int sum_of(const int *from, int count)
{
    int low = 0, high = 0;
    if (count < 5) {
        for (int i = 0; i < count; i++)
            low += from[i]; // NORACE: written before the tasks of this kind exist
        return low;
    }
#pragma omp task shared(low)
    low = sum_of(from, count / 2); // NORACE: taskwait before it is read
#pragma omp task shared(high)
    high = sum_of(from + count / 2, count - count / 2); // NORACE: taskwait before it is read
#pragma omp taskwait
    return low + high; // NORACE: after the taskwait
}

int main(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    {
        for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(i)
            cells[i] = i; // NORACE: each task has its element
        }
#pragma omp taskwait
        total = sum_of(cells, N); // NORACE: after the taskwait
#pragma omp taskgroup
        {
            for (int i = 0; i < 4; i++) {
#pragma omp task
                {
#pragma omp task
                    group[i] = i + 1; // NORACE: grandchildren belong to the group too
                }
            }
        }
        total += group[0] + group[3]; // NORACE: after the group
#pragma omp task
        tail = 8; // NORACE: done at the end of the region
    }
    printf("total %d, tail %d\n", total, tail); // NORACE: after the region
    return 0;
}
