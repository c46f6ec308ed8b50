/* A place inside an object as a number of 40 bits, so that a fact (object, place) is one 64-bit key and keys of one object
 * stand together when sorted, exact places first.
 *
 *     39        38 ................. 0
 *     0         offset + 2^38                      exactly that byte
 *     1         0   stride (19)   residue (19)     all bytes at residue + n * stride; stride 1: anywhere
 */
#ifndef RACE_POINTER_OFFSET_H
#define RACE_POINTER_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t pta_key;  /* object << 40 | place */
typedef uint64_t offset_t; /* place */

enum { OFFSET_BITS = 40, OFFSET_MAX_STRIDE = (1 << 19) - 1, OFFSET_MAX_OBJECTS = 1 << 24 };

static const offset_t OFFSET_CLASS = 1ull << 39;
static const int64_t OFFSET_BIAS = 1ll << 38, OFFSET_LIMIT = 1ll << 30;

static inline uint32_t key_object(pta_key key)
{
    return (uint32_t)(key >> OFFSET_BITS);
}

static inline offset_t key_offset(pta_key key)
{
    return key & ((1ull << OFFSET_BITS) - 1);
}

static inline pta_key key_make(uint32_t object, offset_t place)
{
    return (pta_key)object << OFFSET_BITS | place;
}

static inline bool offset_is_exact(offset_t place)
{
    return !(place & OFFSET_CLASS);
}

static inline int64_t offset_value(offset_t place) /* of an exact one */
{
    return (int64_t)place - OFFSET_BIAS;
}

static inline uint32_t offset_stride(offset_t place) /* of a class */
{
    return (uint32_t)(place >> 19) & OFFSET_MAX_STRIDE;
}

static inline uint32_t offset_residue(offset_t place)
{
    return (uint32_t)place & OFFSET_MAX_STRIDE;
}

static inline uint64_t offset_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static inline offset_t offset_class(uint64_t stride, int64_t at)
{
    if (stride > OFFSET_MAX_STRIDE) stride = 1;
    int64_t residue = at % (int64_t)stride;
    if (residue < 0) residue += (int64_t)stride;
    return OFFSET_CLASS | stride << 19 | (uint64_t)residue;
}

static inline offset_t offset_exact(int64_t at)
{
    return at > -OFFSET_LIMIT && at < OFFSET_LIMIT ? (offset_t)(at + OFFSET_BIAS) : offset_class(1, 0);
}

static inline offset_t offset_add(offset_t place, int64_t k)
{
    if (offset_is_exact(place)) return offset_exact(offset_value(place) + k);
    return offset_class(offset_stride(place), (int64_t)offset_residue(place) + k);
}

/* All multiples of `stride` away. */
static inline offset_t offset_spread(offset_t place, uint64_t stride)
{
    if (offset_is_exact(place)) return offset_class(stride, offset_value(place));
    return offset_class(offset_gcd(offset_stride(place), stride), offset_residue(place));
}

/* Rounded down to a multiple of n, in an object whose first byte is at a multiple of `align`. */
static inline offset_t offset_align(offset_t place, uint32_t n, uint32_t align)
{
    if (align < n) return offset_class(1, 0);
    if (!offset_is_exact(place)) {
        uint32_t stride = offset_stride(place), residue = offset_residue(place);
        return stride % n ? offset_class(n, 0) : offset_class(stride, residue - residue % n);
    }
    return offset_exact(offset_value(place) & -(int64_t)n);
}

/* Whether both may be the same byte. */
static inline bool offset_meet(offset_t a, offset_t b)
{
    if (offset_is_exact(a) && offset_is_exact(b)) return a == b;
    if (offset_is_exact(a)) return offset_meet(b, a);
    if (offset_is_exact(b)) {
        int64_t at = offset_value(b) % (int64_t)offset_stride(a);
        if (at < 0) at += offset_stride(a);
        return at == offset_residue(a);
    }
    uint64_t g = offset_gcd(offset_stride(a), offset_stride(b));
    return offset_residue(a) % g == offset_residue(b) % g;
}

/* Whether all bytes of b are in a. */
static inline bool offset_covers(offset_t a, offset_t b)
{
    if (offset_is_exact(a)) return a == b;
    if (offset_is_exact(b)) return offset_meet(a, b);
    return offset_stride(b) % offset_stride(a) == 0 && offset_meet(a, b);
}

/* The smallest class that covers both. */
static inline offset_t offset_join(offset_t a, offset_t b)
{
    int64_t at = offset_is_exact(a) ? offset_value(a) : offset_residue(a);
    int64_t bt = offset_is_exact(b) ? offset_value(b) : offset_residue(b);
    uint64_t g = offset_gcd((uint64_t)(at < bt ? bt - at : at - bt), offset_is_exact(a) ? 0 : offset_stride(a));
    g = offset_gcd(g, offset_is_exact(b) ? 0 : offset_stride(b));
    return g ? offset_class(g, at) : a;
}

#endif
