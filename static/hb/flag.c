/* Numbers that functions are called with, and branch on:
 *
 *     close_client(c, ASYNC);        void close_client(struct client *c, int async)
 *                                    {
 *                                        if (async) queue(c); else free_client(c);
 *
 * As far as a thread's calls tell: the values of each parameter of the functions that it runs, and which blocks they
 * come to with these, until nothing changes any more. Calls that hardly lead there (hb_doubt) are not followed. */
#include "static/hb/doubt.h"

#include <stdlib.h>

enum { PARAMS = 6 };
static const uint16_t registers[PARAMS] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};

typedef struct {
    uint64_t values[PARAMS];
    bool comes; /* it is called */
    bool waits; /* in work */
} flag_instance;

typedef struct {
    hb *h;
    const uint64_t *runs;
    flag_instance *instances;
    hb_numbers work;
    uint64_t *at; /* per block of the function that is gone through: 1 when it is come to */
} flow;

static int param_of(const ir_func *ir, ir_value v)
{
    const ir_insn *insn = &ir->insns[v];
    for (int i = 0; v && insn->op == IR_ENTRY && i < PARAMS; i++)
        if (insn->var == registers[i]) return i;
    return -1;
}

/* The values with which a branch on a parameter goes over an edge; false: it is on something else. */
static bool tests(const ir_func *ir, uint32_t block, uint32_t edge, int *param, uint64_t *values)
{
    const lift_func *f = ir->func;
    value_condition c;
    if (f->blocks[block].end_kind != END_BRANCH || f->blocks[block].succ_count != 2) return false;
    if (!value_test(ir, block, f->edges[edge].kind == EDGE_TAKEN, &c) || !c.a || c.b) return false;
    *param = param_of(ir, value_plain(ir, c.a, 4));
    if (*param < 0) return false;
    *values = hb_values_of(&c);
    return true;
}

static void go_through(flow *f, uint32_t instance)
{
    const lift_func *code = hb_instance_code(f->h, instance);
    hb_numbers work = {0};
    f->at = base_realloc(f->at, code->block_count * sizeof *f->at);
    memset(f->at, 0, code->block_count * sizeof *f->at);
    f->at[0] = 1;
    vec_push(&work, 0);
    while (work.len) {
        uint32_t block = work.data[--work.len];
        const lift_block *b = &code->blocks[block];
        uint32_t count =
            b->end_kind == END_UNKNOWN ? code->block_count : b->succ_count; /* it may go anywhere in the function */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t edge = b->first_succ + i, to = b->end_kind == END_UNKNOWN ? i : code->edges[edge].to;
            int param;
            uint64_t values;
            if (f->at[to]) continue;
            if (tests(code->ir, block, edge, &param, &values) && !(f->instances[instance].values[param] & values))
                continue;
            f->at[to] = 1;
            vec_push(&work, to);
        }
    }
    vec_free(&work);
}

static uint64_t argument(const flow *f, uint32_t instance, const hb_call *call, unsigned arg)
{
    const ir_func *ir = hb_instance_code(f->h, instance)->ir;
    if (!call || !call->value) return HB_ANY;
    ir_value v = value_plain(ir, ir->args[ir->insns[call->value].a + IR_CALL_RDI + arg], 4);
    if (!v) return HB_ANY;
    if (ir->insns[v].op == IR_CONST) {
        int64_t n = (int32_t)ir->insns[v].imm;
        return 1ull << (n >= 0 && n < HB_NUMBERS ? n : HB_OTHERS);
    }
    int param = param_of(ir, v);
    return param < 0 ? HB_ANY : f->instances[instance].values[param];
}

static void go_to(flow *f, uint32_t callee, const uint64_t values[PARAMS])
{
    flag_instance *to = &f->instances[callee];
    bool changed = !to->comes;
    if (!hb_bit(f->runs, callee)) return;
    for (unsigned i = 0; i < PARAMS; i++) {
        changed |= (to->values[i] | values[i]) != to->values[i];
        to->values[i] |= values[i];
    }
    to->comes = true;
    if (!changed || to->waits) return;
    to->waits = true;
    vec_push(&f->work, callee);
}

static void go_on(flow *f, uint32_t instance)
{
    const hb *h = f->h;
    const lift_func *code = hb_instance_code(h, instance);
    f->instances[instance].waits = false;
    if (code) go_through(f, instance);
    for (uint32_t e = h->out_first[instance]; e < h->out_first[instance + 1]; e++) {
        uint64_t values[PARAMS];
        if (hb_spawns(h, &h->edges[e])) continue;
        uint32_t insn = h->call_insn[h->edges[e].call];
        if (code && !f->at[hb_block_of(code, insn)]) continue;
        const hb_call *call = code ? hb_call_at(h, h->instances[instance].func, insn) : NULL;
        for (unsigned i = 0; i < PARAMS; i++)
            values[i] = code ? argument(f, instance, call, i) : HB_ANY;
        go_to(f, h->edges[e].callee, values);
    }
}

void hb_flags_find(hb *h, uint32_t origin)
{
    static const uint64_t any[PARAMS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const hb_origin *o = &h->origins.data[origin];
    flow f = {
        .h = h, .runs = o->within[HB_AGAINST], .instances = base_alloc_zero(h->instance_count, sizeof *f.instances)};
    go_to(&f, o->instance, any);
    while (f.work.len)
        go_on(&f, f.work.data[--f.work.len]);
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (f.instances[i].comes && hb_instance_code(h, i)) {
            go_through(&f, i);
            hb_doubt_blocks(h, origin, i, f.at);
        }
    free(f.instances);
    free(f.at);
    vec_free(&f.work);
}
