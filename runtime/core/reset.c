/* Everything that was done so far is taken as ordered before everything to come: all cells become empty, all clocks
 * begin anew, threads keep their slots. When clocks, slots or the memory that is allowed run out, and in a process that
 * was just forked.
 *
 * A reset waits until no thread is in a call (`inside`), and those that come wait until it is over (`resetting`). The inlined same-epoch path does not ask: what it sees is its own epoch of before,
 * in a cell of before, or nothing. */
#include "runtime/core/private.h"

/* Waits until all threads but `me` are outside, where they stay. Who creates one is inside. */
static void stop_others(core_state *core, const thread_state *me)
{
    __atomic_store_n(&core->resetting, 1, __ATOMIC_RELAXED);
    barrier_heavy(core);
    thread_state *known = NULL, *all;
    while ((all = __atomic_load_n(&core->all_threads, __ATOMIC_ACQUIRE)) != known) {
        for (thread_state *t = all; t != known; t = t->next)
            while (t != me && __atomic_load_n(&t->pub.inside, __ATOMIC_ACQUIRE) != INSIDE_NOT)
                spin_wait(core);
        known = all;
    }
}

static void continue_others(core_state *core)
{
    __atomic_store_n(&core->resetting, 0, __ATOMIC_RELEASE);
}

/* Requires core->lock. Threads with a slot keep it; the others get one if they can. */
static void renew_threads(core_state *core)
{
    core->slot_high = 0;
    for (uint32_t i = 0; i < FT_SLOTS; i++) {
        slot_state *s = &core->slots[i];
        s->last = 0;
        s->owner_count = 0;
        s->in_use = false;
    }
    for (thread_state *t = core->all_threads; t; t = t->next) {
        memset(t->clock, 0, sizeof t->clock);
        memset(t->memos, 0, sizeof t->memos);
        t->memos_used = 0;
        memset(t->magazines, 0, sizeof t->magazines);
        if (t->slot == NO_SLOT) continue;
        slot_state *s = &core->slots[t->slot];
        s->in_use = true;
        s->owners[s->owner_count++] = (slot_owner){1, t->pub.number};
        t->clock[t->slot] = 1;
        __atomic_store_n(&t->pub.epoch, epoch_make(t->slot, 1), __ATOMIC_RELAXED);
        if (t->slot >= core->slot_high) core->slot_high = t->slot + 1;
    }
    for (thread_state *t = core->all_threads; t; t = t->next)
        if (t->slot == NO_SLOT && !t->ended && !t->is_free) thread_give_slot(core, t);
}

static void forget_everything(core_state *core, bool unlock)
{
    shadow_forget(core);
    pool_forget(core);
    __atomic_add_fetch(&core->pub.given_back, 1, __ATOMIC_SEQ_CST); /* who is outside may look at it */
    __atomic_add_fetch(&core->pub.cleared, 1, __ATOMIC_SEQ_CST);
    sync_reset(core, unlock);
    spin_lock(core, &core->lock);
    renew_threads(core);
    spin_unlock(&core->lock);
}

void core_reset(thread_state *t, reset_kind kind, uint32_t seen)
{
    core_state *core = core_of_thread(&t->pub);
    uint64_t *const counters[] = {NULL, &core->stats.resets_clocks, &core->stats.resets_slots,
                                  &core->stats.resets_memory};
    static const unsigned notices[] = {0, NOTICE_CLOCKS, NOTICE_SLOTS, NOTICE_MEMORY};
    spin_lock(core, &core->reset_lock);
    if (core->resets == seen) { /* nobody else was faster */
        thread_enter(t);
        stop_others(core, t);
        forget_everything(core, false);
        count(counters[kind]);
        __atomic_store_n(&core->resets, seen + 1, __ATOMIC_RELEASE);
        continue_others(core);
        __atomic_store_n(&t->pub.inside, INSIDE_NOT, __ATOMIC_RELEASE);
    }
    spin_unlock(&core->reset_lock);
    core_notice(core, notices[kind]);
}

void ft_forked_process(ft_thread *thread)
{
    core_state *core = core_of_thread(thread);
    thread_state *t = state_of(thread);
    /* Threads that were inside are not in this process, and what they had in hand is lost; so nothing of it is kept. */
    core->lock = core->reset_lock = core->resetting = core->memory.lock = core->heap_lock = core->free_objects_lock = 0;
    core->stacks.lock = 0;
    core->memory.at = NULL;
    core->memory.left = 0;
    for (uint32_t i = 0; i < HEAP_BUCKETS; i++)
        core->heap[i].lock = 0;
    for (thread_state *other = core->all_threads; other; other = other->next) {
        other->pub.inside = INSIDE_NOT;
        other->hazard = 0;
        other->wants_reset = RESET_NONE;
        other->told_lock = 0;
        other->deferred_head = other->deferred_tail = 0;
        if (other != t && !other->is_free) thread_end(core, other);
    }
    forget_everything(core, true);
    thread_rest_if_alone(core, t);
}
