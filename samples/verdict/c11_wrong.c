/* <threads.h>, wrong: mtx_trylock's answer mistaken (thrd_success is 0, thrd_busy is not), and a detached thread that
 * nobody waits for.
 *
 * Category: c11-threads
 * Alarm: gcc clang helgrind drd: <threads.h> is unknown to them.
 * Unseen: <threads.h> is unknown to the tools.
 * Verdict: races on `inverted` (written when the lock was NOT had) and on `left_behind`. `straight` is right. */
#include <stdio.h>
#include <threads.h>
#include <time.h>

enum { ROUNDS = 50 };

mtx_t lock;
long inverted;
long straight;
int left_behind;

static void nap(long microseconds)
{
    struct timespec time = {0, 1000 * microseconds};
    thrd_sleep(&time, NULL);
}

static int work(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        if (mtx_trylock(&lock)) {
            inverted++; // RACE inverted: this is the branch without the lock
        } else {
            straight++; // NORACE: with the lock
            nap(30);
            mtx_unlock(&lock);
        }
        nap(10);
    }
    return 0;
}

static int stray(void *unused)
{
    (void)unused;
    left_behind = 1; // RACE left_behind
    return 0;
}

int main(void)
{
    thrd_t threads[3], loose;
    mtx_init(&lock, mtx_plain);
    if (thrd_create(&loose, stray, NULL) != thrd_success) return 2;
    thrd_detach(loose);
    for (int i = 0; i < 3; i++)
        if (thrd_create(&threads[i], work, NULL) != thrd_success) return 2;
    for (int i = 0; i < 3; i++)
        thrd_join(threads[i], NULL);
    int seen = left_behind; // RACE left_behind: never joined
    puts(straight <= 3 * ROUNDS ? "done" : "?"); // NORACE: after the joins
    return inverted > 3 * ROUNDS || seen > 1;    // NORACE: after the joins
}
