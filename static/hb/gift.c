/* What each thread of a kind has for its own: accesses that look alike but are never to the same bytes.
 *
 * A loop that creates threads gives each a different argument: a fresh object, the next element of an array, or a number that
 * counts (number.c). Bytes that are reached from such an argument alone are those of one thread: the whole of a fresh object, or an
 * element. Whoever creates the threads may prepare an argument before its thread starts. */
#include "static/hb/gift.h"

/* The argument of a call that is the function to be run. */
static ir_value function_argument(const hb *h, const ir_func *ir, const hb_call *call, uint32_t model, uint32_t instance)
{
    for (uint32_t e = h->out_first[model]; e < h->out_first[model + 1]; e++) {
        const pta_call *spawn = &h->program->calls.data[h->edges[e].call];
        if (h->edges[e].callee != instance || spawn->target.var >= 6 || spawn->target.delta) continue;
        return ir->args[ir->insns[call->value].a + IR_CALL_RDI + spawn->target.var];
    }
    return 0;
}

bool hb_from_table(const hb *h, uint32_t origin, hb_point site)
{
    const hb_origin *o = &h->origins.data[origin];
    const lift_func *f = hb_instance_code(h, site.instance);
    const hb_call *call = hb_call_at(h, h->instances[site.instance].func, site.insn);
    uint32_t loop = f->ir->blocks[hb_block_of(f, site.insn)].loop, words = 0;
    if (!loop || f->ir->loops[loop - 1].parent || !h->once[site.instance] || !call || !call->value || o->sites.len != 1) return false;
    ir_value v = value_plain(f->ir, function_argument(h, f->ir, call, o->model, o->instance), 8);
    if (!v || f->ir->insns[v].op != IR_LOAD) return false;
    value_sum address = value_address(f->ir, &f->ir->insns[f->ir->insns[v].a]);
    ir_value counter;
    int64_t step;
    if (!address.known || !count_leaf(f->ir, loop, &address, &counter, &step)) return false;
    for (uint32_t w = 0; w < h->memory.len; w++) { /* wherever it is stored, not only in that table */
        const hb_word *word = &h->memory.data[w];
        uint8_t kind = h->program->sites.data[word->word.site].kind;
        for (uint32_t i = 0; i < word->count && kind != PTA_LIBRARY; i++) {
            const pta_site *held = &h->program->sites.data[h->held.data[word->first + i].site];
            if (held->kind != PTA_FUNCTION || held->func != o->entry) continue;
            if (!word->word.exact) return false;
            words++;
        }
    }
    return words == 1;
}

/* --- gifts ---------------------------------------------------------------------------------------------------------------- */

static bool in_function(const hb *h, uint32_t call, uint32_t func, uint32_t loop, uint32_t *insn)
{
    if (h->program->calls.data[call].caller != func) return false;
    const lift_func *f = hb_code(h, func);
    *insn = h->call_insn[call];
    return f->ir->blocks[hb_block_of(f, *insn)].loop == loop;
}

/* Whether only the thread's argument leads to an object: no word that the thread reads holds its address, but for its own. */
static bool only_by_argument(hb *h, uint32_t origin, uint32_t object)
{
    for (uint32_t w = 0; w < h->memory.len; w++) {
        const hb_word *word = &h->memory.data[w];
        uint32_t holder = hb_object(h, word->word.site, word->word.context);
        if (holder == object) continue;
        bool holds = false;
        for (uint32_t i = 0; i < word->count && !holds; i++) {
            const pta_place *place = &h->held.data[word->first + i];
            const pta_site *site = &h->program->sites.data[place->site];
            holds = site->kind != PTA_FUNCTION && hb_object(h, site->memory, place->context) == object;
        }
        if (!holds) continue;
        if (h->object_list.data[holder].owner == origin) continue; /* its own variables */
        uint8_t kind = h->program->sites.data[word->word.site].kind;
        if (kind == PTA_LIBRARY || kind == PTA_EXTERNAL) {
            if (kind == PTA_EXTERNAL) return false;
            continue;
        }
        hb_extent x = hb_extent_of(h, &word->word, 8, false);
        for (uint32_t t = 0; t < h->touches.len; t++) {
            const hb_touch *touch = &h->touches.data[t];
            if (!(touch->flags & IR_READ) || !hb_bit(h->origins.data[origin].self, touch->instance)) continue;
            for (uint32_t i = 0; i < touch->place_count; i++)
                if (hb_overlap(&h->extents.data[h->places.data[touch->first_place + i].extent], &x)) return false;
        }
    }
    return true;
}

/* Whether a thread may be alive when the loop that creates it is entered once more, and counts from the start again. */
bool gift_counts_again(const hb *h, uint32_t origin, hb_point site, uint32_t loop)
{
    const lift_func *f = hb_instance_code(h, site.instance);
    const lift_block *header = &f->blocks[f->ir->loops[loop - 1].header];
    for (uint32_t p = header->first_pred; p < header->first_pred + header->pred_count; p++) {
        uint32_t from = f->edges[f->preds[p]].from;
        bool inside = false;
        for (uint32_t l = f->ir->blocks[from].loop; l && !inside; l = f->ir->loops[l - 1].parent)
            inside = l == loop;
        const lift_block *b = &f->blocks[from];
        if (!inside && b->insn_count && hb_region_has(&h->lives[origin].live, (hb_point){site.instance, b->first_insn + b->insn_count - 1})) return true;
    }
    return false;
}

static void find_gift(hb *h, uint32_t origin, gift *out)
{
    const hb_origin *o = &h->origins.data[origin];
    bool task = o->by && o->by->kind == SYNC_TASK;
    if ((o->kind != HB_THREAD && !task) || o->sites.len != 1 || o->models.len == 0) return;
    hb_point site = o->sites.data[0];
    const lift_func *f = hb_instance_code(h, site.instance);
    uint32_t func = h->instances[site.instance].func, loop = f->ir->blocks[hb_block_of(f, site.insn)].loop;
    const hb_call *call = hb_call_at(h, func, site.insn);
    const pta_call *spawn = NULL;
    for (uint32_t e = h->out_first[o->model]; e < h->out_first[o->model + 1]; e++)
        if (h->edges[e].callee == o->instance) spawn = &h->program->calls.data[h->edges[e].call];
    if (!spawn || !call || !call->value) return;
    pta_places places = {0};
    for (uint8_t p = 0; p < 4 && out->kind == GIFT_NONE; p++) {
        hb_points_to(h, o->instance, (pta_operand){p, 0}, &places);
        uint32_t object = places.len ? hb_object(h, h->program->sites.data[places.data[0].site].memory, places.data[0].context) : HB_NONE;
        if (places.len == 1 && h->program->sites.data[places.data[0].site].kind == PTA_HEAP && places.data[0].exact) {
            uint32_t calls[PTA_HEAP_CALLS], insn;
            for (uint32_t i = 0, n = pta_heap_calls(h->p, &places.data[0], calls); i < n && out->kind == GIFT_NONE; i++)
                if (in_function(h, calls[i], func, loop, &insn) && ir_dominates(f->ir, hb_block_of(f, insn), hb_block_of(f, site.insn)) &&
                    only_by_argument(h, origin, object))
                    *out = (gift){.kind = GIFT_FRESH, .param = p, .site = site, .object = object};
        }
        unsigned arg = spawn->args[p].var < 6 ? spawn->args[p].var : o->by && o->by->kind == SYNC_CREATE && !p ? (unsigned)o->by->arg : 6;
        if (out->kind == GIFT_FRESH || arg >= 6) continue;
        value_sum sum = value_of(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + arg]);
        if (!sum.known || !loop) continue;
        ir_value counter;
        int64_t step;
        if (!count_leaf(f->ir, loop, &sum, &counter, &step) || gift_counts_again(h, origin, site, loop)) continue;
        *out = (gift){.kind = places.len ? GIFT_ELEMENT : GIFT_NUMBER, .param = p, .site = site, .sum = sum, .counter = counter,
                      .step = step < 0 ? -step : step, .object = object};
        for (uint32_t i = 1; i < places.len; i++) /* elements of one array */
            if (hb_object(h, h->program->sites.data[places.data[i].site].memory, places.data[i].context) != object) out->kind = GIFT_NONE;
        value_sum first, end;
        if (out->kind == GIFT_NUMBER && count_range(f->ir, counter, &first, &end) && end.known && !first.count && !end.count && !first.add)
            out->count = end.add;
    }
    if (out->kind == GIFT_FRESH && call->value) /* its address in the creator */
        for (unsigned p = 0; p < 1 && spawn->args[out->param].var < 6; p++)
            out->sum = value_of(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + spawn->args[out->param].var]);
    vec_free(&places);
}

/* --- where the argument goes ------------------------------------------------------------------------------------------------ */

static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};

int gift_param(const ir_func *ir, ir_value leaf)
{
    for (int i = 0; i < 6; i++)
        if (ir->insns[leaf].op == IR_ENTRY && ir->insns[leaf].var == registers[i]) return i;
    return -1;
}

/* A parameter that in all calls is the thread's argument plus a constant. */
bool gift_is_own(const hb *h, uint32_t instance, int param, int64_t *delta)
{
    uint32_t at = param < 0 ? MAP_NONE : map_get(&h->gifts->own, (uint64_t)instance * 8 + (unsigned)param);
    if (at == MAP_NONE || !at) return false;
    *delta = h->gifts->deltas.data[at - 1];
    return true;
}

/* Greatest: a parameter is own until a call shows that it is not. */
static void spread_own(hb *h, uint32_t origin)
{
    const gift *g = &h->gifts->of[origin];
    const hb_origin *o = &h->origins.data[origin];
    hb_numbers work = {0};
    uint64_t *queued = base_alloc_zero(h->words, sizeof *queued);
    vec_push(&h->gifts->deltas, g->delta);
    *map_at(&h->gifts->own, (uint64_t)o->instance * 8 + g->param) = h->gifts->deltas.len;
    vec_push(&work, o->instance);
    while (work.len) {
        uint32_t caller = work.data[--work.len];
        const lift_func *f = hb_instance_code(h, caller);
        queued[caller / 64] &= ~(1ull << caller % 64);
        if (!f) continue;
        const hb_func *own = &h->funcs[h->instances[caller].func];
        for (uint32_t c = 0; c < own->call_count; c++) {
            uint32_t count, first = hb_callees(h, caller, own->calls[c].call, &count);
            if (!count || !own->calls[c].value) continue;
            for (uint32_t i = 0; i < count; i++) {
                uint32_t callee = h->edges[first + i].callee;
                if (hb_spawns(h, &h->edges[first + i]) || !hb_instance_code(h, callee)) continue;
                for (unsigned a = 0; a < 6; a++) {
                    value_sum sum = value_of(f->ir, f->ir->args[f->ir->insns[own->calls[c].value].a + IR_CALL_RDI + a]);
                    int64_t delta = 0;
                    bool mine = sum.known && sum.count == 1 && sum.terms[0].factor == 1 &&
                                gift_is_own(h, caller, gift_param(f->ir, sum.terms[0].leaf), &delta);
                    uint32_t *at = map_at(&h->gifts->own, (uint64_t)callee * 8 + a), before = *at;
                    if (mine && before == MAP_NONE) {
                        vec_push(&h->gifts->deltas, delta + sum.add);
                        *at = h->gifts->deltas.len;
                    } else if (!mine || (before && before != MAP_NONE && h->gifts->deltas.data[before - 1] != delta + sum.add)) {
                        *at = 0;
                    }
                    if (*at == before || hb_bit(queued, callee)) continue;
                    hb_set(queued, callee);
                    vec_push(&work, callee);
                }
            }
        }
    }
    free(queued);
    vec_free(&work);
}

/* --- handlers ---------------------------------------------------------------------------------------------------------------- */

/* An argument that a thread passes on is its own, plus a constant. */
static bool passes_own(const hb *h, uint32_t instance, const ir_func *ir, ir_value v, int64_t *delta)
{
    value_sum sum = value_of(ir, v);
    if (!v || !sum.known || sum.count != 1 || sum.terms[0].factor != 1) return false;
    if (!gift_is_own(h, instance, gift_param(ir, sum.terms[0].leaf), delta)) return false;
    *delta += sum.add;
    return true;
}

/* Where in what is its own a thread has loaded an argument from. */
static bool loads_own(const hb *h, uint32_t instance, const ir_func *ir, ir_value v, int64_t *at)
{
    v = value_plain(ir, v, 8);
    if (!v || ir->insns[v].op != IR_LOAD) return false;
    const ir_insn *access = &ir->insns[ir->insns[v].a];
    if (!access->a || access->b || !passes_own(h, instance, ir, access->a, at)) return false;
    *at += access->imm + ir->insns[v].imm;
    return true;
}

/* The loops that run a handler are those of the threads that have registered it, each with the base that it has in what is its own. */
static bool has_own_loops(const hb *h, const hb_origin *o, uint32_t thread)
{
    int64_t mine, its;
    const hb_origin *of = &h->origins.data[thread];
    if (!o->placed || !o->carriers.len || o->by->arg < 0 || o->by->arg > 5) return false;
    for (uint32_t i = 0; i < o->carriers.len; i++) {
        if (o->carriers.data[i] != thread && of->twin != o->carriers.data[i]) return false;
        const lift_func *f = hb_instance_code(h, o->at.data[i].instance);
        const hb_call *loop = hb_call_at(h, h->instances[o->at.data[i].instance].func, o->at.data[i].insn);
        const sync_entry *sync = loop && loop->value ? hb_call_sync(h, o->at.data[i].instance, loop) : NULL;
        if (!sync || sync->kind != SYNC_DISPATCH || sync->arg < 0 ||
            !loads_own(h, o->at.data[i].instance, f->ir, f->ir->args[f->ir->insns[loop->value].a + IR_CALL_RDI + (unsigned)sync->arg], &its))
            return false;
        for (uint32_t s = 0; s < o->sites.len; s++) {
            const lift_func *g = hb_instance_code(h, o->sites.data[s].instance);
            const hb_call *call = hb_call_at(h, h->instances[o->sites.data[s].instance].func, o->sites.data[s].insn);
            if (!call || !call->value ||
                !loads_own(h, o->sites.data[s].instance, g->ir, g->ir->args[g->ir->insns[call->value].a + IR_CALL_RDI + (unsigned)o->by->arg], &mine) || mine != its)
                return false;
        }
    }
    return true;
}

/* Threads that run an event loop each: what a thread was given for its own and gives to its handlers is theirs in the same way. They
 * run in that thread, in its loop, so that they exclude it and each other. */
static void inherit_gift(hb *h, uint32_t origin, gift *out)
{
    const hb_origin *o = &h->origins.data[origin];
    if (o->kind != HB_EVENT || !o->by || o->by->kind != SYNC_EVENT || !o->sites.len || !o->parents.len || o->model == HB_NONE) return;
    uint32_t thread = o->parents.data[0];
    const gift *g = &h->gifts->of[thread];
    for (uint32_t i = 1; i < o->parents.len; i++)
        if (o->parents.data[i] != thread && h->origins.data[thread].twin != o->parents.data[i]) return;
    if (h->origins.data[thread].kind != HB_THREAD || (g->kind != GIFT_ELEMENT && g->kind != GIFT_FRESH) || !has_own_loops(h, o, thread)) return;
    const pta_call *spawn = NULL;
    for (uint32_t e = h->out_first[o->model]; e < h->out_first[o->model + 1]; e++)
        if (h->edges[e].callee == o->instance) spawn = &h->program->calls.data[h->edges[e].call];
    for (uint8_t p = 0; spawn && p < 4; p++) {
        int64_t delta = 0, other;
        bool own = spawn->args[p].var < 6;
        for (uint32_t s = 0; s < o->sites.len && own; s++) {
            const lift_func *f = hb_instance_code(h, o->sites.data[s].instance);
            const hb_call *call = hb_call_at(h, h->instances[o->sites.data[s].instance].func, o->sites.data[s].insn);
            own = passes_own(h, o->sites.data[s].instance, f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + spawn->args[p].var], s ? &other : &delta) &&
                  (!s || other == delta);
        }
        if (!own || (g->kind == GIFT_FRESH && !only_by_argument(h, origin, g->object))) continue;
        *out = *g;
        out->param = p;
        out->delta = delta;
        return;
    }
}

static bool is_event_of(const hb *h, uint32_t x, uint32_t y)
{
    const gift *a = &h->gifts->of[x], *b = &h->gifts->of[y];
    bool event = h->origins.data[x].kind == HB_EVENT || h->origins.data[y].kind == HB_EVENT;
    return event && a->kind != GIFT_NONE && a->kind == b->kind && a->object == b->object && a->site.insn == b->site.insn &&
           h->instances[a->site.instance].func == h->instances[b->site.instance].func;
}

void hb_gifts_open(hb *h)
{
    h->gifts = base_alloc_zero(1, sizeof *h->gifts);
    h->gifts->of = base_alloc_zero(h->origins.len, sizeof *h->gifts->of);
    for (uint32_t o = 1; o < h->origins.len; o++) {
        find_gift(h, o, &h->gifts->of[o]);
        if (h->gifts->of[o].kind != GIFT_NONE) spread_own(h, o);
    }
    for (uint32_t o = 1; o < h->origins.len; o++) {
        if (h->gifts->of[o].kind != GIFT_NONE) continue;
        inherit_gift(h, o, &h->gifts->of[o]);
        if (h->gifts->of[o].kind != GIFT_NONE) spread_own(h, o);
    }
}

void hb_gifts_close(hb *h)
{
    if (!h->gifts) return;
    free(h->gifts->of);
    map_free(&h->gifts->own);
    vec_free(&h->gifts->deltas);
    free(h->gifts);
}

/* --- two accesses --------------------------------------------------------------------------------------------------------------- */

/* Bytes of an access relative to the thread's argument. */
static bool own_bytes(const hb *h, const hb_touch *t, int64_t *low, int64_t *high)
{
    const lift_func *f = hb_code(h, t->func);
    int64_t delta;
    if (t->flags & HB_LIBRARY) {
        return false;
    }
    if (!t->ir || f->ir->insns[t->ir].op != IR_ACCESS) return false;
    value_sum sum = value_address(f->ir, &f->ir->insns[t->ir]);
    if (!sum.known || !sum.count || sum.terms[0].factor != 1) return false;
    *low = *high = sum.add;
    for (uint32_t i = 0; i < sum.count; i++) { /* loops between constants over members that are arrays */
        value_sum first, end;
        if (gift_param(f->ir, sum.terms[i].leaf) >= 0 && gift_is_own(h, t->instance, gift_param(f->ir, sum.terms[i].leaf), &delta)) continue;
        if (!count_range(f->ir, sum.terms[i].leaf, &first, &end) || first.count || !end.known || end.count || sum.terms[i].factor < 0) return false;
        *low += sum.terms[i].factor * first.add;
        *high += sum.terms[i].factor * (end.add > first.add ? end.add - 1 : first.add);
    }
    for (uint32_t i = 0; i < sum.count; i++)
        if (gift_param(f->ir, sum.terms[i].leaf) >= 0 && gift_is_own(h, t->instance, gift_param(f->ir, sum.terms[i].leaf), &delta)) {
            *low += delta;
            *high += delta + t->width;
            return true;
        }
    return false;
}

/* The access is to what this thread alone was given. */
static bool is_given(const hb *h, uint32_t origin, const hb_touch *t, const hb_place *p)
{
    const gift *g = &h->gifts->of[origin];
    int64_t low, high;
    uint32_t object = h->extents.data[p->extent].object;
    if (g->kind == GIFT_FRESH) return object == g->object;
    if (g->kind != GIFT_ELEMENT || object != g->object) return false;
    return own_bytes(h, t, &low, &high) && low >= 0 && high <= g->step;
}

/* The creator prepares the argument of a thread that does not run yet. */
static bool is_prepared(const hb *h, const gift *g, const hb_touch *t, const hb_place *p)
{
    const lift_func *f = hb_code(h, t->func);
    if (t->instance != g->site.instance || t->flags & HB_LIBRARY || !t->ir || f->ir->insns[t->ir].op != IR_ACCESS) return false;
    uint32_t from = hb_block_of(f, t->insn), to = hb_block_of(f, g->site.insn);
    uint32_t loop = f->ir->blocks[to].loop;
    bool before = from == to ? t->insn < g->site.insn : ir_dominates(f->ir, from, to);
    if (!before || f->ir->blocks[from].loop != loop) return false;
    value_sum sum = value_address(f->ir, &f->ir->insns[t->ir]);
    if (g->kind == GIFT_FRESH) return h->extents.data[p->extent].object == g->object;
    if (g->kind != GIFT_ELEMENT || h->extents.data[p->extent].object != g->object) return false;
    int64_t at = sum.add - g->sum.add;
    return value_same_terms(&sum, &g->sum) && at >= 0 && at + t->width <= g->step;
}

static bool is_creator(const hb *h, uint32_t creator, uint32_t of)
{
    for (uint32_t i = 0; i < h->origins.data[of].parents.len; i++)
        if (h->origins.data[of].parents.data[i] == creator) return true;
    return false;
}

bool hb_gifts_apart(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb)
{
    const hb_origin *ox = &h->origins.data[x];
    if (x == y || ox->twin == y) {
        if (is_given(h, x, a, pa) && is_given(h, y, b, pb)) return true;
        return hb_numbers_apart(h, x, a, y, b);
    }
    if (ox->model == h->origins.data[y].model && ox->model != HB_NONE && is_given(h, x, a, pa) && is_given(h, y, b, pb))
        return true; /* the work and what is done after it, of one request */
    if (is_event_of(h, x, y) && is_given(h, x, a, pa) && is_given(h, y, b, pb)) return true;
    if (hb_constants_apart(h, x, a, y, b)) return true;
    if (is_creator(h, x, y)) return (is_given(h, y, b, pb) && is_prepared(h, &h->gifts->of[y], a, pa)) || hb_numbers_joined(h, x, a, y, b);
    if (is_creator(h, y, x)) return (is_given(h, x, a, pa) && is_prepared(h, &h->gifts->of[x], b, pb)) || hb_numbers_joined(h, y, b, x, a);
    return false;
}
