/* The core against the oracle, on random traces of valid programs: threads, locks, reader-writer locks, barriers,
 * atomics, forks, joins, detached threads, accesses of any size and alignment, allocation and free, slots that are
 * used again, clocks that run out.
 *
 * After each access: a byte that has not raced before races for the core if and only if it races for the oracle, and
 * the earlier side that the core names is an access of that kind by that thread to that byte which really is not
 * ordered. RACE_TRACES sets another number of traces, RACE_SEED another first seed. */
#include "tests/unit/core/host.h"
#include "tests/unit/core/oracle.h"

#include <stdio.h>
#include <unity.h>

enum { EVENTS = 400, LOCKS = 3, RWLOCKS = 2, ATOMICS = 2, BARRIER = LOCKS + RWLOCKS + ATOMICS, BLOCK = 24 };
enum { NEVER = -1 };

typedef struct {
    bool alive, ended, joined;
    int reading[RWLOCKS]; /* how often it holds it for reading */
    bool waits;           /* inside the barrier */
    unsigned round;       /* of the oracle's barrier clocks */
    uint32_t core_round;
    ft_thread *ft;
} trace_thread;

typedef struct { /* the access with site number i + 1 */
    unsigned thread, from, to;
    bool is_write;
} trace_access;

typedef struct {
    uint64_t random;
    test_host host;
    ft_core *core;
    oracle oracle;
    trace_thread threads[ORACLE_THREADS];
    unsigned number_of[2 * ORACLE_THREADS]; /* the oracle's number of the core's */
    unsigned max_threads;
    int lock_owner[LOCKS], writer[RWLOCKS];
    unsigned barrier_size, barrier_in, barrier_round, barrier_inside;
    oracle_clock barrier[EVENTS]; /* by round */
    bool raced[ORACLE_BYTES];
    trace_access accesses[EVENTS * 2];
    unsigned access_count;
    bool allocated; /* the block at the end of the memory */
    unsigned block_size;
    uint64_t base; /* address of byte 0 */
    char failure[200];
    uint64_t races_seen, accesses_seen;
} trace;

static trace the_trace;

void setUp(void) {}
void tearDown(void) {}

static uint64_t next_random(trace *t)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return t->random;
}
static unsigned below(trace *t, unsigned limit)
{
    return (unsigned)((next_random(t) >> 20) % limit);
}

static uint64_t object_address(unsigned object)
{
    return 0x5000 + object * 8;
}

/* Compares what both said about [from, to) and marks the bytes that raced. */
static bool compare(trace *t, unsigned thread, unsigned from, unsigned to, const bool *expected)
{
    bool got[ORACLE_BYTES] = {false};
    for (unsigned i = 0; i < t->host.race_count && i < TEST_RACES; i++) {
        const ft_race *r = &t->host.races[i];
        const char *wrong = NULL;
        unsigned first = (unsigned)(r->addr - t->base), end = first + r->size;
        unsigned before = t->number_of[r->before.thread];
        bool fresh = false;
        if (r->size < 1 || r->size > 4 || first < from || end > to) wrong = "bytes that were not accessed";
        if (!wrong && t->number_of[r->now.thread] != thread) wrong = "another thread's access";
        for (unsigned b = first; !wrong && b < end; b++) {
            got[b] = true;
            fresh |= !t->raced[b];
            const oracle_clock *times = r->before.is_write ? &t->oracle.write[b] : &t->oracle.read[b];
            if (!t->raced[b] && (before == thread || before >= t->oracle.threads ||
                                 times->at[before] <= t->oracle.thread[thread].at[before]))
                wrong = "an earlier access that is ordered";
        }
        if (!wrong && fresh) {
            const trace_access *a = &t->accesses[r->before.site - 1];
            if (r->before.site < 1 || r->before.site > t->access_count || a->thread != before ||
                a->is_write != r->before.is_write || a->from > first || a->to < end)
                wrong = "a site that is not the earlier access's";
        }
        if (wrong) {
            snprintf(t->failure, sizeof t->failure, "reported %s (thread %u, bytes %u-%u)", wrong, thread, first, end);
            return false;
        }
    }
    for (unsigned b = from; b < to; b++) {
        if (!t->raced[b] && got[b] != expected[b]) {
            snprintf(t->failure, sizeof t->failure, "byte %u, thread %u: the oracle says %s, the core %s", b, thread,
                     expected[b] ? "race" : "no race", got[b] ? "race" : "no race");
            return false;
        }
        if (got[b] || expected[b]) {
            t->races_seen += !t->raced[b];
            t->raced[b] = true;
        }
    }
    t->host.race_count = 0;
    return true;
}

/* `by_free`: the core is told that the block is freed, which is a write. */
static bool do_access(trace *t, unsigned thread, unsigned from, unsigned to, bool is_write, bool by_free)
{
    bool expected[ORACLE_BYTES] = {false};
    t->accesses[t->access_count++] = (trace_access){thread, from, to, is_write};
    t->accesses_seen++;
    for (unsigned b = from; b < to; b++)
        expected[b] = oracle_access(&t->oracle, thread, b, is_write);
    ft_thread *ft = t->threads[thread].ft;
    if (by_free)
        ft_freed(ft, t->base + from, t->access_count);
    else
        (is_write ? ft_write : ft_read)(ft, t->base + from, to - from, t->access_count);
    return compare(t, thread, from, to, expected);
}

static void do_clear(trace *t, unsigned from, unsigned to)
{
    for (unsigned b = from; b < to; b++) {
        oracle_clear(&t->oracle, b);
        t->raced[b] = false;
    }
}

static void do_fork(trace *t, unsigned parent)
{
    ft_thread *child = ft_fork(t->threads[parent].ft, 0);
    if (below(t, 16) == 0) { /* it could not be created */
        ft_fork_undo(t->threads[parent].ft, child);
        t->oracle.thread[parent].at[parent]++;
        child = ft_fork(t->threads[parent].ft, 0);
    }
    unsigned number = oracle_fork(&t->oracle, parent);
    t->threads[number] = (trace_thread){.alive = true, .ft = child};
    t->number_of[child->number] = number; /* forks that were undone took numbers too */
}

static void do_barrier(trace *t, unsigned thread)
{
    trace_thread *me = &t->threads[thread];
    uint64_t addr = object_address(BARRIER);
    if (!t->barrier_size) {
        if (t->barrier_inside) return; /* somebody has not left the last one yet */
        unsigned able = 0;
        for (unsigned i = 0; i < t->oracle.threads; i++)
            able += t->threads[i].alive;
        if (able < 2) return;
        t->barrier_size = 2 + below(t, able - 1);
        t->barrier_in = 0;
        ft_barrier_init(me->ft, addr, t->barrier_size);
    }
    me->core_round = ft_barrier_enter(me->ft, addr); /* perhaps before all have left the round before */
    oracle_release(&t->oracle, thread, &t->barrier[t->barrier_round]);
    me->waits = true;
    me->round = t->barrier_round;
    t->barrier_inside++;
    if (++t->barrier_in == t->barrier_size) {
        t->barrier_in = 0;
        t->barrier_round++;
    }
}

static void do_leave_barrier(trace *t, unsigned thread)
{
    trace_thread *me = &t->threads[thread];
    if (me->round == t->barrier_round) return; /* not complete: it waits */
    ft_barrier_leave(me->ft, object_address(BARRIER), me->core_round);
    oracle_acquire(&t->oracle, thread, &t->barrier[me->round]);
    me->waits = false;
    t->barrier_inside--;
}

static void do_lock(trace *t, unsigned thread)
{
    unsigned lock = below(t, LOCKS);
    ft_thread *ft = t->threads[thread].ft;
    if (t->lock_owner[lock] == NEVER) {
        t->lock_owner[lock] = (int)thread;
        ft_acquire(ft, object_address(lock));
        oracle_acquire(&t->oracle, thread, &t->oracle.object[lock]);
    } else if (t->lock_owner[lock] == (int)thread) {
        t->lock_owner[lock] = NEVER;
        ft_release(ft, object_address(lock));
        oracle_release(&t->oracle, thread, &t->oracle.object[lock]);
    }
}

static void do_rwlock(trace *t, unsigned thread)
{
    unsigned lock = below(t, RWLOCKS), object = LOCKS + lock;
    trace_thread *me = &t->threads[thread];
    bool any_reader = false;
    for (unsigned i = 0; i < t->oracle.threads; i++)
        any_reader |= t->threads[i].reading[lock] > 0;
    if (t->writer[lock] == (int)thread) {
        t->writer[lock] = NEVER;
        ft_unlock(me->ft, object_address(object));
        oracle_release(&t->oracle, thread, &t->oracle.object[object]);
    } else if (me->reading[lock] && below(t, 2)) {
        me->reading[lock]--;
        ft_unlock(me->ft, object_address(object));
        oracle_release(&t->oracle, thread, &t->oracle.readers[object]);
    } else if (t->writer[lock] == NEVER && !any_reader && below(t, 2)) {
        t->writer[lock] = (int)thread;
        ft_lock_write(me->ft, object_address(object));
        oracle_acquire(&t->oracle, thread, &t->oracle.object[object]);
        oracle_acquire(&t->oracle, thread, &t->oracle.readers[object]);
    } else if (t->writer[lock] == NEVER) {
        me->reading[lock]++;
        ft_lock_read(me->ft, object_address(object));
        oracle_acquire(&t->oracle, thread, &t->oracle.object[object]);
    }
}

static void do_atomic(trace *t, unsigned thread)
{
    unsigned object = LOCKS + RWLOCKS + below(t, ATOMICS), kind = below(t, 3);
    ft_thread *ft = t->threads[thread].ft;
    if (kind != 0) {
        ft_release(ft, object_address(object));
        oracle_release(&t->oracle, thread, &t->oracle.object[object]);
    }
    if (kind != 1) {
        ft_acquire(ft, object_address(object));
        oracle_acquire(&t->oracle, thread, &t->oracle.object[object]);
    }
}

static bool holds_nothing(const trace *t, unsigned thread)
{
    for (unsigned i = 0; i < LOCKS; i++)
        if (t->lock_owner[i] == (int)thread) return false;
    for (unsigned i = 0; i < RWLOCKS; i++)
        if (t->writer[i] == (int)thread || t->threads[thread].reading[i]) return false;
    return true;
}

static bool do_heap(trace *t, unsigned thread)
{
    const unsigned at = ORACLE_BYTES - BLOCK;
    ft_thread *ft = t->threads[thread].ft;
    if (t->allocated) {
        t->allocated = false;
        return do_access(t, thread, at, at + t->block_size, true, true);
    }
    t->allocated = true;
    t->block_size = 1 + below(t, BLOCK);
    ft_allocated(ft, t->base + at, t->block_size, 0);
    do_clear(t, at, at + t->block_size);
    return true;
}

static bool one_event(trace *t)
{
    unsigned thread = below(t, t->oracle.threads);
    trace_thread *me = &t->threads[thread];
    if (!me->alive) return true;
    if (me->waits) {
        do_leave_barrier(t, thread);
        return true;
    }
    unsigned what = below(t, 100);
    if (what < 4 && t->oracle.threads < t->max_threads) {
        do_fork(t, thread);
    } else if (what < 6 && thread && holds_nothing(t, thread) && !t->barrier_size) {
        me->alive = false;
        me->ended = true;
        ft_end(me->ft);
    } else if (what < 12) {
        unsigned other = below(t, t->oracle.threads); /* some are never joined */
        if (other != thread && t->threads[other].ended && !t->threads[other].joined && other % 5) {
            t->threads[other].joined = true;
            ft_join(me->ft, t->threads[other].ft);
            oracle_join(&t->oracle, thread, other);
        }
    } else if (what < 26) {
        do_lock(t, thread);
    } else if (what < 34) {
        do_rwlock(t, thread);
    } else if (what < 38) {
        do_atomic(t, thread);
    } else if (what < 41) {
        do_barrier(t, thread);
    } else if (what < 42) {
        if (!t->barrier_inside) t->barrier_size = 0;
    } else if (what < 46) {
        return do_heap(t, thread);
    } else if (what < 48) {
        unsigned from = below(t, ORACLE_BYTES - BLOCK), to = from + 1 + below(t, ORACLE_BYTES - BLOCK - from);
        if (to - from > 12) to = from + 12;
        ft_clear(me->ft, t->base + from, to - from);
        do_clear(t, from, to);
    } else {
        static const unsigned sizes[] = {1, 1, 2, 3, 4, 4, 4, 8, 8, 16, 32};
        unsigned size = sizes[below(t, sizeof sizes / sizeof *sizes)];
        unsigned area = below(t, 4) ? 16 : ORACLE_BYTES - 32; /* mostly where the others are too */
        unsigned from = below(t, area);
        if (below(t, 2)) from -= from % size;
        return do_access(t, thread, from, from + size, below(t, 3) == 0, false);
    }
    return true;
}

static bool run_trace(trace *t, uint64_t seed)
{
    memset(t, 0, offsetof(trace, races_seen));
    t->random = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 4; i++)
        next_random(t);
    t->core = test_core(&t->host);
    t->max_threads = below(t, 4) ? 2 + below(t, 6) : ORACLE_THREADS;
    /* sometimes across the border of two regions of the directory */
    t->base = below(t, 4) ? 0x10000 : ((uint64_t)7 << FT_REGION_BITS) - ORACLE_BYTES / 2;
    if (below(t, 2)) ft_limit_clock(t->core, 4 + below(t, 30));
    oracle_start(&t->oracle);
    for (int i = 0; i < LOCKS; i++)
        t->lock_owner[i] = NEVER;
    for (int i = 0; i < RWLOCKS; i++)
        t->writer[i] = NEVER;
    t->threads[0] = (trace_thread){.alive = true, .ft = ft_first_thread(t->core)};
    bool good = true;
    for (unsigned i = 0; i < EVENTS && good; i++)
        good = one_event(t);
    ft_stats stats;
    ft_statistics(t->core, &stats);
    if (good && (stats.dropped || stats.threads_unchecked)) {
        snprintf(t->failure, sizeof t->failure, "the core lost something");
        good = false;
    }
    test_core_free(&t->host);
    return good;
}

static void test_core_reports_a_race_if_and_only_if_the_oracle_does(void)
{
    const char *traces = getenv("RACE_TRACES"), *seed = getenv("RACE_SEED");
    uint64_t n = traces ? strtoull(traces, NULL, 0) : 20000, first = seed ? strtoull(seed, NULL, 0) : 1;
    for (uint64_t i = first; i < first + n; i++)
        if (!run_trace(&the_trace, i)) {
            char text[300];
            snprintf(text, sizeof text, "seed %llu: %s", (unsigned long long)i, the_trace.failure);
            TEST_FAIL_MESSAGE(text);
        }
    printf("%llu traces, %llu accesses, %llu bytes raced\n", (unsigned long long)n,
           (unsigned long long)the_trace.accesses_seen, (unsigned long long)the_trace.races_seen);
    TEST_ASSERT_TRUE_MESSAGE(the_trace.races_seen > n, "the traces should race often");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_core_reports_a_race_if_and_only_if_the_oracle_does);
    return UNITY_END();
}
