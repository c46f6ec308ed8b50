/* Arrays shared by index, wrong: an index that is not unique (modulo), neighbours that are read, and a slot chosen by
 * something else than the thread.
 *
 * Category: array-partition
 * Verdict: races on `folded`, on `grid` (the left neighbour belongs to another thread at the edge) and on `slots`. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, N = 64 };

int folded[N];
int grid[N];
int smooth[N];
long slots[2];
int own[THREADS];

__attribute__((noinline)) static void fold(int me)
{
    for (int i = me * 20; i < me * 20 + 20; i++)
        folded[i % 50]++; // RACE folded: 20 elements each, of 50
    usleep(10);
}

__attribute__((noinline)) static void average(int me)
{
    for (int i = me * (N / THREADS); i < (me + 1) * (N / THREADS); i++)
        grid[i] = i; // RACE grid
    usleep(10);
    for (int i = me * (N / THREADS); i < (me + 1) * (N / THREADS); i++)
        smooth[i] = i ? grid[i - 1] + 1 : 0; // RACE grid: another thread's last element
    usleep(10);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    fold(me);
    average(me);
    slots[me % 2] += me; // RACE slots: two threads to a slot
    usleep(10);
    own[me] = me; // NORACE: one thread to an element
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int sum = 0;
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        sum += own[i]; // NORACE: after the joins
    printf("sum %d\n", sum);
    return smooth[0];
}
