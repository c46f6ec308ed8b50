/* Memory that is freed by one thread and given out again to another: the same address, but not the same object.
 *
 * Category: heap
 * Verdict: no race. Each object is used by the thread that allocated it; a detector that does not reset at free and
 * malloc would take the next owner for a rival. The queue hands objects over under its lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200 };

struct object {
    long payload[4];
    struct object *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *queue;

static void give(struct object *object)
{
    pthread_mutex_lock(&lock);
    object->next = queue; // NORACE: under the lock
    queue = object;       // NORACE: under the lock
    pthread_mutex_unlock(&lock);
}

static struct object *take(void)
{
    pthread_mutex_lock(&lock);
    struct object *object = queue;    // NORACE: under the lock
    if (object) queue = object->next; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return object;
}

static void *work(void *result)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct object *fresh = malloc(sizeof *fresh);
        if (!fresh) abort();
        for (int k = 0; k < 4; k++)
            fresh->payload[k] = i; // NORACE: nobody else has it
        give(fresh);
        struct object *got = take();
        if (!got) continue;
        sum += got->payload[2]; // NORACE: handed over under the lock
        free(got);
    }
    *(long *)result = sum; // NORACE: own result
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    long sums[3], sum = 0;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, &sums[i])) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        sum += sums[i]; // NORACE: after the joins
    for (struct object *object; (object = take());) {
        sum += object->payload[2]; // NORACE: after the joins
        free(object);
    }
    printf("sum %ld\n", sum);
    return 0;
}
