/* Whether a thread has waited for a condition on its way to a point: what it does then may be ordered by what the condition says, which
 * is beyond an analysis of locks. Only how sure a warning is depends on it.
 *
 * A call may wait when it is pthread_cond_wait, or when a function that it names may call it. It counts for the points that it
 * dominates in its function, and for the functions that are only ever called from such points. */
#include "static/hb/private.h"

typedef struct hb_waits {
    uint64_t *may;     /* instances that may wait */
    uint64_t *entered; /* instances that are entered only after a wait */
} hb_waits;

static bool is_wait(const hb *h, uint32_t instance, const hb_call *call)
{
    const sync_entry *sync = hb_call_sync(h, instance, call);
    return sync && sync->kind == SYNC_COND_WAIT;
}

static bool may_wait(const hb *h, uint32_t instance, const hb_call *call)
{
    if (is_wait(h, instance, call)) return true;
    if (h->program->calls.data[call->call].func == PTA_NO_FUNC) return false;
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    for (uint32_t i = 0; i < count; i++)
        if (!hb_spawns(h, &h->edges[first + i]) && hb_bit(h->waits->may, h->edges[first + i].callee)) return true;
    return false;
}

static void find_may(hb *h)
{
    hb_numbers work = {0};
    for (uint32_t i = 0; i < h->instance_count; i++) {
        const hb_func *f = hb_instance_code(h, i) ? &h->funcs[h->instances[i].func] : NULL;
        for (uint32_t c = 0; f && c < f->call_count; c++)
            if (is_wait(h, i, &f->calls[c]) && !hb_bit(h->waits->may, i)) {
                hb_set(h->waits->may, i);
                vec_push(&work, i);
            }
    }
    while (work.len) {
        uint32_t callee = work.data[--work.len];
        for (uint32_t i = h->in_first[callee]; i < h->in_first[callee + 1]; i++) {
            const pta_call_edge *e = &h->edges[h->in_edge[i]];
            bool named = h->program->calls.data[e->call].func != PTA_NO_FUNC;
            if (hb_spawns(h, e) || !named || hb_bit(h->waits->may, e->caller)) continue;
            hb_set(h->waits->may, e->caller);
            vec_push(&work, e->caller);
        }
    }
    vec_free(&work);
}

static bool has_waited(const hb *h, uint32_t instance, uint32_t insn)
{
    if (hb_bit(h->waits->entered, instance)) return true;
    const lift_func *f = hb_instance_code(h, instance);
    if (!f || !hb_bit(h->waits->may, instance)) return false;
    const hb_func *own = &h->funcs[h->instances[instance].func];
    uint32_t block = hb_block_of(f, insn);
    for (uint32_t c = 0; c < own->call_count; c++) {
        uint32_t at = hb_block_of(f, own->calls[c].insn);
        bool before = at == block ? own->calls[c].insn < insn : ir_dominates(f->ir, at, block);
        if (before && may_wait(h, instance, &own->calls[c])) return true;
    }
    return false;
}

/* The greatest set: an instance is in it until a caller is found that has not waited. */
static void find_entered(hb *h)
{
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (h->in_first[i + 1] > h->in_first[i]) hb_set(h->waits->entered, i);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = h->instance_count; n-- > 0;) { /* callers first */
            uint32_t i = h->callees_first[n];
            bool all = hb_bit(h->waits->entered, i);
            if (!all) continue;
            for (uint32_t k = h->in_first[i]; k < h->in_first[i + 1] && all; k++) {
                const pta_call_edge *e = &h->edges[h->in_edge[k]];
                all = !hb_spawns(h, e) && has_waited(h, e->caller, h->call_insn[e->call]);
            }
            if (all) continue;
            h->waits->entered[i / 64] &= ~(1ull << i % 64);
            changed = true;
        }
    }
}

bool hb_has_waited(hb *h, hb_point at)
{
    if (!h->waits) {
        h->waits = base_alloc_zero(1, sizeof *h->waits);
        h->waits->may = base_alloc_zero(h->words, sizeof *h->waits->may);
        h->waits->entered = base_alloc_zero(h->words, sizeof *h->waits->entered);
        find_may(h);
        find_entered(h);
    }
    return has_waited(h, at.instance, at.insn);
}

void hb_waits_close(hb *h)
{
    if (!h->waits) return;
    free(h->waits->may);
    free(h->waits->entered);
    free(h->waits);
}
