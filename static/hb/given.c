/* What was so when a thread was created, and is so as long as it lives:
 *
 *     if (threads) pthread_create(&t, ...);
 *     work();
 *     if (threads) pthread_join(t, ...);
 *
 * A branch on the very values that the creation hung on goes the same way again while the thread is alive, as long as the values are not
 * computed anew: no definition of one of them lies in the code where the thread may be alive. That code is found without the branches
 * that go the other way; should a value change while the thread is alive, then a first time, and all that ran before is in it. A second
 * run of the same function would define them, too. */
#include "static/hb/private.h"
#include "static/hb/value.h"

typedef struct {
    uint32_t func; /* PTA_NO_FUNC: nothing is known */
    VEC(value_condition) facts;
} given;

typedef struct hb_givens {
    given *origins;
} hb_givens;

static bool same_values(const value_condition *x, const value_condition *y)
{
    return x->a == y->a && x->b == y->b;
}

static bool contradicts(const value_condition *x, const value_condition *y)
{
    if (!same_values(x, y)) return false;
    if (x->imm == y->imm) return x->code == (y->code ^ 1);
    return !x->b && x->code == VALUE_EQUAL && y->code == VALUE_EQUAL;
}

/* What setjmp has returned is another value when it returns again, though nothing is computed anew. */
static bool may_change(const hb *h, uint32_t func, const ir_func *ir, ir_value v)
{
    const ir_insn *insn = &ir->insns[v];
    const hb_call *call = v && insn->op == IR_RESULT ? hb_call_at(h, func, ir->insns[insn->a].insn) : NULL;
    uint32_t callee = call ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
    return callee != PTA_NO_FUNC && strstr(h->program->funcs.data[callee].name, "setjmp");
}

static void find_facts(const hb *h, uint32_t func, const lift_func *f, uint32_t block, given *out)
{
    for (uint32_t d = block, up = f->ir->blocks[d].idom; up != d; d = up, up = f->ir->blocks[d].idom) {
        const lift_block *b = &f->blocks[up];
        if (b->end_kind != END_BRANCH || b->succ_count != 2) continue;
        for (uint32_t e = b->first_succ; e < b->first_succ + 2; e++) {
            uint32_t to = f->edges[e].to;
            value_condition c;
            bool only = f->blocks[to].pred_count == 1 && (to == block || ir_dominates(f->ir, to, block));
            if (only && value_test(f->ir, up, f->edges[e].kind == EDGE_TAKEN, &c) && c.a && !may_change(h, func, f->ir, c.a)) vec_push(&out->facts, c);
        }
    }
}

void hb_givens_open(hb *h)
{
    h->givens = base_alloc_zero(1, sizeof *h->givens);
    h->givens->origins = base_alloc_zero(h->origins.len, sizeof *h->givens->origins);
    for (uint32_t o = 0; o < h->origins.len; o++) {
        const hb_origin *origin = &h->origins.data[o];
        given *g = &h->givens->origins[o];
        g->func = PTA_NO_FUNC;
        if (origin->kind != HB_THREAD || !origin->sites.len) continue;
        hb_point first = origin->sites.data[0];
        bool one = true;
        for (uint32_t i = 1; i < origin->sites.len; i++)
            one &= h->instances[origin->sites.data[i].instance].func == h->instances[first.instance].func && origin->sites.data[i].insn == first.insn;
        const lift_func *f = hb_instance_code(h, first.instance);
        if (!one || !f) continue;
        g->func = h->instances[first.instance].func;
        find_facts(h, g->func, f, hb_block_of(f, first.insn), g);
    }
}

void hb_givens_close(hb *h)
{
    if (!h->givens) return;
    for (uint32_t o = 0; o < h->origins.len; o++)
        vec_free(&h->givens->origins[o].facts);
    free(h->givens->origins);
    free(h->givens);
}

bool hb_given_closes(const hb *h, uint32_t origin, uint32_t instance, uint32_t from, uint32_t edge)
{
    const given *g = &h->givens->origins[origin];
    const lift_func *f = hb_instance_code(h, instance);
    value_condition c;
    if (!g->facts.len || h->instances[instance].func != g->func || f->blocks[from].end_kind != END_BRANCH) return false;
    if (!value_test(f->ir, from, f->edges[edge].kind == EDGE_TAKEN, &c)) return false;
    for (uint32_t i = 0; i < g->facts.len; i++)
        if (contradicts(&g->facts.data[i], &c)) return true;
    return false;
}

static uint32_t block_of_value(const ir_func *ir, ir_value v)
{
    for (uint32_t b = 0; b < ir->func->block_count; b++)
        if (v >= ir->blocks[b].first && v < ir->blocks[b].first + ir->blocks[b].count) return b;
    return 0; /* parameters */
}

/* A phi is where its block begins, all else where its instruction is. */
static bool is_defined_in(const hb *h, uint32_t instance, ir_value v, const hb_region *live)
{
    const lift_func *f = hb_instance_code(h, instance);
    if (!v || f->ir->insns[v].op == IR_CONST || f->ir->insns[v].op == IR_ADDRESS) return false;
    const lift_block *b = &f->blocks[block_of_value(f->ir, v)];
    uint8_t op = f->ir->insns[v].op;
    bool at_begin = op == IR_PHI || op == IR_ENTRY || op == IR_UNDEF || op == IR_PAD;
    return hb_region_has(live, (hb_point){instance, at_begin ? b->first_insn : f->ir->insns[v].insn});
}

bool hb_given_fails(hb *h, uint32_t origin, const hb_region *live)
{
    given *g = &h->givens->origins[origin];
    const hb_origin *o = &h->origins.data[origin];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->facts.len; i++) {
        bool lost = false;
        for (uint32_t s = 0; s < o->sites.len && !lost; s++)
            lost = is_defined_in(h, o->sites.data[s].instance, g->facts.data[i].a, live) ||
                   is_defined_in(h, o->sites.data[s].instance, g->facts.data[i].b, live);
        if (!lost) g->facts.data[kept++] = g->facts.data[i];
    }
    bool fails = kept != g->facts.len;
    g->facts.len = kept;
    return fails;
}
