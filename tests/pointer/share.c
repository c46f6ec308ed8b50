/* For test_bench.sh: threads that share one variable with writes and one without, and own an object each.
 * Of the accesses, 3 are to the own object, 2 to `counter` and 1 to `limit`. */
#include <pthread.h>
#include <stdlib.h>

static volatile long counter, limit;

static void *work(void *unused)
{
    volatile long *own = malloc(64);
    if (!own) return unused;
    own[0] = 1;
    own[1] = 2;
    own[5] = limit;
    long seen = counter;
    counter = seen + 1;
    free((void *)own);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL)) return 1;
        pthread_detach(thread);
    }
    return 0;
}
