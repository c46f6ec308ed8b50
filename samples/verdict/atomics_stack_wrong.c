/* A lock-free stack, wrong: the length beside it is plain, and the value is written after the node was published.
 *
 * Category: atomics-c11
 * Verdict: races on `length` and on `node->value`. `next` is written before the publication. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PUSHERS = 2, NODES = 40 };

struct node {
    struct node *next;
    long value;
};

_Atomic(struct node *) top;
int length;

__attribute__((noinline)) static void push(struct node *node, long value)
{
    struct node *head = atomic_load(&top); // NORACE: atomic
    do {
        node->next = head; // NORACE: not published yet
    } while (!atomic_compare_exchange_weak(&top, &head, node));
    node->value = value; // RACE value: published already
    usleep(5);
    length++; // RACE length
}

static void *pusher(void *nodes)
{
    for (int i = 0; i < NODES; i++)
        push((struct node *)nodes + i, i);
    return NULL;
}

static void *looker(void *unused)
{
    (void)unused;
    long sum = 0;
    for (int i = 0; i < 20; i++) {
        for (struct node *node = atomic_load(&top); node; node = node->next) // NORACE: before the publication
            sum += node->value;                                             // RACE value
        usleep(50);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[PUSHERS + 1];
    struct node *nodes = calloc(PUSHERS * NODES, sizeof *nodes);
    if (!nodes) return 2;
    for (int i = 0; i < PUSHERS; i++)
        if (pthread_create(&threads[i], NULL, pusher, nodes + i * NODES)) return 2;
    if (pthread_create(&threads[PUSHERS], NULL, looker, NULL)) return 2;
    for (int i = 0; i <= PUSHERS; i++)
        pthread_join(threads[i], NULL);
    int count = 0;
    for (struct node *node = top; node; node = node->next)
        count++; // NORACE: main's own
    printf("count %d\n", count);
    int wrong = length > PUSHERS * NODES; // NORACE: after the joins
    free(nodes);
    return wrong;
}
