/* Variables of a function, whose addresses are known to other threads: each activation has its own, and what its code does with them is
 * its own business. Threads that are created by threads of which there are several are more than contexts tell apart. WRONG: another
 * thread gets to know a variable, and writes to it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

struct progress {
    long done, wanted;
};

static _Atomic(struct progress *) shown;

static void *work(void *argument)
{
    struct progress mine = {0, 1000};
    atomic_store_explicit(&shown, &mine, memory_order_relaxed);
    while (mine.done < mine.wanted)
        mine.done++, usleep(1);
    return argument;
}

#ifdef WRONG
static void *hurries(void *argument)
{
    struct progress *its = atomic_load_explicit(&shown, memory_order_relaxed);
    if (its) its->wanted = 0;
    return argument;
}
#endif

static void both(pthread_t threads[2])
{
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void *group(void *argument)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) _exit(2);
    both(threads);
    return argument;
}

static void *groups(void *argument)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, group, NULL)) _exit(2);
    both(threads);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, groups, NULL)) return 2;
#ifdef WRONG
    pthread_t other;
    if (pthread_create(&other, NULL, hurries, NULL)) return 2;
    pthread_join(other, NULL);
#endif
    both(threads);
    puts("done");
    return 0;
}
