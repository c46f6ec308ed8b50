/* What is known of the inside of an object: the size of its elements, and the arrays and structs in it as windows, from DWARF
 * types. An index that starts in an array stays in it. Windows are nested or apart, numbered outer before inner; window 0 is
 * everything. The last member of a struct ends where the struct does, that of an object nowhere: it may be an array that is
 * longer than declared. */
#ifndef RACE_POINTER_SHAPE_H
#define RACE_POINTER_SHAPE_H

#include "static/base/base.h"
#include "static/image/image.h"

enum { SHAPE_WINDOWS = 63 };

typedef struct {
    int32_t start, end;
    uint8_t parent;
} shape_window;

typedef struct pta_shape {
    uint32_t element; /* the object is an array of elements of that size, and so are all places in it; 0: unknown */
    uint64_t total;   /* bytes; 0: unknown, or known elsewhere */
    const image_type *type; /* of the object, or of an element; or NULL */
    uint32_t count;   /* of windows; 0: none are known, not even window 0 */
    shape_window windows[];
} pta_shape;

/* Of a type, or of elements of it; NULL: nothing is known. */
pta_shape *shape_build(arena *memory, const image_type *type, uint32_t element, uint64_t total);

/* Whether the word at a place may hold a pointer. A member of a struct that is declared as a number holds none, unless it is
 * declared as a number that holds addresses; bytes may hold anything. */
bool shape_may_point(const pta_shape *shape, int64_t at);
bool shape_type_may_point(const image_type *type, uint64_t at);

/* The smallest window around a place. */
static inline uint32_t shape_around(const pta_shape *shape, int64_t at)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < shape->count; i++)
        if (at >= shape->windows[i].start && at < shape->windows[i].end) found = i;
    return found;
}

/* The window that an index leads through: the largest thing that begins at a place, else the smallest around it. A pointer to
 * the first member is also one to its struct. */
static inline uint32_t shape_indexed(const pta_shape *shape, int64_t at)
{
    if (!at) return 0;
    for (uint32_t i = 1; i < shape->count; i++)
        if (at == shape->windows[i].start) return i;
    return shape_around(shape, at);
}

static inline bool shape_holds(const pta_shape *shape, uint32_t outer, uint32_t inner)
{
    while (inner > outer)
        inner = shape->windows[inner].parent;
    return inner == outer;
}

static inline uint32_t shape_join(const pta_shape *shape, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a > b)
            a = shape->windows[a].parent;
        else
            b = shape->windows[b].parent;
    }
    return a;
}

#endif
