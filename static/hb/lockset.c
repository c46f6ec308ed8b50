/* Interning of locks and of sets of locks. */
#include "static/hb/lockset.h"

#include <stdlib.h>

static uint32_t intern(lockset_table *t, const uint32_t *members, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = map_hash(hash * 31 + members[i] + 1);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&t->set_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = t->sets.len;
            uint32_t first = t->members.len;
            for (uint32_t i = 0; i < count; i++)
                vec_push(&t->members, members[i]);
            vec_reserve(&t->sets, t->sets.len + 1);
            t->sets.data[t->sets.len].first = first;
            t->sets.data[t->sets.len++].count = count;
            return *at;
        }
        bool same = t->sets.data[*at].count == count;
        for (uint32_t i = 0; i < count && same; i++)
            same = t->members.data[t->sets.data[*at].first + i] == members[i];
        if (same) return *at;
    }
}

void lockset_open(lockset_table *t)
{
    *t = (lockset_table){0};
    intern(t, NULL, 0);
}

void lockset_close(lockset_table *t)
{
    vec_free(&t->locks);
    vec_free(&t->sets);
    vec_free(&t->members);
    map_free(&t->lock_map);
    map_free(&t->set_map);
    map_free(&t->meet_map);
}

static bool same_lock(const lock_element *x, const lock_element *y)
{
    bool named = (!x->name && !y->name) || (x->name && y->name && !strcmp(x->name, y->name));
    return x->kind == y->kind && x->shared == y->shared && x->a == y->a && x->b == y->b && x->twin == y->twin && x->at == y->at &&
           named;
}

uint32_t lockset_lock(lockset_table *t, lock_element e)
{
    uint64_t hash = map_hash((uint64_t)e.kind << 40 | (uint64_t)e.shared << 32 | e.a);
    hash = map_hash(map_hash(hash + e.b) + (uint64_t)e.at + ((uint64_t)e.twin << 20));
    for (const char *c = e.name; c && *c; c++)
        hash = hash * 31 + (uint8_t)*c;
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&t->lock_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = t->locks.len;
            vec_push(&t->locks, e);
            return *at;
        }
        if (same_lock(&t->locks.data[*at], &e)) return *at;
    }
}

bool lockset_has(const lockset_table *t, uint32_t set, uint32_t lock)
{
    uint32_t count;
    const uint32_t *members = lockset_members(t, set, &count);
    for (uint32_t i = 0; i < count; i++)
        if (members[i] == lock) return true;
    return false;
}

uint32_t lockset_add(lockset_table *t, uint32_t set, uint32_t lock)
{
    if (set == LOCKSET_ALL || lockset_has(t, set, lock)) return set;
    uint32_t count, n = 0;
    const uint32_t *members = lockset_members(t, set, &count);
    uint32_t *bigger = base_alloc((count + 1) * sizeof *bigger);
    for (uint32_t i = 0; i < count && members[i] < lock; i++)
        bigger[n++] = members[i];
    bigger[n++] = lock;
    for (uint32_t i = n - 1; i < count; i++)
        bigger[n++] = members[i];
    uint32_t result = intern(t, bigger, n);
    free(bigger);
    return result;
}

uint32_t lockset_remove(lockset_table *t, uint32_t set, uint32_t lock)
{
    if (set == LOCKSET_ALL || !lockset_has(t, set, lock)) return set;
    uint32_t count, n = 0;
    const uint32_t *members = lockset_members(t, set, &count);
    uint32_t *smaller = base_alloc(count * sizeof *smaller);
    for (uint32_t i = 0; i < count; i++)
        if (members[i] != lock) smaller[n++] = members[i];
    uint32_t result = intern(t, smaller, n);
    free(smaller);
    return result;
}

/* Of a lock that one side holds shared and the other exclusively, the shared one is sure; of a value that is one object's lock on one side
 * and another's, or anybody's, on the other, that it is the value. */
static bool find_weaker(lockset_table *t, uint32_t set, uint32_t lock, uint32_t *weaker)
{
    uint32_t count;
    const uint32_t *members = lockset_members(t, set, &count);
    if (lockset_has(t, set, lock)) return *weaker = lock, true;
    for (uint32_t i = 0; i < count; i++) {
        const lock_element *e = &t->locks.data[lock];
        lock_element other = t->locks.data[members[i]];
        if (e->kind == LOCK_VALUE && other.kind == LOCK_VALUE && e->shared == other.shared && e->a == other.a && e->b == other.b && e->at == other.at) {
            other.twin = LOCK_NO_TWIN;
            return *weaker = lockset_lock(t, other), true;
        }
        if (other.kind != e->kind || other.shared == e->shared || e->kind == LOCK_VALUE || e->kind == LOCK_HOLDER) continue;
        other.shared = e->shared;
        if (same_lock(&other, e)) return *weaker = e->shared ? lock : members[i], true;
    }
    return false;
}

uint32_t lockset_meet(lockset_table *t, uint32_t a, uint32_t b)
{
    if (a == b || b == LOCKSET_ALL) return a;
    if (a == LOCKSET_ALL) return b;
    if (a == LOCKSET_EMPTY || b == LOCKSET_EMPTY) return LOCKSET_EMPTY;
    uint64_t key = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    uint32_t known = map_get(&t->meet_map, key);
    if (known != MAP_NONE) return known;
    uint32_t count, weaker, result = LOCKSET_EMPTY;
    lockset_members(t, a, &count);
    for (uint32_t i = 0; i < count; i++) { /* the members move when a set is made */
        uint32_t lock = lockset_members(t, a, &count)[i];
        if (find_weaker(t, b, lock, &weaker)) result = lockset_add(t, result, weaker);
    }
    *map_at(&t->meet_map, key) = result;
    return result;
}
