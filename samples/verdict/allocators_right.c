/* The whole malloc family: posix_memalign, aligned_alloc, reallocarray, strdup, mremap, alloca; memory of one thread
 * that was another's before.
 *
 * Category: heap
 * Verdict: no race: what is freed by one thread and allocated by the next is a new object. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 40 };

__attribute__((noinline)) static long fill(long *block, int count, long value)
{
    for (int i = 0; i < count; i++)
        block[i] = value + i; // NORACE: own memory
    return block[count - 1];  // NORACE: own memory
}

static void *work(void *argument)
{
    long me = (long)argument, sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        void *aligned = NULL;
        if (posix_memalign(&aligned, 64, 128)) abort();
        long *other = aligned_alloc(64, 192), *array = reallocarray(NULL, 10, sizeof *array);
        char *text = strdup("some text"); // NORACE: a constant
        if (!other || !array || !text) abort();
        sum += fill(aligned, 16, me) + fill(other, 24, me) + fill(array, 10, me);
        array = reallocarray(array, 20, sizeof *array); // NORACE: own memory
        if (!array) abort();
        sum += fill(array, 20, i);
        sum += fill(alloca(8 * sizeof(long)), 8, i);
        text[0] = (char)i; // NORACE: own memory
        free(aligned);
        free(other);
        free(array);
        free(text);
        long *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) abort();
        page[1] = i; // NORACE: own memory
        page = mremap(page, 4096, 8192, MREMAP_MAYMOVE);
        if (page == MAP_FAILED) abort();
        sum += page[1]; // NORACE: own memory
        munmap(page, 8192);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[3];
    long total = 0;
    for (long i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < 3; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        total += (long)sum;
    }
    printf("total %ld\n", total);
    return 0;
}
