/* The memory that a call reads and writes, as the program's own accesses at the call. Reads are checked before the
 * call, writes as soon as it is known how far they go. */
#include "runtime/sync/sync.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { MOST = 1 << 30, VECTORS = 64 };

void range_check(sync_thread *t, const sync_call *call, bool is_write, uint64_t addr, uint64_t size)
{
    if (!addr || !size) return;
    if (size > MOST) size = MOST;
    if (t->waiting) sync_settle(t);
    (is_write ? ft_write : ft_read)(t->ft, addr, size, call->site);
}

/* Bytes of the string at addr with its zero, at most `limit`. */
uint64_t range_string_size(const sync_engine *engine, uint64_t addr, uint64_t limit)
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

static bool is_digit(char c, uint64_t base)
{
    const unsigned value = c >= '0' && c <= '9' ? (unsigned)(c - '0')
                           : (c | 32) >= 'a' && (c | 32) <= 'z' ? (unsigned)((c | 32) - 'a') + 10 : 99;
    return value < base;
}

/* Blanks, a sign, what stands before hexadecimal digits, digits; and the character that ends them. A number with a point is
 * not looked at more closely than: letters, digits and signs. */
static uint64_t number_size(const sync_engine *engine, uint64_t addr, bool is_whole, uint64_t base)
{
    enum { LONGEST = 512 };
    uint64_t size = 0;
    char c = 0;
    while (size < LONGEST && sync_read(engine, addr + size, &c, 1) && (c == ' ' || (c >= '\t' && c <= '\r')))
        size++;
    if (c == '+' || c == '-') size++;
    char start[2] = {0};
    if (is_whole && (base == 0 || base == 16) && sync_read(engine, addr + size, start, 2) && start[0] == '0') {
        const bool has_prefix = (start[1] | 32) == 'x';
        if (has_prefix) size += 2;
        if (base == 0) base = has_prefix ? 16 : 8;
    } else if (base == 0) {
        base = 10;
    }
    while (size < LONGEST && sync_read(engine, addr + size, &c, 1) &&
           (is_whole ? is_digit(c, base) : is_digit(c, 36) || c == '.' || c == '+' || c == '-'))
        size++;
    return size + 1;
}

/* Up to the character, or the zero. */
static uint64_t size_to_char(const sync_engine *engine, uint64_t addr, char wanted)
{
    uint64_t size = range_string_size(engine, addr, UINT64_MAX), at = 0;
    char part[256];
    while (at < size) {
        uint64_t room = size - at < sizeof part ? size - at : sizeof part;
        if (!sync_read(engine, addr + at, part, room)) return size;
        const char *found = memchr(part, wanted, room);
        if (found) return at + (uint64_t)(found - part) + 1;
        at += room;
    }
    return size;
}

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

static uint64_t common_size(const sync_engine *engine, const sync_call *call, uint64_t limit, bool any_case)
{
    const uint64_t one = call->args[0], other = call->args[1];
    char left[64], right[64];
    for (uint64_t at = 0; at < limit && at < MOST;) {
        uint64_t room = sizeof left; /* never over the end of a page */
        if (room > sizeof left - (one + at) % sizeof left) room = sizeof left - (one + at) % sizeof left;
        if (room > sizeof right - (other + at) % sizeof right) room = sizeof right - (other + at) % sizeof right;
        if (room > limit - at) room = limit - at;
        if (!sync_read(engine, one + at, left, room) || !sync_read(engine, other + at, right, room)) return at;
        for (uint64_t i = 0; i < room; i++)
            if (!left[i] || (any_case ? small(left[i]) != small(right[i]) : left[i] != right[i])) return at + i + 1;
        at += room;
    }
    return limit;
}

/* The buffers of iovecs, the first `limit` bytes of them. */
static void check_vectors(sync_engine *engine, sync_thread *t, const sync_call *call, bool is_write, uint64_t vectors,
                          uint64_t count, uint64_t limit)
{
    for (uint64_t i = 0; i < count && i < VECTORS && limit; i++) {
        struct iovec v;
        if (!sync_read(engine, vectors + i * sizeof v, &v, sizeof v)) return;
        uint64_t size = v.iov_len < limit ? v.iov_len : limit;
        range_check(t, call, is_write, (uint64_t)v.iov_base, size);
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

/* `received`: after it, else before it. */
static void check_messages(sync_engine *engine, sync_thread *t, const sync_call *call, bool is_write, uint64_t messages,
                           uint64_t count, bool received)
{
    for (uint64_t i = 0; i < count && i < VECTORS; i++) {
        struct mmsghdr m;
        if (!sync_read(engine, messages + i * sizeof m, &m, sizeof m)) return;
        check_vectors(engine, t, call, is_write, (uint64_t)m.msg_hdr.msg_iov, m.msg_hdr.msg_iovlen,
                      received ? m.msg_len : UINT64_MAX);
    }
}

static void range_before(sync_engine *engine, sync_thread *t, const sync_call *call, const sync_range *r)
{
    uint64_t addr = call_argument(call, r->pointer), arg = call_argument(call, r->arg), size = 0;
    switch (r->size) {
    case SIZE_ARG: size = arg; break;
    case SIZE_PRODUCT: size = arg * call_argument(call, (uint8_t)(r->arg + 1)); break;
    case SIZE_CONST: size = r->arg; break;
    case SIZE_STRING:
    case SIZE_PATH: size = range_string_size(engine, addr, UINT64_MAX); break;
    case SIZE_FORMAT:
    case SIZE_FORMAT_LIST:
        size = range_string_size(engine, addr, UINT64_MAX);
        format_check(engine, t, call, r->pointer, r->arg, r->size == SIZE_FORMAT_LIST);
        break;
    case SIZE_BOUNDED: size = range_string_size(engine, addr, arg); break;
    case SIZE_NUMBER: size = number_size(engine, addr, r->arg != SYNC_NO_ARG, arg); break;
    case SIZE_TO_CHAR: size = size_to_char(engine, addr, (char)arg); break;
    case SIZE_COMMON:
    case SIZE_COMMON_CASE:
        size = common_size(engine, call, r->arg == SYNC_NO_ARG ? UINT64_MAX : arg, r->size == SIZE_COMMON_CASE);
        break;
    case SIZE_VECTOR:
        if (!r->is_write) check_vectors(engine, t, call, false, addr, arg, UINT64_MAX);
        break;
    case SIZE_MESSAGE:
        if (!r->is_write) check_message(engine, t, call, false, addr, UINT64_MAX);
        break;
    case SIZE_MESSAGES:
        if (!r->is_write) check_messages(engine, t, call, false, addr, arg, false);
        break;
    default: break;
    }
    range_check(t, call, r->is_write, addr, size);
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
    case SIZE_STORED: size = r->arg; break;
    case SIZE_PRINTED: size = (uint32_t)result + 1u; break;
    case SIZE_LIMITED: size = (uint32_t)result + 1u < arg ? (uint32_t)result + 1u : arg; break;
    case SIZE_LINE: size = range_string_size(engine, addr, UINT64_MAX); break;
    case SIZE_INDIRECT:
        if (!sync_read(engine, addr, &addr, sizeof addr)) addr = 0;
        size = range_string_size(engine, addr, UINT64_MAX);
        break;
    case SIZE_SCANNED: format_check_stores(engine, t, call, r->pointer, r->arg, (int32_t)result); break;
    case SIZE_UNTIL: size = result ? result - addr + 1 : arg; break;
    case SIZE_VECTOR:
        if (r->is_write) check_vectors(engine, t, call, true, addr, arg, result);
        break;
    case SIZE_MESSAGE:
        if (r->is_write) check_message(engine, t, call, true, addr, result);
        break;
    case SIZE_MESSAGES:
        if (r->is_write) check_messages(engine, t, call, true, addr, (uint32_t)result, true);
        break;
    default: break;
    }
    range_check(t, call, r->is_write, addr, size);
}

void ranges_after(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result)
{
    if (!t->ft->core->concurrent) return;
    for (int i = 0; i < 2; i++)
        if (call->row->ranges[i].size) range_after(engine, t, call, &call->row->ranges[i], result);
}
