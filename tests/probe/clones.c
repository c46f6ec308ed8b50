/* Processes and threads that are made without libc's being told, beside threads that are in the middle of checks.
 * Prints what every run must be. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, ROUNDS = 25, CELLS = 1 << 16, STACK = 1 << 18, VALUE = 7 };

static int stop;
static long data[CELLS], own[CELLS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *stack;

static unsigned next(unsigned *x)
{
    *x = *x * 1103515245 + 12345;
    return *x >> 8;
}

static void *work(void *number)
{
    unsigned x = *(const unsigned *)number;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < 50; i++)
            data[next(&x) % CELLS]++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static int child(void *amount)
{
    unsigned x = 7;
    for (int i = 0; i < 20000; i++)
        own[next(&x) % CELLS] += *(const int *)amount;
    return VALUE;
}

static pid_t make(int how)
{
    int amount = 1;
    pid_t pid = -1;
    if (how == 0) return clone(child, stack + STACK, SIGCHLD, &amount);
    if (how == 1) pid = _Fork();
    if (how == 2) pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (how == 3) pid = (pid_t)syscall(SYS_fork);
    if (how == 4) {
        const unsigned long arguments[8] = {[4] = SIGCHLD};
        pid = (pid_t)syscall(SYS_clone3, arguments, sizeof arguments);
    }
    if (how == 5) { /* shares memory, and thread-local storage too */
        static int one = 1;
        unsigned x = 3;
        pid = clone(child, stack + STACK, CLONE_VM | SIGCHLD, &one);
        for (int i = 0; i < 20000; i++)
            data[next(&x) % CELLS]++;
    }
    if (!pid) _exit(child(&amount));
    return pid;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned numbers[THREADS] = {1, 2};
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int how = 0; how < 6; how++) {
        int good = 0, status;
        for (int round = 0; round < ROUNDS; round++) {
            const pid_t pid = make(how);
            int waited = 0;
            while (pid > 0 && !waitpid(pid, &status, WNOHANG) && waited++ < 20000)
                usleep(1000);
            if (waited > 20000) {
                kill(pid, SIGKILL);
                waitpid(pid, &status, 0);
                break;
            }
            good += pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == VALUE;
        }
        printf("%d: %d of %d\n", how, good, ROUNDS);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
