/* What the core promises beyond FastTrack's rules: who is named, what is counted, what happens at the limits. */
#include "tests/unit/core/audit.h"
#include "tests/unit/core/host.h"

#include <string.h>
#include <unity.h>

static test_host host;
static ft_core *core;
static ft_thread *first;
enum { X = 0x601000, LOCK = 0x700000 };

void setUp(void)
{
    host.reservation_limit = 0;
    core = test_core(&host);
    first = ft_first_thread(core);
}
void tearDown(void)
{
    test_core_free(&host);
}

static ft_stats stats(void)
{
    ft_stats s;
    ft_statistics(core, &s);
    return s;
}

static void test_a_race_names_both_threads_and_both_sites(void)
{
    ft_thread *a = ft_fork(first, 7), *b = ft_fork(first, 8);
    ft_write(a, X, 4, 100);
    ft_read(b, X, 4, 200);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    const ft_race *r = &host.races[0];
    TEST_ASSERT_EQUAL_HEX64(X, r->addr);
    TEST_ASSERT_EQUAL_UINT(4, r->size);
    TEST_ASSERT_EQUAL_UINT(2, r->now.thread);
    TEST_ASSERT_EQUAL_UINT(200, r->now.site);
    TEST_ASSERT_FALSE(r->now.is_write);
    TEST_ASSERT_EQUAL_UINT(1, r->before.thread);
    TEST_ASSERT_EQUAL_UINT(100, r->before.site);
    TEST_ASSERT_TRUE(r->before.is_write);
    ft_thread_info info;
    TEST_ASSERT_TRUE(ft_describe_thread(core, 2, &info));
    TEST_ASSERT_EQUAL_UINT(0, info.creator);
    TEST_ASSERT_EQUAL_UINT(8, info.site);
    TEST_ASSERT_FALSE(ft_describe_thread(core, 3, &info));
}

static void test_two_bytes_of_one_word_do_not_race(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_write(a, X, 1, 1);
    ft_write(b, X + 1, 1, 2);
    ft_write(a, X + 2, 2, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_read(b, X + 1, 2, 4);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_HEX64(X + 2, host.races[0].addr);
    TEST_ASSERT_EQUAL_UINT(3, host.races[0].before.site);
}

static void test_a_write_after_many_reads_names_the_reader_that_is_not_ordered(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0), *c = ft_fork(first, 0);
    ft_read(a, X, 4, 11);
    ft_read(b, X, 4, 12);
    ft_release(a, LOCK);
    ft_acquire(c, LOCK);
    ft_write(c, X, 4, 13);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_UINT(b->number, host.races[0].before.thread);
    TEST_ASSERT_EQUAL_UINT(12, host.races[0].before.site);
}

static void test_free_counts_as_a_write_and_new_memory_has_no_past(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_allocated(a, X, 10, 1);
    ft_write(a, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT64(10, ft_block_size(core, X));
    ft_freed(b, X, 3);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_UINT(3, host.races[0].now.site);
    TEST_ASSERT_EQUAL_UINT64(0, ft_block_size(core, X));
    ft_read(a, X + 9, 1, 4); /* after the free */
    TEST_ASSERT_EQUAL_UINT(2, host.race_count);
    ft_allocated(b, X, 10, 5);
    ft_write(b, X, 10, 6);
    TEST_ASSERT_EQUAL_UINT(2, host.race_count);
    ft_freed(b, X + 1, 7); /* not the start of a block */
    ft_block block;
    TEST_ASSERT_TRUE(ft_block_covering(core, X + 9, &block));
    TEST_ASSERT_EQUAL_UINT(5, block.site);
    TEST_ASSERT_FALSE(ft_block_covering(core, X + 10, &block));
}

static void test_clearing_a_large_range_gives_its_pages_back_and_keeps_the_rest(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    const uint64_t size = 1 << 20;
    ft_write(a, X, size, 1);
    ft_clear(a, X + 2, size - 4);
    ft_write(b, X + 2, size - 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_write(b, X + 1, 1, 3);
    ft_write(b, X + size - 2, 1, 3);
    TEST_ASSERT_EQUAL_UINT(2, host.race_count);
}

static void test_checks_rest_while_there_is_one_thread(void)
{
    TEST_ASSERT_EQUAL_UINT(0, core->concurrent);
    ft_thread *a = ft_fork(first, 0);
    TEST_ASSERT_EQUAL_UINT(1, core->concurrent);
    ft_write(a, X, 4, 1);
    ft_end(a);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, core->concurrent, "it has ended but is not ordered");
    ft_join(first, a);
    TEST_ASSERT_EQUAL_UINT(0, core->concurrent);
    ft_write(first, X, 4, 2);
    ft_thread *b = ft_fork(first, 0);
    ft_write(b, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
}

static void test_a_detached_thread_is_never_ordered(void)
{
    ft_thread *a = ft_fork(first, 0);
    ft_write(a, X, 4, 1);
    ft_end(a);
    ft_write(first, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

static void test_any_number_of_threads_one_after_another_needs_no_more_slots(void)
{
    for (int i = 0; i < 5000; i++) {
        ft_thread *a = ft_fork(first, 0);
        ft_write(a, X, 4, 1);
        ft_end(a);
        ft_join(first, a);
    }
    TEST_ASSERT_EQUAL_UINT64(0, stats().threads_unchecked);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
}

static void test_a_thread_without_a_slot_is_counted_and_still_orders_others(void)
{
    ft_thread *all[FT_SLOTS + 10];
    for (int i = 0; i < FT_SLOTS + 10; i++)
        all[i] = ft_fork(first, 0);
    TEST_ASSERT_EQUAL_UINT64(11, stats().threads_unchecked); /* the first thread has a slot too */
    ft_thread *without = all[FT_SLOTS + 9];
    TEST_ASSERT_EQUAL_UINT(0, without->epoch);
    ft_write(all[0], X, 4, 1);
    ft_release(all[0], LOCK);
    ft_acquire(without, LOCK);
    ft_write(without, X, 4, 2);
    ft_release(without, LOCK + 8);
    ft_acquire(all[1], LOCK + 8);
    ft_write(all[1], X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
}

static void test_a_clock_that_runs_out_goes_on_in_another_slot(void)
{
    ft_set_limits(core, &(ft_limits){.clock = 10});
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    for (int i = 0; i < 100; i++) {
        ft_write(a, X + i * 4, 4, 1);
        ft_release(a, LOCK);
    }
    TEST_ASSERT_TRUE(stats().slots_changed >= 10);
    for (int i = 0; i < 100; i++)
        ft_write(a, X + i * 4, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_write(b, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_UINT(a->number, host.races[0].before.thread);
    ft_acquire(b, LOCK);
    ft_write(b, X + 99 * 4, 4, 4);
    TEST_ASSERT_EQUAL_UINT(2, host.race_count); /* a's second round was not released */
}

static void test_a_forked_process_takes_everything_as_ordered(void)
{
    ft_thread *a = ft_fork(first, 0);
    ft_write(a, X, 4, 1);
    ft_forked_process(first);
    TEST_ASSERT_EQUAL_UINT(0, core->concurrent);
    ft_write(first, X, 4, 2);
    ft_thread *b = ft_fork(first, 0);
    ft_write(b, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
}

static void test_a_write_lock_taken_before_the_first_fork_still_orders(void)
{
    ft_lock_write(first, LOCK);
    ft_thread *a = ft_fork(first, 0);
    ft_write(first, X, 4, 1);
    ft_unlock(first, LOCK);
    ft_lock_read(a, LOCK);
    ft_read(a, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
}

static void test_without_memory_facts_are_dropped_and_counted(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    host.reservation_limit = host.in_use;
    ft_write(a, X, 4, 1);
    ft_write(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    TEST_ASSERT_TRUE(stats().dropped >= 2);
    TEST_ASSERT_EQUAL_UINT(1, host.notices);
    host.reservation_limit = 0;
    ft_write(a, X, 4, 1);
    ft_write(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    host.reservation_limit = host.in_use;
    ft_read(a, X + 8, 4, 3);
    ft_read(b, X + 8, 4, 4); /* no vector */
    ft_write(a, X + 17, 1, 5);
    ft_write(b, X + 17, 1, 6); /* no split */
    TEST_ASSERT_TRUE(stats().dropped >= 4);
    TEST_ASSERT_EQUAL_UINT(1, host.notices);
}

static void test_without_memory_for_synchronisation_nothing_is_reported(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    host.reservation_limit = host.in_use;
    for (uint64_t i = 0; i < 100000 && core->concurrent; i++)
        ft_release(a, LOCK + i * 8);
    TEST_ASSERT_EQUAL_UINT(0, core->concurrent);
    host.reservation_limit = 0;
    ft_write(a, X, 4, 1);
    ft_fork(a, 0);
    ft_write(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    TEST_ASSERT_EQUAL_STRING("there is no memory for synchronisation: nothing is checked any more", host.last_notice);
}

static void test_threads_that_are_never_joined_make_a_reset_and_checking_goes_on(void)
{
    ft_thread *a = ft_fork(first, 0);
    for (int i = 0; i < 3 * FT_SLOTS; i++) {
        ft_thread *t = ft_fork(first, 0);
        ft_write(t, X, 4, 1);
        ft_end(t);
        ft_never_joined(core, t);
    }
    TEST_ASSERT_EQUAL_UINT64(3, stats().resets_slots);
    TEST_ASSERT_EQUAL_UINT64(0, stats().threads_unchecked);
    TEST_ASSERT_EQUAL_UINT(1, host.notices);
    host.race_count = 0;
    ft_write(first, X + 100, 4, 2);
    ft_write(a, X + 100, 4, 3);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_UINT(a->number, host.races[0].now.thread);
    TEST_ASSERT_EQUAL_UINT(first->number, host.races[0].before.thread);
}

static void test_when_all_clocks_have_run_out_there_is_a_reset(void)
{
    ft_set_limits(core, &(ft_limits){.clock = 10, .slots = 3});
    ft_thread *a = ft_fork(first, 0);
    ft_write(first, X, 4, 1);
    for (int i = 0; i < 100; i++)
        ft_release(a, LOCK);
    TEST_ASSERT_TRUE(stats().resets_clocks >= 4);
    ft_write(a, X, 4, 2); /* before a reset and after it */
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_write(first, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

static void test_a_thread_gets_a_slot_when_one_is_free_again(void)
{
    ft_set_limits(core, &(ft_limits){.slots = 2});
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    TEST_ASSERT_EQUAL_UINT(0, b->epoch);
    TEST_ASSERT_EQUAL_UINT(1, host.notices);
    ft_end(a);
    ft_join(first, a);
    ft_release(b, LOCK); /* a's last epoch is not ordered before b: a reset */
    TEST_ASSERT_TRUE(b->epoch);
    ft_write(first, X, 4, 1);
    ft_write(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

static void test_a_large_range_costs_a_few_cells(void)
{
    const uint64_t size = 1 << 20, start = 0x7f1200000000;
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_write(a, start, size, 1);
    ft_read(a, start, size, 2);
    TEST_ASSERT_EQUAL_UINT64(0, stats().shadow_bytes);
    ft_write(b, start + 100, size - 200, 3); /* refines where it begins and ends */
    TEST_ASSERT_EQUAL_UINT64(2 * 4096 * 4, stats().shadow_bytes);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_HEX64(start + 100, host.races[0].addr);
    TEST_ASSERT_EQUAL_UINT(size - 200, host.races[0].size);
    for (uint64_t at = 0; at < size; at += 8)
        ft_write(b, start + at, 8, 4);
    TEST_ASSERT_EQUAL_UINT64(size * 4, stats().shadow_bytes);
    ft_clear(b, start, size);
    TEST_ASSERT_EQUAL_UINT64(0, stats().shadow_bytes);
}

static void test_an_array_that_many_threads_read_shares_its_read_vectors(void)
{
    enum { READERS = 6, SIZE = 1 << 18 };
    for (int i = 0; i < READERS; i++) {
        ft_thread *t = ft_fork(first, 0);
        for (uint64_t at = 0; at < SIZE; at += 8)
            ft_read(t, X + at, 8, 1);
    }
    TEST_ASSERT_TRUE(stats().vectors <= 4 * READERS);
    ft_write(first, X + 4000, 4, 2);
    TEST_ASSERT_EQUAL_UINT(READERS, host.race_count);
}

static void test_readers_that_synchronise_often_make_no_vector_each_time(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0), *c = ft_fork(first, 0);
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 2; k++) {
            ft_read(k ? b : a, X, 8, 11 + (ft_site)k);
            ft_read(k ? b : a, X + 32, 4, 21 + (ft_site)k);
            ft_release(k ? b : a, LOCK + 64 * (uint64_t)k);
        }
    }
    TEST_ASSERT_LESS_THAN_UINT64_MESSAGE(20, stats().vectors, "its entry in the vector is renewed in place");
    ft_acquire(c, LOCK);
    ft_write(c, X, 4, 13);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, host.race_count, "all that a has read is ordered before");
    TEST_ASSERT_EQUAL_UINT(b->number, host.races[0].before.thread);
    ft_acquire(c, LOCK + 64);
    ft_write(c, X + 4, 4, 14);
    ft_read(a, X + 32, 4, 15);
    ft_write(c, X + 32, 4, 16);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(2, host.race_count, "what a has read since is not");
    TEST_ASSERT_EQUAL_UINT(a->number, host.races[1].before.thread);
    TEST_ASSERT_EQUAL_UINT(15, host.races[1].before.site);
}

static void test_blocks_that_several_have_read_become_compact_with_their_vector(void)
{
    enum { PAGE = 1 << 12, CHUNK = 1 << 16 };
    const uint64_t start = 0x7f1200000000;
    ft_thread *t[4];
    for (int i = 0; i < 4; i++)
        t[i] = ft_fork(first, 0);
    for (uint64_t at = 0; at < CHUNK; at += PAGE) {
        ft_read(t[0], start + at, PAGE / 2, 1); /* in two halves, so that the pages are fine */
        ft_read(t[0], start + at + PAGE / 2, PAGE / 2, 1);
        ft_read(t[1], start + at, PAGE / 2, 1);
        ft_read(t[1], start + at + PAGE / 2, PAGE / 2, 1);
        ft_read(t[2], start + at, PAGE, 1);
    }
    TEST_ASSERT_EQUAL_UINT64(16, stats().compacted);
    ft_read(t[3], start, CHUNK, 1);
    TEST_ASSERT_EQUAL_UINT64(17, stats().compacted);
    TEST_ASSERT_NULL(audit_core(core, start, CHUNK));
    ft_read(t[3], start + 100, 1, 1);
    ft_write(first, start + 100, 1, 2);
    TEST_ASSERT_EQUAL_UINT(4, host.race_count);
    TEST_ASSERT_NULL(audit_core(core, start, CHUNK));
    ft_clear(first, start, CHUNK);
    TEST_ASSERT_NULL(audit_core(core, start, CHUNK));
}

static void test_strided_elements_are_checked_one_by_one(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_write_strided(a, (ft_strided){X, 4, 1000, 12}, 1);
    ft_write_strided(b, (ft_strided){X + 999 * 12 + 4, 8, 1000, -12}, 2); /* between them */
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_read(b, X + 500 * 12 + 2, 4, 3);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_HEX64(X + 500 * 12 + 2, host.races[0].addr);
    TEST_ASSERT_EQUAL_UINT(2, host.races[0].size);
    ft_write_strided(b, (ft_strided){X, 4, UINT64_MAX, INT64_MAX}, 4); /* goes beyond the end of all addresses */
    TEST_ASSERT_EQUAL_UINT(2, host.race_count);
    ft_write_strided(b, (ft_strided){X, 0, 10, 4}, 5);
    ft_write_strided(b, (ft_strided){UINT64_MAX - 4, 8, 10, 4}, 5);
    TEST_ASSERT_EQUAL_UINT(2, host.race_count);
}

static void test_a_limit_of_memory_makes_a_reset_and_one_line(void)
{
    ft_set_limits(core, &(ft_limits){.shadow_bytes = 1 << 20});
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    for (uint64_t i = 0; i < 1000; i++)
        ft_write(a, X + i * 4096 + 4, 4, 1);
    TEST_ASSERT_TRUE(stats().shadow_bytes <= 1 << 20);
    TEST_ASSERT_TRUE(stats().resets_memory >= 15);
    TEST_ASSERT_EQUAL_UINT64(0, stats().dropped);
    TEST_ASSERT_EQUAL_UINT(1, host.notices);
    ft_write(b, X + 999 * 4096 + 4, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

/* --- stacks, and checks in the middle of a call ------------------------------------------------------------------- */

static ft_thread *interrupted; /* its next access to be remembered is interrupted by another one */
static ft_site make_stack(void *context, ft_thread *thread, ft_site site)
{
    (void)context;
    uint64_t frames[100];
    for (unsigned i = 0; i < 100; i++)
        frames[i] = site * 1000 + i;
    if (thread == interrupted) {
        interrupted = NULL;
        TEST_ASSERT_TRUE(thread->inside);
        ft_write(thread, X + 64, 4, 50);
        ft_read(thread, X + 72, 4, 51);
    }
    return site == 9 ? site : ft_stack_put(thread->core, site, frames, site);
}

static void test_a_race_has_the_stacks_of_both_sides(void)
{
    ft_host callbacks = test_callbacks(&host);
    callbacks.stack = make_stack;
    core = test_core_with(&host, &callbacks);
    first = ft_first_thread(core);
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    uint64_t frames[FT_FRAMES];
    ft_write(a, X, 4, 3);
    ft_write(b, X, 4, 70);
    const ft_race *r = &host.races[0];
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_UINT(3, r->before.site);
    TEST_ASSERT_EQUAL_UINT(3, ft_stack_get(core, r->before.stack, frames, FT_FRAMES));
    TEST_ASSERT_EQUAL_UINT64(3002, frames[2]);
    TEST_ASSERT_EQUAL_UINT(70, r->now.site);
    TEST_ASSERT_EQUAL_UINT(FT_FRAMES, ft_stack_get(core, r->now.stack, frames, FT_FRAMES));
    TEST_ASSERT_EQUAL_UINT64(70063, frames[63]);
    ft_write(a, X + 8, 4, 9); /* no stack */
    ft_read(b, X + 8, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.races[1].before.stack);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(r->before.stack, host.races[1].now.stack, "the same stack is kept once");
    TEST_ASSERT_EQUAL_UINT(0, ft_stack_get(core, 12345, frames, FT_FRAMES));
}

static void test_checks_by_a_signal_handler_are_done_when_the_call_ends(void)
{
    ft_host callbacks = test_callbacks(&host);
    callbacks.stack = make_stack;
    core = test_core_with(&host, &callbacks);
    first = ft_first_thread(core);
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_write(b, X + 72, 4, 1);
    interrupted = a;
    ft_write(a, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT64(2, stats().deferred);
    TEST_ASSERT_EQUAL_UINT(0, a->inside);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_EQUAL_UINT(51, host.races[0].now.site);
    ft_read(b, X + 64, 4, 3);
    TEST_ASSERT_EQUAL_UINT(2, host.race_count);
    TEST_ASSERT_EQUAL_UINT(50, host.races[1].before.site);
}

static void test_synchronisation_in_memory_that_is_new_has_no_past(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_write(a, X, 4, 1);
    ft_release(a, X + 64);
    ft_allocated(first, X + 60, 8, 0);
    ft_acquire(b, X + 64);
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

static void test_a_plain_move_where_atomic_instructions_were_is_atomic(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    enum { FLAG = X + 64, DATA = X };
    ft_read(b, FLAG, 4, 1); /* waits for the flag; nobody knows yet what it is */
    ft_write(a, DATA, 4, 2);
    ft_atomic_before(a, FLAG); /* xchg */
    ft_atomic_after(a, FLAG);
    ft_read(b, FLAG, 4, 1); /* in the same epoch as before */
    ft_read(b, DATA, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);

    ft_read(b, FLAG, 4, 1); /* the check comes before the read, which sees what is stored in between */
    ft_write(a, DATA + 8, 4, 4);
    ft_write(a, FLAG, 4, 5); /* a plain move releases too */
    ft_write(b, DATA + 8, 4, 6);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);

    ft_write(a, DATA + 8, 4, 7);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, host.race_count, "b has released nothing");
    ft_clear(a, FLAG, 4); /* another use of the memory */
    ft_write(a, FLAG, 4, 8);
    ft_write(b, FLAG, 4, 9);
    TEST_ASSERT_EQUAL_UINT(2, host.race_count);
}

static void test_a_read_may_see_what_makes_its_location_atomic(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0), *c = ft_fork(first, 0);
    enum { FLAG = X + 64, DATA = X };
    ft_read(c, FLAG, 4, 1);
    ft_release(c, LOCK); /* it has read it before this, whatever comes */
    ft_read(b, FLAG, 4, 1); /* the check; the read itself comes after the exchange */
    ft_write(a, DATA, 4, 2);
    ft_atomic_before(a, FLAG); /* xchg: the first that was seen */
    ft_atomic_after(a, FLAG);
    ft_read(b, DATA, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_read(c, DATA, 4, 4);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

static void test_what_was_atomic_is_not_when_its_memory_is_new_while_one_thread_runs(void)
{
    ft_thread *a = ft_fork(first, 0);
    ft_atomic_before(a, X);
    ft_atomic_after(a, X);
    ft_end(a);
    ft_join(first, a);
    TEST_ASSERT_FALSE(core->concurrent);
    ft_allocated(first, X, 16, 1);
    ft_thread *b = ft_fork(first, 0), *c = ft_fork(first, 0);
    ft_write(b, X, 4, 2);
    ft_write(c, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

static void test_a_line_whose_atomic_location_is_gone_is_an_ordinary_one(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_allocated(a, X, 64, 1);
    ft_atomic_before(a, X);
    ft_atomic_after(a, X);
    ft_freed(a, X, 2);
    ft_allocated(a, X, 64, 3);
    ft_write(a, X, 4, 4);
    ft_read(b, X, 4, 5);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, host.race_count, "neither of them is atomic any more");
}

static void test_an_atomic_location_leaves_its_neighbours_alone(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_write(a, X, 4, 1);
    ft_atomic_before(a, X + 68);
    ft_atomic_before(b, X + 64); /* becomes atomic: what is known of its neighbour stays */
    ft_atomic_after(b, X + 68);
    ft_read(b, X, 4, 2);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
}

static void test_rounds_that_threads_count_by_themselves_are_barriers(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    for (uint32_t round = 0; round < 3; round++) {
        ft_write(a, X + 8 * round, 4, 1);
        ft_write(b, X + 8 * round + 4, 4, 2);
        ft_barrier_enter_round(a, LOCK, round);
        ft_barrier_enter_round(b, LOCK, round);
        ft_barrier_leave_round(b, LOCK, round);
        ft_read(b, X + 8 * round, 4, 3);
        ft_barrier_leave_round(a, LOCK, round);
        ft_read(a, X + 8 * round + 4, 4, 4);
    }
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_write(a, X + 16, 4, 5); /* b has read it after the last one */
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
}

static void test_a_block_that_unknown_code_frees_is_no_access(void)
{
    ft_thread *a = ft_fork(first, 0), *b = ft_fork(first, 0);
    ft_allocated(a, X, 64, 1);
    ft_write(a, X, 4, 2);
    ft_discarded(b, X);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    TEST_ASSERT_EQUAL_UINT64(0, ft_block_size(core, X));
    ft_write(b, X, 4, 3);
    TEST_ASSERT_EQUAL_UINT(0, host.race_count);
    ft_allocated(a, X, 64, 1);
    ft_write(a, X, 4, 2);
    ft_freed(b, X, 4);
    TEST_ASSERT_EQUAL_UINT(1, host.race_count);
    TEST_ASSERT_TRUE(host.races[0].now.is_free);
    TEST_ASSERT_EQUAL_UINT(4, host.races[0].now.site);
}

static void test_a_pair_of_sites_is_new_once(void)
{
    TEST_ASSERT_TRUE(ft_report_first(core, 1, 2));
    TEST_ASSERT_FALSE(ft_report_first(core, 2, 1));
    TEST_ASSERT_TRUE(ft_report_first(core, 1, 1));
    TEST_ASSERT_TRUE(ft_report_first(core, 0, 0));
    TEST_ASSERT_FALSE(ft_report_first(core, 0, 0));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_race_names_both_threads_and_both_sites);
    RUN_TEST(test_two_bytes_of_one_word_do_not_race);
    RUN_TEST(test_a_write_after_many_reads_names_the_reader_that_is_not_ordered);
    RUN_TEST(test_free_counts_as_a_write_and_new_memory_has_no_past);
    RUN_TEST(test_clearing_a_large_range_gives_its_pages_back_and_keeps_the_rest);
    RUN_TEST(test_checks_rest_while_there_is_one_thread);
    RUN_TEST(test_a_detached_thread_is_never_ordered);
    RUN_TEST(test_any_number_of_threads_one_after_another_needs_no_more_slots);
    RUN_TEST(test_a_thread_without_a_slot_is_counted_and_still_orders_others);
    RUN_TEST(test_a_clock_that_runs_out_goes_on_in_another_slot);
    RUN_TEST(test_a_forked_process_takes_everything_as_ordered);
    RUN_TEST(test_a_write_lock_taken_before_the_first_fork_still_orders);
    RUN_TEST(test_without_memory_facts_are_dropped_and_counted);
    RUN_TEST(test_without_memory_for_synchronisation_nothing_is_reported);
    RUN_TEST(test_threads_that_are_never_joined_make_a_reset_and_checking_goes_on);
    RUN_TEST(test_when_all_clocks_have_run_out_there_is_a_reset);
    RUN_TEST(test_a_thread_gets_a_slot_when_one_is_free_again);
    RUN_TEST(test_a_large_range_costs_a_few_cells);
    RUN_TEST(test_an_array_that_many_threads_read_shares_its_read_vectors);
    RUN_TEST(test_readers_that_synchronise_often_make_no_vector_each_time);
    RUN_TEST(test_blocks_that_several_have_read_become_compact_with_their_vector);
    RUN_TEST(test_strided_elements_are_checked_one_by_one);
    RUN_TEST(test_a_limit_of_memory_makes_a_reset_and_one_line);
    RUN_TEST(test_a_race_has_the_stacks_of_both_sides);
    RUN_TEST(test_checks_by_a_signal_handler_are_done_when_the_call_ends);
    RUN_TEST(test_synchronisation_in_memory_that_is_new_has_no_past);
    RUN_TEST(test_a_plain_move_where_atomic_instructions_were_is_atomic);
    RUN_TEST(test_a_read_may_see_what_makes_its_location_atomic);
    RUN_TEST(test_what_was_atomic_is_not_when_its_memory_is_new_while_one_thread_runs);
    RUN_TEST(test_a_line_whose_atomic_location_is_gone_is_an_ordinary_one);
    RUN_TEST(test_an_atomic_location_leaves_its_neighbours_alone);
    RUN_TEST(test_rounds_that_threads_count_by_themselves_are_barriers);
    RUN_TEST(test_a_block_that_unknown_code_frees_is_no_access);
    RUN_TEST(test_a_pair_of_sites_is_new_once);
    return UNITY_END();
}
