/* The other joins: pthread_tryjoin_np, pthread_timedjoin_np, pthread_clockjoin_np, their answer respected; threads that
 * join each other's children.
 *
 * Category: fork-join
 * Alarm: gcc clang helgrind drd: some of these joins are unknown to them.
 * Verdict: no race. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 3 };

static int results[CHILDREN];
static int from_child;
static pthread_t child;

static void *compute(void *argument)
{
    long me = (long)argument;
    usleep(200);
    results[me] = (int)me + 10; // NORACE: read after the join
    return NULL;
}

static void *grandchild(void *unused)
{
    (void)unused;
    from_child = 5; // NORACE: read after the join, by another thread than the creator
    return NULL;
}

static void *parent(void *unused)
{
    (void)unused;
    if (pthread_create(&child, NULL, grandchild, NULL)) _exit(2);
    return NULL;
}

int main(void)
{
    pthread_t threads[CHILDREN], creator;
    struct timespec until;
    for (long i = 0; i < CHILDREN; i++)
        if (pthread_create(&threads[i], NULL, compute, (void *)i)) return 2;
    while (pthread_tryjoin_np(threads[0], NULL))
        usleep(100);
    int sum = results[0]; // NORACE: joined
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    if (pthread_timedjoin_np(threads[1], NULL, &until)) return 1;
    sum += results[1]; // NORACE: joined
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 5;
    if (pthread_clockjoin_np(threads[2], NULL, CLOCK_MONOTONIC, &until)) return 1;
    sum += results[2]; // NORACE: joined
    if (pthread_create(&creator, NULL, parent, NULL)) return 2;
    pthread_join(creator, NULL);
    pthread_join(child, NULL); // NORACE: the creator is joined
    sum += from_child;         // NORACE: joined
    printf("sum %d\n", sum);
    return 0;
}
