/* A queue of jobs with functions in them, workers that run whatever they take, and a thread that feeds them.
 *
 *   reach_queue [JOBS]
 *
 * Verdict: one race, on `stats.largest`, which the jobs update without the lock. The ring, the counters of jobs and the
 * results change hands under the lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 8, WORKERS = 3 };

struct job {
    void (*run)(struct job *);
    long input, output;
    struct job *next_done;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *ring[ROOM];
    unsigned head, tail;
    int closed;
    struct job *done;
};

struct statistics {
    long largest;
    long finished;
};

struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
struct statistics stats;

static void square(struct job *job)
{
    long output = job->input * job->input;          // NORACE: the worker's job
    job->output = output;                           // NORACE: the worker's job
    if (output > stats.largest) stats.largest = output; // RACE
}

static void halve(struct job *job)
{
    long output = job->input / 2;                   // NORACE: the worker's job
    job->output = output;                           // NORACE: the worker's job
    if (output > stats.largest) stats.largest = output; // RACE
}

static void (*const kinds[])(struct job *) = {square, halve};

static struct job *make_job(long input)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job) abort();
    job->input = input;
    job->run = kinds[input % 2];
    return job;
}

static void put(struct queue *q, struct job *job)
{
    pthread_mutex_lock(&q->lock);
    while (q->tail - q->head == ROOM) // NORACE: under the lock
        pthread_cond_wait(&q->changed, &q->lock);
    q->ring[q->tail++ % ROOM] = job; // NORACE: under the lock
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static struct job *take(struct queue *q)
{
    struct job *job = NULL;
    pthread_mutex_lock(&q->lock);
    while (q->head == q->tail && !q->closed) // NORACE: under the lock
        pthread_cond_wait(&q->changed, &q->lock);
    if (q->head != q->tail) {
        job = q->ring[q->head++ % ROOM]; // NORACE: under the lock
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return job;
}

static void *work(void *argument)
{
    struct queue *q = argument;
    for (struct job *job; (job = take(q));) {
        job->run(job); // NORACE: the worker's job
        pthread_mutex_lock(&q->lock);
        job->next_done = q->done; // NORACE: under the lock
        q->done = job;            // NORACE: under the lock
        stats.finished++;         // NORACE: under the lock
        pthread_mutex_unlock(&q->lock);
    }
    return NULL;
}

static void *feed(void *argument)
{
    const long *jobs = argument;
    for (long i = 0; i < *jobs; i++)
        put(&queue, make_job(i));
    pthread_mutex_lock(&queue.lock);
    queue.closed = 1; // NORACE: under the lock
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    return NULL;
}

int main(int argc, char **argv)
{
    long jobs = argc > 1 ? atol(argv[1]) : 400;
    pthread_t feeder, workers[WORKERS];
    if (pthread_create(&feeder, NULL, feed, &jobs)) return 2;
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&workers[i], NULL, work, &queue)) return 2;
    pthread_join(feeder, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    long sum = 0;
    while (queue.done) { // NORACE: after the joins
        struct job *job = queue.done;
        sum += job->output;
        queue.done = job->next_done;
        free(job);
    }
    printf("%ld jobs, sum %ld, largest %ld\n", stats.finished, sum, stats.largest); // NORACE: after the joins
    return 0;
}
