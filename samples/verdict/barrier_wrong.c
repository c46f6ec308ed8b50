/* Barriers, wrong: a barrier for two that four threads use, so that a thread meets some other, not the one it reads
 * from; and a read in front of the barrier.
 *
 * Category: barrier
 * Verdict: races on `cells` and `early`. Four arrivals are two full barriers for two, so the program always ends. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4 };

pthread_barrier_t pairs; // for 2, used by 4
pthread_barrier_t whole; // for 4
int cells[THREADS];
int early[THREADS];

static void *work(void *argument)
{
    int me = (int)(long)argument, sum = 0;
    usleep(1000u * (unsigned)me);
    cells[me] = me + 1; // RACE cells
    pthread_barrier_wait(&pairs);
    sum += cells[(me + 1) % THREADS]; // RACE cells: perhaps that one was not at the barrier
    pthread_barrier_wait(&whole);
    usleep(100); // all have left the barrier by now

    early[me] = me; // RACE early
    usleep(100);
    sum += early[(me + 2) % THREADS]; // RACE early: in front of the barrier
    pthread_barrier_wait(&whole);
    sum += early[(me + 1) % THREADS]; // NORACE: behind the barrier
    return (void *)(long)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0;
    pthread_barrier_init(&pairs, NULL, 2);
    pthread_barrier_init(&whole, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < THREADS; i++) {
        void *part;
        pthread_join(threads[i], &part);
        sum += (long)part;
    }
    puts(sum <= 22 ? "done" : "?");
    return 0;
}
