/* Wrappers around everything: locks, threads and malloc of the program's own. Two objects come from one malloc in the
 * source, two locks are taken by one call in the source, and the threads are created by one.
 *
 * Category: wrappers
 * Verdict: a race on `shared->loose`, never under a lock. `shared->tight` is under the wrapped lock, `private` objects
 * come from the same allocation wrapper but each belongs to one thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 100 };

struct lock {
    pthread_mutex_t mutex;
    int debug;
};

struct object {
    struct lock lock;
    long tight;
    long loose;
};

__attribute__((noinline)) static void *must_alloc(size_t size)
{
    void *p = calloc(1, size);
    if (!p) {
        perror("calloc");
        exit(2);
    }
    return p;
}

__attribute__((noinline)) static void enter(struct lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    if (lock->debug) puts("entered"); // NORACE: never written after the creates
}

__attribute__((noinline)) static void leave(struct lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

__attribute__((noinline)) static pthread_t spawn(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument)) exit(2);
    return thread;
}

static struct object *object_new(void)
{
    struct object *object = must_alloc(sizeof *object);
    pthread_mutex_init(&object->lock.mutex, NULL);
    return object;
}

__attribute__((noinline)) static void tick_private(struct object *private)
{
    private->loose++; // NORACE: nobody else has it
    enter(&private->lock);
    private->tight++; // NORACE: nobody else has it
    leave(&private->lock);
}

static void *work(void *argument)
{
    struct object *shared = argument;
    struct object *private = object_new();
    for (int i = 0; i < ROUNDS; i++) {
        tick_private(private);
        enter(&shared->lock);
        shared->tight++; // NORACE: under its lock
        leave(&shared->lock);
        shared->loose++; // RACE loose
    }
    long sum = private->tight + private->loose; // NORACE: nobody else has it
    free(private);
    return (void *)sum;
}

int main(void)
{
    struct object *shared = object_new();
    pthread_t one = spawn(work, shared), two = spawn(work, shared);
    void *sum;
    pthread_join(one, &sum);
    pthread_join(two, NULL);
    printf("tight %ld, sum %ld\n", shared->tight, (long)sum); // NORACE: after the joins
    int wrong = shared->loose > 2 * ROUNDS;                  // NORACE: after the joins
    free(shared);
    return wrong;
}
