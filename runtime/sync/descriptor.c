/* Descriptors: what one thread writes happens before what another reads from the same channel.
 *
 * A pipe has one channel for both ends; an eventfd, an epoll one of its own. All sockets share one, since the two ends of
 * a connection may both be in this process and nothing says which; so do all files. A descriptor that was there before,
 * or came by another way, has a channel of its own. This may order more than the program can rely on, never less. */
#include "runtime/sync/sync.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>

enum { CHANNEL_FILES = 1, CHANNEL_SOCKETS = 2, CHANNEL_FIRST = 16, CHANNEL_DESCRIPTORS = 1 << 24 };

bool descriptor_create(sync_engine *engine)
{
    engine->channels = report_memory(engine->report, SYNC_FDS * sizeof *engine->channels);
    engine->epolls = report_memory(engine->report, SYNC_EPOLLS * sizeof *engine->epolls);
    engine->next_channel = CHANNEL_FIRST;
    return engine->channels && engine->epolls;
}

static uint64_t channel(uint64_t number)
{
    return object_make(KIND_CHANNEL, number * 64);
}

/* The channel of a descriptor that nothing is known about: its own. */
static uint64_t channel_of(const sync_engine *engine, uint64_t fd)
{
    uint32_t number = (uint32_t)fd;
    uint64_t known = number < SYNC_FDS ? __atomic_load_n(&engine->channels[number], __ATOMIC_RELAXED) : 0;
    return known ? known : channel(CHANNEL_DESCRIPTORS + (uint64_t)number);
}

static void set_channel(sync_engine *engine, uint64_t fd, uint64_t object)
{
    if ((uint32_t)fd < SYNC_FDS) __atomic_store_n(&engine->channels[(uint32_t)fd], object, __ATOMIC_RELAXED);
}

static uint64_t new_channel(sync_engine *engine)
{
    return channel(__atomic_fetch_add(&engine->next_channel, 1, __ATOMIC_RELAXED));
}

/* --- epoll -------------------------------------------------------------------------------------------------------- */

/* Requires the lock. */
static sync_epoll *epoll_of(sync_engine *engine, uint32_t fd, bool create)
{
    sync_epoll *free = NULL;
    for (uint32_t i = 0; i < SYNC_EPOLLS; i++) {
        if (engine->epolls[i].epoll == fd + 1) return &engine->epolls[i];
        if (!engine->epolls[i].epoll && !free) free = &engine->epolls[i];
    }
    if (!create || !free) return NULL;
    *free = (sync_epoll){.epoll = fd + 1};
    return free;
}

static void watch_descriptor(sync_engine *engine, uint32_t epoll, uint32_t fd, bool add)
{
    report_lock(engine->report, &engine->lock);
    sync_epoll *e = epoll_of(engine, epoll, add);
    uint32_t at = 0;
    while (e && at < e->count && e->fds[at] != fd)
        at++;
    if (e && add && at == e->count && e->count < SYNC_EPOLL_FDS) e->fds[e->count++] = fd;
    if (e && !add && at < e->count) e->fds[at] = e->fds[--e->count];
    report_unlock(&engine->lock);
}

/* Something is ready: what was written to anything that the epoll watches is taken as known. */
static void acquire_epoll(sync_engine *engine, sync_thread *t, uint32_t epoll)
{
    sync_epoll copy = {0};
    report_lock(engine->report, &engine->lock);
    const sync_epoll *e = epoll_of(engine, epoll, false);
    if (e) copy = *e;
    report_unlock(&engine->lock);
    ft_acquire(t->ft, channel_of(engine, epoll));
    for (uint32_t i = 0; i < copy.count; i++)
        ft_acquire(t->ft, channel_of(engine, copy.fds[i]));
}

static void forget_descriptor(sync_engine *engine, uint32_t fd)
{
    set_channel(engine, fd, 0);
    report_lock(engine->report, &engine->lock);
    for (uint32_t i = 0; i < SYNC_EPOLLS; i++) {
        sync_epoll *e = &engine->epolls[i];
        if (e->epoll == fd + 1) e->epoll = 0;
        for (uint32_t k = 0; e->epoll && k < e->count; k++)
            if (e->fds[k] == fd) e->fds[k] = e->fds[--e->count];
    }
    report_unlock(&engine->lock);
}

/* --- readiness ---------------------------------------------------------------------------------------------------- */

static void acquire_polled(sync_engine *engine, sync_thread *t, uint64_t fds, uint64_t count)
{
    enum { MOST = 4096 };
    for (uint64_t i = 0; i < count && i < MOST; i++) {
        struct pollfd p;
        if (!sync_read(engine, fds + i * sizeof p, &p, sizeof p)) return;
        if (p.revents && p.fd >= 0) ft_acquire(t->ft, channel_of(engine, (uint64_t)p.fd));
    }
}

static void acquire_selected(sync_engine *engine, sync_thread *t, uint64_t set, uint64_t count)
{
    uint64_t words[FD_SETSIZE / 64] = {0};
    if (count > FD_SETSIZE) count = FD_SETSIZE;
    if (!set || !sync_read(engine, set, words, (count + 63) / 64 * 8)) return;
    for (uint64_t fd = 0; fd < count; fd++)
        if (words[fd / 64] >> fd % 64 & 1) ft_acquire(t->ft, channel_of(engine, fd));
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* A stream is a channel of its own: what is written to it happens before what is read from it. */
static uint64_t stream_object(const sync_call *call)
{
    return object_make(KIND_STREAM, call_object(call));
}

void descriptor_before(sync_engine *engine, sync_thread *t, const sync_call *call)
{
    uint64_t fd = call_object(call), other = call_argument(call, call->row->other);
    switch (call->row->meaning) {
    case SYNC_FD_WRITE: ft_release(t->ft, channel_of(engine, fd)); break;
    case SYNC_FD_CLOSE:
        ft_release(t->ft, channel_of(engine, fd));
        if (call->row->name[0] != 's') forget_descriptor(engine, (uint32_t)fd); /* shutdown leaves it open */
        break;
    case SYNC_EPOLL_CTL:
        ft_release(t->ft, channel_of(engine, fd));
        watch_descriptor(engine, (uint32_t)fd, (uint32_t)other, (int)call->args[1] != EPOLL_CTL_DEL);
        break;
    case SYNC_STREAM_WRITE: ft_release(t->ft, stream_object(call)); break;
    case SYNC_FLOCK:
        if (other & LOCK_UN) ft_release(t->ft, object_make(KIND_FLOCK, 0));
        break;
    default: break;
    }
}

static uint64_t name_hash(const sync_engine *engine, uint64_t name)
{
    uint64_t hash = 14695981039346656037u;
    char c;
    for (unsigned i = 0; i < 256 && sync_read(engine, name + i, &c, 1) && c; i++)
        hash = (hash ^ (unsigned char)c) * 1099511628211u;
    return hash;
}

void descriptor_after(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result)
{
    uint64_t fd = call_object(call), other = call_argument(call, call->row->other);
    uint32_t ends[2];
    switch (call->row->meaning) {
    case SYNC_FD_READ: ft_acquire(t->ft, channel_of(engine, fd)); break;
    case SYNC_STREAM_READ: ft_acquire(t->ft, stream_object(call)); break;
    case SYNC_FD_PIPE:
        if (!sync_read(engine, fd, ends, sizeof ends)) break;
        set_channel(engine, ends[0], new_channel(engine));
        set_channel(engine, ends[1], channel_of(engine, ends[0]));
        break;
    case SYNC_FD_OWN: set_channel(engine, result, new_channel(engine)); break;
    case SYNC_FD_SIGNALS: set_channel(engine, result, object_of_signal(0)); break;
    case SYNC_FD_FILE: set_channel(engine, result, channel(CHANNEL_FILES)); break;
    case SYNC_FD_SOCKET:
        set_channel(engine, result, channel(CHANNEL_SOCKETS));
        ft_acquire(t->ft, channel(CHANNEL_SOCKETS)); /* accept: whoever connects has done something before */
        break;
    case SYNC_FD_NAMED: set_channel(engine, result, channel(name_hash(engine, fd) >> 24)); break;
    case SYNC_FD_DUP: set_channel(engine, result, channel_of(engine, fd)); break;
    case SYNC_FD_DUP2:
        if (fd != other) {
            forget_descriptor(engine, (uint32_t)other);
            set_channel(engine, other, channel_of(engine, fd));
        }
        break;
    case SYNC_EPOLL_WAIT:
        if ((int32_t)result > 0) acquire_epoll(engine, t, (uint32_t)fd);
        break;
    case SYNC_POLL:
        if ((int32_t)result > 0) acquire_polled(engine, t, fd, other);
        break;
    case SYNC_SELECT:
        if ((int32_t)result <= 0) break;
        acquire_selected(engine, t, other, (uint32_t)fd);
        acquire_selected(engine, t, call_argument(call, call->row->third), (uint32_t)fd);
        break;
    case SYNC_FLOCK:
        if (!(other & LOCK_UN)) ft_acquire(t->ft, object_make(KIND_FLOCK, 0));
        break;
    default: break;
    }
}
