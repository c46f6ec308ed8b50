/* OpenMP loops with other schedules, wrong: with `dynamic` no iteration belongs to a known thread, so `nowait` loops
 * that were right with `static` are not; and a slot by thread number that a nested region shares.
 *
 * Category: openmp-loop
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `first` (between the two dynamic loops) and on `slots` (a slot for two). */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, N = 60 };

int first[N], second[N];
long slots[2];
int own[THREADS];

__attribute__((noinline)) static void produce(int i)
{
    first[i] = i; // RACE first
    usleep(10);
}

__attribute__((noinline)) static void consume(int i)
{
    second[i] = first[i] + 1; // RACE first: whoever wrote it
    usleep(10);
}

__attribute__((noinline)) static void count(int me)
{
    slots[me % 2] += me; // RACE slots: two threads to a slot
    usleep(10);
}

int main(void)
{
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int i = 0; i < N; i++)
            produce(i);
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < N; i++)
            consume(N - 1 - i);
        int me = omp_get_thread_num();
        own[me] = me; // NORACE: one thread to an element
        count(me);
    }
    int sum = 0;
    for (int i = 0; i < THREADS; i++)
        sum += own[i]; // NORACE: after the region
    printf("sum %d\n", sum);
    return second[0] > N; // NORACE: after the region
}
