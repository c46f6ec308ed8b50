/* Variables of a function, whose addresses are known to other threads: each activation has its own, and what its code does with them is
 * its own business. WRONG: they are handed to another thread, which writes to them by their address. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

struct progress {
    long done, wanted;
};

static _Atomic(struct progress *) shown[2];

static void *work(void *argument)
{
    struct progress mine = {0, 1000};
    atomic_store_explicit(&shown[*(int *)argument], &mine, memory_order_relaxed);
    while (mine.done < mine.wanted)
        mine.done++, usleep(1);
    return NULL;
}

#ifdef WRONG
static void *hurries(void *argument)
{
    struct progress *its = atomic_load_explicit(&shown[0], memory_order_relaxed);
    if (its) its->wanted = 0;
    return argument;
}
#endif

int main(void)
{
    pthread_t threads[3];
    static int numbers[2] = {0, 1};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &numbers[i])) return 2;
#ifdef WRONG
    if (pthread_create(&threads[2], NULL, hurries, NULL)) return 2;
    pthread_join(threads[2], NULL);
#endif
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
