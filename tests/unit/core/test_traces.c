/* The core against the oracle, on random traces (trace.h): a short run. `tools/core-traces` does a long one. */
#include "tests/unit/core/trace.h"

#include <unity.h>

static trace the_trace;

void setUp(void) {}
void tearDown(void) {}

static void test_core_reports_a_race_if_and_only_if_the_oracle_does(void)
{
    enum { TRACES = 4000 };
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        trace_generate(&the_trace, seed);
        if (trace_run(&the_trace)) continue;
        trace_shrink(&the_trace);
        trace_print(&the_trace);
        char text[300];
        snprintf(text, sizeof text, "seed %llu: %s", (unsigned long long)seed, the_trace.failure);
        TEST_FAIL_MESSAGE(text);
    }
}

/* A generator that never makes something would hide what it does not test. */
static void test_the_traces_contain_everything(void)
{
    const trace_totals *all = &the_trace.totals;
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        TEST_ASSERT_TRUE_MESSAGE(all->executed[i] > 100, event_table[i].name);
    const uint64_t *core = (const uint64_t *)&all->core;
    for (size_t i = 0; i < sizeof all->core / sizeof *core; i++) {
        size_t at = i * sizeof *core;
        bool never = at == offsetof(ft_stats, dropped) || at == offsetof(ft_stats, threads_unchecked) ||
                     at == offsetof(ft_stats, deferred);
        TEST_ASSERT_TRUE_MESSAGE(never ? !core[i] : core[i] > 100, "a counter of the core");
    }
    TEST_ASSERT_TRUE(all->races > 10000);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_core_reports_a_race_if_and_only_if_the_oracle_does);
    RUN_TEST(test_the_traces_contain_everything);
    return UNITY_END();
}
