/* OpenMP single and sections, wrong: `nowait` takes the barrier away.
 *
 * Category: openmp-region
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `setup` (single nowait) and on `left` (sections nowait). `late` comes after an explicit barrier. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3 };

int setup, left, late;
int copies[THREADS];

__attribute__((noinline)) static void make_left(void)
{
    left = 3; // RACE left
    usleep(200);
}

__attribute__((noinline)) static void make_late(void)
{
    late = 4; // NORACE: read after the barrier
    usleep(300);
}

int main(void)
{
#pragma omp parallel num_threads(THREADS)
    {
        int me = omp_get_thread_num();
#pragma omp single nowait
        {
            setup = 4; // RACE setup
            usleep(500);
        }
        usleep(100);
        copies[me] = setup; // RACE setup: no barrier
#pragma omp barrier
        usleep(100);
#pragma omp sections nowait
        {
#pragma omp section
            make_left();
#pragma omp section
            make_late();
        }
        usleep(100);
        copies[me] += left; // RACE left: no barrier
#pragma omp barrier
        copies[me] += late; // NORACE: after the barrier
    }
    printf("late %d\n", late); // NORACE: after the region
    return copies[0] > 11;     // NORACE: after the region
}
