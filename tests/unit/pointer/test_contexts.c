/* Contexts that become invalid when a call is deleted (SHARP: dissertation, section 4.4.1): all that they are goes at
 * once, before any of their facts is looked at, with call strings and with origins; what other calls lead to stays. */
#include "static/pointer/delete.h"

#include <unity.h>

enum { DEEP = 4, VARS = 200, MOST_WORK = VARS };

static pta_program *program;
static uint32_t func, chain[DEEP];
static pta *analysis;
static pta_options options;

static uint32_t add(uint32_t to, pta_stmt stmt)
{
    program_add_stmt(program, to, stmt);
    return program->funcs.data[to].stmts.len - 1;
}

static uint32_t add_call_to(uint32_t caller, uint32_t callee, uint32_t arg, bool thread)
{
    pta_call call = {
        .func = callee, .target = {PTA_NO_VAR, 0}, .ret = PTA_NO_VAR, .ret2 = PTA_NO_VAR, .caller = caller};
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        call.args[i] = (pta_operand){i ? PTA_NO_VAR : arg, 0};
    if (thread) call.spawn = PTA_SPAWN_THREAD;
    return add(caller, (pta_stmt){.kind = PTA_CALL, .ref = program_add_call(program, call)});
}

/* Functions that hand what they get through many variables and on to the next. */
void setUp(void)
{
    static const char *const names[DEEP] = {"first", "second", "third", "fourth"};
    lift_module *none[1] = {NULL};
    program = pta_program_open(none, 0, 1);
    func = program_add_func(program, "test", NULL, 0);
    program->funcs.data[func].root = true;
    for (unsigned i = 0; i < DEEP; i++)
        chain[i] = program_add_func(program, names[i], NULL, 0);
    for (unsigned i = 0; i < DEEP; i++) {
        uint32_t from = PTA_RDI;
        program->funcs.data[chain[i]].needs = 1 << PTA_RDI;
        for (unsigned v = 0; v < VARS; v++) {
            uint32_t to = program_new_var(program, chain[i]);
            add(chain[i], (pta_stmt){.kind = PTA_COPY, .dst = {to, 0}, .src = {from, 0}});
            from = to;
        }
        if (i + 1 < DEEP) add_call_to(chain[i], chain[i + 1], from, false);
    }
}

void tearDown(void)
{
    pta_close(analysis);
    analysis = NULL;
    pta_program_close(program);
}

/* `test` hands an object of its own to the first of them. */
static uint32_t begin_with_object(bool thread)
{
    uint32_t object = program->sites.len, var = program_new_var(program, func);
    program_add_site(program, (pta_site){.kind = PTA_STATIC,
                                         .func = PTA_NO_FUNC,
                                         .start = 4096ull * (object + 1),
                                         .size = 64,
                                         .memory = object,
                                         .align = 16,
                                         .name = "object"});
    add(func, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .ref = object});
    return add_call_to(func, chain[0], var, thread);
}

static void open_analysis(pta_context_kind context, unsigned k)
{
    race_error error;
    options = (pta_options){.context = context, .k = k, .jobs = 1};
    TEST_ASSERT_EQUAL_INT(0, pta_open(program, &options, &analysis, &error));
}

static void edit(uint32_t stmt, bool insert)
{
    race_error error;
    pta_edit e = {.func = func, .stmt = stmt, .insert = insert};
    TEST_ASSERT_EQUAL_INT(0, pta_update(analysis, &e, 1, &error));
    uint64_t updated = pta_relation_hash(analysis);
    pta *fresh;
    TEST_ASSERT_EQUAL_INT(0, pta_open(program, &options, &fresh, &error));
    uint64_t scratch = pta_relation_hash(fresh);
    pta_close(fresh);
    TEST_ASSERT_EQUAL_HEX64(scratch, updated);
}

static void has_instances(const uint32_t wanted[DEEP])
{
    pta_instance instance;
    uint32_t count[DEEP] = {0};
    for (uint32_t i = 0; i < pta_instance_count(analysis); i++)
        for (unsigned f = 0; f < DEEP; f++)
            count[f] += pta_instance_at(analysis, i, &instance) && instance.func == chain[f];
    TEST_ASSERT_EQUAL_UINT32_ARRAY(wanted, count, DEEP);
}

static uint64_t facts(void)
{
    pta_stats stats;
    pta_statistics(analysis, &stats);
    return stats.facts;
}

/* All contexts of a call go, and come back; without it `left` instances of each function are there. */
static void contexts_go_at_once(uint32_t call, const uint32_t all[DEEP], const uint32_t left[DEEP], uint64_t lost)
{
    has_instances(all);
    uint64_t before = facts();
    edit(call, false);
    has_instances(left);
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(lost, before - facts());
    TEST_ASSERT_LESS_THAN_UINT64(MOST_WORK, analysis->deletion->work);
    edit(call, true);
    has_instances(all);
    TEST_ASSERT_EQUAL_UINT64(before, facts());
}

static void test_all_call_strings_that_a_deleted_call_is_part_of_go_at_once(void)
{
    uint32_t first = begin_with_object(false), second = begin_with_object(false);
    open_analysis(PTA_CONTEXT_CFA, DEEP);
    contexts_go_at_once(first, (uint32_t[]){2, 2, 2, 2}, (uint32_t[]){1, 1, 1, 1}, DEEP * VARS);
    contexts_go_at_once(second, (uint32_t[]){2, 2, 2, 2}, (uint32_t[]){1, 1, 1, 1}, DEEP * VARS);
}

static void test_origins_that_a_deleted_creation_started_go_at_once(void)
{
    uint32_t first = begin_with_object(true), second = begin_with_object(true);
    for (unsigned k = 1; k <= 2; k++) {
        open_analysis(PTA_CONTEXT_ORIGIN, k);
        contexts_go_at_once(first, (uint32_t[]){2, 2, 2, 2}, (uint32_t[]){1, 1, 1, 1}, DEEP * VARS);
        contexts_go_at_once(second, (uint32_t[]){2, 2, 2, 2}, (uint32_t[]){1, 1, 1, 1}, DEEP * VARS);
        pta_close(analysis);
        analysis = NULL;
    }
}

/* A call on a cycle of the call graph does not keep it alive. */
static void test_contexts_that_only_call_each_other_go_too(void)
{
    uint32_t first = begin_with_object(false);
    add_call_to(chain[DEEP - 1], chain[0], PTA_RDI, false);
    open_analysis(PTA_CONTEXT_CFA, 1);
    contexts_go_at_once(first, (uint32_t[]){2, 1, 1, 1}, (uint32_t[]){0, 0, 0, 0}, DEEP * VARS);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_all_call_strings_that_a_deleted_call_is_part_of_go_at_once);
    RUN_TEST(test_origins_that_a_deleted_creation_started_go_at_once);
    RUN_TEST(test_contexts_that_only_call_each_other_go_too);
    return UNITY_END();
}
