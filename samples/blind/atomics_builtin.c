/* The compilers' own atomics, __sync_* and __atomic_*, on ordinary variables; one access forgot.
 *
 * Category: atomics-builtin
 * Verdict: a race on `mixed`: an atomic add on one side, a plain read on the other. `references` and `sequence` are
 * always accessed atomically, and the object is destroyed by whoever drops the last reference, alone. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200 };

struct object {
    int references;
    int contents;
};

long mixed;
long sequence;
int destroyed;

__attribute__((noinline)) static void object_drop(struct object *object)
{
    if (__sync_sub_and_fetch(&object->references, 1)) return; // NORACE: atomic
    object->contents = 0; // NORACE: ours is the last reference
    destroyed++;          // NORACE: only once, and read after the joins
    free(object);
}

static void *add(void *argument)
{
    struct object *object = argument;
    int contents = object->contents; // NORACE: we hold a reference
    for (int i = 0; i < ROUNDS; i++) {
        __sync_fetch_and_add(&mixed, contents);               // RACE mixed: with the plain read
        __atomic_add_fetch(&sequence, 1, __ATOMIC_RELAXED);   // NORACE: atomic everywhere
    }
    object_drop(object);
    return NULL;
}

static void *watch(void *argument)
{
    struct object *object = argument;
    long low = 0;
    for (int i = 0; i < ROUNDS; i++)
        if (__atomic_load_n(&sequence, __ATOMIC_RELAXED) < 0) low++; // NORACE: atomic
    low += mixed; // RACE mixed: not atomic
    object_drop(object);
    return (void *)low;
}

int main(void)
{
    struct object *object = malloc(sizeof *object);
    if (!object) abort();
    object->references = 3; // NORACE: before the creates
    object->contents = 2;   // NORACE: before the creates
    pthread_t threads[3];
    if (pthread_create(&threads[0], NULL, add, object)) return 2;
    if (pthread_create(&threads[1], NULL, add, object)) return 2;
    if (pthread_create(&threads[2], NULL, watch, object)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("mixed %ld, sequence %ld, destroyed %d\n", mixed, sequence, destroyed); // NORACE: after the joins
    return 0;
}
