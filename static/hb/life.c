/* Where threads are alive: from the call that creates one to the call that waits for it.
 *
 * Threads that a loop creates are ended where a loop of joins is left: that it joins as many as were created is taken for granted,
 * unless both loops count to constants and it joins less. */
#include "static/hb/join.h"

/* The number that a loop counts to, if it is a constant. */
static bool loop_count(const ir_func *ir, uint32_t loop, int64_t *count)
{
    const ir_loop *l = &ir->loops[loop - 1];
    for (uint32_t i = 0; i < l->block_count; i++) {
        uint32_t block = ir->loop_blocks[l->first_block + i];
        value_condition condition;
        bool leaves = false;
        const lift_block *b = &ir->func->blocks[block];
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++)
            leaves |= !join_in_loop(ir, loop, ir->func->edges[e].to);
        if (!leaves || !value_test(ir, block, true, &condition) || condition.b) continue;
        bool included = condition.code == 14 || condition.code == 15 || condition.code == 6 || condition.code == 7; /* i <= n */
        value_sum counted = value_of(ir, condition.a);
        int64_t step = counted.known && counted.count == 1 ? count_stride(ir, counted.terms[0].leaf) : 0;
        if (condition.imm > 1) return *count = (condition.imm + included) / (step > 1 ? step : 1), true;
    }
    return false;
}

static bool differ(const hb *h, hb_point created, const join_call *join)
{
    int64_t made, waited;
    const ir_func *from = hb_instance_code(h, created.instance)->ir, *to = hb_instance_code(h, join->instance)->ir;
    uint32_t loop = join_loop_of(h, created.instance, created.insn);
    if (!loop || !join->loop || from != to) return false;
    return loop_count(from, loop, &made) && loop_count(to, join->loop, &waited) && waited < made;
}

typedef enum { JOIN_NOT, JOIN_CALL, JOIN_LOOP } join_effect;

/* All of them were created by one call. */
static bool one_creation(const hb *h, const join_call *join)
{
    const hb_origin *first = &h->origins.data[join->threads.data[0]];
    for (uint32_t i = 1; i < join->threads.len; i++) {
        const hb_origin *o = &h->origins.data[join->threads.data[i]];
        if (o->model != first->model) return false;
    }
    return true;
}

/* All of them are created behind the begin of the group that ends here. */
static bool is_in_group(const hb *h, const join_call *join, const hb_origin *o)
{
    const lift_func *f = hb_instance_code(h, join->instance);
    const hb_func *own = &h->funcs[h->instances[join->instance].func];
    for (uint32_t i = 0; i < o->sites.len; i++) {
        bool found = false;
        if (h->instances[o->sites.data[i].instance].func != h->instances[join->instance].func) return false;
        uint32_t site = hb_block_of(f, o->sites.data[i].insn);
        for (uint32_t c = 0; c < own->call_count && !found; c++) {
            if (!own->calls[c].sync || own->calls[c].sync->kind != SYNC_GROUP) continue;
            uint32_t begin = hb_block_of(f, own->calls[c].insn);
            found = begin == site ? own->calls[c].insn < o->sites.data[i].insn : ir_dominates(f->ir, begin, site);
        }
        if (!found) return false;
    }
    return o->sites.len > 0;
}

static join_effect effect_of(const hb *h, const join_call *join, uint32_t thread, bool trusting)
{
    const hb_origin *o = &h->origins.data[thread];
    uint8_t made = o->by ? o->by->kind : SYNC_NONE;
    switch (join->sync->kind) {
    case SYNC_JOIN_GROUP: return made == SYNC_TASK && is_in_group(h, join, o) ? JOIN_CALL : JOIN_NOT;
    case SYNC_DISPATCH:
    case SYNC_JOIN_TASKS: return made == SYNC_TASK ? JOIN_CALL : JOIN_NOT;
    case SYNC_BARRIER: return made == SYNC_TASK && join->sync->arg < 0 ? JOIN_CALL : JOIN_NOT;
    case SYNC_JOIN_TEAM: return o->looped ? JOIN_CALL : JOIN_NOT;
    default: break;
    }
    if (!join_has_number(&join->threads, thread)) return JOIN_NOT;
    if (join_is_only(h, join, thread)) return JOIN_CALL;
    bool apart = false, here = true; /* created in a loop that the join is not in; in the same function */
    for (uint32_t k = 0; k < o->sites.len; k++) {
        uint32_t loop = join_loop_of(h, o->sites.data[k].instance, o->sites.data[k].insn);
        bool same = o->sites.data[k].instance == join->instance;
        apart |= same ? loop != join->loop : loop || join->loop;
        here &= same;
        if (differ(h, o->sites.data[k], join)) return JOIN_NOT;
    }
    if (join->last) return JOIN_CALL;
    if (apart && join->has_from && (join->loop || join->sync->when != SYNC_ALWAYS)) return JOIN_NOT; /* the same handle each time round */
    if (apart) return join->loop ? JOIN_LOOP : JOIN_NOT;
    /* Who joins the only thread that it can mean joins the one that is alive, as long as there is no second one then (was_right): a
     * thread cannot be joined twice. */
    if (trusting && join->certain && join->threads.len == 1) return JOIN_CALL;
    bool sure = one_creation(h, join) || trusting;
    if (sure && (here || (o->sites.len == 1 && h->once[o->sites.data[0].instance]))) return JOIN_CALL;
    return JOIN_NOT;
}

static bool cuts(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    const void *const *with = w->with;
    const hb *h = with[0];
    const join_state *s = with[1];
    for (uint32_t j = 0; hb_bit(s->instances, instance) && j < s->joins.len; j++)
        if (s->joins.data[j].instance == instance && s->joins.data[j].call == call)
            return s->joins.data[j].sync->when == SYNC_ALWAYS && effect_of(h, &s->joins.data[j], s->of, s->trusting) == JOIN_CALL;
    return false;
}

/* Whether a value is computed from another. */
static bool depends(const ir_func *ir, ir_value v, ir_value on, unsigned depth)
{
    if (!v || depth > 8) return false;
    if (value_alike(ir, v, on)) return true;
    const ir_insn *insn = &ir->insns[v];
    switch (insn->op) {
    case IR_COPY: case IR_SEXT: case IR_LEA: case IR_SUB: case IR_SHL: case IR_MUL: case IR_EXTRACT: case IR_AND:
        return depends(ir, insn->a, on, depth + 1) || depends(ir, insn->b, on, depth + 1);
    default: return false;
    }
}

/* Through blocks that do nothing but go on. */
static uint32_t go_on(const lift_func *f, const ir_func *ir, uint32_t loop, uint32_t block)
{
    for (unsigned i = 0; i < 3 && !join_in_loop(ir, loop, block) && f->blocks[block].succ_count == 1; i++)
        block = f->edges[f->blocks[block].first_succ].to;
    return block;
}

/* A branch that leaves a whole loop out, because there is nothing to do for it. */
static bool is_guard(const ir_func *ir, uint32_t loop, uint32_t block, uint32_t to, uint32_t other)
{
    const lift_func *f = ir->func;
    const ir_loop *l = &ir->loops[loop - 1];
    bool leaves = false, about = false;
    uint32_t behind = f->blocks[to].insn_count == 1 ? go_on(f, ir, loop, to) : to; /* nothing but a jump */
    value_condition guard, exit;
    if (!join_in_loop(ir, loop, go_on(f, ir, loop, other)) || !value_test(ir, block, true, &guard)) return false;
    for (uint32_t i = 0; i < l->block_count; i++) {
        uint32_t inside = ir->loop_blocks[l->first_block + i];
        const lift_block *b = &f->blocks[inside];
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            uint32_t out = f->edges[e].to;
            if (join_in_loop(ir, loop, out)) continue;
            for (unsigned k = 0; k < 3; k++) { /* to the same place as the loop does */
                leaves |= out == to || out == behind;
                if (f->blocks[out].succ_count != 1) break;
                out = f->edges[f->blocks[out].first_succ].to;
            }
        }
        if (!value_test(ir, inside, true, &exit)) continue;
        ir_value bounds[] = {exit.a, exit.b}, looked[] = {guard.a, guard.b};
        for (unsigned k = 0; k < 4; k++)
            about |= bounds[k / 2] && looked[k % 2] && depends(ir, bounds[k / 2], looked[k % 2], 0);
    }
    return leaves && about;
}

/* The edge that an exception takes which the creation has thrown, as the last call of its block. */
static bool has_thrown(const hb *h, const hb_origin *o, uint32_t instance, uint32_t from)
{
    const lift_func *f = hb_instance_code(h, instance);
    const lift_block *b = &f->blocks[from];
    const hb_func *own = &h->funcs[h->instances[instance].func];
    uint32_t last = HB_NONE;
    for (uint32_t c = 0; c < own->call_count; c++)
        if (own->calls[c].insn >= b->first_insn && own->calls[c].insn < b->first_insn + b->insn_count) last = own->calls[c].insn;
    for (uint32_t s = 0; s < o->sites.len; s++)
        if (o->sites.data[s].instance == instance && o->sites.data[s].insn == last) return true;
    return false;
}

static bool is_created_in(const hb_origin *o, uint32_t instance)
{
    for (uint32_t s = 0; s < o->sites.len; s++)
        if (o->sites.data[s].instance == instance) return true;
    return false;
}

/* The edge on which the thread could not be created. */
static bool is_failure(const hb *h, uint32_t thread, uint32_t instance, uint32_t from, uint32_t edge)
{
    const hb_origin *o = &h->origins.data[thread];
    if (!is_created_in(o, instance)) return false;
    const lift_func *f = hb_instance_code(h, instance);
    value_condition c;
    if (o->kind == HB_THREAD && f->edges[edge].kind == EDGE_PAD) return has_thrown(h, o, instance, from);
    if (f->blocks[from].end_kind != END_BRANCH || o->kind != HB_THREAD) return false;
    if (!value_test(f->ir, from, f->edges[edge].kind == EDGE_TAKEN, &c) || !c.a || c.b || c.imm || c.code != VALUE_NOT_EQUAL) return false;
    const ir_insn *result = &f->ir->insns[c.a];
    if (result->op != IR_RESULT || result->var != IR_RAX) return false;
    for (uint32_t s = 0; s < o->sites.len; s++)
        if (o->sites.data[s].instance == instance && o->sites.data[s].insn == f->ir->insns[result->a].insn) return true;
    return false;
}

bool life_closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    const void *const *with = w->with;
    const hb *h = with[0];
    const join_state *s = with[1];
    const lift_func *f = hb_instance_code(h, instance);
    uint32_t to = f->edges[edge].to;
    if (is_failure(h, s->of, instance, from, edge) || hb_setup_closes(h, s->of, instance, from, edge) ||
        hb_given_closes(h, s->of, instance, from, edge))
        return true;
    for (uint32_t j = 0; hb_bit(s->instances, instance) && j < s->joins.len; j++) {
        const join_call *join = &s->joins.data[j];
        if (join->instance != instance) continue;
        for (uint32_t i = 0; i < join->edges.len; i++)
            if (join->edges.data[i].block == from && join->edges.data[i].edge == edge && effect_of(h, join, s->of, s->trusting) == JOIN_CALL)
                return true;
        if (!join->loop || join->sync->when != SYNC_ALWAYS || effect_of(h, join, s->of, s->trusting) != JOIN_LOOP) continue;
        uint32_t loop = join->loop;
        bool inside = join_in_loop(f->ir, loop, from);
        if (inside && !join_in_loop(f->ir, loop, to)) return true;
        const lift_block *b = &f->blocks[from];
        if (inside || b->succ_count != 2 || join_in_loop(f->ir, loop, to)) continue;
        uint32_t other = f->edges[b->first_succ].to == to ? f->edges[b->first_succ + 1].to : f->edges[b->first_succ].to;
        if (is_guard(f->ir, loop, from, to, other)) return true;
    }
    return false;
}

/* It has ended when the call that creates it returns. */
static bool ends_at_once(const hb *h, const hb_origin *o)
{
    enum { NO_GROUP = 1 << 11 }; /* GOMP_TASK_FLAG_NOGROUP */
    if (o->by && o->by->kind == SYNC_TEAM) return true;
    if (!o->by || o->by->kind != SYNC_TASK || !o->by->shared || o->by->other < 0) return false;
    for (uint32_t i = 0; i < o->sites.len; i++) {
        const lift_func *f = hb_instance_code(h, o->sites.data[i].instance);
        const hb_call *call = hb_call_at(h, h->instances[o->sites.data[i].instance].func, o->sites.data[i].insn);
        if (!call || !call->value) return false;
        const ir_insn *flags = &f->ir->insns[value_plain(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + (unsigned)o->by->other], 4)];
        if (flags->op != IR_CONST || flags->imm & NO_GROUP) return false;
    }
    return true;
}

/* What waits for a task and for all that it has started. */
static bool cuts_deep(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    const void *const *with = w->with;
    const hb *h = with[0];
    const join_state *s = h->joins;
    const uint32_t *of = with[1];
    for (uint32_t j = 0; hb_bit(s->instances, instance) && j < s->joins.len; j++) {
        const join_call *join = &s->joins.data[j];
        if (join->instance != instance || join->call != call) continue;
        return (join->sync->kind == SYNC_JOIN_GROUP || join->sync->kind == SYNC_BARRIER) && effect_of(h, join, *of, false) == JOIN_CALL;
    }
    return false;
}

static bool is_task(const hb_origin *o)
{
    return o->by && o->by->kind == SYNC_TASK;
}

/* Without joins it is the points where it is created that tell, and nothing else. */
static bool same_ever(const hb_origin *x, const hb_origin *y)
{
    if (is_task(x) || is_task(y) || x->sites.len != y->sites.len) return false;
    for (uint32_t i = 0; i < x->sites.len; i++)
        if (x->sites.data[i].instance != y->sites.data[i].instance || x->sites.data[i].insn != y->sites.data[i].insn) return false;
    return true;
}

const hb_region *hb_life_ever(const hb *h, uint32_t origin)
{
    const hb_origin *o = &h->origins.data[origin];
    hb_life *life = &h->lives[origin];
    if (life->has_ever) return &life->ever;
    life->has_ever = true;
    for (uint32_t other = 1; other < h->origins.len; other++) {
        if (!h->lives[other].has_ever || other == origin || !same_ever(o, &h->origins.data[other])) continue;
        life->ever = h->lives[other].ever;
        life->shares_ever = true;
        return &life->ever;
    }
    hb_numbers cutters = {0};
    const void *with[] = {h, &origin};
    for (uint32_t j = 0; j < h->joins->joins.len && is_task(o); j++)
        vec_push(&cutters, h->joins->joins.data[j].instance);
    hb_walk walk = {.cuts = is_task(o) ? cuts_deep : NULL, .with = with, .cutters = cutters.data, .cutter_count = cutters.len, .kept = true, .origin = HB_NONE};
    hb_region_walk(h, &walk, o->sites.data, is_task(o) && ends_at_once(h, o) ? 0 : o->sites.len, &life->ever);
    vec_free(&cutters);
    return &life->ever;
}

static void walk_life(hb *h, join_state *s, const void *with, hb_region *out)
{
    const hb_origin *origin = &h->origins.data[s->of];
    bool team = ends_at_once(h, origin);
    vec_clear(&s->cutters);
    for (uint32_t i = 0; i < origin->sites.len; i++) /* where it may fail to be created */
        vec_push(&s->cutters, origin->sites.data[i].instance);
    for (uint32_t j = 0; j < s->joins.len; j++)
        if (effect_of(h, &s->joins.data[j], s->of, s->trusting) != JOIN_NOT) vec_push(&s->cutters, s->joins.data[j].instance);
    hb_setup_cutters(h, s->of, &s->cutters);
    hb_walk walk = {.cuts = cuts, .closes = life_closes, .with = with, .cutters = s->cutters.data, .cutter_count = s->cutters.len,
                    .kept = true, .origin = HB_NONE};
    hb_region_walk(h, &walk, origin->sites.data, team ? 0 : origin->sites.len, out);
    bool setup = hb_setup_fails(h, s->of, out), given = hb_given_fails(h, s->of, out);
    if (!setup && !given) return;
    hb_region_free(out);
    walk_life(h, s, with, out);
}

/* A variable that holds first one handle, then another, was trusted to hold the right one: so it is, as long as none of the other
 * threads is created while this one lives. */
static bool was_right(const hb *h, const join_state *s, const hb_region *live)
{
    for (uint32_t j = 0; j < s->joins.len; j++) {
        const join_call *join = &s->joins.data[j];
        if (join->sync->kind != SYNC_JOIN || !join_has_number(&join->threads, s->of)) continue;
        if (effect_of(h, join, s->of, true) == effect_of(h, join, s->of, false)) continue;
        for (uint32_t i = 0; i < join->threads.len; i++) {
            const hb_origin *other = &h->origins.data[join->threads.data[i]];
            for (uint32_t k = 0; k < other->sites.len; k++)
                if (hb_region_has(live, other->sites.data[k])) return false;
        }
    }
    return true;
}

void hb_lives_open(hb *h)
{
    join_state *s = h->joins = base_alloc_zero(1, sizeof *s);
    const void *with[] = {h, s};
    joins_find(h, s);
    h->lives = base_alloc_zero(h->origins.len, sizeof *h->lives);
    for (uint32_t o = 1; o < h->origins.len; o++) {
        s->of = o;
        s->trusting = true;
        walk_life(h, s, with, &h->lives[o].live);
        if (was_right(h, s, &h->lives[o].live)) continue;
        hb_region_free(&h->lives[o].live);
        s->trusting = false;
        walk_life(h, s, with, &h->lives[o].live);
    }
}
void hb_lives_close(hb *h)
{
    for (uint32_t o = 1; h->lives && o < h->origins.len; o++) {
        hb_region_free(&h->lives[o].live);
        if (h->lives[o].has_ever && !h->lives[o].shares_ever) hb_region_free(&h->lives[o].ever);
        if (h->lives[o].has_meant) hb_region_free(&h->lives[o].meant);
    }
    free(h->lives);
    for (uint32_t j = 0; h->joins && j < h->joins->joins.len; j++) {
        vec_free(&h->joins->joins.data[j].threads);
        vec_free(&h->joins->joins.data[j].edges);
    }
    if (h->joins) {
        vec_free(&h->joins->joins);
        vec_free(&h->joins->cutters);
        free(h->joins->instances);
    }
    free(h->joins);
}
