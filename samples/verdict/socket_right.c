/* A socket pair: requests and answers by send and recv; the object that a message points to changes hands.
 *
 * Category: descriptor
 * Verdict: no race. A pointer travels in the message; who has received it owns the object. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { REQUESTS = 30 };

struct request {
    int number;
    int answer;
};

static int ends[2];

static void *serve(void *unused)
{
    (void)unused;
    struct request *request;
    while (recv(ends[1], &request, sizeof request, 0) == (ssize_t)sizeof request && request) {
        request->answer = request->number * 3; // NORACE: received, so it is ours
        if (send(ends[1], &request, sizeof request, 0) < 0) break;
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    long sum = 0;
    struct request *request;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) return 2;
    if (pthread_create(&thread, NULL, serve, NULL)) return 2;
    for (int i = 0; i < REQUESTS; i++) {
        request = malloc(sizeof *request);
        if (!request) abort();
        request->number = i; // NORACE: before the send
        if (send(ends[0], &request, sizeof request, 0) < 0) return 1;
        if (recv(ends[0], &request, sizeof request, 0) < 0) return 1;
        sum += request->answer; // NORACE: after the answer
        free(request);
    }
    request = NULL;
    if (send(ends[0], &request, sizeof request, 0) < 0) return 1;
    pthread_join(thread, NULL);
    printf("sum %ld\n", sum);
    return 0;
}
