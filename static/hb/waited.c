/* Whether a thread has waited for a condition on its way to a point: what it does then may be ordered by what the condition says, which
 * is beyond an analysis of locks. Only how sure a warning is depends on it.
 *
 * A call may wait when it is pthread_cond_wait, or when a function that it names may call it. It counts for the points behind it in its
 * function, without going round a loop once more (there may be a way past it: `if (threads) wait(...)`), and for the functions that are
 * only ever called from such points. A branch on an atomic variable waits, too, as far as anybody can tell, for what it dominates. */
#include "static/hb/private.h"

typedef struct {
    uint32_t first, count; /* in hb_waits.calls */
} wait_span;

typedef struct hb_waits {
    uint64_t *may;     /* instances that may wait */
    uint64_t **entered; /* per origin: instances that it enters only after a wait; NULL: not asked yet */
    map64 known;       /* instance and instruction: what was asked */
    map64 span_of;     /* instance: in spans */
    VEC(wait_span) spans;
    hb_numbers calls;  /* that may wait, by instance; numbers in the function's calls */
} hb_waits;

void hb_wait_mark(hb *h, uint32_t func, uint32_t insn)
{
    hb_numbers *marks = &h->funcs[func].waits;
    if (!marks->len || marks->data[marks->len - 1] != insn) vec_push(marks, insn);
}

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

/* The calls of an instance that may wait: most of its points are asked about. */
static wait_span waiting_calls(const hb *h, uint32_t instance)
{
    hb_waits *w = h->waits;
    const hb_func *own = &h->funcs[h->instances[instance].func];
    uint32_t *known = map_at(&w->span_of, instance);
    if (*known != MAP_NONE) return w->spans.data[*known];
    *known = w->spans.len;
    wait_span span = {.first = w->calls.len};
    for (uint32_t c = 0; c < own->call_count; c++)
        if (may_wait(h, instance, &own->calls[c])) vec_push(&w->calls, c);
    span.count = w->calls.len - span.first;
    vec_push(&w->spans, span);
    return span;
}

static bool find_waited(const hb *h, uint32_t instance, uint32_t insn)
{
    const lift_func *f = hb_instance_code(h, instance);
    const hb_func *own = &h->funcs[h->instances[instance].func];
    if (!f) return false;
    uint32_t block = hb_block_of(f, insn);
    for (uint32_t i = 0; i < own->waits.len; i++) {
        uint32_t at = hb_block_of(f, own->waits.data[i]);
        if (at != block && ir_dominates(f->ir, at, block)) return true;
    }
    wait_span span = hb_bit(h->waits->may, instance) ? waiting_calls(h, instance) : (wait_span){0};
    for (uint32_t i = span.first; i < span.first + span.count; i++) {
        const uint32_t call = own->calls[h->waits->calls.data[i]].insn, at = hb_block_of(f, call);
        if (at == block ? call < insn : ir_dominates(f->ir, at, block) || hb_goes_on_to(f, at, block)) return true;
    }
    return false;
}

static bool has_waited(const hb *h, uint32_t origin, uint32_t instance, uint32_t insn)
{
    if (hb_bit(h->waits->entered[origin], instance)) return true;
    uint32_t *known = map_at(&h->waits->known, (uint64_t)instance << 32 | insn);
    if (*known == MAP_NONE) *known = find_waited(h, instance, insn);
    return *known;
}

/* Those that no way leads to on which nothing was waited for; calls through unknown pointers lead everywhere and are not gone after. */
static void find_entered(hb *h, uint32_t origin)
{
    const hb_origin *o = &h->origins.data[origin];
    uint64_t *entered = h->waits->entered[origin] = base_alloc(h->words * sizeof *entered);
    hb_numbers work = {0};
    memcpy(entered, o->self, h->words * sizeof *entered);
    vec_push(&work, o->instance);
    entered[o->instance / 64] &= ~(1ull << o->instance % 64);
    while (work.len) {
        uint32_t caller = work.data[--work.len];
        if (h->instances[caller].func == h->program->wild_call) continue;
        for (uint32_t n = h->out_first[caller]; n < h->out_first[caller + 1]; n++) {
            const pta_call_edge *e = &h->edges[n];
            if (hb_spawns(h, e) || !hb_bit(entered, e->callee)) continue;
            if (hb_instance_code(h, caller) && has_waited(h, origin, caller, h->call_insn[e->call])) continue;
            entered[e->callee / 64] &= ~(1ull << e->callee % 64);
            vec_push(&work, e->callee);
        }
    }
    vec_free(&work);
}

static void waits_open(hb *h)
{
    if (h->waits) return;
    h->waits = base_alloc_zero(1, sizeof *h->waits);
    h->waits->may = base_alloc_zero(h->words, sizeof *h->waits->may);
    h->waits->entered = base_alloc_zero(h->origins.len, sizeof *h->waits->entered);
    find_may(h);
}

bool hb_call_may_wait(hb *h, uint32_t instance, const hb_call *call)
{
    waits_open(h);
    return may_wait(h, instance, call);
}

bool hb_has_waited(hb *h, uint32_t origin, hb_point at)
{
    waits_open(h);
    if (!h->waits->entered[origin]) find_entered(h, origin);
    return has_waited(h, origin, at.instance, at.insn);
}

void hb_waits_close(hb *h)
{
    if (!h->waits) return;
    map_free(&h->waits->known);
    map_free(&h->waits->span_of);
    vec_free(&h->waits->spans);
    vec_free(&h->waits->calls);
    free(h->waits->may);
    for (uint32_t o = 0; o < h->origins.len; o++)
        free(h->waits->entered[o]);
    free(h->waits->entered);
    free(h->waits);
}
