/* The sync table, and what its rows mean: the calls of two threads around a write and a read order them, or do not. */
#include "tests/unit/report/host.h"

#include "runtime/sync/sync.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unity.h>

static report_test_host host;
static report *rep;
static ft_core *core;
static ft_thread *first, *a, *b;
static sync_thread threads[3];
static sync_engine engine;
enum { X = 0x601000, OBJECT = 0x700000, MUTEX = 0x700100, BLOCK = 0x800000 };

static ft_thread *find_thread(void *context, uint64_t handle)
{
    (void)context;
    return handle == 1 ? a : NULL;
}
static uint64_t races_before;
static unsigned joined, detached;
static void note_joined(void *context, ft_thread *thread)
{
    (void)context;
    joined += thread == a;
}
static void note_detached(void *context, ft_thread *thread)
{
    (void)context;
    detached += thread == a;
}
static uint64_t watched;
static sync_watch watched_kind;
static void note_watch(void *context, uint64_t function, sync_watch kind)
{
    (void)context;
    watched = function;
    watched_kind = kind;
}

void setUp(void)
{
    report_options options;
    options_default(&options);
    rep = report_test_start(&host, &options, NULL);
    core = rep->core;
    first = ft_first_thread(core);
    engine = (sync_engine){.report = rep,
                           .thread_of = find_thread,
                           .joined = note_joined,
                           .detached = note_detached,
                           .watch = note_watch};
    TEST_ASSERT_TRUE(sync_create(&engine));
    a = ft_fork(first, 0);
    sync_created(&engine, first, a);
    b = ft_fork(first, 0);
    sync_created(&engine, first, b);
    threads[0] = (sync_thread){.ft = first};
    threads[1] = (sync_thread){.ft = a};
    threads[2] = (sync_thread){.ft = b};
    joined = detached = 0;
    races_before = 0;
}
void tearDown(void)
{
}

static sync_thread *sync_of(const ft_thread *t)
{
    return t == first ? &threads[0] : t == a ? &threads[1] : &threads[2];
}

static ft_site next_site = 1000;

static sync_call begin(ft_thread *t, const char *name, uint64_t one, uint64_t two, uint64_t three)
{
    sync_call call = {.row = sync_find(name), .args = {one, two, three}, .site = next_site++, .is_checked = true};
    TEST_ASSERT_NOT_NULL_MESSAGE(call.row, name);
    sync_before(&engine, sync_of(t), &call);
    return call;
}

static void end(ft_thread *t, sync_call *c, uint64_t result)
{
    sync_after(&engine, sync_of(t), c, result);
}

static void call(ft_thread *t, const char *name, uint64_t one, uint64_t two, uint64_t three, uint64_t result)
{
    sync_call c = begin(t, name, one, two, three);
    end(t, &c, result);
}

static unsigned races(void)
{
    ft_stats stats;
    ft_statistics(core, &stats);
    unsigned n = (unsigned)(stats.races - races_before);
    races_before = stats.races;
    return n;
}

static void test_the_table_is_sorted_and_every_row_is_found(void)
{
    for (unsigned i = 0; i < sync_table_size; i++) {
        bool in_order = !i || strcmp(sync_table[i - 1].name, sync_table[i].name) < 0;
        TEST_ASSERT_TRUE_MESSAGE(in_order, sync_table[i].name);
        TEST_ASSERT_EQUAL_PTR(&sync_table[i], sync_find(sync_table[i].name));
        TEST_ASSERT_TRUE(sync_table[i].object < SYNC_ARGS || sync_table[i].object == SYNC_NO_ARG);
        TEST_ASSERT_TRUE(sync_table[i].category[0] != 0);
    }
    TEST_ASSERT_NULL(sync_find(""));
    TEST_ASSERT_NULL(sync_find("pthread_mutex_loc"));
    TEST_ASSERT_NULL(sync_find("zzz"));
}

static void test_release_and_acquire_order(void)
{
    static const char *const pairs[][2] = {
        {"pthread_mutex_unlock", "pthread_mutex_lock"},
        {"pthread_mutex_unlock", "pthread_mutex_trylock"},
        {"pthread_mutex_unlock", "pthread_mutex_timedlock"},
        {"pthread_mutex_unlock", "pthread_mutex_clocklock"},
        {"pthread_spin_unlock", "pthread_spin_lock"},
        {"pthread_spin_unlock", "pthread_spin_trylock"},
        {"sem_post", "sem_wait"},
        {"sem_post", "sem_trywait"},
        {"sem_post", "sem_timedwait"},
        {"sem_post", "sem_clockwait"},
    };
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        uint64_t object = OBJECT + i * 64, x = X + i * 8;
        ft_write(a, x, 4, 1);
        call(a, pairs[i][0], object, MUTEX, 0, 0);
        ft_write(a, x + 4, 4, 2);
        call(b, pairs[i][1], object, MUTEX, 0, 0);
        ft_read(b, x, 4, 3);
        TEST_ASSERT_EQUAL_UINT_MESSAGE(0, races(), pairs[i][1]);
        ft_read(b, x + 4, 4, 4);
        TEST_ASSERT_EQUAL_UINT_MESSAGE(1, races(), pairs[i][1]);
    }
}

static void test_what_failed_does_not_order(void)
{
    ft_write(a, X, 4, 1);
    call(a, "pthread_mutex_unlock", OBJECT, 0, 0, 0);
    call(b, "pthread_mutex_trylock", OBJECT, 0, 0, EBUSY);
    call(b, "sem_trywait", OBJECT, 0, 0, (uint64_t)-1);
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, races());
    call(b, "pthread_mutex_lock", OBJECT, 0, 0, EOWNERDEAD);
    ft_write(b, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(0, races(), "the lock of a dead owner is held");
}

static void test_a_wait_gives_the_mutex_away_and_gets_it_back(void)
{
    ft_write(a, X, 4, 1);
    sync_call wait = begin(a, "pthread_cond_wait", OBJECT, MUTEX, 0);
    call(b, "pthread_mutex_lock", MUTEX, 0, 0, 0);
    ft_write(b, X, 4, 2);
    call(b, "pthread_mutex_unlock", MUTEX, 0, 0, 0);
    end(a, &wait, ETIMEDOUT); /* also when it timed out */
    ft_read(a, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

static void test_readers_come_after_writers_and_writers_after_readers(void)
{
    call(a, "pthread_rwlock_wrlock", OBJECT, 0, 0, 0);
    ft_write(a, X, 4, 1);
    call(a, "pthread_rwlock_unlock", OBJECT, 0, 0, 0);
    call(b, "pthread_rwlock_rdlock", OBJECT, 0, 0, 0);
    ft_read(b, X, 4, 2);
    ft_write(b, X + 4, 4, 3);
    call(b, "pthread_rwlock_unlock", OBJECT, 0, 0, 0);
    call(first, "pthread_rwlock_tryrdlock", OBJECT, 0, 0, 0);
    TEST_ASSERT_EQUAL_UINT(0, races());
    ft_read(first, X + 4, 4, 4);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, races(), "readers are not ordered among themselves");
    call(first, "pthread_rwlock_unlock", OBJECT, 0, 0, 0);
    call(a, "pthread_rwlock_trywrlock", OBJECT, 0, 0, 0);
    ft_write(a, X, 4, 5);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

static void test_a_barrier_orders_all_who_enter_before_all_who_leave(void)
{
    call(first, "pthread_barrier_init", OBJECT, 0, 2, 0);
    ft_write(a, X, 4, 1);
    ft_write(b, X + 4, 4, 2);
    sync_call one = begin(a, "pthread_barrier_wait", OBJECT, 0, 0);
    sync_call two = begin(b, "pthread_barrier_wait", OBJECT, 0, 0);
    end(b, &two, (uint64_t)-1); /* PTHREAD_BARRIER_SERIAL_THREAD */
    end(a, &one, 0);
    ft_write(a, X + 4, 4, 3);
    ft_write(b, X, 4, 4);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

static void test_once_orders_after_the_function_it_ran(void)
{
    sync_call one = begin(a, "pthread_once", OBJECT, 0x4000, 0);
    ft_write(a, X, 4, 1);
    TEST_ASSERT_EQUAL_UINT64(0x4000, watched);
    TEST_ASSERT_EQUAL(SYNC_WATCH_ONCE, watched_kind);
    sync_entered(&engine, sync_of(a), 0x4000, SYNC_WATCH_ONCE, 0);
    sync_returned(&engine, sync_of(a), 0x4000, SYNC_WATCH_ONCE, 0);
    call(b, "pthread_once", OBJECT, 0x4000, 0, 0); /* returns before a's call does */
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
    end(a, &one, 0);
}

static void test_a_join_orders_when_it_succeeds(void)
{
    ft_write(a, X, 4, 1);
    ft_end(a);
    call(first, "pthread_tryjoin_np", 1, 0, 0, EBUSY);
    call(first, "pthread_join", 2, 0, 0, 0); /* a thread that nobody knows */
    TEST_ASSERT_EQUAL_UINT(0, joined);
    call(first, "pthread_join", 1, 0, 0, 0);
    TEST_ASSERT_EQUAL_UINT(1, joined);
    ft_write(first, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

static void test_what_is_initialised_again_was_never_released(void)
{
    ft_write(a, X, 4, 1);
    call(a, "pthread_mutex_unlock", OBJECT, 0, 0, 0);
    call(b, "pthread_mutex_init", OBJECT, 0, 0, 0);
    call(b, "pthread_mutex_lock", OBJECT, 0, 0, 0);
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, races());
}

static void test_memory_is_the_programs_between_allocation_and_free(void)
{
    call(a, "malloc", 10, 0, 0, BLOCK);
    TEST_ASSERT_EQUAL_UINT64(10, ft_block_size(core, BLOCK));
    ft_write(a, BLOCK, 10, 1);
    call(b, "free", BLOCK, 0, 0, 0);
    TEST_ASSERT_TRUE(races() > 0);
    call(b, "calloc", 3, 8, 0, BLOCK);
    TEST_ASSERT_EQUAL_UINT64(24, ft_block_size(core, BLOCK));
    ft_write(b, BLOCK, 24, 2);
    call(b, "realloc", BLOCK, 100, 0, 0); /* fails: the block stays */
    TEST_ASSERT_EQUAL_UINT64(24, ft_block_size(core, BLOCK));
    call(b, "realloc", BLOCK, 100, 0, BLOCK + 0x1000);
    TEST_ASSERT_EQUAL_UINT64(0, ft_block_size(core, BLOCK));
    TEST_ASSERT_EQUAL_UINT64(100, ft_block_size(core, BLOCK + 0x1000));
    call(b, "realloc", BLOCK + 0x1000, 0, 0, 0); /* frees */
    TEST_ASSERT_EQUAL_UINT64(0, ft_block_size(core, BLOCK + 0x1000));
    uint64_t where = BLOCK;
    call(a, "posix_memalign", (uint64_t)&where, 64, 40, 0);
    TEST_ASSERT_EQUAL_UINT64(40, ft_block_size(core, BLOCK));
    call(a, "aligned_alloc", 64, 64, 0, BLOCK + 0x2000);
    TEST_ASSERT_EQUAL_UINT64(64, ft_block_size(core, BLOCK + 0x2000));
    call(a, "malloc", 7, 0, 0, 0);
    call(a, "free", 0, 0, 0, 0);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_table_is_sorted_and_every_row_is_found);
    RUN_TEST(test_release_and_acquire_order);
    RUN_TEST(test_what_failed_does_not_order);
    RUN_TEST(test_a_wait_gives_the_mutex_away_and_gets_it_back);
    RUN_TEST(test_readers_come_after_writers_and_writers_after_readers);
    RUN_TEST(test_a_barrier_orders_all_who_enter_before_all_who_leave);
    RUN_TEST(test_once_orders_after_the_function_it_ran);
    RUN_TEST(test_a_join_orders_when_it_succeeds);
    RUN_TEST(test_what_is_initialised_again_was_never_released);
    RUN_TEST(test_memory_is_the_programs_between_allocation_and_free);
    return UNITY_END();
}
