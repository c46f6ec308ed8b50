/* A target region that is a task, and is not waited for.
 *
 * Verdict: races on `early`, which is read before the wait, and on `both`, since the other task does not depend on it. */
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 20, WHILE = 2000 };

static int early, both;

int main(void)
{
    int seen = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(4)
#pragma omp single
        {
#pragma omp target nowait map(tofrom : early)
            early++; // RACE early
            usleep(WHILE); /* for another thread to take it */
            seen += early; // RACE early: too early
#pragma omp taskwait
            seen += early; // NORACE: after the wait
#pragma omp target nowait map(tofrom : both) depend(inout : both)
            {
                usleep(WHILE);
                both++; // RACE both
            }
#pragma omp task shared(both)
            {
                usleep(WHILE);
                both++; // RACE both: no dependence
            }
            usleep(3 * WHILE);
        }
    }
    printf("%d\n", seen != 1);
    return 0;
}
