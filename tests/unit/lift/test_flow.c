/* The shape of graphs: blocks, edges, tail calls, calls that do not return, and code that is odd. */
#include "flow_fixture.h"

#include "unity.h"

/* clang-format off */
static const uint8_t code[] = {
    0x39, 0xf7,                                          /* 1000: cmp %esi,%edi */
    0x7e, 0x07,                                          /* 1002: jle 100b */
    0x83, 0xef, 0x01,                                    /* 1004: sub $0x1,%edi */
    0x39, 0xf7,                                          /* 1007: cmp %esi,%edi */
    0x7f, 0xf9,                                          /* 1009: jg 1004 */
    0x89, 0xf8,                                          /* 100b: mov %edi,%eax */
    0xc3,                                                /* 100d: ret */
    0x66, 0x90,
    0x85, 0xff,                                          /* 1010: test %edi,%edi */
    0x74, 0xec,                                          /* 1012: je 1000 */
    0x48, 0x89, 0xf7,                                    /* 1014: mov %rsi,%rdi */
    0xeb, 0xe7,                                          /* 1017: jmp 1000 */
    0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00,
    0x83, 0xef, 0x01,                                    /* 1020: sub $0x1,%edi */
    0x75, 0xfb,                                          /* 1023: jne 1020 */
    0xc3,                                                /* 1025: ret */
    0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x0f, 0x0b,                                          /* 1030: ud2 */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0f, 0x1f, 0x00,
    0x85, 0xff,                                          /* 1040: test %edi,%edi */
    0x75, 0x06,                                          /* 1042: jne 104a */
    0xe8, 0xe7, 0xff, 0xff, 0xff,                        /* 1044: call 1030 */
    0x90,                                                /* 1049: nop */
    0x89, 0xf8,                                          /* 104a: mov %edi,%eax */
    0xc3,                                                /* 104c: ret */
    0x0f, 0x1f, 0x00,
    0x53,                                                /* 1050: push %rbx */
    0xe8, 0x0a, 0x00, 0x00, 0x00,                        /* 1051: call 1060 */
    0x5b,                                                /* 1056: pop %rbx */
    0xc3,                                                /* 1057: ret */
    0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x53,                                                /* 1060: push %rbx */
    0xe8, 0xea, 0xff, 0xff, 0xff,                        /* 1061: call 1050 */
    0x5b,                                                /* 1066: pop %rbx */
    0xc3,                                                /* 1067: ret */
    0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 1070: mov $0x1,%eax */
    0x0f, 0x1f, 0x00,                                    /* 1075: nopl (%rax) */
    0xc3,                                                /* 1078: ret */
    0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00,
    0x83, 0x3f, 0x00,                                    /* 1080: cmpl $0x0,(%rdi) */
    0x74, 0x01,                                          /* 1083: je 1086 */
    0xf0, 0xff, 0x06,                                    /* 1085: lock incl (%rsi) */
    0xc3,                                                /* 1088: ret */
    0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00,
    0x85, 0xff,                                          /* 1090: test %edi,%edi */
    0x75, 0x02,                                          /* 1092: jne 1096 */
    0xcc,                                                /* 1094: int3 */
    0xc3,                                                /* 1095: ret */
    0x06,                                                /* 1096: (bad) */
};
/* clang-format on */

static fixture f;
static lift_module *m;

void setUp(void)
{
    static const fixture_symbol symbols[] = {
        {0x1000, 14, "loop"},   {0x1010, 9, "tails"},     {0x1020, 6, "to_itself"}, {0x1030, 2, "die"},
        {0x1040, 13, "dies"},   {0x1050, 8, "ping"},      {0x1060, 8, "pong"},      {0x1070, 8, "falls"},
        {0x1078, 1, "into"},    {0x1080, 9, "overlaps"},  {0x1090, 7, "breaks"},
    };
    f = (fixture){.code = code, .code_size = sizeof code};
    memcpy(f.symbols, symbols, sizeof symbols);
    m = fixture_lift(&f, NULL);
}

void tearDown(void)
{
    fixture_free(&f);
}

static void check_block(const lift_func *func, uint64_t start, uint64_t end, lift_end kind, uint32_t successors)
{
    const lift_block *b = fixture_block(func, start);
    TEST_ASSERT_NOT_NULL(b);
    TEST_ASSERT_EQUAL_HEX64(end, b->end);
    TEST_ASSERT_EQUAL(kind, b->end_kind);
    TEST_ASSERT_EQUAL_UINT32(successors, b->succ_count);
}

static void blocks_are_cut_at_jumps_and_their_targets(void)
{
    const lift_func *func = lift_func_named(m, "loop");
    TEST_ASSERT_EQUAL_UINT32(3, func->block_count);
    check_block(func, 0x1000, 0x1004, END_BRANCH, 2);
    check_block(func, 0x1004, 0x100b, END_BRANCH, 2);
    check_block(func, 0x100b, 0x100e, END_RET, 0);
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1000, 0x1004, EDGE_FALL));
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1000, 0x100b, EDGE_TAKEN));
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1004, 0x1004, EDGE_TAKEN));
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1004, 0x100b, EDGE_FALL));
    TEST_ASSERT_EQUAL_HEX64(0x100e, func->end);
}

static void edges_are_grouped_and_predecessors_name_them(void)
{
    for (uint32_t i = 0; i < m->func_count; i++) {
        const lift_func *func = m->funcs[i];
        uint32_t edges = 0, insns = 0, preds = 0;
        TEST_ASSERT_EQUAL_HEX64(func->entry, func->blocks[0].start);
        for (uint32_t b = 0; b < func->block_count; b++) {
            const lift_block *block = &func->blocks[b];
            TEST_ASSERT_EQUAL_UINT32(edges, block->first_succ);
            TEST_ASSERT_EQUAL_UINT32(insns, block->first_insn);
            for (uint32_t e = 0; e < block->succ_count; e++)
                TEST_ASSERT_EQUAL_UINT32(b, func->edges[edges + e].from);
            for (uint32_t p = 0; p < block->pred_count; p++)
                TEST_ASSERT_EQUAL_UINT32(b, func->edges[func->preds[block->first_pred + p]].to);
            TEST_ASSERT_TRUE(b < 2 || func->blocks[b - 1].start <= block->start);
            edges += block->succ_count;
            insns += block->insn_count;
            preds += block->pred_count;
        }
        TEST_ASSERT_EQUAL_UINT32(func->edge_count, edges);
        TEST_ASSERT_EQUAL_UINT32(func->insn_count, insns);
        TEST_ASSERT_EQUAL_UINT32(func->edge_count, preds);
    }
}

static void jumps_to_other_functions_are_tail_calls(void)
{
    const lift_func *func = lift_func_named(m, "tails");
    TEST_ASSERT_EQUAL_UINT32(2, func->block_count);
    check_block(func, 0x1010, 0x1014, END_BRANCH, 1);
    TEST_ASSERT_TRUE(func->blocks[0].tail);
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1010, 0x1014, EDGE_FALL));
    check_block(func, 0x1014, 0x1019, END_TAIL, 0);
    TEST_ASSERT_TRUE(func->returns);
}

static void a_jump_to_the_own_entry_is_an_edge(void)
{
    const lift_func *func = lift_func_named(m, "to_itself");
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1020, 0x1020, EDGE_TAKEN));
    TEST_ASSERT_FALSE(func->blocks[0].tail);
    TEST_ASSERT_EQUAL_UINT32(1, func->blocks[0].pred_count);
}

static void nothing_comes_after_a_call_that_does_not_return(void)
{
    const lift_func *func = lift_func_named(m, "dies");
    check_block(func, 0x1044, 0x1049, END_NORETURN, 0);
    TEST_ASSERT_NULL(fixture_block(func, 0x1049));
    check_block(func, 0x104a, 0x104d, END_RET, 0);
    TEST_ASSERT_TRUE(func->returns);
    TEST_ASSERT_FALSE(lift_func_named(m, "die")->returns);
    TEST_ASSERT_EQUAL_HEX64(0x104d, func->end);
}

static void functions_that_only_call_each_other_do_not_return(void)
{
    const lift_func *ping = lift_func_named(m, "ping"), *pong = lift_func_named(m, "pong");
    TEST_ASSERT_FALSE(ping->returns);
    TEST_ASSERT_FALSE(pong->returns);
    TEST_ASSERT_EQUAL_UINT32(1, ping->block_count);
    check_block(pong, 0x1060, 0x1066, END_NORETURN, 0);
}

static void running_into_another_function_is_a_block_without_instructions(void)
{
    const lift_func *func = lift_func_named(m, "falls");
    TEST_ASSERT_EQUAL_UINT32(2, func->block_count);
    check_block(func, 0x1070, 0x1078, END_FALL, 1);
    check_block(func, 0x1078, 0x1078, END_TAIL, 0);
    TEST_ASSERT_EQUAL_UINT32(0, func->blocks[1].insn_count);
    TEST_ASSERT_TRUE(func->returns);
}

static void code_may_overlap_itself(void)
{
    const lift_func *func = lift_func_named(m, "overlaps"); /* jumps over a lock prefix */
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1080, 0x1085, EDGE_FALL));
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1080, 0x1086, EDGE_TAKEN));
    check_block(func, 0x1085, 0x1088, END_FALL, 1);
    check_block(func, 0x1086, 0x1088, END_FALL, 1);
    check_block(func, 0x1088, 0x1089, END_RET, 0);
    TEST_ASSERT_EQUAL_UINT32(2, fixture_block(func, 0x1088)->pred_count);
    TEST_ASSERT_TRUE(func->complete);
}

static void a_breakpoint_goes_on_and_bad_bytes_do_not(void)
{
    const lift_func *func = lift_func_named(m, "breaks");
    check_block(func, 0x1094, 0x1096, END_RET, 0);
    check_block(func, 0x1096, 0x1096, END_BAD, 0);
    TEST_ASSERT_FALSE(func->complete);
    TEST_ASSERT_EQUAL_UINT32(1, m->stats.bad_blocks);
}

static void functions_are_found_by_name_address_and_content(void)
{
    TEST_ASSERT_EQUAL_PTR(lift_func_at(m, 0x1040), lift_func_named(m, "dies"));
    TEST_ASSERT_EQUAL_PTR(lift_func_at(m, 0x1040), lift_func_named(m, "0x1046"));
    TEST_ASSERT_EQUAL_PTR(lift_func_at(m, 0x1010), lift_func_covering(m, 0x1018));
    TEST_ASSERT_NULL(lift_func_covering(m, 0x1049));
    TEST_ASSERT_NULL(lift_func_at(m, 0x1041));
    TEST_ASSERT_NULL(lift_func_named(m, "nobody"));
    TEST_ASSERT_NULL(lift_func_named(m, "0xzz"));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(blocks_are_cut_at_jumps_and_their_targets);
    RUN_TEST(edges_are_grouped_and_predecessors_name_them);
    RUN_TEST(jumps_to_other_functions_are_tail_calls);
    RUN_TEST(a_jump_to_the_own_entry_is_an_edge);
    RUN_TEST(nothing_comes_after_a_call_that_does_not_return);
    RUN_TEST(functions_that_only_call_each_other_do_not_return);
    RUN_TEST(running_into_another_function_is_a_block_without_instructions);
    RUN_TEST(code_may_overlap_itself);
    RUN_TEST(a_breakpoint_goes_on_and_bad_bytes_do_not);
    RUN_TEST(functions_are_found_by_name_address_and_content);
    return UNITY_END();
}
