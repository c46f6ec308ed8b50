/* eventfd, wrong: a non-blocking read whose failure is not noticed, and a counter of two where one was meant.
 *
 * Category: descriptor
 * Verdict: races on `data` (nothing was read) and on `guarded` (two may pass). */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

int ready, gate;
int data;
long guarded;

static void pass_gate(void)
{
    uint64_t value;
    if (read(gate, &value, sizeof value) != sizeof value) _exit(1);
}

static void leave_gate(void)
{
    uint64_t one = 1;
    if (write(gate, &one, sizeof one) != sizeof one) _exit(1);
}

__attribute__((noinline)) static void crowd(void)
{
    for (int i = 0; i < 5; i++) {
        pass_gate();
        guarded++; // RACE guarded: two may be here
        usleep(300);
        leave_gate();
    }
}

static void *work(void *unused)
{
    (void)unused;
    uint64_t one = 1;
    usleep(2000);
    data = 5; // RACE data
    if (write(ready, &one, sizeof one) != sizeof one) _exit(1);
    crowd();
    return NULL;
}

int main(void)
{
    pthread_t thread;
    uint64_t value;
    ready = eventfd(0, EFD_NONBLOCK);
    gate = eventfd(2, EFD_SEMAPHORE);
    if (ready < 0 || gate < 0) return 2;
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    long tries = read(ready, &value, sizeof value); // -1: not ready
    int seen = data;                                // RACE data
    usleep(2500);
    crowd();
    pthread_join(thread, NULL);
    printf("data %d\n", data);                 // NORACE: after the join
    return guarded > 10 || seen > 5 || tries > 8; // NORACE: after the join
}
