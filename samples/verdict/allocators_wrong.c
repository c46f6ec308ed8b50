/* Memory of several allocators that two threads share, and realloc under another's hands (the block keeps its size, so
 * nothing is really lost).
 *
 * Category: heap
 * Alarm: gcc clang: what ThreadSanitizer takes for accesses of realloc's old and new block.
 * Verdict: races on `aligned[3]`, `text[1]` and, between realloc and a read, on `block`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long *aligned;
char *text;
int *block;
int own[2];

static void *one(void *unused)
{
    (void)unused;
    aligned[3]++; // RACE aligned
    usleep(10);
    text[1] = 'x'; // RACE text
    usleep(10);
    own[0] = block[2]; // RACE block
    usleep(10);
    return NULL;
}

static void *two(void *unused)
{
    (void)unused;
    aligned[3]--; // RACE aligned
    usleep(10);
    own[1] = text[1]; // RACE text
    usleep(20000);
    int *same = realloc(block, 16 * sizeof *block); // RACE block: frees the old block, or writes its size
    return same;
}

int main(void)
{
    pthread_t threads[2];
    void *same;
    aligned = aligned_alloc(64, 64);
    text = strdup("text");
    block = calloc(16, sizeof *block);
    if (!aligned || !text || !block) return 2;
    memset(aligned, 0, 64); // NORACE: before the creates
    if (pthread_create(&threads[0], NULL, one, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, two, NULL)) return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &same);
    printf("%c %d\n", text[1], own[0]); // NORACE: after the joins
    free(aligned);
    free(text);
    free(same);
    return 0;
}
