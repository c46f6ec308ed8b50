/* A list with a lock in each node, walked hand over hand: the next lock is taken before the last is let go. A second
 * walk does without.
 *
 * Category: linked-structure
 * Verdict: a race on `node->value` between the walk that adds under the node's lock and the walk that only looks. The
 * links are made before the threads start. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 20, ROUNDS = 10 };

struct node {
    pthread_mutex_t lock;
    struct node *next;
    long value;
    long visits;
};

struct node *head;

__attribute__((noinline)) static void walk_coupled(long add)
{
    struct node *node = head; // NORACE: never changes
    pthread_mutex_lock(&node->lock);
    for (;;) {
        node->value += add;             // RACE value: with the bare walk
        node->visits++;                 // NORACE: under the node's lock everywhere
        struct node *next = node->next; // NORACE: never changes
        if (!next) break;
        pthread_mutex_lock(&next->lock);
        pthread_mutex_unlock(&node->lock);
        node = next;
    }
    pthread_mutex_unlock(&node->lock);
}

__attribute__((noinline)) static long walk_bare(void)
{
    long sum = 0;
    for (struct node *node = head; node; node = node->next) // NORACE: never changes
        sum += node->value;                                 // RACE value
    return sum;
}

static void *adder(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++)
        walk_coupled(1);
    return NULL;
}

static void *looker(void *unused)
{
    (void)unused;
    return (void *)walk_bare();
}

int main(void)
{
    pthread_t threads[3];
    void *seen;
    for (int i = 0; i < NODES; i++) {
        struct node *node = calloc(1, sizeof *node);
        if (!node) abort();
        pthread_mutex_init(&node->lock, NULL);
        node->next = head; // NORACE: before the creates
        head = node;       // NORACE: before the creates
    }
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, adder, NULL)) return 2;
    if (pthread_create(&threads[2], NULL, looker, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_join(threads[2], &seen);
    long visits = 0;
    for (struct node *node = head, *next; node; node = next) {
        next = node->next;
        visits += node->visits; // NORACE: after the joins
        free(node);
    }
    printf("visits %ld\n", visits);
    return (long)seen < 0;
}
