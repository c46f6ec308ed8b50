/* frame.c: which stack slots become variables. */
#include "tests/unit/lift/ir_fixture.h"

static const uint8_t spill[] = {
    0x55,                                              /* push rbp */
    0x48, 0x89, 0xe5,                                  /* mov rbp,rsp */
    0x48, 0x89, 0x7d, 0xf8,                            /* mov QWORD PTR [rbp-0x8],rdi */
    0x48, 0x8b, 0x45, 0xf8,                            /* mov rax,QWORD PTR [rbp-0x8] */
    0x5d,                                              /* pop rbp */
    0xc3,                                              /* ret */
};

static void a_spilled_argument_is_still_the_argument(void)
{
    LIFT(spill);
    assert_entry(IR_RDI, arg(nth(IR_RET, 0), IR_RET_RAX));
    assert_entry(IR_RBP, arg(nth(IR_RET, 0), IR_RET_RBP));
    TEST_ASSERT_EQUAL_UINT(0, count_of(IR_LOAD));
    TEST_ASSERT_FALSE(now.ir->frame_escapes);
}

static const uint8_t escaping[] = {
    0x48, 0x83, 0xec, 0x18,                            /* sub rsp,0x18 */
    0x48, 0x89, 0x7c, 0x24, 0x08,                      /* mov QWORD PTR [rsp+0x8],rdi */
    0x48, 0x8d, 0x7c, 0x24, 0x08,                      /* lea rdi,[rsp+0x8] */
    0xe8, 0x0a, 0x00, 0x00, 0x00,                      /* call 1d */
    0x48, 0x8b, 0x44, 0x24, 0x08,                      /* mov rax,QWORD PTR [rsp+0x8] */
    0x48, 0x83, 0xc4, 0x18,                            /* add rsp,0x18 */
    0xc3,                                              /* ret */
    0xc3,                                              /* ret */
};

static void a_slot_whose_address_is_passed_stays_in_memory(void)
{
    LIFT(escaping);
    TEST_ASSERT_TRUE(now.ir->frame_escapes);
    TEST_ASSERT_EQUAL_STRING("load", ir_op_name((ir_op)returned()->op));
    TEST_ASSERT_EQUAL_UINT(1, count_of(IR_LOAD));
}

static const uint8_t narrow[] = {
    0x48, 0x89, 0x7c, 0x24, 0xf8,                      /* mov QWORD PTR [rsp-0x8],rdi */
    0x8b, 0x44, 0x24, 0xfc,                            /* mov eax,DWORD PTR [rsp-0x4] */
    0xc3,                                              /* ret */
};

static void a_part_of_a_slot_is_extracted(void)
{
    LIFT(narrow);
    const ir_insn *value = returned();
    TEST_ASSERT_EQUAL_STRING("extract", ir_op_name((ir_op)value->op));
    TEST_ASSERT_EQUAL_INT64(4, value->imm);
    TEST_ASSERT_EQUAL_UINT16(4, value->width);
    assert_entry(IR_RDI, value->a);
}

static const uint8_t crossing[] = {
    0x48, 0x89, 0x7c, 0x24, 0xf0,                      /* mov QWORD PTR [rsp-0x10],rdi */
    0x48, 0x89, 0x74, 0x24, 0xf8,                      /* mov QWORD PTR [rsp-0x8],rsi */
    0x48, 0x8b, 0x44, 0x24, 0xf4,                      /* mov rax,QWORD PTR [rsp-0xc] */
    0xc3,                                              /* ret */
};

static void an_access_across_two_slots_keeps_them_in_memory(void)
{
    LIFT(crossing);
    TEST_ASSERT_EQUAL_STRING("load", ir_op_name((ir_op)returned()->op));
    TEST_ASSERT_EQUAL_UINT(2, count_of(IR_STORE));
}

static const uint8_t below[] = {
    0x57,                                              /* push rdi */
    0x5e,                                              /* pop rsi */
    0xe8, 0x06, 0x00, 0x00, 0x00,                      /* call d */
    0x48, 0x83, 0xec, 0x08,                            /* sub rsp,0x8 */
    0x58,                                              /* pop rax */
    0xc3,                                              /* ret */
    0xc3,                                              /* ret */
};

static void a_slot_below_the_stack_pointer_does_not_survive_a_call(void)
{
    LIFT(below);
    TEST_ASSERT_EQUAL_STRING("clobber", ir_op_name((ir_op)returned()->op));
}

static const uint8_t stack_args[] = {
    0x48, 0x83, 0xec, 0x18,                            /* sub rsp,0x18 */
    0x48, 0x89, 0x3c, 0x24,                            /* mov QWORD PTR [rsp],rdi */
    0x48, 0x89, 0x74, 0x24, 0x08,                      /* mov QWORD PTR [rsp+0x8],rsi */
    0xe8, 0x05, 0x00, 0x00, 0x00,                      /* call 17 */
    0x48, 0x83, 0xc4, 0x18,                            /* add rsp,0x18 */
    0xc3,                                              /* ret */
    0xc3,                                              /* ret */
};

static void slots_at_the_stack_pointer_are_arguments_of_a_call(void)
{
    LIFT(stack_args);
    ir_value call = nth(IR_CALL, 0);
    assert_entry(IR_RDI, arg(call, IR_CALL_ARGS));
    assert_entry(IR_RSI, arg(call, IR_CALL_ARGS + 1));
}

static const uint8_t dynamic[] = {
    0x55,                                              /* push rbp */
    0x48, 0x89, 0xe5,                                  /* mov rbp,rsp */
    0x48, 0x83, 0xec, 0x10,                            /* sub rsp,0x10 */
    0x48, 0x89, 0x7d, 0xf8,                            /* mov QWORD PTR [rbp-0x8],rdi */
    0x48, 0x29, 0xf4,                                  /* sub rsp,rsi */
    0xc6, 0x04, 0x24, 0x00,                            /* mov BYTE PTR [rsp],0x0 */
    0x48, 0x8b, 0x45, 0xf8,                            /* mov rax,QWORD PTR [rbp-0x8] */
    0xc9,                                              /* leave */
    0xc3,                                              /* ret */
};

static void alloca_leaves_the_fixed_slots_variables(void)
{
    LIFT(dynamic);
    assert_entry(IR_RDI, arg(nth(IR_RET, 0), IR_RET_RAX));
    TEST_ASSERT_TRUE(now.ir->frame_known);
}

static const uint8_t realigned[] = {
    0x55,                                              /* push rbp */
    0x48, 0x89, 0xe5,                                  /* mov rbp,rsp */
    0x48, 0x83, 0xe4, 0xe0,                            /* and rsp,0xffffffffffffffe0 */
    0x48, 0x83, 0xec, 0x20,                            /* sub rsp,0x20 */
    0x48, 0x89, 0x7c, 0x24, 0x08,                      /* mov QWORD PTR [rsp+0x8],rdi */
    0x48, 0x8b, 0x44, 0x24, 0x08,                      /* mov rax,QWORD PTR [rsp+0x8] */
    0xc9,                                              /* leave */
    0xc3,                                              /* ret */
};

static void slots_of_a_realigned_frame_are_variables(void)
{
    LIFT(realigned);
    assert_entry(IR_RDI, arg(nth(IR_RET, 0), IR_RET_RAX));
    bool found = false;
    for (uint32_t i = 0; i < now.ir->slot_count; i++)
        found |= now.ir->slots[i].base == 1 && now.ir->slots[i].offset == -24;
    TEST_ASSERT_TRUE(found);
}

static const uint8_t merged[] = {
    0x85, 0xff,                                        /* test edi,edi */
    0x74, 0x07,                                        /* je 0xb */
    0x48, 0x8d, 0x44, 0x24, 0xf8,                      /* lea rax,[rsp-0x8] */
    0xeb, 0x03,                                        /* jmp 0xe */
    0x48, 0x89, 0xf0,                                  /* mov rax,rsi */
    0x48, 0xc7, 0x44, 0x24, 0xf8, 0x01, 0x00, 0x00, 0x00, /* mov QWORD PTR [rsp-0x8],0x1 */
    0x48, 0x8b, 0x4c, 0x24, 0xf8,                      /* mov rcx,QWORD PTR [rsp-0x8] */
    0x48, 0x89, 0x08,                                  /* mov QWORD PTR [rax],rcx */
    0xc3,                                              /* ret */
};

static void an_address_that_merges_with_another_value_escapes(void)
{
    LIFT(merged);
    TEST_ASSERT_TRUE(now.ir->frame_escapes);
    TEST_ASSERT_EQUAL_UINT(1, count_of(IR_LOAD));
}

static const uint8_t incoming[] = {
    0x48, 0x8b, 0x44, 0x24, 0x08,                      /* mov rax,QWORD PTR [rsp+0x8] */
    0xc3,                                              /* ret */
};

static void a_stack_parameter_has_its_entry_value(void)
{
    LIFT(incoming);
    const ir_insn *value = returned();
    TEST_ASSERT_EQUAL_STRING("entry", ir_op_name((ir_op)value->op));
    TEST_ASSERT_GREATER_OR_EQUAL_UINT16(IR_SLOT, value->var);
    TEST_ASSERT_EQUAL_INT32(8, now.ir->slots[value->var - IR_SLOT].offset);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(a_spilled_argument_is_still_the_argument);
    RUN_TEST(a_slot_whose_address_is_passed_stays_in_memory);
    RUN_TEST(a_part_of_a_slot_is_extracted);
    RUN_TEST(an_access_across_two_slots_keeps_them_in_memory);
    RUN_TEST(a_slot_below_the_stack_pointer_does_not_survive_a_call);
    RUN_TEST(slots_at_the_stack_pointer_are_arguments_of_a_call);
    RUN_TEST(alloca_leaves_the_fixed_slots_variables);
    RUN_TEST(slots_of_a_realigned_frame_are_variables);
    RUN_TEST(an_address_that_merges_with_another_value_escapes);
    RUN_TEST(a_stack_parameter_has_its_entry_value);
    return UNITY_END();
}
