/* D4, figure 2(b), in C: the race of paper_d4_race.c is repaired by taking l1 around `x = 2`, which makes a deadlock of
 * it. The second thread comes 100 ms later, so that it hardly ever strikes.
 *
 * Category: paper
 * Verdict: a deadlock of l1 and l2; no race on `x` and `y` any more. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

pthread_mutex_t l1 = PTHREAD_MUTEX_INITIALIZER, l2 = PTHREAD_MUTEX_INITIALIZER;
int x, y;

static void *t1(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&l1); // DEADLOCK
    x = 1;                   // NORACE: under l1
    pthread_mutex_lock(&l2); // DEADLOCK
    y = 1;                   // NORACE: under l2
    pthread_mutex_unlock(&l2);
    pthread_mutex_unlock(&l1);
    return NULL;
}

static void *t2(void *unused)
{
    (void)unused;
    usleep(100000);
    pthread_mutex_lock(&l2); // DEADLOCK
    y += 2;                  // NORACE: under l2
    pthread_mutex_lock(&l1); // DEADLOCK
    x = 2;                   // NORACE: under l1
    pthread_mutex_unlock(&l1);
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
