/* Condition variables, wrong: the wait is a short one that may time out, and its answer is not looked at; and the data
 * is written after the flag, outside of the lock.
 *
 * Category: condvar
 * Verdict: races on `data` (read after a time-out that nobody noticed) and on `note` (written after the unlock). The
 * flag itself is under the lock. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int data;
int note;

static void *produce(void *unused)
{
    (void)unused;
    usleep(10000);
    data = 42; // RACE data: the consumer has given up waiting
    pthread_mutex_lock(&lock);
    ready = 1; // NORACE: under the lock
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    usleep(100);
    note = 7; // RACE note: after the flag
    return NULL;
}

static void *consume(void *unused)
{
    (void)unused;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&lock);
    if (!ready) // NORACE: under the lock
        pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
    int seen = data; // RACE data
    pthread_mutex_lock(&lock);
    while (!ready) // NORACE: under the lock
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    seen += note; // RACE note
    return (void *)(long)seen;
}

int main(void)
{
    pthread_t threads[2];
    void *seen;
    if (pthread_create(&threads[0], NULL, produce, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, consume, NULL)) return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &seen);
    puts((long)seen <= 49 ? "done" : "?");
    return ready != 1; // NORACE: after the joins
}
