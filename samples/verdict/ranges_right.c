/* Library calls that access ranges: memcpy, memset, memmove, strcpy, snprintf, qsort on parts of one buffer that do not
 * overlap, and on the whole buffer under a lock.
 *
 * Category: ranges
 * Verdict: no race. The parts of `page` are neighbours to the byte. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 3, PART = 37 };

static char page[PARTS * PART];
static char board[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char source[] = "the quick brown fox jumps over it";

static int by_value(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    char *part = page + me * PART;
    memset(part, 'a' + me, PART);          // NORACE: own part
    memcpy(part, source, sizeof source);   // NORACE: own part; the source is constant
    memmove(part + 1, part, PART - 1);     // NORACE: own part
    qsort(part, PART, 1, by_value);        // NORACE: own part
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        strcpy(board, me ? "one" : "another"); // NORACE: under the lock
        snprintf(board + 32, 32, "by %d", me); // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[PARTS];
    for (long i = 0; i < PARTS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    pthread_mutex_lock(&lock);
    size_t length = strlen(board); // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < PARTS; i++)
        pthread_join(threads[i], NULL);
    int sum = 0;
    for (unsigned i = 0; i < sizeof page; i++)
        sum += page[i]; // NORACE: after the joins
    printf("sum %d\n", sum);
    return length > 8;
}
