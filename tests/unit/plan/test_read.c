/* The reader of plans believes nothing: a sound plan is accepted, and every single claim that is wrong is refused, even
 * when the checksum is right. */
#include "include/race/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

enum { SITES = 3, ACTIONS = 4, SOURCES = 2, OBJECTS = 2, STRINGS = 24, ROWS = 2 };

typedef struct { /* a plan with all tables, back to back */
    plan_header header;
    plan_site sites[SITES];
    plan_action actions[ACTIONS];
    plan_source sources[SOURCES];
    plan_object objects[OBJECTS];
    char strings[STRINGS];
    plan_unwind unwind[ROWS];
} sample;

static sample good;

static void seal(sample *s)
{
    s->header.checksum = plan_checksum(s, sizeof *s);
}

void setUp(void)
{
    memset(&good, 0, sizeof good);
    plan_header *h = &good.header;
    memcpy(h->magic, PLAN_MAGIC, sizeof h->magic);
    h->version = PLAN_VERSION;
    h->header_size = sizeof *h;
    h->file_size = sizeof good;
    strcpy(h->build_id, "0123456789abcdef");
    h->low = 0x1000;
    h->high = 0x9000;
    h->tables[PLAN_SITES] = (plan_table){offsetof(sample, sites), SITES, sizeof(plan_site)};
    h->tables[PLAN_ACTIONS] = (plan_table){offsetof(sample, actions), ACTIONS, sizeof(plan_action)};
    h->tables[PLAN_SOURCES] = (plan_table){offsetof(sample, sources), SOURCES, sizeof(plan_source)};
    h->tables[PLAN_OBJECTS] = (plan_table){offsetof(sample, objects), OBJECTS, sizeof(plan_object)};
    h->tables[PLAN_STRINGS] = (plan_table){offsetof(sample, strings), STRINGS, 1};
    h->tables[PLAN_UNWIND] = (plan_table){offsetof(sample, unwind), ROWS, sizeof(plan_unwind)};

    const uint8_t none = PLAN_NOTHING;
    good.actions[0] = (plan_action){PLAN_CHECK, PLAN_READ, 0, 1, 8, 0, none, 8, -16, 8, 1, 0, none, 0, 0, 0};
    good.actions[1] =
        (plan_action){PLAN_CHECK, PLAN_WRITE | PLAN_DOWN | PLAN_UNTIL, 7, none, 1, 0, none, 8, 0, 1, 0, 1, 1, 0, 0, 0};
    good.actions[2] = (plan_action){PLAN_SYNC,   PLAN_READ | PLAN_WRITE | PLAN_ACQUIRE | PLAN_RELEASE,
                                    PLAN_MODULE, none,
                                    1,           1,
                                    none,        4,
                                    0x4000,      4,
                                    1,           0,
                                    none,        0,
                                    0,           0};
    good.actions[3] = (plan_action){PLAN_CAPTURE, 0, PLAN_CAPTURED + 2, 3, 4, 0, none, 8, 1, 0, 0, 0, none, 31, 0, 0};
    good.sites[0] = (plan_site){0x1000, 0, 2, 3, 7, 0, PLAN_DEAD_STATUS | 1, 1, 0, 0};
    good.sites[1] = (plan_site){0x1003, 2, 2, 15, 15, PLAN_CALL, 0, 2, 0, 0};
    good.sites[2] = (plan_site){0x8ff1, 4, 0, 15, 255, 0, 0, 0, 0, 0};
    good.sources[0] = (plan_source){1, 6, 10, 2, 0, 0};
    good.sources[1] = (plan_source){0, 0, 0, 0, 1, 0};
    good.objects[0] = (plan_object){0x1000, 0x8000, 1, 0};
    good.objects[1] = (plan_object){0x1008, 0, 0, 0};
    memcpy(good.strings, "\0main\0file.c", 12);
    good.unwind[0] = (plan_unwind){0x10, 8, 0, PLAN_UNWIND_RSP, {0}};
    good.unwind[1] = (plan_unwind){0x20, 16, -16, PLAN_UNWIND_RBP, {0}};
    seal(&good);
}

void tearDown(void) {}

static void test_a_sound_plan_is_accepted(void)
{
    plan p;
    TEST_ASSERT_EQUAL(PLAN_OK, plan_read(&good, sizeof good, &p));
    TEST_ASSERT_EQUAL_UINT(SITES, p.site_count);
    TEST_ASSERT_EQUAL_STRING("main", plan_string(&p, p.sources[0].function));
    TEST_ASSERT_EQUAL_STRING("", plan_string(&p, STRINGS));
    TEST_ASSERT_EQUAL_PTR(&good.sites[1], plan_site_at(&p, 0x1003));
    TEST_ASSERT_NULL(plan_site_at(&p, 0x1004));
    TEST_ASSERT_EQUAL_PTR(&good.sites[1], plan_site_covering(&p, 0x1011));
    TEST_ASSERT_NULL(plan_site_covering(&p, 0x1012));
    TEST_ASSERT_NULL(plan_site_covering(&p, 0xfff));
    TEST_ASSERT_NULL(plan_site_covering(&p, UINT64_MAX));
    TEST_ASSERT_EQUAL_PTR(&good.objects[0], plan_object_covering(&p, 0x1007));
    TEST_ASSERT_NULL(plan_object_covering(&p, 0xfff));
    TEST_ASSERT_NULL(plan_unwind_at(&p, 0x100f));
    TEST_ASSERT_EQUAL_PTR(&good.unwind[0], plan_unwind_at(&p, 0x101f));
    TEST_ASSERT_EQUAL_PTR(&good.unwind[1], plan_unwind_at(&p, 0x8fff));
    TEST_ASSERT_NULL(plan_unwind_at(&p, 0x9000));
}

static void test_an_instruction_inside_another_does_not_hide_it(void)
{
    plan p;
    good.sites[1].addr = 0x1001; /* 15 bytes */
    good.sites[2].addr = 0x1002;
    good.sites[2].length = 2;
    seal(&good);
    TEST_ASSERT_EQUAL(PLAN_OK, plan_read(&good, sizeof good, &p));
    TEST_ASSERT_EQUAL_PTR(&good.sites[2], plan_site_covering(&p, 0x1003));
    TEST_ASSERT_EQUAL_PTR(&good.sites[1], plan_site_covering(&p, 0x1004));
    TEST_ASSERT_EQUAL_PTR(&good.sites[1], plan_site_covering(&p, 0x100f));
    TEST_ASSERT_NULL(plan_site_covering(&p, 0x1010));
}

/* Each line changes one thing of the sound plan. */
#define REFUSED(expected, change)                                                                                      \
    do {                                                                                                               \
        setUp();                                                                                                       \
        change;                                                                                                        \
        seal(&good);                                                                                                   \
        plan p;                                                                                                        \
        TEST_ASSERT_EQUAL_MESSAGE(expected, plan_read(&good, sizeof good, &p), #change);                               \
        TEST_ASSERT_NULL_MESSAGE(p.header, #change);                                                                   \
    } while (0)

static void test_wrong_unwind_rows_are_refused(void)
{
    REFUSED(PLAN_BAD_UNWIND, good.unwind[1].start = 0x10);
    REFUSED(PLAN_BAD_UNWIND, good.unwind[1].start = 0x8001);
    REFUSED(PLAN_BAD_UNWIND, good.unwind[0].base = 3);
    REFUSED(PLAN_BAD_UNWIND, good.unwind[0].reserved[2] = 1);
}

static void test_a_wrong_header_is_refused(void)
{
    REFUSED(PLAN_NOT_PLAN, good.header.magic[7] = 0);
    REFUSED(PLAN_OTHER_VERSION, good.header.version++);
    REFUSED(PLAN_OTHER_VERSION, good.header.header_size += 8);
    REFUSED(PLAN_LONG, good.header.file_size--);
    REFUSED(PLAN_SHORT, good.header.file_size++);
    REFUSED(PLAN_BAD_TABLE, good.header.build_id[0] = 'G');
    REFUSED(PLAN_BAD_TABLE, good.header.build_id[0] = 'A');
    REFUSED(PLAN_BAD_TABLE, memset(good.header.build_id, 0, sizeof good.header.build_id));
    REFUSED(PLAN_BAD_TABLE, memset(good.header.build_id, 'a', sizeof good.header.build_id));
    REFUSED(PLAN_BAD_TABLE, good.header.build_id[40] = 'a');
    REFUSED(PLAN_BAD_TABLE, good.header.flags = 8);
    REFUSED(PLAN_BAD_TABLE, good.header.low = 0xa000);
}

static void test_a_wrong_table_is_refused(void)
{
    for (int i = 0; i < PLAN_TABLES; i++) {
        REFUSED(PLAN_BAD_TABLE, good.header.tables[i].record++);
        REFUSED(PLAN_BAD_TABLE, good.header.tables[i].offset += 4);
        REFUSED(PLAN_BAD_TABLE, good.header.tables[i].offset = 0);
        REFUSED(PLAN_BAD_TABLE, good.header.tables[i].offset = UINT64_MAX - 7);
        REFUSED(PLAN_BAD_TABLE, good.header.tables[i].count = UINT32_MAX);
        REFUSED(PLAN_BAD_TABLE, good.header.tables[i].count += SITES + ACTIONS + STRINGS);
    }
    REFUSED(PLAN_BAD_TABLE, good.header.tables[PLAN_UNWIND].record = 8);
}

static void test_a_wrong_site_is_refused(void)
{
    REFUSED(PLAN_BAD_SITE, good.sites[1].addr = good.sites[0].addr);
    REFUSED(PLAN_BAD_SITE, good.sites[0].addr = 0xfff);
    REFUSED(PLAN_BAD_SITE, good.sites[2].addr = 0x8ff2);
    REFUSED(PLAN_BAD_SITE, good.sites[2].addr = UINT64_MAX);
    REFUSED(PLAN_BAD_SITE, good.sites[0].length = 0);
    REFUSED(PLAN_BAD_SITE, good.sites[1].length = 16);
    REFUSED(PLAN_BAD_SITE, good.sites[0].window = 2);
    REFUSED(PLAN_BAD_SITE, good.sites[0].first_action = ACTIONS + 1);
    REFUSED(PLAN_BAD_SITE, good.sites[0].first_action = UINT32_MAX);
    REFUSED(PLAN_BAD_SITE, good.sites[2].action_count = 1);
    REFUSED(PLAN_BAD_SITE, good.sites[0].flags = 8);
    REFUSED(PLAN_BAD_SITE, good.sites[0].dead = 1 << 22);
    REFUSED(PLAN_BAD_SITE, good.sites[0].source = SOURCES + 1);
    REFUSED(PLAN_BAD_SITE, good.sites[0].early = PLAN_EARLY + 1);
    REFUSED(PLAN_BAD_SITE, good.sites[0].warnings = STRINGS);
}

static void test_a_wrong_action_is_refused(void)
{
    plan_action *read = &good.actions[0], *repeat = &good.actions[1], *sync = &good.actions[2],
                *capture = &good.actions[3];
    REFUSED(PLAN_BAD_ACTION, good.header.flags |= PLAN_ONLY_ATOMICS); /* there are checks */
    REFUSED(PLAN_BAD_ACTION, read->kind = 0);
    REFUSED(PLAN_BAD_ACTION, read->kind = 4);
    REFUSED(PLAN_BAD_ACTION, read->flags = 0);
    REFUSED(PLAN_BAD_ACTION, read->flags |= 64);
    REFUSED(PLAN_BAD_ACTION, read->flags |= PLAN_ACQUIRE);
    REFUSED(PLAN_BAD_ACTION, read->flags |= PLAN_DOWN);
    REFUSED(PLAN_BAD_ACTION, read->base = 16);
    REFUSED(PLAN_BAD_ACTION, read->base = PLAN_CAPTURED + PLAN_CAPTURES);
    REFUSED(PLAN_BAD_ACTION, read->index = PLAN_MODULE);
    REFUSED(PLAN_BAD_ACTION, read->index = 16);
    REFUSED(PLAN_BAD_ACTION, read->scale = 0);
    REFUSED(PLAN_BAD_ACTION, read->scale = 3);
    REFUSED(PLAN_BAD_ACTION, read->scale = 16);
    REFUSED(PLAN_BAD_ACTION, read->segment = 3);
    REFUSED(PLAN_BAD_ACTION, read->bits = 16);
    REFUSED(PLAN_BAD_ACTION, (read->bits = 1, read->size = 10));
    REFUSED(PLAN_BAD_ACTION, read->width = 2);
    REFUSED(PLAN_BAD_ACTION, read->size = 0);
    REFUSED(PLAN_BAD_ACTION, read->size = PLAN_MAX_ELEMENT + 1);
    REFUSED(PLAN_BAD_ACTION, read->count = 0);
    REFUSED(PLAN_BAD_ACTION, read->count = PLAN_MAX_COUNT + 1u);
    REFUSED(PLAN_BAD_ACTION, read->stride = 8);
    REFUSED(PLAN_BAD_ACTION, read->counter = 1);
    REFUSED(PLAN_BAD_ACTION, read->slot = 1);
    REFUSED(PLAN_BAD_ACTION, read->reserved = 1);
    REFUSED(PLAN_BAD_ACTION, read->claim = PLAN_CLAIMS);
    REFUSED(PLAN_BAD_ACTION, sync->claim = PLAN_CLAIM_LOCAL);
    REFUSED(PLAN_BAD_ACTION, repeat->counter = PLAN_NOTHING);
    REFUSED(PLAN_BAD_ACTION, repeat->counter = PLAN_MODULE);
    REFUSED(PLAN_BAD_ACTION, sync->flags = PLAN_READ | PLAN_WRITE);
    REFUSED(PLAN_BAD_ACTION, sync->flags = PLAN_ACQUIRE);
    REFUSED(PLAN_BAD_ACTION, sync->count = 2);
    REFUSED(PLAN_BAD_ACTION, sync->flags |= PLAN_DOWN);
    REFUSED(PLAN_BAD_ACTION, capture->flags = PLAN_READ);
    REFUSED(PLAN_BAD_ACTION, capture->size = 8);
    REFUSED(PLAN_BAD_ACTION, capture->count = 1);
    REFUSED(PLAN_BAD_ACTION, capture->slot = PLAN_CAPTURES);
    REFUSED(PLAN_BAD_ACTION, capture->bits = 1);
}

static void test_a_wrong_source_object_or_string_is_refused(void)
{
    REFUSED(PLAN_BAD_SOURCE, good.sources[0].function = STRINGS);
    REFUSED(PLAN_BAD_SOURCE, good.sources[1].file = UINT32_MAX);
    REFUSED(PLAN_BAD_SOURCE, good.sources[0].outer = 1); /* itself */
    REFUSED(PLAN_BAD_SOURCE, good.sources[1].outer = 2);
    REFUSED(PLAN_BAD_SOURCE, good.sources[1].reserved = 2);
    REFUSED(PLAN_BAD_OBJECT, good.objects[1].addr = 0x1000);
    REFUSED(PLAN_BAD_OBJECT, good.objects[0].size = 0x8001);
    REFUSED(PLAN_BAD_OBJECT, good.objects[0].size = UINT64_MAX);
    REFUSED(PLAN_BAD_OBJECT, good.objects[1].addr = 0x9001);
    REFUSED(PLAN_BAD_OBJECT, good.objects[1].name = STRINGS);
    REFUSED(PLAN_BAD_OBJECT, good.objects[1].reserved = 1);
    REFUSED(PLAN_BAD_STRING, good.strings[0] = 'x');
    REFUSED(PLAN_BAD_STRING, good.strings[STRINGS - 1] = 'x');
    REFUSED(PLAN_BAD_STRING, good.header.tables[PLAN_STRINGS].count = 0);
}

static void test_every_changed_byte_is_noticed(void)
{
    plan p;
    for (size_t i = 0; i < sizeof good; i++) {
        setUp();
        ((unsigned char *)&good)[i] ^= 1u << (i % 8);
        TEST_ASSERT_TRUE(plan_read(&good, sizeof good, &p) != PLAN_OK);
    }
}

static void test_every_shorter_file_is_refused(void)
{
    plan p;
    for (size_t size = 0; size < sizeof good; size++) {
        char *copy = aligned_alloc(8, (size + 8) & ~(size_t)7); /* the sanitizer sees what is read beyond it */
        memcpy(copy, &good, size);
        TEST_ASSERT_TRUE(plan_read(copy, size, &p) != PLAN_OK);
        free(copy);
    }
    char *odd = malloc(sizeof good + 1);
    memcpy(odd + 1, &good, sizeof good);
    TEST_ASSERT_TRUE_MESSAGE(plan_read(odd + 1, sizeof good, &p) != PLAN_OK, "not aligned");
    free(odd);
}

static void test_every_status_has_words(void)
{
    for (int i = PLAN_OK; i <= PLAN_BAD_STRING; i++)
        TEST_ASSERT_TRUE(strlen(plan_status_text((plan_status)i)) > 5);
    TEST_ASSERT_TRUE(strlen(plan_status_text((plan_status)99)) > 5);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_sound_plan_is_accepted);
    RUN_TEST(test_an_instruction_inside_another_does_not_hide_it);
    RUN_TEST(test_wrong_unwind_rows_are_refused);
    RUN_TEST(test_a_wrong_header_is_refused);
    RUN_TEST(test_a_wrong_table_is_refused);
    RUN_TEST(test_a_wrong_site_is_refused);
    RUN_TEST(test_a_wrong_action_is_refused);
    RUN_TEST(test_a_wrong_source_object_or_string_is_refused);
    RUN_TEST(test_every_changed_byte_is_noticed);
    RUN_TEST(test_every_shorter_file_is_refused);
    RUN_TEST(test_every_status_has_words);
    return UNITY_END();
}
