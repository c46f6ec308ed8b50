/* A message handed over by spinning on an atomic flag, and one handed over by spinning on a plain one.
 *
 *   spin_atomic [VALUE]
 *
 * Verdict: `message` is ordered by the release store and the acquire load of `ready`. `volatile` orders nothing: both
 * `hint` and the `rumour` behind it race. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

long message;
atomic_int ready;
long rumour;
volatile int hint;

static void *receive(void *argument)
{
    long *sum = argument;
    while (!atomic_load_explicit(&ready, memory_order_acquire)) {
    }
    *sum += message; // NORACE: ordered by ready
    while (!hint) {  // RACE: volatile is not atomic
    }
    *sum += rumour; // RACE: and does not order this
    return NULL;
}

int main(int argc, char **argv)
{
    long value = argc > 1 ? atol(argv[1]) : 21;
    long sum = 0;
    pthread_t receiver;
    if (pthread_create(&receiver, NULL, receive, &sum)) return 2;
    message = value; // NORACE: ordered by ready
    atomic_store_explicit(&ready, 1, memory_order_release);
    rumour = value; // RACE
    hint = 1;       // RACE
    pthread_join(receiver, NULL);
    printf("sum %ld\n", sum); // NORACE: after the join
    return 0;
}
