/* Whether two points may run at the same time, by what creates and joins what: ECHO 3.2, with positions instead of paths. */
#include "static/hb/private.h"

enum { DEPTH = 12 };

static bool is_parent(const hb_kin *k, uint32_t o, uint32_t parent)
{
    for (uint32_t i = 0; i < k->parents[o].len; i++)
        if (k->parents[o].data[i] == parent) return true;
    return false;
}

static bool is_ancestor(const hb_kin *k, uint32_t ancestor, uint32_t o)
{
    return hb_bit(k->ancestors + (size_t)o * k->words, ancestor);
}

static bool creates_surely(const hb *h, uint32_t parent, const hb_origin *o)
{
    for (uint32_t s = 0; s < o->sites.len; s++)
        if (hb_origin_doubt(h, parent, o->sites.data[s].instance) < HB_WILD) return true;
    return false;
}

static void open_kin(hb *h, hb_kin *k, bool surely)
{
    k->parents = base_alloc_zero(h->origins.len, sizeof *k->parents);
    k->overlaps = base_alloc_zero(h->origins.len, sizeof *k->overlaps);
    for (uint32_t o = 0; o < h->origins.len; o++) {
        const hb_origin *origin = &h->origins.data[o];
        k->overlaps[o] = origin->kind == HB_ENTRY;
        for (uint32_t i = 0; i < origin->parents.len; i++)
            if (!surely || creates_surely(h, origin->parents.data[i], origin)) vec_push(&k->parents[o], origin->parents.data[i]);
    }
}

/* Those that led to each origin: parents, and theirs. */
static void find_ancestors(hb *h, hb_kin *k)
{
    k->words = (h->origins.len + 63) / 64;
    k->ancestors = base_alloc_zero((size_t)h->origins.len * k->words, sizeof *k->ancestors);
    k->meet = base_alloc_zero((size_t)h->origins.len * h->origins.len, 1);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t o = 0; o < h->origins.len; o++) {
            uint64_t *own = k->ancestors + (size_t)o * k->words;
            for (uint32_t i = 0; i < k->parents[o].len; i++) {
                uint32_t parent = k->parents[o].data[i];
                const uint64_t *its = k->ancestors + (size_t)parent * k->words;
                for (uint32_t w = 0; w < k->words; w++) {
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
    for (unsigned i = 0; i < 3; i++) {
        hb_kin *k = &h->kin[i];
        for (uint32_t o = 0; k->parents && o < h->origins.len; o++)
            vec_free(&k->parents[o]);
        free(k->parents);
        free(k->overlaps);
        free(k->ancestors);
        free(k->meet);
    }
    free(h->positions.position);
    map_free(&h->positions.position_of);
    map_free(&h->positions.position_map);
    vec_free(&h->positions.position_bits);
    map_free(&h->positions.stance_map);
    vec_free(&h->positions.few_stances);
    vec_free(&h->positions.stances);
    map_free(&h->positions.stance_pairs);
    free(h->positions.few_pairs);
}

static const hb_region *life_of(const hb *h, const hb_kin *k, uint32_t o)
{
    return k->meant ? hb_life_meant(h, o) : &h->lives[o].live;
}

static bool is_team(const hb_origin *o)
{
    return o->by && o->by->kind == SYNC_TEAM;
}

/* The chains of creation that lead from `in` to `o`, each origin once in each way: threads may create each other in turn. */
static bool find_alive(const hb *h, const hb_kin *k, uint32_t o, uint32_t in, hb_point at, bool ever, uint64_t *seen)
{
    if (hb_bit(seen, 2 * o + ever)) return false;
    hb_set(seen, 2 * o + ever);
    for (uint32_t i = 0; i < k->parents[o].len; i++) {
        uint32_t parent = k->parents[o].data[i];
        if (parent == in) {
            if (hb_region_has(ever ? hb_life_ever(h, o) : life_of(h, k, o), at)) return true;
        } else if (parent != o && is_ancestor(k, in, parent)) {
            /* A team ends with all that it has started, and what that has started. */
            bool outlives = (ever || life_of(h, k, o)->ends) && !is_team(&h->origins.data[parent]);
            if (find_alive(h, k, parent, in, at, outlives, seen)) return true;
        }
    }
    return false;
}

/* Whether `o` may be alive while `in`, one of those that led to it, is at a point. */
static bool alive_at(const hb *h, const hb_kin *k, uint32_t o, uint32_t in, hb_point at)
{
    uint64_t *seen = base_alloc_zero(h->origins.len / 32 + 1, sizeof *seen);
    bool alive = find_alive(h, k, o, in, at, false, seen);
    free(seen);
    return alive;
}

/* Whether some chain of creation leads to `o` without `but`. */
static bool find_other_way(const hb *h, const hb_kin *k, uint32_t o, uint32_t but, uint64_t *seen)
{
    if (o == but || hb_bit(seen, o)) return false;
    hb_set(seen, o);
    for (uint32_t i = 0; i < k->parents[o].len; i++)
        if (find_other_way(h, k, k->parents[o].data[i], but, seen)) return true;
    return !k->parents[o].len;
}

static bool has_other_way(const hb *h, const hb_kin *k, uint32_t o, uint32_t but)
{
    uint64_t *seen = base_alloc_zero(h->origins.len / 64 + 1, sizeof *seen);
    bool found = find_other_way(h, k, o, but, seen);
    free(seen);
    return found;
}

/* Both have led from children of `top`; one of them was started while the other was alive. */
static bool meet_below(const hb *h, const hb_kin *k, uint32_t top, uint32_t x, uint32_t y, bool alone)
{
    if (!alone && k->overlaps[top]) return true;
    for (uint32_t c = 1; c < h->origins.len; c++) {
        const hb_origin *child = &h->origins.data[c];
        if (!is_parent(k, c, top)) continue;
        bool to_y = c == y || is_ancestor(k, c, y), to_x = c == x || is_ancestor(k, c, x);
        for (uint32_t s = 0; s < child->sites.len; s++) {
            if (!hb_bit(h->origins.data[top].self, child->sites.data[s].instance)) continue;
            if ((c == y || (to_y && !to_x)) && alive_at(h, k, x, top, child->sites.data[s])) return true;
            if ((c == x || (to_x && !to_y)) && alive_at(h, k, y, top, child->sites.data[s])) return true;
            if (to_x && to_y && c != x && c != y && k->overlaps[c]) return true;
            if (alone && to_x && to_y && (c == x || c == y)) return true; /* one has led to the other */
        }
    }
    return false;
}

static bool find_meeting(const hb *h, const hb_kin *k, uint32_t x, uint32_t y)
{
    bool any = false;
    uint32_t team;
    if (hb_tasks_of_one(h, x, y, &team)) return !hb_tasks_depend(h, x, y) && meet_below(h, k, team, x, y, true);
    for (uint32_t top = 0; top < h->origins.len; top++) {
        if (!is_ancestor(k, top, x) || !is_ancestor(k, top, y)) continue;
        any = true;
        if (meet_below(h, k, top, x, y, false)) return true;
    }
    return !any;
}

/* Of threads of which none has led to the other, or not always. */
static bool overlaps(const hb *h, const hb_kin *k, uint32_t x, uint32_t y)
{
    uint8_t *known = &k->meet[(size_t)(x < y ? x : y) * h->origins.len + (x < y ? y : x)]; /* 1: no, 2: yes */
    if (!*known) *known = find_meeting(h, k, x, y) ? 2 : 1;
    return *known == 2;
}

/* Two threads (of main, threads, entries) at two points. */
static bool threads_meet(const hb *h, const hb_kin *k, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    const hb_origin *ox = &h->origins.data[x], *oy = &h->origins.data[y];
    if (x == y || ox->twin == y) return k->overlaps[x];
    if (ox->kind == HB_ENTRY || oy->kind == HB_ENTRY || ox->kind == HB_OUTSIDE || oy->kind == HB_OUTSIDE) return true;
    bool up = is_ancestor(k, x, y), down = is_ancestor(k, y, x);
    if (up && ((k->overlaps[x] && !hb_with_creator(h, x, a, y)) || alive_at(h, k, y, x, a))) return true;
    if (down && ((k->overlaps[y] && !hb_with_creator(h, y, b, x)) || alive_at(h, k, x, y, b))) return true;
    if (x && y && ((up && has_other_way(h, k, y, x)) || (down && has_other_way(h, k, x, y)))) return overlaps(h, k, x, y);
    return !up && !down && overlaps(h, k, x, y);
}

/* A signal may come at any time after its handler is installed. That the thread which installs the handler also runs it is taken for
 * granted: with itself it does not race. */
static bool signal_meets(const hb *h, uint32_t handler, uint32_t y, hb_point b)
{
    uint8_t kind = h->origins.data[y].kind;
    if (kind == HB_SIGNAL || kind == HB_AT_EXIT) return false;
    (void)b;
    return !is_parent(h->kin, handler, y);
}

static bool is_thread(const hb_origin *o)
{
    return o->kind == HB_MAIN || o->kind == HB_THREAD || o->kind == HB_ENTRY || o->kind == HB_OUTSIDE;
}

static bool event_meets(const hb *h, const hb_kin *k, uint32_t x, uint32_t y, hb_point b)
{
    const hb_origin *o = &h->origins.data[x], *other = &h->origins.data[y];
    if (!o->placed) { /* some one thread runs it; when is not known */
        if (other->kind == HB_MAIN) return false;
        return is_thread(other) || (other->kind == HB_EVENT && other->placed && event_meets(h, k, y, x, (hb_point){0}));
    }
    for (uint32_t i = 0; i < o->carriers.len; i++) {
        if (is_thread(other) && threads_meet(h, k, o->carriers.data[i], o->at.data[i], y, b)) return true;
        if (is_thread(other)) continue;
        if (!other->placed) return true;
        for (uint32_t n = 0; n < other->carriers.len; n++)
            if (threads_meet(h, k, o->carriers.data[i], o->at.data[i], other->carriers.data[n], other->at.data[n])) return true;
    }
    return false;
}

static const char *const reasons[] = {"a signal may come at any time", "the event may come while the other thread runs",
                                      "several such threads run at the same time",
                                      "the thread is running then: it was created before and is joined later, if at all",
                                      "both threads are running then"};
enum { BY_SIGNAL, BY_EVENT, BY_TEAM, BY_KIN, BY_OTHERS, ORDERED };

static unsigned relation(const hb *h, const hb_kin *k, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    const hb_origin *ox = &h->origins.data[x], *oy = &h->origins.data[y];
    if (ox->kind == HB_SIGNAL) return signal_meets(h, x, y, b) ? BY_SIGNAL : ORDERED;
    if (oy->kind == HB_SIGNAL) return signal_meets(h, y, x, a) ? BY_SIGNAL : ORDERED;
    if (!is_thread(ox)) return event_meets(h, k, x, y, b) ? BY_EVENT : ORDERED;
    if (!is_thread(oy)) return event_meets(h, k, y, x, a) ? BY_EVENT : ORDERED;
    if (!threads_meet(h, k, x, a, y, b)) return ORDERED;
    return x == y || ox->twin == y ? BY_TEAM : is_ancestor(k, x, y) || is_ancestor(k, y, x) ? BY_KIN : BY_OTHERS;
}

bool shb_ordered(const hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b, const char **reason)
{
    unsigned how = relation(h, h->kin, x, a, y, b);
    if (how != ORDERED && reason) *reason = reasons[how];
    return how == ORDERED;
}

/* --- positions: all that order asks of a point is in which regions it lies ------------------------------------------------------ */

enum { DIFFER = HB_NONE - 1 };

static uint32_t position_number(hb *h, const uint64_t *bits, uint32_t words)
{
    hb_positions *kin = &h->positions;
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

static uint32_t position_words(const hb *h)
{
    return (3 * h->origins.len + 63) / 64 + 1; /* the last: the part that one thread of a team runs, + 1 */
}

static void find_part(const hb *h, hb_point at, uint64_t *bits)
{
    uint32_t root, part;
    if (hb_single_of(h, at, &root, &part)) bits[position_words(h) - 1] = ((uint64_t)root << 32 | part) + 1;
}

static void regions_of(const hb *h, uint32_t origin, const hb_region *out[3])
{
    out[0] = &h->lives[origin].live;
    out[1] = hb_life_ever(h, origin);
    out[2] = hb_life_meant(h, origin);
}

static uint32_t find_position(hb *h, hb_point at)
{
    uint64_t *bits = base_alloc_zero(position_words(h), sizeof *bits);
    find_part(h, at, bits);
    for (uint32_t o = 1; o < h->origins.len; o++) {
        const hb_region *regions[3];
        regions_of(h, o, regions);
        for (unsigned i = 0; i < 3; i++)
            if (hb_region_has(regions[i], at)) hb_set(bits, 3 * o + i);
    }
    uint32_t number = position_number(h, bits, position_words(h));
    free(bits);
    return number;
}

/* The position of all points of an instance, of which one is given; DIFFER: they have several. */
static uint32_t find_whole(hb *h, hb_point at)
{
    if (hb_has_single(h, at.instance)) return DIFFER;
    uint64_t *bits = base_alloc_zero(position_words(h), sizeof *bits);
    bool parts = false;
    for (uint32_t o = 1; o < h->origins.len && !parts; o++) {
        const hb_region *regions[3];
        regions_of(h, o, regions);
        for (unsigned i = 0; i < 3 && !parts; i++)
            if (hb_bit(regions[i]->whole, at.instance))
                hb_set(bits, 3 * o + i);
            else
                parts = map_get(&regions[i]->part_of, at.instance) != MAP_NONE;
    }
    find_part(h, at, bits);
    uint32_t number = parts ? DIFFER : position_number(h, bits, position_words(h));
    free(bits);
    return number;
}

static uint32_t position_of(hb *h, hb_point at)
{
    if (!h->positions.position) {
        h->positions.position = base_alloc(h->instance_count * sizeof *h->positions.position);
        memset(h->positions.position, 0xff, h->instance_count * sizeof *h->positions.position);
    }
    uint32_t *all = &h->positions.position[at.instance];
    if (*all == HB_NONE) *all = find_whole(h, at);
    if (*all != DIFFER) return *all;
    uint32_t *known = map_at(&h->positions.position_of, (uint64_t)at.instance << 32 | at.insn);
    if (*known == MAP_NONE) *known = find_position(h, at);
    return *known;
}

uint32_t hb_position(hb *h, hb_point at)
{
    return position_of(h, at);
}

uint32_t hb_stance(hb *h, uint32_t origin, hb_point at, uint32_t position)
{
    enum { FEW = 1 << 22 };
    hb_positions *p = &h->positions;
    uint64_t number = (uint64_t)position * h->origins.len + origin;
    while (number < FEW && p->few_stances.len <= number)
        vec_push(&p->few_stances, HB_NONE);
    uint32_t *known = number < FEW ? &p->few_stances.data[number] : map_at(&p->stance_map, number);
    if (*known == HB_NONE) {
        *known = p->stances.len;
        vec_push(&p->stances, (hb_stand){origin, at});
    }
    return *known;
}

uint32_t hb_stance_origin(const hb *h, uint32_t stance)
{
    return h->positions.stances.data[stance].origin;
}

/* Main or a caller of a library creates it, or who they have created, without calls through unknown pointers. */
static bool is_sure(const hb *h, uint32_t o)
{
    if (!h->kin[0].parents[o].len || is_ancestor(&h->kin[1], 0, o)) return true;
    for (uint32_t entry = 1; entry < h->origins.len && h->origins.data[entry].kind == HB_ENTRY; entry++) /* they come first */
        if (is_ancestor(&h->kin[1], entry, o)) return true;
    return false;
}

static const hb_kin *meant_kin(hb *h);

enum { MEETS_SHIFT = 8 };

/* How two stances relate, and what that is worth. */
static uint32_t find_relation(hb *h, uint32_t a, uint32_t b)
{
    hb_stand x = h->positions.stances.data[a], y = h->positions.stances.data[b];
    unsigned relates = relation(h, &h->kin[0], x.origin, x.at, y.origin, y.at);
    bool both = relates != ORDERED && is_sure(h, x.origin) && is_sure(h, y.origin);
    hb_meeting meets = !both || relation(h, &h->kin[1], x.origin, x.at, y.origin, y.at) == ORDERED ? HB_MEET_WILD
                     : relation(h, meant_kin(h), x.origin, x.at, y.origin, y.at) == ORDERED        ? HB_MEET_UNMEANT
                                                                                                    : HB_MEET_SURE;
    return relates | (uint32_t)meets << MEETS_SHIFT;
}

/* The same, asked once; the first stances are those of most pairs. */
static uint32_t relation_of(hb *h, uint32_t a, uint32_t b)
{
    enum { FEW = 512 };
    hb_positions *p = &h->positions;
    if (a < FEW && b < FEW) {
        if (!p->few_pairs) p->few_pairs = base_alloc_zero(FEW * FEW, sizeof *p->few_pairs);
        uint16_t *known = &p->few_pairs[a * FEW + b]; /* + 1; 0: not asked yet */
        if (!*known) *known = (uint16_t)(find_relation(h, a, b) + 1);
        return *known - 1u;
    }
    uint32_t *known = map_at(&p->stance_pairs, (uint64_t)a << 32 | b);
    if (*known == MAP_NONE) *known = find_relation(h, a, b);
    return *known;
}

bool hb_stances_ordered(hb *h, uint32_t a, uint32_t b, const char **reason, hb_meeting *how)
{
    uint32_t known = relation_of(h, a, b);
    unsigned relates = known & ((1u << MEETS_SHIFT) - 1);
    if (relates == ORDERED) return true;
    *reason = reasons[relates];
    *how = (hb_meeting)(known >> MEETS_SHIFT);
    return false;
}

/* Two of one origin at the same time: it was created again before it was joined, or its creator overlaps. */
static bool find_overlap(const hb *h, const hb_kin *k, uint32_t o)
{
    const hb_origin *origin = &h->origins.data[o];
    const hb_numbers *parents = &k->parents[o];
    if (origin->kind == HB_MAIN || hb_task_alone(h, o)) return k->overlaps[o];
    bool again = k->overlaps[o] || origin->kind == HB_OUTSIDE || origin->looped;
    for (uint32_t i = 0; i < parents->len && !again; i++) {
        again = parents->data[i] == o || k->overlaps[parents->data[i]] || parents->data[i] != parents->data[0];
        for (uint32_t s = 0; s < origin->sites.len && !again && origin->kind == HB_THREAD; s++)
            again = hb_bit(h->origins.data[parents->data[i]].self, origin->sites.data[s].instance) &&
                    hb_region_has(life_of(h, k, o), origin->sites.data[s]) && !hb_from_table(h, o, origin->sites.data[s]);
    }
    return again;
}

static void find_overlaps(hb *h, hb_kin *k)
{
    find_ancestors(h, k);
    for (unsigned round = 0; round < DEPTH; round++) {
        bool changed = false;
        for (uint32_t o = 1; o < h->origins.len; o++) {
            bool before = k->overlaps[o];
            k->overlaps[o] = find_overlap(h, k, o);
            changed |= before != k->overlaps[o];
        }
        if (!changed) break;
    }
}

static const hb_kin *meant_kin(hb *h)
{
    hb_kin *k = &h->kin[2];
    if (!k->parents) {
        k->meant = true;
        open_kin(h, k, true);
        find_overlaps(h, k);
    }
    return k;
}

void hb_overlaps_find(hb *h)
{
    for (unsigned i = 0; i < 2; i++) {
        open_kin(h, &h->kin[i], i);
        find_overlaps(h, &h->kin[i]);
    }
    for (uint32_t o = 1; o < h->origins.len; o++)
        h->origins.data[o].overlaps = h->kin[0].overlaps[o];
}
