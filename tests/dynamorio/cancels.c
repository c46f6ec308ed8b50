// Threads that are cancelled while they wait in a system call and get other signals as fast as these can be sent.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 300 };

static _Atomic pthread_t target; // 0: none
static atomic_int waiting, turns, stop;

static void on_signal(int number)
{
    (void)number;
}

static void *wait_for_ever(void *unused)
{
    waiting = 1;
    for (;;)
        pause();
    return unused;
}

static void *disturb(void *unused)
{
    while (!stop) {
        const pthread_t to = target;
        if (to) pthread_kill(to, SIGUSR1);
        turns++;
        sched_yield();
    }
    return unused;
}

int main(void)
{
    int cancelled = 0;
    pthread_t disturber, thread;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&disturber, NULL, disturb, NULL)) return 2;
    for (int round = 0; round < ROUNDS; round++) {
        void *result;
        waiting = 0;
        if (pthread_create(&thread, NULL, wait_for_ever, NULL)) return 2;
        while (!waiting)
            usleep(50);
        target = thread;
        usleep(200);
        pthread_cancel(thread);
        target = 0;
        for (const int seen = turns; turns < seen + 2;)
            sched_yield(); // nobody sends it signals any more
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    stop = 1;
    pthread_join(disturber, NULL);
    printf("%d of %d\n", cancelled, ROUNDS);
    return 0;
}
