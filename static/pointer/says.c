/* What types and shapes say to the analysis, as hashes: two that say the same are the same to it. */
#include "static/pointer/says.h"

enum { DEPTH = 64 };

/* What shape_build and shape_may_point ask of it. */
static uint64_t type_hash(saying *s, const image_type *type, unsigned depth)
{
    if (!type || depth > DEPTH) return 1;
    uint32_t *known = map_at(&s->type_map, (uint64_t)(uintptr_t)type);
    if (*known != MAP_NONE) return s->types.data[*known];
    uint32_t at = *known = s->types.len;
    vec_push(&s->types, 0);
    uint64_t hash = map_hash(map_hash(map_hash(type->kind + 2ull) + type->size) + type->count);
    if (type->kind == IMAGE_TYPE_ARRAY) hash = map_hash(hash + type_hash(s, type->target, depth + 1));
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        hash = map_hash(map_hash(hash * 31 + m->offset) +
                        ((uint64_t)m->bit_offset << 32 | (uint64_t)m->bit_size << 1 | m->is_address));
        hash = map_hash(hash + type_hash(s, m->type, depth + 1));
    }
    return s->types.data[at] = hash;
}

uint64_t says_type(saying *s, const image_type *type)
{
    return type_hash(s, type, 0);
}

uint64_t says_shape(saying *s, const pta_shape *shape)
{
    if (!shape) return 0;
    uint64_t hash = map_hash(map_hash((uint64_t)shape->element << 32 | shape->count) + shape->total);
    hash = map_hash(hash + type_hash(s, shape->type, 0));
    for (uint32_t i = 0; i < shape->count; i++) {
        hash = map_hash(hash + ((uint64_t)(uint32_t)shape->windows[i].start << 32 | (uint32_t)shape->windows[i].end));
        hash = map_hash(hash + shape->windows[i].parent);
    }
    return hash | 1;
}

void says_free(saying *s)
{
    vec_free(&s->words);
    vec_free(&s->types);
    map_free(&s->type_map);
}
