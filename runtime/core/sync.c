/* Synchronisation objects, by address.
 *
 * An object holds the join of all clocks released there. Releases join and never replace: for a lock this is the same
 * (who releases it has acquired it), and for an atomic it must be so, since a store and its release are two steps and
 * another thread's may come between them.
 *
 * Objects are found in a table of chains that only grow, without a lock; the clocks of one are guarded by its own
 * spin lock. While the program has one thread, all this rests: what one thread releases to itself orders nothing. */
#include "runtime/core/private.h"

static sync_object *object_at(core_state *core, uint64_t addr)
{
    sync_object **bucket = &core->objects[hash_address(addr) >> 48];
    sync_object *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE), *fresh = NULL;
    for (;;) {
        for (sync_object *o = first; o; o = o->next)
            if (o->addr == addr) return o; /* a fresh one of ours is left behind unused */
        if (!fresh) {
            fresh = memory_take(core, sizeof *fresh);
            if (!fresh) return NULL;
            fresh->addr = addr;
        }
        fresh->next = first;
        if (__atomic_compare_exchange_n(bucket, &first, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            count(&core->stats.objects);
            return fresh;
        }
    }
}

/* The object, locked; NULL: no memory. */
static sync_object *object_lock_always(ft_thread *thread, uint64_t addr)
{
    core_state *core = core_of_thread(thread);
    sync_object *o = object_at(core, addr);
    if (o) spin_lock(core, &o->lock);
    return o;
}

/* The same, NULL also when there is nothing to order. */
static sync_object *object_lock(ft_thread *thread, uint64_t addr)
{
    return is_concurrent(thread->core) ? object_lock_always(thread, addr) : NULL;
}

static void clock_to_thread(const vector_clock *from, thread_state *t)
{
    for (uint32_t i = 0; i < from->cap; i++)
        if (from->entry[i] > t->clock[i]) t->clock[i] = from->entry[i];
}

static void thread_to_clock(core_state *core, const thread_state *t, vector_clock *to)
{
    uint32_t high = __atomic_load_n(&core->slot_high, __ATOMIC_ACQUIRE);
    if (to->cap < high) {
        uint32_t cap = (high + 15) & ~15u;
        if (cap > FT_SLOTS) cap = FT_SLOTS;
        uint32_t *entry = memory_take(core, cap * sizeof *entry);
        if (entry) {
            if (to->cap) memcpy(entry, to->entry, to->cap * sizeof *entry);
            to->entry = entry;
            to->cap = cap;
        }
    }
    for (uint32_t i = 0; i < to->cap; i++)
        if (t->clock[i] > to->entry[i]) to->entry[i] = t->clock[i];
}

static void clock_clear(vector_clock *clock)
{
    if (clock->cap) memset(clock->entry, 0, clock->cap * sizeof *clock->entry);
}

void ft_acquire(ft_thread *thread, uint64_t object)
{
    sync_object *o = object_lock(thread, object);
    if (!o) return;
    clock_to_thread(&o->released[0], state_of(thread));
    spin_unlock(&o->lock);
}

void ft_release(ft_thread *thread, uint64_t object)
{
    sync_object *o = object_lock(thread, object);
    if (!o) return;
    thread_to_clock(core_of_thread(thread), state_of(thread), &o->released[0]);
    spin_unlock(&o->lock);
    thread_tick(state_of(thread));
}

void ft_forget(ft_thread *thread, uint64_t object)
{
    sync_object *o = object_lock(thread, object);
    if (!o) return;
    clock_clear(&o->released[0]);
    clock_clear(&o->released[1]);
    o->writer = 0;
    spin_unlock(&o->lock);
}

/* --- reader-writer locks: readers come after writers, writers after readers and writers --------------------------- */

void ft_lock_read(ft_thread *thread, uint64_t object)
{
    ft_acquire(thread, object);
}

void ft_lock_write(ft_thread *thread, uint64_t object)
{
    sync_object *o = object_lock_always(thread, object);
    if (!o) return;
    clock_to_thread(&o->released[0], state_of(thread));
    clock_to_thread(&o->released[1], state_of(thread));
    o->writer = thread->number + 1;
    spin_unlock(&o->lock);
}

void ft_unlock(ft_thread *thread, uint64_t object)
{
    sync_object *o = object_lock_always(thread, object); /* `writer` must be right at all times */
    if (!o) return;
    bool wrote = o->writer == thread->number + 1;
    if (wrote) o->writer = 0;
    thread_to_clock(core_of_thread(thread), state_of(thread), &o->released[wrote ? 0 : 1]);
    spin_unlock(&o->lock);
    thread_tick(state_of(thread));
}

/* --- barriers --------------------------------------------------------------------------------------------------------
 * Each round has a clock of its own, kept until all who entered it have left: any `count` threads make a round, so the
 * next ones may be complete before a slow thread has left this one. A barrier of unknown count has one round. */

static barrier_round *round_at(core_state *core, sync_object *o, uint32_t number, bool create)
{
    for (barrier_round *r = o->rounds; r; r = r->next)
        if (r->number == number) return r;
    barrier_round *r = create ? o->spare_rounds : NULL;
    if (r)
        o->spare_rounds = r->next;
    else if (create)
        r = memory_take(core, sizeof *r);
    if (!r) return NULL;
    r->number = number;
    r->inside = 0;
    clock_clear(&r->released);
    r->next = o->rounds;
    o->rounds = r;
    return r;
}

static void drop_round(sync_object *o, barrier_round *r)
{
    barrier_round **link = &o->rounds;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    r->next = o->spare_rounds;
    o->spare_rounds = r;
}

void ft_barrier_init(ft_thread *thread, uint64_t object, uint32_t count)
{
    sync_object *o = object_lock_always(thread, object); /* the count is needed when there are more threads */
    if (!o) return;
    o->count = count;
    o->arrived = 0;
    o->round++; /* a barrier that was here before may have been destroyed before all of its threads had left */
    spin_unlock(&o->lock);
}

uint32_t ft_barrier_enter(ft_thread *thread, uint64_t object)
{
    sync_object *o = object_lock(thread, object);
    if (!o) return 0;
    core_state *core = core_of_thread(thread);
    uint32_t number = o->round;
    barrier_round *r = round_at(core, o, number, true);
    if (r) {
        thread_to_clock(core, state_of(thread), &r->released);
        r->inside++;
    }
    if (o->count && ++o->arrived >= o->count) {
        o->arrived = 0;
        o->round++;
    }
    spin_unlock(&o->lock);
    thread_tick(state_of(thread));
    return number;
}

void ft_barrier_leave(ft_thread *thread, uint64_t object, uint32_t round)
{
    sync_object *o = object_lock(thread, object);
    if (!o) return;
    barrier_round *r = round_at(core_of_thread(thread), o, round, false);
    if (r) {
        clock_to_thread(&r->released, state_of(thread));
        if (--r->inside == 0 && round != o->round) drop_round(o, r);
    }
    spin_unlock(&o->lock);
}
