/* Saved analyses: what is written is read back, and no bytes whatever do harm. */
#include "static/store/store.h"
#include "unity.h"

#include <stdio.h>
#include <stdlib.h>

void setUp(void) {}
void tearDown(void) {}

static store_record *sample(void)
{
    static store_record r;
    static uint64_t callees[] = {3, 0, 5};
    static store_func funcs[] = {
        {.name = "main", .file = "", .entry = 16, .shape = 1, .body = 2, .around = 3, .callees = callees, .callee_count = 3},
        {.name = "", .file = "", .ordinal = 1, .entry = 64, .shape = 4, .body = 5, .around = 6},
    };
    static store_module modules[] = {{.path = "/tmp/prog", .member = "", .build_id = "abcd", .content = 7, .facts = 8,
                                      .instructions = 99, .funcs = funcs, .func_count = 2}};
    static const char *locks[] = {"m", "lock of x"}, *reasons[] = {"no locks are held"};
    static store_side sides[] = {
        {.at = {.module = 0, .func = 1, .insn = 7, .addr = 70, .function = "f", .file = "a.c", .line = 3, .path = "/tmp/prog"},
         .write = true, .origin = "main", .locks = locks, .lock_count = 2},
        {.at = {.module = STORE_NONE, .function = "g", .path = "/tmp/prog"}, .read = true, .origin = "thread g", .lock = "m",
         .has_since = true, .since = {.module = 0, .func = 0, .function = "main", .path = "/tmp/prog"}, .held = "n"},
    };
    static store_warning warnings[] = {{.kind = 1, .confidence = 2, .id = "D0123456789ab", .location = "x", .key = "x", .why = "both run",
                                        .size = 4, .reasons = reasons, .reason_count = 1, .sides = sides, .side_count = 2}};
    static store_counter counters[] = {{"origins", 2}, {"pairs", 1ull << 40}};
    r = (store_record){.how = 12, .modules = modules, .module_count = 1, .warnings = warnings, .warning_count = 1,
                       .counters = counters, .counter_count = 2};
    return &r;
}

static void test_what_is_written_is_read_back(void)
{
    race_error error;
    size_t size, again;
    uint8_t *bytes = store_encode(sample(), &size);
    store_record r;
    TEST_ASSERT_EQUAL(0, store_decode(bytes, size, &r, &error));
    TEST_ASSERT_EQUAL_STRING("/tmp/prog", r.modules[0].path);
    TEST_ASSERT_EQUAL_STRING("lock of x", r.warnings[0].sides[0].locks[1]);
    TEST_ASSERT_NULL(r.warnings[0].about);
    TEST_ASSERT_NULL(r.warnings[0].sides[1].at.file);
    TEST_ASSERT_EQUAL_STRING("n", r.warnings[0].sides[1].held);
    TEST_ASSERT_EQUAL_UINT64(1ull << 40, r.counters[1].value);
    uint8_t *second = store_encode(&r, &again);
    TEST_ASSERT_EQUAL(size, again);
    TEST_ASSERT_EQUAL_MEMORY(bytes, second, size);
    free(second);
    free(bytes);
    store_record_free(&r);
}

static void test_a_module_that_was_copied_is_the_same_and_its_own(void)
{
    store_record copied = *sample();
    store_module module;
    size_t size, again;
    copied.memory = (arena){0};
    store_module_copy(&sample()->modules[0], &copied.memory, &module);
    copied.modules = &module;
    uint8_t *bytes = store_encode(sample(), &size), *second = store_encode(&copied, &again);
    TEST_ASSERT_EQUAL(size, again);
    TEST_ASSERT_EQUAL_MEMORY(bytes, second, size);
    const store_module *from = &sample()->modules[0];
    TEST_ASSERT_TRUE(module.path != from->path && module.build_id != from->build_id && module.funcs != from->funcs);
    TEST_ASSERT_TRUE(module.funcs[0].name != from->funcs[0].name && module.funcs[0].callees != from->funcs[0].callees);
    arena_free(&copied.memory);
    free(second);
    free(bytes);
}

static void test_an_empty_record_is_one(void)
{
    race_error error;
    size_t size;
    store_record nothing = {0}, r;
    uint8_t *bytes = store_encode(&nothing, &size);
    TEST_ASSERT_EQUAL(0, store_decode(bytes, size, &r, &error));
    TEST_ASSERT_EQUAL(0, r.module_count);
    store_record_free(&r);
    free(bytes);
}

static void test_every_cut_and_every_flipped_bit_is_seen(void)
{
    race_error error;
    size_t size;
    uint8_t *bytes = store_encode(sample(), &size);
    store_record r;
    for (size_t n = 0; n < size; n++)
        TEST_ASSERT_EQUAL(-1, store_decode(bytes, n, &r, &error));
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        TEST_ASSERT_EQUAL(-1, store_decode(bytes, size, &r, &error));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

/* With the right checksum, so that what it guards is reached: either refused, or a sound record. */
static void test_hostile_bytes_do_no_harm(void)
{
    race_error error;
    size_t size;
    uint8_t *bytes = store_encode(sample(), &size), *copy = base_alloc(size);
    uint32_t state = 1, refused = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, bytes, size);
        for (int k = 0; k < 1 + round % 3; k++) {
            state = state * 1664525 + 1013904223;
            copy[12 + (state >> 8) % (size - 12)] = (uint8_t)(state >> 24);
        }
        size_t len = round % 7 ? size : size - (state >> 4) % (size / 2);
        store_seal(copy, len);
        store_record r;
        if (store_decode(copy, len, &r, &error)) {
            refused++;
            continue;
        }
        size_t again;
        free(store_encode(&r, &again));
        for (uint32_t i = 0; i < r.warning_count; i++)
            for (uint32_t s = 0; s < r.warnings[i].side_count; s++) {
                const store_place *at = &r.warnings[i].sides[s].at;
                TEST_ASSERT_TRUE(at->module == STORE_NONE || at->func < r.modules[at->module].func_count);
            }
        store_record_free(&r);
    }
    TEST_ASSERT_TRUE(refused > 100);
    free(copy);
    free(bytes);
}

static store_func function(const char *name, uint64_t shape, uint64_t *callees, uint32_t count)
{
    store_func f = {.name = name, .file = "", .shape = shape, .callees = callees, .callee_count = count};
    f.body = f.around = store_hash(callees, count * sizeof *callees, shape);
    return f;
}

static void test_functions_are_matched_by_name_body_and_renamed_callees(void)
{
    uint64_t old_calls[] = {store_name_hash("helper")}, new_calls[] = {store_name_hash("assist")};
    store_func old[] = {function("caller", 10, old_calls, 1), function("helper", 20, NULL, 0), function("edited", 30, NULL, 0),
                        function("dropped", 40, NULL, 0)};
    store_func new[] = {function("added", 50, NULL, 0), function("edited", 31, NULL, 0), function("assist", 20, NULL, 0),
                        function("caller", 10, new_calls, 1)};
    store_module a = {.path = "p", .member = "", .build_id = "", .funcs = old, .func_count = 4}, b = a;
    b.funcs = new;
    store_record x = {.modules = &a, .module_count = 1}, y = {.modules = &b, .module_count = 1};
    store_match match;
    store_match_open(&x, &y, &match);
    TEST_ASSERT_EQUAL(STORE_SAME, match.old_twins[0][0].change);
    TEST_ASSERT_EQUAL(3, match.old_twins[0][0].func);
    TEST_ASSERT_EQUAL(STORE_RENAMED, match.old_twins[0][1].change);
    TEST_ASSERT_EQUAL(STORE_CHANGED, match.old_twins[0][2].change);
    TEST_ASSERT_EQUAL(STORE_LONE, match.old_twins[0][3].change);
    TEST_ASSERT_EQUAL(1, match.added);
    TEST_ASSERT_EQUAL(1, match.removed);
    store_match_free(&match);
}

/* A call of another function is a change, not a renaming. */
static void test_another_callee_is_a_change(void)
{
    uint64_t old_calls[] = {store_name_hash("lock")}, new_calls[] = {store_name_hash("trylock")};
    store_func old[] = {function("caller", 10, old_calls, 1)}, new[] = {function("caller", 10, new_calls, 1)};
    store_module a = {.path = "p", .member = "", .build_id = "", .funcs = old, .func_count = 1}, b = a;
    b.funcs = new;
    store_record x = {.modules = &a, .module_count = 1}, y = {.modules = &b, .module_count = 1};
    store_match match;
    store_match_open(&x, &y, &match);
    TEST_ASSERT_EQUAL(STORE_CHANGED, match.new_twins[0][0].change);
    store_match_free(&match);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_what_is_written_is_read_back);
    RUN_TEST(test_a_module_that_was_copied_is_the_same_and_its_own);
    RUN_TEST(test_an_empty_record_is_one);
    RUN_TEST(test_every_cut_and_every_flipped_bit_is_seen);
    RUN_TEST(test_hostile_bytes_do_no_harm);
    RUN_TEST(test_functions_are_matched_by_name_body_and_renamed_callees);
    RUN_TEST(test_another_callee_is_a_change);
    return UNITY_END();
}
