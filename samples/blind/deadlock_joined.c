/* Opposite lock orders that cannot deadlock, since the first thread is joined before the second starts.
 *
 * Category: no-deadlock
 * Alarm: gcc clang helgrind: their lock order knows no time.
 * Verdict: neither deadlock nor race. The lock acquisitions are marked NORACE: a deadlock reported on them is a false
 * alarm. Main takes the locks in the second order too, but before the first thread exists. */
#include <pthread.h>
#include <stdio.h>

pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
int value;
int log_length;

static void *morning(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&first);  // NORACE: no deadlock, nobody else runs
    pthread_mutex_lock(&second); // NORACE: no deadlock, nobody else runs
    value++;                     // NORACE: under both locks
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    return NULL;
}

static void *evening(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&second); // NORACE: no deadlock, `morning` is over
    pthread_mutex_lock(&first);  // NORACE: no deadlock, `morning` is over
    value *= 2;                  // NORACE: under both locks
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    log_length++; // NORACE: the only thread that runs
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&second); // NORACE: no deadlock, before any thread
    pthread_mutex_lock(&first);  // NORACE: no deadlock, before any thread
    value = 10;                  // NORACE: before any thread
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    if (pthread_create(&thread, NULL, morning, NULL)) return 2;
    pthread_join(thread, NULL);
    log_length++; // NORACE: no other thread
    if (pthread_create(&thread, NULL, evening, NULL)) return 2;
    pthread_join(thread, NULL);
    printf("value %d, log %d\n", value, log_length); // NORACE: after the joins
    return 0;
}
