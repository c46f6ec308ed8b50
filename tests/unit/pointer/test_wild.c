/* Wild pointers and edits: what an update leaves is what an analysis from scratch finds, asked of programs that are
 * made of statements by hand, with a low threshold for wild pointers. */
#include "static/pointer/delete.h"

#include <unity.h>

enum { SIZE = 64, WILD_AT = 2 };

static pta_program *program;
static pta *analysis;
static uint32_t func;
static pta_options options;

void setUp(void)
{
    lift_module *none[1] = {NULL};
    program = pta_program_open(none, 0, 1);
    func = program_add_func(program, "test", NULL, 0);
    program->funcs.data[func].root = true;
    options = (pta_options){.jobs = 1, .wild_at = WILD_AT, .k = 1};
}

void tearDown(void)
{
    pta_close(analysis);
    analysis = NULL;
    pta_program_close(program);
}

static uint32_t add(uint32_t to, pta_stmt stmt)
{
    program_add_stmt(program, to, stmt);
    return program->funcs.data[to].stmts.len - 1;
}

/* A variable may point anywhere into a new object; the statement. */
static uint32_t points_into_new(uint32_t var)
{
    static const char *const name = "object";
    uint32_t object = program->sites.len;
    program_add_site(program, (pta_site){.kind = PTA_STATIC, .func = PTA_NO_FUNC, .start = 4096ull * (object + 1),
                                         .size = SIZE, .memory = object, .align = 16, .name = name});
    return add(func, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .ref = object,
                                .stride = PTA_ANY});
}

static uint32_t call_through(uint32_t var)
{
    pta_call call = {.func = PTA_NO_FUNC, .target = {var, 0}, .ret2 = PTA_NO_VAR, .caller = func};
    call.ret = program_new_var(program, func);
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        call.args[i] = (pta_operand){PTA_NO_VAR, 0};
    uint32_t id = program_add_call(program, call);
    add(func, (pta_stmt){.kind = PTA_CALL, .ref = id});
    return call.ret;
}

static void edit(uint32_t stmt, bool insert)
{
    race_error error;
    pta_edit e = {.func = func, .stmt = stmt, .insert = insert};
    TEST_ASSERT_EQUAL_INT(0, pta_update(analysis, &e, 1, &error));
}

static void open_analysis(pta_context_kind context, pta_algorithm algorithm)
{
    race_error error;
    options.context = context;
    options.algorithm = algorithm;
    TEST_ASSERT_EQUAL_INT(0, pta_open(program, &options, &analysis, &error));
}

static void is_from_scratch(void)
{
    race_error error;
    uint64_t updated = pta_relation_hash(analysis);
    for (int once = 0; once < 2; once++) {
        pta *fresh;
        pta_options other = options;
        other.once = once;
        TEST_ASSERT_EQUAL_INT(0, pta_open(program, &other, &fresh, &error));
        uint64_t scratch = pta_relation_hash(fresh);
        pta_close(fresh);
        TEST_ASSERT_EQUAL_HEX64(scratch, updated);
    }
}

static uint32_t instances_of(uint32_t of)
{
    uint32_t count = 0;
    pta_instance instance;
    for (uint32_t i = 0; i < pta_instance_count(analysis); i++)
        count += pta_instance_at(analysis, i, &instance) && instance.func == of;
    return count;
}

/* Each kind of context with each algorithm; `stmts` go and come back, one by one. */
static void edits_are_from_scratch(const uint32_t *stmts, uint32_t count)
{
    for (int context = PTA_CONTEXT_NONE; context <= PTA_CONTEXT_CFA; context++)
        for (int algorithm = PTA_IPA; algorithm <= PTA_REACH; algorithm++) {
            open_analysis((pta_context_kind)context, (pta_algorithm)algorithm);
            for (uint32_t i = 0; i < count; i++) {
                edit(stmts[i], false);
                is_from_scratch();
                edit(stmts[i], true);
                is_from_scratch();
            }
            pta_close(analysis);
            analysis = NULL;
        }
}

/* What lies next to a variable in its frame is none of its words: SET_WILD does not stand for it, so neither may a place that was
 * known before the pointer became wild. */
static void test_a_pointer_stores_nothing_next_to_its_variable_whether_it_was_wild_before_or_not(void)
{
    uint32_t frame = program->sites.len, value = program_new_var(program, func), got = program_new_var(program, func);
    uint32_t var = program_new_var(program, func), next = program_new_var(program, func), stmts[WILD_AT + 1];
    program_add_site(program, (pta_site){.kind = PTA_FRAME, .func = func, .memory = frame, .align = 16});
    for (int64_t i = 0; i < 2; i++)
        program_add_site(program, (pta_site){.kind = PTA_FRAME, .func = func, .size = 8, .memory = frame, .base = 8 * i, .align = 8});
    add(func, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .ref = frame + 1});
    add(func, (pta_stmt){.kind = PTA_ADDR, .dst = {next, 0}, .src = {PTA_NO_VAR, 0}, .ref = frame + 2});
    add(func, (pta_stmt){.kind = PTA_ADDR, .dst = {value, 0}, .src = {PTA_NO_VAR, 0}, .ref = frame});
    add(func, (pta_stmt){.kind = PTA_STORE, .dst = {var, 8}, .src = {value, 0}});
    add(func, (pta_stmt){.kind = PTA_LOAD, .dst = {got, 0}, .src = {next, 0}});
    for (unsigned i = 0; i < WILD_AT + 1; i++)
        stmts[i] = points_into_new(var);
    edits_are_from_scratch(stmts, WILD_AT + 1);
}

/* A wrapper has an instance for each call; one that a pointer called before it became wild must not stay. */
static void test_a_wrapper_that_a_pointer_called_before_it_was_wild_has_no_instance_of_its_own(void)
{
    race_error error;
    uint32_t wrapper = program_add_func(program, "wrapper", NULL, 0);
    program->funcs.data[wrapper].clone = true;
    TEST_ASSERT_EQUAL_INT(0, model_fill(program, wrapper, "ret = new", &error));
    uint32_t var = program_new_var(program, func), stmts[WILD_AT + 1];
    uint32_t code = program_function_site(program, wrapper);
    add(func, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .ref = code});
    for (unsigned i = 0; i < WILD_AT + 1; i++)
        stmts[i] = points_into_new(var);
    call_through(var);
    open_analysis(PTA_CONTEXT_NONE, PTA_IPA);
    TEST_ASSERT_EQUAL_UINT32(1, instances_of(wrapper));
    edit(stmts[0], false);
    TEST_ASSERT_EQUAL_UINT32(1, instances_of(wrapper));
    edit(stmts[0], true);
    TEST_ASSERT_EQUAL_UINT32(1, instances_of(wrapper));
    pta_close(analysis);
    analysis = NULL;
    edits_are_from_scratch(stmts, WILD_AT + 1);
}

/* More objects than it takes: whichever go, the others are enough or not, and what it leads to is what it is from scratch. */
static void test_a_pointer_is_wild_for_whatever_is_left(void)
{
    uint32_t var = program_new_var(program, func), next = program_new_var(program, func), stmts[WILD_AT + 6], count = 0;
    for (unsigned i = 0; i < WILD_AT + 3; i++)
        stmts[count++] = points_into_new(var);
    stmts[count++] = add(func, (pta_stmt){.kind = PTA_STORE, .dst = {var, 0}, .src = {var, 0}});
    stmts[count++] = add(func, (pta_stmt){.kind = PTA_LOAD, .dst = {next, 0}, .src = {var, 0}});
    stmts[count++] = add(func, (pta_stmt){.kind = PTA_COPY, .dst = {var, 0}, .src = {next, 0}, .stride = PTA_ANY});
    edits_are_from_scratch(stmts, count);
    open_analysis(PTA_CONTEXT_NONE, PTA_IPA);
    for (unsigned i = 0; i < count; i++) {
        edit(stmts[i], false);
        is_from_scratch();
    }
    for (unsigned i = 0; i < count; i++) {
        edit(stmts[i], true);
        is_from_scratch();
    }
}

static uint32_t add_func(const char *name, const char *model)
{
    race_error error;
    uint32_t added = program_add_func(program, name, NULL, 0);
    TEST_ASSERT_EQUAL_INT(0, model_fill(program, added, model, &error));
    return added;
}

/* A pointer that is wild with contexts only, since there are more objects then, calls what it calls without: when that changes by
 * one function, that one goes and comes, and the others stay. */
static void test_a_call_that_is_wild_with_contexts_only_follows_what_it_calls_without(void)
{
    uint32_t maker = add_func("maker", "ret = new"), var = program_new_var(program, func), stmts[3], callees[3];
    for (unsigned i = 0; i < 3; i++) {
        static const char *const names[] = {"first", "second", "third"};
        callees[i] = add_func(names[i], "ret = new");
        stmts[i] = add(func, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0},
                                        .ref = program_function_site(program, callees[i])});
    }
    for (unsigned i = 0; i < WILD_AT + 2; i++) {
        pta_call call = {.func = maker, .target = {PTA_NO_VAR, 0}, .ret2 = PTA_NO_VAR, .caller = func};
        call.ret = program_new_var(program, func);
        for (unsigned k = 0; k < PTA_PARAMS; k++)
            call.args[k] = (pta_operand){PTA_NO_VAR, 0};
        add(func, (pta_stmt){.kind = PTA_CALL, .ref = program_add_call(program, call)});
        add(func, (pta_stmt){.kind = PTA_COPY, .dst = {var, 0}, .src = {call.ret, 0}, .stride = PTA_ANY});
    }
    call_through(var);
    edits_are_from_scratch(stmts, 3);
    open_analysis(PTA_CONTEXT_CFA, PTA_IPA);
    for (unsigned i = 0; i < 3; i++) {
        TEST_ASSERT_GREATER_THAN_UINT32(0, instances_of(callees[i]));
        edit(stmts[i], false);
        TEST_ASSERT_EQUAL_UINT32(0, instances_of(callees[i]));
        for (unsigned k = i + 1; k < 3; k++)
            TEST_ASSERT_GREATER_THAN_UINT32(0, instances_of(callees[k]));
        is_from_scratch();
    }
    for (unsigned i = 0; i < 3; i++) {
        edit(stmts[i], true);
        TEST_ASSERT_GREATER_THAN_UINT32(0, instances_of(callees[i]));
        is_from_scratch();
    }
}

/* A cycle of variables that two chains lead into, the second of them longer, so that what comes over it is younger than the cycle:
 * without the first it keeps all of it, and without both nothing is left. Whichever of a chain goes first. */
static void test_what_is_younger_supports_a_fact_unless_it_depends_on_it(void)
{
    enum { CYCLE = 5, CHAIN = 7 };
    uint32_t vars[CYCLE], stmts[CYCLE + CHAIN + 2], count = 0, from = program_new_var(program, func);
    for (unsigned i = 0; i < CYCLE; i++)
        vars[i] = program_new_var(program, func);
    for (unsigned i = 0; i < CYCLE; i++)
        stmts[count++] = add(func, (pta_stmt){.kind = PTA_COPY, .dst = {vars[i], 0}, .src = {vars[(i + 1) % CYCLE], 0}});
    uint32_t object = points_into_new(from);
    stmts[count++] = add(func, (pta_stmt){.kind = PTA_COPY, .dst = {vars[0], 0}, .src = {from, 0}});
    for (unsigned i = 0; i < CHAIN; i++) {
        uint32_t to = i + 1 < CHAIN ? program_new_var(program, func) : vars[CYCLE / 2];
        stmts[count++] = add(func, (pta_stmt){.kind = PTA_COPY, .dst = {to, 0}, .src = {from, 0}});
        from = to;
    }
    stmts[count++] = object;
    edits_are_from_scratch(stmts, count);
    open_analysis(PTA_CONTEXT_NONE, PTA_IPA);
    for (unsigned first = 0; first < count; first++)
        for (unsigned second = 0; second < count; second++) {
            if (first == second) continue;
            edit(stmts[first], false);
            edit(stmts[second], false);
            is_from_scratch();
            edit(stmts[first], true);
            is_from_scratch();
            edit(stmts[second], true);
            is_from_scratch();
        }
}

static void call_with(uint32_t callee, uint32_t arg)
{
    pta_call call = {.func = callee, .target = {PTA_NO_VAR, 0}, .ret = PTA_NO_VAR, .ret2 = PTA_NO_VAR, .caller = func};
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        call.args[i] = (pta_operand){i ? PTA_NO_VAR : arg, 0};
    add(func, (pta_stmt){.kind = PTA_CALL, .ref = program_add_call(program, call)});
}

/* How many instances of a function get a wild pointer. */
static uint32_t wild_instances(uint32_t of)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < analysis->instances_of.data[of].len; i++) {
        const graph_instance *instance = &analysis->instances.data[analysis->instances_of.data[of].data[i]];
        count += instance->live && set_is_wild(&analysis->nodes.data[graph_var(instance, PTA_RDI)].set);
    }
    return count;
}

enum { CALLS = 3, EACH = 2 };

/* A function that is called with pointers into some objects, EACH per call, and hands them on from variable to variable. Returns it;
 * `stmts`: the CALLS * EACH statements that say where they point. */
static uint32_t add_meeting_point(uint32_t vars, uint32_t *stmts)
{
    uint32_t taker = program_add_func(program, "taker", NULL, 0), from = PTA_RDI;
    program->funcs.data[taker].needs = 1 << PTA_RDI;
    for (uint32_t v = 0; v < vars; v++) {
        uint32_t to = program_new_var(program, taker);
        add(taker, (pta_stmt){.kind = PTA_COPY, .dst = {to, 0}, .src = {from, 0}});
        from = to;
    }
    add(taker, (pta_stmt){.kind = PTA_STORE, .dst = {from, 0}, .src = {from, 0}});
    add(taker, (pta_stmt){.kind = PTA_LOAD, .dst = {PTA_RET, 0}, .src = {from, 0}});
    for (unsigned c = 0; c < CALLS; c++) {
        uint32_t var = program_new_var(program, func);
        for (unsigned i = 0; i < EACH; i++)
            *stmts++ = points_into_new(var);
        call_with(taker, var);
    }
    return taker;
}

/* With contexts each call is an instance, of which none points into more objects than WILD_AT. But all of them together do. */
static void test_a_pointer_that_is_wild_without_contexts_is_so_with_few_objects(void)
{
    uint32_t stmts[CALLS * EACH], taker = add_meeting_point(3, stmts);
    edits_are_from_scratch(stmts, CALLS * EACH);
    for (int algorithm = PTA_IPA; algorithm <= PTA_REACH; algorithm++) {
        open_analysis(PTA_CONTEXT_CFA, (pta_algorithm)algorithm);
        TEST_ASSERT_EQUAL_UINT32(CALLS, wild_instances(taker));
        for (unsigned i = 0; i < CALLS * EACH; i++) {
            edit(stmts[i], false);
            is_from_scratch();
            if (i == 0) TEST_ASSERT_EQUAL_UINT32(CALLS, wild_instances(taker));
            if (i > 0) TEST_ASSERT_EQUAL_UINT32(0, wild_instances(taker)); /* they point into too few, all together */
        }
        for (unsigned i = 0; i < CALLS * EACH; i++) {
            edit(stmts[i], true);
            is_from_scratch();
        }
        TEST_ASSERT_EQUAL_UINT32(CALLS, wild_instances(taker));
        pta_close(analysis);
        analysis = NULL;
    }
}

/* What hangs on a prone pointer does not fall with one of its objects. */
static void test_a_prone_pointer_stays_wild_without_one_of_its_objects(void)
{
    enum { VARS = 300 };
    uint32_t stmts[CALLS * EACH], taker = add_meeting_point(VARS, stmts);
    open_analysis(PTA_CONTEXT_CFA, PTA_IPA);
    edit(stmts[0], false);
    TEST_ASSERT_EQUAL_UINT32(CALLS, wild_instances(taker));
    TEST_ASSERT_LESS_THAN_UINT64(VARS, analysis->deletion->work);
    is_from_scratch();
}

/* What wild pointers do is no part of the program: results rely on it. */
static void test_what_wild_pointers_do_cannot_be_edited(void)
{
    race_error error;
    open_analysis(PTA_CONTEXT_NONE, PTA_IPA);
    uint64_t before = pta_relation_hash(analysis);
    pta_edit edits[] = {{.func = program->wilderness}, {.func = program->wild_call}};
    for (unsigned i = 0; i < 2; i++) {
        TEST_ASSERT_FALSE(pta_may_edit(program, edits[i].func));
        TEST_ASSERT_EQUAL_INT(-1, pta_update(analysis, &edits[i], 1, &error));
        TEST_ASSERT_FALSE(program->funcs.data[edits[i].func].stmts.data[0].dead);
    }
    TEST_ASSERT_TRUE(pta_may_edit(program, func));
    TEST_ASSERT_EQUAL_HEX64(before, pta_relation_hash(analysis));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_what_wild_pointers_do_cannot_be_edited);
    RUN_TEST(test_a_pointer_is_wild_for_whatever_is_left);
    RUN_TEST(test_a_pointer_stores_nothing_next_to_its_variable_whether_it_was_wild_before_or_not);
    RUN_TEST(test_a_wrapper_that_a_pointer_called_before_it_was_wild_has_no_instance_of_its_own);
    RUN_TEST(test_a_call_that_is_wild_with_contexts_only_follows_what_it_calls_without);
    RUN_TEST(test_a_pointer_that_is_wild_without_contexts_is_so_with_few_objects);
    RUN_TEST(test_a_prone_pointer_stays_wild_without_one_of_its_objects);
    RUN_TEST(test_what_is_younger_supports_a_fact_unless_it_depends_on_it);
    return UNITY_END();
}
