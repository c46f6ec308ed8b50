/* Ends, wrong: main returns, and the handlers of atexit run while a detached thread still works.
 *
 * Category: detach
 * Verdict: races on `entries` between the thread and the exit handler, and between the thread and main. `setup` comes
 * before. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int entries;
int announced;
int setup;

static void at_exit(void)
{
    int left = entries; // RACE entries: the thread is not stopped
    usleep(10);
    puts(left > 1000000 ? "?" : "flushed");
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        entries += setup; // RACE entries
        usleep(20);
        announced = 1; // RACE announced
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    setup = 1; // NORACE: before the create
    atexit(at_exit);
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    pthread_detach(thread);
    usleep(2000);
    return announced > 1; // RACE announced
}
