/* Locks and sets of locks as numbers: equal sets have equal numbers, and an intersection is computed once. */
#ifndef RACE_HB_LOCKSET_H
#define RACE_HB_LOCKSET_H

#include "static/base/base.h"
#include "static/pointer/map.h"

typedef enum {
    LOCK_OBJECT, /* at byte `at` of an object of which there is one */
    LOCK_NAMED,  /* `name` */
    LOCK_VALUE,  /* the address is value `a` of function `b` plus `at`; `twin`: the LOCK_OBJECT that it is, if it is one */
    LOCK_AGAIN,  /* the lock `a`, which is held already, taken once more */
    LOCK_HOLDER  /* a variable of function `b`'s frame, `at` bytes from entry, holds the lock `twin` until it is destroyed */
} lock_kind;

typedef struct {
    uint8_t kind;
    bool shared;
    uint32_t a, b, twin;
    int64_t at;
    const char *name;
} lock_element;

enum { LOCKSET_EMPTY = 0, LOCKSET_ALL = UINT32_MAX /* not reached yet */, LOCK_NO_TWIN = UINT32_MAX };

typedef struct {
    uint32_t first, count;
} lockset_span;

typedef struct {
    VEC(lock_element) locks;
    map64 lock_map;
    VEC(lockset_span) sets;    /* [0]: the empty one */
    VEC(uint32_t) members;     /* sorted */
    map64 set_map, meet_map;
} lockset_table;

void lockset_open(lockset_table *t);
void lockset_close(lockset_table *t);
uint32_t lockset_lock(lockset_table *t, lock_element e);
uint32_t lockset_add(lockset_table *t, uint32_t set, uint32_t lock);
uint32_t lockset_remove(lockset_table *t, uint32_t set, uint32_t lock);
uint32_t lockset_meet(lockset_table *t, uint32_t a, uint32_t b);
bool lockset_has(const lockset_table *t, uint32_t set, uint32_t lock);
static inline const uint32_t *lockset_members(const lockset_table *t, uint32_t set, uint32_t *count)
{
    *count = set == LOCKSET_ALL ? 0 : t->sets.data[set].count;
    return *count ? t->members.data + t->sets.data[set].first : NULL;
}

#endif
