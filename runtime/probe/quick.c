/* The frequent cases of a check that the inlined path cannot settle: data that several threads read, parts of cells,
 * and the first access of an epoch. Called with signals waiting. What it cannot do is done anew by check.c. */
#include "runtime/core/quick.h"
#include "runtime/probe/first.h"
#include "runtime/probe/probe.h"

#define IS_AT(type, member, value) _Static_assert(offsetof(type, member) == (value), "first.h: " #member)
IS_AT(probe_thread, thread, SELF_THREAD);
IS_AT(probe_thread, busy, SELF_BUSY);
IS_AT(probe_thread, pending, SELF_PENDING);
IS_AT(probe_thread, sync.waiting, SELF_WAITING);
IS_AT(probe_thread, stacks, SELF_STACKS);
IS_AT(probe_thread, stack_high, SELF_HIGH);
IS_AT(probe_thread, parts, SELF_PARTS);
IS_AT(probe_thread, last, SELF_LAST);
IS_AT(probe_part, epoch, 8);
IS_AT(probe_part, cleared, 12);
IS_AT(probe_stacks, memos, 0);
IS_AT(stack_memo, site, MEMO_SITE);
IS_AT(stack_memo, result, MEMO_RESULT);
IS_AT(stack_memo, sp, MEMO_SP);
IS_AT(stack_memo, count, MEMO_COUNT);
IS_AT(stack_memo, words, MEMO_WORDS);
IS_AT(thread_state, pub.epoch, THREAD_EPOCH);
IS_AT(thread_state, pub.inside, THREAD_INSIDE);
IS_AT(thread_state, pub.core, THREAD_CORE);
IS_AT(thread_state, deferred_head, THREAD_HEAD);
IS_AT(thread_state, deferred_tail, THREAD_TAIL);
IS_AT(thread_state, has_pending, THREAD_PENDING);
IS_AT(thread_state, stats.slow, THREAD_SLOW);
IS_AT(thread_state, clock, THREAD_CLOCK);
IS_AT(core_state, resetting, CORE_RESETTING);
IS_AT(core_state, pub.regions, CORE_REGIONS);
IS_AT(core_state, pub.cleared, CORE_CLEARED);
IS_AT(core_state, pools[POOL_SPLIT].chunks, CORE_SPLITS);
IS_AT(core_state, pools[POOL_READERS].chunks, CORE_VECTORS);
IS_AT(region, pages, PAGES);
IS_AT(region, sites, SITES);
IS_AT(block, seq, PAGE_SEQ);
IS_AT(block, form, PAGE_FORM);
IS_AT(block, atomics, PAGE_ATOMICS);
IS_AT(block, owner, PAGE_OWNER);
_Static_assert(2 * sizeof(stack_memo) == MEMO_PAIR && STACK_MEMOS == MEMO_MASK + 1, "first.h");
_Static_assert(PROBE_LAST == 256, "first.S: the lowest byte of a site");
_Static_assert(sizeof(split_block) == 64 && sizeof(split_block) << SPLIT_SHIFT == POOL_CHUNK_BYTES, "first.S");
_Static_assert(VECTOR_BLOCK == 40 && VECTOR_BLOCK << VECTOR_SHIFT <= POOL_CHUNK_BYTES &&
                   VECTOR_BLOCK << (VECTOR_SHIFT + 1) > POOL_CHUNK_BYTES, "first.S: the smallest read vectors");
_Static_assert(PROBE_PARTS == PART_MASK + 1 && sizeof(probe_part) == 16 && sizeof probe_self.parts[0] == PART_KIND, "first.h");
_Static_assert(FT_REGION_BITS == 26 && FT_REGION_COUNT == 1 << 21 && CELL_SPLIT == 0xffffffff, "first.S");
_Static_assert(sizeof(((probe_thread *)0)->sync.waiting) == 1, "first.S");
_Static_assert(FORM_FINE == IS_FINE && INSIDE_QUICK == IS_QUICK && sizeof(block) == 64 && PAGE_BITS == 12, "first.h");
_Static_assert(FT_CLOCK_BITS == 22 && WHERE_READERS == 1u << 31 && FT_GRANULE == 4 && sizeof(ft_epochs) == 8 && sizeof(ft_cell) == 16,
               "first.S");

/* A handler that came in between would find nothing, but never something wrong. */
static inline void remember_known(probe_known *known, ft_site readers, uint32_t epoch, uint32_t given_back)
{
    __atomic_store_n(&known->epoch, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known->readers = readers;
    known->given_back = given_back;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&known->epoch, epoch, __ATOMIC_RELAXED);
}

/* What others read too: has this thread read it in this epoch? The inlined code is told what it has to look for. */
static inline bool is_known(probe_thread *self, const thread_state *t, const region *r, uint64_t addr, uint32_t size,
                            ft_site site)
{
    const core_state *core = core_of_thread(self->thread);
    const uint64_t at = addr & (REGION_SIZE - 1);
    const uint32_t epoch = t->pub.epoch;
    const ft_epochs *cell = &r->cells[at / FT_GRANULE], *last = &r->cells[(at + size - 1) / FT_GRANULE];
    ft_site readers = 0;
    for (; cell <= last; cell++) {
        if (__atomic_load_n(&cell->read, __ATOMIC_RELAXED) == epoch) continue;
        if (__atomic_load_n(&cell->write, __ATOMIC_RELAXED) == epoch) continue;
        readers = __atomic_load_n(&sites_of(cell)->read, __ATOMIC_ACQUIRE);
        if (!(readers & WHERE_READERS) || !readers_known(core, t, readers, epoch)) return false;
    }
    if (!readers) return true;
    remember_known(&self->known[site % PROBE_KNOWN], readers, epoch, (uint32_t)t->known[readers % KNOWN].given_back);
    return true;
}

/* Where the access is, for the core: its stack, if that is the last one that was seen here. 0: it is not. */
static inline ft_site remembered_stack(const probe_thread *self, const probe_record *record, uint64_t sp, uint64_t bp)
{
    if (unlikely(self->stacks == &stack_none)) return probe.report->options.stack_depth ? 0 : record->site;
    const stack_memo *memo = stack_find(self, record->site, sp, back_address(record->back, sp, bp));
    return memo ? memo->result : 0;
}

/* Some bytes of a cell that is split: has the thread accessed them in this epoch? */
static inline bool is_known_in_split(const thread_state *t, const region *r, uint64_t addr, uint32_t size, access_op op)
{
    const core_state *core = core_of_thread((ft_thread *)t);
    const uint64_t at = addr & (REGION_SIZE - 1);
    const block *page = &r->pages[at >> PAGE_BITS];
    const uint32_t seq = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE), epoch = t->pub.epoch;
    const ft_cell cell = shadow_load(&r->cells[at / FT_GRANULE]);
    if (cell.write != CELL_SPLIT || seq & 1 || __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE) != seq) return false;
    const split_block *split = pool_at(&core->pools[POOL_SPLIT], cell.write_site);
    for (uint32_t i = 0; i < size; i++) {
        const ft_cell *byte = &split->byte[addr % FT_GRANULE + i];
        if (__atomic_load_n(&byte->write, __ATOMIC_RELAXED) == epoch) continue;
        if (op == OP_WRITE) return false;
        if (__atomic_load_n(&byte->read, __ATOMIC_RELAXED) == epoch) continue;
        const ft_site readers = __atomic_load_n(&byte->read_site, __ATOMIC_ACQUIRE);
        if (!(readers & WHERE_READERS) || !readers_known(core, t, readers, epoch)) return false;
    }
    if (cell_equal(cell_load(&split->byte[0]), cell_load(&split->byte[FT_GRANULE - 1]))) return false; /* may be merged */
    return __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE) == seq;
}

__attribute__((always_inline)) static inline bool quick_access(probe_thread *self, region *r, uint64_t addr,
                                                               uint64_t size, access_op op, const probe_record *record,
                                                               uint64_t sp, uint64_t bp)
{
    thread_state *t = (thread_state *)self->thread;
    const ft_site where = remembered_stack(self, record, sp, bp);
    if (unlikely(!where) || unlikely(sync_has_pending(t)) || unlikely(!thread_enter(t))) return false;
    return quick_end(t, quick_apply(t, r, addr, size, op, where & ~WHERE_READERS));
}

/* The same-epoch path of an access that is not aligned, which the inlined one leaves to C: compressors make many. */
static inline bool is_settled(const thread_state *t, const region *r, uint64_t addr, uint32_t size, access_op op)
{
    const uint64_t at = addr & (REGION_SIZE - 1);
    const uint32_t epoch = t->pub.epoch;
    const ft_epochs *cell = &r->cells[at / FT_GRANULE], *last = &r->cells[(at + size - 1) / FT_GRANULE];
    for (; cell <= last; cell++) {
        if (__atomic_load_n(&cell->write, __ATOMIC_RELAXED) == epoch) continue;
        if (op == OP_WRITE || __atomic_load_n(&cell->read, __ATOMIC_RELAXED) != epoch) return false;
    }
    return epoch != 0;
}

__attribute__((noinline)) static bool quick_in_general(uint64_t addr, uint32_t number, uint64_t sp,
                                                       uint64_t bp)
{
    const probe_record *record = &probe.records[number];
    probe_thread *self = &probe_self;
    const uint32_t size = record->size;
    if (unlikely(self->thread == &probe.nobody || self->sync.waiting || addr >> 47)) return false;
    region *r = region_at(core_of_thread(self->thread), addr);
    const bool in_page = (addr & (PAGE_SIZE - 1)) <= PAGE_SIZE - size;
    if (unlikely(!r) || unlikely(!in_page)) return false;
    const access_op op = record->is_write ? OP_WRITE : OP_READ;
    const thread_state *t = (const thread_state *)self->thread;
    const ft_sites *sites = &r->sites[(addr & (REGION_SIZE - 1)) / FT_GRANULE];
    if (unlikely((addr | size) & (FT_GRANULE - 1)) && !quick_is_part(addr, size)) return is_settled(t, r, addr, size, op);
    if (op == OP_READ && __atomic_load_n(&sites->read, __ATOMIC_RELAXED) & WHERE_READERS &&
        is_known(self, t, r, addr, size, record->site))
        return true;
    return quick_access(self, r, addr, size, op, record, sp, bp);
}

__attribute__((noinline)) static bool leave_busily(thread_state *t)
{
    thread_leave_busily(t);
    return true;
}

/* Most of them: 4 or 8 bytes in a page that the thread has for itself. */
__attribute__((always_inline)) static inline bool quick_own(probe_thread *self, const probe_record *record,
                                                            uint64_t addr, uint64_t size, access_op op,
                                                            uint32_t number, uint64_t sp, uint64_t bp)
{
    thread_state *t = (thread_state *)self->thread;
    core_state *core = (core_state *)probe.core;
    const uint64_t strange = ~(uint64_t)0 << 47 | (size - 1);
    if (unlikely(addr & strange) || unlikely(&t->pub == &probe.nobody) || unlikely(self->sync.waiting))
        return quick_in_general(addr, number, sp, bp);
    region *r = region_at(core, addr);
    const ft_site where = remembered_stack(self, record, sp, bp);
    if (unlikely(!r) || unlikely(!where) || unlikely(sync_has_pending(t)) || unlikely(t->pub.inside))
        return quick_in_general(addr, number, sp, bp);
    __atomic_store_n(&t->pub.inside, INSIDE_CALL, __ATOMIC_RELAXED);
    barrier_light(core);
    bool done = likely(!__atomic_load_n(&core->resetting, __ATOMIC_ACQUIRE)) &&
                likely(quick_apply_own(t, r, addr, size, op, where & ~WHERE_READERS));
    __atomic_store_n(&t->pub.inside, INSIDE_NOT, __ATOMIC_RELEASE);
    if (unlikely(t->deferred_head != __atomic_load_n(&t->deferred_tail, __ATOMIC_RELAXED)))
        return leave_busily(t) && done;
    if (unlikely(!done)) return quick_in_general(addr, number, sp, bp);
    count_own(&t->stats.slow);
    return true;
}

/* A handler that came in between would find nothing, but never something wrong. */
static inline void remember_part(probe_part *part, uint64_t addr, uint32_t epoch, uint32_t cleared)
{
    __atomic_store_n(&part->addr, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    part->epoch = epoch;
    part->cleared = cleared;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&part->addr, addr, __ATOMIC_RELAXED);
}

/* Bytes and pairs of them: mostly of a cell that is split already, and settled. */
__attribute__((noinline)) static bool quick_part(uint64_t addr, uint32_t number, uint64_t sp, uint64_t bp)
{
    const probe_record *record = &probe.records[number];
    probe_thread *self = &probe_self;
    const uint32_t size = record->size;
    if (unlikely(self->thread == &probe.nobody) || unlikely(self->sync.waiting) || unlikely(addr >> 47) ||
        unlikely(!quick_is_part(addr, size)))
        return quick_in_general(addr, number, sp, bp);
    const thread_state *t = (const thread_state *)self->thread;
    const region *r = region_at((core_state *)probe.core, addr);
    const uint32_t epoch = t->pub.epoch; /* before: a reset ends it */
    const uint32_t cleared = __atomic_load_n(&probe.core->cleared, __ATOMIC_ACQUIRE);
    const bool is_known = r && is_known_in_split(t, r, addr, size, record->is_write ? OP_WRITE : OP_READ);
    if (!is_known && !quick_in_general(addr, number, sp, bp)) return false;
    remember_part(&self->parts[part_kind(record->is_write, size)][addr % PROBE_PARTS], addr, epoch, cleared);
    return true;
}

bool probe_is_in_first(const ft_thread *thread)
{
    return __atomic_load_n(&thread->inside, __ATOMIC_RELAXED) == INSIDE_QUICK;
}

/* One function each, so that each saves only what it uses. */
#define QUICK(name, size, op)                                                                                          \
    __attribute__((noinline)) static bool name(uint64_t addr, uint32_t number, uint64_t sp, uint64_t bp)               \
    {                                                                                                                  \
        return quick_own(&probe_self, &probe.records[number], addr, size, op, number, sp, bp);                         \
    }
QUICK(quick_read_4, 4, OP_READ)
QUICK(quick_write_4, 4, OP_WRITE)
QUICK(quick_read_8, 8, OP_READ)
QUICK(quick_write_8, 8, OP_WRITE)

bool probe_quick(uint64_t addr, uint32_t number, uint64_t sp, uint64_t bp)
{
    const probe_record *record = &probe.records[number];
    if (record->size == 8) return (record->is_write ? quick_write_8 : quick_read_8)(addr, number, sp, bp);
    if (record->size == 4) return (record->is_write ? quick_write_4 : quick_read_4)(addr, number, sp, bp);
    return (record->size < FT_GRANULE ? quick_part : quick_in_general)(addr, number, sp, bp);
}
