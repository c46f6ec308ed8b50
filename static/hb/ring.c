/* A ring of slots between two threads, with two semaphores that count: the free slots, which are as many as the ring
 * has at first, and the filled ones. Round k of the one uses slot k modulo their number, between its wait for a free
 * one and its post of a filled one; round k of the other uses it between its wait for a filled one and its post of a
 * free one. Then no two are at one slot at a time: the n-th wait of the reader needs n posts of the writer, the n-th
 * wait of the writer n - N posts of the reader (Dijkstra's bounded buffer).
 *
 * Each semaphore is waited for at one place and posted at one place, and each of the two is one loop, entered once,
 * that passes its wait and its post in every round. */
#include <Zydis/Zydis.h>

#include "static/hb/channel.h"
#include "static/hb/counter.h"

typedef struct {
    uint32_t instance, loop;
    uint32_t wait, post; /* instructions */
} ring_side;

typedef struct {
    ring_side sides[2];
    int64_t slots;
} ring;

struct hb_rings {
    VEC(ring) all;
};

static bool precedes(const ir_func *ir, uint32_t a, uint32_t b)
{
    uint32_t x = hb_block_of(ir->func, a), y = hb_block_of(ir->func, b);
    return x == y ? a < b : ir_dominates(ir, x, y);
}

/* Whether each round of a loop passes an instruction. */
static bool passes(const ir_func *ir, uint32_t loop, uint32_t insn)
{
    const lift_func *f = ir->func;
    uint32_t at = hb_block_of(f, insn), head = ir->loops[loop - 1].header;
    const lift_block *header = &f->blocks[head];
    if (ir->blocks[at].loop != loop) return false;
    for (uint32_t p = header->first_pred; p < header->first_pred + header->pred_count; p++) {
        uint32_t from = f->edges[f->preds[p]].from;
        if (ir_dominates(ir, head, from) && from != at && !ir_dominates(ir, at, from)) return false;
    }
    return true;
}

/* The one thread that waits for a semaphore and posts another. */
static bool find_side(const hb *h, const hb_channel *waits, const hb_channel *posts, ring_side *out)
{
    hb_point wait = waits->waits.data[0], post = posts->posts.data[0];
    if (wait.instance != post.instance || !h->once[wait.instance]) return false;
    const ir_func *ir = hb_instance_code(h, wait.instance)->ir;
    uint32_t loop = ir->blocks[hb_block_of(ir->func, wait.insn)].loop;
    *out = (ring_side){wait.instance, loop, wait.insn, post.insn};
    return loop && !ir->loops[loop - 1].parent && passes(ir, loop, wait.insn) && passes(ir, loop, post.insn) &&
           precedes(ir, wait.insn, post.insn);
}

static bool is_plain(const hb_channel *c)
{
    return c->kind == CHANNEL_SEMAPHORE && c->counted && c->first >= 0 && c->posts.len == 1 && c->waits.len == 1 &&
           !c->edges.len;
}

void hb_rings_open(hb *h)
{
    const hb_channel_list *all = hb_channels(h);
    h->rings = base_alloc_zero(1, sizeof *h->rings);
    for (uint32_t i = 0; i < all->len; i++)
        for (uint32_t k = 0; k < all->len; k++) {
            const hb_channel *empty = &all->data[i], *filled = &all->data[k];
            ring r = {.slots = empty->first};
            if (!is_plain(empty) || !is_plain(filled) || empty->first <= 0 || filled->first) continue;
            if (find_side(h, empty, filled, &r.sides[0]) && find_side(h, filled, empty, &r.sides[1]))
                vec_push(&h->rings->all, r);
        }
}

void hb_rings_close(hb *h)
{
    if (h->rings) vec_free(&h->rings->all);
    free(h->rings);
}

/* A value that is another one modulo a number: what a division leaves, some bits of it, or what compilers make of % for
 * numbers with a sign,
 * `((v + s) & m) - s`. Takes it off the sum. */
static bool take_remainder(const ir_func *ir, const value_sum *s, ir_value *of, int64_t *modulo, int64_t *factor)
{
    const ir_insn *bits = NULL, *half = s->count == 1 ? &ir->insns[s->terms[0].leaf] : NULL;
    ir_value sign = 0;
    if (half && half->op == IR_OPAQUE && half->var == IR_RDX && half->b == 1) { /* what a division leaves */
        const ir_insn *division = &ir->insns[ir->args[half->a]];
        uint16_t mnemonic = ir->func->insns[half->insn].mnemonic;
        if (division->op != IR_OPAQUE || division->b < 2 ||
            (mnemonic != ZYDIS_MNEMONIC_IDIV && mnemonic != ZYDIS_MNEMONIC_DIV))
            return false;
        value_sum by = value_of(ir, ir->args[division->a]), what = value_of(ir, ir->args[division->a + 1]);
        if (!by.known || by.count || by.add <= 0 || !what.known || what.count != 1 || what.terms[0].factor != 1 ||
            what.add)
            return false;
        *of = what.terms[0].leaf;
        *modulo = by.add;
        *factor = s->terms[0].factor;
        return *factor > 0;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const ir_insn *leaf = &ir->insns[s->terms[i].leaf];
        if (leaf->op == IR_AND && !leaf->b && !bits && s->terms[i].factor > 0) {
            bits = leaf;
            *factor = s->terms[i].factor;
        } else {
            sign = s->terms[i].leaf;
        }
    }
    if (!bits || bits->imm <= 0 || bits->imm & (bits->imm + 1)) return false;
    *modulo = bits->imm + 1;
    value_sum inner = value_of(ir, bits->a);
    if (s->count == 1 && inner.known && inner.count == 1 && inner.terms[0].factor == 1 && !inner.add)
        return *of = inner.terms[0].leaf, true;
    if (s->count != 2 || !inner.known || inner.count != 2 || inner.add || ir->insns[sign].op != IR_SHR) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (s->terms[i].leaf == sign && s->terms[i].factor != -*factor) return false;
    value_sum first = value_of(ir, sign); /* the first one that is computed in this way, as in `inner` */
    sign = first.known && first.count == 1 ? first.terms[0].leaf : sign;
    for (uint32_t i = 0; i < 2; i++) {
        if (inner.terms[i].factor != 1) return false;
        if (inner.terms[i].leaf != sign) *of = inner.terms[i].leaf;
    }
    return inner.terms[0].leaf == sign || inner.terms[1].leaf == sign;
}

/* The address of a slot: base + factor * (round modulo their number). */
static bool slot_of(const hb *h, const ring *r, const ring_side *side, const hb_touch *t, int64_t *base,
                    int64_t *factor)
{
    const ir_func *ir = hb_code(h, t->func)->ir;
    if (t->instance != side->instance || t->flags & HB_LIBRARY || !t->ir || ir->insns[t->ir].op != IR_ACCESS)
        return false;
    if (ir->blocks[hb_block_of(ir->func, t->insn)].loop != side->loop || !precedes(ir, side->wait, t->insn) ||
        !precedes(ir, t->insn, side->post))
        return false;
    value_sum s = value_address(ir, &ir->insns[t->ir]), first;
    ir_value counter = 0;
    int64_t step, modulo;
    value_sum end;
    if (!s.known || !take_remainder(ir, &s, &counter, &modulo, factor) || modulo != r->slots) return false;
    if (!count_step(ir, side->loop, counter, &step) || step != 1 || !count_range(ir, counter, &first, &end))
        return false;
    *base = s.add;
    return !first.count && first.add % r->slots == 0;
}

bool hb_rings_order(hb *h, const hb_touch *a, const hb_touch *b)
{
    for (uint32_t i = 0; i < h->rings->all.len; i++) {
        const ring *r = &h->rings->all.data[i];
        int64_t x, y, f, g;
        for (unsigned k = 0; k < 2; k++) {
            if (!slot_of(h, r, &r->sides[k], a, &x, &f) || !slot_of(h, r, &r->sides[1 - k], b, &y, &g)) continue;
            int64_t low = x < y ? x : y, xh = x + a->width, yh = y + b->width;
            if (f == g && h->program->funcs.data[a->func].module == h->program->funcs.data[b->func].module &&
                (xh > yh ? xh : yh) - low <= f)
                return true;
        }
    }
    return false;
}
