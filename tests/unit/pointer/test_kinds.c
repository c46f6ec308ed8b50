/* Pointers and numbers, as a few bytes of machine code tell. */
#include "tests/unit/lift/ir_fixture.h"

#include "static/pointer/kinds.h"

static uint8_t *kinds;

#define INFER(...)                                                                                                     \
    do {                                                                                                               \
        static const uint8_t code[] = {__VA_ARGS__};                                                                   \
        LIFT(code);                                                                                                    \
        kinds = kinds_infer(now.img, now.ir);                                                                          \
    } while (0)

static void done(void)
{
    free(kinds);
    kinds = NULL;
    tearDown();
}

static value_kind entry_kind(uint16_t var)
{
    for (unsigned n = 0;; n++) {
        ir_value v = nth(IR_ENTRY, n);
        if (at(v)->var == var) return (value_kind)kinds[v];
    }
}

static value_kind returned_kind(void)
{
    return (value_kind)kinds[ir_origin(now.ir, arg(nth(IR_RET, 0), IR_RET_RAX))];
}

#define RET 0xc3

static void test_a_base_is_a_pointer_and_a_scaled_index_a_number(void)
{
    INFER(0x48, 0x8b, 0x04, 0xf7, RET); /* mov rax, [rdi + rsi * 8] */
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, entry_kind(IR_RDI));
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, entry_kind(IR_RSI));
    TEST_ASSERT_EQUAL_INT(KIND_UNKNOWN, returned_kind());
    done();
}

static void test_either_of_an_unscaled_sum_may_be_the_pointer(void)
{
    INFER(0x48, 0x8b, 0x04, 0x37, RET); /* mov rax, [rdi + rsi] */
    TEST_ASSERT_EQUAL_INT(KIND_UNKNOWN, entry_kind(IR_RDI));
    TEST_ASSERT_EQUAL_INT(KIND_UNKNOWN, entry_kind(IR_RSI));
    done();
    INFER(0x48, 0x8b, 0x0f, 0x48, 0x8b, 0x04, 0x37, RET); /* mov rcx, [rdi]; mov rax, [rdi + rsi] */
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, entry_kind(IR_RDI));
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, entry_kind(IR_RSI));
    done();
}

static void test_a_pointer_plus_something_is_a_pointer(void)
{
    INFER(0x48, 0x8b, 0x0f, 0x48, 0x8d, 0x04, 0x37, RET); /* mov rcx, [rdi]; lea rax, [rdi + rsi] */
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, returned_kind());
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, entry_kind(IR_RSI));
    done();
    INFER(0x48, 0x8b, 0x0f, 0x48, 0x8d, 0x47, 0x10, RET); /* mov rcx, [rdi]; lea rax, [rdi + 16] */
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, returned_kind());
    done();
}

static void test_a_difference_of_pointers_is_a_number(void)
{
    /* mov rcx, [rdi]; mov rcx, [rsi]; mov rax, rdi; sub rax, rsi */
    INFER(0x48, 0x8b, 0x0f, 0x48, 0x8b, 0x0e, 0x48, 0x89, 0xf8, 0x48, 0x29, 0xf0, RET);
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, returned_kind());
    done();
}

static void test_a_pointer_minus_a_number_is_a_pointer(void)
{
    /* mov rcx, [rdi]; mov rcx, [rdi + rsi * 8]; mov rax, rdi; sub rax, rsi */
    INFER(0x48, 0x8b, 0x0f, 0x48, 0x8b, 0x0c, 0xf7, 0x48, 0x89, 0xf8, 0x48, 0x29, 0xf0, RET);
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, returned_kind());
    done();
}

static void test_products_and_narrow_values_are_numbers(void)
{
    INFER(0x48, 0x6b, 0xc7, 0x18, RET); /* imul rax, rdi, 24 */
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, returned_kind());
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, entry_kind(IR_RDI));
    done();
    INFER(0x8d, 0x47, 0x01, RET); /* lea eax, [rdi + 1] */
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, returned_kind());
    done();
    INFER(0x8b, 0x07, RET); /* mov eax, [rdi] */
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, returned_kind());
    done();
}

/* What is compared with a number is one; with 0 and -1 pointers are compared too. */
#define COMPARED(constant)                                                                                             \
    0x48, 0x83, 0xff, constant, 0x74, 0x03, 0x48, 0x89, 0xf8, RET /* cmp rdi, N; je; mov rax, rdi */

static void test_comparisons_with_constants(void)
{
    INFER(COMPARED(100));
    TEST_ASSERT_EQUAL_INT(KIND_NUMBER, entry_kind(IR_RDI));
    done();
    INFER(COMPARED(0));
    TEST_ASSERT_EQUAL_INT(KIND_UNKNOWN, entry_kind(IR_RDI));
    done();
    INFER(COMPARED(0xff));
    TEST_ASSERT_EQUAL_INT(KIND_UNKNOWN, entry_kind(IR_RDI));
    done();
}

static void test_both_sides_of_a_comparison_are_of_one_kind(void)
{
    /* mov rcx, [rdi]; cmp rdi, rsi; je +3; mov rax, rsi */
    INFER(0x48, 0x8b, 0x0f, 0x48, 0x39, 0xf7, 0x74, 0x03, 0x48, 0x89, 0xf0, RET);
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, entry_kind(IR_RSI));
    done();
}

static void test_a_list_is_followed_through_its_phi(void)
{
    /* L: mov rdi, [rdi]; test rdi, rdi; jne L */
    INFER(0x48, 0x8b, 0x3f, 0x48, 0x85, 0xff, 0x75, 0xf8, RET);
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, entry_kind(IR_RDI));
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, kinds[nth(IR_LOAD, 0)]);
    done();
}

static void test_evidence_that_disagrees_is_no_evidence(void)
{
    INFER(0x48, 0x8b, 0x0f, 0x48, 0x6b, 0xc7, 0x18, RET); /* mov rcx, [rdi]; imul rax, rdi, 24 */
    TEST_ASSERT_EQUAL_INT(KIND_BOTH, entry_kind(IR_RDI));
    done();
}

static void test_the_stack_is_a_pointer(void)
{
    INFER(0x48, 0x8d, 0x44, 0x24, 0xf0, RET); /* lea rax, [rsp - 16] */
    TEST_ASSERT_EQUAL_INT(KIND_POINTER, returned_kind());
    done();
}

static void test_numbers_are_addresses_in_a_fixed_program_only(void)
{
    INFER(RET);
    image fixed = *now.img;
    fixed.kind = IMAGE_EXEC;
    TEST_ASSERT_TRUE(kinds_is_address(&fixed, TINYELF_TEXT));
    TEST_ASSERT_FALSE(kinds_is_address(&fixed, 100));
    TEST_ASSERT_FALSE(kinds_is_address(&fixed, -1));
    TEST_ASSERT_FALSE(kinds_is_address(&fixed, 1ll << 46));
    fixed.kind = IMAGE_PIE;
    TEST_ASSERT_FALSE(kinds_is_address(&fixed, TINYELF_TEXT));
    done();
}

/* L: mov esi, edx; L2: movzx eax, byte [r8 + rcx]; inc rcx; cmp rcx, rdx; jb L; sete sil; mov [rdi], sil: what is left of
 * rsi beside its low byte is of no use, so its phi does not tell that the pointer in r8, a copy of it, is a number. */
static void test_a_part_of_a_register_is_no_use_of_the_rest(void)
{
    INFER(0x49, 0x89, 0xf0, 0x31, 0xc9, 0x48, 0x85, 0xd2, 0x74, 0x10, /* mov r8, rsi; xor ecx, ecx; test rdx, rdx; je */
          0x89, 0xd6, 0x41, 0x0f, 0xb6, 0x04, 0x08, 0x48, 0xff, 0xc1, 0x48, 0x39, 0xd1, 0x72, 0xf0, 0x90, /* the loop */
          0x40, 0x0f, 0x94, 0xc6, 0x40, 0x88, 0x37, RET);
    TEST_ASSERT_EQUAL_INT(KIND_UNKNOWN, entry_kind(IR_RSI) & KIND_NUMBER);
    done();
}

/* The same function with its values numbered in another order, so that every pass over them meets them in that order. */
static void permute(const ir_func *from, const uint32_t *to, ir_func *out)
{
    *out = *from;
    out->insns = base_alloc_zero(from->insn_count, sizeof *out->insns);
    out->frame = base_alloc_zero(from->insn_count, sizeof *out->frame);
    out->args = base_alloc_zero(from->arg_count + 1, sizeof *out->args);
    for (uint32_t i = 0; i < from->arg_count; i++)
        out->args[i] = to[from->args[i]];
    for (ir_value v = 1; v < from->insn_count; v++) {
        ir_insn insn = from->insns[v];
        bool has_args = insn.op == IR_PHI || insn.op == IR_OPAQUE || insn.op == IR_CALL || insn.op == IR_TAIL ||
                        insn.op == IR_RET || insn.op == IR_SYSCALL;
        if (!has_args) {
            insn.a = to[insn.a];
            insn.b = to[insn.b];
        }
        insn.c = to[insn.c];
        out->insns[to[v]] = insn;
        out->frame[to[v]] = from->frame[v];
    }
}

static void check_orders(void)
{
    uint32_t count = now.ir->insn_count, seed = 1;
    uint32_t *to = base_alloc(count * sizeof *to);
    for (unsigned round = 0; round < 300; round++) {
        for (uint32_t i = 0; i < count; i++)
            to[i] = i;
        for (uint32_t i = count - 1; i > 1; i--) {
            seed = seed * 1664525 + 1013904223;
            uint32_t k = 1 + (seed >> 8) % i, swap = to[i];
            to[i] = to[k], to[k] = swap;
        }
        ir_func other;
        permute(now.ir, to, &other);
        uint8_t *found = kinds_infer(now.img, &other);
        for (ir_value v = 1; v < count; v++)
            TEST_ASSERT_EQUAL_INT(kinds[v], found[to[v]]);
        free(found);
        free(other.insns);
        free(other.frame);
        free(other.args);
    }
    free(to);
}

/* Sums of sums, with pointers and numbers that disagree in the middle. */
static void test_the_order_of_statements_is_of_no_importance(void)
{
    INFER(0x48, 0x8d, 0x04, 0x37,       /* lea rax, [rdi + rsi] */
          0x4c, 0x8d, 0x04, 0x10,       /* lea r8, [rax + rdx] */
          0x4d, 0x8d, 0x0c, 0x08,       /* lea r9, [r8 + rcx] */
          0x4d, 0x8b, 0x11,             /* mov r10, [r9] */
          0x49, 0x6b, 0xc8, 0x18,       /* imul rcx, r8, 24 */
          0x4c, 0x8b, 0x17,             /* mov r10, [rdi] */
          0x48, 0x29, 0xf7,             /* sub rdi, rsi */
          0x48, 0x39, 0xd7,             /* cmp rdi, rdx */
          0x74, 0x04,                   /* je */
          0x4a, 0x8b, 0x04, 0x10,       /* mov rax, [rax + r10] */
          0x48, 0x8d, 0x04, 0x38, RET); /* lea rax, [rax + rdi] */
    check_orders();
    done();
    INFER(0x48, 0x8b, 0x04, 0x37,       /* mov rax, [rdi + rsi] */
          0x48, 0x6b, 0xc7, 0x18,       /* imul rax, rdi, 24 */
          0x4c, 0x8b, 0x06,             /* mov r8, [rsi] */
          0x4c, 0x8d, 0x0c, 0x16,       /* lea r9, [rsi + rdx] */
          0x49, 0x8b, 0x0c, 0x09,       /* mov rcx, [r9 + rcx] */
          0x48, 0x6b, 0xc6, 0x18,       /* imul rax, rsi, 24 */
          0x4c, 0x29, 0xc8, RET);       /* sub rax, r9 */
    check_orders();
    done();
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_base_is_a_pointer_and_a_scaled_index_a_number);
    RUN_TEST(test_either_of_an_unscaled_sum_may_be_the_pointer);
    RUN_TEST(test_a_pointer_plus_something_is_a_pointer);
    RUN_TEST(test_a_difference_of_pointers_is_a_number);
    RUN_TEST(test_a_pointer_minus_a_number_is_a_pointer);
    RUN_TEST(test_products_and_narrow_values_are_numbers);
    RUN_TEST(test_comparisons_with_constants);
    RUN_TEST(test_both_sides_of_a_comparison_are_of_one_kind);
    RUN_TEST(test_a_list_is_followed_through_its_phi);
    RUN_TEST(test_evidence_that_disagrees_is_no_evidence);
    RUN_TEST(test_the_stack_is_a_pointer);
    RUN_TEST(test_numbers_are_addresses_in_a_fixed_program_only);
    RUN_TEST(test_a_part_of_a_register_is_no_use_of_the_rest);
    RUN_TEST(test_the_order_of_statements_is_of_no_importance);
    return UNITY_END();
}
