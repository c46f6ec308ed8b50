/* A program with one race, in count(), that makes life hard for whoever watches it: the first argument says how. As a
 * library (-DLIBRARY) it has the race only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

long counted;

__attribute__((noinline)) void *count(void *unused)
{
    counted++;
    return unused;
}

void race_here(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, count, NULL)) exit(2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

#ifndef LIBRARY
static void close_all(void)
{
    for (int fd = 2; fd < 1024; fd++)
        close(fd);
}

/* A file of data in the place of stderr. */
static int replace_stderr(const char *path)
{
    close(2);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) == 2 && write(2, "data\n", 5) == 5 ? 0 : 3;
}

/* madvise and openat fail from now on. */
static void forbid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static volatile sig_atomic_t handled;
static void on_signal(int number)
{
    (void)number;
    handled++;
}

static volatile int spun;
static void *be_signalled(void *unused)
{
    for (int i = 0; i < 20000; i++)
        spun++;
    return unused;
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, be_signalled, NULL)) exit(2);
    for (int i = 0; i < 50; i++)
        raise(SIGUSR1);
    pthread_join(thread, NULL);
    puts(handled ? "handled" : "not handled");
}

static void forks(void)
{
    for (int i = 0; i < 5; i++) {
        pid_t child = i % 2 ? vfork() : fork();
        if (!child) _exit(i);
        int status;
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    }
}

static sigjmp_buf back;
static int compare(const void *left, const void *right)
{
    if (*(const int *)left == 3) siglongjmp(back, 1);
    return *(const int *)left - *(const int *)right;
}

static void jumps(void)
{
    for (int i = 0; i < 3; i++) {
        int numbers[] = {5, 4, 3, 2, 1};
        if (!sigsetjmp(back, 1)) qsort(numbers, 5, sizeof *numbers, compare);
    }
    puts("jumped");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned;

static void clean(void *unused)
{
    (void)unused;
    cleaned++; /* the mutex is held again */
    pthread_mutex_unlock(&lock);
}

static void *wait_for_ever(void *unused)
{
    pthread_mutex_lock(&lock);
    waiting++;
    pthread_cleanup_push(clean, NULL);
    for (;;)
        pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(1);
    return unused;
}

static void cancels(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, wait_for_ever, NULL)) exit(2);
    for (int seen = 0; seen < 3;) {
        pthread_mutex_lock(&lock);
        seen = waiting;
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < 3; i++)
        pthread_cancel(threads[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("cleaned %d\n", cleaned);
}

__attribute__((noinline)) static long deep(long n)
{
    volatile char room[64];
    room[n % 64] = 1;
    return n ? deep(n - 1) + room[n % 64] : 0;
}

static void twins(char **paths)
{
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) exit(3);
        void (*race)(void) = (void (*)(void))dlsym(library, "race_here");
        if (!race) exit(4);
        race();
        dlclose(library);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "close")) close_all();
    if (!strcmp(what, "replace") && (argc < 3 || replace_stderr(argv[2]))) return 3;
    if (!strcmp(what, "seccomp")) forbid();
    if (!strcmp(what, "signals")) signals();
    if (!strcmp(what, "fork")) forks();
    if (!strcmp(what, "jump")) jumps();
    if (!strcmp(what, "cancel")) cancels();
    if (!strcmp(what, "deep")) printf("%ld\n", deep(20000));
    if (!strcmp(what, "twins") && argc > 3) {
        twins(argv + 2);
        return 0;
    }
    race_here();
    if (!strcmp(what, "exec")) execl(argv[0], argv[0], "again", (char *)NULL);
    if (!strcmp(what, "wait")) pause();
    return 0;
}
#endif
