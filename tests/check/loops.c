/* Which thread runs an event: the one whose loop has the event's base, where that is known. Each variable is written by a callback and,
 * behind its loop, by the thread that has the loop of `mine`. `ticks` is counted by an event of one base or the other, nobody knows:
 * perhaps in that thread. WRONG: all are events of the other loop, in another thread. */
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <pthread.h>
#include <stdio.h>

static struct event_base *mine, *other;
long ticks, reads, accepts, changed, fired;

static void on_tick(evutil_socket_t fd, short what, void *argument)
{
    (void)fd, (void)what, (void)argument;
    ticks++;
}

static void on_read(struct bufferevent *b, void *argument)
{
    (void)b, (void)argument;
    reads++;
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int length, void *argument)
{
    (void)l, (void)fd, (void)from, (void)length, (void)argument;
    accepts++;
}

static void on_changed(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int length, void *argument)
{
    (void)l, (void)fd, (void)from, (void)length, (void)argument;
    changed++;
}

static void on_fired(evutil_socket_t fd, short what, void *argument)
{
    (void)fd, (void)what, (void)argument;
    fired++;
}

static void *loop(void *argument)
{
    event_base_dispatch(mine);
    ticks++;
    reads++;
    accepts++;
    changed++;
    fired++;
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    (void)argv;
    mine = event_base_new();
    other = event_base_new();
#ifdef WRONG
    struct event_base *some = other, *its = other;
#else
    struct event_base *some = argc > 1 ? mine : other, *its = mine;
#endif
    event_add(event_new(some, -1, EV_PERSIST, on_tick, NULL), NULL);
    bufferevent_setcb(bufferevent_socket_new(its, 0, 0), on_read, NULL, NULL, NULL);
    evconnlistener_new(its, on_accept, NULL, 0, 5, 1);
    evconnlistener_set_cb(evconnlistener_new(its, NULL, NULL, 0, 5, 1), on_changed, NULL);
    event_base_once(its, -1, EV_TIMEOUT, on_fired, NULL, NULL);
    if (pthread_create(&thread, NULL, loop, NULL)) return 2;
    event_base_dispatch(other);
    pthread_join(thread, NULL);
    printf("%d %ld %ld %ld %ld %ld\n", argc, ticks, reads, accepts, changed, fired);
    return 0;
}
