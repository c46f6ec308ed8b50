/* A POSIX timer that runs its function in a thread of its own (SIGEV_THREAD): an origin that no pthread_create in the
 * program shows.
 *
 * Category: signal
 * Fails: gcc clang: ThreadSanitizer crashes, since the timer's thread is made inside of libc, out of its sight.
 * Unseen: for the same reason.
 * Verdict: a race on `ticks`, which the timer's thread writes and main reads. `under_lock` has a lock, `setup` comes
 * before the timer is armed. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int ticks;
int under_lock;
int setup;

static void on_timer(union sigval value)
{
    pthread_mutex_lock(&lock);
    under_lock += setup + value.sival_int; // NORACE: under the lock, `setup` before the timer
    pthread_mutex_unlock(&lock);
    ticks++; // RACE ticks
}

__attribute__((noinline)) int look(void)
{
    int now = ticks; // RACE ticks
    usleep(10);
    return now;
}

int main(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 1};
    struct itimerspec when = {{0, 2000000}, {0, 2000000}}, never = {{0, 0}, {0, 0}};
    event.sigev_notify_function = on_timer;
    setup = 1; // NORACE: before the timer is armed
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return 2;
    if (timer_settime(timer, 0, &when, NULL)) return 2;
    int seen = 0;
    for (int i = 0; i < 100 && seen < 2; i++) {
        usleep(1000);
        seen = look();
    }
    timer_settime(timer, 0, &never, NULL);
    usleep(5000);
    timer_delete(timer);
    pthread_mutex_lock(&lock);
    puts(under_lock % 2 == 0 ? "even" : "odd"); // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return 0;
}
