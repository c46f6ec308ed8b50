/* Objects with operations: tables of functions, tables of objects that the linker fills, a sorted index, an initialiser
 * that runs once, thread-local and function-level static variables.
 *
 *   reach_methods [ROUNDS]
 *
 * Verdict: one race, on `calls`, the static of a function that all threads go through. Each shape belongs to one
 * thread, the order is sorted before the threads start. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct shape;

struct operations {
    void (*grow)(struct shape *, int by);
    long (*area)(const struct shape *);
};

struct shape {
    const struct operations *ops;
    int width, height;
    long area; /* the last one asked for */
};

static void grow_box(struct shape *s, int by)
{
    s->width += by;  // NORACE: this thread's shape
    s->height += by; // NORACE: this thread's shape
}

static long box_area(const struct shape *s)
{
    return (long)s->width * s->height; // NORACE: this thread's shape
}

static void grow_line(struct shape *s, int by)
{
    s->width += by; // NORACE: this thread's shape
}

static long line_area(const struct shape *s)
{
    return s->width; // NORACE: this thread's shape
}

static const struct operations box = {grow_box, box_area}, line = {grow_line, line_area};

struct shape shapes[] = {{&box, 3, 4, 0}, {&line, 9, 0, 0}, {&box, 1, 7, 0}};
struct shape *order[] = {&shapes[2], &shapes[0], &shapes[1]};
int steps[4];
_Thread_local long asked;
pthread_once_t once = PTHREAD_ONCE_INIT;

static void set_up(void)
{
    for (int i = 0; i < 4; i++)
        steps[i] = i * i + 1; // NORACE: once, before anyone reads
}

static int by_width(const void *x, const void *y)
{
    const struct shape *const *a = x, *const *b = y;
    return ((*a)->width > (*b)->width) - ((*a)->width < (*b)->width); // NORACE: before the threads
}

static long ask(struct shape *s)
{
    static long calls;
    long area = s->ops->area(s); // NORACE: this thread's shape
    calls++;                     // RACE
    asked++;                     // NORACE: thread-local
    s->area = area;              // NORACE: this thread's shape
    return area;
}

static void *change(void *argument)
{
    struct shape *s = *(struct shape **)argument; // NORACE: sorted before the threads
    long sum = 0;
    pthread_once(&once, set_up);
    for (int i = 0; i < 100; i++) {
        s->ops->grow(s, steps[i % 4]); // NORACE: written once
        sum += ask(s);
    }
    printf("sum %ld after %ld\n", sum, asked); // NORACE: thread-local
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    qsort(order, sizeof order / sizeof *order, sizeof *order, by_width);
    for (int round = 0; round < rounds; round++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            if (pthread_create(&threads[i], NULL, change, &order[i])) return 2;
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
    }
    return shapes[0].area < 0; // NORACE: after the joins
}
