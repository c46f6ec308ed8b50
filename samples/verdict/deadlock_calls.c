/* A cycle that no single function shows: each takes one lock and calls, through a pointer or a wrapper, what takes the
 * other. The second thread comes 100 ms later.
 *
 * Category: deadlock
 * Verdict: a deadlock: the cache holds its lock and calls its listener, which locks the log; the log holds its lock and
 * asks the cache for its size, which locks the cache. No race. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct cache {
    pthread_mutex_t lock;
    int size;
    void (*listener)(int);
};

pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
int log_lines;
struct cache cache = {PTHREAD_MUTEX_INITIALIZER, 0, NULL};

__attribute__((noinline)) static void lock_log(void)
{
    pthread_mutex_lock(&log_lock); // DEADLOCK
}

__attribute__((noinline)) static void unlock_log(void)
{
    pthread_mutex_unlock(&log_lock);
}

static void on_insert(int size)
{
    lock_log();
    log_lines += size > 0; // NORACE: under the log's lock
    unlock_log();
}

__attribute__((noinline)) static void cache_insert(struct cache *c)
{
    pthread_mutex_lock(&c->lock); // DEADLOCK
    c->size++;                    // NORACE: under the cache's lock
    if (c->listener) c->listener(c->size);
    pthread_mutex_unlock(&c->lock);
}

__attribute__((noinline)) static int cache_size(struct cache *c)
{
    pthread_mutex_lock(&c->lock); // DEADLOCK
    int size = c->size;           // NORACE: under the cache's lock
    pthread_mutex_unlock(&c->lock);
    return size;
}

static void *inserter(void *unused)
{
    (void)unused;
    cache_insert(&cache);
    return NULL;
}

static void *flusher(void *unused)
{
    (void)unused;
    usleep(100000);
    lock_log();
    log_lines += cache_size(&cache); // NORACE: under the log's lock
    unlock_log();
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    cache.listener = on_insert; // NORACE: before the creates
    if (pthread_create(&threads[0], NULL, inserter, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, flusher, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(log_lines >= 1 ? "done" : "?"); // NORACE: after the joins
    return 0;
}
