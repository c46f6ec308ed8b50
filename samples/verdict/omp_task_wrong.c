/* OpenMP tasks, wrong: taskwait waits for children, not for grandchildren; siblings are not ordered.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Unseen: whenever one thread happens to run both tasks; clang's runtime runs small ones at once.
 * Verdict: races on `grand` (written by a grandchild, read after a taskwait) and on `siblings` (two tasks). A tool that
 * follows threads sees them only when different threads run the tasks. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3 };

int child, grand, siblings, seen;

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
#pragma omp task
            {
                nap(1000);
                grand = 2; // RACE grand
            }
            child = 1; // NORACE: taskwait waits for it
        }
#pragma omp taskwait
        seen = child;  // NORACE: after the taskwait
        seen += grand; // RACE grand: not waited for
#pragma omp task
        {
            siblings += 1; // RACE siblings
            nap(500);
        }
#pragma omp task
        {
            siblings += 2; // RACE siblings
            nap(600);
        }
        nap(1000);
    }
    printf("child %d, grand %d\n", child, grand); // NORACE: after the region
    return seen > 3 || siblings > 3;              // NORACE: after the region
}
