/* OpenMP critical sections, named and unnamed, OpenMP locks, nested locks.
 *
 * Category: openmp-lock
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: no race. Each variable has one guard. */
#include <omp.h>
#include <stdio.h>

enum { THREADS = 3, ROUNDS = 50 };

static long plain, named, locked, nested;
static omp_lock_t lock;
static omp_nest_lock_t nest;

__attribute__((noinline)) static void deeper(void)
{
    omp_set_nest_lock(&nest);
    nested++; // NORACE: under the nestable lock
    omp_unset_nest_lock(&nest);
}

int main(void)
{
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(THREADS)
    {
        for (int i = 0; i < ROUNDS; i++) {
#pragma omp critical
            plain++; // NORACE: critical
#pragma omp critical(other)
            named++; // NORACE: critical of its own name
            omp_set_lock(&lock);
            locked++; // NORACE: under the lock
            omp_unset_lock(&lock);
            if (omp_test_lock(&lock)) {
                locked += 0 * i; // NORACE: the lock was had
                omp_unset_lock(&lock);
            }
            omp_set_nest_lock(&nest);
            deeper();
            nested++; // NORACE: the inner unset released nothing
            omp_unset_nest_lock(&nest);
        }
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    printf("%ld %ld %ld %ld\n", plain, named, locked, nested); // NORACE: after the region
    return 0;
}
