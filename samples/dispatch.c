/* Calls through function pointers: a constant table of operations, and a handler in a struct.
 *
 *   dispatch [ROUNDS]
 *
 * Verdict: one race, on `hits`, which the handlers `count` (in the worker) and `main` touch. The operations only work
 * on the worker's own state. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct worker {
    long value;
    int rounds;
    void (*handler)(struct worker *); /* called after each operation */
};

int hits;

static void increase(struct worker *w)
{
    w->value += 3; // NORACE: the worker's own
}

static void reduce(struct worker *w)
{
    w->value -= w->value / 5; // NORACE: the worker's own
}

static void negate(struct worker *w)
{
    w->value = ~w->value; // NORACE: the worker's own
}

static void count(struct worker *w)
{
    hits += w->rounds > 0; // RACE
}

/* Not constant-folded: main picks where each thread begins. */
void (*const operations[])(struct worker *) = {increase, reduce, negate};

static void *run(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < w->rounds; i++) {
        operations[(unsigned)(i + w->rounds) % 3](w);
        w->handler(w);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker worker = {argc, argc > 1 ? atoi(argv[1]) : 1000, count};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, &worker)) return 2;
    int seen = hits; // RACE
    pthread_join(thread, NULL);
    printf("value %ld\n", worker.value); // NORACE: after the join
    return seen > hits;                  // NORACE: after the join
}
