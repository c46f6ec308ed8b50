/* The dissertation's figure 6.2 (O2), in C: two threads run one chain of functions, which ends in an allocation and in
 * a call through the pointer that the thread was given. Only who knows the origin knows that the objects are different
 * and which function is called.
 *
 * Category: paper
 * Verdict: a race on `shared->hits`. `y` is allocated by each thread for itself, `ones` and `twos` are written by one
 * operation each, and each operation is given to one thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct shared {
    int limit;
    int hits;
    int ones, twos;
};

struct data {
    int value;
};

struct operation {
    void (*act)(struct shared *, struct data *);
};

struct thread {
    struct shared *s;
    struct operation *op;
    pthread_t id;
};

static void act_one(struct shared *s, struct data *y)
{
    s->ones += y->value; // NORACE: the first thread only
}

static void act_two(struct shared *s, struct data *y)
{
    y->value *= 2;       // NORACE: the thread's own object
    s->twos += y->value; // NORACE: the second thread only
}

__attribute__((noinline)) static void util(struct thread *t, struct data *y)
{
    t->op->act(t->s, y); // NORACE: set before the start
}

__attribute__((noinline)) static void sub3(struct thread *t)
{
    struct data *y = malloc(sizeof *y);
    if (!y) abort();
    y->value = t->s->limit; // NORACE: the thread's own object; `limit` is only read
    t->s->hits++;           // RACE hits: shared by both
    util(t, y);
    free(y);
}

__attribute__((noinline)) static void sub2(struct thread *t)
{
    sub3(t);
}

__attribute__((noinline)) static void sub1(struct thread *t)
{
    sub2(t);
}

static void *run(void *argument)
{
    for (int i = 0; i < 10; i++)
        sub1(argument);
    return NULL;
}

int main(void)
{
    struct shared s = {7, 0, 0, 0};
    struct operation one = {act_one}, two = {act_two};
    struct thread threads[2] = {{&s, &one, 0}, {&s, &two, 0}};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i].id, NULL, run, &threads[i])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i].id, NULL);
    printf("%d %d\n", s.ones, s.twos); // NORACE: after the joins
    return s.hits > 20;                // NORACE: after the joins
}
