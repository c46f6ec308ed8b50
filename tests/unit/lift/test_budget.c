/* What hostile code costs: the work on a module is bounded by a constant times its code, in time and in memory, and
 * what is given up is marked as unknown. The bound in time is for a slow machine with sanitizers, ten times and more
 * what is taken on a good one; the bound in instructions is exact. */
#include "static/lift/lift.h"
#include "tests/lib/tinyelf.h"

#include "unity.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>

enum { SIZE = 48 << 10, MOST_SECONDS = 40 };

static uint8_t code[SIZE];
static uint32_t at;

void setUp(void)
{
    memset(code, 0xcc, sizeof code);
    at = 0;
}

void tearDown(void)
{
}

static void put(const char *bytes, uint32_t len)
{
    TEST_ASSERT_TRUE(at + len <= SIZE);
    memcpy(code + at, bytes, len);
    at += len;
}

#define PUT(bytes) put(bytes, sizeof(bytes) - 1)

static void put_relative(const char *opcode, uint32_t len, uint32_t target)
{
    put(opcode, len);
    int32_t distance = (int32_t)(target - (at + 4));
    put((const char *)&distance, 4);
}

static lift_stats lift(const uint8_t *bytes, size_t size)
{
    size_t length;
    void *file = tinyelf(bytes, size, &length);
    image *img;
    race_error error;
    lift_stats stats = {0};
    clock_t start = clock();
    TEST_ASSERT_EQUAL_MESSAGE(0, image_open_memory("hostile", file, length, &img, &error), error.text);
    lift_module *module = lift_open(img, &(lift_options){.jobs = 1});
    stats = module->stats;
    lift_close(module);
    image_close(img);
    free(file);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (getenv("RACE_VERBOSE"))
        printf("%zu bytes: %u functions, %u blocks, %llu instructions, %u+%u jumps, %.2f s\n", size, stats.functions,
               stats.blocks, (unsigned long long)stats.instructions, stats.jumps_resolved, stats.jumps_unresolved,
               seconds);
    TEST_ASSERT_TRUE_MESSAGE(seconds < MOST_SECONDS, "too slow");
    TEST_ASSERT_TRUE_MESSAGE(stats.instructions < (1u << 21) + 9 * size, "too many instructions");
    return stats;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Fragments as compilers make them, in no order, with calls and jumps to anywhere. */
static void random_fragments_are_lifted_in_bounded_time(void)
{
    static const struct { const char *bytes; uint8_t len, distance; } fragments[] = { /* distance: bytes at the end */
        {"\xe8", 1, 4}, {"\xe9", 1, 4}, {"\x0f\x84", 2, 4}, {"\x0f\x87", 2, 4}, {"\x75", 1, 1}, {"\xeb", 1, 1},
        {"\x48\x8d\x1d", 3, 4},                               /* lea x(%rip),%rbx */
        {"\x48\x63\x04\x83\x48\x01\xd8\xff\xe0", 9, 0},      /* movslq (%rbx,%rax,4),%rax; add; jmp *%rax */
        {"\x83\xf8\x20", 3, 0}, {"\x0f\xb6\x07", 3, 0},        /* cmp $32,%eax; movzbl (%rdi),%eax */
        {"\xff\x24\xc3", 3, 0}, {"\xff\x20", 2, 0}, {"\xff\xe0", 2, 0}, {"\x48\x0f\x44\xc1", 4, 0}, /* cmove */
        {"\x50", 1, 0}, {"\x58", 1, 0}, {"\xc3", 1, 0}, {"\x48\x89\x03", 3, 0}, {"\x48\x8b\x44\x24\x08", 5, 0},
    };
    for (uint32_t seed = 1, round = 0; round < 8; round++) {
        setUp();
        while (at + 16 < SIZE) {
            uint32_t i = next_random(&seed) % (sizeof fragments / sizeof *fragments);
            put(fragments[i].bytes, fragments[i].len);
            int32_t distance = (int32_t)(next_random(&seed) % SIZE) - (int32_t)at;
            if (fragments[i].distance == 1) distance = (int8_t)distance;
            put((const char *)&distance, fragments[i].distance);
        }
        lift(code, SIZE);
    }
}

static void many_functions_that_jump_into_one_body_do_not_all_hold_it(void)
{
    enum { COUNT = 2000 };
    uint32_t first = COUNT * 5 + 1, body = first + COUNT * 5;
    for (uint32_t i = 0; i < COUNT; i++)
        put_relative("\xe8", 1, first + i * 5);
    PUT("\xc3");
    for (uint32_t i = 0; i < COUNT; i++)
        put_relative("\xe9", 1, body);
    while (at + 8 < SIZE)
        PUT("\x90\x75\x01\x90"); /* nop; jne over a nop */
    PUT("\xc3");
    lift(code, SIZE);
}

static void many_indirect_jumps_in_one_function_share_its_budget(void)
{
    while (at + 16 < SIZE)
        PUT("\x75\x05\x48\x01\xc8\xff\xe0\x48\x03\x03"); /* jne over: add %rcx,%rax; jmp *%rax; over: add (%rbx),%rax */
    PUT("\xc3");
    lift_stats stats = lift(code, SIZE);
    TEST_ASSERT_EQUAL(SIZE / 10 - 1, stats.jumps_unresolved + stats.jumps_resolved + stats.jumps_tail);
}

/* Each jump reads the same words, by tables of any size. */
static void many_jumps_through_large_tables_share_its_budget(void)
{
    enum { TABLE = 256, ENTRIES = 4096 };
    PUT("\x48\x8d\x1d");
    int32_t distance = TABLE - 7;
    put((const char *)&distance, 4); /* lea table(%rip),%rbx */
    PUT("\xe9");
    distance = TABLE + 4 * ENTRIES - (int32_t)(at + 4);
    put((const char *)&distance, 4);
    at = TABLE;
    uint32_t begin = TABLE + 4 * ENTRIES;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        distance = (int32_t)(begin + i % 1000 * 20 - TABLE);
        put((const char *)&distance, 4);
    }
    while (at + 24 < SIZE)
        /* movzwl (%rdi),%eax; movslq (%rbx,%rax,4),%rax; add %rbx,%rax; add $2,%rdi; jmp *%rax; nops */
        PUT("\x0f\xb7\x07\x48\x63\x04\x83\x48\x01\xd8\x48\x83\xc7\x02\xff\xe0\x90\x90\x90\x90");
    lift(code, SIZE);
}

/* Each function is found only when the one before it is built. */
static void a_long_chain_of_calls_is_followed_in_bounded_time(void)
{
    while (at + 16 < SIZE)
        put_relative("\x50\xe8", 2, at + 7), PUT("\xc3");
    lift(code, SIZE);
}

/* Calls lead to every second byte. */
static void a_function_every_few_bytes_is_lifted_in_bounded_time(void)
{
    uint32_t half = SIZE / 2;
    for (uint32_t i = 0; at + 8 < half; i++)
        put_relative("\xe8", 1, half + i % (half / 2 - 8) * 2);
    PUT("\xc3");
    at = half;
    while (at + 8 < SIZE)
        PUT("\x74\x02\xff\x23\x75\xfa\xff\xe0");
    lift(code, SIZE);
}

/* What the fuzz target has for seeds, and what it has found. */
static void the_seeds_of_the_fuzz_target_are_lifted_in_bounded_time(void)
{
    const char *source = getenv("RACE_SOURCE");
    char path[4096];
    uint32_t seeds = 0;
    if (!source) TEST_IGNORE_MESSAGE("RACE_SOURCE is not set");
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/lift", source);
    DIR *dir = opendir(path);
    TEST_ASSERT_NOT_NULL(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/lift/%s", source, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!file) continue;
        size_t size = fread(code, 1, sizeof code, file);
        fclose(file);
        lift(code, size);
        seeds++;
    }
    closedir(dir);
    TEST_ASSERT_TRUE(seeds > 10);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(random_fragments_are_lifted_in_bounded_time);
    RUN_TEST(many_functions_that_jump_into_one_body_do_not_all_hold_it);
    RUN_TEST(many_indirect_jumps_in_one_function_share_its_budget);
    RUN_TEST(many_jumps_through_large_tables_share_its_budget);
    RUN_TEST(a_long_chain_of_calls_is_followed_in_bounded_time);
    RUN_TEST(a_function_every_few_bytes_is_lifted_in_bounded_time);
    RUN_TEST(the_seeds_of_the_fuzz_target_are_lifted_in_bounded_time);
    return UNITY_END();
}
