/* Synchronisation objects, by address.
 *
 * An object holds the join of all clocks released there. Releases join and never replace: for a lock this is the same
 * (who releases it has acquired it), and for an atomic it must be so, since a store and its release are two steps and
 * another thread's may come between them.
 *
 * Objects of one 64-byte line are in one bucket of a table, whose lock guards them. An object is made by its first
 * release, and is no more when its memory is cleared: a program may have an atomic in every block of its heap. While
 * the program has one thread, all this rests: what one thread releases to itself orders nothing. */
#include "runtime/core/private.h"

enum { LINE_BITS = 6 }; /* as in sync_line */

static object_bucket *bucket_of(core_state *core, uint64_t addr)
{
    return &core->objects[hash_address(addr >> LINE_BITS) >> 48];
}

/* Remembers that the line of addr has objects. */
static void mark(core_state *core, uint64_t addr)
{
    region *r = region_make(core, addr);
    if (!r) return;
    uint64_t at = addr & (REGION_SIZE - 1);
    __atomic_fetch_or(&r->pages[at >> PAGE_BITS].objects, sync_line(addr), __ATOMIC_RELEASE);
    __atomic_store_n(&r->chunks[at >> CHUNK_BITS].objects, 1, __ATOMIC_RELEASE);
}

/* The same, of locations of atomic instructions. */
static void mark_atomic(core_state *core, uint64_t addr)
{
    region *r = region_make(core, addr);
    if (r) __atomic_fetch_or(&r->pages[(addr & (REGION_SIZE - 1)) >> PAGE_BITS].atomics, sync_line(addr), __ATOMIC_SEQ_CST);
}

/* Requires the bucket's lock. NULL: no memory. */
static sync_object *new_object(core_state *core, object_bucket *bucket, uint64_t addr)
{
    spin_lock(core, &core->free_objects_lock);
    sync_object *o = core->free_objects;
    if (o) core->free_objects = o->next;
    spin_unlock(&core->free_objects_lock);
    if (!o) o = memory_take(core, sizeof *o);
    if (!o) return NULL;
    o->addr = addr;
    o->next = bucket->first;
    bucket->first = o;
    mark(core, addr);
    count(&core->stats.objects);
    return o;
}

static void clear_clock(vector_clock *clock)
{
    if (clock->cap) memset(clock->entry, 0, clock->cap * sizeof *clock->entry);
}

/* Nothing was released there; its place in the table and its clocks' memory stay. */
static void clear_object(sync_object *o)
{
    clear_clock(&o->released[0]);
    clear_clock(&o->released[1]);
    o->writer = o->known_to = 0;
    o->is_atomic = false;
}

/* A thread works on an object between these two. `create`: it is made when it is not there. NULL: it is not. */
static sync_object *begin(ft_thread *thread, uint64_t addr, bool create)
{
    core_state *core = core_of_thread(thread);
    sync_catch_up(state_of(thread));
    thread_enter(state_of(thread));
    object_bucket *bucket = bucket_of(core, addr);
    spin_lock(core, &bucket->lock);
    sync_object *o = bucket->first;
    while (o && o->addr != addr)
        o = o->next;
    if (o || !create) return o;
    o = new_object(core, bucket, addr);
    if (!o) core_stop(core);
    return o;
}

static void end(ft_thread *thread, uint64_t addr, bool tick)
{
    spin_unlock(&bucket_of(core_of_thread(thread), addr)->lock);
    if (tick) thread_tick(state_of(thread));
    thread_leave(state_of(thread));
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

static void clock_to_thread(const vector_clock *from, thread_state *t)
{
    for (uint32_t i = 0; i < from->cap; i++)
        if (from->entry[i] > t->clock[i]) t->clock[i] = from->entry[i];
}

static void grow_clock(core_state *core, vector_clock *clock, uint32_t needed)
{
    uint32_t cap = clock->cap ? clock->cap : 8;
    while (cap < needed)
        cap *= 2;
    uint32_t *entry = memory_take(core, cap * sizeof *entry);
    if (!entry) {
        core_stop(core);
        return;
    }
    if (clock->cap) memcpy(entry, clock->entry, clock->cap * sizeof *entry);
    clock->entry = entry;
    clock->cap = cap;
}

/* Returns whether the clock had nothing that the thread does not know. */
static bool thread_to_clock(core_state *core, const thread_state *t, vector_clock *to)
{
    uint32_t high = __atomic_load_n(&core->slot_high, __ATOMIC_ACQUIRE);
    if (to->cap < high) grow_clock(core, to, high);
    uint32_t more = 0;
    for (uint32_t i = 0; i < to->cap && i < FT_SLOTS; i++) {
        uint32_t mine = t->clock[i], there = to->entry[i];
        more |= there > mine;
        to->entry[i] = there > mine ? there : mine;
    }
    return !more;
}

static void acquire(sync_object *o, thread_state *t)
{
    if (o->known_to != t->pub.number + 1) clock_to_thread(&o->released[0], t);
}

static void release(core_state *core, sync_object *o, const thread_state *t)
{
    o->known_to = thread_to_clock(core, t, &o->released[0]) ? t->pub.number + 1 : 0;
}

/* --- locks and atomics -------------------------------------------------------------------------------------------- */

void ft_acquire(ft_thread *thread, uint64_t object)
{
    if (!is_concurrent(thread->core)) return;
    sync_object *o = begin(thread, object, false);
    if (o) acquire(o, state_of(thread));
    end(thread, object, false);
}

void ft_release(ft_thread *thread, uint64_t object)
{
    if (!is_concurrent(thread->core)) return;
    sync_object *o = begin(thread, object, true);
    if (o) release(core_of_thread(thread), o, state_of(thread));
    end(thread, object, true);
}

void ft_publish(ft_thread *thread, uint64_t object)
{
    if (!is_concurrent(thread->core)) return;
    ft_release(thread, object); /* what somebody has acquired and accessed since is not settled by an access of before */
    sync_object *o = begin(thread, object, true);
    if (o) release(core_of_thread(thread), o, state_of(thread));
    end(thread, object, false);
}

void ft_forget(ft_thread *thread, uint64_t object)
{
    if (!is_concurrent(thread->core)) return;
    sync_object *o = begin(thread, object, false);
    if (o) clear_object(o);
    end(thread, object, false);
}

void ft_atomic_before(ft_thread *thread, uint64_t object)
{
    if (!is_concurrent(thread->core)) return;
    sync_object *o = begin(thread, object, true);
    bool is_new = o && !o->is_atomic;
    if (o) {
        if (is_new) mark_atomic(core_of_thread(thread), object);
        o->is_atomic = true;
        release(core_of_thread(thread), o, state_of(thread));
    }
    end(thread, object, true);
    /* Nobody who has read it plainly so far may settle later reads by that, since they acquire. And whose check of a read
     * came before this may still read what the instruction will write: such threads are told. */
    if (is_new && !(object >> 47)) check_wipe(state_of(thread), object, 8);
}

void sync_plain_read(thread_state *t, uint64_t addr)
{
    for (uint32_t i = 0; i < t->pending_count; i++)
        if (t->pending[i] == addr) return;
    if (t->pending_count == PENDING) sync_acquire_pending(t);
    t->pending[t->pending_count++] = addr;
}

void sync_tell_readers(access_state *a, const ft_cell *c, uint64_t addr)
{
    if (!c->read && !(c->read_site & WHERE_READERS)) return;
    if (!sync_is_atomic(a->core, addr)) return;
    for (thread_state *t = __atomic_load_n(&a->core->all_threads, __ATOMIC_ACQUIRE); t; t = t->next) {
        /* one that has released something since has made the read before that */
        const uint32_t epoch = __atomic_load_n(&t->pub.epoch, __ATOMIC_RELAXED);
        const bool has_read = c->read_site & WHERE_READERS ? readers_have(a->core, c->read_site, epoch) : c->read == epoch;
        if (t == a->t || !epoch || !has_read) continue;
        spin_lock(a->core, &t->told_lock);
        if (t->told_count < PENDING) {
            t->told[t->told_count] = addr;
            __atomic_store_n(&t->told_count, t->told_count + 1, __ATOMIC_RELEASE);
        }
        spin_unlock(&t->told_lock);
    }
}

void sync_acquire_pending(thread_state *t)
{
    uint64_t all[2 * PENDING];
    uint32_t n = t->pending_count;
    memcpy(all, t->pending, n * sizeof *all);
    t->pending_count = 0;
    if (__atomic_load_n(&t->told_count, __ATOMIC_ACQUIRE)) {
        spin_lock(core_of_thread(&t->pub), &t->told_lock);
        memcpy(all + n, t->told, t->told_count * sizeof *all);
        n += t->told_count;
        __atomic_store_n(&t->told_count, 0, __ATOMIC_RELAXED);
        spin_unlock(&t->told_lock);
    }
    for (uint32_t i = 0; i < n; i++)
        ft_acquire(&t->pub, all[i]);
}

void ft_atomic_after(ft_thread *thread, uint64_t object)
{
    ft_acquire(thread, object);
}

bool sync_is_atomic_object(core_state *core, uint64_t addr)
{
    object_bucket *bucket = bucket_of(core, addr);
    spin_lock(core, &bucket->lock);
    sync_object *o = bucket->first;
    while (o && o->addr != addr)
        o = o->next;
    bool is_atomic = o && o->is_atomic;
    spin_unlock(&bucket->lock);
    return is_atomic;
}

/* Readers come after writers, writers after readers and writers. Who the writer is must be right at all times. */

void ft_lock_read(ft_thread *thread, uint64_t object)
{
    ft_acquire(thread, object);
}

void ft_lock_write(ft_thread *thread, uint64_t object)
{
    sync_object *o = begin(thread, object, true);
    if (o) {
        acquire(o, state_of(thread));
        clock_to_thread(&o->released[1], state_of(thread));
        o->writer = thread->number + 1;
    }
    end(thread, object, false);
}

void ft_unlock(ft_thread *thread, uint64_t object)
{
    sync_object *o = begin(thread, object, is_concurrent(thread->core));
    if (o && o->writer == thread->number + 1) {
        o->writer = 0;
        release(core_of_thread(thread), o, state_of(thread));
    } else if (o) {
        thread_to_clock(core_of_thread(thread), state_of(thread), &o->released[1]);
    }
    end(thread, object, o != NULL);
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
    if (!r && create) core_stop(core);
    if (!r) return NULL;
    r->number = number;
    r->inside = 0;
    clear_clock(&r->released);
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
    sync_object *o = begin(thread, object, true); /* the count is needed when there are more threads */
    if (o) {
        o->count = count;
        o->arrived = 0;
        o->round++; /* a barrier that was here before may have been destroyed before all of its threads had left */
    }
    end(thread, object, false);
}

uint32_t ft_barrier_enter(ft_thread *thread, uint64_t object)
{
    if (!is_concurrent(thread->core)) return 0;
    core_state *core = core_of_thread(thread);
    sync_object *o = begin(thread, object, true);
    uint32_t number = o ? o->round : 0;
    barrier_round *r = o ? round_at(core, o, number, true) : NULL;
    if (r) {
        thread_to_clock(core, state_of(thread), &r->released);
        r->inside++;
    }
    if (o && o->count && ++o->arrived >= o->count) {
        o->arrived = 0;
        o->round++;
    }
    end(thread, object, true);
    return number;
}

void ft_barrier_leave(ft_thread *thread, uint64_t object, uint32_t round)
{
    if (!is_concurrent(thread->core)) return;
    sync_object *o = begin(thread, object, false);
    barrier_round *r = o ? round_at(core_of_thread(thread), o, round, false) : NULL;
    if (r) {
        clock_to_thread(&r->released, state_of(thread));
        if (--r->inside == 0 && round != o->round) drop_round(o, r);
    }
    end(thread, object, false);
}

void ft_barrier_enter_round(ft_thread *thread, uint64_t object, uint32_t round)
{
    if (!is_concurrent(thread->core)) return;
    core_state *core = core_of_thread(thread);
    sync_object *o = begin(thread, object, true);
    barrier_round *r = o ? round_at(core, o, round, true) : NULL;
    if (r) {
        thread_to_clock(core, state_of(thread), &r->released);
        r->inside++;
    }
    end(thread, object, true);
}

void ft_barrier_leave_round(ft_thread *thread, uint64_t object, uint32_t round)
{
    if (!is_concurrent(thread->core)) return;
    sync_object *o = begin(thread, object, false);
    barrier_round *r = o ? round_at(core_of_thread(thread), o, round, false) : NULL;
    if (r) {
        clock_to_thread(&r->released, state_of(thread));
        if (--r->inside == 0) drop_round(o, r);
    }
    end(thread, object, false);
}

/* --- forgetting --------------------------------------------------------------------------------------------------- */

/* Threads may still be on their way out of a barrier whose memory has another use already. */
static bool is_in_use(const sync_object *o)
{
    for (const barrier_round *r = o->rounds; r; r = r->next)
        if (r->inside) return true;
    return false;
}

static void remove_line(core_state *core, block *page, uint64_t line, uint64_t from, uint64_t to)
{
    object_bucket *bucket = bucket_of(core, line);
    bool is_empty = true;
    spin_lock(core, &bucket->lock);
    for (sync_object **link = &bucket->first; *link;) {
        sync_object *o = *link;
        if (o->addr < from || o->addr >= to || is_in_use(o)) {
            is_empty = is_empty && o->addr >> LINE_BITS != line >> LINE_BITS;
            link = &o->next;
            continue;
        }
        *link = o->next;
        clear_object(o);
        while (o->rounds)
            drop_round(o, o->rounds);
        o->count = o->arrived = 0; /* the number of its round goes on: somebody may still ask for an earlier one */
        spin_lock(core, &core->free_objects_lock);
        o->next = core->free_objects;
        core->free_objects = o;
        spin_unlock(&core->free_objects_lock);
    }
    if (is_empty) { /* who makes one has the lock */
        __atomic_fetch_and(&page->objects, ~sync_line(line), __ATOMIC_RELAXED);
        __atomic_fetch_and(&page->atomics, ~sync_line(line), __ATOMIC_RELAXED);
    }
    spin_unlock(&bucket->lock);
}

/* [from, to) of one page. */
static void forget_page(core_state *core, block *page, uint64_t from, uint64_t to)
{
    const uint64_t lines = __atomic_load_n(&page->objects, __ATOMIC_ACQUIRE);
    if (!lines) return;
    for (uint64_t line = from >> LINE_BITS << LINE_BITS; line < to; line += 1 << LINE_BITS)
        if (lines & sync_line(line)) remove_line(core, page, line, from, to);
}

/* [from, to) of one chunk. */
static void forget_chunk(core_state *core, region *r, uint64_t from, uint64_t to)
{
    block *chunk = &r->chunks[(from & (REGION_SIZE - 1)) >> CHUNK_BITS];
    if (!__atomic_load_n(&chunk->objects, __ATOMIC_ACQUIRE)) return;
    if (to - from == CHUNK_SIZE) __atomic_store_n(&chunk->objects, 0, __ATOMIC_RELAXED);
    while (from < to) {
        uint64_t stop = (from | (PAGE_SIZE - 1)) + 1;
        if (stop > to) stop = to;
        forget_page(core, &r->pages[(from & (REGION_SIZE - 1)) >> PAGE_BITS], from, stop);
        from = stop;
    }
}

void sync_forget_range(core_state *core, uint64_t addr, uint64_t size)
{
    uint64_t end_of_range = addr + size;
    while (addr < end_of_range) {
        region *r = region_at(core, addr);
        uint64_t stop = r ? (addr | (CHUNK_SIZE - 1)) + 1 : (addr | (REGION_SIZE - 1)) + 1;
        if (stop > end_of_range) stop = end_of_range;
        if (r) forget_chunk(core, r, addr, stop);
        addr = stop;
    }
}

void sync_reset(core_state *core, bool unlock)
{
    for (uint32_t i = 0; i < OBJECT_BUCKETS; i++) {
        object_bucket *bucket = &core->objects[i];
        if (unlock) bucket->lock = 0;
        for (sync_object *o = bucket->first; o; o = o->next) {
            uint32_t writer = o->writer;
            bool is_atomic = o->is_atomic;
            clear_object(o);
            o->writer = writer;
            o->is_atomic = is_atomic;
            for (barrier_round *r = o->rounds; r; r = r->next)
                clear_clock(&r->released);
            mark(core, o->addr); /* the marks were in the shadow memory that is gone */
            if (is_atomic) mark_atomic(core, o->addr);
        }
    }
}
