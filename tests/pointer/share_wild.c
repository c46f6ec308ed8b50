/* For test_bench.sh, with a low threshold for wild pointers: two threads write through one that may point anywhere into three
 * buffers, and to `total`, which alone is shared when nothing is made of the wild one. */
#include <pthread.h>
#include <stdlib.h>

static char first[256], second[256], third[256];
static int total;

static __attribute__((noinline)) void put(char *at)
{
    *at = 1;
}

static void *fill(void *at)
{
    long n = (long)at;
    char *to = n > 2 ? first : n > 1 ? second : third;
    put(to + (n * n & 255));
    __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, fill, (void *)(long)rand());
    pthread_create(&two, NULL, fill, (void *)(long)rand());
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
