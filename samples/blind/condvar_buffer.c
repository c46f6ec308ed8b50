/* A bounded buffer with two condition variables, used as the textbook says, and a statistics counter that is not.
 *
 * Category: condvar
 * Verdict: a race on `buffer.high`, which main polls without the lock. Items that pass through the buffer are written
 * before the hand-over and read after it, without a lock of their own, which is right. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY = 4, ITEMS = 300 };

struct item {
    int number;
    int square;
};

struct buffer {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct item *slots[CAPACITY];
    int count, first;
    int high;
};

struct buffer buffer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0};

static void put(struct buffer *b, struct item *item)
{
    pthread_mutex_lock(&b->lock);
    while (b->count == CAPACITY) // NORACE: under the lock
        pthread_cond_wait(&b->not_full, &b->lock);
    b->slots[(b->first + b->count) % CAPACITY] = item; // NORACE: the wait returns with the lock held
    b->count++;                                        // NORACE: the same
    if (b->count > b->high)
        b->high = b->count; // RACE high: with main's look
    pthread_cond_signal(&b->not_empty);
    pthread_mutex_unlock(&b->lock);
}

static struct item *get(struct buffer *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->count == 0) // NORACE: under the lock
        pthread_cond_wait(&b->not_empty, &b->lock);
    struct item *item = b->slots[b->first]; // NORACE: under the lock
    b->first = (b->first + 1) % CAPACITY;   // NORACE: under the lock
    b->count--;                             // NORACE: under the lock
    pthread_cond_signal(&b->not_full);
    pthread_mutex_unlock(&b->lock);
    return item;
}

static void *produce(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = malloc(sizeof *item);
        if (!item) abort();
        item->number = i;     // NORACE: not handed over yet
        item->square = i * i; // NORACE: not handed over yet
        put(&buffer, item);
    }
    return NULL;
}

static void *consume(void *result)
{
    long sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = get(&buffer);
        sum += item->square - item->number; // NORACE: it is ours now
        free(item);
    }
    *(long *)result = sum; // NORACE: read after the join
    return NULL;
}

int main(void)
{
    pthread_t producer, consumer;
    long sum = 0;
    if (pthread_create(&producer, NULL, produce, NULL)) return 2;
    if (pthread_create(&consumer, NULL, consume, &sum)) return 2;
    int seen = buffer.high; // RACE high
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    printf("sum %ld\n", sum);                           // NORACE: after the joins
    return seen > CAPACITY || buffer.high > CAPACITY; // NORACE: after the joins
}
