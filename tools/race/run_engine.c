/* The engines: how a program is started under each, and what is done while it runs.
 *
 * Both engines take the same words (runtime/report/options.c): DynamoRIO's client on its command line, the probe, which is
 * preloaded, in RACE_OPTIONS. */
#include "tools/race/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef RACE_DYNAMORIO_HOME
#define RACE_DYNAMORIO_HOME ""
#endif

/* The first of the candidates that is a file, or NULL; all are freed but the result. */
static char *first_file(char **candidates, unsigned count, int mode)
{
    char *found = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!found && candidates[i] && access(candidates[i], mode) == 0)
            found = candidates[i];
        else
            free(candidates[i]);
    }
    return found;
}

static char *find_drrun(void)
{
    const char *home = getenv("DYNAMORIO_HOME");
    char *candidates[] = {
        home && *home ? base_format("%s/bin64/drrun", home) : NULL,
        *RACE_DYNAMORIO_HOME ? base_format("%s/bin64/drrun", RACE_DYNAMORIO_HOME) : NULL,
        run_find_program("drrun"),
    };
    return first_file(candidates, sizeof candidates / sizeof *candidates, X_OK);
}

/* A library of ours: beside this command in a build tree, in its library folder when installed. */
static char *find_library(const char *name)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0) return NULL;
    self[len] = 0;
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    char *candidates[] = {
        base_format("%s/%s", self, name),
        base_format("%s/../lib/race/%s", self, name),
        base_format("%s/../lib/x86_64-linux-gnu/race/%s", self, name),
        base_format("%s/../lib64/race/%s", self, name),
    };
    return first_file(candidates, sizeof candidates / sizeof *candidates, R_OK);
}

typedef VEC(char *) words;

static void add(words *w, const char *word)
{
    vec_push(w, base_format("%s", word));
}

static void add_value(words *w, const char *name, char *value)
{
    add(w, name);
    vec_push(w, value);
}

/* What both engines are told. The exit code is made here, from all logs: a child that raced must not end differently. */
static void add_options(words *w, const run_request *r, const run_paths *paths)
{
    add_value(w, "-plan", base_format("%s", paths->plans));
    add_value(w, "-log", base_format("%s", paths->log));
    add_value(w, "-exit_code", base_format("0"));
    if (paths->ask) add_value(w, "-ask", base_format("%s", paths->ask));
    if (paths->suppressions) add_value(w, "-suppressions", base_format("%s", paths->suppressions));
    if (r->memory) add_value(w, "-memory", base_format("%ld", r->memory));
    if (r->depth >= 0) add_value(w, "-stack_depth", base_format("%ld", r->depth));
    if (r->stats) add(w, "-stats");
    if (r->all) add(w, "-all");
    if (r->audit) add(w, "-audit");
    if (r->breakpoints) add(w, "-breakpoints");
    if (r->halt_on_error) add(w, "-halt_on_error");
    if (r->unchecked) add(w, "-unchecked");
    if (!strcmp(r->format, "json")) add(w, "-quiet");
}

/* The words as one, as options_split takes them apart. */
static char *joined(const words *w)
{
    VEC(char) text = {0};
    for (uint32_t i = 0; i < w->len; i++) {
        if (i) vec_push(&text, ' ');
        for (const char *c = w->data[i]; *c; c++) {
            if (*c == ' ' || *c == '\\' || *c == '\t' || *c == '\n') vec_push(&text, '\\');
            vec_push(&text, *c);
        }
    }
    vec_push(&text, 0);
    return text.data;
}

static int prepare_dynamorio(const run_request *r, const run_paths *paths, words *w)
{
    char *drrun = find_drrun(), *client = find_library("librace.so");
    int code = EXIT_CLEAN;
    if (!drrun) code = cli_error("no DynamoRIO found (set DYNAMORIO_HOME to where it is)");
    else if (!client) code = cli_error("no librace.so found: this build has no DynamoRIO client");
    if (code == EXIT_CLEAN) {
        add(w, drrun);
        add(w, "-quiet");
        add_value(w, "-c", base_format("%s", client));
        add_options(w, r, paths);
        add(w, "--");
    }
    free(drrun);
    free(client);
    return code;
}

/* The loader preloads nothing into a program that runs with the rights of another user, and DynamoRIO, which loads programs
 * by itself, would run it without them. */
static bool changes_rights(const char *program)
{
    struct stat st;
    if (stat(program, &st)) return false;
    return (st.st_mode & S_ISUID && st.st_uid != geteuid()) || (st.st_mode & S_ISGID && st.st_gid != getegid()) ||
           (geteuid() && getxattr(program, "security.capability", NULL, 0) > 0);
}

static int prepare_probe(const run_request *r, const run_paths *paths)
{
    char *library = find_library("librace_probe.so");
    if (!library) return cli_error("no librace_probe.so found: this build has no embedded engine");
    if (library[strcspn(library, " :")]) { /* the loader would take it for several, and run the program without it */
        cli_error("%s: cannot be preloaded from a folder with a blank or a colon in its name: put race elsewhere", library);
        free(library);
        return EXIT_USAGE;
    }
    words w = {0};
    add_options(&w, r, paths);
    char *options = joined(&w);
    const char *before = getenv("LD_PRELOAD");
    char *preload = before && *before ? base_format("%s:%s", library, before) : base_format("%s", library);
    setenv("RACE_OPTIONS", options, 1);
    setenv("LD_PRELOAD", preload, 1);
    for (uint32_t i = 0; i < w.len; i++)
        free(w.data[i]);
    vec_free(&w);
    free(preload);
    free(options);
    free(library);
    return EXIT_CLEAN;
}

/* The signals that this process waits for; the program has them as they were. */
static void own_signals(sigset_t *set)
{
    sigemptyset(set);
    const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2};
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++)
        sigaddset(set, wanted[i]);
}

void run_block_signals(run_paths *paths)
{
    sigset_t mine;
    own_signals(&mine);
    sigprocmask(SIG_BLOCK, &mine, &paths->signals);
}

pid_t run_start(const run_request *r, const run_paths *paths)
{
    words w = {0};
    bool probe = !strcmp(r->engine, "probe");
    if (changes_rights(paths->program))
        return -cli_error("%s: runs with the rights of another user, which no engine can follow: run a copy of it", paths->program);
    int code = probe ? EXIT_CLEAN : prepare_dynamorio(r, paths, &w);
    if (code != EXIT_CLEAN) return -code;
    if (!probe) add(&w, paths->program);
    for (char **a = r->program + !probe; *a; a++) /* drrun has no other name for the program than its path */
        add(&w, *a);
    vec_push(&w, NULL);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &paths->signals, NULL);
        cli_restore();
        if (!probe || prepare_probe(r, paths) == EXIT_CLEAN) {
            const char *file = probe ? paths->program : w.data[0];
            execv(file, w.data);
            cli_error("%s: cannot be started: %s", file, strerror(errno));
        }
        _exit(EXIT_USAGE);
    }
    if (child < 0) child = -cli_error("no process can be made: %s", strerror(errno));
    for (uint32_t i = 0; i + 1 < w.len; i++)
        free(w.data[i]);
    vec_free(&w);
    return child;
}

/* --- while it runs ------------------------------------------------------------------------------------------------ */

static void answer(const run_request *r, const run_paths *paths, const char *name)
{
    char *request = base_format("%s/%s", paths->ask, name), path[PATH_MAX];
    int fd = open(request, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t len = fd >= 0 ? read(fd, path, sizeof path - 1) : -1;
    if (fd >= 0) close(fd);
    if (len > 0) {
        path[len] = 0;
        run_plan_asked(r, path, paths->plans);
    }
    unlink(request);
    free(request);
}

static void answer_all(const run_request *r, const run_paths *paths, int watch)
{
    char events[4096] __attribute__((aligned(8)));
    ssize_t len = read(watch, events, sizeof events);
    for (ssize_t at = 0; at < len;) {
        const struct inotify_event *e = (const struct inotify_event *)(const void *)(events + at);
        if (e->len && e->mask & IN_CLOSE_WRITE) answer(r, paths, e->name);
        at += (ssize_t)(sizeof *e + e->len);
    }
}

/* What was asked before the folder was watched. A request that is not written yet will be told when it is. */
static void answer_earlier(const run_request *r, const run_paths *paths)
{
    DIR *folder = opendir(paths->ask);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        char *request = base_format("%s/%s", paths->ask, e->d_name);
        struct stat st;
        if (e->d_name[0] != '.' && stat(request, &st) == 0 && st.st_size > 0) answer(r, paths, e->d_name);
        free(request);
    }
    if (folder) closedir(folder);
}

static void say_so_far(const run_paths *paths)
{
    run_totals t;
    run_read_logs(paths, &t, NULL);
    fprintf(stderr, "race: so far %lu race%s and %lu potential deadlock%s in %u process%s\n", t.races, cli_plural(t.races),
            t.deadlocks, cli_plural(t.deadlocks), t.processes, t.processes == 1 ? "" : "es");
}

int run_wait(const run_request *r, const run_paths *paths, pid_t child)
{
    sigset_t mine;
    own_signals(&mine);
    enum { SIGNALS, ASKED, ENDED, FDS };
    struct pollfd fds[FDS] = {
        [SIGNALS] = {.fd = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN},
        [ASKED] = {.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .events = POLLIN},
        [ENDED] = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN},
    };
    if (paths->ask && fds[ASKED].fd >= 0 && inotify_add_watch(fds[ASKED].fd, paths->ask, IN_CLOSE_WRITE) >= 0)
        answer_earlier(r, paths);
    int status = 0;
    for (bool runs = true; runs;) {
        poll(fds, FDS, fds[ENDED].fd >= 0 ? -1 : 100); /* without pidfds, look now and then */
        struct signalfd_siginfo info;
        if (fds[ASKED].revents) answer_all(r, paths, fds[ASKED].fd);
        while (fds[SIGNALS].fd >= 0 && read(fds[SIGNALS].fd, &info, sizeof info) == sizeof info) {
            if (info.ssi_signo == SIGUSR2)
                say_so_far(paths);
            else if (info.ssi_code <= 0) /* not from the terminal: that went to the program as well */
                kill(child, (int)info.ssi_signo);
        }
        pid_t ended = waitpid(child, &status, WNOHANG);
        runs = ended == 0 || (ended < 0 && errno == EINTR);
    }
    for (int i = 0; i < FDS; i++)
        if (fds[i].fd >= 0) close(fds[i].fd);
    return status;
}
