/* Programs that the program executes: the engine goes along, even when the program makes an environment of its own. */
#include "runtime/probe/probe.h"

#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    const char *options, *preload; /* entries of the environment */
} exec;

void exec_start(const char *options, const char *preload)
{
    exec.options = options;
    exec.preload = preload;
}

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
    const char *ours = exec.preload + strlen(PROBE_PRELOAD_NAME);
    const size_t len = strlen(ours);
    for (const char *at = entry + strlen(PROBE_PRELOAD_NAME); *at; at++)
        if (!strncmp(at, ours, len)) return true;
    return false;
}

/* The environment that a new program gets: on the stack, since this may be a child of vfork. */
#define WITH_ENGINE(given, result)                                                                                     \
    char **result = (char **)(given);                                                                                  \
    if (probe.ready && exec.options && exec.preload) {                                                                 \
        const size_t entries = count_of(given);                                                                        \
        const char *theirs = process_entry(given, PROBE_PRELOAD_NAME);                                                 \
        result = __builtin_alloca((entries + 3) * sizeof *result);                                                     \
        char *joined_entry = __builtin_alloca(strlen(exec.preload) + (theirs ? strlen(theirs) : 0) + 2);               \
        add_engine(given, result, joined_entry);                                                                       \
    }

static void add_engine(char *const *given, char **result, char *preload)
{
    const char *theirs = process_entry(given, PROBE_PRELOAD_NAME);
    size_t n = 0;
    for (; given && *given; given++)
        if (!process_starts_with(*given, PROBE_OPTIONS_NAME) && !process_starts_with(*given, PROBE_PRELOAD_NAME))
            result[n++] = *given;
    size_t len = strlen(exec.preload);
    memcpy(preload, exec.preload, len + 1);
    if (theirs && has_preload(theirs)) {
        memcpy(preload, theirs, strlen(theirs) + 1);
    } else if (theirs) {
        preload[len++] = ':';
        memcpy(preload + len, theirs + strlen(PROBE_PRELOAD_NAME), strlen(theirs + strlen(PROBE_PRELOAD_NAME)) + 1);
    }
    result[n++] = (char *)exec.options;
    result[n++] = preload;
    result[n] = NULL;
}

/* A new program inherits the mask that this one believes in. Between these two no code of the program runs. */
static void mask_is(int how)
{
    const uint64_t trap = PROBE_TRAP_BIT;
    if (probe_self.blocks_trap) sys_call(SYS_rt_sigprocmask, how, (long)&trap, 0, sizeof trap, 0, 0);
}

static int failed(int result) /* or a child was made */
{
    mask_is(SIG_UNBLOCK);
    return result;
}

EXPORT int execve(const char *path, char *const argv[], char *const environment[])
{
    WITH_ENGINE(environment, full)
    mask_is(SIG_BLOCK);
    return failed(((int (*)(const char *, char *const *, char *const *))symbol_next("execve"))(path, argv, full));
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const environment[])
{
    WITH_ENGINE(environment, full)
    mask_is(SIG_BLOCK);
    return failed(((int (*)(const char *, char *const *, char *const *))symbol_next("execvpe"))(file, argv, full));
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const environment[])
{
    WITH_ENGINE(environment, full)
    mask_is(SIG_BLOCK);
    return failed(((int (*)(int, char *const *, char *const *))symbol_next("fexecve"))(fd, argv, full));
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const environment[], int flags)
{
    WITH_ENGINE(environment, full)
    mask_is(SIG_BLOCK);
    return failed(((int (*)(int, const char *, char *const *, char *const *, int))symbol_next("execveat"))(
        fd, path, argv, full, flags));
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
    mask_is(SIG_BLOCK);
    return failed(((spawn_function *)symbol_next("posix_spawn"))(pid, path, actions, attributes, argv, full));
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                        const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                        char *const environment[restrict])
{
    WITH_ENGINE(environment, full)
    mask_is(SIG_BLOCK);
    return failed(((spawn_function *)symbol_next("posix_spawnp"))(pid, file, actions, attributes, argv, full));
}
