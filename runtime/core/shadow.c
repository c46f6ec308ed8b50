/* Shadow memory: which cell an access means. Layout, forms of blocks and locks: private.h.
 *
 * An access goes down from the chunk only as far as it must, applies FastTrack's rules (check.c) to each cell it comes
 * to, and makes blocks compact on its way back when it has covered them. What does not fit into a whole cell splits it
 * into byte cells, which are merged again when they are equal. */
#include "runtime/core/private.h"

enum { HITS = 32 }; /* accesses to parts of a compact block before it is refined for the sake of the inlined path */

/* --- forms -------------------------------------------------------------------------------------------------------- */

static bool is_fine(const block *b)
{
    return __atomic_load_n(&b->form, __ATOMIC_ACQUIRE) == FORM_FINE;
}

static void set_form(block *b, uint16_t form, ft_cell cell)
{
    cell_store(&b->cell, cell);
    __atomic_store_n(&b->hits, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&b->form, form, __ATOMIC_RELEASE);
}

static bool may_hit(block *b)
{
    uint16_t hits = __atomic_load_n(&b->hits, __ATOMIC_RELAXED);
    if (hits >= HITS) return false;
    __atomic_store_n(&b->hits, hits + 1, __ATOMIC_RELAXED);
    return true;
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

region *region_make(core_state *core, uint64_t addr)
{
    region *r = region_at(core, addr);
    if (r) return r;
    ft_epochs **slot = &core->pub.regions[addr >> FT_REGION_BITS & (FT_REGION_COUNT - 1)];
    spin_lock(core, &core->lock);
    r = (region *)*slot;
    if (!r) {
        region_entry *entry = memory_take(core, sizeof *entry);
        r = entry ? host_reserve(core, sizeof *r) : NULL;
        if (r) {
            *entry = (region_entry){core->regions, r};
            core->regions = entry;
            __atomic_store_n(slot, r->cells, __ATOMIC_RELEASE);
        }
    }
    spin_unlock(&core->lock);
    return r;
}

static void wipe_cells(region *r, size_t first, size_t count)
{
    memset(&r->cells[first], 0, count * sizeof *r->cells);
    memset(&r->sites[first], 0, count * sizeof *r->sites);
}

void shadow_forget(core_state *core)
{
    for (region_entry *e = core->regions; e; e = e->next) {
        if (core->host.discard) {
            core->host.discard(core->host.context, e->region, sizeof *e->region);
            continue;
        }
        for (uint32_t i = 0; i < REGION_SIZE / PAGE_SIZE; i++)
            if (e->region->pages[i].committed)
                wipe_cells(e->region, i * PAGE_CELLS, PAGE_CELLS);
        memset(e->region->pages, 0, sizeof e->region->pages);
        memset(e->region->chunks, 0, sizeof e->region->chunks);
    }
    core->shadow_bytes = 0;
}

/* --- looking without locks ---------------------------------------------------------------------------------------- */

/* What the granule's cell itself does not say: a compact block, byte cells, a read vector. */
static bool look_closer(const access_state *a, region *r, uint64_t from, uint64_t to)
{
    block *chunk = &r->chunks[from >> CHUNK_BITS], *page = &r->pages[from >> PAGE_BITS];
    block *b = is_fine(chunk) ? page : chunk;
    const uint64_t given_back = __atomic_load_n(&a->core->pub.given_back, __ATOMIC_ACQUIRE);
    const uint32_t seq = __atomic_load_n(&b->seq, __ATOMIC_ACQUIRE);
    if (seq & 1) return false;
    bool compact = b == chunk || !is_fine(page);
    ft_cell c = compact ? cell_load(&b->cell) : shadow_load(&r->cells[from / FT_GRANULE]);
    if (__atomic_load_n(&b->seq, __ATOMIC_ACQUIRE) != seq) return false;
    if (c.write == CELL_SPLIT) {
        const split_block *split = pool_at(&a->core->pools[POOL_SPLIT], c.write_site);
        for (; from < to; from++) {
            ft_cell byte = cell_load(&split->byte[from % FT_GRANULE]);
            if (__atomic_load_n(&b->seq, __ATOMIC_ACQUIRE) != seq || !cell_settled(a, &byte)) return false;
        }
    } else if (!cell_settled(a, &c)) {
        return false;
    }
    if (__atomic_load_n(&b->seq, __ATOMIC_ACQUIRE) != seq) return false;
    if (!compact && c.read_site & WHERE_READERS && c.write != a->epoch)
        readers_learn(a->t, c.read_site, a->epoch, given_back);
    return !compact || may_hit(b);
}

bool shadow_settled(const access_state *a, uint64_t addr, uint64_t size)
{
    region *r = region_at(a->core, addr);
    if (!r) return false;
    uint64_t at = addr & (REGION_SIZE - 1), end = at + size;
    while (at < end) {
        uint64_t stop = (at | (FT_GRANULE - 1)) + 1;
        if (stop > end) stop = end;
        const ft_epochs *cell = &r->cells[at / FT_GRANULE];
        bool same = __atomic_load_n(&cell->write, __ATOMIC_RELAXED) == a->epoch ||
                    (a->op == OP_READ && __atomic_load_n(&cell->read, __ATOMIC_RELAXED) == a->epoch);
        if (!same && !look_closer(a, r, at, stop)) return false;
        at = stop;
    }
    return true;
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static split_block *split_cell(access_state *a, ft_epochs *cell, ft_cell c)
{
    uint32_t number;
    if (!pool_take(a->t, POOL_SPLIT, &number)) return NULL;
    split_block *split = pool_at(&a->core->pools[POOL_SPLIT], number);
    for (int i = 0; i < FT_GRANULE; i++)
        cell_store(&split->byte[i], c);
    readers_hold(a->core, c.read_site, FT_GRANULE - 1);
    shadow_store(cell, (ft_cell){CELL_SPLIT, CELL_SPLIT, number, 0});
    count_own(&a->t->stats.splits);
    return split;
}

static void merge_if_equal(access_state *a, ft_epochs *cell, const split_block *split, uint32_t number)
{
    ft_cell first = cell_load(&split->byte[0]);
    for (int i = 1; i < FT_GRANULE; i++)
        if (!cell_equal(first, cell_load(&split->byte[i]))) return;
    shadow_store(cell, first);
    readers_drop(a->t, first.read_site, FT_GRANULE - 1);
    pool_give(a->t, POOL_SPLIT, number);
    count_own(&a->t->stats.merges);
}

/* `size` bytes of one granule. Requires the lock of its page. */
static void apply_granule(access_state *a, ft_epochs *cell, uint64_t addr, uint32_t size)
{
    ft_cell c = shadow_load(cell);
    if (c.write != CELL_SPLIT) {
        if (size < FT_GRANULE && cell_settled(a, &c)) return;
        if (size == FT_GRANULE) {
            ft_cell old = c;
            cell_apply(a, &c, addr, size);
            if (!cell_equal(old, c)) shadow_store(cell, c);
            return;
        }
        if (!split_cell(a, cell, c)) return;
        c = shadow_load(cell);
    }
    split_block *split = pool_at(&a->core->pools[POOL_SPLIT], c.write_site);
    const bool renew = a->renew;
    a->renew = size == FT_GRANULE; /* equal byte cells are merged */
    for (uint32_t i = 0; i < size; i++) {
        ft_cell *byte = &split->byte[(addr + i) % FT_GRANULE], b = cell_load(byte);
        cell_apply(a, &b, addr + i, 1);
        cell_store(byte, b);
    }
    a->renew = renew;
    merge_if_equal(a, cell, split, c.write_site);
}

/* Bytes [from, to) of the region that begins at `base`, inside one fine page. Requires its lock. Returns how far it
 * came: not to the end when too many races wait to be told. */
static uint64_t apply_cells(access_state *a, region *r, uint64_t base, uint64_t from, uint64_t to)
{
    while (from < to && a->races + FT_GRANULE * RACES_PER_CELL <= RACES_PENDING) {
        uint64_t stop = (from | (FT_GRANULE - 1)) + 1;
        if (stop > to) stop = to;
        ft_epochs *cell = &r->cells[from / FT_GRANULE];
        ft_cell before = shadow_load(cell), c = before;
        if (stop - from == FT_GRANULE && cell_apply_simply(a, &c)) {
            do { /* neighbours are mostly alike */
                shadow_store(cell++, c);
                from += FT_GRANULE;
            } while (to - from >= FT_GRANULE && cell_equal(shadow_load(cell), before));
        } else {
            apply_granule(a, cell, base + from, (uint32_t)(stop - from));
            from = stop;
        }
    }
    return from;
}

/* --- pages -------------------------------------------------------------------------------------------------------- */

static void fill_cells(ft_epochs *cells, ft_cell value)
{
    for (uint32_t i = 0; i < PAGE_CELLS; i++)
        shadow_store(&cells[i], value);
}

/* False: the limit of memory. Requires the page's lock. */
static bool refine_page(access_state *a, region *r, block *page)
{
    if (!page->committed && !shadow_charge(a->t, PAGE_CELLS * sizeof(ft_cell))) return false;
    page->committed = 1;
    ft_cell c = page->cell;
    if (!cell_is_empty(c)) fill_cells(&r->cells[(page - r->pages) * PAGE_CELLS], c);
    readers_hold(a->core, c.read_site, PAGE_CELLS - 1);
    set_form(page, FORM_FINE, (ft_cell){0});
    count_own(&a->t->stats.refined);
    return true;
}

/* A write to all of a fine page, or its clearing, when there is no race in it: then all of it has one history now, and
 * the cells need not be written one by one. False: nothing was done. Requires the page's lock. */
static bool overwrite_page(access_state *a, region *r, block *page)
{
    ft_epochs *cells = &r->cells[(page - r->pages) * PAGE_CELLS];
    ft_cell last = {0};
    if (a->op == OP_READ) return false;
    for (uint32_t i = 0; i < PAGE_CELLS; i++) {
        ft_cell c = shadow_load(&cells[i]);
        if (cell_equal(c, last)) continue;
        last = c;
        bool is_own = c.write == a->epoch && !(c.read_site & WHERE_READERS);
        if (!is_own && !cell_apply_simply(a, &c)) return false;
    }
    fill_cells(cells, (ft_cell){0});
    ft_cell now = {.write = a->epoch, .write_site = a->where};
    set_form(page, FORM_COMPACT, a->op == OP_WRITE ? now : (ft_cell){0});
    count_own(&a->t->stats.compacted);
    return true;
}

/* Requires the page's lock. */
static void compact_page_if_equal(access_state *a, region *r, block *page)
{
    ft_epochs *cells = &r->cells[(page - r->pages) * PAGE_CELLS];
    ft_cell first = shadow_load(cells);
    if (first.write == CELL_SPLIT) return;
    for (uint32_t i = 1; i < PAGE_CELLS; i++)
        if (!cell_equal(first, shadow_load(&cells[i]))) return;
    if (!cell_is_empty(first)) fill_cells(cells, (ft_cell){0});
    readers_drop(a->t, first.read_site, PAGE_CELLS - 1);
    set_form(page, FORM_COMPACT, first);
    count_own(&a->t->stats.compacted);
}

/* An access to `size` bytes of a compact block, if it can be done on its one cell. Requires the block's lock. */
static bool apply_compact(access_state *a, block *b, uint64_t addr, uint64_t size, bool whole)
{
    ft_cell c = b->cell;
    if (!whole && (!cell_settled(a, &c) || (a->op != OP_CLEAR && !may_hit(b)))) return false;
    a->renew = whole;
    cell_apply(a, &c, addr, (uint32_t)size);
    a->renew = false;
    cell_store(&b->cell, c);
    return true;
}

static void make_room(access_state *a)
{
    if (a->races + FT_GRANULE * RACES_PER_CELL > RACES_PENDING) access_tell_races(a);
}

/* Locks the page when its chunk is fine. */
static inline bool lock_page(access_state *a, region *r, block *page)
{
    const block *chunk = &r->chunks[(uint64_t)(page - r->pages) / CHUNK_PAGES];
    page_lock(a->t, page);
    if (is_fine(chunk)) return true;
    page_unlock(a->t, page);
    return false;
}

/* Bytes [from, to) of one page. False: its chunk has become compact. */
static bool apply_page(access_state *a, region *r, uint64_t base, uint64_t from, uint64_t to)
{
    block *page = &r->pages[from >> PAGE_BITS];
    const bool whole = to - from == PAGE_SIZE;
    for (;;) {
        make_room(a);
        if (!lock_page(a, r, page)) return false;
        bool done =
            !is_fine(page) && (apply_compact(a, page, base + from, to - from, whole) || !refine_page(a, r, page));
        if (!done && whole) done = overwrite_page(a, r, page);
        if (!done) {
            a->renew = whole;
            from = apply_cells(a, r, base, from, to);
            a->renew = false;
            done = from == to;
            if (done && whole) compact_page_if_equal(a, r, page);
        }
        page_unlock(a->t, page);
        if (done) return true;
    }
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

/* Memory of the cells of a compact chunk. Requires its lock. */
static void discard_cells(access_state *a, region *r, const block *chunk)
{
    block *pages = &r->pages[(chunk - r->chunks) * CHUNK_PAGES];
    uint64_t committed = 0;
    for (int i = 0; i < CHUNK_PAGES; i++)
        committed += pages[i].committed;
    if (!committed || !a->core->host.discard) return;
    const size_t first = (size_t)(chunk - r->chunks) * CHUNK_PAGES * PAGE_CELLS, count = CHUNK_PAGES * PAGE_CELLS;
    a->core->host.discard(a->core->host.context, &r->cells[first], count * sizeof *r->cells);
    a->core->host.discard(a->core->host.context, &r->sites[first], count * sizeof *r->sites);
    for (int i = 0; i < CHUNK_PAGES; i++)
        pages[i].committed = 0;
    __atomic_sub_fetch(&a->core->shadow_bytes, committed * PAGE_CELLS * sizeof(ft_cell), __ATOMIC_RELAXED);
}

/* Requires the chunk's lock. The pages' need not be taken: whoever has one sees the chunk compact, and leaves. */
static void refine_chunk(access_state *a, region *r, block *chunk)
{
    block *pages = &r->pages[(chunk - r->chunks) * CHUNK_PAGES];
    ft_cell c = chunk->cell;
    readers_hold(a->core, c.read_site, CHUNK_PAGES - 1);
    for (int i = 0; i < CHUNK_PAGES; i++)
        set_form(&pages[i], FORM_COMPACT, c);
    set_form(chunk, FORM_FINE, (ft_cell){0});
    count_own(&a->t->stats.refined);
}

static void compact_chunk_if_equal(access_state *a, region *r, block *chunk)
{
    block *pages = &r->pages[(chunk - r->chunks) * CHUNK_PAGES];
    block_lock(a->core, chunk);
    bool equal = is_fine(chunk);
    int locked = 0;
    while (equal && locked < CHUNK_PAGES) {
        if (!page_try_lock(a->t, &pages[locked])) break; /* somebody is there, so it would not last */
        equal = !is_fine(&pages[locked]) && cell_equal(pages[locked].cell, pages[0].cell);
        locked++;
    }
    equal = equal && locked == CHUNK_PAGES;
    if (equal) {
        readers_drop(a->t, pages[0].cell.read_site, CHUNK_PAGES - 1);
        set_form(chunk, FORM_COMPACT, pages[0].cell);
        for (int i = 0; i < CHUNK_PAGES; i++)
            set_form(&pages[i], FORM_COMPACT, (ft_cell){0});
        if (a->op == OP_CLEAR) discard_cells(a, r, chunk);
        count_own(&a->t->stats.compacted);
    }
    while (locked > 0)
        page_unlock(a->t, &pages[--locked]); /* nothing in it is touched any more */
    __atomic_store_n(&a->t->hazard, 0, __ATOMIC_RELEASE);
    block_unlock(chunk);
}

/* Bytes [from, to) of one compact chunk. False: it is fine now. */
static bool apply_compact_chunk(access_state *a, region *r, uint64_t base, uint64_t from, uint64_t to)
{
    block *chunk = &r->chunks[from >> CHUNK_BITS];
    const bool whole = to - from == CHUNK_SIZE;
    make_room(a);
    block_lock(a->core, chunk);
    bool done = false;
    if (!is_fine(chunk)) {
        done = apply_compact(a, chunk, base + from, to - from, whole);
        if (done && whole && a->op == OP_CLEAR) discard_cells(a, r, chunk);
        if (!done) refine_chunk(a, r, chunk);
    }
    block_unlock(chunk);
    return done;
}

/* Bytes [from, to) of one chunk. */
static void apply_chunk(access_state *a, region *r, uint64_t base, uint64_t from, uint64_t to)
{
    block *chunk = &r->chunks[from >> CHUNK_BITS];
    const bool whole = to - from == CHUNK_SIZE;
    while (from < to) {
        if (!is_fine(chunk) && apply_compact_chunk(a, r, base, from, to)) return;
        while (from < to) {
            uint64_t stop = (from | (PAGE_SIZE - 1)) + 1;
            if (stop > to) stop = to;
            if (!apply_page(a, r, base, from, stop)) break;
            from = stop;
        }
    }
    if (whole) compact_chunk_if_equal(a, r, chunk);
}

bool shadow_apply_part(thread_state *t, region *r, uint64_t addr, uint32_t size, access_op op, ft_site where)
{
    access_state a; /* not zeroed: it is large */
    a.core = core_of_thread(&t->pub);
    a.t = t;
    a.op = op;
    a.epoch = t->pub.epoch;
    a.site = a.where = where;
    a.renew = false;
    a.races = 0;
    const uint64_t at = addr & (REGION_SIZE - 1);
    block *page = &r->pages[at >> PAGE_BITS];
    page_lock(t, page);
    const bool done = is_fine(page) && !(__atomic_load_n(&page->atomics, __ATOMIC_RELAXED) & sync_line(addr));
    if (done && a.epoch) apply_granule(&a, &r->cells[at / FT_GRANULE], addr, size);
    page_unlock(t, page);
    if (a.races) access_tell_races(&a);
    return done;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

bool shadow_apply_in_page(access_state *a, uint64_t addr, uint64_t size)
{
    const uint64_t from = addr & (REGION_SIZE - 1);
    region *r = region_at(a->core, addr);
    if (!r || size == PAGE_SIZE || (addr & (PAGE_SIZE - 1)) + size > PAGE_SIZE) return false;
    block *page = &r->pages[from >> PAGE_BITS];
    if (!lock_page(a, r, page)) return false;
    bool done = is_fine(page) && apply_cells(a, r, addr - from, from, from + size) == from + size;
    page_unlock(a->t, page);
    return done;
}

void shadow_apply(access_state *a, uint64_t addr, uint64_t size)
{
    while (size) {
        uint64_t from = addr & (REGION_SIZE - 1), base = addr - from;
        uint64_t end = size < REGION_SIZE - from ? from + size : REGION_SIZE;
        addr += end - from;
        size -= end - from;
        region *r = a->op == OP_CLEAR ? region_at(a->core, base) : region_make(a->core, base);
        while (r && from < end) {
            uint64_t stop = (from | (CHUNK_SIZE - 1)) + 1;
            if (stop > end) stop = end;
            apply_chunk(a, r, base, from, stop);
            from = stop;
        }
    }
}

/* The elements from number `i` on that lie in one fine page, under one lock. Returns the number of the first that is
 * not done; `i` itself: it must be done alone. */
static uint64_t apply_page_elements(access_state *a, const ft_strided *e, uint64_t i)
{
    uint64_t addr = e->addr + i * (uint64_t)e->stride, from = addr & (REGION_SIZE - 1), base = addr - from;
    const uint64_t page_end = (from | (PAGE_SIZE - 1)) + 1;
    region *r = region_at(a->core, addr);
    if (!r || e->size > page_end - from) return i;
    block *page = &r->pages[from >> PAGE_BITS];
    make_room(a);
    if (!lock_page(a, r, page)) return i;
    if (is_fine(page)) {
        while (i < e->count && from < page_end && e->size <= page_end - from) {
            if (apply_cells(a, r, base, from, from + e->size) != from + e->size) break;
            from += (uint64_t)e->stride;
            i++;
        }
    }
    page_unlock(a->t, page);
    return i;
}

void shadow_apply_strided(access_state *a, ft_strided e)
{
    for (uint64_t i = 0; i < e.count;) {
        uint64_t next = apply_page_elements(a, &e, i);
        if (next == i) {
            shadow_apply(a, e.addr + i * (uint64_t)e.stride, e.size);
            next++;
        }
        i = next;
    }
}
