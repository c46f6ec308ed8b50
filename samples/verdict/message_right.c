/* Sockets with all their calls: a listening socket, connect and accept, sendmsg and recvmsg, sendto, poll and select.
 *
 * Category: descriptor
 * Alarm: gcc clang helgrind drd: recvfrom and sendto are unknown to them.
 * Verdict: no race. `request` is written before the bytes are sent that announce it. */
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROUNDS = 5 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_length;
static int request, answer;

static void *client(void *unused)
{
    (void)unused;
    long sum = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, address_length)) return NULL;
    for (char i = 0; i < ROUNDS; i++) {
        struct iovec part = {&i, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        request = i * 10; // NORACE: before sendmsg
        if (sendmsg(fd, &message, 0) != 1) break;
        struct pollfd ready = {fd, POLLIN, 0};
        if (poll(&ready, 1, 5000) != 1 || recvmsg(fd, &message, 0) != 1) break;
        sum += answer; // NORACE: after recvmsg
    }
    close(fd);
    return (void *)sum;
}

int main(void)
{
    pthread_t thread;
    void *sum;
    char byte;
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    /* A name in the abstract space: nothing to clean up. */
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "race-sample-%d", (int)getpid());
    address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (server < 0 || bind(server, (struct sockaddr *)&address, address_length) || listen(server, 1)) return 2;
    if (pthread_create(&thread, NULL, client, NULL)) return 2;
    int fd = accept(server, NULL, NULL);
    if (fd < 0) return 1;
    for (;;) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fd, &set);
        if (select(fd + 1, &set, NULL, NULL, NULL) != 1 || recvfrom(fd, &byte, 1, 0, NULL, NULL) != 1) break;
        answer = request + 1; // NORACE: after recvfrom, before sendto
        if (sendto(fd, &byte, 1, 0, NULL, 0) != 1) break;
    }
    pthread_join(thread, &sum);
    printf("sum %ld\n", (long)sum);
    close(fd);
    close(server);
    return 0;
}
