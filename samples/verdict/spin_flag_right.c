/* Two threads take turns by an atomic flag, each spinning until it is its turn; and Peterson's lock with sequentially
 * consistent atomics.
 *
 * Category: spin-loop
 * Verdict: no race. `board` belongs to whose turn it is, `inside` to who is through the lock. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 30 };

static atomic_int turn;
static long board;
static atomic_int wants[2], victim;
static long inside;

static void enter(int me)
{
    atomic_store(&wants[me], 1);
    atomic_store(&victim, me);
    while (atomic_load(&wants[!me]) && atomic_load(&victim) == me) // NORACE: atomic
        sched_yield();
}

static void leave(int me)
{
    atomic_store(&wants[me], 0); // NORACE: atomic
}

static void *play(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != me) // NORACE: atomic
            sched_yield();
        board = board * 3 % 1000 + me; // NORACE: our turn
        atomic_store_explicit(&turn, !me, memory_order_release);
        enter(me);
        inside++; // NORACE: through Peterson's lock
        leave(me);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, play, (void *)i)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("board %ld, inside %ld\n", board, inside); // NORACE: after the joins
    return 0;
}
