/* The core against the oracle, on many random traces (tests/unit/core/trace.h).
 *
 *   core_traces [--traces N] [--seed S]
 *
 * Prints what the traces contained. A trace that fails is made small and printed; exit code 1. */
#include "tests/unit/core/trace.h"

static trace the_trace;

int main(int argc, char **argv)
{
    uint64_t traces = 10000, seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 0);
        if (!strcmp(argv[i], "--traces"))
            traces = value;
        else if (!strcmp(argv[i], "--seed"))
            seed = value;
        else
            argc = 0;
    }
    if (argc % 2 == 0) {
        fprintf(stderr, "usage: core_traces [--traces N] [--seed S]\n");
        return 2;
    }
    for (uint64_t i = 0; i < traces; i++) {
        trace_generate(&the_trace, seed + i);
        if (trace_run(&the_trace)) continue;
        printf("FAILED: seed %llu: %s\n", (unsigned long long)(seed + i), the_trace.failure);
        trace_shrink(&the_trace);
        trace_print(&the_trace);
        return 1;
    }
    trace_print_totals(&the_trace.totals, traces);
    return 0;
}
