/* The classic: two threads take two locks in opposite order. The second thread starts its work 100 ms later, so that
 * the deadlock is possible but hardly ever strikes; sleeping is not synchronisation.
 *
 * Category: deadlock
 * Verdict: a deadlock between `forward` and `backward`. No race: each counter has its lock. `harmless` takes the
 * locks one after the other. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
int moved_right, moved_left;

static void *forward(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&left);  // DEADLOCK
    pthread_mutex_lock(&right); // DEADLOCK
    moved_right++;              // NORACE: under `right`
    pthread_mutex_unlock(&right);
    pthread_mutex_unlock(&left);
    return NULL;
}

static void *backward(void *unused)
{
    (void)unused;
    usleep(100000);
    pthread_mutex_lock(&right); // DEADLOCK
    pthread_mutex_lock(&left);  // DEADLOCK
    moved_left++;               // NORACE: under `left`
    pthread_mutex_unlock(&left);
    pthread_mutex_unlock(&right);
    return NULL;
}

static void *harmless(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&left);
    moved_left++; // NORACE: under `left` as everywhere
    pthread_mutex_unlock(&left);
    pthread_mutex_lock(&right);
    moved_right++; // NORACE: under `right` as everywhere
    pthread_mutex_unlock(&right);
    return NULL;
}

int main(void)
{
    void *(*const bodies[3])(void *) = {forward, backward, harmless};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, bodies[i], NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", moved_right, moved_left); // NORACE: after the joins
    return 0;
}
