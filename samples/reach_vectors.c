/* Numbers in bulk: loops that an optimiser unrolls and vectorises, pairs of pointers that it copies sixteen bytes at a
 * time, and structs on the stack of main that point to each other.
 *
 *   reach_vectors [ROUNDS]
 *
 * Verdict: one race, on `norm`, which every thread adds to. Inputs are read-only while threads run, outputs are
 * divided. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 96, THREADS = 3 };

struct view {
    const float *from;
    float *to;
};

struct task {
    struct view view;
    int first, count;
    float factor;
    struct task *neighbour;
};

float input[LENGTH];
float norm;

static void scale(float *restrict to, const float *restrict from, int count, float factor)
{
    for (int i = 0; i < count; i++)
        to[i] = from[i] * factor + 1; // NORACE: this thread's part of the output
}

static void *run(void *argument)
{
    struct task *task = argument;
    struct view view = task->view; // NORACE: written before the threads
    scale(view.to + task->first, view.from + task->first, task->count, task->factor);
    float sum = 0;
    for (int i = 0; i < task->count; i++)
        sum += view.to[task->first + i];      // NORACE: this thread's part
    norm += sum + task->neighbour->factor;    // RACE
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    float *output = malloc(LENGTH * sizeof *output);
    struct task tasks[THREADS];
    if (!output) return 2;
    for (int i = 0; i < LENGTH; i++)
        input[i] = (float)(i + rounds);
    for (int i = 0; i < THREADS; i++) {
        tasks[i].view.from = input;
        tasks[i].view.to = output;
        tasks[i].first = i * (LENGTH / THREADS);
        tasks[i].count = LENGTH / THREADS;
        tasks[i].factor = (float)(i + 1) / (float)rounds;
        tasks[i].neighbour = &tasks[(i + 1) % THREADS];
    }
    for (int round = 0; round < rounds; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, run, &tasks[i])) return 2;
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    float sum = 0;
    for (int i = 0; i < LENGTH; i++)
        sum += output[i]; // NORACE: after the joins
    free(output);
    printf("sum %g\n", (double)sum);
    return norm < 0; // NORACE: after the joins
}
