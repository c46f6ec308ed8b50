/* runtime/dynamorio: librace.so, the DynamoRIO client. Plans say what to check, the core checks, this injects.
 *
 *   client.c    dr_client_main: options, the core's host, process start, fork and exit
 *   module.c    the plans of the loaded modules; sites by number; the functions of the sync table in each module
 *   insert.c    code that is added to basic blocks: checks, with the same-epoch path inlined, and atomics
 *   expr.c      address expressions of plans: as operands, and evaluated in C
 *   thread.c    threads: birth, death, names; system calls that create threads and map memory
 *   wrap.c      calls of the functions of the sync table
 *   report.c    what the user reads
 *
 * Code without planned sites is left as it is. Not handled here yet: captures (a plan that has any is refused),
 * statically linked programs, modules without a plan. */
#ifndef RACE_CLIENT_H
#define RACE_CLIENT_H

#include "dr_api.h"
#include "drmgr.h"

#include "include/race/plan.h"
#include "runtime/core/core.h"
#include "runtime/sync/sync.h"

/* Newer versions of drmgr manage these events too, and forbid the plain ones by a macro of their name. */
#ifdef dr_register_exit_event
#define client_register_exit_event drmgr_register_exit_event
#else
#define client_register_exit_event dr_register_exit_event
#endif
#ifdef dr_register_filter_syscall_event
#define client_register_filter_syscall_event drmgr_register_filter_syscall_event
#else
#define client_register_filter_syscall_event dr_register_filter_syscall_event
#endif

enum { CLIENT_ONCE_DEPTH = 16, CLIENT_REP_ACTIONS = 4 };

typedef struct client_module {
    struct client_module *next; /* newest first; modules that are unloaded stay, for reports */
    app_pc start, end;
    ptr_int_t bias; /* of module-relative addresses */
    bool loaded;
    char name[64];      /* of the file, without its directory */
    const plan *plan;   /* NULL: none */
    ft_site first_site; /* number of the plan's site 0 */
} client_module;

typedef struct { /* a repeated string instruction, between its two halves */
    uint64_t addr, count;
    bool down;
} client_rep;

typedef struct client_thread {
    ft_thread *ft;         /* NULL: the core has no memory for it; nothing it does is checked */
    uint64_t handle;       /* what the program calls the thread: its thread pointer, which is its pthread_t */
    ft_site create_site;   /* of the pthread_create that is running */
    ft_thread *child;      /* of the clone that is running */
    uint64_t mapping_size; /* of the mmap or mremap that is running */
    uint64_t atomic;       /* address of the atomic access that is running */
    client_rep rep[CLIENT_REP_ACTIONS];
    sync_call *once[CLIENT_ONCE_DEPTH]; /* the pthread_once calls that are running, outermost first */
    unsigned once_depth;
} client_thread;

typedef struct {
    ft_core *core;
    const char *plan_dir, *log_dir;
    bool unchecked; /* run on when a plan is damaged */
    bool stats;
    int exit_code; /* when the program ends with 0 but raced */
    file_t log;
    void *report_lock;
    uint64_t reported; /* races printed */
    uint64_t sites_planned, sites_instrumented, sites_refused;
    client_module *modules;
    void *modules_lock; /* a read-write lock */
    ft_site next_site;
    int tls_field;        /* client_thread, with drmgr */
    reg_id_t raw_segment; /* ft_thread, read by inlined code */
    uint raw_offset;
    ft_thread nobody;          /* what inlined code sees for threads that the core has no memory for */
    bool started;              /* the first thread has begun; it does before any other exists */
    struct client_name *names; /* of threads, newest first; thread.c */
    void *names_lock;
} client_state;

extern client_state client; /* the one mutable global of this folder */

static inline client_thread *client_thread_of(void *drcontext)
{
    return drmgr_get_tls_field(drcontext, client.tls_field);
}

/* client.c: one line on stderr, and in the log if there is one. */
void client_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* module.c */
void module_init(void);
void module_exit(void);
client_module *module_at(app_pc pc); /* a loaded one, or NULL */
/* The module and site with this number; NULL: unknown. */
const plan_site *module_site(ft_site number, client_module **module);
/* The number of the site that a return address belongs to, or 0. */
ft_site module_call_site(app_pc return_address);
/* The data object that addr lies in, or NULL. */
const plan_object *module_object(uint64_t addr, client_module **module);

/* insert.c */
bool insert_init(void);
void insert_exit(void);

/* expr.c */
opnd_t expr_operand(const plan_action *action, const client_module *module, bool *usable);
uint64_t expr_value(uint8_t value, dr_mcontext_t *mc);
uint64_t expr_address(const plan_action *action, const client_module *module, dr_mcontext_t *mc);
uint64_t expr_segment_base(reg_id_t segment);

/* thread.c */
bool thread_events_init(void);
void thread_events_exit(void);
void thread_forked_process(void *drcontext);
extern const sync_engine thread_engine;

/* wrap.c */
void wrap_module(const module_data_t *module);

/* report.c */
void report_race(void *context, const ft_race *race);
void report_summary(void);

#endif
