/* Many short-lived timers with threads of their own, in a process and then in a child of it. Nothing races: what the
 * threads do is waited for under a lock. Prints how many were there in each. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMERS = 200 };

struct job {
    int is_set; /* after the timer was created, before it is set */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int done;

static void on_timer(union sigval value)
{
    struct job *job = value.sival_ptr;
    const int is_set = job->is_set;
    free(job);
    pthread_mutex_lock(&lock);
    done += is_set;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static int count(void)
{
    const struct itimerspec soon = {{0, 0}, {0, 100000}};
    done = 0;
    for (int i = 1; i <= TIMERS; i++) {
        timer_t timer;
        struct job *job = calloc(1, sizeof *job);
        struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_ptr = job};
        event.sigev_notify_function = on_timer;
        if (!job || timer_create(CLOCK_MONOTONIC, &event, &timer)) return -1;
        job->is_set = 1;
        if (timer_settime(timer, 0, &soon, NULL)) return -1;
        pthread_mutex_lock(&lock);
        while (done < i)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        timer_delete(timer);
    }
    return done;
}

int main(void)
{
    const int here = count();
    int status;
    pid_t child = fork();
    if (child < 0) return 2;
    if (!child) _exit(count());
    waitpid(child, &status, 0);
    printf("%d %d\n", here, WEXITSTATUS(status));
    return 0;
}
