/* ECHO, figure 2, in C: a vector of conferences that main fills and a second thread prints. The paper edits the program
 * five times; CHANGE says how far the edits have come (-DCHANGE=N), and what races there are then:
 *
 *   0  as in the figure, without the grey lines          none
 *   1  main adds c3 after the start                      count, elems
 *   2  `add` and `size` take the lock                    elems, as the paper says; in truth element 1 is looked at only
 *                                                        when the lock has ordered it, and element 0 is older
 *   3  `get` takes the lock too                          none
 *   4  main increments c3's year                         year
 *   5  main does not add c3 any more                     none
 *
 * Category: paper
 * Verdict: that of CHANGE 1: races on `count` and on `elems`; `year` and `name` are set before the start. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef CHANGE
#define CHANGE 1
#endif

enum { MAXSIZE = 8 };

struct conference {
    const char *name;
    int year;
};

struct vector {
    pthread_mutex_t lock;
    struct conference *elems[MAXSIZE];
    int count;
};

static struct conference *conference_new(const char *name, int year)
{
    struct conference *c = malloc(sizeof *c);
    if (!c) abort();
    c->name = name; // NORACE: before the start
    c->year = year; // NORACE: before the start
    return c;
}

__attribute__((noinline)) void increment_year(struct conference *c)
{
    c->year++; // NORACE: with CHANGE 4 it races with conference_print
}

__attribute__((noinline)) int conference_print(const struct conference *c)
{
    return c->year + (c->name[0] == 'F'); // NORACE: with CHANGE 4 it races with increment_year
}

__attribute__((noinline)) int vector_size(struct vector *v)
{
    if (CHANGE >= 2) pthread_mutex_lock(&v->lock);
    int size = v->count; // RACE count
    usleep(5);
    if (CHANGE >= 2) pthread_mutex_unlock(&v->lock);
    return size;
}

__attribute__((noinline)) void vector_add(struct vector *v, struct conference *e)
{
    if (CHANGE >= 2) pthread_mutex_lock(&v->lock);
    v->elems[v->count] = e; // RACE elems
    v->count++;             // RACE count
    if (CHANGE >= 2) pthread_mutex_unlock(&v->lock);
}

__attribute__((noinline)) struct conference *vector_get(struct vector *v, int i)
{
    if (CHANGE >= 3) pthread_mutex_lock(&v->lock);
    struct conference *found = v->elems[i]; // RACE elems
    usleep(5);
    if (CHANGE >= 3) pthread_mutex_unlock(&v->lock);
    return found;
}

static void *run(void *argument)
{
    struct vector *v2 = argument;
    long sum = 0;
    usleep(1000);
    for (int i = 0; i < vector_size(v2); i++)
        sum += conference_print(vector_get(v2, i));
    return (void *)sum;
}

int main(void)
{
    struct vector v = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct conference *c1 = conference_new("FSE", 2016), *c3 = conference_new("FSE", 2016);
    pthread_t thrd2;
    void *sum;
    vector_add(&v, c1);
    if (pthread_create(&thrd2, NULL, run, &v)) return 2;
    if (CHANGE >= 1 && CHANGE <= 4) vector_add(&v, c3);
    if (CHANGE >= 4) increment_year(c3);
    pthread_join(thrd2, &sum);
    printf("count %d\n", v.count); // NORACE: after the join
    free(c1);
    free(c3);
    return (long)sum < 2016;
}
