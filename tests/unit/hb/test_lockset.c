/* Sets of locks: equal sets have equal numbers, whatever the order in which they were made. */
#include "static/hb/lockset.h"
#include "unity.h"

static lockset_table t;

void setUp(void)
{
    lockset_open(&t);
}

void tearDown(void)
{
    lockset_close(&t);
}

static uint32_t object(uint32_t a, bool shared)
{
    return lockset_lock(&t, (lock_element){.kind = LOCK_OBJECT, .shared = shared, .a = a, .twin = LOCK_NO_TWIN});
}

static void test_equal_sets_have_one_number(void)
{
    uint32_t a = object(1, false), b = object(2, false), c = object(3, false);
    uint32_t x = lockset_add(&t, lockset_add(&t, lockset_add(&t, LOCKSET_EMPTY, a), b), c);
    uint32_t y = lockset_add(&t, lockset_add(&t, lockset_add(&t, LOCKSET_EMPTY, c), a), b);
    TEST_ASSERT_EQUAL_UINT32(x, y);
    TEST_ASSERT_EQUAL_UINT32(x, lockset_add(&t, x, b));
    TEST_ASSERT_EQUAL_UINT32(LOCKSET_EMPTY, lockset_remove(&t, lockset_remove(&t, lockset_remove(&t, x, b), a), c));
}

static void test_locks_differ_by_object_place_and_mode(void)
{
    TEST_ASSERT_EQUAL_UINT32(object(1, false), object(1, false));
    TEST_ASSERT_NOT_EQUAL(object(1, false), object(2, false));
    TEST_ASSERT_NOT_EQUAL(object(1, false), object(1, true));
    lock_element at = {.kind = LOCK_OBJECT, .a = 1, .twin = LOCK_NO_TWIN, .at = 8};
    TEST_ASSERT_NOT_EQUAL(object(1, false), lockset_lock(&t, at));
}

static void test_a_meeting_keeps_what_both_hold(void)
{
    uint32_t a = object(1, false), b = object(2, false), c = object(3, false);
    uint32_t x = lockset_add(&t, lockset_add(&t, LOCKSET_EMPTY, a), b), y = lockset_add(&t, lockset_add(&t, LOCKSET_EMPTY, c), b);
    TEST_ASSERT_EQUAL_UINT32(lockset_add(&t, LOCKSET_EMPTY, b), lockset_meet(&t, x, y));
    TEST_ASSERT_EQUAL_UINT32(lockset_meet(&t, x, y), lockset_meet(&t, y, x));
    TEST_ASSERT_EQUAL_UINT32(x, lockset_meet(&t, x, LOCKSET_ALL));
    TEST_ASSERT_EQUAL_UINT32(LOCKSET_EMPTY, lockset_meet(&t, x, LOCKSET_EMPTY));
}

/* Read-locked on one way, write-locked on the other: certainly at least read-locked. */
static void test_a_meeting_of_modes_is_the_weaker_one(void)
{
    uint32_t exclusive = lockset_add(&t, LOCKSET_EMPTY, object(1, false)), shared = lockset_add(&t, LOCKSET_EMPTY, object(1, true));
    TEST_ASSERT_EQUAL_UINT32(shared, lockset_meet(&t, exclusive, shared));
    TEST_ASSERT_EQUAL_UINT32(shared, lockset_meet(&t, shared, exclusive));
}

static void test_what_is_not_reached_stays_so(void)
{
    TEST_ASSERT_EQUAL_UINT32(LOCKSET_ALL, lockset_add(&t, LOCKSET_ALL, object(1, false)));
    TEST_ASSERT_EQUAL_UINT32(LOCKSET_ALL, lockset_remove(&t, LOCKSET_ALL, object(1, false)));
    TEST_ASSERT_EQUAL_UINT32(LOCKSET_ALL, lockset_meet(&t, LOCKSET_ALL, LOCKSET_ALL));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_equal_sets_have_one_number);
    RUN_TEST(test_locks_differ_by_object_place_and_mode);
    RUN_TEST(test_a_meeting_keeps_what_both_hold);
    RUN_TEST(test_a_meeting_of_modes_is_the_weaker_one);
    RUN_TEST(test_what_is_not_reached_stays_so);
    return UNITY_END();
}
