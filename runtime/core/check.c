/* One access: FastTrack's rules on cells (Flanagan and Freund, PLDI 2009).
 *
 * A cell is changed under the lock of its block, so write epoch, readers and their sites are always those of one
 * moment, and of two racing accesses the later one finds the earlier. The same-epoch path looks without a lock: it only
 * asks whether this thread's own access of this epoch is there, which nobody else can have put there; whoever has
 * overwritten it meanwhile has seen it.
 *
 * Where this differs from the paper, and why it still is exact for the first race on a byte:
 *  - A write by the thread in this epoch also settles its reads: whoever races with the read races with the write.
 *  - A write forgets the readers. All were ordered before it (or their race is reported now), so whoever is ordered
 *    after the write is ordered after them.
 *  - A read forgets the readers that are ordered before it (readers.c), so a cell goes back to one epoch by itself. */
#include "runtime/core/private.h"
#include "runtime/core/quick.h"

enum { KEEP_OBJECTS = 1 }; /* as the site of OP_CLEAR */

bool cell_settled(const access_state *a, const ft_cell *c)
{
    if (a->op == OP_CLEAR) return cell_is_empty(*c);
    if (c->write == a->epoch) return true;
    if (a->op == OP_WRITE) return false;
    return c->read == a->epoch || (c->read_site & WHERE_READERS && readers_have(a->core, c->read_site, a->epoch));
}

static void renew_site(const access_state *a, ft_cell *c)
{
    if (a->op == OP_WRITE)
        c->write_site = a->where;
    else if (a->op == OP_READ && c->read == a->epoch && !(c->read_site & WHERE_READERS))
        c->read_site = a->where;
}

void cell_apply(access_state *a, ft_cell *c, uint64_t addr, uint32_t size)
{
    if (cell_settled(a, c)) {
        if (a->renew) renew_site(a, c);
        return;
    }
    const bool has_vector = c->read_site & WHERE_READERS;
    if (a->op == OP_CLEAR) {
        if (a->site == KEEP_OBJECTS) sync_tell_readers(a, c, addr);
        readers_drop(a->t, c->read_site, 1);
        *c = (ft_cell){0};
        return;
    }
    if (!is_ordered(a->t, c->write)) access_note_race(a, addr, size, c->write, c->write_site, true);
    if (a->op == OP_READ) {
        if (has_vector || !is_ordered(a->t, c->read)) {
            readers_add(a, c);
        } else {
            c->read = a->epoch;
            c->read_site = a->where;
        }
        return;
    }
    if (has_vector) {
        readers_find_races(a, c->read_site, addr, size);
        readers_drop(a->t, c->read_site, 1);
    } else if (!is_ordered(a->t, c->read)) {
        access_note_race(a, addr, size, c->read, c->read_site, false);
    }
    *c = (ft_cell){.write = a->epoch, .write_site = a->where};
}

/* --- races -------------------------------------------------------------------------------------------------------- */

void access_note_race(access_state *a, uint64_t addr, uint32_t size, uint32_t epoch, ft_site where, bool is_write)
{
    for (unsigned i = 0; i < a->races; i++) {
        found_race *r = &a->race[i];
        if (r->epoch != epoch || r->where != where || r->is_write != is_write || r->addr + r->size != addr) continue;
        if (r->size > INT32_MAX - size) continue;
        r->size += size;
        return;
    }
    a->race[a->races++] = (found_race){addr, size, epoch, where, is_write};
}

static ft_side side(core_state *core, uint32_t thread, ft_site where, bool is_write)
{
    ft_site site = where_site(core, where);
    return (ft_side){thread, site & ~SITE_FREE, where_stack(where), is_write, site & SITE_FREE};
}

void access_tell_races(access_state *a)
{
    for (unsigned i = 0; i < a->races; i++) {
        const found_race *r = &a->race[i];
        ft_race race = {
            .addr = r->addr,
            .size = r->size,
            .now = side(a->core, a->t->pub.number, a->where, a->op == OP_WRITE),
            .before = side(a->core, thread_owner(a->core, r->epoch), r->where, r->is_write),
        };
        count_own(&a->t->stats.races);
        a->core->host.race(a->core->host.context, &race);
    }
    a->races = 0;
}

/* --- accesses ----------------------------------------------------------------------------------------------------- */

/* Elements that touch or overlap become one range, descending ones ascending. Addresses end at 2^47. */
static ft_strided normalised(ft_strided e)
{
    const uint64_t end = (uint64_t)1 << 47;
    if (!e.size || !e.count || e.addr >= end) return (ft_strided){0};
    uint64_t step = e.stride < 0 ? -(uint64_t)e.stride : (uint64_t)e.stride;
    uint64_t most = e.stride < 0 ? e.addr : end - 1 - e.addr; /* room for the other elements */
    if (!step) e.count = 1;
    if (e.count > 1 && e.count - 1 > most / step) e.count = most / step + 1;
    if (e.stride < 0) e.addr -= (e.count - 1) * step;
    if (e.size > end - e.addr) e.size = end - e.addr;
    e.stride = (int64_t)step;
    if (step > e.size && e.count > 1) return e;
    uint64_t size = (e.count - 1) * step + e.size;
    return (ft_strided){.addr = e.addr, .size = size < end - e.addr ? size : end - e.addr, .count = 1};
}

static inline void apply(access_state *a, ft_strided e)
{
    a->races = 0;
    a->renew = false;
    if (e.count > 1)
        shadow_apply_strided(a, e);
    else if (!shadow_apply_in_page(a, e.addr, e.size))
        shadow_apply(a, e.addr, e.size);
    if (a->races) access_tell_races(a);
}

/* What is not settled. Requires that the thread is inside. */
__attribute__((always_inline)) static inline void check_inside(thread_state *t, ft_strided e, access_op op,
                                                               ft_site site)
{
    core_state *core = core_of_thread(&t->pub);
    access_state a; /* not zeroed: it is large */
    a.core = core;
    a.t = t;
    a.op = op;
    a.epoch = t->pub.epoch; /* a reset may have changed it */
    a.site = a.where = site;
    if (op != OP_CLEAR) {
        if (!a.epoch) return;
        count_own(&t->stats.slow);
        if (core->host.stack) a.where = core->host.stack(core->host.context, &t->pub, site) & ~WHERE_READERS;
    } else if (site != KEEP_OBJECTS) {
        sync_forget_range(core, e.addr, e.size);
    }
    if (op == OP_CLEAR) __atomic_add_fetch(&core->pub.cleared, 1, __ATOMIC_SEQ_CST);
    apply(&a, e);
}

/* In a signal handler that has interrupted a call. The place is claimed before it is filled: handlers nest. */
static void defer(thread_state *t, deferred_check d)
{
    if (__atomic_load_n(&t->deferred_tail, __ATOMIC_RELAXED) - t->deferred_head >= DEFERRED)
        count(&core_of_thread(&t->pub)->stats.dropped);
    else
        t->deferred[__atomic_fetch_add(&t->deferred_tail, 1, __ATOMIC_RELAXED) % DEFERRED] = d;
}

/* Requires normalised elements. */
static void check_slow(thread_state *t, ft_strided e, access_op op, ft_site site)
{
    core_state *core = core_of_thread(&t->pub);
    if (!e.count) return;
    sync_catch_up(t);
    if (!thread_enter(t)) {
        defer(t, (deferred_check){e, site, op});
        return;
    }
    /* What an access could not keep for want of memory, it can after the reset; unless it is too large by itself, or
     * others are always faster. */
    enum { TRIES = 8 };
    for (unsigned tries = 1;; tries++) {
        check_inside(t, e, op, site);
        bool again = t->wants_reset == RESET_MEMORY;
        if (again && tries == TRIES) {
            count(&core->stats.dropped);
            t->wants_reset = RESET_NONE;
            again = false;
        }
        thread_leave(t);
        if (!again) return;
        thread_enter(t);
    }
}

void check_deferred(thread_state *t)
{
    while (t->deferred_head != __atomic_load_n(&t->deferred_tail, __ATOMIC_RELAXED)) {
        deferred_check d = t->deferred[t->deferred_head % DEFERRED];
        __atomic_store_n(&t->deferred_head, t->deferred_head + 1, __ATOMIC_RELAXED);
        count_own(&t->stats.deferred);
        check_inside(t, d.elements, d.op, d.site);
    }
}

enum { SMALL = 16 }; /* accesses up to this size have a same-epoch path */

/* Inside one region, which is below the end of all addresses? */
static inline bool is_small(uint64_t addr, uint64_t size)
{
    return size - 1 < SMALL && (addr & (REGION_SIZE - 1)) <= REGION_SIZE - SMALL && !(addr >> 47);
}

/* The same-epoch path: nothing to do? It has no call in it, so that nothing is saved on the stack before it. */
__attribute__((always_inline)) static inline bool is_same_epoch(const ft_thread *thread, uint64_t addr, uint64_t size,
                                                                access_op op)
{
    if (!is_concurrent(thread->core)) return true;
    const uint32_t epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
    if (!epoch) return true;
    if (!is_small(addr, size)) return false;
    const ft_epochs *cells = __atomic_load_n(&thread->core->regions[addr >> FT_REGION_BITS], __ATOMIC_ACQUIRE);
    if (!cells) return false;
    const uint64_t from = addr & (REGION_SIZE - 1);
    const ft_epochs *cell = &cells[from / FT_GRANULE], *last = &cells[(from + size - 1) / FT_GRANULE];
    for (; cell <= last; cell++) {
        if (__atomic_load_n(&cell->write, __ATOMIC_RELAXED) == epoch) continue;
        if (op == OP_WRITE) return false;
        if (__atomic_load_n(&cell->read, __ATOMIC_RELAXED) == epoch) continue;
        const ft_site readers = __atomic_load_n(&sites_of(cell)->read, __ATOMIC_ACQUIRE);
        const thread_state *t = (const thread_state *)thread;
        if (!(readers & WHERE_READERS) || !readers_known(core_of_thread((ft_thread *)t), t, readers, epoch)) return false;
    }
    return true;
}

static inline bool check_quickly(thread_state *t, uint64_t addr, uint64_t size, access_op op, ft_site site)
{
    core_state *core = core_of_thread(&t->pub);
    region *r = quick_begin(t, addr, size);
    if (!r) return false;
    ft_site where = core->host.stack ? core->host.stack(core->host.context, &t->pub, site) & ~WHERE_READERS : site;
    return quick_end(t, quick_apply(t, r, addr, size, op, where));
}

/* Of a small access: may the answer no be wrong? The cell is split, or empty since its block is compact, or read by
 * several. */
static bool is_worth_a_look(core_state *core, uint64_t addr, access_op op)
{
    const region *r = region_at(core, addr);
    if (!r) return false;
    ft_cell c = shadow_load(&r->cells[(addr & (REGION_SIZE - 1)) / FT_GRANULE]);
    return c.write == CELL_SPLIT || cell_is_empty(c) || (op == OP_READ && c.read_site & WHERE_READERS);
}

__attribute__((noinline)) static void check_any(ft_thread *thread, ft_strided e, access_op op, ft_site site)
{
    check_slow(state_of(thread), normalised(e), op, site);
}

void check_wipe(thread_state *t, uint64_t addr, uint64_t size)
{
    check_any(&t->pub, (ft_strided){.addr = addr, .size = size, .count = 1}, OP_CLEAR, KEEP_OBJECTS);
}

/* A plain access where atomic instructions are used. */
static void access_atomically(thread_state *t, uint64_t addr, access_op op)
{
    sync_catch_up(t);
    if (op == OP_WRITE)
        ft_release(&t->pub, addr);
    else
        sync_plain_read(t, addr);
}

static inline void check(ft_thread *thread, uint64_t addr, uint64_t size, access_op op, ft_site site)
{
    core_state *core = core_of_thread(thread);
    ft_strided e = {.addr = addr, .size = size, .count = 1};
    if (!is_small(addr, size)) {
        check_any(thread, e, op, site);
        return;
    }
    const bool is_part = quick_is_part(addr, size);
    if (!is_part && check_quickly(state_of(thread), addr, size, op, site)) return;
    access_state a; /* only what settling looks at */
    a.core = core;
    a.t = state_of(thread);
    a.op = op;
    a.epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
    if (is_worth_a_look(core, addr, op) && shadow_settled(&a, addr, size)) return;
    if (is_part && check_quickly(state_of(thread), addr, size, op, site)) return;
    const bool may_be_atomic = size <= 8 && op != OP_CLEAR &&
                               __atomic_load_n(&thread->inside, __ATOMIC_RELAXED) == INSIDE_NOT;
    if (may_be_atomic && sync_is_atomic(core, addr)) {
        access_atomically(state_of(thread), addr, op);
        return;
    }
    check_slow(state_of(thread), e, op, site);
    /* It may have become one meanwhile, and what this has put into the cell would settle later accesses. */
    if (may_be_atomic && sync_is_atomic(core, addr)) {
        check_wipe(state_of(thread), addr, size);
        access_atomically(state_of(thread), addr, op);
    }
}

__attribute__((noinline)) static void check_read(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    check(thread, addr, size, OP_READ, site);
}

__attribute__((noinline)) static void check_write(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    check(thread, addr, size, OP_WRITE, site);
}

void ft_read(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    if (!is_same_epoch(thread, addr, size, OP_READ)) check_read(thread, addr, size, site);
}

void ft_write(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    if (!is_same_epoch(thread, addr, size, OP_WRITE)) check_write(thread, addr, size, site);
}

void ft_read_strided(ft_thread *thread, ft_strided elements, ft_site site)
{
    if (is_concurrent(thread->core)) check_any(thread, elements, OP_READ, site);
}

void ft_write_strided(ft_thread *thread, ft_strided elements, ft_site site)
{
    if (is_concurrent(thread->core)) check_any(thread, elements, OP_WRITE, site);
}

void ft_clear(ft_thread *thread, uint64_t addr, uint64_t size)
{
    const ft_strided range = normalised((ft_strided){.addr = addr, .size = size, .count = 1});
    if (is_concurrent(thread->core))
        check_slow(state_of(thread), range, OP_CLEAR, 0);
    else /* what the cells know is ordered before everything to come; but nothing here is atomic any more */
        sync_forget_range(core_of_thread(thread), range.addr, range.size);
}
