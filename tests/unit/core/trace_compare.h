/* A trace while it runs: its threads, its memory, and how core and oracle are compared after each access (trace.h). */
#ifndef RACE_TEST_TRACE_COMPARE_H
#define RACE_TEST_TRACE_COMPARE_H

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
    EVENT_PUBLISH,
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
    [EVENT_PUBLISH] = {"publication", 10},
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
    unsigned publishes;         /* lock, as long as the oracle says that it does */
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

static inline uint64_t object_address(const trace *t, unsigned object)
{
    /* two of the atomics are in the memory, and go when it is cleared */
    if (object == OBJECT_ATOMIC) return t->base + TRACE_HOT + 8;
    if (object == OBJECT_ATOMIC + 1) return t->base + 5 * TRACE_PAGE;
    return 0x5000 + object * 8;
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
    for (unsigned i = 0; i < t->oracle.threads; i++)
        oracle_begin_anew(&t->oracle, i);
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

static inline void publish(trace *t, unsigned thread)
{
    const unsigned lock = t->threads[thread].publishes;
    ft_publish(t->threads[thread].ft, object_address(t, lock));
    if (was_reset(t)) forget_all(t); /* before it was known */
    oracle_publish(&t->oracle, thread, &t->oracle.object[lock]);
}

/* The elements of an access are made of whole places. */
static inline bool do_access(trace *t, unsigned thread, ft_strided bytes, bool is_write, bool by_free)
{
    static bool touched[ORACLE_PLACES];
    const trace_cuts *cuts = cuts_of_memory();
    const ft_site site = 1 + t->access_count % t->sites;
    t->accesses[t->access_count++] = (trace_access){site, thread, is_write, bytes};
    if (t->oracle.published[thread]) publish(t, thread);
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

#endif
