/* OpenMP tasks and sections: what taskwait orders, what nothing orders, and sections that share.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Verdict: races on `early`, read by the parent before any taskwait, on `clash`, written by two sections, and on
 * `unlocked`; not on the children's results after the taskwait, nor on `locked` in a critical section.
 * A tool that follows threads, not tasks, sees the race on `early` only when another thread ran the task. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3 };

int left, right;
int early;
int clash;
int locked, unlocked;

__attribute__((noinline)) static int fibonacci(int n)
{
    int a, b;
    if (n < 2) return n;
#pragma omp task shared(a) if (n > 5)
    a = fibonacci(n - 1); // NORACE: taskwait before the parent reads
    b = fibonacci(n - 2); // NORACE: the parent's own
#pragma omp taskwait
    return a + b; // NORACE: after the taskwait
}

__attribute__((noinline)) static void do_left(void)
{
    usleep(500);
    left = 1;  // NORACE: one section only
    clash = 1; // RACE clash
}

__attribute__((noinline)) static void do_right(void)
{
    usleep(500);
    right = 2;  // NORACE: one section only
    clash += 2; // RACE clash
}

__attribute__((noinline)) static void sections(void)
{
#pragma omp parallel sections num_threads(THREADS)
    {
#pragma omp section
        do_left();
#pragma omp section
        do_right();
    }
}

int main(void)
{
    int number = 0, seen = 0;
#pragma omp parallel num_threads(THREADS)
    {
#pragma omp single
        {
#pragma omp task
            early = 4; // RACE early
            usleep(1000);
            seen = early; // RACE early
            number = fibonacci(9); // NORACE: one thread executes the single
        }
#pragma omp critical
        locked++; // NORACE: critical
        unlocked++; // RACE unlocked
    }
    sections();
    printf("%d %d %d %d\n", number, left, right, locked); // NORACE: after the regions
    return seen > 4 || clash > 3 || unlocked > THREADS;   // NORACE: after the regions
}
