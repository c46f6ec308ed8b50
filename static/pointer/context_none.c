/* One instance of each function. */
#include <stdio.h>

#include "static/pointer/graph.h"

static uint32_t enter(pta *p, uint32_t caller, uint32_t call, uint32_t func, unsigned twin)
{
    (void)p, (void)caller, (void)call, (void)func, (void)twin;
    return 0;
}

static uint64_t hash(const pta *p, uint32_t base)
{
    (void)p;
    return base;
}

static int compare(const pta *p, uint32_t a, uint32_t b)
{
    (void)p;
    return a < b ? -1 : a > b;
}

static void describe(const pta *p, uint32_t base, char *to, size_t size)
{
    (void)p, (void)base;
    snprintf(to, size, "%s", "");
}

static void close_rules(pta *p)
{
    (void)p;
}

const context_rules context_none = {enter, context_one_twin, context_one_thread, hash, compare, describe, close_rules};
