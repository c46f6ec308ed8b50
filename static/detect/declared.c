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

/* `*rest`: how many bytes of it lie behind. */
static bool find_member(const image_type *type, uint64_t at, detect_member *out, uint64_t *rest)
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

void detect_member_name(const detect_member *m, char *to, size_t size)
{
    image_describe(m->type, m->type->name, m->at, to, size);
}

typedef struct {
    const image_type *type;
    uint64_t at;
    bool known;
    detect_known member;
} asked_member;

typedef struct {
    const pta_access *access;
    uint32_t func;
    uint32_t member; /* in `asked` */
} declared_access;

struct detect_declarations {
    VEC(declared_access) accesses; /* that have a type, by function and instruction */
    uint32_t *base;                /* per function: the number of its first instruction */
    uint32_t *first;               /* per instruction: the first of its accesses, or MAP_NONE */
    VEC(asked_member) asked;
    map64 asked_map;               /* type and byte: in `asked` */
    VEC(const image_type *) types; /* by number; modules have each their own, they are the same by name and size */
    map64 type_map;
    map64 member_map;              /* number of a type and byte of it: number of the member */
};
typedef struct detect_declarations declarations;

static uint32_t type_number(declarations *all, const image_type *type)
{
    uint64_t hash = map_hash(detect_text_hash(type->name) + type->size);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&all->type_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = all->types.len;
            vec_push(&all->types, type);
            return *at;
        }
        const image_type *known = all->types.data[*at];
        if (known == type || (known->size == type->size && !strcmp(known->name, type->name))) return *at;
    }
}

static uint32_t find_asked(declarations *all, const image_type *type, uint64_t at)
{
    uint64_t hash = map_hash((uint64_t)(uintptr_t)type * 31 + at);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *number = map_at(&all->asked_map, hash & ~(1ull << 63));
        if (*number != MAP_NONE && (all->asked.data[*number].type != type || all->asked.data[*number].at != at)) continue;
        if (*number != MAP_NONE) return *number;
        *number = all->asked.len;
        asked_member own = {.type = type, .at = at};
        own.known = find_member(type, at, &own.member.is, &own.member.rest);
        if (own.known) {
            own.member.type = type_number(all, own.member.is.type);
            uint32_t *same = map_at(&all->member_map, (uint64_t)own.member.type << 32 | own.member.is.at);
            if (*same == MAP_NONE) *same = all->member_map.count - 1; /* the next one */
            own.member.number = *same;
        }
        vec_push(&all->asked, own);
        return all->asked.len - 1;
    }
}

const detect_known *detect_known_at(const detect *d, const image_type *type, uint64_t at)
{
    uint32_t number = find_asked(d->declared, type, at); /* which may move the table */
    const asked_member *asked = &d->declared->asked.data[number];
    return asked->known ? &asked->member : NULL;
}

void detect_declared_open(detect *d)
{
    declarations *all = d->declared = base_alloc_zero(1, sizeof *all);
    all->base = base_alloc_zero((size_t)d->program->funcs.len + 1, sizeof *all->base);
    for (uint32_t f = 0; f < d->program->funcs.len; f++)
        all->base[f + 1] = all->base[f] + (d->program->funcs.data[f].lift ? d->program->funcs.data[f].lift->insn_count : 0);
    const size_t insns = all->base[d->program->funcs.len];
    all->first = base_alloc((insns + 1) * sizeof *all->first);
    memset(all->first, 0xff, insns * sizeof *all->first);
    for (uint32_t f = 0; f < d->program->funcs.len; f++) {
        uint32_t count;
        const pta_access *own = pta_accesses(d->program, f, &count);
        for (uint32_t a = 0; a < count; a++) {
            if (!own[a].type) continue;
            uint32_t *first = &all->first[all->base[f] + own[a].insn];
            if (*first == MAP_NONE) *first = all->accesses.len;
            vec_push(&all->accesses, ((declared_access){&own[a], f, find_asked(all, own[a].type, (uint64_t)own[a].at)}));
        }
    }
}

void detect_declared_close(detect *d)
{
    declarations *all = d->declared;
    vec_free(&all->accesses);
    vec_free(&all->asked);
    vec_free(&all->types);
    free(all->base);
    free(all->first);
    map_free(&all->asked_map);
    map_free(&all->type_map);
    map_free(&all->member_map);
    free(all);
}

static const declared_access *find_declared(const detect *d, uint32_t func, uint32_t insn, uint16_t flags)
{
    const declarations *all = d->declared;
    uint32_t at = flags & HB_LIBRARY ? MAP_NONE : all->first[all->base[func] + insn];
    for (; at < all->accesses.len && all->accesses.data[at].func == func && all->accesses.data[at].access->insn == insn; at++)
        if (all->accesses.data[at].access->flags == flags) return &all->accesses.data[at];
    return NULL;
}

const pta_access *detect_declared(const detect *d, uint32_t func, uint32_t insn, uint16_t flags)
{
    const declared_access *found = find_declared(d, func, insn, flags);
    return found ? found->access : NULL;
}

bool detect_declared_member(const detect *d, const hb_touch *t, detect_known *out)
{
    const declared_access *found = find_declared(d, t->func, t->insn, t->flags);
    if (!found || !d->declared->asked.data[found->member].known) return false;
    *out = d->declared->asked.data[found->member].member;
    return true;
}
