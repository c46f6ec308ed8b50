/* Indirect jumps in the forms that compilers give them. Tables lie side by side, and where one ends, words follow that
 * would be good targets too: a table that is read too far shows. */
#include "flow_fixture.h"

#include "unity.h"

/* clang-format off */
static const uint8_t code[] = {
    0x83, 0xff, 0x03,                                    /* 1000: cmp $0x3,%edi */
    0x77, 0x1e,                                          /* 1003: ja 1023 */
    0x48, 0x8d, 0x15, 0xf4, 0x2f, 0x00, 0x00,            /* 1005: lea 0x2ff4(%rip),%rdx */
    0x89, 0xff,                                          /* 100c: mov %edi,%edi */
    0x48, 0x63, 0x04, 0xba,                              /* 100e: movslq (%rdx,%rdi,4),%rax */
    0x48, 0x01, 0xd0,                                    /* 1012: add %rdx,%rax */
    0xff, 0xe0,                                          /* 1015: jmp *%rax */
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 1017: mov $0x1,%eax */
    0xc3,                                                /* 101c: ret */
    0xb8, 0x02, 0x00, 0x00, 0x00,                        /* 101d: mov $0x2,%eax */
    0xc3,                                                /* 1022: ret */
    0x31, 0xc0,                                          /* 1023: xor %eax,%eax */
    0xc3,                                                /* 1025: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x0f, 0x1f, 0x40, 0x00,
    0x8d, 0x4f, 0xbf,                                    /* 1040: lea -0x41(%rdi),%ecx */
    0x80, 0xf9, 0x02,                                    /* 1043: cmp $0x2,%cl */
    0x77, 0x1f,                                          /* 1046: ja 1067 */
    0x0f, 0xb6, 0xc9,                                    /* 1048: movzbl %cl,%ecx */
    0x48, 0x8d, 0x15, 0xbe, 0x2f, 0x00, 0x00,            /* 104b: lea 0x2fbe(%rip),%rdx */
    0x48, 0x63, 0x0c, 0x8a,                              /* 1052: movslq (%rdx,%rcx,4),%rcx */
    0x48, 0x01, 0xd1,                                    /* 1056: add %rdx,%rcx */
    0xff, 0xe1,                                          /* 1059: jmp *%rcx */
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 105b: mov $0x1,%eax */
    0xc3,                                                /* 1060: ret */
    0xb8, 0x02, 0x00, 0x00, 0x00,                        /* 1061: mov $0x2,%eax */
    0xc3,                                                /* 1066: ret */
    0x31, 0xc0,                                          /* 1067: xor %eax,%eax */
    0xc3,                                                /* 1069: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00,
    0x00, 0x00, 0x00, 0x00,
    0x55,                                                /* 1080: push %rbp */
    0x48, 0x89, 0xe5,                                    /* 1081: mov %rsp,%rbp */
    0x89, 0x7d, 0xfc,                                    /* 1084: mov %edi,-0x4(%rbp) */
    0x8b, 0x45, 0xfc,                                    /* 1087: mov -0x4(%rbp),%eax */
    0x89, 0xc1,                                          /* 108a: mov %eax,%ecx */
    0x48, 0x89, 0x4d, 0xf0,                              /* 108c: mov %rcx,-0x10(%rbp) */
    0x83, 0xe8, 0x02,                                    /* 1090: sub $0x2,%eax */
    0x77, 0x1b,                                          /* 1093: ja 10b0 */
    0x48, 0x8b, 0x45, 0xf0,                              /* 1095: mov -0x10(%rbp),%rax */
    0x48, 0x8d, 0x0d, 0x80, 0x2f, 0x00, 0x00,            /* 1099: lea 0x2f80(%rip),%rcx */
    0x48, 0x63, 0x04, 0x81,                              /* 10a0: movslq (%rcx,%rax,4),%rax */
    0x48, 0x01, 0xc8,                                    /* 10a4: add %rcx,%rax */
    0xff, 0xe0,                                          /* 10a7: jmp *%rax */
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 10a9: mov $0x1,%eax */
    0x5d,                                                /* 10ae: pop %rbp */
    0xc3,                                                /* 10af: ret */
    0x31, 0xc0,                                          /* 10b0: xor %eax,%eax */
    0x5d,                                                /* 10b2: pop %rbp */
    0xc3,                                                /* 10b3: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90,
    0x53,                                                /* 10c0: push %rbx */
    0x41, 0x56,                                          /* 10c1: push %r14 */
    0x4c, 0x8d, 0x35, 0x66, 0x2f, 0x00, 0x00,            /* 10c3: lea 0x2f66(%rip),%r14 */
    0x48, 0x89, 0xfb,                                    /* 10ca: mov %rdi,%rbx */
    0x0f, 0xb6, 0x03,                                    /* 10cd: movzbl (%rbx),%eax */
    0x48, 0x83, 0xc3, 0x01,                              /* 10d0: add $0x1,%rbx */
    0x83, 0xe0, 0x03,                                    /* 10d4: and $0x3,%eax */
    0x49, 0x63, 0x04, 0x86,                              /* 10d7: movslq (%r14,%rax,4),%rax */
    0x4c, 0x01, 0xf0,                                    /* 10db: add %r14,%rax */
    0xff, 0xe0,                                          /* 10de: jmp *%rax */
    0xff, 0xd6,                                          /* 10e0: call *%rsi */
    0xeb, 0xe9,                                          /* 10e2: jmp 10cd */
    0x41, 0x5e,                                          /* 10e4: pop %r14 */
    0x5b,                                                /* 10e6: pop %rbx */
    0xc3,                                                /* 10e7: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x66, 0x90,
    0x0f, 0xb6, 0x07,                                    /* 1100: movzbl (%rdi),%eax */
    0x48, 0x8d, 0x15, 0x36, 0x2f, 0x00, 0x00,            /* 1103: lea 0x2f36(%rip),%rdx */
    0x48, 0x63, 0x04, 0x82,                              /* 110a: movslq (%rdx,%rax,4),%rax */
    0x48, 0x01, 0xd0,                                    /* 110e: add %rdx,%rax */
    0xff, 0xe0,                                          /* 1111: jmp *%rax */
    0x8b, 0x05, 0x37, 0x2f, 0x00, 0x00,                  /* 1113: mov 0x2f37(%rip),%eax */
    0xc3,                                                /* 1119: ret */
    0xc3,                                                /* 111a: ret */
    0x0f, 0x1f, 0x44, 0x00, 0x00,
    0x48, 0x83, 0xff, 0x02,                              /* 1120: cmp $0x2,%rdi */
    0x77, 0x0d,                                          /* 1124: ja 1133 */
    0xff, 0x24, 0xfd, 0x60, 0x40, 0x00, 0x00,            /* 1126: jmp *0x4060(,%rdi,8) */
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 112d: mov $0x1,%eax */
    0xc3,                                                /* 1132: ret */
    0xc3,                                                /* 1133: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90,
    0xb8, 0x03, 0x00, 0x00, 0x00,                        /* 1140: mov $0x3,%eax */
    0x83, 0xff, 0x03,                                    /* 1145: cmp $0x3,%edi */
    0x0f, 0x42, 0xc7,                                    /* 1148: cmovb %edi,%eax */
    0x89, 0xc0,                                          /* 114b: mov %eax,%eax */
    0xff, 0x24, 0xc5, 0x80, 0x40, 0x00, 0x00,            /* 114d: jmp *0x4080(,%rax,8) */
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 1154: mov $0x1,%eax */
    0xc3,                                                /* 1159: ret */
    0xc3,                                                /* 115a: ret */
    0x0f, 0x1f, 0x44, 0x00, 0x00,
    0x48, 0x83, 0xff, 0x01,                              /* 1160: cmp $0x1,%rdi */
    0x77, 0x1d,                                          /* 1164: ja 1183 */
    0x85, 0xf6,                                          /* 1166: test %esi,%esi */
    0x74, 0x03,                                          /* 1168: je 116d */
    0xff, 0xd2,                                          /* 116a: call *%rdx */
    0xc3,                                                /* 116c: ret */
    0x85, 0xc9,                                          /* 116d: test %ecx,%ecx */
    0x75, 0x06,                                          /* 116f: jne 1177 */
    0x41, 0xb8, 0x07, 0x00, 0x00, 0x00,                  /* 1171: mov $0x7,%r8d */
    0xff, 0x24, 0xfd, 0xa0, 0x40, 0x00, 0x00,            /* 1177: jmp *0x40a0(,%rdi,8) */
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 117e: mov $0x1,%eax */
    0xc3,                                                /* 1183: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00,
    0x48, 0x83, 0xec, 0x08,                              /* 11a0: sub $0x8,%rsp */
    0x48, 0x83, 0xff, 0x01,                              /* 11a4: cmp $0x1,%rdi */
    0x77, 0x07,                                          /* 11a8: ja 11b1 */
    0xff, 0x24, 0xfd, 0xb0, 0x40, 0x00, 0x00,            /* 11aa: jmp *0x40b0(,%rdi,8) */
    0x48, 0x83, 0xc4, 0x08,                              /* 11b1: add $0x8,%rsp */
    0xc3,                                                /* 11b5: ret */
    0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xff, 0x24, 0xfd, 0xc0, 0x40, 0x00, 0x00,            /* 11c0: jmp *0x40c0(,%rdi,8) */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x0f, 0x1f, 0x00,
    0x53,                                                /* 11e0: push %rbx */
    0x48, 0x89, 0xfb,                                    /* 11e1: mov %rdi,%rbx */
    0x48, 0x8b, 0x07,                                    /* 11e4: mov (%rdi),%rax */
    0x5b,                                                /* 11e7: pop %rbx */
    0xff, 0x60, 0x18,                                    /* 11e8: jmp *0x18(%rax) */
};
/* clang-format on */

static fixture f;
static lift_module *m;

void setUp(void)
{
    static const fixture_symbol symbols[] = {
        {0x1000, 0x26, "pic"},      {0x1040, 0x2a, "offset"}, {0x1080, 0x34, "spilled"}, {0x10c0, 0x28, "hoisted"},
        {0x1100, 0x1b, "byte"},     {0x1120, 0x14, "absolute"}, {0x1140, 0x1b, "clamped"}, {0x1160, 0x24, "far"},
        {0x11a0, 0x16, "wrong"},    {0x11c0, 7, "functions"}, {0x11e0, 11, "method"},
    };
    f = (fixture){.code = code, .code_size = sizeof code, .fixed = true};
    memcpy(f.symbols, symbols, sizeof symbols);
    fixture_table32(&f, 0x00, (uint64_t[]){0x1017, 0x101d, 0x1023, 0x1017}, 4);
    fixture_table32(&f, 0x10, (uint64_t[]){0x105b, 0x1061, 0x1067, 0x105b}, 4);
    fixture_table32(&f, 0x20, (uint64_t[]){0x10a9, 0x10b0, 0x10a9, 0x10b0}, 4);
    fixture_table32(&f, 0x30, (uint64_t[]){0x10e0, 0x10e4, 0x10e0, 0x10e0}, 4);
    fixture_table32(&f, 0x40, (uint64_t[]){0x1113, 0x111a, 0x1113, 0x111a, 0x1119, 0x1119, 0x1119, 0x1119}, 8);
    fixture_table64(&f, 0x60, (uint64_t[]){0x112d, 0x1133, 0x112d, 0x1132}, 4);
    fixture_table64(&f, 0x80, (uint64_t[]){0x1154, 0x115a, 0x1154, 0x1159}, 4);
    fixture_table64(&f, 0xa0, (uint64_t[]){0x117e, 0x1183}, 2);
    fixture_table64(&f, 0xb0, (uint64_t[]){0x11b1, 0x1000}, 2);
    fixture_table64(&f, 0xc0, (uint64_t[]){0x1000, 0x1040}, 2);
    m = fixture_lift(&f, NULL);
}

void tearDown(void)
{
    fixture_free(&f);
}

/* The one table of the function has `count` entries at `table`, and the block at `from` goes to just these targets. */
static void check_switch(const char *name, uint64_t from, uint64_t table, uint32_t count, const uint64_t *targets,
                         uint32_t target_count)
{
    const lift_func *func = lift_func_named(m, name);
    TEST_ASSERT_NOT_NULL(func);
    TEST_ASSERT_EQUAL_UINT32(1, func->resolved_jumps);
    TEST_ASSERT_EQUAL_UINT32(0, func->unresolved_jumps);
    TEST_ASSERT_TRUE(func->complete);
    TEST_ASSERT_EQUAL_UINT32(1, func->table_count);
    TEST_ASSERT_EQUAL_HEX64(table, func->tables[0].table);
    TEST_ASSERT_EQUAL_UINT32(count, func->tables[0].count);
    const lift_block *block = fixture_block(func, from);
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_EQUAL(END_SWITCH, block->end_kind);
    TEST_ASSERT_EQUAL_UINT32(target_count, block->succ_count);
    for (uint32_t i = 0; i < target_count; i++)
        TEST_ASSERT_TRUE(fixture_has_edge(func, from, targets[i], EDGE_SWITCH));
    TEST_ASSERT_EQUAL_UINT32(func->tables[0].insn, block->first_insn + block->insn_count - 1);
}

static void a_table_of_distances_is_bounded_by_a_comparison(void)
{
    check_switch("pic", 0x1005, 0x4000, 4, (uint64_t[]){0x1017, 0x101d, 0x1023}, 3);
}

static void the_bound_holds_for_a_part_of_a_register_with_an_offset(void)
{
    check_switch("offset", 0x1048, 0x4010, 3, (uint64_t[]){0x105b, 0x1061, 0x1067}, 3);
}

static void unoptimised_code_keeps_the_index_on_the_stack(void)
{
    check_switch("spilled", 0x1095, 0x4020, 3, (uint64_t[]){0x10a9, 0x10b0}, 2);
}

static void the_base_may_be_loaded_before_a_loop_and_the_index_masked(void)
{
    check_switch("hoisted", 0x10cd, 0x4030, 4, (uint64_t[]){0x10e0, 0x10e4}, 2);
}

static void a_table_without_bound_ends_at_the_next_object(void)
{
    check_switch("byte", 0x1100, 0x4040, 4, (uint64_t[]){0x1113, 0x111a}, 2);
}

static void a_table_of_addresses_is_read_up_to_its_bound(void)
{
    check_switch("absolute", 0x1126, 0x4060, 3, (uint64_t[]){0x112d, 0x1133}, 2);
}

static void a_conditional_move_bounds_both_ways(void)
{
    check_switch("clamped", 0x1140, 0x4080, 4, (uint64_t[]){0x1154, 0x1159, 0x115a}, 3);
}

static void the_comparison_may_be_several_blocks_up(void)
{
    check_switch("far", 0x1177, 0x40a0, 2, (uint64_t[]){0x117e, 0x1183}, 2);
}

static void a_table_with_an_entry_elsewhere_is_not_believed(void)
{
    const lift_func *func = lift_func_named(m, "wrong");
    TEST_ASSERT_EQUAL_UINT32(1, func->unresolved_jumps);
    TEST_ASSERT_FALSE(func->complete);
    TEST_ASSERT_EQUAL(END_UNKNOWN, fixture_block(func, 0x11aa)->end_kind);
    TEST_ASSERT_EQUAL_UINT32(0, fixture_block(func, 0x11aa)->succ_count);
    TEST_ASSERT_TRUE(func->returns);
}

static void jumps_through_pointers_with_the_frame_gone_are_tail_calls(void)
{
    const lift_func *table = lift_func_named(m, "functions"), *method = lift_func_named(m, "method");
    TEST_ASSERT_EQUAL(END_TAIL_IND, table->blocks[0].end_kind);
    TEST_ASSERT_EQUAL(END_TAIL_IND, method->blocks[0].end_kind);
    TEST_ASSERT_EQUAL_UINT32(1, table->tail_jumps);
    TEST_ASSERT_TRUE(table->returns);
    TEST_ASSERT_TRUE(method->complete);
}

static void nothing_else_is_taken_for_a_function(void)
{
    TEST_ASSERT_EQUAL_UINT32(11, m->func_count);
    TEST_ASSERT_EQUAL_UINT32(8, m->stats.jumps_resolved);
    TEST_ASSERT_EQUAL_UINT32(1, m->stats.jumps_unresolved);
    TEST_ASSERT_EQUAL_UINT32(2, m->stats.jumps_tail);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(a_table_of_distances_is_bounded_by_a_comparison);
    RUN_TEST(the_bound_holds_for_a_part_of_a_register_with_an_offset);
    RUN_TEST(unoptimised_code_keeps_the_index_on_the_stack);
    RUN_TEST(the_base_may_be_loaded_before_a_loop_and_the_index_masked);
    RUN_TEST(a_table_without_bound_ends_at_the_next_object);
    RUN_TEST(a_table_of_addresses_is_read_up_to_its_bound);
    RUN_TEST(a_conditional_move_bounds_both_ways);
    RUN_TEST(the_comparison_may_be_several_blocks_up);
    RUN_TEST(a_table_with_an_entry_elsewhere_is_not_believed);
    RUN_TEST(jumps_through_pointers_with_the_frame_gone_are_tail_calls);
    RUN_TEST(nothing_else_is_taken_for_a_function);
    return UNITY_END();
}
