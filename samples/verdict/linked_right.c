/* A binary tree and a queue under one lock each; nodes that were taken out are private again.
 *
 * Category: linked-structure
 * Verdict: no race. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, KEYS = 60 };

struct tree {
    struct tree *left, *right;
    int key, hits;
};

struct item {
    struct item *next;
    int key;
};

static pthread_mutex_t tree_lock = PTHREAD_MUTEX_INITIALIZER, queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tree *root;
static struct item *first, **last = &first;
static int nodes;

static void insert(int key)
{
    pthread_mutex_lock(&tree_lock);
    struct tree **at = &root;
    while (*at && (*at)->key != key)
        at = key < (*at)->key ? &(*at)->left : &(*at)->right; // NORACE: under the tree's lock
    if (!*at) {
        *at = calloc(1, sizeof **at); // NORACE: under the tree's lock
        if (!*at) abort();
        (*at)->key = key; // NORACE: under the tree's lock
        nodes++;          // NORACE: under the tree's lock
    }
    (*at)->hits++; // NORACE: under the tree's lock
    pthread_mutex_unlock(&tree_lock);
}

static struct item *take(void)
{
    pthread_mutex_lock(&queue_lock);
    struct item *item = first; // NORACE: under the queue's lock
    if (item) {
        first = item->next;        // NORACE: under the queue's lock
        if (!first) last = &first; // NORACE: under the queue's lock
    }
    pthread_mutex_unlock(&queue_lock);
    return item;
}

static void *work(void *unused)
{
    (void)unused;
    for (struct item *item; (item = take());) {
        item->key = item->key * 7 % 50; // NORACE: taken out, so it is ours
        insert(item->key);              // NORACE: ours
        free(item);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < KEYS; i++) {
        struct item *item = calloc(1, sizeof *item);
        if (!item) abort();
        item->key = i;      // NORACE: before the creates
        *last = item;       // NORACE: before the creates
        last = &item->next; // NORACE: before the creates
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("nodes %d, hits %d\n", nodes, root->hits > 0); // NORACE: after the joins
    return 0;
}
