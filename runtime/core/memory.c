/* Memory from the host: spin locks, a bump allocator for what stays, pools for what comes and goes, the limit.
 *
 * Everything is reserved in large pieces that cost nothing until they are touched, and is never given back: whoever
 * looks at a block of a pool without a lock may find another one there, but never nothing. */
#include "runtime/core/private.h"

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

void core_notice(core_state *core, unsigned notice)
{
    static const char *const lines[NOTICES] = {
        [NOTICE_CLOCKS] = "clocks ran out: what was done so far is taken as ordered, its races may be missed",
        [NOTICE_SLOTS] = "too many threads ended unordered: what was done so far is taken as ordered, its races may be "
                         "missed",
        [NOTICE_MEMORY] = "the limit of memory is reached: what was done so far is taken as ordered, its races may be "
                          "missed",
        [NOTICE_NO_SLOT] = "too many threads at once: some of them are not checked",
        [NOTICE_NO_MEMORY] = "there is no more memory: some accesses are not checked",
        [NOTICE_STOPPED] = "there is no memory for synchronisation: nothing is checked any more",
    };
    if (!core->host.notice || __atomic_exchange_n(&core->noticed[notice], 1, __ATOMIC_RELAXED)) return;
    core->host.notice(core->host.context, lines[notice]);
}

void core_stop(core_state *core)
{
    __atomic_store_n(&core->is_stopped, true, __ATOMIC_RELAXED);
    __atomic_store_n(&core->pub.concurrent, 0, __ATOMIC_RELAXED);
    core_notice(core, NOTICE_STOPPED);
}

void *host_reserve(core_state *core, size_t size)
{
    void *p = core->host.reserve(core->host.context, (size + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1));
    if (!p) {
        count(&core->stats.dropped);
        core_notice(core, NOTICE_NO_MEMORY);
    }
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

bool memory_grow(core_state *core, void **data, uint32_t *cap, uint32_t needed, size_t item)
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

bool shadow_charge(thread_state *t, size_t size)
{
    core_state *core = core_of_thread(&t->pub);
    uint64_t limit = core->limits.shadow_bytes;
    uint64_t now = __atomic_add_fetch(&core->shadow_bytes, size, __ATOMIC_RELAXED);
    if (!limit || now <= limit) return true;
    __atomic_sub_fetch(&core->shadow_bytes, size, __ATOMIC_RELAXED);
    t->wants_reset = RESET_MEMORY;
    return false;
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

/* The next number that was never given out. Requires the pool's lock. */
static bool take_fresh(thread_state *t, pool *p, uint32_t *number)
{
    core_state *core = core_of_thread(&t->pub);
    uint32_t chunk = p->fresh >> p->shift;
    if (chunk >= POOL_CHUNKS) {
        t->wants_reset = RESET_MEMORY;
        return false;
    }
    if (!p->chunks[chunk]) {
        char *memory = host_reserve(core, p->block << p->shift);
        if (!memory) return false;
        __atomic_store_n(&p->chunks[chunk], memory, __ATOMIC_RELEASE);
    }
    if (!shadow_charge(t, p->block)) return false;
    *number = p->fresh++;
    return true;
}

static void fill_magazine(thread_state *t, pool *p, magazine *m)
{
    core_state *core = core_of_thread(&t->pub);
    spin_lock(core, &p->lock);
    while (m->count < MAGAZINE / 2) {
        uint32_t number;
        if (p->free) {
            number = p->free - 1;
            p->free = __atomic_load_n((uint32_t *)pool_at(p, number), __ATOMIC_RELAXED);
        } else if (!take_fresh(t, p, &number)) {
            break;
        }
        m->number[m->count++] = number;
    }
    spin_unlock(&p->lock);
}

static void empty_magazine(thread_state *t, pool *p, magazine *m, uint32_t down_to)
{
    spin_lock(core_of_thread(&t->pub), &p->lock);
    while (m->count > down_to) {
        uint32_t number = m->number[--m->count];
        __atomic_store_n((uint32_t *)pool_at(p, number), p->free, __ATOMIC_RELAXED);
        p->free = number + 1;
    }
    spin_unlock(&p->lock);
}

bool pool_take(thread_state *t, unsigned which, uint32_t *number)
{
    magazine *m = &t->magazines[which];
    if (!m->count) fill_magazine(t, &core_of_thread(&t->pub)->pools[which], m);
    if (!m->count) return false;
    *number = m->number[--m->count];
    return true;
}

void pool_give(thread_state *t, unsigned which, uint32_t number)
{
    magazine *m = &t->magazines[which];
    if (m->count == MAGAZINE) empty_magazine(t, &core_of_thread(&t->pub)->pools[which], m, MAGAZINE / 2);
    m->number[m->count++] = number;
}

void pool_return_all(thread_state *t)
{
    for (unsigned i = 0; i < POOLS; i++)
        if (t->magazines[i].count) empty_magazine(t, &core_of_thread(&t->pub)->pools[i], &t->magazines[i], 0);
}

void pool_forget(core_state *core)
{
    for (unsigned i = 0; i < POOLS; i++) {
        pool *p = &core->pools[i];
        p->lock = p->free = p->fresh = 0;
        for (unsigned k = 0; core->host.discard && k < POOL_CHUNKS && p->chunks[k]; k++) {
            size_t size = ((p->block << p->shift) + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1);
            core->host.discard(core->host.context, p->chunks[k], size);
        }
    }
}
