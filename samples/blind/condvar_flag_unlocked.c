/* A flag that one side tests under the mutex and the other sets without it before it signals.
 *
 * Category: condvar
 * Verdict: races on `ready` and, since nothing orders the two sides, on `message`. The signal may be lost, so the wait
 * has a time-out; the right version of the same, on `done` and `answer`, comes after. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int message;
int done;
int answer;

__attribute__((noinline)) static void announce(void)
{
    message = 41; // RACE message
    ready = 1;    // RACE ready: no lock
    pthread_cond_signal(&changed);
}

__attribute__((noinline)) int is_ready(void)
{
    return ready == 1; // RACE ready
}

static void *wait_and_answer(void *unused)
{
    (void)unused;
    struct timespec until;
    pthread_mutex_lock(&lock);
    for (int tries = 0; tries < 20; tries++) {
        if (is_ready()) break;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 10000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
    int got = message; // RACE message

    pthread_mutex_lock(&lock);
    answer = got + 1; // NORACE: under the lock
    done = 1;         // NORACE: under the lock
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t waiter;
    if (pthread_create(&waiter, NULL, wait_and_answer, NULL)) return 2;
    announce();
    pthread_mutex_lock(&lock);
    while (!done) // NORACE: under the lock
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    int result = answer; // NORACE: `done` was seen under the lock, after it was written
    pthread_join(waiter, NULL);
    puts(result == 42 || result == 1 ? "answered" : "wrong");
    return 0;
}
