/* A library that any thread may call. An object that callers bring along is theirs to guard, what its functions have in their frames is
 * of one call, and what the loader runs comes before and behind all others. WRONG: the library keeps the object itself, functions that
 * it exports write static variables, one of them is what the loader runs too, and so does a thread of its own, which also gets a
 * variable of a function. */
#include <pthread.h>
#include <stdlib.h>

struct counter {
    long count;
    long *sum;
    struct counter *next;
};

struct thing { /* of the caller */
    struct counter *counter;
};

static long state;

__attribute__((constructor)) static void begin(void)
{
    state = 1;
}

__attribute__((destructor)) static void end(void)
{
    state = 0;
}

#ifdef LISTED /* as compilers did it once */
static void listed(void)
{
    state = 3;
}

__attribute__((section(".ctors"), used)) static void (*const list)(void) = listed;
#endif

long thing_state(void)
{
    return state;
}

__attribute__((noinline)) static void count(struct counter *first)
{
    first->next->count++;
}

__attribute__((noinline)) static void add(struct counter *first)
{
    *first->next->sum += 2;
}

long thing_sum(struct thing *t, int times)
{
    long sum = 0;
    struct counter *first = malloc(sizeof *first);
    first->next = malloc(sizeof *first);
    first->next->sum = &sum;
    t->counter = first;
    for (int i = 0; i < times; i++) {
        count(first);
        add(first);
    }
    return sum;
}

#ifdef WRONG
static struct counter *kept;
static long calls, resets, helped;

void thing_keep(void)
{
    if (!kept) kept = malloc(sizeof *kept);
    kept->count++;
}

void thing_call(void)
{
    calls++;
}

long thing_calls(void)
{
    return calls;
}

__attribute__((constructor)) void thing_reset(void)
{
    resets++;
}

static void *helps(void *argument)
{
    helped++;
    *(long *)argument += 1;
    return argument;
}

long thing_both(void)
{
    pthread_t helper;
    long value = 0;
    if (pthread_create(&helper, NULL, helps, &value)) return -1;
    value += 2;
    pthread_join(helper, NULL);
    return value;
}
#endif
