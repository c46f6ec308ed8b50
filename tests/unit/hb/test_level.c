/* How far from its begin an origin runs what: hb_levels. */
#include "static/hb/level.h"

#include <stdlib.h>
#include <unity.h>

void setUp(void) {}
void tearDown(void) {}

enum { MAIN, A, B, C, CYCLE, TURN, BEHIND, SELF, THREAD, OTHER, COUNT };

static pta_call_edge edges[] = {
    {MAIN, A, 0},     {A, B, 1},         {MAIN, B, 2}, {B, C, 3},       {A, CYCLE, 4},   {CYCLE, TURN, 5},
    {TURN, CYCLE, 6}, {TURN, BEHIND, 7}, {A, SELF, 8}, {SELF, SELF, 9}, {C, THREAD, 10}, {OTHER, B, 11},
};
enum { EDGES = sizeof edges / sizeof *edges, SPAWN = 10 };

static uint16_t *levels_of(uint64_t *self)
{
    hb h = {.instance_count = COUNT, .edges = edges, .edge_count = EDGES};
    bool spawns[EDGES] = {[SPAWN] = true};
    uint32_t first[COUNT + 1] = {0}, in[EDGES], n = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        first[i] = n;
        for (uint32_t e = 0; e < EDGES; e++)
            if (edges[e].callee == i) in[n++] = e;
    }
    first[COUNT] = n;
    h.spawns = spawns;
    h.in_first = first;
    h.in_edge = in;
    vec_push(&h.origins, ((hb_origin){.instance = MAIN, .self = self}));
    uint16_t *levels = hb_levels(&h, 0);
    vec_free(&h.origins);
    return levels;
}

static void test_a_level_is_the_longest_chain_of_calls(void)
{
    uint64_t self = (1u << COUNT) - 1 - (1u << OTHER);
    uint16_t *levels = levels_of(&self);
    TEST_ASSERT_EQUAL(1, levels[MAIN]);
    TEST_ASSERT_EQUAL(2, levels[A]);
    TEST_ASSERT_EQUAL(3, levels[B]);
    TEST_ASSERT_EQUAL(4, levels[C]);
    free(levels);
}

static void test_what_takes_part_in_a_cycle_has_none_but_what_it_calls_has(void)
{
    uint64_t self = (1u << COUNT) - 1 - (1u << OTHER);
    uint16_t *levels = levels_of(&self);
    TEST_ASSERT_EQUAL(0, levels[CYCLE]);
    TEST_ASSERT_EQUAL(0, levels[TURN]);
    TEST_ASSERT_EQUAL(0, levels[SELF]);
    TEST_ASSERT_EQUAL(1, levels[BEHIND]);
    free(levels);
}

static void test_who_creates_a_thread_and_who_is_not_run_do_not_count(void)
{
    uint64_t self = (1u << COUNT) - 1 - (1u << OTHER) - (1u << A);
    uint16_t *levels = levels_of(&self);
    TEST_ASSERT_EQUAL(1, levels[THREAD]);
    TEST_ASSERT_EQUAL(2, levels[B]);
    TEST_ASSERT_EQUAL(0, levels[OTHER]);
    free(levels);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_level_is_the_longest_chain_of_calls);
    RUN_TEST(test_what_takes_part_in_a_cycle_has_none_but_what_it_calls_has);
    RUN_TEST(test_who_creates_a_thread_and_who_is_not_run_do_not_count);
    return UNITY_END();
}
