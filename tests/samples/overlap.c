/* Linked into the samples by test_verdicts.sh with --wrap=pthread_create: each thread waits a little before it begins, so
 * that threads which live shorter than it takes to create them run at the same time after all. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

struct start {
    void *(*run)(void *);
    void *argument;
    struct timespec when; /* the threads of one burst begin together */
};

static void *begin(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start.when, NULL);
    return start.run(start.argument);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    enum { PERIOD = 10 * 1000 * 1000 };
    struct start *start = malloc(sizeof *start);
    if (!start) abort();
    *start = (struct start){run, argument, {0}};
    clock_gettime(CLOCK_MONOTONIC, &start->when);
    long ns = (start->when.tv_nsec / PERIOD + 2) * PERIOD;
    start->when.tv_sec += ns / 1000000000;
    start->when.tv_nsec = ns % 1000000000;
    return __real_pthread_create(thread, attributes, begin, start);
}
