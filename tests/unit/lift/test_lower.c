/* lower*.c: single instructions. The values themselves are compared with the processor by tests/tools/irdiff.c. */
#include "tests/unit/lift/ir_fixture.h"

static const uint8_t pair[] = {
    0x0f, 0x10, 0x07,                                  /* movups xmm0,XMMWORD PTR [rdi] */
    0x0f, 0x11, 0x06,                                  /* movups XMMWORD PTR [rsi],xmm0 */
    0xc3,                                              /* ret */
};

static void a_pair_of_pointers_moves_lane_by_lane(void)
{
    LIFT(pair);
    for (unsigned lane = 0; lane < 2; lane++) {
        const ir_insn *store = at(nth(IR_STORE, lane)), *load = at(ir_origin(now.ir, store->b));
        TEST_ASSERT_EQUAL_STRING("load", ir_op_name((ir_op)load->op));
        TEST_ASSERT_EQUAL_INT64(8 * lane, store->imm);
        TEST_ASSERT_EQUAL_INT64(8 * lane, load->imm);
        TEST_ASSERT_EQUAL_UINT16(16, at(load->a)->width);
    }
}

static const uint8_t build_pair[] = {
    0x66, 0x48, 0x0f, 0x6e, 0xc7,                      /* movq xmm0,rdi */
    0x66, 0x48, 0x0f, 0x6e, 0xce,                      /* movq xmm1,rsi */
    0x66, 0x0f, 0x6c, 0xc1,                            /* punpcklqdq xmm0,xmm1 */
    0x0f, 0x11, 0x02,                                  /* movups XMMWORD PTR [rdx],xmm0 */
    0xc3,                                              /* ret */
};

static void a_pair_built_from_registers_is_exact(void)
{
    LIFT(build_pair);
    assert_entry(IR_RDI, at(nth(IR_STORE, 0))->b);
    assert_entry(IR_RSI, at(nth(IR_STORE, 1))->b);
}

static const uint8_t locked[] = {
    0xf0, 0x48, 0x83, 0x07, 0x01,                      /* lock add QWORD PTR [rdi],0x1 */
    0x48, 0x87, 0x06,                                  /* xchg QWORD PTR [rsi],rax */
    0x48, 0x89, 0x02,                                  /* mov QWORD PTR [rdx],rax */
    0xc3,                                              /* ret */
};

static void lock_and_xchg_are_atomic_and_a_plain_store_is_not(void)
{
    LIFT(locked);
    TEST_ASSERT_EQUAL_UINT(2, accesses_with(IR_ATOMIC | IR_READ | IR_WRITE));
    TEST_ASSERT_EQUAL_UINT(2, accesses_with(IR_ATOMIC));
    TEST_ASSERT_EQUAL_UINT(3, accesses_with(IR_WRITE));
}

static const uint8_t copy_block[] = {
    0xf3, 0x48, 0xa5,                                  /* rep movs QWORD PTR es:[rdi],QWORD PTR ds:[rsi] */
    0xc3,                                              /* ret */
};

static void rep_movs_reads_and_writes_rcx_elements(void)
{
    LIFT(copy_block);
    TEST_ASSERT_EQUAL_UINT(2, accesses_with(IR_REP));
    const ir_insn *from = at(nth(IR_ACCESS, 0)), *to = at(nth(IR_ACCESS, 1));
    assert_entry(IR_RSI, from->a);
    assert_entry(IR_RDI, to->a);
    assert_entry(IR_RCX, from->c);
    assert_entry(IR_RCX, to->c);
    TEST_ASSERT_EQUAL_UINT16(8, to->width);
}

static const uint8_t thread_local[] = {
    0x64, 0x48, 0x8b, 0x04, 0x25, 0x00, 0x00, 0x00, 0x00, /* mov rax,QWORD PTR fs:0x0 */
    0x64, 0x8b, 0x44, 0xb7, 0xf8,                      /* mov eax,DWORD PTR fs:[rdi+rsi*4-0x8] */
    0xc3,                                              /* ret */
};

static void a_segment_base_is_part_of_the_address(void)
{
    LIFT(thread_local);
    TEST_ASSERT_EQUAL_UINT(2, accesses_with(IR_FS | IR_READ));
    assert_entry(IR_FSBASE, at(nth(IR_ACCESS, 0))->a);
    const ir_insn *inner = at(at(nth(IR_ACCESS, 1))->b);
    TEST_ASSERT_EQUAL_STRING("lea", ir_op_name((ir_op)inner->op));
    TEST_ASSERT_EQUAL_UINT8(4, inner->scale);
    TEST_ASSERT_EQUAL_INT64(-8, inner->imm);
}

static const uint8_t conditional[] = {
    0x83, 0xff, 0x05,                                  /* cmp edi,0x5 */
    0x48, 0x0f, 0x4c, 0xc6,                            /* cmovl rax,rsi */
    0xc3,                                              /* ret */
};

static void cmov_selects_by_the_compared_values(void)
{
    LIFT(conditional);
    const ir_insn *select = returned();
    TEST_ASSERT_EQUAL_STRING("select", ir_op_name((ir_op)select->op));
    assert_entry(IR_RSI, select->b);
    assert_entry(IR_RAX, select->a);
    const ir_insn *flags = at(select->c);
    TEST_ASSERT_EQUAL_STRING("cmp", ir_op_name((ir_op)flags->op));
    TEST_ASSERT_EQUAL_INT64(5, flags->imm);
    TEST_ASSERT_EQUAL_UINT16(4, flags->width);
}

static const uint8_t bits[] = {
    0x48, 0x0f, 0xa3, 0x77, 0x10,                      /* bt QWORD PTR [rdi+0x10],rsi */
    0xc3,                                              /* ret */
};

static void a_bit_number_in_a_register_moves_the_access(void)
{
    LIFT(bits);
    const ir_insn *access = at(nth(IR_ACCESS, 0));
    TEST_ASSERT_EQUAL_UINT8(8, access->scale);
    TEST_ASSERT_EQUAL_INT64(16, access->imm);
    TEST_ASSERT_EQUAL_STRING("sar", ir_op_name((ir_op)at(access->b)->op));
}

static const uint8_t partial[] = {
    0x88, 0xc8,                                        /* mov al,cl */
    0x88, 0xd4,                                        /* mov ah,dl */
    0xc3,                                              /* ret */
};

static void byte_writes_keep_the_rest_of_the_register(void)
{
    LIFT(partial);
    const ir_insn *high = returned(), *low = at(high->a);
    TEST_ASSERT_EQUAL_STRING("insert", ir_op_name((ir_op)high->op));
    TEST_ASSERT_EQUAL_INT64(1, high->imm);
    assert_entry(IR_RDX, high->b);
    TEST_ASSERT_EQUAL_INT64(0, low->imm);
    assert_entry(IR_RCX, low->b);
    assert_entry(IR_RAX, low->a);
}

static const uint8_t global[] = {
    0x8b, 0x05, 0xf9, 0xef, 0x0f, 0x00,                /* mov eax,DWORD PTR [rip+0xfeff9] */
    0x48, 0x8d, 0x05, 0xf2, 0xef, 0x0f, 0x00,          /* lea rax,[rip+0xfeff2] */
    0xc3,                                              /* ret */
};

static void rip_relative_operands_are_module_addresses(void)
{
    LIFT(global);
    TEST_ASSERT_EQUAL_INT64(TINYELF_DATA - 1, at(at(nth(IR_ACCESS, 0))->a)->imm);
    TEST_ASSERT_EQUAL_STRING("address", ir_op_name((ir_op)returned()->op));
    TEST_ASSERT_EQUAL_INT64(TINYELF_DATA - 1, returned()->imm);
}

static const uint8_t unknown[] = {
    0x66, 0x0f, 0x38, 0xdc, 0xc1,                      /* aesenc xmm0,xmm1 */
    0x66, 0x48, 0x0f, 0x7e, 0xc0,                      /* movq rax,xmm0 */
    0xc3,                                              /* ret */
};

static void an_instruction_that_is_not_modelled_depends_on_all_its_inputs(void)
{
    LIFT(unknown);
    TEST_ASSERT_EQUAL_UINT64(1, now.module->opaque_count);
    const ir_insn *lane = returned(), *all = at(arg((ir_value)(lane - now.ir->insns), 0));
    TEST_ASSERT_EQUAL_STRING("opaque", ir_op_name((ir_op)lane->op));
    TEST_ASSERT_EQUAL_UINT32(4, all->b);
}

static const uint8_t nops[] = {
    0x0f, 0x1f, 0x04, 0x00,                            /* nop DWORD PTR [rax+rax*1] */
    0x0f, 0x18, 0x0f,                                  /* prefetcht0 BYTE PTR [rdi] */
    0xc3,                                              /* ret */
};

static void hints_do_not_access_memory(void)
{
    LIFT(nops);
    TEST_ASSERT_EQUAL_UINT(1, count_of(IR_ACCESS));
    TEST_ASSERT_EQUAL_UINT(1, accesses_with(IR_IMPLICIT));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(a_pair_of_pointers_moves_lane_by_lane);
    RUN_TEST(a_pair_built_from_registers_is_exact);
    RUN_TEST(lock_and_xchg_are_atomic_and_a_plain_store_is_not);
    RUN_TEST(rep_movs_reads_and_writes_rcx_elements);
    RUN_TEST(a_segment_base_is_part_of_the_address);
    RUN_TEST(cmov_selects_by_the_compared_values);
    RUN_TEST(a_bit_number_in_a_register_moves_the_access);
    RUN_TEST(byte_writes_keep_the_rest_of_the_register);
    RUN_TEST(rip_relative_operands_are_module_addresses);
    RUN_TEST(an_instruction_that_is_not_modelled_depends_on_all_its_inputs);
    RUN_TEST(hints_do_not_access_memory);
    return UNITY_END();
}
