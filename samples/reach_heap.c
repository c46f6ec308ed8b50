/* Objects from allocator wrappers: a growing vector, a list, a tree that is walked recursively, names from strdup.
 *
 *   reach_heap [WORDS]
 *
 * Verdict: one race, on `index.lookups`, which every thread counts without the lock. The vector, the list and the tree
 * change under the lock only. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *name;
    struct entry *next; /* newer first */
    int uses;
};

struct node {
    struct node *left, *right;
    struct entry *entry;
    unsigned key;
};

struct vector {
    struct entry **items;
    unsigned count, room;
};

struct index {
    pthread_mutex_t lock;
    struct entry *newest;
    struct node *root;
    struct vector all;
    long lookups;
};

struct index index_of_words = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *get(size_t size)
{
    void *p = malloc(size);
    if (!p) abort();
    return p;
}

static void append(struct vector *v, struct entry *entry)
{
    if (v->count == v->room) {
        v->room = v->room * 2 + 4;
        v->items = realloc(v->items, v->room * sizeof *v->items);
        if (!v->items) abort();
    }
    v->items[v->count++] = entry; // NORACE: under the lock
}

static struct entry *new_entry(const char *name)
{
    struct entry *entry = get(sizeof *entry);
    entry->name = strdup(name);
    entry->next = NULL;
    entry->uses = 0;
    return entry;
}

static void insert(struct node **at, struct entry *entry, unsigned key)
{
    while (*at)
        at = key < (*at)->key ? &(*at)->left : &(*at)->right; // NORACE: under the lock
    struct node *node = get(sizeof *node);
    node->left = node->right = NULL;
    node->entry = entry;
    node->key = key;
    *at = node; // NORACE: under the lock
}

static int sum_uses(const struct node *node)
{
    if (!node) return 0;
    return node->entry->uses + sum_uses(node->left) + sum_uses(node->right); // NORACE: after the joins
}

static void look_up(struct index *index, unsigned key)
{
    pthread_mutex_lock(&index->lock);
    for (struct node *node = index->root; node; node = key < node->key ? node->left : node->right)
        if (node->key == key) {
            node->entry->uses++; // NORACE: under the lock
            break;
        }
    pthread_mutex_unlock(&index->lock);
    index->lookups++; // RACE
}

static void *reader(void *argument)
{
    struct index *index = argument;
    for (unsigned i = 0; i < 500; i++)
        look_up(index, i * 7 % 64);
    return NULL;
}

static void *writer(void *argument)
{
    struct index *index = argument;
    char name[16];
    for (unsigned i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "word%u", i);
        struct entry *entry = new_entry(name);
        pthread_mutex_lock(&index->lock);
        entry->next = index->newest; // NORACE: under the lock
        index->newest = entry;       // NORACE: under the lock
        insert(&index->root, entry, i * 37 % 64);
        append(&index->all, entry);
        pthread_mutex_unlock(&index->lock);
        look_up(index, i);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    if (pthread_create(&threads[0], NULL, writer, &index_of_words)) return 2;
    for (int i = 1; i < 3; i++)
        if (pthread_create(&threads[i], NULL, reader, &index_of_words)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    size_t letters = 0;
    for (unsigned i = 0; i < index_of_words.all.count; i++)
        letters += strlen(index_of_words.all.items[i]->name); // NORACE: after the joins
    int chain = 0;
    for (const struct entry *entry = index_of_words.newest; entry; entry = entry->next) // NORACE: after the joins
        chain += entry->uses;                                                           // NORACE: after the joins
    printf("%zu letters, %d and %d uses, %ld lookups\n", letters, chain, sum_uses(index_of_words.root),
           index_of_words.lookups); // NORACE: after the joins
    return 0;
}
