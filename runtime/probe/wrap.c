/* Calls of the functions of the sync table. Each row has an exported function of its name (thunks.c), all of which lead
 * to probe_wrapper (entry.S): it calls probe_before, the real function with the program's own arguments, probe_after.
 *
 * Calls inside of libc are not seen, which is as it should be: libc is modelled at its interface. A call that is left by
 * longjmp or by an exception has no second half. One that is cancelled has: a condition's mutex is held again while the
 * cleanup handlers of the program run. */
#include "runtime/probe/probe.h"

#include <pthread.h>
#include <string.h>

enum { MOST_ROWS = 1024, FRAME = 640 };

extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *), void *argument);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

struct probe_call { /* entry.S makes it, and knows the members up to `result` */
    uint64_t args[6];
    uint64_t rax; /* number of vector registers of a call with variable arguments */
    uint64_t row;
    uint64_t back; /* return address */
    uint64_t result, result_high;
    sync_call call;
    probe_birth *birth;
    probe_call *outer; /* SYNC_ONCE */
    void (*routine)(void);
    struct _pthread_cleanup_buffer cleanup;
    bool is_seen; /* the core knows of it */
};
_Static_assert(sizeof(struct probe_call) <= FRAME, "entry.S");

static void *real[MOST_ROWS];

static uint64_t missing(void)
{
    return 0;
}

static void *real_function(uint64_t row)
{
    void *at = __atomic_load_n(&real[row], __ATOMIC_RELAXED);
    if (at) return at;
    at = symbol_next(sync_table[row].name);
    if (!at) return missing;
    __atomic_store_n(&real[row], at, __ATOMIC_RELAXED);
    return at;
}

void wrap_forget(uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < sync_table_size && i < MOST_ROWS; i++)
        if ((uint64_t)real[i] >= start && (uint64_t)real[i] < end) __atomic_store_n(&real[i], NULL, __ATOMIC_RELAXED);
}

/* Where the program is, for stacks. */
static void note_caller(const probe_call *c)
{
    probe_thread *self = &probe_self;
    const uint64_t *frame = (const uint64_t *)((const char *)c + FRAME); /* saved rbp, return address, arguments */
    self->stack_seen = (uint64_t)(frame + 2);
    self->frame_seen = frame[0];
    self->pc_seen = c->back - 1;
}

/* --- special kinds ------------------------------------------------------------------------------------------------ */

static void once_ran(void *call)
{
    probe_call *c = call;
    sync_once_ran(probe_self.thread, &c->call);
}

/* Runs instead of the function that a pthread_once runs. */
static void once_routine(void)
{
    probe_call *c = probe_self.once;
    c->routine();
    probe_in_core(once_ran, c);
}

static void begin_once(probe_call *c)
{
    uint64_t *routine = &c->args[c->call.row->other];
    c->routine = (void (*)(void))*routine;
    c->outer = probe_self.once;
    probe_self.once = c;
    *routine = (uint64_t)once_routine;
}

static void begin_create(probe_call *c)
{
    const sync_row *row = c->call.row;
    if (row->other + 1u >= 6 || !(c->birth = thread_new_birth())) return;
    c->birth->thread = ft_fork(probe_self.thread, c->call.site);
    c->birth->start = (void *(*)(void *))c->args[row->other];
    c->birth->argument = (void *)c->args[row->other + 1];
    c->args[row->other] = (uint64_t)thread_begin;
    c->args[row->other + 1] = (uint64_t)c->birth;
}

static void end_create(probe_call *c)
{
    if (!c->birth) return;
    if ((int)c->result == 0) { /* the program may not have a place for the handle; the function needs one */
        thread_created(c->birth, *(const uint64_t *)c->args[c->call.row->object]);
        return;
    }
    if (c->birth->thread) ft_fork_undo(probe_self.thread, c->birth->thread);
    thread_not_created(c->birth);
}

/* --- the two halves ----------------------------------------------------------------------------------------------- */

static void before(void *call)
{
    probe_call *c = call;
    note_caller(c);
    if (sync_wants_site(c->call.row)) c->call.site = report_call_site(probe.report, c->back);
    if (c->call.row->meaning == SYNC_CREATE) begin_create(c);
    sync_before(&probe.engine, probe_self.thread, &c->call);
    probe_self.stack_seen = 0;
}

static void after(void *call)
{
    probe_call *c = call;
    note_caller(c);
    if (c->call.row->meaning == SYNC_CREATE) end_create(c);
    sync_after(&probe.engine, probe_self.thread, &c->call, c->result);
    probe_self.stack_seen = 0;
}

static void cancelled(void *call)
{
    probe_call *c = call;
    c->result = 0;
    probe_in_core(after, c);
}

void *probe_before(probe_call *c);
void probe_after(probe_call *c);

void *probe_before(probe_call *c)
{
    void *function = real_function(c->row);
    probe_thread *self = &probe_self;
    c->is_seen = probe.ready && self->thread != &probe.nobody && !self->busy;
    if (!c->is_seen) return function;
    const sync_row *row = &sync_table[c->row];
    memset(&c->call, 0, sizeof c->call);
    c->call.row = row;
    memcpy(c->call.args, c->args, sizeof c->args);
    c->birth = NULL;
    probe_in_core(before, c);
    if (row->meaning == SYNC_ONCE) begin_once(c);
    if (row->meaning == SYNC_WAIT) _pthread_cleanup_push(&c->cleanup, cancelled, c);
    return function;
}

void probe_after(probe_call *c)
{
    if (!c->is_seen) return;
    if (c->call.row->meaning == SYNC_WAIT) _pthread_cleanup_pop(&c->cleanup, 0);
    if (c->call.row->meaning == SYNC_ONCE) probe_self.once = c->outer;
    probe_in_core(after, c);
}
