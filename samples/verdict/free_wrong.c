/* Memory that is freed while another thread still uses it. So that the program does nothing really bad, the user is
 * through with it 50 ms before the free; but nothing orders the two.
 *
 * Category: heap
 * Verdict: a race between `free` (which counts as a write of the block) and the reads in `user`. The pointer and the
 * writes before the post are in order. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct buffer {
    int length;
    char text[60];
};

sem_t shown;
struct buffer *buffer;

static void *user(void *unused)
{
    (void)unused;
    sem_wait(&shown);
    struct buffer *mine = buffer; // NORACE: before the post
    int sum = mine->length;       // RACE block: against the free
    sum += mine->text[sum];       // RACE block: against the free
    usleep(10);
    return (void *)(long)sum;
}

static void *owner(void *unused)
{
    (void)unused;
    buffer = malloc(sizeof *buffer);
    if (!buffer) abort();
    buffer->length = 5;   // NORACE: before the post
    buffer->text[5] = 37; // NORACE: before the post
    sem_post(&shown);
    usleep(50000);
    free(buffer); // RACE block
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    void *sum;
    sem_init(&shown, 0, 0);
    if (pthread_create(&threads[0], NULL, user, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, owner, NULL)) return 2;
    pthread_join(threads[0], &sum);
    pthread_join(threads[1], NULL);
    printf("sum %ld\n", (long)sum);
    return 0;
}
