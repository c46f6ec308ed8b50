/* Lengths and forms of instructions are what Zydis says, over the code of this very system; and instructions that were
 * moved do what they did. */
#include "runtime/probe/insn.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

void setUp(void) {}

void tearDown(void) {}

/* --- against Zydis ------------------------------------------------------------------------------------------------ */

static ZydisDecoder decoder;
static unsigned long compared, differ;

static void show_difference(const uint8_t *bytes, const char *what, unsigned ours, unsigned theirs)
{
    char text[64];
    for (unsigned i = 0; i < INSN_MAX; i++)
        snprintf(text + 3 * i, 4, "%02x ", bytes[i]);
    if (differ++ < 20) printf("%s: %s: %u instead of %u\n", text, what, ours, theirs);
}

static bool is_relative(const ZydisDecodedInstruction *z)
{
    return z->raw.imm[0].is_relative && z->raw.imm[0].size;
}

/* Compares one instruction; returns the bytes to go on by. */
static unsigned compare(const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction z;
    insn i;
    bool theirs = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &z));
    bool ours = insn_decode(bytes, size, &i);
    if (!theirs) return 1; /* what the processor would refuse is not our business */
    compared++;
    if (!ours) {
        show_difference(bytes, "decoded", 0, 1);
        return z.length;
    }
    if (i.length != z.length) show_difference(bytes, "length", i.length, z.length);
    const bool rip = z.attributes & ZYDIS_ATTRIB_HAS_MODRM && z.raw.modrm.mod == 0 && z.raw.modrm.rm == 5;
    if (i.is_rip != rip) show_difference(bytes, "rip", i.is_rip, rip);
    if (i.is_rip && i.disp_at != z.raw.disp.offset) show_difference(bytes, "disp", i.disp_at, z.raw.disp.offset);
    const bool relative = i.flow == INSN_JUMP || i.flow == INSN_BRANCH || i.flow == INSN_LOOP || i.flow == INSN_CALL ||
                          i.flow == INSN_BEGIN;
    if (relative != is_relative(&z)) show_difference(bytes, "relative", relative, is_relative(&z));
    return z.length;
}

/* Where the instruction at addr leads to, or the memory it names; 0: nothing relative. */
static uint64_t absolute_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands, uint64_t addr)
{
    for (unsigned i = 0; i < z->operand_count; i++) {
        ZyanU64 target = 0;
        const bool is_relative_target = operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[i].imm.is_relative;
        const bool is_rip = operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].mem.base == ZYDIS_REGISTER_RIP;
        if ((is_relative_target || is_rip) && ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(z, &operands[i], addr, &target)))
            return target;
    }
    return 0;
}

/* Moves one instruction; what it means at its new place, by Zydis, is what it meant. */
static unsigned compare_moved(const uint8_t *bytes, size_t size)
{
    const uint64_t from = 0x555555001000, to = from - 0x12345678;
    ZydisDecodedInstruction z, moved;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT], moved_operands[ZYDIS_MAX_OPERAND_COUNT];
    insn i;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, size, &z, operands))) return 1;
    if (!insn_decode(bytes, size, &i)) return z.length;
    uint8_t out[INSN_MOVED];
    const size_t len = insn_move(&i, bytes, from, to, out);
    if (!len) return z.length; /* it says that it cannot */
    compared++;
    if (len > INSN_MOVED) show_difference(bytes, "bytes", (unsigned)len, INSN_MOVED);
    size_t at = 0;
    uint64_t returns = 0;
    const bool is_call = z.meta.category == ZYDIS_CATEGORY_CALL && (i.flow == INSN_CALL || i.flow == INSN_CALL_IND);
    if (is_call) { /* push $low; movl $high, 4(%rsp); jmp */
        uint32_t low, high;
        memcpy(&low, out + 1, sizeof low);
        memcpy(&high, out + 9, sizeof high);
        returns = (uint64_t)high << 32 | low;
        at = 13;
        if (returns != from + z.length) show_difference(bytes, "return address", low, (unsigned)(from + z.length));
    }
    if (i.flow == INSN_LOOP) at = 4; /* loop 1f; jmp short 2f; 1: jmp; 2: */
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, out + at, len - at, &moved, moved_operands))) {
        show_difference(bytes, "moved, decoded", 0, 1);
        return z.length;
    }
    const uint64_t meant = absolute_of(&z, operands, from), means = absolute_of(&moved, moved_operands, to + at);
    if (meant != means) show_difference(bytes, "target", (unsigned)means, (unsigned)meant);
    if (!is_call && i.flow != INSN_LOOP && moved.mnemonic != z.mnemonic)
        show_difference(bytes, "mnemonic", moved.mnemonic, z.mnemonic);
    if ((is_call || i.flow == INSN_LOOP) && moved.mnemonic != ZYDIS_MNEMONIC_JMP)
        show_difference(bytes, "mnemonic", moved.mnemonic, ZYDIS_MNEMONIC_JMP);
    if (at + moved.length != len) show_difference(bytes, "moved length", (unsigned)(at + moved.length), (unsigned)len);
    return z.length;
}

static unsigned (*each)(const uint8_t *, size_t) = compare;

static void compare_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(Elf64_Ehdr)) {
        const uint8_t *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        const Elf64_Ehdr *elf = (const void *)map;
        if (map != MAP_FAILED && !memcmp(map, ELFMAG, SELFMAG) && elf->e_machine == EM_X86_64) {
            const Elf64_Phdr *headers = (const void *)(map + elf->e_phoff);
            for (unsigned h = 0; h < elf->e_phnum; h++)
                if (headers[h].p_type == PT_LOAD && headers[h].p_flags & PF_X)
                    for (size_t at = 0; at < headers[h].p_filesz;)
                        at += each(map + headers[h].p_offset + at, headers[h].p_filesz - at);
        }
        if (map != MAP_FAILED) munmap((void *)map, (size_t)st.st_size);
    }
    close(fd);
}

static void test_lengths_and_forms_of_system_code_are_those_of_zydis(void)
{
    static const char *const files[] = {
        "/bin/bash",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/lib/x86_64-linux-gnu/libzstd.so.1",
    };
    compared = differ = 0;
    const char *more = getenv("RACE_INSN_FILE"); /* for a look at other files */
    if (more) compare_file(more);
    for (unsigned f = 0; f < sizeof files / sizeof *files && !more; f++)
        compare_file(files[f]);
    printf("%lu instructions\n", compared);
    TEST_ASSERT_EQUAL(0, differ);
    TEST_ASSERT_GREATER_THAN(100000, compared);
}

static void test_moved_system_code_means_what_it_meant(void)
{
    compared = differ = 0;
    each = compare_moved;
    compare_file("/bin/bash");
    compare_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
    each = compare;
    printf("%lu instructions\n", compared);
    TEST_ASSERT_EQUAL(0, differ);
    TEST_ASSERT_GREATER_THAN(100000, compared);
}

/* Every opcode of every map with every ModRM form, and random bytes: what Zydis decodes has our length. A few that no
 * compiler makes are refused by us, which is safe; their number is watched. */
static void test_lengths_of_made_up_code_are_those_of_zydis_or_refused(void)
{
    unsigned long wrong = 0, refused = 0, total = 0;
    srand(1);
    for (unsigned long round = 0; round < 3000000; round++) {
        uint8_t bytes[INSN_MAX + 1] = {0};
        for (unsigned k = 0; k < INSN_MAX; k++)
            bytes[k] = (uint8_t)(rand() >> 7);
        ZydisDecodedInstruction z;
        insn i;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, INSN_MAX, &z))) continue;
        total++;
        if (!insn_decode(bytes, INSN_MAX, &i))
            refused++;
        else if (i.length != z.length && wrong++ < 10)
            show_difference(bytes, "length", i.length, z.length);
    }
    printf("%lu instructions, %lu refused\n", total, refused);
    TEST_ASSERT_EQUAL(0, wrong);
    TEST_ASSERT_LESS_THAN(total / 20, refused);
}

/* --- moved -------------------------------------------------------------------------------------------------------- */

/* Code that is run at its place and moved far away; both must leave the same registers. */
typedef struct {
    const char *name;
    const uint8_t *code;
    unsigned size;
    uint64_t result; /* in rax */
} moved_case;

#define CODE(text) (const uint8_t *)(text), sizeof(text) - 1

static const moved_case cases[] = {
    /* rdi is 5, rsi 7; at +0x80 of the page is the number 1000, at +0xa0 a function that returns rdi + its caller's
     * return address minus the page */
    {"lea 8(%rdi,%rsi,2)", CODE("\x48\x8d\x44\x77\x08"), 27},
    {"mov 0x79(%rip) = page+0x80", CODE("\x48\x8b\x05\x79\x00\x00\x00"), 1000},
    {"add $imm8, mem(%rip), then load", CODE("\x48\x83\x05\x78\x00\x00\x00\x09\x48\x8b\x05\x71\x00\x00\x00"), 1009},
    {"xor, jmp short over a bad one", CODE("\x31\xc0\xeb\x02\x0f\x0b\xff\xc0"), 1},
    {"cmp, je not taken", CODE("\x31\xc0\x39\xf7\x74\x02\xff\xc0"), 1},
    {"cmp, jb taken", CODE("\x31\xc0\x39\xf7\x72\x02\xff\xc0"), 0},
    {"jrcxz taken", CODE("\x31\xc0\x31\xc9\xe3\x02\xff\xc0"), 0},
    {"jrcxz not taken", CODE("\x31\xc0\x8d\x4f\x00\xe3\x02\xff\xc0"), 1},
    {"loop counts", CODE("\x31\xc0\x89\xf9\xff\xc0\xe2\xfc"), 5},
    {"call rel32", CODE("\x55\xe8\x9a\x00\x00\x00\x5d"), 5 + 6},
    {"call *reg", CODE("\x55\x48\x8d\x05\x98\x00\x00\x00\xff\xd0\x5d"), 5 + 10},
    {"call *8(%rsp)", CODE("\x48\x8d\x05\x99\x00\x00\x00\x50\x6a\x00\xff\x54\x24\x08\x59\x59"), 5 + 14},
    {"call *(%rip)", CODE("\x55\xff\x15\x89\x00\x00\x00\x5d"), 5 + 7},
};

typedef uint64_t run_function(uint64_t, uint64_t);

static uint8_t *new_page(uintptr_t hint)
{
    uint8_t *page = mmap((void *)hint, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(page != MAP_FAILED);
    return page;
}

static void fill_page(uint8_t *page)
{
    memset(page, 0xcc, 4096);
    memcpy(page + 0x80, &(uint64_t){1000}, 8);
    memcpy(page + 0x90, &(uint64_t){(uintptr_t)page + 0xa0}, 8);
    static const uint8_t function[] = "\x48\x8b\x04\x24"              /* mov (%rsp), %rax */
                                      "\x48\x8d\x15\x55\xff\xff\xff"  /* lea page(%rip), %rdx */
                                      "\x48\x29\xd0\x48\x01\xf8\xc3"; /* sub %rdx, %rax; add %rdi, %rax; ret */
    memcpy(page + 0xa0, function, sizeof function - 1);
}

static void run_case(const moved_case *c, intptr_t distance)
{
    uint8_t *page = new_page(0x20000000), *far = new_page(0x20000000 + (uintptr_t)distance);
    TEST_ASSERT_TRUE(page && far);
    fill_page(page);
    memcpy(page, c->code, c->size);
    page[c->size] = 0xc3;
    uint64_t before = ((run_function *)(uintptr_t)page)(5, 7);
    TEST_ASSERT_EQUAL_HEX64_MESSAGE(c->result, before, c->name);

    /* Each instruction is replaced by a jump to its moved form, one after another; those of less than five bytes get
     * their own page where the next ones are moved with them, so all are moved and the last jumps back. Where a jump
     * leads to an instruction in the middle, that one is still at its place. */
    fill_page(page);
    memcpy(page, c->code, c->size);
    page[c->size] = 0xc3;
    uint8_t *at = far;
    uint64_t starts[32], count = 0;
    for (unsigned offset = 0; offset < c->size;) {
        insn i;
        TEST_ASSERT_TRUE_MESSAGE(insn_decode(page + offset, 64, &i), c->name);
        size_t len = insn_move(&i, page + offset, (uint64_t)page + offset, (uint64_t)at, at);
        TEST_ASSERT_NOT_EQUAL_MESSAGE(0, len, c->name);
        TEST_ASSERT_LESS_OR_EQUAL(INSN_MOVED, len);
        starts[count++] = (uint64_t)at;
        at += len;
        offset += i.length;
        if (i.flow == INSN_CALL || i.flow == INSN_CALL_IND) { /* it comes back to its own place */
            memset(at, 0xcc, 8);
            break;
        }
    }
    *at++ = 0xc3;
    uint64_t after = ((run_function *)(uintptr_t)starts[0])(5, 7);
    TEST_ASSERT_EQUAL_HEX64_MESSAGE(c->result, after, c->name);
    munmap(page, 4096);
    munmap(far, 4096);
}

static void test_moved_code_does_the_same(void)
{
    static const intptr_t distances[] = {0x10000, 0x1000000, 0x40000000, -0x18000000};
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned d = 0; d < sizeof distances / sizeof *distances; d++)
            run_case(&cases[c], distances[d]);
}

static void test_what_cannot_be_moved_is_refused(void)
{
    uint8_t out[INSN_MOVED];
    insn i;
    static const uint8_t far_data[] = {0x48, 0x8b, 0x05, 0, 0, 0, 0}, call_stack[] = {0xff, 0xd4};
    TEST_ASSERT_TRUE(insn_decode(far_data, sizeof far_data, &i));
    TEST_ASSERT_EQUAL(0, insn_move(&i, far_data, 0x10000000, 0x100000000, out));
    TEST_ASSERT_TRUE(insn_decode(call_stack, sizeof call_stack, &i));
    TEST_ASSERT_EQUAL(0, insn_move(&i, call_stack, 0x10000000, 0x10001000, out));
    TEST_ASSERT_FALSE(insn_decode((const uint8_t *)"\x48\x8b\x05", 3, &i));
    TEST_ASSERT_FALSE(insn_decode((const uint8_t *)"", 0, &i));
}

int main(void)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    UNITY_BEGIN();
    RUN_TEST(test_lengths_and_forms_of_system_code_are_those_of_zydis);
    RUN_TEST(test_lengths_of_made_up_code_are_those_of_zydis_or_refused);
    RUN_TEST(test_moved_system_code_means_what_it_meant);
    RUN_TEST(test_moved_code_does_the_same);
    RUN_TEST(test_what_cannot_be_moved_is_refused);
    return UNITY_END();
}
