/* Cycles that edits make and break, of copies, of offsets, through memory and through calls: after each edit the result
 * is that of an analysis from scratch, whether that one collapses cycles (pta_options.once, scc.c) or not, and an edit
 * looks at the cycle that it makes or breaks and at nothing else. */
#include "static/pointer/delete.h"
#include "tests/lib/pta_tool.h"

#include <unity.h>

static pta_program *program;
static uint32_t func, other;

void setUp(void)
{
    lift_module *none[1] = {NULL};
    program = pta_program_open(none, 0, 1);
    func = program_add_func(program, "test", NULL, 0);
    other = program_add_func(program, "other", NULL, 0);
    program->funcs.data[func].root = true;
    program->funcs.data[func].needs = program->funcs.data[other].needs = 1 << PTA_RDI;
}

void tearDown(void)
{
    pta_program_close(program);
}

/* --- programs -------------------------------------------------------------------------------------------------------------- */

static uint32_t add(uint32_t to, pta_stmt stmt)
{
    program_add_stmt(program, to, stmt);
    return program->funcs.data[to].stmts.len - 1;
}

static uint32_t add_copy(uint32_t in, uint32_t to, uint32_t from, int32_t delta)
{
    return add(in, (pta_stmt){.kind = PTA_COPY, .dst = {to, 0}, .src = {from, delta}});
}

static uint32_t add_object(uint32_t in, uint32_t var, uint32_t size)
{
    uint32_t object = program->sites.len;
    program_add_site(program, (pta_site){.kind = PTA_STATIC,
                                         .func = PTA_NO_FUNC,
                                         .start = 4096ull * (object + 1),
                                         .size = size,
                                         .memory = object,
                                         .align = 16,
                                         .name = "object"});
    return add(in, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .ref = object});
}

/* Both functions pass something to each other, and get something back. */
static void add_call_to(uint32_t caller, uint32_t callee, uint32_t arg, uint32_t ret)
{
    pta_call call = {.func = callee, .target = {PTA_NO_VAR, 0}, .ret = ret, .ret2 = PTA_NO_VAR, .caller = caller};
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        call.args[i] = (pta_operand){i ? PTA_NO_VAR : arg, 0};
    add(caller, (pta_stmt){.kind = PTA_CALL, .ref = program_add_call(program, call)});
}

/* So many variables of each function, and twice as many statements between them as it takes to be one cycle. */
static void make_tangle(uint64_t *chance, uint32_t vars, bool offsets)
{
    static const int32_t deltas[] = {8, 12, -4, 24};
    for (unsigned f = 0; f < 2; f++) {
        uint32_t in = f ? other : func, first = program_new_var(program, in);
        for (uint32_t i = 1; i < vars; i++)
            program_new_var(program, in);
        for (uint32_t i = 0; i < 2 * vars; i++) {
            uint32_t to = first + tool_below(chance, vars), from = first + tool_below(chance, vars);
            uint32_t kind = tool_below(chance, 8);
            if (kind == 0)
                add(in,
                    (pta_stmt){.kind = PTA_LOAD, .dst = {to, 0}, .src = {from, 8 * (int32_t)tool_below(chance, 2)}});
            else if (kind == 1)
                add(in,
                    (pta_stmt){.kind = PTA_STORE, .dst = {to, 8 * (int32_t)tool_below(chance, 2)}, .src = {from, 0}});
            else
                add_copy(in, to, from, offsets && kind < 4 ? deltas[tool_below(chance, 4)] : 0);
        }
        for (uint32_t i = 0; i < 4; i++)
            add_object(in, first + tool_below(chance, vars), 64);
        add_copy(in, first + tool_below(chance, vars), PTA_RDI, 0);
        add_copy(in, PTA_RET, first + tool_below(chance, vars), 0);
        add_call_to(in, f ? func : other, first + tool_below(chance, vars), first + tool_below(chance, vars));
        add_call_to(in, f ? func : other, first + tool_below(chance, vars), first + tool_below(chance, vars));
    }
}

/* --- laws ------------------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(pta_options options)
{
    race_error error;
    pta *fresh;
    TEST_ASSERT_EQUAL_INT(0, pta_open(program, &options, &fresh, &error));
    uint64_t hash = pta_relation_hash(fresh);
    pta_close(fresh);
    return hash;
}

/* Random statements go and come. */
static void edit_at_random(pta_options options, uint32_t edits, uint64_t *chance)
{
    race_error error;
    pta *analyses[2];
    for (int threads = 1; threads <= 2; threads++) {
        options.jobs = threads;
        TEST_ASSERT_EQUAL_INT(0, pta_open(program, &options, &analyses[threads - 1], &error));
    }
    for (uint32_t i = 0; i < edits; i++) {
        uint32_t in = tool_below(chance, 2) ? func : other, at = tool_below(chance, program->funcs.data[in].stmts.len);
        bool *dead = &program->funcs.data[in].stmts.data[at].dead, was = *dead;
        pta_edit e = {.func = in, .stmt = at, .insert = was};
        for (unsigned a = 0; a < 2; a++) {
            *dead = was;
            TEST_ASSERT_EQUAL_INT(0, pta_update(analyses[a], &e, 1, &error));
        }
        pta_options once = options;
        once.once = true;
        uint64_t scratch = hash_of(options);
        TEST_ASSERT_EQUAL_HEX64(scratch, hash_of(once));
        TEST_ASSERT_EQUAL_HEX64(scratch, pta_relation_hash(analyses[0]));
        TEST_ASSERT_EQUAL_HEX64(scratch, pta_relation_hash(analyses[1]));
    }
    pta_close(analyses[0]);
    pta_close(analyses[1]);
}

static void tangle_is_from_scratch(bool offsets)
{
    for (uint32_t seed = 0; seed < 4; seed++) {
        uint64_t chance = tool_seed(seed);
        if (seed) {
            tearDown();
            setUp();
        }
        make_tangle(&chance, 5 + 5 * (seed / 2), offsets);
        for (int context = PTA_CONTEXT_NONE; context <= PTA_CONTEXT_CFA; context++)
            for (int algorithm = PTA_IPA; algorithm <= PTA_REACH; algorithm++)
                edit_at_random((pta_options){.context = (pta_context_kind)context,
                                             .algorithm = (pta_algorithm)algorithm,
                                             .k = 1,
                                             .wild_at = seed % 2 ? 2 : 0},
                               12, &chance);
    }
}

static void test_cycles_of_copies_that_edits_make_and_break_are_those_of_an_analysis_from_scratch(void)
{
    tangle_is_from_scratch(false);
}

static void test_cycles_of_offsets_that_edits_make_and_break_are_those_of_an_analysis_from_scratch(void)
{
    tangle_is_from_scratch(true);
}

/* --- cycles of offsets ------------------------------------------------------------------------------------------------------ */

static uint32_t stride_of(const pta *p, uint32_t var)
{
    pta_places places = {0};
    pta_points_to(p, func, (pta_operand){var, 0}, PTA_SAME, &places);
    TEST_ASSERT_EQUAL_UINT32(1, places.len);
    uint32_t stride = places.data[0].exact ? 0 : places.data[0].stride;
    vec_free(&places);
    return stride;
}

/* A cycle is a class modulo the gcd of its weights: each chord that comes or goes derives it anew. */
static void test_a_cycle_is_a_class_modulo_the_gcd_of_the_offsets_that_are_left(void)
{
    race_error error;
    pta *p;
    uint32_t a = program_new_var(program, func), b = program_new_var(program, func);
    add_object(func, a, 4096);
    add_copy(func, b, a, 0);
    uint32_t cycle = add_copy(func, a, b, 48), chords[] = {add_copy(func, a, b, 32), add_copy(func, a, b, 24)};
    TEST_ASSERT_EQUAL_INT(0, pta_open(program, &(pta_options){.k = 1, .jobs = 1}, &p, &error));
    const struct {
        uint32_t stmt;
        bool insert;
        uint32_t stride;
    } steps[] = {{chords[1], false, 16}, {chords[1], true, 8},  {chords[0], false, 24}, {chords[1], false, 48},
                 {cycle, false, 0},      {chords[0], true, 32}, {cycle, true, 16},      {chords[1], true, 8}};
    TEST_ASSERT_EQUAL_UINT32(8, stride_of(p, b));
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        pta_edit e = {.func = func, .stmt = steps[i].stmt, .insert = steps[i].insert};
        TEST_ASSERT_EQUAL_INT(0, pta_update(p, &e, 1, &error));
        TEST_ASSERT_EQUAL_UINT32_MESSAGE(steps[i].stride, stride_of(p, a), "at the head of the cycle");
        TEST_ASSERT_EQUAL_UINT32_MESSAGE(steps[i].stride, stride_of(p, b), "behind it");
    }
    pta_close(p);
}

/* --- cost --------------------------------------------------------------------------------------------------------------------- */

/* A cycle with two objects, among many more variables and facts that have nothing to do with it. */
static void test_an_edit_looks_at_the_cycle_that_it_makes_or_breaks_and_at_nothing_else(void)
{
    enum { RING = 300, BYSTANDERS = 20000, EACH = 16 };
    race_error error;
    pta *p;
    uint32_t ring[RING], stmts[RING], bystander = program_new_var(program, func);
    for (unsigned i = 0; i < RING; i++)
        ring[i] = program_new_var(program, func);
    for (unsigned i = 0; i < RING; i++)
        stmts[i] = add_copy(func, ring[(i + 1) % RING], ring[i], 0);
    uint32_t first = add_object(func, ring[0], 64), second = add_object(func, ring[RING / 2], 64);
    add_object(func, bystander, 64);
    for (unsigned i = 0; i < BYSTANDERS; i++) /* a tree */
        add_copy(func, program_new_var(program, func), i ? ring[RING - 1] + 1 + i / 2 : bystander, 0);
    TEST_ASSERT_EQUAL_INT(0, pta_open(program, &(pta_options){.k = 1, .jobs = 1}, &p, &error));
    const uint32_t edits[] = {stmts[3], stmts[RING - 1], first, second};
    for (unsigned i = 0; i < sizeof edits / sizeof *edits; i++)
        for (unsigned insert = 0; insert < 2; insert++) {
            pta_edit e = {.func = func, .stmt = edits[i], .insert = insert};
            TEST_ASSERT_EQUAL_INT(0, pta_update(p, &e, 1, &error));
            TEST_ASSERT_LESS_THAN_UINT64(EACH * RING, p->deletion->work);
            TEST_ASSERT_LESS_THAN_UINT64(EACH * RING, p->toil);
        }
    pta_stats stats;
    pta_statistics(p, &stats);
    TEST_ASSERT_GREATER_THAN_UINT64(BYSTANDERS, stats.facts);
    pta_close(p);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_cycles_of_copies_that_edits_make_and_break_are_those_of_an_analysis_from_scratch);
    RUN_TEST(test_cycles_of_offsets_that_edits_make_and_break_are_those_of_an_analysis_from_scratch);
    RUN_TEST(test_a_cycle_is_a_class_modulo_the_gcd_of_the_offsets_that_are_left);
    RUN_TEST(test_an_edit_looks_at_the_cycle_that_it_makes_or_breaks_and_at_nothing_else);
    return UNITY_END();
}
