/* More library calls that access ranges, wrong: two of them on one buffer, also where a plain access meets a call.
 *
 * Category: ranges
 * Unseen: the accesses inside of qsort, which is not instrumented.
 * Verdict: races on `line` (sprintf against strlen), on `key` (strncpy against strcmp) and on `table` (qsort against a
 * plain write). `copy` is each thread's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char line[64];
char key[16] = "a";
int table[16] = {5, 3, 9, 1, 8, 2, 7, 6, 4, 0, 11, 15, 10, 13, 12, 14};
size_t lengths;
int matches;

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b; // RACE table: while the other thread writes
}

static void *one(void *unused)
{
    (void)unused;
    snprintf(line, sizeof line, "%d words", 5); // RACE line
    usleep(10);
    strncpy(key, "beta", sizeof key); // RACE key
    usleep(10);
    qsort(table, 16, sizeof *table, ascending); // RACE table: qsort moves the elements
    usleep(10);
    return NULL;
}

static void *two(void *unused)
{
    (void)unused;
    lengths = strlen(line); // RACE line
    usleep(10);
    matches = strcmp(key, "beta") == 0; // RACE key
    usleep(10);
    table[3]++; // RACE table
    usleep(10);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, one, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, two, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%s %s\n", line, key);       // NORACE: after the joins
    return lengths > 10 || matches > 1; // NORACE: after the joins
}
