/* A program that gives up when it cannot take a lock, and takes others on the way: it does not hold the one that it did not get. WRONG:
 * the same when it did get it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t flag_lock = PTHREAD_MUTEX_INITIALIZER, queue_lock = PTHREAD_MUTEX_INITIALIZER;
static int flag, queued;

__attribute__((noinline)) static void clean_up(void)
{
    pthread_mutex_lock(&queue_lock);
    queued = 0;
    pthread_mutex_unlock(&queue_lock);
    exit(1);
}

static void *watch(void *argument)
{
    (void)argument;
    int code = pthread_mutex_lock(&flag_lock);
#ifdef WRONG
    if (!code && flag > 1) clean_up();
#else
    if (code) clean_up();
#endif
    flag = 1;
    pthread_mutex_unlock(&flag_lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL)) return 2;
    pthread_mutex_lock(&queue_lock);
    pthread_mutex_lock(&flag_lock);
    queued = flag;
    pthread_mutex_unlock(&flag_lock);
    pthread_mutex_unlock(&queue_lock);
    pthread_join(thread, NULL);
    printf("%d\n", queued);
    return 0;
}
