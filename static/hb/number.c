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

#include "static/hb/level.h"
#include "static/hb/lock.h"
#include "static/hb/number.h"

enum { MOST_THREADS = 64 };

typedef struct { /* factor * number + [low, high) + others, which are the same in all threads */
    bool known;
    bool fixed;     /* no number at all: the same bytes each time */
    uint64_t space; /* whose numbers these are; 0: of threads */
    int64_t round;  /* of iterations: bytes of those that one round of the loop takes; 0: they are not iterations */
    int64_t modulo; /* the bytes come again each so many; 0: not */
    int64_t each, wide; /* of fixed ones: `wide` bytes from the lowest on, and again each so many; 0: all of them */
    int64_t factor, low, high, base;
    uint32_t module; /* addresses are those of this one */
    part_term others[NUMBER_TERMS];
    uint32_t other_count;
} numbered;

typedef struct { /* numbers of the threads that may come here */
    bool never;
    bool bounded;
    uint64_t mask;
    uint64_t space;    /* not 0: only in this iteration of those */
    int64_t iteration;
} number_set;

typedef struct {
    bool known;
    part_sum sum;
    int64_t width;
} part_address;

struct hb_numbering {
    map64 addresses; /* origin and access: in `found` */
    VEC(part_address) found;
    map64 numbers; /* origin and access: in `numbered` */
    VEC(numbered) numbered;
    uint16_t **levels; /* per origin: hb_levels; NULL: not asked yet */
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
    for (uint32_t o = 0; h->numbering->levels && o < h->origins.len; o++)
        free(h->numbering->levels[o]);
    free(h->numbering->levels);
    map_free(&h->numbering->addresses);
    vec_free(&h->numbering->found);
    map_free(&h->numbering->numbers);
    map_free(&h->numbering->entries);
    map_free(&h->numbering->sets);
    vec_free(&h->numbering->numbered);
    vec_free(&h->numbering->masks);
    free(h->numbering);
}

/* --- whose number ---------------------------------------------------------------------------------------------------------------- */

/* The thread's own number: its argument, or a word of its own object that was filled with what counted. */
static bool is_number(const hb *h, uint32_t origin, uint32_t instance, ir_value leaf, int64_t *step)
{
    const gift *g = &h->gifts->of[origin];
    const ir_func *ir = part_code(h, instance);
    int64_t delta;
    if (g->kind == GIFT_NUMBER && gift_is_own(h, instance, gift_param(ir, leaf), &delta) && !delta) {
        *step = g->step;
        return true;
    }
    if (omp_is_thread_number(h, h->instances[instance].func, ir, leaf)) return *step = 1, true;
    if (task_counts(h, origin, instance, leaf, step)) return true;
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
    if (!loop || (g->kind == GIFT_FRESH && gift_counts_again(h, origin, g->site, loop))) return false;
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

/* Whether the origin, at an access of its own, comes before or after everybody who writes to what the access reads; `but`: or adds
 * to it with a lock prefix. */
static bool rests(const hb *h, uint32_t origin, const hb_touch *look, bool but)
{
    if (!look || look->place_count != 1) return false;
    uint32_t count;
    const hb_use *writes = hb_writes_over_extent(h, h->places.data[look->first_place].extent, &count);
    for (uint32_t i = 0; i < count; i++) {
        const hb_touch *touch = &h->touches.data[writes[i].touch];
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
    const ir_func *ir = part_code(h, instance);
    const ir_insn *load = &ir->insns[leaf];
    if (load->op != IR_LOAD || !(ir->insns[load->a].flags & IR_ATOMIC)) return false;
    if (ir->func->insns[ir->insns[load->a].insn].mnemonic != ZYDIS_MNEMONIC_XADD) return false;
    const hb_touch *look = hb_touch_at(h, instance, ir->insns[load->a].insn);
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

/* --- numbered addresses ----------------------------------------------------------------------------------------------------------------- */

/* A leaf that is the same value in all threads of a kind: the address of what a team shares, what is loaded from there, and what
 * is loaded from a variable that rests as long as they run. */
static bool is_common(const hb *h, uint32_t origin, uint32_t instance, ir_value leaf, unsigned depth)
{
    const hb_origin *o = &h->origins.data[origin];
    const ir_func *ir = part_code(h, instance);
    const ir_insn *insn = &ir->insns[leaf];
    bool team = o->by && o->by->kind == SYNC_TEAM;
    if (insn->op == IR_ENTRY) return team && instance == o->instance && gift_param(ir, leaf) >= 0;
    if (insn->op != IR_LOAD || depth > 3) return false;
    value_sum address = value_address(ir, &ir->insns[insn->a]);
    if (!address.known) return false;
    for (uint32_t i = 0; i < address.count; i++)
        if (!is_common(h, origin, instance, address.terms[i].leaf, depth + 1)) return false;
    return team || rests(h, origin, hb_touch_at(h, instance, ir->insns[insn->a].insn), false);
}

static bool add_other(const hb *h, uint32_t origin, part_term t, numbered *n)
{
    if (n->other_count == NUMBER_TERMS || !is_common(h, origin, t.instance, t.leaf, 0)) return false;
    n->others[n->other_count++] = t;
    return true;
}

/* What else the first iteration is a sum of: the rest of a division, which goes with the number, and addresses that all share. */
static bool add_rest(const hb *h, uint32_t origin, const part_sum *first, uint32_t but, int64_t by, numbered *n)
{
    for (uint32_t i = 0; i < first->count; i++) {
        part_term t = first->terms[i];
        uint8_t op = part_code(h, t.instance)->insns[t.leaf].op;
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

typedef struct { /* a loop that a term goes through */
    part_sum first, end;
    int64_t stride;
} part_loop;

static bool loop_of(const hb *h, uint32_t origin, const part_term *t, part_loop *out)
{
    const ir_func *ir = part_code(h, t->instance);
    value_sum first, end;
    *out = (part_loop){.first = {.known = true}, .end = {.known = true}};
    if (t->factor <= 0 || !count_range(ir, t->leaf, &first, &end)) return false;
    out->stride = count_stride(ir, t->leaf);
    part_expand(h, origin, t->instance, &first, 1, &out->first);
    part_expand(h, origin, t->instance, &end, 1, &out->end);
    return out->first.known && !out->first.span;
}

/* A loop over the iterations of this thread: it begins at the first of them. */
static bool take_iterations(const hb *h, uint32_t origin, const part_term *t, const part_loop *l, numbered *n)
{
    for (uint32_t k = 0; k < l->first.count; k++) {
        const part_term *of = &l->first.terms[k];
        if (of->factor <= 0 || !omp_first_iteration(h, origin, of->instance, of->leaf, &n->space)) continue;
        n->factor = t->factor * of->factor;
        n->base += t->factor * l->first.add;
        n->round = t->factor * l->stride;
        return add_rest(h, origin, &l->first, k, t->factor, n);
    }
    return false;
}

/* A term that goes through a loop which begins at the thread's number. */
static bool take_loop(const hb *h, uint32_t origin, const part_term *t, const part_loop *l, numbered *n)
{
    int64_t by = t->factor, step;
    const part_term *of = &l->first.terms[0];
    if (l->first.count != 1) return false;
    const ir_func *in = part_code(h, of->instance);
    bool number = is_number(h, origin, of->instance, of->leaf, &step);
    if (number && l->stride > 1 && of->factor > 0 && l->stride % of->factor == 0 && h->gifts->of[origin].count && step == 1 &&
        h->gifts->of[origin].count <= l->stride / of->factor) { /* every n-th, from the number on */
        n->factor = by * of->factor;
        n->modulo = by * l->stride;
        n->base += by * l->first.add;
        return true;
    }
    if (number && l->end.known && l->end.count == 1 && l->end.terms[0].leaf == of->leaf && l->end.terms[0].factor == of->factor &&
        l->end.add - l->first.add <= of->factor * step && l->end.add > l->first.add) {
        n->factor = by * of->factor * step;
        n->low += by * l->first.add;
        n->high += by * (l->end.add - 1);
        return true;
    }
    bool chunked = in->insns[of->leaf].op == IR_MUL && in->insns[of->leaf].b && of->factor == 1;
    if (!chunked || l->first.add || !l->end.known || l->end.add || l->end.count != 2) return false;
    /* from number * chunk to number * chunk + chunk */
    ir_value a = value_plain(in, in->insns[of->leaf].a, 4), b = value_plain(in, in->insns[of->leaf].b, 4);
    bool an = is_number(h, origin, of->instance, a, &step), bn = !an && is_number(h, origin, of->instance, b, &step);
    if ((!an && !bn) || factor_of(&l->end, of->leaf) != 1 || factor_of(&l->end, an ? b : a) != 1) return false;
    n->factor = by;
    n->round = by * l->stride;
    n->space = map_hash(((uint64_t)h->instances[of->instance].func << 32) + of->leaf) | 1;
    return true;
}

/* A loop between constants. */
static bool take_range(const part_term *t, const part_loop *l, numbered *n)
{
    if (l->first.count || !l->end.known || l->end.count || l->end.span || l->first.add >= l->end.add) return false;
    if (l->stride > 1) {
        n->each = n->each ? -1 : l->stride * t->factor;
        n->wide = n->high - n->low;
    }
    n->low += t->factor * l->first.add;
    n->high += t->factor * (l->end.add - 1);
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
    *sum = value_of(ir, part_argument(ir, call, found->arg));
    *width = found->size;
    if (found->size_arg >= 0) *width = part_number(ir, part_argument(ir, call, (unsigned)found->size_arg));
    if (found->times_arg >= 0) {
        int64_t times = part_number(ir, part_argument(ir, call, (unsigned)found->times_arg));
        *width = times > 0 && *width > 0 && times < INT32_MAX && *width < INT32_MAX ? *width * times : 0;
    }
    if (*width <= 0) *width = part_row(h, t, sum);
    return *width > 0;
}

static bool find_address(const hb *h, uint32_t origin, const hb_touch *t, part_sum *out, int64_t *width)
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
        if (part_drop_length(h, t, f->ir, &sum) && !(*width = part_row(h, t, &sum))) return false;
    }
    part_expand(h, origin, t->instance, &sum, 1, out);
    if (out->span) *width = out->span;
    return out->known;
}

/* The same, asked once of an origin's access. */
static bool address_of(const hb *h, uint32_t origin, const hb_touch *t, part_sum *out, int64_t *width)
{
    struct hb_numbering *n = h->numbering;
    uint64_t key = (uint64_t)origin << 32 | (uint64_t)(t - h->touches.data);
    uint32_t at = map_get(&n->addresses, key);
    if (at == MAP_NONE) {
        part_address made = {0};
        made.known = find_address(h, origin, t, &made.sum, &made.width);
        *map_at(&n->addresses, key) = at = n->found.len;
        vec_push(&n->found, made);
    }
    *out = n->found.data[at].sum;
    *width = n->found.data[at].width;
    return n->found.data[at].known;
}

/* The first iteration of this thread, plus a loop that counts from a constant on, plus the rest of a division. */
static bool take_first(const hb *h, uint32_t origin, const part_sum *sum, numbered *n)
{
    uint32_t at = 0;
    while (at < sum->count && !(sum->terms[at].factor > 0 && omp_first_iteration(h, origin, sum->terms[at].instance, sum->terms[at].leaf, &n->space)))
        at++;
    if (at == sum->count) return false;
    n->factor = n->round = sum->terms[at].factor;
    for (uint32_t i = 0; i < sum->count; i++) {
        const part_term *t = &sum->terms[i];
        uint8_t op = part_code(h, t->instance)->insns[t->leaf].op;
        part_loop l;
        if (i == at) continue;
        if (op == IR_PHI && loop_of(h, origin, t, &l)) {
            if (l.first.count || l.first.add < 0 || n->round != n->factor || (l.stride * t->factor) % n->factor) return false;
            n->round = l.stride * t->factor;
            n->base += l.first.add * t->factor;
        } else if ((op == IR_PHI || op == IR_OPAQUE || op == IR_SELECT) && t->factor == n->factor) {
            continue;
        } else if (!add_other(h, origin, *t, n)) {
            return false;
        }
    }
    return true;
}

static numbered make_number(const hb *h, uint32_t origin, const hb_touch *t)
{
    numbered n = {0};
    part_sum sum;
    if (!address_of(h, origin, t, &sum, &n.high)) return n;
    n.base = sum.add;
    numbered iterated = n;
    if (take_first(h, origin, &sum, &iterated)) {
        iterated.known = true;
        return iterated;
    }
    bool found = false;
    for (uint32_t i = 0; i < sum.count; i++) {
        const part_term *term = &sum.terms[i];
        int64_t step;
        bool number = is_number(h, origin, term->instance, term->leaf, &step);
        if (number || is_ticket(h, origin, term->instance, term->leaf, &n.space, &step)) {
            if (found) return n;
            found = true;
            n.factor = (term->factor < 0 ? -term->factor : term->factor) * step;
            continue;
        }
        part_loop l;
        bool loop = part_code(h, term->instance)->insns[term->leaf].op == IR_PHI && loop_of(h, origin, term, &l);
        if (loop && take_range(term, &l, &n)) continue;
        if (loop && !found && (take_iterations(h, origin, term, &l, &n) || take_loop(h, origin, term, &l, &n))) {
            found = true;
            continue;
        }
        if (!add_other(h, origin, *term, &n)) return n;
    }
    n.known = found && n.factor > 0;
    n.fixed = !found;
    return n;
}

static numbered number_of(hb *h, uint32_t origin, const hb_touch *t)
{
    uint32_t *at = map_at(&h->numbering->numbers, (uint64_t)origin << 32 | (uint64_t)(t - h->touches.data));
    if (*at == MAP_NONE) {
        *at = h->numbering->numbered.len;
        numbered made = make_number(h, origin, t);
        made.module = h->program->funcs.data[t->func].module;
        vec_push(&h->numbering->numbered, made);
    }
    return h->numbering->numbered.data[*at];
}

static bool same_others(const hb *h, const numbered *x, const numbered *y)
{
    if (x->other_count != y->other_count || x->module != y->module) return false;
    for (uint32_t i = 0; i < x->other_count; i++) {
        const part_term *a = &x->others[i], *b = &y->others[i];
        if (a->leaf != b->leaf || a->factor != b->factor || h->instances[a->instance].func != h->instances[b->instance].func) return false;
    }
    return true;
}

static bool are_apart(const hb *h, const numbered *x, const numbered *y)
{
    if (!x->known || !y->known || x->factor != y->factor || x->space != y->space || x->modulo != y->modulo || !same_others(h, x, y)) return false;
    if (x->round || y->round) {
        /* Each round takes the iterations [k, k + round / factor): the one of an access is between those of its round. For both there
         * must be one place where the first iteration of a round can lie. */
        int64_t xf = x->base + x->high - x->round, yf = y->base + y->high - y->round;
        int64_t first = xf > yf ? xf : yf, last = x->base < y->base ? x->base : y->base;
        return x->round && y->round && !x->low && !y->low && first <= last;
    }
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
    value_sum value = value_of(part_code(h, instance), c->a);
    part_sum sum = {.known = true};
    part_expand(h, origin, instance, &value, 1, &sum);
    if (sum.known && !sum.count && !sum.span) s->never |= !holds(c->code, (int32_t)sum.add, (int32_t)c->imm);
    if (!sum.known || sum.count != 1 || sum.terms[0].factor != 1) return;
    part_loop l;
    numbered n = {0};
    if (c->code == VALUE_EQUAL && loop_of(h, origin, &sum.terms[0], &l) && l.stride == 1 && take_iterations(h, origin, &sum.terms[0], &l, &n) &&
        !n.base && !n.other_count) {
        s->space = n.space;
        s->iteration = (int32_t)c->imm - sum.add;
        return;
    }
    if (!is_number(h, origin, sum.terms[0].instance, sum.terms[0].leaf, &step) || step != 1) return;
    uint64_t mask = 0;
    for (int64_t i = 0; i < MOST_THREADS; i++)
        if (holds(c->code, (int32_t)(i + sum.add), (int32_t)c->imm)) mask |= 1ull << i;
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

/* The numbers of the threads that may enter an instance: those at all of its calls. What takes part in a cycle of calls may be entered
 * by any. Each is found once, and from callers of a lower level only: so it does not matter which is asked about first. */
static number_set entry_set(hb *h, uint32_t origin, uint32_t instance)
{
    struct hb_numbering *n = h->numbering;
    uint64_t key = (uint64_t)origin << 32 | instance;
    uint32_t known = map_get(&n->entries, key), next = 0;
    if (known != MAP_NONE) return n->masks.data[known];
    if (!n->levels) n->levels = base_alloc_zero(h->origins.len, sizeof *n->levels);
    if (!n->levels[origin]) n->levels[origin] = hb_levels(h, origin);
    number_set all = {.never = true, .bounded = true};
    bool any = false, unknown = !n->levels[origin][instance] || instance == h->origins.data[origin].instance;
    for (const pta_call_edge *e; !unknown && (e = part_caller(h, origin, instance, &next)); any = true) {
        unknown = hb_spawns(h, e) || !hb_instance_code(h, e->caller);
        if (unknown) break;
        number_set one = entry_set(h, origin, e->caller);
        walk_up(h, origin, (hb_point){e->caller, h->call_insn[e->call]}, &one);
        all.never &= one.never;
        all.bounded &= one.bounded;
        all.mask |= one.mask;
        if (any && (all.space != one.space || all.iteration != one.iteration)) one.space = 0;
        all.space = one.space;
        all.iteration = one.iteration;
    }
    *map_at(&n->entries, key) = n->masks.len;
    vec_push(&n->masks, any && !unknown ? all : set_anywhere(h, origin));
    return n->masks.data[n->masks.len - 1];
}

static number_set set_of(hb *h, uint32_t origin, const hb_touch *t)
{
    uint64_t key = (uint64_t)origin << 32 | (uint64_t)(t - h->touches.data);
    uint32_t known = map_get(&h->numbering->sets, key);
    if (known == MAP_NONE) {
        number_set s = entry_set(h, origin, t->instance);
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
    if (!part_constant(h, x, 0, &value) && !part_constant(h, y, 0, &value)) return false;
    if (set_of(h, x, a).never || set_of(h, y, b).never) return true;
    numbered na = number_of(h, x, a), nb = number_of(h, y, b);
    if (!na.fixed || !nb.fixed || !same_others(h, &na, &nb)) return false;
    if (na.base + na.high <= nb.base + nb.low || nb.base + nb.high <= na.base + na.low) return true;
    if (na.each <= 0 || na.each != nb.each) return false;
    int64_t d = (na.base + na.low - nb.base - nb.low) % na.each;
    if (d < 0) d += na.each;
    return d >= nb.wide && na.each - d >= na.wide;
}

/* The same of one thread: a point, or an edge, that it never comes to with the constant it was created with. */
bool hb_constant_never(hb *h, uint32_t origin, hb_point at)
{
    int64_t value;
    if (!part_constant(h, origin, 0, &value) || !hb_instance_code(h, at.instance)) return false;
    number_set s = entry_set(h, origin, at.instance);
    walk_up(h, origin, at, &s);
    return s.never;
}

bool hb_constant_closes(hb *h, uint32_t origin, uint32_t instance, uint32_t from, uint32_t edge)
{
    const lift_func *f = hb_instance_code(h, instance);
    value_condition c;
    number_set s = {0};
    if (f->blocks[from].end_kind != END_BRANCH || !value_test(f->ir, from, f->edges[edge].kind == EDGE_TAKEN, &c) || !c.a || c.b) return false;
    refine(h, origin, instance, &c, &s);
    return s.never;
}

bool hb_has_constant(const hb *h, uint32_t origin)
{
    int64_t value;
    return part_constant(h, origin, 0, &value);
}

/* Only threads of few numbers access what their creator does, and it has joined each of them. */
bool hb_numbers_joined(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b)
{
    const gift *g = &h->gifts->of[y];
    part_sum sum;
    int64_t width, step;
    if (g->kind != GIFT_NUMBER || g->step != 1) return false;
    numbered nb = number_of(h, y, b); /* first: of the creator's accesses, which are many, most never have to be asked */
    if (!nb.known || nb.space || nb.round || nb.modulo) return false;
    numbered na = number_of(h, x, a);
    if (!na.fixed || !same_others(h, &na, &nb) || !address_of(h, y, b, &sum, &width)) return false;
    for (uint32_t i = 0; i < sum.count; i++)
        if (is_number(h, y, sum.terms[i].instance, sum.terms[i].leaf, &step) && sum.terms[i].factor < 0) return false;
    int64_t from = na.base + na.low - nb.base - nb.high + 1, to = na.base + na.high - nb.base - nb.low - 1; /* factor * number is in it */
    int64_t low = from >= 0 ? (from + nb.factor - 1) / nb.factor : -(-from / nb.factor), high = to >= 0 ? to / nb.factor : -1;
    return hb_joined_before(h, x, (hb_point){a->instance, a->insn}, y, low, high);
}

/* A number that is not negative. */
static bool is_natural(const hb *h, uint32_t origin, const part_term *t)
{
    const gift *g = &h->gifts->of[origin];
    const ir_func *ir = part_code(h, t->instance);
    const ir_insn *leaf = &ir->insns[t->leaf];
    int64_t delta;
    if (leaf->op == IR_AND && !leaf->b && leaf->imm >= 0 && leaf->imm <= INT32_MAX) return true;
    return g->kind == GIFT_NUMBER && g->count > 0 && gift_is_own(h, t->instance, gift_param(ir, t->leaf), &delta) && !delta;
}

/* A remainder of a division by a power of two is `((v + s) & m) - s`, with some bits s of the sign of v: not negative either, when it is
 * an index. */
static bool is_remainder(const hb *h, const part_sum *sum, uint32_t i)
{
    const part_term *t = &sum->terms[i];
    uint8_t op = part_code(h, t->instance)->insns[t->leaf].op;
    for (uint32_t k = 0; k < sum->count; k++) {
        const part_term *other = &sum->terms[k];
        uint8_t with = part_code(h, other->instance)->insns[other->leaf].op;
        if (other->instance == t->instance && other->factor == -t->factor && t->factor < 0 && op == IR_SHR && with == IR_AND) return true;
    }
    return false;
}

/* The address is a constant behind the end of the object, and something that is not negative: it is not in there, although an index
 * from there on could be negative (`array[n - i]` looks like this). */
bool hb_numbers_behind(hb *h, uint32_t origin, const hb_touch *t, const hb_place *p)
{
    const pta_site *site = &h->program->sites.data[p->place.site];
    part_sum sum;
    int64_t width;
    if (site->kind != PTA_STATIC || site->module != h->program->funcs.data[t->func].module) return false; /* addresses of two modules */
    if (!site->size || !address_of(h, origin, t, &sum, &width) || sum.span) return false;
    bool behind = sum.add >= (int64_t)(site->start + site->size);
    for (uint32_t i = 0; i < sum.count && behind; i++)
        behind = is_remainder(h, &sum, i) || (sum.terms[i].factor > 0 && is_natural(h, origin, &sum.terms[i]));
    return behind;
}

/* The part of an iteration that comes in front of its ordered part. */
static bool is_before_ordered(const hb *h, const hb_touch *t)
{
    const lift_func *f = hb_code(h, t->func);
    const hb_func *own = &h->funcs[t->func];
    uint32_t block = hb_block_of(f, t->insn), loop = f->ir->blocks[block].loop;
    for (uint32_t c = 0; loop && c < own->call_count; c++) {
        const sync_entry *sync = own->calls[c].sync;
        if (!sync || sync->kind != SYNC_ACQUIRE || !sync->lock || strcmp(sync->lock, "omp ordered")) continue;
        uint32_t to = hb_block_of(f, own->calls[c].insn);
        if (f->ir->blocks[to].loop == loop && (to == block ? t->insn < own->calls[c].insn : ir_dominates(f->ir, block, to))) return true;
    }
    return false;
}

/* What an ordered part reaches of an earlier iteration, whose ordered part is over, and what that did before it. */
static bool are_ordered(hb *h, const hb_touch *a, const numbered *x, const hb_touch *b, const numbered *y)
{
    if (!x->known || !y->known || !x->round || x->round != x->factor || y->round != y->factor || x->factor != y->factor || x->space != y->space ||
        a->func != b->func || !same_others(h, x, y))
        return false;
    int64_t back = x->base - y->base; /* the iteration of b is that of a, and so many elements more */
    return back > 0 && back % x->factor == 0 && is_before_ordered(h, a) &&
           hb_holds_lock(h, (hb_point){b->instance, b->insn}, lock_by_name(h, "omp ordered", false));
}

bool hb_numbers_apart(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b)
{
    numbered na = number_of(h, x, a), nb = number_of(h, y, b);
    if (are_apart(h, &na, &nb) || are_ordered(h, a, &na, b, &nb) || are_ordered(h, b, &nb, a, &na)) return true;
    number_set sa = set_of(h, x, a), sb = set_of(h, y, b);
    if (sa.space && sa.space == sb.space && sa.iteration == sb.iteration) return true;
    return sa.bounded && sb.bounded && sa.mask && sa.mask == sb.mask && !(sa.mask & (sa.mask - 1)); /* one and the same thread */
}
