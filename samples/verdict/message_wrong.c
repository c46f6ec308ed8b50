/* Readiness taken for receipt: poll says that something can be read, and the data is touched before it is read; and
 * `select` with no time, which gives up at once.
 *
 * Category: descriptor
 * Verdict: a race on `idle`, read after a select that found nothing; and on `next`, which the sender changes again
 * after its message. `job` is read after the read. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

int ends[2];
int idle;
int job;
int next;

static void *sender(void *unused)
{
    (void)unused;
    char byte = 1;
    usleep(3000);
    idle = 1; // RACE idle: select has given up
    usleep(10);
    job = 7; // NORACE: before the write
    if (send(ends[0], &byte, 1, 0) != 1) return NULL;
    usleep(10);
    next = 8; // RACE next: after the message
    usleep(10);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char byte;
    fd_set set;
    struct timeval none = {0, 0};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 2;
    if (pthread_create(&thread, NULL, sender, NULL)) return 2;
    FD_ZERO(&set);
    FD_SET(ends[1], &set);
    int found = select(ends[1] + 1, &set, NULL, NULL, &none);
    int sum = idle; // RACE idle
    usleep(10);
    struct pollfd ready = {ends[1], POLLIN, 0};
    if (poll(&ready, 1, -1) != 1 || recv(ends[1], &byte, 1, 0) != 1) return 1;
    sum += job; // NORACE: after recv
    usleep(100);
    sum += next; // RACE next
    usleep(10);
    pthread_join(thread, NULL);
    printf("job %d\n", job); // NORACE: after the join
    return sum > 16 || found < 0;
}
