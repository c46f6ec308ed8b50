/* What each thread of a kind has by its number: bytes `base + size * number`, and loops from `number * chunk` to `number * chunk +
 * chunk`. The number is the argument that a loop of creations counts, a word of an own object that was filled with it, what OpenMP
 * numbers its threads with, an iteration that OpenMP hands out, or a ticket: what an atomic increment has found, which nobody
 * else finds. Two accesses whose numbers come from one such source are to different bytes in different threads when all bytes that
 * belong to a number lie within the distance of two of them.
 *
 * Addresses are followed through parameters to the one call that passes them, into library functions that are told how many
 * bytes they may touch, and into the comparison that qsort calls. Code that only runs for one number (`if (me == 0)`, a case of a
 * switch) is never run by two threads. */
#include <Zydis/Zydis.h>

#include "static/hb/gift.h"

enum { TERMS = 4, DEPTH = 5, MOST_THREADS = 64 };

typedef struct {
    uint32_t instance;
    ir_value leaf;
    int64_t factor;
} part_term;

typedef struct { /* as value_sum, with leaves of several functions */
    bool known;
    uint32_t count;
    part_term terms[TERMS];
    int64_t add;
    int64_t span; /* and somewhere in so many bytes from there on; 0: just there */
} part_sum;

typedef struct { /* factor * number + [low, high) + others, which are the same in all threads */
    bool known;
    bool fixed;     /* no number at all: the same bytes each time */
    uint64_t space; /* whose numbers these are; 0: of threads */
    int64_t modulo; /* the bytes come again each so many; 0: not */
    int64_t each, wide; /* of fixed ones: `wide` bytes from the lowest on, and again each so many; 0: all of them */
    int64_t factor, low, high, base;
    part_term others[TERMS];
    uint32_t other_count;
} numbered;

typedef struct { /* numbers of the threads that may come here */
    bool never;
    bool bounded;
    uint64_t mask;
} number_set;

struct hb_numbering {
    map64 numbers; /* origin and access: in `numbered` */
    VEC(numbered) numbered;
    map64 entries; /* origin and instance: in `masks` */
    map64 sets;    /* origin and access: in `masks` */
    VEC(number_set) masks;
};

void hb_numbers_open(hb *h)
{
    h->numbering = base_alloc_zero(1, sizeof *h->numbering);
}

void hb_numbers_close(hb *h)
{
    if (!h->numbering) return;
    map_free(&h->numbering->numbers);
    map_free(&h->numbering->entries);
    map_free(&h->numbering->sets);
    vec_free(&h->numbering->numbered);
    vec_free(&h->numbering->masks);
    free(h->numbering);
}

static const ir_func *code_of(const hb *h, uint32_t instance)
{
    return hb_instance_code(h, instance)->ir;
}

static const char *callee_name(const hb *h, const hb_call *call)
{
    uint32_t func = h->program->calls.data[call->call].func;
    return func == PTA_NO_FUNC ? "" : h->program->funcs.data[func].name;
}

/* --- through parameters ------------------------------------------------------------------------------------------------------- */

/* The next call, from *at on, by which an origin comes to an instance; NULL: no more. */
static const pta_call_edge *next_caller(const hb *h, uint32_t origin, uint32_t instance, uint32_t *at)
{
    for (uint32_t i = h->in_first[instance] + *at; i < h->in_first[instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        if (!hb_bit(h->origins.data[origin].self, e->caller)) continue;
        *at = i + 1 - h->in_first[instance];
        return e;
    }
    return NULL;
}

static void add_term(part_sum *s, part_term t)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->terms[i].instance == t.instance && s->terms[i].leaf == t.leaf) {
            s->terms[i].factor += t.factor;
            if (!s->terms[i].factor) s->terms[i] = s->terms[--s->count];
            return;
        }
    if (s->count == TERMS)
        s->known = false;
    else
        s->terms[s->count++] = t;
}

static ir_value call_argument(const ir_func *ir, const hb_call *call, unsigned arg)
{
    return ir->args[ir->insns[call->value].a + IR_CALL_RDI + arg];
}

static int64_t constant(const ir_func *ir, ir_value v)
{
    value_sum s = value_of(ir, v);
    return v && s.known && !s.count ? s.add : -1;
}

/* What a thread that is created alone is given, if that is a constant. */
static bool given_constant(const hb *h, uint32_t origin, int param, int64_t *value)
{
    const hb_origin *o = &h->origins.data[origin];
    if (o->kind != HB_THREAD || o->sites.len != 1 || param != 0 || !o->by || o->by->kind != SYNC_CREATE) return false;
    const lift_func *f = hb_instance_code(h, o->sites.data[0].instance);
    const hb_call *call = hb_call_at(h, h->instances[o->sites.data[0].instance].func, o->sites.data[0].insn);
    if (!f || !call || !call->value || hb_call_sync(h, o->sites.data[0].instance, call) != o->by) return false;
    value_sum s = value_of(f->ir, call_argument(f->ir, call, (unsigned)o->by->arg));
    *value = s.add;
    return s.known && !s.count;
}

static void expand(const hb *h, uint32_t origin, uint32_t instance, const value_sum *v, int64_t by, part_sum *out, unsigned depth);

static bool same_sum(const part_sum *a, const part_sum *b)
{
    bool same = a->known && b->known && a->count == b->count && a->add == b->add && a->span == b->span;
    for (uint32_t i = 0; i < a->count && same; i++)
        same = a->terms[i].instance == b->terms[i].instance && a->terms[i].leaf == b->terms[i].leaf && a->terms[i].factor == b->terms[i].factor;
    return same;
}

/* What one call passes. */
static bool passed_by(const hb *h, uint32_t origin, const pta_call_edge *e, int param, part_sum *out, unsigned depth)
{
    uint32_t at = 0;
    *out = (part_sum){.known = true};
    if (hb_spawns(h, e)) return false;
    bool sorts = !hb_instance_code(h, e->caller) && !strcmp(h->program->funcs.data[h->instances[e->caller].func].name, "qsort");
    if (sorts) {
        const pta_call_edge *outer = next_caller(h, origin, e->caller, &at);
        if (!outer || next_caller(h, origin, e->caller, &at)) return false;
        e = outer;
    }
    if (!hb_instance_code(h, e->caller)) return false;
    const ir_func *ir = code_of(h, e->caller);
    const hb_call *call = hb_call_at(h, h->instances[e->caller].func, h->call_insn[e->call]);
    if (!call || !call->value) return false;
    value_sum passed = value_of(ir, call_argument(ir, call, sorts ? 0 : (unsigned)param));
    expand(h, origin, e->caller, &passed, 1, out, depth + 1);
    if (sorts) { /* what is compared lies in what is sorted */
        int64_t count = constant(ir, call_argument(ir, call, 1)), size = constant(ir, call_argument(ir, call, 2));
        out->known &= count > 0 && size > 0 && count < INT32_MAX && size < INT32_MAX && !out->span;
        out->span = count * size;
    }
    return out->known;
}

/* What a parameter is in all calls. */
static bool passed(const hb *h, uint32_t origin, uint32_t instance, int param, part_sum *out, unsigned depth)
{
    uint32_t at = 0, calls = 0;
    if (param < 0 || depth >= DEPTH || instance == h->origins.data[origin].instance) return false;
    for (const pta_call_edge *e; (e = next_caller(h, origin, instance, &at)); calls++) {
        part_sum one;
        if (!passed_by(h, origin, e, param, calls ? &one : out, depth) || (calls && !same_sum(out, &one))) return false;
    }
    return calls > 0;
}

static void expand(const hb *h, uint32_t origin, uint32_t instance, const value_sum *v, int64_t by, part_sum *out, unsigned depth)
{
    out->known &= v->known;
    out->add += by * v->add;
    for (uint32_t i = 0; i < v->count && out->known; i++) {
        part_term t = {instance, v->terms[i].leaf, by * v->terms[i].factor};
        int param = gift_param(code_of(h, instance), t.leaf);
        int64_t value;
        part_sum inner;
        if (instance == h->origins.data[origin].instance && given_constant(h, origin, param, &value)) {
            out->add += t.factor * value;
        } else if (passed(h, origin, instance, param, &inner, depth)) {
            out->add += t.factor * inner.add;
            out->known &= !inner.span || (t.factor == 1 && !out->span);
            if (inner.span) out->span = inner.span;
            for (uint32_t k = 0; k < inner.count; k++)
                add_term(out, (part_term){inner.terms[k].instance, inner.terms[k].leaf, t.factor * inner.terms[k].factor});
        } else {
            add_term(out, t);
        }
    }
}

/* --- whose number ---------------------------------------------------------------------------------------------------------------- */

static bool is_thread_number(const hb *h, uint32_t func, const ir_func *ir, ir_value v)
{
    const ir_insn *insn = &ir->insns[v];
    if (insn->op != IR_RESULT || insn->var != IR_RAX) return false;
    const hb_call *call = hb_call_at(h, func, ir->insns[insn->a].insn);
    return call && call->sync && call->sync->kind == SYNC_NUMBER;
}

/* The thread's own number: its argument, or a word of its own object that was filled with what counted. */
static bool is_number(const hb *h, uint32_t origin, uint32_t instance, ir_value leaf, int64_t *step)
{
    const gift *g = &h->gifts->of[origin];
    const ir_func *ir = code_of(h, instance);
    int64_t delta;
    if (g->kind == GIFT_NUMBER && gift_is_own(h, instance, gift_param(ir, leaf), &delta) && !delta) {
        *step = g->step;
        return true;
    }
    if (is_thread_number(h, h->instances[instance].func, ir, leaf)) return *step = 1, true;
    const ir_insn *load = &ir->insns[leaf];
    if ((g->kind != GIFT_ELEMENT && g->kind != GIFT_FRESH) || load->op != IR_LOAD) return false;
    value_sum address = value_address(ir, &ir->insns[load->a]);
    if (!address.known || address.count != 1 || address.terms[0].factor != 1 ||
        !gift_is_own(h, instance, gift_param(ir, address.terms[0].leaf), &delta))
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
            counts = stored.known && count_leaf(creator->ir, loop, &stored, &counter, step);
        }
        if (!counts) return false;
        found = true;
    }
    if (*step < 0) *step = -*step;
    return found && *step;
}

static const hb_touch *touch_at(const hb *h, uint32_t instance, uint32_t insn)
{
    uint32_t func = h->instances[instance].func;
    for (uint32_t t = hb_first_touch(h, func); t < h->touches.len && h->touches.data[t].func == func; t++)
        if (h->touches.data[t].insn == insn && h->touches.data[t].instance == instance && !(h->touches.data[t].flags & HB_LIBRARY))
            return &h->touches.data[t];
    return NULL;
}

/* Whether the origin, at an access of its own, comes before or after everybody who writes to what the access reads; `but`: or adds
 * to it with a lock prefix. */
static bool rests(const hb *h, uint32_t origin, const hb_touch *look, bool but)
{
    if (!look || look->place_count != 1) return false;
    const hb_extent *x = &h->extents.data[h->places.data[look->first_place].extent];
    for (uint32_t t = 0; t < h->touches.len; t++) {
        const hb_touch *touch = &h->touches.data[t];
        bool meets = false;
        if (!(touch->flags & IR_WRITE)) continue;
        for (uint32_t i = 0; i < touch->place_count && !meets; i++)
            meets = hb_overlap(&h->extents.data[h->places.data[touch->first_place + i].extent], x);
        if (!meets) continue;
        uint16_t mnemonic = hb_code(h, touch->func)->insns[touch->insn].mnemonic;
        if (but && touch->flags & IR_ATOMIC && (mnemonic == ZYDIS_MNEMONIC_XADD || mnemonic == ZYDIS_MNEMONIC_INC)) continue;
        for (uint32_t o = 0; o < h->origins.len; o++) {
            if (!hb_bit(h->origins.data[o].self, touch->instance)) continue;
            if (o == origin || h->origins.data[origin].twin == o) return false;
            if (!shb_ordered(h, o, (hb_point){touch->instance, touch->insn}, origin, (hb_point){look->instance, look->insn}, NULL)) return false;
        }
    }
    return true;
}

/* What an atomic increment has found, when nothing else changes the variable meanwhile. */
static bool is_ticket(const hb *h, uint32_t origin, uint32_t instance, ir_value leaf, uint64_t *space, int64_t *step)
{
    const ir_func *ir = code_of(h, instance);
    const ir_insn *load = &ir->insns[leaf];
    if (load->op != IR_LOAD || !(ir->insns[load->a].flags & IR_ATOMIC)) return false;
    if (ir->func->insns[ir->insns[load->a].insn].mnemonic != ZYDIS_MNEMONIC_XADD) return false;
    const hb_touch *look = touch_at(h, instance, ir->insns[load->a].insn);
    if (!rests(h, origin, look, true) || !hb_single(h, &h->places.data[look->first_place].place)) return false;
    const hb_extent *x = &h->extents.data[h->places.data[look->first_place].extent];
    for (ir_value v = load->a + 1; v < ir->insn_count && ir->insns[v].insn == ir->insns[load->a].insn; v++) {
        if (ir->insns[v].op != IR_STORE || ir->insns[v].a != load->a) continue;
        value_sum stored = value_of(ir, ir->insns[v].b);
        *step = 1; /* others may add less than this one */
        *space = map_hash(map_hash((uint64_t)x->object << 32) + (uint64_t)x->at) | 1;
        return stored.known && stored.count == 1 && stored.terms[0].leaf == leaf && stored.terms[0].factor == 1 && stored.add > 0;
    }
    return false;
}

/* --- OpenMP: iterations ------------------------------------------------------------------------------------------------------------- */

/* The argument that points to where the first iteration is left, or -1. */
static int lower_argument(const char *name)
{
    if (!strncmp(name, "__kmpc_for_static_init_", 23)) return 4;
    if (!strncmp(name, "__kmpc_dispatch_next_", 21)) return 3;
    if (strncmp(name, "GOMP_loop_", 10)) return -1;
    if (strstr(name, "_next")) return 0;
    if (!strstr(name, "_start")) return -1;
    if (strstr(name, "doacross")) return 5 - 2 * !!strstr(name, "runtime");
    return 4 - !!strstr(name, "runtime") + !!strstr(name, "_ull_");
}

/* A loop that is handed out anew each time round another one, without a barrier in between: an iteration may go to another thread
 * while the one that had it the last time is at it still. */
static bool is_repeated(const hb *h, uint32_t func, const ir_func *ir, const hb_call *call)
{
    uint32_t loop = ir->blocks[hb_block_of(ir->func, call->insn)].loop;
    const char *name = callee_name(h, call);
    if (strstr(name, "_next") && loop) loop = ir->loops[loop - 1].parent; /* the loop that asks for more */
    if (!loop || strstr(name, "static")) return false;
    for (uint32_t c = 0; c < h->funcs[func].call_count; c++) {
        const hb_call *other = &h->funcs[func].calls[c];
        if (!other->sync || other->sync->kind != SYNC_BARRIER) continue;
        for (uint32_t l = ir->blocks[hb_block_of(ir->func, other->insn)].loop; l; l = ir->loops[l - 1].parent)
            if (l == loop) return false;
    }
    return true;
}

/* What a variable of the frame is set to, if that is a constant. */
static int64_t frame_constant(const ir_func *ir, ir_value pointer)
{
    int32_t at, to;
    uint8_t base, other;
    int64_t found = -1;
    if (!pointer || !ir_frame_offset(ir, pointer, &at, &base)) return -1;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_STORE) continue;
        const ir_insn *access = &ir->insns[ir->insns[v].a];
        if (access->b || !access->a || !ir_frame_offset(ir, access->a, &to, &other) || other != base || to + access->imm != at) continue;
        int64_t value = constant(ir, ir->insns[v].b);
        if (value < 0) continue; /* the end is cut down to what there is */
        if (found >= 0 && found != value) return -1;
        found = value;
    }
    return found;
}

/* A load of the first iteration that was handed out to this thread. */
static bool is_handed_out(const hb *h, uint32_t instance, ir_value v, uint64_t *space)
{
    uint32_t func = h->instances[instance].func;
    const ir_func *ir = code_of(h, instance);
    const ir_insn *load = &ir->insns[v];
    int32_t at, given;
    uint8_t base, other;
    if (load->op != IR_LOAD) return false;
    const ir_insn *access = &ir->insns[load->a];
    if (access->b || !access->a || !ir_frame_offset(ir, access->a, &at, &base)) return false;
    bool found = false;
    for (uint32_t c = 0; c < h->funcs[func].call_count; c++) {
        const hb_call *call = &h->funcs[func].calls[c];
        const char *name = callee_name(h, call);
        int arg = lower_argument(name);
        if (arg < 0 || !call->value) continue;
        ir_value pointer = call_argument(ir, call, (unsigned)arg);
        if (!pointer || !ir_frame_offset(ir, pointer, &given, &other) || other != base || given != at + access->imm) continue;
        if (is_repeated(h, func, ir, call)) return false;
        uint64_t of = map_hash(((uint64_t)func << 32) + (uint64_t)(uint32_t)given) | 1;
        if (strstr(name, "static_init")) { /* equal loops go to the same threads */
            int64_t kind = constant(ir, call_argument(ir, call, 2)), low = frame_constant(ir, pointer);
            int64_t high = frame_constant(ir, call_argument(ir, call, 5));
            if (kind > 0 && low >= 0 && high >= 0) of = map_hash(map_hash(map_hash((uint64_t)kind) + (uint64_t)low) + (uint64_t)high) | 1;
        }
        if (found && *space != of) return false;
        *space = of;
        found = true;
    }
    return found;
}

static bool names_team(const char *name)
{
    return !strcmp(name, "omp_get_thread_num") || !strcmp(name, "omp_get_num_threads");
}

/* How a value is computed, as a number: equal ones are equal in all threads that have the same number. */
static uint64_t shape_of(const hb *h, uint32_t func, const ir_func *ir, ir_value v, unsigned depth)
{
    v = value_plain(ir, v, 4);
    const ir_insn *insn = &ir->insns[v];
    uint64_t hash = map_hash(insn->op);
    if (depth > 10) return map_hash(hash + v);
    switch (insn->op) {
    case IR_CONST: return map_hash(hash + (uint64_t)insn->imm);
    case IR_RESULT: {
        const hb_call *call = hb_call_at(h, func, ir->insns[insn->a].insn);
        return call && names_team(callee_name(h, call)) ? map_hash(hash + (call->sync ? 1 : 2)) : map_hash(hash + v);
    }
    case IR_LEA: case IR_SUB: case IR_MUL: case IR_SHL: case IR_SAR: case IR_SHR: case IR_AND:
        hash = map_hash(hash + (uint64_t)insn->imm + insn->scale * 7u);
        if (insn->a) hash = map_hash(hash + shape_of(h, func, ir, insn->a, depth + 1));
        if (insn->b) hash = map_hash(hash * 3 + shape_of(h, func, ir, insn->b, depth + 1));
        return hash;
    case IR_OPAQUE: case IR_PHI:
        hash = map_hash(hash + (insn->op == IR_PHI ? 0 : ir->func->insns[insn->insn].mnemonic) + insn->var);
        for (uint32_t i = 0; i < insn->b; i++)
            if (ir->args[insn->a + i]) hash = map_hash(hash * 3 + shape_of(h, func, ir, ir->args[insn->a + i], depth + 1));
        return hash;
    default: return map_hash(hash + v);
    }
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

/* Where the iterations of this thread begin. */
static bool is_first_iteration(const hb *h, uint32_t instance, ir_value v, uint64_t *space)
{
    uint32_t func = h->instances[instance].func;
    const ir_func *ir = code_of(h, instance);
    if (is_handed_out(h, instance, v, space)) return true;
    if (!from_thread_number(h, func, ir, v, false, 0)) return false;
    *space = shape_of(h, func, ir, v, 0) | 1;
    return true;
}

/* --- numbered addresses ----------------------------------------------------------------------------------------------------------------- */

/* A leaf that is the same value in all threads of a kind: the address of what a team shares, what is loaded from there, and what
 * is loaded from a variable that rests as long as they run. */
static bool is_common(const hb *h, uint32_t origin, uint32_t instance, ir_value leaf, unsigned depth)
{
    const hb_origin *o = &h->origins.data[origin];
    const ir_func *ir = code_of(h, instance);
    const ir_insn *insn = &ir->insns[leaf];
    bool team = o->by && o->by->kind == SYNC_TEAM;
    if (insn->op == IR_ENTRY) return team && instance == o->instance && gift_param(ir, leaf) >= 0;
    if (insn->op != IR_LOAD || depth > 3) return false;
    value_sum address = value_address(ir, &ir->insns[insn->a]);
    if (!address.known) return false;
    for (uint32_t i = 0; i < address.count; i++)
        if (!is_common(h, origin, instance, address.terms[i].leaf, depth + 1)) return false;
    return team || rests(h, origin, touch_at(h, instance, ir->insns[insn->a].insn), false);
}

static bool add_other(const hb *h, uint32_t origin, part_term t, numbered *n)
{
    if (n->other_count == TERMS || !is_common(h, origin, t.instance, t.leaf, 0)) return false;
    n->others[n->other_count++] = t;
    return true;
}

/* What else the first iteration is a sum of: the rest of a division, which goes with the number, and addresses that all share. */
static bool add_rest(const hb *h, uint32_t origin, const part_sum *first, uint32_t but, int64_t by, numbered *n)
{
    for (uint32_t i = 0; i < first->count; i++) {
        part_term t = first->terms[i];
        uint8_t op = code_of(h, t.instance)->insns[t.leaf].op;
        t.factor *= by;
        if (i == but || op == IR_PHI || op == IR_OPAQUE || op == IR_SELECT) continue;
        if (!add_other(h, origin, t, n)) return false;
    }
    return true;
}

static int64_t factor_of(const part_sum *s, ir_value leaf)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->terms[i].leaf == leaf) return s->terms[i].factor;
    return 0;
}

/* A term that goes through a loop which begins at the thread's number. */
static bool take_loop(const hb *h, uint32_t origin, const part_term *t, numbered *n)
{
    const ir_func *ir = code_of(h, t->instance);
    value_sum first_value, end_value;
    part_sum first = {.known = true}, end = {.known = true};
    int64_t by = t->factor, step, stride = count_stride(ir, t->leaf);
    if (!count_range(ir, t->leaf, &first_value, &end_value) || by <= 0) return false;
    expand(h, origin, t->instance, &first_value, 1, &first, 0);
    expand(h, origin, t->instance, &end_value, 1, &end, 0);
    if (!first.known) return false;
    for (uint32_t k = 0; k < first.count; k++) {
        const part_term *of = &first.terms[k];
        const ir_func *in = code_of(h, of->instance);
        bool number = is_number(h, origin, of->instance, of->leaf, &step);
        if (number && stride > 1 && first.count == 1 && !first.add && of->factor == 1 && h->gifts->of[origin].count && step == 1 &&
            h->gifts->of[origin].count <= stride) { /* every n-th, from the number on */
            n->factor = by;
            n->modulo = by * stride;
            return true;
        }
        if (is_first_iteration(h, of->instance, of->leaf, &n->space) && of->factor > 0) {
            /* iterations of this thread alone, however many a vector takes at once */
            n->factor = by * of->factor;
            n->base += by * first.add;
            if (n->high > n->factor) n->high = n->factor;
            return add_rest(h, origin, &first, k, by, n);
        }
        if (number && first.count == 1 && end.known && end.count == 1 && end.terms[0].leaf == of->leaf &&
            end.terms[0].factor == of->factor && end.add - first.add <= of->factor * step && end.add > first.add) {
            n->factor = by * of->factor * step;
            n->low += by * first.add;
            n->high += by * (end.add - 1);
            return true;
        }
        bool chunked = in->insns[of->leaf].op == IR_MUL && in->insns[of->leaf].b && of->factor == 1;
        if (!chunked || first.count != 1 || first.add || !end.known || end.add || end.count != 2) continue;
        /* from number * chunk to number * chunk + chunk */
        ir_value a = value_plain(in, in->insns[of->leaf].a, 4), b = value_plain(in, in->insns[of->leaf].b, 4);
        bool an = is_number(h, origin, of->instance, a, &step), bn = !an && is_number(h, origin, of->instance, b, &step);
        if ((an || bn) && factor_of(&end, of->leaf) == 1 && factor_of(&end, an ? b : a) == 1) {
            n->factor = by;
            n->space = map_hash(((uint64_t)h->instances[of->instance].func << 32) + of->leaf) | 1;
            return true;
        }
    }
    return false;
}

/* A loop between constants, inside of what belongs to a number or of iterations that were handed out. */
static bool take_range(const hb *h, uint32_t origin, const part_term *t, const part_sum *all, numbered *n)
{
    const ir_func *ir = code_of(h, t->instance);
    value_sum first_value, end_value;
    part_sum first = {.known = true}, end = {.known = true};
    uint64_t space = 0;
    if (!count_range(ir, t->leaf, &first_value, &end_value) || t->factor <= 0) return false;
    expand(h, origin, t->instance, &first_value, 1, &first, 0);
    expand(h, origin, t->instance, &end_value, 1, &end, 0);
    if (!first.known || first.count || first.span) return false;
    int64_t stride = count_stride(ir, t->leaf);
    for (uint32_t i = 0; i < all->count; i++) { /* from the first iteration on: the loop goes over those of this thread */
        const part_term *of = &all->terms[i];
        if (of == t || of->instance != t->instance || of->factor <= 0 || !is_handed_out(h, of->instance, of->leaf, &space)) continue;
        if (first.add >= 0 && stride > 0 && (stride * t->factor) % of->factor == 0 && (first.add * t->factor) % of->factor == 0) return true;
    }
    if (!end.known || end.count || end.span || first.add >= end.add) return false;
    if (stride > 1) {
        n->each = n->each ? -1 : stride * t->factor;
        n->wide = n->high - n->low;
    }
    n->low += t->factor * first.add;
    n->high += t->factor * (end.add - 1);
    return true;
}

/* The address that a library function is given, and how many bytes it may touch from there on. */
static bool library_sum(const hb *h, const hb_touch *t, value_sum *sum, int64_t *width)
{
    const ir_func *ir = hb_code(h, t->func)->ir;
    const hb_call *call = hb_call_at(h, t->func, t->insn);
    sync_range ranges[SYNC_RANGES];
    const sync_range *found = NULL;
    if (!call || !call->value || !call->touch) return false;
    for (uint32_t i = 0, n = hb_sync_touch_ranges(call->touch, ranges); i < n; i++) {
        if (ranges[i].write != !!(t->flags & IR_WRITE)) continue;
        if (found) return false;
        found = &ranges[i];
    }
    if (!found || found->arg >= 6) return false;
    *sum = value_of(ir, call_argument(ir, call, found->arg));
    *width = found->size;
    if (found->size_arg >= 0) *width = constant(ir, call_argument(ir, call, (unsigned)found->size_arg));
    if (found->times_arg >= 0) {
        int64_t times = constant(ir, call_argument(ir, call, (unsigned)found->times_arg));
        *width = times > 0 && *width > 0 && times < INT32_MAX && *width < INT32_MAX ? *width * times : 0;
    }
    return *width > 0;
}

static bool address_of(const hb *h, uint32_t origin, const hb_touch *t, part_sum *out, int64_t *width)
{
    const lift_func *f = hb_code(h, t->func);
    value_sum sum;
    *out = (part_sum){.known = true};
    *width = t->width;
    if (t->flags & HB_LIBRARY) {
        if (!library_sum(h, t, &sum, width)) return false;
    } else {
        if (!t->ir || f->ir->insns[t->ir].op != IR_ACCESS || f->ir->insns[t->ir].flags & (IR_WIDE | IR_REP)) return false;
        sum = value_address(f->ir, &f->ir->insns[t->ir]);
    }
    expand(h, origin, t->instance, &sum, 1, out, 0);
    if (out->span) *width = out->span;
    return out->known;
}

static numbered make_number(const hb *h, uint32_t origin, const hb_touch *t)
{
    numbered n = {0};
    part_sum sum;
    if (!address_of(h, origin, t, &sum, &n.high)) return n;
    n.base = sum.add;
    bool found = false;
    for (uint32_t i = 0; i < sum.count; i++) {
        const part_term *term = &sum.terms[i];
        int64_t step;
        uint64_t space = 0;
        bool number = is_number(h, origin, term->instance, term->leaf, &step);
        bool other = !number && (is_ticket(h, origin, term->instance, term->leaf, &space, &step) ||
                                 is_handed_out(h, term->instance, term->leaf, &space));
        if (number || other) {
            if (found) return n;
            found = true;
            if (other && !(space & 1)) return n;
            n.space = space;
            n.factor = (term->factor < 0 ? -term->factor : term->factor) * (number ? step : 1);
            if (other && term->factor <= 0) return n;
            continue;
        }
        bool loop = code_of(h, term->instance)->insns[term->leaf].op == IR_PHI;
        if (loop && take_range(h, origin, term, &sum, &n)) continue;
        if (loop && !found && take_loop(h, origin, term, &n)) {
            found = true;
            continue;
        }
        if (!add_other(h, origin, *term, &n)) return n;
    }
    if (n.space && n.high > n.factor && !n.low) n.high = n.factor; /* several iterations at once */
    n.known = found && n.factor > 0;
    n.fixed = !found;
    return n;
}

static numbered number_of(hb *h, uint32_t origin, const hb_touch *t)
{
    uint32_t *at = map_at(&h->numbering->numbers, (uint64_t)origin << 32 | (uint64_t)(t - h->touches.data));
    if (*at == MAP_NONE) {
        *at = h->numbering->numbered.len;
        vec_push(&h->numbering->numbered, make_number(h, origin, t));
    }
    return h->numbering->numbered.data[*at];
}

static bool same_others(const hb *h, const numbered *x, const numbered *y)
{
    if (x->other_count != y->other_count) return false;
    for (uint32_t i = 0; i < x->other_count; i++) {
        const part_term *a = &x->others[i], *b = &y->others[i];
        if (a->leaf != b->leaf || a->factor != b->factor || h->instances[a->instance].func != h->instances[b->instance].func) return false;
    }
    return true;
}

static bool are_apart(const hb *h, const numbered *x, const numbered *y)
{
    if (!x->known || !y->known || x->factor != y->factor || x->space != y->space || x->modulo != y->modulo || !same_others(h, x, y)) return false;
    int64_t xl = x->base + x->low, yl = y->base + y->low, xh = x->base + x->high, yh = y->base + y->high;
    int64_t low = xl < yl ? xl : yl, high = xh > yh ? xh : yh;
    return high - low <= x->factor;
}

/* --- code for some numbers only -------------------------------------------------------------------------------------------------------- */

static bool holds(uint8_t code, int64_t n, int64_t imm)
{
    switch (code) {
    case 2: return (uint64_t)n < (uint64_t)imm;
    case 3: return (uint64_t)n >= (uint64_t)imm;
    case 4: return n == imm;
    case 5: return n != imm;
    case 6: return (uint64_t)n <= (uint64_t)imm;
    case 7: return (uint64_t)n > (uint64_t)imm;
    case 12: return n < imm;
    case 13: return n >= imm;
    case 14: return n <= imm;
    case 15: return n > imm;
    default: return true; /* says nothing */
    }
}

static void refine(const hb *h, uint32_t origin, uint32_t instance, const value_condition *c, number_set *s)
{
    int64_t step;
    value_sum value = value_of(code_of(h, instance), c->a);
    part_sum sum = {.known = true};
    expand(h, origin, instance, &value, 1, &sum, 0);
    if (sum.known && !sum.count && !sum.span) s->never |= !holds(c->code, (int32_t)sum.add, (int32_t)c->imm);
    if (!sum.known || sum.count != 1 || sum.terms[0].factor != 1) return;
    if (!is_number(h, origin, sum.terms[0].instance, sum.terms[0].leaf, &step) || step != 1) return;
    uint64_t mask = 0;
    for (int64_t n = 0; n < MOST_THREADS; n++)
        if (holds(c->code, (int32_t)(n + sum.add), (int32_t)c->imm)) mask |= 1ull << n;
    if (s->bounded) {
        s->mask &= mask;
    } else if (c->code == VALUE_EQUAL && mask) {
        s->bounded = true;
        s->mask = mask;
    }
}

/* What the branches in front of a point leave of the numbers. */
static void walk_up(const hb *h, uint32_t origin, hb_point at, number_set *s)
{
    const lift_func *f = hb_instance_code(h, at.instance);
    for (uint32_t block = hb_block_of(f, at.insn);; block = f->ir->blocks[block].idom) {
        const lift_block *b = &f->blocks[block];
        const lift_edge *e = b->pred_count == 1 ? &f->edges[f->preds[b->first_pred]] : NULL;
        value_condition c;
        if (e && f->blocks[e->from].end_kind == END_BRANCH && value_test(f->ir, e->from, e->kind == EDGE_TAKEN, &c) && c.a && !c.b)
            refine(h, origin, at.instance, &c, s);
        if (f->ir->blocks[block].idom == block) break;
    }
}

static number_set set_anywhere(const hb *h, uint32_t origin)
{
    const gift *g = &h->gifts->of[origin];
    int64_t count = g->kind == GIFT_NUMBER && g->step == 1 ? g->count : 0;
    return (number_set){.bounded = count > 0 && count <= MOST_THREADS, .mask = count >= MOST_THREADS ? ~0ull : (1ull << count) - 1};
}

/* The numbers of the threads that may enter an instance: those at all of its calls. Each is found once; a function that is on the
 * way already may be entered by any. */
static number_set entry_set(hb *h, uint32_t origin, uint32_t instance, unsigned depth)
{
    enum { MOST_CALLS = 40 };
    uint64_t key = (uint64_t)origin << 32 | instance;
    uint32_t known = map_get(&h->numbering->entries, key), next = 0;
    if (known != MAP_NONE) return h->numbering->masks.data[known];
    number_set anywhere = set_anywhere(h, origin), all = {.never = true, .bounded = true};
    bool any = false, unknown = depth >= MOST_CALLS || instance == h->origins.data[origin].instance;
    *map_at(&h->numbering->entries, key) = known = h->numbering->masks.len;
    vec_push(&h->numbering->masks, anywhere);
    for (const pta_call_edge *e; !unknown && (e = next_caller(h, origin, instance, &next)); any = true) {
        unknown = hb_spawns(h, e) || !hb_instance_code(h, e->caller);
        if (unknown) break;
        number_set one = entry_set(h, origin, e->caller, depth + 1);
        walk_up(h, origin, (hb_point){e->caller, h->call_insn[e->call]}, &one);
        all.never &= one.never;
        all.bounded &= one.bounded;
        all.mask |= one.mask;
    }
    if (any && !unknown) h->numbering->masks.data[known] = all;
    return h->numbering->masks.data[known];
}

static number_set set_of(hb *h, uint32_t origin, const hb_touch *t)
{
    uint64_t key = (uint64_t)origin << 32 | (uint64_t)(t - h->touches.data);
    uint32_t known = map_get(&h->numbering->sets, key);
    if (known == MAP_NONE) {
        number_set s = entry_set(h, origin, t->instance, 0);
        walk_up(h, origin, (hb_point){t->instance, t->insn}, &s);
        *map_at(&h->numbering->sets, key) = known = h->numbering->masks.len;
        vec_push(&h->numbering->masks, s);
    }
    return h->numbering->masks.data[known];
}

/* Threads that are created one by one, each with another constant: different bytes, or code that one of them never runs. */
bool hb_constants_apart(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b)
{
    int64_t value;
    if (!given_constant(h, x, 0, &value) && !given_constant(h, y, 0, &value)) return false;
    if (set_of(h, x, a).never || set_of(h, y, b).never) return true;
    numbered na = number_of(h, x, a), nb = number_of(h, y, b);
    if (!na.fixed || !nb.fixed || !same_others(h, &na, &nb)) return false;
    if (na.base + na.high <= nb.base + nb.low || nb.base + nb.high <= na.base + na.low) return true;
    if (na.each <= 0 || na.each != nb.each) return false;
    int64_t d = (na.base + na.low - nb.base - nb.low) % na.each;
    if (d < 0) d += na.each;
    return d >= nb.wide && na.each - d >= na.wide;
}

bool hb_numbers_apart(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b)
{
    numbered na = number_of(h, x, a), nb = number_of(h, y, b);
    if (are_apart(h, &na, &nb)) return true;
    number_set sa = set_of(h, x, a), sb = set_of(h, y, b);
    return sa.bounded && sb.bounded && sa.mask && sa.mask == sb.mask && !(sa.mask & (sa.mask - 1)); /* one and the same thread */
}
