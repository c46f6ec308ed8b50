/* Conditions that tell of a message, or of a flag, only half: `or` where `and` would be right, and a loop that may be left because it is
 * late. The pipe does not wait for the message, so that it may be missing.
 *
 * Category: condvar
 * Verdict: races on `sent` (the loop goes on when nothing was received) and on `payload` (read although the wait was given up).
 * `right` is read only where the flag was seen. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int wires[2];
int ready, payload, right, sent;

/* A function of its own: an optimiser may read what `if` guards in front of it. */
__attribute__((noinline)) int look_payload(void)
{
    return payload + 1; // RACE payload: nobody has seen the flag
}

__attribute__((noinline)) int look_right(void)
{
    return right + 1; // NORACE: only where the flag was seen
}

__attribute__((noinline)) int look_sent(void)
{
    return sent + 1; // RACE sent: perhaps it is only late
}

static void *produce(void *unused)
{
    (void)unused;
    char byte = 1;
    usleep(3000);
    sent = 1; // RACE sent
    if (write(wires[1], &byte, 1) != 1) return NULL;
    payload = 4; // RACE payload
    usleep(10);
    right = 5;   // NORACE: before the flag, and read where it was seen
    pthread_mutex_lock(&lock);
    ready = 1; // NORACE: under the lock
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    struct timespec until = {1, 0};
    int late = 0, sum = 0;
    char byte = 0;
    if (pipe2(wires, O_NONBLOCK) || pthread_create(&thread, NULL, produce, NULL)) return 2;
    pthread_mutex_lock(&lock);
    while (!ready && !late) // NORACE: under the lock
        late = pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
    if (late) sum += look_payload();
    if (!late) sum += look_right();
    if (read(wires[0], &byte, 1) == 1 || late) sum += look_sent();
    pthread_join(thread, NULL);
    printf("%d\n", sum >= 0);
    return 0;
}
