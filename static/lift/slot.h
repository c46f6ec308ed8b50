/* Inside static/lift: what frame.c finds out for slot.c. Places are encoded like raw->frame. */
#ifndef RACE_SLOT_H
#define RACE_SLOT_H

#include "static/lift/raw.h"

typedef struct {
    int32_t start, end;
} slot_span;

typedef struct {
    int32_t at;
    uint32_t access; /* in raw->code */
} slot_place;

typedef VEC(slot_span) slot_spans;
typedef VEC(slot_place) slot_places;

/* Turns the loads and stores of the `direct` accesses into copies of variables, where no byte of theirs is `killed`; sorts
 * both. False: `raw` is spoilt, see raw_frame. */
bool raw_slots(raw_func *raw, const ir_func *ir, slot_places direct, slot_spans killed);

#endif
