/* Must-held locks: forward over the control flow of each instance, with summaries for calls (what a function takes and keeps,
 * what it lets go of), then downwards (what all callers hold).
 *
 * A lock is known by its object when there is but one such object, and by the value of its address inside of one function:
 * `o->lock` is value o plus a constant, and so is `o->field`; their distance is what both sides of a pair must have in common.
 * Values are handed to callees and back as far as they are parameters. A release that names no held lock lets go of every lock
 * that it may mean. Locks made of atomics (a spinning xchg or cmpxchg) count on the branch on which they were free. */
#include <Zydis/Zydis.h>

#include "static/hb/lock.h"

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

static uint32_t sum_number(hb *h, uint32_t func, const value_sum *sum)
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
static uint64_t place_kind(const hb *h, const pta_place *place)
{
    const pta_site *site = &h->program->sites.data[place->site];
    uint64_t at = (uint64_t)(site->base + place->offset);
    return map_hash(((uint64_t)site->memory << 32) + at * 2 + 1) | 1;
}

static void name_lock(hb *h, uint32_t func, const value_sum *sum, bool shared, lock_name *out)
{
    out->object = out->value = UINT32_MAX;
    out->sum = *sum;
    if (out->places.len == 1 && hb_single(h, &out->places.data[0])) out->object = object_lock(h, &out->places.data[0], shared);
    if (!sum->known || !sum->count) return;
    uint64_t kind = out->places.len ? place_kind(h, &out->places.data[0]) : 0;
    for (uint32_t i = 1; i < out->places.len; i++)
        if (place_kind(h, &out->places.data[i]) != kind) kind = 0;
    out->value = lockset_lock(&h->locks->table, (lock_element){.kind = LOCK_VALUE, .shared = shared, .a = sum_number(h, func, sum),
                                                               .b = func, .twin = out->object, .at = sum->add});
    while (h->locks->kinds.len <= out->value)
        vec_push(&h->locks->kinds, 0);
    h->locks->kinds.data[out->value] = kind;
}

static void find_argument(hb *h, uint32_t instance, const hb_call *call, unsigned arg, int64_t add, bool shared, lock_name *out)
{
    const lift_func *f = hb_instance_code(h, instance);
    pta_operand what = h->program->calls.data[call->call].args[arg];
    vec_clear(&out->places);
    if (what.var != PTA_NO_VAR) {
        what.delta += (int32_t)add;
        hb_points_to(h, instance, what, &out->places);
    }
    value_sum sum = {0};
    if (call->value && arg < 6) sum = value_of(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + arg]);
    sum.add += add;
    name_lock(h, h->instances[instance].func, &sum, shared, out);
}

/* The same, asked once: the flow comes by many times. */
static void name_argument(hb *h, uint32_t instance, const hb_call *call, unsigned arg, int64_t add, bool shared, lock_name *out)
{
    uint64_t hash = map_hash(map_hash((uint64_t)instance << 32 | call->call) + (uint64_t)add * 16 + arg * 2 + shared);
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
        vec_clear(&out->places);
        for (uint32_t i = 0; i < known->name.places.len; i++)
            vec_push(&out->places, known->name.places.data[i]);
        out->object = known->name.object;
        out->value = known->name.value;
        out->sum = known->name.sum;
        return;
    }
}

static uint32_t named_lock(hb *h, const char *name, bool shared)
{
    return lockset_lock(&h->locks->table, (lock_element){.kind = LOCK_NAMED, .shared = shared, .twin = LOCK_NO_TWIN, .name = name});
}

static uint32_t add_named(hb *h, uint32_t set, const lock_name *name)
{
    if (name->object != UINT32_MAX) set = lockset_add(&h->locks->table, set, name->object);
    if (name->value != UINT32_MAX) set = lockset_add(&h->locks->table, set, name->value);
    return set;
}

/* --- letting go ---------------------------------------------------------------------------------------------------------- */

/* A lock, in whichever mode it is held, and whatever is known to be the same. */
static uint32_t drop_lock(hb *h, uint32_t set, uint32_t lock, bool *found)
{
    lockset_table *t = &h->locks->table;
    lock_element e = t->locks.data[lock];
    for (unsigned shared = 0; shared < 2; shared++) {
        e.shared = shared;
        if (e.kind == LOCK_VALUE && e.twin != LOCK_NO_TWIN) {
            lock_element twin = t->locks.data[e.twin];
            twin.shared = shared;
            e.twin = lockset_lock(t, twin);
        }
        uint32_t id = lockset_lock(t, e);
        if (!lockset_has(t, set, id)) continue;
        *found = true;
        set = lockset_remove(t, set, id);
        if (e.kind == LOCK_VALUE && e.twin != LOCK_NO_TWIN) set = lockset_remove(t, set, e.twin);
        uint32_t count;
        lockset_members(t, set, &count);
        for (uint32_t i = 0; i < count;) {
            uint32_t other = lockset_members(t, set, &count)[i];
            uint32_t twin = t->locks.data[other].twin;
            if (twin != LOCK_NO_TWIN && (twin == id || twin == e.twin)) {
                set = lockset_remove(t, set, other);
                lockset_members(t, set, &count);
            } else {
                i++;
            }
        }
    }
    return set;
}

static bool may_be(hb *h, uint32_t lock, const pta_places *places)
{
    lock_element e = h->locks->table.locks.data[lock];
    if (e.kind == LOCK_HOLDER || e.kind == LOCK_NAMED) return false;
    if (e.kind == LOCK_VALUE && e.twin != LOCK_NO_TWIN) return may_be(h, e.twin, places);
    if (!places->len) return true;
    for (uint32_t i = 0; i < places->len; i++) {
        const pta_site *site = &h->program->sites.data[places->data[i].site];
        if (e.kind == LOCK_VALUE) {
            if (!hb_single(h, &places->data[i])) return true;
            continue;
        }
        if (hb_object(h, site->memory, places->data[i].context) != e.a) continue;
        if (!places->data[i].exact || site->base + places->data[i].offset == e.at) return true;
    }
    return false;
}

static uint32_t drop_places(hb *h, uint32_t set, const pta_places *places, bool *found)
{
    lockset_table *t = &h->locks->table;
    uint32_t count;
    lockset_members(t, set, &count);
    for (uint32_t i = 0; i < count;) {
        uint32_t lock = lockset_members(t, set, &count)[i];
        if (may_be(h, lock, places)) {
            *found = true;
            set = lockset_remove(t, set, lock);
            lockset_members(t, set, &count);
        } else {
            i++;
        }
    }
    return set;
}

static int param_of(const ir_func *ir, const value_sum *sum)
{
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    if (!sum->known || sum->count != 1 || sum->terms[0].factor != 1) return -1;
    const ir_insn *insn = &ir->insns[sum->terms[0].leaf];
    for (int i = 0; insn->op == IR_ENTRY && i < 6; i++)
        if (insn->var == registers[i]) return i;
    return -1;
}

static bool same_release(const lock_release *x, const lock_release *y)
{
    if (x->kind != y->kind || x->param != y->param || x->at != y->at || x->lock != y->lock || x->places.len != y->places.len) return false;
    for (uint32_t i = 0; i < x->places.len; i++) {
        const pta_place *p = &x->places.data[i], *q = &y->places.data[i];
        if (p->site != q->site || p->context != q->context || p->exact != q->exact || p->offset != q->offset) return false;
    }
    return true;
}

enum { MOST_RELEASES = 24 }; /* more, as recursion may make them, are a release of anything */

static void note_release(hb *h, uint32_t instance, lock_release r)
{
    lock_instance *l = &h->locks->instances[instance];
    bool known = l->lets_all_go;
    for (uint32_t i = 0; i < l->releases.len && !known; i++)
        known = same_release(&l->releases.data[i], &r);
    if (known) {
        vec_free(&r.places);
        return;
    }
    vec_push(&l->releases, r);
    if (l->releases.len <= MOST_RELEASES) return;
    for (uint32_t i = 0; i < l->releases.len; i++)
        vec_free(&l->releases.data[i].places);
    vec_clear(&l->releases);
    vec_push(&l->releases, (lock_release){.kind = RELEASE_PLACES});
    l->lets_all_go = true;
}

/* What a release that named nothing held means to callers. */
static void note_foreign(hb *h, uint32_t instance, const lock_name *name)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    int param = param_of(ir, &name->sum);
    if (param >= 0) {
        note_release(h, instance, (lock_release){.kind = RELEASE_PARAM, .param = (uint8_t)param, .at = name->sum.add});
        return;
    }
    if (name->sum.known && name->sum.count == 1 && name->sum.terms[0].factor == 1 && !name->sum.add) {
        const ir_insn *load = &ir->insns[name->sum.terms[0].leaf];
        if (load->op == IR_LOAD) {
            value_sum holder = value_address(ir, &ir->insns[load->a]);
            int of = param_of(ir, &holder);
            if (of >= 0)
                note_release(h, instance, (lock_release){.kind = RELEASE_HOLDER, .param = (uint8_t)of, .at = holder.add + load->imm});
        }
    }
    lock_release r = {.kind = RELEASE_PLACES};
    for (uint32_t i = 0; i < name->places.len; i++)
        vec_push(&r.places, name->places.data[i]);
    note_release(h, instance, r);
}

static uint32_t release(hb *h, uint32_t instance, uint32_t set, const lock_name *name)
{
    bool found = false;
    if (name->value != UINT32_MAX) set = drop_lock(h, set, name->value, &found);
    if (name->object != UINT32_MAX) set = drop_lock(h, set, name->object, &found);
    if (!found) {
        set = drop_places(h, set, &name->places, &found);
        note_foreign(h, instance, name);
    }
    return set;
}

/* --- calls ------------------------------------------------------------------------------------------------------------------ */

static bool frame_argument(const ir_func *ir, ir_value v, int64_t *at)
{
    int32_t offset;
    uint8_t base;
    if (!v || !ir_frame_offset(ir, v, &offset, &base)) return false;
    *at = (int64_t)offset + ((int64_t)base << 40);
    return true;
}

static ir_value call_argument(const ir_func *ir, const hb_call *call, unsigned arg)
{
    return call->value ? ir->args[ir->insns[call->value].a + IR_CALL_RDI + arg] : 0;
}

static uint32_t drop_holder(hb *h, uint32_t instance, uint32_t set, const hb_call *call, const lock_release *r, bool *found)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    lockset_table *t = &h->locks->table;
    int64_t at;
    if (!frame_argument(ir, call_argument(ir, call, r->param), &at)) return set;
    uint32_t count;
    const uint32_t *members = lockset_members(t, set, &count);
    for (uint32_t i = 0; i < count; i++) {
        const lock_element *e = &t->locks.data[members[i]];
        if (e->kind != LOCK_HOLDER || e->b != h->instances[instance].func || e->at != at) continue;
        uint32_t twin = e->twin, holder = members[i];
        *found = true;
        set = drop_lock(h, set, twin, found);
        return lockset_remove(t, set, holder);
    }
    return set;
}

/* What a callee lets go of, in its caller. */
static uint32_t apply_releases(hb *h, uint32_t instance, uint32_t set, const hb_call *call, uint32_t callee)
{
    lock_name name = {0};
    bool held = false;
    for (uint32_t i = 0; i < h->locks->instances[callee].releases.len; i++) { /* which may grow meanwhile, in recursion */
        const lock_release r = h->locks->instances[callee].releases.data[i];
        bool found = false;
        if (r.kind == RELEASE_PARAM) {
            name_argument(h, instance, call, r.param, r.at, false, &name);
            set = release(h, instance, set, &name);
        } else if (r.kind == RELEASE_HOLDER) {
            set = drop_holder(h, instance, set, call, &r, &held);
        } else if (r.kind == RELEASE_LOCK) {
            set = drop_lock(h, set, r.lock, &found);
        } else if (!held) {
            uint32_t before = set;
            set = drop_places(h, set, &r.places, &found);
            if (before == set) {
                lock_release copy = {.kind = RELEASE_PLACES};
                for (uint32_t k = 0; k < r.places.len; k++)
                    vec_push(&copy.places, r.places.data[k]);
                note_release(h, instance, copy); /* r is not looked at any more: it may be gone */
            }
        }
    }
    vec_free(&name.places);
    return set;
}

/* What a callee has taken, in its caller. */
static uint32_t apply_gain(hb *h, uint32_t instance, uint32_t set, const hb_call *call, uint32_t callee)
{
    lockset_table *t = &h->locks->table;
    uint32_t gain = h->locks->instances[callee].gain, count;
    lock_name name = {0};
    lockset_members(t, gain, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lock = lockset_members(t, gain, &count)[i], kept = UINT32_MAX;
        lock_element e = t->locks.data[lock];
        if (e.kind == LOCK_OBJECT || e.kind == LOCK_NAMED) {
            set = lockset_add(t, set, kept = lock);
        } else if (e.kind == LOCK_VALUE) {
            value_sum sum = h->locks->sums.data[e.a];
            const lift_func *f = hb_instance_code(h, callee);
            int param = f ? param_of(f->ir, &sum) : -1;
            if (param < 0) continue;
            name_argument(h, instance, call, (unsigned)param, e.at, e.shared, &name);
            set = add_named(h, set, &name);
            kept = name.value != UINT32_MAX ? name.value : name.object;
        }
        const ir_func *ir = hb_instance_code(h, instance)->ir;
        int64_t at;
        for (unsigned a = 0; kept != UINT32_MAX && a < 3; a++)
            if (frame_argument(ir, call_argument(ir, call, a), &at))
                set = lockset_add(t, set, lockset_lock(t, (lock_element){.kind = LOCK_HOLDER, .b = h->instances[instance].func,
                                                                        .twin = kept, .at = at}));
    }
    vec_free(&name.places);
    return set;
}

static uint32_t after_callee(hb *h, uint32_t instance, uint32_t set, const hb_call *call, uint32_t callee, unsigned depth)
{
    const lock_instance *l = &h->locks->instances[callee];
    if (!hb_instance_code(h, callee)) { /* a library function that calls back */
        uint32_t result = set;
        for (uint32_t e = h->out_first[callee]; e < h->out_first[callee + 1] && depth < 4; e++)
            if (!hb_spawns(h, &h->edges[e]) && h->locks->instances[h->edges[e].callee].matters)
                result = lockset_meet(&h->locks->table, result, after_callee(h, instance, set, call, h->edges[e].callee, depth + 1));
        return result;
    }
    if (!l->matters) return set;
    if (l->gain == LOCKSET_ALL) return LOCKSET_ALL;
    set = apply_releases(h, instance, set, call, callee);
    return apply_gain(h, instance, set, call, callee);
}

/* --- one function ------------------------------------------------------------------------------------------------------------- */

static uint32_t after_sync(hb *h, uint32_t instance, uint32_t set, const hb_call *call, const sync_entry *sync)
{
    lock_name name = {0};
    if (sync->arg >= 0) name_argument(h, instance, call, (unsigned)sync->arg, 0, sync->shared, &name);
    switch (sync->kind) {
    case SYNC_ACQUIRE:
        if (sync->when != SYNC_ALWAYS) break;
        set = sync->lock ? lockset_add(&h->locks->table, set, named_lock(h, sync->lock, sync->shared)) : add_named(h, set, &name);
        if (sync->other >= 0) { /* takes both */
            name_argument(h, instance, call, (unsigned)sync->other, 0, sync->shared, &name);
            set = add_named(h, set, &name);
        }
        break;
    case SYNC_RELEASE:
        if (sync->lock) {
            bool found = false;
            uint32_t lock = named_lock(h, sync->lock, false);
            set = drop_lock(h, set, lock, &found);
            if (!found) note_release(h, instance, (lock_release){.kind = RELEASE_LOCK, .lock = lock});
        } else {
            set = release(h, instance, set, &name);
        }
        break;
    case SYNC_ONCE: /* whoever has passed comes after what was run */
        name_argument(h, instance, call, (unsigned)sync->arg, 0, true, &name);
        set = add_named(h, set, &name);
        break;
    case SYNC_WAIT: /* a semaphore that begins with 1 is a lock */
        if (sync->when == SYNC_ALWAYS && hb_semaphore_value(h, instance, call, sync) == 1) set = add_named(h, set, &name);
        break;
    case SYNC_POST:
        if (hb_semaphore_value(h, instance, call, sync) == 1) set = release(h, instance, set, &name);
        break;
    case SYNC_GUARD_END:
        set = release(h, instance, set, &name);
        name_argument(h, instance, call, (unsigned)sync->arg, 0, true, &name);
        set = add_named(h, set, &name);
        break;
    default: break;
    }
    vec_free(&name.places);
    return set;
}

static uint32_t after_call(hb *h, uint32_t instance, uint32_t set, const hb_call *call)
{
    if (set == LOCKSET_ALL) return set;
    const sync_entry *sync = hb_call_sync(h, instance, call);
    if (sync) {
        set = after_sync(h, instance, set, call, sync);
        if (sync->kind == SYNC_ACQUIRE || sync->kind == SYNC_RELEASE) return set;
    }
    uint32_t count, first = hb_callees(h, instance, call->call, &count), result = LOCKSET_ALL;
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (hb_spawns(h, &h->edges[first + i])) continue;
        any = true;
        uint32_t one = after_callee(h, instance, set, call, h->edges[first + i].callee, 0);
        result = lockset_meet(&h->locks->table, result, one);
    }
    return any ? result : set;
}

bool hb_is_spin(const hb *h, const pta_place *place)
{
    uint32_t site = h->program->sites.data[place->site].memory;
    int64_t at = h->program->sites.data[place->site].base + place->offset;
    for (uint32_t i = 0; i < h->locks->spins.len; i++) {
        const pta_place *spin = &h->locks->spins.data[i].place;
        if (spin->site == site && spin->context == place->context && spin->offset == at) return true;
    }
    return false;
}

/* Stores to locks that are made of atomics. */
static uint32_t after_stores(hb *h, uint32_t instance, uint32_t set, uint32_t lo, uint32_t hi)
{
    if (!h->locks->instances[instance].has_spin || set == LOCKSET_ALL) return set;
    uint32_t func = h->instances[instance].func, count;
    const ir_func *ir = hb_code(h, func)->ir;
    const pta_access *accesses = pta_accesses(h->program, func, &count);
    lock_name name = {0};
    for (uint32_t a = 0; a < count; a++) {
        if (accesses[a].insn < lo || accesses[a].insn >= hi || !(accesses[a].flags & IR_WRITE) || accesses[a].flags & IR_FRAME) continue;
        pta_access_places_in(h->p, instance, &accesses[a], &name.places);
        bool spin = false;
        for (uint32_t i = 0; i < name.places.len && !spin; i++)
            spin = hb_is_spin(h, &name.places.data[i]);
        uint32_t v = hb_access_ir(h, func, accesses[a].insn, accesses[a].flags);
        if (!spin || !v) continue;
        bool tries = accesses[a].flags & IR_COND; /* cmpxchg does not let go */
        if (tries) continue;
        value_sum sum = value_address(ir, &ir->insns[v]);
        name_lock(h, func, &sum, false, &name);
        set = release(h, instance, set, &name);
    }
    vec_free(&name.places);
    return set;
}

/* Through a block, up to an instruction (HB_NONE: to its end). */
static uint32_t through_block(hb *h, uint32_t instance, const lift_func *f, uint32_t block, uint32_t set, uint32_t until)
{
    const hb_func *own = &h->funcs[h->instances[instance].func];
    const lift_block *b = &f->blocks[block];
    uint32_t end = b->first_insn + b->insn_count, at = b->first_insn, low = 0, high = own->call_count;
    if (until < end) end = until;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (own->calls[middle].insn < b->first_insn)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t c = low; c < own->call_count && own->calls[c].insn < end; c++) {
        set = after_stores(h, instance, set, at, own->calls[c].insn);
        set = after_call(h, instance, set, &own->calls[c]);
        at = own->calls[c].insn + 1;
    }
    return after_stores(h, instance, set, at, end);
}

static uint32_t add_edge_access(hb *h, uint32_t instance, uint32_t set, ir_value access, bool shared)
{
    uint32_t func = h->instances[instance].func, count;
    const ir_func *ir = hb_code(h, func)->ir;
    const pta_access *accesses = pta_accesses(h->program, func, &count);
    lock_name name = {0};
    for (uint32_t a = 0; a < count; a++)
        if (accesses[a].insn == ir->insns[access].insn && accesses[a].flags == ir->insns[access].flags) {
            pta_access_places_in(h->p, instance, &accesses[a], &name.places);
            value_sum sum = value_address(ir, &ir->insns[access]);
            name_lock(h, func, &sum, shared, &name);
            set = add_named(h, set, &name);
            break;
        }
    vec_free(&name.places);
    return set;
}

static uint16_t mnemonic_of(const ir_func *ir, ir_value v)
{
    return ir->func->insns[ir->insns[v].insn].mnemonic;
}

/* The access of an xchg or cmpxchg that found a lock free, when a branch goes this way; 0: none. */
ir_value lock_spin_access(const ir_func *ir, const value_condition *c)
{
    ir_value sides[] = {c->a, c->b};
    if (c->code != VALUE_EQUAL) return 0;
    for (unsigned i = 0; i < 2; i++) {
        if (!sides[i] || ir->insns[sides[i]].op != IR_LOAD) continue;
        ir_value access = ir->insns[sides[i]].a;
        if (!(ir->insns[access].flags & IR_ATOMIC) || !(ir->insns[access].flags & IR_WRITE)) continue;
        uint16_t mnemonic = mnemonic_of(ir, access);
        if (mnemonic == ZYDIS_MNEMONIC_XCHG && !c->b && c->imm == 0) return access;
        if (mnemonic != ZYDIS_MNEMONIC_CMPXCHG) continue;
        ir_value other = sides[1 - i];
        if (other ? ir->insns[other].op == IR_CONST && ir->insns[other].imm == 0 : c->imm == 0) return access;
        if (other && ir->insns[other].op == IR_PHI) { /* `expected` is set to zero each time round */
            bool zero = true;
            for (uint32_t k = 0; k < ir->insns[other].b; k++) {
                ir_value v = value_plain(ir, ir->args[ir->insns[other].a + k], 4);
                zero &= v && ir->insns[v].op == IR_CONST && !ir->insns[v].imm;
            }
            if (zero) return access;
        }
    }
    return 0;
}

/* The number of a section, whichever call it came from. */
static bool is_section(const hb *h, uint32_t instance, const ir_func *ir, ir_value v)
{
    const ir_insn *phi = &ir->insns[v];
    for (uint32_t i = 0; i < phi->b; i++) {
        const ir_insn *result = &ir->insns[value_plain(ir, ir->args[phi->a + i], 4)];
        const hb_call *call = result->op == IR_RESULT ? hb_call_at(h, h->instances[instance].func, ir->insns[result->a].insn) : NULL;
        if (!call || !call->sync || call->sync->kind != SYNC_SECTION) return false;
    }
    return phi->b > 0;
}

static uint32_t add_section(hb *h, uint32_t set, int64_t number)
{
    static const char *const names[] = {"omp section 0", "omp section 1", "omp section 2", "omp section 3", "omp section 4", "omp section 5",
                                        "omp section 6", "omp section 7", "omp section 8"};
    if (number < 1 || number > 8) return set;
    return lockset_add(&h->locks->table, set, named_lock(h, names[number], false));
}

/* What is gained when a branch goes one way. */
static uint32_t over_edge(hb *h, uint32_t instance, const lift_func *f, uint32_t block, uint32_t edge, uint32_t set)
{
    value_condition c;
    if (set == LOCKSET_ALL || f->blocks[block].end_kind != END_BRANCH) return set;
    if (!value_test(f->ir, block, f->edges[edge].kind == EDGE_TAKEN, &c)) return set;
    ir_value spin = lock_spin_access(f->ir, &c);
    if (spin) return add_edge_access(h, instance, set, spin, false);
    if (!c.a || c.b) return set;
    const ir_insn *value = &f->ir->insns[c.a];
    bool zero = c.code == VALUE_EQUAL && c.imm == 0;
    bool nonzero = (c.code == VALUE_NOT_EQUAL && c.imm == 0) || (c.code == VALUE_EQUAL && c.imm != 0);
    if (value->op == IR_LOAD && nonzero && h->locks->guards.len) { /* a C++ static that is there already */
        const ir_insn *access = &f->ir->insns[value->a];
        uint32_t count;
        const pta_access *accesses = pta_accesses(h->program, h->instances[instance].func, &count);
        pta_places places = {0};
        bool guard = false;
        for (uint32_t a = 0; a < count && !guard; a++) {
            if (accesses[a].insn != access->insn) continue;
            pta_access_places_in(h->p, instance, &accesses[a], &places);
            for (uint32_t i = 0; i < places.len && !guard; i++)
                for (uint32_t g = 0; g < h->locks->guards.len && !guard; g++)
                    guard = places.data[i].site == h->locks->guards.data[g].place.site &&
                            places.data[i].offset == h->locks->guards.data[g].place.offset;
        }
        vec_free(&places);
        return guard ? add_edge_access(h, instance, set, value->a, true) : set;
    }
    if (value->op == IR_PHI && c.code == VALUE_EQUAL && is_section(h, instance, f->ir, c.a)) return add_section(h, set, c.imm);
    if (value->op != IR_RESULT || value->var != IR_RAX) return set;
    const hb_call *call = hb_call_at(h, h->instances[instance].func, f->ir->insns[value->a].insn);
    const sync_entry *sync = call ? hb_call_sync(h, instance, call) : NULL;
    if (!sync) return set;
    if (sync->kind == SYNC_NUMBER && c.code == VALUE_EQUAL) {
        static const char *const numbers[] = {"omp thread 0", "omp thread 1", "omp thread 2", "omp thread 3"};
        return c.imm >= 0 && c.imm < 4 ? lockset_add(&h->locks->table, set, named_lock(h, numbers[c.imm], false)) : set;
    }
    if (sync->kind == SYNC_SECTION && c.code == VALUE_EQUAL) return add_section(h, set, c.imm);
    bool yes = sync->when == SYNC_ZERO ? zero : sync->when == SYNC_NONZERO && nonzero;
    if (sync->kind == SYNC_GUARD && zero) { /* another thread has made it */
        lock_name made = {0};
        name_argument(h, instance, call, (unsigned)sync->arg, 0, true, &made);
        set = add_named(h, set, &made);
        vec_free(&made.places);
        return set;
    }
    if (!yes || (sync->kind != SYNC_ACQUIRE && sync->kind != SYNC_GUARD)) return set;
    if (sync->lock) return lockset_add(&h->locks->table, set, named_lock(h, sync->lock, sync->shared));
    lock_name name = {0};
    name_argument(h, instance, call, (unsigned)sync->arg, 0, sync->shared, &name);
    set = add_named(h, set, &name);
    vec_free(&name.places);
    return set;
}

/* All blocks, from what is held on entry. Returns what is held at the end. */
static uint32_t through_function(hb *h, uint32_t instance, uint32_t entry, uint32_t *blocks)
{
    const lift_func *f = hb_instance_code(h, instance);
    lockset_table *t = &h->locks->table;
    uint32_t end = LOCKSET_ALL;
    for (uint32_t b = 0; b < f->block_count; b++)
        blocks[b] = LOCKSET_ALL;
    blocks[0] = entry;
    bool unknown = false;
    for (bool changed = true; changed;) {
        changed = false;
        end = LOCKSET_ALL;
        for (uint32_t i = 0; i < f->ir->rpo_count; i++) {
            uint32_t block = f->ir->rpo[i];
            const lift_block *b = &f->blocks[block];
            if (blocks[block] == LOCKSET_ALL) continue;
            uint32_t out = through_block(h, instance, f, block, blocks[block], HB_NONE);
            if (out == LOCKSET_ALL) continue;
            if (b->end_kind == END_RET || b->end_kind == END_TAIL || b->end_kind == END_TAIL_IND || b->tail) end = lockset_meet(t, end, out);
            if (b->end_kind == END_UNKNOWN && !unknown) {
                unknown = changed = true;
                for (uint32_t other = 0; other < f->block_count; other++)
                    blocks[other] = LOCKSET_EMPTY;
            }
            for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
                uint32_t to = f->edges[e].to, next = lockset_meet(t, blocks[to], over_edge(h, instance, f, block, e, out));
                if (next == blocks[to]) continue;
                blocks[to] = next;
                changed = true;
            }
        }
    }
    return unknown ? LOCKSET_EMPTY : end;
}

/* --- all functions ---------------------------------------------------------------------------------------------------------------- */

static void find_spins(hb *h)
{
    pta_places places = {0};
    for (uint32_t i = 0; i < h->instance_count; i++) {
        const lift_func *f = hb_instance_code(h, i);
        if (!f) continue;
        uint32_t count, func = h->instances[i].func;
        const pta_access *accesses = pta_accesses(h->program, func, &count);
        bool atomics = false;
        for (uint32_t a = 0; a < count && !atomics; a++)
            atomics = (accesses[a].flags & (IR_ATOMIC | IR_WRITE)) == (IR_ATOMIC | IR_WRITE);
        for (uint32_t b = 0; b < f->block_count && atomics; b++) {
            value_condition c;
            if (f->blocks[b].end_kind != END_BRANCH) continue;
            for (unsigned taken = 0; taken < 2; taken++) {
                ir_value v = value_test(f->ir, b, taken, &c) ? lock_spin_access(f->ir, &c) : 0;
                if (!v) continue;
                h->locks->instances[i].matters = true;
                for (uint32_t a = 0; a < count; a++) {
                    if (accesses[a].insn != f->ir->insns[v].insn) continue;
                    pta_access_places_in(h->p, i, &accesses[a], &places);
                    for (uint32_t k = 0; k < places.len; k++) {
                        if (!places.data[k].exact || hb_is_spin(h, &places.data[k])) continue;
                        pta_place place = places.data[k];
                        place.offset += (int32_t)h->program->sites.data[place.site].base;
                        place.site = h->program->sites.data[place.site].memory;
                        vec_push(&h->locks->spins, (spin_place){place});
                    }
                }
            }
        }
    }
    for (uint32_t i = 0; i < h->instance_count && h->locks->spins.len; i++) {
        if (!hb_instance_code(h, i)) continue;
        uint32_t count;
        const pta_access *accesses = pta_accesses(h->program, h->instances[i].func, &count);
        lock_instance *l = &h->locks->instances[i];
        for (uint32_t a = 0; a < count && !l->has_spin; a++) {
            if (!(accesses[a].flags & IR_WRITE) || accesses[a].flags & IR_FRAME) continue;
            pta_access_places_in(h->p, i, &accesses[a], &places);
            for (uint32_t k = 0; k < places.len && !l->has_spin; k++)
                l->has_spin = hb_is_spin(h, &places.data[k]);
        }
        l->matters |= l->has_spin;
    }
    vec_free(&places);
}

static void find_guards(hb *h, uint32_t instance, const hb_call *call)
{
    pta_places places = {0};
    pta_operand what = h->program->calls.data[call->call].args[0];
    if (what.var != PTA_NO_VAR) hb_points_to(h, instance, what, &places);
    for (uint32_t k = 0; k < places.len; k++)
        if (places.data[k].exact) vec_push(&h->locks->guards, (spin_place){places.data[k]});
    vec_free(&places);
}

static bool concerns(const sync_entry *sync)
{
    return sync && (sync->kind == SYNC_ACQUIRE || sync->kind == SYNC_RELEASE || sync->kind == SYNC_ONCE || sync->kind == SYNC_GUARD ||
                    sync->kind == SYNC_GUARD_END || sync->kind == SYNC_NUMBER || sync->kind == SYNC_SECTION || sync->kind == SYNC_WAIT || sync->kind == SYNC_POST);
}

static void find_matters(hb *h)
{
    hb_numbers work = {0};
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        lock_instance *l = &h->locks->instances[i];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            l->matters |= concerns(sync);
            if (sync && sync->kind == SYNC_GUARD) find_guards(h, i, &f->calls[c]);
        }
        if (l->matters) vec_push(&work, i);
    }
    while (work.len) {
        uint32_t callee = work.data[--work.len];
        for (uint32_t i = h->in_first[callee]; i < h->in_first[callee + 1]; i++) {
            const pta_call_edge *e = &h->edges[h->in_edge[i]];
            if (hb_spawns(h, e) || h->locks->instances[e->caller].matters) continue;
            h->locks->instances[e->caller].matters = true;
            vec_push(&work, e->caller);
        }
    }
    vec_free(&work);
}

enum { ROUNDS = 30 };

static void find_gains(hb *h)
{
    bool changed = true;
    for (unsigned round = 0; round < ROUNDS && changed; round++) {
        changed = false;
        for (uint32_t i = h->instance_count; i-- > 0;) {
            lock_instance *l = &h->locks->instances[i];
            const lift_func *f = hb_instance_code(h, i);
            if (!l->matters || !f) continue;
            uint32_t *blocks = base_alloc(f->block_count * sizeof *blocks), releases = l->releases.len;
            uint32_t gain = through_function(h, i, LOCKSET_EMPTY, blocks);
            free(blocks);
            if (gain == l->gain && releases == l->releases.len) continue;
            l->gain = gain;
            changed = true;
        }
    }
    for (uint32_t i = 0; changed && i < h->instance_count; i++) /* no end in sight: nothing is sure */
        h->locks->instances[i].gain = LOCKSET_EMPTY;
}

/* What a caller holds, in the words of a callee. */
static uint32_t hand_down(hb *h, uint32_t instance, const hb_call *call, uint32_t set, uint32_t callee)
{
    lockset_table *t = &h->locks->table;
    const lift_func *from = hb_instance_code(h, instance), *to = hb_instance_code(h, callee);
    uint32_t count, result = LOCKSET_EMPTY;
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    lockset_members(t, set, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lock = lockset_members(t, set, &count)[i];
        lock_element e = t->locks.data[lock];
        if (e.kind == LOCK_OBJECT || e.kind == LOCK_NAMED) result = lockset_add(t, result, lock);
        if (e.kind != LOCK_VALUE || !from || !to || !call || !call->value) continue;
        value_sum sum = h->locks->sums.data[e.a];
        for (unsigned a = 0; a < 6; a++) {
            value_sum arg = value_of(from->ir, call_argument(from->ir, call, a));
            if (!value_same_terms(&arg, &sum)) continue;
            for (ir_value v = 1; v < to->ir->insn_count && to->ir->insns[v].op <= IR_UNDEF; v++) {
                if (to->ir->insns[v].op != IR_ENTRY || to->ir->insns[v].var != registers[a]) continue;
                value_sum own = value_of(to->ir, v);
                uint32_t func = h->instances[callee].func;
                uint32_t handed = lockset_lock(t, (lock_element){.kind = LOCK_VALUE, .shared = e.shared,
                                                                 .a = sum_number(h, func, &own), .b = func,
                                                                 .twin = e.twin, .at = e.at - arg.add});
                while (h->locks->kinds.len <= handed || h->locks->kinds.len <= lock)
                    vec_push(&h->locks->kinds, 0);
                h->locks->kinds.data[handed] = h->locks->kinds.data[lock];
                result = lockset_add(t, result, handed);
                break;
            }
        }
    }
    return result;
}

static void enter_callee(hb *h, uint32_t callee, uint32_t set, hb_numbers *work)
{
    lock_instance *l = &h->locks->instances[callee];
    uint32_t next = lockset_meet(&h->locks->table, l->entry, set);
    if (next == l->entry) return;
    l->entry = next;
    vec_push(work, callee);
}

static void enter_callees(hb *h, uint32_t instance, const hb_call *call, uint32_t set, hb_numbers *work)
{
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    const sync_entry *sync = hb_call_sync(h, instance, call);
    if (sync && sync->kind == SYNC_ONCE) { /* what is run is run under it */
        lock_name name = {0};
        name_argument(h, instance, call, (unsigned)sync->arg, 0, false, &name);
        if (name.object != UINT32_MAX) set = lockset_add(&h->locks->table, set, name.object);
        vec_free(&name.places);
    }
    for (uint32_t i = 0; i < count; i++) {
        const pta_call_edge *e = &h->edges[first + i];
        if (!hb_spawns(h, e)) enter_callee(h, e->callee, hand_down(h, instance, call, set, e->callee), work);
    }
}

static void find_entries(hb *h)
{
    hb_numbers work = {0};
    for (uint32_t i = 0; i < h->instance_count; i++) {
        bool spawned = false, called = false;
        for (uint32_t k = h->in_first[i]; k < h->in_first[i + 1]; k++)
            spawned |= hb_spawns(h, &h->edges[h->in_edge[k]]), called = true;
        h->locks->instances[i].entry = LOCKSET_ALL;
        if (h->instances[i].func != PTA_NO_FUNC && (spawned || !called)) enter_callee(h, i, LOCKSET_EMPTY, &work);
    }
    while (work.len) {
        uint32_t i = work.data[--work.len];
        lock_instance *l = &h->locks->instances[i];
        const lift_func *f = hb_instance_code(h, i);
        if (!f || !l->matters) {
            for (uint32_t e = h->out_first[i]; e < h->out_first[i + 1]; e++) {
                if (hb_spawns(h, &h->edges[e])) continue;
                const hb_call *call = f ? hb_call_at(h, h->instances[i].func, h->call_insn[h->edges[e].call]) : NULL;
                enter_callee(h, h->edges[e].callee, hand_down(h, i, call, l->entry, h->edges[e].callee), &work);
            }
            continue;
        }
        if (!l->blocks) l->blocks = base_alloc(f->block_count * sizeof *l->blocks);
        through_function(h, i, l->entry, l->blocks);
        const hb_func *own = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < own->call_count; c++) {
            uint32_t set = hb_locks_at(h, (hb_point){i, own->calls[c].insn});
            if (set != LOCKSET_ALL) enter_callees(h, i, &own->calls[c], set, &work);
        }
    }
    vec_free(&work);
}

uint32_t hb_locks_at(hb *h, hb_point at)
{
    const lock_instance *l = &h->locks->instances[at.instance];
    const lift_func *f = hb_instance_code(h, at.instance);
    if (!f || !l->matters || !l->blocks) return l->entry;
    uint32_t block = hb_block_of(f, at.insn);
    if (l->blocks[block] == LOCKSET_ALL) return LOCKSET_ALL;
    return through_block(h, at.instance, f, block, l->blocks[block], at.insn);
}

void hb_lock_takings(hb *h, hb_takings *out)
{
    lock_name name = {0};
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i) || !h->locks->instances[i].matters) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            if (!sync || sync->kind != SYNC_ACQUIRE || sync->arg < 0) continue;
            hb_point at = {i, f->calls[c].insn};
            uint32_t held = hb_locks_at(h, at);
            if (held == LOCKSET_ALL) continue;
            name_argument(h, i, &f->calls[c], (unsigned)sync->arg, 0, sync->shared, &name);
            vec_push(out, (hb_taking){.at = at, .held = held, .lock = name.object, .value = name.value,
                                      .kind = name.places.len ? place_kind(h, &name.places.data[0]) : 0, .tries = sync->when != SYNC_ALWAYS || sync->other >= 0, .shared = sync->shared});
        }
    }
    vec_free(&name.places);
}

uint64_t hb_lock_kind(const hb *h, uint32_t lock, bool *many)
{
    const lock_element *e = &h->locks->table.locks.data[lock];
    *many = false;
    if (e->kind == LOCK_OBJECT) return map_hash(((uint64_t)e->a << 32) + (uint64_t)e->at * 2 + 1) & ~1ull;
    if (e->kind != LOCK_VALUE) return 0;
    if (e->twin != LOCK_NO_TWIN) return hb_lock_kind(h, e->twin, many);
    *many = true;
    return lock < h->locks->kinds.len ? h->locks->kinds.data[lock] : 0;
}

bool hb_lock_is_value(const hb *h, uint32_t lock)
{
    return h->locks->table.locks.data[lock].kind == LOCK_VALUE;
}

bool hb_lock_shared(const hb *h, uint32_t lock)
{
    return h->locks->table.locks.data[lock].shared;
}

/* The values that a leaf is a choice of. */
static void add_choices(const ir_func *ir, const value_sum *sum, hb_numbers *out)
{
    if (sum->count != 1) return;
    ir_value leaf = sum->terms[0].leaf;
    const ir_insn *insn = &ir->insns[leaf];
    vec_push(out, leaf);
    if (insn->op == IR_SELECT) {
        vec_push(out, value_plain(ir, insn->a, 8));
        vec_push(out, value_plain(ir, insn->b, 8));
    }
    for (uint32_t i = 0; insn->op == IR_PHI && i < insn->b; i++)
        vec_push(out, value_plain(ir, ir->args[insn->a + i], 8));
}

static bool has_choice(const ir_func *ir, const hb_numbers *choices, ir_value v)
{
    v = value_plain(ir, v, 8);
    for (uint32_t i = 0; i < choices->len; i++)
        if (choices->data[i] == v) return true;
    return false;
}

bool hb_compares(const hb *h, hb_point at, uint32_t a, uint32_t b)
{
    const lift_func *f = hb_instance_code(h, at.instance);
    const lock_element *x = &h->locks->table.locks.data[a], *y = &h->locks->table.locks.data[b];
    if (!f || x->kind != LOCK_VALUE || y->kind != LOCK_VALUE) return false;
    hb_numbers choices = {0};
    bool found = false;
    add_choices(f->ir, &h->locks->sums.data[x->a], &choices);
    add_choices(f->ir, &h->locks->sums.data[y->a], &choices);
    for (ir_value v = 1; v < f->ir->insn_count && !found; v++) {
        const ir_insn *insn = &f->ir->insns[v];
        if (insn->op != IR_CMP || !insn->a || !insn->b || insn->width != 8) continue;
        found = value_plain(f->ir, insn->a, 8) != value_plain(f->ir, insn->b, 8) && has_choice(f->ir, &choices, insn->a) &&
                has_choice(f->ir, &choices, insn->b);
    }
    vec_free(&choices);
    return found;
}

void hb_locks_open(hb *h)
{
    h->locks = base_alloc_zero(1, sizeof *h->locks);
    lockset_open(&h->locks->table);
    h->locks->instances = base_alloc_zero(h->instance_count, sizeof *h->locks->instances);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        h->locks->instances[i].gain = LOCKSET_ALL;
        if (h->instances[i].func != PTA_NO_FUNC)
            *map_at(&h->locks->instance_map, (uint64_t)h->instances[i].func << 32 | h->instances[i].context) = i;
    }
    find_spins(h);
    find_matters(h);
    find_gains(h);
    find_entries(h);
}

void hb_locks_close(hb *h)
{
    if (!h->locks) return;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        lock_instance *l = &h->locks->instances[i];
        for (uint32_t r = 0; r < l->releases.len; r++)
            vec_free(&l->releases.data[r].places);
        vec_free(&l->releases);
        free(l->blocks);
    }
    free(h->locks->instances);
    lockset_close(&h->locks->table);
    vec_free(&h->locks->sums);
    vec_free(&h->locks->sum_func);
    vec_free(&h->locks->kinds);
    for (uint32_t i = 0; i < h->locks->names.len; i++)
        vec_free(&h->locks->names.data[i].name.places);
    vec_free(&h->locks->names);
    map_free(&h->locks->name_map);
    vec_free(&h->locks->spins);
    vec_free(&h->locks->guards);
    map_free(&h->locks->sum_map);
    map_free(&h->locks->instance_map);
    free(h->locks);
}
