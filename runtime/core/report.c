/* Which races have been reported already: a program that races in a loop is told once per pair of sites. */
#include "runtime/core/private.h"

bool ft_report_first(ft_core *core, ft_site one, ft_site other)
{
    core_state *c = core_of(core);
    uint32_t low = one < other ? one : other, high = one < other ? other : one;
    uint64_t pair = ((uint64_t)high << 32 | low) + 1; /* never 0, which is an empty place */
    uint32_t at = (uint32_t)(hash_address(pair) >> 48);
    for (uint32_t tries = 0; tries < REPORT_PAIRS; tries++, at = (at + 1) % REPORT_PAIRS) {
        uint64_t there = 0;
        if (__atomic_compare_exchange_n(&c->pairs[at], &there, pair, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
        if (there == pair) return false;
    }
    return false;
}
