/* Double-checked locking as it is usually written: the first look at the pointer is a plain one.
 *
 * Category: double-checked
 * Alarm: gcc clang: on the allocation, which ThreadSanitizer takes for a write of what is read here unordered.
 * Verdict: races on `instance`, between the first look and the store under the lock, and on the fields of the
 * singleton, which a thread that saw the pointer without the lock reads unordered. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
    int size;
    int scale;
};

struct table *instance;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int built;

__attribute__((noinline)) static void build(void)
{
    struct table *table = malloc(sizeof *table);
    if (!table) abort();
    table->size = 16; // RACE size
    table->scale = 3; // NORACE: read under the lock only
    built++;          // NORACE: under the lock
    instance = table; // RACE instance
}

__attribute__((noinline)) static struct table *table_get(void)
{
    struct table *table = instance; // RACE instance: without the lock
    if (!table) {
        pthread_mutex_lock(&lock);
        if (!instance) // NORACE: with the lock, and so is the only write
            build();
        table = instance; // NORACE: with the lock
        pthread_mutex_unlock(&lock);
    }
    return table;
}

__attribute__((noinline)) static int scale_get(void)
{
    pthread_mutex_lock(&lock);
    int scale = instance ? instance->scale : 0; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return scale;
}

static void *work(void *result)
{
    struct table *table = table_get();
    int sum = table->size;              // RACE size
    *(int *)result = sum + scale_get(); // NORACE: own result
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int results[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, &results[i])) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("built %d, results %d %d %d\n", built, results[0], results[1], results[2]); // NORACE: after the joins
    free(instance); // NORACE: after the joins
    return 0;
}
