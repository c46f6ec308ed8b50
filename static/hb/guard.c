/* Locks as an access sees them: by their object, or by their distance from what is accessed; and in words. */
#include <stdio.h>

#include "static/hb/counter.h"
#include "static/hb/lock.h"
#include "static/pointer/offset.h"

static void add_guard(hb_guards *out, hb_guard g)
{
    for (uint32_t i = 0; i < out->len; i++)
        if (out->data[i].kind == g.kind && out->data[i].lock == g.lock && out->data[i].at == g.at) {
            out->data[i].shared &= g.shared;
            return;
        }
    vec_push(out, g);
}

/* Whether the index of a lock follows from the index of what is accessed: it is the same, or some bits of it. */
static bool is_index(const ir_func *ir, ir_value lock, ir_value of, uint64_t *bits)
{
    *bits = 0;
    if (lock == of) return true;
    const ir_insn *insn = &ir->insns[lock];
    if (insn->op != IR_AND || insn->b || !insn->a) return false;
    value_sum whole = value_of(ir, insn->a);
    const ir_insn *some = &ir->insns[of];
    *bits = map_hash((uint64_t)insn->imm);
    if (some->op == IR_AND && !some->b && some->a && !(insn->imm & ~some->imm)) { /* of more bits of the same */
        value_sum same = value_of(ir, some->a);
        if (value_same_terms(&whole, &same) && whole.add == same.add) return true;
    }
    return whole.known && whole.count == 1 && whole.terms[0].factor == 1 && !whole.add && whole.terms[0].leaf == of;
}

/* An address as `add + factor * index`: by its only leaf, or, where that leaf counts in a loop from a constant on, by the round. */
static bool as_line(const ir_func *ir, const value_sum *sum, ir_value *index, int64_t *add, int64_t *factor)
{
    value_sum first, end;
    if (!sum->known || sum->count != 1) return false;
    *index = sum->terms[0].leaf;
    *add = sum->add;
    *factor = sum->terms[0].factor;
    if (!count_range(ir, *index, &first, &end) || !first.known || first.count) return true;
    for (uint32_t l = 1; l <= ir->loop_count; l++) {
        int64_t step;
        if (!count_step(ir, l, *index, &step)) continue;
        *add += *factor * first.add;
        *factor *= step;
        *index = ir->insn_count + l;
        return true;
    }
    return true;
}

/* Lock and access go side by side through two arrays: `lock = (num * access + d) / den`, so whoever accesses the same address holds the
 * same lock. Accesses of a width lie at multiples of it from each other, so those that overlap are at one address. */
static void add_line(const ir_func *ir, const hb_touch *t, const value_sum *access, const value_sum *lock, int64_t lock_add, bool shared, hb_guards *out)
{
    ir_value i, k;
    int64_t a, la, f, lf, most = 1ll << 40;
    value_sum own = *lock;
    own.add = lock_add;
    if (!t->width || !as_line(ir, access, &i, &a, &f) || !as_line(ir, &own, &k, &la, &lf) || i != k || f <= 0 || lf <= 0 || f % t->width) return;
    if (f >= INT32_MAX || lf >= INT32_MAX || a < 0 || la < 0 || a >= most || la >= most) return;
    int64_t g = (int64_t)offset_gcd((uint64_t)f, (uint64_t)lf), num = lf / g, den = f / g;
    if (num > 1 << 16 || den > 1 << 16) return;
    uint64_t key = map_hash(map_hash((uint64_t)num * 31 + (uint64_t)den) + (uint64_t)(den * la - num * a));
    key = map_hash(map_hash(key + t->width) + (uint64_t)(a % t->width)) | 1ull << 62;
    add_guard(out, (hb_guard){HB_GUARD_INDEX, shared, (uint32_t)key, (int64_t)key});
}

/* The lock is one of two, and so is another that is held: together they are both (locks that are taken in the order of their
 * addresses, `low = p < q ? p : q`). */
static bool is_both(hb *h, uint32_t set, uint32_t lock, const ir_func *ir, value_choice *choice, bool *shared)
{
    const lockset_table *t = &h->locks->table;
    const lock_element *e = &t->locks.data[lock];
    const value_sum *own = &h->locks->sums.data[e->a];
    uint32_t count;
    const uint32_t *members = lockset_members(t, set, &count);
    if (!own->known || own->count != 1 || own->terms[0].factor != 1 || !value_chooses(ir, own->terms[0].leaf, choice)) return false;
    for (uint32_t i = 0; i < count; i++) {
        const lock_element *o = &t->locks.data[members[i]];
        if (members[i] == lock || o->kind != LOCK_VALUE || o->b != e->b || o->at != e->at) continue;
        const value_sum *other = &h->locks->sums.data[o->a];
        value_choice with;
        if (!other->known || other->count != 1 || other->terms[0].factor != 1 || !value_chooses(ir, other->terms[0].leaf, &with)) continue;
        if (!value_complement(ir, choice, &with)) continue;
        *shared = e->shared || o->shared;
        return true;
    }
    return false;
}

/* Both are variables: then both places that the lock may lie at are held. */
static void add_variables(hb *h, uint32_t lock, const ir_func *ir, const value_choice *choice, bool shared, hb_guards *out)
{
    value_sum yes = value_of(ir, choice->yes), no = value_of(ir, choice->no);
    uint32_t count = 0, list = map_get(&h->locks->lists, lock);
    const pta_place *places = list == MAP_NONE ? NULL : lock_places_of(h, list, &count);
    if (!yes.known || yes.count || !no.known || no.count || yes.add == no.add || count != 2) return;
    if (!hb_single(h, &places[0]) || !hb_single(h, &places[1])) return;
    for (unsigned i = 0; i < 2; i++) {
        const pta_site *site = &h->program->sites.data[places[i].site];
        lock_element e = {.kind = LOCK_OBJECT, .a = hb_object(h, site->memory, places[i].context), .twin = LOCK_NO_TWIN,
                          .at = site->base + places[i].offset};
        add_guard(out, (hb_guard){HB_GUARD_LOCK, shared, lockset_lock(&h->locks->table, e), 0});
    }
}

/* Where an access is, for locks whose distance from it is known: in the object of a site, or just there. */
typedef struct {
    uint32_t site;
    int64_t at;
} access_home;

static void guards_of(hb *h, const hb_touch *touch, const hb_place *place, access_home home, uint32_t set, hb_guards *out)
{
    const lockset_table *t = &h->locks->table;
    const lift_func *f = hb_code(h, touch->func);
    uint32_t count;
    const uint32_t *members = lockset_members(t, set, &count);
    vec_clear(out);
    for (uint32_t i = 0; i < count; i++) {
        lock_element e = t->locks.data[members[i]];
        if (e.kind == LOCK_HOLDER || e.kind == LOCK_AGAIN) continue;
        if (e.kind == LOCK_OBJECT || e.kind == LOCK_NAMED) {
            bool shared = e.shared;
            e.shared = false; /* one number for both modes */
            add_guard(out, (hb_guard){HB_GUARD_LOCK, shared, lockset_lock(&h->locks->table, e), 0});
            if (e.kind == LOCK_OBJECT && place && place->place.exact && e.a == h->extents.data[place->extent].object)
                add_guard(out, (hb_guard){HB_GUARD_NEAR, shared, home.site,
                                          home.at + e.at - h->program->sites.data[place->place.site].base - place->place.offset});
            continue;
        }
        if (touch->flags & HB_LIBRARY || !touch->ir) continue;
        value_sum address = value_address(f->ir, &f->ir->insns[touch->ir]);
        if (e.b != touch->func) continue;
        const value_sum *own = &h->locks->sums.data[e.a];
        uint64_t bits = 0;
        if (address.known && address.count == 1 && own->count == 1 && own->known &&
            is_index(f->ir, own->terms[0].leaf, address.terms[0].leaf, &bits) &&
            address.terms[0].factor >= (int64_t)touch->width) { /* equal addresses have equal indices */
            uint64_t key = map_hash(map_hash((uint64_t)address.terms[0].factor) + (uint64_t)own->terms[0].factor);
            key = map_hash(map_hash(key + (uint64_t)address.add) + (uint64_t)e.at + bits);
            add_guard(out, (hb_guard){HB_GUARD_INDEX, e.shared, (uint32_t)key, (int64_t)key});
        }
        add_line(f->ir, touch, &address, own, e.at, e.shared, out);
        value_choice choice;
        bool both = is_both(h, set, members[i], f->ir, &choice, &e.shared);
        if (both) add_variables(h, members[i], f->ir, &choice, e.shared, out);
        for (unsigned k = 0; both && k < 2; k++) {
            value_sum one = value_of(f->ir, k ? choice.no : choice.yes);
            if (one.count && value_same_terms(&address, &one))
                add_guard(out, (hb_guard){HB_GUARD_NEAR, e.shared, home.site, home.at + e.at + one.add - address.add});
        }
        if (!value_same_terms(&address, own)) continue;
        add_guard(out, (hb_guard){HB_GUARD_NEAR, e.shared, home.site, home.at + e.at - address.add});
    }
}

void hb_guards_of(hb *h, const hb_touch *touch, const hb_place *place, uint32_t set, hb_guards *out)
{
    guards_of(h, touch, place, (access_home){place->place.site, place->place.offset}, set, out);
}

void hb_guards_near(hb *h, const hb_touch *touch, const hb_place *place, uint32_t set, hb_guards *out)
{
    guards_of(h, touch, place, (access_home){PTA_NO_SITE, 0}, set, out);
}

bool hb_guarded(const hb_guards *a, const hb_guards *b)
{
    for (uint32_t i = 0; i < a->len; i++)
        for (uint32_t k = 0; k < b->len; k++)
            if (a->data[i].kind == b->data[k].kind && a->data[i].lock == b->data[k].lock && a->data[i].at == b->data[k].at &&
                !(a->data[i].shared && b->data[k].shared))
                return true;
    return false;
}

/* The places where a lock may lie; `one` is room for it. */
static const pta_place *places_of_lock(const hb *h, uint32_t lock, pta_place *one, uint32_t *count)
{
    const lock_element *e = &h->locks->table.locks.data[lock];
    uint32_t list = e->kind == LOCK_VALUE && e->twin == LOCK_NO_TWIN ? map_get(&h->locks->lists, lock) : MAP_NONE;
    *count = 0;
    if (list != MAP_NONE) return lock_places_of(h, list, count);
    if (e->kind == LOCK_OBJECT || e->kind == LOCK_VALUE) *count = hb_lock_place(h, lock, one);
    return one;
}

static bool may_be_one(const hb *h, uint32_t a, uint32_t b)
{
    pta_place one[2];
    uint32_t n, m;
    const pta_place *x = places_of_lock(h, a, &one[0], &n), *y = places_of_lock(h, b, &one[1], &m);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < m; k++) {
            const pta_site *sx = &h->program->sites.data[x[i].site], *sy = &h->program->sites.data[y[k].site];
            if (sx->memory != sy->memory) continue;
            if (!x[i].exact || !y[k].exact || sx->base + x[i].offset == sy->base + y[k].offset) return true;
        }
    return false;
}

bool hb_may_share_lock(hb *h, uint32_t a, uint32_t b)
{
    uint32_t *known = map_at(&h->locks->shares, a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a), x, y;
    if (*known != MAP_NONE) return *known;
    *known = false;
    for (uint32_t i = 0; !*known && hb_lock_shown(h, a, i, &x); i++)
        for (uint32_t k = 0; !*known && hb_lock_shown(h, b, k, &y); k++)
            *known = !(hb_lock_shared(h, x) && hb_lock_shared(h, y)) && may_be_one(h, x, y);
    return *known;
}

void hb_one_lock_name(hb *h, uint32_t lock, char *to, size_t size)
{
    const lock_element *e = &h->locks->table.locks.data[lock];
    if (e->kind == LOCK_NAMED) {
        snprintf(to, size, "%s", e->name);
    } else if (e->kind == LOCK_OBJECT) {
        char text[256];
        pta_place place = {.site = h->object_list.data[e->a].site, .context = h->object_list.data[e->a].context, .exact = true,
                           .offset = (int32_t)e->at};
        pta_describe(h->p, &place, text, sizeof text);
        snprintf(to, size, "%s", text[0] == '&' ? text + 1 : text);
    } else if (e->kind == LOCK_VALUE && e->twin != LOCK_NO_TWIN) {
        hb_one_lock_name(h, e->twin, to, size);
    } else if (e->at) {
        snprintf(to, size, "the lock %lld bytes into the object", (long long)e->at);
    } else {
        snprintf(to, size, "the lock of the object");
    }
}

/* What a user would call a lock, named once. */
static bool is_shown(const hb *h, const lock_element *e)
{
    if (e->kind == LOCK_HOLDER || e->kind == LOCK_AGAIN || (e->kind == LOCK_VALUE && e->twin != LOCK_NO_TWIN)) return false;
    for (uint32_t i = 0; e->kind == LOCK_OBJECT && e->shared && i < h->locks->once_variables.len; i++)
        if (h->locks->once_variables.data[i].object == e->a && h->locks->once_variables.data[i].at == e->at) return false;
    return true;
}

bool hb_holds_locks(const hb *h, uint32_t set)
{
    uint32_t count;
    const uint32_t *members = lockset_members(&h->locks->table, set, &count);
    for (uint32_t i = 0; i < count; i++)
        if (is_shown(h, &h->locks->table.locks.data[members[i]])) return true;
    return false;
}

bool hb_lock_shown(const hb *h, uint32_t set, uint32_t i, uint32_t *lock)
{
    uint32_t count, n = 0;
    const uint32_t *members = lockset_members(&h->locks->table, set, &count);
    for (uint32_t k = 0; k < count; k++)
        if (is_shown(h, &h->locks->table.locks.data[members[k]]) && n++ == i) return *lock = members[k], true;
    return false;
}

bool hb_lock_place(const hb *h, uint32_t lock, pta_place *out)
{
    const lock_element *e = &h->locks->table.locks.data[lock];
    if (e->kind == LOCK_VALUE && e->twin != LOCK_NO_TWIN) return hb_lock_place(h, e->twin, out);
    if (e->kind == LOCK_OBJECT) {
        const hb_object_note *object = &h->object_list.data[e->a];
        *out = (pta_place){.site = object->site, .context = object->context, .exact = true, .offset = (int32_t)e->at};
        return true;
    }
    uint32_t count = 0, list = e->kind == LOCK_VALUE ? map_get(&h->locks->lists, lock) : MAP_NONE;
    const pta_place *places = list == MAP_NONE ? NULL : lock_places_of(h, list, &count);
    if (count) *out = places[0];
    return count > 0;
}

uint32_t hb_set_size(const hb *h, uint32_t set)
{
    uint32_t count;
    lockset_members(&h->locks->table, set, &count);
    return count;
}

uint32_t hb_set_lock(const hb *h, uint32_t set, uint32_t i)
{
    uint32_t count;
    uint32_t lock = lockset_members(&h->locks->table, set, &count)[i];
    const lock_element *e = &h->locks->table.locks.data[lock];
    if (e->kind == LOCK_HOLDER || e->kind == LOCK_AGAIN) return HB_NONE;
    return e->kind == LOCK_VALUE && e->twin != LOCK_NO_TWIN ? e->twin : lock;
}
