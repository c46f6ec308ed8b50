/* One race, whatever the schedule: nothing orders the two threads. Or another: memory is read while it is freed.
 *
 *   racy [CODE [free]]     ends with CODE, or 0 */
#include <pthread.h>
#include <stdlib.h>

long shared;
long private_sum[2];

static void *writes(void *argument)
{
    long *sum = argument;
    for (int i = 0; i < 100; i++) {
        shared = i; // RACE write
        *sum += i;
    }
    return NULL;
}

static void *reads(void *argument)
{
    long *sum = argument;
    for (int i = 0; i < 100; i++)
        *sum += *(volatile long *)&shared; // RACE read
    return NULL;
}

static void *looks(void *argument)
{
    return (void *)(size_t)(*(volatile char *)argument == 7); // FREED read
}

/* The thread reads a block that is freed without waiting for it. */
static int free_unordered(void)
{
    pthread_t looker;
    char *block = calloc(1, 100);
    if (!block || pthread_create(&looker, NULL, looks, block)) return 2;
    free(block); // FREED free
    pthread_join(looker, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t writer, reader;
    int code = argc > 1 ? atoi(argv[1]) : 0;
    if (argc > 2) return free_unordered() ? 2 : code;
    if (pthread_create(&writer, NULL, writes, &private_sum[0])) return 2;
    if (pthread_create(&reader, NULL, reads, &private_sum[1])) return 2;
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    return code;
}
