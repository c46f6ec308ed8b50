/* The index of functions, globals and types that debug.c builds by one walk over all units, and what scope.c and type.c
 * add to it on demand. */
#ifndef RACE_IMAGE_INDEX_H
#define RACE_IMAGE_INDEX_H

#include "static/image/dwarf.h"

typedef struct {          /* an inlined call */
    uint32_t parent;      /* number + 1 of the inlined call that it is in; 0: of the function itself */
    const char *function; /* what is inlined */
    image_line call;      /* from where */
} inlined_call;

typedef struct {
    Dwarf_Die die;
    uint64_t start, end;
    const char *name;      /* NULL: not read yet */
    image_function *facts; /* the same */
    bool inlined_read;
    range_map inlined; /* the innermost inlined call, by number */
    inlined_call *calls;
} debug_function;

typedef struct {
    Dwarf_Die die;
    image_place place;
    int64_t offset;
} debug_global;

typedef struct {
    Dwarf_Die die;
    uint64_t size, line;
    bool ambiguous; /* several of that name that differ */
} type_definition;

typedef struct {
    Dwarf_Die die;
    uint64_t name;  /* hash of its name */
    uint64_t line;
    bool ambiguous; /* there are others of that size */
} sized_struct;

typedef struct type_entry type_entry;

struct debug_index {
    image_dwarf *dwarf;
    VEC(debug_function) functions;
    range_map function_ranges;
    VEC(debug_global) global_dies;
    bool globals_read;
    image_variable *globals; /* static ones by address, then TLS ones by offset */
    uint32_t global_count, static_count;
    range_map global_ranges, tls_ranges;
    map64 contexts;    /* address of a type's entry: what it is in (see debug.c) */
    map64 definitions; /* name in its context: number + 1 in definition_list */
    VEC(type_definition) definition_list;
    map64 sizes;       /* size of a struct: number + 1 in sized_list */
    VEC(sized_struct) sized_list;
    map64 typedef_names;        /* address of an anonymous struct's entry: the name that a typedef gives it */
    const void *class; /* the entry of the class that is being walked, or NULL */
    map64 types_by_die;         /* address of an entry: type_entry */
    map64 types_by_key;         /* what makes two types the same: type_entry */
    VEC(type_entry *) unfilled; /* structs whose members are to be read */
    unsigned depth;             /* of types inside types that are being made */
};

static inline uint64_t hash_number(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* Only the beginning of a name counts: a million entries may share one endless name. */
enum { MAX_HASHED = 4096 };

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (int i = 0; i < MAX_HASHED && text[i]; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ull;
    return hash_number(hash, 0);
}

debug_index *index_get(const image *img); /* the image's lock is held */

/* The context of what is inside an entry called `name`; the lowest bit says that it is in namespace std. */
uint64_t context_inside(uint64_t context, const char *name);
uint64_t context_of(const debug_index *index, Dwarf_Die *die);
uint64_t definition_key(unsigned tag, uint64_t context, const char *name);

/* Where a variable is. `frame_base` is the CFA-relative offset that DW_OP_fbreg counts from, FRAME_UNKNOWN otherwise.
 * `in_memory`: in one place in memory, even if that is not a constant offset. */
enum { FRAME_UNKNOWN = INT32_MIN };
image_place place_of(image_dwarf *dwarf, Dwarf_Die *die, int32_t frame_base, int64_t *offset, bool *in_memory);
int32_t frame_base_of(image_dwarf *dwarf, Dwarf_Die *function);

/* scope.c */
const image_function *function_read(debug_index *index, debug_function *function);
void function_read_inlined(debug_index *index, debug_function *function);

/* type.c: the type that `die` has (DW_AT_type), or is; NULL: none, or damaged. type_finish completes all that were made. */
const image_type *type_of(debug_index *index, Dwarf_Die *die);
const image_type *type_at(debug_index *index, Dwarf_Die *die);
void type_finish(debug_index *index);

#endif
