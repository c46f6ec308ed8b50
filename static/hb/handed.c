/* Objects that may have been handed over: who uses one without a lock has allocated it, or has found its address while
 * it held a lock, and whoever put it there may have done the same before. A queue of jobs works like this, in ways that
 * are beyond what fresh.c can follow; so does who remembers an address for too long, so that this is no proof. Only how
 * sure a warning is depends on it.
 *
 * The address is followed to the call that allocated it or to the load that found it: through choices, parameters and
 * results. */
#include "static/hb/private.h"
#include "static/hb/value.h"

enum { DEEP = 5, MOST_CALLERS = 16 };

static bool is_handed(hb *h, uint32_t instance, ir_value v, unsigned depth);

static bool holds_some(hb *h, uint32_t instance, uint32_t insn)
{
    uint32_t set = hb_locks_at(h, (hb_point){instance, insn});
    return set != UINT32_MAX && hb_holds_locks(h, set);
}

static bool from_callers(hb *h, uint32_t instance, const ir_insn *entry, unsigned depth)
{
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    uint32_t count = h->in_first[instance + 1] - h->in_first[instance];
    unsigned arg = 0;
    while (arg < 6 && registers[arg] != entry->var)
        arg++;
    if (arg == 6 || !count || count > MOST_CALLERS) return false;
    for (uint32_t k = h->in_first[instance]; k < h->in_first[instance + 1]; k++) {
        const pta_call_edge *e = &h->edges[h->in_edge[k]];
        const lift_func *f = hb_instance_code(h, e->caller);
        const hb_call *call = f ? hb_call_at(h, h->instances[e->caller].func, h->call_insn[e->call]) : NULL;
        if (hb_spawns(h, e) || !call || !call->value ||
            !is_handed(h, e->caller, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + arg], depth + 1))
            return false;
    }
    return true;
}

static bool makes(const char *name)
{
    static const char *const makers[] = {"malloc", "calloc",        "realloc",  "_Znwm",
                                         "_Znam",  "aligned_alloc", "memalign", "strdup"};
    for (unsigned i = 0; i < sizeof makers / sizeof *makers; i++)
        if (!strcmp(name, makers[i])) return true;
    return false;
}

/* What a call returns: what it has allocated, or what its callee has found. */
static bool from_callee(hb *h, uint32_t instance, uint32_t insn, unsigned depth)
{
    const hb_call *call = hb_call_at(h, h->instances[instance].func, insn);
    if (!call) return false;
    uint32_t count, first = hb_callees(h, instance, call->call, &count), func = h->program->calls.data[call->call].func;
    if (holds_some(h, instance, insn) || (func != PTA_NO_FUNC && makes(h->program->funcs.data[func].name))) return true;
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t callee = h->edges[first + i].callee;
        const lift_func *f = hb_spawns(h, &h->edges[first + i]) ? NULL : hb_instance_code(h, callee);
        for (ir_value r = 1; f && r < f->ir->insn_count; r++) {
            if (f->ir->insns[r].op == IR_TAIL) return false;
            if (f->ir->insns[r].op != IR_RET) continue;
            if (!is_handed(h, callee, f->ir->args[f->ir->insns[r].a + IR_RET_RAX], depth + 1)) return false;
            any = true;
        }
        if (!f) return false;
    }
    return any;
}

static bool find_handed(hb *h, uint32_t instance, ir_value v, unsigned depth)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    value_sum sum = value_of(ir, v);
    if (!sum.known || !sum.count) return sum.known && !sum.add; /* nothing at all */
    if (sum.count == 1 && sum.terms[0].factor == 1) v = sum.terms[0].leaf;
    const ir_insn *insn = &ir->insns[value_plain(ir, v, 8)];
    switch (insn->op) {
    case IR_LOAD:
        return !(ir->insns[insn->a].flags & IR_PROMOTED) && holds_some(h, instance, insn->insn);
    case IR_RESULT:
        return insn->var == IR_RAX && from_callee(h, instance, ir->insns[insn->a].insn, depth);
    case IR_ENTRY:
        return from_callers(h, instance, insn, depth);
    case IR_PHI:
        for (uint32_t i = 0; i < insn->b; i++)
            if (!is_handed(h, instance, ir->args[insn->a + i], depth + 1)) return false;
        return true;
    case IR_SELECT:
        return is_handed(h, instance, insn->a, depth + 1) && is_handed(h, instance, insn->b, depth + 1);
    default:
        return false;
    }
}

/* What is asked for while it is looked for, as in a loop, hangs on the rest. */
static bool is_handed(hb *h, uint32_t instance, ir_value v, unsigned depth)
{
    if (!v || depth > DEEP) return false;
    uint64_t key = (uint64_t)instance << 32 | v;
    uint32_t known = map_get(&h->handed, key);
    if (known != MAP_NONE) return known;
    *map_at(&h->handed, key) = true;
    bool handed = find_handed(h, instance, v, depth);
    *map_at(&h->handed, key) = handed;
    return handed;
}

bool hb_handed(hb *h, const hb_touch *t, const hb_place *p)
{
    const lift_func *f = hb_code(h, t->func);
    ir_value base = 0;
    if (h->program->sites.data[p->place.site].kind != PTA_HEAP) return false;
    if (t->flags & HB_LIBRARY) {
        const hb_call *call = hb_call_at(h, t->func, t->insn);
        sync_range ranges[SYNC_RANGES];
        if (!call || !call->value || !call->touch || !hb_sync_touch_ranges(call->touch, ranges)) return false;
        base = f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + ranges[0].arg];
    } else {
        if (!t->ir || f->ir->insns[t->ir].op != IR_ACCESS) return false;
        value_sum sum = value_address(f->ir, &f->ir->insns[t->ir]);
        if (!sum.known || !sum.count || sum.terms[0].factor != 1) return false;
        base = sum.terms[0].leaf;
    }
    return is_handed(h, t->instance, base, 0);
}
