/* Descriptors, message queues, semaphores of System V: what is written happens before what is read. */
/* clang-format off */
#include "rows.h"

#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROOM = 500 };
#define WEAK __attribute__((weak))
WEAK int __dprintf_chk(int, int, const char *, ...);
WEAK int __vdprintf_chk(int, int, const char *, va_list);
WEAK int __poll_chk(struct pollfd *, nfds_t, int, size_t);
WEAK int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
WEAK ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
WEAK ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
WEAK int __open_2(const char *, int);
WEAK int __open64_2(const char *, int);
WEAK int __openat_2(int, const char *, int);
WEAK int __openat64_2(int, const char *, int);
WEAK mqd_t __mq_open_2(const char *, int);
WEAK ssize_t __read_chk(int, void *, size_t, size_t);
WEAK ssize_t __recv_chk(int, void *, size_t, size_t, int);
WEAK ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);

/* A va_list of these words, made without a call. */
#define LIST(list, ...)                                                                                                         \
    long words[] = {__VA_ARGS__};                                                                                               \
    va_list list = {{.gp_offset = 48, .fp_offset = 176, .overflow_arg_area = words}}
#define MUST(call) ((call) ? (void)0 : row_failed(#call))

/* --- pipes and sockets ------------------------------------------------------------------------------------------------ */

#define PIPE MUST(!pipe(w->fd))
#define SOCKETS MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, w->fd))
#define IN w->fd[0]
#define OUT w->fd[1]
#define GIVE MUST(write(OUT, "abc", 3) == 3)
#define TAKE ({ char t[9]; MUST(read(IN, t, 3) == 3); })
/* The one byte that is written, or what is made of it, comes by the function of the row; or it leaves by it. */
#define GIVES(name, prepare, ...) HAND(name, prepare, ({ MUST(__VA_ARGS__); }), TAKE)
#define TAKES(name, prepare, ...) HAND(name, prepare, GIVE, ({ char t[9]; MUST(__VA_ARGS__); }))
#define SENDER (struct sockaddr *)&(struct sockaddr_storage){0}, &(socklen_t){sizeof(struct sockaddr_storage)} /* arguments on the stack */
#define VECTOR(...) struct iovec v[] = {__VA_ARGS__}
#define ONE(text) ({ static char byte[] = text; VECTOR({byte, 3}); __builtin_memcpy(malloc(sizeof v), v, sizeof v); })
#define MESSAGE(text) ({ struct msghdr *m = calloc(2, sizeof *m); m->msg_iov = (text); m->msg_iovlen = 1; m; })
#define MESSAGES(text) ({ struct mmsghdr *m = calloc(2, sizeof *m); m->msg_hdr.msg_iov = (text); m->msg_hdr.msg_iovlen = 1; m; })
#define BUFFER ({ struct iovec *v = malloc(sizeof *v); v->iov_base = malloc(3); v->iov_len = 3; v; })

GIVES(pipe, PIPE, write(OUT, "abc", 3) == 3)
GIVES(pipe2, MUST(!pipe2(w->fd, O_CLOEXEC)), write(OUT, "abc", 3) == 3)
GIVES(socketpair, SOCKETS, write(OUT, "abc", 3) == 3)
GIVES(write, PIPE, write(OUT, "abc", 3) == 3)
GIVES(writev, PIPE, writev(OUT, ONE("abc"), 1) == 3)
GIVES(vmsplice, PIPE, vmsplice(OUT, ONE("abc"), 1, 0) == 3)
GIVES(dprintf, PIPE, dprintf(OUT, "abc") == 3)
GIVES(__dprintf_chk, PIPE, __dprintf_chk(OUT, 1, "abc") == 3)
GIVES(vdprintf, PIPE, ({ LIST(list, 0); vdprintf(OUT, "abc", list) == 3; }))
GIVES(__vdprintf_chk, PIPE, ({ LIST(list, 0); __vdprintf_chk(OUT, 1, "abc", list) == 3; }))
GIVES(send, SOCKETS, send(OUT, "abc", 3, 0) == 3)
GIVES(sendto, SOCKETS, sendto(OUT, "abc", 3, 0, NULL, 0) == 3)
GIVES(sendmsg, SOCKETS, sendmsg(OUT, MESSAGE(ONE("abc")), 0) == 3)
GIVES(sendmmsg, SOCKETS, sendmmsg(OUT, MESSAGES(ONE("abc")), 1, 0) == 1)
TAKES(read, PIPE, read(IN, t, 9) == 3)
TAKES(__read_chk, PIPE, __read_chk(IN, t, 9, 9) == 3)
TAKES(readv, PIPE, readv(IN, BUFFER, 1) == 3)
TAKES(recv, SOCKETS, recv(IN, t, 9, 0) == 3)
TAKES(__recv_chk, SOCKETS, __recv_chk(IN, t, 9, 9, 0) == 3)
TAKES(recvfrom, SOCKETS, recvfrom(IN, t, 9, 0, NULL, NULL) == 3)
TAKES(__recvfrom_chk, SOCKETS, __recvfrom_chk(IN, t, 9, 9, 0, SENDER) == 3)
TAKES(recvmsg, SOCKETS, recvmsg(IN, MESSAGE(BUFFER), 0) == 3)
TAKES(recvmmsg, SOCKETS, recvmmsg(IN, MESSAGES(BUFFER), 1, 0, NULL) == 1)

#define POLLED(...) ({ struct pollfd f = {.fd = IN, .events = POLLIN}; (__VA_ARGS__) == 1; })
TAKES(poll, PIPE, POLLED(poll(&f, 1, -1)))
TAKES(ppoll, PIPE, POLLED(ppoll(&f, 1, NULL, NULL)))
TAKES(__poll_chk, PIPE, POLLED(__poll_chk(&f, 1, -1, sizeof f)))
TAKES(__ppoll_chk, PIPE, POLLED(__ppoll_chk(&f, 1, NULL, NULL, sizeof f)))
#define SELECTED(...) ({ fd_set s; memset(&s, 0, sizeof s); FD_SET(IN, &s); (__VA_ARGS__) == 1; })
TAKES(select, PIPE, SELECTED(select(IN + 1, &s, NULL, NULL, NULL)))
TAKES(pselect, PIPE, SELECTED(pselect(IN + 1, &s, NULL, NULL, NULL, NULL)))

/* --- other descriptors for the same, and for what is moved ---------------------------------------------------------------- */

#define NULL_FILE MUST((w->fd[2] = open("/dev/null", O_RDWR)) >= 0)
GIVES(dup, PIPE; MUST((w->fd[2] = dup(OUT)) >= 0), write(w->fd[2], "abc", 3) == 3)
GIVES(dup2, PIPE; NULL_FILE; MUST(dup2(OUT, w->fd[2]) == w->fd[2]), write(w->fd[2], "abc", 3) == 3)
GIVES(dup3, PIPE; NULL_FILE; MUST(dup3(OUT, w->fd[2], O_CLOEXEC) == w->fd[2]), write(w->fd[2], "abc", 3) == 3)
HAND(close, PIPE, close(OUT); OUT = -1, char c; MUST(!read(IN, &c, 1)))
HAND(shutdown, SOCKETS, shutdown(OUT, SHUT_WR), char c; MUST(!read(IN, &c, 1)))

#define MOVES(name, prepare, ...) HAND(name, prepare, GIVE, ({ char t[9]; MUST((__VA_ARGS__) == 3); MUST(read(w->fd[2], t, 3) == 3); }))
#define PIPES PIPE; MUST(!pipe(w->fd + 2))
#define MEMORY(at) MUST((w->fd[at] = memfd_create("row", 0)) >= 0)
MOVES(splice, PIPES, splice(IN, NULL, w->fd[3], NULL, 3, 0))
MOVES(tee, PIPES, tee(IN, w->fd[3], 3, 0))
MOVES(sendfile, MUST(!pipe(w->fd + 2)); MEMORY(1), ({ off_t at = 0; sendfile(w->fd[3], OUT, &at, 3); }))
MOVES(sendfile64, MUST(!pipe(w->fd + 2)); MEMORY(1), ({ off64_t at = 0; sendfile64(w->fd[3], OUT, &at, 3); }))
HAND(copy_file_range, MEMORY(1); MEMORY(2), GIVE,
     ({ off64_t from = 0, to = 0; char t[9]; MUST(copy_file_range(OUT, &from, w->fd[2], &to, 3, 0) == 3); MUST(read(w->fd[2],
     t, 3) == 3); }))

/* --- files ------------------------------------------------------------------------------------------------------------ */

#define OPENED(name, ...)                                                                                                       \
    HAND(name, row_file(w), MUST((OUT = (__VA_ARGS__)) >= 0); GIVE, MUST((IN = open(w->path, O_RDONLY)) >= 0); TAKE)
OPENED(open, open(w->path, O_RDWR))
OPENED(open64, open64(w->path, O_RDWR))
OPENED(openat, openat(AT_FDCWD, w->path, O_RDWR))
OPENED(openat64, openat64(AT_FDCWD, w->path, O_RDWR))
OPENED(__open_2, __open_2(w->path, O_RDWR))
OPENED(__open64_2, __open64_2(w->path, O_RDWR))
OPENED(__openat_2, __openat_2(AT_FDCWD, w->path, O_RDWR))
OPENED(__openat64_2, __openat64_2(AT_FDCWD, w->path, O_RDWR))
OPENED(creat, creat(w->path, 0600))
OPENED(creat64, creat64(w->path, 0600))

#define MADE(name, ...)                                                                                                         \
    HAND(name, strcpy(w->path, "/tmp/race-rows-XXXXXX"); MUST((OUT = (__VA_ARGS__)) >= 0); MUST((IN = open(w->path,             \
          O_RDONLY)) >= 0), GIVE, TAKE)
MADE(mkstemp, mkstemp(w->path))
MADE(mkstemp64, mkstemp64(w->path))
MADE(mkostemp, mkostemp(w->path, O_CLOEXEC))
MADE(mkostemp64, mkostemp64(w->path, O_CLOEXEC))

#define PUTS(name, ...) HAND(name, MEMORY(0), ({ MUST((__VA_ARGS__) == 3); }), ({ char t[9]; MUST(pread(IN, t, 9, 0) == 3); }))
#define GETS(name, ...) HAND(name, MEMORY(0), MUST(pwrite(IN, "abc", 3, 0) == 3), ({ char t[9]; MUST((__VA_ARGS__) == 3); }))
PUTS(memfd_create, write(IN, "abc", 3))
PUTS(pwrite, pwrite(IN, "abc", 3, 0))
PUTS(pwrite64, pwrite64(IN, "abc", 3, 0))
PUTS(pwritev, pwritev(IN, ONE("abc"), 1, 0))
PUTS(pwritev2, pwritev2(IN, ONE("abc"), 1, 0, 0))
PUTS(pwritev64, pwritev64(IN, ONE("abc"), 1, 0))
PUTS(pwritev64v2, pwritev64v2(IN, ONE("abc"), 1, 0, 0))
GETS(pread, pread(IN, t, 9, 0))
GETS(pread64, pread64(IN, t, 9, 0))
GETS(__pread_chk, __pread_chk(IN, t, 9, 0, 9))
GETS(__pread64_chk, __pread64_chk(IN, t, 9, 0, 9))
GETS(preadv, preadv(IN, BUFFER, 1, 0))
GETS(preadv2, preadv2(IN, BUFFER, 1, 0, 0))
GETS(preadv64, preadv64(IN, BUFFER, 1, 0))
GETS(preadv64v2, preadv64v2(IN, BUFFER, 1, 0, 0))

#define TWO_OPEN row_file(w); for (int i = 0; i < 2; i++) MUST((w->fd[i] = open(w->path, O_RDWR)) >= 0)
#define FLOCKED(at) ({ MUST(!flock(w->fd[at], LOCK_EX)); MUST(!flock(w->fd[at], LOCK_UN)); })
#define SET(function, at, type) ({ struct flock l = {.l_type = type}; MUST(!function(w->fd[at], F_OFD_SETLKW, &l)); })
HAND(flock, TWO_OPEN, FLOCKED(0), FLOCKED(1))
HAND(fcntl, TWO_OPEN, SET(fcntl, 0, F_WRLCK); SET(fcntl, 0, F_UNLCK), SET(fcntl, 1, F_WRLCK))
HAND(fcntl64, TWO_OPEN, SET(fcntl64, 0, F_WRLCK); SET(fcntl64, 0, F_UNLCK), SET(fcntl64, 1, F_WRLCK))

/* Closing unlocks, and a lock for writing that becomes one for reading lets others read. */
#define FLOCK(at, how) MUST(!flock(w->fd[at], how))
PAIR(flock, TWO_OPEN, FLOCK(0, LOCK_EX); TOUCH; close(w->fd[0]); w->fd[0] = -1, FLOCK(1, LOCK_EX); TOUCH,
     FLOCK(0, LOCK_SH); TOUCH, FLOCK(1, LOCK_SH); TOUCH)
PAIR_MORE(flock, shared, TWO_OPEN, FLOCK(0, LOCK_EX); TOUCH; FLOCK(0, LOCK_SH), FLOCK(1, LOCK_SH); TOUCH,
          FLOCK(0, LOCK_SH); TOUCH, FLOCK(1, LOCK_SH); TOUCH, .together = false)
PAIR(fcntl, TWO_OPEN, SET(fcntl, 0, F_WRLCK); TOUCH; close(w->fd[0]); w->fd[0] = -1, SET(fcntl, 1, F_WRLCK); TOUCH,
     SET(fcntl, 0, F_RDLCK); TOUCH, SET(fcntl, 1, F_RDLCK); TOUCH)

/* --- sockets that connect --------------------------------------------------------------------------------------------- */

static void connect_to(int from, int to)
{
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    MUST(!getsockname(to, (struct sockaddr *)&address, &size));
    MUST(!connect(from, (struct sockaddr *)&address, size));
}
#define LISTEN                                                                                                                  \
    struct sockaddr_un address = {.sun_family = AF_UNIX};                                                                       \
    MUST((IN = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);                                                                          \
    MUST(!bind(IN, (struct sockaddr *)&address, sizeof address.sun_family));                                                    \
    MUST(!listen(IN, 1))
#define CONNECT MUST((OUT = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0); connect_to(OUT, IN)
HAND(socket, LISTEN, CONNECT, MUST((w->fd[2] = accept(IN, NULL, NULL)) >= 0))
HAND(connect, LISTEN, CONNECT, MUST((w->fd[2] = accept(IN, NULL, NULL)) >= 0))
HAND(accept, LISTEN, CONNECT, MUST((w->fd[2] = accept(IN, NULL, NULL)) >= 0))
HAND(accept4, LISTEN, CONNECT, MUST((w->fd[2] = accept4(IN, NULL, NULL, SOCK_CLOEXEC)) >= 0))

/* --- epoll, eventfd, timers, signals ------------------------------------------------------------------------------------ */

#define WATCH(at) ({ struct epoll_event e = {.events = EPOLLIN}; MUST(!epoll_ctl(w->fd[2], EPOLL_CTL_ADD, w->fd[at], &e)); })
#define WATCHED(how) PIPE; MUST((w->fd[2] = how) >= 0)
#define POLLS(name, ...) HAND(name, WATCHED(epoll_create1(0)); WATCH(0), GIVE, ({ struct epoll_event e[2]; MUST((__VA_ARGS__) == 1); }))
POLLS(epoll_wait, epoll_wait(w->fd[2], e, 2, -1))
POLLS(epoll_pwait, epoll_pwait(w->fd[2], e, 2, -1, NULL))
POLLS(epoll_pwait2, epoll_pwait2(w->fd[2], e, 2, NULL, NULL))
#define WATCHES(name, how)                                                                                                      \
    HAND(name, WATCHED(how); GIVE, WATCH(0), struct epoll_event e[2]; MUST(epoll_wait(w->fd[2], e, 2, -1) == 1))
WATCHES(epoll_ctl, epoll_create1(0))
WATCHES(epoll_create, epoll_create(1))
WATCHES(epoll_create1, epoll_create1(0))

#define EVENT MUST((IN = eventfd(0, 0)) >= 0)
#define ADD MUST(!eventfd_write(IN, 1))
#define GET eventfd_t n; MUST(!eventfd_read(IN, &n))
HAND(eventfd, EVENT, uint64_t n = 1; MUST(write(IN, &n, 8) == 8), uint64_t n; MUST(read(IN, &n, 8) == 8))
HAND(eventfd_write, EVENT, ADD, GET)
HAND(eventfd_read, EVENT, ADD, GET)

#define TIMER MUST((IN = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0)
#define START struct itimerspec s = {.it_value.tv_nsec = 1}; MUST(!timerfd_settime(IN, 0, &s, NULL))
#define EXPIRED uint64_t n; MUST(read(IN, &n, 8) == 8)
HAND(timerfd_create, TIMER, START, EXPIRED)
HAND(timerfd_settime, TIMER, START, EXPIRED)

HAND(signalfd, sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR2); sigprocmask(SIG_BLOCK, &s, NULL); MUST((IN = signalfd(-1,
     &s, 0)) >= 0),
     MUST(!kill(getpid(), SIGUSR2)), struct signalfd_siginfo i; MUST(read(IN, &i, sizeof i) == sizeof i))

ONLY_WRONG(inotify_init, MUST((IN = inotify_init()) >= 0), TOUCH, TOUCH)
ONLY_WRONG(inotify_init1, MUST((IN = inotify_init1(0)) >= 0), TOUCH, TOUCH)

/* --- asynchronous input and output -------------------------------------------------------------------------------------- */

#define AIO(type) ((struct type *)w->a)
#define AIO_PREPARE(type, at) PIPE; AIO(type)->aio_fildes = w->fd[at]; AIO(type)->aio_buf = w->b; AIO(type)->aio_nbytes = 3
#define AIO_DONE(type, suspend) const struct type *list[] = {AIO(type)}; MUST(!suspend(list, 1, NULL))
HAND(aio_write, AIO_PREPARE(aiocb, 1), MUST(!aio_write(AIO(aiocb))), TAKE)
HAND(aio_write64, AIO_PREPARE(aiocb64, 1), MUST(!aio_write64(AIO(aiocb64))), TAKE)
HAND(aio_read, AIO_PREPARE(aiocb, 0), MUST(!aio_read(AIO(aiocb))),
     GIVE; AIO_DONE(aiocb, aio_suspend); MUST(!aio_error(AIO(aiocb))))
HAND(aio_read64, AIO_PREPARE(aiocb64, 0), MUST(!aio_read64(AIO(aiocb64))),
     GIVE; AIO_DONE(aiocb64, aio_suspend64); MUST(!aio_error64(AIO(aiocb64))))
#define AIO_ENDS(name, type, start, suspend, end)                                                                               \
    HAND(name, AIO_PREPARE(type, 0); MUST(!start(AIO(type))), GIVE, AIO_DONE(type, suspend); MUST((end) >= 0))
AIO_ENDS(aio_error, aiocb, aio_read, aio_suspend, aio_error(AIO(aiocb)))
AIO_ENDS(aio_error64, aiocb64, aio_read64, aio_suspend64, aio_error64(AIO(aiocb64)))
AIO_ENDS(aio_return, aiocb, aio_read, aio_suspend, aio_return(AIO(aiocb)))
AIO_ENDS(aio_return64, aiocb64, aio_read64, aio_suspend64, aio_return64(AIO(aiocb64)))

/* --- queues and semaphores of the system -------------------------------------------------------------------------------- */

static void open_queue(row_place *w, bool by_other)
{
    char name[32];
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
    snprintf(name, sizeof name, "/race-rows-%d", (int)getpid());
    for (int i = 0; i < 2; i++)
        if ((w->fd[i] = by_other && i ? __mq_open_2(name, O_RDWR) : mq_open(name, O_RDWR | O_CREAT, 0600, &attributes)) < 0)
            row_missing("no message queues here");
    mq_unlink(name);
}
#define SEND MUST(!mq_send(OUT, "abc", 3, 0))
#define RECEIVE char t[9]; MUST(mq_receive(IN, t, 9, NULL) == 3)
HAND(mq_open, open_queue(w, false), SEND, RECEIVE)
HAND(__mq_open_2, open_queue(w, true), SEND, RECEIVE)
HAND(mq_send, open_queue(w, false), SEND, RECEIVE)
HAND(mq_receive, open_queue(w, false), SEND, RECEIVE)
HAND(mq_timedsend, open_queue(w, false), const struct timespec end = {0}; MUST(!mq_timedsend(OUT, "abc", 3, 0, &end)), RECEIVE)
HAND(mq_timedreceive, open_queue(w, false), SEND,
     const struct timespec end = {0}; char t[9]; MUST(mq_timedreceive(IN, t, 9, NULL, &end) == 3))
ONLY_WRONG(mq_close, open_queue(w, false), mq_close(OUT); OUT = -1; TOUCH, TOUCH)

typedef struct {
    long type;
    char text[4];
} message;
#define QUEUE if ((w->number = msgget(IPC_PRIVATE, 0600)) < 0) row_missing("no queues of System V here")
#define PUT message m = {.type = 1}; MUST(!msgsnd(w->number, &m, 4, 0))
#define TAKEN message m; MUST(msgrcv(w->number, &m, 4, 0, 0) == 4); msgctl(w->number, IPC_RMID, NULL)
HAND(msgsnd, QUEUE, PUT, TAKEN)
HAND(msgrcv, QUEUE, PUT, TAKEN)

#define SEMAPHORE if ((w->number = semget(IPC_PRIVATE, 1, 0600)) < 0) row_missing("no semaphores of System V here")
#define CHANGE(by) struct sembuf s = {.sem_op = by}; MUST(!semop(w->number, &s, 1))
#define CHANGE_TIMED(by) struct sembuf s = {.sem_op = by}; MUST(!semtimedop(w->number, &s, 1, NULL))
#define REMOVE semctl(w->number, 0, IPC_RMID)
HAND(semop, SEMAPHORE, CHANGE(1), CHANGE(-1); REMOVE)
HAND(semtimedop, SEMAPHORE, CHANGE_TIMED(1), CHANGE_TIMED(-1); REMOVE)
HAND(semctl, SEMAPHORE, MUST(!semctl(w->number, 0, SETVAL, 1)), CHANGE(-1); REMOVE)

/* --- what the calls read and write ---------------------------------------------------------------------------------------- */

#define WITH(make, ...)                                                                                                         \
    int fd[2];                                                                                                                  \
    make;                                                                                                                       \
    MUST(__VA_ARGS__);                                                                                                          \
    close(fd[0]);                                                                                                               \
    close(fd[1])
#define FULL(make) MUST(!make); MUST(write(fd[1], "abcde", 5) == 5)
#define FULL_PIPE FULL(pipe(fd))
#define PAIR_OF socketpair(AF_UNIX, SOCK_STREAM, 0, fd)
#define FULL_PAIR FULL(PAIR_OF)
#define FULL_FILE fd[0] = memfd_create("row", 0); fd[1] = dup(fd[0]); MUST(write(fd[1], "abcde", 5) == 5)
#define BOTH VECTOR({p, 3}, {q, 2})
#define HEADER BOTH; struct mmsghdr m = {.msg_hdr = {.msg_iov = v, .msg_iovlen = 2}}
#define INTO(name, ...) RANGE(name, WRITES(3, 0), WRITES(2, 0), __VA_ARGS__)
#define FROM(name, ...) RANGE(name, READS(3, "abcd"), READS(2, "def"), __VA_ARGS__)

RANGE(read, WRITES(5, 0), NOT, WITH(FULL_PIPE, read(fd[0], p, ROOM) == 5))
RANGE(__read_chk, WRITES(5, 0), NOT, WITH(FULL_PIPE, __read_chk(fd[0], p, ROOM, ROOM) == 5))
RANGE(recv, WRITES(5, 0), NOT, WITH(FULL_PAIR, recv(fd[0], p, ROOM, 0) == 5))
RANGE(__recv_chk, WRITES(5, 0), NOT, WITH(FULL_PAIR, __recv_chk(fd[0], p, ROOM, ROOM, 0) == 5))
RANGE(recvfrom, WRITES(5, 0), NOT, WITH(FULL_PAIR, recvfrom(fd[0], p, ROOM, 0, NULL, NULL) == 5))
RANGE(__recvfrom_chk, WRITES(5, 0), NOT, WITH(FULL_PAIR, __recvfrom_chk(fd[0], p, ROOM, ROOM, 0, NULL, NULL) == 5))
RANGE(pread, WRITES(5, 0), NOT, WITH(FULL_FILE, pread(fd[0], p, ROOM, 0) == 5))
RANGE(pread64, WRITES(5, 0), NOT, WITH(FULL_FILE, pread64(fd[0], p, ROOM, 0) == 5))
RANGE(__pread_chk, WRITES(5, 0), NOT, WITH(FULL_FILE, __pread_chk(fd[0], p, ROOM, 0, ROOM) == 5))
RANGE(__pread64_chk, WRITES(5, 0), NOT, WITH(FULL_FILE, __pread64_chk(fd[0], p, ROOM, 0, ROOM) == 5))
INTO(readv, BOTH; WITH(FULL_PIPE, readv(fd[0], v, 2) == 5))
INTO(preadv, BOTH; WITH(FULL_FILE, preadv(fd[0], v, 2, 0) == 5))
INTO(preadv2, BOTH; WITH(FULL_FILE, preadv2(fd[0], v, 2, 0, 0) == 5))
INTO(preadv64, BOTH; WITH(FULL_FILE, preadv64(fd[0], v, 2, 0) == 5))
INTO(preadv64v2, BOTH; WITH(FULL_FILE, preadv64v2(fd[0], v, 2, 0, 0) == 5))
INTO(recvmsg, HEADER; WITH(FULL_PAIR, recvmsg(fd[0], &m.msg_hdr, 0) == 5))
INTO(recvmmsg, HEADER; WITH(FULL_PAIR, recvmmsg(fd[0], &m, 1, 0, NULL) == 1))
RANGE(eventfd_read, WRITES(8, 0), NOT, WITH(fd[0] = eventfd(1, 0); fd[1] = dup(fd[0]), !eventfd_read(fd[0], (eventfd_t *)p)))

RANGE(write, READS(3, "abcd"), NOT, WITH(MUST(!pipe(fd)), write(fd[1], p, 3) == 3))
RANGE(send, READS(3, "abcd"), NOT, WITH(MUST(!PAIR_OF), send(fd[1], p, 3, 0) == 3))
RANGE(sendto, READS(3, "abcd"), NOT, WITH(MUST(!PAIR_OF), sendto(fd[1], p, 3, 0, NULL, 0) == 3))
RANGE(pwrite, READS(3, "abcd"), NOT, WITH(FULL_FILE, pwrite(fd[1], p, 3, 0) == 3))
RANGE(pwrite64, READS(3, "abcd"), NOT, WITH(FULL_FILE, pwrite64(fd[1], p, 3, 0) == 3))
FROM(writev, BOTH; WITH(MUST(!pipe(fd)), writev(fd[1], v, 2) == 5))
FROM(vmsplice, BOTH; WITH(MUST(!pipe(fd)), vmsplice(fd[1], v, 2, 0) == 5))
FROM(pwritev, BOTH; WITH(FULL_FILE, pwritev(fd[1], v, 2, 0) == 5))
FROM(pwritev2, BOTH; WITH(FULL_FILE, pwritev2(fd[1], v, 2, 0, 0) == 5))
FROM(pwritev64, BOTH; WITH(FULL_FILE, pwritev64(fd[1], v, 2, 0) == 5))
FROM(pwritev64v2, BOTH; WITH(FULL_FILE, pwritev64v2(fd[1], v, 2, 0, 0) == 5))
FROM(sendmsg, HEADER; WITH(MUST(!PAIR_OF), sendmsg(fd[1], &m.msg_hdr, 0) == 5))
FROM(sendmmsg, HEADER; WITH(MUST(!PAIR_OF), sendmmsg(fd[1], &m, 1, 0) == 1))
RANGE(dprintf, READS(5, "<%s>"), READS(4, "abc"), WITH(MUST(!pipe(fd)), dprintf(fd[1], p, q) == 5))
RANGE(__dprintf_chk, READS(5, "<%s>"), READS(4, "abc"), WITH(MUST(!pipe(fd)), __dprintf_chk(fd[1], 1, p, q) == 5))
RANGE(vdprintf, READS(5, "<%s>"), READS(4, "abc"), LIST(list, (long)q); WITH(MUST(!pipe(fd)), vdprintf(fd[1], p, list) == 5))
RANGE(__vdprintf_chk, READS(5, "<%s>"), READS(4, "abc"),
      LIST(list, (long)q); WITH(MUST(!pipe(fd)), __vdprintf_chk(fd[1], 1, p, list) == 5))

#define CLOSED(call) ({ const int f = (call); if (f >= 0) close(f); })
RANGE(open, READS(8, "nowhere"), NOT, CLOSED(open(p, O_RDONLY)))
RANGE(open64, READS(8, "nowhere"), NOT, CLOSED(open64(p, O_RDONLY)))
RANGE(openat, READS(8, "nowhere"), NOT, CLOSED(openat(AT_FDCWD, p, O_RDONLY)))
RANGE(openat64, READS(8, "nowhere"), NOT, CLOSED(openat64(AT_FDCWD, p, O_RDONLY)))
RANGE(__open_2, READS(8, "nowhere"), NOT, CLOSED(__open_2(p, O_RDONLY)))
RANGE(__open64_2, READS(8, "nowhere"), NOT, CLOSED(__open64_2(p, O_RDONLY)))
RANGE(__openat_2, READS(8, "nowhere"), NOT, CLOSED(__openat_2(AT_FDCWD, p, O_RDONLY)))
RANGE(__openat64_2, READS(8, "nowhere"), NOT, CLOSED(__openat64_2(AT_FDCWD, p, O_RDONLY)))
RANGE(__mq_open_2, READS(9, "/nowhere"), NOT, CLOSED(__mq_open_2(p, O_RDONLY)))
RANGE(creat, READS(11, "/nowhere/x"), NOT, CLOSED(creat(p, 0600)))
RANGE(creat64, READS(11, "/nowhere/x"), NOT, CLOSED(creat64(p, 0600)))
RANGE(mq_open, READS(9, "/nowhere"), NOT, CLOSED(mq_open(p, O_RDONLY)))
RANGE(memfd_create, READS(4, "row"), NOT, CLOSED(memfd_create(p, 0)))
#define CLOSED_BOTH(call, fd) ({ MUST(!(call)); close((fd)[0]); close((fd)[1]); })
RANGE(pipe, WRITES(8, 0), NOT, CLOSED_BOTH(pipe((int *)p), (int *)p))
RANGE(pipe2, WRITES(8, 0), NOT, CLOSED_BOTH(pipe2((int *)p, 0), (int *)p))
RANGE(socketpair, WRITES(8, 0), NOT, CLOSED_BOTH(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)p), (int *)p))
RANGE(epoll_ctl, READS(12, 0), NOT, WITH(MUST(!pipe(fd)), ({ const int e = epoll_create1(0); const bool ok = !epoll_ctl(e,
     EPOLL_CTL_ADD, fd[0], (void *)p); close(e); ok; })))
RANGE(connect, READS(16, 0), NOT, CLOSED(({ const int f = socket(AF_UNIX, SOCK_STREAM, 0); connect(f, (void *)p, 16); f; })))
RANGE(timerfd_settime, READS(32, 0), NOT, CLOSED(({ const int f = timerfd_create(CLOCK_MONOTONIC, 0); timerfd_settime(f, 0,
     (void *)p, NULL); f; })))
