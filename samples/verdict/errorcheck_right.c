/* Error-checking and recursive mutexes made with attributes; a second lock of an error-checking one fails and gives
 * nothing, so the unlock after it must not happen.
 *
 * Category: recursive
 * Verdict: no race. `inner` is under the one level that was had. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 50 };

static pthread_mutex_t checked, nested;
static long outer, inner, depth;

__attribute__((noinline)) static int helper(void)
{
    int code = pthread_mutex_lock(&checked); // EDEADLK: our caller has it
    inner++;                                 // NORACE: our caller has it
    if (!code) pthread_mutex_unlock(&checked);
    return code == EDEADLK;
}

__attribute__((noinline)) static void descend(int levels)
{
    pthread_mutex_lock(&nested);
    depth++; // NORACE: under the recursive lock
    if (levels) descend(levels - 1);
    depth--; // NORACE: still under it
    pthread_mutex_unlock(&nested);
}

static void *work(void *result)
{
    int refused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&checked);
        outer++; // NORACE: under the lock
        refused += helper();
        outer++; // NORACE: the helper did not unlock
        pthread_mutex_unlock(&checked);
        descend(3);
    }
    *(int *)result = refused; // NORACE: own result
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int refused[2];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&nested, &attributes);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &refused[i])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld %ld, refused %d\n", outer, inner, depth, refused[0] + refused[1]); // NORACE: after the joins
    return 0;
}
