/* More library calls that access ranges: strncpy, strcat, strdup, sprintf, strtok_r, memchr, stdio on one stream.
 *
 * Category: ranges
 * Verdict: no race. Two threads print to one stream; stdio has a lock of its own. The words are constant, the copies
 * are each thread's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char words[] = "one two three four five";
static char lines[2][64];
static char board[80];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *sink;

static void *work(void *argument)
{
    long me = (long)argument;
    char *copy = strdup(words); // NORACE: the words are constant
    char *rest = copy;
    if (!copy) abort();
    for (char *word; (word = strtok_r(rest, " ", &rest));) { // NORACE: own copy
        strncpy(lines[me], word, 20);                       // NORACE: own line
        strcat(lines[me], me ? "!" : "?");                  // NORACE: own line
        fprintf(sink, "%s\n", lines[me]);                   // NORACE: the stream has its lock
        pthread_mutex_lock(&lock);
        sprintf(board, "%ld says %s", me, lines[me]);     // NORACE: under the lock
        if (memchr(board, '#', sizeof board)) puts("?"); // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    free(copy);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    sink = fopen("/dev/null", "w");
    if (!sink) return 2;
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    fclose(sink);
    printf("%s %s\n", lines[0], lines[1]); // NORACE: after the joins
    return 0;
}
