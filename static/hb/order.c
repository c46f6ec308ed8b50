/* Whether two points may run at the same time, by what creates and joins what: ECHO 3.2, with positions instead of paths. */
#include "static/hb/private.h"

enum { DEPTH = 12 };

static bool is_parent(const hb_origin *o, uint32_t parent)
{
    for (uint32_t i = 0; i < o->parents.len; i++)
        if (o->parents.data[i] == parent) return true;
    return false;
}

static bool is_ancestor(const hb *h, uint32_t ancestor, uint32_t o)
{
    return hb_bit(h->kin->ancestors + (size_t)o * h->kin->words, ancestor);
}

/* Those that led to each origin: parents, and theirs. */
static void find_ancestors(hb *h)
{
    h->kin = base_alloc_zero(1, sizeof *h->kin);
    h->kin->words = (h->origins.len + 63) / 64;
    h->kin->ancestors = base_alloc_zero((size_t)h->origins.len * h->kin->words, sizeof *h->kin->ancestors);
    h->kin->meet = base_alloc_zero((size_t)h->origins.len * h->origins.len, 1);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t o = 0; o < h->origins.len; o++) {
            uint64_t *own = h->kin->ancestors + (size_t)o * h->kin->words;
            for (uint32_t i = 0; i < h->origins.data[o].parents.len; i++) {
                uint32_t parent = h->origins.data[o].parents.data[i];
                const uint64_t *its = h->kin->ancestors + (size_t)parent * h->kin->words;
                for (uint32_t w = 0; w < h->kin->words; w++) {
                    uint64_t more = its[w] | (w == parent / 64 ? 1ull << parent % 64 : 0);
                    changed |= (more & ~own[w]) != 0;
                    own[w] |= more;
                }
            }
        }
    }
}

void hb_kin_close(hb *h)
{
    if (!h->kin) return;
    free(h->kin->ancestors);
    free(h->kin->meet);
    free(h->kin->position);
    map_free(&h->kin->position_of);
    map_free(&h->kin->position_map);
    vec_free(&h->kin->position_bits);
    map_free(&h->kin->stance_map);
    vec_free(&h->kin->stances);
    map_free(&h->kin->stance_pairs);
    free(h->kin);
}

static const hb_region *ever_of(const hb *h, uint32_t o)
{
    hb_life *life = &h->lives[o];
    if (!life->has_ever) {
        hb_life_ever(h, o, &life->ever);
        life->has_ever = true;
    }
    return &life->ever;
}

static bool is_team(const hb_origin *o)
{
    return o->by && o->by->kind == SYNC_TEAM;
}

/* The chains of creation that lead from `in` to `o`, each origin once in each way: threads may create each other in turn. */
static bool find_alive(const hb *h, uint32_t o, uint32_t in, hb_point at, bool ever, uint64_t *seen)
{
    const hb_origin *origin = &h->origins.data[o];
    if (hb_bit(seen, 2 * o + ever)) return false;
    hb_set(seen, 2 * o + ever);
    for (uint32_t i = 0; i < origin->parents.len; i++) {
        uint32_t parent = origin->parents.data[i];
        if (parent == in) {
            if (hb_region_has(ever ? ever_of(h, o) : &h->lives[o].live, at)) return true;
        } else if (parent != o && is_ancestor(h, in, parent)) {
            /* A team ends with all that it has started, and what that has started. */
            bool outlives = (ever || h->lives[o].live.ends) && !is_team(&h->origins.data[parent]);
            if (find_alive(h, parent, in, at, outlives, seen)) return true;
        }
    }
    return false;
}

/* Whether `o` may be alive while `in`, one of those that led to it, is at a point. */
static bool alive_at(const hb *h, uint32_t o, uint32_t in, hb_point at)
{
    uint64_t *seen = base_alloc_zero(h->origins.len / 32 + 1, sizeof *seen);
    bool alive = find_alive(h, o, in, at, false, seen);
    free(seen);
    return alive;
}

/* Whether some chain of creation leads to `o` without `but`. */
static bool find_other_way(const hb *h, uint32_t o, uint32_t but, uint64_t *seen)
{
    const hb_origin *origin = &h->origins.data[o];
    if (o == but || hb_bit(seen, o)) return false;
    hb_set(seen, o);
    for (uint32_t i = 0; i < origin->parents.len; i++)
        if (find_other_way(h, origin->parents.data[i], but, seen)) return true;
    return !origin->parents.len;
}

static bool has_other_way(const hb *h, uint32_t o, uint32_t but)
{
    uint64_t *seen = base_alloc_zero(h->origins.len / 64 + 1, sizeof *seen);
    bool found = find_other_way(h, o, but, seen);
    free(seen);
    return found;
}

/* Both have led from children of `top`; one of them was started while the other was alive. */
static bool meet_below(const hb *h, uint32_t top, uint32_t x, uint32_t y, bool alone)
{
    if (!alone && h->origins.data[top].overlaps) return true;
    for (uint32_t c = 1; c < h->origins.len; c++) {
        const hb_origin *child = &h->origins.data[c];
        if (!is_parent(child, top)) continue;
        bool to_y = c == y || is_ancestor(h, c, y), to_x = c == x || is_ancestor(h, c, x);
        for (uint32_t s = 0; s < child->sites.len; s++) {
            if (!hb_bit(h->origins.data[top].self, child->sites.data[s].instance)) continue;
            if ((c == y || (to_y && !to_x)) && alive_at(h, x, top, child->sites.data[s])) return true;
            if ((c == x || (to_x && !to_y)) && alive_at(h, y, top, child->sites.data[s])) return true;
            if (to_x && to_y && c != x && c != y && child->overlaps) return true;
            if (alone && to_x && to_y && (c == x || c == y)) return true; /* one has led to the other */
        }
    }
    return false;
}

static bool find_meeting(const hb *h, uint32_t x, uint32_t y)
{
    bool any = false;
    uint32_t team;
    if (hb_tasks_of_one(h, x, y, &team)) return !hb_tasks_depend(h, x, y) && meet_below(h, team, x, y, true);
    for (uint32_t top = 0; top < h->origins.len; top++) {
        if (!is_ancestor(h, top, x) || !is_ancestor(h, top, y)) continue;
        any = true;
        if (meet_below(h, top, x, y, false)) return true;
    }
    return !any;
}

/* Of threads of which none has led to the other, or not always. */
static bool overlaps(const hb *h, uint32_t x, uint32_t y)
{
    uint8_t *known = &h->kin->meet[(size_t)(x < y ? x : y) * h->origins.len + (x < y ? y : x)]; /* 1: no, 2: yes */
    if (!*known) *known = find_meeting(h, x, y) ? 2 : 1;
    return *known == 2;
}

/* Two threads (of main, threads, entries) at two points. */
static bool threads_meet(const hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    const hb_origin *ox = &h->origins.data[x], *oy = &h->origins.data[y];
    if (x == y || ox->twin == y) return ox->overlaps;
    if (ox->kind == HB_ENTRY || oy->kind == HB_ENTRY || ox->kind == HB_OUTSIDE || oy->kind == HB_OUTSIDE) return true;
    bool up = is_ancestor(h, x, y), down = is_ancestor(h, y, x);
    if (up && ((ox->overlaps && !hb_with_creator(h, x, a, y)) || alive_at(h, y, x, a))) return true;
    if (down && ((oy->overlaps && !hb_with_creator(h, y, b, x)) || alive_at(h, x, y, b))) return true;
    if (x && y && ((up && has_other_way(h, y, x)) || (down && has_other_way(h, x, y)))) return overlaps(h, x, y);
    return !up && !down && overlaps(h, x, y);
}

/* A signal may come at any time after its handler is installed. That the thread which installs the handler also runs it is taken for
 * granted: with itself it does not race. */
static bool signal_meets(const hb *h, uint32_t handler, uint32_t y, hb_point b)
{
    const hb_origin *o = &h->origins.data[handler];
    uint8_t kind = h->origins.data[y].kind;
    if (kind == HB_SIGNAL || kind == HB_AT_EXIT) return false;
    (void)b;
    return !is_parent(o, y);
}

static bool is_thread(const hb_origin *o)
{
    return o->kind == HB_MAIN || o->kind == HB_THREAD || o->kind == HB_ENTRY || o->kind == HB_OUTSIDE;
}

static bool event_meets(const hb *h, uint32_t x, uint32_t y, hb_point b)
{
    const hb_origin *o = &h->origins.data[x], *other = &h->origins.data[y];
    if (!o->placed) { /* some one thread runs it; when is not known */
        if (other->kind == HB_MAIN) return false;
        return is_thread(other) || (other->kind == HB_EVENT && other->placed && event_meets(h, y, x, (hb_point){0}));
    }
    for (uint32_t i = 0; i < o->carriers.len; i++) {
        if (is_thread(other) && threads_meet(h, o->carriers.data[i], o->at.data[i], y, b)) return true;
        if (is_thread(other)) continue;
        if (!other->placed) return true;
        for (uint32_t k = 0; k < other->carriers.len; k++)
            if (threads_meet(h, o->carriers.data[i], o->at.data[i], other->carriers.data[k], other->at.data[k])) return true;
    }
    return false;
}

static const char *const reasons[] = {"a signal may come at any time", "the event may come while the other thread runs",
                                      "several such threads run at the same time",
                                      "the thread is running then: it was created before and is joined later, if at all",
                                      "both threads are running then"};
enum { BY_SIGNAL, BY_EVENT, BY_TEAM, BY_KIN, BY_OTHERS, ORDERED };

static unsigned relation(const hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    const hb_origin *ox = &h->origins.data[x], *oy = &h->origins.data[y];
    if (ox->kind == HB_SIGNAL) return signal_meets(h, x, y, b) ? BY_SIGNAL : ORDERED;
    if (oy->kind == HB_SIGNAL) return signal_meets(h, y, x, a) ? BY_SIGNAL : ORDERED;
    if (!is_thread(ox)) return event_meets(h, x, y, b) ? BY_EVENT : ORDERED;
    if (!is_thread(oy)) return event_meets(h, y, x, a) ? BY_EVENT : ORDERED;
    if (!threads_meet(h, x, a, y, b)) return ORDERED;
    return x == y || ox->twin == y ? BY_TEAM : is_ancestor(h, x, y) || is_ancestor(h, y, x) ? BY_KIN : BY_OTHERS;
}

bool shb_ordered(const hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b, const char **reason)
{
    unsigned how = relation(h, x, a, y, b);
    if (how != ORDERED && reason) *reason = reasons[how];
    return how == ORDERED;
}

/* --- positions: all that order asks of a point is in which regions it lies ------------------------------------------------------ */

enum { DIFFER = HB_NONE - 1 };

static uint32_t position_number(hb *h, const uint64_t *bits, uint32_t words)
{
    hb_kin *kin = h->kin;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < words; i++)
        hash = map_hash(hash * 31 + bits[i]);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&kin->position_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = kin->position_bits.len / words;
            for (uint32_t i = 0; i < words; i++)
                vec_push(&kin->position_bits, bits[i]);
            return *at;
        }
        if (!memcmp(kin->position_bits.data + (size_t)*at * words, bits, words * sizeof *bits)) return *at;
    }
}

static bool is_in_parts(const hb_region *r, uint32_t instance)
{
    return !hb_bit(r->whole, instance) && map_get(&r->part_of, instance) != MAP_NONE;
}

static uint32_t find_position(hb *h, hb_point at)
{
    uint32_t words = (2 * h->origins.len + 63) / 64 + 1, part; /* the last: the part that one thread of a team runs, + 1 */
    uint64_t *bits = base_alloc_zero(words, sizeof *bits);
    if (hb_has_single(h, at.instance) && hb_single_part(h, at, &part)) bits[words - 1] = ((uint64_t)h->instances[at.instance].func << 32 | part) + 1;
    for (uint32_t o = 1; o < h->origins.len; o++) {
        if (hb_region_has(&h->lives[o].live, at)) hb_set(bits, 2 * o);
        if (hb_region_has(ever_of(h, o), at)) hb_set(bits, 2 * o + 1);
    }
    uint32_t number = position_number(h, bits, words);
    free(bits);
    return number;
}

static uint32_t position_of(hb *h, hb_point at)
{
    if (!h->kin->position) {
        h->kin->position = base_alloc(h->instance_count * sizeof *h->kin->position);
        memset(h->kin->position, 0xff, h->instance_count * sizeof *h->kin->position);
    }
    uint32_t *all = &h->kin->position[at.instance];
    if (*all == HB_NONE) {
        bool parts = hb_has_single(h, at.instance);
        for (uint32_t o = 1; o < h->origins.len && !parts; o++)
            parts = is_in_parts(&h->lives[o].live, at.instance) || is_in_parts(ever_of(h, o), at.instance);
        *all = parts ? DIFFER : find_position(h, at);
    }
    if (*all != DIFFER) return *all;
    uint32_t *known = map_at(&h->kin->position_of, (uint64_t)at.instance << 32 | at.insn);
    if (*known == MAP_NONE) *known = find_position(h, at);
    return *known;
}

uint32_t hb_stance(hb *h, uint32_t origin, hb_point at)
{
    uint32_t *known = map_at(&h->kin->stance_map, (uint64_t)origin << 32 | position_of(h, at));
    if (*known == MAP_NONE) {
        *known = h->kin->stances.len;
        vec_push(&h->kin->stances, (hb_stand){origin, at});
    }
    return *known;
}

bool hb_stances_ordered(hb *h, uint32_t a, uint32_t b, const char **reason)
{
    hb_stand x = h->kin->stances.data[a], y = h->kin->stances.data[b];
    uint32_t *known = map_at(&h->kin->stance_pairs, (uint64_t)a << 32 | b);
    if (*known == MAP_NONE) *known = relation(h, x.origin, x.at, y.origin, y.at);
    if (*known != ORDERED && reason) *reason = reasons[*known];
    return *known == ORDERED;
}

/* Two of one origin at the same time: it was created again before it was joined, or its creator overlaps. */
static void find_overlap(hb *h, uint32_t o)
{
    hb_origin *origin = &h->origins.data[o];
    if (origin->overlaps || origin->kind == HB_MAIN || hb_task_alone(h, o)) return;
    bool again = origin->looped || origin->kind == HB_OUTSIDE;
    for (uint32_t s = 0; s < origin->sites.len && !again && origin->kind == HB_THREAD; s++)
        again = hb_region_has(&h->lives[o].live, origin->sites.data[s]) && !hb_from_table(h, o, origin->sites.data[s]);
    for (uint32_t i = 0; i < origin->parents.len && !again; i++) {
        uint32_t parent = origin->parents.data[i];
        again = parent == o || h->origins.data[parent].overlaps;
        for (uint32_t k = 0; k < i && !again; k++)
            again = origin->parents.data[k] != parent;
    }
    origin->overlaps = again;
}

void hb_overlaps_find(hb *h)
{
    find_ancestors(h);
    for (unsigned round = 0; round < DEPTH; round++) {
        bool changed = false;
        for (uint32_t o = 1; o < h->origins.len; o++) {
            bool before = h->origins.data[o].overlaps;
            find_overlap(h, o);
            changed |= before != h->origins.data[o].overlaps;
        }
        if (!changed) break;
    }
}
