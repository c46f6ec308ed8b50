/* A call of a function of the table, as events for the core.
 *
 * Which half an event belongs to follows from one rule: a release is published before the real operation lets another
 * thread go on, and an acquire is done after the real operation has waited. So the order in which the core sees them
 * is never weaker than what the program can observe. Memory is taken from the program before it is really freed, and
 * given to it after it has really been allocated: in between it may be somebody else's. */
#include "runtime/sync/sync.h"

#include <errno.h>
#include <string.h>

bool sync_create(sync_engine *engine)
{
    if (!descriptor_create(engine)) return false;
    engine->order = engine->report->options.no_deadlocks ? NULL : order_create(engine->report);
    return true;
}

void sync_forked(sync_engine *engine)
{
    engine->lock = 0;
    /* What the threads of the other process locked is not to be compared with what this one will. */
    engine->order = engine->order ? order_create(engine->report) : NULL;
}

bool sync_read(const sync_engine *engine, uint64_t from, void *to, size_t size)
{
    const report_host *host = &engine->report->host;
    return from && host->read(host->context, from, to, size);
}

uint64_t call_object(const sync_call *call)
{
    if (call->row->object != SYNC_NO_ARG) return call_argument(call, call->row->object);
    return object_make(KIND_NUMBER, (uint64_t)call->row->third * 64);
}

bool call_succeeded(const sync_row *row, uint64_t result)
{
    switch (row->success) {
    case SYNC_ZERO: return (int32_t)result == 0 || (int32_t)result == EOWNERDEAD;
    case SYNC_POINTER: return result != 0 && result != UINT64_MAX;
    case SYNC_TRUE: return (int32_t)result != 0;
    case SYNC_COUNT: return (int32_t)result >= 0;
    case SYNC_POSITIVE: return (int32_t)result > 0;
    default: return true;
    }
}

static sync_watch watch_of(const sync_row *row, uint8_t *argument)
{
    *argument = row->object;
    switch (row->meaning) {
    case SYNC_ONCE:
        *argument = row->other;
        return SYNC_WATCH_ONCE;
    case SYNC_REGION:
    case SYNC_REGION_START:
        return SYNC_WATCH_REGION;
    case SYNC_FORK_CALL:
        return SYNC_WATCH_FORK_CALL;
    case SYNC_TASK:
    case SYNC_TASK_LOOP:
    case SYNC_TASK_ALLOC:
        return SYNC_WATCH_TASK;
    case SYNC_TARGET:
        return row->object == SYNC_NO_ARG ? 0 : SYNC_WATCH_TASK;
    case SYNC_COMBINE:
        return row->object == SYNC_NO_ARG ? 0 : SYNC_WATCH_COMBINE;
    default:
        return 0;
    }
}

bool sync_watches(const sync_row *row)
{
    uint8_t argument;
    return watch_of(row, &argument) != 0;
}

uint8_t sync_watched(const sync_engine *engine, const sync_call *call, sync_watch *kind)
{
    uint8_t argument;
    *kind = watch_of(call->row, &argument);
    if (call->row->meaning == SYNC_TARGET && !openmp_is_task(engine, call)) *kind = 0;
    return *kind ? argument : SYNC_NO_ARG;
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

void sync_created(sync_engine *engine, const ft_thread *parent, const ft_thread *child)
{
    if (engine->order) order_forked_thread(engine->order, parent->number, child->number);
}

void sync_ending(sync_engine *engine, sync_thread *t)
{
    (void)engine;
    /* A robust mutex goes to the next owner with all that its dead one did. */
    for (uint32_t i = 0; i < t->held_count; i++)
        ft_release(t->ft, t->held[i].lock);
    t->held_count = 0;
}

void sync_signalled(sync_engine *engine, sync_thread *t, int signal)
{
    (void)engine;
    ft_acquire(t->ft, object_make(KIND_SIGNAL, (uint64_t)signal * 64));
}

void sync_settle(sync_thread *t)
{
    if (!t->waiting) return;
    if (t->mutex >> 56 != KIND_PARTS) {
        ft_acquire(t->ft, t->mutex);
    } else {
        /* The others go on before the call is over, when it is not known. */
        ft_publish(t->ft, t->mutex);
        t->published = true;
    }
}

/* The attribute of a thread that is created detached, as glibc keeps it. */
static bool is_detached_attribute(const sync_engine *engine, uint64_t attribute)
{
    enum { FLAGS = 8, DETACHED = 1 };
    uint32_t flags;
    return attribute && sync_read(engine, attribute + FLAGS, &flags, sizeof flags) && flags & DETACHED;
}

/* A thread that was created detached. Its handle is stored at argument `object`. */
static void after_create(sync_engine *engine, const sync_call *call)
{
    uint64_t handle;
    if (call->row->other == SYNC_NO_ARG || !is_detached_attribute(engine, call_argument(call, call->row->other))) return;
    if (!sync_read(engine, call_object(call), &handle, sizeof handle)) return;
    ft_thread *thread = engine->thread_of(engine->context, handle);
    if (thread) engine->detached(engine->context, thread);
}

static void after_join(sync_engine *engine, sync_thread *t, const sync_call *call)
{
    if (!call->joined) return;
    engine->joined(engine->context, call->joined);
    if (engine->order) order_joined_thread(engine->order, t->ft->number, call->joined->number);
    ft_join(t->ft, call->joined);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void free_block(sync_thread *t, const sync_call *call, uint64_t block)
{
    if (!block) return;
    if (call->is_checked)
        ft_freed(t->ft, block, call->site);
    else
        ft_discarded(t->ft, block);
}

/* Bytes that SYNC_MALLOC and SYNC_MEMALIGN were asked for; the call succeeded, so the product fits. */
static uint64_t size_of(const sync_call *call)
{
    return call_object(call) * (call->row->other == SYNC_NO_ARG ? 1 : call_argument(call, call->row->other));
}

static uint64_t new_size(const sync_call *call) /* of SYNC_REALLOC */
{
    uint64_t size = call_argument(call, call->row->other);
    return call->row->third == SYNC_NO_ARG ? size : size * call_argument(call, call->row->third);
}

static void before_memory(sync_engine *engine, sync_thread *t, sync_call *call)
{
    uint64_t object = call_object(call);
    switch (call->row->meaning) {
    case SYNC_REALLOC:
        call->old_size = ft_block_size(t->ft->core, object);
        free_block(t, call, object);
        break;
    case SYNC_FREE: free_block(t, call, object); break;
    case SYNC_UNMAP:
        if (!engine->sees_mappings) ft_clear(t->ft, object, call_argument(call, call->row->other));
        break;
    default: break;
    }
}

static void allocated(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t block, uint64_t size)
{
    ft_allocated(t->ft, block, size, call->site);
    order_forget_range(engine, block, size); /* not every lock is destroyed: a std::mutex is just freed */
}

static void after_memory(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result)
{
    uint64_t block;
    switch (call->row->meaning) {
    case SYNC_MALLOC: allocated(engine, t, call, result, size_of(call)); break;
    case SYNC_MEMALIGN:
        if (sync_read(engine, call_argument(call, call->row->third), &block, sizeof block))
            allocated(engine, t, call, block, size_of(call));
        break;
    case SYNC_REALLOC: allocated(engine, t, call, result, new_size(call)); break;
    case SYNC_MAP:
        if (!engine->sees_mappings) ft_clear(t->ft, result, call_argument(call, call->row->other));
        break;
    default: break;
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

void sync_before(sync_engine *engine, sync_thread *t, sync_call *call)
{
    uint64_t object = call_object(call), other = call_argument(call, call->row->other);
    if (call->is_checked) ranges_before(engine, t, call);
    if (sync_has_second_half(call->row)) {
        t->depth++;
        call->outside = t->inside;
        t->inside = call->stack;
    }
    switch (call->row->meaning) {
    case SYNC_JOIN: call->joined = engine->thread_of(engine->context, object); break;
    case SYNC_RELEASE:
    case SYNC_BOTH: ft_release(t->ft, object); break;
    case SYNC_UNLOCK:
        order_unlocked(t, object);
        ft_release(t->ft, object);
        break;
    case SYNC_UNLOCK_RW:
        order_unlocked(t, object);
        ft_unlock(t->ft, object);
        break;
    case SYNC_WAIT:
        ft_release(t->ft, other);
        t->waiting = true;
        t->mutex = other;
        break;
    case SYNC_BARRIER: call->round = ft_barrier_enter(t->ft, object); break;
    case SYNC_ONCE:
        if (t->once_depth < SYNC_ONCES) t->onces[t->once_depth] = object;
        t->once_depth++;
        engine->watch(engine->context, other, SYNC_WATCH_ONCE);
        break;
    case SYNC_FORGET:
        ft_forget(t->ft, object);
        order_forget(engine, object);
        break;
    case SYNC_SIGNAL_SEND: ft_release(t->ft, object_of_signal(0)); __attribute__((fallthrough));
    case SYNC_SIGNAL_SET: ft_release(t->ft, object_of_signal(object)); break;
    default:
        if (call->row->meaning >= SYNC_MALLOC && call->row->meaning <= SYNC_UNMAP)
            before_memory(engine, t, call);
        else if (call->row->meaning >= SYNC_FD_READ && call->row->meaning <= SYNC_STREAM_WRITE)
            descriptor_before(engine, t, call);
        else if (call->row->meaning >= SYNC_REGION)
            openmp_before(engine, t, call);
    }
}

static void leave_call(sync_thread *t, const sync_call *call)
{
    if (!sync_has_second_half(call->row) || !t->depth) return;
    t->depth--;
    t->inside = call->outside;
}

static void end_wait(sync_thread *t)
{
    sync_settle(t);
    t->waiting = false;
}

static void after_signal(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result)
{
    int number = (int)result;
    if (call->row->object != SYNC_NO_ARG && !sync_read(engine, call_object(call), &number, sizeof number)) return;
    ft_acquire(t->ft, object_of_signal((uint64_t)number));
}

static void after_success(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result)
{
    uint64_t object = call_object(call), other = call_argument(call, call->row->other);
    const sync_meaning meaning = call->row->meaning;
    switch (meaning) {
    case SYNC_CREATE: after_create(engine, call); break;
    case SYNC_JOIN: after_join(engine, t, call); break;
    case SYNC_DETACH: {
        ft_thread *thread = engine->thread_of(engine->context, object);
        if (thread) engine->detached(engine->context, thread);
        break;
    }
    case SYNC_ACQUIRE:
    case SYNC_BOTH:
    case SYNC_ONCE: ft_acquire(t->ft, object); break;
    case SYNC_LOCK:
    case SYNC_TRY:
        ft_acquire(t->ft, object);
        order_locked(engine, t, object, false, meaning == SYNC_TRY, call->site);
        break;
    case SYNC_LOCK_READ:
    case SYNC_TRY_READ:
        ft_lock_read(t->ft, object);
        order_locked(engine, t, object, true, meaning == SYNC_TRY_READ, call->site);
        break;
    case SYNC_LOCK_WRITE:
    case SYNC_TRY_WRITE:
        ft_lock_write(t->ft, object);
        order_locked(engine, t, object, false, meaning == SYNC_TRY_WRITE, call->site);
        break;
    case SYNC_BARRIER_INIT: ft_barrier_init(t->ft, object, (uint32_t)other); break;
    case SYNC_BARRIER: ft_barrier_leave(t->ft, object, call->round); break;
    case SYNC_SIGNAL_WAIT: after_signal(engine, t, call, result); break;
    default:
        if (meaning >= SYNC_MALLOC && meaning <= SYNC_UNMAP)
            after_memory(engine, t, call, result);
        else if (meaning >= SYNC_FD_READ && meaning <= SYNC_STREAM_WRITE)
            descriptor_after(engine, t, call, result);
        else if (meaning >= SYNC_REGION)
            openmp_after(engine, t, call, result);
    }
}

void sync_after(sync_engine *engine, sync_thread *t, sync_call *call, uint64_t result)
{
    leave_call(t, call);
    if (call->row->meaning == SYNC_WAIT) end_wait(t); /* also when it timed out */
    if (call->row->meaning == SYNC_ONCE && t->once_depth) t->once_depth--;
    if (call_succeeded(call->row, result)) {
        after_success(engine, t, call, result);
        if (call->is_checked) ranges_after(engine, t, call, result);
    } else if (call->row->meaning == SYNC_REALLOC && new_size(call) && call->old_size) {
        ft_allocated(t->ft, call_object(call), call->old_size, call->site); /* the block is still there */
    }
}

void sync_left(sync_engine *engine, sync_thread *t, sync_call *call)
{
    (void)engine;
    leave_call(t, call);
    if (call->row->meaning == SYNC_WAIT) end_wait(t);
    if (openmp_calls_program(call->row)) openmp_left(t);
    if (call->row->meaning == SYNC_ONCE && t->once_depth) t->once_depth--;
}
