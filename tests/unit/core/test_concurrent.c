/* The core under real threads: what is ordered is never reported, and of two racing accesses at least one sees the
 * other, whatever the schedule. Worth running under ThreadSanitizer too. */
#include "tests/unit/core/host.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

enum { THREADS = 4, CELLS = 20000, ROUNDS = 20000, BLOCKS = 3000 };

static test_host host;
static ft_core *core;
static ft_thread *threads[THREADS];
static unsigned char raced[CELLS * 4];
static uint64_t base;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;

static void note_race(void *context, const ft_race *race)
{
    (void)context;
    for (uint32_t i = 0; i < race->size; i++)
        if (race->addr + i - base < sizeof raced) __atomic_store_n(&raced[race->addr + i - base], 1, __ATOMIC_RELAXED);
}

void setUp(void)
{
    static const uint64_t somewhere = 0x7f0000001000;
    base = somewhere;
    ft_host callbacks = test_callbacks(&host);
    callbacks.race = note_race;
    core = test_core_with(&host, &callbacks);
    memset(raced, 0, sizeof raced);
    pthread_barrier_init(&start, NULL, THREADS);
}

void tearDown(void)
{
    pthread_barrier_destroy(&start);
    test_core_free(&host);
}

static void run(void *(*body)(void *))
{
    ft_thread *first = ft_first_thread(core);
    pthread_t real[THREADS];
    ft_write(first, base, CELLS * 4, 1); /* before all of them */
    for (intptr_t i = 0; i < THREADS; i++) {
        threads[i] = ft_fork(first, 0);
        pthread_create(&real[i], NULL, body, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(real[i], NULL);
        ft_end(threads[i]);
        ft_join(first, threads[i]);
    }
    ft_write(first, base, CELLS * 4, 2); /* after all of them */
}

static unsigned count_raced(unsigned from, unsigned to)
{
    unsigned n = 0;
    for (unsigned i = from; i < to; i++)
        n += raced[i];
    return n;
}

/* Bytes: [0, 256) guarded by the mutex, [256, 1024) only read, then 256 of each thread's own. */
static void *ordered_body(void *argument)
{
    unsigned me = (unsigned)(intptr_t)argument;
    ft_thread *t = threads[me];
    uint32_t random = me * 7919 + 1;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        unsigned size = 1u << (random >> 28 & 3), at = random >> 8 & 0xff;
        if (at + size > 256) at = 256 - size;
        ft_read(t, base + 256 + (random >> 16 & 1) * 256 + at, size, 3);
        (random & 0x100000 ? ft_write : ft_read)(t, base + 1024 + me * 256 + at, size, 4);
        if (random >> 24 & 3) continue;
        pthread_mutex_lock(&mutex);
        ft_acquire(t, (uintptr_t)&mutex);
        (random & 0x200000 ? ft_write : ft_read)(t, base + at, size, 5);
        if (!(random >> 10 & 15)) ft_clear(t, base + at, size);
        ft_release(t, (uintptr_t)&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void test_what_is_ordered_is_never_reported(void)
{
    run(ordered_body);
    TEST_ASSERT_EQUAL_UINT(0, count_raced(0, sizeof raced));
}

/* Everybody goes over the same cells at once: one writes them, the others read them. */
static void *readers_and_writer_body(void *argument)
{
    unsigned me = (unsigned)(intptr_t)argument;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < CELLS; i++)
        (me == 0 ? ft_write : ft_read)(threads[me], base + i * 4, 4, 10 + me);
    return NULL;
}

static void test_one_of_a_reader_and_a_writer_sees_the_other(void)
{
    run(readers_and_writer_body);
    TEST_ASSERT_EQUAL_UINT(CELLS * 4, count_raced(0, CELLS * 4));
}

static void *writers_body(void *argument)
{
    unsigned me = (unsigned)(intptr_t)argument;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < CELLS; i++)
        ft_write(threads[me], base + i * 4, 4, 20 + me);
    return NULL;
}

static void test_one_of_two_writers_sees_the_other(void)
{
    run(writers_body);
    TEST_ASSERT_EQUAL_UINT(CELLS * 4, count_raced(0, CELLS * 4));
}

/* The same while the cells are being split: the third byte is written, words and bytes are read. */
static void *splitting_body(void *argument)
{
    unsigned me = (unsigned)(intptr_t)argument;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < CELLS; i++) {
        uint64_t at = base + i * 4;
        switch (me) {
        case 0:
            ft_write(threads[me], at + 2, 1, 30);
            break;
        case 1:
            ft_read(threads[me], at + 1, 2, 31);
            break;
        default:
            ft_read(threads[me], at, 4, 32);
            break;
        }
    }
    return NULL;
}

static void test_splitting_a_cell_loses_no_reader(void)
{
    run(splitting_body);
    for (unsigned i = 0; i < CELLS; i++) {
        TEST_ASSERT_EQUAL_UINT_MESSAGE(1, raced[i * 4 + 2], "the byte that is written races");
        TEST_ASSERT_EQUAL_UINT_MESSAGE(0, raced[i * 4] + raced[i * 4 + 1] + raced[i * 4 + 3],
                                       "the others are only read");
    }
}

/* Two threads meet at each cell and access it at the same moment, as nearly as that can be had. The cells have read
 * vectors already: two other threads have read them. */
static unsigned met;

static void meet(unsigned round)
{
    __atomic_fetch_add(&met, 1, __ATOMIC_SEQ_CST);
    for (unsigned spins = 0; __atomic_load_n(&met, __ATOMIC_SEQ_CST) < 2 * (round + 1); spins++)
        if (spins > 2000) sched_yield();
}

static void *meeting_body(void *argument)
{
    unsigned me = (unsigned)(intptr_t)argument;
    for (unsigned i = 0; me >= 2 && i < CELLS; i++)
        ft_read(threads[me], base + i * 4, 4, 40);
    pthread_barrier_wait(&start);
    for (unsigned i = 0; me < 2 && i < CELLS; i++) {
        meet(i);
        uint64_t at = base + i * 4;
        if (me == 0)
            ft_write(threads[me], at + (i & 1), i & 1 ? 1 : 4, 41); /* every other one splits the cell */
        else
            ft_read(threads[me], at, 4, 42);
    }
    return NULL;
}

static unsigned char seen_both[CELLS * 4];

static void note_meeting(void *context, const ft_race *race)
{
    (void)context;
    if (race->now.site < 41 || race->before.site < 41) return; /* with the two that came before */
    for (uint32_t i = 0; i < race->size; i++)
        __atomic_store_n(&seen_both[race->addr + i - base], 1, __ATOMIC_RELAXED);
}

static void test_two_who_meet_at_a_shared_cell_see_each_other(void)
{
    memset(seen_both, 0, sizeof seen_both);
    met = 0;
    ft_host callbacks = test_callbacks(&host);
    callbacks.race = note_meeting;
    core = test_core_with(&host, &callbacks);
    run(meeting_body);
    for (unsigned i = 0; i < CELLS; i++)
        TEST_ASSERT_EQUAL_UINT(1, seen_both[i * 4 + (i & 1)]);
}

/* The same where one of the two works on a compact block while the other makes it fine, or both do. */
static void *meeting_in_blocks_body(void *argument)
{
    enum { CHUNK = 1 << 16, PAGE = 1 << 12 };
    unsigned me = (unsigned)(intptr_t)argument;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; me < 2 && i < BLOCKS; i++) {
        const uint64_t chunk = base + (uint64_t)i * CHUNK;
        const unsigned mine = (i >> me) & 1, write = me == 0;
        meet(i);
        (write ? ft_write : ft_read)(threads[me], chunk + (mine ? 0 : 5 * PAGE + 20),
                                     mine    ? CHUNK
                                     : i & 4 ? PAGE
                                             : 8,
                                     50 + me);
    }
    return NULL;
}

static unsigned char met_in_block[BLOCKS];

static void note_meeting_in_block(void *context, const ft_race *race)
{
    (void)context;
    for (uint64_t at = race->addr - base; at < race->addr - base + race->size; at++)
        if (at % (1 << 16) == 5 * 4096 + 20) __atomic_store_n(&met_in_block[at >> 16], 1, __ATOMIC_RELAXED);
}

static void test_two_who_meet_at_a_compact_block_see_each_other(void)
{
    memset(met_in_block, 0, sizeof met_in_block);
    met = 0;
    ft_host callbacks = test_callbacks(&host);
    callbacks.race = note_meeting_in_block;
    core = test_core_with(&host, &callbacks);
    base = 0x7f2200000000;
    run(meeting_in_blocks_body);
    for (unsigned i = 0; i < BLOCKS; i++)
        TEST_ASSERT_EQUAL_UINT(1, met_in_block[i]);
}

static bool stop;

/* Signals arrive in the middle of calls, and their handlers check what the thread itself accesses too. */
static __thread ft_thread *current;
static __thread uint64_t own;

static void on_signal(int number)
{
    (void)number;
    if (!current) return;
    static __thread unsigned turn;
    turn++;
    (turn & 1 ? ft_write : ft_read)(current, own + turn % 64, 1 + turn % 9, 70);
    ft_write_strided(current, (ft_strided){own, 1, 8, 16}, 71);
}

static void *interrupted_body(void *argument)
{
    unsigned me = (unsigned)(intptr_t)argument;
    own = base + me * 4096;
    current = threads[me];
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        ft_write(current, own + i % 100, 1 + i % 8, 72);
        if (i % 16 == 0) ft_clear(current, own, 4096);
        if (i % 64) continue;
        pthread_mutex_lock(&mutex);
        ft_acquire(current, (uintptr_t)&mutex);
        ft_write(current, base + THREADS * 4096, 8, 73);
        ft_release(current, (uintptr_t)&mutex);
        pthread_mutex_unlock(&mutex);
    }
    current = NULL;
    return NULL;
}

static void test_signal_handlers_may_check_at_any_time(void)
{
    ft_thread *first = ft_first_thread(core);
    pthread_t real[THREADS];
    stop = false;
    signal(SIGPROF, on_signal);
    for (intptr_t i = 0; i < THREADS; i++) {
        threads[i] = ft_fork(first, 0);
        pthread_create(&real[i], NULL, interrupted_body, (void *)i);
    }
    ft_stats s = {0};
    for (int i = 0; i < 100000 && s.deferred < 20; i++) {
        pthread_kill(real[i % THREADS], SIGPROF);
        if (i % 16 == 0) usleep(100);
        ft_statistics(core, &s);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(real[i], NULL);
    signal(SIGPROF, SIG_DFL);
    TEST_ASSERT_TRUE_MESSAGE(s.deferred >= 20, "no signal came in the middle of a call");
    TEST_ASSERT_EQUAL_UINT(0, count_raced(0, sizeof raced));
}

/* Processes are forked while other threads are inside the core; the child must find nothing locked. */
static void *busy_body(void *argument)
{
    ft_thread *t = argument;
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        ft_write(t, base + i % 5000, 1 + i % 13, 60);
        ft_read(t, base + i % 50 * 4096, 100000, 61);
        ft_allocated(t, base + (1 << 20) + i % 1000 * 64, 64, 62);
        ft_release(t, 0x5000 + i % 100 * 8);
        ft_freed(t, base + (1 << 20) + i % 1000 * 64, 63);
        if (i % 1000 == 0) ft_clear(t, base, 1 << 20);
    }
    return NULL;
}

static int child_process(ft_thread *first)
{
    alarm(20);
    ft_forked_process(first);
    if (core->concurrent) return 1;
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    memset(raced, 0, sizeof raced);
    for (unsigned i = 0; i < 1000; i++) {
        ft_write(a, base + i % 300 * 4, 4, 1);
        ft_release(a, 0x5000 + i % 100 * 8);
        ft_acquire(b, 0x5000 + i % 100 * 8);
        ft_read(b, base + i % 300 * 4, 4, 2);
        ft_release(b, 0x5000 + i % 100 * 8);
        ft_acquire(a, 0x5000 + i % 100 * 8);
        ft_allocated(a, base + (1 << 20) + i * 64, 64, 3);
        ft_freed(a, base + (1 << 20) + i * 64, 4);
    }
    if (memchr(raced, 1, sizeof raced)) return 2;
    ft_write(a, base, 1, 1);
    ft_write(b, base, 1, 2);
    return raced[0] ? 0 : 3;
}

static void test_a_forked_process_finds_nothing_locked(void)
{
    ft_thread *first = ft_first_thread(core);
    pthread_t real[2];
    stop = false;
    for (int i = 0; i < 2; i++) {
        threads[i] = ft_fork(first, 0);
        pthread_create(&real[i], NULL, busy_body, threads[i]);
    }
    for (int i = 0; i < 60; i++) {
        pthread_mutex_lock(&host.lock); /* the host's own locks are the host's to care for */
        pid_t child = fork();
        if (!child) {
            host.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
            _exit(child_process(first));
        }
        pthread_mutex_unlock(&host.lock);
        int status = -1;
        waitpid(child, &status, 0);
        TEST_ASSERT_EQUAL_INT(0, status);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(real[i], NULL);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_what_is_ordered_is_never_reported);
    RUN_TEST(test_one_of_a_reader_and_a_writer_sees_the_other);
    RUN_TEST(test_one_of_two_writers_sees_the_other);
    RUN_TEST(test_splitting_a_cell_loses_no_reader);
    RUN_TEST(test_two_who_meet_at_a_shared_cell_see_each_other);
    RUN_TEST(test_two_who_meet_at_a_compact_block_see_each_other);
    RUN_TEST(test_signal_handlers_may_check_at_any_time);
    RUN_TEST(test_a_forked_process_finds_nothing_locked);
    return UNITY_END();
}
