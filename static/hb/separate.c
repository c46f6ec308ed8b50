/* Pairs that creation and joins leave open: different bytes after all, or order by something that one waits for. */
#include "static/hb/gift.h"

#include <string.h>

/* What OpenMP calls to put the results of its threads together, two at a time, when they have come to the end: of their variables. */
static bool is_reduction(const hb *h, const hb_touch *t, const hb_place *p)
{
    if (h->program->sites.data[p->place.site].kind != PTA_FRAME || h->in_first[t->instance] == h->in_first[t->instance + 1]) return false;
    for (uint32_t i = h->in_first[t->instance]; i < h->in_first[t->instance + 1]; i++) {
        uint32_t caller = h->edges[h->in_edge[i]].caller;
        if (hb_instance_code(h, caller) || strncmp(h->program->funcs.data[h->instances[caller].func].name, "__kmpc_reduce", 13)) return false;
    }
    return true;
}

bool hb_own_frame(const hb *h, const hb_touch *t, const hb_place *p)
{
    const pta_site *site = &h->program->sites.data[p->place.site];
    return site->kind == PTA_FRAME && t->flags & IR_FRAME && !(t->flags & HB_LIBRARY) && site->func == t->func;
}

/* Library functions that return the address of a variable of whoever calls them. Others may return what they were given. */
static bool returns_own(const char *name)
{
    static const char *const names[] = {"__errno_location", "__h_errno_location", "__ctype_b_loc", "__ctype_tolower_loc",
                                        "__ctype_toupper_loc"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* A variable of the thread that accesses it: by the thread's own register, or as such a function has just returned it. */
static bool is_own_tls(const hb *h, const hb_touch *t, const hb_place *p)
{
    if (h->program->sites.data[p->place.site].kind != PTA_TLS || t->flags & HB_LIBRARY || !t->ir) return false;
    if (t->flags & IR_FS) return true;
    const ir_func *ir = hb_code(h, t->func)->ir;
    value_sum sum = value_address(ir, &ir->insns[t->ir]);
    if (!sum.known || sum.count != 1 || sum.terms[0].factor != 1) return false;
    const ir_insn *result = &ir->insns[sum.terms[0].leaf];
    if (result->op != IR_RESULT || result->var != IR_RAX) return false;
    const hb_call *call = hb_call_at(h, t->func, ir->insns[result->a].insn);
    uint32_t callee = call ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
    return callee != PTA_NO_FUNC && !h->program->funcs.data[callee].lift && returns_own(h->program->funcs.data[callee].name);
}

/* Each thread has its own; a signal handler has that of the thread which it interrupts. */
static bool are_own_tls(const hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb)
{
    if (h->origins.data[x].kind == HB_SIGNAL || h->origins.data[y].kind == HB_SIGNAL) return false;
    return is_own_tls(h, a, pa) && is_own_tls(h, b, pb);
}

bool hb_separate(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb)
{
    hb_point at = {a->instance, a->insn}, bt = {b->instance, b->insn};
    if (hb_specific(h, h->extents.data[pa->extent].object)) return true; /* of what one thread has set for a key: its own */
    if (are_own_tls(h, x, a, pa, y, b, pb)) return true;
    if (is_reduction(h, a, pa) || is_reduction(h, b, pb)) return true;
    if (hb_processes_apart(h, at, bt, pa)) return true;
    if (hb_numbers_behind(h, x, a, pa) || hb_numbers_behind(h, y, b, pb)) return true;
    if (hb_nests_apart(h, x, a, pa, y, b, pb)) return true;
    return hb_gifts_apart(h, x, a, pa, y, b, pb) || hb_tokens_order(h, x, at, y, bt) || hb_turns_order(h, x, at, y, bt) ||
           hb_lasts_order(h, x, at, y, bt) || hb_gathers_order(h, x, at, y, bt) || hb_barriers_order(h, x, at, y, bt) ||
           hb_letters_order(h, x, a, y, b) || hb_rings_order(h, a, b);
}
