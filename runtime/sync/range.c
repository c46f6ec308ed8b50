/* The memory that a call reads and writes, as the program's own accesses at the call. Reads are checked before the
 * call, writes as soon as it is known how far they go. */
#include "runtime/sync/sync.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { MOST = 1 << 30, VECTORS = 64 };

static void check(sync_thread *t, const sync_call *call, bool is_write, uint64_t addr, uint64_t size)
{
    if (!addr || !size) return;
    if (size > MOST) size = MOST;
    (is_write ? ft_write : ft_read)(t->ft, addr, size, call->site);
}

/* Bytes of the string at addr with its zero, at most `limit`. */
static uint64_t string_size(const sync_engine *engine, uint64_t addr, uint64_t limit)
{
    char part[256];
    uint64_t size = 0;
    while (addr && size < limit && size < MOST) {
        uint64_t room = sizeof part - (addr + size) % sizeof part; /* never over the end of a page */
        if (room > limit - size) room = limit - size;
        if (!sync_read(engine, addr + size, part, room)) return size;
        const char *end = memchr(part, 0, room);
        if (end) return size + (uint64_t)(end - part) + 1;
        size += room;
    }
    return size;
}

/* The buffers of iovecs, the first `limit` bytes of them. */
static void check_vectors(sync_engine *engine, sync_thread *t, const sync_call *call, bool is_write, uint64_t vectors,
                          uint64_t count, uint64_t limit)
{
    for (uint64_t i = 0; i < count && i < VECTORS && limit; i++) {
        struct iovec v;
        if (!sync_read(engine, vectors + i * sizeof v, &v, sizeof v)) return;
        uint64_t size = v.iov_len < limit ? v.iov_len : limit;
        check(t, call, is_write, (uint64_t)v.iov_base, size);
        limit -= size;
    }
}

static void check_message(sync_engine *engine, sync_thread *t, const sync_call *call, bool is_write, uint64_t message,
                          uint64_t limit)
{
    struct msghdr m;
    if (sync_read(engine, message, &m, sizeof m))
        check_vectors(engine, t, call, is_write, (uint64_t)m.msg_iov, m.msg_iovlen, limit);
}

static void range_before(sync_engine *engine, sync_thread *t, const sync_call *call, const sync_range *r)
{
    uint64_t addr = call_argument(call, r->pointer), arg = call_argument(call, r->arg), size = 0;
    switch (r->size) {
    case SIZE_ARG: size = arg; break;
    case SIZE_PRODUCT: size = arg * call_argument(call, (uint8_t)(r->arg + 1)); break;
    case SIZE_CONST: size = r->arg; break;
    case SIZE_STRING: size = string_size(engine, addr, UINT64_MAX); break;
    case SIZE_BOUNDED: size = string_size(engine, addr, arg); break;
    case SIZE_VECTOR:
        if (!r->is_write) check_vectors(engine, t, call, false, addr, arg, UINT64_MAX);
        break;
    case SIZE_MESSAGE:
        if (!r->is_write) check_message(engine, t, call, false, addr, UINT64_MAX);
        break;
    default: break;
    }
    check(t, call, r->is_write, addr, size);
}

void ranges_before(sync_engine *engine, sync_thread *t, const sync_call *call)
{
    if (!t->ft->core->concurrent) return;
    /* what is read first */
    for (int i = 1; i >= 0; i--)
        if (call->row->ranges[i].size) range_before(engine, t, call, &call->row->ranges[i]);
}

static void range_after(sync_engine *engine, sync_thread *t, const sync_call *call, const sync_range *r,
                        uint64_t result)
{
    uint64_t addr = call_argument(call, r->pointer), arg = call_argument(call, r->arg), size = 0;
    switch (r->size) {
    case SIZE_RESULT: size = r->arg != SYNC_NO_ARG && result > arg ? arg : result; break;
    case SIZE_ITEMS: size = result * arg; break;
    case SIZE_PRINTED: size = (uint32_t)result + 1u; break;
    case SIZE_LIMITED: size = (uint32_t)result + 1u < arg ? (uint32_t)result + 1u : arg; break;
    case SIZE_LINE: size = string_size(engine, addr, UINT64_MAX); break;
    case SIZE_INDIRECT:
        if (!sync_read(engine, addr, &addr, sizeof addr)) addr = 0;
        size = string_size(engine, addr, UINT64_MAX);
        break;
    case SIZE_UNTIL: size = result ? result - addr + 1 : arg; break;
    case SIZE_VECTOR:
        if (r->is_write) check_vectors(engine, t, call, true, addr, arg, result);
        break;
    case SIZE_MESSAGE:
        if (r->is_write) check_message(engine, t, call, true, addr, result);
        break;
    default: break;
    }
    check(t, call, r->is_write, addr, size);
}

void ranges_after(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result)
{
    if (!t->ft->core->concurrent) return;
    for (int i = 0; i < 2; i++)
        if (call->row->ranges[i].size) range_after(engine, t, call, &call->row->ranges[i], result);
}
