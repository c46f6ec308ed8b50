/* A reference count, and a thread that uses the object when it has let go of it.
 *
 * Category: atomics-builtin
 * Verdict: a race on `uses`: the last one may be clearing it. `parts` is written before the references are dropped. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct object {
    int references;
    int parts[2];
    int uses;
};

static void *one(void *argument)
{
    struct object *object = argument;
    object->parts[0] = 1; // NORACE: before the reference is dropped
    usleep(100);
    if (__sync_sub_and_fetch(&object->references, 1) == 0) // NORACE: atomic
        object->uses = 0; // RACE uses: the other thread may be at it still
    return NULL;
}

static void *two(void *argument)
{
    struct object *object = argument;
    object->parts[1] = 2; // NORACE: before the reference is dropped
    if (__sync_sub_and_fetch(&object->references, 1) == 0) // NORACE: atomic
        object->parts[0] = 0; // NORACE: the last reference
    usleep(300);
    object->uses++; // RACE uses: it is not ours any more
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    struct object *object = calloc(1, sizeof *object);
    if (!object) abort();
    object->references = 2;
    if (pthread_create(&threads[0], NULL, one, object)) return 2;
    if (pthread_create(&threads[1], NULL, two, object)) return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%s\n", object->uses >= 0 ? "done" : "?"); // NORACE: after the joins
    free(object);
    return 0;
}
