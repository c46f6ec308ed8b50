/* Tasks of a region that reduce into parts, and count in a variable that is none; what makes a part is counted by each thread.
 *
 * Verdict: races on `extra`, which no clause names, and on `late`, which a thread writes before and another one after the parts
 * are made. */
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 5, NUMBERS = 40, WHILE = 100 };

static int extra, late;

int main(void)
{
    long all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int sum = 0;
#pragma omp parallel reduction(task, + : sum) num_threads(4)
        {
            late++; // RACE late: the parts are made before, and order nothing afterwards
            for (int i = 0; i < NUMBERS; i++) {
#pragma omp task in_reduction(+ : sum)
                {
                    usleep(WHILE);
                    sum++;   // NORACE: a part of the thread's own
                    extra++; // RACE extra
                }
            }
        }
        all += sum;
    }
    printf("%d\n", all + extra + late != 1);
    return 0;
}
