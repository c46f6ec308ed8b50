/* OpenMP taskloop with `nogroup`, which waits for nothing, and a doacross loop that names the wrong iteration.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `cells` (read while the tasks run) and on `wave` (waits for two iterations before, reads one
 * before). `done` is read after a taskwait. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, N = 30 };

int cells[N];
int done[N];
int wave[N + 2];
long early;

__attribute__((noinline)) static void fill(int i)
{
    cells[i] = i; // RACE cells
    done[i] = 1;  // NORACE: read after the taskwait
    usleep(20);
}

__attribute__((noinline)) static void look(void)
{
    for (int i = 0; i < N; i++)
        early += cells[i]; // RACE cells: nobody has waited
    usleep(10);
}

__attribute__((noinline)) static void advance(int i)
{
    wave[i + 2] = wave[i + 1] + 1; // RACE wave: the iteration before may be writing it
    usleep(20);
}

int main(void)
{
    int sum = 0;
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    {
#pragma omp taskloop grainsize(1) nogroup
        for (int i = 0; i < N; i++)
            fill(i);
        usleep(100);
        look();
#pragma omp taskwait
        for (int i = 0; i < N; i++)
            sum += done[i]; // NORACE: after the taskwait
    }
#pragma omp parallel for ordered(1) schedule(dynamic, 1) num_threads(THREADS)
    for (int i = 0; i < N; i++) {
#pragma omp ordered depend(sink : i - 2)
        advance(i);
#pragma omp ordered depend(source)
    }
    printf("sum %d\n", sum); // NORACE: after the region
    return early > N * N;    // NORACE: after the region
}
