/* The process: start, options, fork, exec, exit.
 *
 * The library is linked `initfirst`: its constructor runs before those of all other modules, libc's included, when every
 * module is mapped and relocated and nothing of the program has run. Options come in RACE_OPTIONS:
 *
 *   RACE_OPTIONS="-plan DIR -log DIR ..." LD_PRELOAD=librace_probe.so PROGRAM
 *
 * Both variables are passed on to whatever the program executes, even when it makes an environment of its own. */
#include "runtime/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { WORDS = 64, FILES = 4, HIGH_FILE = 768, PATH = 4096 };
static const char OPTIONS_NAME[] = "RACE_OPTIONS=", PRELOAD_NAME[] = "LD_PRELOAD=", CHILD_WORD[] = " -child";

probe_state probe;

typedef struct { /* a log: the program may close it, or put another file in its place */
    int fd; /* 0: none */
    uint64_t device, node;
    char path[PATH];
} log_file;

static struct {
    log_file files[FILES];
    long pid;
    const char *options, *preload; /* what children get: entries of the environment */
} process;

/* --- the host ----------------------------------------------------------------------------------------------------- */

static void *host_reserve(void *context, size_t size)
{
    (void)context;
    if (probe.low_next) {
        probe.low_next = false;
        return near_zero_map(size);
    }
    return sys_map(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

static void host_discard(void *context, void *pages, size_t size)
{
    (void)context;
    if (sys_call(SYS_madvise, (long)pages, (long)size, MADV_DONTNEED, 0, 0, 0)) memset(pages, 0, size);
}

static void host_yield(void *context)
{
    (void)context;
    sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static bool host_read(void *context, uint64_t from, void *to, size_t size)
{
    (void)context;
    return stack_read(from, to, size);
}

static const void *host_map(void *context, const char *path, size_t *size)
{
    (void)context;
    return sys_map_file(path, size);
}

static void host_unmap(void *context, const void *map, size_t size)
{
    (void)context;
    sys_unmap((void *)map, size);
}

static bool is_there(const log_file *f)
{
    struct stat st;
    return !sys_call(SYS_fstat, f->fd, (long)&st, 0, 0, 0, 0) && st.st_dev == f->device && st.st_ino == f->node;
}

static bool open_log(log_file *f, int flags)
{
    struct stat st;
    long fd = sys_call(SYS_openat, AT_FDCWD, (long)f->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666, 0, 0);
    if (fd < 0) return false;
    long high = sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FILE, 0, 0, 0);
    if (high >= 0) {
        sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
        fd = high;
    }
    f->fd = (int)fd;
    if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0)) return false;
    f->device = st.st_dev;
    f->node = st.st_ino;
    return true;
}

static log_file *log_of(int fd)
{
    for (unsigned i = 0; i < FILES; i++)
        if (process.files[i].fd == fd) return &process.files[i];
    return NULL;
}

static int host_open(void *context, const char *path)
{
    (void)context;
    log_file *f = log_of(0);
    if (!f || strlen(path) >= sizeof f->path) return -1;
    memcpy(f->path, path, strlen(path) + 1);
    if (open_log(f, O_TRUNC)) return (int)(f - process.files) + HIGH_FILE;
    f->fd = 0;
    return -1;
}

static bool host_write(void *context, int file, const void *bytes, size_t size)
{
    (void)context;
    int fd = REPORT_STDERR;
    if (file != REPORT_STDERR) {
        log_file *f = &process.files[(file - HIGH_FILE) % FILES];
        if (!f->fd || (!is_there(f) && !open_log(f, 0))) return false;
        fd = f->fd;
    }
    for (size_t done = 0; done < size;) {
        long n = sys_call(SYS_write, fd, (long)bytes + (long)done, (long)(size - done), 0, 0, 0);
        if (n == -EINTR || n == -EAGAIN) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static void host_close(void *context, int file)
{
    (void)context;
    log_file *f = &process.files[(file - HIGH_FILE) % FILES];
    if (f->fd && is_there(f)) sys_call(SYS_close, f->fd, 0, 0, 0, 0, 0);
    f->fd = 0;
}

static uint64_t host_now(void *context)
{
    (void)context;
    struct timespec t = {0};
    sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int host_pid(void *context)
{
    (void)context;
    return (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void host_sleep(void *context, unsigned milliseconds)
{
    (void)context;
    const struct timespec t = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000l};
    sys_call(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}

static void finish_process(void);

static void host_halt(void *context, int code)
{
    (void)context;
    finish_process();
    sys_call(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

/* --- start -------------------------------------------------------------------------------------------------------- */

void process_refuse(const char *what)
{
    if (what) {
        static const char head[] = "race: librace_probe.so: ";
        host_write(NULL, REPORT_STDERR, head, sizeof head - 1);
        host_write(NULL, REPORT_STDERR, what, strlen(what));
        host_write(NULL, REPORT_STDERR, "\n", 1);
    }
    for (;;)
        sys_call(SYS_exit_group, 2, 0, 0, 0, 0, 0);
}

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

static const char *entry_of(char *const *environment, const char *name)
{
    for (; environment && *environment; environment++)
        if (starts_with(*environment, name)) return *environment;
    return NULL;
}

/* A copy that stays, with room for more behind it. */
static char *copy_of(const char *text, const char *more)
{
    const size_t len = strlen(text), extra = strlen(more);
    char *copy = sys_map(NULL, len + extra + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!copy) process_refuse("not enough memory to start");
    memcpy(copy, text, len);
    memcpy(copy + len, more, extra + 1);
    return copy;
}

/* Children find the word -child behind the options, in the environment that they inherit. */
static void mark_children(char **environment)
{
    for (; *environment; environment++)
        if (starts_with(*environment, OPTIONS_NAME) && !probe.is_child)
            *environment = copy_of(*environment, CHILD_WORD);
    process.options = entry_of(probe.environment, OPTIONS_NAME);
    process.preload = entry_of(probe.environment, PRELOAD_NAME);
    if (process.preload) process.preload = copy_of(process.preload, "");
}

static void read_options(report_options *options)
{
    static char problem[300];
    const char *words[WORDS];
    const char *given = entry_of(probe.environment, OPTIONS_NAME);
    options_default(options);
    int count = given ? options_split(copy_of(given + strlen(OPTIONS_NAME), ""), words, WORDS) : 0;
    if (count && !strcmp(words[count - 1], CHILD_WORD + 1)) {
        probe.is_child = true;
        count--;
    }
    switch (options_parse(options, 0, count, words, problem, sizeof problem)) {
    case OPTIONS_OK:
        if (options->all) process_refuse("modules without a plan cannot be checked: use --engine dynamorio");
        break;
    case OPTIONS_HELP: process_refuse("options are given in RACE_OPTIONS; see race run --help");
    case OPTIONS_BAD: process_refuse(problem);
    }
}

static void make_core(const report_options *options, const char *program)
{
    const report_host host = {
        .engine = "probe",
        .reserve = host_reserve,
        .discard = host_discard,
        .yield = host_yield,
        .stack = stack_of_access,
        .read = host_read,
        .map = host_map,
        .unmap = host_unmap,
        .open = host_open,
        .write = host_write,
        .close = host_close,
        .now = host_now,
        .pid = host_pid,
        .sleep = host_sleep,
        .halt = host_halt,
    };
    const char *problem = NULL;
    probe.report = report_create(&host, options, program, &problem);
    if (!probe.report) process_refuse("not enough memory to start");
    if (problem) process_refuse(problem);
    ft_host core_host = report_core_host(probe.report);
    probe.low_next = true;
    probe.report->core = probe.core = ft_create(&core_host);
    probe.low = probe.core ? near_zero_map(PROBE_PAGE) : NULL;
    probe.records = sys_map(NULL, (size_t)PROBE_RECORDS * sizeof *probe.records, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (!probe.low || !probe.records) process_refuse("no memory below 2 GB, or not enough of it: use --engine dynamorio");
    ft_set_limits(probe.core, &(ft_limits){.shadow_bytes = options->memory});
    probe.low[0] = (uint64_t)probe_enter_check;
    if (!sys_protect(probe.low, PROBE_PAGE, PROT_READ)) process_refuse("memory cannot be protected");
}

/* --- fork and exit ------------------------------------------------------------------------------------------------ */

static void event_fork(void)
{
    if (!probe.ready) return;
    process.pid = host_pid(NULL);
    probe.module_lock = 0;
    report_forked(probe.report);
    thread_forked();
}

static const char *const way_names[WAYS] = {
    [WAY_JUMP] = "jumps", [WAY_SHORT] = "short jumps", [WAY_PUN] = "punned jumps", [WAY_TRAP] = "traps",
    [WAY_NONE] = "not injected",
};

static void finish_process(void)
{
    report *r = probe.report;
    r->counters.sites_injected = r->counters.sites_trapped = 0;
    for (unsigned i = 0; i < WAY_NONE; i++)
        r->counters.sites_injected += probe.ways[i];
    r->counters.sites_trapped = probe.ways[WAY_TRAP];
    r->counters.sites_refused = probe.sites_refused + probe.ways[WAY_NONE];
    report_summary(r);
    if (r->options.stats)
        for (unsigned i = 0; i < WAYS; i++)
            report_say(r, "probe: %llu sites by %s", (unsigned long long)probe.ways[i], way_names[i]);
}

/* Not in a child of vfork, which runs in its parent's memory. */
static bool is_own_process(void)
{
    return probe.ready && host_pid(NULL) == process.pid;
}

static void finish_in_core(void *code)
{
    int *c = code;
    finish_process();
    *c = report_exit_code(probe.report, *c);
}

/* The program ends, and nothing of it will run any more. */
static void finish(int *code)
{
    static uint32_t done;
    if (!is_own_process() || __atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL)) return;
    probe_in_core(finish_in_core, code);
}

/* Registered first, so it is the last that exit() calls; only the flushing of files comes later. */
static void event_process_exit(int code, void *context)
{
    (void)context;
    const int wanted = code;
    finish(&code);
    if (code == wanted) return;
    int (*flush)(void *) = (int (*)(void *))symbol_next("fflush");
    if (flush) flush(NULL);
    sys_call(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

EXPORT void _exit(int code)
{
    finish(&code);
    for (;;)
        sys_call(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

EXPORT void _Exit(int code)
{
    _exit(code);
}

EXPORT void quick_exit(int code)
{
    finish(&code);
    ((void (*)(int))symbol_next("quick_exit"))(code);
    __builtin_unreachable();
}

__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
    (void)argc;
    report_options options;
    probe.environment = environment;
    probe.nobody = (ft_thread){0};
    read_options(&options);
    mark_children(environment);
    uint64_t thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    probe.self_offset = (int32_t)((uint64_t)&probe_self - thread_pointer);
    make_core(&options, argv && argv[0] ? argv[0] : "");
    process.pid = host_pid(NULL);
    signal_start();
    thread_start();
    wrap_start();
    module_start();
    pthread_atfork(NULL, NULL, event_fork);
    on_exit(event_process_exit, NULL);
    probe.nobody.core = probe.core;
    __atomic_store_n(&probe.ready, true, __ATOMIC_RELEASE);
}

/* --- exec --------------------------------------------------------------------------------------------------------- */

static size_t count_of(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* Is our library among these? */
static bool has_preload(const char *entry)
{
    const char *ours = process.preload + strlen(PRELOAD_NAME);
    const size_t len = strlen(ours);
    for (const char *at = entry + strlen(PRELOAD_NAME); *at; at++)
        if (!strncmp(at, ours, len)) return true;
    return false;
}

/* The environment that a new program gets: on the stack, since this may be a child of vfork. */
#define WITH_ENGINE(given, result)                                                                                     \
    char **result = (char **)(given);                                                                                  \
    if (probe.ready && process.options && process.preload) {                                                           \
        const size_t entries = count_of(given);                                                                        \
        const char *theirs = entry_of(given, PRELOAD_NAME);                                                            \
        result = __builtin_alloca((entries + 3) * sizeof *result);                                                     \
        char *joined_entry = __builtin_alloca(strlen(process.preload) + (theirs ? strlen(theirs) : 0) + 2);            \
        add_engine(given, result, joined_entry);                                                                       \
    }

static void add_engine(char *const *given, char **result, char *preload)
{
    const char *theirs = entry_of(given, PRELOAD_NAME);
    size_t n = 0;
    for (; given && *given; given++)
        if (!starts_with(*given, OPTIONS_NAME) && !starts_with(*given, PRELOAD_NAME)) result[n++] = *given;
    size_t len = strlen(process.preload);
    memcpy(preload, process.preload, len + 1);
    if (theirs && has_preload(theirs)) {
        memcpy(preload, theirs, strlen(theirs) + 1);
    } else if (theirs) {
        preload[len++] = ':';
        memcpy(preload + len, theirs + strlen(PRELOAD_NAME), strlen(theirs + strlen(PRELOAD_NAME)) + 1);
    }
    result[n++] = (char *)process.options;
    result[n++] = preload;
    result[n] = NULL;
}

EXPORT int execve(const char *path, char *const argv[], char *const environment[])
{
    WITH_ENGINE(environment, full)
    return ((int (*)(const char *, char *const *, char *const *))symbol_next("execve"))(path, argv, full);
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const environment[])
{
    WITH_ENGINE(environment, full)
    return ((int (*)(const char *, char *const *, char *const *))symbol_next("execvpe"))(file, argv, full);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const environment[])
{
    WITH_ENGINE(environment, full)
    return ((int (*)(int, char *const *, char *const *))symbol_next("fexecve"))(fd, argv, full);
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const environment[], int flags)
{
    WITH_ENGINE(environment, full)
    return ((int (*)(int, const char *, char *const *, char *const *, int))symbol_next("execveat"))(fd, path, argv, full,
                                                                                                    flags);
}

/* The arguments up to NULL, on the stack. */
#define LIST_ARGUMENTS(first, list, last)                                                                              \
    va_list list;                                                                                                      \
    size_t words = 1;                                                                                                  \
    va_start(list, first);                                                                                             \
    while (va_arg(list, char *))                                                                                       \
        words++;                                                                                                       \
    va_end(list);                                                                                                      \
    char **last = __builtin_alloca((words + 1) * sizeof *last);                                                        \
    last[0] = (char *)(first);                                                                                         \
    va_start(list, first);                                                                                             \
    for (size_t i = 1; i <= words; i++)                                                                                \
        last[i] = va_arg(list, char *);

EXPORT int execl(const char *path, const char *first, ...)
{
    LIST_ARGUMENTS(first, list, argv)
    va_end(list);
    return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    LIST_ARGUMENTS(first, list, argv)
    va_end(list);
    return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    LIST_ARGUMENTS(first, list, argv)
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, environment);
}

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const *, char *const *);

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
                       const posix_spawn_file_actions_t *restrict actions, const posix_spawnattr_t *restrict attributes,
                       char *const argv[restrict], char *const environment[restrict])
{
    WITH_ENGINE(environment, full)
    return ((spawn_function *)symbol_next("posix_spawn"))(pid, path, actions, attributes, argv, full);
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                        const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                        char *const environment[restrict])
{
    WITH_ENGINE(environment, full)
    return ((spawn_function *)symbol_next("posix_spawnp"))(pid, file, actions, attributes, argv, full);
}
