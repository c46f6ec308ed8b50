/* pthread_mutex_trylock, once with its answer respected and once ignored. Main holds the lock for a while at first, so
 * that some of the attempts really fail.
 *
 * Category: trylock
 * Verdict: a race on `careless`, which is written even when the lock was not had. `careful` is written on the success
 * branch only, `skipped` counts the failures of one thread and belongs to it. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 100 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long careful;
long careless;

static void *respects(void *result)
{
    long skipped = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (pthread_mutex_trylock(&lock) == 0) {
            careful++; // NORACE: only with the lock
            pthread_mutex_unlock(&lock);
        } else {
            skipped++;
        }
        usleep(20);
    }
    *(long *)result = skipped; // NORACE: read after the join
    return NULL;
}

static void *ignores(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        int busy = pthread_mutex_trylock(&lock);
        careless++; // RACE careless: with itself in the other thread, which may hold the lock
        if (!busy) {
            careful++; // NORACE: only with the lock
            pthread_mutex_unlock(&lock);
        }
        usleep(20);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    long skipped = 0;
    pthread_mutex_lock(&lock);
    if (pthread_create(&threads[0], NULL, respects, &skipped)) return 2;
    if (pthread_create(&threads[1], NULL, ignores, NULL)) return 2;
    if (pthread_create(&threads[2], NULL, ignores, NULL)) return 2;
    usleep(3000);
    careful++; // NORACE: held since before the creates
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 50; i++) {
        if (pthread_mutex_trylock(&lock)) continue;
        careful++; // NORACE: not reached without the lock
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts(careful + skipped <= 3 * ROUNDS + 51 ? "plausible" : "impossible"); // NORACE: after the joins
    return careless > 2 * ROUNDS;                                           // NORACE: after the joins
}
