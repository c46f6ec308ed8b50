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
    if (!probe.report->options.stack_depth) return site;
    if (!stacks) return 0;
    const stack_memo *memo = stack_memo_of(stacks, site, sp);
    return stack_is_remembered(memo, site, sp) ? memo->result : 0;
}

bool probe_quick(uint64_t addr, uint32_t number, uint64_t sp)
{
    const probe_record *record = &probe.records[number];
    probe_thread *self = &probe_self;
    thread_state *t = (thread_state *)self->thread;
    if (self->thread == &probe.nobody || self->sync.waiting || addr >> 47) return false;
    const region *known = region_at(core_of_thread(self->thread), addr);
    if (!known || (addr & (REGION_SIZE - 1)) > REGION_SIZE - 16) return false;
    if (!record->is_write && is_known(self, t, known, addr, record->size, number)) return true;
    const ft_site where = remembered_stack(self->stacks, record->site, sp);
    if (!where) return false;
    region *r = quick_begin(t, addr, record->size);
    if (!r) return false;
    const bool done = record->is_write ? quick_apply(t, r, addr, record->size, OP_WRITE, where & ~WHERE_READERS)
                                       : quick_apply(t, r, addr, record->size, OP_READ, where & ~WHERE_READERS);
    quick_end(t, done);
    return done;
}
