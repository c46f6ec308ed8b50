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

static void test_what_is_moved_between_channels_keeps_its_order(void)
{
    int ends[2] = {10, 11}, others[2] = {12, 13};
    call(first, "pipe", (uint64_t)ends, 0, 0, 0);
    call(first, "pipe", (uint64_t)others, 0, 0, 0);
    ft_write(a, X, 4, 1);
    call(a, "write", 11, 0, 0, 1);
    call(first, "splice", 10, 0, 13, 1);
    call(b, "read", 12, 0, 0, 1);
    ft_write(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
    ft_write(a, X + 8, 4, 3); /* after its last write */
    call(b, "read", 12, 0, 0, 1);
    ft_write(b, X + 8, 4, 4);
    TEST_ASSERT_EQUAL_UINT(1, races());
}

static void test_an_epoll_of_many_descriptors_knows_them_all(void)
{
    enum { MANY = 100, EPOLL = 20, FROM = 30 };
    call(first, "epoll_create1", 0, 0, 0, EPOLL);
    for (uint64_t i = 0; i < MANY; i++) {
        call(first, "eventfd", 0, 0, 0, FROM + i);
        call(first, "epoll_ctl", EPOLL, EPOLL_CTL_ADD, FROM + i, 0);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        ft_write(a, X + 4 * i, 4, 1);
        call(a, "write", FROM + i, 0, 0, 8);
    }
    call(b, "epoll_wait", EPOLL, 0, 0, 1);
    for (uint64_t i = 0; i < MANY; i++)
        ft_write(b, X + 4 * i, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
    ft_write(a, X + 4096, 4, 3);
    call(b, "epoll_wait", EPOLL, 0, 0, 0); /* nothing is ready */
    ft_write(b, X + 4096, 4, 4);
    TEST_ASSERT_EQUAL_UINT(1, races());
}

static uint8_t watched_of(const char *name, sync_watch *kind)
{
    const sync_call call = {.row = sync_find(name)};
    return sync_watched(&engine, &call, kind);
}

static void test_a_function_that_is_watched_is_one_of_the_arguments(void)
{
    sync_watch kind;
    TEST_ASSERT_EQUAL_UINT(1, watched_of("pthread_once", &kind));
    TEST_ASSERT_EQUAL(SYNC_WATCH_ONCE, kind);
    TEST_ASSERT_EQUAL_UINT(5, watched_of("__kmpc_reduce", &kind));
    TEST_ASSERT_EQUAL(SYNC_WATCH_COMBINE, kind);
    TEST_ASSERT_EQUAL_UINT(SYNC_NO_ARG, watched_of("__kmpc_end_reduce", &kind));
    TEST_ASSERT_FALSE(sync_watches(sync_find("pthread_mutex_lock")));
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

/* --- more than locks ---------------------------------------------------------------------------------------------- */

static void test_a_wait_that_is_cancelled_has_its_mutex_again(void)
{
    sync_call wait = begin(a, "pthread_cond_wait", OBJECT, MUTEX, 0);
    call(b, "pthread_mutex_lock", MUTEX, 0, 0, 0);
    ft_write(b, X, 4, 1);
    call(b, "pthread_mutex_unlock", MUTEX, 0, 0, 0);
    TEST_ASSERT_TRUE(sync_of(a)->waiting);
    sync_settle(sync_of(a)); /* a cleanup handler runs */
    ft_write(a, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
    sync_left(&engine, sync_of(a), &wait);
    TEST_ASSERT_FALSE(sync_of(a)->waiting);
}

static void test_a_mutex_goes_on_when_its_owner_dies(void)
{
    call(a, "pthread_mutex_lock", OBJECT, 0, 0, 0);
    ft_write(a, X, 4, 1);
    sync_ending(&engine, sync_of(a));
    call(b, "pthread_mutex_lock", OBJECT, 0, 0, EOWNERDEAD);
    ft_write(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

static void test_who_is_detached_is_told(void)
{
    call(first, "pthread_detach", 1, 0, 0, EINVAL);
    TEST_ASSERT_EQUAL_UINT(0, detached);
    call(first, "pthread_detach", 1, 0, 0, 0);
    TEST_ASSERT_EQUAL_UINT(1, detached);
    struct {
        int policy[2], flags;
    } attribute = {{0}, 1};
    uint64_t handle = 1;
    call(first, "pthread_create", (uint64_t)&handle, (uint64_t)&attribute, 0, 0);
    TEST_ASSERT_EQUAL_UINT(2, detached);
    attribute.flags = 0;
    call(first, "pthread_create", (uint64_t)&handle, (uint64_t)&attribute, 0, 0);
    TEST_ASSERT_EQUAL_UINT(2, detached);
}

static void test_what_is_written_to_a_descriptor_is_known_to_who_reads_it(void)
{
    static char buffer[16];
    int ends[2] = {5, 6};
    call(first, "pipe", (uint64_t)ends, 0, 0, 0);
    ft_write(a, X, 4, 1);
    call(a, "write", 6, (uint64_t)buffer, 1, 1);
    call(b, "read", 5, (uint64_t)(buffer + 8), 1, 1);
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
    call(a, "eventfd", 0, 0, 0, 7); /* another channel */
    ft_write(a, X + 8, 4, 1);
    call(a, "write", 7, (uint64_t)buffer, 8, 8);
    call(b, "read", 5, (uint64_t)(buffer + 8), 1, 0);
    ft_read(b, X + 8, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, races());

    call(a, "epoll_create1", 0, 0, 0, 9);
    sync_call add = {.row = sync_find("epoll_ctl"), .args = {9, EPOLL_CTL_ADD, 7}};
    sync_before(&engine, sync_of(a), &add);
    ft_write(a, X + 16, 4, 1);
    call(a, "write", 7, (uint64_t)buffer, 8, 8);
    call(b, "epoll_wait", 9, 0, 0, 1);
    ft_read(b, X + 16, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());

    struct pollfd ready = {.fd = 5, .revents = POLLIN};
    ft_write(a, X + 24, 4, 1);
    call(a, "write", 6, (uint64_t)buffer, 1, 1);
    call(b, "poll", (uint64_t)&ready, 1, 0, 1);
    ft_read(b, X + 24, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());

    ft_write(a, X + 32, 4, 1);
    call(a, "close", 6, 0, 0, 0);
    call(b, "read", 5, (uint64_t)(buffer + 8), 1, 0); /* the end of the file */
    ft_read(b, X + 32, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

static void test_a_call_accesses_the_memory_it_is_given(void)
{
    static char text[256] __attribute__((aligned(256))) = "hello", other[256] __attribute__((aligned(256)));
    static const char format[256] __attribute__((aligned(256))) = "x"; /* strings are read in blocks */
    struct iovec parts[2] = {{other, 4}, {other + 8, 4}};
    ft_write(a, (uint64_t)text + 5, 1, 1); /* the zero */
    call(b, "strlen", (uint64_t)text, 0, 0, 5);
    TEST_ASSERT_EQUAL_UINT(1, races());
    ft_write(a, (uint64_t)text + 6, 1, 1);
    call(b, "strlen", (uint64_t)text, 0, 0, 5);
    TEST_ASSERT_EQUAL_UINT(0, races());
    ft_write(a, (uint64_t)other, 1, 1);
    call(b, "memcpy", (uint64_t)other, (uint64_t)text, 1, (uint64_t)other);
    TEST_ASSERT_EQUAL_UINT(1, races());
    ft_write(a, (uint64_t)other + 20, 1, 1);
    call(b, "snprintf", (uint64_t)other + 18, 3, (uint64_t)format, 9); /* two characters and a zero fit */
    TEST_ASSERT_EQUAL_UINT(1, races());
    ft_write(a, (uint64_t)other + 10, 1, 1);
    call(b, "readv", 3, (uint64_t)parts, 2, 6); /* so far as it came */
    TEST_ASSERT_EQUAL_UINT(0, races());
    call(b, "readv", 3, (uint64_t)parts, 2, 7);
    TEST_ASSERT_EQUAL_UINT(1, races());
    sync_call unchecked = {.row = sync_find("memset"), .args = {(uint64_t)other + 40, 0, 4}};
    ft_write(a, (uint64_t)other + 40, 1, 1);
    sync_before(&engine, sync_of(b), &unchecked);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(0, races(), "called by code that is not checked");
}

static void test_signals_come_after_what_sent_them(void)
{
    ft_write(a, X, 4, 1);
    call(a, "pthread_kill", 1, 10, 0, 0);
    sync_signalled(&engine, sync_of(b), 10);
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
    int number = 12;
    ft_write(a, X + 8, 4, 1);
    call(a, "kill", 1, 12, 0, 0);
    call(b, "sigwait", 0, (uint64_t)&number, 0, 0);
    ft_read(b, X + 8, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

/* --- OpenMP ------------------------------------------------------------------------------------------------------- */

enum { BODY = 0x5000, TASK = 0x6000, SHARED = 0x7fff0000 };

static void begin_region(sync_call *region)
{
    *region = begin(first, "GOMP_parallel", BODY, SHARED, 2);
    TEST_ASSERT_EQUAL_UINT64(BODY, watched);
    sync_entered(&engine, sync_of(a), BODY, SYNC_WATCH_REGION, SHARED);
    sync_entered(&engine, sync_of(b), BODY, SYNC_WATCH_REGION, SHARED);
}

static void end_region(sync_call *region)
{
    sync_returned(&engine, sync_of(a), BODY, SYNC_WATCH_REGION, SHARED);
    sync_returned(&engine, sync_of(b), BODY, SYNC_WATCH_REGION, SHARED);
    end(first, region, 0);
}

static void test_a_region_comes_after_what_was_before_it_and_before_what_is_after_it(void)
{
    sync_call region;
    ft_write(first, X, 4, 1);
    begin_region(&region);
    ft_read(a, X, 4, 2);
    ft_read(b, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, races());
    ft_write(a, X + 4, 4, 4);
    ft_write(b, X + 8, 4, 5);
    end_region(&region);
    ft_write(first, X + 4, 4, 6);
    ft_write(first, X + 8, 4, 7);
    TEST_ASSERT_EQUAL_UINT(0, races());
    begin_region(&region);
    ft_write(a, X + 12, 4, 8);
    ft_write(b, X + 12, 4, 9);
    TEST_ASSERT_EQUAL_UINT(1, races());
    end_region(&region);
}

static void test_barriers_of_a_team_order_it(void)
{
    sync_call region;
    begin_region(&region);
    for (int i = 0; i < 3; i++) {
        ft_write(a, X + 8 * i, 4, 1);
        sync_call one = begin(a, "GOMP_barrier", 0, 0, 0), two = begin(b, "GOMP_barrier", 0, 0, 0);
        end(b, &two, 0);
        ft_read(b, X + 8 * i, 4, 2);
        end(a, &one, 0);
    }
    TEST_ASSERT_EQUAL_UINT(0, races());
    sync_call one = begin(a, "GOMP_single_copy_start", 0, 0, 0), two = begin(b, "GOMP_single_copy_start", 0, 0, 0);
    end(a, &one, 0); /* a does it */
    ft_write(a, X + 64, 4, 3);
    sync_call three = begin(a, "GOMP_single_copy_end", 0, 0, 0);
    end(b, &two, 0x1000);
    ft_read(b, X + 64, 4, 4);
    end(a, &three, 0);
    TEST_ASSERT_EQUAL_UINT(0, races());
    call(a, "GOMP_critical_start", 0, 0, 0, 0);
    ft_write(a, X + 72, 4, 5);
    call(a, "GOMP_critical_end", 0, 0, 0, 0);
    call(b, "GOMP_critical_start", 0, 0, 0, 0);
    ft_write(b, X + 72, 4, 6);
    call(b, "GOMP_critical_end", 0, 0, 0, 0);
    TEST_ASSERT_EQUAL_UINT(0, races());
    call(a, "GOMP_atomic_start", 0, 0, 0, 0);
    ft_write(a, X + 72, 4, 7);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, races(), "another lock");
    end_region(&region);
}

static void create_task(ft_thread *t, uint64_t function, uint64_t flags)
{
    sync_call task = {.row = sync_find("GOMP_task"), .args = {function}, .stack = (uint64_t)&flags};
    sync_before(&engine, sync_of(t), &task);
}

static void test_tasks_come_after_their_creation_and_before_who_waits(void)
{
    ft_write(a, X, 4, 1);
    create_task(a, TASK, 0);
    sync_entered(&engine, sync_of(b), TASK, SYNC_WATCH_TASK, 0);
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, races());
    ft_write(b, X + 4, 4, 3);
    sync_returned(&engine, sync_of(b), TASK, SYNC_WATCH_TASK, 0);
    call(a, "GOMP_taskwait", 0, 0, 0, 0);
    ft_read(a, X + 4, 4, 4);
    TEST_ASSERT_EQUAL_UINT(0, races());

    create_task(first, TASK + 16, 0); /* two tasks without dependences */
    sync_entered(&engine, sync_of(a), TASK + 16, SYNC_WATCH_TASK, 0);
    ft_write(a, X + 8, 4, 5);
    sync_returned(&engine, sync_of(a), TASK + 16, SYNC_WATCH_TASK, 0);
    sync_entered(&engine, sync_of(b), TASK + 16, SYNC_WATCH_TASK, 0);
    ft_write(b, X + 8, 4, 6);
    TEST_ASSERT_EQUAL_UINT(1, races());

    create_task(first, TASK + 32, 8); /* with dependences */
    sync_entered(&engine, sync_of(a), TASK + 32, SYNC_WATCH_TASK, 0);
    ft_write(a, X + 16, 4, 7);
    sync_returned(&engine, sync_of(a), TASK + 32, SYNC_WATCH_TASK, 0);
    sync_entered(&engine, sync_of(b), TASK + 32, SYNC_WATCH_TASK, 0);
    ft_write(b, X + 16, 4, 8);
    TEST_ASSERT_EQUAL_UINT(0, races());
}

static void create_target(ft_thread *t, uint64_t function, uint64_t flags, uint64_t dependences)
{
    const uint64_t stack[] = {flags, dependences};
    sync_call target = {.row = sync_find("GOMP_target_ext"), .args = {0, function}, .stack = (uint64_t)stack};
    sync_watch kind;
    TEST_ASSERT_EQUAL_UINT(flags & 1 ? 1 : SYNC_NO_ARG, sync_watched(&engine, &target, &kind));
    sync_before(&engine, sync_of(t), &target);
    sync_after(&engine, sync_of(t), &target, 0);
}

static void test_a_target_region_that_is_not_waited_for_is_a_task(void)
{
    enum { NOWAIT = 1, SOME = 0x1000 };
    ft_write(a, X, 4, 1);
    create_target(a, TASK, NOWAIT, SOME);
    TEST_ASSERT_EQUAL_UINT64(TASK, watched);
    sync_entered(&engine, sync_of(b), TASK, SYNC_WATCH_TASK, 0);
    ft_write(b, X, 4, 2);
    sync_returned(&engine, sync_of(b), TASK, SYNC_WATCH_TASK, 0);
    TEST_ASSERT_EQUAL_UINT(0, races());
    create_target(first, TASK + 16, NOWAIT, SOME);
    ft_read(first, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, races(), "it is a task that waits for the first one, not who creates it");
    create_target(a, TASK + 32, 0, SOME);
    ft_read(a, X, 4, 4);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(0, races(), "this one waits");
    create_target(b, TASK + 48, 0, 0);
    ft_write(b, X + 8, 4, 5);
    create_target(b, TASK + 48, 0, 0);
    ft_write(a, X + 8, 4, 6);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, races(), "this one does not");
}

static void test_parts_that_one_thread_makes_are_known_to_the_others_when_they_go_on(void)
{
    sync_call maker = begin(a, "__kmpc_taskred_modifier_init", 0, 0, 0), other;
    sync_settle(sync_of(a)); /* as an engine does before a check */
    ft_write(a, X, 4, 1);
    sync_settle(sync_of(a));
    ft_write(a, X + 8, 4, 2);
    ft_write(b, X + 16, 4, 3);
    other = begin(b, "__kmpc_taskred_modifier_init", 0, 0, 0);
    end(b, &other, 0); /* the first one is not back yet */
    ft_write(b, X, 4, 4);
    ft_write(b, X + 8, 4, 5);
    TEST_ASSERT_EQUAL_UINT(0, races());
    end(a, &maker, 0);
    ft_write(a, X + 24, 4, 6);
    ft_write(b, X + 24, 4, 7);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, races(), "after the call");
    ft_write(a, X + 16, 4, 8);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, races(), "who makes nothing lets nobody go on");
}

/* What does a read by `b` of the strings of a format race with: bit i for byte i of `text`? */
static unsigned read_by(char *text, unsigned size, const char *name, const uint64_t args[SYNC_ARGS], const uint64_t *stack)
{
    unsigned found = 0;
    for (unsigned i = 0; i < size; i++) {
        ft_clear(a, (uint64_t)text, size);
        ft_write(a, (uint64_t)text + i, 1, next_site++);
        sync_call c = {.row = sync_find(name), .stack = (uint64_t)stack, .site = next_site++, .is_checked = true};
        memcpy(c.args, args, sizeof c.args);
        sync_before(&engine, sync_of(b), &c);
        found |= (races() != 0) << i;
        sync_after(&engine, sync_of(b), &c, 0);
    }
    return found;
}

static void test_a_format_says_how_far_strings_are_read(void)
{
    static char text[6] = "ab\0de", to[8];
    const uint64_t at = (uint64_t)text, out = (uint64_t)to;
    uint64_t stack[16] __attribute__((aligned(16))) = {0};
    for (unsigned i = 0; i < 16; i++)
        stack[i] = 0x1000 + i;
#define READ(name, ...) read_by(text, sizeof text, name, (const uint64_t[SYNC_ARGS]){__VA_ARGS__}, stack)
#define FORMAT(text) (uint64_t)(text)
    TEST_ASSERT_EQUAL_HEX(7, READ("printf", FORMAT("%d%%%s"), 5, at));
    TEST_ASSERT_EQUAL_HEX(1, READ("printf", FORMAT("%5.1s"), at));
    TEST_ASSERT_EQUAL_HEX(0, READ("printf", FORMAT("%.s"), at));
    TEST_ASSERT_EQUAL_HEX(3, READ("printf", FORMAT("%*.*s"), 1, 2, at));
    TEST_ASSERT_EQUAL_HEX(7, READ("printf", FORMAT("%.*s"), (uint32_t)-1, at));
    TEST_ASSERT_EQUAL_HEX(0, READ("printf", FORMAT("%p%s"), at, 0));
    TEST_ASSERT_EQUAL_HEX(0, READ("printf", FORMAT("%2$s%1$d"), 5, at));
    TEST_ASSERT_EQUAL_HEX(0, READ("printf", FORMAT("%ls"), at));
    TEST_ASSERT_EQUAL_HEX(7, READ("fprintf", 0, FORMAT("%f%s"), at));
    stack[1] = at;
    TEST_ASSERT_EQUAL_HEX(7, READ("snprintf", out, 8, FORMAT("%d%d%d%d%s"), 1, 2, 3));
    stack[4] = at; /* a ninth number, a gap, and a long double are in front of it */
    TEST_ASSERT_EQUAL_HEX(7, READ("snprintf", out, 8, FORMAT("%f%f%f%f%f%f%f%f%f%Lf%d%d%d%s"), 1, 2, 3));
    const struct {
        uint32_t whole, vector;
        const uint64_t *stack, *saved;
    } list = {40, 48, stack, stack}; /* one register is left */
    stack[5] = at;
    stack[1] = 0;
    TEST_ASSERT_EQUAL_HEX(7, READ("vprintf", FORMAT("%s"), (uint64_t)&list));
    stack[5] = 0;
    stack[1] = at;
    TEST_ASSERT_EQUAL_HEX(7, READ("vprintf", FORMAT("%d%d%s"), (uint64_t)&list));
}

/* How many bytes at `to` does a call of sscanf store that has this format and returns `result`? */
static unsigned stored_by(char *to, const char *format, int result, uint64_t second, uint64_t third)
{
    static const char input[] = "12";
    unsigned found = 0;
    for (unsigned i = 0; i < 32; i++) {
        ft_clear(a, (uint64_t)to, 32);
        ft_write(a, (uint64_t)to + i, 1, next_site++);
        sync_call c = {.row = sync_find("sscanf"),
                       .args = {(uint64_t)input, (uint64_t)format, (uint64_t)to, second, third},
                       .site = next_site++,
                       .is_checked = true};
        sync_before(&engine, sync_of(b), &c);
        sync_after(&engine, sync_of(b), &c, (uint32_t)result);
        found += races() != 0;
    }
    return found;
}

static void test_a_format_says_what_is_stored(void)
{
    static char to[32] = "abc", other[32];
    const uint64_t there = (uint64_t)to, elsewhere = (uint64_t)other;
    TEST_ASSERT_EQUAL_UINT(4, stored_by(to, "%d", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(0, stored_by(to, "%d", 0, 0, 0));
    TEST_ASSERT_EQUAL_UINT(0, stored_by(to, "%d", -1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(1, stored_by(to, "%hhx", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(2, stored_by(to, "%ho", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(8, stored_by(to, "%lld", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(8, stored_by(to, "%zu", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(4, stored_by(to, "%f", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(8, stored_by(to, "%lg", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(10, stored_by(to, "%La", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(4, stored_by(to, "%20s", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(4, stored_by(to, "%[^]%d]", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(1, stored_by(to, "%5c", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(8, stored_by(to, "%ms", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(0, stored_by(to, "%n", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(0, stored_by(to, "%1$d", 1, 0, 0));
    TEST_ASSERT_EQUAL_UINT(4, stored_by(to, "%*d%d", 1, elsewhere, 0));
    TEST_ASSERT_EQUAL_UINT(8, stored_by(other, "%ld%*d x%%%d", 1, there, 0));
}

static void test_a_status_is_stored_for_a_child_only(void)
{
    ft_write(a, X, 4, 1);
    call(b, "waitpid", 0, X, 0, 0);
    call(b, "waitpid", 0, X, 0, (uint64_t)-1);
    TEST_ASSERT_EQUAL_UINT(0, races());
    call(b, "waitpid", 0, X, 0, 1234);
    TEST_ASSERT_EQUAL_UINT(1, races());
}

/* --- the order of locks ------------------------------------------------------------------------------------------- */

static void lock(ft_thread *t, uint64_t mutex)
{
    call(t, "pthread_mutex_lock", mutex, 0, 0, 0);
}
static void unlock(ft_thread *t, uint64_t mutex)
{
    call(t, "pthread_mutex_unlock", mutex, 0, 0, 0);
}
static void lock_both(ft_thread *t, uint64_t one, uint64_t two)
{
    lock(t, one);
    lock(t, two);
    unlock(t, two);
    unlock(t, one);
}
static uint64_t deadlocks(void)
{
    uint64_t n = rep->deadlocks;
    rep->deadlocks = 0;
    return n;
}
enum { L1 = 0x700200, L2 = 0x700300, L3 = 0x700400, GATE = 0x700500 };

static void test_a_cycle_of_two_threads_is_told_once(void)
{
    lock_both(a, L1, L2);
    lock_both(a, L2, L1);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, deadlocks(), "one thread cannot lock itself up so");
    lock_both(b, L2, L1);
    TEST_ASSERT_EQUAL_UINT64(1, deadlocks());
    TEST_ASSERT_NOT_NULL(strstr(report_test_said(&host), "lock-order-inversion"));
}

static void test_a_cycle_of_three(void)
{
    lock_both(first, L1, L2);
    lock_both(a, L2, L3);
    TEST_ASSERT_EQUAL_UINT64(0, deadlocks());
    lock_both(b, L3, L1);
    TEST_ASSERT_EQUAL_UINT64(1, deadlocks());
}

static void test_what_cannot_close_is_no_deadlock(void)
{
    lock(a, GATE); /* a gate around both */
    lock_both(a, L1, L2);
    unlock(a, GATE);
    lock(b, GATE);
    lock_both(b, L2, L1);
    unlock(b, GATE);
    TEST_ASSERT_EQUAL_UINT64(0, deadlocks());

    lock(a, L1 + 8); /* only tried */
    call(a, "pthread_mutex_trylock", L2 + 8, 0, 0, 0);
    unlock(a, L2 + 8);
    unlock(a, L1 + 8);
    lock_both(b, L2 + 8, L1 + 8);
    TEST_ASSERT_EQUAL_UINT64(0, deadlocks());

    call(a, "pthread_rwlock_rdlock", L1 + 16, 0, 0, 0); /* readers do not wait for readers */
    call(a, "pthread_rwlock_rdlock", L2 + 16, 0, 0, 0);
    call(a, "pthread_rwlock_unlock", L2 + 16, 0, 0, 0);
    call(a, "pthread_rwlock_unlock", L1 + 16, 0, 0, 0);
    call(b, "pthread_rwlock_rdlock", L2 + 16, 0, 0, 0);
    call(b, "pthread_rwlock_rdlock", L1 + 16, 0, 0, 0);
    TEST_ASSERT_EQUAL_UINT64(0, deadlocks());
    call(b, "pthread_rwlock_unlock", L1 + 16, 0, 0, 0);
    call(b, "pthread_rwlock_unlock", L2 + 16, 0, 0, 0);

    lock_both(a, L1 + 24, L2 + 24); /* over before the other begins */
    ft_end(a);
    call(first, "pthread_join", 1, 0, 0, 0);
    lock_both(first, L2 + 24, L1 + 24);
    TEST_ASSERT_EQUAL_UINT64(0, deadlocks());

    lock_both(b, L1 + 32, L2 + 32); /* another lock by then */
    call(b, "pthread_mutex_destroy", L1 + 32, 0, 0, 0);
    lock_both(first, L2 + 32, L1 + 32);
    TEST_ASSERT_EQUAL_UINT64(0, deadlocks());
    lock_both(b, L1 + 40, L2 + 40);
    call(b, "malloc", 64, 0, 0, L1 + 40);
    lock_both(first, L2 + 40, L1 + 40);
    TEST_ASSERT_EQUAL_UINT64(0, deadlocks());
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_table_is_sorted_and_every_row_is_found);
    RUN_TEST(test_release_and_acquire_order);
    RUN_TEST(test_what_failed_does_not_order);
    RUN_TEST(test_a_wait_gives_the_mutex_away_and_gets_it_back);
    RUN_TEST(test_readers_come_after_writers_and_writers_after_readers);
    RUN_TEST(test_what_is_moved_between_channels_keeps_its_order);
    RUN_TEST(test_an_epoll_of_many_descriptors_knows_them_all);
    RUN_TEST(test_a_function_that_is_watched_is_one_of_the_arguments);
    RUN_TEST(test_a_barrier_orders_all_who_enter_before_all_who_leave);
    RUN_TEST(test_once_orders_after_the_function_it_ran);
    RUN_TEST(test_a_join_orders_when_it_succeeds);
    RUN_TEST(test_what_is_initialised_again_was_never_released);
    RUN_TEST(test_memory_is_the_programs_between_allocation_and_free);
    RUN_TEST(test_a_wait_that_is_cancelled_has_its_mutex_again);
    RUN_TEST(test_a_mutex_goes_on_when_its_owner_dies);
    RUN_TEST(test_who_is_detached_is_told);
    RUN_TEST(test_what_is_written_to_a_descriptor_is_known_to_who_reads_it);
    RUN_TEST(test_a_call_accesses_the_memory_it_is_given);
    RUN_TEST(test_signals_come_after_what_sent_them);
    RUN_TEST(test_a_region_comes_after_what_was_before_it_and_before_what_is_after_it);
    RUN_TEST(test_barriers_of_a_team_order_it);
    RUN_TEST(test_tasks_come_after_their_creation_and_before_who_waits);
    RUN_TEST(test_a_target_region_that_is_not_waited_for_is_a_task);
    RUN_TEST(test_a_format_says_how_far_strings_are_read);
    RUN_TEST(test_a_format_says_what_is_stored);
    RUN_TEST(test_a_status_is_stored_for_a_child_only);
    RUN_TEST(test_parts_that_one_thread_makes_are_known_to_the_others_when_they_go_on);
    RUN_TEST(test_a_cycle_of_two_threads_is_told_once);
    RUN_TEST(test_a_cycle_of_three);
    RUN_TEST(test_what_cannot_close_is_no_deadlock);
    return UNITY_END();
}
