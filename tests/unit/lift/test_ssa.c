/* ssa.c: phis, entry values, dead definitions. */
#include "tests/unit/lift/ir_fixture.h"

static const uint8_t loop[] = {
    0x31, 0xc0,                                        /* xor eax,eax */
    0x48, 0x01, 0xf8,                                  /* add rax,rdi */
    0x48, 0xff, 0xce,                                  /* dec rsi */
    0x75, 0xf8,                                        /* jne 0x2 */
    0xc3,                                              /* ret */
};

static void a_loop_has_a_phi_for_what_it_changes(void)
{
    LIFT(loop);
    TEST_ASSERT_EQUAL_UINT(2, count_of(IR_PHI));
    TEST_ASSERT_EQUAL_UINT32(1, now.ir->loop_count);
    const ir_insn *sum = returned();
    TEST_ASSERT_EQUAL_STRING("lea", ir_op_name((ir_op)sum->op));
    TEST_ASSERT_EQUAL_STRING("phi", ir_op_name((ir_op)at(sum->a)->op));
    assert_entry(IR_RDI, sum->b);
}

static const uint8_t first_is_loop[] = {
    0x48, 0x83, 0xc7, 0x01,                            /* add rdi,0x1 */
    0x48, 0x39, 0xf7,                                  /* cmp rdi,rsi */
    0x75, 0xf7,                                        /* jne 0x0 */
    0x48, 0x89, 0xf8,                                  /* mov rax,rdi */
    0xc3,                                              /* ret */
};

static void a_loop_at_the_entry_gets_the_entry_value_as_last_argument(void)
{
    LIFT(first_is_loop);
    ir_value phi = nth(IR_PHI, 0);
    TEST_ASSERT_EQUAL_UINT32(2, at(phi)->b);
    assert_entry(IR_RDI, arg(phi, 1));
    TEST_ASSERT_EQUAL_STRING("lea", ir_op_name((ir_op)at(arg(phi, 0))->op));
}

static const uint8_t diamond[] = {
    0x85, 0xff,                                        /* test edi,edi */
    0x74, 0x0c,                                        /* je 0x10 */
    0x48, 0xc7, 0xc1, 0x01, 0x00, 0x00, 0x00,          /* mov rcx,0x1 */
    0x48, 0x89, 0xf0,                                  /* mov rax,rsi */
    0xeb, 0x0a,                                        /* jmp 0x1a */
    0x48, 0xc7, 0xc1, 0x02, 0x00, 0x00, 0x00,          /* mov rcx,0x2 */
    0x48, 0x89, 0xd0,                                  /* mov rax,rdx */
    0xc3,                                              /* ret */
};

static void a_variable_that_is_dead_at_a_join_has_no_phi_there(void)
{
    LIFT(diamond);
    TEST_ASSERT_EQUAL_UINT(1, count_of(IR_PHI));
    TEST_ASSERT_EQUAL_STRING("phi", ir_op_name((ir_op)returned()->op));
    TEST_ASSERT_EQUAL_UINT16(IR_RAX, returned()->var);
}

static const uint8_t spared[] = {
    0x48, 0x89, 0xf9,                                  /* mov rcx,rdi */
    0xe8, 0x04, 0x00, 0x00, 0x00,                      /* call c */
    0x48, 0x89, 0xc8,                                  /* mov rax,rcx */
    0xc3,                                              /* ret */
    0xc3,                                              /* ret */
};

static void a_register_after_a_local_call_may_be_what_it_was_before(void)
{
    LIFT(spared);
    const ir_insn *after = returned();
    TEST_ASSERT_EQUAL_STRING("clobber", ir_op_name((ir_op)after->op));
    TEST_ASSERT_EQUAL_UINT32(nth(IR_CALL, 0), after->a);
    assert_entry(IR_RDI, after->b);
}

static const uint8_t dead[] = {
    0x48, 0x8b, 0x0f,                                  /* mov rcx,QWORD PTR [rdi] */
    0x48, 0xc7, 0xc1, 0x05, 0x00, 0x00, 0x00,          /* mov rcx,0x5 */
    0x48, 0x89, 0xc8,                                  /* mov rax,rcx */
    0xc3,                                              /* ret */
};

static void a_definition_that_nothing_needs_is_gone_but_its_access_stays(void)
{
    LIFT(dead);
    TEST_ASSERT_EQUAL_UINT(0, count_of(IR_LOAD));
    TEST_ASSERT_EQUAL_UINT(1, accesses_with(IR_READ) - accesses_with(IR_READ | IR_IMPLICIT));
    TEST_ASSERT_EQUAL_STRING("const", ir_op_name((ir_op)returned()->op));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(a_loop_has_a_phi_for_what_it_changes);
    RUN_TEST(a_loop_at_the_entry_gets_the_entry_value_as_last_argument);
    RUN_TEST(a_variable_that_is_dead_at_a_join_has_no_phi_there);
    RUN_TEST(a_register_after_a_local_call_may_be_what_it_was_before);
    RUN_TEST(a_definition_that_nothing_needs_is_gone_but_its_access_stays);
    return UNITY_END();
}
