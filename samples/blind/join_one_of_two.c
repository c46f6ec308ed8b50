/* Order by create and join: what is before the create and after the join is safe, what is in between is not.
 *
 * Category: fork-join
 * Verdict: a race on `slow_result`, which main reads after it joined the wrong thread. The two phases (the second
 * thread of the second phase is created after the first phase was joined) and the thread started by a thread are in
 * order. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int input;
int quick_result;
int slow_result;
int chain;

static void *quick(void *unused)
{
    (void)unused;
    quick_result = input + 1; // NORACE: joined before main reads
    return NULL;
}

static void *slow(void *unused)
{
    (void)unused;
    usleep(2000);
    slow_result = input + 2; // RACE slow_result
    return NULL;
}

static void *grandchild(void *unused)
{
    (void)unused;
    chain *= 2; // NORACE: between the parent's create and join
    return NULL;
}

static void *child(void *unused)
{
    (void)unused;
    pthread_t thread;
    chain += 1; // NORACE: before the grandchild
    if (pthread_create(&thread, NULL, grandchild, NULL)) return NULL;
    pthread_join(thread, NULL);
    chain += 1; // NORACE: after the grandchild
    return NULL;
}

int main(void)
{
    pthread_t first, second, third;
    input = 10; // NORACE: before the creates
    if (pthread_create(&first, NULL, quick, NULL)) return 2;
    if (pthread_create(&second, NULL, slow, NULL)) return 2;
    pthread_join(first, NULL);
    int sum = quick_result;    // NORACE: that thread is joined
    int early = slow_result;   // RACE slow_result: that one is not
    pthread_join(second, NULL);
    sum += slow_result; // NORACE: now it is
    input = 20;         // NORACE: nobody is left to read it
    chain = 1;          // NORACE: before the create
    if (pthread_create(&third, NULL, child, NULL)) return 2;
    pthread_join(third, NULL);
    printf("sum %d, chain %d\n", sum, chain); // NORACE: after the join
    return early > 12;
}
