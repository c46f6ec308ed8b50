/* Shadow memory: the directory of cells, clearing, and the pools for what does not fit into a cell.
 *
 * All of it is reserved from the host in large pieces that cost nothing until they are touched, and is never given
 * back: a check may look at a cell at any time without asking whether it is still there. */
#include "runtime/core/private.h"

enum { PAGE = 4096 };
enum { CLEAR_BY_PAGES = 1 << 16 }; /* bytes of cells from which on whole pages are discarded instead of written */

void spin_wait(core_state *core)
{
    __builtin_ia32_pause();
    if (core->host.yield) core->host.yield(core->host.context);
}

void spin_lock(core_state *core, uint32_t *lock)
{
    for (unsigned tries = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); tries++)
        if (tries < 64)
            __builtin_ia32_pause();
        else
            spin_wait(core);
}

void spin_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static void *host_reserve(core_state *core, size_t size)
{
    void *p = core->host.reserve(core->host.context, (size + PAGE - 1) & ~(size_t)(PAGE - 1));
    if (!p) count(&core->stats.dropped);
    return p;
}

void *memory_take(core_state *core, size_t size)
{
    enum { PIECE = 1 << 20 };
    size = (size + 15) & ~(size_t)15;
    if (size >= PIECE / 4) return host_reserve(core, size);
    spin_lock(core, &core->memory.lock);
    if (core->memory.left < size) {
        core->memory.at = host_reserve(core, PIECE);
        core->memory.left = core->memory.at ? PIECE : 0;
    }
    void *p = NULL;
    if (core->memory.left >= size) {
        p = core->memory.at;
        core->memory.at += size;
        core->memory.left -= size;
    }
    spin_unlock(&core->memory.lock);
    return p;
}

void *pool_at(const pool *p, uint32_t number)
{
    char *chunk = __atomic_load_n(&p->chunks[number / POOL_CHUNK], __ATOMIC_ACQUIRE);
    return chunk + (size_t)(number % POOL_CHUNK) * p->block;
}

bool pool_take(core_state *core, pool *p, uint32_t *number)
{
    uint32_t taken = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED);
    if (taken >= TAG_BUSY) {
        __atomic_store_n(&p->next, TAG_BUSY, __ATOMIC_RELAXED); /* so that it never wraps */
        count(&core->stats.dropped);
        return false;
    }
    char **chunk = &p->chunks[taken / POOL_CHUNK];
    if (!__atomic_load_n(chunk, __ATOMIC_ACQUIRE)) {
        spin_lock(core, &p->lock);
        if (!*chunk) {
            char *fresh = host_reserve(core, POOL_CHUNK * p->block);
            if (fresh) __atomic_store_n(chunk, fresh, __ATOMIC_RELEASE);
        }
        spin_unlock(&p->lock);
        if (!__atomic_load_n(chunk, __ATOMIC_ACQUIRE)) return false;
    }
    *number = taken;
    return true;
}

static ft_cell **region_slot(core_state *core, uint64_t addr)
{
    return &core->pub.regions[addr >> FT_REGION_BITS & (FT_REGION_COUNT - 1)];
}

ft_cell *region_of(core_state *core, uint64_t addr)
{
    ft_cell **slot = region_slot(core, addr);
    ft_cell *region = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (region) return region;
    spin_lock(core, &core->lock);
    region = *slot;
    if (!region) {
        region = host_reserve(core, ((size_t)1 << FT_REGION_BITS) / FT_GRANULE * sizeof *region);
        __atomic_store_n(slot, region, __ATOMIC_RELEASE);
    }
    spin_unlock(&core->lock);
    return region;
}

uint64_t *vector_entry(core_state *core, read_vector *v, uint32_t slot, bool create)
{
    uint32_t *part = &v->part[slot / PART_ENTRIES];
    uint32_t number = __atomic_load_n(part, __ATOMIC_ACQUIRE);
    if (!number) {
        uint32_t fresh;
        if (!create || !pool_take(core, &core->parts, &fresh)) return NULL;
        if (__atomic_compare_exchange_n(part, &number, fresh + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            number = fresh + 1;
    }
    return &((vector_part *)pool_at(&core->parts, number - 1))->entry[slot % PART_ENTRIES];
}

/* --- clearing ----------------------------------------------------------------------------------------------------- */

static void clear_vector(core_state *core, uint32_t tag)
{
    read_vector *v = pool_at(&core->vectors, epoch_clock(tag));
    for (int i = 0; i < VECTOR_PARTS; i++) {
        uint32_t number = __atomic_load_n(&v->part[i], __ATOMIC_ACQUIRE);
        if (!number) continue;
        vector_part *part = pool_at(&core->parts, number - 1);
        for (int k = 0; k < PART_ENTRIES; k++)
            __atomic_store_n(&part->entry[k], 0, __ATOMIC_RELAXED);
    }
}

static void clear_cell(core_state *core, ft_cell *cell)
{
    for (;;) {
        ft_cell old = cell_load(cell);
        if (!old.write && !old.read) return;
        if (is_tag(old.write)) {
            if (epoch_clock(old.write) == TAG_BUSY) {
                spin_wait(core);
                continue;
            }
            split_block *block = pool_at(&core->splits, epoch_clock(old.write));
            for (int i = 0; i < FT_GRANULE; i++)
                clear_cell(core, &block->byte[i]);
            return;
        }
        ft_cell empty = {.read = is_tag(old.read) ? old.read : 0};
        if (empty.read) clear_vector(core, empty.read);
        if (!old.write && empty.read) return;
        if (cell_swap(cell, &old, &empty)) return;
    }
}

static bool cell_is_empty(const ft_cell *cell)
{
    ft_cell now = cell_load(cell);
    return !now.write && !now.read;
}

/* Cells [from, to): whole pages are given back when there are many. */
static void clear_cells(core_state *core, ft_cell *from, ft_cell *to)
{
    if (core->host.discard && (size_t)(to - from) * sizeof *from >= CLEAR_BY_PAGES) {
        uintptr_t first = ((uintptr_t)from + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        uintptr_t last = (uintptr_t)to & ~(uintptr_t)(PAGE - 1);
        clear_cells(core, from, (ft_cell *)first);
        core->host.discard(core->host.context, (void *)first, last - first);
        clear_cells(core, (ft_cell *)last, to);
        return;
    }
    for (ft_cell *cell = from; cell < to; cell++)
        clear_cell(core, cell);
}

void ft_clear(ft_thread *thread, uint64_t addr, uint64_t size)
{
    core_state *core = core_of_thread(thread);
    if (!is_concurrent(&core->pub)) return; /* what the cells know is ordered before everything to come */
    const uint64_t region_size = (uint64_t)1 << FT_REGION_BITS;
    if (size > UINT64_MAX - addr) size = UINT64_MAX - addr;
    while (size) {
        uint64_t offset = addr & (region_size - 1);
        uint64_t part = size < region_size - offset ? size : region_size - offset;
        ft_cell *region = __atomic_load_n(region_slot(core, addr), __ATOMIC_ACQUIRE);
        if (region) {
            uint64_t end = offset + part;
            uint64_t whole = (offset + FT_GRANULE - 1) & ~(uint64_t)(FT_GRANULE - 1);
            uint64_t whole_end = end & ~(uint64_t)(FT_GRANULE - 1);
            /* bytes of granules that are cleared in part */
            for (uint64_t at = offset; at < end; at++) {
                if (at == whole && whole < whole_end) at = whole_end;
                if (at == end) break;
                ft_cell *cell = region + at / FT_GRANULE;
                if (cell_is_empty(cell)) continue;
                split_block *block = cell_split(state_of(thread), cell);
                if (block) clear_cell(core, &block->byte[at % FT_GRANULE]);
            }
            if (whole < whole_end) clear_cells(core, region + whole / FT_GRANULE, region + whole_end / FT_GRANULE);
        }
        addr += part;
        size -= part;
    }
}
