/* Races between accesses of which nobody knows what they are to: the pointer may point to too many objects, or to memory that nothing is
 * known of. They make no pairs by place (race.c), and to be silent about them would hide half of the races of a program that manages
 * its own memory. Where there is debug information, something else is known of them: the struct that the pointer is declared to
 * point to, and the member at the offset. Two accesses to one member of one struct may meet.
 *
 * (Members are those of declared.c.) Accesses that are known by place take part as well, against those that are not;
 * two that are known have been compared already. Order, locks and threads count as they do for places: a lock in the
 * object guards when its distance from the accessed bytes is the same on both sides (hb_guards_near).
 *
 * Who runs the code must be known as far as that goes: neither code that only code outside may call, nor threads of which nobody knows
 * what they run, or that may never be there together (HB_MEET_WILD), are paired by types alone. Nor is what a constructor sets up.
 *
 * There is one warning for each member, of low confidence, with the pair that makes the best case. Programs cast, and a pointer may be
 * declared as something else than what it points to: nothing is claimed of accesses that are not paired.
 *
 * Accesses of a member that nothing tells apart are one class; pairs are of classes, and a pair is asked about only if it could be
 * the best one, or if it is not known of both whether they race. */
#include "static/detect/private.h"

#include <stdlib.h>

typedef struct { /* an access to a member */
    uint32_t bucket;
    uint32_t touch; /* number of a touch, or of what was left out */
    bool lost;      /* the latter */
    uint64_t tie;   /* as in race.c: by the names of functions */
} use;

typedef struct { /* uses of a member that nothing tells apart */
    uint32_t origin, stance, set, guards;
    bool write, atomic, lost;
    bool holds; /* some lock */
    uint8_t doubt;
    bool races;
    int cost;
    uint32_t first, last; /* in `links` */
} class;

typedef struct {
    uint32_t use, next;
} link;

typedef struct {
    uint32_t a, b; /* classes */
    int cost;
    const char *why;
    hb_meeting how;
    bool found;
} best_pair;

typedef struct {
    detect *d;
    const hb_numbers *origins_of;
    const hb_origin *origins;
    const hb_touch *touches;
    const hb_left_out *left_outs;
    uint32_t touch_count, left_out_count;
    VEC(detect_member) buckets;
    hb_numbers bucket_of; /* per member, by number; HB_NONE: none */
    VEC(use) uses;
    detect_guards guards;
    VEC(class) classes;   /* of one member, as are: */
    VEC(link) links;
} search;

/* --- members -------------------------------------------------------------------------------------------------------------------- */

/* HB_NONE: it is not there, and not made. */
static uint32_t bucket_number(search *s, const detect_known *member, bool make)
{
    while (make && s->bucket_of.len <= member->number)
        vec_push(&s->bucket_of, HB_NONE);
    if (member->number >= s->bucket_of.len) return HB_NONE;
    uint32_t *known = &s->bucket_of.data[member->number];
    if (*known == HB_NONE && make) {
        *known = s->buckets.len;
        vec_push(&s->buckets, member->is);
    }
    return *known;
}

/* --- uses ----------------------------------------------------------------------------------------------------------------------- */

/* A constructor of the type itself (_ZN8RegistryC2Ei): who else knows the object yet has got it from a word that is to be looked at. */
static bool is_constructor(const char *name, const image_type *type)
{
    size_t len = strcspn(type->name, "<");
    if (strncmp(name, "_ZN", 3)) return false;
    for (name += 3 + (name[3] == 'K'); *name >= '1' && *name <= '9';) {
        char *rest;
        unsigned long count = strtoul(name, &rest, 10);
        if (count > strnlen(rest, count)) return false;
        bool same = count == len && !strncmp(rest, type->name, len);
        name = rest + count;
        if (same && *name == 'C' && (name[1] == '1' || name[1] == '2') && name[2] == 'E') return true;
    }
    return false;
}

static uint64_t tie_of(const detect *d, uint32_t func, uint32_t insn)
{
    return map_hash(detect_text_hash(d->program->funcs.data[func].name)) << 20 | (insn & 0xfffff);
}

/* One for each member that the bytes of an access belong to. */
static void add_uses(search *s, const pta_access *access, use like)
{
    if (access->flags & IR_WRITE && is_constructor(s->d->program->funcs.data[access->func].name, access->type)) return;
    uint64_t width = access->width ? access->width : 1, rest;
    for (uint64_t done = 0; done < width; done += rest) {
        const detect_known *member = detect_known_at(s->d, access->type, (uint64_t)access->at + done);
        rest = member ? member->rest : 1;
        if (!member) continue;
        like.bucket = bucket_number(s, member, like.lost);
        if (like.bucket != HB_NONE) vec_push(&s->uses, like);
    }
}

static void take_left_outs(search *s)
{
    for (uint32_t i = 0; i < s->left_out_count; i++) {
        const hb_left_out *l = &s->left_outs[i];
        if (l->why == HB_LEFT_OUT_OWN) continue;
        const pta_access *access = l->flags & HB_LIBRARY ? NULL : detect_declared(s->d, l->func, l->insn, l->flags);
        s->d->stats.accesses_untyped += !access;
        s->d->stats.accesses_typed += access != NULL;
        if (access) add_uses(s, access, (use){.touch = i, .lost = true, .tie = tie_of(s->d, l->func, l->insn)});
    }
}

/* A place that others can come to by a pointer. */
static bool is_open(const search *s, const hb_touch *t)
{
    const hb_place *places = hb_places(s->d->h, t);
    for (uint32_t i = 0; i < t->place_count; i++)
        if (!hb_own_frame(s->d->h, t, &places[i]) && !hb_fresh(s->d->h, t, &places[i])) return true;
    return false;
}

static void take_touches(search *s)
{
    const pta_access *access = NULL;
    uint64_t tie = 0;
    for (uint32_t i = 0; i < s->touch_count; i++) {
        const hb_touch *t = &s->touches[i];
        const bool same = i && t->func == t[-1].func && t->insn == t[-1].insn && t->flags == t[-1].flags; /* of another instance */
        if (!same) {
            access = t->flags & HB_LIBRARY ? NULL : detect_declared(s->d, t->func, t->insn, t->flags);
            tie = access ? tie_of(s->d, t->func, t->insn) : 0;
        }
        if (access) add_uses(s, access, (use){.touch = i, .tie = tie});
    }
}

static hb_touch touch_of(const search *s, const use *u)
{
    if (!u->lost) return s->touches[u->touch];
    const hb_left_out *l = &s->left_outs[u->touch];
    return (hb_touch){.instance = l->instance, .func = l->func, .insn = l->insn, .ir = l->ir, .flags = l->flags, .width = l->width};
}

static int by_tie(const void *a, const void *b)
{
    const use *x = a, *y = b;
    if (x->tie != y->tie) return x->tie < y->tie ? -1 : 1;
    if (x->lost != y->lost) return x->lost ? -1 : 1;
    return x->touch < y->touch ? -1 : x->touch > y->touch;
}

/* By bucket first, of which there are few, then the uses of each that are shared: the others are not looked at. */
static void sort_uses(search *s, uint32_t *first)
{
    use *sorted = base_alloc(s->uses.len * sizeof *sorted);
    for (uint32_t u = 0; u < s->uses.len; u++)
        first[s->uses.data[u].bucket + 1]++;
    for (uint32_t b = 0; b < s->buckets.len; b++)
        first[b + 1] += first[b];
    for (uint32_t u = 0; u < s->uses.len; u++)
        sorted[first[s->uses.data[u].bucket]++] = s->uses.data[u];
    memcpy(s->uses.data, sorted, s->uses.len * sizeof *sorted);
    free(sorted);
    for (uint32_t b = s->buckets.len; b > 0; b--) /* each is now where the next one begins */
        first[b] = first[b - 1];
    first[0] = 0;
}

/* --- classes and pairs ---------------------------------------------------------------------------------------------------------- */

static void add_class(search *s, map64 *known, const class *like, uint32_t use_number)
{
    uint64_t hash = map_hash(((uint64_t)like->stance << 32 | like->set) * 31 + like->guards);
    hash = map_hash(hash * 31 + ((uint64_t)like->doubt << 3 | like->write << 2 | like->atomic << 1 | like->lost));
    uint32_t own = s->links.len;
    vec_push(&s->links, ((link){use_number, HB_NONE}));
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(known, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = s->classes.len;
            vec_push(&s->classes, *like);
            s->classes.data[*at].first = s->classes.data[*at].last = own;
            return;
        }
        class *c = &s->classes.data[*at];
        if (c->stance != like->stance || c->set != like->set || c->guards != like->guards || c->doubt != like->doubt ||
            c->write != like->write || c->atomic != like->atomic || c->lost != like->lost)
            continue;
        s->links.data[c->last].next = own;
        c->last = own;
        return;
    }
}

static bool is_shared(const search *s, uint32_t first, uint32_t end)
{
    uint32_t only = HB_NONE;
    bool writes = false, several = false;
    for (uint32_t u = first; u < end && !(writes && several); u++) {
        const use *of = &s->uses.data[u];
        uint32_t instance = of->lost ? s->left_outs[of->touch].instance : s->touches[of->touch].instance;
        writes |= (of->lost ? s->left_outs[of->touch].flags : s->touches[of->touch].flags) & IR_WRITE;
        const hb_numbers *by = &s->origins_of[instance];
        for (uint32_t i = 0; i < by->len; i++) {
            if (only == HB_NONE) only = by->data[i];
            several |= by->data[i] != only || s->origins[by->data[i]].overlaps;
        }
    }
    return writes && several;
}

/* It is not known what it runs, or whether anybody runs it. */
static bool is_vague(const search *s, uint32_t origin)
{
    return s->origins[origin].kind == HB_OUTSIDE || s->origins[origin].entry == s->d->program->wild_call;
}

static void make_classes(search *s, uint32_t first, uint32_t end)
{
    detect *d = s->d;
    map64 known = {0};
    s->classes.len = s->links.len = 0;
    for (uint32_t u = first; u < end; u++) {
        const use *of = &s->uses.data[u];
        const hb_touch t = touch_of(s, of);
        const hb_point point = {t.instance, t.insn};
        uint32_t set = hb_locks_at(d->h, point);
        if (set == UINT32_MAX || (!of->lost && !is_open(s, &s->touches[of->touch]))) continue;
        const pta_access *access = detect_declared(s->d, t.func, t.insn, t.flags);
        hb_guards own = {0};
        hb_guards_near(d->h, &t, !of->lost && t.place_count == 1 ? hb_places(d->h, &s->touches[of->touch]) : NULL, set, &own);
        class like = {.set = set, .guards = detect_guards_number(&s->guards, &own), .write = t.flags & IR_WRITE, .lost = of->lost, .holds = hb_holds_locks(d->h, set),
                      .atomic = t.flags & IR_ATOMIC || hb_type_at(access->type, (uint64_t)access->at, t.width).is_atomic};
        const hb_numbers *by = &s->origins_of[t.instance];
        const uint32_t position = by->len ? hb_position(d->h, point) : 0;
        for (uint32_t i = 0; i < by->len; i++) {
            like.origin = by->data[i];
            like.stance = hb_stance(d->h, like.origin, point, position);
            like.doubt = (uint8_t)hb_runs_how(d->h, like.origin, point);
            if (is_vague(s, like.origin)) continue;
            like.cost = detect_rank_side(d, like.origin, &t, like.doubt);
            add_class(s, &known, &like, u);
        }
    }
    map_free(&known);
}

static void pair_classes(search *s, uint32_t a, uint32_t b, best_pair *best)
{
    class *x = &s->classes.data[a], *y = &s->classes.data[b];
    if ((!x->write && !y->write) || (!x->lost && !y->lost) || (x->atomic && y->atomic)) return;
    bool matters = s->d->decider && !(x->races && y->races);
    int cost = x->cost + y->cost + detect_rank_locks(x->holds, y->holds) - 2 * (x->write && y->write);
    if (!matters && best->found && best->cost <= cost) return;
    if (detect_same_thread(s->origins, x->origin, y->origin) || detect_guards_common(&s->guards, x->guards, y->guards)) return;
    const char *why;
    hb_meeting how = HB_MEET_SURE;
    if (hb_stances_ordered(s->d->h, x->stance, y->stance, &why, &how) || how == HB_MEET_WILD) return;
    x->races = y->races = true;
    if (!best->found || cost < best->cost) *best = (best_pair){a, b, cost, why, how, true};
}

static detect_access access_of(const search *s, const class *c, const hb_touch *t)
{
    const lift_func *f = s->d->program->funcs.data[t->func].lift;
    return (detect_access){.touch = HB_NONE, .at = {t->instance, t->insn}, .func = t->func, .origin = c->origin, .locks = c->set,
                           .lock = HB_NONE, .write = c->write, .read = t->flags & IR_READ, .atomic = c->atomic,
                           .addr = f->insns[t->insn].addr};
}

static void report(search *s, const detect_member *of, const best_pair *best)
{
    detect *d = s->d;
    const class *sides[2] = {&s->classes.data[best->a], &s->classes.data[best->b]};
    if (sides[1]->write && !sides[0]->write) {
        const class *t = sides[0];
        sides[0] = sides[1], sides[1] = t;
    }
    hb_touch touches[2];
    detect_warning w = {.kind = DETECT_RACE, .why = best->why, .size = of->size, .access_count = 2, .number = d->warnings.len};
    w.accesses = base_alloc(2 * sizeof *w.accesses);
    detect_pair pair = {.unmeant = best->how == HB_MEET_UNMEANT, .is_volatile = hb_type_at(of->type, of->at, 0).is_volatile};
    for (unsigned i = 0; i < 2; i++) {
        touches[i] = touch_of(s, &s->uses.data[s->links.data[sides[i]->first].use]);
        w.accesses[i] = access_of(s, sides[i], &touches[i]);
        pair.touch[i] = &touches[i];
        pair.origin[i] = sides[i]->origin;
        pair.set[i] = sides[i]->set;
        pair.atomic[i] = sides[i]->atomic;
        pair.doubt[i] = sides[i]->doubt;
    }
    detect_rank(d, &pair, &w);
    char text[300];
    detect_member_name(of, text, sizeof text);
    w.location = base_format("%s", text);
    w.benign = detect_member_noted(d, of);
    w.key = base_format("any %s", text);
    w.about = base_format("of an object that is not known");
    for (uint32_t c = 0; c < s->classes.len && d->decider; c++)
        for (uint32_t l = s->classes.data[c].first; s->classes.data[c].races && l != HB_NONE; l = s->links.data[l].next) {
            const hb_touch t = touch_of(s, &s->uses.data[s->links.data[l].use]);
            detect_decide_member(d, &t, w.number);
        }
    vec_push(&d->warnings, w);
}

static void search_bucket(search *s, uint32_t first, uint32_t end)
{
    if (!is_shared(s, first, end)) return;
    qsort(s->uses.data + first, end - first, sizeof *s->uses.data, by_tie);
    make_classes(s, first, end);
    best_pair best = {0};
    for (uint32_t a = 0; a < s->classes.len; a++)
        for (uint32_t b = a; b < s->classes.len; b++)
            pair_classes(s, a, b, &best);
    if (best.found) report(s, &s->buckets.data[s->uses.data[first].bucket], &best);
}

void detect_members(detect *d, const hb_numbers *origins_of)
{
    uint32_t count;
    search s = {.d = d, .origins_of = origins_of, .origins = hb_origins(d->h, &count)};
    s.touches = hb_touches(d->h, &s.touch_count);
    s.left_outs = hb_left_outs(d->h, &s.left_out_count);
    take_left_outs(&s);
    if (s.uses.len) take_touches(&s);
    uint32_t *first = base_alloc_zero((size_t)s.buckets.len + 1, sizeof *first);
    if (s.uses.len) sort_uses(&s, first);
    for (uint32_t b = 0; b < s.buckets.len; b++)
        if (first[b] < first[b + 1]) search_bucket(&s, first[b], first[b + 1]);
    free(first);
    vec_free(&s.buckets);
    vec_free(&s.bucket_of);
    vec_free(&s.uses);
    detect_guards_close(&s.guards);
    vec_free(&s.classes);
    vec_free(&s.links);
}
