/* Points-to sets: random keys against a model that keeps everything it was ever given and closes it anew each time. */
#include "static/pointer/set.h"

#include <stdlib.h>
#include <unity.h>

#include "static/pointer/pointer.h"

static uint64_t chance = 88172645463325252ull;

void setUp(void) {}

void tearDown(void) {}

static uint32_t below(uint32_t limit)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)(chance >> 33) % limit;
}

/* Few objects and offsets, so that they meet often; classes now and then. */
static pta_key random_key(void)
{
    uint32_t object = 1 + below(4);
    if (below(12)) return key_make(object, offset_exact((int64_t)below(5) * 8 - 8 + (below(4) ? 0 : below(16))));
    return key_make(object, offset_class(8u << below(3), below(64)));
}

/* --- the model --------------------------------------------------------------------------------------------------- */

static void close_object(const key_list *given, uint32_t object, key_list *out)
{
    key_list exact = {0};
    offset_t all = 0;
    bool class = false;
    for (uint32_t i = 0; i < given->len; i++) {
        if (key_object(given->data[i]) != object) continue;
        offset_t place = key_offset(given->data[i]);
        class |= !offset_is_exact(place);
        all = all ? offset_join(all, place) : place;
        uint32_t k = 0;
        while (k < exact.len && exact.data[k] != given->data[i])
            k++;
        if (k == exact.len) vec_push(&exact, given->data[i]);
    }
    if (class || exact.len > PTA_EXACT) {
        vec_push(out, key_make(object, all));
    } else {
        for (uint32_t i = 0; i < exact.len; i++)
            vec_push(out, exact.data[i]);
    }
    vec_free(&exact);
}

static int by_value(const void *a, const void *b)
{
    pta_key x = *(const pta_key *)a, y = *(const pta_key *)b;
    return x < y ? -1 : x > y;
}

static void close_all(const key_list *given, key_list *out)
{
    vec_clear(out);
    for (uint32_t object = 1; object <= 4; object++)
        close_object(given, object, out);
    if (out->len) qsort(out->data, out->len, sizeof *out->data, by_value);
}

static void assert_equal(const key_list *expected, const key_list *got)
{
    TEST_ASSERT_EQUAL_UINT32(expected->len, got->len);
    for (uint32_t i = 0; i < got->len; i++)
        TEST_ASSERT_EQUAL_HEX64(expected->data[i], got->data[i]);
}

static bool changes(const key_list *given, pta_key key)
{
    key_list before = {0}, after = {0}, more = {0};
    for (uint32_t i = 0; i < given->len; i++)
        vec_push(&more, given->data[i]);
    vec_push(&more, key);
    close_all(given, &before);
    close_all(&more, &after);
    bool equal =
        before.len == after.len && (!before.len || !memcmp(before.data, after.data, before.len * sizeof *before.data));
    vec_free(&before);
    vec_free(&after);
    vec_free(&more);
    return !equal;
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void check_form(const pta_set *set)
{
    for (uint32_t i = 1; i < set->len; i++)
        TEST_ASSERT_TRUE(set->keys[i - 1] < set->keys[i]);
    for (uint32_t i = 0; i < set->len; i++)
        TEST_ASSERT_EQUAL_UINT32(i, set_find(set, set->keys[i]));
}

static void test_adding_closes_what_was_given(void)
{
    for (unsigned round = 0; round < 400; round++) {
        pta_set set = {0};
        key_list given = {0}, batch = {0}, added = {0}, normal = {0}, expected = {0};
        for (uint64_t rank = 1; rank < 20; rank++) {
            vec_clear(&batch);
            for (uint32_t n = 1 + below(3); n; n--)
                vec_push(&batch, random_key());
            uint32_t count = batch.len;
            keys_sort(batch.data, &count);
            batch.len = count;
            for (uint32_t i = 0; i < batch.len; i++)
                TEST_ASSERT_EQUAL(!changes(&given, batch.data[i]), set_knows(&set, batch.data[i]));
            pta_set before = {base_alloc(set.len * 8), base_alloc(set.len * 8), set.len, set.len};
            if (set.len) memcpy(before.keys, set.keys, set.len * 8), memcpy(before.ranks, set.ranks, set.len * 8);
            vec_clear(&added);
            set_add(&set, batch.data, batch.len, rank, &added);
            for (uint32_t i = 0; i < batch.len; i++)
                vec_push(&given, batch.data[i]);
            check_form(&set);
            close_all(&given, &expected);
            vec_clear(&normal);
            set_normal(&set, &normal);
            assert_equal(&expected, &normal);
            TEST_ASSERT_EQUAL_UINT32(set.len, before.len + added.len); /* nothing goes, what is new is told */
            for (uint32_t i = 0; i < added.len; i++) {
                TEST_ASSERT_TRUE(!i || added.data[i - 1] < added.data[i]);
                TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, set_find(&before, added.data[i]));
                TEST_ASSERT_EQUAL_UINT64(rank, set.ranks[set_find(&set, added.data[i])]);
            }
            for (uint32_t i = 0; i < before.len; i++)
                TEST_ASSERT_EQUAL_UINT64(before.ranks[i], set.ranks[set_find(&set, before.keys[i])]);
            set_free(&before);
        }
        set_free(&set);
        vec_free(&given);
        vec_free(&batch);
        vec_free(&added);
        vec_free(&normal);
        vec_free(&expected);
    }
}

static void test_the_order_of_adding_does_not_matter(void)
{
    for (unsigned round = 0; round < 1000; round++) {
        pta_set once = {0}, slowly = {0};
        key_list keys = {0}, added = {0}, a = {0}, b = {0};
        for (uint32_t n = below(30); n; n--)
            vec_push(&keys, random_key());
        for (uint32_t i = 0; i < keys.len; i++)
            set_add(&slowly, &keys.data[i], 1, 1, &added);
        uint32_t count = keys.len;
        keys_sort(keys.data, &count);
        set_add(&once, keys.data, count, 1, &added);
        set_normal(&once, &a);
        set_normal(&slowly, &b);
        assert_equal(&a, &b);
        set_free(&once);
        set_free(&slowly);
        vec_free(&keys);
        vec_free(&added);
        vec_free(&a);
        vec_free(&b);
    }
}

static void test_what_is_missing_is_what_would_change_something(void)
{
    for (unsigned round = 0; round < 1000; round++) {
        pta_set set = {0};
        key_list keys = {0}, added = {0}, missing = {0};
        for (uint32_t n = below(40); n; n--) {
            pta_key key = random_key();
            set_add(&set, &key, 1, 1, &added);
        }
        for (uint32_t n = below(40); n; n--)
            vec_push(&keys, random_key());
        uint32_t count = keys.len, expected = 0;
        keys_sort(keys.data, &count);
        set_missing(&set, keys.data, count, &missing);
        for (uint32_t i = 0; i < count; i++) {
            if (set_knows(&set, keys.data[i])) continue;
            TEST_ASSERT_TRUE(expected < missing.len);
            TEST_ASSERT_EQUAL_HEX64(keys.data[i], missing.data[expected++]);
        }
        TEST_ASSERT_EQUAL_UINT32(expected, missing.len);
        set_free(&set);
        vec_free(&keys);
        vec_free(&added);
        vec_free(&missing);
    }
}

static void test_removing_takes_just_these_keys(void)
{
    for (unsigned round = 0; round < 1000; round++) {
        pta_set set = {0};
        key_list added = {0}, gone = {0}, kept = {0};
        for (uint64_t rank = 1; rank < 30; rank++) {
            pta_key key = random_key();
            set_add(&set, &key, 1, rank, &added);
        }
        pta_set before = {base_alloc(set.len * 8), base_alloc(set.len * 8), set.len, set.len};
        memcpy(before.keys, set.keys, set.len * 8); /* at least one key was added */
        memcpy(before.ranks, set.ranks, set.len * 8);
        for (uint32_t i = 0; i < set.len; i++) {
            key_list *to = below(2) ? &gone : &kept;
            vec_push(to, set.keys[i]);
        }
        set_remove(&set, gone.data, gone.len);
        check_form(&set);
        TEST_ASSERT_EQUAL_UINT32(kept.len, set.len);
        for (uint32_t i = 0; i < kept.len; i++) {
            TEST_ASSERT_EQUAL_HEX64(kept.data[i], set.keys[i]);
            TEST_ASSERT_EQUAL_UINT64(before.ranks[set_find(&before, kept.data[i])], set.ranks[i]);
        }
        for (uint32_t i = 0; i < gone.len; i++)
            TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, set_find(&set, gone.data[i]));
        set_free(&set);
        set_free(&before);
        vec_free(&added);
        vec_free(&gone);
        vec_free(&kept);
    }
}

static void test_a_group_begins_at_the_first_key_of_its_object(void)
{
    pta_set set = {0};
    key_list added = {0};
    for (uint32_t object = 2; object <= 8; object += 2)
        for (int at = 0; at < 3; at++) {
            pta_key key = key_make(object, offset_exact(at * 8));
            set_add(&set, &key, 1, 1, &added);
        }
    for (uint32_t object = 1; object <= 9; object++)
        TEST_ASSERT_EQUAL_UINT32((object - 1) / 2 * 3, set_group(&set, object));
    set_free(&set);
    vec_free(&added);
}

static void test_sorting_drops_repeated_keys(void)
{
    for (unsigned round = 0; round < 1000; round++) {
        key_list keys = {0}, expected = {0};
        for (uint32_t n = below(60); n; n--)
            vec_push(&keys, random_key());
        for (uint32_t i = 0; i < keys.len; i++) {
            uint32_t k = 0;
            while (k < expected.len && expected.data[k] != keys.data[i])
                k++;
            if (k == expected.len) vec_push(&expected, keys.data[i]);
        }
        if (expected.len) qsort(expected.data, expected.len, sizeof *expected.data, by_value);
        uint32_t count = keys.len;
        keys_sort(keys.data, &count);
        keys.len = count;
        assert_equal(&expected, &keys);
        vec_free(&keys);
        vec_free(&expected);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_adding_closes_what_was_given);
    RUN_TEST(test_the_order_of_adding_does_not_matter);
    RUN_TEST(test_what_is_missing_is_what_would_change_something);
    RUN_TEST(test_removing_takes_just_these_keys);
    RUN_TEST(test_a_group_begins_at_the_first_key_of_its_object);
    RUN_TEST(test_sorting_drops_repeated_keys);
    return UNITY_END();
}
