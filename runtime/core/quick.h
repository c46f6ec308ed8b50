/* The first access of an epoch to whole cells of one fine page, or to a part of one cell, where nothing is special: no
 * race, no location of atomic instructions near. This is what most accesses are that the same-epoch path does not settle, so
 * engines compile it into their own slow path; check.c does the same for ft_read and ft_write.
 *
 *     region *r = quick_begin(t, addr, size);
 *     if (r) done = quick_end(t, quick_apply(t, r, addr, size, op, where));
 *
 * What is not done must be done by ft_read or ft_write, whatever part of it was. */
#ifndef RACE_CORE_QUICK_H
#define RACE_CORE_QUICK_H

#include "runtime/core/private.h"

static inline bool quick_is_part(uint64_t addr, uint64_t size)
{
    return size < FT_GRANULE && addr % FT_GRANULE + size <= FT_GRANULE;
}

/* The thread is inside when this returns a region. `size` is not above a page's. */
__attribute__((always_inline)) static inline region *quick_begin(thread_state *t, uint64_t addr, uint64_t size)
{
    region *r = region_at(core_of_thread(&t->pub), addr);
    if ((addr & (PAGE_SIZE - 1)) > PAGE_SIZE - size || !r) return NULL;
    if ((addr | size) & (FT_GRANULE - 1) && !quick_is_part(addr, size)) return NULL;
    if (sync_has_pending(t) || !thread_enter(t)) return NULL;
    return r;
}

/* Returns whether it is done: what asks for a reset is forgotten by it. */
__attribute__((always_inline)) static inline bool quick_end(thread_state *t, bool done)
{
    done = done && likely(!t->wants_reset);
    if (done) count_own(&t->stats.slow);
    thread_leave(t);
    return done;
}

/* Requires the lock of the page. */
__attribute__((always_inline)) static inline bool quick_cell(thread_state *t, ft_epochs *cell, uint32_t epoch,
                                                             access_op op, ft_site where)
{
    cell_half *const to = (cell_half *)cell, *const to_sites = (cell_half *)sites_of(cell);
    const uint64_t epochs = __atomic_load_n(to, __ATOMIC_RELAXED);
    const uint32_t write = (uint32_t)epochs, read = (uint32_t)(epochs >> 32);
    if (unlikely(write == epoch) || (op == OP_READ && unlikely(read == epoch))) return true;
    if (unlikely(write == CELL_SPLIT) || unlikely(!is_ordered(t, write))) return false;
    const uint64_t sites = __atomic_load_n(to_sites, __ATOMIC_RELAXED);
    const bool is_simple = !(sites >> 32 & WHERE_READERS) && is_ordered(t, read);
    if (op == OP_WRITE) {
        if (unlikely(!is_simple)) return false;
        __atomic_store_n(to, epoch, __ATOMIC_RELEASE);
        __atomic_store_n(to_sites, where, __ATOMIC_RELEASE);
        return true;
    }
    if (unlikely(!is_simple)) {
        readers_add_to(t, cell, epoch, where);
        return true;
    }
    __atomic_store_n(to, (uint64_t)epoch << 32 | write, __ATOMIC_RELEASE);
    __atomic_store_n(to_sites, (uint64_t)where << 32 | (uint32_t)sites, __ATOMIC_RELEASE);
    return true;
}

/* Are all of them written before, and none of them by parts? */
static inline bool is_ordered_before(const thread_state *t, const ft_epochs *cells, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t write = __atomic_load_n(&cells[i].write, __ATOMIC_RELAXED);
        if (write == CELL_SPLIT || !is_ordered(t, write)) return false;
    }
    return true;
}

__attribute__((always_inline)) static inline bool quick_apply(thread_state *t, region *r, uint64_t addr, uint64_t size,
                                                              access_op op, ft_site where)
{
    const uint64_t at = addr & (REGION_SIZE - 1);
    block *page = &r->pages[at >> PAGE_BITS];
    const uint32_t epoch = t->pub.epoch; /* a reset may have changed it before this call began */
    if (unlikely(!epoch)) return true;
    if (unlikely(size < FT_GRANULE)) return shadow_apply_part(t, r, addr, (uint32_t)size, op, where);
    page_lock(t, page);
    /* Atomic locations that come later come with a wipe, which wants the lock. */
    const uint64_t lines = __atomic_load_n(&page->atomics, __ATOMIC_RELAXED);
    bool done = likely(__atomic_load_n(&page->form, __ATOMIC_RELAXED) == FORM_FINE) &&
                likely(!lines || !(lines & (sync_line(addr) | sync_line(addr + size - 1))));
    ft_epochs *cells = &r->cells[at / FT_GRANULE];
    const uint64_t count = size / FT_GRANULE;
    if (done && op == OP_READ && count > 1 && unlikely(__atomic_load_n(&sites_of(cells)->read, __ATOMIC_RELAXED) & WHERE_READERS) &&
        is_ordered_before(t, cells, count) && readers_renew(t, cells, (uint32_t)count, epoch, where)) {
        page_unlock(t, page);
        return true;
    }
#pragma GCC unroll 2
    for (uint64_t i = 0; i < count && done; i++)
        done = quick_cell(t, &cells[i], epoch, op, where);
    page_unlock(t, page);
    return done;
}

/* The same, still shorter: one or two whole cells that are alike, in a page that nobody else has just now. No call is in
 * it, so that a compiler has nothing to save. Requires that the thread is inside, and `size` 4 or 8, aligned. */
__attribute__((always_inline)) static inline bool quick_apply_own(thread_state *t, region *r, uint64_t addr,
                                                                  uint64_t size, access_op op, ft_site where)
{
    const uint64_t at = addr & (REGION_SIZE - 1);
    block *page = &r->pages[at >> PAGE_BITS];
    cell_half *cell = (cell_half *)&r->cells[at / FT_GRANULE], *cell_sites = (cell_half *)&r->sites[at / FT_GRANULE];
    const uint32_t epoch = t->pub.epoch;
    if (unlikely(!page_lock_quickly(t, page))) return false;
    const uint64_t epochs = __atomic_load_n(&cell[0], __ATOMIC_RELAXED);
    const uint64_t sites = __atomic_load_n(&cell_sites[0], __ATOMIC_RELAXED);
    const uint32_t write = (uint32_t)epochs, read = (uint32_t)(epochs >> 32);
    const uint64_t lines = __atomic_load_n(&page->atomics, __ATOMIC_RELAXED);
    bool done = likely(write != CELL_SPLIT) && likely(!(sites >> 32 & WHERE_READERS)) && likely(is_ordered(t, write)) &&
                likely(is_ordered(t, read)) && likely(!lines || !(lines & sync_line(addr))) &&
                likely(__atomic_load_n(&page->form, __ATOMIC_RELAXED) == FORM_FINE) && likely(epoch != 0);
    if (size == 8)
        done = done && likely(__atomic_load_n(&cell[1], __ATOMIC_RELAXED) == epochs) &&
               likely(__atomic_load_n(&cell_sites[1], __ATOMIC_RELAXED) == sites);
    if (likely(done)) {
        const uint64_t new_epochs = op == OP_WRITE ? epoch : (uint64_t)epoch << 32 | write;
        const uint64_t new_sites = op == OP_WRITE ? where : (uint64_t)where << 32 | (uint32_t)sites;
        __atomic_store_n(&cell[0], new_epochs, __ATOMIC_RELEASE);
        __atomic_store_n(&cell_sites[0], new_sites, __ATOMIC_RELEASE);
        if (size == 8) {
            __atomic_store_n(&cell[1], new_epochs, __ATOMIC_RELEASE);
            __atomic_store_n(&cell_sites[1], new_sites, __ATOMIC_RELEASE);
        }
    }
    page_unlock(t, page);
    return done;
}

#endif
