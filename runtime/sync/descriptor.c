/* Descriptors: what one thread writes happens before what another reads from the same channel.
 *
 * A pipe has one channel for both ends; an eventfd, an epoll one of its own. All sockets share one, since the two ends of
 * a connection may both be in this process and nothing says which; so do all files. A descriptor that was there before,
 * or came by another way, has a channel of its own. A stream (FILE) is its descriptor's channel too. What is moved from
 * one descriptor to another without being read (splice) links their channels for good.
 * This may order more than the program can rely on, never less. */
#include "runtime/sync/sync.h"

#include <fcntl.h>
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

/* What was written there is known, and what has been moved there from elsewhere. */
static void acquire_deep(sync_engine *engine, sync_thread *t, uint64_t object, unsigned depth)
{
    ft_acquire(t->ft, object);
    uint32_t count = __atomic_load_n(&engine->move_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && depth; i++)
        if (engine->moves[i].to == object) acquire_deep(engine, t, engine->moves[i].from, depth - 1);
}

static void acquire_channel(sync_engine *engine, sync_thread *t, uint64_t object)
{
    enum { DEEPEST = 4 };
    acquire_deep(engine, t, object, DEEPEST);
}

/* While it is moved nothing says when it has come to one end and left the other, so whoever reads there later looks here too. */
static void note_move(sync_engine *engine, uint64_t from, uint64_t to)
{
    if (from == to) return;
    report_lock(engine->report, &engine->lock);
    uint32_t i = 0, count = engine->move_count;
    while (i < count && (engine->moves[i].from != from || engine->moves[i].to != to))
        i++;
    if (i == count && count < SYNC_MOVES) {
        engine->moves[i] = (sync_move){from, to};
        __atomic_store_n(&engine->move_count, count + 1, __ATOMIC_RELEASE);
    }
    report_unlock(&engine->lock);
}

/* --- epoll -------------------------------------------------------------------------------------------------------- */

/* Requires the lock. */
static sync_epoll *epoll_of(sync_engine *engine, uint32_t fd, bool create)
{
    sync_epoll *free = NULL;
    for (uint32_t i = 0; i < engine->epoll_top; i++) {
        if (engine->epolls[i].epoll == fd + 1) return &engine->epolls[i];
        if (!engine->epolls[i].epoll && !free) free = &engine->epolls[i];
    }
    if (!create) return NULL;
    if (!free && engine->epoll_top < SYNC_EPOLLS) free = &engine->epolls[engine->epoll_top++];
    if (!free) return NULL;
    free->epoll = fd + 1;
    free->has_sockets = free->count = 0;
    return free;
}

static void watch_descriptor(sync_engine *engine, uint32_t epoll, uint32_t fd, bool add)
{
    const bool is_socket = channel_of(engine, fd) == channel(CHANNEL_SOCKETS);
    report_lock(engine->report, &engine->lock);
    sync_epoll *e = epoll_of(engine, epoll, add);
    uint32_t at = 0;
    if (e && add && is_socket) e->has_sockets = 1;
    while (e && at < e->count && e->fds[at] != fd)
        at++;
    if (e && add && !is_socket && at == e->count && e->count < SYNC_EPOLL_FDS) e->fds[e->count++] = fd;
    if (e && !add && at < e->count) e->fds[at] = e->fds[--e->count];
    report_unlock(&engine->lock);
}

/* Something is ready: what was written to anything that the epoll watches is taken as known. From the last one down, since the
 * last takes the place of one that goes meanwhile. */
static void acquire_epoll(sync_engine *engine, sync_thread *t, uint32_t epoll)
{
    ft_acquire(t->ft, channel_of(engine, epoll));
    uint32_t left = SYNC_EPOLL_FDS;
    bool has_sockets = false;
    while (left) {
        uint32_t fd = 0;
        report_lock(engine->report, &engine->lock);
        const sync_epoll *e = epoll_of(engine, epoll, false);
        if (e) has_sockets = e->has_sockets;
        left = !e ? 0 : left < e->count ? left : e->count;
        const bool is_any = left != 0;
        if (is_any) fd = e->fds[--left];
        report_unlock(&engine->lock);
        if (is_any) acquire_channel(engine, t, channel_of(engine, fd));
    }
    if (has_sockets) ft_acquire(t->ft, channel(CHANNEL_SOCKETS));
}

static void forget_descriptor(sync_engine *engine, uint32_t fd)
{
    set_channel(engine, fd, 0);
    report_lock(engine->report, &engine->lock);
    for (uint32_t i = 0; i < engine->epoll_top; i++) {
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
        if (p.revents && p.fd >= 0) acquire_channel(engine, t, channel_of(engine, (uint64_t)p.fd));
    }
}

static void acquire_selected(sync_engine *engine, sync_thread *t, uint64_t set, uint64_t count)
{
    uint64_t words[FD_SETSIZE / 64] = {0};
    if (count > FD_SETSIZE) count = FD_SETSIZE;
    if (!set || !sync_read(engine, set, words, (count + 63) / 64 * 8)) return;
    for (uint64_t fd = 0; fd < count; fd++)
        if (words[fd / 64] >> fd % 64 & 1) acquire_channel(engine, t, channel_of(engine, fd));
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* A stream is a channel of its own: what is written to it happens before what is read from it. */
static uint64_t stream_object(const sync_call *call)
{
    return object_make(KIND_STREAM, call_object(call));
}

/* The descriptor of a stream, as glibc keeps it; below 0: it has none. */
static int stream_descriptor(const sync_engine *engine, uint64_t stream)
{
    enum { FILENO = 112 };
    int fd;
    return stream && sync_read(engine, stream + FILENO, &fd, sizeof fd) ? fd : -1;
}

/* Its first member. */
static int aio_descriptor(const sync_engine *engine, uint64_t aiocb)
{
    int fd;
    return aiocb && sync_read(engine, aiocb, &fd, sizeof fd) ? fd : -1;
}

/* Those between open file descriptions are between threads too; the older ones are the process's. */
static bool is_lock_command(uint64_t command)
{
    return (int)command == F_OFD_SETLK || (int)command == F_OFD_SETLKW;
}

static bool is_unlock(const sync_engine *engine, uint64_t lock)
{
    struct flock l;
    return lock && sync_read(engine, lock, &l, sizeof l) && l.l_type == F_UNLCK;
}

static bool is_fclose(const sync_row *row)
{
    return !strcmp(row->name, "fclose");
}

/* A file is unlocked by closing it, too, and to lock it for reading may unlock it for writing. */
void descriptor_before(sync_engine *engine, sync_thread *t, const sync_call *call)
{
    uint64_t fd = call_object(call), other = call_argument(call, call->row->other);
    switch (call->row->meaning) {
    case SYNC_FD_WRITE: ft_release(t->ft, channel_of(engine, fd)); break;
    case SYNC_FD_CLOSE:
        ft_release(t->ft, channel_of(engine, fd));
        if (call->row->name[0] == 's') break; /* shutdown leaves it open */
        ft_release(t->ft, object_make(KIND_FLOCK, 0)); /* and closing unlocks */
        forget_descriptor(engine, (uint32_t)fd);
        break;
    case SYNC_EPOLL_CTL:
        ft_release(t->ft, channel_of(engine, fd));
        watch_descriptor(engine, (uint32_t)fd, (uint32_t)other, (int)call->args[1] != EPOLL_CTL_DEL);
        break;
    case SYNC_STREAM_WRITE: {
        const int under = stream_descriptor(engine, fd);
        ft_release(t->ft, stream_object(call));
        if (under >= 0) ft_release(t->ft, channel_of(engine, (uint64_t)under));
        if (is_fclose(call->row)) ft_release(t->ft, object_make(KIND_FLOCK, 0));
        break;
    }
    case SYNC_FD_MOVE:
        note_move(engine, channel_of(engine, fd), channel_of(engine, other));
        ft_release(t->ft, channel_of(engine, other));
        break;
    case SYNC_FD_CONTROL:
        if (is_lock_command(other)) ft_release(t->ft, object_make(KIND_FLOCK, 0));
        break;
    case SYNC_AIO_START:
        if (aio_descriptor(engine, fd) >= 0) ft_release(t->ft, channel_of(engine, (uint64_t)aio_descriptor(engine, fd)));
        break;
    case SYNC_FLOCK: ft_release(t->ft, object_make(KIND_FLOCK, 0)); break;
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
    case SYNC_FD_READ: acquire_channel(engine, t, channel_of(engine, fd)); break;
    case SYNC_STREAM_READ: {
        const int under = stream_descriptor(engine, fd);
        ft_acquire(t->ft, stream_object(call));
        if (under >= 0) acquire_channel(engine, t, channel_of(engine, (uint64_t)under));
        break;
    }
    case SYNC_AIO_DONE:
        if (aio_descriptor(engine, fd) >= 0)
            acquire_channel(engine, t, channel_of(engine, (uint64_t)aio_descriptor(engine, fd)));
        break;
    case SYNC_FD_CONTROL:
        if ((int)other == F_DUPFD || (int)other == F_DUPFD_CLOEXEC)
            set_channel(engine, result, channel_of(engine, fd));
        else if (is_lock_command(other) && !is_unlock(engine, call_argument(call, call->row->third)))
            ft_acquire(t->ft, object_make(KIND_FLOCK, 0));
        break;
    case SYNC_FD_PIPE:
        if (!sync_read(engine, fd, ends, sizeof ends)) break;
        set_channel(engine, ends[0], new_channel(engine));
        set_channel(engine, ends[1], channel_of(engine, ends[0]));
        break;
    case SYNC_FD_OWN: set_channel(engine, result, new_channel(engine)); break;
    case SYNC_FD_SIGNALS: set_channel(engine, result, object_of_signal(0)); break;
    case SYNC_FD_FILE: set_channel(engine, result, channel(CHANNEL_FILES)); break;
    case SYNC_STREAM_FILE: {
        const int under = stream_descriptor(engine, result);
        if (under >= 0) set_channel(engine, (uint64_t)under, channel(CHANNEL_FILES));
        break;
    }
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
