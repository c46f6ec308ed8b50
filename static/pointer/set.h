/* A points-to set: sorted keys, and for each its rank, the moment in which it became known. A fact is always younger than what
 * it was derived from, which is what makes deletion well-founded (delete.c). */
#ifndef RACE_POINTER_SET_H
#define RACE_POINTER_SET_H

#include "static/base/base.h"
#include "static/pointer/offset.h"

typedef struct {
    pta_key *keys;
    uint64_t *ranks;
    uint32_t len, cap;
} pta_set;

typedef VEC(pta_key) key_list;
typedef const pta_shape *const *shape_list; /* by object */

void set_free(pta_set *set);
/* Index of a key, or UINT32_MAX. */
uint32_t set_find(const pta_set *set, pta_key key);
/* Whether a class covers a key, which thus lies dormant if it is there at all. */
bool set_covers(const pta_set *set, pta_key key, shape_list shapes);
/* The keys that do not lie dormant. */
void set_normal(const pta_set *set, key_list *out);
/* Whether adding a key would change nothing. */
bool set_knows(const pta_set *set, pta_key key, shape_list shapes);
/* Appends those of sorted keys that would change something. */
void set_missing(const pta_set *set, const pta_key *keys, uint32_t count, shape_list shapes, key_list *out);
/* Index of the first key of an object, or where it would be. */
uint32_t set_group(const pta_set *set, uint32_t object);
/* Adds keys (sorted, may repeat), closed as pointer.h says. What was really added is appended to `added`, sorted. Keys that a
 * class of their object covers stay for the sake of what was derived from them, but lie dormant: they are sent nowhere any
 * more. */
void set_add(pta_set *set, const pta_key *keys, uint32_t count, uint64_t rank, shape_list shapes, key_list *added);
/* The class that closes sorted keys of one object; 0: they are closed. */
offset_t set_closure(const pta_key *keys, uint32_t count, const pta_shape *shape);
/* Removes keys (sorted) that are there. */
void set_remove(pta_set *set, const pta_key *keys, uint32_t count);

void keys_sort(pta_key *keys, uint32_t *count); /* and drop repeated ones */

#endif
