/* Walking a stack by the unwind rows of the plans. Cheap enough for every access that is remembered, and costs nothing
 * at calls. Of code whose module has no plan nothing is known, so a walk ends there. */
#include "runtime/report/report.h"

/* The frame pointer of a caller is read only when it is needed: most code uses it for other things, which change all the
 * time, and engines remember a walk as long as what it has read stays the same. */
uint32_t stack_walk(report *r, stack_place place, uint64_t *returns, uint32_t cap)
{
    uint32_t count = 0;
    const report_module *m = NULL;
    uint64_t saved = 0; /* where the frame pointer is; 0: in place.bp */
    while (count < cap) {
        if (!m || place.pc < m->start || place.pc >= m->end) m = report_module_at(r, place.pc);
        const plan_unwind *row = m && m->plan ? plan_unwind_at(m->plan, place.pc - m->bias) : NULL;
        if (!row || row->base == PLAN_UNWIND_END) break;
        if (row->base == PLAN_UNWIND_RBP && saved) {
            if (!r->host.read(r->host.context, saved, &place.bp, sizeof place.bp)) break;
            saved = 0;
        }
        uint64_t cfa = (row->base == PLAN_UNWIND_RSP ? place.sp : place.bp) + (uint64_t)(int64_t)row->cfa, caller;
        if (cfa <= place.sp || cfa % 8 || !r->host.read(r->host.context, cfa - 8, &caller, sizeof caller)) break;
        if (row->rbp) saved = cfa + (uint64_t)(int64_t)row->rbp;
        if (!caller) break;
        returns[count++] = caller;
        place.pc = caller - 1;
        place.sp = cfa;
    }
    return count;
}
