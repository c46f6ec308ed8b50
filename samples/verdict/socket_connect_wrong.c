/* A socket that a program connects to itself, wrong: the client goes on with its request after it has sent it, and looks at the answer
 * without having received that it is there.
 *
 * Category: descriptor
 * Alarm: gcc clang helgrind drd: recvfrom and sendto are unknown to them.
 * Verdict: races on `request` and on `answer`. `first` is written before anything is sent. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROUNDS = 5 };

struct sockaddr_un address = {.sun_family = AF_UNIX};
socklen_t address_length;
int first, request, answer;

static void *client(void *unused)
{
    (void)unused;
    long sum = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, address_length)) return NULL;
    first = 7; // NORACE: before the first byte is sent
    for (char i = 0; i < ROUNDS; i++) {
        if (send(fd, &i, 1, 0) != 1) break;
        request = i * 10; // RACE request: too late
        usleep(100);
        sum += answer; // RACE answer: not received yet
        if (recv(fd, &i, 1, 0) != 1) break;
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
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "race-wrong-%d", (int)getpid());
    address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (server < 0 || bind(server, (struct sockaddr *)&address, address_length) || listen(server, 1)) return 2;
    if (pthread_create(&thread, NULL, client, NULL)) return 2;
    int fd = accept(server, NULL, NULL);
    if (fd < 0) return 1;
    while (recv(fd, &byte, 1, 0) == 1) {
        answer = request + first; // RACE request, RACE answer
        if (send(fd, &byte, 1, 0) != 1) break;
    }
    pthread_join(thread, &sum);
    puts("done");
    close(fd);
    close(server);
    return (long)sum < 0;
}
