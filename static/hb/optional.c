/* Locks that are taken on a condition, and let go of on the same: `if (m) lock(m)`, a lock that knows whether it was initialised, a
 * method that is a lock in programs with threads and nothing in others. They are not held in all ways, so they guard nothing (lock.c);
 * but whoever holds one on both sides is hardly in a race. Only how sure a warning is depends on it.
 *
 * The locks are found once more, with
 *   - edges closed that go past a lock: of a branch, one side takes locks and lets none go (or the other way round) and the second side
 *     does neither, until both meet again; or it asks whether there is one;
 *   - callees ignored that leave all locks alone, when another of the same call, through a pointer, does not;
 *   - callees ignored of calls through pointers that may be to many functions;
 *   - a lock whose address is in a variable known by that variable, as if nobody ever changed it. */
#include "static/hb/lock.h"

enum { TAKES = 1, LETS_GO = 2 }; /* bits; a function that may do one and not the other is a lock's, or an unlock's, wrapper */
enum { MOST_BLOCKS = 4096, MOST_BRANCHES = 8, MOST_TARGETS = 8 };

typedef struct hb_optionals {
    uint8_t *does;     /* per instance: what it, or what it calls, does to locks */
    uint64_t **passes; /* per function, once asked: bits of edges that go past a lock; `none`: it has no such */
    uint64_t none;
} hb_optionals;

static uint8_t does_sync(const sync_entry *sync)
{
    if (!sync) return 0;
    if (sync->kind == SYNC_ACQUIRE) return sync->when == SYNC_ALWAYS ? TAKES : TAKES | LETS_GO;
    return sync->kind == SYNC_RELEASE ? LETS_GO : 0;
}

static void find_does(hb *h, uint8_t *does)
{
    hb_numbers work = {0};
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++)
            does[i] |= does_sync(hb_call_sync(h, i, &f->calls[c]));
        if (does[i]) vec_push(&work, i);
    }
    while (work.len) {
        uint32_t callee = work.data[--work.len];
        for (uint32_t k = h->in_first[callee]; k < h->in_first[callee + 1]; k++) {
            const pta_call_edge *e = &h->edges[h->in_edge[k]];
            if (hb_spawns(h, e) || (does[e->caller] | does[callee]) == does[e->caller]) continue;
            does[e->caller] |= does[callee];
            vec_push(&work, e->caller);
        }
    }
    vec_free(&work);
}

/* What a call does to locks, whichever of its callees it is. */
static uint8_t call_does(const hb *h, uint32_t instance, const hb_call *call)
{
    uint8_t does = does_sync(hb_call_sync(h, instance, call));
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    for (uint32_t i = 0; !does && i < count; i++)
        if (!hb_spawns(h, &h->edges[first + i])) does |= h->optionals->does[h->edges[first + i].callee];
    return does;
}

/* Where a way leads to from a block that does not come by another. */
static void find_behind(const lift_func *f, uint32_t from, uint32_t without, uint64_t *out)
{
    hb_numbers work = {0};
    vec_push(&work, from);
    hb_set(out, from);
    while (work.len) {
        const lift_block *b = &f->blocks[work.data[--work.len]];
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            uint32_t to = f->edges[e].to;
            if (to == without || hb_bit(out, to)) continue;
            hb_set(out, to);
            vec_push(&work, to);
        }
    }
    vec_free(&work);
}

/* One side of a branch does something to locks, always the same, and the other leaves them alone. */
static bool goes_past(const lift_func *f, const uint8_t *blocks, uint32_t branch, uint32_t to, uint32_t past)
{
    uint32_t words = f->block_count / 64 + 1;
    uint64_t *with = base_alloc_zero(words, sizeof *with), *without = base_alloc_zero(words, sizeof *without);
    uint8_t does = 0, others = 0;
    find_behind(f, to, branch, with);
    find_behind(f, past, branch, without);
    for (uint32_t b = 0; b < f->block_count; b++) {
        if (hb_bit(with, b) && !hb_bit(without, b)) does |= blocks[b];
        if (hb_bit(without, b) && !hb_bit(with, b)) others |= blocks[b];
    }
    free(with);
    free(without);
    return (does == TAKES || does == LETS_GO) && !(others & (TAKES | LETS_GO));
}

/* The branch asks whether there is a lock at all: the block takes what is not zero on the way to it. */
static bool asks_for(const hb *h, uint32_t instance, uint32_t branch, unsigned side, uint32_t block)
{
    const lift_func *f = hb_instance_code(h, instance);
    const hb_func *own = &h->funcs[h->instances[instance].func];
    value_condition c;
    bool taken = f->edges[f->blocks[branch].first_succ + side].kind == EDGE_TAKEN;
    if (!value_test(f->ir, branch, taken, &c) || c.code != VALUE_NOT_EQUAL || c.b || c.imm || !c.a) return false;
    for (uint32_t i = 0; i < own->call_count; i++) {
        if (!own->calls[i].value || hb_block_of(f, own->calls[i].insn) != block) continue;
        ir_value v = value_plain(f->ir, lock_call_argument(f->ir, &own->calls[i], 0), 8);
        if (call_does(h, instance, &own->calls[i]) == TAKES && v && value_alike(f->ir, v, value_plain(f->ir, c.a, 8))) return true;
    }
    return false;
}

/* A block that takes a lock, or lets go of one: the branches above it that decide whether it runs. */
static void close_above(const hb *h, uint32_t instance, const uint8_t *blocks, uint32_t block, uint64_t *passes)
{
    const lift_func *f = hb_instance_code(h, instance);
    unsigned asked = 0;
    for (uint32_t b = block; b && asked < MOST_BRANCHES;) {
        uint32_t above = f->ir->blocks[b].idom;
        if (above == b || above >= f->block_count) return;
        b = above;
        const lift_block *branch = &f->blocks[b];
        if (branch->end_kind != END_BRANCH || branch->succ_count != 2) continue;
        for (unsigned side = 0; side < 2; side++) {
            uint32_t edge = branch->first_succ + 1 - side, to = f->edges[branch->first_succ + side].to, past = f->edges[edge].to;
            if (to == past || !(to == block || ir_dominates(f->ir, to, block))) continue;
            asked++;
            if (asks_for(h, instance, b, side, block) || goes_past(f, blocks, b, to, past)) hb_set(passes, edge);
        }
    }
}

static uint64_t *find_passes(const hb *h, uint32_t instance)
{
    const lift_func *f = hb_instance_code(h, instance);
    const hb_func *own = &h->funcs[h->instances[instance].func];
    uint8_t *blocks = base_alloc_zero(f->block_count, sizeof *blocks);
    uint64_t *passes = NULL;
    for (uint32_t c = 0; c < own->call_count; c++)
        blocks[hb_block_of(f, own->calls[c].insn)] |= call_does(h, instance, &own->calls[c]);
    for (uint32_t b = 0; b < f->block_count && f->block_count <= MOST_BLOCKS; b++) {
        if (blocks[b] != TAKES && blocks[b] != LETS_GO) continue;
        if (!passes) passes = base_alloc_zero(f->edge_count / 64 + 1, sizeof *passes);
        close_above(h, instance, blocks, b, passes);
    }
    free(blocks);
    return passes;
}

bool lock_goes_past(const hb *h, uint32_t instance, uint32_t edge)
{
    hb_optionals *o = h->optionals;
    uint32_t func = h->instances[instance].func;
    if (!o->passes[func]) {
        uint64_t *passes = find_passes(h, instance);
        o->passes[func] = passes ? passes : &o->none;
    }
    return o->passes[func] != &o->none && hb_bit(o->passes[func], edge);
}

bool lock_goes_nowhere_past(const hb *h, uint32_t instance)
{
    return h->optionals->passes[h->instances[instance].func] == &h->optionals->none;
}

bool lock_is_broad(const hb *h, uint32_t instance, const hb_call *call)
{
    if (h->program->calls.data[call->call].func != PTA_NO_FUNC) return false;
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    for (uint32_t i = 0; i < count; i++)
        if (h->instances[h->edges[first + i].callee].func == h->program->wild_call) return true;
    return count > MOST_TARGETS;
}

bool lock_ignores_idle(const hb *h, uint32_t instance, const hb_call *call)
{
    uint32_t count;
    hb_callees(h, instance, call->call, &count);
    uint8_t does = call_does(h, instance, call);
    return h->program->calls.data[call->call].func == PTA_NO_FUNC && count <= MOST_TARGETS && (does == TAKES || does == LETS_GO);
}

/* Both hold a lock that may be the same one, if they hold all that they take on conditions. */
bool hb_share_optional(hb *h, hb_point a, hb_point b)
{
    struct hb_locks *certain = h->locks;
    if (!h->optional) {
        h->optionals = base_alloc_zero(1, sizeof *h->optionals);
        h->optionals->does = base_alloc_zero(h->instance_count, sizeof *h->optionals->does);
        h->optionals->passes = base_alloc_zero(h->program->funcs.len, sizeof *h->optionals->passes);
        find_does(h, h->optionals->does);
        hb_locks_open(h, true);
        h->optional = h->locks;
    }
    h->locks = h->optional;
    uint32_t x = hb_locks_at(h, a), y = hb_locks_at(h, b);
    bool share = x == LOCKSET_ALL ? y == LOCKSET_ALL || hb_holds_locks(h, y) /* it runs only where there is no lock */
                 : y == LOCKSET_ALL ? hb_holds_locks(h, x)
                                    : hb_holds_locks(h, x) && hb_holds_locks(h, y) && hb_may_share_lock(h, x, y);
    h->locks = certain;
    return share;
}

void hb_optionals_close(hb *h)
{
    if (!h->optional) return;
    struct hb_locks *certain = h->locks;
    h->locks = h->optional;
    hb_locks_close(h);
    h->locks = certain;
    for (uint32_t f = 0; f < h->program->funcs.len; f++)
        if (h->optionals->passes[f] != &h->optionals->none) free(h->optionals->passes[f]);
    free(h->optionals->passes);
    free(h->optionals->does);
    free(h->optionals);
}
