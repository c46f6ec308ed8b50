/* Ways to hand data to functions: pointers to fields, out parameters, structs by value in registers and on the stack,
 * returned structs, more arguments than registers, several results.
 *
 *   reach_calls [ROUNDS]
 *
 * Verdict: one race, on `board.peak`, which all threads raise. Scores are each thread's own; `board.total` is guarded
 * by the lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct pair {
    long low, high;
};

struct sample { /* too large for registers */
    long values[4];
    struct pair range;
    int *count;
};

struct score {
    struct pair range;
    int count;
    long last;
};

struct board {
    pthread_mutex_t lock;
    long total; /* guarded by lock */
    long peak;
    struct score scores[3];
};

struct board board = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct pair widen(struct pair range, long value)
{
    if (value < range.low) range.low = value;
    if (value > range.high) range.high = value;
    return range;
}

static struct sample make_sample(long seed, int *count)
{
    struct sample s;
    for (int i = 0; i < 4; i++)
        s.values[i] = seed * (i + 1) % 97;
    s.range.low = s.range.high = s.values[0];
    s.count = count;
    return s;
}

static long consider(struct sample s, struct pair *into)
{
    for (int i = 0; i < 4; i++)
        *into = widen(*into, s.values[i]); // NORACE: this thread's score
    ++*s.count;                            // NORACE: this thread's score
    return s.range.low;
}

static void split(long value, long *quotient, long *rest)
{
    *quotient = value / 10;
    *rest = value % 10;
}

static void publish(long a, long b, long c, long d, long e, long f, long *total, long *peak)
{
    *peak = a > *peak ? a : *peak; // RACE
    pthread_mutex_lock(&board.lock);
    *total += a + b + c + d + e + f; // NORACE: under the lock
    pthread_mutex_unlock(&board.lock);
}

static void *play(void *argument)
{
    struct score *score = argument;
    for (long round = 1; round < 30; round++) {
        long tens, ones;
        struct sample s = make_sample(round, &score->count);
        long last = consider(s, &score->range); // NORACE: this thread's score
        split(score->range.high, &tens, &ones); // NORACE: this thread's score
        publish(score->range.high, tens, ones, round, last, 1, &board.total, &board.peak);
        score->last = last; // NORACE: this thread's score
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    for (int round = 0; round < rounds; round++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            if (pthread_create(&threads[i], NULL, play, &board.scores[i])) return 2;
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
    }
    long sum = 0;
    for (int i = 0; i < 3; i++)
        sum += board.scores[i].range.high - board.scores[i].range.low; // NORACE: after the joins
    printf("sum %ld, total %ld\n", sum, board.total);                  // NORACE: after the joins
    return board.peak < 0;                                             // NORACE: after the joins
}
