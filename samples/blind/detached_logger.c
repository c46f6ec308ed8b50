/* A detached thread cannot be joined; here it reports back through a semaphore, but for one counter.
 *
 * Category: detach
 * Verdict: a race on `flushed`, which the detached thread writes after it has posted. What it wrote before the post is
 * ordered. The job that is handed to it lives on the heap and changes owner. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
    int lines;
    sem_t *finished;
};

int written;
int flushed;

static void *logger(void *argument)
{
    struct job *job = argument;
    sem_t *finished = job->finished; // NORACE: the job is ours since the create
    for (int i = 0; i < job->lines; i++) // NORACE: the same
        written++;                       // NORACE: before the post
    free(job);
    sem_post(finished);
    flushed = 1; // RACE flushed
    return NULL;
}

int main(void)
{
    static sem_t finished;
    pthread_t thread;
    pthread_attr_t attributes;
    sem_init(&finished, 0, 0);
    for (int round = 0; round < 2; round++) {
        struct job *job = malloc(sizeof *job);
        if (!job) abort();
        job->lines = 10 + round;   // NORACE: before the create
        job->finished = &finished; // NORACE: before the create
        if (round == 0) {
            if (pthread_create(&thread, NULL, logger, job)) return 2;
            pthread_detach(thread);
        } else {
            pthread_attr_init(&attributes);
            pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
            if (pthread_create(&thread, &attributes, logger, job)) return 2;
            pthread_attr_destroy(&attributes);
        }
        sem_wait(&finished);
        written += 100; // NORACE: after the post, before the next create
    }
    printf("written %d\n", written);       // NORACE: after the last post
    return flushed != 0 && flushed != 1; // RACE flushed
}
