/* Objects that go from thread to thread through a variable under a lock, but not cleanly: the taker leaves the address where it
 * was, and a giver goes on with what it has given away.
 *
 * Category: heap
 * Verdict: races on `count`, since two threads may look at the same object, and on `note`, since the giver is not through with it.
 * The variable itself is always under the lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 20 };

struct object {
    long count;
    long note;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct object *shown, *given;

__attribute__((noinline)) static struct object *look(void)
{
    pthread_mutex_lock(&lock);
    struct object *object = shown; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return object;
}

__attribute__((noinline)) static struct object *take(void)
{
    pthread_mutex_lock(&lock);
    struct object *object = given; // NORACE: under the lock
    if (object) given = NULL;      // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    return object;
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        struct object *object = look();
        if (object) object->count++; // RACE count: it is still there for others
        usleep(20);
        object = take();
        if (object) object->note++; // RACE note: the giver writes it, too
        usleep(20);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    struct object *first = calloc(1, sizeof *first), *second = calloc(1, sizeof *second);
    if (!first || !second) abort();
    shown = first;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        given = second; // NORACE: under the lock
        pthread_mutex_unlock(&lock);
        usleep(30);
        second->note = i; // RACE note: given away
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%s\n", first->count > 0 ? "done" : "?"); // NORACE: after the joins
    return 0;
}
