/* The calls and edges of an instance that may change what is held; at all others a set stays what it is, whichever it
 * is, so that the flow (lock_flow.c) need not ask. Most calls are to functions that have nothing to do with locks, and
 * most branches are not on what such a call has said. Requires to know which instances matter. */
#include "static/hb/lock.h"

static bool leads_to_locks(const hb *h, uint32_t instance, const hb_call *call)
{
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    for (uint32_t i = 0; i < count; i++)
        if (hb_bit(h->locks->matters, h->edges[first + i].callee) && !h->spawns[first + i]) return true;
    return false;
}

static bool is_active_call(const hb *h, uint32_t instance, const hb_call *call)
{
    return hb_call_sync(h, instance, call) || leads_to_locks(h, instance, call);
}

/* What lock_flow.c looks at when a value was found to be so. */
static bool is_active_value(const hb *h, uint32_t instance, const ir_func *ir, const value_condition *c)
{
    if (!c->a || c->b) return false;
    const ir_insn *value = &ir->insns[c->a];
    if (value->op == IR_PHI) return true;
    if (value->op == IR_LOAD) return h->locks->guards.len > 0;
    if (value->op != IR_RESULT || value->var != IR_RAX) return false;
    const hb_call *call = hb_call_at(h, h->instances[instance].func, ir->insns[value->a].insn);
    return call && is_active_call(h, instance, call);
}

static bool is_active_edge(const hb *h, uint32_t instance, const lift_func *f, uint32_t block, uint32_t edge)
{
    value_condition c;
    if (f->blocks[block].end_kind != END_BRANCH) return false;
    if (!value_test(f->ir, block, f->edges[edge].kind == EDGE_TAKEN, &c)) return false;
    return lock_spin_access(f->ir, &c) || is_active_value(h, instance, f->ir, &c);
}

static bool has_call(const lock_sparse *s, const hb_func *own, const lift_block *b)
{
    uint32_t low = 0, high = s->call_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (own->calls[s->calls[middle]].insn < b->first_insn)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->call_count && own->calls[s->calls[low]].insn < b->first_insn + b->insn_count;
}

lock_sparse *lock_sparse_make(const hb *h, uint32_t instance)
{
    const lift_func *f = hb_instance_code(h, instance);
    const hb_func *own = &h->funcs[h->instances[instance].func];
    lock_sparse *s = base_alloc_zero(1, sizeof *s);
    s->calls = base_alloc(own->call_count * sizeof *s->calls);
    s->edges = base_alloc_zero(f->edge_count / 64 + 1, sizeof *s->edges);
    for (uint32_t c = 0; c < own->call_count; c++) /* between two calls stores are looked at */
        if (h->locks->instances[instance].has_spin || is_active_call(h, instance, &own->calls[c]))
            s->calls[s->call_count++] = c;
    s->blocks = base_alloc(f->ir->rpo_count * sizeof *s->blocks);
    for (uint32_t i = 0; i < f->ir->rpo_count; i++) {
        const lift_block *b = &f->blocks[f->ir->rpo[i]];
        bool active = has_call(s, own, b);
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            if (!is_active_edge(h, instance, f, f->ir->rpo[i], e)) continue;
            hb_set(s->edges, e);
            active = true;
        }
        if (active) s->blocks[s->block_count++] = f->ir->rpo[i];
        s->ends |= lock_ends_function(b);
        s->unknown |= b->end_kind == END_UNKNOWN;
    }
    return s;
}

void lock_sparse_free(lock_sparse *s)
{
    if (!s) return;
    free(s->calls);
    free(s->edges);
    free(s->blocks);
    free(s);
}
