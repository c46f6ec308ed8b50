/* Where threads are alive: from the call that creates one to the call that waits for it.
 *
 * A call of join names handles (objects that the models of pthread_create make). It ends a thread for certain when the thread is
 * the only one it can mean. Threads that a loop creates are ended where a loop of joins is left: that it joins as many as were
 * created is taken for granted, unless both loops count to constants and it joins less. */
#include "static/hb/channel.h"
#include "static/hb/counter.h"

typedef struct {
    uint32_t instance;
    const hb_call *call;
    const sync_entry *sync;
    hb_numbers threads; /* origins that it may wait for */
    bool certain;       /* it waits for nothing else */
    bool last;          /* of joins that together wait for every element of an array */
    bool has_from;
    pta_place from;     /* the variable that holds the handle */
    uint32_t loop;      /* of the function, + 1; 0: none */
    hb_edges edges;     /* of a join that may give up: where it has not */
} join_call;

typedef struct hb_joins {
    VEC(join_call) joins;
    hb_numbers cutters;
    uint32_t of;   /* the origin that is looked at */
    bool trusting; /* a join that may mean several threads means this one: to be checked afterwards */
} join_state;

static uint32_t loop_of(const hb *h, uint32_t instance, uint32_t insn)
{
    const lift_func *f = hb_instance_code(h, instance);
    return f->ir->blocks[hb_block_of(f, insn)].loop;
}

static bool in_loop(const ir_func *ir, uint32_t loop, uint32_t block)
{
    for (uint32_t l = ir->blocks[block].loop; l; l = ir->loops[l - 1].parent)
        if (l == loop) return true;
    return false;
}

static bool has_number(const hb_numbers *list, uint32_t n)
{
    for (uint32_t i = 0; i < list->len; i++)
        if (list->data[i] == n) return true;
    return false;
}

/* The threads whose handle may be at a place. */
static bool add_handle(const hb *h, const pta_place *place, hb_numbers *to)
{
    bool found = false;
    const pta_site *site = &h->program->sites.data[place->site];
    if (site->kind != PTA_HEAP) return false;
    for (uint32_t o = 1; o < h->origins.len; o++) {
        const hb_origin *origin = &h->origins.data[o];
        for (uint32_t m = 0; m < origin->models.len; m++) {
            const pta_instance *model = &h->instances[origin->models.data[m]];
            if (site->func != model->func || place->context != model->context) continue;
            if (!has_number(to, o)) vec_push(to, o);
            found = true;
            break;
        }
    }
    return found;
}

enum { MOST_HANDLES = 64 };

static void find_handles(hb *h, join_call *join)
{
    pta_places places = {0}, held = {0};
    pta_operand what = h->program->calls.data[join->call->call].args[join->sync->arg];
    if (what.var != PTA_NO_VAR) hb_points_to(h, join->instance, what, &places);
    join->certain = places.len > 0;
    for (uint32_t i = 0; i < places.len; i++) {
        if (!join->sync->direct) {
            join->certain &= add_handle(h, &places.data[i], &join->threads);
            continue;
        }
        if (places.len > MOST_HANDLES) break; /* next to nothing is known */
        hb_holds(h, &places.data[i], &held);
        for (uint32_t k = 0; k < held.len; k++)
            add_handle(h, &held.data[k], &join->threads);
    }
    vec_free(&places);
    vec_free(&held);
}

/* Whether a place is another one each time round: its address is computed in the loop. */
static bool varies(const ir_func *ir, const ir_insn *access, uint32_t loop)
{
    value_sum at = value_address(ir, access);
    if (!loop || !at.known) return false;
    for (uint32_t i = 0; i < at.count; i++)
        for (uint32_t k = 0; k < ir->loops[loop - 1].block_count; k++) {
            const ir_block *b = &ir->blocks[ir->loop_blocks[ir->loops[loop - 1].first_block + k]];
            if (at.terms[i].leaf >= b->first && at.terms[i].leaf < b->first + b->count) return true;
        }
    return false;
}

/* The variable whose content is joined. */
static void find_variable(const hb *h, join_call *join)
{
    const lift_func *f = hb_instance_code(h, join->instance);
    uint32_t count;
    const pta_access *accesses = pta_accesses(h->program, h->instances[join->instance].func, &count);
    pta_places places = {0};
    if (!join->call->value || join->sync->direct) return;
    ir_value v = value_plain(f->ir, f->ir->args[f->ir->insns[join->call->value].a + IR_CALL_RDI + (unsigned)join->sync->arg], 8);
    if (!v || f->ir->insns[v].op != IR_LOAD) return;
    const ir_insn *access = &f->ir->insns[f->ir->insns[v].a];
    if (varies(f->ir, access, join->loop)) return;
    for (uint32_t a = 0; a < count && !join->has_from; a++) {
        if (accesses[a].insn != access->insn || accesses[a].flags != access->flags) continue;
        pta_access_places_in(h->p, join->instance, &accesses[a], &places);
        if (places.len != 1 || !places.data[0].exact) continue;
        join->has_from = true;
        join->from = places.data[0];
    }
    vec_free(&places);
}

/* A join has certainly succeeded when a block is reached. */
static bool has_joined(const lift_func *f, const join_call *join, uint32_t block, uint32_t insn)
{
    uint32_t at = hb_block_of(f, join->call->insn);
    if (join->sync->when == SYNC_ALWAYS) return at == block ? join->call->insn < insn : ir_dominates(f->ir, at, block);
    for (uint32_t i = 0; i < join->edges.len; i++) {
        uint32_t to = f->edges[join->edges.data[i].edge].to;
        if (f->blocks[to].pred_count == 1 && ir_dominates(f->ir, to, block)) return true;
    }
    return false;
}

/* Joins one after the other of all elements of an array: the loop that joined them was unrolled. */
static void find_unrolled(const hb *h, join_state *s)
{
    for (uint32_t i = 0; i < s->joins.len; i++) {
        join_call *join = &s->joins.data[i];
        if (!join->has_from || join->loop) continue;
        const pta_site *site = &h->program->sites.data[join->from.site];
        const lift_func *f = hb_instance_code(h, join->instance);
        uint64_t covered = 8;
        bool last = true;
        for (uint32_t k = 0; k < s->joins.len && last; k++) {
            const join_call *other = &s->joins.data[k];
            if (k == i || !other->has_from || other->instance != join->instance || other->from.site != join->from.site ||
                other->from.context != join->from.context || other->from.offset == join->from.offset)
                continue;
            last = has_joined(f, other, hb_block_of(f, join->call->insn), join->call->insn);
            covered += 8;
        }
        join->last = last && covered > 8 && site->size && covered == site->size;
    }
}

/* The parameter that a function is given the handle in, or in which it is told where the handle lies, `*at` bytes from there. */
static int handle_parameter(const ir_func *ir, const join_call *join, bool *loaded, int64_t *at)
{
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    if (!join->call->value || join->sync->direct) return -1;
    value_sum sum = value_of(ir, ir->args[ir->insns[join->call->value].a + IR_CALL_RDI + (unsigned)join->sync->arg]);
    *loaded = false;
    if (sum.known && sum.count == 1 && sum.terms[0].factor == 1 && !sum.add && ir->insns[sum.terms[0].leaf].op == IR_LOAD) {
        sum = value_address(ir, &ir->insns[ir->insns[sum.terms[0].leaf].a]);
        *loaded = true;
    }
    if (!sum.known || sum.count != 1 || sum.terms[0].factor != 1 || (!*loaded && sum.add)) return -1;
    const ir_insn *leaf = &ir->insns[sum.terms[0].leaf];
    *at = sum.add;
    for (int i = 0; leaf->op == IR_ENTRY && i < 6; i++)
        if (leaf->var == registers[i]) return i;
    return -1;
}

/* Whoever comes back from the function has passed the call. */
static bool is_passed(const lift_func *f, uint32_t insn)
{
    uint32_t at = hb_block_of(f, insn);
    for (uint32_t b = 0; b < f->block_count; b++) {
        bool ends = f->blocks[b].end_kind == END_RET || f->blocks[b].end_kind == END_TAIL || f->blocks[b].end_kind == END_TAIL_IND ||
                    f->blocks[b].end_kind == END_UNKNOWN || f->blocks[b].tail;
        if (ends && f->ir->blocks[b].rpo != UINT32_MAX && !ir_dominates(f->ir, at, b)) return false;
    }
    return true;
}

/* A function that waits for the thread that it is told of: so does each of its calls, and there it is known better which one. */
static void find_wrapped(hb *h, join_state *s, const join_call *join)
{
    const lift_func *f = hb_instance_code(h, join->instance);
    bool loaded;
    int64_t at;
    int param = join->sync->when == SYNC_ALWAYS ? handle_parameter(f->ir, join, &loaded, &at) : -1;
    if (param < 0 || !is_passed(f, join->call->insn)) return;
    pta_places places = {0}, held = {0};
    for (uint32_t i = h->in_first[join->instance]; i < h->in_first[join->instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        if (hb_spawns(h, e) || !hb_instance_code(h, e->caller) || h->program->calls.data[e->call].func == PTA_NO_FUNC) continue;
        uint32_t insn = h->call_insn[e->call];
        join_call outer = {.instance = e->caller, .call = hb_call_at(h, h->instances[e->caller].func, insn), .sync = join->sync,
                           .loop = loop_of(h, e->caller, insn)};
        pta_operand what = h->program->calls.data[e->call].args[param];
        if (!outer.call || what.var == PTA_NO_VAR) continue;
        what.delta += (int32_t)at;
        hb_points_to(h, e->caller, what, &places);
        outer.certain = places.len > 0;
        for (uint32_t p = 0; p < places.len && places.len <= MOST_HANDLES; p++) {
            if (!loaded) {
                outer.certain &= add_handle(h, &places.data[p], &outer.threads);
                continue;
            }
            hb_holds(h, &places.data[p], &held);
            outer.certain &= held.len > 0;
            for (uint32_t k = 0; k < held.len; k++)
                outer.certain &= add_handle(h, &held.data[k], &outer.threads);
        }
        outer.certain &= places.len <= MOST_HANDLES;
        vec_push(&s->joins, outer);
    }
    vec_free(&places);
    vec_free(&held);
}

static void find_joins(hb *h, join_state *s)
{
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            if (!sync || (sync->kind != SYNC_JOIN && sync->kind != SYNC_JOIN_TASKS && sync->kind != SYNC_JOIN_GROUP && sync->kind != SYNC_JOIN_TEAM &&
                          sync->kind != SYNC_BARRIER && sync->kind != SYNC_DISPATCH))
                continue;
            join_call join = {.instance = i, .call = &f->calls[c], .sync = sync, .loop = loop_of(h, i, f->calls[c].insn)};
            if (sync->kind == SYNC_JOIN) {
                find_handles(h, &join);
                find_variable(h, &join);
                if (sync->when != SYNC_ALWAYS) hb_success_edges(h, i, &f->calls[c], sync->when, &join.edges);
            }
            vec_push(&s->joins, join);
        }
    }
    for (uint32_t j = 0, own = s->joins.len; j < own; j++) {
        join_call join = s->joins.data[j];
        if (join.sync->kind == SYNC_JOIN) find_wrapped(h, s, &join);
    }
    find_unrolled(h, s);
}

/* --- loops ------------------------------------------------------------------------------------------------------------ */

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
            leaves |= !in_loop(ir, loop, ir->func->edges[e].to);
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
    uint32_t loop = loop_of(h, created.instance, created.insn);
    if (!loop || !join->loop || from != to) return false;
    return loop_count(from, loop, &made) && loop_count(to, join->loop, &waited) && waited < made;
}

typedef enum { JOIN_NOT, JOIN_CALL, JOIN_LOOP } join_effect;

/* There is only ever one such thread, and nothing else that the join may mean. */
static bool is_only(const hb *h, const join_call *join, uint32_t thread)
{
    const hb_origin *o = &h->origins.data[thread];
    return o->kind == HB_THREAD && join->sync->kind == SYNC_JOIN && join->certain && join->threads.len == 1 && join->threads.data[0] == thread &&
           o->sites.len == 1 && o->twin == HB_NONE && !o->looped && h->once[o->sites.data[0].instance] &&
           !loop_of(h, o->sites.data[0].instance, o->sites.data[0].insn);
}

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
    if (!has_number(&join->threads, thread)) return JOIN_NOT;
    if (is_only(h, join, thread)) return JOIN_CALL;
    bool apart = false, here = true; /* created in a loop that the join is not in; in the same function */
    for (uint32_t k = 0; k < o->sites.len; k++) {
        uint32_t loop = loop_of(h, o->sites.data[k].instance, o->sites.data[k].insn);
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
    for (uint32_t j = 0; j < s->joins.len; j++)
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
    for (unsigned i = 0; i < 3 && !in_loop(ir, loop, block) && f->blocks[block].succ_count == 1; i++)
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
    if (!in_loop(ir, loop, go_on(f, ir, loop, other)) || !value_test(ir, block, true, &guard)) return false;
    for (uint32_t i = 0; i < l->block_count; i++) {
        uint32_t inside = ir->loop_blocks[l->first_block + i];
        const lift_block *b = &f->blocks[inside];
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            uint32_t out = f->edges[e].to;
            if (in_loop(ir, loop, out)) continue;
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

/* The edge on which the thread could not be created. */
static bool is_failure(const hb *h, uint32_t thread, uint32_t instance, uint32_t from, uint32_t edge)
{
    const hb_origin *o = &h->origins.data[thread];
    const lift_func *f = hb_instance_code(h, instance);
    value_condition c;
    if (f->blocks[from].end_kind != END_BRANCH || o->kind != HB_THREAD) return false;
    if (!value_test(f->ir, from, f->edges[edge].kind == EDGE_TAKEN, &c) || !c.a || c.b || c.imm || c.code != VALUE_NOT_EQUAL) return false;
    const ir_insn *result = &f->ir->insns[c.a];
    if (result->op != IR_RESULT || result->var != IR_RAX) return false;
    for (uint32_t s = 0; s < o->sites.len; s++)
        if (o->sites.data[s].instance == instance && o->sites.data[s].insn == f->ir->insns[result->a].insn) return true;
    return false;
}

static bool closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    const void *const *with = w->with;
    const hb *h = with[0];
    const join_state *s = with[1];
    const lift_func *f = hb_instance_code(h, instance);
    uint32_t to = f->edges[edge].to;
    if (is_failure(h, s->of, instance, from, edge) || hb_setup_closes(h, s->of, instance, from, edge) ||
        hb_given_closes(h, s->of, instance, from, edge))
        return true;
    for (uint32_t j = 0; j < s->joins.len; j++) {
        const join_call *join = &s->joins.data[j];
        if (join->instance != instance) continue;
        for (uint32_t i = 0; i < join->edges.len; i++)
            if (join->edges.data[i].block == from && join->edges.data[i].edge == edge && effect_of(h, join, s->of, s->trusting) == JOIN_CALL)
                return true;
        if (!join->loop || join->sync->when != SYNC_ALWAYS || effect_of(h, join, s->of, s->trusting) != JOIN_LOOP) continue;
        uint32_t loop = join->loop;
        bool inside = in_loop(f->ir, loop, from);
        if (inside && !in_loop(f->ir, loop, to)) return true;
        const lift_block *b = &f->blocks[from];
        if (inside || b->succ_count != 2 || in_loop(f->ir, loop, to)) continue;
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
    for (uint32_t j = 0; j < s->joins.len; j++) {
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
    hb_walk walk = {.cuts = is_task(o) ? cuts_deep : NULL, .with = with, .cutters = cutters.data, .cutter_count = cutters.len, .origin = HB_NONE};
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
    hb_walk walk = {.cuts = cuts, .closes = closes, .with = with, .cutters = s->cutters.data, .cutter_count = s->cutters.len,
                    .origin = HB_NONE};
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
        if (join->sync->kind != SYNC_JOIN || !has_number(&join->threads, s->of)) continue;
        if (effect_of(h, join, s->of, true) == effect_of(h, join, s->of, false)) continue;
        for (uint32_t i = 0; i < join->threads.len; i++) {
            const hb_origin *other = &h->origins.data[join->threads.data[i]];
            for (uint32_t k = 0; k < other->sites.len; k++)
                if (hb_region_has(live, other->sites.data[k])) return false;
        }
    }
    return true;
}

/* All that a walk asks of an origin: those with the same answers, as most handlers of one event loop are, live in the same region. */
static void describe_life(const hb *h, const join_state *s, hb_numbers *out)
{
    const hb_origin *o = &h->origins.data[s->of];
    vec_clear(out);
    vec_push(out, o->kind == HB_THREAD);
    vec_push(out, ends_at_once(h, o));
    vec_push(out, o->sites.len);
    for (uint32_t i = 0; i < o->sites.len; i++) {
        vec_push(out, o->sites.data[i].instance);
        vec_push(out, o->sites.data[i].insn);
    }
    for (uint32_t j = 0; j < s->joins.len; j++) {
        join_effect effect = effect_of(h, &s->joins.data[j], s->of, s->trusting);
        if (effect == JOIN_NOT) continue;
        vec_push(out, j);
        vec_push(out, (uint32_t)effect);
    }
}

static void find_life(hb *h, join_state *s, const void *with, hb_numbers *about)
{
    hb_life *life = &h->lives[s->of];
    describe_life(h, s, &about[s->of]);
    for (uint32_t o = 1; o < s->of; o++) {
        if (about[o].len != about[s->of].len || memcmp(about[o].data, about[s->of].data, about[o].len * sizeof *about[o].data)) continue;
        life->live = h->lives[o].live;
        life->shares_live = true;
        return;
    }
    life->shares_live = false;
    walk_life(h, s, with, &life->live);
}

void hb_lives_open(hb *h)
{
    join_state *s = h->joins = base_alloc_zero(1, sizeof *s);
    const void *with[] = {h, s};
    find_joins(h, s);
    h->lives = base_alloc_zero(h->origins.len, sizeof *h->lives);
    hb_numbers *about = base_alloc_zero(h->origins.len, sizeof *about);
    for (uint32_t o = 1; o < h->origins.len; o++) {
        s->of = o;
        s->trusting = true;
        find_life(h, s, with, about);
        if (was_right(h, s, &h->lives[o].live)) continue;
        if (!h->lives[o].shares_live) hb_region_free(&h->lives[o].live);
        s->trusting = false;
        find_life(h, s, with, about);
    }
    for (uint32_t o = 0; o < h->origins.len; o++)
        vec_free(&about[o]);
    free(about);
}

static bool calls_self(const hb *h)
{
    for (uint32_t f = 0; f < h->program->funcs.len; f++)
        for (uint32_t c = 0; hb_code(h, f) && c < h->funcs[f].call_count; c++) {
            uint32_t func = h->program->calls.data[h->funcs[f].calls[c].call].func;
            if (func != PTA_NO_FUNC && !strcmp(h->program->funcs.data[func].name, "pthread_self")) return true;
        }
    return false;
}

/* Whether a variable holds the handle of the thread that main is, and nothing else: all that is stored there is what pthread_self
 * has returned in main. */
static bool holds_main(const hb *h, const pta_place *place)
{
    bool found = false;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        const lift_func *f = hb_instance_code(h, i);
        if (!f) continue;
        uint32_t count;
        const pta_access *accesses = pta_accesses(h->program, h->instances[i].func, &count);
        pta_places places = {0};
        for (uint32_t a = 0; a < count; a++) {
            if (!(accesses[a].flags & IR_WRITE) || accesses[a].flags & IR_PROMOTED) continue;
            pta_access_places_in(h->p, i, &accesses[a], &places);
            bool meets = false, own = false;
            for (uint32_t k = 0; k < places.len && !meets; k++)
                meets = places.data[k].site == place->site && (!places.data[k].exact || places.data[k].offset == place->offset);
            for (ir_value v = 1; meets && v < f->ir->insn_count; v++) {
                if (f->ir->insns[v].op != IR_STORE || f->ir->insns[v].insn != accesses[a].insn) continue;
                const ir_insn *stored = &f->ir->insns[value_plain(f->ir, f->ir->insns[v].b, 8)];
                const hb_call *call = stored->op == IR_RESULT ? hb_call_at(h, h->instances[i].func, f->ir->insns[stored->a].insn) : NULL;
                uint32_t func = call ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
                own = func != PTA_NO_FUNC && !strcmp(h->program->funcs.data[func].name, "pthread_self");
            }
            for (uint32_t o = 1; o < h->origins.len && meets; o++)
                own &= !hb_bit(h->origins.data[o].self, i);
            if (meets && !own) return vec_free(&places), false;
            found |= meets;
        }
        vec_free(&places);
    }
    return found;
}

void hb_joins_of(const hb *h, uint32_t thread, hb_points *waits, hb_edges *edges)
{
    bool self = !thread && calls_self(h);
    for (uint32_t j = 0; j < h->joins->joins.len && self; j++) {
        const join_call *join = &h->joins->joins.data[j];
        if (join->sync->kind != SYNC_JOIN || !join->has_from || !holds_main(h, &join->from)) continue;
        if (join->sync->when == SYNC_ALWAYS) vec_push(waits, (hb_point){join->instance, join->call->insn});
        for (uint32_t i = 0; i < join->edges.len; i++)
            vec_push(edges, join->edges.data[i]);
    }
    for (uint32_t j = 0; j < h->joins->joins.len; j++) {
        const join_call *join = &h->joins->joins.data[j];
        if (!is_only(h, join, thread)) continue;
        if (join->sync->when == SYNC_ALWAYS) vec_push(waits, (hb_point){join->instance, join->call->insn});
        for (uint32_t i = 0; i < join->edges.len; i++)
            vec_push(edges, join->edges.data[i]);
    }
}

void hb_waits_for(const hb *h, uint32_t origin, hb_points *out)
{
    for (uint32_t j = 0; j < h->joins->joins.len; j++) {
        const join_call *join = &h->joins->joins.data[j];
        bool waits = join->certain && has_number(&join->threads, origin);
        for (uint32_t i = 0; i < join->threads.len && waits; i++)
            waits = h->origins.data[join->threads.data[i]].entry == h->origins.data[origin].entry;
        if (waits) vec_push(out, (hb_point){join->instance, join->call->insn});
    }
}

void hb_lives_close(hb *h)
{
    for (uint32_t o = 1; h->lives && o < h->origins.len; o++) {
        if (!h->lives[o].shares_live) hb_region_free(&h->lives[o].live);
        if (h->lives[o].has_ever && !h->lives[o].shares_ever) hb_region_free(&h->lives[o].ever);
    }
    free(h->lives);
    for (uint32_t j = 0; h->joins && j < h->joins->joins.len; j++) {
        vec_free(&h->joins->joins.data[j].threads);
        vec_free(&h->joins->joins.data[j].edges);
    }
    if (h->joins) {
        vec_free(&h->joins->joins);
        vec_free(&h->joins->cutters);
    }
    free(h->joins);
}
