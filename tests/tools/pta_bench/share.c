/* How many accesses are to what only one origin accesses.
 *
 * An origin is the start of the program, or a thread or event handler: its entry function together with the call that
 * creates it. A thread that is created in a loop is two. Which origins may run an instance of a function follows from
 * the call graph: those of its callers, and for what is spawned the new one. So the question is the same in each
 * context, and a context that tells the instances of origins apart has an advantage only through the sets that it
 * finds.
 *
 * An access instruction, run by an origin, is shared when another origin may access a byte that it may access; it is
 * shared with a write when moreover one of both writes. Bytes are compared as object (context included), range and
 * class, so two fields of one object are two things. An access to the outside may be to whatever has escaped.
 *
 * How much of that is for want of knowing pointers is counted once more without the accesses through wild ones, as if each of
 * them were to memory that nobody else knows: no knowledge about them makes fewer instructions shared than that.
 *
 * Left out: accesses to the own frame, which no context needs to know more about; accesses that library functions make,
 * since models have no accesses. */
#include <stdio.h>

#include "static/pointer/map.h"
#include "static/pointer/offset.h"
#include "tests/tools/pta_bench/bench.h"

typedef struct {
    uint32_t entry, spawn, lead; /* function, call in the model, call that leads there */
    uint32_t callee;             /* instance, where each twin has its own; else UINT32_MAX */
    uint32_t twin;
} origin_name;

typedef struct { /* bytes at + n * stride, `width` of them each, inside of [low, high) of an object */
    uint32_t object;
    uint32_t stride; /* 0: just one */
    int64_t at, low, high;
    uint32_t width;
} extent;

typedef VEC(uint32_t) number_list;

typedef struct {
    const pta *p;
    const pta_program *program;
    bool split;                  /* each twin is an instance of its own */
    bool tame;                   /* accesses through wild pointers are left out */
    VEC(origin_name) names;      /* [0]: the start */
    uint32_t words;              /* of a set of origins */
    uint64_t *runs;              /* per instance: origins */
    map64 objects;               /* by memory site and context */
    VEC(number_list) extents_of; /* per object */
    map64 extent_map;
    VEC(extent) extents;
    VEC(uint64_t) any, write;        /* per extent: origins that access it, and that write it */
    uint64_t *near_any, *near_write; /* per extent: those of all that overlap it */
} sharing;

/* --- sets of origins --------------------------------------------------------------------------------------------- */

static bool join(uint64_t *to, const uint64_t *from, uint32_t words)
{
    bool changed = false;
    for (uint32_t w = 0; w < words; w++) {
        changed |= (from[w] & ~to[w]) != 0;
        to[w] |= from[w];
    }
    return changed;
}

static bool has_other(const uint64_t *set, uint32_t words, uint32_t than)
{
    for (uint32_t w = 0; w < words; w++)
        if (set[w] & ~(w == than / 64 ? 1ull << than % 64 : 0)) return true;
    return false;
}

static double count_bits(const uint64_t *set, size_t words)
{
    double bits = 0;
    for (size_t w = 0; w < words; w++)
        bits += __builtin_popcountll(set[w]);
    return bits;
}

/* --- who runs what ----------------------------------------------------------------------------------------------- */

static uint32_t name_of(sharing *s, origin_name name)
{
    for (uint32_t i = 1; i < s->names.len; i++)
        if (!memcmp(&s->names.data[i], &name, sizeof name)) return i;
    vec_push(&s->names, name);
    return s->names.len - 1;
}

enum { MODEL_DEPTH = 4 };

/* The call in code that leads to an instance of a model; `*loop`: it or one between may run repeatedly. */
static uint32_t leading_call(const sharing *s, const pta_call_edge *edges, const uint32_t *in, uint32_t instance,
                             bool *loop)
{
    uint32_t call = UINT32_MAX;
    for (unsigned depth = 0; depth < MODEL_DEPTH && in[instance] != UINT32_MAX; depth++) {
        const pta_call_edge *e = &edges[in[instance]];
        call = e->call;
        *loop |= s->program->calls.data[call].in_loop;
        if (s->program->calls.data[call].addr) break;
        instance = e->caller;
    }
    return call;
}

typedef struct {
    uint32_t edge, origin;
} spawned;
typedef VEC(spawned) spawned_list;

static void find_origins(sharing *s, const pta_call_edge *edges, uint32_t count, const uint32_t *in,
                         spawned_list *spawns)
{
    for (uint32_t e = 0; e < count; e++) {
        const pta_call *call = &s->program->calls.data[edges[e].call];
        if (call->spawn == PTA_SPAWN_NONE) continue;
        bool loop = call->in_loop;
        pta_instance callee;
        pta_instance_at(s->p, edges[e].callee, &callee);
        origin_name name = {.entry = callee.func, .callee = UINT32_MAX};
        if (s->split) {
            name.callee = edges[e].callee;
        } else {
            name.spawn = edges[e].call;
            name.lead = leading_call(s, edges, in, edges[e].caller, &loop);
        }
        unsigned twins = !s->split && call->spawn == PTA_SPAWN_THREAD && loop ? 2 : 1;
        for (name.twin = 0; name.twin < twins; name.twin++)
            vec_push(spawns, (spawned){e, name_of(s, name)});
    }
}

static void find_runs(sharing *s)
{
    pta_call_edge *edges;
    uint32_t count = pta_call_graph(s->p, &edges), instances = pta_instance_count(s->p);
    uint32_t *in = base_alloc(instances * sizeof *in), *first = base_alloc_zero(instances + 1, sizeof *first);
    uint32_t *out = base_alloc(count * sizeof *out);
    number_list work = {0};
    spawned_list spawns = {0};
    memset(in, 0xff, instances * sizeof *in);
    for (uint32_t e = count; e-- > 0;) {
        uint32_t *known = &in[edges[e].callee];
        if (*known == UINT32_MAX || edges[*known].call > edges[e].call) *known = e;
        first[edges[e].caller + 1]++;
    }
    for (uint32_t i = 0; i < instances; i++)
        first[i + 1] += first[i];
    uint32_t *fill = base_alloc(instances * sizeof *fill);
    memcpy(fill, first, instances * sizeof *fill);
    for (uint32_t e = 0; e < count; e++)
        out[fill[edges[e].caller]++] = e;
    vec_push(&s->names, (origin_name){.entry = PTA_NO_FUNC});
    find_origins(s, edges, count, in, &spawns);
    s->words = (s->names.len + 63) / 64;
    s->runs = base_alloc_zero((size_t)instances * s->words, sizeof *s->runs);
    for (uint32_t i = 0; i < instances; i++) {
        pta_instance instance;
        if (!pta_instance_at(s->p, i, &instance) || in[i] != UINT32_MAX) continue;
        s->runs[(size_t)i * s->words] |= 1;
        vec_push(&work, i);
    }
    for (uint32_t i = 0; i < spawns.len; i++) {
        uint32_t callee = edges[spawns.data[i].edge].callee, origin = spawns.data[i].origin;
        s->runs[(size_t)callee * s->words + origin / 64] |= 1ull << origin % 64;
        vec_push(&work, callee);
    }
    while (work.len) {
        uint32_t caller = work.data[--work.len];
        for (uint32_t k = first[caller]; k < first[caller + 1]; k++) {
            const pta_call_edge *e = &edges[out[k]];
            if (s->program->calls.data[e->call].spawn != PTA_SPAWN_NONE) continue;
            if (join(s->runs + (size_t)e->callee * s->words, s->runs + (size_t)caller * s->words, s->words))
                vec_push(&work, e->callee);
        }
    }
    vec_free(&work);
    vec_free(&spawns);
    free(in);
    free(first);
    free(fill);
    free(out);
    free(edges);
}

/* --- what is accessed -------------------------------------------------------------------------------------------- */

static uint32_t object_of(sharing *s, uint32_t site, uint32_t context)
{
    uint32_t *at = map_at(&s->objects, (uint64_t)site << 32 | context);
    if (*at == MAP_NONE) {
        *at = s->extents_of.len;
        vec_push(&s->extents_of, (number_list){0});
    }
    return *at;
}

static const int64_t FAR = 1ll << 40;

static extent extent_of(sharing *s, const pta_place *place, uint32_t width)
{
    const pta_site *site = &s->program->sites.data[place->site];
    extent x = {.object = object_of(s, site->memory, place->context),
                .at = site->base + place->offset,
                .low = -FAR,
                .high = FAR,
                .width = width ? width : 1};
    if (place->exact) {
        x.low = x.at;
        x.high = x.at + x.width;
        return x;
    }
    x.stride = place->stride;
    x.at = (x.at % (int64_t)x.stride + (int64_t)x.stride) % (int64_t)x.stride;
    if (site->size && !site->open) {
        x.low = site->base;
        x.high = site->base + (int64_t)site->size;
    }
    return x;
}

static bool same_extent(const extent *a, const extent *b)
{
    return a->object == b->object && a->stride == b->stride && a->at == b->at && a->low == b->low &&
           a->high == b->high && a->width == b->width;
}

/* The number of an extent; a new one has no origins yet. */
static uint32_t number_of(sharing *s, const extent *x)
{
    uint64_t hash = map_hash((uint64_t)x->object << 32 | x->stride);
    hash = map_hash(map_hash(map_hash(hash + (uint64_t)x->at) + (uint64_t)x->low) + (uint64_t)x->high + x->width);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&s->extent_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = s->extents.len;
            vec_push(&s->extents, *x);
            vec_push(&s->extents_of.data[x->object], *at);
            for (uint32_t w = 0; w < s->words; w++) {
                vec_push(&s->any, 0);
                vec_push(&s->write, 0);
            }
            return *at;
        }
        if (same_extent(&s->extents.data[*at], x)) return *at;
    }
}

static bool overlap(const extent *a, const extent *b)
{
    if (a->high <= b->low || b->high <= a->low) return false;
    uint64_t g = offset_gcd(a->stride, b->stride);
    if (!g) return true; /* both exact: the ranges have decided */
    int64_t d = ((a->at - b->at) % (int64_t)g + (int64_t)g) % (int64_t)g;
    return d < (int64_t)b->width || (int64_t)g - d < (int64_t)a->width;
}

static void take_note(sharing *s, uint32_t extent, const uint64_t *origins, bool write)
{
    join(s->any.data + (size_t)extent * s->words, origins, s->words);
    if (write) join(s->write.data + (size_t)extent * s->words, origins, s->words);
}

static bool is_counted(const pta_access *access)
{
    return !(access->flags & IR_FRAME);
}

static bool is_data(const sharing *s, const pta_place *place)
{
    return s->program->sites.data[place->site].kind != PTA_FUNCTION;
}

typedef void visit(sharing *s, uint32_t instance, const pta_access *access, const pta_places *places, void *with);

static void each_access(sharing *s, visit *call, void *with)
{
    pta_places places = {0};
    for (uint32_t i = 0; i < pta_instance_count(s->p); i++) {
        pta_instance instance;
        uint32_t count;
        if (!pta_instance_at(s->p, i, &instance)) continue;
        const pta_access *accesses = pta_accesses(s->program, instance.func, &count);
        for (uint32_t a = 0; a < count; a++) {
            if (!is_counted(&accesses[a]) || (s->tame && pta_is_wild_in(s->p, i, accesses[a].base.var))) continue;
            pta_access_places_in(s->p, i, &accesses[a], &places);
            call(s, i, &accesses[a], &places, with);
        }
    }
    vec_free(&places);
}

static void visit_collect(sharing *s, uint32_t instance, const pta_access *access, const pta_places *places, void *with)
{
    (void)with;
    for (uint32_t i = 0; i < places->len; i++) {
        if (!is_data(s, &places->data[i])) continue;
        extent x = extent_of(s, &places->data[i], access->width);
        take_note(s, number_of(s, &x), s->runs + (size_t)instance * s->words, access->flags & IR_WRITE);
    }
}

/* An access to the outside is one to all that has escaped. */
static void spread_outside(sharing *s, number_list *escaped)
{
    pta_places places = {0};
    uint32_t outside = object_of(s, s->program->sites.data[s->program->external].memory, 0);
    uint64_t *any = base_alloc_zero(s->words, sizeof *any), *write = base_alloc_zero(s->words, sizeof *write);
    for (uint32_t i = 0; i < s->extents_of.data[outside].len; i++) {
        size_t at = (size_t)s->extents_of.data[outside].data[i] * s->words;
        join(any, s->any.data + at, s->words);
        join(write, s->write.data + at, s->words);
    }
    pta_escaped(s->p, &places);
    for (uint32_t i = 0; i < places.len; i++) {
        if (!is_data(s, &places.data[i])) continue;
        const pta_site *site = &s->program->sites.data[places.data[i].site];
        extent x = {.object = object_of(s, site->memory, places.data[i].context),
                    .stride = 1,
                    .low = -FAR,
                    .high = FAR,
                    .width = 1};
        if (x.object == outside) continue;
        uint32_t number = number_of(s, &x);
        take_note(s, number, any, false);
        join(s->write.data + (size_t)number * s->words, write, s->words);
        if (!escaped->len || escaped->data[escaped->len - 1] != x.object) vec_push(escaped, x.object);
    }
    vec_free(&places);
    free(any);
    free(write);
}

static void bring_near(sharing *s, uint32_t a, uint32_t b)
{
    join(s->near_any + (size_t)a * s->words, s->any.data + (size_t)b * s->words, s->words);
    join(s->near_write + (size_t)a * s->words, s->write.data + (size_t)b * s->words, s->words);
}

static int by_number(const void *a, const void *b, void *with)
{
    const extent *extents = ((const sharing *)with)->extents.data;
    const extent *x = &extents[*(const uint32_t *)a], *y = &extents[*(const uint32_t *)b];
    bool u = x->stride, v = y->stride;
    if (u != v) return u ? -1 : 1; /* classes first */
    return x->at < y->at ? -1 : x->at > y->at;
}

static void find_near(sharing *s, const number_list *escaped)
{
    s->near_any = base_alloc_zero(s->any.len, sizeof *s->near_any);
    s->near_write = base_alloc_zero(s->any.len, sizeof *s->near_write);
    for (uint32_t o = 0; o < s->extents_of.len; o++) {
        number_list *all = &s->extents_of.data[o];
        if (all->len) qsort_r(all->data, all->len, sizeof *all->data, by_number, s);
        for (uint32_t i = 0; i < all->len; i++) {
            const extent *x = &s->extents.data[all->data[i]];
            bring_near(s, all->data[i], all->data[i]);
            for (uint32_t k = i + 1; k < all->len; k++) {
                const extent *y = &s->extents.data[all->data[k]];
                if (!x->stride && y->at >= x->high) break; /* exact ones are sorted */
                if (!overlap(x, y)) continue;
                bring_near(s, all->data[i], all->data[k]);
                bring_near(s, all->data[k], all->data[i]);
            }
        }
    }
    const number_list *outside =
        &s->extents_of.data[object_of(s, s->program->sites.data[s->program->external].memory, 0)];
    for (uint32_t i = 0; i < outside->len; i++)
        for (uint32_t e = 0; e < escaped->len; e++)
            for (uint32_t k = 0; k < s->extents_of.data[escaped->data[e]].len; k++)
                bring_near(s, outside->data[i], s->extents_of.data[escaped->data[e]].data[k]);
}

/* --- what is shared ---------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t *first; /* per function: number of its first machine instruction */
    uint64_t *seen, *any,
        *write; /* per machine instruction: origins in which it accesses, shared, shared with a write */
    bool *wild; /* the same: in some instance its pointer is */
    share_counts *counts;
} answer;

static void visit_judge(sharing *s, uint32_t instance, const pta_access *access, const pta_places *places, void *with)
{
    answer *a = with;
    const uint64_t *origins = s->runs + (size_t)instance * s->words;
    size_t at = (size_t)(a->first[access->func] + access->insn) * s->words;
    join(a->seen + at, origins, s->words);
    a->wild[at / s->words] |= pta_is_wild_in(s->p, instance, access->base.var);
    a->counts->in_instances += places->len > 0;
    a->counts->places_in += places->len;
    for (uint32_t i = 0; i < places->len; i++) {
        if (!is_data(s, &places->data[i])) continue;
        extent x = extent_of(s, &places->data[i], access->width);
        size_t number = (size_t)number_of(s, &x) * s->words;
        const uint64_t *writers = access->flags & IR_WRITE ? s->near_any : s->near_write;
        for (uint32_t o = 0; o < s->names.len; o++) {
            if (!(origins[o / 64] >> o % 64 & 1)) continue;
            uint64_t bit = 1ull << o % 64;
            if (has_other(s->near_any + number, s->words, o)) a->any[at + o / 64] |= bit;
            if (has_other(writers + number, s->words, o)) a->write[at + o / 64] |= bit;
        }
    }
}

/* Of the instructions that a run recorded: those that are accesses here, and how many of them are shared. */
static void compare_run(const sharing *s, const answer *a, const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned long long addr;
    int shared;
    while (file && fscanf(file, "%llx %d", &addr, &shared) == 2) {
        const lift_func *f = lift_func_covering(s->program->modules[0], addr);
        uint32_t func = 0, i = 0;
        while (f && func < s->program->funcs.len && s->program->funcs.data[func].lift != f)
            func++;
        while (f && i < f->insn_count && f->insns[i].addr != addr)
            i++;
        if (!f || func == s->program->funcs.len || i == f->insn_count) continue;
        size_t at = (size_t)(a->first[func] + i) * s->words;
        if (!count_bits(a->seen + at, s->words)) continue;
        a->counts->ran++;
        a->counts->ran_write += count_bits(a->write + at, s->words) > 0;
        a->counts->ran_shared += shared > 0;
    }
    if (file) fclose(file);
}

static void judge(sharing *s, const char *ran, share_counts *out)
{
    answer a = {.first = base_alloc_zero(s->program->funcs.len + 1, sizeof *a.first), .counts = out};
    for (uint32_t f = 0; f < s->program->funcs.len; f++)
        a.first[f + 1] = a.first[f] + (s->program->funcs.data[f].lift ? s->program->funcs.data[f].lift->insn_count : 1);
    uint32_t insns = a.first[s->program->funcs.len];
    size_t size = (size_t)insns * s->words;
    a.seen = base_alloc_zero(size, sizeof *a.seen);
    a.any = base_alloc_zero(size, sizeof *a.any);
    a.write = base_alloc_zero(size, sizeof *a.write);
    a.wild = base_alloc_zero(insns, sizeof *a.wild);
    each_access(s, visit_judge, &a);
    for (uint32_t i = 0; i < insns; i++) {
        out->insns += count_bits(a.seen + (size_t)i * s->words, s->words) > 0;
        out->insns_any += count_bits(a.any + (size_t)i * s->words, s->words) > 0;
        out->insns_write += count_bits(a.write + (size_t)i * s->words, s->words) > 0;
        out->insns_wild += a.wild[i];
    }
    if (ran) compare_run(s, &a, ran);
    out->pairs = count_bits(a.seen, size);
    out->pairs_any = count_bits(a.any, size);
    out->pairs_write = count_bits(a.write, size);
    free(a.first);
    free(a.seen);
    free(a.any);
    free(a.write);
    free(a.wild);
}

/* Sizes over all instances of a function together. */
static void count_places(sharing *s, share_counts *out)
{
    pta_places places = {0};
    bool *runs = base_alloc_zero(s->program->funcs.len, sizeof *runs);
    pta_instance instance;
    for (uint32_t i = 0; i < pta_instance_count(s->p); i++)
        if (pta_instance_at(s->p, i, &instance)) runs[instance.func] = true;
    for (uint32_t f = 0; f < s->program->funcs.len; f++) {
        uint32_t count;
        const pta_access *accesses = pta_accesses(s->program, f, &count);
        for (uint32_t a = 0; runs[f] && a < count; a++) {
            if (!is_counted(&accesses[a])) continue;
            pta_access_places(s->p, &accesses[a], &places);
            out->accesses++;
            out->pointed += places.len > 0;
            out->places += places.len;
            if (places.len > out->largest) out->largest = places.len;
        }
    }
    vec_free(&places);
    free(runs);
}

static void find_shared(sharing *s, const char *ran, share_counts *out)
{
    number_list escaped = {0};
    find_runs(s);
    each_access(s, visit_collect, NULL);
    spread_outside(s, &escaped);
    find_near(s, &escaped);
    judge(s, ran, out);
    out->origins = s->names.len;
    for (uint32_t i = 0; i < s->extents_of.len; i++)
        vec_free(&s->extents_of.data[i]);
    vec_free(&s->extents_of);
    vec_free(&s->extents);
    vec_free(&s->any);
    vec_free(&s->write);
    vec_free(&s->names);
    vec_free(&escaped);
    map_free(&s->objects);
    map_free(&s->extent_map);
    free(s->runs);
    free(s->near_any);
    free(s->near_write);
}

void share_count(const pta *p, const pta_program *program, pta_context_kind kind, const char *ran, share_counts *out)
{
    sharing s = {.p = p, .program = program, .split = kind == PTA_CONTEXT_ORIGIN}, rest = s;
    share_counts without = {0};
    *out = (share_counts){0};
    rest.tame = true;
    count_places(&s, out);
    find_shared(&s, ran, out);
    find_shared(&rest, NULL, &without);
    out->insns_tame = without.insns_write;
}
