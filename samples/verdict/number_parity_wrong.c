/* Two threads that are given the same even number: that its lowest bit is zero does not make it zero.
 *
 * Category: array-partition
 * Verdict: a race on `even`, which both come to. */
#include <pthread.h>
#include <unistd.h>

long even;

static void *count(void *argument)
{
    long number = (long)argument;
    if (number & 1) return NULL;
    even = number; // RACE even
    usleep(10);
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    if (pthread_create(&one, NULL, count, (void *)2L) || pthread_create(&two, NULL, count, (void *)2L)) return 2;
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
