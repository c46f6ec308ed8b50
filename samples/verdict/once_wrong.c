/* pthread_once, wrong: a reader that does not go through it, and a control per thread, so that "once" is once for each.
 *
 * Category: once
 * Verdict: races on `table` (a reader without the call) and on `inits` (two controls, one routine). */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

pthread_once_t common = PTHREAD_ONCE_INIT;
pthread_once_t controls[2] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};
int table;
int inits;
int proper;

static void make_table(void)
{
    table = 9;  // RACE table: with the bypass
    proper = 3; // NORACE: readers go through pthread_once
}

static void count_init(void)
{
    inits++; // RACE inits: once for each control
}

static void *work(void *argument)
{
    long me = (long)argument;
    pthread_once(&controls[me], count_init);
    pthread_once(&common, make_table);
    return (void *)(long)(proper + table); // NORACE: through pthread_once
}

static void *bypass(void *unused)
{
    (void)unused;
    usleep(1000);
    int seen = table; // RACE table: nobody said it was made
    usleep(10);
    return (void *)(long)(seen + 1);
}

int main(void)
{
    pthread_t threads[3];
    void *results[3];
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    if (pthread_create(&threads[2], NULL, bypass, NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], &results[i]);
    printf("%ld %ld\n", (long)results[0], (long)results[1]);
    return inits > 2; // NORACE: after the joins
}
