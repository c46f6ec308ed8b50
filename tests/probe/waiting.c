/* Signals that come while neighbouring accesses are checked: they are delivered before the program goes on, so it never finds
 * them blocked. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static atomic_int ticks;
static int fields[1024];

static void on_tick(int number)
{
    (void)number;
    ticks++;
}

__attribute__((noinline)) static int sum(const int *at)
{
    return at[3] + at[5];
}

static void *company(void *unused) /* so that there is more than one thread, and checks are made */
{
    while (!atomic_load(&stop))
        usleep(500);
    return unused;
}

int main(void)
{
    pthread_t thread;
    sigset_t none;
    sigemptyset(&none);
    if (pthread_create(&thread, NULL, company, NULL)) return 2;
    struct sigaction action = {.sa_handler = on_tick};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 40}, {0, 40}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    long total = 0, blocked = 0;
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex); /* another epoch */
        pthread_mutex_unlock(&mutex);
        for (int k = 0; k < 1000; k += 8) {
            unsigned long mask = 0;
            total += sum(fields + k);
            if (k % 200) continue;
            syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
            blocked += mask != 0;
        }
    }
    setitimer(ITIMER_REAL, &off, NULL);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    printf("blocked %ld\n", blocked);
    return total != 0 || !ticks;
}
