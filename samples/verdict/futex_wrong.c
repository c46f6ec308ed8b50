/* The futex system call, wrong: it sleeps and wakes, but the word itself is plain, so nothing is ordered.
 *
 * Category: futex
 * Verdict: races on `flag`, a plain word, and on `payload` behind it; the wait has a time-out, so no wake is missed for
 * long. (The kernel's own look at the word is atomic, the program's are not.) */
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

volatile int flag;
int payload;
int set_up;

static void *produce(void *unused)
{
    (void)unused;
    usleep(1000);
    payload = set_up + 1; // RACE payload
    flag = 1;             // RACE flag
    syscall(SYS_futex, &flag, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return NULL;
}

static void *consume(void *unused)
{
    (void)unused;
    struct timespec limit = {0, 5000000};
    while (!flag) // RACE flag
        syscall(SYS_futex, &flag, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
    int seen = payload; // RACE payload
    usleep(10);
    return (void *)(long)seen;
}

int main(void)
{
    pthread_t threads[2];
    void *seen;
    set_up = 10; // NORACE: before the creates
    if (pthread_create(&threads[0], NULL, produce, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, consume, NULL)) return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &seen);
    printf("%ld\n", (long)seen);
    return payload != 11; // NORACE: after the joins
}
