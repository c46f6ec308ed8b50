/* Cancellation: the cancelled thread holds a lock in a cancellation point; its cleanup handler, which runs with the
 * lock still held, repairs and unlocks. What it wrote is read after the join.
 *
 * Category: cancel
 * Alarm: gcc clang: ThreadSanitizer loses the unlock in the handler, since the cancelled call never returned to it.
 * Verdict: no race. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t inside;
static int half_done, repaired, seen;

static void repair(void *unused)
{
    (void)unused;
    half_done = 0; // NORACE: the lock is still held
    repaired++;    // NORACE: the same
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(repair, NULL);
    half_done = 1; // NORACE: under the lock
    sem_post(&inside);
    for (;;)
        usleep(1000);
    pthread_cleanup_pop(1);
    return NULL;
}

static void *look(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    seen = half_done; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t worker, looker;
    void *result;
    sem_init(&inside, 0, 0);
    if (pthread_create(&worker, NULL, work, NULL)) return 2;
    sem_wait(&inside);
    if (pthread_create(&looker, NULL, look, NULL)) return 2;
    pthread_cancel(worker);
    pthread_join(worker, &result);
    printf("repaired %d, %s\n", repaired, result == PTHREAD_CANCELED ? "cancelled" : "?"); // NORACE: after the join
    pthread_join(looker, NULL);
    return seen; // NORACE: after the join
}
