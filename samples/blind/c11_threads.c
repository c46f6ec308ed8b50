/* The same mistakes with C11's <threads.h>: mtx_t, cnd_t, call_once, thrd_join.
 *
 * Category: c11-threads
 * Unseen: ThreadSanitizer and Valgrind do not know <threads.h>.
 * Verdict: a race on `steps`, written outside the lock. `total` is under the mtx_t, `limit` is set by call_once, `go`
 * is waited for with cnd_wait, and the results are read after thrd_join. */
#include <stdio.h>
#include <threads.h>

enum { ROUNDS = 100 };

mtx_t lock;
cnd_t started;
once_flag flag = ONCE_FLAG_INIT;
int go;
int limit;
long total;
long steps;
thread_local long mine;

static void set_limit(void)
{
    limit = ROUNDS; // NORACE: once
}

static int work(void *unused)
{
    (void)unused;
    call_once(&flag, set_limit);
    mtx_lock(&lock);
    while (!go) // NORACE: under the lock
        cnd_wait(&started, &lock);
    mtx_unlock(&lock);
    int rounds = limit; // NORACE: after call_once
    for (int i = 0; i < rounds; i++) {
        mtx_lock(&lock);
        total++; // NORACE: under the lock
        mtx_unlock(&lock);
        mine++;  // NORACE: thread-local
        steps++; // RACE steps
    }
    return (int)mine; // NORACE: thread-local
}

int main(void)
{
    thrd_t threads[2];
    int sum = 0;
    if (mtx_init(&lock, mtx_plain) != thrd_success) return 2;
    if (cnd_init(&started) != thrd_success) return 2;
    for (int i = 0; i < 2; i++)
        if (thrd_create(&threads[i], work, NULL) != thrd_success) return 2;
    mtx_lock(&lock);
    go = 1; // NORACE: under the lock
    cnd_broadcast(&started);
    mtx_unlock(&lock);
    for (int i = 0; i < 2; i++) {
        int result;
        thrd_join(threads[i], &result);
        sum += result;
    }
    printf("total %ld, sum %d\n", total, sum); // NORACE: after the joins
    mtx_destroy(&lock);
    cnd_destroy(&started);
    return steps > 2 * ROUNDS; // NORACE: after the joins
}
