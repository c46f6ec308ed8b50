/* A thread that is created if an option says so, and joined if the option still does.
 *
 * Category: fork-join
 * Verdict: race: the option is computed anew in between, and the thread may not have been joined. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long total;

__attribute__((noinline)) static void add(long more)
{
    total += more; // RACE: main goes on without a join
}

static void *work(void *argument)
{
    for (long i = 0; i < (long)argument; i++)
        add(i);
    return NULL;
}

__attribute__((noinline)) static int wants(int argc, char **argv)
{
    return argc > 1 && argv[1][0] != 's';
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int threads = !wants(argc, argv);
    if (threads && pthread_create(&thread, NULL, work, (void *)1000L)) abort();
    for (int i = 0; i < 2; i++) {
        if (i) threads = wants(argc, argv);
        if (i && threads) pthread_join(thread, NULL);
    }
    total++; // RACE: the thread may be running
    usleep(1000);
    printf("%ld\n", total); // RACE: the thread may be running
    return 0;
}
