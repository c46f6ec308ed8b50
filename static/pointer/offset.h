/* A place inside an object as a number of 41 bits, so that a fact (object, place) is one 64-bit key and keys of one object
 * stand together when sorted: single places first, then classes, the coarser before the finer.
 *
 *     40        39 ....................................... 0
 *     0         offset + 2^39                                exactly that byte
 *     1         stride (17)   level (6)   residue (17)       the bytes residue + n * stride inside of what the level says
 *     0         2^39 + 2^35 + residue (17)                   that byte of each element: single, but not exact
 *
 * The level of a class is a window of the object's shape; when it has none, the least place: one of few (offset_level), so that
 * it cannot creep down byte by byte. Both kinds of bounds, as progressions are, are closed under intersection, hence each set
 * of places has one smallest class around it.
 *
 * Of an array of elements, all places are places in an element: exact ones in the first element, classes in any. Indices
 * inside of an element stay in it. One element is no array: places before and behind it are what they are. A shape of NULL:
 * nothing is known. The place 0 is none: outside of the object. */
#ifndef RACE_POINTER_OFFSET_H
#define RACE_POINTER_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#include "static/pointer/shape.h"

typedef uint64_t pta_key;  /* object << OFFSET_BITS | place */
typedef uint64_t offset_t; /* place */

enum { OFFSET_BITS = 41, OFFSET_MAX_STRIDE = (1 << 17) - 1, OFFSET_MAX_OBJECTS = 1 << 23, OFFSET_MAX_LEVEL = 63 };
enum { OFFSET_SLACK = 256 }; /* bytes that a pointer may lie before or behind an object and come back */
enum { OFFSET_MAX_ELEMENT = OFFSET_MAX_STRIDE - OFFSET_SLACK - 1 }; /* places of one are less than a stride apart */

static const offset_t OFFSET_CLASS = 1ull << 40;
static const int64_t OFFSET_BIAS = 1ll << 39, OFFSET_LIMIT = 1ll << 31; /* of exact places */
static const int64_t OFFSET_NO_LEAST = INT64_MIN; /* the class goes down without end */

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

static inline bool offset_is_single(offset_t place)
{
    return !(place & OFFSET_CLASS);
}

static const offset_t OFFSET_ELEMENT = (1ull << 39) + (1ull << 35); /* further away than any exact place */

static inline bool offset_is_element(offset_t place)
{
    return place >> 35 == OFFSET_ELEMENT >> 35;
}

static inline bool offset_is_exact(offset_t place)
{
    return offset_is_single(place) && !offset_is_element(place);
}

static inline int64_t offset_value(offset_t place) /* of an exact one */
{
    return (int64_t)place - OFFSET_BIAS;
}

static inline uint32_t offset_stride(offset_t place) /* of a class */
{
    return (uint32_t)(place >> 23) & OFFSET_MAX_STRIDE;
}

/* What its places differ by; 0: it is one place, of each element perhaps. */
static inline uint32_t offset_step(offset_t place)
{
    return place & OFFSET_CLASS ? offset_stride(place) : 0;
}

static inline uint32_t offset_residue(offset_t place) /* of a class or an element's */
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

/* Level 0: no least place; then 0, 8, and the further powers of two. */
static inline uint32_t offset_level(int64_t least)
{
    if (least < 0) return 0;
    if (least < 8) return 1;
    uint32_t level = 62 - (uint32_t)__builtin_clzll((uint64_t)least); /* 2 for 8 */
    return level < OFFSET_MAX_LEVEL ? level : OFFSET_MAX_LEVEL;
}

static inline bool offset_has_windows(const pta_shape *shape)
{
    return shape && shape->count;
}

static inline uint32_t offset_window(offset_t place) /* of a class */
{
    return (uint32_t)(place >> 17) & OFFSET_MAX_LEVEL;
}

static inline int64_t offset_least(offset_t place) /* of a class without windows */
{
    uint32_t level = offset_window(place);
    if (!level) return OFFSET_NO_LEAST;
    return level == 1 ? 0 : 1ll << (level + 1);
}

/* A divisor of a stride that can be written: the largest, if it is found soon, so that the members of large elements stay apart. */
static inline uint64_t offset_fit(uint64_t stride)
{
    enum { SOON = 64 };
    if (stride < OFFSET_MAX_STRIDE) return stride;
    for (uint64_t part = stride / OFFSET_MAX_STRIDE + 1, end = part + SOON; part < end; part++)
        if (stride % part == 0) return stride / part;
    return (stride & -stride) < OFFSET_MAX_STRIDE ? stride & -stride : OFFSET_MAX_STRIDE / 2 + 1;
}

static inline offset_t offset_class(uint64_t stride, int64_t at, uint32_t level)
{
    stride = offset_fit(stride);
    int64_t residue = at % (int64_t)stride;
    if (residue < 0) residue += (int64_t)stride;
    return OFFSET_CLASS | stride << 23 | (uint64_t)level << 17 | (uint64_t)residue;
}

static inline offset_t offset_element(uint32_t residue)
{
    return OFFSET_ELEMENT | residue;
}

static inline offset_t offset_anywhere(void)
{
    return offset_class(1, 0, 0);
}

/* 0: further away than any object is large. */
static inline offset_t offset_exact(int64_t at)
{
    return at > -OFFSET_LIMIT && at < OFFSET_LIMIT ? (offset_t)(at + OFFSET_BIAS) : 0;
}

/* The byte that a single place is. */
static inline int64_t offset_at(offset_t place)
{
    return offset_is_exact(place) ? offset_value(place) : offset_residue(place);
}

/* The size of elements, where there may be several; else 0. */
static inline uint32_t offset_elements(const pta_shape *shape)
{
    return shape && shape->total != shape->element ? shape->element : 0;
}

/* That byte of each element. */
static inline offset_t offset_each(int64_t at, const pta_shape *shape)
{
    at %= (int64_t)shape->element;
    return offset_element((uint32_t)(at < 0 ? at + shape->element : at));
}

/* A place in an array of elements as a place in one of them; 0: outside of the object. */
static inline offset_t offset_in_element(offset_t place, const pta_shape *shape)
{
    if (!place || !shape || !shape->element || !offset_is_exact(place)) return place;
    int64_t at = offset_value(place), element = shape->element;
    if (at >= 0 && at < element) return place;
    if (shape->total && (at < -OFFSET_SLACK || at > (int64_t)shape->total + OFFSET_SLACK)) return 0;
    return shape->total == shape->element ? place : offset_each(at, shape);
}

/* The first and the last byte of a class in its window and its element. */
static inline void offset_ends(offset_t place, const pta_shape *shape, int64_t *first, int64_t *last)
{
    static const shape_window all = {0, INT32_MAX, 0};
    const shape_window *w = offset_has_windows(shape) ? &shape->windows[offset_window(place)] : &all;
    int64_t step = offset_stride(place), end = w->end, element = offset_elements(shape);
    if (element && end > element) end = element;
    *first = w->start + (offset_residue(place) + step - w->start % step) % step;
    *last = *first + (end - 1 - *first) / step * step;
}

/* The level of a class of which each place moves by k, and stays in its element. */
static inline uint32_t offset_moved(offset_t place, int64_t k, const pta_shape *shape)
{
    if (!offset_window(place)) return 0;
    if (!offset_has_windows(shape)) return offset_level(offset_least(place) + k);
    int64_t first, last;
    offset_ends(place, shape, &first, &last);
    if (shape->windows[offset_window(place)].end == INT32_MAX && !offset_elements(shape)) last = INT32_MAX - 1 - k; /* no end */
    return shape_join(shape, shape_around(shape, first + k), shape_around(shape, last + k));
}

/* Whether a class of an array may come into other elements when it moves by k. */
static inline bool offset_leaves(offset_t place, int64_t k, const pta_shape *shape)
{
    int64_t first, last;
    if (!offset_elements(shape)) return false;
    offset_ends(place, shape, &first, &last);
    return first + k < 0 || last + k >= shape->element;
}

static inline offset_t offset_add(offset_t place, int64_t k, const pta_shape *shape)
{
    if (offset_is_exact(place)) return offset_in_element(offset_exact(offset_value(place) + k), shape);
    if (offset_is_element(place)) return offset_each(offset_residue(place) + k, shape);
    int64_t at = offset_residue(place) + k;
    if (!offset_leaves(place, k, shape)) return offset_class(offset_stride(place), at, offset_moved(place, k, shape));
    return k % (int64_t)shape->element ? offset_class(offset_gcd(offset_stride(place), shape->element), at, 0) : place;
}

/* The window that an index leads through from a class: what begins where its own does may be meant. */
static inline uint32_t offset_indexed(offset_t place, const pta_shape *shape)
{
    uint32_t window = offset_window(place);
    int64_t start = shape->windows[window].start;
    return window && start % offset_stride(place) == offset_residue(place) ? shape_indexed(shape, start) : window;
}

/* All multiples of `stride` away, which is not 0; up: only towards higher addresses, where no windows are known. */
static inline offset_t offset_spread(offset_t place, uint64_t stride, bool up, const pta_shape *shape)
{
    if (!place) return 0;
    uint32_t level = 0, element = offset_elements(shape);
    bool single = offset_is_single(place);
    if (element && stride % element == 0) return single ? offset_each(offset_at(place), shape) : place;
    if (element && stride > element) {
        stride = offset_gcd(stride, element);
    } else if (offset_has_windows(shape)) {
        level = single ? shape_indexed(shape, offset_at(place)) : offset_indexed(place, shape);
    } else if (up) {
        level = single ? offset_level(offset_at(place)) : offset_window(place);
    }
    return offset_class(offset_gcd(offset_step(place), offset_fit(stride)), offset_at(place), level);
}

/* The same for a block, which is not bound by windows. */
static inline offset_t offset_block(offset_t place, uint64_t stride, bool up, const pta_shape *shape)
{
    offset_t spread = offset_spread(place, stride, up, shape);
    if (!spread || !offset_has_windows(shape) || !offset_step(spread)) return spread;
    return offset_class(offset_stride(spread), offset_residue(spread), 0);
}

/* Rounded down to a multiple of n, in an object whose first byte is at a multiple of `align`. */
static inline offset_t offset_align(offset_t place, uint32_t n, uint32_t align, const pta_shape *shape)
{
    if (!place) return 0;
    if (align < n || offset_elements(shape) % n) return offset_anywhere();
    if (offset_is_exact(place)) return offset_in_element(offset_exact(offset_value(place) & -(int64_t)n), shape);
    uint32_t stride = offset_stride(place), residue = offset_residue(place), level = offset_window(place);
    if (offset_is_element(place)) return offset_element(residue - residue % n);
    if (!offset_has_windows(shape)) level = offset_moved(place, 1 - (int64_t)n, shape);
    while (offset_has_windows(shape) && (uint32_t)shape->windows[level].start % n)
        level = shape->windows[level].parent;
    return stride % n ? offset_class(n, 0, level) : offset_class(stride, residue - residue % n, level);
}

/* Whether a byte is in the bounds of a class. */
static inline bool offset_bounds(offset_t class, int64_t at, const pta_shape *shape)
{
    if (!offset_has_windows(shape)) return at >= offset_least(class);
    const shape_window *w = &shape->windows[offset_window(class)];
    return !offset_window(class) || (at >= w->start && at < w->end);
}

/* Whether both may be the same byte. */
static inline bool offset_meet(offset_t a, offset_t b, const pta_shape *shape)
{
    if (offset_is_exact(a)) return offset_is_exact(b) ? a == b : offset_meet(b, a, shape);
    uint32_t step = offset_step(a);
    if (offset_is_single(b)) {
        int64_t at = offset_at(b);
        if (!step) return at == offset_residue(a);
        int64_t residue = at % (int64_t)step;
        return (residue < 0 ? residue + step : residue) == offset_residue(a) && offset_bounds(a, at, shape);
    }
    if (!step) return offset_meet(b, a, shape);
    if (offset_has_windows(shape) && !shape_holds(shape, offset_window(a), offset_window(b)) &&
        !shape_holds(shape, offset_window(b), offset_window(a)))
        return false;
    uint64_t g = offset_gcd(step, offset_step(b));
    return offset_residue(a) % g == offset_residue(b) % g;
}

/* Whether all bytes of b are in a. */
static inline bool offset_covers(offset_t a, offset_t b, const pta_shape *shape)
{
    if (offset_is_exact(a)) return a == b;
    if (offset_is_exact(b)) return offset_meet(a, b, shape);
    uint32_t step = offset_step(a);
    if (!step) return a == b;
    if (offset_is_element(b)) return offset_meet(a, b, shape);
    if (offset_step(b) % step || offset_residue(b) % step != offset_residue(a)) return false;
    return offset_has_windows(shape) ? shape_holds(shape, offset_window(a), offset_window(b))
                                     : offset_window(a) <= offset_window(b);
}

static inline uint32_t offset_bound_of(offset_t place, const pta_shape *shape)
{
    if (!offset_is_single(place)) return offset_window(place);
    return offset_has_windows(shape) ? shape_around(shape, offset_at(place)) : offset_level(offset_at(place));
}

/* The smallest class that covers both, if they are less than OFFSET_MAX_STRIDE apart or one of them has a step. */
static inline offset_t offset_join(offset_t a, offset_t b, const pta_shape *shape)
{
    int64_t at = offset_at(a), bt = offset_at(b);
    uint64_t g = offset_gcd((uint64_t)(at < bt ? bt - at : at - bt), offset_gcd(offset_step(a), offset_step(b)));
    if (!g) return offset_is_exact(a) ? b : a;
    uint32_t x = offset_bound_of(a, shape), y = offset_bound_of(b, shape);
    return offset_class(g, at, offset_has_windows(shape) ? shape_join(shape, x, y) : x < y ? x : y);
}

#endif
