/* Semaphores, wrong: posted before the data is written, a trywait whose answer is ignored, and one post for two
 * writers.
 *
 * Category: semaphore
 * Unseen: `second_writer[1]`, whose writer nearly always posts first.
 * Verdict: races on `after_post`, on `unanswered` and on `second_writer` (main waits for one of the two threads). */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

sem_t ready, gate, either;
int before_post;
int after_post;
int unanswered;
int second_writer[2];

static void *first(void *unused)
{
    (void)unused;
    before_post = 1; // NORACE: before the post
    sem_post(&ready);
    after_post = 2; // RACE after_post
    sem_wait(&gate);
    unanswered = 1; // RACE unanswered
    usleep(10000);
    sem_post(&gate);
    second_writer[0] = 1; // RACE second_writer: whichever posts later
    sem_post(&either);
    return NULL;
}

static void *second(void *unused)
{
    (void)unused;
    usleep(2000);
    int busy = sem_trywait(&gate);
    unanswered += 2; // RACE unanswered: the gate may be closed
    if (!busy) sem_post(&gate);
    second_writer[1] = 2; // RACE second_writer: whichever posts later
    sem_post(&either);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    sem_init(&ready, 0, 0);
    sem_init(&gate, 0, 1);
    sem_init(&either, 0, 0);
    if (pthread_create(&threads[0], NULL, first, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, second, NULL)) return 2;
    sem_wait(&ready);
    int sum = before_post; // NORACE: after the wait
    sum += after_post;     // RACE after_post
    sem_wait(&either);
    sum += second_writer[0] + second_writer[1]; // RACE second_writer: only one has posted for sure
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", second_writer[0], second_writer[1]); // NORACE: after the joins
    return sum > 6;
}
