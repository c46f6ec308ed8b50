/* An epoll loop of one's own: two workers report through pipes that the loop waits for.
 *
 * Category: descriptor
 * Verdict: no race. `results[i]` is written before worker i writes to its pipe, and read after the loop has read from
 * that pipe. */
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { WORKERS = 2 };

static int wires[WORKERS][2];
static long results[WORKERS];
static int handled;

static void *work(void *argument)
{
    int me = (int)(long)argument;
    char token = (char)me;
    for (int i = 0; i < 1000; i++)
        results[me] += i + me; // NORACE: own element, before the write
    if (write(wires[me][1], &token, 1) != 1) _exit(1);
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    long sum = 0;
    int poll = epoll_create1(0);
    if (poll < 0) return 2;
    for (long i = 0; i < WORKERS; i++) {
        if (pipe(wires[i])) return 2;
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = (unsigned long)i};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, wires[i][0], &event)) return 2;
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    }
    while (handled < WORKERS) {
        struct epoll_event events[WORKERS];
        int ready = epoll_wait(poll, events, WORKERS, -1);
        for (int i = 0; i < ready; i++) {
            char token;
            unsigned long which = events[i].data.u64;
            if (read(wires[which][0], &token, 1) != 1) return 1;
            sum += results[which]; // NORACE: after the read
            handled++;             // NORACE: main only
        }
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("sum %ld\n", sum);
    return 0;
}
