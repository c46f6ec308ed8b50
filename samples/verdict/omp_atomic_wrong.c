/* OpenMP atomic, wrong: an update that is atomic on one side only, and two atomic steps that are not one.
 *
 * Category: openmp-lock
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * (gcc puts the access on the line of the pragma, hence both on one line.)
 * Verdict: races on `mixed` (a plain read against atomic updates) and on `slots`, whose index was read but not taken.
 * `counter` is right. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 50 };

long mixed, tickets, counter;
long slots[THREADS * ROUNDS + 1];
long watched;

__attribute__((noinline)) static void take(void)
{
    long mine;
    _Pragma("omp atomic read") mine = tickets; // NORACE: atomic
    slots[mine]++; // RACE slots: others may have read the same ticket
    usleep(10);
    _Pragma("omp atomic") tickets++; // NORACE: atomic
}

int main(void)
{
#pragma omp parallel num_threads(THREADS)
    {
        for (int i = 0; i < ROUNDS; i++) {
            _Pragma("omp atomic") mixed++; // RACE mixed: with the plain read
            _Pragma("omp atomic") counter++; // NORACE: atomic everywhere
            take();
        }
        if (omp_get_thread_num() == 0)
            watched = mixed; // RACE mixed: not atomic
    }
    printf("counter %ld\n", counter);      // NORACE: after the region
    return watched > THREADS * ROUNDS; // NORACE: after the region
}
