/* Calls through pointers, rightly: a class with methods in C, an operation chosen at run time under a lock, callbacks
 * with a context of their own, qsort's comparison.
 *
 * Category: function-pointer
 * Verdict: no race. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct shape;
struct methods {
    int (*area)(const struct shape *);
    void (*grow)(struct shape *, int);
};

struct shape {
    const struct methods *methods;
    int width, height;
};

static int rectangle_area(const struct shape *s)
{
    return s->width * s->height; // NORACE: each thread has its shape
}

static void rectangle_grow(struct shape *s, int by)
{
    s->width += by; // NORACE: each thread has its shape
}

static void square_grow(struct shape *s, int by)
{
    s->width += by;  // NORACE: each thread has its shape
    s->height += by; // NORACE: each thread has its shape
}

static const struct methods rectangle = {rectangle_area, rectangle_grow}, square = {rectangle_area, square_grow};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total, calls;

static void add_total(long value)
{
    total += value; // NORACE: called under the lock
}

static void count_call(long unused)
{
    (void)unused;
    calls++; // NORACE: called under the lock
}

static void (*const reports[2])(long) = {add_total, count_call};

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b; // NORACE: own array
}

static void *work(void *argument)
{
    struct shape *shape = argument;
    int areas[10];
    for (int i = 0; i < 10; i++) {
        shape->methods->grow(shape, 1 + i % 2);
        areas[9 - i] = shape->methods->area(shape); // NORACE: own array
    }
    qsort(areas, 10, sizeof *areas, ascending);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 2; i++)
        reports[i](areas[9]);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    struct shape shapes[2] = {{&rectangle, 2, 3}, {&square, 4, 4}};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &shapes[i])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("total %ld, calls %ld\n", total, calls); // NORACE: after the joins
    return 0;
}
