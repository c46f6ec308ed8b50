/* Two libevent loops in two threads: callbacks of one loop take turns, callbacks of different loops do not.
 *
 * Category: event-loop
 * Build: -levent
 * Verdict: a race on `both`, which callbacks of both loops write. `per_loop` belongs to a loop each, `guarded` has a
 * lock. */
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>

enum { LOOPS = 2, TICKS = 5 };

struct loop {
    struct event_base *base;
    struct event *timer;
    int per_loop;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int both;
int guarded;

static void on_tick(evutil_socket_t fd, short what, void *argument)
{
    (void)fd, (void)what;
    struct loop *loop = argument;
    both++;           // RACE both: the other loop is in another thread
    loop->per_loop++; // NORACE: this loop's
    if (loop->per_loop == TICKS) event_base_loopbreak(loop->base);
}

static void on_other_tick(evutil_socket_t fd, short what, void *argument)
{
    (void)fd, (void)what;
    struct loop *loop = argument;
    pthread_mutex_lock(&lock);
    guarded++; // NORACE: under the lock
    pthread_mutex_unlock(&lock);
    loop->per_loop += 0; // NORACE: this loop's
}

static void *run(void *argument)
{
    struct loop *loop = argument;
    struct timeval tick = {0, 1000};
    struct event *other = event_new(loop->base, -1, EV_PERSIST, on_other_tick, loop);
    loop->timer = event_new(loop->base, -1, EV_PERSIST, on_tick, loop);
    event_add(other, &tick);
    event_add(loop->timer, &tick);
    event_base_dispatch(loop->base);
    event_free(other);
    event_free(loop->timer);
    event_base_free(loop->base);
    return NULL;
}

int main(void)
{
    pthread_t threads[LOOPS];
    struct loop loops[LOOPS] = {{0}, {0}};
    for (int i = 0; i < LOOPS; i++)
        loops[i].base = event_base_new(); // NORACE: before the creates
    if (!loops[0].base || !loops[1].base) return 2;
    for (int i = 0; i < LOOPS; i++)
        if (pthread_create(&threads[i], NULL, run, &loops[i])) return 2;
    for (int i = 0; i < LOOPS; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", loops[0].per_loop, loops[1].per_loop);      // NORACE: after the joins
    return both > LOOPS * TICKS || guarded > 10 * LOOPS * TICKS; // NORACE: after the joins
}
