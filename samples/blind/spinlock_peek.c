/* POSIX spin locks: a ring of numbers guarded by one, and an impatient thread that looks at its size without it.
 *
 * Category: spinlock
 * Verdict: a race on `ring.used` between the look in `full` and both writers under the lock. The slots and positions
 * are always under the lock. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { SLOTS = 8, ITEMS = 500 };

struct ring {
    pthread_spinlock_t lock;
    unsigned head, tail;
    int used;
    int slots[SLOTS];
};

struct ring ring;

__attribute__((noinline)) int full(struct ring *r)
{
    return r->used == SLOTS; // RACE used
}

static int put(struct ring *r, int item)
{
    if (full(r)) return 0;
    pthread_spin_lock(&r->lock);
    int fits = r->head - r->tail < SLOTS; // NORACE: under the lock
    if (fits) {
        r->slots[r->head++ % SLOTS] = item; // NORACE: under the lock
        r->used++;                          // NORACE: only the consumer writes it elsewhere, under the lock, and the
                                            // looks without the lock are this thread's own
    }
    pthread_spin_unlock(&r->lock);
    return fits;
}

static int get(struct ring *r, int *item)
{
    pthread_spin_lock(&r->lock);
    int some = r->head != r->tail; // NORACE: under the lock
    if (some) {
        *item = r->slots[r->tail++ % SLOTS]; // NORACE: under the lock
        r->used--;                           // RACE used: with the producer's look
    }
    pthread_spin_unlock(&r->lock);
    return some;
}

static void *produce(void *unused)
{
    (void)unused;
    for (int i = 1; i <= ITEMS;) {
        if (put(&ring, i)) i++;
        else sched_yield();
    }
    return NULL;
}

int main(void)
{
    pthread_t producer;
    pthread_spin_init(&ring.lock, PTHREAD_PROCESS_PRIVATE);
    ring.used = 0; // NORACE: before the thread
    if (pthread_create(&producer, NULL, produce, NULL)) return 2;
    long sum = 0;
    for (int got = 0, item; got < ITEMS;) {
        if (get(&ring, &item)) {
            sum += item;
            got++;
        } else {
            sched_yield();
        }
    }
    pthread_join(producer, NULL);
    printf("sum %ld\n", sum);
    return ring.used; // NORACE: after the join
}
