/* A call of a function of the table, as events for the core.
 *
 * Which half an event belongs to follows from one rule: a release is published before the real operation lets another
 * thread go on, and an acquire is done after the real operation has waited. So the order in which the core sees them
 * is never weaker than what the program can observe. Memory is taken from the program before it is really freed, and
 * given to it after it has really been allocated: in between it may be somebody else's. */
#include "runtime/sync/sync.h"

#include <errno.h>

static uint64_t argument(const sync_call *call, uint8_t number)
{
    return number < SYNC_ARGS ? call->args[number] : 0;
}

static uint64_t object_of(const sync_call *call)
{
    return argument(call, call->row->object);
}

static bool succeeded(const sync_row *row, uint64_t result)
{
    switch (row->success) {
    case SYNC_ZERO: return (int32_t)result == 0 || (int32_t)result == EOWNERDEAD;
    case SYNC_POINTER: return result != 0;
    default: return true;
    }
}

void sync_before(const sync_engine *engine, ft_thread *thread, sync_call *call)
{
    uint64_t object = object_of(call), other = argument(call, call->row->other);
    switch (call->row->meaning) {
    case SYNC_JOIN: call->joined = engine->thread_of(engine->context, object); break;
    case SYNC_RELEASE: ft_release(thread, object); break;
    case SYNC_UNLOCK: ft_unlock(thread, object); break;
    case SYNC_WAIT: ft_release(thread, other); break;
    case SYNC_BARRIER: call->round = ft_barrier_enter(thread, object); break;
    case SYNC_FORGET: ft_forget(thread, object); break;
    case SYNC_REALLOC:
        call->old_size = ft_block_size(thread->core, object);
        if (object) ft_freed(thread, object, call->site);
        break;
    case SYNC_FREE:
        if (object) ft_freed(thread, object, call->site);
        break;
    default: break;
    }
}

/* Bytes that SYNC_MALLOC and SYNC_MEMALIGN were asked for; the call succeeded, so the product fits. */
static uint64_t size_of(const sync_call *call)
{
    return object_of(call) * (call->row->other == SYNC_NO_ARG ? 1 : argument(call, call->row->other));
}

void sync_after(const sync_engine *engine, ft_thread *thread, sync_call *call, uint64_t result)
{
    uint64_t object = object_of(call), other = argument(call, call->row->other), block;
    if (!succeeded(call->row, result)) {
        bool kept = call->row->meaning == SYNC_REALLOC && other && call->old_size; /* the block is still there */
        if (kept) ft_allocated(thread, object, call->old_size, call->site);
        return;
    }
    switch (call->row->meaning) {
    case SYNC_JOIN:
        if (!call->joined) break;
        engine->joined(engine->context, call->joined);
        ft_join(thread, call->joined);
        break;
    case SYNC_ACQUIRE:
    case SYNC_ONCE: ft_acquire(thread, object); break;
    case SYNC_LOCK_READ: ft_lock_read(thread, object); break;
    case SYNC_LOCK_WRITE: ft_lock_write(thread, object); break;
    case SYNC_WAIT:
        ft_acquire(thread, other);
        ft_acquire(thread, object);
        break;
    case SYNC_BARRIER_INIT: ft_barrier_init(thread, object, (uint32_t)other); break;
    case SYNC_BARRIER: ft_barrier_leave(thread, object, call->round); break;
    case SYNC_MALLOC: ft_allocated(thread, result, size_of(call), call->site); break;
    case SYNC_MEMALIGN:
        if (engine->read_word(engine->context, argument(call, call->row->third), &block))
            ft_allocated(thread, block, size_of(call), call->site);
        break;
    case SYNC_REALLOC: ft_allocated(thread, result, other, call->site); break;
    default: break;
    }
}

void sync_once_ran(ft_thread *thread, const sync_call *call)
{
    ft_release(thread, object_of(call));
}
