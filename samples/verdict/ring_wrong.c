/* A ring of slots and two semaphores, wrong: more free slots are counted than the ring has, and the reader looks at the next slot too.
 *
 * Category: semaphore
 * Verdict: races on `crowded`, where the writer may come to a slot again that was not read yet, and on `ahead`, whose next slot is not
 * filled yet. `fine` is right. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { SLOTS = 4, ITEMS = 40 };

sem_t empty, filled, spare, used;
int crowded[SLOTS];
int ahead[SLOTS];
int fine[SLOTS];

static void *produce(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        sem_wait(&empty);
        ahead[i % SLOTS] = i; // RACE ahead: the reader looks at it before it is posted
        fine[i % SLOTS] = i;  // NORACE: a free slot
        sem_post(&filled);
    }
    return NULL;
}

static void *produce_too_much(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        sem_wait(&spare);
        crowded[i % SLOTS] = i; // RACE crowded: eight are free, they say
        sem_post(&used);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int sum = 0;
    sem_init(&empty, 0, SLOTS);
    sem_init(&filled, 0, 0);
    sem_init(&spare, 0, 2 * SLOTS);
    sem_init(&used, 0, 0);
    if (pthread_create(&threads[0], NULL, produce, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, produce_too_much, NULL)) return 2;
    for (int i = 0; i < ITEMS; i++) {
        sem_wait(&filled);
        sum += ahead[(i + 1) % SLOTS]; // RACE ahead: the slot behind the one that was posted
        sum += fine[i % SLOTS];        // NORACE: filled
        sem_post(&empty);
    }
    for (int i = 0; i < ITEMS; i++) {
        usleep(20);
        sem_wait(&used);
        sum += crowded[i % SLOTS]; // RACE crowded
        sem_post(&spare);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(sum > 0 ? "done" : "?");
    return fine[0] > ITEMS; // NORACE: after the joins
}
