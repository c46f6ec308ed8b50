/* Strides of indices, read off a few bytes of machine code: the index of the first access that has one. */
#include "tests/unit/lift/ir_fixture.h"

#include "static/pointer/linear.h"

typedef struct {
    uint64_t stride;
    int64_t constant;
    bool back;
} index_form;

static index_form first_index(void)
{
    for (unsigned n = 0;; n++) {
        const ir_insn *access = at(nth(IR_ACCESS, n));
        if (!access->b) continue;
        index_form found = {.constant = 1 << 20, .back = true};
        found.stride = linear_stride(now.ir, access->b, access->scale, &found.constant, &found.back);
        return found;
    }
}

#define INDEX(expected, expected_constant, expected_back, ...)                                                         \
    do {                                                                                                               \
        static const uint8_t code[] = {__VA_ARGS__};                                                                   \
        LIFT(code);                                                                                                    \
        index_form found = first_index();                                                                              \
        TEST_ASSERT_EQUAL_UINT64(expected, found.stride);                                                              \
        TEST_ASSERT_EQUAL_INT64(expected_constant, found.constant);                                                    \
        TEST_ASSERT_EQUAL(expected_back, found.back);                                                                  \
        tearDown();                                                                                                    \
    } while (0)
#define STRIDE(expected, expected_back, ...) INDEX(expected, 0, expected_back, __VA_ARGS__)

#define LOAD8 0x48, 0x8b, 0x04, 0xc6 /* mov rax, [rsi + rax * 8] */
#define LOAD1 0x48, 0x8b, 0x04, 0x06 /* mov rax, [rsi + rax] */
#define RET   0xc3

static void test_a_plain_index_has_the_scale(void)
{
    STRIDE(8, false, 0x48, 0x8b, 0x04, 0xfe, RET); /* mov rax, [rsi + rdi * 8] */
    STRIDE(4, false, 0x8b, 0x04, 0xbe, RET);       /* mov eax, [rsi + rdi * 4] */
}

static void test_shifts_and_products_multiply(void)
{
    STRIDE(24, false, 0x48, 0x8d, 0x04, 0x7f, LOAD8, RET);                   /* lea rax, [rdi + rdi * 2] */
    STRIDE(32, false, 0x48, 0x89, 0xf8, 0x48, 0xc1, 0xe0, 0x05, LOAD1, RET); /* mov rax, rdi; shl rax, 5 */
    STRIDE(24, false, 0x48, 0x6b, 0xc7, 0x18, LOAD1, RET);                   /* imul rax, rdi, 24 */
    STRIDE(192, false, 0x48, 0x6b, 0xc7, 0x18, LOAD8, RET);
}

static void test_equal_terms_are_counted_together(void)
{
    /* lea rax, [rdi * 8]; sub rax, rdi */
    STRIDE(56, false, 0x48, 0x8d, 0x04, 0xfd, 0, 0, 0, 0, 0x48, 0x29, 0xf8, LOAD8, RET);
}

static void test_constants_stand_apart(void)
{
    INDEX(48, 16, false, 0x48, 0x6b, 0xc7, 0x30, 0x48, 0x83, 0xc0, 0x10, LOAD1, RET); /* imul rax, rdi, 48; add rax, 16 */
    INDEX(48, -8, false, 0x48, 0x6b, 0xc7, 0x30, 0x48, 0x83, 0xe8, 0x08, LOAD1, RET); /* imul rax, rdi, 48; sub rax, 8 */
    INDEX(384, 128, false, 0x48, 0x6b, 0xc7, 0x30, 0x48, 0x83, 0xc0, 0x10, LOAD8, RET); /* the same, of eight bytes each */
    INDEX(16, 24, false, 0x48, 0x8d, 0x47, 0x03, 0x48, 0x01, 0xc0, 0x48, 0x83, 0xe8, 0x03, LOAD8, RET); /* (i + 3) * 2 - 3 */
    INDEX(0, 40, false, 0xb8, 5, 0, 0, 0, LOAD8, RET); /* mov eax, 5 */
}

static void test_inner_constants_limit_the_stride(void)
{
    /* imul rax, rdi, 48; lea rcx, [rax + 16]; test rdx, rdx; cmovne rax, rcx */
    STRIDE(16, false, 0x48, 0x6b, 0xc7, 0x30, 0x48, 0x8d, 0x48, 0x10, 0x48, 0x85, 0xd2, 0x48, 0x0f, 0x45, 0xc1, LOAD1, RET);
    /* the same with lea rcx, [rax - 8] */
    STRIDE(8, true, 0x48, 0x6b, 0xc7, 0x30, 0x48, 0x8d, 0x48, 0xf8, 0x48, 0x85, 0xd2, 0x48, 0x0f, 0x45, 0xc1, LOAD1, RET);
}

static void test_large_constants_limit_the_stride(void)
{
    /* lea rax, [rdi * 2 + 0x30000000]: 8 * that is 2^31 + 2^32 */
    STRIDE(16, false, 0x48, 0x8d, 0x04, 0x7d, 0, 0, 0, 0x30, LOAD8, RET);
    /* lea rax, [rdi * 8 + 0x40000001] */
    STRIDE(1, false, 0x48, 0x8d, 0x04, 0xfd, 1, 0, 0, 0x40, LOAD1, RET);
}

/* lea rax, [rax + rax + 0x3fffffff], again and again: nothing overflows. */
static void test_sums_of_large_numbers_say_nothing(void)
{
#define DOUBLE 0x48, 0x8d, 0x84, 0x00, 0xff, 0xff, 0xff, 0x3f
    STRIDE(1, false, 0x48, 0x89, 0xf8, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, 0x48,
           0x69, 0xc0, 0xff, 0xff, 0xff, 0x07, LOAD8, RET); /* imul rax, rax, 0x7ffffff */
#undef DOUBLE
}

static void test_a_difference_may_go_back(void)
{
    STRIDE(8, true, 0x48, 0x89, 0xf8, 0x48, 0x29, 0xd0, LOAD8, RET); /* mov rax, rdi; sub rax, rdx */
    STRIDE(8, true, 0x48, 0x89, 0xf8, 0x48, 0xf7, 0xd8, LOAD8, RET); /* mov rax, rdi; neg rax */
}

static void test_a_mask_makes_multiples(void)
{
    STRIDE(16, false, 0x48, 0x89, 0xf8, 0x48, 0x83, 0xe0, 0xf0, LOAD1, RET); /* mov rax, rdi; and rax, -16 */
}

static void test_a_choice_has_what_both_have(void)
{
    /* lea rax, [rdi * 8]; imul rcx, rdi, 12; test rdx, rdx; cmovne rax, rcx */
    STRIDE(4, false, 0x48, 0x8d, 0x04, 0xfd, 0, 0, 0, 0, 0x48, 0x6b, 0xcf, 0x0c, 0x48, 0x85, 0xd2, 0x48, 0x0f, 0x45,
           0xc1, LOAD1, RET);
}

static void test_a_loop_has_its_step(void)
{
    /* xor eax, eax; L: mov rcx, [rsi + rax]; add rax, 16; cmp rax, rdx; jne L */
    STRIDE(16, false, 0x31, 0xc0, 0x48, 0x8b, 0x0c, 0x06, 0x48, 0x83, 0xc0, 0x10, 0x48, 0x39, 0xd0, 0x75, 0xf3, RET);
    /* mov rax, -64; L: mov rcx, [rsi + rax]; add rax, 8; jne L */
    STRIDE(8, true, 0x48, 0xc7, 0xc0, 0xc0, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x0c, 0x06, 0x48, 0x83, 0xc0, 0x08, 0x75,
           0xf6, RET);
}

static void test_what_is_too_large_or_too_long_has_no_stride(void)
{
    STRIDE(1, false, 0x48, 0x89, 0xf8, 0x48, 0xc1, 0xe0, 0x14, LOAD1, RET); /* mov rax, rdi; shl rax, 20 */
    /* lea rax, [rdi + rdx]; add rax, rcx; add rax, r8; add rax, r9: more terms than are followed */
    STRIDE(1, false, 0x48, 0x8d, 0x04, 0x17, 0x48, 0x01, 0xc8, 0x4c, 0x01, 0xc0, 0x4c, 0x01, 0xc8, LOAD8, RET);
}

static void test_no_value_is_zero(void)
{
    static const uint8_t code[] = {RET};
    bool back = true;
    int64_t constant = 5;
    LIFT(code);
    TEST_ASSERT_EQUAL_UINT64(0, linear_stride(now.ir, 0, 8, &constant, &back));
    TEST_ASSERT_EQUAL_INT64(0, constant);
    TEST_ASSERT_FALSE(back);
}

static void test_magnitudes_have_no_sign(void)
{
    TEST_ASSERT_EQUAL_UINT64(7, linear_magnitude(-7));
    TEST_ASSERT_EQUAL_UINT64(7, linear_magnitude(7));
    TEST_ASSERT_EQUAL_UINT64(1ull << 63, linear_magnitude(INT64_MIN));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_plain_index_has_the_scale);
    RUN_TEST(test_shifts_and_products_multiply);
    RUN_TEST(test_equal_terms_are_counted_together);
    RUN_TEST(test_constants_stand_apart);
    RUN_TEST(test_inner_constants_limit_the_stride);
    RUN_TEST(test_large_constants_limit_the_stride);
    RUN_TEST(test_sums_of_large_numbers_say_nothing);
    RUN_TEST(test_a_difference_may_go_back);
    RUN_TEST(test_a_mask_makes_multiples);
    RUN_TEST(test_a_choice_has_what_both_have);
    RUN_TEST(test_a_loop_has_its_step);
    RUN_TEST(test_what_is_too_large_or_too_long_has_no_stride);
    RUN_TEST(test_no_value_is_zero);
    RUN_TEST(test_magnitudes_have_no_sign);
    return UNITY_END();
}
