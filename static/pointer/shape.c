/* Shapes from types. */
#include "static/pointer/shape.h"

typedef struct {
    shape_window windows[SHAPE_WINDOWS];
    uint32_t count;
} builder;

enum { DEPTH = 12, LARGEST = 1 << 28 };

static uint64_t last_offset(const image_type *type)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < type->member_count; i++)
        if (type->members[i].offset > last) last = type->members[i].offset;
    return last;
}

/* The window inside of `around` that a stretch meets; 0: none. */
static uint32_t find_met(const builder *b, uint32_t around, int64_t start, int64_t end)
{
    for (uint32_t i = around + 1; i < b->count; i++)
        if (b->windows[i].parent == around && start < b->windows[i].end && end > b->windows[i].start) return i;
    return 0;
}

/* Windows of the members of a struct. The last one ends where the struct does: it may be longer than declared. Where some cross
 * others (C++ puts members into the padding of a base class) there are none. */
static void add_members(builder *b, const image_type *type, int64_t at, uint32_t around, unsigned depth)
{
    const shape_window *outer = &b->windows[around];
    uint64_t last = last_offset(type);
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        if (!m->type || m->bit_size || m->offset > LARGEST || m->type->size > LARGEST) continue;
        image_type_kind kind = m->type->kind;
        if (kind != IMAGE_TYPE_ARRAY && kind != IMAGE_TYPE_STRUCT && kind != IMAGE_TYPE_UNION) continue;
        int64_t start = at + (int64_t)m->offset, end = start + (int64_t)m->type->size;
        if (m->offset == last || end > outer->end) end = outer->end;
        uint32_t met = find_met(b, around, start, end);
        if (met && (start < b->windows[met].start || end > b->windows[met].end)) {
            b->count = around + 1;
            return;
        }
        if (met || end - start <= 8 || b->count == SHAPE_WINDOWS) continue;
        b->windows[b->count] = (shape_window){(int32_t)start, (int32_t)end, (uint8_t)around};
        uint32_t window = b->count++;
        if (kind == IMAGE_TYPE_STRUCT && depth < DEPTH) add_members(b, m->type, start, window, depth + 1);
    }
}

pta_shape *shape_build(arena *memory, const image_type *type, uint32_t element, uint64_t total)
{
    if (!type && !element) return NULL;
    builder b = {0};
    if (type && type->size && type->size < LARGEST) {
        b.windows[b.count++] = (shape_window){0, INT32_MAX, 0};
        if (type->kind == IMAGE_TYPE_STRUCT) add_members(&b, type, 0, 0, 0);
    }
    pta_shape *shape = arena_alloc(memory, sizeof *shape + b.count * sizeof *shape->windows);
    shape->element = element;
    shape->total = total;
    shape->type = type;
    shape->count = b.count;
    memcpy(shape->windows, b.windows, b.count * sizeof *b.windows);
    return shape;
}

static bool may_point(const image_type *type, uint64_t at, unsigned depth);

static bool is_bytes(const image_type *type)
{
    return type->kind == IMAGE_TYPE_ARRAY && type->target && type->target->kind == IMAGE_TYPE_INT && type->target->size == 1;
}

static bool is_number(const image_type *type)
{
    return type->kind == IMAGE_TYPE_INT || type->kind == IMAGE_TYPE_FLOAT || type->kind == IMAGE_TYPE_BOOL ||
           type->kind == IMAGE_TYPE_ENUM;
}

/* One of several views; bytes beside another view are only bytes. */
static bool view_may_point(const image_type *type, uint64_t at, unsigned depth)
{
    bool known = false;
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_type *view = type->members[i].type;
        if (!view || is_bytes(view) || at >= view->size) continue;
        known = true;
        if (type->members[i].is_address || (!is_number(view) && may_point(view, at, depth + 1))) return true;
    }
    return !known;
}

static bool member_may_point(const image_type *type, uint64_t at, unsigned depth)
{
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        if (!m->type || m->is_address || at < m->offset || at - m->offset >= m->type->size) continue;
        return !is_number(m->type) && may_point(m->type, at - m->offset, depth + 1);
    }
    return true;
}

static bool may_point(const image_type *type, uint64_t at, unsigned depth)
{
    if (!type || depth > DEPTH) return true;
    if (type->kind == IMAGE_TYPE_STRUCT) return member_may_point(type, at, depth);
    if (type->kind == IMAGE_TYPE_UNION) return view_may_point(type, at, depth);
    if (type->kind != IMAGE_TYPE_ARRAY || !type->target || !type->target->size) return true;
    if (is_number(type->target)) return is_bytes(type);
    return may_point(type->target, at % type->target->size, depth + 1);
}

bool shape_type_may_point(const image_type *type, uint64_t at)
{
    return may_point(type, at, 0);
}

bool shape_may_point(const pta_shape *shape, int64_t at)
{
    return !shape || !shape->type || at < 0 || may_point(shape->type, (uint64_t)at, 0);
}
