/* A socket pair, wrong: the sender goes on using the object that it has given away.
 *
 * Category: descriptor
 * Verdict: a race on `request->state` between the sender, after its send, and the server. `number` is right: it is
 * written before the address is sent. */
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    int number;
    int state;
};

int ends[2];

static void *serve(void *unused)
{
    (void)unused;
    struct request *request;
    int sum = 0;
    for (int i = 0; i < 5; i++) {
        if (recv(ends[1], &request, sizeof request, 0) != (ssize_t)sizeof request) break;
        sum += request->number; // NORACE: written before the send
        request->state = 2;     // RACE state
    }
    return (void *)(long)sum;
}

int main(void)
{
    static struct request requests[5];
    pthread_t thread;
    void *sum;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return 2;
    if (pthread_create(&thread, NULL, serve, NULL)) return 2;
    for (int i = 0; i < 5; i++) {
        struct request *request = &requests[i];
        request->number = i; // NORACE: before the send
        if (send(ends[0], &request, sizeof request, 0) < 0) return 1;
        usleep(200);
        request->state |= 1; // RACE state: given away
    }
    pthread_join(thread, &sum);
    printf("sum %ld\n", (long)sum);
    return requests[0].state > 3; // NORACE: after the join
}
