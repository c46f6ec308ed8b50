/* Places in the user's words: variables by their names, the heap by type and member, or by who allocates it. */
#include "static/detect/private.h"

#include <stdio.h>
#include <stdlib.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Without what a compiler adds to a name. */
static void plain_name(const char *name, char *to, size_t size)
{
    snprintf(to, size, "%s", name);
    char *dot = strchr(to, '.');
    if (dot && dot != to) *dot = 0;
}

/* A section is no name for what lies in it. */
static bool has_name(const pta_site *site)
{
    return site->name && site->name[0] != '.';
}

static void name_static(const detect *d, const pta_place *place, char *to, size_t size)
{
    const pta_site *site = &d->program->sites.data[place->site];
    char name[160];
    const image_variable *global = site->kind == PTA_STATIC && has_name(site)
                                       ? image_global_at(d->program->modules[site->module]->img, site->start)
                                       : NULL;
    if (global && global->name)
        plain_name(global->name, name, sizeof name);
    else if (has_name(site))
        plain_name(site->name, name, sizeof name);
    else
        snprintf(name, sizeof name, "data at 0x%llx", (unsigned long long)site->start + (place->exact && !site->type ? (uint64_t)place->offset : 0));
    uint64_t offset;
    const image_type *type = detect_place_type(d, place, &offset);
    if (!place->exact && site->type && site->type->kind == IMAGE_TYPE_ARRAY && type == site->type->target) {
        char array[180];
        snprintf(array, sizeof array, "%s[*]", name);
        image_describe(type, array, offset, to, size);
    } else if (!place->exact) {
        snprintf(to, size, place->stride > 1 ? "%s[*]" : "%s", name);
    } else if (site->type) {
        image_describe(site->type, name, offset, to, size);
    } else if (place->offset && (has_name(site) || global)) {
        snprintf(to, size, "%s%+d", name, place->offset);
    } else {
        snprintf(to, size, "%s", name);
    }
}

/* The call that the user wants to know: where the object was allocated, the outermost of wrappers. */
static void name_heap(const detect *d, const pta_place *place, const detect_known *member, char *to, char *key, size_t size, char **about)
{
    uint64_t offset, addr;
    uint32_t module;
    const image_type *type = detect_place_type(d, place, &offset);
    char where[200] = "", who[160] = "?";
    uint32_t level = 0;
    while (pta_heap_outer_call(d->p, place, level, &module, &addr))
        level++;
    if (level) {
        const lift_func *f = lift_func_covering(d->program->modules[module], addr);
        image_line line;
        plain_name(f ? f->name : "?", who, sizeof who);
        if (image_line_at(d->program->modules[module]->img, addr, &line) && line.file)
            snprintf(where, sizeof where, "allocated in %s, %s:%u", who, base_name(line.file), line.line);
        else
            snprintf(where, sizeof where, "allocated in %s at 0x%llx", who, (unsigned long long)addr);
    }
    if (*where) *about = base_format("%s", where);
    bool typed = type && type->name && *type->name;
    const detect_known *of_object = typed && member ? detect_known_at(d, type, offset) : NULL;
    if (of_object && of_object->type == member->type) member = NULL;
    if (member) { /* who accesses it knows best what it is */
        detect_member_name(&member->is, to, size);
        snprintf(key, size, "%s", to);
    } else if (typed) {
        image_describe(type, type->name, offset, to, size);
        snprintf(key, size, "%s", to);
    } else if (place->exact && place->offset) {
        snprintf(to, size, "the object allocated in %s, %d bytes into it", who, place->offset);
        snprintf(key, size, "heap %s+%d", who, place->offset);
    } else {
        snprintf(to, size, "the object allocated in %s", who);
        snprintf(key, size, "heap %s", who);
    }
}

static void find_name(const detect *d, const pta_place *place, const detect_known *member, char **location, char **key, char **about);

void detect_lock_name(const detect *d, uint32_t lock, char *to, size_t size)
{
    pta_place place;
    char *location, *key, *about;
    if (!hb_lock_place(d->h, lock, &place)) {
        hb_one_lock_name(d->h, lock, to, size);
        return;
    }
    uint8_t kind = d->program->sites.data[place.site].kind;
    if (kind == PTA_EXTERNAL || kind == PTA_WILD) {
        snprintf(to, size, "a lock that is not known");
        return;
    }
    find_name(d, &place, NULL, &location, &key, &about);
    static const char *const inside[] = {".__", "._M_"}; /* how the library makes a lock is not what the user calls it */
    for (unsigned i = 0; i < 2; i++) {
        char *own = strstr(location, inside[i]);
        if (own && own != location) *own = 0;
    }
    bool bare = !strncmp(location, "data at ", 8);
    snprintf(to, size, "%s%s", bare ? "lock" : "", location + (bare ? 4 : 0));
    free(location);
    free(key);
    free(about);
}

static void find_name(const detect *d, const pta_place *place, const detect_known *member, char **location, char **key, char **about)
{
    const pta_site *site = &d->program->sites.data[place->site];
    char text[300], same[300], function[160];
    *about = NULL;
    switch (site->kind) {
    case PTA_HEAP: name_heap(d, place, member, text, same, sizeof text, about); break;
    case PTA_FRAME:
        plain_name(d->program->funcs.data[site->func].name, function, sizeof function);
        name_static(d, place, text, sizeof text);
        if (!site->name) snprintf(text, sizeof text, "a variable");
        snprintf(same, sizeof same, "%.140s in %.150s", text, function);
        snprintf(text, sizeof text, "%s", same);
        break;
    case PTA_STATIC:
    case PTA_TLS:
        name_static(d, place, text, sizeof text);
        if (has_name(site))
            snprintf(same, sizeof same, "%s", text);
        else
            snprintf(same, sizeof same, "data"); /* its address moves */
        break;
    default:
        snprintf(text, sizeof text, site->kind == PTA_LIBRARY ? "data of the library (%s)" : "memory that code outside may know",
                 site->name ? site->name : "");
        snprintf(same, sizeof same, "%s", text);
    }
    *location = base_format("%s", text);
    *key = base_format("%s", same);
}

/* --- many pairs are at one place ------------------------------------------------------------------------------------------------ */

typedef struct {
    pta_place place;
    const image_type *type; /* of the member, or NULL: modules have each their own */
    uint32_t at, number;
    char *location, *key, *about;
} known_name;

struct detect_names {
    VEC(known_name) all;
    map64 numbers;
};

void detect_names_close(detect *d)
{
    for (uint32_t i = 0; d->names && i < d->names->all.len; i++) {
        free(d->names->all.data[i].location);
        free(d->names->all.data[i].key);
        free(d->names->all.data[i].about);
    }
    if (d->names) vec_free(&d->names->all);
    if (d->names) map_free(&d->names->numbers);
    free(d->names);
}

static bool is_at(const known_name *n, const pta_place *p, const detect_known *member)
{
    if (n->type != (member ? member->is.type : NULL) || (member && (n->at != member->is.at || n->number != member->number))) return false;
    return n->place.site == p->site && n->place.context == p->context && n->place.exact == p->exact &&
           n->place.offset == p->offset && n->place.stride == p->stride && n->place.element == p->element && n->place.least == p->least &&
           n->place.end == p->end;
}

static char *copy(const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    return text ? memcpy(base_alloc(size), text, size) : NULL;
}

void detect_name(detect *d, const pta_place *place, const detect_known *member, char **location, char **key, char **about)
{
    const uint64_t of = member ? member->number : HB_NONE;
    if (!d->names) d->names = base_alloc_zero(1, sizeof *d->names);
    uint64_t hash = map_hash(map_hash((uint64_t)place->site << 32 | place->context) + ((uint64_t)(uint32_t)place->offset << 32 | of));
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&d->names->numbers, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = d->names->all.len;
            known_name n = {.place = *place};
            if (member) n.type = member->is.type, n.at = member->is.at, n.number = member->number;
            find_name(d, place, member, &n.location, &n.key, &n.about);
            vec_push(&d->names->all, n);
        }
        const known_name *known = &d->names->all.data[*at];
        if (!is_at(known, place, member)) continue;
        *location = copy(known->location);
        *key = copy(known->key);
        *about = copy(known->about);
        return;
    }
}
