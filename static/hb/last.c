/* The last one: counters that threads decrease atomically when they are through with something. Whoever finds that it has become
 * zero comes after all that the others have done before they decreased it, and is alone (reference counts; Boehm and Adve, PLDI
 * 2008, on atomic read-modify-write operations: each comes after the one whose value it reads).
 *
 * What can only be reached over the edge on which the counter was found to be zero is ordered with what a thread does before its own
 * decrease, and excludes what others do behind such an edge. Counts only where there is one such counter. */
#include "static/hb/channel.h"
#include "static/hb/lock.h"

typedef struct {
    uint32_t object;
    int64_t at;
    hb_points drops;   /* atomic decreases */
    hb_edges edges;    /* where it was found to be zero */
    hb_numbers cutters;
    hb_region *early;  /* per origin: what may run without having found zero; made when it is asked for */
    hb_region *dropped; /* per origin: what may run behind a decrease, but for that which was the last */
} counter;

struct hb_lasts {
    VEC(counter) all;
};

/* An atomic access that adds a negative constant to the word that it loads as `leaf`. */
static bool decreases(const ir_func *ir, ir_value leaf, int64_t *by)
{
    const ir_insn *load = &ir->insns[leaf];
    if (load->op != IR_LOAD || (ir->insns[load->a].flags & (IR_ATOMIC | IR_WRITE)) != (IR_ATOMIC | IR_WRITE)) return false;
    for (ir_value v = load->a + 1; v < ir->insn_count && ir->insns[v].insn == ir->insns[load->a].insn; v++) {
        if (ir->insns[v].op != IR_STORE || ir->insns[v].a != load->a) continue;
        value_sum s = value_of(ir, ir->insns[v].b);
        *by = (int32_t)s.add;
        return s.known && s.count == 1 && s.terms[0].leaf == leaf && s.terms[0].factor == 1 && *by < 0;
    }
    return false;
}

static counter *counter_of(hb *h, const hb_touch *t)
{
    if (!t || t->place_count != 1 || !hb_single(h, &h->places.data[t->first_place].place)) return NULL;
    const hb_extent *x = &h->extents.data[h->places.data[t->first_place].extent];
    for (uint32_t i = 0; i < h->lasts->all.len; i++)
        if (h->lasts->all.data[i].object == x->object && h->lasts->all.data[i].at == x->at) return &h->lasts->all.data[i];
    vec_push(&h->lasts->all, (counter){.object = x->object, .at = x->at});
    return &h->lasts->all.data[h->lasts->all.len - 1];
}

static void find_drops(hb *h, uint32_t instance)
{
    const lift_func *f = hb_instance_code(h, instance);
    int64_t by;
    for (ir_value v = 1; v < f->ir->insn_count; v++) {
        if (f->ir->insns[v].op != IR_LOAD || !decreases(f->ir, v, &by)) continue;
        counter *c = counter_of(h, hb_touch_at(h, instance, f->ir->insns[v].insn));
        if (c) vec_push(&c->drops, (hb_point){instance, f->ir->insns[v].insn});
    }
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        for (uint32_t e = block->first_succ; block->end_kind == END_BRANCH && e < block->first_succ + block->succ_count; e++) {
            value_condition c;
            if (!value_test(f->ir, b, f->edges[e].kind == EDGE_TAKEN, &c) || !c.a || c.b || c.code != VALUE_EQUAL) continue;
            value_sum s = value_of(f->ir, c.a);
            if (!s.known || s.count != 1 || s.terms[0].factor != 1 || !decreases(f->ir, s.terms[0].leaf, &by)) continue;
            if ((int32_t)(c.imm - s.add + by) != 0) continue;
            counter *of = counter_of(h, hb_touch_at(h, instance, f->ir->insns[s.terms[0].leaf].insn));
            if (!of) continue;
            vec_push(&of->edges, (hb_edge){instance, b, e, -1});
            vec_push(&of->cutters, instance);
        }
    }
}

void hb_lasts_open(hb *h)
{
    h->lasts = base_alloc_zero(1, sizeof *h->lasts);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        const lift_func *f = hb_instance_code(h, i);
        bool atomic = false;
        for (ir_value v = 1; f && v < f->ir->insn_count && !atomic; v++)
            atomic = f->ir->insns[v].op == IR_ACCESS && f->ir->insns[v].flags & IR_ATOMIC;
        if (atomic) find_drops(h, i);
    }
    for (uint32_t i = 0; i < h->lasts->all.len; i++) {
        h->lasts->all.data[i].early = base_alloc_zero(h->origins.len, sizeof(hb_region));
        h->lasts->all.data[i].dropped = base_alloc_zero(h->origins.len, sizeof(hb_region));
    }
}

void hb_lasts_close(hb *h)
{
    for (uint32_t i = 0; h->lasts && i < h->lasts->all.len; i++) {
        counter *c = &h->lasts->all.data[i];
        for (uint32_t o = 0; o < h->origins.len; o++) {
            if (c->early[o].whole) hb_region_free(&c->early[o]);
            if (c->dropped[o].whole) hb_region_free(&c->dropped[o]);
        }
        free(c->early);
        free(c->dropped);
        vec_free(&c->drops);
        vec_free(&c->edges);
        vec_free(&c->cutters);
    }
    if (h->lasts) vec_free(&h->lasts->all);
    free(h->lasts);
}

static bool closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    const counter *c = w->with;
    return hb_edges_have(&c->edges, instance, from, edge);
}

/* The point can only be reached by the last one. */
static bool is_last(hb *h, counter *c, uint32_t origin, hb_point at)
{
    if (h->origins.data[origin].kind > HB_THREAD) return false;
    if (!c->early[origin].whole) {
        hb_walk walk = {.closes = closes, .with = c, .cutters = c->cutters.data, .cutter_count = c->cutters.len, .origin = origin};
        hb_point start = {h->origins.data[origin].instance, HB_NONE};
        hb_region_walk(h, &walk, &start, 1, &c->early[origin]);
    }
    return !hb_region_has(&c->early[origin], at);
}

/* The thread still has to decrease the counter. */
static bool is_before(hb *h, counter *c, uint32_t origin, hb_point at)
{
    hb_points drops = {0};
    for (uint32_t i = 0; i < c->drops.len; i++)
        if (hb_bit(h->origins.data[origin].self, c->drops.data[i].instance)) vec_push(&drops, c->drops.data[i]);
    bool any = drops.len && h->origins.data[origin].kind <= HB_THREAD;
    if (any && !c->dropped[origin].whole) {
        hb_walk walk = {.closes = closes, .with = c, .cutters = c->cutters.data, .cutter_count = c->cutters.len, .origin = origin};
        hb_region_walk(h, &walk, drops.data, drops.len, &c->dropped[origin]);
    }
    vec_free(&drops);
    return any && !hb_region_has(&c->dropped[origin], at);
}

bool hb_lasts_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    for (uint32_t i = 0; i < h->lasts->all.len; i++) {
        counter *c = &h->lasts->all.data[i];
        if (!c->edges.len) continue;
        bool la = is_last(h, c, x, a), lb = is_last(h, c, y, b);
        if ((la && lb) || (la && is_before(h, c, y, b)) || (lb && is_before(h, c, x, a))) return true;
    }
    return false;
}
