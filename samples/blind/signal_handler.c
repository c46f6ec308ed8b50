/* A signal handler runs in the middle of main, while a worker thread goes on.
 *
 * Category: signal
 * Fails: gcc clang: ThreadSanitizer now and then, when both threads report at once, one of them in the handler.
 * Verdict: a race on `shared`, which the handler (in main's thread) and the worker both write. `ticks` is touched in
 * main's thread only, by main and the handler, and is of the type that is made for this; `acknowledged` is atomic; what
 * was set up before the handler was installed is ordered. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { SIGNALS = 5 };

pthread_t main_thread;
volatile sig_atomic_t ticks;
atomic_int acknowledged;
int step;
int shared;
int quiet;

static void on_signal(int number)
{
    (void)number;
    ticks = ticks + 1; // NORACE: main's thread only
    shared += step;    // RACE shared: the worker writes it too
    quiet += step;     // NORACE: the worker reads it after the acknowledgement
    atomic_fetch_add(&acknowledged, 1);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(main_thread, SIGUSR1);
        shared++; // RACE shared
        while (atomic_load(&acknowledged) == i) // NORACE: atomic
            usleep(50);
    }
    return (void *)(long)quiet; // NORACE: the last handler has run
}

int main(void)
{
    pthread_t worker;
    void *result;
    step = 2; // NORACE: before the handler is there
    main_thread = pthread_self();
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&worker, NULL, work, NULL)) return 2;
    while (ticks < SIGNALS) // NORACE: the same thread as the handler
        usleep(100);
    pthread_join(worker, &result);
    printf("ticks %d, quiet %ld\n", (int)ticks, (long)result); // NORACE: the same thread as the handler
    return shared < SIGNALS;                                   // NORACE: after the join, in the handler's thread
}
