/* Locks that are taken on a condition: by whoever has one (`if (m)`), by one that knows whether it was initialised, by a method that
 * is a lock or nothing. WRONG: one of the threads takes none, none, or only sometimes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct checked {
    unsigned magic;
    pthread_mutex_t *mutex;
};

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER, third = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *maybe;
static struct checked checked;
static void (*enter)(pthread_mutex_t *), (*leave)(pthread_mutex_t *);
long by_pointer, by_magic, by_method;

__attribute__((noinline)) static void really(pthread_mutex_t *m)
{
    pthread_mutex_lock(m);
}

__attribute__((noinline)) static void really_not(pthread_mutex_t *m)
{
    pthread_mutex_unlock(m);
}

__attribute__((noinline)) static void nothing(pthread_mutex_t *m)
{
    (void)m;
}

__attribute__((noinline)) static int checked_lock(struct checked *c)
{
    if (c && c->mutex && c->magic == 0xabcd) return pthread_mutex_lock(c->mutex);
    puts("not initialised");
    return -1;
}

__attribute__((noinline)) static int checked_unlock(struct checked *c)
{
    if (c && c->mutex && c->magic == 0xabcd) return pthread_mutex_unlock(c->mutex);
    return -1;
}

static void count(int locks)
{
    if (locks && maybe) pthread_mutex_lock(maybe);
    by_pointer++;
    if (locks && maybe) pthread_mutex_unlock(maybe);

    if (locks) checked_lock(&checked);
    by_magic++;
    if (locks) checked_unlock(&checked);

    if (locks) enter(&third);
    by_method++;
    if (locks) leave(&third);
}

static void *work(void *argument)
{
    (void)argument;
    for (int i = 0; i < 1000; i++)
        count(1);
    return NULL;
}

#ifdef WRONG
static void *careless(void *argument)
{
    (void)argument;
    for (int i = 0; i < 1000; i++) {
        by_pointer++;
        by_magic++;
        by_method++;
    }
    return NULL;
}
#else
#define careless work
#endif

int main(int argc, char **argv)
{
    pthread_t threads[2];
    int alone = argc > 1 && argv[1][0] == 'a';
    maybe = alone ? NULL : &first;
    if (!alone) checked = (struct checked){0xabcd, &second};
    enter = alone ? nothing : really;
    leave = alone ? nothing : really_not;
    if (pthread_create(&threads[0], NULL, work, NULL) || pthread_create(&threads[1], NULL, careless, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld %ld\n", by_pointer, by_magic, by_method);
    return 0;
}
