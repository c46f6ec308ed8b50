/* Threads: vector clocks, slots, fork and join.
 *
 * A slot is a thread's place in every vector clock. The clock of a slot only grows, over all the threads that have it
 * one after another. A slot is given to a new thread only when the last epoch in it is ordered before the creator: so
 * an epoch of an earlier owner, found in a cell, is ordered before the new owner as it must be, and nobody who has not
 * synchronised with the earlier owner can have its clock.
 *
 * A thread whose clock runs out goes on in another slot. When no slot is left, there is a reset (reset.c), after which
 * all slots but those of running threads are fresh. Only when more threads than slots run at once, some have none: they
 * still carry other threads' clocks from lock to lock, so that no false race is reported, but their own accesses are
 * not checked until a slot becomes free; such threads are counted. */
#include "runtime/core/private.h"

enum { RESERVE = 2 }; /* clocks at the end of a slot that are not used: 0 is never, and the last one ends it */
enum { MIN_SHADOW = 1 << 17 };

static void init_pools(core_state *core)
{
    core->pools[POOL_SPLIT].block = sizeof(split_block);
    for (unsigned i = 0; i < READER_CLASSES; i++)
        core->pools[POOL_READERS + i].block = readers_block_size(i);
    for (unsigned i = 0; i < POOLS; i++)
        while (core->pools[i].block << (core->pools[i].shift + 1) <= POOL_CHUNK_BYTES)
            core->pools[i].shift++;
}

ft_core *ft_create(const ft_host *host)
{
    size_t size = (sizeof(core_state) + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1);
    core_state *core = host->reserve(host->context, size);
    if (!core) return NULL;
    core->host = *host;
    core->limits = (ft_limits){.clock = FT_CLOCK_MAX, .slots = FT_SLOTS};
    init_pools(core);
    return &core->pub;
}

void ft_set_limits(ft_core *core, const ft_limits *limits)
{
    ft_limits *l = &core_of(core)->limits;
    if (limits->clock >= 4 && limits->clock < FT_CLOCK_MAX) l->clock = limits->clock;
    if (limits->slots && limits->slots < FT_SLOTS) l->slots = limits->slots;
    if (limits->shadow_bytes) l->shadow_bytes = limits->shadow_bytes < MIN_SHADOW ? MIN_SHADOW : limits->shadow_bytes;
}

static void add_stats(ft_stats *to, const ft_stats *from)
{
    const uint64_t *source = (const uint64_t *)from;
    uint64_t *sum = (uint64_t *)to;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

void ft_statistics(ft_core *core, ft_stats *out)
{
    core_state *c = core_of(core);
    memset(out, 0, sizeof *out);
    add_stats(out, &c->stats);
    for (thread_state *t = __atomic_load_n(&c->all_threads, __ATOMIC_ACQUIRE); t; t = t->next)
        add_stats(out, &t->stats);
    out->shadow_bytes = __atomic_load_n(&c->shadow_bytes, __ATOMIC_RELAXED);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* It has said that it is inside, and has seen a reset: that comes first. */
bool thread_enter_later(thread_state *t)
{
    core_state *core = core_of_thread(&t->pub);
    do {
        __atomic_store_n(&t->pub.inside, INSIDE_NOT, __ATOMIC_RELEASE);
        while (__atomic_load_n(&core->resetting, __ATOMIC_ACQUIRE))
            spin_wait(core);
        __atomic_store_n(&t->pub.inside, INSIDE_CALL, __ATOMIC_RELAXED);
        barrier_light(core);
    } while (__atomic_load_n(&core->resetting, __ATOMIC_ACQUIRE));
    return true;
}

/* A handler may come at any time: what it defers after the last look is done by entering once more. */
void thread_leave_busily(thread_state *t)
{
    if (__atomic_load_n(&t->pub.inside, __ATOMIC_RELAXED) != INSIDE_CALL && !thread_enter(t)) return;
    do {
        check_deferred(t);
        reset_kind wanted = t->wants_reset;
        uint32_t seen = core_of_thread(&t->pub)->resets; /* nobody does one while this thread is inside */
        t->wants_reset = RESET_NONE;
        __atomic_store_n(&t->pub.inside, INSIDE_NOT, __ATOMIC_RELEASE);
        if (wanted) core_reset(t, wanted, seen);
    } while (t->deferred_head != __atomic_load_n(&t->deferred_tail, __ATOMIC_RELAXED) && thread_enter(t));
}

/* --- slots -------------------------------------------------------------------------------------------------------- */

static bool is_usable(const core_state *core, const thread_state *t, uint32_t slot)
{
    const slot_state *s = &core->slots[slot];
    return !s->in_use && s->last + RESERVE < core->limits.clock && s->last <= t->clock[slot];
}

/* Leaves t without one when there is none. Requires core->lock, and t->clock to have what is ordered before it. */
static bool take_slot(core_state *core, thread_state *t)
{
    uint32_t slot = 0;
    while (slot < core->limits.slots && !is_usable(core, t, slot))
        slot++;
    slot_state *s = &core->slots[slot];
    if (slot == core->limits.slots ||
        !memory_grow(core, (void **)&s->owners, &s->owner_cap, s->owner_count + 1, sizeof *s->owners))
        return false;
    uint32_t clock = s->last + 1;
    if (s->owner_count && s->owners[s->owner_count - 1].number != t->pub.number) count(&core->stats.slots_reused);
    s->in_use = true;
    s->owners[s->owner_count++] = (slot_owner){clock, t->pub.number};
    if (slot >= core->slot_high) __atomic_store_n(&core->slot_high, slot + 1, __ATOMIC_RELEASE);
    t->slot = slot;
    t->clock[slot] = clock;
    __atomic_store_n(&t->pub.epoch, epoch_make(slot, clock), __ATOMIC_RELAXED);
    return true;
}

void thread_give_slot(core_state *core, thread_state *t)
{
    if (take_slot(core, t) || t->is_known) return;
    t->is_known = true;
    count(&core->stats.threads_unchecked);
    core_notice(core, NOTICE_NO_SLOT);
}

/* Requires core->lock. */
static void leave_slot(core_state *core, thread_state *t)
{
    if (t->slot == NO_SLOT) return;
    core->slots[t->slot].in_use = false;
    core->slots[t->slot].last = t->clock[t->slot];
    t->slot = NO_SLOT;
    __atomic_store_n(&t->pub.epoch, 0, __ATOMIC_RELAXED);
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

/* Requires that no lock is held. */
void thread_tick(thread_state *t)
{
    core_state *core = core_of_thread(&t->pub);
    check_deferred(t); /* what a signal handler did so far belongs to this epoch */
    if (t->memos_used) readers_forget_memos(t); /* they are of this epoch, and would hold vectors for nothing */
    const bool has_slot = t->slot != NO_SLOT;
    if (has_slot && t->clock[t->slot] + RESERVE < core->limits.clock) {
        __atomic_store_n(&t->pub.epoch, epoch_make(t->slot, ++t->clock[t->slot]), __ATOMIC_RELAXED);
        return;
    }
    spin_lock(core, &core->lock);
    leave_slot(core, t);
    if (take_slot(core, t))
        __atomic_add_fetch(&core->stats.slots_changed, has_slot, __ATOMIC_RELAXED);
    else if (core->running <= core->limits.slots)
        t->wants_reset = has_slot ? RESET_CLOCKS : RESET_SLOTS;
    else
        thread_give_slot(core, t);
    spin_unlock(&core->lock);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

/* When one thread is left and everything any other did is ordered before it, checks may rest until it forks. */
void thread_rest_if_alone(core_state *core, const thread_state *t)
{
    if (core->running != 1) return;
    for (uint32_t slot = 0; slot < core->slot_high; slot++)
        if (slot != t->slot && core->slots[slot].last > t->clock[slot]) return;
    __atomic_store_n(&core->pub.concurrent, 0, __ATOMIC_RELAXED);
}

/* A thread_state with everything but clocks and slot. Requires core->lock. */
static thread_state *new_thread(core_state *core, uint32_t creator, ft_site site)
{
    thread_state *t = core->free_threads;
    if (!memory_grow(core, (void **)&core->infos, &core->info_cap, core->thread_count + 1, sizeof *core->infos))
        return NULL;
    if (t) {
        core->free_threads = t->next_free;
        t->is_free = t->ended = t->is_known = false;
        t->deferred_head = t->deferred_tail = t->pending_count = t->told_count = 0;
    } else {
        t = memory_take(core, sizeof *t);
        if (!t) return NULL;
        t->next = core->all_threads;
        t->pub.core = &core->pub;
        __atomic_store_n(&core->all_threads, t, __ATOMIC_RELEASE);
    }
    t->pub.number = core->thread_count++;
    t->slot = NO_SLOT;
    core->infos[t->pub.number] = (ft_thread_info){.number = t->pub.number, .creator = creator, .site = site, .stack = where_stack(site)};
    core->running++;
    count(&core->stats.threads);
    return t;
}

ft_thread *ft_first_thread(ft_core *core)
{
    core_state *c = core_of(core);
    spin_lock(c, &c->lock);
    thread_state *t = new_thread(c, 0, 0);
    if (t) thread_give_slot(c, t);
    spin_unlock(&c->lock);
    return t ? &t->pub : NULL;
}

/* Requires core->lock. */
static void free_thread(core_state *core, thread_state *t)
{
    if (t->is_free) return;
    t->is_free = true;
    t->next_free = core->free_threads;
    core->free_threads = t;
}

/* The child in *child. False: there is no slot for it, but there will be one after a reset; not so when this is the
 * last try. */
static bool try_fork(core_state *core, thread_state *p, ft_site site, bool is_last, thread_state **child)
{
    bool done = true;
    spin_lock(core, &core->lock);
    thread_state *t = new_thread(core, p->pub.number, site);
    if (t) {
        memcpy(t->clock, p->clock, sizeof t->clock);
        done = take_slot(core, t) || is_last || core->running > core->limits.slots;
        if (done && t->slot == NO_SLOT) thread_give_slot(core, t);
        if (done && !core->is_stopped) __atomic_store_n(&core->pub.concurrent, 1, __ATOMIC_RELAXED);
    }
    if (!done) { /* as if it had never been */
        core->thread_count--;
        __atomic_sub_fetch(&core->stats.threads, 1, __ATOMIC_RELAXED);
        core->running--;
        free_thread(core, t);
        t = NULL;
    }
    spin_unlock(&core->lock);
    *child = t;
    return done;
}

ft_thread *ft_fork(ft_thread *parent, ft_site site)
{
    enum { TRIES = 8 }; /* others may take what a reset has freed */
    core_state *core = core_of_thread(parent);
    thread_state *p = state_of(parent), *t;
    sync_catch_up(p);
    thread_enter(p);
    for (unsigned tries = 1; !try_fork(core, p, site, tries == TRIES, &t); tries++) {
        p->wants_reset = RESET_SLOTS;
        thread_leave(p);
        thread_enter(p);
    }
    if (t) thread_tick(p);
    thread_leave(p);
    return t ? &t->pub : NULL;
}

void thread_end(core_state *core, thread_state *t)
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

void ft_end(ft_thread *thread)
{
    core_state *core = core_of_thread(thread);
    thread_state *t = state_of(thread);
    sync_catch_up(t);
    thread_enter(t);
    readers_forget_memos(t);
    pool_return_all(t);
    spin_lock(core, &core->lock);
    thread_end(core, t);
    spin_unlock(&core->lock);
    thread_leave(t);
}

void ft_join(ft_thread *thread, ft_thread *child)
{
    core_state *core = core_of_thread(thread);
    thread_state *t = state_of(thread), *c = state_of(child);
    thread_enter(t);
    spin_lock(core, &core->lock);
    thread_end(core, c);
    join_clock(core, t, c);
    free_thread(core, c);
    thread_rest_if_alone(core, t);
    spin_unlock(&core->lock);
    thread_leave(t);
}

void ft_fork_undo(ft_thread *parent, ft_thread *child)
{
    ft_join(parent, child); /* nothing happened in its epoch: it is as good as joined */
}

void ft_never_joined(ft_core *core, ft_thread *child)
{
    core_state *c = core_of(core);
    spin_lock(c, &c->lock);
    thread_end(c, state_of(child));
    free_thread(c, state_of(child));
    spin_unlock(&c->lock);
}

bool ft_describe_thread(ft_core *core, uint32_t number, ft_thread_info *out)
{
    core_state *c = core_of(core);
    spin_lock(c, &c->lock);
    bool found = number < c->thread_count;
    if (found) *out = c->infos[number];
    spin_unlock(&c->lock);
    if (found) out->site = where_site(c, out->site);
    return found;
}
