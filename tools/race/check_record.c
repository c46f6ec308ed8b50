/* An analysis as a record: all that is printed of it, in words. Text, JSON, the saved state and `race watch` are made of it. */
#include "tools/race/check.h"

#include <stdlib.h>
#include <string.h>

/* A place in the words of its function and source. */
typedef struct {
    const char *function;
    const char *file; /* or NULL */
    uint32_t line, column;
    const char *path; /* of the module */
} check_place;

static check_place check_place_of(const check *c, uint32_t func, uint64_t addr)
{
    const pta_func *f = &c->program->funcs.data[func];
    const image *img = c->program->modules[f->module]->img;
    check_place place = {.function = f->name, .path = img->path};
    image_frame frames[16];
    uint32_t n = image_frames_at(img, addr, frames, 16), own = 0;
    image_line line;
    while (own + 1 < n && frames[own].at.file && strstr(frames[own].at.file, "/c++/")) /* inlined from the standard library */
        own++;
    if (n && frames[own].at.file) {
        place.file = frames[own].at.file;
        place.line = frames[own].at.line;
        place.column = frames[own].at.column;
        if (frames[own].function && n > own + 1) place.function = frames[own].function;
    } else if (image_line_at(img, addr, &line) && line.file) {
        place.file = line.file;
        place.line = line.line;
        place.column = line.column;
    }
    return place;
}

/* The same in the user's own code, when the access is in a function of the C++ library. */
static check_place check_place_at(const check *c, const detect_access *a)
{
    hb_point at = hb_user_point(c->order, a->at);
    if (at.instance == a->at.instance && at.insn == a->at.insn) return check_place_of(c, a->func, a->addr);
    pta_instance instance;
    pta_instance_at(c->result, at.instance, &instance);
    return check_place_of(c, instance.func, c->program->funcs.data[instance.func].lift->insns[at.insn].addr);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void say_point(const check *c, hb_point at, const char *how, char *to, size_t size)
{
    pta_instance instance;
    pta_instance_at(c->result, at.instance, &instance);
    const pta_func *f = &c->program->funcs.data[instance.func];
    check_place place = check_place_of(c, instance.func, f->lift->insns[at.insn].addr);
    if (place.file)
        snprintf(to, size, "%s %s, %s:%u", how, place.function, base_name(place.file), place.line);
    else
        snprintf(to, size, "%s %s", how, place.function);
}

/* Where an origin comes from, in words: "main", "thread worker, created in main at a.c:12". */
static void check_origin(const check *c, uint32_t origin, char *to, size_t size)
{
    uint32_t count;
    const hb_origin *o = &hb_origins(c->order, &count)[origin];
    if (o->kind == HB_MAIN) {
        snprintf(to, size, "main");
        return;
    }
    int n = snprintf(to, size, "%s %s", hb_kind_name(o->kind), hb_origin_name(c->order, origin));
    if (!o->sites.len || n < 0 || (size_t)n >= size) return;
    hb_point from = hb_user_point(c->order, o->sites.data[0]), caller;
    say_point(c, from, ", created in", to + n, size - (size_t)n);
    n = (int)strlen(to);
    if (hb_origin_caller(c->order, origin, &caller)) say_point(c, caller, ", called by", to + n, size - (size_t)n);
}

static const char *keep(arena *memory, const char *text)
{
    return text ? arena_string(memory, text, strlen(text)) : NULL;
}

typedef struct { /* what many warnings say alike, by number; NULL: not said yet */
    const check *c;
    arena *memory; /* of the record */
    const char **origins;
    VEC(const char *) locks;
} sayings;

static const char *say_origin(sayings *s, uint32_t origin)
{
    char text[400];
    if (!s->origins[origin]) {
        check_origin(s->c, origin, text, sizeof text);
        s->origins[origin] = keep(s->memory, text);
    }
    return s->origins[origin];
}

static const char *say_lock(sayings *s, uint32_t lock)
{
    char text[400];
    while (s->locks.len <= lock)
        vec_push(&s->locks, NULL);
    if (!s->locks.data[lock]) {
        detect_lock_name(s->c->found, lock, text, 300);
        if (hb_lock_shared(s->c->order, lock)) strcat(text, " (shared)");
        s->locks.data[lock] = keep(s->memory, text);
    }
    return s->locks.data[lock];
}

static store_place place_of(const check *c, const detect_access *a, arena *memory)
{
    check_place place = check_place_at(c, a);
    const pta_func *f = &c->program->funcs.data[a->func];
    return (store_place){.module = f->lift ? f->module : STORE_NONE, .func = f->lift ? f->lift->id : 0, .insn = a->at.insn,
                         .addr = a->addr, .function = keep(memory, place.function), .file = keep(memory, place.file),
                         .line = place.line, .column = place.column, .path = keep(memory, place.path)};
}

static void side_of(sayings *s, const detect_access *a, store_side *out)
{
    const check *c = s->c;
    arena *memory = s->memory;
    VEC(const char *) locks = {0};
    out->at = place_of(c, a, memory);
    out->write = a->write;
    out->read = a->read;
    out->atomic = a->atomic;
    out->origin = say_origin(s, a->origin);
    uint32_t lock;
    for (uint32_t i = 0; hb_lock_shown(c->order, a->locks, i, &lock); i++)
        vec_push(&locks, say_lock(s, lock));
    out->locks = arena_copy(memory, locks.data, locks.len * sizeof *locks.data);
    out->lock_count = locks.len;
    vec_free(&locks);
}

static const char *lock_of(const check *c, const detect_access *a, arena *memory)
{
    char text[300] = "a lock";
    if (a->lock != HB_NONE) detect_lock_name(c->found, a->lock, text, sizeof text);
    return keep(memory, text);
}

static void warning_of(sayings *s, const detect_warning *w, store_warning *out)
{
    const check *c = s->c;
    arena *memory = s->memory;
    *out = (store_warning){.kind = w->kind, .confidence = w->confidence, .id = keep(memory, w->id),
                           .location = keep(memory, w->location), .key = keep(memory, w->key), .about = keep(memory, w->about),
                           .why = keep(memory, w->why), .size = w->size, .reason_count = w->reason_count,
                           .side_count = w->access_count};
    out->reasons = arena_alloc(memory, w->reason_count * sizeof *out->reasons);
    for (uint32_t i = 0; i < w->reason_count; i++)
        out->reasons[i] = keep(memory, w->reasons[i]);
    out->sides = arena_alloc(memory, w->access_count * sizeof *out->sides);
    for (uint32_t i = 0; i < w->access_count; i++) {
        store_side *side = &out->sides[i];
        side_of(s, &w->accesses[i], side);
        if (w->kind == DETECT_RACE) continue;
        side->lock = lock_of(c, &w->accesses[i], memory);
        const detect_access *holder = &w->holders[i];
        if (holder->func == PTA_NO_FUNC) continue;
        side->has_since = true;
        side->since = place_of(c, holder, memory);
        side->held = lock_of(c, holder, memory);
    }
}

static void count(const check *c, store_record *out)
{
    const hb_statistics *h = hb_stats(c->order);
    const detect_statistics *d = detect_stats(c->found);
    uint32_t nameless = 0;
    for (uint32_t m = 0; m < c->module_count; m++)
        nameless += check_is_nameless(c->modules[m]->img);
    store_counter all[] = {
        {"origins", h->origins},
        {"threads", h->threads},
        {"events", h->events},
        {"called_from_outside", h->outside},
        {"accesses", h->accesses},
        {"accesses_unknown", h->accesses_unknown},
        {"accesses_lost", h->accesses_lost},
        {"accesses_nowhere", h->accesses_nowhere},
        {"unknown_calls", c->program->unknown_calls},
        {"lock_calls", h->lock_calls},
        {"lock_calls_unknown", h->lock_calls_unknown},
        {"objects", h->objects},
        {"objects_shared", d->places_shared},
        {"pairs", d->pairs},
        {"pairs_guarded", d->pairs_guarded},
        {"pairs_ordered", d->pairs_ordered},
        {"pairs_apart", d->pairs_disjoint},
        {"suppressed", d->suppressed},
        {"benign", d->benign},
        {"pairs_skipped", d->pairs_skipped}, /* this and what follows: only where there are any */
        {"nameless_programs", nameless},
    };
    enum { ALWAYS = sizeof all / sizeof *all - 2 };
    out->counter_count = ALWAYS;
    for (unsigned i = ALWAYS; i < sizeof all / sizeof *all; i++)
        if (all[i].value) all[out->counter_count++] = all[i];
    out->counters = arena_copy(&out->memory, all, out->counter_count * sizeof *all);
}

/* What an earlier analysis says of a module, or NULL. The modules are mostly in the same order. */
static const store_module *known_module(const check *c, uint32_t m)
{
    uint32_t count = c->last ? c->last->module_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (m + i) % count;
        if (c->last_lifted[at].module == c->modules[m] && c->last_lifted[at].generation == c->modules[m]->generation)
            return &c->last->modules[at];
    }
    return NULL;
}

void check_record(const check *c, int jobs, store_record *out)
{
    const detect_warnings *all = detect_found(c->found);
    *out = (store_record){.module_count = c->module_count, .warning_count = all->len};
    out->modules = arena_alloc(&out->memory, c->module_count * sizeof *out->modules);
    for (uint32_t m = 0; m < c->module_count; m++) {
        const store_module *known = known_module(c, m);
        if (known)
            store_module_copy(known, &out->memory, &out->modules[m]);
        else
            store_fingerprint(c->modules[m], jobs, &out->memory, &out->modules[m]);
    }
    out->warnings = arena_alloc(&out->memory, all->len * sizeof *out->warnings);
    uint32_t origins;
    hb_origins(c->order, &origins);
    sayings says = {.c = c, .memory = &out->memory, .origins = base_alloc_zero(origins, sizeof *says.origins)};
    for (uint32_t i = 0; i < all->len; i++)
        warning_of(&says, &all->data[i], &out->warnings[i]);
    free(says.origins);
    vec_free(&says.locks);
    count(c, out);
}
