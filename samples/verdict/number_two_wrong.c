/* Two threads with the numbers 0 and 1, created by a loop of which clang makes one that goes on while the number is 1: its end is
 * not where they are equal.
 *
 * Category: array-partition
 * Verdict: a race on `last`, which both write. */
#include <pthread.h>
#include <unistd.h>

long last, own[2];
pthread_t threads[2];

static void *count(void *argument)
{
    long number = (long)argument;
    own[number] = number;
    usleep(10);
    last = 7; // RACE last
    usleep(10);
    return NULL;
}

int main(void)
{
#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count, (void *)(i & 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
