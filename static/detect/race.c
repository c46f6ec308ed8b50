/* Races: pairs of accesses to bytes of one object, one of them a write, by two threads, that nothing orders and no lock guards.
 *
 * Accesses of one instruction to one range are one group, whoever runs it; a pair of groups races when some two that run them
 * do. Each racing group is shown with the partner that makes the best case, so that every racing access is in a warning and the
 * number of warnings is at most that of accesses. */
#include "static/detect/private.h"

#include <stdlib.h>

typedef struct {
    uint32_t object, touch, place, extent;
    uint64_t tie; /* by the names of functions, which a relink does not move: who is paired with whom must not depend on it */
} entry;

typedef struct {
    const hb_touch *touch;
    const hb_place *place;
    uint32_t set;    /* locks held */
    hb_guards guards;
} variant;

typedef struct {
    uint32_t first, count; /* variants */
    const hb_extent *extent;
    bool write, atomic, locked; /* locked: with a lock prefix */
    bool is_volatile, typed;
    bool found;
    detect_warning best;
    uint32_t partner;
} group;

enum { DEFERRED = 1000 }; /* added to the rank of a pair that races only if its object's address is handed over in a race */

typedef struct {
    detect_warning warning;
    detect_access accesses[2];
    const hb_place *place;
    uint32_t object;
    const hb_extent *extents[2];
    bool done;
} deferred_pair;

typedef struct {
    detect *d;
    VEC(const hb_extent *) racy; /* what warnings are about */
    VEC(deferred_pair) deferred;
    map64 looks; /* warnings by what the user sees of them */
    VEC(entry) entries;
    VEC(variant) variants;
    VEC(group) groups;
    hb_numbers *origins_of; /* per instance */
} search;

static int by_object(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->object != y->object) return x->object < y->object ? -1 : 1;
    if (x->tie != y->tie) return x->tie < y->tie ? -1 : 1;
    return x->touch < y->touch ? -1 : x->touch > y->touch ? 1 : x->place < y->place ? -1 : x->place > y->place;
}

static uint64_t tie_of(const detect *d, const hb_touch *t)
{
    uint64_t hash = 0;
    for (const char *c = d->program->funcs.data[t->func].name; *c && (*c != '.' || !hash); c++)
        hash = map_hash(hash + (uint8_t)*c);
    return hash << 20 | (t->insn & 0xfffff);
}

static void collect(search *s)
{
    uint32_t count;
    const hb_touch *touches = hb_touches(s->d->h, &count);
    for (uint32_t t = 0; t < count; t++) {
        const hb_place *places = hb_places(s->d->h, &touches[t]);
        uint64_t tie = tie_of(s->d, &touches[t]);
        for (uint32_t i = 0; i < touches[t].place_count; i++)
            vec_push(&s->entries, (entry){hb_extent_at(s->d->h, places[i].extent)->object, t, i, places[i].extent, tie});
    }
    if (s->entries.len) qsort(s->entries.data, s->entries.len, sizeof *s->entries.data, by_object);
}

static void find_origins(search *s)
{
    uint32_t count, instances = pta_instance_count(s->d->p);
    hb_origins(s->d->h, &count);
    s->origins_of = base_alloc_zero(instances, sizeof *s->origins_of);
    for (uint32_t i = 0; i < instances; i++)
        for (uint32_t o = 0; o < count; o++)
            if (hb_runs(s->d->h, o, i)) vec_push(&s->origins_of[i], o);
}

/* Whether somebody writes to an object that two may access at once. */
static bool is_shared(search *s, uint32_t first, uint32_t end)
{
    uint32_t count, touch_count, only = HB_NONE;
    const hb_origin *origins = hb_origins(s->d->h, &count);
    const hb_touch *touches = hb_touches(s->d->h, &touch_count);
    bool writes = false, several = false;
    for (uint32_t e = first; e < end && !(writes && several); e++) {
        const hb_touch *t = &touches[s->entries.data[e].touch];
        writes |= t->flags & IR_WRITE;
        const hb_numbers *by = &s->origins_of[t->instance];
        for (uint32_t i = 0; i < by->len; i++) {
            if (only == HB_NONE) only = by->data[i];
            several |= by->data[i] != only || origins[by->data[i]].overlaps;
        }
    }
    return writes && several;
}

static bool no_debug(const detect *d, const hb_touch *t)
{
    return !detect_image(d, t->func)->has_debug;
}

static void make_groups(search *s, uint32_t first, uint32_t end)
{
    detect *d = s->d;
    uint32_t touch_count;
    const hb_touch *touches = hb_touches(d->h, &touch_count);
    s->groups.len = 0;
    for (uint32_t i = 0; i < s->variants.len; i++)
        vec_free(&s->variants.data[i].guards);
    s->variants.len = 0;
    map64 known = {0};
    for (uint32_t e = first; e < end; e++) { /* count, then fill: variants of a group lie together */
        const entry *en = &s->entries.data[e];
        const hb_touch *t = &touches[en->touch];
        uint64_t key = map_hash(((uint64_t)t->func << 32 | t->insn) * 31 + (uint64_t)en->extent * 4 + (t->flags & (IR_READ | IR_WRITE)));
        uint32_t *at = map_at(&known, key & ~(1ull << 63));
        if (*at == MAP_NONE) {
            const hb_place *place = &hb_places(d->h, t)[en->place];
            uint64_t offset;
            const image_type *type = detect_place_type(d, &place->place, &offset);
            hb_typed typed = hb_type_at(type, offset, t->width);
            *at = s->groups.len;
            vec_push(&s->groups, (group){.extent = hb_extent_at(d->h, en->extent), .write = t->flags & IR_WRITE,
                                         .locked = t->flags & IR_ATOMIC, .atomic = t->flags & IR_ATOMIC || typed.is_atomic || hb_is_spin(d->h, &place->place),
                                         .is_volatile = typed.is_volatile, .typed = typed.scalar});
        }
        s->groups.data[*at].count++;
    }
    uint32_t total = 0;
    for (uint32_t g = 0; g < s->groups.len; g++) {
        s->groups.data[g].first = total;
        total += s->groups.data[g].count;
        s->groups.data[g].count = 0;
    }
    vec_reserve(&s->variants, total);
    s->variants.len = total;
    for (uint32_t e = first; e < end; e++) {
        const entry *en = &s->entries.data[e];
        const hb_touch *t = &touches[en->touch];
        uint64_t key = map_hash(((uint64_t)t->func << 32 | t->insn) * 31 + (uint64_t)en->extent * 4 + (t->flags & (IR_READ | IR_WRITE)));
        group *g = &s->groups.data[*map_at(&known, key & ~(1ull << 63))];
        variant *v = &s->variants.data[g->first + g->count++];
        *v = (variant){.touch = t, .place = &hb_places(d->h, t)[en->place]};
        v->set = hb_locks_at(d->h, (hb_point){t->instance, t->insn});
        hb_guards_of(d->h, t, v->place, v->set, &v->guards);
    }
    map_free(&known);
}

static detect_access access_of(const detect *d, const variant *v, uint32_t origin, bool atomic)
{
    uint32_t count;
    const hb_touch *touches = hb_touches(d->h, &count);
    const lift_func *f = d->program->funcs.data[v->touch->func].lift;
    return (detect_access){.touch = (uint32_t)(v->touch - touches), .at = {v->touch->instance, v->touch->insn}, .func = v->touch->func,
                           .origin = origin, .locks = v->set, .lock = HB_NONE, .write = v->touch->flags & IR_WRITE,
                           .read = v->touch->flags & IR_READ, .atomic = atomic, .addr = f->insns[v->touch->insn].addr};
}

/* Two that run the same code are not one thread against itself. */
static bool same_thread(const hb_origin *origins, uint32_t x, uint32_t y)
{
    return x == y && (origins[x].twin != HB_NONE || !origins[x].overlaps);
}

static void keep(search *s, group *g, uint32_t partner, const detect_warning *w)
{
    (void)s;
    if (g->found && g->best.rank <= w->rank) return;
    g->found = true;
    g->best = *w;
    g->partner = partner;
}

static bool is_fresh(search *s, const variant *v)
{
    return hb_fresh(s->d->h, v->touch, v->place);
}

/* The best case of two groups; false: they do not race. */
static bool races(search *s, uint32_t ga, uint32_t gb, detect_warning *best, detect_access accesses[2], const hb_place **place)
{
    detect *d = s->d;
    const group *a = &s->groups.data[ga], *b = &s->groups.data[gb];
    uint32_t origin_count;
    const hb_origin *origins = hb_origins(d->h, &origin_count);
    bool found = false;
    for (uint32_t i = 0; i < a->count; i++) {
        const variant *va = &s->variants.data[a->first + i];
        if (va->set == UINT32_MAX) continue;
        for (uint32_t k = ga == gb ? i : 0; k < b->count; k++) {
            const variant *vb = &s->variants.data[b->first + k];
            if (vb->set == UINT32_MAX) continue;
            const hb_numbers *xs = &s->origins_of[va->touch->instance], *ys = &s->origins_of[vb->touch->instance];
            bool meets = false;
            if (hb_guarded(&va->guards, &vb->guards)) {
                d->stats.pairs++;
                d->stats.pairs_guarded++;
                continue;
            }
            for (uint32_t xi = 0; xi < xs->len; xi++)
                for (uint32_t yi = 0; yi < ys->len; yi++) {
                    uint32_t x = xs->data[xi], y = ys->data[yi];
                    const char *why = NULL;
                    if (same_thread(origins, x, y)) continue;
                    d->stats.pairs++;
                    if (shb_ordered(d->h, x, (hb_point){va->touch->instance, va->touch->insn}, y,
                                    (hb_point){vb->touch->instance, vb->touch->insn}, &why)) {
                        d->stats.pairs_ordered++;
                        continue;
                    }
                    if (hb_separate(d->h, x, va->touch, va->place, y, vb->touch, vb->place)) {
                        d->stats.pairs_disjoint++;
                        continue;
                    }
                    d->stats.pairs_racing++;
                    meets = true;
                    detect_pair pair = {.place = {va->place, vb->place}, .touch = {va->touch, vb->touch}, .origin = {x, y},
                                        .set = {va->set, vb->set}, .atomic = {a->atomic, b->atomic},
                                        .is_volatile = a->is_volatile || b->is_volatile,
                                        .maybe_atomic = (a->locked && no_debug(d, vb->touch)) || (b->locked && no_debug(d, va->touch))};
                    detect_warning w = {.kind = DETECT_RACE, .why = why};
                    detect_rank(d, &pair, &w);
                    if (is_fresh(s, va) || is_fresh(s, vb)) w.rank += DEFERRED;
                    if (found && best->rank <= w.rank) continue;
                    found = true;
                    *best = w;
                    accesses[0] = access_of(d, va, x, a->atomic);
                    accesses[1] = access_of(d, vb, y, b->atomic);
                    *place = va->place->place.exact ? va->place : vb->place;
                }
            if (meets && found && best->confidence == DETECT_HIGH) return true;
        }
    }
    return found;
}

/* The source line of an access, or its address. */
static uint64_t line_of(const detect *d, const detect_access *a)
{
    image_line line;
    return image_line_at(detect_image(d, a->func), a->addr, &line) && line.file ? line.line : a->addr;
}

/* To the user they are one: the same location, functions, lines and kinds of access. */
static uint64_t look_of(const detect *d, const detect_warning *w)
{
    uint64_t hash = 0;
    for (const char *c = w->location; *c; c++)
        hash = hash * 31 + (uint8_t)*c;
    for (unsigned i = 0; i < 2; i++) {
        const detect_access *a = &w->accesses[i];
        hash = map_hash(map_hash(hash + a->func) + line_of(d, a) * 2 + a->write);
    }
    return hash & ~(1ull << 63);
}

static void report(search *s, detect_warning *w, const detect_access accesses[2], const hb_place *place)
{
    detect *d = s->d;
    detect_name(d, &place->place, w->size, &w->location, &w->key, &w->about);
    w->accesses = base_alloc(2 * sizeof *w->accesses);
    memcpy(w->accesses, accesses, 2 * sizeof *accesses);
    w->access_count = 2;
    bool swap = accesses[1].write && !accesses[0].write;
    if (swap) {
        w->accesses[0] = accesses[1];
        w->accesses[1] = accesses[0];
    }
    uint32_t *known = map_at(&s->looks, look_of(d, w));
    if (*known == MAP_NONE) {
        *known = d->warnings.len;
        vec_push(&d->warnings, *w);
        return;
    }
    detect_warning *shown = &d->warnings.data[*known], other = *w;
    if (w->rank < shown->rank) {
        other = *shown;
        *shown = *w;
    }
    free(other.location);
    free(other.key);
    free(other.about);
    free(other.accesses);
}

typedef struct {
    detect_access accesses[2];
    const hb_place *place;
} found_pair;

static void search_object(search *s, uint32_t first, uint32_t end)
{
    if (!is_shared(s, first, end)) return;
    make_groups(s, first, end);
    found_pair *pairs = base_alloc_zero(s->groups.len, sizeof *pairs);
    s->d->stats.places_shared++;
    for (uint32_t a = 0; a < s->groups.len; a++)
        for (uint32_t b = a; b < s->groups.len; b++) {
            group *ga = &s->groups.data[a], *gb = &s->groups.data[b];
            if ((!ga->write && !gb->write) || !hb_overlap(ga->extent, gb->extent)) continue;
            if (ga->atomic && gb->atomic) {
                s->d->stats.pairs_atomic++;
                continue;
            }
            found_pair pair;
            detect_warning w;
            if (!races(s, a, b, &w, pair.accesses, &pair.place)) continue;
            w.size = ga->extent->width < gb->extent->width ? ga->extent->width : gb->extent->width;
            bool new_a = !ga->found || w.rank < ga->best.rank, new_b = !gb->found || w.rank < gb->best.rank;
            keep(s, ga, b, &w);
            if (new_a) pairs[a] = pair;
            keep(s, gb, a, &w);
            if (new_b) pairs[b] = pair;
        }
    for (uint32_t g = 0; g < s->groups.len; g++) {
        group *of = &s->groups.data[g];
        if (!of->found) continue;
        bool shown = of->partner < g && s->groups.data[of->partner].partner == g; /* the same pair */
        if (shown) continue;
        const hb_extent *partner = s->groups.data[of->partner].extent;
        if (of->best.rank >= DEFERRED / 2) {
            deferred_pair wait = {.warning = of->best, .place = pairs[g].place, .object = s->entries.data[first].object,
                                  .extents = {of->extent, partner}};
            memcpy(wait.accesses, pairs[g].accesses, sizeof wait.accesses);
            vec_push(&s->deferred, wait);
            continue;
        }
        vec_push(&s->racy, of->extent);
        vec_push(&s->racy, partner);
        report(s, &of->best, pairs[g].accesses, pairs[g].place);
    }
    free(pairs);
}

static bool is_racy(const search *s, const hb_extent *x)
{
    for (uint32_t i = 0; i < s->racy.len; i++)
        if (hb_overlap(s->racy.data[i], x)) return true;
    return false;
}

/* Objects whose address is handed over in a race were not handed over in order. */
static void settle_deferred(search *s)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < s->deferred.len; i++) {
            deferred_pair *p = &s->deferred.data[i];
            hb_extent holder;
            uint32_t from = 0;
            bool races = false;
            while (!p->done && !races && hb_holder(s->d->h, p->object, &from, &holder))
                races = is_racy(s, &holder);
            if (!races) continue;
            p->done = changed = true;
            p->warning.rank -= DEFERRED;
            vec_push(&s->racy, p->extents[0]);
            vec_push(&s->racy, p->extents[1]);
            report(s, &p->warning, p->accesses, p->place);
        }
    }
    for (uint32_t i = 0; i < s->deferred.len; i++)
        s->d->stats.pairs_handed += !s->deferred.data[i].done;
}

void detect_races(detect *d)
{
    search s = {.d = d};
    collect(&s);
    find_origins(&s);
    for (uint32_t first = 0, end; first < s.entries.len; first = end) {
        for (end = first; end < s.entries.len && s.entries.data[end].object == s.entries.data[first].object;)
            end++;
        uint32_t site, context;
        hb_object_at(d->h, s.entries.data[first].object, &site, &context);
        uint8_t kind = d->program->sites.data[site].kind;
        if (kind != PTA_EXTERNAL && kind != PTA_WILD) search_object(&s, first, end);
    }
    settle_deferred(&s);
    map_free(&s.looks);
    vec_free(&s.racy);
    vec_free(&s.deferred);
    for (uint32_t i = 0; i < s.variants.len; i++)
        vec_free(&s.variants.data[i].guards);
    for (uint32_t i = 0; i < pta_instance_count(d->p); i++)
        vec_free(&s.origins_of[i]);
    free(s.origins_of);
    vec_free(&s.entries);
    vec_free(&s.variants);
    vec_free(&s.groups);
}
