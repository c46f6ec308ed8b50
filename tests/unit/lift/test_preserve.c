/* preserve.c: which registers are as before after a call of a function of the module. Each caller puts rdi into a register, calls
 * and returns what is there then: what the callee left, or also what was there before. */
#include "tests/unit/lift/ir_fixture.h"

/* The old value that the returned one may be; 0: none. */
static ir_value kept(void)
{
    const ir_insn *value = returned();
    TEST_ASSERT_TRUE(value->op == IR_RESULT || value->op == IR_CLOBBER);
    return value->b;
}

#define KEEPS(...)                                                                                                     \
    do {                                                                                                               \
        static const uint8_t code[] = {__VA_ARGS__};                                                                   \
        LIFT(code);                                                                                                    \
        assert_entry(IR_RDI, kept());                                                                                  \
        tearDown();                                                                                                    \
    } while (0)
#define KILLS(...)                                                                                                     \
    do {                                                                                                               \
        static const uint8_t code[] = {__VA_ARGS__};                                                                   \
        LIFT(code);                                                                                                    \
        TEST_ASSERT_EQUAL_UINT32(0, kept());                                                                           \
        tearDown();                                                                                                    \
    } while (0)

#define CALL(distance)  0xe8, distance, 0, 0, 0 /* behind itself */
#define CALL_BACK(by)   0xe8, 0x100 - (by), 0xff, 0xff, 0xff
#define JMP(distance)   0xe9, distance, 0, 0, 0
#define RET             0xc3
#define OF_RAX          0x48, 0x89, 0xf8, CALL(1), RET                        /* mov rax, rdi; call next; ret */
#define OF_RCX          0x48, 0x89, 0xf9, CALL(4), 0x48, 0x89, 0xc8, RET       /* mov rcx, rdi; call next; mov rax, rcx; ret */
#define OF_XMM0         0x66, 0x48, 0x0f, 0x6e, 0xc7, CALL(6), 0x66, 0x48, 0x0f, 0x7e, 0xc0, RET /* movq xmm0, rdi ... */
#define WRITE_RAX       0x31, 0xc0 /* xor eax, eax */
#define WRITE_RCX       0x31, 0xc9
#define WRITE_XMM0      0x66, 0x0f, 0xef, 0xc0 /* pxor xmm0, xmm0 */
#define WRITE_XMM1      0x66, 0x0f, 0xef, 0xc9

static void what_a_callee_writes_is_gone(void)
{
    KILLS(OF_RAX, WRITE_RAX, RET);
    KILLS(OF_RCX, WRITE_RCX, RET);
    KILLS(OF_XMM0, WRITE_XMM0, RET);
    KILLS(OF_RAX, 0xb0, 1, RET); /* mov al, 1 */
}

static void what_a_callee_spares_may_be_as_before(void)
{
    KEEPS(OF_RAX, RET);
    KEEPS(OF_RAX, WRITE_RCX, RET);
    KEEPS(OF_RCX, WRITE_RAX, RET);
    KEEPS(OF_XMM0, WRITE_XMM1, WRITE_RAX, RET);
    KEEPS(OF_RAX, 0x89, 0x07, RET); /* mov [rdi], eax: a read */
}

/* Compilers look at what is ever written, not at paths. */
static void a_write_on_one_path_is_a_write(void)
{
    KILLS(OF_RAX, 0x85, 0xf6, 0x74, 2, WRITE_RAX, RET);   /* test esi, esi; je over it */
    KILLS(OF_RAX, 0x50, WRITE_RAX, 0x58, RET);            /* push rax; ...; pop rax */
    KEEPS(OF_RCX, 0x85, 0xf6, 0x74, 2, WRITE_RAX, RET);
}

static void writes_come_through_a_chain_of_calls(void)
{
    KILLS(OF_RAX, CALL(1), RET, CALL(1), RET, CALL(1), RET, WRITE_RAX, RET);
    KEEPS(OF_RAX, CALL(1), RET, CALL(1), RET, CALL(1), RET, WRITE_RCX, RET);
    KILLS(OF_RCX, CALL(1), RET, CALL(1), RET, CALL(1), RET, WRITE_RCX, RET);
    KILLS(0x48, 0x89, 0xf8, CALL(4), RET, WRITE_RAX, RET, CALL_BACK(8), RET); /* also backwards in the code */
    KEEPS(0x48, 0x89, 0xf8, CALL(4), RET, WRITE_RCX, RET, CALL_BACK(8), RET);
}

static void recursion_comes_to_an_end(void)
{
#define AGAIN 0x85, 0xf6, 0x74, 7, 0xff, 0xce, CALL_BACK(11) /* test esi, esi; je over; dec esi; call the first of these */
    KEEPS(OF_RAX, AGAIN, RET);
    KILLS(OF_RAX, AGAIN, WRITE_RAX, RET);
    KEEPS(OF_RCX, AGAIN, WRITE_RAX, RET);
#undef AGAIN
    /* f: call g; ret. g: test esi, esi; je over; call f; over: ret */
    KEEPS(OF_RAX, CALL(1), RET, 0x85, 0xf6, 0x74, 5, CALL_BACK(15), RET);
    KILLS(OF_RAX, CALL(1), RET, 0x85, 0xf6, 0x74, 5, CALL_BACK(15), WRITE_RAX, RET);
    KILLS(OF_RAX, CALL(3), WRITE_RAX, RET, 0x85, 0xf6, 0x74, 5, CALL_BACK(17), RET);
}

/* mov rbx, rdi; call g, so that it is known as a function; mov rax, rbx; call f; ret. f: jmp g. */
static void a_tail_call_is_a_call(void)
{
#define CALL_BOTH 0x48, 0x89, 0xfb, CALL(14), 0x48, 0x89, 0xd8, CALL(1), RET
    KILLS(CALL_BOTH, JMP(0), WRITE_RAX, RET);
    KEEPS(CALL_BOTH, JMP(0), WRITE_RCX, RET);
    KILLS(CALL_BOTH, JMP(0), CALL(1), RET, WRITE_RAX, RET);
#undef CALL_BOTH
}

static void nobody_knows_what_an_indirect_tail_call_writes(void)
{
    KILLS(OF_RAX, 0xff, 0xe6, RET);  /* jmp rsi */
    KILLS(OF_RCX, 0xff, 0xe6, RET);
    KILLS(OF_XMM0, 0xff, 0xe6, RET);
    KILLS(OF_RAX, CALL(1), RET, 0xff, 0xe6); /* of a callee's callee */
    KILLS(OF_RAX, 0xff, 0x25, 0, 0, 0x0f, 0); /* jmp [rip + 0xf0000], a word of .data */
}

static void an_indirect_call_writes_what_calls_may(void)
{
    KILLS(OF_RAX, 0xff, 0xd6, RET); /* call rsi */
    KILLS(OF_RCX, 0xff, 0xd6, RET);
    KILLS(OF_RAX, CALL(1), RET, 0xff, 0xd6, RET);
}

/* The caller's own indirect call is no call of the module. */
static void an_indirect_call_keeps_nothing(void)
{
    KILLS(0x48, 0x89, 0xf8, 0xff, 0xd6, RET); /* mov rax, rdi; call rsi; ret */
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(what_a_callee_writes_is_gone);
    RUN_TEST(what_a_callee_spares_may_be_as_before);
    RUN_TEST(a_write_on_one_path_is_a_write);
    RUN_TEST(writes_come_through_a_chain_of_calls);
    RUN_TEST(recursion_comes_to_an_end);
    RUN_TEST(a_tail_call_is_a_call);
    RUN_TEST(nobody_knows_what_an_indirect_tail_call_writes);
    RUN_TEST(an_indirect_call_writes_what_calls_may);
    RUN_TEST(an_indirect_call_keeps_nothing);
    return UNITY_END();
}
