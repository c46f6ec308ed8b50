/* Branches that tell the same as others: what an edge means, a later one may mean as well.
 *
 * `while (!ready && !late) late = wait(...); if (!late) ...`: that `late` is zero means that the loop was left over the
 * other edge. And code without optimisation keeps what `a && b` is in a variable: that it is true means that both
 * branches have gone that way. */
#include "static/hb/channel.h"

static bool holds(uint8_t code, int64_t n, int64_t imm)
{
    switch (code) {
    case 4:
        return n == imm;
    case 5:
        return n != imm;
    case 12:
        return n < imm;
    case 13:
        return n >= imm;
    case 14:
        return n <= imm;
    case 15:
        return n > imm;
    default:
        return true; /* says nothing */
    }
}

static uint32_t block_of_value(const ir_func *ir, ir_value v)
{
    uint32_t block = 0;
    while (block < ir->func->block_count &&
           (v < ir->blocks[block].first || v >= ir->blocks[block].first + ir->blocks[block].count))
        block++;
    return block;
}

/* What an edge says when its block was entered over its n-th predecessor. False: it says nothing. `*never`: it cannot
 * be taken then. */
static bool condition_from(const ir_func *ir, uint32_t block, uint32_t edge, uint32_t n, value_condition *c,
                           bool *never)
{
    const lift_func *f = ir->func;
    *never = false;
    if (f->blocks[block].end_kind != END_BRANCH || !value_test(ir, block, f->edges[edge].kind == EDGE_TAKEN, c) ||
        !c->a || c->b)
        return false;
    const ir_insn *phi = &ir->insns[c->a];
    if (phi->op != IR_PHI || n >= phi->b || block_of_value(ir, c->a) != block) return true;
    c->a = value_plain(ir, ir->args[phi->a + n], 1);
    if (!c->a) return false;
    if (ir->insns[c->a].op == IR_CONST) {
        *never = !holds(c->code, (int32_t)ir->insns[c->a].imm, (int32_t)c->imm);
        return false;
    }
    return value_explain(ir, c) && !c->b;
}

static uint32_t pred_number(const lift_func *f, uint32_t edge)
{
    const lift_block *to = &f->blocks[f->edges[edge].to];
    uint32_t n = 0;
    while (n < to->pred_count && f->preds[to->first_pred + n] != edge)
        n++;
    return n;
}

/* Whether control can come from where a value is made to a block where it is a number, without one of the edges. */
static bool comes_without(const lift_func *f, const hb_edges *edges, uint32_t instance, uint32_t from, uint32_t to,
                          ir_value v, int64_t number)
{
    uint64_t *seen = base_alloc_zero(f->edge_count / 64 + 1, sizeof *seen);
    hb_numbers work = {0}; /* edges over which blocks are entered; HB_NONE: the first one */
    bool found = from == to;
    vec_push(&work, HB_NONE);
    while (work.len && !found) {
        uint32_t over = work.data[--work.len], block = over == HB_NONE ? from : f->edges[over].to;
        uint32_t n = over == HB_NONE ? HB_NONE : pred_number(f, over);
        const lift_block *b = &f->blocks[block];
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count && !found; e++) {
            value_condition c;
            bool never;
            if (hb_bit(seen, e) || hb_edges_have(edges, instance, block, e)) continue;
            if (condition_from(f->ir, block, e, n, &c, &never) && c.a == v &&
                !holds(c.code, (int32_t)number, (int32_t)c.imm))
                continue;
            if (never) continue;
            hb_set(seen, e);
            if (f->edges[e].to == from) continue; /* the value is made anew */
            vec_push(&work, e);
            found = f->edges[e].to == to;
        }
    }
    vec_free(&work);
    free(seen);
    return found;
}

/* Whether a block is entered over one of the edges only, and without a call since then. */
static bool is_behind(const hb *h, const lift_func *f, const hb_edges *edges, uint32_t instance, uint32_t edge)
{
    enum { MOST = 8 };
    for (unsigned i = 0; i < MOST; i++) {
        if (hb_edges_have(edges, instance, f->edges[edge].from, edge)) return true;
        const lift_block *b = &f->blocks[f->edges[edge].from];
        const hb_func *own = &h->funcs[h->instances[instance].func];
        for (uint32_t c = 0; c < own->call_count; c++)
            if (own->calls[c].insn >= b->first_insn && own->calls[c].insn < b->first_insn + b->insn_count) return false;
        if (b->pred_count != 1) return false;
        edge = f->preds[b->first_pred];
    }
    return false;
}

/* The branch is on a value that depends on how the block was entered, and of the ways that lead over this edge all are
 * known. */
static bool repeats(const hb *h, const lift_func *f, const hb_edges *edges, uint32_t instance, uint32_t block,
                    uint32_t edge)
{
    const lift_block *b = &f->blocks[block];
    value_condition c;
    bool never, any = false;
    if (!value_test(f->ir, block, f->edges[edge].kind == EDGE_TAKEN, &c) || !c.a || c.b ||
        f->ir->insns[c.a].op != IR_PHI || block_of_value(f->ir, c.a) != block)
        return false;
    for (uint32_t n = 0; n < b->pred_count; n++) {
        condition_from(f->ir, block, edge, n, &c, &never);
        if (never) continue;
        if (!is_behind(h, f, edges, instance, f->preds[b->first_pred + n])) return false;
        any = true;
    }
    return any;
}

static void echo_in(const hb *h, hb_edges *edges, uint32_t instance)
{
    const lift_func *f = hb_instance_code(h, instance);
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        for (uint32_t e = block->first_succ; block->end_kind == END_BRANCH && e < block->first_succ + block->succ_count;
             e++) {
            value_condition c;
            if (hb_edges_have(edges, instance, b, e)) continue;
            bool same = repeats(h, f, edges, instance, b, e);
            if (!same && value_test(f->ir, b, f->edges[e].kind == EDGE_TAKEN, &c) && c.a && !c.b &&
                c.code == VALUE_EQUAL && f->ir->insns[c.a].op == IR_PHI) {
                uint32_t from = block_of_value(f->ir, c.a);
                same = from < f->block_count && !comes_without(f, edges, instance, from, b, c.a, c.imm);
            }
            if (same) vec_push(edges, (hb_edge){instance, b, e, -1});
        }
    }
}

void hb_echo_edges(const hb *h, hb_edges *edges)
{
    uint32_t own = edges->len;
    for (uint32_t k = 0; k < own; k++) {
        bool done = false;
        for (uint32_t i = 0; i < k && !done; i++)
            done = edges->data[i].instance == edges->data[k].instance;
        if (!done) echo_in(h, edges, edges->data[k].instance);
    }
}

void hb_repeat_edges(const hb *h, uint32_t instance, hb_edges *edges, uint32_t first)
{
    const lift_func *f = hb_instance_code(h, instance);
    hb_edges own = {edges->data + first, edges->len - first, edges->len - first}, found = {0};
    for (uint32_t b = 0; own.len && b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        for (uint32_t e = block->first_succ; block->end_kind == END_BRANCH && e < block->first_succ + block->succ_count;
             e++)
            if (repeats(h, f, &own, instance, b, e)) vec_push(&found, (hb_edge){instance, b, e, own.data[0].equals});
    }
    for (uint32_t i = 0; i < found.len; i++)
        vec_push(edges, found.data[i]);
    vec_free(&found);
}
