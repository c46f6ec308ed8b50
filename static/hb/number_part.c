/* Values followed through parameters: to the calls of one origin that pass them, if all of them pass the same, to the constant that a
 * thread is created with, and into what qsort is given to sort. */
#include "static/hb/number.h"

/* Beyond these nothing is an address of ours; products of the two do not overflow. */
static const int64_t MOST_ADD = 1ll << 40, MOST_FACTOR = 1ll << 20;

typedef struct {
    uint32_t origin, instance;
    uint8_t param, depth;
    bool same; /* all calls pass the same: */
    part_sum sum;
} part_passing;

static bool is_small(int64_t n, int64_t most)
{
    return n >= -most && n <= most;
}

const pta_call_edge *part_caller(const hb *h, uint32_t origin, uint32_t instance, uint32_t *at)
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
    s->known &= is_small(t.factor, MOST_FACTOR);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->terms[i].instance == t.instance && s->terms[i].leaf == t.leaf) {
            s->terms[i].factor += t.factor;
            if (!s->terms[i].factor) s->terms[i] = s->terms[--s->count];
            return;
        }
    if (s->count == NUMBER_TERMS)
        s->known = false;
    else
        s->terms[s->count++] = t;
}

bool part_constant(const hb *h, uint32_t origin, int param, int64_t *value)
{
    const hb_origin *o = &h->origins.data[origin];
    if (o->kind != HB_THREAD || o->sites.len != 1 || param != 0 || !o->by || o->by->kind != SYNC_CREATE) return false;
    const lift_func *f = hb_instance_code(h, o->sites.data[0].instance);
    const hb_call *call = hb_call_at(h, h->instances[o->sites.data[0].instance].func, o->sites.data[0].insn);
    if (!f || !call || !call->value || hb_call_sync(h, o->sites.data[0].instance, call) != o->by) return false;
    value_sum s = value_of(f->ir, part_argument(f->ir, call, (unsigned)o->by->arg));
    *value = s.add;
    return s.known && !s.count && is_small(s.add, MOST_ADD);
}

static void expand(const hb *h, uint32_t origin, uint32_t instance, const value_sum *v, int64_t by, part_sum *out, unsigned depth);

/* Numbers in the code of two modules cannot be compared: they may be addresses, each in its own. Small ones are none. */
enum { FIRST_ADDRESS = 4096 };
static bool one_module(const hb *h, uint32_t a, uint32_t b)
{
    return h->program->funcs.data[h->instances[a].func].module == h->program->funcs.data[h->instances[b].func].module;
}

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
        const pta_call_edge *outer = part_caller(h, origin, e->caller, &at);
        if (!outer || part_caller(h, origin, e->caller, &at)) return false;
        if (!hb_instance_code(h, outer->caller) || !one_module(h, outer->caller, e->callee)) return false;
        e = outer;
    }
    if (!hb_instance_code(h, e->caller)) return false;
    const ir_func *ir = part_code(h, e->caller);
    const hb_call *call = hb_call_at(h, h->instances[e->caller].func, h->call_insn[e->call]);
    if (!call || !call->value) return false;
    value_sum passed = value_of(ir, part_argument(ir, call, sorts ? 0 : (unsigned)param));
    expand(h, origin, e->caller, &passed, 1, out, depth + 1);
    out->known &= is_small(out->add, MOST_ADD);
    if (sorts) { /* what is compared lies in what is sorted */
        int64_t count = part_number(ir, part_argument(ir, call, 1)), size = part_number(ir, part_argument(ir, call, 2));
        out->known &= count > 0 && size > 0 && count < INT32_MAX && size < INT32_MAX && !out->span;
        out->span = count * size;
    }
    return out->known;
}

static bool find_passed(const hb *h, uint32_t origin, uint32_t instance, int param, part_sum *out, unsigned depth)
{
    uint32_t at = 0, calls = 0;
    for (const pta_call_edge *e; (e = part_caller(h, origin, instance, &at)); calls++) {
        part_sum one;
        if (hb_instance_code(h, e->caller) && !one_module(h, e->caller, instance)) return false;
        if (!passed_by(h, origin, e, param, calls ? &one : out, depth) || (calls && !same_sum(out, &one))) return false;
    }
    return calls > 0;
}

typedef struct hb_passings {
    map64 known; /* origin, instance, parameter and depth: in `found` */
    VEC(part_passing) found;
} hb_passings;

/* What a parameter is in all calls; asked once, as many accesses are by one parameter. */
static bool passed(const hb *h, uint32_t origin, uint32_t instance, int param, part_sum *out, unsigned depth)
{
    if (param < 0 || depth >= NUMBER_DEPTH || instance == h->origins.data[origin].instance) return false;
    hb_passings *all = h->passings;
    part_passing own = {.origin = origin, .instance = instance, .param = (uint8_t)param, .depth = (uint8_t)depth};
    uint64_t hash = map_hash(map_hash((uint64_t)origin << 32 | instance) + (unsigned)param * NUMBER_DEPTH + depth);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t at = map_get(&all->known, hash & ~(1ull << 63));
        if (at == MAP_NONE) break;
        const part_passing *p = &all->found.data[at];
        if (p->origin != origin || p->instance != instance || p->param != own.param || p->depth != own.depth) continue;
        if (p->same) *out = p->sum;
        return p->same;
    }
    own.same = find_passed(h, origin, instance, param, &own.sum, depth);
    while (map_get(&all->known, hash & ~(1ull << 63)) != MAP_NONE) /* others were found meanwhile */
        hash = map_hash(hash + 1);
    *map_at(&all->known, hash & ~(1ull << 63)) = all->found.len;
    vec_push(&all->found, own);
    if (own.same) *out = own.sum;
    return own.same;
}

void hb_passings_open(hb *h)
{
    h->passings = base_alloc_zero(1, sizeof *h->passings);
}

void hb_passings_close(hb *h)
{
    if (!h->passings) return;
    map_free(&h->passings->known);
    vec_free(&h->passings->found);
    free(h->passings);
}

static void expand(const hb *h, uint32_t origin, uint32_t instance, const value_sum *v, int64_t by, part_sum *out, unsigned depth)
{
    out->known &= v->known && is_small(v->add, MOST_ADD) && is_small(by, MOST_FACTOR);
    if (out->known) out->add += by * v->add;
    for (uint32_t i = 0; i < v->count && out->known; i++) {
        part_term t = {instance, v->terms[i].leaf, by * v->terms[i].factor};
        if (!is_small(t.factor, MOST_FACTOR)) {
            out->known = false;
            return;
        }
        int param = gift_param(part_code(h, instance), t.leaf);
        int64_t value;
        part_sum inner;
        if (instance == h->origins.data[origin].instance && part_constant(h, origin, param, &value) &&
            ((value >= 0 && value < FIRST_ADDRESS) || one_module(h, instance, h->origins.data[origin].sites.data[0].instance))) {
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

void part_expand(const hb *h, uint32_t origin, uint32_t instance, const value_sum *v, int64_t by, part_sum *out)
{
    expand(h, origin, instance, v, by, out, 0);
    out->known &= is_small(out->add, MOST_ADD);
}

/* --- strings ------------------------------------------------------------------------------------------------------------------ */

int64_t part_row(const hb *h, const hb_touch *t, const value_sum *sum)
{
    const pta_site *site = NULL;
    for (uint32_t i = 0; i < t->place_count && sum->known; i++) {
        const pta_site *at = &h->program->sites.data[h->places.data[t->first_place + i].place.site];
        if (at->kind == PTA_STATIC && at->module == h->program->funcs.data[t->func].module && sum->add >= (int64_t)at->start && sum->add < (int64_t)(at->start + at->size)) site = at;
    }
    const image_type *type = site ? site->type : NULL;
    if (!type || type->kind != IMAGE_TYPE_ARRAY || !type->target || type->target->kind != IMAGE_TYPE_ARRAY || !type->target->size) return 0;
    int64_t row = (int64_t)type->target->size;
    if ((sum->add - (int64_t)site->start) % row) return 0;
    for (uint32_t i = 0; i < sum->count; i++)
        if (sum->terms[i].factor % row) return 0;
    return row;
}

bool part_drop_length(const hb *h, const hb_touch *t, const ir_func *ir, value_sum *sum)
{
    for (uint32_t i = 0; i < sum->count; i++) {
        const ir_insn *result = &ir->insns[sum->terms[i].leaf];
        const hb_call *call = result->op == IR_RESULT && result->var == IR_RAX ? hb_call_at(h, t->func, ir->insns[result->a].insn) : NULL;
        uint32_t callee = call && call->value ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
        if (sum->terms[i].factor != 1 || callee == PTA_NO_FUNC || strcmp(h->program->funcs.data[callee].name, "strlen")) continue;
        value_sum rest = *sum, string = value_of(ir, part_argument(ir, call, 0));
        memmove(&rest.terms[i], &rest.terms[i + 1], (rest.count - i - 1) * sizeof *rest.terms);
        rest.count--;
        if (rest.add < string.add || !value_same_terms(&rest, &string)) continue;
        *sum = string;
        return true;
    }
    return false;
}
