/* What leaves an object: a pointer that can lead into it again is kept, by whatever steps, and one that cannot is lost. Asked of
 * the analysis of a program that is made of statements by hand. */
#include "static/pointer/offset.h"
#include "static/pointer/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unity.h>

enum { SIZE = 64, FIRST = 1 << 20 };

static pta_program *program;
static pta *analysis;
static uint32_t func, object;
static pta_places found;

void setUp(void)
{
    lift_module *none[1] = {NULL};
    program = pta_program_open(none, 0, 1);
    func = program_add_func(program, "test", NULL, 0);
    program->funcs.data[func].root = true;
}

void tearDown(void)
{
    pta_close(analysis);
    analysis = NULL;
    pta_program_close(program);
    vec_free(&found);
}

static void make_object(uint64_t size, bool open)
{
    object = program->sites.len;
    program_add_site(program, (pta_site){.kind = PTA_STATIC, .func = PTA_NO_FUNC, .start = FIRST, .size = size, .memory = object,
                                         .align = 16, .open = open, .name = "object"});
}

/* A variable that points to a place of the object; with a stride, to its multiples from there on. */
static uint32_t pointer(int32_t at, uint32_t stride)
{
    uint32_t var = program_new_var(program, func);
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, at}, .ref = object,
                                               .stride = stride});
    return var;
}

static uint32_t moved(uint32_t from, int32_t delta, uint32_t stride)
{
    uint32_t var = program_new_var(program, func);
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_COPY, .dst = {var, 0}, .src = {from, delta}, .stride = stride});
    return var;
}

static void solve(void)
{
    race_error error;
    pta_options options = {.jobs = 1};
    TEST_ASSERT_EQUAL_INT(0, pta_open(program, &options, &analysis, &error));
}

static uint32_t places_of(uint32_t var)
{
    pta_points_to(analysis, func, (pta_operand){var, 0}, PTA_SAME, &found);
    return found.len;
}

static bool leads_to(int64_t at)
{
    for (uint32_t i = 0; i < found.len; i++) {
        const pta_place *p = &found.data[i];
        if (p->exact ? p->offset == at : at % p->stride == p->offset && at >= p->least && at < p->end) return true;
    }
    return false;
}

/* An index that starts behind the end and only goes up leads nowhere; one that may go down comes back. */
static void test_an_index_from_behind_the_end_is_lost_unless_it_goes_back(void)
{
    make_object(SIZE, false);
    uint32_t start = pointer(0, PTA_SAME);
    uint32_t last = moved(start, SIZE - 8, 8), end = moved(start, SIZE, 8), behind = moved(start, SIZE + 800, 8);
    uint32_t back = moved(start, SIZE, 8 | PTA_BACK), far_back = moved(start, SIZE + 800, 8 | PTA_BACK);
    solve();
    TEST_ASSERT_EQUAL_UINT32(1, places_of(last));
    TEST_ASSERT_TRUE(leads_to(SIZE - 8));
    TEST_ASSERT_EQUAL_UINT32(0, places_of(end));
    TEST_ASSERT_EQUAL_UINT32(0, places_of(behind));
    TEST_ASSERT_EQUAL_UINT32(1, places_of(back));
    TEST_ASSERT_TRUE(leads_to(0) && leads_to(SIZE - 8));
    TEST_ASSERT_EQUAL_UINT32(1, places_of(far_back));
}

static void test_an_index_from_before_the_start_leads_in(void)
{
    make_object(SIZE, false);
    uint32_t before = moved(pointer(0, PTA_SAME), -24, 8);
    solve();
    TEST_ASSERT_EQUAL_UINT32(1, places_of(before));
    TEST_ASSERT_TRUE(leads_to(0) && leads_to(SIZE - 8));
}

static void test_constants_cancel_out_wherever_they_lead(void)
{
    make_object(SIZE, false);
    uint32_t there = moved(pointer(8, PTA_SAME), SIZE + 100, PTA_SAME), again = moved(there, -(SIZE + 100), PTA_SAME);
    uint32_t below = moved(pointer(8, PTA_SAME), -100, PTA_SAME), up = moved(below, 100, PTA_SAME);
    solve();
    TEST_ASSERT_EQUAL_UINT32(1, places_of(again));
    TEST_ASSERT_TRUE(leads_to(8));
    TEST_ASSERT_EQUAL_UINT32(1, places_of(up));
    TEST_ASSERT_TRUE(leads_to(8));
}

/* Where a class begins is not known: only what is further than the object is large, and what a pointer may be outside of it, is
 * lost of it. */
static void test_a_class_is_lost_when_all_of_it_is(void)
{
    enum { FURTHEST = SIZE + OFFSET_SLACK };
    make_object(SIZE, false);
    uint32_t class = pointer(0, 8);
    uint32_t kept = moved(class, FURTHEST, PTA_SAME), lost = moved(class, FURTHEST + 8, PTA_SAME);
    uint32_t indexed = moved(class, FURTHEST + 8, 8), back = moved(class, FURTHEST + 8, 8 | PTA_BACK);
    uint32_t down = moved(class, -FURTHEST, PTA_SAME), below = moved(class, -FURTHEST - 8, PTA_SAME);
    uint32_t up = moved(class, -FURTHEST - 8, 8);
    solve();
    TEST_ASSERT_EQUAL_UINT32(1, places_of(class));
    TEST_ASSERT_EQUAL_UINT32(1, places_of(kept));
    TEST_ASSERT_EQUAL_UINT32(0, places_of(lost));
    TEST_ASSERT_EQUAL_UINT32(0, places_of(indexed));
    TEST_ASSERT_EQUAL_UINT32(1, places_of(back));
    TEST_ASSERT_EQUAL_UINT32(1, places_of(down));
    TEST_ASSERT_EQUAL_UINT32(0, places_of(below));
    TEST_ASSERT_EQUAL_UINT32(1, places_of(up));
}

static void test_nothing_is_lost_of_an_object_whose_end_is_not_known(void)
{
    for (int open = 0; open < 2; open++) {
        make_object(open ? SIZE : 0, open);
        uint32_t far = moved(pointer(0, PTA_SAME), 5000, 8), class = moved(pointer(0, 8), 5000, PTA_SAME);
        solve();
        TEST_ASSERT_EQUAL_UINT32(1, places_of(far));
        TEST_ASSERT_EQUAL_UINT32(1, places_of(class));
        pta_close(analysis);
        analysis = NULL;
    }
}

/* From each place, by each constant and index: each byte of the object that can be reached is in the set. */
static void test_what_can_be_reached_is_not_lost(void)
{
    static const uint32_t strides[] = {PTA_SAME, 1, 8, 12, 24, 1 | PTA_BACK, 8 | PTA_BACK, 12 | PTA_BACK, 8 | PTA_BLOCK};
    enum { STRIDES = sizeof strides / sizeof *strides, STARTS = 9, DELTAS = 24 };
    static uint32_t vars[STARTS][DELTAS][STRIDES];
    make_object(SIZE, false);
    for (int s = 0; s < STARTS; s++) {
        uint32_t from = pointer(8 * s, PTA_SAME);
        for (int d = 0; d < DELTAS; d++)
            for (unsigned i = 0; i < STRIDES; i++)
                vars[s][d][i] = moved(from, 8 * (d - DELTAS / 2), strides[i]);
    }
    solve();
    for (int s = 0; s < STARTS; s++)
        for (int d = 0; d < DELTAS; d++)
            for (unsigned i = 0; i < STRIDES; i++) {
                int64_t step = strides[i] & ~(uint32_t)PTA_FLAGS, at = 8 * s + 8 * (d - DELTAS / 2);
                places_of(vars[s][d][i]);
                for (int n = strides[i] & PTA_BACK ? -300 : 0; n <= (step ? 300 : 0); n++) {
                    int64_t to = at + n * step;
                    if (to < 0 || to >= SIZE || leads_to(to)) continue;
                    char message[120];
                    snprintf(message, sizeof message, "from %d, %+d, stride %x: %d is lost", 8 * s, 8 * (d - DELTAS / 2), strides[i],
                             (int)to);
                    TEST_FAIL_MESSAGE(message);
                }
            }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_an_index_from_behind_the_end_is_lost_unless_it_goes_back);
    RUN_TEST(test_an_index_from_before_the_start_leads_in);
    RUN_TEST(test_constants_cancel_out_wherever_they_lead);
    RUN_TEST(test_a_class_is_lost_when_all_of_it_is);
    RUN_TEST(test_nothing_is_lost_of_an_object_whose_end_is_not_known);
    RUN_TEST(test_what_can_be_reached_is_not_lost);
    return UNITY_END();
}
