/* A robust mutex whose owner dies: the next one to lock it is told (EOWNERDEAD), has the lock, and repairs the data.
 *
 * Category: recursive
 * Alarm: gcc clang: ThreadSanitizer knows no order between the death of the owner and the next lock.
 * Verdict: no race. EOWNERDEAD is a success: the dead owner's writes come before. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 50 };

static pthread_mutex_t lock;
static int first, second;
static int repairs;

static int enter(void)
{
    int code = pthread_mutex_lock(&lock);
    if (code == EOWNERDEAD) {
        second = first; // NORACE: the lock is ours, and in need of repair
        repairs++;      // NORACE: the same
        pthread_mutex_consistent(&lock);
        code = 0;
    }
    return code;
}

static void *dies(void *unused)
{
    (void)unused;
    if (enter()) return NULL;
    first++; // NORACE: under the lock, which is never released
    return NULL;
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        if (enter()) continue;
        first++;  // NORACE: under the lock
        second++; // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &attributes);
    if (pthread_create(&threads[0], NULL, dies, NULL)) return 2;
    for (int i = 1; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    if (enter()) return 1;
    printf("%d %d, repaired %d\n", first, second, repairs); // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return 0;
}
