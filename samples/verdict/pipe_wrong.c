/* Pipes, wrong: the message goes out before the data is complete, and a second pipe is taken for the first.
 *
 * Category: descriptor
 * Verdict: races on `late` (written after the message) and on `other` (its message goes through another pipe, which
 * nobody reads in time). */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int first[2], second[2];
int early;
int late;
int other;

static void *send_all(void *unused)
{
    (void)unused;
    char token = 'x';
    early = 1; // NORACE: before the write
    if (write(first[1], &token, 1) != 1) return NULL;
    late = 2; // RACE late: after the write
    usleep(50);
    other = 3; // RACE other: announced on the second pipe
    if (write(second[1], &token, 1) != 1) return NULL;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char token;
    if (pipe(first) || pipe(second)) return 2;
    if (pthread_create(&thread, NULL, send_all, NULL)) return 2;
    if (read(first[0], &token, 1) != 1) return 1;
    int sum = early; // NORACE: after the read
    sum += late;     // RACE late
    usleep(100);
    sum += other; // RACE other: the second pipe was not read yet
    if (read(second[0], &token, 1) != 1) return 1;
    int after = late + other; // NORACE: after the read of the second pipe
    pthread_join(thread, NULL);
    printf("%d\n", after);
    return sum > 6;
}
