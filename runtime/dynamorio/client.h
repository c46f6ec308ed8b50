/* runtime/dynamorio: librace.so, the DynamoRIO client. Plans say what to check, the core checks, this injects.
 *
 *   client.c    dr_client_main: options, the host of core and report, process start, fork and exit
 *   module.c    modules as they are loaded and unloaded
 *   insert.c    code that is added to basic blocks: checks, with the same-epoch path inlined, and atomics
 *   loose.c     code without a plan: its atomic instructions, and with -all its accesses
 *   expr.c      address expressions of plans: as operands, and evaluated in C
 *   stack.c     the stack of an access
 *   thread.c    threads: birth, death, names; system calls that matter
 *   mask.c      signal masks: what the program blocks is blocked in the kernel
 *   leave.c     signals that arrive while a thread is in a call from the code cache
 *   upper.c     upper halves of vector registers that DynamoRIO has restored
 *   wrap.c      calls of the functions of the sync table, of callbacks and handlers
 *
 * Code without planned sites is left as it is. Captures are not done: a plan that has any is refused. */
#ifndef RACE_CLIENT_H
#define RACE_CLIENT_H

#include "dr_api.h"
#include "drmgr.h"
#include "drvector.h"

#include "include/race/plan.h"
#include "runtime/core/core.h"
#include "runtime/report/report.h"
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

enum { CLIENT_REP_ACTIONS = 4, CLIENT_ENTRIES = 1024, CLIENT_WATCHED = 4096, CLIENT_RETURNS = 256 };
enum { /* words of a thread that inlined code reads and writes */
    RAW_THREAD,  /* ft_thread */
    RAW_ADDRESS, /* of the access that a call is made for */
    RAW_USED,    /* DynamoRIO has restored vector registers: so many blocks until we look at them; upper.c */
    RAW_ZERO,    /* their upper halves were zero then */
    RAW_SLOTS
};
enum { CLIENT_PATIENCE = 32 }; /* what RAW_USED is set to */

/* What all events that shape blocks return. Translations are stored for every block: otherwise a signal that arrives in one makes
 * DynamoRIO build it again to find out where it is, with locks that can deadlock when the program forks meanwhile. */
#define CLIENT_EMIT DR_EMIT_STORE_TRANSLATIONS

typedef struct { /* a repeated string instruction, between its two halves */
    uint64_t addr, count;
    bool down;
} client_rep;

typedef struct client_pending { /* a call that has not returned; wrap.c */
    struct client_pending *outer;
    uint64_t function; /* or row of the table */
    uint64_t sp, return_address, first; /* `first`: its first argument */
} client_pending;

typedef struct client_thread {
    ft_thread *ft;         /* NULL: the core has no memory for it; nothing it does is checked */
    sync_thread sync;      /* its `ft` is the same */
    uint64_t handle;       /* what the program calls the thread: its thread pointer, which is its pthread_t */
    ft_site create_site;   /* of the pthread_create that is running */
    bool creates;          /* the clone that is running makes a thread */
    ft_thread *child;      /* of it */
    uint64_t mapping_size; /* of the mmap or mremap that is running */
    uint64_t atomic;       /* address of the atomic access that is running */
    struct {
        const sync_row *row;
        uint64_t sp, return_address;
    } entered;             /* the last function of the table that checked code has called; wrap.c */
    client_pending *pending; /* the innermost */
    uint64_t returns[CLIENT_RETURNS]; /* addresses of returns that drwrap knows; by their low bits */
    stack_place caller;    /* of the library function that is making accesses; pc 0: none */
    struct client_stacks *stacks; /* that were seen; stack.c */
    uint64_t mask;         /* to block when it is settled; while `masked`, after the call; mask.c */
    bool unsettled, masked;
    long cancelled;        /* the thread to which the call that is running sends libc's signal; 0: none; cancel.c */
    struct client_aside *aside; /* signals that wait until it is settled */
    uint64_t *signal_mark; /* words that the kernel overwrites when a signal arrives; NULL: not known. leave.c */
    uint64_t *raw;         /* RAW_SLOTS words that inlined code reads and writes; asking for their place is a system call */
    client_rep rep[CLIENT_REP_ACTIONS];
} client_thread;

typedef struct { /* a function that is to be wrapped when its first block is built; wrap.c */
    app_pc pc;
    uint32_t kind;  /* sync_watch, or a handler; 0: to be filled */
    uint32_t state; /* 0: its old code may still be there */
} client_watched;

typedef struct {
    ft_core *core;
    report *report;
    report_module loose; /* stands for code without a plan */
    sync_engine sync;
    struct {
        app_pc pc;
        const sync_row *row;
    } entries[CLIENT_ENTRIES]; /* of functions that only access memory, or that have others watched, by hash */
    client_watched watched[CLIENT_WATCHED];
    void *wrap_lock;
    drvector_t scratch;   /* registers that inserted code may use */
    int tls_field;        /* client_thread, with drmgr */
    reg_id_t raw_segment; /* of RAW_SLOTS words per thread, for inlined code */
    uint raw_offset;
    ft_thread nobody;          /* what inlined code sees for threads that the core has no memory for */
    bool started;              /* the first thread has begun; it does before any other exists */
    int unsettled;             /* threads whose mask is not the kernel's yet; mask.c */
    struct client_name *names; /* of threads, newest first; thread.c */
    void *names_lock;
} client_state;

extern client_state client; /* the one mutable global of this folder */

static inline client_thread *client_thread_of(void *drcontext)
{
    return drmgr_get_tls_field(drcontext, client.tls_field);
}

/* For all that runs between two pieces of the program: vector registers are restored behind it. */
static inline client_thread *client_called(void *drcontext)
{
    client_thread *t = client_thread_of(drcontext);
    t->raw[RAW_USED] = CLIENT_PATIENCE;
    return t;
}

/* client.c */
long client_system_call(long number, long a, long b, long c, long d); /* -errno on error */

/* module.c */
void module_init(void);
void module_exit(void);
bool module_symbol(void *context, uint64_t addr, report_symbol *out);

/* insert.c */
bool insert_init(void);
void insert_exit(void);
void insert_check(void *drcontext, instrlist_t *block, instr_t *where, opnd_t memory, uint size, bool is_write,
                  ft_site site);

typedef void (*insert_callee)(ft_site site, uint size, app_pc pc); /* the address is in RAW_ADDRESS */
void insert_call(void *drcontext, instrlist_t *block, instr_t *where, reg_id_t address, insert_callee callee,
                 ft_site site, uint size);

/* loose.c */
bool loose_wants(const report_module *m); /* code of this module (NULL: of none), if it has no plan, is looked at */
void loose_insert(void *drcontext, instrlist_t *block, instr_t *instr);

/* mask.c */
void mask_thread_expected(void);   /* a thread is about to be created */
void mask_thread_unexpected(void); /* it was not */
void mask_thread_created(void);    /* it was */
void mask_begin(void *drcontext, client_thread *t);
void mask_settle(void *drcontext, client_thread *t); /* from the events of a thread that is running, and at its end */
void mask_forked(client_thread *t);                  /* the one thread of a new process */
bool mask_wants(int number);
bool mask_before_call(void *drcontext, client_thread *t, int number); /* false: the call has been made */
void mask_after_call(client_thread *t);

/* cancel.c */
void cancel_before_call(void *drcontext, client_thread *t, int number);
void cancel_after_call(client_thread *t); /* of a call that has succeeded */

/* leave.c */
void leave_init(client_thread *t);
void leave_if_signalled(void *drcontext, client_thread *t, app_pc next);

/* upper.c */
bool upper_init(void);
void upper_exit(void);

/* expr.c */
opnd_t expr_operand(const plan_action *action, const report_module *module, bool *usable);
uint64_t expr_value(uint8_t value, dr_mcontext_t *mc);
uint64_t expr_address(const plan_action *action, const report_module *module, dr_mcontext_t *mc);
uint64_t expr_segment_base(reg_id_t segment);

/* thread.c */
bool thread_events_init(void);
void thread_events_exit(void);
void thread_forked_process(void *drcontext);
ft_thread *thread_named(void *context, uint64_t handle);
void thread_joined(void *context, ft_thread *ft);
void thread_detached(void *context, ft_thread *ft);

/* stack.c */
ft_site stack_of_access(void *context, ft_thread *thread, ft_site site);
void stack_read(uint64_t at, uint64_t value); /* a word of the program's memory was read, by a walk perhaps */
void stack_forget(client_thread *t);          /* the thread ends */

/* wrap.c */
void wrap_block(app_pc start, const report_module *m); /* that is about to be built */
void wrap_module(const module_data_t *module, const report_module *m);
void wrap_handler(app_pc pc);
void wrap_watch(void *context, uint64_t function, sync_watch kind);
const sync_row *wrap_entry(app_pc pc); /* a function that only accesses memory, or has others watched, or NULL */
void wrap_entered(const sync_row *row, app_pc pc); /* from the code cache, at the first instruction of the former */
void wrap_prepare(const sync_row *row);            /* of the latter */

#endif
