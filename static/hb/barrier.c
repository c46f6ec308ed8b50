/* Barriers. The code of a thread falls into phases: what can be reached from one barrier, or from the start, without passing
 * another. Threads that meet at barriers are in the same phase at any time, so accesses in different phases are ordered. That all
 * threads which share the data wait at the barrier is taken for granted.
 *
 * A thread that waits at several barriers, of which it is known for how many they are, meets all the others at the widest ones only;
 * those are one barrier to it. The narrow ones, for a part of the threads, order nothing that is known here.
 *
 * A phase is named by the barrier it begins with; two barriers of which none dominates the other may begin the same phase.
 * Different threads are compared by the number of barriers behind them, as long as no loop makes it vary. */
#include "static/hb/number.h"

typedef struct {
    uint32_t origin;
    hb_point at;     /* insn HB_NONE: the start */
    uint32_t object; /* of the barrier; HB_NONE: of the team */
    int number;      /* of barriers passed, this one included; -1: it varies */
    hb_region region;
} phase;

typedef VEC(phase) phase_list;

typedef struct {
    uint32_t object;
    int64_t count; /* of those that it is for; -1: not known */
    bool narrow;
    uint32_t same; /* a barrier that it is as good as */
} barrier;

struct hb_barriers {
    phase_list phases; /* by origin */
    hb_numbers cutters;
    VEC(barrier) known; /* those of which their init was seen */
};

static uint32_t barrier_object(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    pta_places places = {0};
    uint32_t object = HB_NONE;
    if (sync->arg >= 0 && h->program->calls.data[call->call].args[sync->arg].var != PTA_NO_VAR) {
        hb_points_to(h, instance, h->program->calls.data[call->call].args[sync->arg], &places);
        if (places.len == 1) object = hb_object(h, h->program->sites.data[places.data[0].site].memory, places.data[0].context);
    }
    vec_free(&places);
    return object;
}

static barrier *find_barrier(const hb *h, uint32_t object)
{
    for (uint32_t i = 0; i < h->barriers->known.len; i++)
        if (h->barriers->known.data[i].object == object) return &h->barriers->known.data[i];
    return NULL;
}

/* Of a call that waits at a barrier which counts: which one it is as good as. False: it waits at no such. */
static bool waits_at(hb *h, uint32_t instance, const hb_call *call, uint32_t *object)
{
    const sync_entry *sync = hb_call_sync(h, instance, call);
    if (!sync || sync->kind != SYNC_BARRIER) return false;
    *object = barrier_object(h, instance, call, sync);
    const barrier *b = find_barrier(h, *object);
    if (b) *object = b->same;
    return !b || !b->narrow;
}

static bool cuts(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    uint32_t object;
    return waits_at((hb *)w->with, instance, call, &object);
}

static void take_inits(hb *h, uint32_t instance)
{
    const hb_func *f = &h->funcs[h->instances[instance].func];
    for (uint32_t c = 0; c < f->call_count; c++) {
        const hb_call *call = &f->calls[c];
        const sync_entry *sync = hb_call_sync(h, instance, call);
        if (!sync || sync->kind != SYNC_BARRIER_INIT) continue;
        uint32_t object = barrier_object(h, instance, call, sync);
        int64_t count = call->value ? part_number(part_code(h, instance), part_argument(part_code(h, instance), call, (unsigned)sync->other)) : -1;
        barrier *b = find_barrier(h, object);
        if (b && b->count != count) b->count = -1;
        if (!b && object != HB_NONE) vec_push(&h->barriers->known, (barrier){.object = object, .count = count, .same = object});
    }
}

/* Which of the barriers that an origin waits at are the widest. */
static void compare_widths(hb *h, uint32_t origin)
{
    hb_numbers at = {0};
    int64_t widest = 0;
    bool all = true;
    for (uint32_t k = 0; k < h->barriers->cutters.len; k++) {
        uint32_t i = h->barriers->cutters.data[k];
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; hb_bit(h->origins.data[origin].self, i) && c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            if (!sync || sync->kind != SYNC_BARRIER) continue;
            const barrier *b = find_barrier(h, barrier_object(h, i, &f->calls[c], sync));
            all &= b && b->count > 0;
            if (!b) continue;
            if (b->count > widest) widest = b->count;
            vec_push(&at, b->object);
        }
    }
    const barrier *first = NULL;
    for (uint32_t i = 0; i < at.len && all; i++) {
        barrier *b = find_barrier(h, at.data[i]);
        b->narrow |= b->count < widest;
        if (b->count < widest) continue;
        if (!first) first = b;
        b->same = first->same;
    }
    vec_free(&at);
}

static bool dominates(const hb *h, hb_point a, hb_point b)
{
    if (a.instance != b.instance || a.insn == HB_NONE || b.insn == HB_NONE) return false;
    const lift_func *f = hb_instance_code(h, a.instance);
    uint32_t x = hb_block_of(f, a.insn), y = hb_block_of(f, b.insn);
    return x == y ? a.insn < b.insn : ir_dominates(f->ir, x, y);
}

static void number_phases(hb *h, uint32_t first)
{
    phase_list *all = &h->barriers->phases;
    for (uint32_t i = first; i < all->len; i++) {
        phase *p = &all->data[i];
        if (p->at.insn == HB_NONE) continue;
        const lift_func *f = hb_instance_code(h, p->at.instance);
        p->number = f->ir->blocks[hb_block_of(f, p->at.insn)].loop ? -1 : 1;
        for (uint32_t k = first; k < all->len && p->number > 0; k++) {
            if (k == i || all->data[k].at.insn == HB_NONE) continue;
            bool before = dominates(h, all->data[k].at, p->at), after = dominates(h, p->at, all->data[k].at);
            p->number = before ? p->number + 1 : after ? p->number : -1;
        }
    }
    bool varies = false;
    for (uint32_t i = first; i < all->len; i++)
        varies |= all->data[i].number < 0;
    for (uint32_t i = first; i < all->len && varies; i++)
        all->data[i].number = -1;
}

void hb_barriers_open(hb *h)
{
    h->barriers = base_alloc_zero(1, sizeof *h->barriers);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        take_inits(h, i);
        const hb_func *f = &h->funcs[h->instances[i].func];
        bool any = false;
        for (uint32_t c = 0; c < f->call_count && !any; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            any = sync && sync->kind == SYNC_BARRIER;
        }
        if (any) vec_push(&h->barriers->cutters, i);
    }
    for (uint32_t o = 0; o < h->origins.len; o++)
        compare_widths(h, o);
    for (uint32_t o = 0; o < h->origins.len; o++) {
        uint32_t first = h->barriers->phases.len;
        for (uint32_t k = 0; k < h->barriers->cutters.len; k++) {
            uint32_t i = h->barriers->cutters.data[k];
            if (!hb_bit(h->origins.data[o].self, i)) continue;
            const hb_func *f = &h->funcs[h->instances[i].func];
            for (uint32_t c = 0; c < f->call_count; c++) {
                uint32_t object;
                if (!waits_at(h, i, &f->calls[c], &object)) continue;
                vec_push(&h->barriers->phases, (phase){.origin = o, .at = {i, f->calls[c].insn}, .object = object});
            }
        }
        if (h->barriers->phases.len == first) continue;
        vec_push(&h->barriers->phases, (phase){.origin = o, .at = {h->origins.data[o].instance, HB_NONE}, .object = HB_NONE});
        number_phases(h, first);
        hb_walk walk = {.cuts = cuts, .with = h, .cutters = h->barriers->cutters.data, .cutter_count = h->barriers->cutters.len, .origin = o};
        for (uint32_t p = first; p < h->barriers->phases.len; p++)
            hb_region_walk(h, &walk, &h->barriers->phases.data[p].at, 1, &h->barriers->phases.data[p].region);
    }
}

void hb_barriers_close(hb *h)
{
    if (!h->barriers) return;
    for (uint32_t p = 0; p < h->barriers->phases.len; p++)
        hb_region_free(&h->barriers->phases.data[p].region);
    vec_free(&h->barriers->phases);
    vec_free(&h->barriers->cutters);
    vec_free(&h->barriers->known);
    free(h->barriers);
}

static bool same_code(const hb *h, const phase *p, const phase *q)
{
    return h->instances[p->at.instance].func == h->instances[q->at.instance].func;
}

/* Whether two phases may be one, of two threads that run the same code. */
static bool may_be_one(const hb *h, const phase *p, const phase *q)
{
    if (p->at.insn == HB_NONE || q->at.insn == HB_NONE) return p->at.insn == q->at.insn;
    if (!same_code(h, p, q)) return true;
    if (p->at.insn == q->at.insn) return true;
    hb_point other = {p->at.instance, q->at.insn};
    return !dominates(h, p->at, other) && !dominates(h, other, p->at);
}

bool hb_barriers_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    const hb_origin *ox = &h->origins.data[x], *oy = &h->origins.data[y];
    bool alike = x == y || ox->twin == y || (ox->kind == HB_THREAD && oy->kind == HB_THREAD && ox->entry == oy->entry), any_a = false, any_b = false;
    uint32_t object = HB_NONE;
    for (uint32_t i = 0; i < h->barriers->phases.len; i++) {
        const phase *p = &h->barriers->phases.data[i];
        if (p->origin != x) continue;
        if (p->at.insn != HB_NONE) {
            if (object != HB_NONE && object != p->object) return false; /* several barriers: whose phases are not known */
            object = p->object;
        }
        if (!hb_region_has(&p->region, a)) continue;
        any_a = true;
        for (uint32_t k = 0; k < h->barriers->phases.len; k++) {
            const phase *q = &h->barriers->phases.data[k];
            if (q->origin != y || !hb_region_has(&q->region, b)) continue;
            any_b = true;
            if (alike ? may_be_one(h, p, q) : p->number < 0 || q->number < 0 || p->number == q->number) return false;
            if (!alike && q->at.insn != HB_NONE && p->at.insn != HB_NONE && p->object != q->object) return false;
        }
    }
    if (!alike && object == HB_NONE) return false; /* teams do not meet each other */
    if (!alike) /* both must wait at that barrier */
        for (uint32_t k = 0; k < h->barriers->phases.len; k++) {
            const phase *q = &h->barriers->phases.data[k];
            if (q->origin == y && q->at.insn != HB_NONE && q->object != object) return false;
        }
    return any_a && any_b;
}
