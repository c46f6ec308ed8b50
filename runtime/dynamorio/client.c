/* librace.so: start, options, the host of the core, the end.
 *
 *   drrun -c librace.so -plan DIR [-log DIR] [-exit_code N] [-stats] [-unchecked] -- PROGRAM ARGS
 *
 * Memory comes from DynamoRIO and the system, never from the program's heap. */
#include "runtime/dynamorio/client.h"

#include "drreg.h"
#include "drutil.h"
#include "drwrap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

client_state client = {.plan_dir = ".race/plans", .exit_code = 66, .log = INVALID_FILE, .next_site = 1};

void client_say(const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len < 0) return;
    dr_fprintf(STDERR, "race: %s\n", line);
    if (client.log != INVALID_FILE) dr_fprintf(client.log, "race: %s\n", line);
}

/* --- the core's host ---------------------------------------------------------------------------------------------- */

static void *host_reserve(void *context, size_t size)
{
    return dr_raw_mem_alloc(size, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
}

static void host_discard(void *context, void *pages, size_t size)
{
    /* by hand: errno of whatever libc is current stays as it is */
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_madvise), "D"(pages), "S"(size), "d"(MADV_DONTNEED)
                     : "rcx", "r11", "memory");
    if (result) memset(pages, 0, size);
}

static void host_yield(void *context)
{
    dr_thread_yield();
}

static void host_notice(void *context, const char *line)
{
    client_say("%s", line);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char help[] = "librace.so: reports data races of a program that `race` has made plans for\n"
                           "\n"
                           "usage: drrun -c librace.so [OPTION...] -- PROGRAM [ARGUMENT...]\n"
                           "\n"
                           "  -plan DIR       where the plans are, one <build id>.plan per module (.race/plans)\n"
                           "  -log DIR        also write reports to DIR/race.<pid>.log\n"
                           "  -exit_code N    exit code when the program ended with 0 but raced (66)\n"
                           "  -stats          print counters at exit\n"
                           "  -unchecked      run modules whose plan is damaged without checks instead of refusing\n"
                           "  -help           this text\n";

static void refuse(const char *what, const char *which)
{
    dr_fprintf(STDERR, "race: librace.so: %s %s (see -help)\n", what, which);
    dr_abort_with_code(2);
}

static int number_option(const char *text)
{
    int value = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || value > 255) refuse("not an exit code:", text);
        value = value * 10 + (*c - '0');
    }
    if (!*text || value > 255) refuse("not an exit code:", text);
    return value;
}

static void parse_options(int argc, const char *argv[])
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        const char **text = !strcmp(argv[i], "-plan")  ? &client.plan_dir
                            : !strcmp(argv[i], "-log") ? &client.log_dir
                                                       : NULL;
        bool number = !strcmp(argv[i], "-exit_code");
        if ((text || number) && !value) refuse("no value for option", argv[i]);
        if (text) {
            *text = value;
            i++;
        } else if (number) {
            client.exit_code = number_option(value);
            i++;
        } else if (!strcmp(argv[i], "-stats")) {
            client.stats = true;
        } else if (!strcmp(argv[i], "-unchecked")) {
            client.unchecked = true;
        } else if (!strcmp(argv[i], "-help")) {
            dr_fprintf(STDOUT, "%s", help);
            dr_abort_with_code(0);
        } else {
            refuse("unknown option", argv[i]);
        }
    }
}

static void open_log(void)
{
    if (!client.log_dir) return;
    char path[MAXIMUM_PATH];
    dr_snprintf(path, sizeof path, "%s/race.%d.log", client.log_dir, dr_get_process_id());
    path[sizeof path - 1] = 0;
    client.log = dr_open_file(path, DR_FILE_WRITE_OVERWRITE);
    if (client.log == INVALID_FILE) client_say("%s: cannot be written; reports go to stderr only", path);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void event_fork(void *drcontext)
{
    client.reported = 0;
    if (client.log != INVALID_FILE) dr_close_file(client.log);
    client.log = INVALID_FILE;
    open_log();
    thread_forked_process(drcontext);
}

static void event_exit(void)
{
    report_summary();
    if (client.log != INVALID_FILE) dr_close_file(client.log);
    insert_exit();
    thread_events_exit();
    module_exit();
    drwrap_exit();
    drutil_exit();
    drreg_exit();
    drmgr_exit();
    dr_mutex_destroy(client.report_lock);
}

DR_EXPORT void dr_client_main(client_id_t id, int argc, const char *argv[])
{
    dr_set_client_name("race", "the project's issue tracker");
    parse_options(argc, argv);
    drreg_options_t registers = {.struct_size = sizeof registers, .num_spill_slots = 4};
    if (!drmgr_init() || drreg_init(&registers) != DRREG_SUCCESS || !drutil_init() || !drwrap_init())
        refuse("DynamoRIO's extensions do not", "start");
    client.report_lock = dr_mutex_create();
    open_log();
    ft_host host = {
        .reserve = host_reserve,
        .discard = host_discard,
        .yield = host_yield,
        .race = report_race,
        .notice = host_notice,
    };
    client.core = ft_create(&host);
    if (!client.core) refuse("not enough memory", "to start");
    module_init();
    if (!insert_init() || !thread_events_init()) refuse("DynamoRIO's extensions do not", "start");
    dr_register_fork_init_event(event_fork);
    client_register_exit_event(event_exit);
}
