/* Waiting for all of a team by a counter, wrong in three ways: for one less than there are, for reports of which each thread makes
 * two, and for what is written after the report. One counter is right.
 *
 * Category: condvar
 * Verdict: races on `most`, `twice` and `late`. `all` is read after each thread has reported. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { TEAM = 3 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int most_done, twice_done, all_done;
int most[TEAM], twice[TEAM], all[TEAM], late[TEAM];

__attribute__((noinline)) static void report(int *counter)
{
    pthread_mutex_lock(&lock);
    ++*counter; // NORACE: under the lock
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void wait_for(const int *counter, int value)
{
    pthread_mutex_lock(&lock);
    while (*counter < value) // NORACE: under the lock
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    usleep(300u * (unsigned)me);
    most[me] = 1; // RACE most: main waits for one less
    pthread_mutex_lock(&lock);
    most_done++; // NORACE: under the lock
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    usleep(300u * (unsigned)me);
    twice[me] = 1; // RACE twice: others may have reported twice
    report(&twice_done);
    report(&twice_done);
    all[me] = 1; // NORACE: before the only report
    pthread_mutex_lock(&lock);
    all_done++; // NORACE: under the lock
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    late[me] = 1; // RACE late: reported already
    return NULL;
}

int main(void)
{
    pthread_t threads[TEAM];
    int sum = 0;
    for (long i = 0; i < TEAM; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    pthread_mutex_lock(&lock);
    while (most_done < TEAM - 1) // NORACE: under the lock
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < TEAM; i++)
        sum += most[i]; // RACE most
    wait_for(&twice_done, TEAM);
    for (int i = 0; i < TEAM; i++)
        sum += twice[i]; // RACE twice
    pthread_mutex_lock(&lock);
    while (all_done < TEAM) // NORACE: under the lock
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < TEAM; i++)
        sum += all[i]; // NORACE: all have reported
    for (int i = 0; i < TEAM; i++)
        sum += late[i]; // RACE late
    for (int i = 0; i < TEAM; i++)
        pthread_join(threads[i], NULL);
    return sum > 4 * TEAM;
}
