/* The readers of a cell when one epoch cannot name them: read vectors.
 *
 * A vector is a set of epochs with their sites. It does not change once several cells have it, so any number of cells can
 * share it; it counts them. Threads that sweep over an array, each in one epoch, take every
 * cell through the same sets, so each thread remembers the last steps it made in this epoch (a memo), and the cells of the array
 * share a few vectors instead of having one each.
 *
 * The vector of one cell, or of all cells of one access, which nobody else has, is changed in place by who is in it already:
 * only its own entry, so that whatever others know of the vector stays true. What many threads read all the time, while they
 * synchronise often, costs no new vector each time.
 *
 * A thread also remembers of some vectors that its epoch is in them, so that it need not look. This is true as long as
 * no vector is given back: the number of those that were is remembered with it.
 *
 * Leaving out readers that are ordered before the new one is exact: whoever races with them and comes later is not
 * ordered after the new reader either, and races with it. So is keeping them.
 *
 *   31   30  28 27                0
 *   +---+------+------------------+
 *   | 1 | class|      number      |   in a cell's read site; the class says how many fit: 4, 16, 64, 256, 1024
 *   +---+------+------------------+ */
#include "runtime/core/private.h"

enum { NUMBER_BITS = 28, CLASS_MASK = 7 };

static unsigned class_of(ft_site readers)
{
    return readers >> NUMBER_BITS & CLASS_MASK;
}
static uint32_t number_of(ft_site readers)
{
    return readers & ((1u << NUMBER_BITS) - 1);
}
static uint32_t capacity_of(unsigned class)
{
    return VECTOR_SMALLEST << 2 * class;
}
uint32_t readers_block_size(unsigned class)
{
    return (uint32_t)sizeof(read_vector) + capacity_of(class) * (uint32_t)sizeof(uint64_t);
}
static read_vector *vector_at(const core_state *core, ft_site readers)
{
    return pool_at(&core->pools[POOL_READERS + class_of(readers)], number_of(readers));
}

/* May be called without a lock, and then finds anything: the caller looks at the lock afterwards. */
bool readers_have(const core_state *core, ft_site readers, uint32_t epoch)
{
    const read_vector *v = vector_at(core, readers);
    uint32_t n = __atomic_load_n(&v->count, __ATOMIC_ACQUIRE), most = capacity_of(class_of(readers));
    for (uint32_t i = 0; i < n && i < most; i++)
        if ((uint32_t)__atomic_load_n(&v->entry[i], __ATOMIC_ACQUIRE) == epoch) return true;
    return false;
}

void readers_hold(core_state *core, ft_site readers, uint32_t times)
{
    if (readers & WHERE_READERS) __atomic_add_fetch(&vector_at(core, readers)->refs, times, __ATOMIC_RELAXED);
}

void readers_drop(thread_state *t, ft_site readers, uint32_t times)
{
    if (!(readers & WHERE_READERS)) return;
    read_vector *v = vector_at(core_of_thread(&t->pub), readers);
    if (__atomic_sub_fetch(&v->refs, times, __ATOMIC_ACQ_REL)) return;
    __atomic_add_fetch(&t->pub.core->given_back, 1, __ATOMIC_SEQ_CST);
    pool_give(t, POOL_READERS + class_of(readers), number_of(readers));
}

void readers_find_races(access_state *a, ft_site readers, uint64_t addr, uint32_t size)
{
    const read_vector *v = vector_at(a->core, readers);
    uint32_t n = __atomic_load_n(&v->count, __ATOMIC_RELAXED), found = 0;
    for (uint32_t i = 0; i < n && found < RACES_PER_CELL - 1; i++) {
        uint64_t entry = __atomic_load_n(&v->entry[i], __ATOMIC_RELAXED);
        if (is_ordered(a->t, (uint32_t)entry)) continue;
        access_note_race(a, addr, size, (uint32_t)entry, (ft_site)(entry >> 32), false);
        found++;
    }
}

/* --- memos -------------------------------------------------------------------------------------------------------- */

static readers_memo *memo_at(access_state *a, const ft_cell *c)
{
    uint64_t key = ((uint64_t)c->read_site << 32 | c->read) ^ (uint64_t)a->where << 16;
    return &a->t->memos[hash_address(key) >> 40 & (MEMOS - 1)];
}

/* A memo holds its two vectors, so that their numbers mean the same as long as it is there. */
static void memo_clear(thread_state *t, readers_memo *m)
{
    if (!m->result) return;
    readers_drop(t, m->read_site, 1);
    readers_drop(t, m->result, 1);
    m->result = 0;
    t->memos_used &= ~(1u << (m - t->memos));
}

void readers_forget_memos(thread_state *t)
{
    while (t->memos_used)
        memo_clear(t, &t->memos[__builtin_ctz(t->memos_used)]);
}
_Static_assert(MEMOS == 32, "bits of memos_used");

/* --- adding ------------------------------------------------------------------------------------------------------- */

static void replace(access_state *a, ft_cell *c, ft_site readers)
{
    readers_drop(a->t, c->read_site, 1);
    c->read = a->epoch;
    c->read_site = readers;
}

/* Requires that a cell, whose lock is held, has the vector. */
static void learn(access_state *a, ft_site readers)
{
    readers_learn(a->t, readers, a->epoch, __atomic_load_n(&a->core->pub.given_back, __ATOMIC_ACQUIRE));
}

/* The i-th reader of a cell that has read_vector v, or one reader. */
static uint64_t reader_of(const ft_cell *c, const read_vector *v, uint32_t i)
{
    return v ? __atomic_load_n(&v->entry[i], __ATOMIC_RELAXED) : (uint64_t)c->read_site << 32 | c->read;
}

/* The thread's own entry of a vector that only `owners` have becomes a new one. False: it is not so, or there is none. */
static bool renew_entry(thread_state *t, ft_site readers, uint32_t owners, uint32_t epoch, ft_site where)
{
    const core_state *core = core_of_thread(&t->pub);
    if (!(readers & WHERE_READERS)) return false;
    read_vector *v = vector_at(core, readers);
    if (__atomic_load_n(&v->refs, __ATOMIC_ACQUIRE) != owners) return false;
    const uint32_t n = __atomic_load_n(&v->count, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t there = (uint32_t)__atomic_load_n(&v->entry[i], __ATOMIC_RELAXED);
        if (epoch_slot(there) != epoch_slot(epoch) || !is_ordered(t, there)) continue;
        if (there != epoch) __atomic_store_n(&v->entry[i], (uint64_t)where << 32 | epoch, __ATOMIC_RELEASE);
        readers_learn(t, readers, epoch, __atomic_load_n(&core->pub.given_back, __ATOMIC_ACQUIRE));
        return true;
    }
    return false;
}

bool readers_renew(thread_state *t, ft_epochs *cells, uint32_t count, uint32_t epoch, ft_site where)
{
    const ft_sites *sites = sites_of(cells);
    const ft_site readers = __atomic_load_n(&sites[0].read, __ATOMIC_RELAXED);
    for (uint32_t i = 1; i < count; i++)
        if (__atomic_load_n(&sites[i].read, __ATOMIC_RELAXED) != readers) return false;
    if (!renew_entry(t, readers, count, epoch, where)) return false;
    for (uint32_t k = 0; k < count; k++)
        __atomic_store_n(&cells[k].read, epoch, __ATOMIC_RELEASE);
    return true;
}

void readers_add(access_state *a, ft_cell *c)
{
    if (renew_entry(a->t, c->read_site, 1, a->epoch, a->where)) {
        c->read = a->epoch;
        return;
    }
    readers_memo *memo = memo_at(a, c);
    if (memo->result && memo->read == c->read && memo->read_site == c->read_site && memo->epoch == a->epoch &&
        memo->where == a->where) {
        readers_hold(a->core, memo->result, 1);
        replace(a, c, memo->result);
        learn(a, memo->result);
        return;
    }
    const read_vector *old = c->read_site & WHERE_READERS ? vector_at(a->core, c->read_site) : NULL;
    uint32_t old_count = old ? __atomic_load_n(&old->count, __ATOMIC_RELAXED) : 1, kept = 0;
    for (uint32_t i = 0; i < old_count; i++)
        kept += !is_ordered(a->t, (uint32_t)reader_of(c, old, i));
    if (!kept) {
        replace(a, c, a->where);
        return;
    }
    unsigned class = 0;
    while (kept + 1 > capacity_of(class))
        class ++;
    uint32_t number;
    if (!pool_take(a->t, POOL_READERS + class, &number)) {
        replace(a, c, a->where); /* counted, or followed by a reset */
        return;
    }
    ft_site fresh = WHERE_READERS | class << NUMBER_BITS | number;
    read_vector *v = vector_at(a->core, fresh);
    uint32_t n = 0;
    for (uint32_t i = 0; i < old_count; i++) {
        uint64_t entry = reader_of(c, old, i);
        if (!is_ordered(a->t, (uint32_t)entry)) __atomic_store_n(&v->entry[n++], entry, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&v->entry[n++], (uint64_t)a->where << 32 | a->epoch, __ATOMIC_RELAXED);
    __atomic_store_n(&v->count, n, __ATOMIC_RELEASE);
    __atomic_store_n(&v->refs, 2, __ATOMIC_RELEASE); /* the cell and the memo */
    count_own(&a->t->stats.vectors);
    memo_clear(a->t, memo);
    *memo = (readers_memo){c->read, c->read_site, a->epoch, a->where, fresh};
    a->t->memos_used |= 1u << (memo - a->t->memos);
    readers_hold(a->core, c->read_site, 1);
    replace(a, c, fresh);
    learn(a, fresh);
}

void readers_add_to(thread_state *t, ft_epochs *cell, uint32_t epoch, ft_site where)
{
    access_state a; /* not zeroed: it is large */
    a.core = core_of_thread(&t->pub);
    a.t = t;
    a.epoch = epoch;
    a.where = where;
    ft_cell c = shadow_load(cell);
    if (c.read_site & WHERE_READERS && readers_have(a.core, c.read_site, epoch)) {
        learn(&a, c.read_site);
        return;
    }
    readers_add(&a, &c);
    shadow_store(cell, c);
}
