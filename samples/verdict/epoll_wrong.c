/* An epoll loop, wrong: it takes the first report for the report of all, and a worker goes on after its own.
 *
 * Category: descriptor
 * Verdict: races on `results[1]`, read when only worker 0 is known to have finished, and on `finished`, written after
 * the report. */
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { WORKERS = 2 };

int wires[WORKERS][2];
long results[WORKERS];
int finished;

static void *work(void *argument)
{
    int me = (int)(long)argument;
    char token = (char)me;
    usleep(2000u * (unsigned)me);
    results[me] = 10 + me; // RACE results: of the slower worker
    if (write(wires[me][1], &token, 1) != 1) _exit(1);
    usleep(100);
    finished++; // RACE finished
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    long sum = 0;
    char token;
    int poll = epoll_create1(0);
    if (poll < 0) return 2;
    for (long i = 0; i < WORKERS; i++) {
        if (pipe(wires[i])) return 2;
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = (unsigned long)i};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, wires[i][0], &event)) return 2;
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    }
    struct epoll_event event;
    if (epoll_wait(poll, &event, 1, -1) != 1) return 1;
    if (read(wires[event.data.u64][0], &token, 1) != 1) return 1;
    for (int i = 0; i < WORKERS; i++)
        sum += results[i]; // RACE results: the other one has not reported
    usleep(500);
    sum += finished; // RACE finished
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", results[0], results[1]); // NORACE: after the joins
    return sum > 23;
}
