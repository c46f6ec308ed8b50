/* Thread-specific data by key: each thread has its own block, the destructor runs at the thread's end and adds to the
 * sum under a lock.
 *
 * Category: thread-local
 * Verdict: no race: a block belongs to its thread, destructor included, and the sum is read after the joins. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 30 };

struct block {
    long count;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void destroy(void *argument)
{
    struct block *block = argument;
    pthread_mutex_lock(&lock);
    sum += block->count; // NORACE: sum under the lock, the block is the dying thread's
    pthread_mutex_unlock(&lock);
    free(block);
}

static void make_key(void)
{
    pthread_key_create(&key, destroy);
}

__attribute__((noinline)) static struct block *mine(void)
{
    pthread_once(&once, make_key);
    struct block *block = pthread_getspecific(key);
    if (!block) {
        block = calloc(1, sizeof *block);
        if (!block) abort();
        pthread_setspecific(key, block);
    }
    return block;
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++)
        mine()->count++; // NORACE: thread-specific
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("sum %ld\n", sum); // NORACE: destructors run before the join returns
    return 0;
}
