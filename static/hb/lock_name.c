/* Which lock an address means. It is known by its object when there is but one such object, and by the value of the address inside
 * of one function: `o->lock` is value o plus a constant, and so is `o->field`; their distance is what both sides of a pair must
 * have in common. Requires the instances and origins of h. */
#include "static/hb/lock.h"

enum { MOST_AGAIN = 3 };

static uint32_t instance_of(const hb *h, uint32_t func, uint32_t context)
{
    return map_get(&h->locks->instance_map, (uint64_t)func << 32 | context);
}

/* --- single objects --------------------------------------------------------------------------------------------------- */

bool hb_single(const hb *h, const pta_place *place)
{
    const pta_site *site = &h->program->sites.data[place->site];
    if (!place->exact) return false;
    if (site->kind == PTA_STATIC) return true;
    if (site->kind != PTA_HEAP && site->kind != PTA_FRAME) return false;
    uint32_t instance = instance_of(h, site->func, place->context);
    if (instance == MAP_NONE) return false;
    if (h->once[instance]) return true;
    if (site->kind == PTA_HEAP) return false;
    for (uint32_t o = 0; o < h->origins.len; o++) /* frames: one at a time in a thread that is alone */
        if (hb_bit(h->origins.data[o].self, instance) && (h->origins.data[o].overlaps || h->origins.data[o].twin != HB_NONE)) return false;
    return true;
}

static uint32_t object_lock(hb *h, const pta_place *place, bool shared)
{
    const pta_site *site = &h->program->sites.data[place->site];
    return lockset_lock(&h->locks->table, (lock_element){.kind = LOCK_OBJECT, .shared = shared,
                                                         .a = hb_object(h, site->memory, place->context), .twin = LOCK_NO_TWIN,
                                                         .at = site->base + place->offset});
}

/* --- the lock that an address means ------------------------------------------------------------------------------------- */

uint32_t lock_sum_number(hb *h, uint32_t func, const value_sum *sum)
{
    uint64_t hash = func;
    for (uint32_t i = 0; i < sum->count; i++)
        hash = map_hash(hash * 31 + sum->terms[i].leaf + ((uint64_t)sum->terms[i].factor << 32));
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&h->locks->sum_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = h->locks->sums.len;
            vec_push(&h->locks->sums, *sum);
            vec_push(&h->locks->sum_func, func);
            return *at;
        }
        if (h->locks->sum_func.data[*at] == func && value_same_terms(&h->locks->sums.data[*at], sum)) return *at;
    }
}

/* Where in objects of which kind. */
uint64_t lock_place_kind(const hb *h, const pta_place *place)
{
    const pta_site *site = &h->program->sites.data[place->site];
    uint64_t at = (uint64_t)(site->base + place->offset);
    return map_hash(((uint64_t)site->memory << 32) + at * 2 + 1) | 1;
}

static bool same_place(const pta_place *x, const pta_place *y)
{
    return x->site == y->site && x->context == y->context && x->exact == y->exact && x->offset == y->offset && x->stride == y->stride;
}

uint32_t lock_places_number(hb *h, const pta_places *places)
{
    hb_locks *l = h->locks;
    uint64_t hash = places->len;
    for (uint32_t i = 0; i < places->len; i++) {
        const pta_place *p = &places->data[i];
        hash = map_hash(hash * 31 + ((uint64_t)p->site << 32 | p->context));
        hash = map_hash(hash + ((uint64_t)(uint32_t)p->offset << 32 | p->stride) + p->exact);
    }
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&l->place_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = l->place_lists.len;
            vec_push(&l->place_lists, (lock_places){l->all_places.len, places->len});
            for (uint32_t i = 0; i < places->len; i++)
                vec_push(&l->all_places, places->data[i]);
            return *at;
        }
        const lock_places *known = &l->place_lists.data[*at];
        bool same = known->count == places->len;
        for (uint32_t i = 0; i < places->len && same; i++)
            same = same_place(&l->all_places.data[known->first + i], &places->data[i]);
        if (same) return *at;
    }
}

void lock_name_address(hb *h, uint32_t func, const value_sum *sum, uint32_t list, bool shared, lock_name *out)
{
    uint32_t count;
    const pta_place *places = lock_places_of(h, list, &count);
    *out = (lock_name){.object = UINT32_MAX, .value = UINT32_MAX, .sum = *sum, .places = list};
    if (count == 1 && hb_single(h, places)) out->object = object_lock(h, places, shared);
    if (!sum->known || !sum->count) return;
    uint64_t kind = count ? lock_place_kind(h, places) : 0;
    for (uint32_t i = 1; i < count && kind; i++)
        if (lock_place_kind(h, &places[i]) != kind) kind = 0;
    out->value = lockset_lock(&h->locks->table, (lock_element){.kind = LOCK_VALUE, .shared = shared, .a = lock_sum_number(h, func, sum),
                                                               .b = func, .twin = out->object, .at = sum->add});
    while (h->locks->kinds.len <= out->value)
        vec_push(&h->locks->kinds, 0);
    h->locks->kinds.data[out->value] = kind;
    *map_at(&h->locks->lists, out->value) = list;
}

/* A lock whose address is in a variable of which there is one, and `add` bytes from there. */
static uint32_t variable_lock(hb *h, uint32_t instance, const value_sum *sum, bool shared)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    if (!sum->known || sum->count != 1 || sum->terms[0].factor != 1 || ir->insns[sum->terms[0].leaf].op != IR_LOAD) return UINT32_MAX;
    const ir_insn *access = &ir->insns[ir->insns[sum->terms[0].leaf].a];
    uint32_t count, found = UINT32_MAX;
    const pta_access *accesses = pta_accesses(h->program, h->instances[instance].func, &count);
    pta_places places = {0};
    for (uint32_t a = 0; a < count && found == UINT32_MAX; a++) {
        if (accesses[a].insn != access->insn || accesses[a].flags != access->flags) continue;
        pta_access_places_in(h->p, instance, &accesses[a], &places);
        if (places.len != 1 || !places.data[0].exact || h->program->sites.data[places.data[0].site].kind != PTA_STATIC) break;
        uint32_t object = object_lock(h, &places.data[0], shared); /* first: it may move them all */
        lock_element e = h->locks->table.locks.data[object];
        e.b = (uint32_t)sum->add;
        found = lockset_lock(&h->locks->table, e);
    }
    vec_free(&places);
    return found;
}

/* The list of what an argument may point to. Where pointers are wild, thousands of arguments have the same long one: it is made once
 * for all whose facts are the same. */
static uint32_t argument_places(hb *h, uint32_t instance, pta_operand what)
{
    pta_places places = {0};
    if (what.var == PTA_NO_VAR) return lock_places_number(h, &places);
    uint64_t hash = map_hash(pta_hash_in(h->p, instance, what.var) + (uint32_t)what.delta);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&h->locks->asked_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = h->locks->asked.len;
            hb_points_to(h, instance, what, &places);
            vec_push(&h->locks->asked, (lock_asked){instance, what, lock_places_number(h, &places)});
            vec_free(&places);
        }
        const lock_asked *known = &h->locks->asked.data[*at];
        if (known->what.delta == what.delta && pta_is_same_in(h->p, known->instance, known->what.var, instance, what.var))
            return known->list;
    }
}

static uint64_t argument_hash(uint32_t instance, uint32_t call, unsigned arg, int64_t add, bool shared)
{
    return map_hash(map_hash((uint64_t)instance << 32 | call) + (uint64_t)add * 16 + arg * 2 + shared);
}

/* The argument as it is known already, in one mode or the other; NULL: it is not. */
static const lock_argument *known_argument(const hb_locks *l, uint32_t instance, uint32_t call, unsigned arg, int64_t add, bool shared)
{
    uint64_t hash = argument_hash(instance, call, arg, add, shared);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t at = map_get(&l->name_map, hash & ~(1ull << 63));
        if (at == MAP_NONE) return NULL;
        const lock_argument *a = &l->names.data[at];
        if (a->instance == instance && a->call == call && a->arg == arg && a->shared == shared && a->add == add) return a;
    }
}

static void find_argument(hb *h, uint32_t instance, const hb_call *call, unsigned arg, int64_t add, bool shared, lock_name *out)
{
    const lift_func *f = hb_instance_code(h, instance);
    const hb_locks *certain = h->locks->certain;
    const lock_argument *before = certain ? known_argument(certain, instance, call->call, arg, add, shared) : NULL;
    value_sum sum = {0};
    uint32_t list;
    if (before) { /* what it points to does not depend on conditions */
        const lock_places *own = &certain->place_lists.data[before->name.places];
        list = lock_places_number(h, &(pta_places){.data = certain->all_places.data + own->first, .len = own->count});
    } else {
        pta_operand what = h->program->calls.data[call->call].args[arg];
        if (what.var != PTA_NO_VAR) what.delta += (int32_t)add;
        list = argument_places(h, instance, what);
    }
    if (call->value && arg < 6) sum = value_of(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + arg]);
    sum.add += add;
    lock_name_address(h, h->instances[instance].func, &sum, list, shared, out);
    if (h->locks->optional && out->object == UINT32_MAX) out->object = variable_lock(h, instance, &sum, shared);
}

/* The same, asked once: the flow comes by many times. */
void lock_name_argument(hb *h, uint32_t instance, const hb_call *call, unsigned arg, int64_t add, bool shared, lock_name *out)
{
    uint64_t hash = argument_hash(instance, call->call, arg, add, shared);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&h->locks->name_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = h->locks->names.len;
            lock_argument a = {.instance = instance, .call = call->call, .arg = (uint8_t)arg, .shared = shared, .add = add};
            find_argument(h, instance, call, arg, add, shared, &a.name);
            vec_push(&h->locks->names, a);
        }
        const lock_argument *known = &h->locks->names.data[*at];
        if (known->instance != instance || known->call != call->call || known->arg != arg || known->shared != shared || known->add != add)
            continue;
        *out = known->name;
        return;
    }
}

uint32_t lock_by_name(hb *h, const char *name, bool shared)
{
    return lockset_lock(&h->locks->table, (lock_element){.kind = LOCK_NAMED, .shared = shared, .twin = LOCK_NO_TWIN, .name = name});
}

/* Taken while it is held: a recursive lock, since with another the thread would not have come this far. */
static uint32_t lock_again(hb *h, uint32_t set, uint32_t lock)
{
    lock_element again = {.kind = LOCK_AGAIN, .a = lock, .twin = LOCK_NO_TWIN};
    while (again.at < MOST_AGAIN && lockset_has(&h->locks->table, set, lockset_lock(&h->locks->table, again)))
        again.at++;
    return lockset_add(&h->locks->table, set, lockset_lock(&h->locks->table, again));
}

bool lock_undo_again(hb *h, uint32_t *set, uint32_t lock)
{
    for (int64_t at = MOST_AGAIN; at >= 0; at--) {
        uint32_t again = lockset_lock(&h->locks->table, (lock_element){.kind = LOCK_AGAIN, .a = lock, .at = at, .twin = LOCK_NO_TWIN});
        if (!lockset_has(&h->locks->table, *set, again)) continue;
        *set = lockset_remove(&h->locks->table, *set, again);
        return true;
    }
    return false;
}

uint32_t lock_take(hb *h, uint32_t set, const lock_name *name)
{
    if (name->object != UINT32_MAX && lockset_has(&h->locks->table, set, name->object)) set = lock_again(h, set, name->object);
    if (name->value != UINT32_MAX && lockset_has(&h->locks->table, set, name->value)) set = lock_again(h, set, name->value);
    return lock_add(h, set, name);
}

uint32_t lock_add(hb *h, uint32_t set, const lock_name *name)
{
    if (name->object != UINT32_MAX) set = lockset_add(&h->locks->table, set, name->object);
    if (name->value != UINT32_MAX) set = lockset_add(&h->locks->table, set, name->value);
    return set;
}
