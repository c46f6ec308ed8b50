/* A libevent loop: its callbacks take turns in one thread, a worker thread feeds it through a pipe.
 *
 * Category: event-loop
 * Build: -levent
 * Verdict: a race on `progress`, which the worker writes and the timer callback shows. `turns` is shared by callbacks
 * of one loop, which never run at the same time; `results` is written before the write to the pipe and read after the
 * read from it. A static detector that does not model descriptors cannot know the latter. */
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { JOBS = 4 };

struct event_base *base;
int wires[2];
int turns;
int received;
int highest;
int progress;
int results[JOBS];

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < JOBS; i++) {
        usleep(2000);
        progress = i + 1;    // RACE progress
        results[i] = 10 * i; // NORACE: before the write
        char which = (char)i;
        if (write(wires[1], &which, 1) != 1) return NULL;
    }
    return NULL;
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
    (void)fd, (void)what, (void)argument;
    turns++;             // NORACE: one loop, one thread
    int seen = progress; // RACE progress
    if (seen > highest)
        highest = seen; // NORACE: this callback only
}

static void on_result(evutil_socket_t fd, short what, void *sum)
{
    (void)what;
    char which;
    if (read(fd, &which, 1) != 1) return;
    turns++;                             // NORACE: one loop, one thread
    *(int *)sum += results[(int)which]; // NORACE: after the read
    if (++received == JOBS)              // NORACE: this callback only
        event_base_loopbreak(base);
}

int main(void)
{
    pthread_t worker;
    int sum = 0;
    struct timeval tick = {0, 1000};
    base = event_base_new();
    if (!base || pipe(wires)) return 2;
    struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, NULL);
    struct event *reader = event_new(base, wires[0], EV_READ | EV_PERSIST, on_result, &sum);
    event_add(timer, &tick);
    event_add(reader, NULL);
    if (pthread_create(&worker, NULL, work, NULL)) return 2;
    event_base_dispatch(base);
    pthread_join(worker, NULL);
    printf("sum %d of %d jobs\n", sum, received); // NORACE: the loop is over
    event_free(timer);
    event_free(reader);
    event_base_free(base);
    return turns < JOBS || highest > JOBS; // NORACE: the loop is over
}
