/* How many instructions a check takes: runs loops of accesses while another process steps through them.
 *
 *   probe_cost        prints, for each kind of access, the instructions of one iteration
 *
 * To be run natively and under an engine that keeps the program's threads (the embedded one); the difference is the
 * cost of a check. tools/core-cost --probe does this. */
#include <emmintrin.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 100, PAUSE = 200000 };

static struct { /* what the tracer looks at, in memory that both have */
    volatile long running; /* a kind is being counted; -1: the end */
    volatile long counts[16];
} *shared;

static uint64_t *data; /* pages of their own; written before the threads start */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

/* A new epoch. */
static void tick(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

#define LOOP(name, type, body)                                                                                         \
    static __attribute__((noinline)) void name(volatile type *p)                                                       \
    {                                                                                                                  \
        for (long i = 0; i < TIMES; i++) {                                                                             \
            body;                                                                                                      \
        }                                                                                                              \
    }
LOOP(write_4, uint32_t, p[0] = 1)
LOOP(read_4, uint32_t, (void)p[0])
LOOP(write_8, uint64_t, p[0] = 1)
LOOP(read_8, uint64_t, (void)p[0])
LOOP(read_2, uint16_t, (void)p[0])
LOOP(write_each, uint64_t, p[i] = 1)
LOOP(read_each, uint64_t, (void)p[i])
LOOP(read_across, uint64_t, (void)*(volatile uint64_t *)((uintptr_t)p + 3))
LOOP(neighbours, uint64_t, (void)p[0]; (void)p[1]; (void)p[2]; (void)p[3])
LOOP(read_16, uint64_t, __asm__ volatile("movdqa %0, %%xmm0" : : "m"(*(const __m128i *)(uintptr_t)p) : "xmm0"))

#define KIND(name, function, prepare) {name, (void (*)(volatile void *))(uintptr_t)function, prepare}
enum { ONCE, ALL, BOTH, NEW_EPOCH }; /* ALL: the words that it has parts of; the last ones end the epoch of the others */
static const struct {
    const char *name;
    void (*function)(volatile void *);
    int prepare;
} kinds[] = {
    KIND("same epoch: write of 4", write_4, ONCE),
    KIND("same epoch: read of 4", read_4, ONCE),
    KIND("same epoch: write of 8", write_8, ONCE),
    KIND("same epoch: read of 8", read_8, ONCE),
    KIND("same epoch: read of 16", read_16, ONCE),
    KIND("same epoch: read of 2", read_2, ONCE),
    KIND("same epoch: read of 8, not aligned", read_across, ALL),
    KIND("same epoch: read of 8 that another reads too", read_8, BOTH),
    KIND("same epoch: four neighbours", neighbours, ONCE),
    KIND("same epoch: four neighbours that another reads too", neighbours, BOTH),
    KIND("first in the epoch: write of 8", write_each, NEW_EPOCH),
    KIND("first in the epoch: read of 8", read_each, NEW_EPOCH),
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t *area(unsigned kind)
{
    return data + kind * 1024;
}

static void *other(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    usleep(PAUSE); /* not ordered, but later */
    for (unsigned k = 0; k < KINDS; k++)
        if (kinds[k].prepare == BOTH) kinds[k].function(area(k));
    pthread_barrier_wait(&barrier);
    return NULL;
}

static int trace(pid_t pid)
{
    int status;
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0)) return 1;
    if (waitpid(pid, &status, __WALL) < 0) return 1;
    while (shared->running >= 0) {
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) || waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status)) return 1;
        if (shared->running > 0) shared->counts[shared->running - 1]++;
    }
    return ptrace(PTRACE_DETACH, pid, 0, 0) != 0;
}

int main(void)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    data = aligned_alloc(4096, KINDS * 8192);
    if (shared == MAP_FAILED || !data) return 2;
    pthread_barrier_init(&barrier, NULL, 2);
    pid_t pid = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t tracer = fork();
    if (tracer < 0) return 2;
    if (tracer == 0) {
        while (!shared->running)
            usleep(1000);
        int code = trace(pid);
        if (code) kill(pid, SIGKILL);
        _exit(code);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL)) return 2;
    pthread_barrier_wait(&barrier);
    for (unsigned k = 0; k < KINDS; k++) /* what is done the first time, is done */
        for (int i = 0; i < 3; i++) {
            if (kinds[k].prepare == ALL) read_each(area(k));
            kinds[k].function(area(k));
        }
    usleep(2 * PAUSE);
    shared->running = KINDS + 1; /* the tracer begins */
    while (!shared->counts[KINDS])
        ;
    for (int i = 0; i < 2; i++) /* the second time counts */
        for (unsigned k = 0; k < KINDS; k++) {
            if (kinds[k].prepare == NEW_EPOCH)
                tick();
            else if (kinds[k].prepare == ALL)
                read_each(area(k));
            else
                kinds[k].function(area(k));
            shared->counts[k] = 0;
            shared->running = k + 1;
            kinds[k].function(area(k));
            shared->running = KINDS + 1;
        }
    shared->running = -1;
    int status;
    if (waitpid(tracer, &status, 0) < 0 || status) {
        fprintf(stderr, "probe_cost: the program cannot be traced: %s\n", strerror(errno));
        return 2;
    }
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    for (unsigned k = 0; k < KINDS; k++)
        printf("%s\t%.2f\n", kinds[k].name, (double)shared->counts[k] / TIMES);
    return 0;
}
