/* A task that was created in front of a group is not waited for at its end.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Verdict: a race on `before`; `inside` belongs to the group. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3 };

int before, inside, seen;

__attribute__((noinline)) static void nap(int microseconds)
{
    usleep((unsigned)microseconds);
}

int main(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    {
#pragma omp task
        {
            nap(1000);
            before = 1; // RACE before
        }
#pragma omp taskgroup
        {
#pragma omp task
            inside = 2; // NORACE: the group waits for it
        }
        seen = inside; // NORACE: after the group
        nap(100);
        seen += before; // RACE before: created in front of the group
        nap(2000);
    }
    printf("inside %d\n", inside); // NORACE: after the region
    return seen > 3;               // NORACE: after the region
}
