/* Liveness of registers and flags: single rules on hand-written code, and random programs against the definition: a
 * register is live when some path reads it before writing it. The code lies in this test program itself, which is
 * opened as an image; graphs are put together from its instructions. */
#include "graph_fixture.h"

#include "unity.h"

#define BIT(var) (1u << (var))

static image *self;

void setUp(void) {}
void tearDown(void) {}

/* --- code --------------------------------------------------------------------------------------------------------- */

#define FUNCTION(name, text)                                                                                           \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" text                   \
            "\n.cfi_endproc\n.size " #name ", . - " #name "\n")

FUNCTION(callee_long, "ret\n.skip 100, 0x90");
FUNCTION(callee_short, "jmp *%r11");
FUNCTION(calls_local, "call callee_long\n ret");
FUNCTION(calls_thunk, "call callee_short\n ret");
FUNCTION(calls_outside, "mov %rsi, %rbx\n call puts@PLT\n mov %rsi, %rax\n ret");
FUNCTION(calls_middle, "call callee_long + 3\n ret");
FUNCTION(calls_pointer, "call *8(%rbx)\n add %rcx, %rax\n ret");
FUNCTION(calls_descriptor, "call *(%rax)\n add %rcx, %rax\n ret");
FUNCTION(jumps_local, "mov %rsi, %r9\n jmp callee_long");
FUNCTION(returns, "xor %ecx, %ecx\n mov %cl, %r8b\n ret");
FUNCTION(restores, "push %r9\n xor %r9d, %r9d\n pop %r9\n mov %rax, (%rdi)\n ret");
FUNCTION(system_call, "syscall\n mov %r11, %rbx\n ret");
FUNCTION(traps, "cmp %rax, %rbx\n ud2");
FUNCTION(partial_writes, "mov $1, %al\n mov $1, %cx\n mov $1, %edx\n mov $1, %rsi\n ud2");
FUNCTION(
    conditional_writes,
    "cmove %rsi, %rax\n bsf %rsi, %rcx\n cmpxchg %rdx, (%rdi)\n rep lodsq\n xor %eax, %eax\n xor %ecx, %ecx\n ud2");
FUNCTION(shifts,
         "shl %cl, %rax\n shl $3, %rax\n .byte 0x48, 0xc1, 0xe0, 0x40\n shld %cl, %rdx, %rax\n adc %rdx, %rax\n ud2");
FUNCTION(padding, "nopw 0(%rax,%rcx,1)\n endbr64\n xor %r8, %r8\n sbb %r9, %r9\n sub %r10b, %r10b\n ud2");
FUNCTION(flags_saved, "pushfq\n lahf\n std\n movsb\n ud2");
FUNCTION(interrupt, "int $0x80\n ud2");

/* One of each effect, for random programs. The masks of `effects` below are written down by hand, in this order. */
FUNCTION(instructions,
         "mov %rsi, %rdi\n mov %ecx, %eax\n mov %cl, %al\n add %rdx, %r8\n cmp %r9, %r10\n setg %r11b\n"
         "cmovb %rbx, %rax\n adc %rax, %rax\n inc %rcx\n shl %cl, %rdx\n xor %r11d, %r11d\n lea 8(%r12,%r13,2), %r14\n"
         "rep stosb\n cld\n bsf %rax, %rbx\n pop %rbp\n div %rcx\n cqo\n mov %r15, 8(%rbx)\n mov %ax, %r15w\n"
         "stc\n movzwl %r14w, %esi\n");

enum { A = BIT(IR_RAX), C = BIT(IR_RCX), D = BIT(IR_RDX), B = BIT(IR_RBX), SP = BIT(IR_RSP), BP = BIT(IR_RBP) };
enum { SI = BIT(IR_RSI), DI = BIT(IR_RDI), R8 = BIT(IR_R8), R9 = BIT(IR_R9), R10 = BIT(IR_R10), R11 = BIT(IR_R11) };
enum { R12 = BIT(IR_R12), R13 = BIT(IR_R13), R14 = BIT(IR_R14), R15 = BIT(IR_R15), GPRS = 0xffff };
enum { SAVED = B | BP | SP | R12 | R13 | R14 | R15, ALL = GPRS | LIVE_STATUS | LIVE_DF };
enum { PASSED = DI | SI | D | C | R8 | R9 | A | R10 | SAVED | LIVE_DF };

typedef struct {
    uint32_t use, kill, write; /* write: partly or conditionally, too */
} effect;

static const effect effects[] = {
    {SI, DI, DI},
    {C, A, A},
    {C, 0, A},
    {D | R8, R8 | LIVE_STATUS, R8},
    {R9 | R10, LIVE_STATUS, 0},
    {LIVE_ZF | LIVE_SF | LIVE_OF, 0, R11},
    {B | LIVE_CF, 0, A},
    {A | LIVE_CF, A | LIVE_STATUS, A},
    {C, C | (LIVE_STATUS & ~LIVE_CF), C},
    {C | D, D, D},
    {0, R11 | (LIVE_STATUS & ~LIVE_AF), R11},
    {R12 | R13, R14, R14},
    {A | C | DI | LIVE_DF, 0, C | DI},
    {0, LIVE_DF, 0},
    {A, LIVE_ZF, B},
    {SP, BP | SP, BP | SP},
    {A | D | C, A | D, A | D},
    {A, D, D},
    {B | R15, 0, 0},
    {A, 0, R15},
    {0, LIVE_CF, 0},
    {R14, SI, SI},
};
enum { EFFECTS = sizeof effects / sizeof *effects };

static uint64_t address_of(const char *name)
{
    for (uint32_t i = 0; i < self->symbol_count; i++)
        if (strcmp(self->symbols[i].name, name) == 0) return self->symbols[i].addr;
    TEST_FAIL_MESSAGE(name);
    return 0;
}

/* One block of the first `count` instructions of the function. */
static ir_func *straight(const char *name, uint32_t count, lift_end end)
{
    ir_func *ir = fixture_open(1, NULL, 0);
    lift_func *f = (lift_func *)ir->func;
    f->insns = base_alloc_zero(count, sizeof *f->insns);
    f->insn_count = f->blocks[0].insn_count = count;
    f->blocks[0].end_kind = (uint8_t)end;
    uint64_t addr = address_of(name);
    for (uint32_t i = 0; i < count; i++) {
        TEST_ASSERT_TRUE(lift_decode(self, addr, &f->insns[i]));
        addr += f->insns[i].len;
    }
    ir_liveness(self, ir);
    return ir;
}

static void expect(ir_func *ir, const uint32_t *live)
{
    for (uint32_t i = 0; i < ir->func->insn_count; i++)
        TEST_ASSERT_EQUAL_HEX32(live[i], ir->live[i]);
    fixture_close(ir);
}

#define EXPECT(name, end, ...)                                                                                         \
    do {                                                                                                               \
        const uint32_t live_[] = {__VA_ARGS__};                                                                        \
        expect(straight(name, sizeof live_ / sizeof *live_, end), live_);                                              \
    } while (0)

/* --- single rules ------------------------------------------------------------------------------------------------- */

static void a_return_reads_results_saved_registers_and_all_that_the_function_never_writes(void)
{
    uint32_t at_return = GPRS & ~(C | R8);
    EXPECT("returns", END_RET, at_return | LIVE_DF, at_return | C | LIVE_DF, at_return | LIVE_DF);
}

/* Who saves what the ABI does not ask for has a caller that counts on it (V8's slow paths, clang's preserve_most). */
static void a_register_that_is_popped_is_live_at_the_return(void)
{
    const uint32_t at_return = GPRS | LIVE_DF, between = at_return & ~(uint32_t)R9;
    EXPECT("restores", END_RET, at_return, between, between, at_return, at_return);
}

static void a_call_within_the_module_keeps_scratch_registers_alive_but_no_flags(void)
{
    EXPECT("calls_local", END_RET, GPRS | LIVE_DF, GPRS | LIVE_DF); /* no register is written here: all live at ret */
}

static void a_call_out_of_the_module_ends_scratch_registers(void)
{
    /* rsi is clobbered by puts, so what is read after the call is not the old rsi; r11 is dead before it. rbx is
     * written first, puts may write all scratch registers, so only results and saved registers are live at ret. */
    uint32_t at_return = A | D | SAVED | LIVE_DF;
    EXPECT("calls_outside", END_RET, PASSED & ~(uint32_t)B, PASSED, (at_return & ~(uint32_t)A) | SI, at_return);
}

static void a_short_callee_may_be_a_thunk_that_jumps_to_r11(void)
{
    ir_func *ir = straight("calls_thunk", 1, END_NORETURN);
    TEST_ASSERT_BITS(R11, R11, ir->live[0]);
    fixture_close(ir);
    ir = straight("calls_local", 1, END_NORETURN);
    TEST_ASSERT_EQUAL_HEX32(PASSED, ir->live[0]);
    fixture_close(ir);
}

static void control_that_goes_into_the_middle_of_a_function_may_read_anything(void)
{
    EXPECT("calls_middle", END_RET, ALL, GPRS | LIVE_DF);
}

static void an_indirect_call_follows_the_abi_unless_it_may_be_a_tls_descriptor(void)
{
    uint32_t at_return = A | D | SAVED | LIVE_DF;
    EXPECT("calls_pointer", END_RET, PASSED, at_return | C, at_return);
    ir_func *ir = straight("calls_descriptor", 3, END_RET);
    TEST_ASSERT_BITS(R11 | C, R11 | C, ir->live[0]);
    fixture_close(ir);
}

static void a_tail_call_passes_arguments_and_what_is_not_written(void)
{
    EXPECT("jumps_local", END_TAIL, (PASSED | R11) & ~(uint32_t)R9, PASSED | R11);
}

static void system_calls_read_their_registers_and_write_two(void)
{
    uint32_t at_return = GPRS & ~(uint32_t)(C | R11 | B);
    EXPECT("system_call", END_RET, (at_return & ~(uint32_t)B) | LIVE_DF, at_return | R11 | LIVE_DF,
           at_return | B | LIVE_DF);
    EXPECT("interrupt", END_TRAP, ALL, SAVED);
}

static void a_trap_reads_saved_registers_and_unknown_ends_read_all(void)
{
    EXPECT("traps", END_TRAP, SAVED | A, SAVED);
    EXPECT("traps", END_UNKNOWN, ALL & ~LIVE_STATUS, ALL);
    EXPECT("traps", END_BAD, ALL & ~LIVE_STATUS, ALL);
}

static void writes_of_one_or_two_bytes_keep_the_register_alive(void)
{
    uint32_t after = ALL;
    EXPECT("partial_writes", END_UNKNOWN, after & ~(uint32_t)(D | SI), after & ~(uint32_t)(D | SI),
           after & ~(uint32_t)(D | SI), after & ~(uint32_t)SI, after);
}

static void conditional_writes_keep_the_register_alive(void)
{
    ir_func *ir = straight("conditional_writes", 7, END_UNKNOWN);
    TEST_ASSERT_BITS(A | SI | C | LIVE_ZF, ~0u, ir->live[0]);
    TEST_ASSERT_BITS(C | A, ~0u, ir->live[1]);
    TEST_ASSERT_BITS(A | D | DI, ~0u, ir->live[2]);
    TEST_ASSERT_BITS(C | SI | LIVE_DF, ~0u, ir->live[3]);
    TEST_ASSERT_BITS(A | C, 0, ir->live[4]);
    fixture_close(ir);
}

static void shifts_by_zero_keep_the_flags_alive(void)
{
    ir_func *ir = straight("shifts", 6, END_UNKNOWN);
    TEST_ASSERT_BITS(LIVE_CF, 0, ir->live[1]);   /* shl $3 writes CF ... */
    TEST_ASSERT_BITS(LIVE_CF, ~0u, ir->live[2]); /* ... a shift by 64 is one by 0 ... */
    TEST_ASSERT_BITS(LIVE_CF, ~0u, ir->live[3]); /* ... and one by cl may be */
    fixture_close(ir);
    ir = straight("shifts", 1, END_UNKNOWN);
    TEST_ASSERT_EQUAL_HEX32(ALL, ir->live[0]);
    fixture_close(ir);
}

static void padding_and_zeroing_read_nothing(void)
{
    ir_func *ir = straight("padding", 6, END_TRAP);
    TEST_ASSERT_EQUAL_HEX32(SAVED | R10, ir->live[0] & (GPRS | LIVE_CF)); /* sub %r10b keeps the rest: no idiom */
    TEST_ASSERT_BITS(LIVE_CF, LIVE_CF, ir->live[3]);                      /* sbb reads CF */
    TEST_ASSERT_BITS(R9, 0, ir->live[3]);
    fixture_close(ir);
}

static void saving_the_flags_reads_them_all(void)
{
    ir_func *ir = straight("flags_saved", 5, END_TRAP);
    TEST_ASSERT_BITS(LIVE_STATUS | LIVE_DF, ~0u, ir->live[0]);
    TEST_ASSERT_BITS(LIVE_SF | LIVE_ZF | LIVE_AF | LIVE_PF | LIVE_CF, ~0u, ir->live[1]);
    TEST_ASSERT_BITS(LIVE_DF | LIVE_OF, 0, ir->live[1]);
    TEST_ASSERT_BITS(LIVE_DF | SI | DI, ~0u, ir->live[3]);
    fixture_close(ir);
}

/* --- random programs ---------------------------------------------------------------------------------------------- */

enum { MAX_INSNS = 40 };

typedef struct {
    const lift_func *func;
    uint32_t which[MAX_INSNS]; /* in effects */
    uint32_t unwritten;
} program;

static uint32_t end_mask(const program *p, const lift_block *b)
{
    switch (b->end_kind) {
    case END_RET:
        return A | D | SAVED | LIVE_DF | p->unwritten;
    case END_TRAP:
        return SAVED;
    case END_UNKNOWN:
        return ALL;
    default:
        return 0;
    }
}

/* Is there a path from instruction `at` of block `b` that reads the bit before it writes it? */
static bool is_read(const program *p, uint32_t b, uint32_t at, uint32_t bit, bool *visited)
{
    const lift_block *block = &p->func->blocks[b];
    for (; at < block->insn_count; at++) {
        const effect *e = &effects[p->which[block->first_insn + at]];
        if (e->use & bit) return true;
        if (e->kill & bit) return false;
    }
    if (end_mask(p, block) & bit) return true;
    for (uint32_t i = 0; i < block->succ_count; i++) {
        uint32_t to = p->func->edges[block->first_succ + i].to;
        if (visited[to]) continue;
        visited[to] = true;
        if (is_read(p, to, 0, bit, visited)) return true;
    }
    return false;
}

static void check_random_program(uint64_t *random, const lift_insn *table)
{
    uint32_t n = 1 + fixture_random(random) % 7, m = 0;
    fixture_edge edges[16];
    uint8_t ends[8];
    for (uint32_t b = 0; b < n; b++) {
        static const uint8_t kinds[] = {END_RET,  END_TRAP,   END_UNKNOWN, END_JUMP,
                                        END_JUMP, END_BRANCH, END_BRANCH,  END_BRANCH};
        ends[b] = kinds[fixture_random(random) % sizeof kinds];
        uint32_t successors = ends[b] == END_JUMP ? 1 : ends[b] == END_BRANCH ? 2 : 0;
        for (uint32_t i = 0; i < successors; i++)
            edges[m++] = (fixture_edge){b, fixture_random(random) % n};
    }
    ir_func *ir = fixture_open(n, edges, m);
    lift_func *f = (lift_func *)ir->func;
    program p = {.func = f, .unwritten = GPRS};
    f->insns = base_alloc_zero(MAX_INSNS, sizeof *f->insns);
    for (uint32_t b = 0; b < n; b++) {
        f->blocks[b].end_kind = ends[b];
        f->blocks[b].first_insn = f->insn_count;
        f->blocks[b].insn_count = fixture_random(random) % 6;
        for (uint32_t i = 0; i < f->blocks[b].insn_count; i++) {
            uint32_t k = fixture_random(random) % EFFECTS;
            p.which[f->insn_count] = k;
            p.unwritten &= ~effects[k].write;
            f->insns[f->insn_count++] = table[k];
        }
    }
    ir_liveness(self, ir);
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t i = 0; i < f->blocks[b].insn_count; i++) {
            uint32_t live = SP | (SAVED & p.unwritten); /* never dead; the caller's, should it be unwound */
            for (uint32_t bit = 1; bit <= LIVE_DF; bit <<= 1) {
                bool visited[8] = {false};
                if (is_read(&p, b, i, bit, visited)) live |= bit;
            }
            TEST_ASSERT_EQUAL_HEX32(live, ir->live[f->blocks[b].first_insn + i]);
        }
    }
    fixture_close(ir);
}

static void random_programs_agree_with_the_definition(void)
{
    lift_insn table[EFFECTS];
    uint64_t addr = address_of("instructions"), random = 3;
    for (uint32_t i = 0; i < EFFECTS; i++) {
        TEST_ASSERT_TRUE(lift_decode(self, addr, &table[i]));
        addr += table[i].len;
    }
    for (int round = 0; round < 20000; round++)
        check_random_program(&random, table);
}

static void bytes_that_are_no_code_kill_nothing_and_read_all(void)
{
    ir_func *ir = straight("returns", 3, END_RET);
    ((lift_func *)ir->func)->insns[1].addr = 0x7fffffffffff;
    ir_liveness(self, ir);
    TEST_ASSERT_EQUAL_HEX32(ALL, ir->live[1]);
    fixture_close(ir);
}

int main(void)
{
    race_error error = {""};
    if (image_open("/proc/self/exe", &self, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    UNITY_BEGIN();
    RUN_TEST(a_return_reads_results_saved_registers_and_all_that_the_function_never_writes);
    RUN_TEST(a_register_that_is_popped_is_live_at_the_return);
    RUN_TEST(a_call_within_the_module_keeps_scratch_registers_alive_but_no_flags);
    RUN_TEST(a_call_out_of_the_module_ends_scratch_registers);
    RUN_TEST(a_short_callee_may_be_a_thunk_that_jumps_to_r11);
    RUN_TEST(control_that_goes_into_the_middle_of_a_function_may_read_anything);
    RUN_TEST(an_indirect_call_follows_the_abi_unless_it_may_be_a_tls_descriptor);
    RUN_TEST(a_tail_call_passes_arguments_and_what_is_not_written);
    RUN_TEST(system_calls_read_their_registers_and_write_two);
    RUN_TEST(a_trap_reads_saved_registers_and_unknown_ends_read_all);
    RUN_TEST(writes_of_one_or_two_bytes_keep_the_register_alive);
    RUN_TEST(conditional_writes_keep_the_register_alive);
    RUN_TEST(shifts_by_zero_keep_the_flags_alive);
    RUN_TEST(padding_and_zeroing_read_nothing);
    RUN_TEST(saving_the_flags_reads_them_all);
    RUN_TEST(random_programs_agree_with_the_definition);
    RUN_TEST(bytes_that_are_no_code_kill_nothing_and_read_all);
    int result = UNITY_END();
    image_close(self);
    return result;
}
