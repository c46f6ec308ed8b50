/* The dissertation's figure 6.3 (O2), in C: two kinds of thread objects share a constructor that allocates their field
 * f. Main runs the constructor for both, from one line; each thread works on its own f.
 *
 * Category: paper
 * Verdict: a race on `log->entries`, which both constructors were given. `f` is another object for each thread, though
 * one line allocates it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
    int work;
};

struct log {
    int entries;
};

struct base {
    struct object *f;
    struct log *log;
    pthread_t id;
};

struct a {
    struct base base;
    int extra_a;
};

struct b {
    int extra_b;
    struct base base;
};

__attribute__((noinline)) static void base_construct(struct base *self, struct log *log)
{
    self->f = malloc(sizeof *self->f); // NORACE: before the start
    if (!self->f) abort();
    self->f->work = 0; // NORACE: before the start
    self->log = log;   // NORACE: before the start
}

static struct base *a_new(struct log *log)
{
    struct a *a = calloc(1, sizeof *a);
    if (!a) abort();
    base_construct(&a->base, log);
    return &a->base;
}

static struct base *b_new(struct log *log)
{
    struct b *b = calloc(1, sizeof *b);
    if (!b) abort();
    base_construct(&b->base, log);
    return &b->base;
}

__attribute__((noinline)) static void do_something(struct object *f)
{
    f->work++; // NORACE: each thread has its own
}

static void *run(void *argument)
{
    struct base *self = argument;
    for (int i = 0; i < 20; i++) {
        do_something(self->f);
        self->log->entries++; // RACE entries
    }
    return NULL;
}

int main(void)
{
    struct log log = {0};
    struct base *threads[2] = {a_new(&log), b_new(&log)};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i]->id, NULL, run, threads[i])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i]->id, NULL);
    printf("%d %d\n", threads[0]->f->work, threads[1]->f->work); // NORACE: after the joins
    return log.entries > 40;                                    // NORACE: after the joins
}
