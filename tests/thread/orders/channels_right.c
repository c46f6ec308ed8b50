/* Order by what is written to a descriptor and read from it, by ways other than read and write of the same one: streams
 * over a pipe, numbers of messages at once, moves between pipes without reading, a copy made by fcntl, asynchronous
 * reads, locks of open files, and an epoll that watches more descriptors than fit into a small table.
 *
 * Verdict: no race. */
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { EVENTS = 100, ROUNDS = 20 };

static int streams[2], prints[2], messages[2], first[2], second[2], copied[2], async[2], events[EVENTS];
static int by_stream, by_print, by_message, by_move, by_copy, by_async, by_event[EVENTS];
static int locked;
static char path[] = "/tmp/race-channels-XXXXXX";

static void need(int good)
{
    if (!good) _exit(1);
}

static void lock_file(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    need(fcntl(fd, F_OFD_SETLKW, &lock) == 0);
}

static void count_locked(void)
{
    const int fd = open(path, O_RDWR);
    for (int i = 0; i < ROUNDS; i++) {
        lock_file(fd, F_WRLCK);
        locked++; // NORACE: one at a time
        lock_file(fd, F_UNLCK);
    }
    close(fd);
}

static void *write_all(void *unused)
{
    (void)unused;
    FILE *stream = fdopen(streams[1], "w");
    by_stream = 1; // NORACE: before it is flushed
    fprintf(stream, "17\n");
    fflush(stream);
    by_print = 2; // NORACE: before the write
    dprintf(prints[1], "go");
    by_message = 3; // NORACE: before it is sent
    char text[] = "ab";
    struct iovec part = {text, 2};
    struct mmsghdr many = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    need(sendmmsg(messages[1], &many, 1, 0) == 1);
    by_move = 4; // NORACE: before the first pipe is written to
    need(vmsplice(first[1], &part, 1, 0) == 2);
    const int copy = fcntl(copied[1], F_DUPFD, 0);
    by_copy = 5; // NORACE: before the write
    need(write(copy, "x", 1) == 1);
    by_async = 6; // NORACE: before the write
    need(write(async[1], "x", 1) == 1);
    for (int i = 0; i < EVENTS; i++) {
        const uint64_t one = 1;
        by_event[i] = i; // NORACE: before the event
        need(write(events[i], &one, sizeof one) == sizeof one);
    }
    count_locked();
    return NULL;
}

static void *move(void *unused)
{
    (void)unused;
    need(splice(first[0], NULL, second[1], NULL, 2, 0) == 2);
    return NULL;
}

static int read_events(int epoll)
{
    int sum = 0;
    for (int seen = 0; seen < EVENTS;) {
        struct epoll_event ready[8];
        const int count = epoll_wait(epoll, ready, 8, -1);
        for (int i = 0; i < count; i++, seen++)
            sum += by_event[ready[i].data.u32]; // NORACE: after the event
    }
    return sum;
}

int main(void)
{
    pthread_t writer, mover;
    char text[16];
    int number, sum = 0;
    close(mkstemp(path));
    need(!pipe(streams) && !pipe(prints) && !pipe(first) && !pipe(second) && !pipe(copied) && !pipe(async));
    need(!socketpair(AF_UNIX, SOCK_DGRAM, 0, messages));
    const int epoll = epoll_create1(0);
    for (uint32_t i = 0; i < EVENTS; i++) {
        struct epoll_event what = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
        events[i] = eventfd(0, 0);
        need(events[i] >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, events[i], &what));
    }
    struct aiocb request = {.aio_fildes = async[0], .aio_buf = text, .aio_nbytes = 1};
    need(!pthread_create(&writer, NULL, write_all, NULL) && !pthread_create(&mover, NULL, move, NULL));

    FILE *stream = fdopen(streams[0], "r");
    need(fscanf(stream, "%d", &number) == 1);
    sum += by_stream; // NORACE: after the read
    need(read(prints[0], text, sizeof text) == 2);
    sum += by_print; // NORACE: after the read
    struct iovec part = {text, sizeof text};
    struct mmsghdr many = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    need(recvmmsg(messages[0], &many, 1, 0, NULL) == 1);
    sum += by_message; // NORACE: after it has come
    need(read(second[0], text, sizeof text) == 2);
    sum += by_move; // NORACE: after it has come through both pipes
    need(read(copied[0], text, 1) == 1);
    sum += by_copy; // NORACE: after the read
    need(!aio_read(&request));
    const struct aiocb *all[] = {&request};
    while (aio_error(&request))
        aio_suspend(all, 1, NULL);
    need(aio_return(&request) == 1);
    sum += by_async; // NORACE: after it is done
    sum += read_events(epoll);
    count_locked();
    pthread_join(writer, NULL);
    pthread_join(mover, NULL);
    unlink(path);
    printf("%d %d\n", sum, locked); // NORACE: after the joins
    return 0;
}
