/* The events of traces (trace.h): each is done by the core and by the oracle, or skipped when it is not possible. */
#ifndef RACE_TEST_TRACE_EVENTS_H
#define RACE_TEST_TRACE_EVENTS_H

#include "tests/unit/core/trace_compare.h"

static inline void do_clear(trace *t, unsigned from, unsigned to)
{
    const trace_cuts *cuts = cuts_of_memory();
    for (unsigned p = from; p < to; p++) {
        oracle_clear(&t->oracle, p);
        t->raced[p] = false;
    }
    for (unsigned o = OBJECT_ATOMIC; o < OBJECT_ATOMIC + 2; o++)
        if (object_address(t, o) - t->base - cuts->at[from] < cuts->at[to] - cuts->at[from])
            t->oracle.object[o] = (oracle_clock){0};
}

static inline bool do_fork(trace *t, unsigned parent, bool fails)
{
    unsigned limit = t->limits.slots ? t->limits.slots : ORACLE_THREADS;
    if (t->oracle.threads >= t->max_threads || t->live >= limit) return false;
    ft_thread *child = ft_fork(t->threads[parent].ft, 0);
    if (fails) {
        ft_fork_undo(t->threads[parent].ft, child);
        oracle_begin_anew(&t->oracle, parent);
        return true;
    }
    unsigned number = oracle_fork(&t->oracle, parent);
    t->threads[number] = (trace_thread){.alive = true, .ft = child};
    t->number_of[child->number] = number;
    t->live++;
    if (t->live > t->totals.most_threads) t->totals.most_threads = t->live;
    return true;
}

static inline bool holds_nothing(const trace *t, unsigned thread)
{
    for (unsigned i = 0; i < TRACE_LOCKS; i++)
        if (t->lock_owner[i] == (int)thread + 1) return false;
    for (unsigned i = 0; i < TRACE_RWLOCKS; i++)
        if (t->writer[i] == (int)thread + 1 || t->threads[thread].reading[i]) return false;
    return true;
}

static inline bool do_end(trace *t, unsigned thread)
{
    if (t->live < 2 || !holds_nothing(t, thread) || t->barrier_size >= t->live) return false;
    t->threads[thread].alive = false;
    t->threads[thread].ended = true;
    t->live--;
    ft_end(t->threads[thread].ft);
    return true;
}

static inline bool do_join(trace *t, unsigned thread, unsigned other, bool never)
{
    other %= t->oracle.threads;
    if (!t->threads[other].ended || t->threads[other].joined) return false;
    t->threads[other].joined = true;
    if (never) {
        ft_never_joined(t->core, t->threads[other].ft);
        return true;
    }
    ft_join(t->threads[thread].ft, t->threads[other].ft);
    oracle_join(&t->oracle, thread, other);
    return true;
}

static inline bool do_lock(trace *t, unsigned thread, unsigned lock, event_kind kind)
{
    lock %= TRACE_LOCKS;
    ft_thread *ft = t->threads[thread].ft;
    if (t->lock_owner[lock] != (kind == EVENT_UNLOCK ? (int)thread + 1 : 0)) return false;
    if (kind == EVENT_FORGET) {
        ft_forget(ft, object_address(t, lock));
        t->oracle.object[lock] = (oracle_clock){0};
    } else if (kind == EVENT_LOCK) {
        t->lock_owner[lock] = (int)thread + 1;
        ft_acquire(ft, object_address(t, lock));
        oracle_acquire(&t->oracle, thread, &t->oracle.object[lock]);
    } else {
        t->lock_owner[lock] = 0;
        ft_release(ft, object_address(t, lock));
        oracle_release(&t->oracle, thread, &t->oracle.object[lock]);
    }
    return true;
}

static inline bool do_publish(trace *t, unsigned thread, unsigned lock)
{
    t->threads[thread].publishes = lock % TRACE_LOCKS;
    publish(t, thread);
    return true;
}

static inline bool do_rwlock(trace *t, unsigned thread, unsigned lock, event_kind kind)
{
    lock %= TRACE_RWLOCKS;
    const unsigned object = OBJECT_RWLOCK + lock;
    const uint64_t addr = object_address(t, object);
    trace_thread *me = &t->threads[thread];
    bool any_reader = false;
    for (unsigned i = 0; i < t->oracle.threads; i++)
        any_reader |= t->threads[i].reading[lock] > 0;
    switch (kind) {
    case EVENT_LOCK_READ:
        if (t->writer[lock]) return false;
        me->reading[lock]++;
        ft_lock_read(me->ft, addr);
        oracle_acquire(&t->oracle, thread, &t->oracle.object[object]);
        return true;
    case EVENT_LOCK_WRITE:
        if (t->writer[lock] || any_reader) return false;
        t->writer[lock] = (int)thread + 1;
        ft_lock_write(me->ft, addr);
        oracle_acquire(&t->oracle, thread, &t->oracle.object[object]);
        oracle_acquire(&t->oracle, thread, &t->oracle.readers[object]);
        return true;
    case EVENT_UNLOCK_READ:
        if (!me->reading[lock]) return false;
        me->reading[lock]--;
        ft_unlock(me->ft, addr);
        oracle_release(&t->oracle, thread, &t->oracle.readers[object]);
        return true;
    default:
        if (t->writer[lock] != (int)thread + 1) return false;
        t->writer[lock] = 0;
        ft_unlock(me->ft, addr);
        oracle_release(&t->oracle, thread, &t->oracle.object[object]);
        return true;
    }
}

static inline bool do_atomic(trace *t, unsigned thread, unsigned which, event_kind kind)
{
    const unsigned object = OBJECT_ATOMIC + which % TRACE_ATOMICS;
    ft_thread *ft = t->threads[thread].ft;
    if (kind != EVENT_LOAD) {
        ft_release(ft, object_address(t, object));
        oracle_release(&t->oracle, thread, &t->oracle.object[object]);
    }
    if (kind != EVENT_STORE) {
        ft_acquire(ft, object_address(t, object));
        oracle_acquire(&t->oracle, thread, &t->oracle.object[object]);
    }
    return true;
}

/* Threads enter a round before all have left the one before. */
static inline bool do_barrier(trace *t, unsigned thread, unsigned size, event_kind kind)
{
    trace_thread *me = &t->threads[thread];
    const uint64_t addr = object_address(t, OBJECT_BARRIER);
    switch (kind) {
    case EVENT_BARRIER_INIT:
        if (t->barrier_inside || t->live < 2) return false;
        t->barrier_size = 2 + size % (t->live - 1);
        t->barrier_in = 0;
        ft_barrier_init(me->ft, addr, t->barrier_size);
        return true;
    case EVENT_BARRIER_ENTER:
        if (!t->barrier_size) return false;
        me->core_round = ft_barrier_enter(me->ft, addr);
        oracle_release(&t->oracle, thread, &t->barrier[t->barrier_round]);
        me->waits = true;
        me->round = t->barrier_round;
        t->barrier_inside++;
        if (++t->barrier_in == t->barrier_size) {
            t->barrier_in = 0;
            t->barrier_round++;
        }
        return true;
    default:
        if (me->round == t->barrier_round) return false; /* not complete: it waits */
        ft_barrier_leave(me->ft, addr, me->core_round);
        oracle_acquire(&t->oracle, thread, &t->barrier[me->round]);
        me->waits = false;
        t->barrier_inside--;
        return true;
    }
}

/* Offset and size of a small piece of memory: mostly where the others are too. */
static inline ft_strided small_piece(const trace_event *e)
{
    static const unsigned sizes[] = {1, 1, 2, 3, 4, 4, 4, 8, 8, 16};
    const unsigned size = sizes[e->d % (sizeof sizes / sizeof *sizes)], where = e->b % 16;
    if (where == 0) {
        static const uint32_t in_page[][2] = {{0, 4}, {4, 3}, {0, 7}};
        return (ft_strided){e->c % TRACE_PAGES * TRACE_PAGE + in_page[e->d % 3][0], in_page[e->d % 3][1], 1, 0};
    }
    const bool border = where < 4;
    const unsigned area = border ? TRACE_BORDER_BYTES : where < 12 ? 16 : TRACE_HOT_BYTES;
    unsigned at = e->c % (area - size + 1);
    if (e->c >> 16 & 1) at -= at % size;
    return (ft_strided){(border ? TRACE_BORDER : TRACE_HOT) + at, size, 1, 0};
}

/* Places [from, to): whole chunks, whole pages, or any. */
static inline void large_piece(const trace_event *e, unsigned *from, unsigned *to)
{
    const trace_cuts *cuts = cuts_of_memory();
    const uint32_t pages = e->d % 4 == 0 ? 16 : 1;
    if (e->d % 4 < 2) {
        uint32_t first = e->b % (TRACE_PAGES / pages), n = 1 + e->c % (TRACE_PAGES / pages - first);
        *from = place_at(first * pages * TRACE_PAGE);
        *to = first + n == TRACE_PAGES / pages ? cuts->count : place_at((first + n) * pages * TRACE_PAGE);
        return;
    }
    *from = e->b % cuts->count;
    *to = *from + 1 + e->c % (cuts->count - *from);
}

static inline ft_strided strided_piece(const trace *t, const trace_event *e)
{
    if (e->b % 3 == 0) { /* something in every page */
        uint32_t first = e->c % TRACE_PAGES, n = 1 + e->d % (TRACE_PAGES - first);
        if (t->limits.shadow_bytes && n > TRACE_LIMITED_PAGES / 2) n = TRACE_LIMITED_PAGES / 2;
        return (ft_strided){first * TRACE_PAGE, e->c >> 16 & 1 ? 4 : 7, n, TRACE_PAGE};
    }
    unsigned size = 1 + e->c % 4, stride = 1 + (e->c >> 8) % 9, at = e->d % 16;
    unsigned most = (TRACE_HOT_BYTES - at - size) / stride;
    return (ft_strided){TRACE_HOT + at, size, 1 + (e->d >> 8) % (most + 1), stride};
}

static inline bool do_allocate(trace *t, unsigned thread, const trace_event *e)
{
    const trace_cuts *cuts = cuts_of_memory();
    unsigned which = e->b % TRACE_BLOCKS, from, to;
    if (t->blocks[which].live) return false;
    if (e->d % 8 == 0 && t->has_ranges) {
        large_piece(&(trace_event){.b = e->b >> 8, .c = e->c, .d = e->d >> 8}, &from, &to);
    } else {
        ft_strided piece = small_piece(e);
        from = place_at((uint32_t)piece.addr);
        to = from + 1 + (e->d >> 8) % 24;
        if (to > cuts->count) to = cuts->count;
    }
    for (unsigned i = 0; i < TRACE_BLOCKS; i++)
        if (t->blocks[i].live && from < t->blocks[i].to && t->blocks[i].from < to) return false;
    t->blocks[which].live = true;
    t->blocks[which].from = from;
    t->blocks[which].to = to;
    ft_allocated(t->threads[thread].ft, t->base + cuts->at[from], cuts->at[to] - cuts->at[from], 0);
    do_clear(t, from, to);
    return true;
}

/* False: it was not possible. A failure of the core is in t->failure. */
static inline bool do_event(trace *t, const trace_event *e)
{
    const trace_cuts *cuts = cuts_of_memory();
    unsigned thread = e->a % t->oracle.threads, from, to;
    trace_thread *me = &t->threads[thread];
    if (!me->alive || me->waits != (e->kind == EVENT_BARRIER_LEAVE)) return false;
    switch (e->kind) {
    case EVENT_FORK:
    case EVENT_FORK_FAILS:
        return do_fork(t, thread, e->kind == EVENT_FORK_FAILS);
    case EVENT_END:
        return do_end(t, thread);
    case EVENT_JOIN:
    case EVENT_NEVER_JOINED:
        return do_join(t, thread, e->b, e->kind == EVENT_NEVER_JOINED);
    case EVENT_LOCK:
    case EVENT_UNLOCK:
    case EVENT_FORGET:
        return do_lock(t, thread, e->b, e->kind);
    case EVENT_PUBLISH:
        return do_publish(t, thread, e->b);
    case EVENT_LOCK_READ:
    case EVENT_LOCK_WRITE:
    case EVENT_UNLOCK_READ:
    case EVENT_UNLOCK_WRITE:
        return do_rwlock(t, thread, e->b, e->kind);
    case EVENT_LOAD:
    case EVENT_STORE:
    case EVENT_EXCHANGE:
        return do_atomic(t, thread, e->b, e->kind);
    case EVENT_BARRIER_INIT:
    case EVENT_BARRIER_ENTER:
    case EVENT_BARRIER_LEAVE:
        return do_barrier(t, thread, e->b, e->kind);
    case EVENT_READ:
    case EVENT_WRITE:
        do_access(t, thread, small_piece(e), e->kind == EVENT_WRITE, false);
        return true;
    case EVENT_READ_RANGE:
    case EVENT_WRITE_RANGE:
        if (!t->has_ranges) return false;
        large_piece(e, &from, &to);
        do_access(t, thread, (ft_strided){cuts->at[from], cuts->at[to] - cuts->at[from], 1, 0},
                  e->kind == EVENT_WRITE_RANGE, false);
        return true;
    case EVENT_READ_STRIDED:
    case EVENT_WRITE_STRIDED:
        do_access(t, thread, strided_piece(t, e), e->kind == EVENT_WRITE_STRIDED, false);
        return true;
    case EVENT_ALLOCATE:
        return do_allocate(t, thread, e);
    case EVENT_FREE:
        if (!t->blocks[e->b % TRACE_BLOCKS].live) return false;
        t->blocks[e->b % TRACE_BLOCKS].live = false;
        from = t->blocks[e->b % TRACE_BLOCKS].from;
        to = t->blocks[e->b % TRACE_BLOCKS].to;
        do_access(t, thread, (ft_strided){cuts->at[from], cuts->at[to] - cuts->at[from], 1, 0}, true, true);
        return true;
    default:
        if (t->has_ranges && e->d % 4 == 0) {
            large_piece(&(trace_event){.b = e->b, .c = e->c, .d = e->d >> 2}, &from, &to);
        } else {
            from = place_at((uint32_t)small_piece(e).addr);
            to = from + 1 + e->c % 9 < cuts->count ? from + 1 + e->c % 9 : cuts->count;
        }
        ft_clear(me->ft, t->base + cuts->at[from], cuts->at[to] - cuts->at[from]);
        do_clear(t, from, to);
        return true;
    }
}

#endif
