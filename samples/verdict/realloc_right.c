/* A growing array: realloc moves it, under the lock, and no pointer into it survives an unlock.
 *
 * Category: heap
 * Verdict: no race. The block that realloc leaves behind is nobody's any more when it is given out again. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *items;
static int count, room;

__attribute__((noinline)) static void append(int item)
{
    pthread_mutex_lock(&lock);
    if (count == room) { // NORACE: under the lock
        room = room ? 2 * room : 4;
        items = realloc(items, (size_t)room * sizeof *items); // NORACE: under the lock
        if (!items) abort();
    }
    items[count++] = item; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    int step = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        append(step);
        int *scratch = malloc(64); // may be a block that realloc has left
        if (!scratch) abort();
        scratch[3] = i; // NORACE: fresh memory
        free(scratch);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    long sum = 0;
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1))) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        sum += items[i]; // NORACE: after the joins
    printf("sum %ld\n", sum);
    free(items);
    return 0;
}
