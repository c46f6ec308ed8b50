/* Target regions that are tasks: one that is waited for, and one between tasks that depend on each other.
 *
 * Verdict: no race. */
#include <stdio.h>

enum { ROUNDS = 40 };

static int number, seen, chained, copied;

int main(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        number = round; // NORACE: after the region before, before the task
#pragma omp parallel num_threads(4)
#pragma omp single
        {
#pragma omp target nowait map(tofrom : number)
            number++; // NORACE: after it is created
#pragma omp taskwait
            seen += number; // NORACE: after the wait
#pragma omp task depend(out : chained) shared(chained)
            chained = round; // NORACE: first
#pragma omp target nowait map(tofrom : chained) depend(inout : chained)
            chained++; // NORACE: then
#pragma omp target update to(chained) nowait depend(inout : chained)
#pragma omp task depend(in : chained) shared(chained, copied)
            copied = chained; // NORACE: last
        }
        seen += copied; // NORACE: after the region
    }
    printf("%d %d\n", seen, chained);
    return 0;
}
