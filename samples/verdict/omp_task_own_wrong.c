/* What tasks have for their own, wrong: all threads of a team make tasks with the same numbers; a loop makes them again before the
 * first ones have ended; and a function reads its variable before it has waited for the task that fills it.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `team`, `twice` and on `low` of `half`. `own` is right. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, N = 30 };

int team[N], twice[N], own[N];

__attribute__((noinline)) static int half(int n)
{
    int low = 0, early;
    if (n < 2) return n;
#pragma omp task shared(low)
    {
        usleep(20);
        low = half(n / 2); // RACE low: the function looks before it waits
    }
    usleep(20);
    early = low; // RACE low: before the taskwait
#pragma omp taskwait
    return low + n - n / 2 + (early > n); // NORACE: after the taskwait
}

int main(void)
{
    int number = 0;
#pragma omp parallel num_threads(THREADS)
    {
        for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(i)
            {
                usleep(5);
                team[i]++; // RACE team: the other threads make such a task, too
            }
        }
#pragma omp taskwait
#pragma omp barrier
#pragma omp single
        {
            for (int round = 0; round < 2; round++) {
                for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(i)
                    {
                        usleep(5);
                        twice[i]++; // RACE twice: the next round makes it again
                    }
                }
            }
            for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(i)
                own[i]++; // NORACE: one task for each
            }
            number = half(20);
        }
    }
    printf("%d\n", number); // NORACE: after the region
    return 0;
}
