/* What each thread of a kind has for its own: accesses that look alike but are never to the same bytes.
 *
 * A loop that creates threads gives each a different argument: a fresh object, the next element of an array, or a number that
 * counts. Bytes that are reached from such an argument alone are those of one thread: the whole of a fresh object; an element; the
 * stretch `base + size * number` of an array, and loops from `number * chunk` to `number * chunk + chunk`. OpenMP numbers its threads
 * itself and hands out iterations. Whoever creates the threads may prepare an argument before its thread starts. */
#include "static/hb/private.h"
#include "static/hb/value.h"

typedef enum { GIFT_NONE, GIFT_FRESH, GIFT_ELEMENT, GIFT_NUMBER } gift_kind;

typedef struct { /* what the creator passes as one parameter */
    uint8_t kind;
    uint8_t param;    /* of the thread's entry */
    hb_point site;    /* of the creation */
    value_sum sum;    /* in the creator */
    ir_value counter; /* GIFT_ELEMENT, GIFT_NUMBER: the leaf that counts */
    int64_t step;     /* bytes, or numbers, between two threads */
    int64_t count;    /* GIFT_NUMBER: the numbers are below this; 0: not known */
    uint32_t object;  /* GIFT_FRESH, GIFT_ELEMENT */
} gift;

typedef struct { /* factor * number + [low, high) + other leaves that are the same in all threads */
    bool known;
    bool shared_out; /* the number is an iteration that OpenMP hands out */
    int64_t modulo;  /* the bytes come again each so many; 0: not */
    int64_t factor, low, high;
    ir_value others[VALUE_TERMS];
    int64_t other_factors[VALUE_TERMS];
    uint32_t other_count;
    int64_t base; /* constant part, if it has other leaves or is an address */
} numbered;

struct hb_gifts {
    gift *of; /* per origin: of its first parameter that is one */
    map64 numbers; /* origin and access: in `numbered` */
    VEC(numbered) numbered;
    map64 own; /* instance * 8 + parameter: number in deltas + 1, 0: not the thread's own */
    VEC(int64_t) deltas;
};

/* --- counters ------------------------------------------------------------------------------------------------------------ */

/* A phi of the innermost loop around a block that grows by a constant each time round. */
static bool is_counter(const ir_func *ir, uint32_t loop, ir_value v, int64_t *step)
{
    const ir_insn *phi = &ir->insns[v];
    if (phi->op != IR_PHI || !loop) return false;
    uint32_t header = ir->loops[loop - 1].header;
    if (v < ir->blocks[header].first || v >= ir->blocks[header].first + ir->blocks[header].count) return false;
    bool found = false;
    for (uint32_t i = 0; i < phi->b; i++) {
        ir_value arg = ir->args[phi->a + i];
        const ir_insn *next = &ir->insns[value_plain(ir, arg, 4)];
        if (next->op == IR_LEA && !next->b && next->a && value_plain(ir, next->a, 4) == v && next->imm) {
            if (found && *step != next->imm) return false;
            *step = next->imm;
            found = true;
        } else if (value_plain(ir, arg, 4) == v) {
            return false;
        }
    }
    return found;
}

/* The only leaf of a sum that counts in a loop; the others do not change in it. */
static bool find_counter(const ir_func *ir, uint32_t loop, const value_sum *sum, ir_value *counter, int64_t *step)
{
    bool found = false;
    for (uint32_t i = 0; i < sum->count; i++) {
        int64_t by;
        ir_value leaf = sum->terms[i].leaf;
        if (is_counter(ir, loop, leaf, &by)) {
            if (found) return false;
            found = true;
            *counter = leaf;
            *step = by * sum->terms[i].factor;
        } else if (ir->insns[leaf].op == IR_PHI || ir->insns[leaf].op == IR_LOAD) {
            const ir_loop *l = &ir->loops[loop - 1];
            for (uint32_t b = 0; b < l->block_count; b++) {
                const ir_block *block = &ir->blocks[ir->loop_blocks[l->first_block + b]];
                if (leaf >= block->first && leaf < block->first + block->count && ir->insns[leaf].op == IR_PHI) return false;
            }
        }
    }
    return found;
}

/* The numbers that a phi of a loop goes through, by what it starts from and what it is compared with: [first, end). False: it does
 * not count up from one sum. `end` may not be known. */
static bool loop_range(const ir_func *ir, ir_value phi, value_sum *first, value_sum *end)
{
    const ir_insn *insn = &ir->insns[phi];
    bool has_first = false;
    uint32_t l = 1;
    int64_t step = 0;
    if (insn->op != IR_PHI) return false;
    while (l <= ir->loop_count && !is_counter(ir, l, phi, &step))
        l++;
    if (l > ir->loop_count || step <= 0) return false;
    for (uint32_t i = 0; i < insn->b; i++) {
        const ir_insn *next = &ir->insns[value_plain(ir, ir->args[insn->a + i], 4)];
        if (next->op == IR_LEA && !next->b && next->a && value_plain(ir, next->a, 4) == phi) continue;
        if (has_first) return false;
        *first = value_of(ir, ir->args[insn->a + i]);
        has_first = true;
    }
    *end = (value_sum){0};
    const ir_loop *loop = &ir->loops[l - 1];
    for (uint32_t b = 0; has_first && b < loop->block_count && !end->known; b++) {
        value_condition c;
        uint32_t block = ir->loop_blocks[loop->first_block + b];
        if (!value_test(ir, block, true, &c) || !c.a) continue;
        value_sum a = value_of(ir, c.a), z = c.b ? value_of(ir, c.b) : (value_sum){.known = true, .add = c.imm};
        if (!a.known || a.count != 1 || a.terms[0].leaf != phi || a.terms[0].factor != 1 || (a.add && a.add != step)) continue;
        *end = z;
        bool included = c.code == 14 || c.code == 15 || c.code == 6 || c.code == 7;
        bool behind = !a.add && (block != loop->header || loop->block_count == 1); /* the body has run when it is compared */
        end->add += (included ? step : 0) + (behind ? step : 0);
    }
    return has_first && first->known;
}

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
    if (!address.known || !find_counter(f->ir, loop, &address, &counter, &step)) return false;
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
        if (!find_counter(f->ir, loop, &sum, &counter, &step)) continue;
        *out = (gift){.kind = places.len ? GIFT_ELEMENT : GIFT_NUMBER, .param = p, .site = site, .sum = sum, .counter = counter,
                      .step = step < 0 ? -step : step, .object = object};
        for (uint32_t i = 1; i < places.len; i++) /* elements of one array */
            if (hb_object(h, h->program->sites.data[places.data[i].site].memory, places.data[i].context) != object) out->kind = GIFT_NONE;
        value_sum first, end;
        if (out->kind == GIFT_NUMBER && loop_range(f->ir, counter, &first, &end) && end.known && !first.count && !end.count && !first.add)
            out->count = end.add;
    }
    if (out->kind == GIFT_FRESH && call->value) /* its address in the creator */
        for (unsigned p = 0; p < 1 && spawn->args[out->param].var < 6; p++)
            out->sum = value_of(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + spawn->args[out->param].var]);
    vec_free(&places);
}

/* --- where the argument goes ------------------------------------------------------------------------------------------------ */

static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};

static int entry_param(const ir_func *ir, ir_value leaf)
{
    for (int i = 0; i < 6; i++)
        if (ir->insns[leaf].op == IR_ENTRY && ir->insns[leaf].var == registers[i]) return i;
    return -1;
}

/* A parameter that in all calls is the thread's argument plus a constant. */
static bool is_own(const hb *h, uint32_t instance, int param, int64_t *delta)
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
    vec_push(&h->gifts->deltas, 0);
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
                                is_own(h, caller, entry_param(f->ir, sum.terms[0].leaf), &delta);
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

void hb_gifts_open(hb *h)
{
    h->gifts = base_alloc_zero(1, sizeof *h->gifts);
    h->gifts->of = base_alloc_zero(h->origins.len, sizeof *h->gifts->of);
    for (uint32_t o = 1; o < h->origins.len; o++) {
        find_gift(h, o, &h->gifts->of[o]);
        if (h->gifts->of[o].kind != GIFT_NONE) spread_own(h, o);
    }
}

void hb_gifts_close(hb *h)
{
    if (!h->gifts) return;
    free(h->gifts->of);
    map_free(&h->gifts->own);
    map_free(&h->gifts->numbers);
    vec_free(&h->gifts->numbered);
    vec_free(&h->gifts->deltas);
    free(h->gifts);
}

/* --- addresses by number ------------------------------------------------------------------------------------------------------ */

static const char *callee_name(const hb *h, const hb_call *call)
{
    uint32_t func = h->program->calls.data[call->call].func;
    return func == PTA_NO_FUNC ? "" : h->program->funcs.data[func].name;
}

/* The argument that points to where the first iteration is left, or -1. */
static int lower_argument(const char *name)
{
    if (!strncmp(name, "__kmpc_for_static_init_", 23)) return 4;
    if (!strncmp(name, "__kmpc_dispatch_next_", 21)) return 3;
    if (strncmp(name, "GOMP_loop_", 10)) return -1;
    if (strstr(name, "_next")) return 0;
    if (!strstr(name, "_start")) return -1;
    return 4 - !!strstr(name, "runtime") + !!strstr(name, "_ull_");
}

/* A load of the first iteration that was handed out to this thread. */
static bool is_handed_out(const hb *h, uint32_t func, const ir_func *ir, ir_value v)
{
    const ir_insn *load = &ir->insns[v];
    int32_t at, given;
    uint8_t base, other;
    if (load->op != IR_LOAD) return false;
    const ir_insn *access = &ir->insns[load->a];
    if (access->b || !access->a || !ir_frame_offset(ir, access->a, &at, &base)) return false;
    for (uint32_t c = 0; c < h->funcs[func].call_count; c++) {
        const hb_call *call = &h->funcs[func].calls[c];
        int arg = lower_argument(callee_name(h, call));
        if (arg < 0 || !call->value) continue;
        ir_value pointer = ir->args[ir->insns[call->value].a + IR_CALL_RDI + arg];
        if (pointer && ir_frame_offset(ir, pointer, &given, &other) && other == base && given == at + access->imm) return true;
    }
    return false;
}

static bool is_thread_number(const hb *h, uint32_t func, const ir_func *ir, ir_value v)
{
    const ir_insn *insn = &ir->insns[v];
    if (insn->op != IR_RESULT || insn->var != IR_RAX) return false;
    const hb_call *call = hb_call_at(h, func, ir->insns[insn->a].insn);
    return call && call->sync && call->sync->kind == SYNC_NUMBER;
}

/* Whether a value is computed from the number of the thread in its team, by multiplication. */
static bool from_thread_number(const hb *h, uint32_t func, const ir_func *ir, ir_value v, bool times, unsigned depth)
{
    if (!v || depth > 10) return false;
    v = value_plain(ir, v, 4);
    const ir_insn *insn = &ir->insns[v];
    if (is_thread_number(h, func, ir, v)) return times;
    switch (insn->op) {
    case IR_MUL: case IR_SHL: times = true; /* fall through */
    case IR_LEA: case IR_SUB:
        return from_thread_number(h, func, ir, insn->a, times, depth + 1) || from_thread_number(h, func, ir, insn->b, times, depth + 1);
    default: return false;
    }
}

/* The thread's own number: its argument, or a word of its own object that was filled with what counted. */
static bool is_number(const hb *h, uint32_t origin, uint32_t instance, const ir_func *ir, ir_value leaf, int64_t *step)
{
    const gift *g = &h->gifts->of[origin];
    int64_t delta;
    if (g->kind == GIFT_NUMBER && is_own(h, instance, entry_param(ir, leaf), &delta) && !delta) {
        *step = g->step;
        return true;
    }
    if (is_thread_number(h, h->instances[instance].func, ir, leaf)) return *step = 1, true;
    const ir_insn *load = &ir->insns[leaf];
    if ((g->kind != GIFT_ELEMENT && g->kind != GIFT_FRESH) || load->op != IR_LOAD) return false;
    value_sum address = value_address(ir, &ir->insns[load->a]);
    if (!address.known || address.count != 1 || address.terms[0].factor != 1 ||
        !is_own(h, instance, entry_param(ir, address.terms[0].leaf), &delta))
        return false;
    /* Who fills that word? Only the loop that creates, with something that counts. */
    int64_t field = address.add + delta + load->imm;
    const lift_func *creator = hb_instance_code(h, g->site.instance);
    uint32_t func = h->instances[g->site.instance].func, loop = creator->ir->blocks[hb_block_of(creator, g->site.insn)].loop;
    bool found = false;
    for (uint32_t t = 0; t < h->touches.len; t++) {
        const hb_touch *touch = &h->touches.data[t];
        if (!(touch->flags & IR_WRITE)) continue;
        bool meets = false;
        for (uint32_t i = 0; i < touch->place_count && !meets; i++) {
            const hb_extent *x = &h->extents.data[h->places.data[touch->first_place + i].extent];
            if (x->object != g->object) continue;
            int64_t stride = g->kind == GIFT_ELEMENT ? g->step : 0, d = field - x->at;
            if (x->stride) stride = stride ? stride : (int64_t)x->stride;
            if (stride) d = ((d % stride) + stride) % stride;
            meets = x->stride == 1 || (d < (int64_t)x->width && d > -(int64_t)load->width) || (stride && stride - d < (int64_t)load->width);
        }
        if (!meets) continue;
        if (touch->func != func || touch->flags & HB_LIBRARY || !touch->ir) return false;
        bool counts = false;
        for (ir_value v = touch->ir + 1; v < creator->ir->insn_count && creator->ir->insns[v].insn == touch->insn; v++) {
            if (creator->ir->insns[v].op != IR_STORE || creator->ir->insns[v].a != touch->ir) continue;
            value_sum stored = value_of(creator->ir, creator->ir->insns[v].b);
            ir_value counter;
            counts = stored.known && find_counter(creator->ir, loop, &stored, &counter, step);
        }
        if (!counts) return false;
        found = true;
    }
    if (*step < 0) *step = -*step;
    return found && *step;
}

static int64_t loop_step(const ir_func *ir, ir_value phi)
{
    int64_t step = 0;
    for (uint32_t l = 1; l <= ir->loop_count; l++)
        if (is_counter(ir, l, phi, &step)) return step;
    return 0;
}

static int64_t factor_of(const value_sum *s, ir_value leaf)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->terms[i].leaf == leaf) return s->terms[i].factor;
    return 0;
}

/* A leaf that is the same value in all threads of a team: the address of what they share, and what is loaded from there. */
static bool is_common(const hb *h, uint32_t origin, const ir_func *ir, ir_value leaf, unsigned depth)
{
    const hb_origin *o = &h->origins.data[origin];
    const ir_insn *insn = &ir->insns[leaf];
    bool team = o->by && o->by->kind == SYNC_TEAM;
    if (insn->op == IR_ENTRY) return team && entry_param(ir, leaf) >= 0;
    if (insn->op != IR_LOAD || depth > 3) return false;
    value_sum address = value_address(ir, &ir->insns[insn->a]);
    if (!address.known) return false;
    for (uint32_t i = 0; i < address.count; i++)
        if (!is_common(h, origin, ir, address.terms[i].leaf, depth + 1)) return false;
    return true;
}

/* What else the first iteration is a sum of: the rest of a division, which is each thread's own, and addresses that all share. */
static bool add_others(const hb *h, uint32_t origin, const ir_func *ir, const value_sum *first, ir_value but, int64_t by, numbered *n)
{
    for (uint32_t i = 0; i < first->count; i++) {
        ir_value leaf = first->terms[i].leaf;
        if (leaf == but || ir->insns[leaf].op == IR_PHI || ir->insns[leaf].op == IR_OPAQUE || ir->insns[leaf].op == IR_SELECT) continue;
        if (!is_common(h, origin, ir, leaf, 0) || n->other_count == VALUE_TERMS) return false;
        n->others[n->other_count] = leaf;
        n->other_factors[n->other_count++] = by * first->terms[i].factor;
    }
    return true;
}

static numbered make_number(const hb *h, uint32_t origin, const hb_touch *t)
{
    numbered n = {0};
    const lift_func *f = hb_code(h, t->func);
    if (t->flags & HB_LIBRARY || !t->ir || f->ir->insns[t->ir].op != IR_ACCESS || f->ir->insns[t->ir].flags & (IR_WIDE | IR_REP)) return n;
    value_sum sum = value_address(f->ir, &f->ir->insns[t->ir]);
    if (!sum.known) return n;
    n.base = sum.add;
    n.high = t->width;
    bool found = false;
    for (uint32_t i = 0; i < sum.count; i++) {
        ir_value leaf = sum.terms[i].leaf;
        int64_t by = sum.terms[i].factor, step;
        value_sum first, end;
        if (is_number(h, origin, t->instance, f->ir, leaf, &step)) {
            if (found) return n;
            found = true;
            n.factor = (by < 0 ? -by : by) * step;
            continue;
        }
        if (f->ir->insns[leaf].op == IR_PHI && loop_range(f->ir, leaf, &first, &end) && by > 0) {
            bool from_number = false;
            if (!first.count && end.known && !end.count && first.add < end.add) { /* a loop between constants */
                n.low += by * first.add;
                n.high += by * (end.add - 1);
                continue;
            }
            for (uint32_t k = 0; k < first.count && !found; k++) {
                ir_value of = first.terms[k].leaf;
                bool chunked = f->ir->insns[of].op == IR_MUL && f->ir->insns[of].b && first.terms[k].factor == 1;
                int64_t stride = loop_step(f->ir, leaf);
                if (stride > 1 && first.count == 1 && !first.add && first.terms[k].factor == 1 && h->gifts->of[origin].count &&
                    h->gifts->of[origin].count <= stride && is_number(h, origin, t->instance, f->ir, of, &step) && step == 1) {
                    from_number = found = true; /* every n-th, from the number on */
                    n.factor = by;
                    n.modulo = by * stride;
                } else if (is_handed_out(h, t->func, f->ir, of) || from_thread_number(h, t->func, f->ir, of, false, 0)) {
                    /* iterations of this thread alone, however many a vector takes at once */
                    from_number = found = n.shared_out = first.terms[k].factor > 0;
                    n.factor = by * first.terms[k].factor;
                    n.base += by * first.add;
                    if (n.high > n.factor) n.high = n.factor;
                    if (!add_others(h, origin, f->ir, &first, of, by, &n)) return n;
                } else if (is_number(h, origin, t->instance, f->ir, of, &step) && first.count == 1 && end.known && end.count == 1 &&
                           end.terms[0].leaf == of && end.terms[0].factor == first.terms[k].factor &&
                           end.add - first.add <= first.terms[k].factor * step && end.add > first.add) {
                    from_number = found = true;
                    n.factor = by * first.terms[k].factor * step;
                    n.low += by * first.add;
                    n.high += by * (end.add - 1);
                } else if (chunked && first.count == 1 && !first.add && end.known && !end.add) { /* from number * chunk to number * chunk + chunk */
                    ir_value a = value_plain(f->ir, f->ir->insns[of].a, 4), b = value_plain(f->ir, f->ir->insns[of].b, 4);
                    bool an = is_number(h, origin, t->instance, f->ir, a, &step), bn = !an && is_number(h, origin, t->instance, f->ir, b, &step);
                    ir_value chunk = an ? b : a;
                    if ((an || bn) && end.count == 2 && factor_of(&end, of) == 1 && factor_of(&end, chunk) == 1) {
                        from_number = found = n.shared_out = true;
                        n.factor = by;
                    }
                }
            }
            if (from_number) continue;
        }
        if (!is_common(h, origin, f->ir, leaf, 0)) return n;
        n.others[n.other_count] = leaf;
        n.other_factors[n.other_count++] = by;
    }
    n.known = found && n.factor > 0;
    return n;
}

static numbered number_of(hb *h, uint32_t origin, const hb_touch *t)
{
    uint32_t *at = map_at(&h->gifts->numbers, (uint64_t)origin << 32 | (uint64_t)(t - h->touches.data));
    if (*at == MAP_NONE) {
        *at = h->gifts->numbered.len;
        vec_push(&h->gifts->numbered, make_number(h, origin, t));
    }
    return h->gifts->numbered.data[*at];
}

static bool numbers_apart(const hb_touch *a, const numbered *x, const hb_touch *b, const numbered *y)
{
    if (!x->known || !y->known || x->factor != y->factor || x->shared_out != y->shared_out || x->modulo != y->modulo || x->other_count != y->other_count) return false;
    if (x->other_count && a->func != b->func) return false;
    for (uint32_t i = 0; i < x->other_count; i++)
        if (x->others[i] != y->others[i] || x->other_factors[i] != y->other_factors[i]) return false;
    int64_t xl = x->base + x->low, yl = y->base + y->low, xh = x->base + x->high, yh = y->base + y->high;
    int64_t low = xl < yl ? xl : yl, high = xh > yh ? xh : yh;
    return high - low <= x->factor;
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
        if (entry_param(f->ir, sum.terms[i].leaf) >= 0 && is_own(h, t->instance, entry_param(f->ir, sum.terms[i].leaf), &delta)) continue;
        if (!loop_range(f->ir, sum.terms[i].leaf, &first, &end) || first.count || !end.known || end.count || sum.terms[i].factor < 0) return false;
        *low += sum.terms[i].factor * first.add;
        *high += sum.terms[i].factor * (end.add > first.add ? end.add - 1 : first.add);
    }
    for (uint32_t i = 0; i < sum.count; i++)
        if (entry_param(f->ir, sum.terms[i].leaf) >= 0 && is_own(h, t->instance, entry_param(f->ir, sum.terms[i].leaf), &delta)) {
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
        numbered na = number_of(h, x, a), nb = number_of(h, y, b);
        return numbers_apart(a, &na, b, &nb);
    }
    if (ox->model == h->origins.data[y].model && ox->model != HB_NONE && is_given(h, x, a, pa) && is_given(h, y, b, pb))
        return true; /* the work and what is done after it, of one request */
    if (is_creator(h, x, y)) return is_given(h, y, b, pb) && is_prepared(h, &h->gifts->of[y], a, pa);
    if (is_creator(h, y, x)) return is_given(h, x, a, pa) && is_prepared(h, &h->gifts->of[x], b, pb);
    return false;
}
