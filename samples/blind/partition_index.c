/* Threads share an array by their index: in blocks, in strides, and in blocks that overlap by one.
 *
 * Category: array-partition
 * Verdict: a race on `overlapping`, where the end of a block is taken as included. `blocks`, `strides` and the slots
 * per thread are disjoint. Telling the loops apart statically takes arithmetic on the index. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, CELLS = 64 };

struct slot {
    long sum;
    char padding[56];
};

int blocks[CELLS];
int strides[CELLS];
int overlapping[CELLS + 1];
struct slot slots[THREADS];

__attribute__((noinline)) static void fill_block(int me)
{
    for (int i = me * (CELLS / THREADS); i < (me + 1) * (CELLS / THREADS); i++)
        blocks[i] = i; // NORACE: disjoint blocks
}

__attribute__((noinline)) static void fill_stride(int me)
{
    for (int i = me; i < CELLS; i += THREADS)
        strides[i] = i; // NORACE: disjoint strides
}

__attribute__((noinline)) static void fill_overlapping(int me)
{
    for (int i = me * (CELLS / THREADS); i <= (me + 1) * (CELLS / THREADS); i++)
        overlapping[i] += 1; // RACE overlapping: the last of one block is the first of the next
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    fill_block(me);
    fill_stride(me);
    fill_overlapping(me);
    for (int i = me; i < CELLS; i += THREADS)
        slots[me].sum += strides[i]; // NORACE: own slot, own stride
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0;
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CELLS; i++)
        sum += blocks[i] + (overlapping[i] < 0); // NORACE: after the joins
    for (int i = 0; i < THREADS; i++)
        sum += slots[i].sum; // NORACE: after the joins
    printf("sum %ld\n", sum);
    return 0;
}
