/* Ids of warnings: a hash of what survives a rebuild (module, functions without compiler suffixes, kinds of access, location in
 * words), and the number among equals; never of addresses or lines. And the order in which warnings are shown. */
#include "static/detect/private.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t add_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

static uint64_t add_function(const detect *d, uint64_t hash, const detect_access *a)
{
    const char *name = d->program->funcs.data[a->func].name, *path = detect_image(d, a->func)->path, *slash = strrchr(path, '/');
    char plain[200];
    snprintf(plain, sizeof plain, "%s", name);
    if (!strncmp(plain, "sub_", 4)) snprintf(plain, sizeof plain, "sub"); /* its name is its address */
    char *dot = strchr(plain, '.');
    if (dot && dot != plain) *dot = 0;
    return add_text(add_text(hash, slash ? slash + 1 : path), plain);
}

static uint64_t hash_of(const detect *d, const detect_warning *w)
{
    uint64_t hash = add_text(0xcbf29ce484222325u, w->kind == DETECT_RACE ? "race" : "deadlock");
    uint64_t sides = 0; /* either order */
    for (uint32_t i = 0; i < w->access_count; i++) {
        uint64_t side = add_function(d, 0x84222325cbf29ce4u, &w->accesses[i]);
        side = add_text(side, w->accesses[i].write ? w->accesses[i].read ? "rw" : "w" : "r");
        sides += side * (side | 1);
    }
    return add_text(hash, w->key) ^ sides * 0x9e3779b97f4a7c15u;
}

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int by_rank(const void *a, const void *b, void *with)
{
    const detect *d = with;
    const detect_warning *x = a, *y = b;
    if (x->confidence != y->confidence) return x->confidence < y->confidence ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    int order = compare_text(x->location, y->location);
    for (uint32_t i = 0; !order && i < x->access_count && i < y->access_count; i++) {
        if (x->accesses[i].addr != y->accesses[i].addr) return x->accesses[i].addr < y->accesses[i].addr ? -1 : 1;
        order = compare_text(d->program->funcs.data[x->accesses[i].func].name, d->program->funcs.data[y->accesses[i].func].name);
        if (!order && x->accesses[i].origin != y->accesses[i].origin) order = x->accesses[i].origin < y->accesses[i].origin ? -1 : 1;
    }
    return order;
}

void detect_identify(detect *d)
{
    if (d->warnings.len) qsort_r(d->warnings.data, d->warnings.len, sizeof *d->warnings.data, by_rank, d);
    map64 seen = {0};
    for (uint32_t i = 0; i < d->warnings.len; i++) {
        detect_warning *w = &d->warnings.data[i];
        uint64_t hash = hash_of(d, w);
        uint32_t *count = map_at(&seen, hash & ~(1ull << 63));
        *count = *count == MAP_NONE ? 1 : *count + 1;
        if (*count > 1) hash ^= (uint64_t)*count * 0x9e3779b97f4a7c15u;
        snprintf(w->id, sizeof w->id, "%c%012llx", w->kind == DETECT_RACE ? 'R' : 'D', (unsigned long long)(hash >> 16));
    }
    map_free(&seen);
}
