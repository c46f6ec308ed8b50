/* Dominators against their definition: a dominates b when b cannot be reached from the entry without a. */
#include "graph_fixture.h"

#include "unity.h"

void setUp(void) {}
void tearDown(void) {}

static void check_against_definition(ir_func *ir)
{
    const lift_func *f = ir->func;
    uint32_t n = f->block_count;
    bool *reachable = base_alloc(n), *without = base_alloc(n);
    fixture_reach(f, 0, UINT32_MAX, false, reachable);
    uint32_t count = 0, *above = base_alloc_zero(n, sizeof *above); /* how many dominate a block */
    for (uint32_t a = 0; a < n; a++) {
        count += reachable[a];
        fixture_reach(f, 0, a, false, without);
        for (uint32_t b = 0; b < n; b++) {
            bool dominates = a == b || (reachable[a] && reachable[b] && !without[b]);
            TEST_ASSERT_EQUAL(dominates, ir_dominates(ir, a, b));
            above[b] += dominates;
        }
    }
    TEST_ASSERT_EQUAL_UINT32(count, ir->rpo_count);
    for (uint32_t b = 0; b < n; b++) {
        uint32_t idom = ir->blocks[b].idom;
        if (!reachable[b] || b == 0) {
            TEST_ASSERT_EQUAL_UINT32(b, idom);
        } else { /* the strict dominator that all others dominate has one less above it */
            TEST_ASSERT_TRUE(idom != b && ir_dominates(ir, idom, b));
            TEST_ASSERT_EQUAL_UINT32(above[b] - 1, above[idom]);
        }
        if (!reachable[b]) {
            TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, ir->blocks[b].rpo);
        } else {
            TEST_ASSERT_EQUAL_UINT32(b, ir->rpo[ir->blocks[b].rpo]);
            TEST_ASSERT_TRUE(b == 0 ? ir->blocks[b].rpo == 0 : ir->blocks[idom].rpo < ir->blocks[b].rpo);
        }
    }
    free(reachable);
    free(without);
    free(above);
}

static void random_graphs_agree_with_the_definition(void)
{
    uint64_t random = 1;
    for (int round = 0; round < 4000; round++) {
        uint32_t n = 1 + fixture_random(&random) % 14, m = fixture_random(&random) % (2 * n + 2);
        fixture_edge edges[32];
        for (uint32_t e = 0; e < m; e++)
            edges[e] = (fixture_edge){fixture_random(&random) % n, fixture_random(&random) % n};
        ir_func *ir = fixture_open(n, edges, m);
        ir_dominators(ir);
        check_against_definition(ir);
        fixture_close(ir);
    }
}

static void a_diamond_with_a_loop_and_an_unreachable_block(void)
{
    static const fixture_edge edges[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {4, 3}, {4, 5}, {6, 5}};
    ir_func *ir = fixture_open(7, edges, 8);
    ir_dominators(ir);
    static const uint32_t idom[] = {0, 0, 0, 0, 3, 4, 6};
    for (uint32_t b = 0; b < 7; b++)
        TEST_ASSERT_EQUAL_UINT32(idom[b], ir->blocks[b].idom);
    TEST_ASSERT_FALSE(ir_dominates(ir, 6, 5));
    TEST_ASSERT_FALSE(ir_dominates(ir, 0, 6));
    TEST_ASSERT_TRUE(ir_dominates(ir, 6, 6));
    fixture_close(ir);
}

static void the_fall_through_successor_comes_next_in_reverse_post_order(void)
{
    static const fixture_edge edges[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    ir_func *ir = fixture_open(4, edges, 4);
    ir_dominators(ir);
    TEST_ASSERT_EQUAL_UINT32(1, ir->rpo[1]);
    fixture_close(ir);
}

/* A ladder whose rungs go back makes simple iteration quadratic; a long chain would overflow a recursive walk. */
static void half_a_million_blocks_take_no_stack_and_no_quadratic_time(void)
{
    uint32_t n = 500000, m = 0;
    fixture_edge *edges = base_alloc((size_t)n * 3 * sizeof *edges);
    for (uint32_t b = 0; b + 1 < n; b++) {
        edges[m++] = (fixture_edge){b, b + 1};
        if (b > n / 2) edges[m++] = (fixture_edge){b, n - b};
        if (b < n / 2) edges[m++] = (fixture_edge){b, n - 1 - b};
    }
    ir_func *ir = fixture_open(n, edges, m);
    ir_dominators(ir);
    TEST_ASSERT_EQUAL_UINT32(n, ir->rpo_count);
    TEST_ASSERT_TRUE(ir_dominates(ir, 0, n - 1));
    fixture_close(ir);
    free(edges);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(random_graphs_agree_with_the_definition);
    RUN_TEST(a_diamond_with_a_loop_and_an_unreachable_block);
    RUN_TEST(the_fall_through_successor_comes_next_in_reverse_post_order);
    RUN_TEST(half_a_million_blocks_take_no_stack_and_no_quadratic_time);
    return UNITY_END();
}
