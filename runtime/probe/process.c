/* The process: start, options, fork, exit.
 *
 * The library is linked `initfirst`: its constructor runs before those of all other modules, libc's included, when
 * every module is mapped and relocated and nothing of the program has run. Options come in RACE_OPTIONS:
 *
 *   RACE_OPTIONS="-plan DIR -log DIR ..." LD_PRELOAD=librace_probe.so PROGRAM
 */
#include "runtime/probe/probe.h"
#include "runtime/report/barrier.h"
#include "runtime/report/room.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 64, FILES = 4, HIGH_FILE = 768, PATH = 4096 };
#define OPTIONS_NAME PROBE_OPTIONS_NAME
#define PRELOAD_NAME PROBE_PRELOAD_NAME
static const char CHILD_WORD[] = " -child";

probe_state probe;

typedef struct { /* a log: the program may close it, or put another file in its place */
    int fd;      /* 0: none */
    uint64_t device, node;
    char path[PATH];
} log_file;

static struct {
    log_file files[FILES];
    log_file errors; /* stderr as it was at the start, without a path */
    long pid;
    bool is_sealed;
    int sealed_code; /* what it ends with then instead of 0 */
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

static bool describe(log_file *f)
{
    struct stat st;
    if (sys_call(SYS_fstat, f->fd, (long)&st, 0, 0, 0, 0)) return false;
    f->device = st.st_dev;
    f->node = st.st_ino;
    return true;
}

static bool open_log(log_file *f, int flags)
{
    long fd =
        sys_call(SYS_openat, AT_FDCWD, (long)f->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | flags, 0666, 0, 0);
    if (fd < 0) return false;
    long high = -1;
    for (int from = HIGH_FILE; high < 0 && from > fd; from /= 2) /* as far as the limit (ulimit -n) allows */
        high = sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from, 0, 0, 0);
    if (high >= 0) {
        sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
        fd = high;
    }
    f->fd = (int)fd;
    return describe(f);
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
    if (file == REPORT_STDERR) {
        /* who has closed it may have data in its place */
        if (!is_there(&process.errors)) return false;
    } else {
        log_file *f = &process.files[(file - HIGH_FILE) % FILES];
        if (!f->fd || (!is_there(f) && !open_log(f, 0))) return false;
        fd = f->fd;
    }
    if (!room_for(fd, size)) return false;
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

bool process_starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

const char *process_entry(char *const *environment, const char *name)
{
    for (; environment && *environment; environment++)
        if (process_starts_with(*environment, name)) return *environment;
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
        if (process_starts_with(*environment, OPTIONS_NAME) && !probe.is_child)
            *environment = copy_of(*environment, CHILD_WORD);
    /* who shows a title of its own writes it over what it was given */
    const char *options = process_entry(probe.environment, OPTIONS_NAME);
    const char *preload = process_entry(probe.environment, PRELOAD_NAME);
    exec_start(options ? copy_of(options, "") : NULL, preload ? copy_of(preload, "") : NULL);
}

static void read_options(report_options *options)
{
    static char problem[300];
    const char *words[WORDS];
    const char *given = process_entry(probe.environment, OPTIONS_NAME);
    options_default(options);
    int count = given ? options_split(copy_of(given + strlen(OPTIONS_NAME), ""), words, WORDS) : 0;
    if (count && !strcmp(words[count - 1], CHILD_WORD + 1)) {
        probe.is_child = true;
        count--;
    }
    switch (options_parse(options, 0, count, words, problem, sizeof problem)) {
    case OPTIONS_OK:
        if (options->all && !options->audit) process_refuse("modules without a plan cannot be checked: use --engine dynamorio");
        break;
    case OPTIONS_HELP:
        process_refuse("options are given in RACE_OPTIONS; see race run --help");
    case OPTIONS_BAD:
        process_refuse(problem);
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
    if (barrier_is_possible()) core_host.barrier = barrier_by_kernel;
    if (core_host.stack) core_host.stack = stack_of_access; /* without a detour */
    probe.low_next = true;
    probe.report->core = probe.core = ft_create(&core_host);
    probe.low = probe.core ? near_zero_map(PROBE_PAGE) : NULL;
    probe.records = sys_map(NULL, (size_t)PROBE_RECORDS * sizeof *probe.records, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (!probe.low || !probe.records)
        process_refuse("no memory below 2 GB, or not enough of it: use --engine dynamorio");
    ft_set_limits(probe.core, &(ft_limits){.shadow_bytes = options->memory});
    probe.low[LOW_CHECK] = (uint64_t)probe_enter_check;
    probe.low[LOW_QUICK] = (uint64_t)probe_enter_quick;
    static void (*const first[])(void) = {probe_first_read_1,  probe_first_read_2,  probe_first_read_4,
                                          probe_first_read_8,  probe_first_write_1, probe_first_write_2,
                                          probe_first_write_4, probe_first_write_8};
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++)
        probe.low[LOW_FIRST + i] = (uint64_t)first[i];
    if (!sys_protect(probe.low, PROBE_PAGE, PROT_READ)) process_refuse("memory cannot be protected");
}

/* --- fork and exit ------------------------------------------------------------------------------------------------ */

void process_forked(void)
{
    process.sealed_code = 0;
    if (process.is_sealed) return;
    if (!probe.ready) return;
    process.pid = probe.pid = host_pid(NULL);
    probe.module_lock = 0;
    signal_forked();
    callback_forked();
    timer_forked();
    report_forked(probe.report);
    thread_forked();
}

static const char *const way_names[WAYS] = {
    [WAY_JUMP] = "jumps", [WAY_SHORT] = "short jumps", [WAY_PUN] = "punned jumps",
    [WAY_TRAP] = "traps", [WAY_NONE] = "not injected",
};

static void finish_process(void)
{
    report *r = probe.report;
    r->counters.sites_injected = r->counters.sites_trapped = 0;
    for (unsigned i = 0; i < WAY_NONE; i++)
        r->counters.sites_injected += probe.ways[i];
    r->counters.sites_trapped = probe.ways[WAY_TRAP];
    r->counters.sites_refused = probe.sites_refused + probe.ways[WAY_NONE];
    if (probe.sites_given_back)
        report_say(r, "%llu sites ran unchecked after a handler of a signal went on in the middle of their code (--engine dynamorio checks it)",
                   (unsigned long long)probe.sites_given_back);
    report_summary(r);
    if (r->options.stats)
        for (unsigned i = 0; i < WAYS; i++)
            report_say(r, "probe: %llu sites by %s", (unsigned long long)probe.ways[i], way_names[i]);
}

bool process_is_own(void)
{
    return probe.ready && !process.is_sealed && host_pid(NULL) == process.pid;
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
    if (process.is_sealed && !*code) *code = process.sealed_code;
    if (!process_is_own() || __atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL)) return;
    probe_in_core(finish_in_core, code);
}

void process_seal(const char *why)
{
    int code = 0;
    module_disable(why);
    finish(&code);
    process.sealed_code = code;
    process.is_sealed = true;
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
    process.errors.fd = REPORT_STDERR;
    describe(&process.errors);
    probe.environment = environment;
    probe.nobody = (ft_thread){0};
    read_options(&options);
    mark_children(environment);
    uint64_t thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    probe.self_offset = (int32_t)((uint64_t)&probe_self - thread_pointer);
    process.pid = probe.pid = host_pid(NULL);
    make_core(&options, argv && argv[0] ? argv[0] : "");
    seccomp_start();
    signal_start();
    thread_start();
    wrap_start();
    module_start();
    loader_start();
    pthread_atfork(NULL, NULL, process_forked);
    on_exit(event_process_exit, NULL);
    probe.nobody.core = probe.core;
    __atomic_store_n(&probe.ready, true, __ATOMIC_RELEASE);
}
