/* The dissertation's figure 5.3, in C: x and y, two threads, and two functions that they share. The paper's edits are
 * the call of m2 in the first thread (added by -DCHANGE=1 and more, the default) and `y = 0` in m2 (removed by
 * -DCHANGE=2).
 *
 * Category: paper
 * Verdict: that of CHANGE 1: races on `x` between all its users but main, and on `y` between the second thread's write
 * and m2 in the first, and between m2 in both. Main writes before the threads. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#ifndef CHANGE
#define CHANGE 1
#endif

int x, y;
int printed[2];

__attribute__((noinline)) void print(int *where, const int *what)
{
    *where = *what + 1; // RACE x: the print of the figure
    usleep(5);
}

__attribute__((noinline)) void m1(int *where)
{
    x = 3; // RACE x
    usleep(5);
    print(where, &x);
}

__attribute__((noinline)) void m2(void)
{
    x = 2; // RACE x
    usleep(5);
#if CHANGE <= 1
    y = 0; // RACE y
    usleep(5);
#endif
}

static void *t1(void *unused)
{
    (void)unused;
    x = 1; // RACE x
    usleep(5);
    m1(&printed[0]);
#if CHANGE >= 1
    m2();
#endif
    return NULL;
}

__attribute__((noinline)) int read_x(const int *from)
{
    int value = *from; // RACE x: the read in `y = x`
    usleep(5);
    return value;
}

static void *t2(void *unused)
{
    (void)unused;
    y = read_x(&x); // RACE y
    usleep(5);
    m1(&printed[1]);
    m2();
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    x = 0; // NORACE: before the threads
    y = 5; // NORACE: before the threads
    if (pthread_create(&threads[0], NULL, t1, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, t2, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(printed[0] > 0 && printed[1] > 0 ? "done" : "?"); // NORACE: after the joins
    return x > 3 || y > 5;                                 // NORACE: after the joins
}
