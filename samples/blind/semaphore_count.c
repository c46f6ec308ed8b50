/* Semaphores: one that starts at 0 hands data over, one that starts at 1 is a lock, and one that starts at 2 is not.
 *
 * Category: semaphore
 * Verdict: a race on `crowded`, where two threads may be inside at a time. `single` and `handed` are right. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 200, CELLS = 10 };

sem_t filled;  // 0: posted when `handed` is written
sem_t mutex;   // 1: one at a time
sem_t limited; // 2: two at a time
int handed[CELLS];
long single;
long crowded;

static void *fill(void *unused)
{
    (void)unused;
    for (int i = 0; i < CELLS; i++)
        handed[i] = i + 1; // NORACE: before the post
    sem_post(&filled);
    return NULL;
}

static void *count(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&mutex);
        single++; // NORACE: a binary semaphore
        sem_post(&mutex);
    }
    return NULL;
}

static void *crowd(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        sem_wait(&limited);
        crowded++; // RACE crowded
        usleep(500);
        sem_post(&limited);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[6];
    int sum = 0;
    sem_init(&filled, 0, 0);
    sem_init(&mutex, 0, 1);
    sem_init(&limited, 0, 2);
    if (pthread_create(&threads[0], NULL, fill, NULL)) return 2;
    for (int i = 1; i < 3; i++)
        if (pthread_create(&threads[i], NULL, count, NULL)) return 2;
    for (int i = 3; i < 6; i++)
        if (pthread_create(&threads[i], NULL, crowd, NULL)) return 2;
    sem_wait(&filled);
    for (int i = 0; i < CELLS; i++)
        sum += handed[i]; // NORACE: after the wait that the post allowed
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    printf("sum %d, single %ld\n", sum, single); // NORACE: after the joins
    return crowded > 3 * 10;                     // NORACE: after the joins
}
