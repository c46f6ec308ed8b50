/* Finding functions when no symbol tells of them. */
#include "flow_fixture.h"

#include "unity.h"

/* clang-format off */
static const uint8_t code[] = {
    0xe8, 0x0b, 0x00, 0x00, 0x00,                        /* 1000: call 1010 */
    0xf4,                                                /* 1005: hlt */
    0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x53,                                                /* 1010: push %rbx */
    0x48, 0x8d, 0x3d, 0x28, 0x00, 0x00, 0x00,            /* 1011: lea 0x28(%rip),%rdi */
    0xe8, 0x03, 0x00, 0x00, 0x00,                        /* 1018: call 1020 */
    0x5b,                                                /* 101d: pop %rbx */
    0xeb, 0x40,                                          /* 101e: jmp 1060 */
    0x83, 0xff, 0x02,                                    /* 1020: cmp $0x2,%edi */
    0x77, 0x07,                                          /* 1023: ja 102c */
    0xff, 0x24, 0xfd, 0x00, 0x40, 0x00, 0x00,            /* 1025: jmp *0x4000(,%rdi,8) */
    0xc3,                                                /* 102c: ret */
    0xb8, 0x01, 0x00, 0x00, 0x00,                        /* 102d: mov $0x1,%eax */
    0xc3,                                                /* 1032: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x66, 0x90,
    0x48, 0x89, 0xf8,                                    /* 1040: mov %rdi,%rax */
    0xc3,                                                /* 1043: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90,
    0x8d, 0x04, 0x3f,                                    /* 1050: lea (%rdi,%rdi,1),%eax */
    0xc3,                                                /* 1053: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90,
    0x31, 0xc0,                                          /* 1060: xor %eax,%eax */
    0xc3,                                                /* 1062: ret */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x66, 0x90,
    0x55,                                                /* 1070: push %rbp */
    0x48, 0x89, 0xe5,                                    /* 1071: mov %rsp,%rbp */
    0xe8, 0x07, 0x00, 0x00, 0x00,                        /* 1074: call 1080 */
    0x5d,                                                /* 1079: pop %rbp */
    0xc3,                                                /* 107a: ret */
    0x0f, 0x1f, 0x44, 0x00, 0x00,
    0x0f, 0x0b,                                          /* 1080: ud2 */
    0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0f, 0x1f, 0x00,
    0x85, 0xff,                                          /* 1090: test %edi,%edi */
    0x74, 0x0d,                                          /* 1092: je 10a1 */
    0x89, 0xf8,                                          /* 1094: mov %edi,%eax */
    0xc3,                                                /* 1096: ret */
    0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x06,                                                /* 10a0: (bad) */
    0xb8, 0x02, 0x00, 0x00, 0x00,                        /* 10a1: mov $0x2,%eax */
    0xeb, 0xee,                                          /* 10a6: jmp 1096 */
    0x53,                                                /* 10a8: push %rbx */
    0x89, 0xfb,                                          /* 10a9: mov %edi,%ebx */
    0xe8, 0x60, 0xff, 0xff, 0xff,                        /* 10ab: call 1010 */
    0x5b,                                                /* 10b0: pop %rbx */
    0xc3,                                                /* 10b1: ret */
};
/* clang-format on */

static fixture f;

void setUp(void)
{
    f = (fixture){.code = code, .code_size = sizeof code, .fixed = true};
    fixture_table64(&f, 0, (uint64_t[]){0x102c, 0x102d, 0x102c}, 3);
    fixture_word(f.data, 0x1050, 8);
    f.frames[0] = (fixture_frame){0x1090, 0x1097, 8};
    f.frames[1] = (fixture_frame){0x10a1, 0x10a8, 8}; /* looks like a function's, but is the cold part of 0x1090 */
    f.frames[2] = (fixture_frame){0x10a8, 0x10b2, 8};
}

void tearDown(void)
{
    fixture_free(&f);
}

static void check_found(const lift_module *m, uint64_t entry, uint64_t end, uint32_t by)
{
    const lift_func *func = lift_func_at(m, entry);
    TEST_ASSERT_NOT_NULL(func);
    TEST_ASSERT_EQUAL_HEX64(end, func->end);
    TEST_ASSERT_BITS(by, by, func->found);
}

static void every_kind_of_evidence_finds_its_functions(void)
{
    lift_module *m = fixture_lift(&f, NULL);
    check_found(m, 0x1000, 0x1006, FOUND_ENTRY);
    check_found(m, 0x1010, 0x1020, FOUND_CALL);
    check_found(m, 0x1020, 0x1033, FOUND_CALL);
    check_found(m, 0x1040, 0x1044, FOUND_POINTER); /* a lea names it */
    check_found(m, 0x1050, 0x1054, FOUND_POINTER); /* a word of data points there */
    check_found(m, 0x1060, 0x1063, FOUND_TAIL);
    check_found(m, 0x1070, 0x107b, FOUND_GAP);
    check_found(m, 0x1080, 0x1082, FOUND_CALL);
    check_found(m, 0x1090, 0x1097, FOUND_FDE);
    check_found(m, 0x10a8, 0x10b2, FOUND_FDE);
    TEST_ASSERT_EQUAL_UINT32(10, m->func_count);
    for (uint32_t i = 0; i < m->func_count; i++) { /* nothing but its looks speaks for what is in the gap, and calls 1080 */
        const uint64_t entry = m->funcs[i]->entry;
        TEST_ASSERT_EQUAL_INT(entry == 0x1070 || entry == 0x1080, m->funcs[i]->guessed);
    }
    TEST_ASSERT_EQUAL_STRING("sub_1010", lift_func_at(m, 0x1010)->name);
}

static void cold_parts_belong_to_the_function_that_jumps_there(void)
{
    lift_module *m = fixture_lift(&f, NULL);
    const lift_func *func = lift_func_at(m, 0x1090);
    TEST_ASSERT_NULL(lift_func_at(m, 0x10a1));
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x1090, 0x10a1, EDGE_TAKEN));
    TEST_ASSERT_TRUE(fixture_has_edge(func, 0x10a1, 0x1096, EDGE_TAKEN));
    TEST_ASSERT_EQUAL_PTR(func, lift_func_covering(m, 0x10a6));
}

static void a_frame_that_begins_with_a_deeper_stack_is_a_part(void)
{
    f.frames[1].cfa = 16;
    lift_module *m = fixture_lift(&f, NULL);
    TEST_ASSERT_NULL(lift_func_at(m, 0x10a1));
    TEST_ASSERT_EQUAL_PTR(lift_func_at(m, 0x1090), lift_func_covering(m, 0x10a1));
}

static void a_called_part_is_a_function_after_all(void)
{
    static uint8_t called[sizeof code];
    memcpy(called, code, sizeof code);
    fixture_word(called + 0xac, 0x10a1 - 0x10b0, 4); /* the call at 10ab goes there */
    f.code = called;
    lift_module *m = fixture_lift(&f, NULL);
    check_found(m, 0x10a1, 0x10a8, FOUND_CALL);
    TEST_ASSERT_TRUE(lift_func_at(m, 0x1090)->blocks[0].tail);
}

static void entries_of_jump_tables_are_no_functions(void)
{
    lift_module *m = fixture_lift(&f, NULL);
    TEST_ASSERT_NULL(lift_func_at(m, 0x102d));
    TEST_ASSERT_EQUAL_UINT32(1, lift_func_at(m, 0x1020)->resolved_jumps);
}

static void symbols_can_be_ignored(void)
{
    f.symbols[0] = (fixture_symbol){0x1010, 16, "known"};
    f.symbols[1] = (fixture_symbol){0x1014, 4, "odd"}; /* in the middle of it */
    lift_module *m = fixture_lift(&f, &(lift_options){.ignore_symbols = true, .jobs = 1});
    TEST_ASSERT_EQUAL_UINT32(10, m->func_count);
    TEST_ASSERT_EQUAL_STRING("sub_1010", lift_func_at(m, 0x1010)->name);
}

static void the_number_of_threads_makes_no_difference(void)
{
    lift_module *m = fixture_lift(&f, NULL), *other = lift_open(f.img, &(lift_options){.jobs = 4, .flow_only = true});
    TEST_ASSERT_EQUAL_UINT32(m->func_count, other->func_count);
    for (uint32_t i = 0; i < m->func_count; i++) {
        const lift_func *a = m->funcs[i], *b = other->funcs[i];
        TEST_ASSERT_EQUAL_HEX64(a->entry, b->entry);
        TEST_ASSERT_EQUAL_HEX64(a->end, b->end);
        TEST_ASSERT_EQUAL_UINT32(a->found, b->found);
        TEST_ASSERT_EQUAL_UINT32(a->insn_count, b->insn_count);
        TEST_ASSERT_EQUAL_UINT32(a->edge_count, b->edge_count);
        for (uint32_t e = 0; e < a->edge_count; e++)
            TEST_ASSERT_EQUAL_UINT32(a->preds[e], b->preds[e]);
    }
    lift_close(other);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(every_kind_of_evidence_finds_its_functions);
    RUN_TEST(cold_parts_belong_to_the_function_that_jumps_there);
    RUN_TEST(a_frame_that_begins_with_a_deeper_stack_is_a_part);
    RUN_TEST(a_called_part_is_a_function_after_all);
    RUN_TEST(entries_of_jump_tables_are_no_functions);
    RUN_TEST(symbols_can_be_ignored);
    RUN_TEST(the_number_of_threads_makes_no_difference);
    return UNITY_END();
}
