/* Must-held locks of all instances: each function by its flow (lock_flow.c) until the summaries for calls stay the same, then
 * downwards (what all callers hold); and the answers to whoever asks. */
#include "static/hb/lock.h"

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

static void note_once(hb *h, const pta_place *place)
{
    const pta_site *site = &h->program->sites.data[place->site];
    lock_once once = {hb_object(h, site->memory, place->context), site->base + place->offset};
    for (uint32_t i = 0; i < h->locks->once_variables.len; i++)
        if (h->locks->once_variables.data[i].object == once.object && h->locks->once_variables.data[i].at == once.at) return;
    vec_push(&h->locks->once_variables, once);
}

/* What is done once, and by which variable. */
static void find_guards(hb *h, uint32_t instance, const hb_call *call, bool is_static)
{
    pta_places places = {0};
    pta_operand what = h->program->calls.data[call->call].args[0];
    if (what.var != PTA_NO_VAR) hb_points_to(h, instance, what, &places);
    for (uint32_t k = 0; k < places.len; k++) {
        if (!places.data[k].exact) continue;
        if (is_static) vec_push(&h->locks->guards, (spin_place){places.data[k]});
        note_once(h, &places.data[k]);
    }
    vec_free(&places);
}

static bool concerns(const sync_entry *sync)
{
    return sync && (sync->kind == SYNC_ACQUIRE || sync->kind == SYNC_RELEASE || sync->kind == SYNC_ONCE || sync->kind == SYNC_GUARD ||
                    sync->kind == SYNC_GUARD_END || sync->kind == SYNC_NUMBER || sync->kind == SYNC_SECTION || sync->kind == SYNC_WAIT || sync->kind == SYNC_POST ||
                    (sync->kind == SYNC_BARRIER && sync->arg >= 0));
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
            if (sync && (sync->kind == SYNC_GUARD || sync->kind == SYNC_ONCE))
                find_guards(h, i, &f->calls[c], sync->kind == SYNC_GUARD);
        }
        if (l->matters) vec_push(&work, i);
    }
    while (work.len) {
        uint32_t callee = work.data[--work.len];
        hb_set(h->locks->matters, callee);
        for (uint32_t i = h->in_first[callee]; i < h->in_first[callee + 1]; i++) {
            const pta_call_edge *e = &h->edges[h->in_edge[i]];
            if (hb_spawns(h, e) || h->locks->instances[e->caller].matters) continue;
            h->locks->instances[e->caller].matters = true;
            vec_push(&work, e->caller);
        }
    }
    vec_free(&work);
}

enum { ROUNDS = 30, CALLBACKS = 5 };

/* Those whose flow asks for the summary of an instance: its callers, through library functions that call back. */
static void wake_callers(const hb *h, uint32_t instance, uint64_t *dirty, unsigned depth)
{
    for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        if (hb_spawns(h, e)) continue;
        if (hb_instance_code(h, e->caller))
            hb_set(dirty, e->caller);
        else if (depth < CALLBACKS)
            wake_callers(h, e->caller, dirty, depth + 1);
    }
}

static void find_gains(hb *h)
{
    uint64_t *dirty = base_alloc(h->words * sizeof *dirty);
    memset(dirty, 0xff, h->words * sizeof *dirty);
    bool changed = true;
    for (unsigned round = 0; round < ROUNDS && changed; round++) {
        changed = false;
        for (uint32_t n = 0; n < h->instance_count; n++) {
            uint32_t i = h->callees_first[n];
            lock_instance *l = &h->locks->instances[i];
            const lift_func *f = hb_instance_code(h, i);
            if (!l->matters || !f || !hb_bit(dirty, i)) continue;
            dirty[i / 64] &= ~(1ull << i % 64);
            uint32_t *blocks = base_alloc(f->block_count * sizeof *blocks), releases = l->releases.len;
            uint32_t gain = lock_through_function(h, i, LOCKSET_EMPTY, blocks);
            free(blocks);
            if (gain == l->gain && releases == l->releases.len) continue;
            l->gain = gain;
            lock_summary_changed(h, i);
            wake_callers(h, i, dirty, 0);
            changed = true;
        }
    }
    for (uint32_t i = 0; changed && i < h->instance_count; i++) { /* no end in sight: nothing is sure */
        h->locks->instances[i].gain = LOCKSET_EMPTY;
        h->locks->instances[i].calm = false;
        lock_summary_changed(h, i);
    }
    free(dirty);
}

/* A lock that a caller holds, `at` bytes from what it gives as an argument. */
static uint32_t hand_value(hb *h, uint32_t set, uint32_t callee, unsigned arg, uint32_t lock, uint32_t twin, int64_t at)
{
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    lockset_table *t = &h->locks->table;
    const ir_func *to = hb_instance_code(h, callee)->ir;
    for (ir_value v = 1; v < to->insn_count && to->insns[v].op <= IR_UNDEF; v++) {
        if (to->insns[v].op != IR_ENTRY || to->insns[v].var != registers[arg]) continue;
        value_sum own = value_of(to, v);
        uint32_t func = h->instances[callee].func;
        uint32_t handed = lockset_lock(t, (lock_element){.kind = LOCK_VALUE, .shared = t->locks.data[lock].shared,
                                                         .a = lock_sum_number(h, func, &own), .b = func, .twin = twin, .at = at});
        while (h->locks->kinds.len <= handed || h->locks->kinds.len <= lock)
            vec_push(&h->locks->kinds, 0);
        h->locks->kinds.data[handed] = h->locks->kinds.data[lock];
        uint32_t list = map_get(&h->locks->lists, lock);
        if (list != MAP_NONE) *map_at(&h->locks->lists, handed) = list;
        return lockset_add(t, set, handed);
    }
    return set;
}

/* What a caller holds, in the words of a callee. */
static uint32_t hand_down(hb *h, uint32_t instance, const hb_call *call, uint32_t set, uint32_t callee)
{
    lockset_table *t = &h->locks->table;
    const lift_func *from = hb_instance_code(h, instance), *to = hb_instance_code(h, callee);
    uint32_t count, result = LOCKSET_EMPTY;
    lockset_members(t, set, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lock = lockset_members(t, set, &count)[i];
        lock_element e = t->locks.data[lock];
        if (e.kind == LOCK_OBJECT || e.kind == LOCK_NAMED) result = lockset_add(t, result, lock);
        if (!from || !to || !call || !call->value) continue;
        for (unsigned a = 0; a < 6 && e.kind == LOCK_VALUE; a++) {
            value_sum arg = value_of(from->ir, lock_call_argument(from->ir, call, a));
            if (value_same_terms(&arg, &h->locks->sums.data[e.a])) result = hand_value(h, result, callee, a, lock, e.twin, e.at - arg.add);
        }
        for (unsigned a = 0; a < 6 && e.kind == LOCK_OBJECT; a++) { /* the object that it is in, by its address */
            lock_name name;
            if (from->ir->insns[value_plain(from->ir, lock_call_argument(from->ir, call, a), 8)].op != IR_ADDRESS) continue;
            lock_name_argument(h, instance, call, a, 0, e.shared, &name);
            if (name.object == UINT32_MAX || t->locks.data[name.object].a != e.a) continue;
            result = hand_value(h, result, callee, a, lock, lock, e.at - t->locks.data[name.object].at);
        }
    }
    return result;
}

static void enter_callee(hb *h, uint32_t callee, uint32_t set, uint64_t *work)
{
    lock_instance *l = &h->locks->instances[callee];
    uint32_t next = lockset_meet(&h->locks->table, l->entry, set);
    if (next == l->entry) return;
    l->entry = next;
    hb_set(work, callee);
}

static void enter_callees(hb *h, uint32_t instance, const hb_call *call, uint32_t set, uint64_t *work)
{
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    const sync_entry *sync = hb_call_sync(h, instance, call);
    if (sync && sync->kind == SYNC_ONCE) { /* what is run is run under it */
        lock_name name;
        lock_name_argument(h, instance, call, (unsigned)sync->arg, 0, false, &name);
        if (name.object != UINT32_MAX) set = lockset_add(&h->locks->table, set, name.object);
    }
    for (uint32_t i = 0; i < count; i++) {
        const pta_call_edge *e = &h->edges[first + i];
        if (!hb_spawns(h, e)) enter_callee(h, e->callee, hand_down(h, instance, call, set, e->callee), work);
    }
}

/* What one instance, with what is held on its entry, hands to its callees. */
static void go_down(hb *h, uint32_t i, uint64_t *work)
{
    lock_instance *l = &h->locks->instances[i];
    const lift_func *f = hb_instance_code(h, i);
    if (!f || !l->matters) {
        for (uint32_t e = h->out_first[i]; e < h->out_first[i + 1]; e++) {
            if (hb_spawns(h, &h->edges[e])) continue;
            const hb_call *call = f ? hb_call_at(h, h->instances[i].func, h->call_insn[h->edges[e].call]) : NULL;
            enter_callee(h, h->edges[e].callee, hand_down(h, i, call, l->entry, h->edges[e].callee), work);
        }
        return;
    }
    if (l->calm && l->entry == LOCKSET_EMPTY) { /* as the gains have left it */
        for (uint32_t e = h->out_first[i]; e < h->out_first[i + 1]; e++)
            if (!hb_spawns(h, &h->edges[e])) enter_callee(h, h->edges[e].callee, LOCKSET_EMPTY, work);
        return;
    }
    if (!l->blocks) l->blocks = base_alloc(f->block_count * sizeof *l->blocks);
    lock_through_function(h, i, l->entry, l->blocks);
    const hb_func *own = &h->funcs[h->instances[i].func];
    for (uint32_t c = 0; c < own->call_count; c++) {
        uint32_t set = hb_locks_at(h, (hb_point){i, own->calls[c].insn});
        if (set != LOCKSET_ALL) enter_callees(h, i, &own->calls[c], set, work);
    }
}

/* Entries only shrink, so it ends. */
static void find_entries(hb *h)
{
    uint64_t *work = base_alloc_zero(h->words, sizeof *work);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        bool spawned = false, called = false;
        for (uint32_t k = h->in_first[i]; k < h->in_first[i + 1]; k++)
            spawned |= hb_spawns(h, &h->edges[h->in_edge[k]]), called = true;
        h->locks->instances[i].entry = LOCKSET_ALL;
        if (h->instances[i].func != PTA_NO_FUNC && (spawned || !called)) enter_callee(h, i, LOCKSET_EMPTY, work);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = h->instance_count; n-- > 0;) { /* callers first */
            uint32_t i = h->callees_first[n];
            if (!hb_bit(work, i)) continue;
            work[i / 64] &= ~(1ull << i % 64);
            changed = true;
            go_down(h, i, work);
        }
    }
    free(work);
}

uint32_t hb_locks_at(hb *h, hb_point at)
{
    const lock_instance *l = &h->locks->instances[at.instance];
    const lift_func *f = hb_instance_code(h, at.instance);
    if (!f || !l->matters || !l->blocks || (l->calm && l->entry == LOCKSET_EMPTY)) return l->entry;
    uint32_t block = hb_block_of(f, at.insn);
    if (l->blocks[block] == LOCKSET_ALL) return LOCKSET_ALL;
    return lock_through_block(h, at.instance, f, block, l->blocks[block], at.insn);
}

void hb_lock_takings(hb *h, hb_takings *out)
{
    lock_name name;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i) || !h->locks->instances[i].matters) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            if (!sync || sync->kind != SYNC_ACQUIRE || sync->arg < 0) continue;
            hb_point at = {i, f->calls[c].insn};
            uint32_t held = hb_locks_at(h, at);
            if (held == LOCKSET_ALL) continue;
            lock_name_argument(h, i, &f->calls[c], (unsigned)sync->arg, 0, sync->shared, &name);
            uint32_t count;
            const pta_place *places = lock_places_of(h, name.places, &count);
            vec_push(out, (hb_taking){.at = at, .held = held, .lock = name.object, .value = name.value,
                                      .kind = count ? lock_place_kind(h, places) : 0, .tries = sync->when != SYNC_ALWAYS || sync->other >= 0, .shared = sync->shared});
        }
    }
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

void hb_locks_open(hb *h, bool optional)
{
    const hb_locks *certain = optional ? h->locks : NULL; /* the same instances matter */
    h->locks = base_alloc_zero(1, sizeof *h->locks);
    h->locks->optional = optional;
    h->locks->certain = certain;
    lockset_open(&h->locks->table);
    lock_places_number(h, &(pta_places){0});
    h->locks->instances = base_alloc_zero(h->instance_count, sizeof *h->locks->instances);
    h->locks->matters = base_alloc_zero(h->words, sizeof *h->locks->matters);
    h->locks->changed = base_alloc_zero(h->instance_count, sizeof *h->locks->changed);
    h->locks->effects = base_alloc_zero(h->instance_count, sizeof *h->locks->effects);
    h->locks->summaries = base_alloc_zero(h->instance_count, sizeof *h->locks->summaries);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        h->locks->instances[i].gain = LOCKSET_ALL;
        lock_summary_changed(h, i);
        if (h->instances[i].func != PTA_NO_FUNC)
            *map_at(&h->locks->instance_map, (uint64_t)h->instances[i].func << 32 | h->instances[i].context) = i;
    }
    find_spins(h);
    lock_find_robust(h);
    find_matters(h);
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (h->locks->instances[i].matters && hb_instance_code(h, i))
            h->locks->instances[i].sparse = certain ? certain->instances[i].sparse : lock_sparse_make(h, i);
    find_gains(h);
    find_entries(h);
}

void hb_locks_close(hb *h)
{
    if (!h->locks) return;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        lock_instance *l = &h->locks->instances[i];
        vec_free(&l->releases);
        free(l->blocks);
        free(l->steps);
        free(l->stores);
        free(l->store_places);
        if (!h->locks->optional) lock_sparse_free(l->sparse);
    }
    free(h->locks->instances);
    free(h->locks->matters);
    free(h->locks->effects);
    free(h->locks->summaries);
    free(h->locks->changed);
    lockset_close(&h->locks->table);
    vec_free(&h->locks->sums);
    vec_free(&h->locks->sum_func);
    vec_free(&h->locks->kinds);
    map_free(&h->locks->lists);
    map_free(&h->locks->shares);
    vec_free(&h->locks->place_lists);
    vec_free(&h->locks->all_places);
    map_free(&h->locks->place_map);
    map_free(&h->locks->asked_map);
    vec_free(&h->locks->asked);
    map_free(&h->locks->may_be);
    vec_free(&h->locks->names);
    map_free(&h->locks->name_map);
    vec_free(&h->locks->spins);
    vec_free(&h->locks->guards);
    vec_free(&h->locks->once_variables);
    vec_free(&h->locks->onces);
    vec_free(&h->locks->robust);
    map_free(&h->locks->sum_map);
    map_free(&h->locks->instance_map);
    free(h->locks);
}
