/* Calls of the functions of the sync table. Each row has an exported function of its name (thunks.c), all of which lead
 * to probe_wrapper (entry.S): it calls probe_before, the real function with the program's own arguments, probe_after.
 *
 * Calls inside of libc are not seen, which is as it should be: libc is modelled at its interface. A call that is left
 * by longjmp or by an exception has no second half. One that is cancelled has: a condition's mutex is held again while
 * the cleanup handlers of the program run. */
#include "runtime/probe/probe.h"

#include <pthread.h>
#include <string.h>

enum { ROWS = 1024 };

extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *), void *argument);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);
_Static_assert(sizeof(struct _pthread_cleanup_buffer) <= sizeof(((probe_call *)0)->cleanup), "room");
_Static_assert(sizeof(probe_call) <= PROBE_FRAME && offsetof(probe_call, result) == 72, "entry.S");

extern void *probe_real[ROWS] __attribute__((visibility("hidden")));
extern const uint32_t *probe_concurrent __attribute__((visibility("hidden")));
void *probe_real[ROWS];
static const uint32_t always = 1;
const uint32_t *probe_concurrent = &always; /* until there is a core: real functions are not known yet */

void *probe_before(probe_call *c);
void probe_after(probe_call *c);

static uint64_t missing(void)
{
    return 0;
}

static void *real_function(uint32_t row)
{
    void *at = __atomic_load_n(&probe_real[row], __ATOMIC_RELAXED);
    if (at) return at;
    at = symbol_next(sync_table[row].name);
    if (!at) return missing;
    __atomic_store_n(&probe_real[row], at, __ATOMIC_RELAXED);
    return at;
}

void wrap_forget(uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < sync_table_size && i < ROWS; i++)
        if ((uint64_t)probe_real[i] >= start && (uint64_t)probe_real[i] < end)
            __atomic_store_n(&probe_real[i], NULL, __ATOMIC_RELAXED);
}

void wrap_start(void)
{
    probe_concurrent = &probe.core->concurrent;
}

void wrap_note_caller(const probe_call *c)
{
    probe_thread *self = &probe_self;
    const uint64_t *frame =
        (const uint64_t *)((const char *)c + PROBE_FRAME); /* saved rbp, return address, arguments */
    self->stack_seen = (uint64_t)(frame + 2);
    self->frame_seen = frame[0];
    self->pc_seen = c->back - 1;
    self->back_seen = back_address(c->frame, self->stack_seen, self->frame_seen);
}

/* --- special kinds ------------------------------------------------------------------------------------------------ */

/* libgomp knows by its address what a function of a target region is on a device. */
static bool have_devices(void)
{
    static int count = -1;
    int known = __atomic_load_n(&count, __ATOMIC_RELAXED);
    if (known >= 0) return known;
    int (*get)(void) = (int (*)(void))symbol_next("omp_get_num_devices");
    known = get && get() > 0;
    __atomic_store_n(&count, known, __ATOMIC_RELAXED);
    return known;
}

/* pthread_create has attributes in front of the function, thrd_create has not. */
static unsigned routine_argument(const sync_row *row)
{
    return strcmp(row->name, "thrd_create") ? 2 : 1;
}

/* The loader puts probe_self into the stack of every thread. A stack whose size the program has chosen is larger by that, so that
 * it has what it asked for; one that it has allocated itself stays as it is. */
static void widen_stack(probe_call *c)
{
    const pthread_attr_t *given = (const pthread_attr_t *)c->args[1];
    const size_t ours = (sizeof probe_self + PROBE_PAGE - 1) & ~(size_t)(PROBE_PAGE - 1);
    void *low;
    size_t size;
    if (!given || pthread_attr_getstack(given, &low, &size) || !size || size > SIZE_MAX - ours) return;
    const bool is_allocated = (uint64_t)low + size != 0;
    if (is_allocated) return;
    c->birth->attributes = *given;
    if (!pthread_attr_setstacksize(&c->birth->attributes, size + ours)) c->args[1] = (uint64_t)&c->birth->attributes;
}

static void begin_create(probe_call *c)
{
    const unsigned routine = routine_argument(c->call.row);
    if (!(c->birth = thread_new_birth())) return;
    c->birth->thread = ft_fork(probe_self.thread, stack_of_access(NULL, probe_self.thread, c->call.site));
    if (c->birth->thread) sync_created(&probe.engine, probe_self.thread, c->birth->thread);
    c->birth->start = (void *(*)(void *))c->args[routine];
    c->birth->argument = (void *)c->args[routine + 1];
    c->args[routine] = (uint64_t)thread_begin;
    c->args[routine + 1] = (uint64_t)c->birth;
    if (routine == 2) widen_stack(c);
}

static void end_create(probe_call *c)
{
    if (!c->birth) return;
    if ((int)c->result == 0) {
        thread_created(c->birth, *(const uint64_t *)c->call.args[0]);
        return;
    }
    if (c->birth->thread) ft_fork_undo(probe_self.thread, c->birth->thread);
    thread_not_created(c->birth);
}

/* --- the two halves ----------------------------------------------------------------------------------------------- */

/* Is kept by the thread if it can; else in `spare`. Signals wait meanwhile. */
static call_place *place_of(uint64_t back, call_place *spare)
{
    probe_stacks *stacks = probe_self.stacks;
    const uint32_t changes = __atomic_load_n(&probe.module_changes, __ATOMIC_ACQUIRE);
    call_place *place = &stacks->places[back % CALL_PLACES];
    if (place->back == back && place->changes == changes) return place;
    const report_module *caller = report_module_at(probe.report, back - 1);
    const plan_unwind *row = caller && caller->plan ? plan_unwind_at(caller->plan, back - 1 - caller->bias) : NULL;
    if (stacks == &stack_none) place = spare;
    *place = (call_place){.back = back, .caller = caller, .changes = changes, .frame = back_of_row(row)};
    return place;
}

/* False: it does not concern the program. */
static bool fill_call(probe_call *c, const sync_row *row)
{
    call_place spare, *place = place_of(c->back, &spare);
    const report_module *caller = place->caller;
    const bool creates = row->meaning == SYNC_CREATE; /* a thread is a thread, whoever wants it */
    if (!sync_concerns(&probe_self.sync, row, caller) && !creates) return false;
    memset(&c->call, 0, sizeof c->call);
    c->call.row = row;
    /* libc and the OpenMP runtimes call our functions directly or not at all */
    const bool by_jump = caller && caller->is_modelled && !probe_self.sync.depth && report_is_pointer_call(probe.report, c->back);
    c->call.is_checked = (caller && caller->is_checked) || by_jump;
    if (!c->call.is_checked && sync_is_only_ranges(row)) return false;
    memcpy(c->call.args, c->args, sizeof c->args);
    c->call.stack = (uint64_t)((const char *)c + PROBE_FRAME + 16);
    sync_watch kind;
    const uint8_t function = sync_watched(&probe.engine, &c->call, &kind);
    if (function < SYNC_ARGS && !c->is_on_device) {
        c->args[function] = callback_for(c->args[function]);
        c->call.args[function] = c->args[function];
    }
    if (!place->site) place->site = report_call_site(probe.report, c->back);
    c->call.site = place->site;
    c->frame = place->frame;
    return true;
}

static void before(void *call)
{
    probe_call *c = call;
    const sync_row *row = &sync_table[c->number];
    c->is_seen = fill_call(c, row);
    if (!c->is_seen) return;
    wrap_note_caller(c);
    c->birth = NULL;
    if (row->meaning == SYNC_CREATE) begin_create(c);
    sys_call_begins(sync_reads_itself(row));
    sync_before(&probe.engine, &probe_self.sync, &c->call);
    sys_call_ends();
    probe_self.stack_seen = 0;
}

static void after(void *call)
{
    probe_call *c = call;
    wrap_note_caller(c);
    if (c->call.row->meaning == SYNC_CREATE) end_create(c);
    sys_call_begins(sync_reads_itself(c->call.row));
    sync_after(&probe.engine, &probe_self.sync, &c->call, c->result);
    sys_call_ends();
    probe_self.stack_seen = 0;
}

static void settle(void *thread)
{
    sync_settle(thread);
}

static void cancelled(void *call)
{
    (void)call;
    if (probe_self.thread != &probe.nobody) probe_in_core(settle, &probe_self.sync);
}

static struct _pthread_cleanup_buffer *cleanup_of(probe_call *c)
{
    return (struct _pthread_cleanup_buffer *)(void *)c->cleanup;
}

void *probe_before(probe_call *c)
{
    void *function = real_function(c->number);
    const sync_meaning meaning = sync_table[c->number].meaning;
    if (meaning == SYNC_POLL || meaning == SYNC_SELECT || meaning == SYNC_EPOLL_WAIT) mask_during_call(c);
    c->is_seen = false;
    if (!probe_sees()) return function;
    c->is_on_device = meaning == SYNC_TARGET && have_devices();
    probe_in_core(before, c);
    if (c->is_seen && c->call.row->meaning == SYNC_WAIT) _pthread_cleanup_push(cleanup_of(c), cancelled, c);
    return function;
}

void probe_after(probe_call *c)
{
    if (!c->is_seen) return;
    if (c->call.row->meaning == SYNC_WAIT) _pthread_cleanup_pop(cleanup_of(c), 0);
    probe_in_core(after, c);
}

static void call_before(void *call)
{
    sync_call *c = call;
    sync_before(&probe.engine, &probe_self.sync, c);
}

void wrap_call_inside(const char *name, uint64_t object)
{
    sync_call call = {.row = sync_find(name)};
    const ft_thread *thread = probe_self.thread;
    if (!call.row || thread == &probe.nobody || __atomic_load_n(&thread->inside, __ATOMIC_RELAXED)) return; /* or in a handler */
    if (call.row->object < SYNC_ARGS) call.args[call.row->object] = object;
    call_before(&call);
}

void wrap_call_before(const char *name, uint64_t object, uint64_t back)
{
    if (!probe_sees()) return;
    sync_call call = {.row = sync_find(name)};
    if (!call.row || !sync_concerns(&probe_self.sync, call.row, report_module_at(probe.report, back - 1))) return;
    if (call.row->object < SYNC_ARGS) call.args[call.row->object] = object;
    probe_in_core(call_before, &call);
}
