/* <threads.h>, the rest of it: mtx_timedlock, mtx_trylock, a recursive mtx_t, cnd_timedwait, tss with a destructor,
 * thrd_exit.
 *
 * Category: c11-threads
 * Alarm: gcc clang helgrind drd: <threads.h> is unknown to them.
 * Verdict: no race. */
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

enum { THREADS = 3, ROUNDS = 40 };

static mtx_t lock, nested;
static cnd_t changed;
static tss_t key;
static int arrived;
static long total, depth, destroyed;

static struct timespec later(void)
{
    struct timespec until;
    timespec_get(&until, TIME_UTC);
    until.tv_sec += 5;
    return until;
}

static void destroy(void *block)
{
    mtx_lock(&lock);
    destroyed += *(long *)block; // NORACE: own block, the sum under the lock
    mtx_unlock(&lock);
    free(block);
}

static int work(void *unused)
{
    (void)unused;
    long *block = calloc(1, sizeof *block);
    if (!block) abort();
    tss_set(key, block);
    mtx_lock(&lock);
    arrived++; // NORACE: under the lock
    cnd_broadcast(&changed);
    while (arrived < THREADS) { // NORACE: under the lock
        struct timespec until = later();
        cnd_timedwait(&changed, &lock, &until);
    }
    mtx_unlock(&lock);
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec until = later();
        int had = i % 2 ? mtx_trylock(&lock) : mtx_timedlock(&lock, &until);
        if (had == thrd_success) {
            total++; // NORACE: under the lock
            mtx_unlock(&lock);
        }
        ++*(long *)tss_get(key); // NORACE: this thread's block
        mtx_lock(&nested);
        mtx_lock(&nested);
        depth++; // NORACE: under the recursive lock
        mtx_unlock(&nested);
        depth--; // NORACE: still under it
        mtx_unlock(&nested);
    }
    thrd_exit(0);
}

int main(void)
{
    thrd_t threads[THREADS];
    if (mtx_init(&lock, mtx_timed) != thrd_success || mtx_init(&nested, mtx_plain | mtx_recursive) != thrd_success)
        return 2;
    cnd_init(&changed);
    tss_create(&key, destroy);
    for (int i = 0; i < THREADS; i++)
        if (thrd_create(&threads[i], work, NULL) != thrd_success) return 2;
    for (int i = 0; i < THREADS; i++)
        thrd_join(threads[i], NULL);
    printf("depth %ld, destroyed %ld\n", depth, destroyed); // NORACE: after the joins
    return total > THREADS * ROUNDS;                        // NORACE: after the joins
}
