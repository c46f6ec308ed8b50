/* Condition variables with time-outs and broadcast: a team waits for a start sign, then main waits for all of them.
 *
 * Category: condvar
 * Verdict: no race. `plan` is written before the flag under the lock, and read after the flag was seen. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { TEAM = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int started, finished;
static int plan[TEAM];
static int done[TEAM];

static void wait_for(const int *what, int value)
{
    pthread_mutex_lock(&lock);
    while (*what < value) { // NORACE: under the lock
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    wait_for(&started, 1);
    done[me] = plan[me] * plan[me]; // NORACE: after `started` was seen under the lock
    pthread_mutex_lock(&lock);
    finished++; // NORACE: under the lock
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[TEAM];
    for (long i = 0; i < TEAM; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
        pthread_detach(threads[i]);
    }
    for (int i = 0; i < TEAM; i++)
        plan[i] = i + 2; // NORACE: nobody looks before `started`
    pthread_mutex_lock(&lock);
    started = 1; // NORACE: under the lock
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    wait_for(&finished, TEAM);
    int sum = 0;
    for (int i = 0; i < TEAM; i++)
        sum += done[i]; // NORACE: all have said that they finished
    printf("sum %d\n", sum);
    return 0;
}
