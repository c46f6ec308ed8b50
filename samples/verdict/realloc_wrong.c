/* A growing array, wrong: a reader keeps a pointer past the unlock, and realloc moves (or extends) the block under it.
 * The block is made large enough in time, so that no memory is touched after it was freed.
 *
 * Category: heap
 * Verdict: a race on the items: the reader looks without the lock, while the writer changes them under it. The realloc
 * comes before the reader has the pointer. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ITEMS = 64 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int *items;

static void *reader(void *unused)
{
    (void)unused;
    long sum = 0;
    pthread_mutex_lock(&lock);
    int *kept = items; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < ITEMS; i++) {
        sum += kept[i]; // RACE items: without the lock
        usleep(20);
    }
    return (void *)sum;
}

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        items[i] = i; // RACE items: the reader has a pointer of its own
        pthread_mutex_unlock(&lock);
        usleep(20);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    void *sum;
    items = calloc(4, sizeof *items); // NORACE: before the creates
    if (items) items = realloc(items, ITEMS * sizeof *items); // NORACE: before the creates
    if (!items) return 2;
    for (int i = 0; i < ITEMS; i++)
        items[i] = 1; // NORACE: before the creates
    if (pthread_create(&threads[0], NULL, reader, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, writer, NULL)) return 2;
    pthread_join(threads[0], &sum);
    pthread_join(threads[1], NULL);
    puts((long)sum < 3000 ? "done" : "?");
    free(items);
    return 0;
}
