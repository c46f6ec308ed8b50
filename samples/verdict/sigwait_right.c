/* Signals that are waited for: sigwait, sigtimedwait and signalfd take them where it suits, without a handler.
 *
 * Category: signal
 * Alarm: gcc clang helgrind drd: pthread_kill and sigwait are no synchronisation to them.
 * Verdict: no race. What the sender wrote before pthread_kill, the receiver reads after sigwait. The signals are
 * blocked before the thread is created, so none is lost. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t first, second, third;
static int one, two, three;

static void *receive(void *result)
{
    int number, sum = 0;
    struct timespec limit = {5, 0};
    struct signalfd_siginfo info;
    if (sigwait(&first, &number)) return NULL;
    sum += one; // NORACE: after the signal
    if (sigtimedwait(&second, NULL, &limit) < 0) return NULL;
    sum += two; // NORACE: after the signal
    int fd = signalfd(-1, &third, 0);
    if (read(fd, &info, sizeof info) != sizeof info) return NULL;
    sum += three; // NORACE: after the signal
    close(fd);
    *(int *)result = sum; // NORACE: read after the join
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int sum = 0;
    sigset_t all;
    sigemptyset(&first), sigaddset(&first, SIGUSR1);
    sigemptyset(&second), sigaddset(&second, SIGUSR2);
    sigemptyset(&third), sigaddset(&third, SIGHUP);
    sigemptyset(&all), sigaddset(&all, SIGUSR1), sigaddset(&all, SIGUSR2), sigaddset(&all, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (pthread_create(&thread, NULL, receive, &sum)) return 2;
    one = 1; // NORACE: before the signal
    pthread_kill(thread, SIGUSR1);
    two = 2; // NORACE: before the signal
    pthread_kill(thread, SIGUSR2);
    three = 3; // NORACE: before the signal
    kill(getpid(), SIGHUP);
    pthread_join(thread, NULL);
    printf("sum %d\n", sum); // NORACE: after the join
    return 0;
}
