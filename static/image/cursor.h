/* Reading a stream of bytes that may end anywhere: past the end everything is 0 and `bad` is set. */
#ifndef RACE_IMAGE_CURSOR_H
#define RACE_IMAGE_CURSOR_H

#include "static/image/private.h"

typedef struct {
    const uint8_t *at, *end;
    bool bad;
} cursor;

static inline uint64_t cursor_left(const cursor *c)
{
    return (uint64_t)(c->end - c->at);
}

static inline void cursor_skip(cursor *c, uint64_t size)
{
    if (size <= cursor_left(c)) {
        c->at += size;
    } else {
        c->at = c->end;
        c->bad = true;
    }
}

/* `size` is 1, 2, 4 or 8. */
static inline uint64_t cursor_uint(cursor *c, unsigned size)
{
    uint64_t v = 0;
    if (cursor_left(c) < size) {
        cursor_skip(c, size);
        return 0;
    }
    memcpy(&v, c->at, size); /* little-endian, as the files are */
    c->at += size;
    return v;
}

static inline int64_t cursor_int(cursor *c, unsigned size)
{
    unsigned unused = 64 - 8 * size;
    return (int64_t)(cursor_uint(c, size) << unused) >> unused;
}

static inline uint64_t cursor_uleb(cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint64_t byte = cursor_uint(c, 1);
        if (shift < 64) v |= (byte & 0x7f) << shift;
        if (!(byte & 0x80)) return v;
    }
}

static inline int64_t cursor_sleb(cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint64_t byte = cursor_uint(c, 1);
        if (shift < 64) v |= (byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if (shift + 7 < 64 && byte & 0x40) v |= UINT64_MAX << (shift + 7);
            return (int64_t)v;
        }
    }
}

#endif
