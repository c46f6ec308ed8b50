/* The calls that wait for threads, and which threads each of them may mean.
 *
 * A call of join names handles (objects that the models of pthread_create make). It ends a thread for certain when the thread is
 * the only one it can mean. */
#include "static/hb/join.h"

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
            if (!join_has_number(to, o)) vec_push(to, o);
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
                           .loop = join_loop_of(h, e->caller, insn)};
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

/* --- destroying a std::thread ------------------------------------------------------------------------------------------------------
 *
 * ~thread() ends the program if the handle is still there: whoever comes behind it comes after a join, if nobody detaches threads and
 * the handle is never moved to another variable. */

static bool calls_by_name(const hb *h, const char *name)
{
    for (uint32_t f = 0; f < h->program->funcs.len; f++)
        if (!strcmp(h->program->funcs.data[f].name, name)) return true;
    return false;
}

/* The program itself stores nothing but zero there: what is moved to another variable is exchanged with what that has. */
static bool is_never_moved(hb *h, const pta_place *variable)
{
    const pta_site *site = &h->program->sites.data[variable->site];
    uint32_t object = hb_object(h, site->memory, variable->context), count;
    int64_t at = site->base + variable->offset;
    hb_extent x = {.object = object, .at = at, .low = at, .high = at + 8, .width = 8};
    if (hb_stays(h, object)) return false; /* then nobody has looked at who stores to it */
    const hb_use *writes = hb_writes_to(h, object, &count);
    for (uint32_t i = 0; i < count; i++) {
        const hb_touch *t = &h->touches.data[writes[i].touch];
        if (!hb_overlap(&h->extents.data[h->places.data[writes[i].place].extent], &x)) continue;
        if (t->flags & HB_LIBRARY || !hb_stores_zero(h, t)) return false;
    }
    return true;
}

/* The one thread whose handle is in a variable that is its home. */
static bool handle_in(hb *h, const pta_place *variable, join_call *join)
{
    pta_places held = {0};
    hb_holds(h, variable, &held);
    for (uint32_t k = 0; k < held.len && held.len <= MOST_HANDLES; k++)
        add_handle(h, &held.data[k], &join->threads);
    vec_free(&held);
    return join->threads.len == 1 && is_never_moved(h, variable);
}

static void take_destructor(hb *h, join_state *s, join_call join)
{
    pta_places places = {0};
    pta_operand what = h->program->calls.data[join.call->call].args[0];
    if (what.var != PTA_NO_VAR) hb_points_to(h, join.instance, what, &places);
    join.certain = places.len == 1 && places.data[0].exact && handle_in(h, &places.data[0], &join);
    if (join.certain)
        vec_push(&s->joins, join);
    else
        vec_free(&join.threads);
    vec_free(&places);
}

/* The same where a compiler has put it in: a branch to std::terminate, unless the handle is zero. */
static void take_terminate(hb *h, join_state *s, uint32_t instance, const hb_call *call)
{
    static const sync_entry tested = {"", SYNC_JOIN, 0, -1, SYNC_ZERO, true, true, NULL};
    const lift_func *f = hb_instance_code(h, instance);
    const lift_block *end = &f->blocks[hb_block_of(f, call->insn)];
    uint32_t count;
    const pta_access *accesses = pta_accesses(h->program, h->instances[instance].func, &count);
    for (uint32_t p = end->first_pred; p < end->first_pred + end->pred_count; p++) {
        uint32_t block = f->edges[f->preds[p]].from;
        const lift_block *b = &f->blocks[block];
        for (uint32_t e = b->first_succ; b->end_kind == END_BRANCH && e < b->first_succ + b->succ_count; e++) {
            value_condition c;
            if (e == f->preds[p] || !value_test(f->ir, block, f->edges[e].kind == EDGE_TAKEN, &c) || !c.a || c.b) continue;
            if (c.code != VALUE_EQUAL || c.imm || f->ir->insns[c.a].op != IR_LOAD || f->ir->insns[c.a].width != 8) continue;
            const ir_insn *access = &f->ir->insns[f->ir->insns[c.a].a];
            join_call join = {.instance = instance, .call = call, .sync = &tested, .loop = join_loop_of(h, instance, call->insn)};
            pta_places places = {0};
            for (uint32_t a = 0; a < count && !join.certain; a++) {
                if (accesses[a].insn != access->insn || accesses[a].flags != access->flags) continue;
                pta_access_places_in(h->p, instance, &accesses[a], &places);
                join.certain = places.len == 1 && places.data[0].exact && handle_in(h, &places.data[0], &join);
            }
            vec_free(&places);
            vec_push(&join.edges, (hb_edge){instance, block, e, 0});
            if (join.certain) {
                vec_push(&s->joins, join);
                continue;
            }
            vec_free(&join.edges);
            vec_free(&join.threads);
        }
    }
}

static void find_destroyed(hb *h, join_state *s)
{
    if (calls_by_name(h, "_ZNSt6thread6detachEv")) return;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const hb_call *call = &f->calls[c];
            uint32_t func = h->program->calls.data[call->call].func;
            const sync_entry *sync = hb_call_sync(h, i, call);
            if (sync && sync->kind == SYNC_JOIN && sync->shared)
                take_destructor(h, s, (join_call){.instance = i, .call = call, .sync = sync, .loop = join_loop_of(h, i, call->insn)});
            else if (func != PTA_NO_FUNC && !strcmp(h->program->funcs.data[func].name, "_ZSt9terminatev"))
                take_terminate(h, s, i, call);
        }
    }
}

void joins_find(hb *h, join_state *s)
{
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            if (!sync || (sync->kind != SYNC_JOIN && sync->kind != SYNC_JOIN_TASKS && sync->kind != SYNC_JOIN_GROUP && sync->kind != SYNC_JOIN_TEAM &&
                          sync->kind != SYNC_BARRIER && sync->kind != SYNC_DISPATCH) || (sync->kind == SYNC_JOIN && sync->shared))
                continue;
            join_call join = {.instance = i, .call = &f->calls[c], .sync = sync, .loop = join_loop_of(h, i, f->calls[c].insn)};
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
    find_destroyed(h, s);
    s->instances = base_alloc_zero(h->words, sizeof *s->instances);
    for (uint32_t j = 0; j < s->joins.len; j++)
        hb_set(s->instances, s->joins.data[j].instance);
}

bool join_is_only(const hb *h, const join_call *join, uint32_t thread)
{
    const hb_origin *o = &h->origins.data[thread];
    return o->kind == HB_THREAD && join->sync->kind == SYNC_JOIN && join->certain && join->threads.len == 1 && join->threads.data[0] == thread &&
           o->sites.len == 1 && o->twin == HB_NONE && !o->looped && h->once[o->sites.data[0].instance] &&
           !join_loop_of(h, o->sites.data[0].instance, o->sites.data[0].insn);
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
        if (!join_is_only(h, join, thread)) continue;
        if (join->sync->when == SYNC_ALWAYS) vec_push(waits, (hb_point){join->instance, join->call->insn});
        for (uint32_t i = 0; i < join->edges.len; i++)
            vec_push(edges, join->edges.data[i]);
    }
}

void hb_waits_for(const hb *h, uint32_t origin, hb_points *out)
{
    for (uint32_t j = 0; j < h->joins->joins.len; j++) {
        const join_call *join = &h->joins->joins.data[j];
        bool waits = join->certain && !join->sync->shared && join_has_number(&join->threads, origin);
        for (uint32_t i = 0; i < join->threads.len && waits; i++)
            waits = h->origins.data[join->threads.data[i]].entry == h->origins.data[origin].entry;
        if (waits) vec_push(out, (hb_point){join->instance, join->call->insn});
    }
}
