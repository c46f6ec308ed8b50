/* Threads that a loop creates by number, joined one by one: `pthread_join(threads[1], ...)` waits for the thread with number 1, if the
 * loop that gave out the numbers has put the handles side by side. Round t of that loop stores its handle at `first + size * t` and
 * passes `number + step * t`, so what a join loads from `first + size * t` is the handle of that thread, as long as nothing else of
 * the function writes there (that nobody whom it calls does is taken for granted, as for loops of joins). An access of such a thread to the bytes of its number (number.c) can only meet an access of the creator
 * to certain bytes if its number is one of few; where each of these threads has been joined on all ways, they are ordered. */
#include "static/hb/channel.h"
#include "static/hb/number.h"

typedef struct {
    hb_points waits;
    hb_edges edges;
    uint32_t instance;
} joined;

/* Where a value begins and by how much it grows each time round a loop: it counts itself, or is a sum with something that does. */
static bool grows(const ir_func *ir, uint32_t loop, const value_sum *sum, value_sum *first, int64_t *step)
{
    ir_value counter;
    value_sum begin, end;
    if (!sum->known || !count_leaf(ir, loop, sum, &counter, step) || !count_range(ir, counter, &begin, &end) || !begin.known) return false;
    int64_t factor = 0;
    *first = (value_sum){.known = true, .add = sum->add};
    for (uint32_t i = 0; i < sum->count; i++) {
        if (sum->terms[i].leaf == counter)
            factor = sum->terms[i].factor;
        else if (first->count < VALUE_TERMS)
            first->terms[first->count++] = sum->terms[i];
    }
    first->add += factor * begin.add;
    for (uint32_t i = 0; i < begin.count; i++) { /* an address that grows begins somewhere in the frame */
        if (first->count == VALUE_TERMS || begin.count != 1 || first->count) return false;
        first->terms[first->count] = begin.terms[i];
        first->terms[first->count++].factor = factor * begin.terms[i].factor;
    }
    return factor != 0;
}

/* Something else than the creation writes to the handles. */
static bool is_stored_to(const ir_func *ir, const value_sum *first, int64_t size)
{
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_STORE) continue;
        value_sum to = value_address(ir, &ir->insns[ir->insns[v].a]);
        if (!to.known || !value_same_terms(&to, first)) continue;
        int64_t at = to.add + ir->insns[v].imm - first->add;
        if (at + ir->insns[v].width > 0 && at < size) return true;
    }
    return false;
}

/* The joins, in the function that creates the threads, of the one that was created in round t. */
static bool joins_of_round(const hb *h, uint32_t instance, const value_sum *first, int64_t step, int64_t round, joined *out)
{
    const lift_func *f = hb_instance_code(h, instance);
    const hb_func *own = &h->funcs[h->instances[instance].func];
    for (uint32_t c = 0; c < own->call_count; c++) {
        const sync_entry *sync = hb_call_sync(h, instance, &own->calls[c]);
        if (!sync || sync->kind != SYNC_JOIN || sync->direct || !own->calls[c].value) continue;
        ir_value v = value_plain(f->ir, part_argument(f->ir, &own->calls[c], (unsigned)sync->arg), 8);
        if (!v || f->ir->insns[v].op != IR_LOAD || f->ir->insns[v].imm) continue;
        value_sum from = value_address(f->ir, &f->ir->insns[f->ir->insns[v].a]);
        if (!from.known || !value_same_terms(&from, first) || from.add - first->add != step * round) continue;
        if (sync->when == SYNC_ALWAYS)
            vec_push(&out->waits, (hb_point){instance, own->calls[c].insn});
        else
            hb_success_edges(h, instance, &own->calls[c], sync->when, &out->edges);
    }
    return out->waits.len || out->edges.len;
}

static bool cuts(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    const joined *j = w->with;
    for (uint32_t i = 0; i < j->waits.len; i++)
        if (j->waits.data[i].instance == instance && j->waits.data[i].insn == call->insn) return true;
    return false;
}

static bool closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    const joined *j = w->with;
    return hb_edges_have(&j->edges, instance, from, edge);
}

/* On every way to a point, from the creation on, the thread of a round was joined. */
static bool has_joined(const hb *h, uint32_t creator, hb_point site, const value_sum *first, int64_t step, int64_t round, hb_point at)
{
    joined j = {.instance = site.instance};
    bool right = false;
    if (joins_of_round(h, site.instance, first, step, round, &j)) {
        hb_region open = {0};
        hb_walk walk = {.cuts = cuts, .closes = closes, .with = &j, .cutters = &j.instance, .cutter_count = 1, .origin = creator};
        hb_region_walk(h, &walk, &site, 1, &open);
        right = !hb_region_has(&open, at);
        hb_region_free(&open);
    }
    vec_free(&j.waits);
    vec_free(&j.edges);
    return right;
}

bool hb_joined_before(const hb *h, uint32_t creator, hb_point at, uint32_t thread, int64_t low, int64_t high)
{
    enum { MOST = 4 };
    const gift *g = &h->gifts->of[thread];
    const hb_origin *o = &h->origins.data[thread];
    if (g->kind != GIFT_NUMBER || o->sites.len != 1 || !o->by || o->by->kind != SYNC_CREATE || !h->once[g->site.instance]) return false;
    const lift_func *f = hb_instance_code(h, g->site.instance);
    const hb_call *call = hb_call_at(h, h->instances[g->site.instance].func, g->site.insn);
    uint32_t loop = f->ir->blocks[hb_block_of(f, g->site.insn)].loop;
    value_sum handle, number;
    int64_t size, step;
    if (!call || !call->value || !loop || f->ir->loops[loop - 1].parent || strcmp(o->by->names, "pthread_create")) return false;
    value_sum to = value_of(f->ir, part_argument(f->ir, call, 0));
    if (!grows(f->ir, loop, &to, &handle, &size) || !grows(f->ir, loop, &g->sum, &number, &step) || number.count || size <= 0 || step <= 0)
        return false;
    if (high - low >= MOST * step || is_stored_to(f->ir, &handle, g->count > 0 ? size * g->count : INT32_MAX)) return false;
    for (int64_t n = low; n <= high; n++) {
        if (n < number.add || (n - number.add) % step) continue; /* nobody has that number */
        if (!has_joined(h, creator, g->site, &handle, size, (n - number.add) / step, at)) return false;
    }
    return true;
}
