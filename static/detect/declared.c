/* What accesses are to by declaration: the struct that the pointer is declared to point to, and the member at the offset.
 *
 * A member is the innermost named struct around the accessed bytes with the place of a scalar, an array or a union in it, so that
 * `conn->thread->stats.hits` and `stats->hits` are one. */
#include "static/detect/private.h"

enum { DEPTH = 16 };

static const image_member *member_at(const image_type *type, uint64_t at)
{
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        if (m->type && at >= m->offset && at - m->offset < (m->type->size ? m->type->size : 1)) return m;
    }
    return NULL;
}

bool detect_member_at(const image_type *type, uint64_t at, detect_member *out, uint64_t *rest)
{
    uint64_t base = 0; /* of `type` in out->type */
    *out = (detect_member){0};
    for (unsigned depth = 0; type && depth < DEPTH; depth++) {
        if (type->kind == IMAGE_TYPE_ARRAY && type->target && type->target->kind == IMAGE_TYPE_STRUCT && type->target->size) {
            at %= type->target->size;
            type = type->target;
            continue;
        }
        bool named = type->name && *type->name;
        if (type->kind == IMAGE_TYPE_STRUCT && type->is_declaration) return false;
        if (type->kind == IMAGE_TYPE_STRUCT || (type->kind == IMAGE_TYPE_UNION && !out->type)) {
            if (named) {
                out->type = type;
                base = 0;
            }
            const image_member *m = type->kind == IMAGE_TYPE_UNION ? NULL : member_at(type, at);
            if (m && !m->bit_size) {
                base += m->offset;
                at -= m->offset;
                type = m->type;
                continue;
            }
            if (!m && type->kind == IMAGE_TYPE_STRUCT) return false; /* between two, or behind all of them */
            if (m) base += at, at = 0; /* bits share their byte */
        }
        if (!out->type || base > UINT32_MAX) return false;
        uint64_t size = type->kind == IMAGE_TYPE_STRUCT ? 1 : type->size ? type->size : 1;
        out->at = (uint32_t)base;
        out->size = size < UINT32_MAX ? (uint32_t)size : 0;
        *rest = at < size ? size - at : 1;
        return true;
    }
    return false;
}

uint64_t detect_text_hash(const char *text)
{
    uint64_t hash = 7;
    for (; *text; text++)
        hash = hash * 31 + (uint8_t)*text;
    return hash;
}

bool detect_same_type(const image_type *a, const image_type *b)
{
    return a == b || (a->size == b->size && !strcmp(a->name, b->name));
}

bool detect_same_member(const detect_member *a, const detect_member *b)
{
    return a->at == b->at && detect_same_type(a->type, b->type);
}

void detect_member_name(const detect_member *m, char *to, size_t size)
{
    image_describe(m->type, m->type->name, m->at, to, size);
}

void detect_declared_open(detect *d)
{
    for (uint32_t f = 0; f < d->program->funcs.len; f++) {
        uint32_t count;
        const pta_access *all = pta_accesses(d->program, f, &count);
        for (uint32_t a = count; a-- > 0;)
            if (all[a].type) *map_at(&d->declared, (uint64_t)f << 32 | all[a].insn) = a;
    }
}

void detect_declared_close(detect *d)
{
    map_free(&d->declared);
}

const pta_access *detect_declared(const detect *d, uint32_t func, uint32_t insn, uint16_t flags)
{
    uint32_t count, at = flags & HB_LIBRARY ? MAP_NONE : map_get(&d->declared, (uint64_t)func << 32 | insn);
    if (at == MAP_NONE) return NULL;
    const pta_access *all = pta_accesses(d->program, func, &count);
    for (; at < count && all[at].insn == insn; at++)
        if (all[at].type && all[at].flags == flags) return &all[at];
    return NULL;
}

bool detect_declared_member(const detect *d, const hb_touch *t, detect_member *out)
{
    uint64_t rest;
    const pta_access *access = detect_declared(d, t->func, t->insn, t->flags);
    return access && detect_member_at(access->type, (uint64_t)access->at, out, &rest);
}
