/* The frequent cases of a check that the inlined path cannot settle: data that several threads read, and the first access
 * of an epoch. Called with signals waiting; takes no lock for long, and computes nothing twice: when it cannot do it,
 * the check is made anew by check.c. */
#include "runtime/core/quick.h"
#include "runtime/probe/probe.h"

/* What other threads read too: has this thread read it in this epoch? The inlined code is told what it has to look for. */
static inline bool is_known(probe_thread *self, const thread_state *t, const region *r, uint64_t addr, uint32_t size,
                            uint32_t number)
{
    const core_state *core = core_of_thread(self->thread);
    const uint64_t at = addr & (REGION_SIZE - 1);
    const uint32_t epoch = t->pub.epoch;
    const ft_cell *cell = &r->cells[at / FT_GRANULE], *last = &r->cells[(at + size - 1) / FT_GRANULE];
    ft_site readers = 0;
    for (; cell <= last; cell++) {
        if (__atomic_load_n(&cell->read, __ATOMIC_RELAXED) == epoch) continue;
        if (__atomic_load_n(&cell->write, __ATOMIC_RELAXED) == epoch) continue;
        readers = __atomic_load_n(&cell->read_site, __ATOMIC_ACQUIRE);
        if (!(readers & WHERE_READERS) || !readers_known(core, t, readers, epoch)) return false;
    }
    if (!readers) return true;
    const uint64_t given_back = t->known[readers % KNOWN].given_back;
    if (self->known_epoch != epoch || self->known_given_back != given_back) {
        memset(self->known, 0, sizeof self->known);
        self->known_epoch = epoch;
        self->known_given_back = given_back;
    }
    self->known[number % PROBE_KNOWN] = readers;
    return true;
}

/* Where the access is, for the core: its stack, if that is the last one that was seen here. 0: it is not. */
static inline ft_site remembered_stack(probe_stacks *stacks, ft_site site, uint64_t sp)
{
    if (unlikely(!probe.report->options.stack_depth)) return site;
    if (unlikely(!stacks)) return 0;
    const stack_memo *memo = stack_memo_of(stacks, site, sp);
    return likely(stack_is_remembered(memo, site, sp)) ? memo->result : 0;
}

/* The same for some bytes of a cell that is split. */
static inline bool is_known_in_split(const thread_state *t, region *r, uint64_t addr, uint32_t size)
{
    const core_state *core = core_of_thread((ft_thread *)t);
    const uint64_t at = addr & (REGION_SIZE - 1);
    const ft_cell *cell = &r->cells[at / FT_GRANULE];
    const block *page = &r->pages[at >> PAGE_BITS];
    const uint32_t seq = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE), epoch = t->pub.epoch;
    if (seq & 1 || __atomic_load_n(&cell->write, __ATOMIC_ACQUIRE) != CELL_SPLIT || addr % FT_GRANULE + size > FT_GRANULE)
        return false;
    const split_block *split = pool_at(&core->pools[POOL_SPLIT], __atomic_load_n(&cell->write_site, __ATOMIC_ACQUIRE));
    for (uint32_t i = 0; i < size; i++) {
        const ft_cell *byte = &split->byte[addr % FT_GRANULE + i];
        if (__atomic_load_n(&byte->read, __ATOMIC_RELAXED) == epoch) continue;
        if (__atomic_load_n(&byte->write, __ATOMIC_RELAXED) == epoch) continue;
        const ft_site readers = __atomic_load_n(&byte->read_site, __ATOMIC_ACQUIRE);
        if (!(readers & WHERE_READERS) || !readers_known(core, t, readers, epoch)) return false;
    }
    return __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE) == seq;
}

__attribute__((always_inline)) static inline bool quick_access(probe_thread *self, region *r, uint64_t addr, uint64_t size,
                                                               access_op op, ft_site site, uint64_t sp)
{
    thread_state *t = (thread_state *)self->thread;
    const ft_site where = remembered_stack(self->stacks, site, sp);
    if (unlikely(!where) || unlikely(t->pending_count) || unlikely(!thread_enter(t))) return false;
    const bool done = quick_apply(t, r, addr, size, op, where & ~WHERE_READERS);
    quick_end(t, done);
    return done;
}

bool probe_quick(uint64_t addr, uint32_t number, uint64_t sp)
{
    const probe_record *record = &probe.records[number];
    probe_thread *self = &probe_self;
    const uint32_t size = record->size;
    const ft_site site = record->site;
    if (unlikely(self->thread == &probe.nobody || self->sync.waiting || addr >> 47)) return false;
    region *r = region_at(core_of_thread(self->thread), addr);
    const bool in_page = (addr & (PAGE_SIZE - 1)) <= PAGE_SIZE - size;
    if (unlikely(!r) || unlikely(!in_page)) return false;
    if (record->is_write) {
        if (unlikely(addr & (FT_GRANULE - 1)) || unlikely(size < FT_GRANULE)) return false;
        return likely(size == 8) ? quick_access(self, r, addr, 8, OP_WRITE, site, sp)
                         : quick_access(self, r, addr, size, OP_WRITE, site, sp);
    }
    const uint64_t at = addr & (REGION_SIZE - 1);
    const ft_cell *cell = &r->cells[at / FT_GRANULE];
    const thread_state *t = (const thread_state *)self->thread;
    if (__atomic_load_n(&cell->read_site, __ATOMIC_RELAXED) & WHERE_READERS) {
        if (is_known(self, t, r, addr, size, number)) return true;
    } else if (size < FT_GRANULE) {
        return is_known_in_split(t, r, addr, size);
    }
    if (unlikely(addr & (FT_GRANULE - 1)) || unlikely(size < FT_GRANULE)) return false;
    return likely(size == 8) ? quick_access(self, r, addr, 8, OP_READ, site, sp)
                     : quick_access(self, r, addr, size, OP_READ, site, sp);
}
