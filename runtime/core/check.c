/* One access: FastTrack's rules on cells (Flanagan and Freund, PLDI 2009), without locks.
 *
 * A cell is replaced as one unit (cmpxchg16b), so write epoch, read epoch and their sites are always those of one
 * moment, and an access that lost against another one starts over. A race is reported only by the attempt that won.
 *
 * Where this differs from the paper, and why it still is exact for the first race on a byte:
 *  - A write by the thread in this epoch also settles its reads: whoever races with the read races with the write.
 *  - A write forgets the read epoch. All reads were ordered before it (or their race is reported now), so whoever is
 *    ordered after the write is ordered after them.
 *  - A read vector stays with its cell (private.h), and a write does not empty it: its entries are old news by the
 *    same argument. A cell with a vector is not one unit any more, so reader and writer each announce themselves
 *    first and look for the other then (Dekker): the reader writes its entry and then looks at the write epoch, the
 *    writer swaps the cell and then looks at the entries. At least one of two racing accesses sees the other. */
#include "runtime/core/private.h"

typedef unsigned __int128 cell_bits;

typedef struct { /* the access being checked */
    thread_state *t;
    ft_site site;
    bool is_write;
} access_info;

ft_cell cell_load(const ft_cell *cell)
{
    const uint64_t *half = (const uint64_t *)(const void *)cell;
    union {
        uint64_t half[2];
        ft_cell cell;
    } now, again;
    /* The halves are loaded apart; loading the epochs twice makes a mixture of two moments unlikely, and a swap that
     * starts from one fails. */
    do {
        now.half[0] = __atomic_load_n(&half[0], __ATOMIC_ACQUIRE);
        now.half[1] = __atomic_load_n(&half[1], __ATOMIC_ACQUIRE);
        again.half[0] = __atomic_load_n(&half[0], __ATOMIC_ACQUIRE);
    } while (now.half[0] != again.half[0]);
    return now.cell;
}

__attribute__((target("cx16"))) bool cell_swap(ft_cell *cell, const ft_cell *old, const ft_cell *new)
{
    cell_bits from, to;
    memcpy(&from, old, sizeof from);
    memcpy(&to, new, sizeof to);
    return __sync_bool_compare_and_swap((cell_bits *)(void *)cell, from, to);
}

static bool is_ordered(const thread_state *t, uint32_t epoch)
{
    return epoch_clock(epoch) <= t->clock[epoch_slot(epoch)];
}

static void report(const access_info *a, uint64_t addr, uint32_t size, uint32_t epoch, ft_site site, bool was_write)
{
    core_state *core = core_of_thread(&a->t->pub);
    count(&core->stats.races);
    ft_race race = {
        .addr = addr,
        .size = size,
        .now = {a->t->pub.number, a->site, a->is_write},
        .before = {thread_owner(core, epoch), site, was_write},
    };
    core->host.race(core->host.context, &race);
}

/* The entries of a vector that are not ordered before this write. */
static void report_readers(const access_info *a, uint64_t addr, uint32_t size, uint32_t tag)
{
    core_state *core = core_of_thread(&a->t->pub);
    read_vector *v = pool_at(&core->vectors, epoch_clock(tag));
    for (uint32_t i = 0; i < VECTOR_PARTS; i++) {
        uint32_t number = __atomic_load_n(&v->part[i], __ATOMIC_ACQUIRE);
        if (!number) continue;
        vector_part *part = pool_at(&core->parts, number - 1);
        for (uint32_t k = 0; k < PART_ENTRIES; k++) {
            uint64_t entry = __atomic_load_n(&part->entry[k], __ATOMIC_SEQ_CST);
            uint32_t slot = i * PART_ENTRIES + k;
            if (slot >= FT_SLOTS || !entry) continue;
            uint32_t epoch = epoch_make(slot, (uint32_t)entry);
            if (!is_ordered(a->t, epoch)) report(a, addr, size, epoch, (ft_site)(entry >> 32), false);
        }
    }
}

static bool take_vector(thread_state *t, uint32_t *number)
{
    if (t->spare_vector) {
        *number = t->spare_vector - 1;
        t->spare_vector = 0;
        return true;
    }
    core_state *core = core_of_thread(&t->pub);
    if (!pool_take(core, &core->vectors, number)) return false;
    count(&core->stats.vectors);
    return true;
}

/* A vector that no cell got: it is emptied for the next cell. */
static void spare_vector(thread_state *t, uint32_t number)
{
    core_state *core = core_of_thread(&t->pub);
    read_vector *v = pool_at(&core->vectors, number);
    for (uint32_t i = 0; i < VECTOR_PARTS; i++)
        if (v->part[i]) memset(pool_at(&core->parts, v->part[i] - 1), 0, sizeof(vector_part));
    t->spare_vector = number + 1;
}

static bool vector_put(thread_state *t, uint32_t number, uint32_t epoch, ft_site site)
{
    core_state *core = core_of_thread(&t->pub);
    uint64_t *entry = vector_entry(core, pool_at(&core->vectors, number), epoch_slot(epoch), true);
    if (!entry) return false;
    __atomic_store_n(entry, (uint64_t)site << 32 | epoch_clock(epoch), __ATOMIC_SEQ_CST);
    return true;
}

/* A second thread reads, not ordered after the first: both go into a vector. False: no memory for one. */
static bool share_read(const access_info *a, const ft_cell *old, uint32_t *number)
{
    thread_state *t = a->t;
    if (!take_vector(t, number)) return false;
    if (vector_put(t, *number, old->read, old->read_site) && vector_put(t, *number, t->pub.epoch, a->site)) return true;
    spare_vector(t, *number);
    return false;
}

/* A read of a cell with a vector. False: the cell has changed its form meanwhile; start over. */
static bool read_shared(const access_info *a, ft_cell *cell, ft_cell old, uint64_t addr, uint32_t size)
{
    thread_state *t = a->t;
    core_state *core = core_of_thread(&t->pub);
    uint64_t *entry = vector_entry(core, pool_at(&core->vectors, epoch_clock(old.read)), t->slot, true);
    if (entry && (uint32_t)__atomic_load_n(entry, __ATOMIC_RELAXED) == epoch_clock(t->pub.epoch)) return true;
    if (entry) __atomic_store_n(entry, (uint64_t)a->site << 32 | epoch_clock(t->pub.epoch), __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    ft_cell now = cell_load(cell);
    if (is_tag(now.write) || now.read != old.read) {
        /* Split: the bytes have copies of the vector. They were made before this entry was written, or have it too;
         * in both cases it says the truth there. */
        return false;
    }
    if (!is_ordered(t, now.write)) report(a, addr, size, now.write, now.write_site, true);
    return true;
}

/* An access to a cell that is not split. False: it is split; do the bytes one by one. */
static bool access_cell(const access_info *a, ft_cell *cell, uint64_t addr, uint32_t size)
{
    thread_state *t = a->t;
    core_state *core = core_of_thread(&t->pub);
    const uint32_t epoch = t->pub.epoch;
    for (;;) {
        ft_cell old = cell_load(cell);
        if (old.write == epoch || (!a->is_write && old.read == epoch)) return true;
        if (is_tag(old.write)) {
            if (epoch_clock(old.write) != TAG_BUSY) return false;
            spin_wait(core);
            continue;
        }
        ft_cell new = old;
        if (a->is_write) {
            new.write = epoch;
            new.write_site = a->site;
            if (!is_tag(old.read)) new.read = 0, new.read_site = 0;
            if (!cell_swap(cell, &old, &new)) continue;
            if (is_tag(old.read))
                report_readers(a, addr, size, old.read);
            else if (!is_ordered(t, old.read))
                report(a, addr, size, old.read, old.read_site, false);
        } else if (is_tag(old.read)) {
            if (!read_shared(a, cell, old, addr, size)) continue;
            return true;
        } else {
            uint32_t number;
            new.read = epoch;
            new.read_site = a->site;
            bool shared = !is_ordered(t, old.read) && share_read(a, &old, &number);
            if (shared) new.read = epoch_make(FT_TAG, number);
            if (!cell_swap(cell, &old, &new)) {
                if (shared) spare_vector(t, number);
                continue;
            }
        }
        if (!is_ordered(t, old.write)) report(a, addr, size, old.write, old.write_site, true);
        return true;
    }
}

/* --- splitting ---------------------------------------------------------------------------------------------------- */

/* A copy of a vector that nobody else knows yet. */
static bool copy_vector(thread_state *t, uint32_t tag, uint32_t *number)
{
    core_state *core = core_of_thread(&t->pub);
    if (!take_vector(t, number)) return false;
    read_vector *from = pool_at(&core->vectors, epoch_clock(tag));
    read_vector *to = pool_at(&core->vectors, *number);
    for (uint32_t slot = 0; slot < FT_SLOTS; slot++) {
        uint64_t *entry = vector_entry(core, from, slot, false);
        uint64_t value = entry ? __atomic_load_n(entry, __ATOMIC_SEQ_CST) : 0;
        if (!value) continue;
        uint64_t *copy = vector_entry(core, to, slot, true);
        if (copy) __atomic_store_n(copy, value, __ATOMIC_RELAXED);
    }
    return true;
}

/* The bytes of a cell with a vector get a vector each. Nobody may add to the old one meanwhile, so the cell is marked
 * busy. A reader that put its entry in before it could see the mark is copied; one that sees the mark starts over. */
static void split_vector(thread_state *t, ft_cell *cell, const ft_cell *old, uint32_t number)
{
    core_state *core = core_of_thread(&t->pub);
    split_block *block = pool_at(&core->splits, number);
    for (int i = 0; i < FT_GRANULE; i++) {
        block->byte[i] = *old;
        uint32_t copy = epoch_clock(old->read);
        bool has_copy = !i || copy_vector(t, old->read, &copy);
        block->byte[i].read = has_copy ? epoch_make(FT_TAG, copy) : 0;
    }
    ft_cell busy = *old, split = {.write = epoch_make(FT_TAG, number)};
    busy.write = epoch_make(FT_TAG, TAG_BUSY);
    /* A busy cell has one owner; only clearing whole pages of cells goes over it: then it is empty, and stays so. */
    if (!cell_swap(cell, &busy, &split)) t->spare_split = number + 1;
}

split_block *cell_split(thread_state *t, ft_cell *cell)
{
    core_state *core = core_of_thread(&t->pub);
    for (;;) {
        ft_cell old = cell_load(cell);
        if (is_tag(old.write)) {
            if (epoch_clock(old.write) != TAG_BUSY) return pool_at(&core->splits, epoch_clock(old.write));
            spin_wait(core);
            continue;
        }
        uint32_t number;
        if (t->spare_split) {
            number = t->spare_split - 1;
            t->spare_split = 0;
        } else if (!pool_take(core, &core->splits, &number)) {
            return NULL;
        }
        split_block *block = pool_at(&core->splits, number);
        ft_cell new = {.write = epoch_make(FT_TAG, number)};
        if (is_tag(old.read)) {
            new = old;
            new.write = epoch_make(FT_TAG, TAG_BUSY);
        } else {
            for (int i = 0; i < FT_GRANULE; i++)
                block->byte[i] = old;
        }
        if (!cell_swap(cell, &old, &new)) {
            t->spare_split = number + 1;
            continue;
        }
        count(&core->stats.splits);
        if (!is_tag(old.read)) return block;
        split_vector(t, cell, &old, number);
    }
}

/* --- accesses ----------------------------------------------------------------------------------------------------- */

/* Bytes [first, end) of the granule at addr. */
static void access_granule(const access_info *a, ft_cell *cell, uint64_t addr, uint32_t first, uint32_t end)
{
    if (end - first == FT_GRANULE && access_cell(a, cell, addr, FT_GRANULE)) return;
    split_block *block = cell_split(a->t, cell);
    if (!block) return;
    for (uint32_t i = first; i < end; i++)
        access_cell(a, &block->byte[i], addr + i, 1); /* a byte cell is never split */
}

static void access_range(const access_info *a, uint64_t addr, uint64_t size)
{
    core_state *core = core_of_thread(&a->t->pub);
    if (!a->t->pub.epoch || !is_concurrent(&core->pub)) return;
    while (size) {
        const uint64_t region_size = (uint64_t)1 << FT_REGION_BITS;
        uint64_t offset = addr & (region_size - 1);
        uint64_t end = size < region_size - offset ? offset + size : region_size;
        ft_cell *region = region_of(core, addr);
        uint64_t region_addr = addr - offset;
        addr += end - offset;
        size -= end - offset;
        if (!region) continue;
        while (offset < end) {
            uint64_t granule = offset & ~(uint64_t)(FT_GRANULE - 1);
            uint64_t stop = granule + FT_GRANULE < end ? granule + FT_GRANULE : end;
            access_granule(a, region + granule / FT_GRANULE, region_addr + granule, (uint32_t)(offset - granule),
                           (uint32_t)(stop - granule));
            offset = stop;
        }
    }
}

void ft_read(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    access_range(&(access_info){.t = state_of(thread), .site = site}, addr, size);
}

void ft_write(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    access_range(&(access_info){.t = state_of(thread), .site = site, .is_write = true}, addr, size);
}
