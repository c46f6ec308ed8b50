/* Heap objects that reach other threads through the thread argument.
 *
 *   heap_object [ROUNDS]
 *
 * Each worker has a job of its own, allocated at the same place in the program, and all jobs point to one shared
 * total. Verdict: one race, on `total.sum`; the jobs are distinct objects, and `total.done` is atomic. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 3 };

struct total {
    long sum;
    atomic_int done;
};

struct job {
    struct total *total;
    int rounds;
    long partial;
};

static void *work(void *argument)
{
    struct job *job = argument;
    for (int i = 0; i < job->rounds; i++) // NORACE: this worker's job
        job->partial += i;                // NORACE: this worker's job
    job->total->sum += job->partial;      // RACE
    atomic_fetch_add(&job->total->done, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    struct total *total = malloc(sizeof *total);
    struct job *jobs[WORKERS];
    pthread_t threads[WORKERS];
    if (!total) return 2;
    total->sum = argc - 1;       // NORACE: before the threads
    atomic_init(&total->done, 0);
    for (int i = 0; i < WORKERS; i++) {
        jobs[i] = malloc(sizeof *jobs[i]);
        if (!jobs[i]) return 2;
        jobs[i]->total = total;
        jobs[i]->rounds = argc > 1 ? atoi(argv[1]) : 100;
        jobs[i]->partial = i;
        if (pthread_create(&threads[i], NULL, work, jobs[i])) return 2;
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        free(jobs[i]);
    }
    printf("%d workers done\n", atomic_load(&total->done));
    int bad = total->sum < 0; // NORACE: after the joins
    free(total);
    return bad;
}
