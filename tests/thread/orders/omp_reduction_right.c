/* Tasks that reduce into copies of their own, which the runtime combines at the end of their group, and a construct
 * that waits for the dependences of tasks in front of it.
 *
 * Verdict: no race. */
#include <stdio.h>

typedef struct {
    long sum, count;
} total;
#pragma omp declare reduction(join:total                                                                               \
                              : (omp_out.sum += omp_in.sum, omp_out.count += omp_in.count))                            \
    initializer(omp_priv = (total){0, 0})

static long data[64];

int main(void)
{
    total all = {0, 0};
    long average = 0, copy = 0;
    for (int i = 0; i < 64; i++)
        data[i] = i;
#pragma omp parallel num_threads(4)
#pragma omp single
    {
#pragma omp taskgroup task_reduction(join : all)
        for (int i = 0; i < 64; i++) {
#pragma omp task in_reduction(join : all)
            {
                all.sum += data[i]; // NORACE: a copy of the thread's own
                all.count++;        // NORACE: likewise
            }
        }
#pragma omp task depend(out : average) shared(average, all)
        average = all.sum / all.count; // NORACE: after the group
#pragma omp target depend(inout : average) map(tofrom : average)
        average++; // NORACE: after the task
#pragma omp task depend(in : average) depend(out : copy) shared(average, copy)
        copy = average; // NORACE: after the construct
    }
    printf("%ld %ld %ld\n", all.sum, average, copy); // NORACE: after the region
    return 0;
}
