/* Shapes from types: which windows there are, what an index may reach, and which words may hold a pointer. The types are made by
 * hand, as DWARF would give them, and some as it should not. */
#include "static/pointer/shape.h"

#include <stdlib.h>
#include <unity.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define STRUCT(bytes, ...)                                                                                             \
    (&(image_type){.kind = IMAGE_TYPE_STRUCT, .size = (bytes), .members = (image_member[]){__VA_ARGS__},               \
                   .member_count = COUNT(((image_member[]){__VA_ARGS__}))})
#define UNION(bytes, ...)                                                                                              \
    (&(image_type){.kind = IMAGE_TYPE_UNION, .size = (bytes), .members = (image_member[]){__VA_ARGS__},                \
                   .member_count = COUNT(((image_member[]){__VA_ARGS__}))})
#define ARRAY(n, of) (&(image_type){.kind = IMAGE_TYPE_ARRAY, .size = (n) * (of)->size, .count = (n), .target = (of)})
#define AT(place, what) {.name = "", .offset = (place), .type = (what)}

static const image_type byte = {.kind = IMAGE_TYPE_INT, .size = 1}, number = {.kind = IMAGE_TYPE_INT, .size = 4},
                        word = {.kind = IMAGE_TYPE_INT, .size = 8}, real = {.kind = IMAGE_TYPE_FLOAT, .size = 8},
                        truth = {.kind = IMAGE_TYPE_BOOL, .size = 1}, colour = {.kind = IMAGE_TYPE_ENUM, .size = 4},
                        pointer = {.kind = IMAGE_TYPE_POINTER, .size = 8}, other = {.kind = IMAGE_TYPE_OTHER, .size = 8};

static arena memory;

void setUp(void) {}

void tearDown(void)
{
    arena_free(&memory);
}

static const pta_shape *build(const image_type *type)
{
    return shape_build(&memory, type, 0, 0);
}

/* Nested or apart, outer before inner: what joining and covering stand on. */
static void check_laminar(const pta_shape *shape)
{
    TEST_ASSERT_TRUE(shape->count <= SHAPE_WINDOWS);
    for (uint32_t i = 1; i < shape->count; i++) {
        const shape_window *w = &shape->windows[i], *outer = &shape->windows[w->parent];
        TEST_ASSERT_TRUE(w->parent < i);
        TEST_ASSERT_TRUE(w->start < w->end && w->start >= outer->start && w->end <= outer->end);
        for (uint32_t k = 1; k < i; k++)
            if (!shape_holds(shape, k, i))
                TEST_ASSERT_TRUE(w->end <= shape->windows[k].start || w->start >= shape->windows[k].end);
    }
}

static void has_windows(const pta_shape *shape, uint32_t count, const shape_window *windows)
{
    check_laminar(shape);
    TEST_ASSERT_EQUAL_UINT32(count, shape->count);
    for (uint32_t i = 0; i < count; i++) {
        TEST_ASSERT_EQUAL_INT32(windows[i].start, shape->windows[i].start);
        TEST_ASSERT_EQUAL_INT32(windows[i].end, shape->windows[i].end);
        TEST_ASSERT_EQUAL_UINT8(windows[i].parent, shape->windows[i].parent);
    }
}

#define ALL {0, INT32_MAX, 0}
#define WINDOWS(shape, ...)                                                                                            \
    has_windows(shape, COUNT(((shape_window[]){ALL, __VA_ARGS__})), (shape_window[]){ALL, __VA_ARGS__})
#define NO_WINDOWS(shape) has_windows(shape, 1, (shape_window[]){ALL})

/* --- windows ----------------------------------------------------------------------------------------------------- */

static void test_of_nothing_nothing_is_known(void)
{
    TEST_ASSERT_NULL(build(NULL));
    const pta_shape *sized = shape_build(&memory, NULL, 24, 72);
    TEST_ASSERT_EQUAL_UINT32(24, sized->element);
    TEST_ASSERT_EQUAL_UINT64(72, sized->total);
    TEST_ASSERT_EQUAL_UINT32(0, sized->count);
    TEST_ASSERT_EQUAL_UINT32(0, build(STRUCT(0, AT(0, ARRAY(4, &word))))->count);
    TEST_ASSERT_EQUAL_UINT32(0, build(STRUCT(1ull << 40, AT(0, ARRAY(4, &word))))->count);
}

static void test_arrays_and_structs_are_windows(void)
{
    image_type *inner = STRUCT(40, AT(0, &word), AT(8, ARRAY(3, &word)), AT(32, &pointer));
    image_type *outer = STRUCT(96, AT(0, ARRAY(4, &number)), AT(16, &word), AT(24, inner), AT(64, ARRAY(20, &byte)), AT(88, &word));
    WINDOWS(build(outer), {0, 16, 0}, {24, 64, 0}, {32, 56, 2}, {64, 84, 0});
    TEST_ASSERT_EQUAL_PTR(outer, build(outer)->type);
}

static void test_small_things_are_no_windows(void)
{
    NO_WINDOWS(build(STRUCT(32, AT(0, ARRAY(2, &number)), AT(8, STRUCT(8, AT(0, &number), AT(4, &number))),
                            AT(16, UNION(8, AT(0, &word))), AT(24, &word))));
}

static void test_the_elements_of_an_array_are_one_window(void)
{
    image_type *pair = STRUCT(24, AT(0, ARRAY(2, &word)), AT(16, &pointer));
    WINDOWS(build(STRUCT(88, AT(0, &word), AT(8, ARRAY(3, pair)), AT(80, &word))), {8, 80, 0});
    NO_WINDOWS(build(ARRAY(10, pair)));
}

static void test_a_union_is_one_window(void)
{
    image_type *views = UNION(32, AT(0, ARRAY(4, &word)), AT(0, STRUCT(24, AT(0, ARRAY(12, &byte)), AT(16, &word))));
    WINDOWS(build(STRUCT(48, AT(0, &word), AT(8, views), AT(40, &word))), {8, 40, 0});
    NO_WINDOWS(build(views));
}

static void test_an_array_at_the_end_is_as_long_as_was_allocated(void)
{
    image_type *big = STRUCT(24, AT(0, &word), AT(8, &word), AT(16, &word));
    WINDOWS(build(STRUCT(8, AT(0, &word), AT(8, ARRAY(0, &word)))), {8, INT32_MAX, 0});
    WINDOWS(build(STRUCT(32, AT(0, &word), AT(8, ARRAY(1, big)))), {8, INT32_MAX, 0});
    WINDOWS(build(STRUCT(12, AT(0, &word), AT(8, ARRAY(4, &byte)))), {8, INT32_MAX, 0});
    /* also when padding follows, and through structs that end with one */
    image_type *padded = STRUCT(32, AT(0, &word), AT(8, ARRAY(1, STRUCT(20, AT(0, &number)))));
    WINDOWS(build(padded), {8, INT32_MAX, 0});
    WINDOWS(build(STRUCT(48, AT(0, &word), AT(16, padded))), {16, INT32_MAX, 0}, {24, INT32_MAX, 1});
    /* not where another member follows */
    WINDOWS(build(STRUCT(56, AT(0, &word), AT(16, padded), AT(48, &word))), {16, 48, 0}, {24, 48, 1});
    WINDOWS(build(STRUCT(40, AT(0, &word), AT(8, ARRAY(1, big)), AT(32, &word))), {8, 32, 0});
}

static void test_bit_fields_and_unknown_members_are_passed_over(void)
{
    image_member odd[] = {{.name = "bits", .bit_size = 3, .type = ARRAY(4, &word)}, {.name = "unknown", .offset = 8},
                          AT(16, ARRAY(2, &word)), AT(32, &word)};
    WINDOWS(build(&(image_type){.kind = IMAGE_TYPE_STRUCT, .size = 40, .members = odd, .member_count = 4}), {16, 32, 0});
}

static void test_there_are_only_so_many_windows(void)
{
    enum { MANY = 300 };
    image_member members[MANY];
    const image_type *pair = ARRAY(2, &word);
    for (unsigned i = 0; i < MANY; i++)
        members[i] = (image_member)AT(16 * i, pair);
    const pta_shape *shape =
        build(&(image_type){.kind = IMAGE_TYPE_STRUCT, .size = 16 * MANY, .members = members, .member_count = MANY});
    check_laminar(shape);
    TEST_ASSERT_EQUAL_UINT32(SHAPE_WINDOWS, shape->count);
    TEST_ASSERT_EQUAL_UINT32(3, shape_indexed(shape, 40));
    TEST_ASSERT_EQUAL_UINT32(0, shape_indexed(shape, 16 * (MANY - 1)));
    for (uint32_t at = 0; at < 16 * MANY; at++) /* what has none is in no other */
        TEST_ASSERT_EQUAL_UINT32(at / 16 + 1 < SHAPE_WINDOWS ? at / 16 + 1 : 0, shape_around(shape, at));
}

static void test_structs_in_structs_end_somewhere(void)
{
    const image_type *type = STRUCT(16, AT(0, ARRAY(2, &word)));
    image_member members[40][2];
    image_type types[40];
    for (unsigned i = 0; i < 40; i++) {
        members[i][0] = (image_member)AT(0, &word);
        members[i][1] = (image_member)AT(16, type);
        types[i] = (image_type){.kind = IMAGE_TYPE_STRUCT, .size = type->size + 16, .members = members[i], .member_count = 2};
        type = &types[i];
    }
    check_laminar(build(type));
    TEST_ASSERT_TRUE(build(type)->count > 10);
}

/* struct base { long a; int b; } of 16 bytes; struct derived : base { int more[5]; } puts `more` at 12. */
static void test_what_crosses_has_no_windows(void)
{
    image_type *base = STRUCT(16, AT(0, &word), AT(8, &number));
    NO_WINDOWS(build(STRUCT(48, AT(0, base), AT(12, ARRAY(5, &number)), AT(32, ARRAY(2, &word)))));
    NO_WINDOWS(build(STRUCT(48, AT(12, ARRAY(5, &number)), AT(0, base), AT(32, ARRAY(2, &word)))));
    NO_WINDOWS(build(STRUCT(40, AT(0, base), AT(12, ARRAY(2, &number)), AT(24, ARRAY(2, &word))))); /* a small one */
    /* of an inner struct, only that one has none inside */
    image_type *crossed = STRUCT(40, AT(0, base), AT(12, ARRAY(5, &number)), AT(32, &word));
    WINDOWS(build(STRUCT(96, AT(0, &word), AT(8, crossed), AT(48, ARRAY(3, &word)), AT(80, &word))), {8, 48, 0}, {48, 72, 0});
    /* in the padding altogether: that of the base is around it */
    WINDOWS(build(STRUCT(48, AT(0, base), AT(12, ARRAY(4, &byte)), AT(24, ARRAY(2, &word)), AT(40, &word))), {0, 16, 0}, {24, 40, 0});
}

static void test_hostile_offsets_are_passed_over(void)
{
    static const uint64_t odd[] = {INT32_MAX - 4, INT32_MAX, UINT32_MAX, INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 15};
    for (unsigned i = 0; i < COUNT(odd); i++)
        for (unsigned k = 0; k < COUNT(odd); k++) {
            image_type far = {.kind = IMAGE_TYPE_ARRAY, .size = odd[k], .count = 2, .target = &word};
            image_type *inner = STRUCT(24, AT(8, ARRAY(2, &word)), AT(odd[i], &far));
            check_laminar(build(STRUCT(100, AT(16, inner), AT(odd[i], &far), AT(odd[i], inner), AT(64, ARRAY(4, &word)))));
        }
    image_member own[2] = {AT(8, NULL), AT(16, &word)};
    image_type itself = {.kind = IMAGE_TYPE_STRUCT, .size = 64, .members = own, .member_count = 2};
    own[0].type = &itself; /* a struct that holds itself */
    check_laminar(build(&itself));
    TEST_ASSERT_TRUE(shape_may_point(build(&itself), 8 * 20));
}

/* --- what an index leads through --------------------------------------------------------------------------------- */

static void test_an_index_leads_through_the_largest_thing_that_begins_there(void)
{
    image_type *inner = STRUCT(40, AT(0, ARRAY(3, &word)), AT(24, ARRAY(2, &word)));
    const pta_shape *shape = build(STRUCT(80, AT(0, ARRAY(2, &word)), AT(16, inner), AT(56, &word), AT(64, &word)));
    WINDOWS(shape, {0, 16, 0}, {16, 56, 0}, {16, 40, 2}, {40, 56, 2});
    static const struct {
        int64_t at;
        uint32_t around, indexed;
    } expected[] = {{0, 1, 0},  {1, 1, 1},  {15, 1, 1}, {16, 3, 2}, {17, 3, 3}, {39, 3, 3},
                    {40, 4, 4}, {48, 4, 4}, {56, 0, 0}, {64, 0, 0}, {-8, 0, 0}, {1000, 0, 0}};
    for (unsigned i = 0; i < COUNT(expected); i++) {
        TEST_ASSERT_EQUAL_UINT32(expected[i].around, shape_around(shape, expected[i].at));
        TEST_ASSERT_EQUAL_UINT32(expected[i].indexed, shape_indexed(shape, expected[i].at));
    }
    for (uint32_t a = 0; a < shape->count; a++)
        for (uint32_t b = 0; b < shape->count; b++) {
            uint32_t both = shape_join(shape, a, b);
            TEST_ASSERT_TRUE(shape_holds(shape, both, a) && shape_holds(shape, both, b));
            for (uint32_t c = 0; c < shape->count; c++)
                if (shape_holds(shape, c, a) && shape_holds(shape, c, b)) TEST_ASSERT_TRUE(shape_holds(shape, c, both));
        }
}

/* --- where pointers may be --------------------------------------------------------------------------------------- */

static bool may_point(const image_type *type, int64_t at)
{
    return shape_may_point(build(type), at);
}

static void test_numbers_hold_no_pointers(void)
{
    image_member members[] = {AT(0, &word),  AT(8, &real),    AT(16, &colour),
                              AT(20, &truth), AT(24, &pointer), {.name = "u", .offset = 32, .is_address = true, .type = &word},
                              AT(40, &other), {.name = "bits", .offset = 48, .bit_size = 5, .type = &number}};
    image_type type = {.kind = IMAGE_TYPE_STRUCT, .size = 64, .members = members, .member_count = COUNT(members)};
    static const bool expected[] = {false, false, false, true, true, true, false, true}; /* by word; the last is padding */
    for (unsigned i = 0; i < COUNT(expected); i++)
        TEST_ASSERT_EQUAL_MESSAGE(expected[i], may_point(&type, 8 * i), "word");
    TEST_ASSERT_TRUE(may_point(&type, 64)); /* behind it */
    TEST_ASSERT_TRUE(may_point(&type, -8));
}

static void test_what_is_not_known_may_point(void)
{
    TEST_ASSERT_TRUE(shape_may_point(NULL, 0));
    TEST_ASSERT_TRUE(shape_may_point(shape_build(&memory, NULL, 24, 0), 0));
    TEST_ASSERT_TRUE(may_point(&word, 0)); /* by itself: only members are declared on purpose */
    TEST_ASSERT_TRUE(may_point(STRUCT(16, {.name = "", .offset = 8}), 8));
    TEST_ASSERT_TRUE(may_point(ARRAY(4, &(image_type){.kind = IMAGE_TYPE_STRUCT}), 0)); /* elements of no size */
    TEST_ASSERT_TRUE(may_point(&(image_type){.kind = IMAGE_TYPE_ARRAY, .size = 8, .count = 1}, 0));
}

static void test_bytes_may_hold_anything(void)
{
    TEST_ASSERT_TRUE(may_point(STRUCT(64, AT(0, ARRAY(64, &byte))), 8));
    TEST_ASSERT_FALSE(may_point(STRUCT(64, AT(0, ARRAY(16, &number))), 8));
    TEST_ASSERT_FALSE(may_point(STRUCT(64, AT(0, ARRAY(8, &word))), 8));
    TEST_ASSERT_FALSE(may_point(STRUCT(64, AT(0, ARRAY(8, &real))), 8));
    TEST_ASSERT_FALSE(may_point(STRUCT(64, AT(0, ARRAY(64, &truth))), 8));
    TEST_ASSERT_TRUE(may_point(STRUCT(64, AT(0, ARRAY(8, &pointer))), 8));
}

static void test_elements_are_all_alike(void)
{
    image_type *pair = STRUCT(16, AT(0, &word), AT(8, &pointer));
    image_type *outer = STRUCT(72, AT(0, &pointer), AT(8, ARRAY(4, pair)));
    for (int i = 0; i < 4; i++) {
        TEST_ASSERT_FALSE(may_point(outer, 8 + 16 * i));
        TEST_ASSERT_TRUE(may_point(outer, 16 + 16 * i));
        TEST_ASSERT_FALSE(may_point(ARRAY(4, pair), 16 * i));
    }
}

static void test_one_view_of_a_union_is_enough(void)
{
    TEST_ASSERT_TRUE(may_point(STRUCT(8, AT(0, UNION(8, AT(0, &word), AT(0, &pointer)))), 0));
    TEST_ASSERT_FALSE(may_point(STRUCT(8, AT(0, UNION(8, AT(0, &word), AT(0, &real)))), 0));
    TEST_ASSERT_TRUE(may_point(STRUCT(8, AT(0, UNION(8, AT(0, &real), {.name = "u", .is_address = true, .type = &word}))), 0));
    /* bytes beside another view are only bytes; alone they may hold anything */
    TEST_ASSERT_FALSE(may_point(STRUCT(8, AT(0, UNION(8, AT(0, ARRAY(8, &byte)), AT(0, &word)))), 0));
    TEST_ASSERT_TRUE(may_point(STRUCT(8, AT(0, UNION(8, AT(0, ARRAY(8, &byte)))), AT(8, &word)), 0));
    /* views of different sizes: behind the shorter ones only the longer ones count */
    image_type *uneven = UNION(24, AT(0, &word), AT(0, STRUCT(24, AT(0, &word), AT(8, &pointer), AT(16, &real))));
    TEST_ASSERT_FALSE(may_point(STRUCT(24, AT(0, uneven)), 0));
    TEST_ASSERT_TRUE(may_point(STRUCT(24, AT(0, uneven)), 8));
    TEST_ASSERT_FALSE(may_point(STRUCT(24, AT(0, uneven)), 16));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_of_nothing_nothing_is_known);
    RUN_TEST(test_arrays_and_structs_are_windows);
    RUN_TEST(test_small_things_are_no_windows);
    RUN_TEST(test_the_elements_of_an_array_are_one_window);
    RUN_TEST(test_a_union_is_one_window);
    RUN_TEST(test_an_array_at_the_end_is_as_long_as_was_allocated);
    RUN_TEST(test_bit_fields_and_unknown_members_are_passed_over);
    RUN_TEST(test_there_are_only_so_many_windows);
    RUN_TEST(test_structs_in_structs_end_somewhere);
    RUN_TEST(test_what_crosses_has_no_windows);
    RUN_TEST(test_hostile_offsets_are_passed_over);
    RUN_TEST(test_an_index_leads_through_the_largest_thing_that_begins_there);
    RUN_TEST(test_numbers_hold_no_pointers);
    RUN_TEST(test_what_is_not_known_may_point);
    RUN_TEST(test_bytes_may_hold_anything);
    RUN_TEST(test_elements_are_all_alike);
    RUN_TEST(test_one_view_of_a_union_is_enough);
    return UNITY_END();
}
