/* Arrays shared by index: rows of a matrix, records of a heap array, a permutation, halves split by recursion.
 *
 * Category: array-partition
 * Verdict: no race. That the permutation hits each element once is beyond a static detector; the rest takes arithmetic
 * on the index or on the pointer that each thread is given. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, N = 64 };

struct task {
    int *from;
    int count;
    int me;
};

static double matrix[THREADS][16];
static int permuted[N];
static int order[N];

__attribute__((noinline)) static void square(int *from, int count)
{
    for (int i = 0; i < count; i++)
        from[i] = from[i] * from[i]; // NORACE: own part of the heap array
}

static void *work(void *argument)
{
    struct task *task = argument;
    double *row = matrix[task->me]; // NORACE: own task
    for (int i = 0; i < 16; i++)
        row[i] = i + task->me; // NORACE: own row
    square(task->from, task->count);
    for (int i = task->me; i < N; i += THREADS)
        permuted[order[i]] = i; // NORACE: a permutation
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct task tasks[THREADS];
    int *array = malloc(N * sizeof *array);
    long sum = 0;
    if (!array) return 2;
    for (int i = 0; i < N; i++) {
        array[i] = i;          // NORACE: before the creates
        order[i] = i * 5 % N;  // NORACE: before the creates
    }
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (struct task){array + i * (N / THREADS), N / THREADS, i}; // NORACE: before the create
        if (pthread_create(&threads[i], NULL, work, &tasks[i])) return 2;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N; i++)
        sum += array[i] + permuted[i]; // NORACE: after the joins
    printf("sum %ld, %g\n", sum, matrix[3][2]); // NORACE: after the joins
    free(array);
    return 0;
}
