/* Pointers that march through an array become indices of what they start with. */
#include "static/pointer/generate.h"
#include "unity.h"

#include <stdlib.h>

enum { ARRAY = PTA_FIRST_LOCAL, P, NEXT, OTHER, VARS };

static generated out;

void setUp(void)
{
    out = (generated){.var_count = VARS};
}

void tearDown(void)
{
    generate_free(&out);
}

static void copy(uint32_t to, uint32_t from, int32_t delta, uint32_t stride)
{
    vec_push(&out.stmts, (pta_stmt){.kind = PTA_COPY, .dst = {to, 0}, .src = {from, delta}, .stride = stride});
}

static void load(uint32_t to, uint32_t from, int32_t delta)
{
    vec_push(&out.stmts, (pta_stmt){.kind = PTA_LOAD, .dst = {to, 0}, .src = {from, delta}});
}

/* How many statements copy so. */
static unsigned copies(uint32_t to, uint32_t from, int32_t delta, uint32_t stride)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < out.stmts.len; i++) {
        const pta_stmt *s = &out.stmts.data[i];
        count += s->kind == PTA_COPY && s->dst.var == to && s->src.var == from && s->src.delta == delta && s->stride == stride;
    }
    return count;
}

static const pta_stmt *the_load(void)
{
    for (uint32_t i = 0; i < out.stmts.len; i++)
        if (out.stmts.data[i].kind == PTA_LOAD) return &out.stmts.data[i];
    TEST_FAIL_MESSAGE("no load");
    return NULL;
}

static void a_pointer_that_is_incremented_is_an_index_of_its_start(void)
{
    copy(P, ARRAY, 16, PTA_SAME);
    copy(P, P, 40, PTA_SAME);
    load(OTHER, P, 8);
    generate_marches(&out);
    uint32_t entry = VARS, use = the_load()->src.var;
    TEST_ASSERT_EQUAL_INT(8, the_load()->src.delta);
    TEST_ASSERT_NOT_EQUAL(P, use);
    TEST_ASSERT_EQUAL_UINT(1, copies(entry, ARRAY, 16, PTA_SAME));
    TEST_ASSERT_EQUAL_UINT(1, copies(use, entry, 0, 40));
    TEST_ASSERT_EQUAL_UINT(3, out.stmts.len);
}

static void what_lies_a_turn_ahead_starts_there_or_at_the_start(void)
{
    copy(P, ARRAY, 0, PTA_SAME);
    copy(P, P, 40, PTA_SAME);
    load(OTHER, P, 72); /* the next element's byte 32 */
    generate_marches(&out);
    uint32_t use = the_load()->src.var;
    TEST_ASSERT_EQUAL_INT(32, the_load()->src.delta);
    TEST_ASSERT_EQUAL_UINT(1, copies(use, VARS, 40, 40));
    TEST_ASSERT_EQUAL_UINT(1, copies(use, VARS, 0, 40));
}

static void what_lies_before_is_a_turn_back(void)
{
    copy(P, ARRAY, 0, PTA_SAME);
    copy(P, P, 16, PTA_SAME);
    load(OTHER, P, -8);
    generate_marches(&out);
    TEST_ASSERT_EQUAL_INT(8, the_load()->src.delta);
    TEST_ASSERT_EQUAL_UINT(1, copies(the_load()->src.var, VARS, -16, 16));
}

static void the_stride_of_several_ways_around_divides_each(void)
{
    copy(P, ARRAY, 0, PTA_SAME);
    copy(NEXT, P, 24, PTA_SAME);
    copy(P, NEXT, 0, PTA_SAME);
    copy(P, P, 36, PTA_SAME);
    load(OTHER, NEXT, 0);
    generate_marches(&out);
    TEST_ASSERT_EQUAL_UINT(1, copies(the_load()->src.var, VARS, 24, 12));
}

static void what_is_loaded_or_returned_into_a_cycle_is_its_start(void)
{
    load(P, ARRAY, 0);
    copy(P, P, 8, PTA_SAME);
    vec_push(&out.calls, (pta_call){.func = 0, .ret = P, .ret2 = PTA_NO_VAR, .target = {PTA_NO_VAR, 0}});
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        out.calls.data[0].args[i] = (pta_operand){i == 0 ? P : PTA_NO_VAR, 0};
    vec_push(&out.stmts, (pta_stmt){.kind = PTA_CALL, .ref = GENERATE_LOCAL | 0});
    generate_marches(&out);
    TEST_ASSERT_EQUAL_UINT(VARS, the_load()->dst.var);
    TEST_ASSERT_EQUAL_UINT(VARS, out.calls.data[0].ret);
    TEST_ASSERT_EQUAL_UINT(1, copies(out.calls.data[0].args[0].var, VARS, 0, 8));
}

static void accesses_are_of_what_the_cycle_became(void)
{
    copy(P, ARRAY, 0, PTA_SAME);
    copy(P, P, 8, PTA_SAME);
    vec_push(&out.accesses, (pta_access){.base = {P, 0}});
    generate_marches(&out);
    TEST_ASSERT_EQUAL_UINT(1, copies(out.accesses.data[0].base.var, VARS, 0, 8));
}

static void unchanged(void)
{
    uint32_t count = out.stmts.len;
    generate_marches(&out);
    TEST_ASSERT_EQUAL_UINT(count, out.stmts.len);
    TEST_ASSERT_EQUAL_UINT(P, the_load()->src.var);
    TEST_ASSERT_EQUAL_UINT(VARS, out.var_count);
}

static void a_pointer_that_goes_down_stays_as_it_is(void) /* it may start behind the end of its array */
{
    copy(P, ARRAY, 0, PTA_SAME);
    copy(P, P, -8, PTA_SAME);
    load(OTHER, P, 0);
    unchanged();
}

static void copies_in_a_circle_stay_as_they_are(void)
{
    copy(P, ARRAY, 0, PTA_SAME);
    copy(NEXT, P, 0, PTA_SAME);
    copy(P, NEXT, 0, PTA_SAME);
    load(OTHER, P, 0);
    unchanged();
}

static void a_cycle_through_memory_is_none(void)
{
    copy(P, ARRAY, 8, PTA_SAME);
    load(P, P, 8);
    unchanged();
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(a_pointer_that_is_incremented_is_an_index_of_its_start);
    RUN_TEST(what_lies_a_turn_ahead_starts_there_or_at_the_start);
    RUN_TEST(what_lies_before_is_a_turn_back);
    RUN_TEST(the_stride_of_several_ways_around_divides_each);
    RUN_TEST(what_is_loaded_or_returned_into_a_cycle_is_its_start);
    RUN_TEST(accesses_are_of_what_the_cycle_became);
    RUN_TEST(a_pointer_that_goes_down_stays_as_it_is);
    RUN_TEST(copies_in_a_circle_stay_as_they_are);
    RUN_TEST(a_cycle_through_memory_is_none);
    return UNITY_END();
}
