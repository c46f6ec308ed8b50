/* Set-up that is done when it is first needed, by main, before threads begin, and undone when all of them are gone.
 *
 * Category: fork-join
 * Verdict: no race: as long as a worker lives, `results` is set, so main does not set up anything; it is undone behind the join. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long *results;
static int limit;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void set_up(void)
{
    if (results) return;              // NORACE: nobody else writes
    results = calloc(4, sizeof(long)); // NORACE: no worker is alive
    if (!results) abort();
    limit = 40;                       // NORACE: no worker is alive
}

__attribute__((noinline)) static void tear_down(void)
{
    if (!results) return; // NORACE: nobody else writes
    free(results);        // NORACE: all have been joined
    results = NULL;       // NORACE: all have been joined
    limit = 0;            // NORACE: all have been joined
}

static void *work(void *argument)
{
    (void)argument;
    for (int i = 0; i < limit; i++) { // NORACE: set before the thread was created
        pthread_mutex_lock(&lock);
        results[i % 4]++; // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

__attribute__((noinline)) static void run(void)
{
    pthread_t first, second;
    set_up();
    if (pthread_create(&first, NULL, work, NULL)) abort();
    set_up();
    if (pthread_create(&second, NULL, work, NULL)) abort();
    set_up();
    pthread_join(first, NULL);
    pthread_join(second, NULL);
}

int main(void)
{
    for (int round = 0; round < 3; round++) {
        run();
        if (round == 1) tear_down();
    }
    printf("%ld\n", results[0]); // NORACE: all have been joined
    tear_down();
    return 0;
}
