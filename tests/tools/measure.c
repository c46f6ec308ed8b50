/* What one run of a program costs.
 *
 *   measure OUT COMMAND [ARGUMENT...]
 *
 * Runs the command and appends one line to OUT: CPU seconds of it and of all that it has waited for, seconds that
 * passed, the peak of resident memory in KB (the largest of its processes), exit code (128 and the signal, when it was
 * killed). Exits with that code. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: measure OUT COMMAND [ARGUMENT...]\n");
        return 2;
    }
    const double start = now();
    pid_t pid = fork();
    if (pid < 0) {
        perror("measure: fork");
        return 2;
    }
    if (pid == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(pid, &status, 0, &usage) < 0) {
        perror("measure: wait4");
        return 2;
    }
    const double passed = now() - start;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    FILE *out = fopen(argv[1], "a");
    if (!out) {
        perror(argv[1]);
        return 2;
    }
    fprintf(out, "%.6f %.6f %ld %d\n", seconds(usage.ru_utime) + seconds(usage.ru_stime), passed, usage.ru_maxrss, code);
    return fclose(out) ? 2 : code;
}
