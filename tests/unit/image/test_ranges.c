/* Sorting and range maps against the obvious way of doing it. */
#include "static/image/private.h"

#include "unity.h"

void setUp(void) {}
void tearDown(void) {}

static uint64_t state = 88172645463325252ull;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void keys_are_sorted_and_equal_ones_keep_their_order(void)
{
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t count = (uint32_t)(next_random() % 300);
        uint64_t mask = round % 3 == 0 ? 0x1f : round % 3 == 1 ? 0xfff000 : UINT64_MAX;
        sort_key *keys = base_alloc(count * sizeof *keys);
        for (uint32_t i = 0; i < count; i++)
            keys[i] = (sort_key){next_random() & mask, i};
        sort_keys(keys, count);
        for (uint32_t i = 1; i < count; i++) {
            TEST_ASSERT_TRUE(keys[i - 1].key <= keys[i].key);
            TEST_ASSERT_TRUE(keys[i - 1].key != keys[i].key || keys[i - 1].id < keys[i].id);
        }
        free(keys);
    }
}

static void a_range_map_answers_with_the_range_that_starts_last(void)
{
    for (int round = 0; round < 300; round++) {
        uint32_t count = (uint32_t)(next_random() % 40);
        range *ranges = base_alloc(count * sizeof *ranges);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t start = next_random() % 100;
            ranges[i] = (range){start, start + next_random() % 20, i};
        }
        sort_ranges(ranges, count);
        range_map map = range_map_build(ranges, count);
        for (uint32_t i = 1; i < map.count; i++)
            TEST_ASSERT_TRUE(map.ranges[i - 1].end <= map.ranges[i].start);
        for (uint64_t addr = 0; addr < 130; addr++) {
            const range *wanted = NULL;
            for (uint32_t i = 0; i < count; i++)
                if (ranges[i].start <= addr && addr < ranges[i].end) wanted = &ranges[i];
            const range *found = range_map_find(&map, addr);
            TEST_ASSERT_EQUAL(wanted != NULL, found != NULL);
            if (found) TEST_ASSERT_EQUAL_UINT32(wanted->id, found->id);
        }
        free(map.ranges);
        free(ranges);
    }
}

static void ranges_may_reach_to_the_end_of_the_address_space(void)
{
    range all = {UINT64_MAX - 10, UINT64_MAX, 7};
    range_map map = range_map_build(&all, 1);
    TEST_ASSERT_NOT_NULL(range_map_find(&map, UINT64_MAX - 1));
    TEST_ASSERT_NULL(range_map_find(&map, UINT64_MAX));
    TEST_ASSERT_NULL(range_map_find(&map, 0));
    free(map.ranges);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(keys_are_sorted_and_equal_ones_keep_their_order);
    RUN_TEST(a_range_map_answers_with_the_range_that_starts_last);
    RUN_TEST(ranges_may_reach_to_the_end_of_the_address_space);
    return UNITY_END();
}
