/* OpenMP critical sections, wrong: two names for one variable, a test whose answer is ignored, a read outside.
 *
 * Category: openmp-lock
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `twice_named`, on `untested` and on `peeked`. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 20 };

long twice_named, untested, peeked;
omp_lock_t lock;
int sum;

__attribute__((noinline)) static void one(void)
{
#pragma omp critical(first)
    {
        twice_named++; // RACE twice_named: under `first`
        usleep(50);
    }
}

__attribute__((noinline)) static void two(void)
{
#pragma omp critical(second)
    twice_named += 2; // RACE twice_named: under `second`
    usleep(10);
    int had = omp_test_lock(&lock);
    untested++; // RACE untested: whether the lock was had or not
    usleep(20);
    if (had) omp_unset_lock(&lock);
}

__attribute__((noinline)) static void three(void)
{
#pragma omp critical(third)
    peeked++; // RACE peeked
    usleep(10);
    if (peeked < 0) // RACE peeked: outside of the section
        puts("?");
}

int main(void)
{
    omp_init_lock(&lock);
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < ROUNDS; i++) {
        one();
        two();
        three();
#pragma omp critical
        sum++; // NORACE: critical
    }
    printf("sum %d\n", sum); // NORACE: after the region
    return twice_named < 0 || untested > THREADS * ROUNDS; // NORACE: after the region
}
