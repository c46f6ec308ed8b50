/* A growing stream of bytes for tests that write unwind tables and DWARF by hand. */
#ifndef RACE_TEST_IMAGE_STREAM_H
#define RACE_TEST_IMAGE_STREAM_H

#include "static/base/base.h"

#include <stdlib.h>

typedef VEC(uint8_t) stream;

static inline void put(stream *s, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        vec_push(s, (uint8_t)(i < 8 ? value >> (8 * i) : 0));
}

static inline void put_uleb(stream *s, uint64_t value)
{
    do {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        vec_push(s, (uint8_t)(value ? byte | 0x80 : byte));
    } while (value);
}

static inline void put_sleb(stream *s, int64_t value)
{
    for (;;) {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        bool last = (value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40));
        vec_push(s, (uint8_t)(last ? byte : byte | 0x80));
        if (last) return;
    }
}

static inline void put_text(stream *s, const char *text)
{
    do
        vec_push(s, (uint8_t)*text);
    while (*text++);
}

static inline void put_bytes(stream *s, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        vec_push(s, ((const uint8_t *)bytes)[i]);
}

/* Overwrites a number that was put before. */
static inline void put_at(stream *s, uint32_t at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        s->data[at + i] = (uint8_t)(value >> (8 * i));
}

#endif
