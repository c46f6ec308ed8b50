/* eventfd: as a flag, and as a semaphore (EFD_SEMAPHORE) that guards a counter.
 *
 * Category: descriptor
 * Verdict: no race. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ROUNDS = 50 };

static int ready, gate;
static int table[8];
static long guarded;

static void pass(int fd)
{
    uint64_t value;
    if (read(fd, &value, sizeof value) != sizeof value) _exit(1);
}

static void signal_fd(int fd)
{
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) != sizeof one) _exit(1);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 8; i++)
        table[i] = i * i; // NORACE: before the write
    signal_fd(ready);
    for (int i = 0; i < ROUNDS; i++) {
        pass(gate);
        guarded++; // NORACE: one at a time
        signal_fd(gate);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int sum = 0;
    ready = eventfd(0, 0);
    gate = eventfd(1, EFD_SEMAPHORE);
    if (ready < 0 || gate < 0) return 2;
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    pass(ready);
    for (int i = 0; i < 8; i++)
        sum += table[i]; // NORACE: after the read
    for (int i = 0; i < ROUNDS; i++) {
        pass(gate);
        guarded++; // NORACE: one at a time
        signal_fd(gate);
    }
    pthread_join(thread, NULL);
    printf("sum %d, guarded %ld\n", sum, guarded); // NORACE: after the join
    return 0;
}
