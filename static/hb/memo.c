/* What an analysis leaves for the next one of nearly the same program: regions (region.c), under a hash of all that
 * their walks asked.
 *
 * A walk reads who calls whom, the blocks and calls of functions, and what its own questions answer in the instances in
 * which something may cut. All of it is in the key, the answers themselves and not what they were found from: so a
 * region is the same whenever its key is, whatever else has changed. Machine instructions are not in it, since an edit
 * moves them; a region is kept in begins and ends of blocks and calls, of which there are the same in both programs
 * when their keys are equal. What decides whether two of these are one instruction is in the key, too. (The idea is
 * that of Salsa and Adapton: a fact belongs to its inputs.) */
#include "static/hb/memo.h"

#include <stdio.h>

#include "static/hb/private.h"

typedef struct {
    uint32_t instance;
    uint32_t count; /* of intervals */
} kept_part;

typedef struct {
    uint32_t block;
    uint32_t slot; /* 0: its begin; k: behind its kth call */
} kept_bound;

typedef struct {
    uint64_t key;
    uint64_t used; /* round */
    uint64_t *whole;
    uint32_t words;
    bool ends;
    VEC(kept_part) parts;
    VEC(kept_bound) bounds; /* two per interval */
} kept_region;

typedef struct {
    uint64_t key;
    uint64_t used; /* round */
    uint64_t *bits;
    uint32_t words;
} kept_bits;

struct hb_memo {
    uint64_t round;
    map64 numbers; /* key: number in regions */
    VEC(kept_region) regions;
    map64 told_numbers; /* the same in told */
    VEC(kept_bits) told;
    struct hb_answers *answers;
    hb_memo_statistics stats;
};

enum { ROUNDS = 3 }; /* as long as it was of no use */

static inline uint64_t mix(uint64_t hash, uint64_t value)
{
    return hb_memo_mix(hash, value);
}

static void free_region(kept_region *r)
{
    free(r->whole);
    vec_free(&r->parts);
    vec_free(&r->bounds);
}

hb_memo *hb_memo_open(void)
{
    return base_alloc_zero(1, sizeof(hb_memo));
}

void hb_memo_close(hb_memo *m)
{
    if (!m) return;
    for (uint32_t i = 0; i < m->regions.len; i++)
        free_region(&m->regions.data[i]);
    for (uint32_t i = 0; i < m->told.len; i++)
        free(m->told.data[i].bits);
    vec_free(&m->regions);
    map_free(&m->numbers);
    vec_free(&m->told);
    map_free(&m->told_numbers);
    hb_answers_free(m->answers);
    free(m);
}

struct hb_answers **hb_memo_answers(hb_memo *m)
{
    return m ? &m->answers : NULL;
}

hb_memo_statistics hb_memo_stats(const hb_memo *m)
{
    return m->stats;
}

void hb_memo_differs(const char *what)
{
    fprintf(stderr, "race: taken over from the last analysis, and wrong: %s\n", what);
    abort();
}

/* --- what walks read of a program ---------------------------------------------------------------------------------------------- */

/* Blocks, their edges and calls, and which of their begins and ends are the same instruction. */
static uint64_t hash_function(const hb *h, uint32_t func, uint64_t hash)
{
    const hb_func *own = &h->funcs[func];
    const lift_func *f = hb_code(h, func);
    hash = mix(hash, (uint64_t)own->call_count << 2 | own->jumps << 1 | !!f);
    for (uint32_t c = 0; c < own->call_count; c++)
        hash = mix(hash, own->calls[c].call);
    if (!f) return mix(hash, !strcmp(h->program->funcs.data[func].name, "__libc_start_main"));
    uint32_t last = 0;
    hash = mix(hash, f->block_count);
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        uint32_t end = block->first_insn + block->insn_count, first = hb_first_call(own, block->first_insn),
                 call = first;
        for (; call < own->call_count && own->calls[call].insn < end; call++)
            hash =
                mix(hash, (uint64_t)call << 1 | (call > first && own->calls[call - 1].insn == own->calls[call].insn));
        bool behind = call > first && own->calls[call - 1].insn + 1 == end, follows = block->first_insn == last;
        hash = mix(hash, (uint64_t)(call - first) << 32 | block->end_kind << 8 | block->tail << 3 | behind << 2 |
                             follows << 1 | !block->insn_count);
        hash = mix(hash, block->succ_count);
        for (uint32_t e = block->first_succ; e < block->first_succ + block->succ_count; e++)
            hash = mix(hash, (uint64_t)f->edges[e].kind << 32 | f->edges[e].to);
        last = end;
    }
    return hash;
}

/* Its block may be asked about: code that nothing leads to has no IR. */
static bool is_reached(const lift_func *f, uint32_t block)
{
    return f->ir->blocks[block].rpo != UINT32_MAX;
}

/* A walk that may go anywhere in a function goes to such code, too, and asks about it. */
static bool goes_anywhere(const lift_func *f)
{
    for (uint32_t b = 0; b < f->block_count; b++)
        if (f->blocks[b].end_kind == END_UNKNOWN) return true;
    return false;
}

/* What comes back to a setjmp goes where it may. */
static uint64_t hash_jumps(const hb *h, uint32_t instance, uint64_t hash)
{
    const lift_func *f = hb_instance_code(h, instance);
    const hb_func *own = &h->funcs[h->instances[instance].func];
    for (uint32_t c = 0; c < own->call_count; c++) {
        uint32_t callee = h->program->calls.data[own->calls[c].call].func;
        if (callee == PTA_NO_FUNC || !strstr(h->program->funcs.data[callee].name, "setjmp")) continue;
        hash = mix(hash, c);
        for (uint32_t b = 0; b < f->block_count; b++)
            for (uint32_t e = f->blocks[b].first_succ;
                 is_reached(f, b) && e < f->blocks[b].first_succ + f->blocks[b].succ_count; e++)
                hash = mix(hash, hb_first_return(h, instance, b, e, own->calls[c].insn));
    }
    return hash;
}

/* 0: no walk of this program is kept. */
static uint64_t hash_program(const hb *h)
{
    uint64_t hash = mix(h->instance_count, h->program->funcs.len);
    for (uint32_t f = 0; f < h->program->funcs.len; f++)
        hash = hash_function(h, f, hash);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        hash = mix(hash, h->instances[i].func);
        if (!hb_instance_code(h, i) || !h->funcs[h->instances[i].func].jumps) continue;
        if (goes_anywhere(hb_instance_code(h, i))) return 0;
        hash = hash_jumps(h, i, hash);
    }
    for (uint32_t e = 0; e < h->edge_count; e++)
        hash = mix(mix(hash, (uint64_t)h->edges[e].caller << 32 | h->edges[e].callee),
                   (uint64_t)h->edges[e].call << 1 | h->spawns[e]);
    return hash | 1;
}

static void forget_told(hb_memo *m)
{
    uint32_t kept = 0;
    map_free(&m->told_numbers);
    for (uint32_t i = 0; i < m->told.len; i++) {
        kept_bits *b = &m->told.data[i];
        if (b->used + ROUNDS < m->round) {
            free(b->bits);
            continue;
        }
        *map_at(&m->told_numbers, b->key) = kept;
        m->told.data[kept++] = *b;
    }
    m->told.len = kept;
}

void hb_memo_begin(hb *h)
{
    hb_memo *m = h->options.memo;
    if (!m) return;
    m->round++;
    m->stats = (hb_memo_statistics){0};
    uint32_t kept = 0;
    map_free(&m->numbers);
    for (uint32_t i = 0; i < m->regions.len; i++) {
        kept_region *r = &m->regions.data[i];
        if (r->used + ROUNDS < m->round) {
            free_region(r);
            continue;
        }
        *map_at(&m->numbers, r->key) = kept;
        m->regions.data[kept++] = *r;
    }
    m->regions.len = kept;
    forget_told(m);
    h->memo_program = hash_program(h);
}

/* --- what one walk asks -------------------------------------------------------------------------------------------------------- */

/* The number of the call at a point, + 1; 0: there is none. */
static uint32_t call_number(const hb *h, hb_point at)
{
    const hb_func *own = &h->funcs[h->instances[at.instance].func];
    const hb_call *call = hb_call_at(h, h->instances[at.instance].func, at.insn);
    return call ? (uint32_t)(call - own->calls) + 1 : 0;
}

static uint64_t hash_answers(const hb *h, const hb_walk *walk, uint32_t instance, uint64_t hash)
{
    const lift_func *f = hb_instance_code(h, instance);
    if (!f) return hash;
    const hb_func *own = &h->funcs[h->instances[instance].func];
    for (uint32_t c = 0; walk->cuts && c < own->call_count; c++)
        if (walk->cuts(walk, instance, &own->calls[c])) hash = mix(hash, c);
    hash = mix(hash, HB_NONE);
    bool anywhere = goes_anywhere(f);
    for (uint32_t b = 0; walk->closes && b < f->block_count; b++)
        for (uint32_t e = f->blocks[b].first_succ;
             (anywhere || is_reached(f, b)) && e < f->blocks[b].first_succ + f->blocks[b].succ_count; e++)
            if (walk->closes(walk, instance, b, e)) hash = mix(hash, (uint64_t)b << 32 | (e - f->blocks[b].first_succ));
    return mix(hash, HB_NONE);
}

uint64_t hb_memo_key(const hb *h, const hb_walk *walk, const hb_point *starts, uint32_t count)
{
    if (!h->options.memo || !h->memo_program || !walk->kept || walk->stops) return 0;
    uint64_t hash = mix(h->memo_program, (uint64_t)count << 3 | walk->calm << 2 | walk->inside << 1 | !!walk->waits);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t call = starts[i].insn == HB_NONE ? HB_NONE : call_number(h, starts[i]);
        if (!call) return 0;
        hash = mix(hash, (uint64_t)starts[i].instance << 32 | call);
    }
    hash = mix(hash, walk->origin);
    for (uint32_t i = 0; walk->origin != HB_NONE && i < h->words; i++)
        hash = mix(hash, h->origins.data[walk->origin].self[i]);
    for (uint32_t i = 0; walk->waits && i < h->words; i++)
        hash = mix(hash, walk->waits[i]);
    uint64_t *cutters = base_alloc_zero(h->words, sizeof *cutters);
    for (uint32_t i = 0; i < walk->cutter_count; i++)
        hb_set(cutters, walk->cutters[i]);
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (hb_bit(cutters, i)) hash = hash_answers(h, walk, i, mix(hash, i));
    free(cutters);
    return (hash & ~(1ull << 63)) | 1;
}

/* --- keeping ------------------------------------------------------------------------------------------------------------------- */

enum { END = UINT32_MAX };

/* Where an interval begins, or ends (`high`); false: neither with a block nor behind a call. */
static bool bound_of(const hb_func *own, const lift_func *f, uint32_t insn, bool high, kept_bound *out)
{
    out->block = hb_block_of(f, insn - high);
    const lift_block *b = &f->blocks[out->block];
    out->slot = 0;
    if (!high && insn == b->first_insn) return true;
    if (high && insn == b->first_insn + b->insn_count) return out->slot = END, true;
    uint32_t call = hb_first_call(own, insn - 1);
    if (call == own->call_count || own->calls[call].insn != insn - 1) return false;
    out->slot = call - hb_first_call(own, b->first_insn) + 1;
    return true;
}

static uint32_t insn_of(const hb_func *own, const lift_func *f, const kept_bound *bound)
{
    const lift_block *b = &f->blocks[bound->block];
    if (!bound->slot) return b->first_insn;
    if (bound->slot == END) return b->first_insn + b->insn_count;
    return own->calls[hb_first_call(own, b->first_insn) + bound->slot - 1].insn + 1;
}

void hb_memo_keep(const hb *h, uint64_t key, const hb_region *region)
{
    hb_memo *m = h->options.memo;
    kept_region kept = {.key = key, .used = m->round, .words = h->words, .ends = region->ends};
    uint32_t *instances = base_alloc(region->parts.len * sizeof *instances);
    for (uint32_t i = 0; i < region->part_of.capacity; i++)
        if (region->part_of.keys[i] != UINT64_MAX)
            instances[region->part_of.values[i]] = (uint32_t)region->part_of.keys[i];
    bool whole = true;
    for (uint32_t i = 0; i < region->parts.len && whole; i++) {
        const hb_func *own = &h->funcs[h->instances[instances[i]].func];
        const lift_func *f = hb_instance_code(h, instances[i]);
        const hb_part *part = &region->parts.data[i];
        vec_push(&kept.parts, ((kept_part){instances[i], part->intervals.len}));
        for (uint32_t k = 0; k < 2 * part->intervals.len && whole; k++) {
            kept_bound bound;
            const hb_interval *interval = &part->intervals.data[k / 2];
            whole = bound_of(own, f, k % 2 ? interval->hi : interval->lo, k % 2, &bound);
            vec_push(&kept.bounds, bound);
        }
    }
    free(instances);
    uint32_t *known = map_at(&m->numbers, key);
    if (!whole || *known != MAP_NONE) {
        free_region(&kept);
        return;
    }
    kept.whole = base_alloc(h->words * sizeof *kept.whole);
    memcpy(kept.whole, region->whole, h->words * sizeof *kept.whole);
    *known = m->regions.len;
    vec_push(&m->regions, kept);
}

bool hb_memo_find(const hb *h, uint64_t key, hb_region *out)
{
    hb_memo *m = h->options.memo;
    uint32_t number = map_get(&m->numbers, key), at = 0;
    if (number == MAP_NONE || m->regions.data[number].words != h->words) {
        m->stats.misses++;
        return false;
    }
    m->stats.hits++;
    kept_region *kept = &m->regions.data[number];
    kept->used = m->round;
    *out = (hb_region){.whole = base_alloc(h->words * sizeof *out->whole), .ends = kept->ends};
    memcpy(out->whole, kept->whole, h->words * sizeof *out->whole);
    for (uint32_t i = 0; i < kept->parts.len; i++) {
        const kept_part *part = &kept->parts.data[i];
        const hb_func *own = &h->funcs[h->instances[part->instance].func];
        const lift_func *f = hb_instance_code(h, part->instance);
        hb_part again = {0};
        for (uint32_t k = 0; k < part->count; k++, at += 2)
            vec_push(&again.intervals, ((hb_interval){insn_of(own, f, &kept->bounds.data[at]),
                                                      insn_of(own, f, &kept->bounds.data[at + 1])}));
        *map_at(&out->part_of, part->instance) = out->parts.len;
        vec_push(&out->parts, again);
    }
    return true;
}

/* --- what was found by walks ---------------------------------------------------------------------------------------------------- */

uint64_t hb_memo_point(const hb *h, hb_point at, uint64_t hash)
{
    const hb_func *own = &h->funcs[h->instances[at.instance].func];
    uint32_t call = hb_first_call(own, at.insn);
    bool is_call = call < own->call_count && own->calls[call].insn == at.insn;
    hash = mix(hash, (uint64_t)at.instance << 32 | hb_block_of(hb_instance_code(h, at.instance), at.insn));
    return mix(hash, (uint64_t)call << 1 | is_call);
}

bool hb_memo_told(const hb *h, uint64_t key, uint64_t *bits, uint32_t words)
{
    hb_memo *m = h->options.memo;
    uint32_t number = map_get(&m->told_numbers, key);
    if (number == MAP_NONE || m->told.data[number].words != words) return false;
    m->told.data[number].used = m->round;
    memcpy(bits, m->told.data[number].bits, words * sizeof *bits);
    return true;
}

void hb_memo_tell(const hb *h, uint64_t key, const uint64_t *bits, uint32_t words)
{
    hb_memo *m = h->options.memo;
    uint32_t *known = map_at(&m->told_numbers, key);
    if (*known != MAP_NONE) return;
    *known = m->told.len;
    vec_push(&m->told, ((kept_bits){key, m->round, base_alloc(words * sizeof *bits), words}));
    memcpy(m->told.data[m->told.len - 1].bits, bits, words * sizeof *bits);
}
