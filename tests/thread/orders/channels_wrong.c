/* Data that is changed after it was announced: behind a flushed stream, behind a print to a pipe, and under a lock of
 * an open file that is shared.
 *
 * Verdict: three races. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int streams[2], prints[2];
static int by_stream, by_print, locked;
static char path[] = "/tmp/race-channels-XXXXXX";
static pthread_barrier_t start;

static void lock_file(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLKW, &lock)) _exit(1);
}

static void count(void)
{
    const int fd = open(path, O_RDWR);
    pthread_barrier_wait(&start);
    lock_file(fd, F_RDLCK);
    locked++; // RACE lock: both may have it
    pthread_barrier_wait(&start);
    lock_file(fd, F_UNLCK);
    close(fd);
}

static void *announce(void *unused)
{
    (void)unused;
    FILE *stream = fdopen(streams[1], "w");
    fprintf(stream, "x");
    fflush(stream);
    by_stream = 1; // RACE stream: too late
    dprintf(prints[1], "x");
    by_print = 1; // RACE print: too late
    count();
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char text[4];
    int sum = 0;
    close(mkstemp(path));
    pthread_barrier_init(&start, NULL, 2);
    if (pipe(streams) || pipe(prints) || pthread_create(&thread, NULL, announce, NULL)) return 2;
    FILE *stream = fdopen(streams[0], "r");
    if (getc(stream) != 'x') return 2;
    sum += by_stream; // RACE stream
    if (read(prints[0], text, sizeof text) != 1) return 2;
    sum += by_print; // RACE print
    count();
    pthread_join(thread, NULL);
    unlink(path);
    printf("%d %d\n", sum, locked); // NORACE: after the join
    return 0;
}
