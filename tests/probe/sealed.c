/* Programs that leave themselves few system calls, in each way that there is, beside a thread that is in the middle of
 * checks, and end. Prints what every run must be.
 *
 * With arguments: makes the system call of the number in the first one fail, and becomes the program in the others. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CELLS = 1 << 18 };
static long data[CELLS];
static int handled;

static long sum(void)
{
    long s = 0;
    for (int i = 0; i < CELLS; i += 3) {
        data[i] += i;
        s += data[i];
    }
    return s;
}

static void on_signal(int number)
{
    (void)number;
    handled++;
}

static const int allowed[] = {SYS_write,  SYS_exit_group, SYS_exit,  SYS_rt_sigreturn,
                              SYS_getpid, SYS_gettid,     SYS_tgkill};
static struct sock_filter filter[2 * sizeof allowed / sizeof *allowed + 2];

static struct sock_fprog make_filter(void)
{
    unsigned short n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    return (struct sock_fprog){n, filter};
}

static struct sock_fprog make_errors(int one, int other)
{
    static struct sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
                                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    steps[1].k = (unsigned)one;
    steps[2].k = (unsigned)other;
    return (struct sock_fprog){sizeof steps / sizeof *steps, steps};
}

static int restrict_calls(int how)
{
    struct sock_fprog program = how == 3 ? make_errors(SYS_fstat, SYS_openat) : make_filter();
    if (how == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    if (how == 1) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void *work(void *unused)
{
    for (;;)
        sum();
    return unused;
}

static void child(int how)
{
    char text[] = "sum 0, handled 0\n";
    pthread_t thread;
    signal(SIGUSR1, on_signal);
    if (how) pthread_create(&thread, NULL, work, NULL); /* SECCOMP_MODE_STRICT does not let it end */
    usleep(20000);
    if (restrict_calls(how)) _exit(9);
    text[4] = (char)('0' + (sum() != 0));
    if (how) raise(SIGUSR1);
    text[15] = (char)('0' + handled);
    if (write(1, text, sizeof text - 1) != sizeof text - 1) syscall(SYS_exit, 8);
    if (how) _exit(7);
    syscall(SYS_exit, 7);
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        struct sock_fprog program = make_errors(atoi(argv[1]), atoi(argv[1]));
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 9;
        return execvp(argv[2], argv + 2);
    }
    for (int how = 0; how < 4; how++) {
        int status = 0;
        const pid_t pid = fork();
        if (!pid) child(how);
        waitpid(pid, &status, 0);
        printf("%d: %x\n", how, (unsigned)status);
        fflush(stdout);
    }
    return 0;
}
