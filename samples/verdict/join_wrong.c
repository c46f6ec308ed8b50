/* The other joins, wrong: the thread is still running, the call says so, and nobody listens; and a thread that was told
 * of the end by a third one, which did not wait either.
 *
 * Category: fork-join
 * Verdict: races on `slow` (tryjoin and timedjoin gave up) and on `later`, which is written between two threads that
 * nothing orders. `quick` is joined. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int quick;
int slow;
int later;

static void *do_quick(void *unused)
{
    (void)unused;
    quick = 1; // NORACE: joined
    usleep(10);
    later += 1; // RACE later: the other thread writes it too
    return NULL;
}

static void *do_slow(void *unused)
{
    (void)unused;
    usleep(8000);
    later += 2; // RACE later
    usleep(10);
    slow = 2; // RACE slow
    usleep(10);
    return NULL;
}

int main(void)
{
    pthread_t first, second;
    struct timespec past = {1, 0};
    if (pthread_create(&first, NULL, do_quick, NULL)) return 2;
    if (pthread_create(&second, NULL, do_slow, NULL)) return 2;
    pthread_join(first, NULL);
    int sum = quick; // NORACE: joined
    int busy = pthread_tryjoin_np(second, NULL);
    if (busy) busy = pthread_timedjoin_np(second, NULL, &past);
    sum += slow; // RACE slow: both joins have given up
    usleep(10);
    if (busy) pthread_join(second, NULL);
    printf("later %d, slow %d\n", later, slow); // NORACE: now it is joined
    return sum > 3;
}
