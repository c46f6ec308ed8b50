/* The files that users write for `race check`: suppressions and configurations, right, wrong and hostile. */
#include "static/detect/detect.h"
#include "unity.h"

#include <stdlib.h>

void setUp(void) {}
void tearDown(void) {}

static bool suppressions_are(const char *text)
{
    race_error error;
    detect_suppressions *s = detect_suppressions_read("file", text, &error);
    detect_suppressions_free(s);
    return s != NULL;
}

static void test_suppressions_are_those_of_tsan(void)
{
    TEST_ASSERT_TRUE(suppressions_are(""));
    TEST_ASSERT_TRUE(suppressions_are("# nothing\n\n   \n"));
    TEST_ASSERT_TRUE(suppressions_are("race:foo\nrace:src/*.c\ndeadlock:^bar$\nthread:leaky\nmutex:m\ncalled_from_lib:libz.so"));
    TEST_ASSERT_FALSE(suppressions_are("foo"));
    TEST_ASSERT_FALSE(suppressions_are("race:"));
    TEST_ASSERT_FALSE(suppressions_are("race:a\nrase:b"));
}

static void test_a_wrong_line_is_named(void)
{
    race_error error;
    TEST_ASSERT_NULL(detect_suppressions_read("my.supp", "race:a\n\noops\n", &error));
    TEST_ASSERT_EQUAL_STRING_LEN("my.supp:3:", error.text, 10);
    TEST_ASSERT_NULL(detect_config_read("my.conf", "lock a 0\nlock b\n", &error));
    TEST_ASSERT_EQUAL_STRING_LEN("my.conf:2:", error.text, 10);
}

static void test_a_configuration_gives_functions_meaning(void)
{
    race_error error;
    detect_config *c = detect_config_read("c",
                                          "lock enter 1 # comment\nunlock leave 1\nrdlock look 0\ntrylock try 2 nonzero\n"
                                          "thread spawn 0 1\nallocator get 0\nallocator take\nevent on 1 2\n",
                                          &error);
    TEST_ASSERT_NOT_NULL(c);
    TEST_ASSERT_EQUAL(SYNC_ACQUIRE, detect_config_sync(c, "enter")->kind);
    TEST_ASSERT_EQUAL(1, detect_config_sync(c, "enter")->arg);
    TEST_ASSERT_EQUAL(SYNC_RELEASE, detect_config_sync(c, "leave")->kind);
    TEST_ASSERT_TRUE(detect_config_sync(c, "look")->shared);
    TEST_ASSERT_EQUAL(SYNC_NONZERO, detect_config_sync(c, "try")->when);
    TEST_ASSERT_NULL(detect_config_sync(c, "spawn"));
    TEST_ASSERT_NOT_NULL(strstr(detect_config_model(c, "spawn"), "thread 0 (1)"));
    TEST_ASSERT_EQUAL_STRING("ret = new(0)", detect_config_model(c, "get"));
    TEST_ASSERT_EQUAL_STRING("ret = new", detect_config_model(c, "take"));
    TEST_ASSERT_EQUAL_UINT16(2, detect_config_asks(c, "enter"));
    TEST_ASSERT_NULL(detect_config_model(c, "other"));
    TEST_ASSERT_EQUAL_UINT16(hb_sync_asks("pthread_mutex_lock"), detect_config_asks(c, "pthread_mutex_lock"));
    TEST_ASSERT_EQUAL_UINT16(hb_sync_asks("memcpy"), detect_config_asks(NULL, "memcpy"));
    detect_config_free(c);
}

static void test_wrong_configurations_are_refused(void)
{
    static const char *const wrong[] = {"lock", "lock a", "lock a b", "lock a 9", "lock a 0 nonzero", "thread a 0", "thread a 0 1 2",
                                        "lock a 0 0", "allocator a 1 2", "lok a 0", "trylock a 0 zero", "a b c d e f g h"};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        race_error error;
        detect_config *c = detect_config_read("c", wrong[i], &error);
        TEST_ASSERT_NULL_MESSAGE(c, wrong[i]);
    }
}

static void test_bytes_at_random_do_no_harm(void)
{
    static const char letters[] = "race:deadlock thread lock 0 1 *^$#\n\n\t\xff";
    uint32_t state = 1;
    for (unsigned round = 0; round < 2000; round++) {
        char text[120];
        for (unsigned i = 0; i < sizeof text - 1; i++) {
            state = state * 1664525 + 1013904223;
            text[i] = letters[(state >> 16) % (sizeof letters - 1)];
        }
        text[sizeof text - 1] = 0;
        race_error error;
        suppressions_are(text);
        detect_config_free(detect_config_read("c", text, &error));
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_suppressions_are_those_of_tsan);
    RUN_TEST(test_a_wrong_line_is_named);
    RUN_TEST(test_a_configuration_gives_functions_meaning);
    RUN_TEST(test_wrong_configurations_are_refused);
    RUN_TEST(test_bytes_at_random_do_no_harm);
    return UNITY_END();
}
