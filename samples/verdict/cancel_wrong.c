/* Cancellation, wrong: the cleanup handler runs when the thread dies, not when it is cancelled; main does not wait for
 * it before it looks, and the handler writes after its unlock.
 *
 * Category: cancel
 * Verdict: races on `state` and on `cleanups` between the handler and main. `inside` orders what came before. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
sem_t inside;
int started;
int state;
int cleanups;

static void clean(void *unused)
{
    (void)unused;
    state = 2; // RACE state: main may be looking
    pthread_mutex_unlock(&lock);
    cleanups++; // RACE cleanups: after the unlock
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(clean, NULL);
    started = 1; // NORACE: before the post
    sem_post(&inside);
    for (;;)
        usleep(1000);
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    pthread_t worker;
    sem_init(&inside, 0, 0);
    if (pthread_create(&worker, NULL, work, NULL)) return 2;
    sem_wait(&inside);
    int sum = started; // NORACE: after the post
    pthread_cancel(worker);
    sum += state; // RACE state: the handler may be running
    usleep(3000);
    pthread_mutex_lock(&lock);
    sum += cleanups; // RACE cleanups: the lock came back before it was written
    pthread_mutex_unlock(&lock);
    pthread_join(worker, NULL);
    printf("state %d\n", state); // NORACE: after the join
    return sum > 4;
}
