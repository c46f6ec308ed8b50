/* librace.so: start, options, the host of core and report, the end.
 *
 *   drrun -c librace.so [OPTION...] -- PROGRAM [ARGUMENT...]
 *
 * Memory comes from DynamoRIO and the system, never from the program's heap. */
#include "runtime/dynamorio/client.h"

#include "runtime/report/barrier.h"
#include "runtime/report/room.h"

#include "drreg.h"
#include "drutil.h"
#include "drwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

client_state client;

/* By hand: errno of whatever libc is current stays as it is. */
long client_system_call(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

/* --- the host ----------------------------------------------------------------------------------------------------- */

static void *host_reserve(void *context, size_t size)
{
    return dr_raw_mem_alloc(size, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
}

static void host_discard(void *context, void *pages, size_t size)
{
    if (client_system_call(SYS_madvise, (long)pages, (long)size, MADV_DONTNEED, 0)) memset(pages, 0, size);
}

static void host_yield(void *context)
{
    dr_thread_yield();
}

static bool host_read(void *context, uint64_t from, void *to, size_t size)
{
    size_t done;
    if (!dr_safe_read((void *)from, size, to, &done) || done != size) return false;
    if (size == sizeof(uint64_t)) stack_read(from, *(const uint64_t *)to);
    return true;
}

static const void *host_map(void *context, const char *path, size_t *size)
{
    struct stat st;
    *size = client_system_call(SYS_stat, (long)path, (long)&st, 0, 0) == 0 && !S_ISREG(st.st_mode);
    if (*size) return NULL;
    file_t file = dr_open_file(path, DR_FILE_READ);
    if (file == INVALID_FILE) return NULL;
    uint64 bytes = 0;
    void *map = NULL;
    bool known = dr_file_size(file, &bytes);
    *size = bytes;
    if (known && !bytes) map = &client; /* any pointer */
    if (known && bytes) map = dr_map_file(file, size, 0, NULL, DR_MEMPROT_READ, DR_MAP_PRIVATE);
    dr_close_file(file);
    if (map && *size < bytes) {
        dr_unmap_file(map, *size);
        map = NULL;
    }
    *size = map ? bytes : 0; /* the mapping is of whole pages */
    return map;
}

static void host_unmap(void *context, const void *map, size_t size)
{
    if (size) dr_unmap_file((void *)map, size);
}

static int host_open(void *context, const char *path)
{
    dr_delete_file(path);
    file_t file = dr_open_file(path, DR_FILE_WRITE_APPEND);
    return file == INVALID_FILE ? -1 : file;
}

static bool host_write(void *context, int file, const void *bytes, size_t size)
{
    file_t to = file == REPORT_STDERR ? STDERR : file;
    return room_for(to, size) && dr_write_file(to, bytes, size) == (ssize_t)size;
}

static void host_close(void *context, int file)
{
    dr_close_file(file);
}

static uint64_t host_now(void *context)
{
    struct timespec t = {0};
    client_system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int host_pid(void *context)
{
    return dr_get_process_id();
}

static void host_sleep(void *context, unsigned milliseconds)
{
    dr_sleep((int)milliseconds);
}

static void host_halt(void *context, int code)
{
    dr_exit_process(code); /* by event_process_exit */
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static void refuse(const char *what)
{
    dr_fprintf(STDERR, "race: librace.so: %s\n", what);
    dr_abort_with_code(2);
}

static void read_options(int argc, const char *argv[], report_options *options)
{
    char problem[300];
    options_default(options);
    switch (options_parse(options, 1, argc, argv, problem, sizeof problem)) {
    case OPTIONS_OK: return;
    case OPTIONS_HELP:
        dr_fprintf(STDOUT, "librace.so: reports data races of a program that `race` has made plans for\n\n"
                           "usage: drrun -c librace.so [OPTION...] -- PROGRAM [ARGUMENT...]\n\n");
        dr_write_file(STDOUT, options_help, strlen(options_help));
        dr_abort_with_code(0);
        return;
    case OPTIONS_BAD: refuse(problem);
    }
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void event_fork(void *drcontext)
{
    report_forked(client.report);
    thread_forked_process(drcontext);
}

static void event_process_exit(void)
{
    report_summary(client.report);
    report_close(client.report);
    upper_exit();
    insert_exit();
    thread_events_exit();
    module_exit();
    drwrap_exit();
    drutil_exit();
    drreg_exit();
    drmgr_exit();
    dr_mutex_destroy(client.wrap_lock);
}

/* For servers: what was found so far, on demand (`nudge`, which is what `race run` does on SIGUSR2). */
static void event_nudge(void *drcontext, uint64 argument)
{
    report_summary(client.report);
}

DR_EXPORT void dr_client_main(client_id_t id, int argc, const char *argv[])
{
    dr_set_client_name("race", "the project's issue tracker");
    report_options options;
    read_options(argc, argv, &options);
    /* three scratch registers, the flags, and one for the flags while a call has the program's registers */
    drreg_options_t registers = {.struct_size = sizeof registers, .num_spill_slots = 5};
    if (!drmgr_init() || drreg_init(&registers) != DRREG_SUCCESS || !drutil_init() || !drwrap_init())
        refuse("DynamoRIO's extensions do not start");
    report_host host = {
        .engine = "dynamorio",
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
        .symbol = module_symbol,
        .halt = host_halt,
    };
    const char *problem = NULL;
    client.report = report_create(&host, &options, dr_get_application_name(), &problem);
    if (!client.report) refuse("not enough memory to start");
    if (problem) refuse(problem);
    ft_host core_host = report_core_host(client.report);
    if (barrier_is_possible()) core_host.barrier = barrier_by_kernel;
    client.report->core = client.core = ft_create(&core_host);
    if (!client.core) refuse("not enough memory to start");
    client.sync = (sync_engine){.report = client.report,
                                .thread_of = thread_named,
                                .joined = thread_joined,
                                .detached = thread_detached,
                                .watch = wrap_watch,
                                .sees_mappings = true};
    if (!sync_create(&client.sync)) refuse("not enough memory to start");
    client.wrap_lock = dr_mutex_create();
    ft_set_limits(client.core, &(ft_limits){.shadow_bytes = options.memory});
    module_init();
    if (!insert_init() || !upper_init() || !thread_events_init()) refuse("DynamoRIO's extensions do not start");
    dr_register_fork_init_event(event_fork);
    dr_register_nudge_event(event_nudge, id);
    client_register_exit_event(event_process_exit);
}
