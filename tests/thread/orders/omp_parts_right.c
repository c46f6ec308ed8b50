/* Loops and regions whose tasks reduce into parts, which one thread makes for all and the last one combines.
 *
 * Verdict: no race. */
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 30, NUMBERS = 40 };

typedef struct {
    long sum[100];
} total;
static void clear(total *t)
{
    memset(t, 0, sizeof *t); // NORACE: before the parts are used
}
#pragma omp declare reduction(join:total : omp_out.sum[7] += omp_in.sum[7]) initializer(clear(&omp_priv))

int main(void)
{
    long all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int sum = 0, count = 0;
        total many;
        clear(&many);
#pragma omp parallel for reduction(task, + : sum) num_threads(4)
        for (int i = 0; i < NUMBERS; i++) {
#pragma omp task in_reduction(+ : sum) firstprivate(i)
            sum += i; // NORACE: a part of the thread's own
        }
#pragma omp parallel reduction(task, + : count) reduction(task, join : many) num_threads(4)
        for (int i = 0; i < NUMBERS; i++) {
#pragma omp task in_reduction(+ : count) in_reduction(join : many)
            {
                count++;       // NORACE: a part of the thread's own
                many.sum[7]++; // NORACE: likewise
            }
        }
        all += sum + count + many.sum[7]; // NORACE: after the regions
    }
    printf("%ld\n", all);
    return 0;
}
