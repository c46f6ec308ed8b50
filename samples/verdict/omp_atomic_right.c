/* OpenMP atomic: update, capture, read, write, and a flag with seq_cst that publishes plain data.
 *
 * Category: openmp-lock
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * (gcc puts the access on the line of the pragma, hence both on one line.)
 * Verdict: no race. */
#include <stdio.h>

enum { THREADS = 3, ROUNDS = 100 };

static long counter, tickets, flag;
static long slots[THREADS * ROUNDS];
static int payload, seen;

int main(void)
{
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < ROUNDS; i++) {
        long mine;
        _Pragma("omp atomic") counter += 2; // NORACE: atomic
        _Pragma("omp atomic capture") mine = tickets++; // NORACE: atomic
        slots[mine]++;    // NORACE: nobody else has that ticket
    }
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
            payload = 9; // NORACE: before the flag
            _Pragma("omp atomic write seq_cst") flag = 1; // NORACE: atomic
        }
#pragma omp section
        {
            long ready = 0;
            for (int i = 0; i < 100000 && !ready; i++) {
                _Pragma("omp atomic read seq_cst") ready = flag; // NORACE: atomic
            }
            if (ready) seen = payload; // NORACE: after the flag
        }
    }
    long sum = 0;
    for (int i = 0; i < THREADS * ROUNDS; i++)
        sum += slots[i]; // NORACE: after the region
    printf("counter %ld, sum %ld\n", counter, sum); // NORACE: after the region
    return seen != 9 && seen != 0;                  // NORACE: after the region
}
