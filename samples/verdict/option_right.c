/* A thread that is created and joined if an option says so, which is asked for each time.
 *
 * Category: fork-join
 * Verdict: no race: whoever created the thread joins it, since the option does not change in between. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long total;

__attribute__((noinline)) static void *work(void *argument)
{
    for (long i = 0; i < (long)argument; i++)
        total += i; // NORACE: main does not touch it until the join
    return NULL;
}

__attribute__((noinline)) static void report(void)
{
    puts("working");
}

__attribute__((noinline)) static void run(int threads, long rounds)
{
    pthread_t thread;
    if (threads && pthread_create(&thread, NULL, work, (void *)rounds)) abort();
    if (!threads) work((void *)rounds);
    report();
    if (threads) pthread_join(thread, NULL);
    total++; // NORACE: behind the join
}

int main(int argc, char **argv)
{
    int threads = argc < 2 || argv[1][0] != 's';
    for (int i = 0; i < 3; i++)
        run(threads, 100);
    printf("%ld\n", total); // NORACE: behind the join
    return 0;
}
