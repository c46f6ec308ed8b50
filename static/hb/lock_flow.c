/* The locks held at each block of one instance, forward over its control flow. Locks made of atomics (a spinning xchg or cmpxchg)
 * count on the branch on which they were free. Requires the summaries of what it calls, as far as they are known by now. */
#include <Zydis/Zydis.h>

#include "static/hb/channel.h"
#include "static/hb/lock.h"

static bool is_once(const hb *h, uint32_t lock)
{
    for (uint32_t i = 0; i < h->locks->onces.len; i++)
        if (h->locks->onces.data[i] == lock) return true;
    return false;
}

static uint32_t after_sync(hb *h, uint32_t instance, uint32_t set, const hb_call *call, const sync_entry *sync)
{
    lock_name name = {.object = UINT32_MAX, .value = UINT32_MAX, .places = LOCK_ANYWHERE};
    if (sync->arg >= 0) lock_name_argument(h, instance, call, (unsigned)sync->arg, 0, sync->shared, &name);
    switch (sync->kind) {
    case SYNC_ACQUIRE:
        if (sync->when != SYNC_ALWAYS || (h->locks->robust.len && lock_is_lost(h, instance, call, name.places))) break;
        set = sync->lock ? lockset_add(&h->locks->table, set, lock_by_name(h, sync->lock, sync->shared)) : lock_take(h, set, &name);
        if (sync->other >= 0) { /* takes both */
            lock_name_argument(h, instance, call, (unsigned)sync->other, 0, sync->shared, &name);
            set = lock_add(h, set, &name);
        }
        break;
    case SYNC_RELEASE:
        if (sync->lock) {
            bool found = false;
            uint32_t lock = lock_by_name(h, sync->lock, false);
            set = lock_drop(h, set, lock, &found);
            if (!found) lock_note_release(h, instance, (lock_release){.kind = RELEASE_LOCK, .lock = lock});
        } else {
            set = lock_release_named(h, instance, set, &name);
        }
        break;
    case SYNC_ONCE: /* whoever has passed comes after what was run */
        lock_name_argument(h, instance, call, (unsigned)sync->arg, 0, true, &name);
        set = lock_add(h, set, &name);
        if (name.object != UINT32_MAX && !is_once(h, name.object)) vec_push(&h->locks->onces, name.object);
        break;
    case SYNC_WAIT: /* a semaphore that begins with 1 is a lock */
        if (sync->when == SYNC_ALWAYS && hb_semaphore_value(h, instance, call, sync) == 1) set = lock_add(h, set, &name);
        break;
    case SYNC_POST:
        if (hb_semaphore_value(h, instance, call, sync) == 1) set = lock_release_named(h, instance, set, &name);
        break;
    case SYNC_BARRIER: /* ends what one of the threads was chosen for: see over_edge */
        if (sync->arg >= 0) set = lock_release_named(h, instance, set, &name);
        break;
    case SYNC_GUARD_END:
        set = lock_release_named(h, instance, set, &name);
        lock_name_argument(h, instance, call, (unsigned)sync->arg, 0, true, &name);
        set = lock_add(h, set, &name);
        break;
    default: break;
    }
    return set;
}

/* Whoever has passed comes after what the routine has passed, too. */
static uint32_t after_routine(hb *h, uint32_t instance, uint32_t set, const hb_call *call)
{
    uint32_t count, first = hb_callees(h, instance, call->call, &count), gained = LOCKSET_ALL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t model = h->edges[first + i].callee;
        for (uint32_t e = h->out_first[model]; e < h->out_first[model + 1]; e++)
            gained = lockset_meet(&h->locks->table, gained, h->locks->instances[h->edges[e].callee].gain);
    }
    if (gained == LOCKSET_ALL) return set;
    lockset_members(&h->locks->table, gained, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lock = lockset_members(&h->locks->table, gained, &count)[i];
        if (is_once(h, lock)) set = lockset_add(&h->locks->table, set, lock);
    }
    return set;
}

static uint32_t find_after_call(hb *h, uint32_t instance, uint32_t set, const hb_call *call)
{
    const sync_entry *sync = hb_call_sync(h, instance, call);
    if (sync) {
        set = after_sync(h, instance, set, call, sync);
        if (sync->kind == SYNC_ACQUIRE || sync->kind == SYNC_RELEASE) return set;
    }
    uint32_t count, first = hb_callees(h, instance, call->call, &count), result = LOCKSET_ALL;
    bool any = false, idle = false;
    lock_kinds kinds = {.count = 0};
    if (h->locks->optional && lock_is_broad(h, instance, call)) return set;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t callee = h->edges[first + i].callee;
        if (!hb_bit(h->locks->matters, callee)) {
            idle |= !hb_spawns(h, &h->edges[first + i]);
            continue;
        }
        if (hb_spawns(h, &h->edges[first + i])) continue;
        any = true;
        if (h->locks->effects[callee] == LOCK_EFFECT_NONE)
            idle = true;
        else if (h->locks->effects[callee] == LOCK_EFFECT_SOME && !lock_is_spent(h, instance, result) && !lock_is_known_kind(h, &kinds, instance, callee))
            result = lockset_meet(&h->locks->table, result, lock_after_callee(h, instance, set, call, callee, 0));
    }
    if (idle && any && result != LOCKSET_ALL && h->locks->optional) idle = !lock_ignores_idle(h, instance, call);
    if (idle || !any) result = lockset_meet(&h->locks->table, result, set);
    if (!any || result == LOCKSET_ALL) return result;
    return sync && sync->kind == SYNC_ONCE ? after_routine(h, instance, result, call) : result;
}

/* Whether the summary of an instance, or of what a library function calls back, has changed since a version. */
static bool has_changed(const hb *h, uint32_t instance, uint32_t version, unsigned depth)
{
    if (h->locks->changed[instance] > version) return true;
    if (hb_instance_code(h, instance)) return false;
    for (uint32_t e = h->out_first[instance]; e < h->out_first[instance + 1] && depth < 4; e++)
        if (has_changed(h, h->edges[e].callee, version, depth + 1)) return true;
    return false;
}

/* What a step was made of is as it was: the summaries of what the call leads to. */
static bool is_current(const hb *h, uint32_t instance, const hb_call *call, const lock_step *step)
{
    if (step->version == h->locks->version) return true;
    const sync_entry *sync = hb_call_sync(h, instance, call);
    if (!step->version || (sync && sync->kind == SYNC_ONCE)) return false;
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t callee = h->edges[first + i].callee;
        if (hb_bit(h->locks->matters, callee) && has_changed(h, callee, step->version, 0)) return false;
    }
    return true;
}

/* The same, asked once as long as no summary that matters to it changes: the flow comes by many times with one set. */
static uint32_t after_call(hb *h, uint32_t instance, uint32_t set, const hb_call *call)
{
    if (set == LOCKSET_ALL) return set;
    lock_instance *l = &h->locks->instances[instance];
    const hb_func *own = &h->funcs[h->instances[instance].func];
    if (!l->steps) l->steps = base_alloc_zero(own->call_count, sizeof *l->steps);
    lock_step *step = &l->steps[call - own->calls];
    uint32_t version = h->locks->version;
    if (step->set != set || !is_current(h, instance, call, step))
        *step = (lock_step){.set = set, .result = find_after_call(h, instance, set, call)};
    step->version = version;
    return step->result;
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

/* Asked once: the flow comes by many times. */
static const lock_instance *spin_stores(hb *h, uint32_t instance)
{
    lock_instance *l = &h->locks->instances[instance];
    if (l->has_stores) return l;
    l->has_stores = true;
    uint32_t func = h->instances[instance].func, count;
    const pta_access *accesses = pta_accesses(h->program, func, &count);
    pta_places places = {0};
    hb_numbers found = {0}, numbers = {0};
    for (uint32_t a = 0; a < count; a++) {
        if (!(accesses[a].flags & IR_WRITE) || accesses[a].flags & (IR_FRAME | IR_COND)) continue; /* cmpxchg does not let go */
        pta_access_places_in(h->p, instance, &accesses[a], &places);
        bool spin = false;
        for (uint32_t i = 0; i < places.len && !spin; i++)
            spin = hb_is_spin(h, &places.data[i]);
        if (!spin) continue;
        vec_push(&found, a);
        vec_push(&numbers, lock_places_number(h, &places));
    }
    vec_free(&places);
    l->stores = found.data;
    l->store_places = numbers.data;
    l->store_count = found.len;
    return l;
}

/* Stores to locks that are made of atomics. */
static uint32_t after_stores(hb *h, uint32_t instance, uint32_t set, uint32_t lo, uint32_t hi)
{
    if (!h->locks->instances[instance].has_spin || set == LOCKSET_ALL) return set;
    uint32_t func = h->instances[instance].func, count;
    const ir_func *ir = hb_code(h, func)->ir;
    const pta_access *accesses = pta_accesses(h->program, func, &count);
    const lock_instance *l = spin_stores(h, instance);
    for (uint32_t s = 0; s < l->store_count; s++) {
        const pta_access *access = &accesses[l->stores[s]];
        if (access->insn < lo || access->insn >= hi) continue;
        uint32_t v = hb_access_ir(h, func, access->insn, access->flags);
        if (!v) continue;
        value_sum sum = value_address(ir, &ir->insns[v]);
        lock_name name;
        lock_name_address(h, func, &sum, l->store_places[s], false, &name);
        set = lock_release_named(h, instance, set, &name);
    }
    return set;
}

/* Through a block, up to an instruction (HB_NONE: to its end). */
uint32_t lock_through_block(hb *h, uint32_t instance, const lift_func *f, uint32_t block, uint32_t set, uint32_t until)
{
    const hb_func *own = &h->funcs[h->instances[instance].func];
    const lift_block *b = &f->blocks[block];
    const lock_sparse *active = h->locks->instances[instance].sparse;
    uint32_t end = b->first_insn + b->insn_count, at = b->first_insn, low = 0, high = active->call_count;
    if (until < end) end = until;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (own->calls[active->calls[middle]].insn < b->first_insn)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t c = low; c < active->call_count && own->calls[active->calls[c]].insn < end; c++) {
        const hb_call *call = &own->calls[active->calls[c]];
        set = after_stores(h, instance, set, at, call->insn);
        set = after_call(h, instance, set, call);
        at = call->insn + 1;
    }
    return after_stores(h, instance, set, at, end);
}

static uint32_t add_edge_access(hb *h, uint32_t instance, uint32_t set, ir_value access, bool shared)
{
    uint32_t func = h->instances[instance].func, count;
    const ir_func *ir = hb_code(h, func)->ir;
    const pta_access *accesses = pta_accesses(h->program, func, &count);
    pta_places places = {0};
    for (uint32_t a = 0; a < count; a++)
        if (accesses[a].insn == ir->insns[access].insn && accesses[a].flags == ir->insns[access].flags) {
            pta_access_places_in(h->p, instance, &accesses[a], &places);
            value_sum sum = value_address(ir, &ir->insns[access]);
            lock_name name;
            lock_name_address(h, func, &sum, lock_places_number(h, &places), shared, &name);
            set = lock_add(h, set, &name);
            break;
        }
    vec_free(&places);
    return set;
}

static uint16_t mnemonic_of(const ir_func *ir, ir_value v)
{
    return ir->func->insns[ir->insns[v].insn].mnemonic;
}

static bool frame_word(const ir_func *ir, const ir_insn *access, int64_t *at, uint8_t *base)
{
    int32_t offset;
    if (access->b || !access->a || !ir_frame_offset(ir, access->a, &offset, base)) return false;
    *at = offset + access->imm;
    return true;
}

static bool reaches_block(const lift_func *f, uint32_t from, uint32_t to)
{
    uint64_t *seen = base_alloc_zero(f->block_count / 64 + 1, sizeof *seen);
    hb_numbers work = {0};
    bool found = false;
    vec_push(&work, from);
    while (work.len && !found) {
        const lift_block *b = &f->blocks[work.data[--work.len]];
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count && !found; e++) {
            found = f->edges[e].to == to;
            if (hb_bit(seen, f->edges[e].to)) continue;
            hb_set(seen, f->edges[e].to);
            vec_push(&work, f->edges[e].to);
        }
    }
    vec_free(&work);
    free(seen);
    return found;
}

/* A load finds a variable of the frame that was set to zero, in all ways: `int expected = 0` of unoptimised code. Stores that only run
 * behind the load do not matter. */
static bool finds_zero(const ir_func *ir, ir_value load)
{
    const lift_func *f = ir->func;
    int64_t at, other;
    uint8_t base, same;
    bool zero = false;
    if (ir->insns[load].op != IR_LOAD || !frame_word(ir, &ir->insns[ir->insns[load].a], &at, &base)) return false;
    uint32_t here = hb_block_of(f, ir->insns[load].insn);
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        for (uint32_t i = 0; (insn->op == IR_CALL || insn->op == IR_TAIL) && i < insn->b; i++) { /* somebody else may write to it */
            int32_t offset;
            if (i != IR_CALL_RSP && ir->args[insn->a + i] && ir_frame_offset(ir, ir->args[insn->a + i], &offset, &same) && same == base && offset == at)
                return false;
        }
        if (insn->op != IR_STORE || !frame_word(ir, &ir->insns[insn->a], &other, &same) || same != base) continue;
        other += insn->imm;
        if (other + insn->width <= at || other >= at + ir->insns[load].width) continue;
        uint32_t block = hb_block_of(f, insn->insn);
        bool before = block == here ? insn->insn < ir->insns[load].insn : ir_dominates(ir, block, here);
        const ir_insn *stored = &ir->insns[value_plain(ir, insn->b, 4)];
        if (before && stored->op == IR_CONST && !stored->imm && other <= at && other + insn->width >= at + ir->insns[load].width)
            zero = true;
        else if (before || reaches_block(f, block, here))
            return false;
    }
    return zero;
}

/* One of several exchanges with the same word, whichever was made: unoptimised code has one for each memory order. */
static ir_value exchanged(const ir_func *ir, ir_value v)
{
    const ir_insn *phi = &ir->insns[v];
    ir_value found = 0;
    for (uint32_t i = 0; phi->op == IR_PHI && i < phi->b; i++) {
        ir_value load = value_plain(ir, ir->args[phi->a + i], 1);
        ir_value access = load && ir->insns[load].op == IR_LOAD ? ir->insns[load].a : 0;
        if (!access || !(ir->insns[access].flags & IR_ATOMIC) || mnemonic_of(ir, access) != ZYDIS_MNEMONIC_XCHG) return 0;
        if (found && !value_same_access(ir, &ir->insns[found], &ir->insns[access])) return 0;
        found = access;
    }
    return found;
}

/* The access of an xchg or cmpxchg that found a lock free, when a branch goes this way; 0: none. */
ir_value lock_spin_access(const ir_func *ir, const value_condition *c)
{
    ir_value sides[] = {c->a, c->b};
    if (c->code != VALUE_EQUAL) return 0;
    if (c->a && !c->b && !c->imm && exchanged(ir, c->a)) return exchanged(ir, c->a);
    for (unsigned i = 0; i < 2; i++) {
        if (!sides[i] || ir->insns[sides[i]].op != IR_LOAD) continue;
        ir_value access = ir->insns[sides[i]].a;
        if (!(ir->insns[access].flags & IR_ATOMIC) || !(ir->insns[access].flags & IR_WRITE)) continue;
        uint16_t mnemonic = mnemonic_of(ir, access);
        if (mnemonic == ZYDIS_MNEMONIC_XCHG && !c->b && c->imm == 0) return access;
        if (mnemonic != ZYDIS_MNEMONIC_CMPXCHG) continue;
        ir_value other = sides[1 - i];
        if (other ? (ir->insns[other].op == IR_CONST && ir->insns[other].imm == 0) || finds_zero(ir, other) : c->imm == 0) return access;
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
    return lockset_add(&h->locks->table, set, lock_by_name(h, names[number], false));
}

static bool is_guard(const hb *h, uint32_t instance, const ir_insn *access)
{
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
    return guard;
}

/* A call that waits for a limited time, or not at all, has the lock unless it says that it gave up: what else goes wrong with locks
 * is not looked at with the others either. */
static bool has_not_given_up(const value_condition *c)
{
    enum { BUSY = 16, TIMED_OUT = 110 };
    return c->code == VALUE_NOT_EQUAL && (c->imm == BUSY || c->imm == TIMED_OUT);
}

static uint32_t over_result(hb *h, uint32_t instance, uint32_t set, const hb_call *call, const sync_entry *sync, const value_condition *c)
{
    enum { SERIAL_THREAD = -1 };
    bool zero = c->code == VALUE_EQUAL && c->imm == 0;
    lock_name name = {.object = UINT32_MAX, .value = UINT32_MAX, .places = LOCK_ANYWHERE};
    if (sync->kind == SYNC_NUMBER && c->code == VALUE_EQUAL) {
        static const char *const numbers[] = {"omp thread 0", "omp thread 1", "omp thread 2", "omp thread 3"};
        return c->imm >= 0 && c->imm < 4 ? lockset_add(&h->locks->table, set, lock_by_name(h, numbers[c->imm], false)) : set;
    }
    if (sync->kind == SYNC_SECTION && c->code == VALUE_EQUAL) return add_section(h, set, c->imm);
    bool yes = hb_condition_means(c, sync->when == SYNC_ALWAYS ? SYNC_ZERO : sync->when), shared = sync->shared;
    if (sync->when == SYNC_ZERO) yes |= has_not_given_up(c);
    if (sync->kind == SYNC_GUARD && zero) yes = shared = true; /* another thread has made it */
    /* A barrier tells one of the threads that leave it; by the time that it tells another, this one has come back to it. */
    if (sync->kind == SYNC_BARRIER) yes = sync->arg >= 0 && c->code == VALUE_EQUAL && (int32_t)c->imm == SERIAL_THREAD;
    if (!yes || (sync->kind != SYNC_ACQUIRE && sync->kind != SYNC_GUARD && sync->kind != SYNC_BARRIER)) return set;
    if (sync->lock) return lockset_add(&h->locks->table, set, lock_by_name(h, sync->lock, shared));
    lock_name_argument(h, instance, call, (unsigned)sync->arg, 0, shared, &name);
    set = lock_add(h, set, &name);
    return set;
}

static uint32_t over_value(hb *h, uint32_t instance, uint32_t set, value_condition c, unsigned depth);

/* The locks that one set has and the other gets. */
static uint32_t add_all(hb *h, uint32_t set, uint32_t more)
{
    uint32_t count;
    lockset_members(&h->locks->table, more, &count);
    for (uint32_t i = 0; i < count; i++)
        set = lockset_add(&h->locks->table, set, lockset_members(&h->locks->table, more, &count)[i]);
    return set;
}

/* What is held when one of several values was found to be so: what is held whichever of them it is. */
static uint32_t over_choice(hb *h, uint32_t instance, uint32_t set, const value_condition *c, unsigned depth)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    const ir_insn *phi = &ir->insns[c->a];
    uint32_t gained = LOCKSET_ALL;
    for (uint32_t i = 0; i < phi->b; i++) {
        value_condition one = *c;
        one.a = value_plain(ir, ir->args[phi->a + i], 4);
        if (!one.a) return set;
        if (ir->insns[one.a].op == IR_CONST) { /* it is not this one */
            bool equal = (int32_t)ir->insns[one.a].imm == (int32_t)c->imm;
            if ((c->code == VALUE_EQUAL && !equal) || (c->code == VALUE_NOT_EQUAL && equal)) continue;
            return set;
        }
        if (!value_explain(ir, &one)) return set;
        gained = lockset_meet(&h->locks->table, gained, over_value(h, instance, LOCKSET_EMPTY, one, depth + 1));
        if (gained == LOCKSET_EMPTY) return set;
    }
    return gained == LOCKSET_ALL ? set : add_all(h, set, gained);
}

/* The same of what a function returns; locks that are values of its own are not known here. */
static uint32_t over_returned(hb *h, uint32_t instance, uint32_t set, const hb_call *call, const value_condition *c, unsigned depth)
{
    uint32_t count, first = hb_callees(h, instance, call->call, &count), gained = LOCKSET_ALL;
    const lift_func *f = count == 1 && !hb_spawns(h, &h->edges[first]) ? hb_instance_code(h, h->edges[first].callee) : NULL;
    if (!f || !h->locks->instances[h->edges[first].callee].matters) return set;
    const hb_func *own = hb_returns(h, h->instances[h->edges[first].callee].func);
    for (uint32_t i = 0; i < own->returns.len; i++) {
        ir_value r = own->returns.data[i];
        if (f->ir->insns[r].op == IR_TAIL) return set;
        value_condition one = *c;
        one.a = value_plain(f->ir, f->ir->args[f->ir->insns[r].a + IR_RET_RAX], 4);
        if (!one.a || !value_explain(f->ir, &one)) return set;
        gained = lockset_meet(&h->locks->table, gained, over_value(h, h->edges[first].callee, LOCKSET_EMPTY, one, depth + 1));
    }
    if (gained == LOCKSET_ALL) return set;
    lockset_members(&h->locks->table, gained, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lock = lockset_members(&h->locks->table, gained, &count)[i];
        uint8_t kind = h->locks->table.locks.data[lock].kind;
        if (kind == LOCK_OBJECT || kind == LOCK_NAMED) set = lockset_add(&h->locks->table, set, lock);
    }
    return set;
}

/* What is gained when a value was found to be so. */
static uint32_t over_value(hb *h, uint32_t instance, uint32_t set, value_condition c, unsigned depth)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    const ir_insn *value = &ir->insns[c.a];
    bool nonzero = (c.code == VALUE_NOT_EQUAL && c.imm == 0) || (c.code == VALUE_EQUAL && c.imm != 0);
    if (!c.a || c.b || depth > 3) return set;
    if (value->op == IR_LOAD && nonzero && h->locks->guards.len) /* a C++ static that is there already */
        return is_guard(h, instance, &ir->insns[value->a]) ? add_edge_access(h, instance, set, value->a, true) : set;
    if (value->op == IR_PHI && c.code == VALUE_EQUAL && is_section(h, instance, ir, c.a)) return add_section(h, set, c.imm);
    if (value->op == IR_PHI) return over_choice(h, instance, set, &c, depth);
    if (value->op != IR_RESULT || value->var != IR_RAX) return set;
    const hb_call *call = hb_call_at(h, h->instances[instance].func, ir->insns[value->a].insn);
    const sync_entry *sync = call ? hb_call_sync(h, instance, call) : NULL;
    if (sync) return over_result(h, instance, set, call, sync, &c);
    return call ? over_returned(h, instance, set, call, &c, depth) : set;
}

/* Nothing leads back from a block that only one edge leads to: a program that gives up. */
static bool gives_up(const lift_func *f, uint32_t edge)
{
    uint32_t to = f->edges[edge].to;
    for (uint32_t e = 0; e < f->edge_count; e++)
        if (e != edge && f->edges[e].to == to) return false;
    for (uint32_t b = 0; b < f->block_count; b++) {
        uint8_t end = f->blocks[b].end_kind;
        if (b != to && !ir_dominates(f->ir, to, b)) continue;
        if (end == END_RET || end == END_TAIL || end == END_TAIL_IND || end == END_UNKNOWN || f->blocks[b].tail) return false;
        for (uint32_t e = f->blocks[b].first_succ; e < f->blocks[b].first_succ + f->blocks[b].succ_count; e++)
            if (f->edges[e].to != to && !ir_dominates(f->ir, to, f->edges[e].to)) return false;
    }
    return true;
}

/* A lock that could not be taken is not held. Who goes on all the same is taken to have it, as it nearly always has: only what is
 * done before the program gives up is done without it. */
static uint32_t over_failure(hb *h, uint32_t instance, const lift_func *f, uint32_t edge, uint32_t set, const value_condition *c)
{
    const ir_insn *value = &f->ir->insns[c->a];
    if (set == LOCKSET_EMPTY || c->b || !c->a || value->op != IR_RESULT || value->var != IR_RAX) return set;
    const hb_call *call = hb_call_at(h, h->instances[instance].func, f->ir->insns[value->a].insn);
    const sync_entry *sync = call ? hb_call_sync(h, instance, call) : NULL;
    if (!sync || sync->kind != SYNC_ACQUIRE || sync->when != SYNC_ALWAYS || sync->lock || sync->other >= 0) return set;
    lock_name name;
    lock_name_argument(h, instance, call, (unsigned)sync->arg, 0, sync->shared, &name);
    bool held = (name.value != UINT32_MAX && lockset_has(&h->locks->table, set, name.value)) ||
                (name.object != UINT32_MAX && lockset_has(&h->locks->table, set, name.object));
    if (!held || !hb_condition_means(c, SYNC_NONZERO) || h->locks->robust.len || !gives_up(f, edge)) return set;
    return lock_release_named(h, instance, set, &name);
}

/* What is gained when a branch goes one way, or turns out not to be. */
static uint32_t over_edge(hb *h, uint32_t instance, const lift_func *f, uint32_t block, uint32_t edge, uint32_t set)
{
    value_condition c;
    if (set == LOCKSET_ALL || f->blocks[block].end_kind != END_BRANCH) return set;
    if (!value_test(f->ir, block, f->edges[edge].kind == EDGE_TAKEN, &c)) return set;
    ir_value spin = lock_spin_access(f->ir, &c);
    if (spin) return add_edge_access(h, instance, set, spin, false);
    return over_failure(h, instance, f, edge, over_value(h, instance, set, c, 0), &c);
}

/* No lock is held on entry, and nothing takes one: then none is held anywhere, and each block is gone through just once. What is on the
 * way is asked in the order in which the flow would ask, up to the first that takes one, does not come back or is left out; then the
 * flow begins anew, and finds what was asked. */
static bool stays_empty(hb *h, uint32_t instance, const lift_func *f)
{
    const lock_sparse *active = h->locks->instances[instance].sparse;
    if (h->locks->instances[instance].has_spin) return false;
    bool all = h->locks->optional; /* or just the active ones; until it is known that no edge goes past a lock */
    for (uint32_t i = 0, next = 0; i < (all ? f->ir->rpo_count : active->block_count); i++) {
        const uint32_t *blocks = all ? f->ir->rpo : active->blocks;
        const lift_block *b = &f->blocks[blocks[i]];
        bool is_active = next < active->block_count && active->blocks[next] == blocks[i];
        next += is_active;
        if (is_active && lock_through_block(h, instance, f, blocks[i], LOCKSET_EMPTY, HB_NONE) != LOCKSET_EMPTY) return false;
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            if (all && lock_goes_past(h, instance, e)) return false;
            if (hb_bit(active->edges, e) && over_edge(h, instance, f, blocks[i], e, LOCKSET_EMPTY) != LOCKSET_EMPTY) return false;
        }
        if (all && b->succ_count && lock_goes_nowhere_past(h, instance)) {
            all = false;
            i = next - 1; /* those before have been gone through */
        }
    }
    return true;
}

/* Nor inside of a block: of an instance that stays empty and has gone through all of its blocks just now. */
static bool is_calm(const lock_instance *l, const lift_func *f)
{
    if (l->sparse->unknown || f->ir->rpo_count != f->block_count) return false;
    for (uint32_t i = 0; l->steps && i < l->sparse->call_count; i++) {
        const lock_step *step = &l->steps[l->sparse->calls[i]];
        if (step->set != LOCKSET_EMPTY || step->result != LOCKSET_EMPTY) return false;
    }
    return true;
}

/* All blocks, from what is held on entry. Returns what is held at the end. */
uint32_t lock_through_function(hb *h, uint32_t instance, uint32_t entry, uint32_t *blocks)
{
    const lift_func *f = hb_instance_code(h, instance);
    lockset_table *t = &h->locks->table;
    const lock_sparse *active = h->locks->instances[instance].sparse;
    uint32_t end = LOCKSET_ALL;
    for (uint32_t b = 0; b < f->block_count; b++)
        blocks[b] = LOCKSET_ALL;
    if (entry == LOCKSET_EMPTY) h->locks->instances[instance].calm = false;
    if (entry == LOCKSET_EMPTY && stays_empty(h, instance, f)) {
        h->locks->instances[instance].calm = is_calm(&h->locks->instances[instance], f);
        for (uint32_t i = 0; i < f->ir->rpo_count; i++)
            blocks[f->ir->rpo[i]] = LOCKSET_EMPTY;
        for (uint32_t b = 0; b < f->block_count && active->unknown; b++)
            blocks[b] = LOCKSET_EMPTY;
        return active->ends || active->unknown ? LOCKSET_EMPTY : LOCKSET_ALL;
    }
    blocks[0] = entry;
    bool unknown = false;
    uint32_t *done = base_alloc(f->block_count * sizeof *done); /* per block: what it was gone through with */
    memset(done, 0xff, f->block_count * sizeof *done);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < f->ir->rpo_count; i++) {
            uint32_t block = f->ir->rpo[i];
            const lift_block *b = &f->blocks[block];
            if (blocks[block] == done[block]) continue;
            done[block] = blocks[block];
            uint32_t out = lock_through_block(h, instance, f, block, blocks[block], HB_NONE);
            if (out == LOCKSET_ALL) continue;
            /* the sets only shrink: what an earlier turn has met here is more */
            if (lock_ends_function(b)) end = lockset_meet(t, end, out);
            if (b->end_kind == END_UNKNOWN && !unknown) {
                unknown = changed = true;
                for (uint32_t other = 0; other < f->block_count; other++)
                    blocks[other] = LOCKSET_EMPTY;
            }
            for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
                if (h->locks->optional && lock_goes_past(h, instance, e)) continue;
                uint32_t over = hb_bit(active->edges, e) ? over_edge(h, instance, f, block, e, out) : out;
                uint32_t to = f->edges[e].to, next = lockset_meet(t, blocks[to], over);
                if (next == blocks[to]) continue;
                blocks[to] = next;
                changed = true;
            }
        }
    }
    free(done);
    return unknown ? LOCKSET_EMPTY : end;
}
