/* Points-to sets: random keys against a model that keeps everything it was ever given and closes it anew each time. Objects of
 * each kind of shape, and one of no known shape in which pointers are further apart than strides can say. */
#include "static/pointer/set.h"

#include "tests/unit/pointer/shapes.h"

#include <unity.h>

#include "static/pointer/pointer.h"

enum { FIRST = SET_EXTERNAL_OBJECT + 1, FAR = FIRST + SHAPES, LAST = FAR, MANY = FIRST + 2 * SET_WILD_AT };

static uint64_t chance = 88172645463325252ull;
static const pta_shape *shapes[MANY + 1];
static uint8_t wild[MANY + 1];
static const set_world world = {shapes, wild, SET_WILD_AT, false, SET_WILD_AT};

void setUp(void)
{
    shapes_make();
    for (unsigned i = 0; i < SHAPES; i++)
        shapes[FIRST + i] = all_shapes[i].shape;
    memset(wild, 0, sizeof wild);
}

void tearDown(void)
{
    shapes_free();
}

static uint32_t below(uint32_t limit)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)(chance >> 33) % limit;
}

/* Mostly multiples of a number whose power of two is small, far apart. */
static pta_key random_far_key(void)
{
    int64_t at = (int64_t)below(9) * 3 * (1 << 17);
    if (!below(30)) at += 3 * below(100);
    if (!below(100)) at += below(100);
    if (!below(200)) return key_make(FAR, offset_class(3 * 128, at, 0));
    return key_make(FAR, offset_exact(at));
}

/* Few offsets, so that they meet often; classes now and then, as spreading and adding make them. */
static pta_key random_key(void)
{
    uint32_t object = FIRST + below(LAST - FIRST + 1);
    if (object == FAR) return random_far_key();
    const pta_shape *shape = shapes[object];
    int64_t at = (int64_t)below(5) * 8 - 8 + (below(4) ? 0 : below(16));
    offset_t place = offset_in_element(offset_exact(at), shape);
    if (!below(12)) place = offset_spread(place, below(4) ? 4u << below(3) : 12, below(2), shape);
    if (!below(12)) place = offset_add(place, (int64_t)below(5) * 8 - 16, shape);
    return place ? key_make(object, place) : random_key(); /* outside of the object */
}

/* --- the model --------------------------------------------------------------------------------------------------- */

/* Progressions: what the distances of all of them and the steps have in common. */
static uint64_t stride_of(const key_list *keys)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < keys->len; i++) {
        int64_t distance = offset_at(key_offset(keys->data[i])) - offset_at(key_offset(keys->data[0]));
        all = offset_gcd(all, offset_gcd((uint64_t)(distance < 0 ? -distance : distance), offset_step(key_offset(keys->data[i]))));
    }
    return all;
}

/* The smallest window, or the largest least place, that is around all. */
static uint32_t bound_of(const key_list *keys, const pta_shape *shape)
{
    uint32_t best = 0;
    for (uint32_t level = 1; level < (shape && shape->count ? shape->count : offset_level(OFFSET_LIMIT) + 1); level++) {
        bool around = true;
        for (uint32_t i = 0; i < keys->len && around; i++)
            around = offset_covers(offset_class(1, 0, level), key_offset(keys->data[i]), shape);
        if (around) best = level; /* inner ones come later */
    }
    return best;
}

static void close_object(const key_list *given, uint32_t object, key_list *out)
{
    key_list keys = {0};
    offset_t class = 0;
    for (uint32_t i = 0; i < given->len; i++) {
        if (key_object(given->data[i]) != object) continue;
        if (!offset_is_single(key_offset(given->data[i]))) class = key_offset(given->data[i]);
        uint32_t k = 0;
        while (k < keys.len && keys.data[k] != given->data[i])
            k++;
        if (k == keys.len) vec_push(&keys, given->data[i]);
    }
    uint64_t stride = stride_of(&keys);
    if (class || (keys.len > PTA_EXACT && stride < OFFSET_MAX_STRIDE)) {
        vec_push(out, key_make(object, offset_class(stride, offset_at(key_offset(keys.data[0])), bound_of(&keys, shapes[object]))));
    } else {
        for (uint32_t i = 0; i < keys.len; i++)
            vec_push(out, keys.data[i]);
    }
    vec_free(&keys);
}

static int by_value(const void *a, const void *b)
{
    pta_key x = *(const pta_key *)a, y = *(const pta_key *)b;
    return x < y ? -1 : x > y;
}

static void close_all(const key_list *given, key_list *out)
{
    vec_clear(out);
    for (uint32_t object = FIRST; object <= LAST; object++)
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
        for (uint64_t rank = 1; rank < 40; rank++) {
            vec_clear(&batch);
            for (uint32_t n = 1 + below(3); n; n--)
                vec_push(&batch, random_key());
            uint32_t count = batch.len;
            keys_sort(batch.data, &count);
            batch.len = count;
            for (uint32_t i = 0; i < batch.len; i++)
                TEST_ASSERT_EQUAL(!changes(&given, batch.data[i]), set_knows(&set, batch.data[i], world));
            pta_set before = {.keys = base_alloc(set.len * 8), .ranks = base_alloc(set.len * 8), .len = set.len};
            if (set.len) memcpy(before.keys, set.keys, set.len * 8), memcpy(before.ranks, set.ranks, set.len * 8);
            vec_clear(&added);
            set_add(&set, batch.data, batch.len, rank, world, &added);
            for (uint32_t i = 0; i < batch.len; i++)
                vec_push(&given, batch.data[i]);
            check_form(&set);
            close_all(&given, &expected);
            vec_clear(&normal);
            set_normal(&set, world, &normal);
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

static void shuffle(key_list *keys)
{
    for (uint32_t i = keys->len; i > 1; i--) {
        uint32_t k = below(i);
        pta_key key = keys->data[k];
        keys->data[k] = keys->data[i - 1];
        keys->data[i - 1] = key;
    }
}

static void add_slowly(pta_set *set, const key_list *keys)
{
    key_list added = {0};
    for (uint32_t i = 0; i < keys->len; i++)
        set_add(set, &keys->data[i], 1, 1, world, &added);
    vec_free(&added);
}

static void test_the_order_of_adding_does_not_matter(void)
{
    for (unsigned round = 0; round < 3000; round++) {
        pta_set once = {0}, slowly = {0}, shuffled = {0};
        key_list keys = {0}, added = {0}, a = {0}, b = {0}, c = {0}, expected = {0};
        for (uint32_t n = below(100); n; n--)
            vec_push(&keys, random_key());
        close_all(&keys, &expected);
        add_slowly(&slowly, &keys);
        shuffle(&keys);
        add_slowly(&shuffled, &keys);
        uint32_t count = keys.len;
        keys_sort(keys.data, &count);
        set_add(&once, keys.data, count, 1, world, &added);
        set_normal(&once, world, &a);
        set_normal(&slowly, world, &b);
        set_normal(&shuffled, world, &c);
        assert_equal(&expected, &a);
        assert_equal(&expected, &b);
        assert_equal(&expected, &c);
        set_free(&once);
        set_free(&slowly);
        set_free(&shuffled);
        vec_free(&keys);
        vec_free(&added);
        vec_free(&a);
        vec_free(&b);
        vec_free(&c);
        vec_free(&expected);
    }
}

/* As when components become one: the union of two closed sets, and what closes it. */
static void test_the_union_of_two_sets_is_closed_by_one_class(void)
{
    for (unsigned round = 0; round < 3000; round++) {
        key_list keys[2] = {0}, all = {0}, merged = {0}, added = {0}, expected = {0}, normal = {0};
        pta_set sets[2] = {0}, both = {0};
        for (unsigned side = 0; side < 2; side++) {
            for (uint32_t n = below(60); n; n--) {
                vec_push(&keys[side], random_key());
                vec_push(&all, keys[side].data[keys[side].len - 1]);
            }
            add_slowly(&sets[side], &keys[side]);
            for (uint32_t i = 0; i < sets[side].len; i++)
                vec_push(&merged, sets[side].keys[i]);
        }
        keys_sort(merged.data, &merged.len);
        close_all(&all, &expected);
        for (uint32_t i = 0, end; i < merged.len; i = end) {
            uint32_t object = key_object(merged.data[i]);
            for (end = i; end < merged.len && key_object(merged.data[end]) == object; end++)
                ;
            offset_t class = set_closure(merged.data + i, end - i, shapes[object]);
            for (uint32_t k = i; k < end && !class; k++)
                vec_push(&normal, merged.data[k]);
            if (class) vec_push(&normal, key_make(object, class));
        }
        assert_equal(&expected, &normal);
        set_add(&both, merged.data, merged.len, 1, world, &added);
        vec_clear(&normal);
        set_normal(&both, world, &normal);
        assert_equal(&expected, &normal);
        for (unsigned side = 0; side < 2; side++) {
            vec_free(&keys[side]);
            set_free(&sets[side]);
        }
        set_free(&both);
        vec_free(&all);
        vec_free(&merged);
        vec_free(&added);
        vec_free(&expected);
        vec_free(&normal);
    }
}

/* A set with loose classes of very many objects: one key stands for those that some wild pointer points into. Which these are is
 * not for the set to say; with all of them told in advance, order does not matter. */
static void test_very_many_loose_classes_are_one_key(void)
{
    for (unsigned round = 0; round < 200; round++) {
        uint32_t loose = 0, span = SET_WILD_AT / 2 + below(SET_WILD_AT + SET_WILD_AT / 2);
        pta_set slowly = {.tame = round % 5 == 0}, once = {.tame = slowly.tame};
        key_list keys = {0}, added = {0}, expected = {0}, a = {0}, b = {0};
        for (uint32_t object = LAST + 1; object <= MANY; object++)
            wild[object] = below(4) ? SET_IN_WILD : 0;
        for (uint32_t object = LAST + 1; object <= MANY && object - LAST <= span; object++) {
            bool is_loose = below(8);
            loose += is_loose;
            vec_push(&keys, key_make(object, is_loose ? offset_class(1u << below(4), 0, 0) : offset_exact(8)));
        }
        bool is_wild = loose > SET_WILD_AT && !slowly.tame;
        if (is_wild) vec_push(&expected, set_wild_key());
        for (uint32_t i = 0; i < keys.len; i++)
            if (!is_wild || !wild[key_object(keys.data[i])]) vec_push(&expected, keys.data[i]);
        set_add(&once, keys.data, keys.len, 1, world, &added);
        shuffle(&keys);
        add_slowly(&slowly, &keys);
        TEST_ASSERT_EQUAL(is_wild, set_is_wild(&once));
        set_normal(&once, world, &a);
        set_normal(&slowly, world, &b);
        assert_equal(&expected, &a);
        assert_equal(&expected, &b);
        check_form(&once);
        check_form(&slowly);
        for (uint32_t i = 0; i < keys.len; i++)
            TEST_ASSERT_TRUE(set_knows(&slowly, keys.data[i], world));
        set_count(&once);
        TEST_ASSERT_EQUAL_UINT32(loose, once.loose);
        set_free(&once);
        set_free(&slowly);
        vec_free(&keys);
        vec_free(&added);
        vec_free(&expected);
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
            set_add(&set, &key, 1, 1, world, &added);
        }
        for (uint32_t n = below(40); n; n--)
            vec_push(&keys, random_key());
        uint32_t count = keys.len, expected = 0;
        keys_sort(keys.data, &count);
        set_missing(&set, keys.data, count, world, &missing);
        for (uint32_t i = 0; i < count; i++) {
            if (set_knows(&set, keys.data[i], world)) continue;
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
            set_add(&set, &key, 1, rank, world, &added);
        }
        pta_set before = {.keys = base_alloc(set.len * 8), .ranks = base_alloc(set.len * 8), .len = set.len};
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
    for (uint32_t object = FIRST + 1; object <= FIRST + 7; object += 2) /* of any shape */
        for (int at = 0; at < 3; at++) {
            pta_key key = key_make(object, offset_exact(at * 8));
            set_add(&set, &key, 1, 1, world, &added);
        }
    for (uint32_t object = FIRST; object <= FIRST + 8; object++)
        TEST_ASSERT_EQUAL_UINT32((object - FIRST) / 2 * 3, set_group(&set, object));
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

/* Of equal keys the least reason stays, so that it does not depend on the order in which they came. */
static void test_keys_are_sorted_with_their_reasons(void)
{
    pta_key keys[200];
    uint32_t reasons[200], count = 200, least[20];
    memset(least, 0xff, sizeof least);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t which = below(20);
        keys[i] = key_make(3 + which, offset_exact(8));
        reasons[i] = 1000 - i;
        if (reasons[i] < least[which]) least[which] = reasons[i];
    }
    keys_sort_with(keys, reasons, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (i) TEST_ASSERT_TRUE(keys[i - 1] < keys[i]);
        TEST_ASSERT_EQUAL_UINT32(least[key_object(keys[i]) - 3], reasons[i]);
    }
}

/* A key that an edge brought has it as its reason; a class that several keys make has none. */
static void test_a_set_knows_the_reasons_of_its_keys(void)
{
    const pta_shape *shapes[4] = {NULL};
    uint8_t wild[4] = {0};
    set_world world = {shapes, wild, 48, true, 48};
    pta_set set = {0};
    key_list added = {0};
    pta_key one = key_make(3, offset_exact(16));
    uint32_t reason = 7;
    set_add_for(&set, &one, &reason, 1, 1, world, &added);
    TEST_ASSERT_EQUAL_UINT32(7, set.reasons[0]);
    for (int i = 3; i < 3 + PTA_EXACT; i++) {
        pta_key next = key_make(3, offset_exact(8 * i));
        reason = 10 + (uint32_t)i;
        set_add_for(&set, &next, &reason, 1, 2, world, &added);
    }
    uint32_t class = set.len - 1;
    TEST_ASSERT_FALSE(offset_is_single(key_offset(set.keys[class])));
    TEST_ASSERT_EQUAL_UINT32(SET_NO_REASON, set.reasons[class]);
    TEST_ASSERT_EQUAL_UINT32(7, set.reasons[0]);
    set_remove(&set, &one, 1);
    TEST_ASSERT_EQUAL_UINT32(13, set.reasons[0]);
    set_free(&set);
    vec_free(&added);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_adding_closes_what_was_given);
    RUN_TEST(test_the_order_of_adding_does_not_matter);
    RUN_TEST(test_the_union_of_two_sets_is_closed_by_one_class);
    RUN_TEST(test_very_many_loose_classes_are_one_key);
    RUN_TEST(test_what_is_missing_is_what_would_change_something);
    RUN_TEST(test_removing_takes_just_these_keys);
    RUN_TEST(test_a_group_begins_at_the_first_key_of_its_object);
    RUN_TEST(test_sorting_drops_repeated_keys);
    RUN_TEST(test_keys_are_sorted_with_their_reasons);
    RUN_TEST(test_a_set_knows_the_reasons_of_its_keys);
    return UNITY_END();
}
