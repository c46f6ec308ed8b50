/* Which object an address belongs to: address spaces as sorted, disjoint stretches. */
#ifndef RACE_POINTER_ADDRESS_H
#define RACE_POINTER_ADDRESS_H

#include "static/pointer/pointer.h"

typedef struct {
    int64_t start, end;
    uint32_t site; /* begins at `start` */
    bool named;    /* a whole object, not a stretch that nothing names */
} address_home;

typedef struct {
    VEC(address_home) homes; /* sorted and disjoint after address_seal */
} address_space;

typedef struct {
    uint32_t site;
    int32_t offset;
} address_place;

/* Later homes give way where they overlap earlier ones. */
void address_add(address_space *space, int64_t start, int64_t end, uint32_t site, bool named);
void address_seal(address_space *space);
/* Gives the stretch that begins here another site. */
void address_replace(address_space *space, int64_t start, uint32_t site);
const address_home *address_find(const address_space *space, int64_t at);
/* The places that an address constant may mean: the object that it lies in, and the named one that ends there (code that
 * walks down from the end of an array). Returns their number, at most 2. */
uint32_t address_places(const address_space *space, int64_t at, address_place places[2]);

/* The same for a constant that an index of multiples of `stride` bytes is added to: a compiler may have moved it out of its
 * object by a part of an element at either end, or by some elements before its start (`a[i - 2]`). At most ADDRESS_INDEXED;
 * each is a place whose multiples of the stride are meant. */
enum { ADDRESS_AHEAD = 8, ADDRESS_INDEXED = 3 + ADDRESS_AHEAD };
uint32_t address_indexed(const address_space *space, int64_t at, uint32_t stride, address_place places[ADDRESS_INDEXED]);

/* The static data of a module and its TLS block as sites. `referenced`: sorted addresses that the code or the data of the
 * module names; they divide what no symbol names. */
void address_static(pta_program *program, uint32_t module, const uint64_t *referenced, uint32_t count, address_space *out);
void address_tls(pta_program *program, uint32_t module, address_space *out);
/* The variables of a frame that DWARF places, as new sites (free() them), which `out` numbers from 0. */
void address_frame(const image *img, const lift_func *func, uint32_t func_id, address_space *out, pta_site **sites,
                   uint32_t *count);

#endif
