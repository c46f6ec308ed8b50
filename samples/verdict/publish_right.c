/* Objects that are filled first and then made known under a lock; later they are only read, without a lock.
 *
 * Category: publish
 * Verdict: no race. `current` is read and written under the lock; what it points to is never changed once it is
 * published ("read, copy, update"). Guarding `contents` by locks alone is not what makes it right: the order is. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERSIONS = 20, READERS = 2 };

struct settings {
    int version;
    int contents[4];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings *current;
static struct settings *all[VERSIONS + 1];

__attribute__((noinline)) static struct settings *make(int version)
{
    struct settings *fresh = malloc(sizeof *fresh);
    if (!fresh) abort();
    fresh->version = version; // NORACE: not published
    for (int i = 0; i < 4; i++)
        fresh->contents[i] = version * i; // NORACE: not published
    return fresh;
}

static struct settings *get(void)
{
    pthread_mutex_lock(&lock);
    struct settings *seen = current; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return seen;
}

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 1; i <= VERSIONS; i++) {
        struct settings *fresh = make(i);
        all[i] = fresh; // NORACE: the writer's list, read after the join
        pthread_mutex_lock(&lock);
        current = fresh; // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    long wrong = 0;
    for (int i = 0; i < 100; i++) {
        struct settings *seen = get();
        wrong += seen->contents[3] != 3 * seen->version; // NORACE: published under the lock, never changed
    }
    return (void *)wrong;
}

int main(void)
{
    pthread_t threads[READERS + 1];
    void *wrong;
    long sum = 0;
    all[0] = current = make(0);
    for (int i = 0; i < READERS; i++)
        if (pthread_create(&threads[i], NULL, reader, NULL)) return 2;
    if (pthread_create(&threads[READERS], NULL, writer, NULL)) return 2;
    for (int i = 0; i <= READERS; i++) {
        pthread_join(threads[i], &wrong);
        sum += (long)wrong;
    }
    for (int i = 0; i <= VERSIONS; i++)
        free(all[i]); // NORACE: after the joins
    printf("wrong %ld\n", sum);
    return 0;
}
