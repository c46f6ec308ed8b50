/* Semaphores: a pool of buffers whose free slots are counted by one and filled ones by another; try and timed variants.
 *
 * Category: semaphore
 * Verdict: no race. One producer and one consumer: positions belong to one thread each, slots change hands by the
 * semaphores. A binary semaphore guards the log, also through sem_trywait and sem_timedwait. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

enum { SLOTS = 4, ITEMS = 100 };

static sem_t empty, filled, gate;
static int slots[SLOTS];
static long lines;

static void *produce(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        sem_wait(&empty);
        slots[i % SLOTS] = i; // NORACE: the consumer has posted this slot
        sem_post(&filled);
        while (sem_trywait(&gate))
            sched_yield();
        lines++; // NORACE: through the gate
        sem_post(&gate);
    }
    return NULL;
}

static void *consume(void *result)
{
    long sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        sem_wait(&filled);
        sum += slots[i % SLOTS]; // NORACE: the producer has posted this slot
        sem_post(&empty);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 5;
        if (sem_timedwait(&gate, &until)) continue;
        lines++; // NORACE: through the gate
        sem_post(&gate);
    }
    *(long *)result = sum; // NORACE: own result
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    long sum = 0;
    sem_init(&empty, 0, SLOTS);
    sem_init(&filled, 0, 0);
    sem_init(&gate, 0, 1);
    if (pthread_create(&threads[0], NULL, produce, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, consume, &sum)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("sum %ld, lines %ld\n", sum, lines); // NORACE: after the joins
    return 0;
}
