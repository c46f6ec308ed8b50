/* Locks of blocks.
 *
 * Most pages are used by one thread for long, and an atomic instruction per access is what it would feel. So a page
 * belongs to the first thread that locks it (`owner`), which says only where it is (`hazard`, by an ordinary store),
 * and then looks whether the page still is its own. Another thread that comes to the page revokes this for good: it
 * takes the page away from the owner, makes sure by a heavy barrier that the owner has seen this or that its hazard can
 * be seen, and waits until it is out. From then on the page is locked by an atomic instruction, like a chunk.
 *
 * An engine's own code may say by INSIDE_QUICK that it is in some page of its thread's, instead of a hazard, and then need
 * not change the page's number: it must only replace epochs and sites, of whole cells or byte cells that have no vector and get none,
 * or of its thread's own entry in a vector that no other cells have.
 *
 * Who has a hazard waits for nobody's, so no two wait for each other. Without a heavy barrier no page has an owner. */
#include "runtime/core/private.h"

#define REVOKING ((thread_state *)1) /* as an owner */

enum { SINGLY = 3 }; /* pages of a chunk that are revoked one by one; then all of them: who comes to some comes to others */

static bool try_lock(block *b)
{
    uint32_t seq = __atomic_load_n(&b->seq, __ATOMIC_RELAXED);
    return !(seq & 1) &&
           __atomic_compare_exchange_n(&b->seq, &seq, seq + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void block_lock(core_state *core, block *b)
{
    for (unsigned tries = 0; !try_lock(b); tries++)
        if (tries < 64)
            __builtin_ia32_pause();
        else
            spin_wait(core);
}

static bool change_owner(block *page, thread_state *from, thread_state *to)
{
    return __atomic_compare_exchange_n(&page->owner, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void revoke(thread_state *t, const block *page, thread_state *owner)
{
    core_state *core = core_of_thread(&t->pub);
    const uint64_t chunk = chunk_id(page);
    block *pages = (block *)(chunk * CHUNK_PAGES * sizeof(block));
    const bool all = __atomic_fetch_add(&pages->revoked, 1, __ATOMIC_RELAXED) >= SINGLY;
    uint32_t mine = 0;
    for (unsigned i = 0; i < CHUNK_PAGES; i++) {
        const bool wanted = all || &pages[i] == page;
        if (wanted && __atomic_load_n(&pages[i].owner, __ATOMIC_RELAXED) == owner &&
            change_owner(&pages[i], owner, REVOKING))
            mine |= 1u << i;
    }
    if (!mine) return;
    barrier_heavy(core);
    while (__atomic_load_n(&owner->hazard, __ATOMIC_ACQUIRE) == chunk ||
           __atomic_load_n(&owner->pub.inside, __ATOMIC_ACQUIRE) == INSIDE_QUICK)
        spin_wait(core);
    for (unsigned i = 0; i < CHUNK_PAGES; i++)
        if (mine >> i & 1) __atomic_store_n(&pages[i].owner, OWNER_SHARED, __ATOMIC_RELEASE);
    count_own(&t->stats.revoked);
}

void page_lock_slowly(thread_state *t, block *page)
{
    core_state *core = core_of_thread(&t->pub);
    for (;;) {
        __atomic_store_n(&t->hazard, 0, __ATOMIC_RELEASE);
        thread_state *owner = __atomic_load_n(&page->owner, __ATOMIC_ACQUIRE);
        if (owner == OWNER_SHARED || !core->host.barrier) {
            block_lock(core, page);
            return;
        }
        if (owner == t || (!owner && change_owner(page, NULL, t))) {
            if (page_lock_own(t, page)) return;
        } else if (owner == REVOKING) {
            spin_wait(core);
        } else if (owner) {
            revoke(t, page, owner);
        }
    }
}

bool page_try_lock(thread_state *t, block *page)
{
    core_state *core = core_of_thread(&t->pub);
    thread_state *owner = __atomic_load_n(&page->owner, __ATOMIC_ACQUIRE);
    if (owner == OWNER_SHARED || !core->host.barrier) return try_lock(page);
    if (owner != t && (owner || !change_owner(page, NULL, t))) return false;
    return page_lock_own(t, page);
}
