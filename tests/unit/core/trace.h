/* Random traces of valid programs, run by the core and by the oracle side by side.
 *
 * A trace is a list of events with operands drawn at random; an event that is not possible when its turn comes (an
 * unlock of what is not held, an access by a thread that waits) is skipped. So any part of a trace is a trace, and a
 * failing one can be made small by leaving events out (trace_shrink).
 *
 * The memory is 48 pages in three chunks. Accesses begin and end at fixed cuts: every byte at two hot places, one of
 * them across a border of pages, and three cuts in every page. What lies between two cuts is one place for the oracle.
 *
 * After each access: a place that has not raced before races for the core, on all of its bytes, if and only if it races
 * for the oracle, and the earlier side that the core names is an access of that kind by that thread to these bytes
 * which really is not ordered. After a reset the oracle forgets all accesses. */
#ifndef RACE_TEST_TRACE_H
#define RACE_TEST_TRACE_H

#include "tests/unit/core/audit.h"
#include "tests/unit/core/host.h"
#include "tests/unit/core/oracle.h"

#include <stdio.h>

enum { TRACE_EVENTS = 400, TRACE_LOCKS = 3, TRACE_RWLOCKS = 2, TRACE_ATOMICS = 4, TRACE_BLOCKS = 4 };
enum { TRACE_PAGE = 4096, TRACE_PAGES = 48, TRACE_HOT = 20 * TRACE_PAGE + 64, TRACE_BORDER = 33 * TRACE_PAGE - 12 };
enum { TRACE_HOT_BYTES = 48, TRACE_BORDER_BYTES = 24 };
enum { TRACE_LIMITED_PAGES = 14 }; /* with a limit of memory: so many have cells, and no access needs half of them */
enum { OBJECT_RWLOCK = TRACE_LOCKS, OBJECT_ATOMIC = OBJECT_RWLOCK + TRACE_RWLOCKS };
enum { OBJECT_BARRIER = OBJECT_ATOMIC + TRACE_ATOMICS };

typedef enum {
    EVENT_FORK,
    EVENT_FORK_FAILS,
    EVENT_END,
    EVENT_JOIN,
    EVENT_NEVER_JOINED,
    EVENT_LOCK,
    EVENT_UNLOCK,
    EVENT_LOCK_READ,
    EVENT_LOCK_WRITE,
    EVENT_UNLOCK_READ,
    EVENT_UNLOCK_WRITE,
    EVENT_LOAD,
    EVENT_STORE,
    EVENT_EXCHANGE,
    EVENT_BARRIER_INIT,
    EVENT_BARRIER_ENTER,
    EVENT_BARRIER_LEAVE,
    EVENT_FORGET,
    EVENT_READ,
    EVENT_WRITE,
    EVENT_READ_RANGE,
    EVENT_WRITE_RANGE,
    EVENT_READ_STRIDED,
    EVENT_WRITE_STRIDED,
    EVENT_ALLOCATE,
    EVENT_FREE,
    EVENT_CLEAR,
    EVENT_KINDS
} event_kind;

static const struct {
    const char *name;
    unsigned weight; /* how often it is drawn */
} event_table[EVENT_KINDS] = {
    [EVENT_FORK] = {"fork", 60},
    [EVENT_FORK_FAILS] = {"fork that fails", 3},
    [EVENT_END] = {"thread end", 35},
    [EVENT_JOIN] = {"join", 60},
    [EVENT_NEVER_JOINED] = {"detach after end", 4},
    [EVENT_LOCK] = {"lock", 80},
    [EVENT_UNLOCK] = {"unlock", 120},
    [EVENT_LOCK_READ] = {"rwlock: lock for reading", 35},
    [EVENT_LOCK_WRITE] = {"rwlock: lock for writing", 30},
    [EVENT_UNLOCK_READ] = {"rwlock: unlock by reader", 60},
    [EVENT_UNLOCK_WRITE] = {"rwlock: unlock by writer", 60},
    [EVENT_LOAD] = {"atomic load", 20},
    [EVENT_STORE] = {"atomic store", 20},
    [EVENT_EXCHANGE] = {"atomic exchange", 20},
    [EVENT_BARRIER_INIT] = {"barrier init", 15},
    [EVENT_BARRIER_ENTER] = {"barrier enter", 40},
    [EVENT_BARRIER_LEAVE] = {"barrier leave", 150},
    [EVENT_FORGET] = {"lock made anew", 5},
    [EVENT_READ] = {"read", 450},
    [EVENT_WRITE] = {"write", 250},
    [EVENT_READ_RANGE] = {"range read", 30},
    [EVENT_WRITE_RANGE] = {"range write", 25},
    [EVENT_READ_STRIDED] = {"strided read", 25},
    [EVENT_WRITE_STRIDED] = {"strided write", 15},
    [EVENT_ALLOCATE] = {"allocation", 40},
    [EVENT_FREE] = {"free", 30},
    [EVENT_CLEAR] = {"clear", 15},
};

typedef struct {
    event_kind kind;
    uint32_t a, b, c, d; /* operands: any numbers */
} trace_event;

typedef struct {
    bool alive, ended, joined;
    int reading[TRACE_RWLOCKS]; /* how often it holds it for reading */
    bool waits;                 /* inside the barrier */
    unsigned round;             /* of the oracle's barrier clocks */
    uint32_t core_round;
    ft_thread *ft;
} trace_thread;

typedef struct {
    ft_site site;
    unsigned thread;
    bool is_write;
    ft_strided bytes; /* ascending; relative to the memory */
} trace_access;

typedef struct { /* kept from trace to trace */
    uint64_t executed[EVENT_KINDS], places, races, most_threads;
    ft_stats core;
} trace_totals;

typedef struct {
    test_host host;
    trace_totals totals;
    /* from here on: one trace */
    uint64_t random;
    unsigned event_count;
    trace_event events[TRACE_EVENTS];
    bool executed[TRACE_EVENTS];
    ft_limits limits;
    unsigned max_threads; /* in all */
    uint64_t base;        /* address of the memory */
    bool has_ranges, has_discard;
    unsigned sites; /* accesses have so many different ones */
    char failure[240];
    /* from here on: one run of it */
    ft_core *core;
    trace_thread threads[ORACLE_THREADS];
    unsigned number_of[TRACE_EVENTS + 2]; /* the oracle's number of the core's */
    unsigned live;
    int lock_owner[TRACE_LOCKS], writer[TRACE_RWLOCKS]; /* thread + 1 */
    unsigned barrier_size, barrier_in, barrier_round, barrier_inside;
    oracle_clock barrier[TRACE_EVENTS]; /* by round */
    bool raced[ORACLE_PLACES];
    trace_access accesses[TRACE_EVENTS];
    unsigned access_count;
    struct {
        bool live;
        unsigned from, to; /* places */
    } blocks[TRACE_BLOCKS];
    uint64_t resets;
    oracle oracle;
} trace;

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct {
    unsigned count; /* of places */
    uint32_t at[ORACLE_PLACES + 1];
} trace_cuts;

static inline const trace_cuts *cuts_of_memory(void)
{
    static trace_cuts cuts;
    if (cuts.count) return &cuts;
    unsigned n = 0;
    for (uint32_t page = 0; page < TRACE_PAGES; page++) {
        static const uint32_t in_page[] = {0, 4, 7};
        for (unsigned i = 0; i < 3; i++) {
            uint32_t at = page * TRACE_PAGE + in_page[i];
            if (at <= TRACE_BORDER || at >= TRACE_BORDER + TRACE_BORDER_BYTES) cuts.at[n++] = at;
        }
        for (uint32_t at = TRACE_HOT; page == 20 && at <= TRACE_HOT + TRACE_HOT_BYTES; at++)
            cuts.at[n++] = at;
        for (uint32_t at = TRACE_BORDER; page == 32 && at <= TRACE_BORDER + TRACE_BORDER_BYTES; at++)
            cuts.at[n++] = at;
    }
    cuts.at[n] = TRACE_PAGES * TRACE_PAGE;
    cuts.count = n;
    return &cuts;
}

/* The place that begins at this offset. */
static inline unsigned place_at(uint32_t offset)
{
    const trace_cuts *cuts = cuts_of_memory();
    unsigned from = 0, to = cuts->count;
    while (to - from > 1) {
        unsigned middle = (from + to) / 2;
        if (cuts->at[middle] <= offset)
            from = middle;
        else
            to = middle;
    }
    return from;
}

static inline bool is_covered(const ft_strided *e, uint64_t from, uint64_t to)
{
    if (from < e->addr) return false;
    uint64_t step = e->count > 1 ? (uint64_t)e->stride : 1, number = e->count > 1 ? (from - e->addr) / step : 0;
    if (e->count > 1 && step <= e->size) return to <= e->addr + (e->count - 1) * step + e->size;
    return number < e->count && to <= e->addr + number * step + e->size;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* Was there a reset since it was last asked? */
static inline bool was_reset(trace *t)
{
    ft_stats now;
    ft_statistics(t->core, &now);
    uint64_t before = t->resets;
    t->resets = now.resets_clocks + now.resets_slots + now.resets_memory;
    return t->resets != before;
}

static inline void forget_all(trace *t)
{
    for (unsigned i = 0; i < ORACLE_PLACES; i++) {
        oracle_clear(&t->oracle, i);
        t->raced[i] = false;
    }
}

static inline bool fail(trace *t, const char *what, unsigned thread, uint64_t from, uint64_t to)
{
    snprintf(t->failure, sizeof t->failure, "%s (thread %u, bytes 0x%llx-0x%llx)", what, thread,
             (unsigned long long)from, (unsigned long long)to);
    return false;
}

/* Was there an access at the earlier side's site, by its thread, of its kind, to this byte? */
static inline bool has_site(const trace *t, const ft_side *side, unsigned thread, uint64_t byte)
{
    for (unsigned i = 0; i < t->access_count; i++) {
        const trace_access *a = &t->accesses[i];
        if (a->site == side->site && a->thread == thread && a->is_write == side->is_write &&
            is_covered(&a->bytes, byte, byte + 1))
            return true;
    }
    return false;
}

/* Is this report of an access to `bytes` right in all it says? */
static inline bool is_right(trace *t, const ft_race *r, unsigned thread, const ft_strided *bytes, bool is_write)
{
    uint64_t from = r->addr - t->base, to = from + r->size;
    unsigned before = t->number_of[r->before.thread];
    if (!r->size || from < bytes->addr || to > bytes->addr + (bytes->count - 1) * (uint64_t)bytes->stride + bytes->size)
        return fail(t, "reported bytes that were not accessed", thread, from, to);
    if (t->number_of[r->now.thread] != thread || r->now.is_write != is_write ||
        r->now.site != t->accesses[t->access_count - 1].site)
        return fail(t, "reported another access than the one made", thread, from, to);
    for (unsigned p = place_at((uint32_t)from); p < cuts_of_memory()->count && cuts_of_memory()->at[p] < to; p++) {
        if (t->raced[p]) continue;
        const oracle_access other = {.thread = (uint16_t)before, .is_write = r->before.is_write};
        if (!oracle_races(&t->oracle, thread, p, is_write, &other))
            return fail(t, "reported an earlier access that is ordered", thread, from, to);
        if (!has_site(t, &r->before, before, cuts_of_memory()->at[p]))
            return fail(t, "reported a site that is not the earlier access's", thread, from, to);
    }
    return true;
}

/* How many bytes from `from` on were reported, up to `to`. */
static inline uint64_t reported_up_to(const trace *t, uint64_t from, uint64_t to)
{
    for (bool more = true; more && from < to;) {
        more = false;
        for (unsigned i = 0; i < t->host.race_count && i < TEST_RACES; i++) {
            uint64_t first = t->host.races[i].addr - t->base, end = first + t->host.races[i].size;
            if (first > from || end <= from) continue;
            from = end;
            more = true;
        }
    }
    return from < to ? from : to;
}

/* The elements of an access are made of whole places. */
static inline bool do_access(trace *t, unsigned thread, ft_strided bytes, bool is_write, bool by_free)
{
    static bool touched[ORACLE_PLACES];
    const trace_cuts *cuts = cuts_of_memory();
    const ft_site site = 1 + t->access_count % t->sites;
    t->accesses[t->access_count++] = (trace_access){site, thread, is_write, bytes};
    memset(touched, 0, sizeof touched);
    for (uint64_t i = 0; i < bytes.count; i++) {
        uint64_t from = bytes.addr + i * (uint64_t)bytes.stride;
        for (unsigned p = place_at((uint32_t)from); p < cuts->count && cuts->at[p] < from + bytes.size; p++)
            touched[p] = true;
    }
    oracle_step(&t->oracle, thread);
    t->host.race_count = 0;
    ft_thread *ft = t->threads[thread].ft;
    ft_strided at = {t->base + bytes.addr, bytes.size, bytes.count, bytes.stride};
    if (by_free) {
        ft_freed(ft, at.addr, site);
    } else if (bytes.count == 1) {
        (is_write ? ft_write : ft_read)(ft, at.addr, at.size, site);
    } else {
        if (t->access_count & 1) { /* the same elements, from the last to the first */
            at.addr += (at.count - 1) * (uint64_t)at.stride;
            at.stride = -at.stride;
        }
        (is_write ? ft_write_strided : ft_read_strided)(ft, at, site);
    }
    for (unsigned i = 0; i < t->host.race_count && i < TEST_RACES; i++)
        if (!is_right(t, &t->host.races[i], thread, &bytes, is_write)) return false;
    const bool reset = was_reset(t); /* in the middle: races that were not told before it are not any more */
    for (unsigned p = 0; p < cuts->count; p++) {
        if (!touched[p]) continue;
        uint64_t got = reported_up_to(t, cuts->at[p], cuts->at[p + 1]);
        bool expected = oracle_races(&t->oracle, thread, p, is_write, NULL);
        t->totals.places++;
        if (!t->raced[p] && !reset && got != cuts->at[p] && got != cuts->at[p + 1])
            return fail(t, "reported a part of what has one history", thread, cuts->at[p], got);
        bool races = got == cuts->at[p + 1];
        if (!t->raced[p] && races && !expected)
            return fail(t, "the core says race, the oracle does not", thread, cuts->at[p], cuts->at[p + 1]);
        if (!t->raced[p] && expected && !races && !reset)
            return fail(t, "the oracle says race, the core does not", thread, cuts->at[p], cuts->at[p + 1]);
        t->totals.races += races && !t->raced[p];
        t->raced[p] |= races || expected;
    }
    if (reset) forget_all(t);
    for (unsigned p = 0; p < cuts->count; p++)
        if (touched[p]) oracle_record(&t->oracle, thread, p, is_write);
    return true;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static inline uint64_t object_address(const trace *t, unsigned object)
{
    /* two of the atomics are in the memory, and go when it is cleared */
    if (object == OBJECT_ATOMIC) return t->base + TRACE_HOT + 8;
    if (object == OBJECT_ATOMIC + 1) return t->base + 5 * TRACE_PAGE;
    return 0x5000 + object * 8;
}

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
        oracle_step(&t->oracle, parent);
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

/* --- traces ------------------------------------------------------------------------------------------------------- */

static inline uint32_t trace_random(trace *t)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (uint32_t)(t->random >> 20);
}

static inline void trace_generate(trace *t, uint64_t seed)
{
    t->random = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 4; i++)
        trace_random(t);
    t->max_threads = trace_random(t) % 4 ? 2 + trace_random(t) % 6 : ORACLE_THREADS;
    t->limits = (ft_limits){0};
    if (trace_random(t) % 2) t->limits.clock = 4 + trace_random(t) % 16;
    if (trace_random(t) % 3 == 0) t->limits.slots = 3 + trace_random(t) % 10;
    t->has_ranges = trace_random(t) % 2;
    if (t->has_ranges && trace_random(t) % 3 == 0) t->limits.shadow_bytes = TRACE_LIMITED_PAGES * TRACE_PAGE * 4;
    t->has_discard = trace_random(t) % 2;
    t->sites = trace_random(t) % 2 ? TRACE_EVENTS : 1 + trace_random(t) % 4;
    /* sometimes across the border of two regions of the directory, with other borders of chunks */
    t->base = trace_random(t) % 4 ? 0x7f0000000000 : ((uint64_t)7 << FT_REGION_BITS) - 24 * TRACE_PAGE;
    unsigned all = 0;
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        all += event_table[i].weight;
    t->event_count = TRACE_EVENTS;
    for (unsigned i = 0; i < TRACE_EVENTS; i++) {
        unsigned kind = 0, at = trace_random(t) % all;
        while (at >= event_table[kind].weight)
            at -= event_table[kind++].weight;
        t->events[i] = (trace_event){kind, trace_random(t), trace_random(t), trace_random(t), trace_random(t)};
    }
}

/* False: core and oracle differ; t->failure says how. */
static inline bool trace_run(trace *t)
{
    memset(&t->core, 0, offsetof(trace, oracle) - offsetof(trace, core));
    memset(t->executed, 0, sizeof t->executed);
    t->failure[0] = 0;
    ft_host callbacks = test_callbacks(&t->host);
    if (!t->has_discard) callbacks.discard = NULL;
    t->core = test_core_with(&t->host, &callbacks);
    ft_set_limits(t->core, &t->limits);
    oracle_start(&t->oracle);
    t->threads[0] = (trace_thread){.alive = true, .ft = ft_first_thread(t->core)};
    t->live = 1;
    for (unsigned i = 0; i < t->event_count && !t->failure[0]; i++) {
        t->executed[i] = do_event(t, &t->events[i]);
        t->totals.executed[t->events[i].kind] += t->executed[i];
        if (was_reset(t)) forget_all(t);
    }
    ft_stats now;
    ft_statistics(t->core, &now);
    if (!t->failure[0] && (now.dropped || now.threads_unchecked)) fail(t, "the core lost something", 0, 0, 0);
    const char *wrong = audit_core(t->core, t->base, TRACE_PAGES * TRACE_PAGE);
    if (!t->failure[0] && wrong) fail(t, wrong, 0, 0, 0);
    const uint64_t *from = (const uint64_t *)&now;
    uint64_t *to = (uint64_t *)&t->totals.core;
    for (size_t i = 0; i < sizeof now / sizeof *from; i++)
        to[i] += from[i];
    test_core_free(&t->host);
    return !t->failure[0];
}

/* Leaves out events as long as the trace still fails. */
static inline void trace_shrink(trace *t)
{
    static trace_event kept[TRACE_EVENTS];
    for (unsigned part = t->event_count / 2; part; part = part == 1 ? 0 : part / 2) {
        for (unsigned at = 0; at + part <= t->event_count;) {
            unsigned count = t->event_count;
            memcpy(kept, t->events, sizeof kept);
            memmove(&t->events[at], &t->events[at + part], (count - at - part) * sizeof *t->events);
            t->event_count = count - part;
            if (!trace_run(t)) continue;
            memcpy(t->events, kept, sizeof kept);
            t->event_count = count;
            at += part;
        }
    }
    trace_run(t);
}

static inline void trace_print(const trace *t)
{
    printf("limits: clock %u, slots %u, memory %llu; at 0x%llx; %s discard\n", t->limits.clock, t->limits.slots,
           (unsigned long long)t->limits.shadow_bytes, (unsigned long long)t->base,
           t->has_discard ? "with" : "without");
    unsigned access = 0;
    for (unsigned i = 0; i < t->event_count; i++) {
        const trace_event *e = &t->events[i];
        if (!t->executed[i]) continue;
        printf("  %-26s %u %u %u %u", event_table[e->kind].name, e->a, e->b, e->c, e->d);
        bool is_access = (e->kind >= EVENT_READ && e->kind <= EVENT_WRITE_STRIDED) || e->kind == EVENT_FREE;
        if (is_access && access < t->access_count) {
            const trace_access *a = &t->accesses[access++];
            printf("   thread %u, 0x%llx+%llu, %llu times every %lld", a->thread, (unsigned long long)a->bytes.addr,
                   (unsigned long long)a->bytes.size, (unsigned long long)a->bytes.count, (long long)a->bytes.stride);
        }
        printf("\n");
    }
    printf("%s\n", t->failure);
}

static inline void trace_print_totals(const trace_totals *all, uint64_t traces)
{
    const struct {
        const char *name;
        uint64_t value;
    } lines[] = {
        {"traces", traces},
        {"places compared", all->places},
        {"first races on a place", all->races},
        {"most threads at once", all->most_threads},
        {"slots reused", all->core.slots_reused},
        {"slots changed (a clock ran out)", all->core.slots_changed},
        {"resets: clocks", all->core.resets_clocks},
        {"resets: slots", all->core.resets_slots},
        {"resets: memory", all->core.resets_memory},
        {"blocks refined", all->core.refined},
        {"blocks made compact", all->core.compacted},
        {"cells split", all->core.splits},
        {"cells merged", all->core.merges},
        {"read vectors", all->core.vectors},
        {"synchronisation objects", all->core.objects},
    };
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        printf("%-34s %14llu\n", event_table[i].name, (unsigned long long)all->executed[i]);
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        printf("%-34s %14llu\n", lines[i].name, (unsigned long long)lines[i].value);
}

#endif
