/* A linked list under a lock: nodes that one thread allocates and another frees.
 *
 *   locked_list [NODES]
 *
 * Verdict: one race, on `list.length`, which the consumer reads without the lock before it looks. Everything else,
 * the nodes included, changes hands under the lock. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    int value;
};

struct list {
    pthread_mutex_t lock;
    struct node *head;
    int length;
    int closed;
};

struct list list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void push(struct list *l, int value)
{
    struct node *node = malloc(sizeof *node);
    if (!node) abort();
    node->value = value; // NORACE: nobody else knows the node yet
    pthread_mutex_lock(&l->lock);
    node->next = l->head; // NORACE: under the lock
    l->head = node;       // NORACE: under the lock
    l->length++;          // RACE: with the look in consume
    pthread_mutex_unlock(&l->lock);
}

static struct node *pop(struct list *l, int *closed)
{
    pthread_mutex_lock(&l->lock);
    struct node *node = l->head; // NORACE: under the lock
    if (node) {
        l->head = node->next; // NORACE: under the lock
        l->length--;          // NORACE: the looks at it are this thread's own
    }
    *closed = l->closed; // NORACE: under the lock
    pthread_mutex_unlock(&l->lock);
    return node;
}

static void *consume(void *argument)
{
    struct list *l = argument;
    long sum = 0;
    for (int closed = 0;;) {
        if (!closed && l->length == 0) // RACE
            sched_yield();
        struct node *node = pop(l, &closed);
        if (node) {
            sum += node->value; // NORACE: taken off the list under the lock
            free(node);
        } else if (closed) {
            break;
        }
    }
    printf("sum %ld\n", sum);
    return NULL;
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t consumer;
    if (pthread_create(&consumer, NULL, consume, &list)) return 2;
    for (int i = 0; i < nodes; i++)
        push(&list, i);
    pthread_mutex_lock(&list.lock);
    list.closed = 1; // NORACE: under the lock
    pthread_mutex_unlock(&list.lock);
    pthread_join(consumer, NULL);
    return list.length; // NORACE: after the join
}
