/* Double-checked locking as C11 wants it: the pointer is atomic, stored with release and loaded with acquire.
 *
 * Category: double-checked
 * Verdict: no race. The fields of the singleton are written before the release store and read after the acquire load;
 * on x86 both are plain moves, so without the type of `instance` a detector cannot tell this from the wrong version. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
    int size;
    int entries[16];
};

_Atomic(struct table *) instance;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int built;

__attribute__((noinline)) static struct table *table_new(void)
{
    struct table *table = malloc(sizeof *table);
    if (!table) abort();
    table->size = 16; // NORACE: before the release
    for (int i = 0; i < 16; i++)
        table->entries[i] = i * i; // NORACE: before the release
    built++;                       // NORACE: under the lock
    return table;
}

__attribute__((noinline)) static struct table *table_get(void)
{
    struct table *table = atomic_load_explicit(&instance, memory_order_acquire); // NORACE: atomic
    if (!table) {
        pthread_mutex_lock(&lock);
        table = atomic_load_explicit(&instance, memory_order_relaxed); // NORACE: atomic, and under the lock
        if (!table) {
            table = table_new();
            atomic_store_explicit(&instance, table, memory_order_release); // NORACE: atomic
        }
        pthread_mutex_unlock(&lock);
    }
    return table;
}

static void *work(void *result)
{
    struct table *table = table_get();
    int sum = 0;
    for (int i = 0; i < table->size; i++) // NORACE: after the acquire
        sum += table->entries[i];         // NORACE: after the acquire
    *(int *)result = sum;                 // NORACE: own result
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
    printf("built %d, sums %d %d %d\n", built, results[0], results[1], results[2]); // NORACE: after the joins
    free(instance);
    return 0;
}
