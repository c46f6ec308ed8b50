/* Says what it was started with, races, and does what its argument says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int from_main;
static int counter;

static void *work(void *unused)
{
    counter++;
    return unused;
}

static void race(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* Whoever reads the clock by a system call is killed. */
static void forbid_clock(void)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) exit(9);
}

int main(int argc, char **argv)
{
    struct sigaction pipe_action;
    char text[128];
    int closed[3], first = open("/dev/null", O_RDONLY);
    for (int fd = 0; fd < 3; fd++)
        closed[fd] = fd != first && fcntl(fd, F_GETFD) < 0 && errno == EBADF;
    sigaction(SIGPIPE, NULL, &pipe_action);
    int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    snprintf(text, sizeof text, "closed %d %d %d, next %d, SIGPIPE %s\n", closed[0], closed[1], closed[2], first,
             pipe_action.sa_handler == SIG_IGN ? "ignored" : "not ignored");
    if (write(out, text, strlen(text)) < 0) return 8;
    if (argc > 2 && !strcmp(argv[2], "clock")) forbid_clock();
    if (argc > 2 && strchr(argv[2], '/')) {
        void *library = dlopen(argv[2], RTLD_NOW);
        int (*call)(int) = library ? (int (*)(int))dlsym(library, "work") : NULL;
        if (!call) return 7;
        snprintf(text, sizeof text, "%d %d\n", call(1000), from_main);
        if (write(out, text, strlen(text)) < 0) return 8;
    }
    race();
    return 0;
}
