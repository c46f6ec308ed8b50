/* Places inside typed things: in words for people, and as the scalar that an access touches. */
#include "static/image/image.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_DEPTH = 64 }; /* damaged DWARF can make a struct contain itself */

static uint64_t member_size(const image_member *m)
{
    if (m->bit_size) return (m->bit_offset + m->bit_size + 7u) / 8;
    return m->type ? m->type->size : 0;
}

/* The member that `offset` lies in: the last to begin before it, since members may lie in the padding of a base class;
 * of several, as in a union, the first. A flexible array at the end reaches as far as needed. */
static const image_member *member_at(const image_type *type, uint64_t offset)
{
    const image_member *found = NULL, *open = NULL;
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        if (offset < m->offset) continue;
        if (offset - m->offset < member_size(m) && (!found || m->offset > found->offset)) found = m;
        if (m->type && m->type->kind == IMAGE_TYPE_ARRAY && !m->type->count) open = m;
    }
    return found ? found : open;
}

typedef struct {
    char *to;
    size_t size, used;
} text;

__attribute__((format(printf, 2, 3))) static void append(text *t, const char *format, ...)
{
    va_list args;
    if (t->used >= t->size) return;
    va_start(args, format);
    int n = vsnprintf(t->to + t->used, t->size - t->used, format, args);
    va_end(args);
    if (n > 0) t->used += (size_t)n;
}

void image_describe(const image_type *type, const char *name, uint64_t offset, char *to, size_t size)
{
    text t = {to, size, 0};
    if (!size) return;
    to[0] = 0;
    append(&t, "%s", name);
    for (int depth = 0; type && depth < MAX_DEPTH; depth++) {
        if (type->kind == IMAGE_TYPE_ARRAY && type->target && type->target->size) {
            append(&t, "[%lu]", offset / type->target->size);
            offset %= type->target->size;
            type = type->target;
        } else if (type->kind == IMAGE_TYPE_STRUCT || type->kind == IMAGE_TYPE_UNION) {
            const image_member *m = member_at(type, offset);
            if (!m) break;
            if (*m->name) append(&t, ".%s", m->name);
            offset -= m->offset;
            type = m->type;
        } else {
            break;
        }
    }
    if (offset) append(&t, "+%lu", offset);
}

static bool is_scalar(const image_type *type)
{
    return type->kind != IMAGE_TYPE_STRUCT && type->kind != IMAGE_TYPE_UNION && type->kind != IMAGE_TYPE_ARRAY;
}

/* Compilers access a bit field by any of the bytes it lies in, up to the whole unit of its type. */
static bool touches_bits(const image_member *m, uint64_t offset, uint64_t size)
{
    uint64_t unit = m->type && m->type->size ? m->type->size : 1;
    uint64_t from = m->offset - m->offset % unit, to = from + unit, last = m->offset + member_size(m);
    if (to < last) to = last;
    return offset >= from && offset < last && m->offset < offset + size && offset + size <= to;
}

/* Steps are counted over the whole search, since unions of unions branch. */
static const image_type *scalar_at(const image_type *type, uint64_t offset, uint64_t size, unsigned depth,
                                   unsigned *steps)
{
    if (!type || depth >= MAX_DEPTH || !*steps) return NULL;
    --*steps;
    if (is_scalar(type)) return offset <= type->size && size <= type->size - offset && type->size ? type : NULL;
    if (type->kind == IMAGE_TYPE_ARRAY) {
        if (!type->target || !type->target->size) return NULL;
        return scalar_at(type->target, offset % type->target->size, size, depth + 1, steps);
    }
    const image_type *fits = NULL;
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        bool open = m->type && m->type->kind == IMAGE_TYPE_ARRAY && !m->type->count;
        if (m->bit_size) {
            if (!fits && touches_bits(m, offset, size)) fits = m->type;
            continue;
        }
        if (offset < m->offset || (offset - m->offset >= member_size(m) && !open)) continue;
        const image_type *inner = scalar_at(m->type, offset - m->offset, size, depth + 1, steps);
        if (inner && inner->size == size) return inner;
        if (!fits) fits = inner;
    }
    return fits;
}

const image_type *image_type_at(const image_type *type, uint64_t offset, uint64_t size)
{
    unsigned steps = 10000;
    return scalar_at(type, offset, size, 0, &steps);
}
