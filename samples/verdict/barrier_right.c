/* Barriers: the serial thread (the one that gets PTHREAD_BARRIER_SERIAL_THREAD) does what only one may do.
 *
 * Category: barrier
 * Verdict: no race. Everything alternates between barriers; which thread is serial differs from round to round. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, ROUNDS = 20 };

static pthread_barrier_t barrier;
static int parts[THREADS];
static int sum;
static int rounds;

static void *work(void *argument)
{
    int me = (int)(long)argument;
    for (int round = 0; round < ROUNDS; round++) {
        parts[me] = me + sum; // NORACE: own part; the sum rests
        int code = pthread_barrier_wait(&barrier);
        if (code == PTHREAD_BARRIER_SERIAL_THREAD) {
            for (int i = 0; i < THREADS; i++)
                sum += parts[i]; // NORACE: one thread between two barriers
            sum %= 1000;         // NORACE: the same
            rounds++;            // NORACE: the same
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    printf("sum %d after %d rounds\n", sum, rounds); // NORACE: after the joins
    return 0;
}
