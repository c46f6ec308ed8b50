/* Set-up that is done when it is first needed, but forgotten while a thread still runs, and done once more; and set-up that comes
 * after the thread has begun.
 *
 * Category: fork-join
 * Verdict: race: `limit` is written again, and `step` for the first time, while the worker reads them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int ready, late;
static int limit, step;

__attribute__((noinline)) static void set_up(int to)
{
    if (ready) return;
    ready = 1;
    limit = to; // RACE limit: the worker may be alive
}

__attribute__((noinline)) static void set_up_late(int to)
{
    if (late) return;
    late = 1;
    step = to; // RACE step: the worker may be alive
}

__attribute__((noinline)) static int next_of(int i)
{
    return i + step; // RACE step: main sets it up
}

__attribute__((noinline)) static int is_below(int i)
{
    return i < limit; // RACE limit: main may set it up again
}

static void *work(void *argument)
{
    (void)argument;
    int rounds = 0;
    for (int i = 0; is_below(i); i = next_of(i) + 1)
        rounds++;
    printf("%d\n", rounds);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    set_up(10);
    if (pthread_create(&thread, NULL, work, NULL)) abort();
    set_up(20);
    ready = 0;
    set_up(30);
    set_up_late(2);
    pthread_join(thread, NULL);
    return 0;
}
