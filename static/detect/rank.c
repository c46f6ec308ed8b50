/* How sure a pair is. The rank orders warnings: what is surely one place, surely two threads, surely without locks comes first. */
#include "static/detect/private.h"

enum { MEMBER = 10, FRAME = 18, ARRAY = 25, COMMON = 20 }; /* costs of not knowing that both are to one variable */

enum { MEDIUM = 18, LOW = 40 }; /* ranks from which on the confidence is no better */
enum { BROUGHT = 11 }; /* of each caller that uses what it has brought along */
enum { UNKNOWN = 60 }; /* cost of not knowing the object: such a pair is of low confidence, behind others that are */
enum { NONE_HOLDS = 4, ONE_HOLDS = 1, BOTH_HOLD = 12 }; /* of locks: who takes one knows that it is needed */
enum { BOTH_WRITE = 2 };
enum { ATOMIC = 15, MAYBE_ATOMIC = 30, VOLATILE = 3 };
enum { UNSURE = 22 }; /* cost of a way to be in order that was not followed: with it nothing is of high confidence */

static void because(detect_warning *w, const char *reason, int cost)
{
    w->rank += cost;
    for (uint32_t i = 0; i < w->reason_count; i++)
        if (w->reasons[i] == reason) return; /* each is one literal */
    if (w->reason_count < DETECT_REASONS) w->reasons[w->reason_count++] = reason;
}

/* An object of an allocator of the program's own, and nobody knows who has called it: all that it has ever allocated looks like one. */
static bool is_common(const detect *d, uint32_t site, uint32_t context)
{
    uint32_t calls[PTA_HEAP_CALLS];
    if (d->program->sites.data[site].kind != PTA_HEAP) return false;
    pta_place place = {.site = site, .context = context};
    return pta_heap_calls(d->p, &place, calls) && d->program->funcs.data[d->program->calls.data[calls[0]].caller].clone;
}

int detect_rank_base(const detect *d, const hb_extent *a, const hb_extent *b)
{
    uint32_t site, context;
    hb_object_at(d->h, a->object, &site, &context);
    uint8_t kind = d->program->sites.data[site].kind;
    int common = is_common(d, site, context) ? COMMON : 0;
    if (a->stride || b->stride) return ARRAY + common;
    return kind == PTA_STATIC || kind == PTA_LIBRARY ? 0 : kind == PTA_FRAME ? FRAME : MEMBER + common;
}

typedef struct {
    const char *reason;
    int cost;
} cost;

static const cost doubts[HB_DOUBTS] = {
    [HB_DYING] = {"one side runs there only when the program gives up", 20},
    [HB_AGAINST] = {"one side runs there only against what its thread has tested, or was called with, before", 25},
    [HB_MANY] = {"one side runs there only if a call that may be to many functions leads to it", 25},
    [HB_WILD] = {"one side runs there only if a call through an unknown pointer leads to it", 30},
};

int detect_rank_writes(void)
{
    return BOTH_WRITE;
}

int detect_rank_unsure(void)
{
    return doubts[HB_WILD].cost;
}

/* What speaks against one side. Returns the number. */
static uint32_t side_costs(const hb_origin *o, const hb_touch *t, uint8_t doubt, cost out[5])
{
    uint32_t n = 0;
    if (t->place_count > 4) out[n++] = (cost){"an access may be to many objects", 15};
    if ((o->kind == HB_EVENT && !o->certain) || o->kind == HB_SIGNAL || o->kind == HB_AT_EXIT) out[n++] = (cost){"one side is an event", 10};
    if (o->kind == HB_OUTSIDE) out[n++] = (cost){"one side is called by code that was not analysed", 40};
    if (doubts[doubt].reason) out[n++] = doubts[doubt];
    if (t->flags & HB_LIBRARY) out[n++] = (cost){"one side is made by a library function", 3};
    return n;
}

/* A caller of a library accesses what it has brought along: that two do so with one object is what few libraries allow. */
static cost brought(const detect *d, uint32_t origin, uint32_t object)
{
    uint32_t count, site, context;
    if (hb_origins(d->h, &count)[origin].kind != HB_ENTRY) return (cost){NULL, 0};
    hb_object_at(d->h, object, &site, &context);
    uint8_t kind = d->program->sites.data[site].kind;
    if (kind != PTA_HEAP || hb_held_by_variable(d->h, object)) return (cost){NULL, 0};
    return (cost){"two threads would have to call the library with one object at the same time", BROUGHT};
}

int detect_rank_brought(const detect *d, uint32_t origin, uint32_t object)
{
    return brought(d, origin, object).cost;
}

int detect_rank_side(const detect *d, uint32_t origin, const hb_touch *t, uint8_t doubt)
{
    cost costs[5];
    uint32_t count;
    int sum = 0;
    for (uint32_t i = side_costs(&hb_origins(d->h, &count)[origin], t, doubt, costs); i-- > 0;)
        sum += costs[i].cost;
    return sum;
}

int detect_rank_locks(bool a, bool b)
{
    return a && b ? BOTH_HOLD : a || b ? ONE_HOLDS : NONE_HOLDS;
}

int detect_rank_doubt(uint8_t from, uint8_t to)
{
    return doubts[to].cost - doubts[from].cost;
}

static bool waited(const detect *d, const detect_pair *pair, const detect_warning *w, unsigned side)
{
    return w->rank < LOW && hb_has_waited(d->h, pair->origin[side], (hb_point){pair->touch[side]->instance, pair->touch[side]->insn});
}

/* It is not known which loop runs an event, and one of those that may is of the other side's thread. */
static bool may_be_one_thread(const hb_origin *origins, uint32_t event, uint32_t other)
{
    const hb_origin *o = &origins[event];
    if (o->kind != HB_EVENT || o->certain) return false;
    for (uint32_t i = 0; i < o->carriers.len; i++)
        if (o->carriers.data[i] == other) return true;
    return false;
}

static bool shares_optional(const detect *d, const detect_pair *pair)
{
    hb_point at[2];
    for (unsigned i = 0; i < 2; i++)
        at[i] = (hb_point){pair->touch[i]->instance, pair->touch[i]->insn};
    return hb_share_optional(d->h, at[0], at[1]);
}

/* By declaration each side accesses a struct of another type. */
static bool differ(const detect *d, const detect_pair *pair)
{
    detect_known members[2];
    for (unsigned i = 0; i < 2; i++)
        if (!detect_declared_member(d, pair->touch[i], &members[i])) return false;
    return members[0].type != members[1].type;
}

/* What speaks against both being to the same bytes. */
static void rank_places(const detect *d, const detect_pair *pair, detect_warning *w)
{
    uint8_t site = d->program->sites.data[pair->place[0]->place.site].kind;
    bool exact = pair->place[0]->place.exact && pair->place[1]->place.exact;
    if (exact && (site == PTA_STATIC || site == PTA_LIBRARY))
        because(w, "both accesses are to the same variable", 0);
    else if (exact && site == PTA_FRAME)
        because(w, "both accesses are to a variable of a function, which more than one may run", FRAME);
    else if (exact)
        because(w, "both accesses are to the same member of objects that may be one", MEMBER);
    else
        because(w, "both accesses are somewhere in one array", ARRAY);
    if (w->rank && differ(d, pair)) because(w, "the sides take the object for members of different types", UNSURE);
    if (is_common(d, pair->place[0]->place.site, pair->place[0]->place.context))
        because(w, "the object is one of all that an allocator of the program has made", COMMON);
}

/* In step with detect_rank: what has to be asked costs nothing here. */
int detect_rank_least(const detect *d, const detect_pair *pair, const int sides[2], const bool holds[2])
{
    uint8_t site = d->program->sites.data[pair->place[0]->place.site].kind;
    int rank = sides[0] + sides[1] + detect_rank_locks(holds[0], holds[1]);
    if (!pair->place[0]->place.exact || !pair->place[1]->place.exact)
        rank += ARRAY;
    else if (site != PTA_STATIC && site != PTA_LIBRARY)
        rank += site == PTA_FRAME ? FRAME : MEMBER;
    if (pair->unmeant) rank += UNSURE;
    if (pair->atomic[0] || pair->atomic[1]) rank += ATOMIC;
    if (pair->maybe_atomic) rank += MAYBE_ATOMIC;
    if (pair->is_volatile) rank += VOLATILE;
    return pair->touch[0]->flags & pair->touch[1]->flags & IR_WRITE ? rank - BOTH_WRITE : rank;
}

void detect_rank(const detect *d, const detect_pair *pair, detect_warning *w)
{
    uint32_t count;
    const hb_origin *origins = hb_origins(d->h, &count);
    const bool known = pair->place[0] && pair->place[1];
    w->rank = 0;
    w->reason_count = 0;
    if (known)
        rank_places(d, pair, w);
    else
        because(w, "it is not known which objects these accesses are to, only that both are to this member", UNKNOWN);
    for (unsigned i = 0; i < 2; i++) {
        cost costs[5];
        for (uint32_t k = 0, n = side_costs(&origins[pair->origin[i]], pair->touch[i], pair->doubt[i], costs); k < n; k++)
            because(w, costs[k].reason, costs[k].cost);
        cost own = known ? brought(d, pair->origin[i], hb_extent_at(d->h, pair->place[i]->extent)->object) : (cost){NULL, 0};
        if (own.cost) because(w, own.reason, own.cost);
    }
    bool held[2] = {hb_holds_locks(d->h, pair->set[0]), hb_holds_locks(d->h, pair->set[1])};
    if (held[0] && held[1] && hb_may_share_lock(d->h, pair->set[0], pair->set[1]))
        because(w, "both sides hold locks, which may be the same one", 25);
    else if (held[0] && held[1])
        because(w, "both sides hold locks, but none in common", BOTH_HOLD);
    else if ((held[0] || held[1]) && waited(d, pair, w, held[0]))
        because(w, "one side holds a lock, the other none but has waited for a condition", UNSURE);
    else if (held[0] || held[1])
        because(w, "one side holds a lock, the other none", ONE_HOLDS);
    else if (waited(d, pair, w, 0) || waited(d, pair, w, 1))
        because(w, "no locks are held, but one side has waited for a condition or an atomic variable", UNSURE);
    else
        because(w, "no locks are held", NONE_HOLDS);
    if (w->rank < LOW && !(held[0] && held[1]) && shares_optional(d, pair))
        because(w, "both sides take a lock, which may be the same one, but only on a condition", UNSURE);
    if (may_be_one_thread(origins, pair->origin[0], pair->origin[1]) || may_be_one_thread(origins, pair->origin[1], pair->origin[0]))
        because(w, "the event may run in the thread of the other side", 10);
    if (pair->unmeant) because(w, "they meet only if no call on the way that may wait for the thread has done so", UNSURE);
    if (known && w->rank < LOW && hb_handed(d->h, pair->touch[0], pair->place[0]) && hb_handed(d->h, pair->touch[1], pair->place[1]))
        because(w, "both sides have come to the object under a lock, or have made it: it may have been handed over", UNSURE);
    if (pair->atomic[0] || pair->atomic[1]) because(w, "one of the accesses is atomic", ATOMIC);
    if (pair->maybe_atomic) because(w, "without debug information plain loads and stores may be atomic", MAYBE_ATOMIC);
    if (pair->is_volatile) because(w, "the variable is volatile, which orders nothing", VOLATILE);
    if (pair->touch[0]->flags & pair->touch[1]->flags & IR_WRITE) w->rank -= BOTH_WRITE;
    w->confidence = w->rank < MEDIUM ? DETECT_HIGH : w->rank < LOW ? DETECT_MEDIUM : DETECT_LOW;
}
