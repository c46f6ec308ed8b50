/* A list from which entries are removed under the lock while a reader walks it without; removed entries are kept, so
 * that the reader never stands on freed memory.
 *
 * Category: linked-structure
 * Verdict: races on `next` (unlinked while it is walked) and on `removed` (written under the lock, read without). `key`
 * never changes. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ENTRIES = 40 };

struct entry {
    struct entry *next;
    int key;
    int removed;
};

struct entry entries[ENTRIES];
struct entry head;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int removals;

__attribute__((noinline)) void unlink_after(struct entry *before)
{
    struct entry *victim = before->next; // NORACE: this thread is the only writer
    if (!victim) return;
    before->next = victim->next; // RACE next
    usleep(5);
    victim->removed = 1; // RACE removed
    removals++;          // NORACE: under the lock
}

static void *remover(void *unused)
{
    (void)unused;
    struct entry *at = &head;
    for (int i = 0; i < ENTRIES / 2 && at; i++) {
        pthread_mutex_lock(&lock);
        unlink_after(at);
        at = at->next; // NORACE: this thread is the only writer
        pthread_mutex_unlock(&lock);
        usleep(20);
    }
    return NULL;
}

__attribute__((noinline)) struct entry *step(struct entry *from)
{
    struct entry *to = from->next; // RACE next: without the lock
    usleep(5);
    return to;
}

static void *reader(void *unused)
{
    (void)unused;
    long sum = 0;
    for (int round = 0; round < 3; round++)
        for (struct entry *at = step(&head); at; at = step(at)) {
            sum += at->key;     // NORACE: never changes
            sum += at->removed; // RACE removed: without the lock
        }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = ENTRIES - 1; i >= 0; i--) {
        entries[i].key = i;            // NORACE: before the creates
        entries[i].next = head.next;   // NORACE: before the creates
        head.next = &entries[i];       // NORACE: before the creates
    }
    if (pthread_create(&threads[0], NULL, remover, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, reader, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("removals %d\n", removals); // NORACE: after the joins
    return 0;
}
