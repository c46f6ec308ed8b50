/* Locks as an access sees them: by their object, or by their distance from what is accessed; and in words. */
#include <stdio.h>

#include "static/hb/lock.h"

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

void hb_guards_of(hb *h, const hb_touch *touch, const hb_place *place, uint32_t set, hb_guards *out)
{
    const lockset_table *t = &h->locks->table;
    const pta_site *site = &h->program->sites.data[place->place.site];
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
            if (e.kind == LOCK_OBJECT && place->place.exact && e.a == h->extents.data[place->extent].object)
                add_guard(out, (hb_guard){HB_GUARD_NEAR, shared, place->place.site, e.at - site->base});
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
        if (!value_same_terms(&address, own)) continue;
        add_guard(out, (hb_guard){HB_GUARD_NEAR, e.shared, place->place.site, place->place.offset + e.at - address.add});
    }
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

bool hb_lock_name(hb *h, uint32_t set, uint32_t i, char *to, size_t size)
{
    const lockset_table *t = &h->locks->table;
    uint32_t count, n = 0;
    const uint32_t *members = lockset_members(t, set, &count);
    for (uint32_t k = 0; k < count; k++) {
        const lock_element *e = &t->locks.data[members[k]];
        if (!is_shown(h, e) || n++ != i) continue;
        char text[240];
        hb_one_lock_name(h, members[k], text, sizeof text);
        snprintf(to, size, "%s%s", text, e->shared ? " (shared)" : "");
        return true;
    }
    return false;
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
