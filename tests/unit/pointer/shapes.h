/* Shapes for the tests of places and of sets of them: nothing known, arrays, and windows, by hand and from a type. */
#ifndef RACE_TEST_SHAPES_H
#define RACE_TEST_SHAPES_H

#include "static/pointer/offset.h"

#include <stdlib.h>

enum { SHAPES = 8 };

typedef struct {
    const char *name;
    const pta_shape *shape;
} named_shape;

static named_shape all_shapes[SHAPES];
static arena shape_memory;

static inline const pta_shape *shape_by_hand(uint32_t element, uint64_t total, uint32_t count, const shape_window *windows)
{
    pta_shape *shape = arena_alloc(&shape_memory, sizeof *shape + count * sizeof *windows);
    shape->element = element;
    shape->total = total;
    shape->count = count;
    if (count) memcpy(shape->windows, windows, count * sizeof *windows);
    return shape;
}

/* struct { char head[12]; int number; struct { struct { char a[10]; char b[10]; } both; char rest[12]; } inner; char tail[]; } */
static inline const pta_shape *shape_from_type(void)
{
    static const image_type byte = {.kind = IMAGE_TYPE_INT, .size = 1}, number = {.kind = IMAGE_TYPE_INT, .size = 4};
    static const image_type ten = {.kind = IMAGE_TYPE_ARRAY, .size = 10, .target = &byte, .count = 10};
    static const image_type twelve = {.kind = IMAGE_TYPE_ARRAY, .size = 12, .target = &byte, .count = 12};
    static const image_type open = {.kind = IMAGE_TYPE_ARRAY, .target = &byte};
    static const image_member both_members[] = {{.name = "a", .type = &ten}, {.name = "b", .offset = 10, .type = &ten}};
    static const image_type both = {.kind = IMAGE_TYPE_STRUCT, .size = 20, .members = both_members, .member_count = 2};
    static const image_member inner_members[] = {{.name = "both", .type = &both},
                                                 {.name = "rest", .offset = 20, .type = &twelve}};
    static const image_type inner = {.kind = IMAGE_TYPE_STRUCT, .size = 32, .members = inner_members, .member_count = 2};
    static const image_member members[] = {{.name = "head", .type = &twelve},
                                           {.name = "number", .offset = 12, .type = &number},
                                           {.name = "inner", .offset = 16, .type = &inner},
                                           {.name = "tail", .offset = 48, .type = &open}};
    static const image_type type = {.kind = IMAGE_TYPE_STRUCT, .size = 48, .members = members, .member_count = 4};
    return shape_build(&shape_memory, &type, 0, 0);
}

static inline void shapes_make(void)
{
    /* one that begins where its struct does, neighbours, and one at the beginning of the object */
    static const shape_window nested[] = {{0, INT32_MAX, 0}, {0, 12, 0}, {16, 40, 0}, {16, 28, 2}, {16, 25, 3}, {28, 40, 2}};
    all_shapes[0] = (named_shape){"unknown", NULL};
    all_shapes[1] = (named_shape){"array", shape_by_hand(12, 0, 0, NULL)};
    all_shapes[2] = (named_shape){"array of known size", shape_by_hand(12, 36, 0, NULL)};
    all_shapes[3] = (named_shape){"one element", shape_by_hand(12, 12, 0, NULL)};
    all_shapes[4] = (named_shape){"windows", shape_by_hand(0, 0, 6, nested)};
    all_shapes[5] = (named_shape){"array with windows", shape_by_hand(44, 0, 6, nested)};
    all_shapes[6] = (named_shape){"one element with windows", shape_by_hand(44, 44, 6, nested)};
    all_shapes[7] = (named_shape){"windows of a type", shape_from_type()};
}

static inline void shapes_free(void)
{
    arena_free(&shape_memory);
}

#endif
