/* Local arrays and pointers to locals: what unoptimised code does with the frame must not hide what is behind it.
 *
 *   reach_locals [ROUNDS]
 *
 * Verdict: races on `gauges.low`, which two threads reach by constant and by computed indices of arrays of their own. The
 * other gauges belong to one thread each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct gauge {
    long level, limit;
};

struct { /* one object, so that nothing depends on how gauges lie in memory */
    struct gauge low, middle, high, alone, spare;
} gauges = {{0, 50}, {0, 60}, {0, 70}, {0, 80}, {0, 90}};

struct route {
    struct gauge *to;
    long weight, used, spare[2];
};

/* The array lives in the frame: element 1 is written by name, then perhaps by index, then read by name. */
static long follow(unsigned pick, long weight, struct gauge *other)
{
    struct route routes[3];
    for (unsigned i = 0; i < 3; i++) {
        routes[i].weight = weight + i;
        routes[i].used = 0;
    }
    routes[0].to = &gauges.low;
    routes[1].to = &gauges.low;
    routes[2].to = other;
    routes[pick % 3].to = other;
    routes[1].to->level += routes[1].weight; // RACE: gauges.low, unless pick is 1
    return routes[pick % 3].weight + routes[pick % 2].used;
}

/* An index that counts from behind the array: turn is -4 or -3. */
static void detour(long turn, struct gauge *other)
{
    struct gauge *ways[2];
    ways[0] = &gauges.low;
    ways[1] = &gauges.low;
    ways[turn + 4] = other;
    ways[0]->limit++; // RACE: gauges.low, unless turn is -4
}

/* A local that changes behind its back. */
static void swap(long turn)
{
    struct gauge *held = &gauges.alone, **at = &held;
    if (turn & 1) *at = &gauges.spare;
    held->limit++; // NORACE: this thread's gauges
}

static void bump(long *value, const long *by)
{
    *value += *by;
}

/* Scalars whose addresses go to functions, beside scalars whose addresses do not. */
static long wander(struct gauge *mine, long rounds)
{
    long step = 3, sum = 0, left = rounds, last[4] = {0, 0, 0, 0};
    struct gauge copy = *mine; // NORACE: this thread's gauge
    long *chosen = rounds & 1 ? &sum : &copy.level;
    for (unsigned i = 0; left > 0; left--, i++) {
        bump(&sum, &step);
        bump(chosen, &step);
        last[i % 4] = sum;
    }
    mine->level = copy.level + last[rounds & 3]; // NORACE: this thread's gauge
    return sum + copy.limit;
}

static void *even(void *argument)
{
    const long *rounds = argument;
    long sum = 0;
    for (unsigned i = 0; i < *rounds; i++)
        sum += follow(i * 2, i, &gauges.middle);
    detour(-3 - (sum & 1), &gauges.middle);
    printf("even %ld\n", sum);
    return NULL;
}

static void *odd(void *argument)
{
    const long *rounds = argument;
    long sum = 0;
    for (unsigned i = 0; i < *rounds; i++)
        sum += follow(i * 2 + 1, i, &gauges.high);
    detour(-3 - (sum & 1), &gauges.high);
    printf("odd %ld\n", sum);
    return NULL;
}

static void *walk(void *argument)
{
    const long *rounds = argument;
    long sum = 0;
    for (long i = 0; i < *rounds; i++)
        sum += wander(&gauges.alone, i);
    swap(sum);
    printf("walk %ld\n", sum);
    return NULL;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 200;
    pthread_t threads[3];
    if (pthread_create(&threads[0], NULL, even, &rounds)) return 2;
    if (pthread_create(&threads[1], NULL, odd, &rounds)) return 2;
    if (pthread_create(&threads[2], NULL, walk, &rounds)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return gauges.low.level < 0; // NORACE: after the joins
}
