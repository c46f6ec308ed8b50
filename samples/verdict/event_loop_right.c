/* A libevent program without a race: timers, a signal event and a bufferless pipe, all callbacks of one loop in main's
 * thread; a worker thread only talks through the pipe.
 *
 * Category: event-loop
 * Build: -levent
 * Verdict: no race: callbacks of one loop take turns, signal events included, since libevent runs them in the loop. */
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { MESSAGES = 5 };

static struct event_base *base;
static int wires[2];
static int turns, ticks, signals, messages;
static char last;

static void stop_when_done(void)
{
    if (ticks >= 3 && signals && messages == MESSAGES) // NORACE: one loop, one thread
        event_base_loopbreak(base);
}

static void on_tick(evutil_socket_t fd, short what, void *unused)
{
    (void)fd, (void)what, (void)unused;
    turns++;                        // NORACE: one loop, one thread
    if (++ticks == 2) raise(SIGUSR1); // NORACE: one loop, one thread
    stop_when_done();
}

static void on_signal(evutil_socket_t number, short what, void *unused)
{
    (void)number, (void)what, (void)unused;
    turns++;   // NORACE: run by the loop, not by a handler
    signals++; // NORACE: run by the loop, not by a handler
    stop_when_done();
}

static void on_message(evutil_socket_t fd, short what, void *unused)
{
    (void)what, (void)unused;
    if (read(fd, &last, 1) != 1) return; // NORACE: one loop, one thread
    turns++;                             // NORACE: one loop, one thread
    messages++;                          // NORACE: one loop, one thread
    stop_when_done();
}

static void *talk(void *unused)
{
    (void)unused;
    for (char i = 0; i < MESSAGES; i++)
        if (write(wires[1], &i, 1) != 1) break; // NORACE: a local
    return NULL;
}

int main(void)
{
    pthread_t talker;
    struct timeval tick = {0, 1000};
    base = event_base_new();
    if (!base || pipe(wires)) return 2;
    struct event *events[3] = {event_new(base, -1, EV_PERSIST, on_tick, NULL),
                               event_new(base, SIGUSR1, EV_SIGNAL | EV_PERSIST, on_signal, NULL),
                               event_new(base, wires[0], EV_READ | EV_PERSIST, on_message, NULL)};
    for (int i = 0; i < 3; i++)
        event_add(events[i], i ? NULL : &tick);
    if (pthread_create(&talker, NULL, talk, NULL)) return 2;
    event_base_dispatch(base);
    pthread_join(talker, NULL);
    printf("messages %d, last %d\n", messages, last); // NORACE: the loop is over
    for (int i = 0; i < 3; i++)
        event_free(events[i]);
    event_base_free(base);
    return turns < MESSAGES; // NORACE: the loop is over
}
