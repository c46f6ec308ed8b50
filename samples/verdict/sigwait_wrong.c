/* Signals that are waited for, wrong: sent before the data is written, and a time-out taken for the signal.
 *
 * Category: signal
 * Alarm: gcc clang helgrind drd: pthread_kill and sigwait are no synchronisation to them.
 * Verdict: races on `after` (written after pthread_kill) and on `slow` (sigtimedwait gave up). `before` is right. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

sigset_t set, other;
int before;
int after;
int slow;

static void *receive(void *unused)
{
    (void)unused;
    int number, sum = 0;
    struct timespec limit = {0, 1000000};
    if (sigwait(&set, &number)) return NULL;
    sum += before; // NORACE: after the signal
    usleep(100);
    sum += after; // RACE after
    sigtimedwait(&other, NULL, &limit); // gives up after a millisecond
    sum += slow;                        // RACE slow
    usleep(10);
    return (void *)(long)sum;
}

int main(void)
{
    pthread_t thread;
    void *sum;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigemptyset(&other);
    sigaddset(&other, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_sigmask(SIG_BLOCK, &other, NULL);
    if (pthread_create(&thread, NULL, receive, NULL)) return 2;
    before = 1; // NORACE: before the signal
    pthread_kill(thread, SIGUSR1);
    after = 2; // RACE after: after the signal
    usleep(10000);
    slow = 4; // RACE slow: the receiver has given up
    pthread_kill(thread, SIGUSR2);
    pthread_join(thread, &sum);
    puts((long)sum <= 7 ? "done" : "?");
    return before != 1;
}
