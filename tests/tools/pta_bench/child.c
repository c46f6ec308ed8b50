/* A measurement as a process: forked before any thread exists, limited in memory, stopped by a flag and in the end by
 * force. */
#include "tests/tools/pta_bench/bench.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_OF_OOM = 2, EXIT_FAILED = 3 }; /* the first: base_oom */
enum { LOADING = 1200, GRACE = 20 };       /* seconds for lifting; beyond the limit for what cannot be interrupted */

static volatile int stop;

volatile int *bench_stop(void)
{
    return &stop;
}

static void on_alarm(int signal)
{
    (void)signal;
    stop = 1;
}

double bench_now(const bench_child *child)
{
    struct timespec t;
    if (!child->limits.processor) return tool_now();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void bench_arm(double seconds)
{
    struct itimerval timer = {
        .it_value = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}};
    if (seconds > 0 && seconds < 1e-3) timer.it_value.tv_usec = 1000;
    stop = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
}

double bench_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

void bench_tell(bench_child *child, const bench_note *note)
{
    if (write(child->out, note, sizeof *note) != sizeof *note) _exit(EXIT_FAILED);
}

void bench_fail(bench_child *child, const char *text)
{
    bench_note note = {.kind = NOTE_ERROR};
    snprintf(note.text, sizeof note.text, "%s", text);
    bench_tell(child, &note);
    _exit(EXIT_FAILED);
}

static void run_child(bench_child *child, void (*work)(bench_child *child, const void *with), const void *with)
{
    race_error error;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (child->limits.memory) {
        rlim_t bytes = (rlim_t)child->limits.memory << 20;
        setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
        if (!freopen("/dev/null", "w", stderr)) _exit(EXIT_FAILED); /* the table says it */
    }
    signal(SIGALRM, on_alarm);
    if (tool_open(&child->program, child->paths, child->count, 0, &error)) bench_fail(child, error.text);
    const tool_program *p = &child->program;
    bench_note loaded = {.kind = NOTE_LOADED,
                         .value = {(double)p->instructions, (double)p->functions, (double)p->statements,
                                   p->lift_seconds, p->generate_seconds}};
    bench_tell(child, &loaded);
    work(child, with);
    _exit(0);
}

/* Reads one note; 1: there is one, 0: the child has ended, -1: time is over. */
static int receive(int from, double until, bench_note *note)
{
    size_t have = 0;
    while (have < sizeof *note) {
        double left = until - tool_now();
        struct pollfd waiting = {.fd = from, .events = POLLIN};
        if (left <= 0 || poll(&waiting, 1, left > 1e6 ? -1 : (int)(left * 1000) + 1) == 0) return -1;
        ssize_t got = read(from, (char *)note + have, sizeof *note - have);
        if (got <= 0) return 0;
        have += (size_t)got;
    }
    return 1;
}

bench_end bench_run(const bench_limits *limits, char *const *paths, uint32_t count, uint32_t parts,
                    void (*work)(bench_child *child, const void *with), const void *with,
                    void (*take)(void *to, const bench_note *note), void *to)
{
    int ends[2], status;
    if (pipe(ends)) return BENCH_FAILED;
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) return BENCH_FAILED;
    if (!pid) {
        close(ends[0]);
        run_child(&(bench_child){.paths = paths, .count = count, .limits = *limits, .out = ends[1]}, work, with);
    }
    close(ends[1]);
    bench_note note;
    double until = tool_now() + LOADING;
    int got;
    bool loaded = false;
    while ((got = receive(ends[0], until, &note)) > 0) {
        if (note.kind == NOTE_ERROR) {
            fprintf(stderr, "pta_bench: %s\n", note.text);
            continue;
        }
        if (!loaded)
            until = limits->seconds ? tool_now() + (double)limits->seconds * parts + GRACE * (1 + parts) : 1e18;
        loaded = true;
        take(to, &note);
    }
    close(ends[0]);
    if (got < 0) kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) != pid) return BENCH_FAILED;
    if (got < 0) return BENCH_TIME;
    if (WIFEXITED(status) && !WEXITSTATUS(status)) return BENCH_DONE;
    bool memory = (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OF_OOM) ||
                  (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return memory ? BENCH_MEMORY : BENCH_FAILED;
}
