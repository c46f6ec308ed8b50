/* Three ways to show a finished object to another thread: before the create, by an atomic pointer, by a plain pointer.
 *
 * Category: publish
 * Alarm: gcc clang: on the allocation, which ThreadSanitizer takes for a write of what is read here unordered.
 * Unseen: the write of the contents, when the allocation was reported in its place.
 * Verdict: races on the pointer `plain` and on the contents of the object behind it. The argument of the create and the
 * object behind the release/acquire pointer are right. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct message {
    int number;
    int check;
};

_Atomic(struct message *) published;
struct message *plain;

__attribute__((noinline)) static struct message *compose(int number)
{
    struct message *message = malloc(sizeof *message);
    if (!message) abort();
    message->number = number; // RACE contents: nothing orders it before the read behind `plain`
    return message;
}

static void *receive(void *argument)
{
    struct message *given = argument;
    int sum = given->number + given->check; // NORACE: written before the create
    struct message *message;
    while (!(message = atomic_load_explicit(&published, memory_order_acquire))) { // NORACE: atomic
    }
    sum += message->check; // NORACE: after the acquire
    usleep(1000); // gives main time, but orders nothing
    struct message *other = plain;       // RACE plain
    if (other) sum += other->number - 3; // RACE contents
    return (void *)(long)sum;
}

int main(void)
{
    pthread_t thread;
    void *result;
    struct message given;
    given.number = 1; // NORACE: before the create
    given.check = 10; // NORACE: before the create
    if (pthread_create(&thread, NULL, receive, &given)) return 2;

    struct message *message = malloc(sizeof *message);
    if (!message) abort();
    message->check = 20; // NORACE: before the release
    atomic_store_explicit(&published, message, memory_order_release);

    plain = compose(3); // RACE plain
    pthread_join(thread, &result);
    printf("%ld\n", (long)result);
    free(message);
    free(plain); // NORACE: after the join
    return 0;
}
