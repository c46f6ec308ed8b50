/* A lock-free stack (Treiber's), nodes pushed with release and taken all at once with an exchange, so that no node is
 * freed under another's hands.
 *
 * Category: atomics-c11
 * Verdict: no race. `next` and `value` are written before the compare-and-swap that publishes the node. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { PUSHERS = 2, NODES = 100 };

struct node {
    struct node *next;
    int value;
};

static _Atomic(struct node *) top;
static atomic_int pushing = PUSHERS;

__attribute__((noinline)) static void push(int value)
{
    struct node *node = malloc(sizeof *node);
    if (!node) abort();
    node->value = value; // NORACE: not published yet
    struct node *head = atomic_load_explicit(&top, memory_order_relaxed); // NORACE: atomic
    do {
        node->next = head; // NORACE: not published yet
    } while (!atomic_compare_exchange_weak_explicit(&top, &head, node, memory_order_release, memory_order_relaxed));
}

__attribute__((noinline)) static long take_all(void)
{
    long sum = 0;
    struct node *node = atomic_exchange_explicit(&top, NULL, memory_order_acquire); // NORACE: atomic
    while (node) {
        struct node *next = node->next; // NORACE: all of them are ours now
        sum += node->value;             // NORACE: all of them are ours now
        free(node);
        node = next;
    }
    return sum;
}

static void *pusher(void *unused)
{
    (void)unused;
    for (int i = 1; i <= NODES; i++)
        push(i);
    atomic_fetch_sub(&pushing, 1); // NORACE: atomic
    return NULL;
}

int main(void)
{
    pthread_t threads[PUSHERS];
    long sum = 0;
    for (int i = 0; i < PUSHERS; i++)
        if (pthread_create(&threads[i], NULL, pusher, NULL)) return 2;
    while (atomic_load(&pushing)) // NORACE: atomic
        sum += take_all();
    for (int i = 0; i < PUSHERS; i++)
        pthread_join(threads[i], NULL);
    sum += take_all();
    printf("sum %ld\n", sum);
    return 0;
}
