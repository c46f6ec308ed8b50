/* Letting go of locks, and what calls leave of those that are held: summaries of what a function takes and keeps, and what it lets
 * go of. A release that names no held lock lets go of every lock that it may mean. Values are handed to callees and back as
 * far as they are parameters. */
#include "static/hb/lock.h"

/* --- letting go ---------------------------------------------------------------------------------------------------------- */

/* A lock, in whichever mode it is held, and whatever is known to be the same. */
uint32_t lock_drop(hb *h, uint32_t set, uint32_t lock, bool *found)
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
            const lock_element *o = &t->locks.data[other];
            bool same = e.kind == LOCK_VALUE && o->kind == LOCK_VALUE && o->a == e.a && o->b == e.b && o->at == e.at; /* known as more, or less */
            if (same && twin != LOCK_NO_TWIN && lockset_has(t, set, twin)) {
                set = lockset_remove(t, set, twin);
                i = 0;
            } else if (same || (twin != LOCK_NO_TWIN && (twin == id || twin == e.twin))) {
                set = lockset_remove(t, set, other);
                lockset_members(t, set, &count);
            } else {
                i++;
            }
        }
    }
    return set;
}

static bool find_may_be(hb *h, const lock_element *e, uint32_t list)
{
    uint32_t count;
    const pta_place *places = lock_places_of(h, list, &count);
    for (uint32_t i = 0; i < count; i++) {
        const pta_site *site = &h->program->sites.data[places[i].site];
        if (e->kind == LOCK_VALUE) {
            if (!hb_single(h, &places[i])) return true;
            continue;
        }
        if (hb_object(h, site->memory, places[i].context) != e->a) continue;
        if (!places[i].exact || site->base + places[i].offset == e->at) return true;
    }
    return !count;
}

static bool may_be(hb *h, uint32_t lock, uint32_t places)
{
    lock_element e = h->locks->table.locks.data[lock];
    if (e.kind == LOCK_HOLDER || e.kind == LOCK_NAMED) return false;
    if (e.kind == LOCK_VALUE && e.twin != LOCK_NO_TWIN) return may_be(h, e.twin, places);
    if (e.kind == LOCK_AGAIN) return may_be(h, e.a, places);
    uint32_t *known = map_at(&h->locks->may_be, (uint64_t)lock << 32 | places);
    if (*known == MAP_NONE) *known = find_may_be(h, &e, places);
    return *known;
}

static uint32_t drop_places(hb *h, uint32_t set, uint32_t places, bool *found)
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
    return x->kind == y->kind && x->param == y->param && x->at == y->at && x->lock == y->lock;
}

static uint64_t summary_hash(const lock_instance *l)
{
    uint64_t hash = map_hash(l->gain);
    for (uint32_t i = 0; i < l->releases.len; i++) {
        const lock_release *r = &l->releases.data[i];
        hash = map_hash(map_hash(hash * 31 + ((uint64_t)r->lock << 16 | (uint64_t)r->kind << 8 | r->param)) + (uint64_t)r->at);
    }
    return hash;
}

static bool same_summary(const lock_instance *a, const lock_instance *b)
{
    if (a->gain != b->gain || a->releases.len != b->releases.len) return false;
    for (uint32_t i = 0; i < a->releases.len; i++)
        if (!same_release(&a->releases.data[i], &b->releases.data[i])) return false;
    return true;
}

bool lock_is_known_kind(const hb *h, lock_kinds *kinds, uint32_t instance, uint32_t callee)
{
    if (!hb_instance_code(h, callee)) return false; /* its summary is that of what it calls back */
    if (callee == instance) return false;           /* its summary may change meanwhile */
    for (uint32_t i = 0; i < kinds->count; i++)
        if (h->locks->summaries[callee] == h->locks->summaries[kinds->callees[i]] &&
            same_summary(&h->locks->instances[callee], &h->locks->instances[kinds->callees[i]]))
            return true;
    if (kinds->count < LOCK_KINDS) kinds->callees[kinds->count++] = callee;
    return false;
}

void lock_summary_changed(hb *h, uint32_t instance)
{
    lock_instance *l = &h->locks->instances[instance];
    h->locks->summaries[instance] = summary_hash(l);
    bool none = hb_instance_code(h, instance) && l->gain == LOCKSET_EMPTY && !l->releases.len;
    h->locks->effects[instance] = none ? LOCK_EFFECT_NONE : hb_instance_code(h, instance) && l->gain == LOCKSET_ALL ? LOCK_EFFECT_ENDLESS
                                                                                                                    : LOCK_EFFECT_SOME;
    h->locks->changed[instance] = ++h->locks->version;
}

enum { MOST_RELEASES = 24 }; /* more, as recursion may make them, are a release of anything */

void lock_note_release(hb *h, uint32_t instance, lock_release r)
{
    lock_instance *l = &h->locks->instances[instance];
    bool known = l->lets_all_go;
    for (uint32_t i = 0; i < l->releases.len && !known; i++)
        known = same_release(&l->releases.data[i], &r);
    if (known) return;
    vec_push(&l->releases, r);
    if (l->releases.len > MOST_RELEASES) {
        vec_clear(&l->releases);
        vec_push(&l->releases, (lock_release){.kind = RELEASE_PLACES, .lock = LOCK_ANYWHERE});
        l->lets_all_go = true;
    }
    lock_summary_changed(h, instance);
}

/* The value is what a word holds at what a parameter points to. */
static int param_that_holds(const ir_func *ir, const value_sum *sum, int64_t *at)
{
    if (!sum->known || sum->count != 1 || sum->terms[0].factor != 1 || sum->add) return -1;
    const ir_insn *load = &ir->insns[sum->terms[0].leaf];
    if (load->op != IR_LOAD) return -1;
    value_sum holder = value_address(ir, &ir->insns[load->a]);
    *at = holder.add + load->imm;
    return param_of(ir, &holder);
}

/* What a release that named nothing held means to callers. */
static void note_foreign(hb *h, uint32_t instance, const lock_name *name)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    int param = param_of(ir, &name->sum);
    if (param >= 0) {
        lock_note_release(h, instance, (lock_release){.kind = RELEASE_PARAM, .param = (uint8_t)param, .at = name->sum.add});
        return;
    }
    int64_t at;
    int holder = param_that_holds(ir, &name->sum, &at);
    if (holder >= 0) lock_note_release(h, instance, (lock_release){.kind = RELEASE_HOLDER, .param = (uint8_t)holder, .at = at});
    lock_note_release(h, instance, (lock_release){.kind = RELEASE_PLACES, .lock = name->places});
}

uint32_t lock_release_named(hb *h, uint32_t instance, uint32_t set, const lock_name *name)
{
    bool found = false;
    if (name->value != UINT32_MAX) found = lock_undo_again(h, &set, name->value);
    if (name->object != UINT32_MAX) found |= lock_undo_again(h, &set, name->object);
    if (found) return set;
    if (name->value != UINT32_MAX) set = lock_drop(h, set, name->value, &found);
    if (name->object != UINT32_MAX) set = lock_drop(h, set, name->object, &found);
    if (!found) {
        set = drop_places(h, set, name->places, &found);
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

ir_value lock_call_argument(const ir_func *ir, const hb_call *call, unsigned arg)
{
    return call->value ? ir->args[ir->insns[call->value].a + IR_CALL_RDI + arg] : 0;
}

/* The variable that holds the address of a lock, at what a parameter of the callee points to: in its place, when there is one such. */
static bool holder_lock(hb *h, uint32_t instance, const hb_call *call, unsigned param, int64_t at, bool shared, uint32_t *lock)
{
    lock_name name;
    if (!h->locks->optional) return false;
    lock_name_argument(h, instance, call, param, at, shared, &name);
    *lock = name.object;
    return *lock != UINT32_MAX;
}

static uint32_t drop_holder(hb *h, uint32_t instance, uint32_t set, const hb_call *call, const lock_release *r, bool *found)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    lockset_table *t = &h->locks->table;
    int64_t at;
    if (!frame_argument(ir, lock_call_argument(ir, call, r->param), &at)) return set;
    uint32_t count;
    const uint32_t *members = lockset_members(t, set, &count);
    for (uint32_t i = 0; i < count; i++) {
        const lock_element *e = &t->locks.data[members[i]];
        if (e->kind != LOCK_HOLDER || e->b != h->instances[instance].func || e->at != at) continue;
        uint32_t twin = e->twin, holder = members[i];
        *found = true;
        set = lock_drop(h, set, twin, found);
        return lockset_remove(t, set, holder);
    }
    return set;
}

/* What a callee lets go of, in its caller. */
static uint32_t apply_releases(hb *h, uint32_t instance, uint32_t set, const hb_call *call, uint32_t callee)
{
    lock_name name;
    bool held = false;
    for (uint32_t i = 0; i < h->locks->instances[callee].releases.len; i++) { /* which may grow meanwhile, in recursion */
        const lock_release r = h->locks->instances[callee].releases.data[i];
        bool found = false;
        if (r.kind == RELEASE_PARAM) {
            lock_name_argument(h, instance, call, r.param, r.at, false, &name);
            set = lock_release_named(h, instance, set, &name);
        } else if (r.kind == RELEASE_HOLDER) {
            uint32_t lock;
            if (holder_lock(h, instance, call, r.param, r.at, false, &lock)) set = lock_drop(h, set, lock, &held);
            set = drop_holder(h, instance, set, call, &r, &held);
        } else if (r.kind == RELEASE_LOCK) {
            set = lock_drop(h, set, r.lock, &found);
            if (!found) lock_note_release(h, instance, r);
        } else if (!held) {
            set = drop_places(h, set, r.lock, &found);
            if (!found) lock_note_release(h, instance, r);
        }
    }
    return set;
}

/* What a callee has taken, in its caller. */
static uint32_t apply_gain(hb *h, uint32_t instance, uint32_t set, const hb_call *call, uint32_t callee)
{
    lockset_table *t = &h->locks->table;
    uint32_t gain = h->locks->instances[callee].gain, count;
    lock_name name;
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
            if (param < 0) {
                int64_t at;
                int holder = f ? param_that_holds(f->ir, &sum, &at) : -1;
                if (holder >= 0 && holder_lock(h, instance, call, (unsigned)holder, at, e.shared, &kept)) set = lockset_add(t, set, kept);
                continue;
            }
            lock_name_argument(h, instance, call, (unsigned)param, e.at, e.shared, &name);
            set = lock_add(h, set, &name);
            kept = name.value != UINT32_MAX ? name.value : name.object;
        }
        const ir_func *ir = hb_instance_code(h, instance)->ir;
        int64_t at;
        for (unsigned a = 0; kept != UINT32_MAX && a < 3; a++)
            if (frame_argument(ir, lock_call_argument(ir, call, a), &at))
                set = lockset_add(t, set, lockset_lock(t, (lock_element){.kind = LOCK_HOLDER, .b = h->instances[instance].func,
                                                                        .twin = kept, .at = at}));
    }
    return set;
}

uint32_t lock_after_callee(hb *h, uint32_t instance, uint32_t set, const hb_call *call, uint32_t callee, unsigned depth)
{
    const lock_instance *l = &h->locks->instances[callee];
    if (!hb_instance_code(h, callee)) { /* a library function that calls back */
        uint32_t result = set;
        lock_kinds kinds = {.count = 0};
        for (uint32_t e = h->out_first[callee]; e < h->out_first[callee + 1] && depth < 4 && !lock_is_spent(h, instance, result); e++)
            if (!hb_spawns(h, &h->edges[e]) && hb_bit(h->locks->matters, h->edges[e].callee) &&
                h->locks->effects[h->edges[e].callee] == LOCK_EFFECT_SOME && /* others take nothing from what is left of the set */
                !lock_is_known_kind(h, &kinds, instance, h->edges[e].callee))
                result = lockset_meet(&h->locks->table, result, lock_after_callee(h, instance, set, call, h->edges[e].callee, depth + 1));
        return result;
    }
    if (!l->matters) return set;
    if (l->gain == LOCKSET_ALL) return LOCKSET_ALL;
    set = apply_releases(h, instance, set, call, callee);
    return apply_gain(h, instance, set, call, callee);
}
