/* A child of vfork resets all signals, and installs a handler of its own: the parent, whose memory it runs in, still
 * has its handlers. Prints what they have counted. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STANDARD = 32 };

static volatile int count;

static void on_signal(int number)
{
    count += number;
}

static void on_child_signal(int number)
{
    count += 1000 * number;
}

static int can_catch(int number)
{
    return number != SIGKILL && number != SIGSTOP && number != SIGCHLD;
}

int main(void)
{
    for (int i = 1; i < STANDARD; i++)
        if (can_catch(i)) signal(i, on_signal);
    const pid_t child = vfork();
    if (!child) {
        for (int i = 1; i < STANDARD; i++)
            signal(i, SIG_DFL);
        signal(SIGUSR2, on_child_signal);
        raise(SIGUSR2);
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    for (int i = 1; i < STANDARD; i++)
        if (can_catch(i)) raise(i);
    printf("%d, child %d\n", count, status);
    return 0;
}
