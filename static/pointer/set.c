/* Sets of keys as sorted arrays: small, and quick to merge. */
#include "static/pointer/set.h"

#include <stdlib.h>

#include "static/pointer/pointer.h"

void set_free(pta_set *set)
{
    free(set->keys);
    free(set->ranks);
    free(set->reasons);
    *set = (pta_set){0};
}

static uint32_t lower_bound(const pta_key *keys, uint32_t low, uint32_t high, pta_key key)
{
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (keys[mid] < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint32_t set_find(const pta_set *set, pta_key key)
{
    uint32_t at = lower_bound(set->keys, 0, set->len, key);
    return at < set->len && set->keys[at] == key ? at : UINT32_MAX;
}

/* The coarsest class of an object, the first of its classes; 0: none. */
static offset_t class_in(const pta_set *set, uint32_t object)
{
    uint32_t at = lower_bound(set->keys, 0, set->len, key_make(object, OFFSET_CLASS));
    return at < set->len && key_object(set->keys[at]) == object ? key_offset(set->keys[at]) : 0;
}

static bool wild_covers(const pta_set *set, pta_key key, set_world world)
{
    return set_is_wild(set) && world.wild[key_object(key)] & SET_IN_WILD;
}

static bool class_covers(const pta_set *set, pta_key key, set_world world)
{
    offset_t class = class_in(set, key_object(key));
    return class && key_offset(key) != class && offset_covers(class, key_offset(key), world.shapes[key_object(key)]);
}

bool set_covers(const pta_set *set, pta_key key, set_world world)
{
    return wild_covers(set, key, world) || class_covers(set, key, world);
}

/* A set that is wild by itself keeps some more of what makes it so, in reserve. */
static bool is_dropped(const pta_set *set, pta_key key, set_world world)
{
    if (!world.drops || !wild_covers(set, key, world)) return false;
    bool by_itself = set->reasons && set->reasons[0] == SET_NO_REASON;
    return !by_itself || set->loose > 2 * set_wild_at(set, world) || !set_is_loose(key);
}

/* A key that is not there would not change anything. */
static bool is_idle(const pta_set *set, pta_key key, set_world world)
{
    return is_dropped(set, key, world) || class_covers(set, key, world);
}

bool set_knows(const pta_set *set, pta_key key, set_world world)
{
    return set_find(set, key) != UINT32_MAX || is_idle(set, key, world);
}

void set_missing(const pta_set *set, const pta_key *keys, uint32_t count, set_world world, key_list *out)
{
    uint32_t at = 0; /* the first key of the set that is not before keys[i] */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t step = 1, high = at;
        while (high < set->len && set->keys[high] < keys[i]) {
            at = high + 1;
            high += step;
            step *= 2;
        }
        at = lower_bound(set->keys, at, high < set->len ? high : set->len, keys[i]);
        if (at < set->len && set->keys[at] == keys[i]) continue;
        if (!is_idle(set, keys[i], world)) vec_push(out, keys[i]);
    }
}

uint32_t set_group(const pta_set *set, uint32_t object)
{
    return lower_bound(set->keys, 0, set->len, key_make(object, 0));
}

/* Merges two sorted stretches, a before b, into `to`. Reasons go along, if there are any. */
static void merge_two(const pta_key *keys, const uint32_t *reasons, uint32_t a, uint32_t b, uint32_t end, pta_key *to,
                      uint32_t *to_reasons)
{
    for (uint32_t middle = b, at = a; at < end; at++) {
        bool first = a < middle && (b == end || keys[a] < keys[b] || (keys[a] == keys[b] && (!reasons || reasons[a] <= reasons[b])));
        uint32_t from = first ? a++ : b++;
        to[at] = keys[from];
        if (reasons) to_reasons[at] = reasons[from];
    }
}

static uint32_t run_end(const pta_key *keys, const uint32_t *reasons, uint32_t from, uint32_t count)
{
    while (from + 1 < count && (keys[from] < keys[from + 1] ||
                                (keys[from] == keys[from + 1] && (!reasons || reasons[from] <= reasons[from + 1]))))
        from++;
    return from + 1;
}

/* By key, then by reason. What is sent to a node are a few sorted stretches, one after the other: these are merged. */
static void sort_runs(pta_key *keys, uint32_t *reasons, uint32_t n)
{
    enum { FEW = 128 };
    pta_key few[FEW], *other = n <= FEW ? few : base_alloc(n * sizeof *other), *own = keys;
    uint32_t few_reasons[FEW], *other_reasons = !reasons || n <= FEW ? few_reasons : base_alloc(n * sizeof *other_reasons);
    uint32_t *own_reasons = reasons;
    pta_key *from = own, *to = other;
    uint32_t *from_reasons = own_reasons, *to_reasons = other_reasons;
    while (run_end(from, from_reasons, 0, n) < n) {
        for (uint32_t a = 0, b, end; a < n; a = end) {
            b = run_end(from, from_reasons, a, n);
            end = b < n ? run_end(from, from_reasons, b, n) : n;
            merge_two(from, from_reasons, a, b, end, to, to_reasons);
        }
        pta_key *keys_before = from;
        uint32_t *reasons_before = from_reasons;
        from = to, to = keys_before;
        if (reasons) from_reasons = to_reasons, to_reasons = reasons_before;
    }
    if (from != own) memcpy(own, from, n * sizeof *own);
    if (reasons && from_reasons != own_reasons) memcpy(own_reasons, from_reasons, n * sizeof *own_reasons);
    if (other != few) free(other);
    if (other_reasons != few_reasons) free(other_reasons);
}

static bool is_sorted(const pta_key *keys, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (keys[i - 1] >= keys[i]) return false;
    return true;
}

void keys_sort(pta_key *keys, uint32_t *count)
{
    keys_sort_with(keys, NULL, count);
}

void keys_sort_with(pta_key *keys, uint32_t *reasons, uint32_t *count)
{
    uint32_t n = *count, kept = 0;
    if (is_sorted(keys, n)) return;
    sort_runs(keys, reasons, n);
    for (uint32_t i = 0; i < n; i++) {
        if (kept && keys[kept - 1] == keys[i]) continue;
        keys[kept] = keys[i];
        if (reasons) reasons[kept] = reasons[i];
        kept++;
    }
    *count = kept;
}

/* What divides all distances of single places from one of them, and `all`. */
static uint64_t gap(uint64_t all, offset_t from, const pta_key *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count && all != 1; i++) {
        int64_t distance = offset_at(key_offset(keys[i])) - offset_at(from);
        all = offset_gcd((uint64_t)(distance < 0 ? -distance : distance), all);
    }
    return all;
}

typedef struct { /* the keys of one object while some are added */
    const pta_key *known; /* those that are there */
    uint32_t singles;     /* of them */
    key_list *fresh;      /* new single ones, from `begin` on */
    uint32_t begin;
    offset_t class; /* the coarsest; 0: none */
    uint64_t gap;    /* of the first `gap_of` single ones, known and fresh; 0: there are less than two */
    uint32_t gap_of;
    const pta_shape *shape;
} group;

static group group_of(const pta_set *set, uint32_t from, uint32_t to, const pta_shape *shape, key_list *fresh)
{
    group g = {.known = set->keys + from, .fresh = fresh, .begin = fresh->len, .shape = shape};
    for (; from < to && !g.class; from++) {
        offset_t place = key_offset(set->keys[from]);
        if (offset_is_single(place))
            g.singles++;
        else
            g.class = place; /* sorted by stride: the first is the coarsest */
    }
    return g;
}

static void group_cover(group *g, const pta_key *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!offset_covers(g->class, key_offset(keys[i]), g->shape))
            g->class = offset_join(g->class, key_offset(keys[i]), g->shape);
}

/* What divides all distances between the single places and one more. Asked with each that is added: of an array of large elements there
 * may be very many. */
static uint64_t group_gap(group *g, offset_t place)
{
    const pta_key *fresh = g->fresh->data + g->begin;
    const uint32_t fresh_count = g->fresh->len - g->begin, all = g->singles + fresh_count;
    const offset_t first = !all ? place : key_offset(g->singles ? g->known[0] : fresh[0]);
    if (g->gap_of < g->singles) {
        g->gap = gap(g->gap, first, g->known + g->gap_of, g->singles - g->gap_of);
        g->gap_of = g->singles;
    }
    g->gap = gap(g->gap, first, fresh + (g->gap_of - g->singles), all - g->gap_of);
    g->gap_of = all;
    const pta_key own = place;
    return gap(g->gap, first, &own, 1);
}

/* Keys come sorted. */
static void group_add(group *g, pta_key key)
{
    offset_t place = key_offset(key);
    const pta_key *fresh = g->fresh->data + g->begin;
    uint32_t fresh_count = g->fresh->len - g->begin;
    if (g->class) {
        group_cover(g, &key, 1);
        return;
    }
    if (offset_is_single(place)) {
        uint32_t at = lower_bound(g->known, 0, g->singles, key);
        if ((at < g->singles && g->known[at] == key) || (fresh_count && fresh[fresh_count - 1] == key)) return;
        uint64_t stride = 0;
        if (g->singles + fresh_count >= PTA_EXACT)
            stride = group_gap(g, place);
        if (!stride || stride >= OFFSET_MAX_STRIDE) {
            vec_push(g->fresh, key);
            return;
        }
        place = offset_class(stride, offset_at(place), offset_bound_of(place, g->shape));
    }
    g->class = place;
    group_cover(g, g->known, g->singles);
    group_cover(g, fresh, fresh_count);
    g->fresh->len = g->begin;
}

offset_t set_closure(const pta_key *keys, uint32_t count, const pta_shape *shape)
{
    group g = {.shape = shape};
    uint32_t singles = lower_bound(keys, 0, count, key_make(count ? key_object(keys[0]) : 0, OFFSET_CLASS));
    if (singles < count) {
        g.class = key_offset(keys[singles]);
    } else {
        uint64_t stride = count > PTA_EXACT ? gap(0, key_offset(keys[0]), keys, count) : 0;
        if (!stride || stride >= OFFSET_MAX_STRIDE) return 0;
        g.class = offset_class(stride, offset_at(key_offset(keys[0])), offset_bound_of(key_offset(keys[0]), shape));
    }
    group_cover(&g, keys, count);
    return g.class;
}

static void make_room(pta_set *set, uint32_t len, bool reasons)
{
    if (len <= set->cap) return;
    uint32_t cap = set->cap + set->cap / 2 > len ? set->cap + set->cap / 2 : len;
    set->keys = base_realloc(set->keys, (size_t)cap * sizeof *set->keys);
    set->ranks = base_realloc(set->ranks, (size_t)cap * sizeof *set->ranks);
    if (reasons) set->reasons = base_realloc(set->reasons, (size_t)cap * sizeof *set->reasons);
    set->cap = cap;
}

/* Puts SET_WILD in front of what is being added, when the set has become wild. */
static void add_wild(const pta_set *set, uint32_t wild_at, key_list *added, uint32_t first)
{
    if (set->loose <= wild_at || set->tame || set_is_wild(set)) return;
    if (added->len > first && added->data[first] == set_wild_key()) return;
    vec_push(added, 0);
    memmove(added->data + first + 1, added->data + first, (added->len - first - 1) * sizeof *added->data);
    added->data[first] = set_wild_key();
}

void set_add(pta_set *set, const pta_key *keys, uint32_t count, uint64_t rank, set_world world, key_list *added)
{
    set_add_for(set, keys, NULL, count, rank, world, added);
}

/* The edge that brought a key; none did that brought something else, of which it is the closure. */
static uint32_t reason_of(pta_key key, const pta_key *keys, const uint32_t *reasons, uint32_t count)
{
    uint32_t at = reasons ? lower_bound(keys, 0, count, key) : count;
    return at < count && keys[at] == key ? reasons[at] : SET_NO_REASON;
}

void set_add_for(pta_set *set, const pta_key *keys, const uint32_t *reasons, uint32_t count, uint64_t rank, set_world world,
                 key_list *added)
{
    uint32_t first = added->len, at = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t object = key_object(keys[i]), end = i + 1;
        while (end < count && key_object(keys[end]) == object)
            end++;
        at = lower_bound(set->keys, at, set->len, key_make(object, 0));
        uint32_t to = at;
        while (to < set->len && key_object(set->keys[to]) == object)
            to++;
        if (is_dropped(set, keys[end - 1], world)) { /* a class comes last */
            i = end;
            continue;
        }
        group g = group_of(set, at, to, world.shapes[object], added);
        offset_t old = g.class;
        for (; i < end; i++)
            group_add(&g, keys[i]);
        if (g.class != old) vec_push(added, key_make(object, g.class));
        set->loose += g.class != old && set_is_loose(key_make(object, g.class)) && !(old && set_is_loose(key_make(object, old)));
        at = to;
    }
    add_wild(set, set_wild_at(set, world), added, first);
    uint32_t fresh = added->len - first;
    if (!fresh) return;
    make_room(set, set->len + fresh, reasons || set->reasons);
    uint32_t from = set->len, to = set->len + fresh;
    for (uint32_t a = fresh; a;) { /* merge from the end */
        if (from && set->keys[from - 1] > added->data[first + a - 1]) {
            from--, to--;
            set->keys[to] = set->keys[from];
            set->ranks[to] = set->ranks[from];
            if (set->reasons) set->reasons[to] = set->reasons[from];
        } else {
            a--, to--;
            set->keys[to] = added->data[first + a];
            set->ranks[to] = rank;
            if (set->reasons) set->reasons[to] = reason_of(set->keys[to], keys, reasons, count);
        }
    }
    set->len += fresh;
    uint32_t kept = first;
    for (uint32_t i = first; i < added->len; i++)
        if (!wild_covers(set, added->data[i], world)) added->data[kept++] = added->data[i];
    added->len = kept;
}

void set_normal(const pta_set *set, set_world world, key_list *out)
{
    bool wild = set_is_wild(set);
    for (uint32_t i = 0; i < set->len;) {
        uint32_t object = key_object(set->keys[i]), end = i;
        offset_t class = 0;
        for (; end < set->len && key_object(set->keys[end]) == object; end++)
            if (!class && !offset_is_single(key_offset(set->keys[end]))) class = key_offset(set->keys[end]);
        bool covered = wild && world.wild[object] & SET_IN_WILD;
        if (class && !covered) vec_push(out, key_make(object, class));
        for (uint32_t k = i; !class && !covered && k < end; k++)
            vec_push(out, set->keys[k]);
        i = end;
    }
}

void set_drop_covered(pta_set *set, set_world world)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->len; i++) {
        if (world.wild[key_object(set->keys[i])] & SET_IN_WILD) continue;
        set->keys[kept] = set->keys[i];
        set->ranks[kept++] = set->ranks[i];
    }
    set->len = kept;
}

void set_count(pta_set *set)
{
    set->loose = 0;
    for (uint32_t i = 0, last = 0; i < set->len; i++) {
        if (!set_is_loose(set->keys[i]) || key_object(set->keys[i]) == last) continue;
        last = key_object(set->keys[i]);
        set->loose++;
    }
}

void set_remove(pta_set *set, const pta_key *keys, uint32_t count)
{
    uint32_t kept = 0, k = 0;
    for (uint32_t i = 0; i < set->len; i++) {
        while (k < count && keys[k] < set->keys[i])
            k++;
        if (k < count && keys[k] == set->keys[i]) continue;
        set->keys[kept] = set->keys[i];
        if (set->reasons) set->reasons[kept] = set->reasons[i];
        set->ranks[kept++] = set->ranks[i];
    }
    set->len = kept;
    set_count(set);
}

void set_shrink(pta_set *set)
{
    if (set->cap < 8 || set->len > set->cap / 2) return;
    set->cap = set->len ? set->len : 1;
    set->keys = base_realloc(set->keys, set->cap * sizeof *set->keys);
    set->ranks = base_realloc(set->ranks, set->cap * sizeof *set->ranks);
    if (set->reasons) set->reasons = base_realloc(set->reasons, set->cap * sizeof *set->reasons);
}
