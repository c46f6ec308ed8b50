/* Thread-specific data, wrong: destructors of several threads write one sum without a lock, and main looks at it before
 * the joins; and a thread hands its block to another.
 *
 * Category: thread-local
 * Verdict: races on `sum` (in the destructors, and main's look) and on `count` of the block that main was shown. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct block {
    long count;
    long spare;
};

pthread_key_t key;
sem_t shown;
long sum;

static void destroy(void *argument)
{
    struct block *block = argument;
    sum += block->spare; // RACE sum: other threads die too
}

static void *work(void *argument)
{
    struct block *block = argument;
    block->spare = 5; // NORACE: before the post, and this thread's
    pthread_setspecific(key, block);
    sem_post(&shown);
    block->count++; // RACE count: main was shown the block
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    struct block *blocks = calloc(2, sizeof *blocks);
    if (!blocks) abort();
    pthread_key_create(&key, destroy);
    sem_init(&shown, 0, 0);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &blocks[i])) return 2;
    for (int i = 0; i < 2; i++)
        sem_wait(&shown);
    long seen = blocks[0].spare; // NORACE: both have posted
    seen += blocks[0].count;     // RACE count
    usleep(1000);
    seen += sum; // RACE sum: the threads are not joined yet
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("count %ld\n", blocks[1].count); // NORACE: after the joins
    free(blocks);
    return seen > 16;
}
