/* Locks inside of what they guard, rightly: objects in an array, in a list, nested in another object, and a pair that
 * is always locked together.
 *
 * Category: embedded-lock
 * Verdict: no race. The lock is at a fixed distance from the data, in the same object, whatever object it is. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS = 3, ROUNDS = 60 };

struct stats {
    pthread_mutex_t lock;
    long bytes, packets;
};

struct connection {
    struct connection *next;
    struct stats stats;
    int state;
};

static struct connection *list;
static struct stats totals[2];

__attribute__((noinline)) static void stats_add(struct stats *stats, long bytes)
{
    pthread_mutex_lock(&stats->lock);
    stats->bytes += bytes; // NORACE: the lock of the same object
    stats->packets++;      // NORACE: the lock of the same object
    pthread_mutex_unlock(&stats->lock);
}

__attribute__((noinline)) static void connection_turn(struct connection *connection)
{
    pthread_mutex_lock(&connection->stats.lock);
    connection->state ^= 1; // NORACE: the lock of the part guards the whole
    pthread_mutex_unlock(&connection->stats.lock);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        for (struct connection *c = list; c; c = c->next) { // NORACE: the list rests
            stats_add(&c->stats, i);
            connection_turn(c);
        }
        stats_add(&totals[(i + me) % 2], 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_mutex_init(&totals[i].lock, NULL);
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *fresh = calloc(1, sizeof *fresh);
        if (!fresh) abort();
        pthread_mutex_init(&fresh->stats.lock, NULL);
        fresh->next = list; // NORACE: before the creates
        list = fresh;       // NORACE: before the creates
    }
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    long bytes = totals[0].bytes + totals[1].bytes;                          // NORACE: after the joins
    printf("%ld %ld %d\n", list->stats.packets, bytes, list->state); // NORACE: after the joins
    return 0;
}
