/* Races: pairs of accesses to bytes of one object, one of them a write, by two threads, that nothing orders and no lock guards.
 *
 * Accesses of one instruction to one range are one group, whoever runs it. Inside of a group those that nothing tells apart are one
 * class: the same position of the same origin (hb_stance), the same locks as the access sees them, the same certainty. Pairs are of
 * classes, and what orders and guards them is looked up by number, so the number of calling contexts does not matter (O2 merges
 * accesses in the same way before it pairs them). Two members of two racing classes are looked at only until a pair is found that
 * hb_separate does not tell apart.
 *
 * Each racing group is shown with the partner that makes the best case, so that every racing access is in a warning and the
 * number of warnings is at most that of accesses. A pair whose groups both have a case that can hardly be better is left out. */
#include "static/detect/private.h"

#include <stdlib.h>

typedef struct { /* accesses of a group that nothing tells apart */
    uint32_t origin, stance;
    uint32_t set;    /* locks held */
    uint32_t guards; /* the same as the access sees them, by number */
    bool bare;       /* there are none */
    bool holds;      /* what a user would call a lock is in `set` */
    bool wide;       /* to many objects */
    bool exact, fresh;
    uint8_t doubt;   /* hb_doubt: that the origin runs it */
    int cost;        /* the least that it adds to the rank of a pair */
    uint32_t taken;  /* the lock under which its object was taken out of where others can find it, or HB_NONE */
    uint32_t first, count; /* members */
    bool asked, in_child, unmapped; /* once asked: all of them are so (process.c) */
    uint32_t next;   /* class of the group, or HB_NONE: while they are made */
} class;

typedef struct { /* what most pairs of classes are settled by */
    uint32_t origin;
    uint8_t at;  /* place of its stance in the company of its group, if that is not too large */
    bool bare;
} class_brief;

typedef struct {
    uint32_t touch, place; /* numbers; of the touch's places */
    uint32_t next;         /* member of the class, or HB_NONE */
} member;

typedef struct {
    uint32_t first; /* class */
    uint32_t last;  /* while they are made */
    uint32_t next;  /* behind the one that was found last */
    uint32_t count; /* of classes, one behind the other */
    const hb_extent *extent;
    bool write, atomic, locked; /* locked: with a lock prefix */
    bool is_volatile, typed;
    uint8_t verdict; /* detect_verdict, as far as it does not race */
    bool in_frame, own_frame;   /* of a function; hb_own_frame: of two such, each has its own */
    bool inside;                /* some thread of the program's own makes it, and not only callers from outside */
    int floor;  /* the least that one of its classes costs */
    uint32_t company; /* the stances of its classes, by number (company.c) */
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
    const hb_touch *touches;
    const hb_origin *origins;
    VEC(const hb_extent *) racy; /* what warnings are about */
    VEC(deferred_pair) deferred;
    map64 looks; /* warnings by what the user sees of them */
    detect_entries entries;
    VEC(member) members; /* of one object, as are: */
    VEC(class) classes;  /* by group */
    VEC(class_brief) briefs; /* of them */
    VEC(class) made;     /* the same as they are made */
    VEC(group) groups;
    detect_guards guards;
    detect_companies companies;
    hb_numbers *origins_of; /* per instance */
    uint64_t pairs_before; /* those of the objects before */
} search;

static void find_origins(search *s)
{
    uint32_t count, instances = pta_instance_count(s->d->p);
    s->origins = hb_origins(s->d->h, &count);
    s->origins_of = base_alloc_zero(instances, sizeof *s->origins_of);
    for (uint32_t o = 0; o < count; o++)
        for (uint32_t word = 0; word * 64 < instances; word++)
            for (uint64_t bits = s->origins[o].self[word]; bits; bits &= bits - 1)
                vec_push(&s->origins_of[word * 64 + (uint32_t)__builtin_ctzll(bits)], o);
}

/* Whether somebody writes to an object that two may access at once. */
static bool is_shared(search *s, uint32_t first, uint32_t end)
{
    uint32_t only = HB_NONE;
    bool writes = false, several = false;
    for (uint32_t e = first; e < end && !(writes && several); e++) {
        const hb_touch *t = &s->touches[s->entries.data[e].touch];
        writes |= t->flags & IR_WRITE;
        const hb_numbers *by = &s->origins_of[t->instance];
        for (uint32_t i = 0; i < by->len; i++) {
            if (only == HB_NONE) only = by->data[i];
            several |= by->data[i] != only || s->origins[by->data[i]].overlaps;
        }
    }
    return writes && several;
}

static bool no_debug(const detect *d, const hb_touch *t)
{
    return !detect_image(d, t->func)->has_debug;
}

/* --- groups and their classes ------------------------------------------------------------------------------------------------ */

static uint32_t guards_number(search *s, const hb_touch *t, const hb_place *place, uint32_t set)
{
    hb_guards own = {0};
    hb_guards_of(s->d->h, t, place, set, &own);
    return detect_guards_number(&s->guards, &own);
}

static bool same_class(const class *x, const class *y)
{
    return x->stance == y->stance && x->set == y->set && x->guards == y->guards && x->wide == y->wide && x->exact == y->exact &&
           x->fresh == y->fresh && x->doubt == y->doubt && x->taken == y->taken;
}

static void add_member(search *s, group *g, const class *like, member m)
{
    uint32_t c = g->next; /* instances come with the same classes in the same order, mostly */
    if (c == HB_NONE || !same_class(&s->made.data[c], like)) c = g->first;
    while (c != HB_NONE && !same_class(&s->made.data[c], like))
        c = s->made.data[c].next;
    if (c == HB_NONE) {
        c = s->made.len;
        vec_push(&s->made, *like);
        if (g->first == HB_NONE)
            g->first = c;
        else
            s->made.data[g->last].next = c;
        g->last = c;
        g->count++;
    }
    g->next = s->made.data[c].next;
    if (like->cost < s->made.data[c].cost) s->made.data[c].cost = like->cost;
    m.next = s->made.data[c].first;
    s->made.data[c].first = s->members.len;
    s->made.data[c].count++;
    vec_push(&s->members, m);
}

static group new_group(const detect *d, const hb_touch *t, const hb_place *place)
{
    uint64_t offset;
    const image_type *type = detect_place_type(d, &place->place, &offset);
    hb_typed typed = hb_type_at(type, offset, t->width);
    return (group){.first = HB_NONE, .next = HB_NONE, .floor = INT32_MAX, .extent = hb_extent_at(d->h, place->extent), .write = t->flags & IR_WRITE,
                   .locked = t->flags & IR_ATOMIC,
                   .atomic = t->flags & IR_ATOMIC || typed.is_atomic || hb_is_spin(d->h, &place->place) || hb_polls(d->h, t, place),
                   .is_volatile = typed.is_volatile, .typed = typed.scalar, .in_frame = d->program->sites.data[place->place.site].kind == PTA_FRAME,
                   .own_frame = hb_own_frame(d->h, t, place)};
}

/* The classes of a group one behind the other: pairs are of all of them. */
static void order_classes(search *s)
{
    vec_clear(&s->classes);
    for (uint32_t g = 0; g < s->groups.len; g++) {
        uint32_t c = s->groups.data[g].first;
        s->groups.data[g].first = s->classes.len;
        for (; c != HB_NONE; c = s->made.data[c].next)
            vec_push(&s->classes, s->made.data[c]);
    }
}

static void make_groups(search *s, uint32_t first, uint32_t end)
{
    detect *d = s->d;
    s->groups.len = s->made.len = s->members.len = 0;
    map64 known = {0};
    for (uint32_t e = first; e < end; e++) {
        const detect_entry *en = &s->entries.data[e];
        const hb_touch *t = &s->touches[en->touch];
        const hb_place *place = &hb_places(d->h, t)[en->place];
        hb_point point = {t->instance, t->insn};
        uint32_t set = hb_locks_at(d->h, point);
        if (set == UINT32_MAX) { /* never reached */
            detect_decide(d, t, DETECT_UNREACHED);
            continue;
        }
        uint64_t key = map_hash(((uint64_t)t->func << 32 | t->insn) * 31 + (uint64_t)en->extent * 4 + (t->flags & (IR_READ | IR_WRITE)));
        uint32_t *at = map_at(&known, key & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = s->groups.len;
            vec_push(&s->groups, new_group(d, t, place));
        }
        group *g = &s->groups.data[*at];
        g->next = g->first;
        class like = {.set = set, .guards = guards_number(s, t, place, set), .holds = hb_holds_locks(d->h, set), .wide = t->place_count > 4, .exact = place->place.exact,
                      .fresh = hb_fresh(d->h, t, place), .taken = hb_taken(d->h, t, place), .first = HB_NONE, .next = HB_NONE};
        const hb_numbers *by = &s->origins_of[t->instance];
        like.bare = !s->guards.guards.data[like.guards].len;
        const uint32_t position = by->len ? hb_position(d->h, point) : 0;
        for (uint32_t i = 0; i < by->len; i++) {
            like.origin = by->data[i];
            like.stance = hb_stance(d->h, like.origin, point, position);
            like.doubt = (uint8_t)hb_runs_how(d->h, like.origin, point);
            like.cost = detect_rank_side(d, like.origin, t, like.doubt) + detect_rank_brought(d, like.origin, g->extent->object);
            add_member(s, g, &like, (member){en->touch, en->place, HB_NONE});
            g->inside |= s->origins[like.origin].kind != HB_ENTRY;
            int cost = like.cost + (like.fresh ? DEFERRED : 0);
            if (cost < g->floor) g->floor = cost;
        }
    }
    map_free(&known);
    order_classes(s);
}

static uint32_t company_of(search *s, const group *g)
{
    hb_numbers stances = {0};
    for (uint32_t c = g->first; c < g->first + g->count; c++)
        vec_push(&stances, s->classes.data[c].stance);
    uint32_t number = detect_company_number(&s->companies, &stances);
    vec_free(&stances);
    return number;
}

/* Requires those of the groups before. */
static void brief_classes(search *s, const group *g)
{
    for (uint32_t c = g->first; c < g->first + g->count; c++) {
        const class *of = &s->classes.data[c];
        vec_push(&s->briefs, ((class_brief){of->origin, detect_company_place(&s->companies, g->company, of->stance), of->bare}));
    }
}

/* --- pairs ------------------------------------------------------------------------------------------------------------------- */

static detect_access access_of(const detect *d, const hb_touch *t, uint32_t number, const class *c, bool atomic)
{
    const lift_func *f = d->program->funcs.data[t->func].lift;
    return (detect_access){.touch = number, .at = {t->instance, t->insn}, .func = t->func, .origin = c->origin, .locks = c->set,
                           .lock = HB_NONE, .write = t->flags & IR_WRITE, .read = t->flags & IR_READ, .atomic = atomic,
                           .addr = f->insns[t->insn].addr};
}

static void keep(group *g, uint32_t partner, const detect_warning *w)
{
    if (g->found && g->best.rank <= w->rank) return;
    g->found = true;
    g->best = *w;
    g->partner = partner;
}

static const hb_place *place_of(const search *s, const member *m)
{
    return &hb_places(s->d->h, &s->touches[m->touch])[m->place];
}

static void judge(group *a, group *b, detect_verdict verdict)
{
    if (a->verdict < verdict) a->verdict = (uint8_t)verdict;
    if (b->verdict < verdict) b->verdict = (uint8_t)verdict;
}

static void ask_process(const search *s, class *c)
{
    if (c->asked) return;
    c->asked = c->in_child = c->unmapped = true;
    for (uint32_t i = c->first; i != HB_NONE && (c->in_child || c->unmapped); i = s->members.data[i].next) {
        const member *m = &s->members.data[i];
        c->in_child = c->in_child && hb_in_child(s->d->h, &s->touches[m->touch]);
        c->unmapped = c->unmapped && !hb_is_mapped(s->d->h, place_of(s, m));
    }
}

/* Two members that nothing tells apart; false: there are none. */
static bool find_members(search *s, class *a, class *b, const member **ma, const member **mb)
{
    ask_process(s, a);
    ask_process(s, b);
    if (a->unmapped && (a->in_child || b->in_child)) { /* what hb_separate says of each two of them */
        s->d->stats.pairs_disjoint += (uint64_t)a->count * b->count;
        return false;
    }
    for (uint32_t i = a->first; i != HB_NONE; i = s->members.data[i].next)
        for (uint32_t k = b->first; k != HB_NONE; k = s->members.data[k].next) {
            *ma = &s->members.data[i];
            *mb = &s->members.data[k];
            if (!hb_separate(s->d->h, a->origin, &s->touches[(*ma)->touch], place_of(s, *ma), b->origin, &s->touches[(*mb)->touch],
                             place_of(s, *mb)))
                return true;
            s->d->stats.pairs_disjoint++;
        }
    return false;
}

/* An object that one has taken out is not the one that the other has, as long as all of them are handed over in order. */
static bool is_other(search *s, const class *a, const class *b)
{
    if (a->taken == HB_NONE || b->taken == a->taken) return a->taken != HB_NONE;
    for (uint32_t m = b->first; m != HB_NONE; m = s->members.data[m].next)
        if (!hb_reached_under(s->d->h, &s->touches[s->members.data[m].touch], a->taken)) return false;
    return true;
}

enum { GOOD = 4 }; /* no better case of the same places and sides is likely */

/* Pairs of a class with those of a group, from one on, that are ordered and that no lock could guard: nearly all pairs of a large
 * program. Returns the next one that is to be looked at, or the end. */
static uint32_t skip_ordered(search *s, const class *of, uint64_t meets, uint32_t from, uint32_t end, uint64_t *ordered)
{
    const hb_origin *origin = &s->origins[of->origin];
    uint32_t own = origin->twin != HB_NONE || !origin->overlaps ? of->origin : HB_NONE; /* with itself it makes no pairs */
    for (; from < end; from++) {
        const class_brief *b = &s->briefs.data[from];
        if (meets >> b->at & 1 || !(of->bare || b->bare)) break;
        *ordered += b->origin != own;
    }
    return from;
}

/* What the rank of a pair is at least, as far as nothing has to be asked for it. */
static int least_of(const detect *d, const class *a, const class *b, const detect_pair *pair)
{
    const int sides[2] = {a->cost + detect_rank_doubt(a->doubt, pair->doubt[0]),
                          b->cost + detect_rank_doubt(b->doubt, pair->doubt[1])};
    const bool holds[2] = {a->holds, b->holds};
    return detect_rank_least(d, pair, sides, holds) + (a->fresh || b->fresh ? DEFERRED : 0);
}

/* The best case of two groups, which costs no less than `least`; false: they do not race. */
static bool races(search *s, uint32_t ga, uint32_t gb, int least, detect_warning *best, detect_access accesses[2], const hb_place **place)
{
    detect *d = s->d;
    group *a = &s->groups.data[ga], *b = &s->groups.data[gb];
    uint32_t end_a = a->first + a->count, end_b = b->first + b->count;
    bool found = false;
    for (uint32_t i = a->first; i < end_a; i++) {
        class *ca = &s->classes.data[i];
        uint64_t meets = a->in_frame ? UINT64_MAX : detect_company_meetings(d, &s->companies, ca->stance, b->company);
        for (uint32_t k = ga == gb ? i : b->first; k < end_b; k++) {
            uint64_t ordered = 0;
            k = skip_ordered(s, ca, meets, k, end_b, &ordered);
            d->stats.pairs += ordered;
            d->stats.pairs_ordered += ordered;
            if (ordered) judge(a, b, DETECT_ORDERED);
            if (k == end_b) break;
            class *cb = &s->classes.data[k];
            const char *why = NULL;
            if (detect_same_thread(s->origins, ca->origin, cb->origin)) continue;
            d->stats.pairs++;
            if (a->in_frame && s->origins[ca->origin].kind == HB_ENTRY && s->origins[cb->origin].kind == HB_ENTRY) {
                d->stats.pairs_disjoint++; /* code outside does not hand variables of a library's functions about */
                judge(a, b, DETECT_APART);
                continue;
            }
            if (!ca->bare && !cb->bare && detect_guards_common(&s->guards, ca->guards, cb->guards)) {
                d->stats.pairs_guarded++;
                judge(a, b, DETECT_GUARDED);
                continue;
            }
            hb_meeting how = HB_MEET_SURE;
            if (hb_stances_ordered(d->h, ca->stance, cb->stance, &why, &how)) {
                d->stats.pairs_ordered++;
                judge(a, b, DETECT_ORDERED);
                continue;
            }
            judge(a, b, DETECT_APART); /* or racing */
            if (found && best->rank <= ca->cost + cb->cost - detect_rank_writes()) continue;
            const hb_touch *ta = &s->touches[s->members.data[ca->first].touch], *tb = &s->touches[s->members.data[cb->first].touch];
            detect_pair pair = {.place = {place_of(s, &s->members.data[ca->first]), place_of(s, &s->members.data[cb->first])},
                                .touch = {ta, tb}, .origin = {ca->origin, cb->origin}, .set = {ca->set, cb->set},
                                .doubt = {how != HB_MEET_WILD ? ca->doubt : HB_WILD, how != HB_MEET_WILD ? cb->doubt : HB_WILD},
                                .unmeant = how == HB_MEET_UNMEANT,
                                .atomic = {a->atomic, b->atomic}, .is_volatile = a->is_volatile || b->is_volatile,
                                .maybe_atomic = (a->locked && no_debug(d, tb)) || (b->locked && no_debug(d, ta))};
            if (found && best->rank <= least_of(d, ca, cb, &pair)) continue;
            detect_warning w = {.kind = DETECT_RACE, .why = why};
            detect_rank(d, &pair, &w);
            if (found && best->rank <= w.rank) continue;
            if (ca->fresh || cb->fresh || is_other(s, ca, cb) || is_other(s, cb, ca)) w.rank += DEFERRED;
            const member *ma, *mb;
            if ((found && best->rank <= w.rank) || !find_members(s, ca, cb, &ma, &mb)) continue;
            d->stats.pairs_racing++;
            found = true;
            *best = w;
            accesses[0] = access_of(d, &s->touches[ma->touch], ma->touch, ca, a->atomic);
            accesses[1] = access_of(d, &s->touches[mb->touch], mb->touch, cb, b->atomic);
            *place = ca->exact ? place_of(s, ma) : place_of(s, mb);
            if (w.rank <= least + GOOD) return true;
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

/* What the accesses are to by declaration: the narrower one says it better. False: nothing is known, or they differ. */
static bool declared_as(const search *s, const detect_access accesses[2], detect_known *out)
{
    detect_known members[2];
    bool known[2];
    for (unsigned i = 0; i < 2; i++)
        known[i] = detect_declared_member(s->d, &s->touches[accesses[i].touch], &members[i]);
    if (!known[0] && !known[1]) return false;
    const bool second = !known[0] || (known[1] && s->touches[accesses[1].touch].width < s->touches[accesses[0].touch].width);
    *out = members[second];
    return !known[0] || !known[1] || members[0].type == members[1].type;
}

static void report(search *s, detect_warning *w, const detect_access accesses[2], const hb_place *place)
{
    detect *d = s->d;
    detect_known as;
    const detect_known *of_member = declared_as(s, accesses, &as) ? &as : NULL;
    detect_name(d, &place->place, of_member, &w->location, &w->key, &w->about);
    const pta_site *site = &d->program->sites.data[place->place.site];
    if (site->kind == PTA_STATIC || site->kind == PTA_TLS) w->symbol = site->name;
    w->benign = detect_place_noted(d, &place->place, of_member);
    w->accesses = base_alloc(2 * sizeof *w->accesses);
    memcpy(w->accesses, accesses, 2 * sizeof *accesses);
    w->access_count = 2;
    bool swap = accesses[1].write && !accesses[0].write;
    if (swap) {
        w->accesses[0] = accesses[1];
        w->accesses[1] = accesses[0];
    }
    uint32_t *known = map_at(&s->looks, look_of(d, w));
    const bool is_new = *known == MAP_NONE;
    if (is_new) *known = d->warnings.len;
    w->number = *known;
    detect_decide_racing(d, accesses, *known);
    if (is_new) {
        vec_push(&d->warnings, *w);
        return;
    }
    detect_warning *shown = &d->warnings.data[*known], other = *w;
    const bool benign = shown->benign && w->benign;
    if (w->rank < shown->rank) {
        other = *shown;
        *shown = *w;
    }
    shown->benign = benign;
    free(other.location);
    free(other.key);
    free(other.about);
    free(other.accesses);
}

typedef struct {
    detect_access accesses[2];
    const hb_place *place;
} found_pair;

typedef struct {
    int64_t low;
    uint32_t group;
} group_start;

static int by_low(const void *a, const void *b)
{
    const group_start *x = a, *y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

static bool is_settled(const group *g, int least)
{
    return g->found && g->best.rank <= least + GOOD;
}

enum { MOST_PAIRS = 1 << 25 }; /* of one object, until only those are looked for that are in no warning yet */

static void pair_groups(search *s, found_pair *pairs, uint32_t a, uint32_t b)
{
    group *ga = &s->groups.data[a], *gb = &s->groups.data[b];
    if ((!ga->write && !gb->write) || !hb_overlap(ga->extent, gb->extent)) return;
    if ((ga->own_frame && gb->own_frame) || (ga->in_frame && !ga->inside && !gb->inside)) {
        s->d->stats.pairs++;
        s->d->stats.pairs_disjoint++;
        judge(ga, gb, DETECT_APART);
        return;
    }
    if (ga->atomic && gb->atomic) {
        s->d->stats.pairs_atomic++;
        return;
    }
    detect_meeting meet = detect_companies_meet(s->d, &s->companies, ga->company, gb->company);
    if (meet == DETECT_MEET_NEVER) {
        s->d->stats.pairs++;
        s->d->stats.pairs_ordered++;
        judge(ga, gb, DETECT_ORDERED);
        return;
    }
    /* Who races is told of already, and where there are so many pairs a surer one of them is hardly worth the time. */
    if (s->d->stats.pairs - s->pairs_before > MOST_PAIRS && ga->found && gb->found) {
        s->d->stats.pairs_skipped++;
        return;
    }
    int unsure = detect_rank_unsure(), fa = ga->floor, fb = gb->floor;
    if (fa >= DEFERRED && fb >= DEFERRED) fb -= DEFERRED; /* which counts once */
    if (meet == DETECT_MEET_UNSURE && fa < unsure) fa = unsure;
    if (meet == DETECT_MEET_UNSURE && fb < unsure) fb = unsure;
    int least = detect_rank_base(s->d, ga->extent, gb->extent) + fa + fb;
    if (is_settled(ga, least) && is_settled(gb, least)) return;
    found_pair pair;
    detect_warning w;
    if (!races(s, a, b, least, &w, pair.accesses, &pair.place)) return;
    w.size = ga->extent->width < gb->extent->width ? ga->extent->width : gb->extent->width;
    bool new_a = !ga->found || w.rank < ga->best.rank, new_b = !gb->found || w.rank < gb->best.rank;
    keep(ga, b, &w);
    if (new_a) pairs[a] = pair;
    keep(gb, a, &w);
    if (new_b) pairs[b] = pair;
}

/* What became of the groups: whoever races is told of by report, at once or when what it waits for is settled. */
static void decide(search *s)
{
    for (uint32_t g = 0; s->d->decider && g < s->groups.len; g++) {
        const group *of = &s->groups.data[g];
        const hb_touch *t = &s->touches[s->members.data[s->classes.data[of->first].first].touch];
        detect_decide(s->d, t, of->atomic ? DETECT_ATOMIC : of->verdict ? of->verdict : DETECT_UNSHARED);
    }
}

static void search_object(search *s, uint32_t first, uint32_t end)
{
    if (!is_shared(s, first, end)) {
        for (uint32_t e = first; e < end; e++)
            detect_decide(s->d, &s->touches[s->entries.data[e].touch], DETECT_UNSHARED);
        return;
    }
    make_groups(s, first, end);
    vec_clear(&s->briefs);
    for (uint32_t g = 0; g < s->groups.len; g++) {
        s->groups.data[g].company = company_of(s, &s->groups.data[g]);
        brief_classes(s, &s->groups.data[g]);
    }
    found_pair *pairs = base_alloc_zero(s->groups.len, sizeof *pairs);
    group_start *starts = base_alloc(s->groups.len * sizeof *starts);
    s->d->stats.places_shared++;
    s->pairs_before = s->d->stats.pairs;
    for (uint32_t g = 0; g < s->groups.len; g++)
        starts[g] = (group_start){s->groups.data[g].extent->low, g};
    if (s->groups.len) qsort(starts, s->groups.len, sizeof *starts, by_low);
    uint32_t *writer = base_alloc((s->groups.len + 1) * sizeof *writer); /* the first that writes, from here on */
    writer[s->groups.len] = s->groups.len;
    for (uint32_t i = s->groups.len; i-- > 0;)
        writer[i] = s->groups.data[starts[i].group].write ? i : writer[i + 1];
    for (uint32_t i = 0; i < s->groups.len; i++) {
        const group *of = &s->groups.data[starts[i].group];
        for (uint32_t k = of->write ? i : writer[i]; k < s->groups.len && starts[k].low < of->extent->high; k = of->write ? k + 1 : writer[k + 1])
            if (starts[i].group < starts[k].group)
                pair_groups(s, pairs, starts[i].group, starts[k].group);
            else
                pair_groups(s, pairs, starts[k].group, starts[i].group);
    }
    free(writer);
    free(starts);
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
    decide(s);
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
    for (uint32_t i = 0; i < s->deferred.len; i++) {
        const deferred_pair *p = &s->deferred.data[i];
        s->d->stats.pairs_handed += !p->done;
        for (unsigned k = 0; k < 2 && !p->done; k++)
            detect_decide(s->d, &s->touches[p->accesses[k].touch], DETECT_HANDED);
    }
}

/* Plain loads of what is declared atomic, or changed by atomic instructions, when the function branches on what they find. */
static void mark_waits(const search *s)
{
    uint32_t count;
    const hb_touch *touches = hb_touches(s->d->h, &count);
    for (uint32_t n = 0; n < count; n++) {
        const hb_touch *t = &touches[n];
        if (t->flags & (IR_WRITE | HB_LIBRARY) || !t->ir || (n && t->func == touches[n - 1].func && t->insn == touches[n - 1].insn)) continue;
        uint64_t offset;
        const hb_place *place = hb_places(s->d->h, t);
        const image_type *type = detect_place_type(s->d, &place->place, &offset);
        bool atomic = (type && hb_type_at(type, offset, t->width).is_atomic) || hb_changes_atomically(s->d->h, place);
        if (atomic && hb_decides(s->d->h, t)) hb_wait_mark(s->d->h, t->func, t->insn);
    }
}

void detect_races(detect *d)
{
    search s = {.d = d};
    uint32_t count;
    s.touches = hb_touches(d->h, &count);
    detect_entries_collect(d, &s.entries);
    mark_waits(&s);
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
    detect_members(d, s.origins_of);
    map_free(&s.looks);
    vec_free(&s.racy);
    vec_free(&s.deferred);
    detect_guards_close(&s.guards);
    detect_companies_close(&s.companies);
    for (uint32_t i = 0; i < pta_instance_count(d->p); i++)
        vec_free(&s.origins_of[i]);
    free(s.origins_of);
    vec_free(&s.entries);
    vec_free(&s.members);
    vec_free(&s.classes);
    vec_free(&s.made);
    vec_free(&s.briefs);
    vec_free(&s.groups);
}
