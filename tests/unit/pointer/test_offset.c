/* Places inside an object: every operation on all small places, against the sets of bytes that they mean. */
#include "static/pointer/offset.h"

#include <stdlib.h>
#include <unity.h>

enum { REACH = 6, STRIDES = 6, WINDOW = 120, PLACES = 2 * REACH + 1 + STRIDES * (STRIDES + 1) / 2 };

static offset_t places[PLACES];

void setUp(void)
{
    unsigned n = 0;
    for (int at = -REACH; at <= REACH; at++)
        places[n++] = offset_exact(at);
    for (int stride = 1; stride <= STRIDES; stride++)
        for (int residue = 0; residue < stride; residue++)
            places[n++] = offset_class((uint64_t)stride, residue);
    TEST_ASSERT_EQUAL_UINT(PLACES, n);
}

void tearDown(void) {}

/* The meaning: whether a byte is in a place. Written without offset.h's own arithmetic. */
static bool has(offset_t place, int64_t at)
{
    if (!(place >> 39)) return (int64_t)place - (1ll << 38) == at;
    int64_t stride = (int64_t)(place >> 19 & 0x7ffff), residue = (int64_t)(place & 0x7ffff);
    while (at < 0)
        at += stride * 1000;
    return at % stride == residue;
}

static bool includes(offset_t a, offset_t b)
{
    for (int at = -WINDOW; at <= WINDOW; at++)
        if (has(b, at) && !has(a, at)) return false;
    return true;
}

static bool intersects(offset_t a, offset_t b)
{
    for (int at = -WINDOW; at <= WINDOW; at++)
        if (has(a, at) && has(b, at)) return true;
    return false;
}

static void test_meeting_is_having_a_byte_in_common(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        for (unsigned k = 0; k < PLACES; k++)
            TEST_ASSERT_EQUAL(intersects(places[i], places[k]), offset_meet(places[i], places[k]));
}

static void test_covering_is_having_all_bytes(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        for (unsigned k = 0; k < PLACES; k++)
            TEST_ASSERT_EQUAL(includes(places[i], places[k]), offset_covers(places[i], places[k]));
}

static void test_a_join_is_the_smallest_class_over_both(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        for (unsigned k = 0; k < PLACES; k++) {
            offset_t both = offset_join(places[i], places[k]);
            TEST_ASSERT_TRUE(includes(both, places[i]));
            TEST_ASSERT_TRUE(includes(both, places[k]));
            TEST_ASSERT_EQUAL_UINT64(both, offset_join(places[k], places[i]));
            if (places[i] == places[k]) TEST_ASSERT_EQUAL_UINT64(places[i], both);
            for (int stride = 1; stride <= 3 * REACH && places[i] != places[k]; stride++)
                for (int residue = 0; residue < stride; residue++) {
                    offset_t other = offset_class((uint64_t)stride, residue);
                    if (includes(other, places[i]) && includes(other, places[k]))
                        TEST_ASSERT_TRUE(includes(other, both));
                }
        }
}

static void test_joining_does_not_depend_on_order(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        for (unsigned k = 0; k < PLACES; k++)
            for (unsigned m = 0; m < PLACES; m++)
                TEST_ASSERT_EQUAL_UINT64(offset_join(offset_join(places[i], places[k]), places[m]),
                                         offset_join(places[i], offset_join(places[k], places[m])));
}

static void test_adding_moves_each_byte(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        for (int by = -2 * REACH; by <= 2 * REACH; by++) {
            offset_t moved = offset_add(places[i], by);
            for (int at = -WINDOW; at <= WINDOW; at++)
                TEST_ASSERT_EQUAL(has(places[i], at - by), has(moved, at));
        }
}

static void test_spreading_reaches_multiples_of_the_stride(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        for (int stride = 1; stride <= STRIDES; stride++) {
            offset_t spread = offset_spread(places[i], (uint64_t)stride);
            for (int at = -STRIDES; at <= STRIDES; at++) {
                bool reached = false;
                for (int n = -WINDOW; n <= WINDOW; n++)
                    reached |= has(places[i], at + n * stride);
                TEST_ASSERT_EQUAL(reached, has(spread, at));
            }
        }
}

static void test_aligning_rounds_each_byte_down(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        for (int n = 1; n <= 16; n *= 2)
            for (int align = 1; align <= 16; align *= 2) {
                offset_t aligned = offset_align(places[i], (uint32_t)n, (uint32_t)align);
                /* The object may begin at any multiple of `align`; bytes of it are rounded as addresses. */
                for (int64_t start = 0; start < 16; start += align)
                    for (int at = -WINDOW / 2; at <= WINDOW / 2; at++)
                        if (has(places[i], at)) TEST_ASSERT_TRUE(has(aligned, ((start + at) & -(int64_t)n) - start));
                if (align >= n && offset_is_exact(places[i])) TEST_ASSERT_TRUE(offset_is_exact(aligned));
            }
}

static void test_what_does_not_fit_is_anywhere(void)
{
    offset_t anywhere = offset_class(1, 0);
    TEST_ASSERT_EQUAL_UINT64(anywhere, offset_exact(1ll << 40));
    TEST_ASSERT_EQUAL_UINT64(anywhere, offset_exact(-(1ll << 40)));
    TEST_ASSERT_EQUAL_UINT64(anywhere, offset_class(1 << 19, 5));
    TEST_ASSERT_EQUAL_UINT64(anywhere, offset_add(offset_exact((1 << 30) - 1), 1));
    TEST_ASSERT_EQUAL_INT64(-1, offset_value(offset_exact(-1)));
    TEST_ASSERT_EQUAL_UINT32(OFFSET_MAX_STRIDE, offset_stride(offset_class(OFFSET_MAX_STRIDE, -1)));
    TEST_ASSERT_EQUAL_UINT32(OFFSET_MAX_STRIDE - 1, offset_residue(offset_class(OFFSET_MAX_STRIDE, -1)));
}

static void test_a_key_is_an_object_and_a_place(void)
{
    for (unsigned i = 0; i < PLACES; i++) {
        pta_key key = key_make(OFFSET_MAX_OBJECTS - 1, places[i]);
        TEST_ASSERT_EQUAL_UINT32(OFFSET_MAX_OBJECTS - 1, key_object(key));
        TEST_ASSERT_EQUAL_UINT64(places[i], key_offset(key));
        if (offset_is_exact(places[i])) TEST_ASSERT_TRUE(key < key_make(OFFSET_MAX_OBJECTS - 1, offset_class(1, 0)));
        TEST_ASSERT_TRUE(key_make(5, places[i]) < key_make(6, places[0]));
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_meeting_is_having_a_byte_in_common);
    RUN_TEST(test_covering_is_having_all_bytes);
    RUN_TEST(test_a_join_is_the_smallest_class_over_both);
    RUN_TEST(test_joining_does_not_depend_on_order);
    RUN_TEST(test_adding_moves_each_byte);
    RUN_TEST(test_spreading_reaches_multiples_of_the_stride);
    RUN_TEST(test_aligning_rounds_each_byte_down);
    RUN_TEST(test_what_does_not_fit_is_anywhere);
    RUN_TEST(test_a_key_is_an_object_and_a_place);
    return UNITY_END();
}
