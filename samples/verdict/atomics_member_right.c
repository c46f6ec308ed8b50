/* Mailboxes on the heap, each with an atomic flag among its members: whoever finds it set may read the letter. Nothing but
 * plain moves accesses the flags; that they are atomic is in their type only, which is reached through pointers.
 *
 * Category: atomics-c11
 * Verdict: no race. A letter is written before the release of its flag, and read after the acquire that finds it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BOXES = 4 };

typedef struct {
    atomic_int value;
} flag;

struct box {
    long letter;
    struct {
        short unused;
        flag is_full;
    } state;
};

struct office {
    struct box *boxes[BOXES];
};

__attribute__((noinline)) static int take(struct box *box, long *sum)
{
    if (!atomic_load_explicit(&box->state.is_full.value, memory_order_acquire)) return 0; // NORACE: atomic
    *sum += box->letter; // NORACE: after the acquire
    atomic_store_explicit(&box->state.is_full.value, 0, memory_order_release); // NORACE: atomic
    return 1;
}

__attribute__((noinline)) static int put(struct box *box, long letter)
{
    if (atomic_load_explicit(&box->state.is_full.value, memory_order_acquire)) return 0; // NORACE: atomic
    box->letter = letter; // NORACE: nobody reads it before the release
    atomic_store_explicit(&box->state.is_full.value, 1, memory_order_release); // NORACE: atomic
    return 1;
}

static void *reader(void *argument)
{
    struct office *office = argument;
    static long sum;
    for (int taken = 0; taken < 3 * BOXES;) {
        int before = taken;
        for (int i = 0; i < BOXES; i++)
            taken += take(office->boxes[i], &sum);
        if (taken == before) usleep(100);
    }
    return &sum;
}

int main(void)
{
    struct office office;
    pthread_t thread;
    void *result;
    for (int i = 0; i < BOXES; i++)
        if (!(office.boxes[i] = calloc(1, sizeof *office.boxes[i]))) return 2;
    if (pthread_create(&thread, NULL, reader, &office)) return 2;
    for (int n = 0; n < 3 * BOXES; n++)
        while (!put(office.boxes[n % BOXES], n + 1))
            usleep(100);
    pthread_join(thread, &result);
    printf("sum %ld\n", *(long *)result);
    return 0;
}
