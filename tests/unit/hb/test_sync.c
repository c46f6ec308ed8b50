/* The table of synchronisation: every line can be read, and names are found as libraries spell them. */
#include "static/hb/hb.h"
#include "unity.h"

#include <stdio.h>

void setUp(void) {}
void tearDown(void) {}

static void test_names_are_found(void)
{
    TEST_ASSERT_EQUAL(SYNC_ACQUIRE, hb_sync_find("pthread_mutex_lock")->kind);
    TEST_ASSERT_EQUAL(SYNC_ACQUIRE, hb_sync_find("__pthread_mutex_lock")->kind);
    TEST_ASSERT_EQUAL(SYNC_RELEASE, hb_sync_find("pthread_mutex_unlock")->kind);
    TEST_ASSERT_TRUE(hb_sync_find("pthread_rwlock_rdlock")->shared);
    TEST_ASSERT_FALSE(hb_sync_find("pthread_rwlock_wrlock")->shared);
    TEST_ASSERT_EQUAL(SYNC_ZERO, hb_sync_find("pthread_mutex_trylock")->when);
    TEST_ASSERT_EQUAL(SYNC_TEAM, hb_sync_find("GOMP_parallel_loop_dynamic")->kind); /* a family */
    TEST_ASSERT_NULL(hb_sync_find("pthread_mutex"));
    TEST_ASSERT_NULL(hb_sync_find("pthread_mutex_lock2"));
    TEST_ASSERT_NULL(hb_sync_find(""));
}

/* Every name of a table, each with something before, behind and instead of its last letter. */
static void expect_same(const sync_index *index, const char *names)
{
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        for (unsigned how = 0; how < 5; how++) {
            char name[200];
            snprintf(name, sizeof name, "%s%.*s%s", how == 3 ? "__" : how == 4 ? "_" : "", (int)(len - (how == 2)), at, how == 1 ? "x" : "");
            TEST_ASSERT_EQUAL_PTR_MESSAGE(hb_sync_find(name), sync_index_find(index, name), name);
            TEST_ASSERT_EQUAL_PTR_MESSAGE(hb_sync_touch_find(name), sync_index_touch_find(index, name), name);
        }
        at += len;
    }
}

static void test_the_index_finds_what_the_tables_have(void)
{
    sync_index index = {0};
    sync_index_open(&index);
    for (uint32_t i = 0; i < hb_sync_count; i++)
        expect_same(&index, hb_sync_table[i].names);
    for (uint32_t i = 0; i < hb_sync_touch_count; i++)
        expect_same(&index, hb_sync_touches[i].names);
    expect_same(&index, "a main_loop pthread zzz");
    sync_index_close(&index);
}

/* A typo would make a line mean nothing. */
static void test_every_range_of_memory_can_be_read(void)
{
    for (uint32_t i = 0; i < hb_sync_touch_count; i++) {
        sync_range ranges[SYNC_RANGES];
        uint32_t n = hb_sync_touch_ranges(&hb_sync_touches[i], ranges);
        TEST_ASSERT_TRUE_MESSAGE(n > 0, hb_sync_touches[i].names);
        for (uint32_t k = 0; k < n; k++) {
            TEST_ASSERT_TRUE_MESSAGE(ranges[k].arg < 6, hb_sync_touches[i].names);
            TEST_ASSERT_TRUE_MESSAGE(ranges[k].size_arg < 6, hb_sync_touches[i].names);
            TEST_ASSERT_TRUE_MESSAGE(ranges[k].times_arg < 6, hb_sync_touches[i].names);
        }
        for (const char *c = hb_sync_touches[i].text; *c; c++)
            TEST_ASSERT_NOT_NULL_MESSAGE(strchr("rwfRW0123456789:*= ", *c), hb_sync_touches[i].names);
    }
}

static void test_ranges_have_sizes(void)
{
    sync_range ranges[SYNC_RANGES];
    TEST_ASSERT_EQUAL_UINT32(2, hb_sync_touch_ranges(hb_sync_touch_find("memcpy"), ranges));
    TEST_ASSERT_TRUE(ranges[0].write);
    TEST_ASSERT_FALSE(ranges[1].write);
    TEST_ASSERT_EQUAL(2, ranges[0].size_arg);
    TEST_ASSERT_EQUAL(1, ranges[1].arg);
    TEST_ASSERT_EQUAL_UINT32(1, hb_sync_touch_ranges(hb_sync_touch_find("clock_gettime"), ranges));
    TEST_ASSERT_EQUAL_UINT32(16, ranges[0].size);
    TEST_ASSERT_EQUAL_UINT32(1, hb_sync_touch_ranges(hb_sync_touch_find("fread"), ranges));
    TEST_ASSERT_EQUAL(1, ranges[0].size_arg);
    TEST_ASSERT_EQUAL(2, ranges[0].times_arg);
    TEST_ASSERT_FALSE(ranges[0].text);
    TEST_ASSERT_EQUAL_UINT32(2, hb_sync_touch_ranges(hb_sync_touch_find("strcpy"), ranges));
    TEST_ASSERT_TRUE(ranges[0].write && ranges[0].text);
    TEST_ASSERT_TRUE(!ranges[1].write && ranges[1].text);
    TEST_ASSERT_EQUAL_UINT16(3, hb_sync_asks("memcpy"));
    TEST_ASSERT_EQUAL_UINT16(3, hb_sync_asks("pthread_cond_wait"));
    TEST_ASSERT_EQUAL_UINT16(0, hb_sync_asks("getpid"));
}

static hb_extent exact(int64_t at, uint32_t width)
{
    return (hb_extent){.object = 1, .at = at, .low = at, .high = at + width, .width = width};
}

static hb_extent every(uint32_t stride, int64_t at, uint32_t width)
{
    return (hb_extent){.object = 1, .stride = stride, .at = at, .low = -1000, .high = 1000, .width = width};
}

static bool meet(hb_extent a, hb_extent b)
{
    TEST_ASSERT_EQUAL(hb_overlap(&a, &b), hb_overlap(&b, &a));
    return hb_overlap(&a, &b);
}

static void test_ranges_overlap_when_they_share_a_byte(void)
{
    TEST_ASSERT_TRUE(meet(exact(0, 4), exact(3, 1)));
    TEST_ASSERT_FALSE(meet(exact(0, 4), exact(4, 4)));
    hb_extent other = exact(0, 4);
    other.object = 2;
    TEST_ASSERT_FALSE(meet(exact(0, 4), other));
    TEST_ASSERT_TRUE(meet(every(16, 8, 4), exact(40, 4)));  /* 8 + 2 * 16 */
    TEST_ASSERT_FALSE(meet(every(16, 8, 4), exact(36, 4)));
    TEST_ASSERT_TRUE(meet(every(16, 8, 4), exact(37, 4)));
    TEST_ASSERT_FALSE(meet(every(16, 8, 4), every(16, 12, 4)));
    TEST_ASSERT_TRUE(meet(every(16, 8, 4), every(24, 0, 4))); /* both come by multiples of 8 */
}

/* Members of the elements of an array: bytes 0 to 8 and 8 to 16 of every 32. */
static void test_parts_of_elements_are_told_apart(void)
{
    hb_extent front = every(4, 0, 4), back = every(4, 0, 4);
    front.period = back.period = 32;
    front.from = 0, front.to = 8;
    back.from = 8, back.to = 16;
    TEST_ASSERT_FALSE(meet(front, back));
    TEST_ASSERT_TRUE(meet(front, front));
    TEST_ASSERT_TRUE(meet(front, exact(64, 4)));
    TEST_ASSERT_FALSE(meet(front, exact(72, 4)));
    TEST_ASSERT_TRUE(meet(back, exact(72, 4)));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_names_are_found);
    RUN_TEST(test_the_index_finds_what_the_tables_have);
    RUN_TEST(test_every_range_of_memory_can_be_read);
    RUN_TEST(test_ranges_have_sizes);
    RUN_TEST(test_ranges_overlap_when_they_share_a_byte);
    RUN_TEST(test_parts_of_elements_are_told_apart);
    return UNITY_END();
}
