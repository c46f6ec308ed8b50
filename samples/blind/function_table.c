/* Work is chosen through tables of function pointers; which thread runs which function is in the data.
 *
 * Category: function-pointer
 * Verdict: a race on `drawn`, since both threads find `draw` in their tables. `parsed` and `sorted` are each written by
 * a function that only one table has, and `finished` by a callback that runs under the lock. */
#include <pthread.h>
#include <stdio.h>

typedef void (*step)(int);

enum { STEPS = 3, ROUNDS = 50 };

int parsed, sorted, drawn, finished;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void parse(int n)
{
    parsed += n; // NORACE: the first thread's only
}

static void sort(int n)
{
    sorted += n; // NORACE: the second thread's only
}

static void draw(int n)
{
    drawn += n; // RACE drawn: in both tables
}

static void done(int n)
{
    finished += n; // NORACE: called back under the lock
}

struct pipeline {
    const step *steps;
    step callback;
};

static const step first_steps[STEPS] = {parse, draw, parse};
static const step second_steps[STEPS] = {draw, sort, sort};
static const struct pipeline pipelines[2] = {{first_steps, done}, {second_steps, done}};

__attribute__((noinline)) static void locked_call(step callback, int n)
{
    pthread_mutex_lock(&lock);
    callback(n);
    pthread_mutex_unlock(&lock);
}

static void *run_first(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS * STEPS; i++)
        first_steps[i % STEPS](1);
    locked_call(pipelines[0].callback, 1);
    return NULL;
}

static void *run_second(void *argument)
{
    const struct pipeline *pipeline = argument;
    for (int i = 0; i < ROUNDS * STEPS; i++)
        pipeline->steps[i % STEPS](1);
    locked_call(pipeline->callback, 1);
    return NULL;
}

int main(void)
{
    void *(*const bodies[2])(void *) = {run_first, run_second};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, bodies[i], (void *)&pipelines[i])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("parsed %d, sorted %d, finished %d\n", parsed, sorted, finished); // NORACE: after the joins
    return drawn > 2 * ROUNDS;                                              // NORACE: after the joins
}
