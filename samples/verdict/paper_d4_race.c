/* D4, figure 2(a), in C: two threads, two locks, x and y. Change 1 inserts `x = 2` into the second thread, under the
 * wrong lock. paper_d4_deadlock.c is the next edit. Without the change (-DCHANGE=0) there is no race.
 *
 * Category: paper
 * Verdict: a race on `x`. `y` is under l2 on both sides. No deadlock: the second thread takes one lock. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#ifndef CHANGE
#define CHANGE 1
#endif

pthread_mutex_t l1 = PTHREAD_MUTEX_INITIALIZER, l2 = PTHREAD_MUTEX_INITIALIZER;
int x, y;

static void *t1(void *unused)
{
    (void)unused;
    usleep(2000);
    pthread_mutex_lock(&l1); // NORACE: no deadlock
    x = 1;                   // RACE x: under l1
    pthread_mutex_lock(&l2); // NORACE: no deadlock
    y = 1;                   // NORACE: under l2
    pthread_mutex_unlock(&l2);
    pthread_mutex_unlock(&l1);
    return NULL;
}

static void *t2(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&l2); // NORACE: no deadlock
    y += 2;                  // NORACE: under l2
    usleep(10);
#if CHANGE >= 1
    x = 2; // RACE x: under l2
#endif
    pthread_mutex_unlock(&l2);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, t1, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, t2, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(x <= 2 && y <= 3 ? "done" : "?"); // NORACE: after the joins
    return 0;
}
