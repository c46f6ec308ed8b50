/* Threads, and the system calls that matter: those that create threads, map memory, set handlers, and end the process.
 *
 * A child's ft_thread is made in its creator, right before the clone system call, and waits for it under the name by
 * which both know the child: its thread pointer (the base of fs), which is also the value of its pthread_t. So nothing
 * that the child does can come too early, and every way to create a thread is covered. */
#include "runtime/dynamorio/client.h"

#include <linux/sched.h>
#include <string.h>
#include <syscall.h>

typedef struct client_name {
    struct client_name *next;
    uint64_t handle;
    ft_thread *ft;
    bool waits; /* the child has not begun to run */
    bool ended, detached;
} client_name;

/* --- names -------------------------------------------------------------------------------------------------------- */

static void name_add(uint64_t handle, ft_thread *ft, bool waits)
{
    client_name *n = dr_global_alloc(sizeof *n);
    *n = (client_name){.handle = handle, .ft = ft, .waits = waits};
    dr_mutex_lock(client.names_lock);
    n->next = client.names;
    client.names = n;
    dr_mutex_unlock(client.names_lock);
}

/* The newest with this handle; `waiting`: only one that waits, which is taken. */
static ft_thread *name_find(uint64_t handle, bool waiting)
{
    ft_thread *found = NULL;
    dr_mutex_lock(client.names_lock);
    for (client_name *n = client.names; n && !found; n = n->next)
        if (n->handle == handle && (!waiting || n->waits)) {
            found = n->ft;
            if (waiting) n->waits = false;
        }
    dr_mutex_unlock(client.names_lock);
    return found;
}

static void name_remove(void *context, ft_thread *ft)
{
    dr_mutex_lock(client.names_lock);
    for (client_name **link = &client.names; *link; link = &(*link)->next)
        if ((*link)->ft == ft) {
            client_name *n = *link;
            *link = n->next;
            dr_global_free(n, sizeof *n);
            break;
        }
    dr_mutex_unlock(client.names_lock);
}

ft_thread *thread_named(void *context, uint64_t handle)
{
    return name_find(handle, false);
}

void thread_joined(void *context, ft_thread *ft)
{
    name_remove(context, ft);
}

/* One of the two flags of a thread's name is set; if both are then, nobody needs it any more. */
static void name_mark(ft_thread *ft, bool ended)
{
    bool gone = false;
    dr_mutex_lock(client.names_lock);
    for (client_name *n = client.names; n && !gone; n = n->next)
        if (n->ft == ft) {
            *(ended ? &n->ended : &n->detached) = true;
            gone = n->ended && n->detached;
        }
    dr_mutex_unlock(client.names_lock);
    if (!gone) return;
    name_remove(NULL, ft);
    ft_never_joined(client.core, ft);
}

void thread_detached(void *context, ft_thread *ft)
{
    name_mark(ft, false);
}

static bool read_word(void *context, uint64_t addr, uint64_t *word)
{
    size_t done;
    return dr_safe_read((void *)addr, sizeof *word, word, &done) && done == sizeof *word;
}

/* --- birth and death ---------------------------------------------------------------------------------------------- */

/* What inlined code sees. A thread that the core has no memory for looks like one without a slot. */
static void set_raw_thread(client_thread *t, ft_thread *ft)
{
    client.nobody.core = client.core;
    t->raw[RAW_THREAD] = (uint64_t)(ft ? ft : &client.nobody);
}

static void event_thread_init(void *drcontext)
{
    client_thread *t = dr_thread_alloc(drcontext, sizeof *t);
    memset(t, 0, sizeof *t);
    t->handle = expr_segment_base(DR_SEG_FS); /* the first thread has none yet; see before_clone */
    t->ft = client.started ? name_find(t->handle, true) : ft_first_thread(client.core);
    t->sync.ft = t->ft;
    client.started = true;
    drmgr_set_tls_field(drcontext, client.tls_field, t);
    t->raw = (uint64_t *)(void *)(dr_get_dr_segment_base(client.raw_segment) + client.raw_offset);
    set_raw_thread(t, t->ft);
    client_called(drcontext);
    leave_init(t);
    mask_begin(drcontext, t);
}

static void event_thread_exit(void *drcontext)
{
    client_thread *t = client_thread_of(drcontext);
    mask_settle(drcontext, t);
    set_raw_thread(t, NULL);
    if (t->ft) {
        sync_ending(&client.sync, &t->sync);
        ft_end(t->ft);
        name_mark(t->ft, true);
    }
    stack_forget(t);
    dr_thread_free(drcontext, t, sizeof *t);
}

void thread_forked_process(void *drcontext)
{
    client_thread *t = client_thread_of(drcontext);
    mask_forked(t);
    sync_forked(&client.sync);
    if (t->ft) ft_forked_process(t->ft);
}

/* --- system calls ------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t flags, tls;
} clone_request;

static bool read_clone(void *drcontext, int number, clone_request *request)
{
    if (number == SYS_clone) {
        request->flags = dr_syscall_get_param(drcontext, 0);
        request->tls = dr_syscall_get_param(drcontext, 4);
        return true;
    }
    uint64_t args = dr_syscall_get_param(drcontext, 0);
    return read_word(NULL, args + offsetof(struct clone_args, flags), &request->flags) &&
           read_word(NULL, args + offsetof(struct clone_args, tls), &request->tls);
}

/* A thread's stack and thread-local storage may have been another thread's before. */
static void clear_stack(client_thread *t, uint64_t thread_pointer)
{
    dr_mem_info_t info;
    if (dr_query_memory_ex((byte *)thread_pointer, &info) && info.type == DR_MEMTYPE_DATA)
        ft_clear(t->ft, (uint64_t)info.base_pc, info.size);
}

static void before_clone(void *drcontext, client_thread *t, int number)
{
    clone_request request;
    t->child = NULL;
    t->creates = read_clone(drcontext, number, &request) && request.flags & CLONE_THREAD;
    if (t->creates) mask_thread_expected();
    if (!t->ft) return;
    if (!t->handle) {
        t->handle = expr_segment_base(DR_SEG_FS);
        name_add(t->handle, t->ft, false);
    }
    if (!t->creates) return;
    t->child = ft_fork(t->ft, t->create_site);
    if (!t->child) return;
    sync_created(&client.sync, t->ft, t->child);
    if (request.flags & CLONE_SETTLS) clear_stack(t, request.tls);
    name_add(request.flags & CLONE_SETTLS ? request.tls : t->handle, t->child, true);
}

static void after_clone(client_thread *t, bool succeeded)
{
    if (t->creates) succeeded ? mask_thread_created() : mask_thread_unexpected();
    t->creates = false;
    if (t->child && !succeeded) {
        name_remove(NULL, t->child);
        ft_fork_undo(t->ft, t->child);
    }
    t->child = NULL;
}

/* What arrives is seen when its handler begins. DynamoRIO has an event for it, but loses every signal that arrives while
 * a client's function for it is called. */
static void before_sigaction(uint64_t action)
{
    uint64_t handler; /* the first member */
    if (action && read_word(NULL, action, &handler)) wrap_handler((app_pc)handler);
}

static bool event_filter_syscall(void *drcontext, int number)
{
    switch (number) {
    case SYS_clone:
    case SYS_clone3:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_rt_sigaction:
    case SYS_exit_group: return true;
    default: return mask_wants(number);
    }
}

static bool event_before_syscall(void *drcontext, int number)
{
    client_thread *t = client_called(drcontext);
    if (!mask_before_call(drcontext, t, number)) return false;
    cancel_before_call(drcontext, t, number);
    if (number == SYS_clone || number == SYS_clone3) before_clone(drcontext, t, number);
    if (!t->ft && number != SYS_exit_group && number != SYS_rt_sigaction) return true;
    switch (number) {
    case SYS_mmap: t->mapping_size = dr_syscall_get_param(drcontext, 1); break;
    case SYS_munmap: ft_clear(t->ft, dr_syscall_get_param(drcontext, 0), dr_syscall_get_param(drcontext, 1)); break;
    case SYS_mremap: t->mapping_size = dr_syscall_get_param(drcontext, 2); break;
    case SYS_rt_sigaction: before_sigaction(dr_syscall_get_param(drcontext, 1)); break;
    case SYS_exit_group:
        dr_syscall_set_param(drcontext, 0,
                             (reg_t)report_exit_code(client.report, (int)dr_syscall_get_param(drcontext, 0)));
        break;
    default: break;
    }
    return true;
}

static void event_after_syscall(void *drcontext, int number)
{
    client_thread *t = client_called(drcontext);
    dr_syscall_result_info_t info = {.size = sizeof info};
    mask_after_call(t);
    if (!dr_syscall_get_result_ex(drcontext, &info)) return;
    if (number == SYS_clone || number == SYS_clone3) after_clone(t, info.succeeded);
    if (info.succeeded) cancel_after_call(t);
    if (!t->ft) return;
    switch (number) {
    case SYS_mmap:
    case SYS_mremap:
        if (info.succeeded) ft_clear(t->ft, info.value, t->mapping_size);
        break;
    default: break;
    }
}

bool thread_events_init(void)
{
    client.names_lock = dr_mutex_create();
    client.tls_field = drmgr_register_tls_field();
    if (client.tls_field < 0 || !dr_raw_tls_calloc(&client.raw_segment, &client.raw_offset, RAW_SLOTS, 0)) return false;
    client_register_filter_syscall_event(event_filter_syscall);
    mask_thread_expected(); /* the first */
    return drmgr_register_thread_init_event(event_thread_init) && drmgr_register_thread_exit_event(event_thread_exit) &&
           drmgr_register_pre_syscall_event(event_before_syscall) &&
           drmgr_register_post_syscall_event(event_after_syscall);
}

void thread_events_exit(void)
{
    drmgr_unregister_thread_init_event(event_thread_init);
    drmgr_unregister_thread_exit_event(event_thread_exit);
    drmgr_unregister_pre_syscall_event(event_before_syscall);
    drmgr_unregister_post_syscall_event(event_after_syscall);
    dr_raw_tls_cfree(client.raw_offset, RAW_SLOTS);
    drmgr_unregister_tls_field(client.tls_field);
    while (client.names) {
        client_name *n = client.names;
        client.names = n->next;
        dr_global_free(n, sizeof *n);
    }
    dr_mutex_destroy(client.names_lock);
}
