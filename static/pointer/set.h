/* A points-to set: sorted keys, for each its rank, the moment in which it became known, and its reason, the edge that brought it.
 * A fact is always younger than what it was derived from, which is what makes deletion well-founded (delete.c). */
#ifndef RACE_POINTER_SET_H
#define RACE_POINTER_SET_H

#include "static/base/base.h"
#include "static/pointer/offset.h"

/* A pointer that may point anywhere into very many objects is wild: it gets the key SET_WILD, which stands for all places of all
 * objects that some wild pointer may point into, at whatever place. These objects are the same for all of them, so that sets
 * stay small where the analysis knows next to nothing. */
enum { SET_WILD_OBJECT = 1, SET_EXTERNAL_OBJECT = 2, SET_WILD_AT = 32 /* more objects than this, as a rule */ };
enum { SET_PRONE = 4 /* so many times fewer make a prone set wild */ };

typedef struct {
    pta_key *keys;
    uint64_t *ranks;
    uint32_t *reasons; /* NULL: nobody will ask */
    uint32_t len, cap;
    uint32_t loose; /* objects with a loose class */
    bool tame;      /* never wild: it lists what others leave to SET_WILD */
    bool prone;     /* wild without contexts: prone.c */
} pta_set;

typedef VEC(pta_key) key_list;

typedef struct { /* what sets have to know of objects, by their numbers */
    const pta_shape *const *shapes;
    const uint8_t *wild; /* SET_IN_WILD, SET_IS_CODE */
    uint32_t wild_at;    /* a set with more loose classes is wild */
    bool drops;          /* what SET_WILD covers is not added */
    uint32_t prone_at;   /* a prone set with more is wild */
} set_world;

enum { SET_NO_REASON = UINT32_MAX }; /* no one edge: a closure of what several brought, or SET_WILD of a set by itself */
enum { SET_IN_WILD = 1, /* some wild pointer points into it */ SET_IS_CODE = 2, SET_IN_DOUBT = 4 /* delete.c */ };

static inline pta_key set_wild_key(void)
{
    return key_make(SET_WILD_OBJECT, offset_anywhere());
}

static inline bool set_is_wild(const pta_set *set)
{
    return set->len && key_object(set->keys[0]) == SET_WILD_OBJECT;
}

/* Next to nothing is known of the place. */
static inline bool set_is_loose(pta_key key)
{
    uint32_t step = offset_step(key_offset(key));
    return step && step <= 8 && key_object(key) > SET_EXTERNAL_OBJECT;
}

/* As many loose classes do not make it wild. */
static inline uint32_t set_wild_at(const pta_set *set, set_world world)
{
    return set->prone ? world.prone_at : world.wild_at;
}

void set_free(pta_set *set);
/* Index of a key, or UINT32_MAX. */
uint32_t set_find(const pta_set *set, pta_key key);
/* Whether a class, or SET_WILD, covers a key, which thus lies dormant if it is there at all. */
bool set_covers(const pta_set *set, pta_key key, set_world world);
/* The keys that do not lie dormant. */
void set_normal(const pta_set *set, set_world world, key_list *out);
/* Whether adding a key would change nothing. */
bool set_knows(const pta_set *set, pta_key key, set_world world);
/* Appends those of sorted keys that would change something. */
void set_missing(const pta_set *set, const pta_key *keys, uint32_t count, set_world world, key_list *out);
/* Index of the first key of an object, or where it would be. */
uint32_t set_group(const pta_set *set, uint32_t object);
/* Adds keys (sorted, may repeat), closed as pointer.h says. What was really added and does not lie dormant is appended to
 * `added`, sorted. Keys that a class of their object covers stay for the sake of what was derived from them, those that SET_WILD
 * covers for the sake of the wilderness, but they lie dormant: they are sent nowhere any more. */
void set_add(pta_set *set, const pta_key *keys, uint32_t count, uint64_t rank, set_world world, key_list *added);
/* The same; `reasons` are those of the keys, which do not repeat. A set has reasons from the first time on or never. */
void set_add_for(pta_set *set, const pta_key *keys, const uint32_t *reasons, uint32_t count, uint64_t rank, set_world world,
                 key_list *added);
/* Forgets what SET_WILD covers; only for sets that nothing will be deleted from. */
void set_drop_covered(pta_set *set, set_world world);
/* Counts loose classes anew. */
void set_count(pta_set *set);
/* The class that closes sorted keys of one object; 0: they are closed. */
offset_t set_closure(const pta_key *keys, uint32_t count, const pta_shape *shape);
/* Removes keys (sorted) that are there. */
void set_remove(pta_set *set, const pta_key *keys, uint32_t count);
/* Gives memory back that it does not need. */
void set_shrink(pta_set *set);

void keys_sort(pta_key *keys, uint32_t *count); /* and drop repeated ones */
void keys_sort_with(pta_key *keys, uint32_t *reasons, uint32_t *count); /* the same; of equal keys the least reason stays */

#endif
