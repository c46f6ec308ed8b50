/* A mutex made of an atomic word and the futex system call, as in Drepper's "Futexes are tricky": the order comes from
 * the atomics, the system call only sleeps.
 *
 * Category: futex
 * Verdict: no race. `guarded` is always between `acquire` and `release`. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 200 };

static atomic_int word; // 0 free, 1 held, 2 held and somebody sleeps
static long guarded;
static long longest;

static void futex(int operation, int value)
{
    syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

__attribute__((noinline)) static void acquire(void)
{
    int expected = 0;
    if (atomic_compare_exchange_strong(&word, &expected, 1)) return; // NORACE: atomic
    while (atomic_exchange(&word, 2)) // NORACE: atomic
        futex(FUTEX_WAIT, 2);
}

__attribute__((noinline)) static void release(void)
{
    if (atomic_exchange(&word, 0) == 2) // NORACE: atomic
        futex(FUTEX_WAKE, 1);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        acquire();
        guarded++;        // NORACE: under the futex lock
        if (i > longest) longest = i; // NORACE: under the futex lock
        if (i % 50 == 0) usleep(10);
        release();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("guarded %ld, longest %ld\n", guarded, longest); // NORACE: after the joins
    return 0;
}
