/* What lies at a byte of a typed thing. */
#include "static/hb/private.h"

hb_typed hb_type_at(const image_type *type, uint64_t offset, uint32_t width)
{
    hb_typed t = {0};
    for (unsigned depth = 0; type && depth < 16; depth++) {
        t.is_atomic |= type->is_atomic;
        t.is_volatile |= type->is_volatile;
        if (type->kind == IMAGE_TYPE_ARRAY) {
            if (!type->target || !type->target->size) return t;
            offset %= type->target->size;
            type = type->target;
            continue;
        }
        if (type->kind != IMAGE_TYPE_STRUCT && type->kind != IMAGE_TYPE_UNION) break;
        const image_type *next = NULL;
        for (uint32_t i = 0; i < type->member_count; i++) {
            const image_member *m = &type->members[i];
            if (!m->type || offset < m->offset || offset >= m->offset + (m->type->size ? m->type->size : 1)) continue;
            next = m->type;
            offset -= m->offset;
            break;
        }
        if (!next) return t;
        type = next;
    }
    if (type && (!width || type->size >= width)) t.scalar = type;
    return t;
}
