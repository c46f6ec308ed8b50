/* Threads compute in phases between barriers, each reading its neighbour's result of the phase before.
 *
 * Category: barrier
 * Verdict: a race on the elements of `hasty`, where the barrier between write and read of the neighbour is forgotten.
 * `now` and `next` are separated by barriers in both directions. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, PHASES = 20 };

pthread_barrier_t barrier;
int now[THREADS];
int next[THREADS];
int hasty[THREADS];

static void *work(void *argument)
{
    int me = (int)(long)argument;
    int neighbour = (me + 1) % THREADS;
    int wrong = 0;
    now[me] = me; // NORACE: own element
    pthread_barrier_wait(&barrier);
    for (int phase = 0; phase < PHASES; phase++) {
        next[me] = now[neighbour] + 1; // NORACE: `now` rests between the two barriers
        pthread_barrier_wait(&barrier);
        now[me] = next[me]; // NORACE: nobody looks at `now` here
        usleep(50);         // all have left the barrier by now
        hasty[me] = phase;  // RACE hasty: the neighbour may be reading it
        wrong += hasty[neighbour] > PHASES; // RACE hasty: no barrier in between
        pthread_barrier_wait(&barrier);
    }
    return (void *)(long)wrong;
}

int main(void)
{
    pthread_t threads[THREADS];
    long wrong = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    int sum = 0;
    for (int i = 0; i < THREADS; i++)
        sum += now[i]; // NORACE: after the joins
    printf("sum %d\n", sum);
    return wrong != 0;
}
