/* Threads: vector clocks, slots, fork and join.
 *
 * A slot is a thread's place in every vector clock. The clock of a slot only grows, over all the threads that have it
 * one after another. A slot is given to a new thread only when the last epoch in it is ordered before the creator: so
 * an epoch of an earlier owner, found in a cell, is ordered before the new owner as it must be, and nobody who has not
 * synchronised with the earlier owner can have its clock.
 *
 * A thread whose clock runs out goes on in another slot. When no slot is left, a thread has none: it still carries
 * other threads' clocks from lock to lock, so that no false race is reported, but its own accesses are not checked;
 * such threads are counted. */
#include "runtime/core/private.h"

ft_core *ft_create(const ft_host *host)
{
    size_t size = (sizeof(core_state) + 4095) & ~(size_t)4095;
    core_state *core = host->reserve(host->context, size);
    if (!core) return NULL;
    core->host = *host;
    core->clock_limit = FT_CLOCK_MAX;
    core->splits.block = sizeof(split_block);
    core->vectors.block = sizeof(read_vector);
    core->parts.block = sizeof(vector_part);
    return &core->pub;
}

void ft_statistics(ft_core *core, ft_stats *out)
{
    core_state *c = core_of(core);
    const uint64_t *from = (const uint64_t *)&c->stats;
    uint64_t *to = (uint64_t *)out;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void ft_limit_clock(ft_core *core, uint32_t limit)
{
    core_of(core)->clock_limit = limit;
}

/* An array that doubles; the old one is left behind. False: no memory. Requires core->lock. */
static bool grow(core_state *core, void **data, uint32_t *cap, uint32_t needed, size_t item)
{
    if (needed <= *cap) return true;
    uint32_t larger = *cap ? *cap * 2 : 8;
    void *fresh = memory_take(core, larger * item);
    if (!fresh) return false;
    if (*cap) memcpy(fresh, *data, *cap * item);
    *data = fresh;
    *cap = larger;
    return true;
}

static bool is_usable(const core_state *core, const thread_state *creator, uint32_t slot)
{
    const slot_state *s = &core->slots[slot];
    return !s->in_use && s->last + 1 < core->clock_limit && s->last <= creator->clock[slot];
}

/* Gives t a slot. Requires core->lock, and t->clock to have what is ordered before it. */
static void enter_slot(core_state *core, thread_state *t)
{
    uint32_t slot = 0;
    while (slot < FT_SLOTS && !is_usable(core, t, slot))
        slot++;
    slot_state *s = &core->slots[slot];
    if (slot < FT_SLOTS && grow(core, (void **)&s->owners, &s->owner_cap, s->owner_count + 1, sizeof *s->owners)) {
        uint32_t clock = s->last + 1;
        s->in_use = true;
        s->owners[s->owner_count++] = (slot_owner){clock, t->pub.number};
        if (slot >= core->slot_high) __atomic_store_n(&core->slot_high, slot + 1, __ATOMIC_RELEASE);
        t->slot = slot;
        t->clock[slot] = clock;
        t->pub.epoch = epoch_make(slot, clock);
        return;
    }
    t->slot = NO_SLOT;
    t->pub.epoch = 0;
    if (!t->is_known) core->stats.threads_unchecked++;
    t->is_known = true;
}

/* Requires core->lock. */
static void leave_slot(core_state *core, thread_state *t)
{
    if (t->slot == NO_SLOT) return;
    core->slots[t->slot].in_use = false;
    core->slots[t->slot].last = t->clock[t->slot];
    t->slot = NO_SLOT;
    t->pub.epoch = 0;
}

uint32_t thread_owner(core_state *core, uint32_t epoch)
{
    spin_lock(core, &core->lock);
    const slot_state *s = &core->slots[epoch_slot(epoch)];
    uint32_t number = 0;
    for (uint32_t i = s->owner_count; i-- > 0;)
        if (s->owners[i].first_clock <= epoch_clock(epoch)) {
            number = s->owners[i].number;
            break;
        }
    spin_unlock(&core->lock);
    return number;
}

void thread_tick(thread_state *t)
{
    if (t->slot == NO_SLOT) return;
    core_state *core = core_of_thread(&t->pub);
    if (t->clock[t->slot] + 1 < core->clock_limit) {
        t->pub.epoch = epoch_make(t->slot, ++t->clock[t->slot]);
        return;
    }
    spin_lock(core, &core->lock);
    leave_slot(core, t);
    enter_slot(core, t);
    core->stats.slots_changed++;
    spin_unlock(&core->lock);
}

/* When one thread is left and everything any other did is ordered before it, checks may rest until it forks. Requires
 * core->lock. */
static void rest_if_alone(core_state *core, const thread_state *t)
{
    if (core->running != 1) return;
    for (uint32_t slot = 0; slot < core->slot_high; slot++)
        if (slot != t->slot && core->slots[slot].last > t->clock[slot]) return;
    __atomic_store_n(&core->pub.concurrent, 0, __ATOMIC_RELAXED);
}

/* A thread_state with everything but clocks. Requires core->lock. */
static thread_state *new_thread(core_state *core, uint32_t creator, ft_site site)
{
    thread_state *t = core->free_threads;
    if (!grow(core, (void **)&core->infos, &core->info_cap, core->thread_count + 1, sizeof *core->infos)) return NULL;
    if (t) {
        core->free_threads = t->next_free;
        thread_state old = {.next = t->next, .spare_split = t->spare_split, .spare_vector = t->spare_vector};
        *t = old;
    } else {
        t = memory_take(core, sizeof *t);
        if (!t) return NULL;
        t->next = core->all_threads;
        core->all_threads = t;
    }
    t->pub.number = core->thread_count++;
    t->pub.core = &core->pub;
    t->slot = NO_SLOT;
    core->infos[t->pub.number] = (ft_thread_info){.number = t->pub.number, .creator = creator, .site = site};
    core->running++;
    core->stats.threads++;
    return t;
}

ft_thread *ft_first_thread(ft_core *core)
{
    core_state *c = core_of(core);
    spin_lock(c, &c->lock);
    thread_state *t = new_thread(c, 0, 0);
    if (t) enter_slot(c, t);
    spin_unlock(&c->lock);
    return t ? &t->pub : NULL;
}

ft_thread *ft_fork(ft_thread *parent, ft_site site)
{
    core_state *core = core_of_thread(parent);
    thread_state *p = state_of(parent);
    spin_lock(core, &core->lock);
    thread_state *t = new_thread(core, parent->number, site);
    if (t) {
        memcpy(t->clock, p->clock, sizeof t->clock);
        enter_slot(core, t);
        __atomic_store_n(&core->pub.concurrent, 1, __ATOMIC_RELAXED);
    }
    spin_unlock(&core->lock);
    if (t) thread_tick(p);
    return t ? &t->pub : NULL;
}

/* Requires core->lock. */
static void free_thread(core_state *core, thread_state *t)
{
    t->next_free = core->free_threads;
    core->free_threads = t;
}

/* Requires core->lock. */
static void end_thread(core_state *core, thread_state *t)
{
    if (t->ended) return;
    t->ended = true;
    leave_slot(core, t);
    core->infos[t->pub.number].ended = true;
    core->running--;
}

static void join_clock(core_state *core, thread_state *t, const thread_state *other)
{
    for (uint32_t i = 0; i < core->slot_high; i++)
        if (other->clock[i] > t->clock[i]) t->clock[i] = other->clock[i];
}

void ft_fork_undo(ft_thread *parent, ft_thread *child)
{
    core_state *core = core_of_thread(parent);
    spin_lock(core, &core->lock);
    end_thread(core, state_of(child)); /* nothing happened in its epoch: it is as good as joined */
    join_clock(core, state_of(parent), state_of(child));
    free_thread(core, state_of(child));
    rest_if_alone(core, state_of(parent));
    spin_unlock(&core->lock);
}

void ft_end(ft_thread *thread)
{
    core_state *core = core_of_thread(thread);
    spin_lock(core, &core->lock);
    end_thread(core, state_of(thread));
    spin_unlock(&core->lock);
}

void ft_join(ft_thread *thread, ft_thread *child)
{
    core_state *core = core_of_thread(thread);
    thread_state *t = state_of(thread), *c = state_of(child);
    spin_lock(core, &core->lock);
    end_thread(core, c);
    join_clock(core, t, c);
    free_thread(core, c);
    rest_if_alone(core, t);
    spin_unlock(&core->lock);
}

void ft_forked_process(ft_thread *thread)
{
    core_state *core = core_of_thread(thread);
    thread_state *t = state_of(thread);
    /* Threads that held these are not in this process. Their half-done updates only lack what is ordered now anyway. */
    core->lock = core->memory.lock = core->heap_lock = 0;
    core->splits.lock = core->vectors.lock = core->parts.lock = 0;
    for (uint32_t i = 0; i < OBJECT_BUCKETS; i++)
        for (sync_object *o = core->objects[i]; o; o = o->next)
            o->lock = 0;
    for (uint32_t i = 0; i < HEAP_BUCKETS; i++)
        core->heap[i].lock = 0;
    for (thread_state *other = core->all_threads; other; other = other->next) {
        if (other == t) continue;
        join_clock(core, t, other);
        end_thread(core, other);
    }
    rest_if_alone(core, t);
}

bool ft_describe_thread(ft_core *core, uint32_t number, ft_thread_info *out)
{
    core_state *c = core_of(core);
    spin_lock(c, &c->lock);
    bool found = number < c->thread_count;
    if (found) *out = c->infos[number];
    spin_unlock(&c->lock);
    return found;
}
