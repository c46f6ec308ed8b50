/* System calls that access ranges: read and write fill and empty buffers of the program; each buffer belongs to one
 * thread at a time.
 *
 * Category: ranges
 * Verdict: no race. The reader's `read` writes into its own half, and the lines are joined under the lock. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HALF = 50, ROUNDS = 10 };

static char buffer[2 * HALF];
static int wires[2][2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char joined[HALF];

static void *work(void *argument)
{
    int me = (int)(long)argument;
    char *half = buffer + me * HALF;
    for (int i = 0; i < ROUNDS; i++) {
        memset(half, '0' + i, HALF);                       // NORACE: own half
        if (write(wires[me][1], half, HALF) != HALF) break; // NORACE: own half
        struct iovec parts[2] = {{half, 10}, {half + 10, HALF - 10}};
        if (readv(wires[me][0], parts, 2) != HALF) break; // NORACE: own half
        pthread_mutex_lock(&lock);
        memcpy(joined, half, HALF); // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        if (pipe(wires[i])) return 2;
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%.5s %.5s %.5s\n", buffer, buffer + HALF, joined); // NORACE: after the joins
    return 0;
}
