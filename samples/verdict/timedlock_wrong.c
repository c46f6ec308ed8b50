/* pthread_mutex_timedlock, wrong: after the time-out the work is done all the same.
 *
 * Category: trylock
 * Verdict: a race on `shared`: the holder sleeps with the lock, the other times out and goes on. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long shared;
long timeouts;

static struct timespec in_a_millisecond(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return until;
}

static void *holder(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        shared++; // RACE shared: with the lock
        usleep(5000);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *impatient(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        struct timespec until = in_a_millisecond();
        int late = pthread_mutex_timedlock(&lock, &until);
        shared += 2; // RACE shared: with or without
        if (late) timeouts++; // NORACE: this thread's only
        else pthread_mutex_unlock(&lock);
        usleep(1000);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, holder, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, impatient, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(timeouts <= 5 ? "done" : "?"); // NORACE: after the joins
    return shared > 15;                 // NORACE: after the joins
}
