/* Two signals at once, again and again, to a thread that does nothing but access memory: neither is lost. All threads
 * have one processor, so that both signals wait for the thread when it runs again. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 400, SECONDS = 10 };
static _Atomic long first, second;
static _Atomic int stop, tid;
static volatile long numbers[512];

static void on_first(int number)
{
    (void)number;
    first++;
}

static void on_second(int number)
{
    (void)number;
    second++;
}

static void *work(void *unused)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    tid = gettid();
    while (!stop) {
        pthread_mutex_lock(&lock); /* a new epoch: every access is its first */
        pthread_mutex_unlock(&lock);
        for (int i = 0; i < 512; i++)
            numbers[i] += i;
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    signal(SIGUSR1, on_first);
    signal(SIGUSR2, on_second);
    pthread_create(&thread, NULL, work, NULL);
    while (!tid)
        sched_yield();
    for (long i = 1; i <= PAIRS; i++) {
        struct timespec now, start;
        clock_gettime(CLOCK_MONOTONIC, &start);
        tgkill(getpid(), tid, SIGUSR1);
        tgkill(getpid(), tid, SIGUSR2);
        while (first < i || second < i) {
            usleep(1);
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec - start.tv_sec < SECONDS) continue;
            printf("pair %ld: %ld and %ld came\n", i, (long)first, (long)second);
            return 1;
        }
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("%ld %ld\n", (long)first, (long)second);
    return 0;
}
