/* Loops against their definitions: on reducible graphs the natural loops of the back edges, on all graphs what a nest
 * of strongly connected regions must satisfy. */
#include "graph_fixture.h"

#include "unity.h"

void setUp(void) {}
void tearDown(void) {}

static bool is_inside(const ir_func *ir, uint32_t block, uint32_t loop)
{
    for (uint32_t in = ir->blocks[block].loop; in; in = ir->loops[in - 1].parent)
        if (in - 1 == loop) return true;
    return false;
}

/* The members of the natural loops with this header, and whether there are any. */
static bool natural_loop(const ir_func *ir, uint32_t header, bool *member)
{
    const lift_func *f = ir->func;
    bool found = false, *reached = base_alloc(f->block_count);
    memset(member, 0, f->block_count);
    for (uint32_t e = 0; e < f->edge_count; e++) {
        uint32_t from = f->edges[e].from;
        if (f->edges[e].to != header || ir->blocks[from].rpo == UINT32_MAX || !ir_dominates(ir, header, from)) continue;
        found = true;
        fixture_reach(f, from, header, true, reached);
        for (uint32_t b = 0; b < f->block_count; b++)
            member[b] |= (reached[b] && ir->blocks[b].rpo != UINT32_MAX) || b == header;
    }
    free(reached);
    return found;
}

static bool is_reducible(const ir_func *ir) /* every retreating edge goes to a dominator */
{
    const lift_func *f = ir->func;
    for (uint32_t e = 0; e < f->edge_count; e++) {
        uint32_t from = f->edges[e].from, to = f->edges[e].to;
        if (ir->blocks[from].rpo == UINT32_MAX || ir->blocks[to].rpo > ir->blocks[from].rpo) continue;
        if (!ir_dominates(ir, to, from)) return false;
    }
    return true;
}

static void check_layout(const ir_func *ir)
{
    uint32_t n = ir->func->block_count;
    uint32_t *seen = base_alloc(n * sizeof *seen);
    for (uint32_t i = 0; i < ir->loop_count; i++) {
        const ir_loop *loop = &ir->loops[i];
        TEST_ASSERT_TRUE(loop->parent <= i); /* outer before inner */
        TEST_ASSERT_EQUAL_UINT32(loop->parent ? ir->loops[loop->parent - 1].depth + 1 : 1, loop->depth);
        TEST_ASSERT_EQUAL_UINT32(i + 1, ir->blocks[loop->header].loop);
        TEST_ASSERT_EQUAL_UINT32(loop->header, ir->loop_blocks[loop->first_block]);
        memset(seen, 0, n * sizeof *seen);
        for (uint32_t k = 0; k < loop->block_count; k++)
            seen[ir->loop_blocks[loop->first_block + k]]++;
        for (uint32_t b = 0; b < n; b++)
            TEST_ASSERT_EQUAL_UINT32(is_inside(ir, b, i), seen[b]);
    }
    free(seen);
}

/* A strongly connected part of the members, without the blocks marked: their reachability within. */
static bool reaches_within(const ir_func *ir, uint32_t loop, uint32_t from, uint32_t to)
{
    const lift_func *f = ir->func;
    bool *reached = base_alloc_zero(f->block_count, 1), grown = true;
    reached[from] = true;
    while (grown) {
        grown = false;
        for (uint32_t e = 0; e < f->edge_count; e++) {
            uint32_t a = f->edges[e].from, b = f->edges[e].to;
            if (!reached[a] || reached[b] || !is_inside(ir, b, loop)) continue;
            reached[b] = grown = true;
        }
    }
    bool result = reached[to];
    free(reached);
    return result;
}

/* Every cycle lies in a loop that contains its header: without the headers of all loops nothing is cyclic. */
static bool is_cyclic_without_headers(const ir_func *ir)
{
    const lift_func *f = ir->func;
    uint32_t n = f->block_count;
    bool *gone = base_alloc_zero(n, 1), shrunk = true;
    for (uint32_t b = 0; b < n; b++)
        gone[b] = ir->blocks[b].rpo == UINT32_MAX;
    for (uint32_t i = 0; i < ir->loop_count; i++)
        gone[ir->loops[i].header] = true;
    while (shrunk) { /* takes away what has no predecessor left */
        shrunk = false;
        for (uint32_t b = 0; b < n; b++) {
            bool entered = false;
            for (uint32_t e = 0; e < f->edge_count; e++)
                entered |= f->edges[e].to == b && !gone[f->edges[e].from];
            if (gone[b] || entered) continue;
            gone[b] = shrunk = true;
        }
    }
    bool cyclic = false;
    for (uint32_t b = 0; b < n; b++)
        cyclic |= !gone[b];
    free(gone);
    return cyclic;
}

static void check_any(const ir_func *ir)
{
    const lift_func *f = ir->func;
    for (uint32_t i = 0; i < ir->loop_count; i++) {
        bool entered_beside = false;
        for (uint32_t e = 0; e < f->edge_count; e++) {
            uint32_t from = f->edges[e].from, to = f->edges[e].to;
            if (ir->blocks[from].rpo == UINT32_MAX) continue;
            entered_beside |= !is_inside(ir, from, i) && is_inside(ir, to, i) && to != ir->loops[i].header;
        }
        TEST_ASSERT_EQUAL(entered_beside, ir->loops[i].irreducible);
        for (uint32_t k = 0; k < ir->loops[i].block_count; k++) {
            uint32_t b = ir->loop_blocks[ir->loops[i].first_block + k];
            TEST_ASSERT_TRUE(reaches_within(ir, i, ir->loops[i].header, b) &&
                             reaches_within(ir, i, b, ir->loops[i].header));
        }
    }
    TEST_ASSERT_FALSE(is_cyclic_without_headers(ir));
    /* Blocks that reach one another share a loop: outermost loops are whole components. */
    for (uint32_t a = 0; a < f->block_count; a++) {
        bool *to = base_alloc(f->block_count), *back = base_alloc(f->block_count);
        fixture_reach(f, a, UINT32_MAX, false, to);
        fixture_reach(f, a, UINT32_MAX, true, back);
        for (uint32_t b = 0; b < f->block_count && ir->blocks[a].rpo != UINT32_MAX; b++) {
            if (a == b || !to[b] || !back[b] || ir->blocks[b].rpo == UINT32_MAX) continue;
            uint32_t x = ir->blocks[a].loop, y = ir->blocks[b].loop;
            TEST_ASSERT_TRUE(x && y);
            while (ir->loops[x - 1].parent)
                x = ir->loops[x - 1].parent;
            while (ir->loops[y - 1].parent)
                y = ir->loops[y - 1].parent;
            TEST_ASSERT_EQUAL_UINT32(x, y);
        }
        free(to);
        free(back);
    }
}

static void check_reducible(const ir_func *ir)
{
    uint32_t n = ir->func->block_count, loops = 0;
    bool *member = base_alloc(n);
    for (uint32_t h = 0; h < n; h++) {
        if (ir->blocks[h].rpo == UINT32_MAX || !natural_loop(ir, h, member)) continue;
        loops++;
        uint32_t i = ir->blocks[h].loop - 1;
        TEST_ASSERT_TRUE(i < ir->loop_count && ir->loops[i].header == h && !ir->loops[i].irreducible);
        for (uint32_t b = 0; b < n; b++)
            TEST_ASSERT_EQUAL(member[b], is_inside(ir, b, i));
    }
    TEST_ASSERT_EQUAL_UINT32(loops, ir->loop_count);
    free(member);
}

static void random_graphs_agree_with_the_definitions(void)
{
    uint64_t random = 7;
    uint32_t reducible = 0, irreducible = 0;
    for (int round = 0; round < 6000; round++) {
        uint32_t n = 1 + fixture_random(&random) % 12, m = fixture_random(&random) % (2 * n + 2);
        fixture_edge edges[32];
        for (uint32_t e = 0; e < m; e++) {
            edges[e] = (fixture_edge){fixture_random(&random) % n, fixture_random(&random) % n};
            if (round & 1 && e + 1 < n) edges[e].from = e, edges[e].to = e + 1; /* a spine: more loops, deeper */
        }
        ir_func *ir = fixture_open(n, edges, m);
        ir_dominators(ir);
        ir_loops(ir);
        check_layout(ir);
        check_any(ir);
        if (is_reducible(ir)) {
            check_reducible(ir);
            reducible++;
        } else {
            irreducible++;
        }
        fixture_close(ir);
    }
    TEST_ASSERT_GREATER_THAN_UINT32(1000, reducible);
    TEST_ASSERT_GREATER_THAN_UINT32(500, irreducible);
}

static void nested_loops_are_listed_outer_first(void)
{
    static const fixture_edge edges[] = {{0, 1}, {1, 2}, {2, 3}, {3, 2}, {3, 1}, {1, 4}, {4, 4}};
    ir_func *ir = fixture_open(5, edges, 7);
    ir_dominators(ir);
    ir_loops(ir);
    TEST_ASSERT_EQUAL_UINT32(3, ir->loop_count);
    uint32_t outer = ir->blocks[1].loop, inner = ir->blocks[2].loop, self = ir->blocks[4].loop;
    TEST_ASSERT_TRUE(outer < inner);
    TEST_ASSERT_EQUAL_UINT32(outer, ir->loops[inner - 1].parent);
    TEST_ASSERT_EQUAL_UINT32(inner, ir->blocks[3].loop);
    TEST_ASSERT_EQUAL_UINT32(3, ir->loops[outer - 1].block_count);
    TEST_ASSERT_EQUAL_UINT32(1, ir->loops[self - 1].block_count);
    TEST_ASSERT_EQUAL_UINT32(0, ir->blocks[0].loop);
    fixture_close(ir);
}

static void a_region_with_two_entries_is_irreducible(void)
{
    static const fixture_edge edges[] = {{0, 1}, {0, 2}, {1, 2}, {2, 1}, {2, 3}};
    ir_func *ir = fixture_open(4, edges, 5);
    ir_dominators(ir);
    ir_loops(ir);
    TEST_ASSERT_EQUAL_UINT32(1, ir->loop_count);
    TEST_ASSERT_TRUE(ir->loops[0].irreducible);
    TEST_ASSERT_EQUAL_UINT32(2, ir->loops[0].block_count);
    fixture_close(ir);
}

/* Thousands of loops inside one another, each also entered from the side: the bad case of Havlak's own algorithm. */
static void deep_irreducible_nests_take_no_quadratic_time(void)
{
    uint32_t depth = 100000, m = 0, n = depth * 2;
    fixture_edge *edges = base_alloc((size_t)n * 4 * sizeof *edges);
    for (uint32_t b = 0; b + 1 < n; b++)
        edges[m++] = (fixture_edge){b, b + 1};
    for (uint32_t b = depth; b < n; b++) {
        edges[m++] = (fixture_edge){b, n - 1 - b};
        edges[m++] = (fixture_edge){0, b};
    }
    ir_func *ir = fixture_open(n, edges, m);
    ir_dominators(ir);
    ir_loops(ir);
    TEST_ASSERT_TRUE(ir->loop_count > 0);
    fixture_close(ir);
    free(edges);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(random_graphs_agree_with_the_definitions);
    RUN_TEST(nested_loops_are_listed_outer_first);
    RUN_TEST(a_region_with_two_entries_is_irreducible);
    RUN_TEST(deep_irreducible_nests_take_no_quadratic_time);
    return UNITY_END();
}
