/* What the result depends on, as hashes: types and shapes as far as they tell where pointers may lie. */
#ifndef RACE_POINTER_SAYS_H
#define RACE_POINTER_SAYS_H

#include "static/pointer/map.h"
#include "static/pointer/program.h"
#include "static/pointer/shape.h"

typedef struct {
    VEC(uint64_t) words; /* what is hashed next */
    uint64_t hash;
    map64 type_map;      /* by address */
    VEC(uint64_t) types; /* hashes; 0: not done yet, a type that contains itself */
} saying;

uint64_t says_type(saying *s, const image_type *type);
uint64_t says_shape(saying *s, const pta_shape *shape);
void says_free(saying *s);

#endif
