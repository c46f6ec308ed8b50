/* Three dining philosophers, each takes the fork at his left first. They sit down 60 ms apart, so that the circle is
 * possible but hardly ever closes. No two of them have opposite orders: the cycle has three edges.
 *
 * Category: deadlock
 * Verdict: a deadlock of three locks, through one function that runs in three threads on different elements of an array
 * (`forks[me]`, `forks[(me + 1) % 3]`). */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { SEATS = 3 };

struct fork {
    pthread_mutex_t lock;
    int used;
};

struct fork forks[SEATS];

static void *dine(void *argument)
{
    int me = (int)(long)argument;
    struct fork *left = &forks[me], *right = &forks[(me + 1) % SEATS];
    usleep(60000u * (unsigned)me);
    pthread_mutex_lock(&left->lock);  // DEADLOCK
    pthread_mutex_lock(&right->lock); // DEADLOCK
    left->used++;                     // NORACE: the lock of the same fork
    right->used++;                    // NORACE: the lock of the same fork
    pthread_mutex_unlock(&right->lock);
    pthread_mutex_unlock(&left->lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[SEATS];
    for (int i = 0; i < SEATS; i++)
        pthread_mutex_init(&forks[i].lock, NULL);
    for (long i = 0; i < SEATS; i++)
        if (pthread_create(&threads[i], NULL, dine, (void *)i)) return 2;
    for (int i = 0; i < SEATS; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d\n", forks[0].used, forks[1].used, forks[2].used); // NORACE: after the joins
    return 0;
}
