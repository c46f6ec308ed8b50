/* OpenMP task dependences, wrong: an `in` where `inout` was meant, and a dependence on another variable.
 *
 * Category: openmp-task
 * Build: -fopenmp
 * Alarm: gcc helgrind drd: the runtime library's own synchronisation is not instrumented.
 * Unseen: whenever one thread happens to run both tasks.
 * Verdict: races on `shared` (two `in` tasks write it) and on `hidden` (the tasks depend on different variables).
 * `source` is right. */
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3 };

int source, shared, hidden, tag_one, tag_two;

__attribute__((noinline)) static void first_half(void)
{
    shared += source; // RACE shared
    usleep(500);
}

__attribute__((noinline)) static void second_half(void)
{
    shared -= source; // RACE shared
    usleep(600);
}

__attribute__((noinline)) static void hide(int value)
{
    hidden = value; // RACE hidden
    usleep(400);
}

int main(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    {
#pragma omp task depend(out : source)
        source = 5; // NORACE: before the tasks that read it
#pragma omp task depend(in : source)
        first_half();
#pragma omp task depend(in : source)
        second_half();
#pragma omp task depend(out : tag_one)
        hide(1);
#pragma omp task depend(out : tag_two)
        hide(2);
        usleep(1000);
    }
    printf("source %d\n", source);    // NORACE: after the region
    return shared > 5 || hidden > 2; // NORACE: after the region
}
