/* The DWARF of an image, shared by the files that read it. All of it is used with the image's lock held.
 *
 *   dwarf.c   the sections as libdw gets them
 *   check.c   the list of units, and which of them can be used
 *   die.c     entries and their attributes, followed through origins and specifications
 *   line.c    line tables
 *   debug.c   the index of functions and globals
 *   scope.c   what is inside a function: variables, inlined calls
 *   type.c    types
 *   held.c    pointers in registers
 *
 * Damaged DWARF can point anywhere: every walk has a bound on depth and takes its steps from `dwarf->steps`, which is
 * proportional to the size of the DWARF. */
#ifndef RACE_IMAGE_DWARF_H
#define RACE_IMAGE_DWARF_H

#include "static/image/private.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

typedef enum {
    SECTION_INFO,
    SECTION_TYPES,
    SECTION_ABBREV,
    SECTION_LINE,
    SECTION_LINE_STR,
    SECTION_STR,
    SECTION_FRAME,
    SECTION_COUNT
} dwarf_section;

typedef struct {    /* one file's DWARF */
    uint8_t *bytes; /* an ELF file of nothing but checked, unpacked, relocated debug sections */
    uint64_t size;
    struct {
        const uint8_t *bytes; /* in it; followed by zeros */
        uint64_t size;
    } sections[SECTION_COUNT];
    uint8_t *starts[2]; /* of .debug_info and .debug_types: a bit for each byte where an entry begins (check.c) */
    Elf *elf;
    Dwarf *dw; /* NULL: none that can be read */
} dwarf_copy;

typedef struct line_table line_table;

typedef struct {
    Dwarf_Die die;
    const dwarf_copy *copy;
    line_table *lines; /* NULL: not read yet */
    enum { PRODUCER_UNREAD, PRODUCER_SAYS_NOTHING, PRODUCER_OPTIMISES, PRODUCER_DOES_NOT } producer; /* see scope.c */
} dwarf_unit;

typedef VEC(dwarf_unit) unit_list;

/* map.c: a hash table from numbers to numbers; 0 is not a key. */
typedef struct {
    uint64_t *keys, *values;
    uint32_t count, size;
} map64;

uint64_t *map64_find(const map64 *map, uint64_t key);
uint64_t *map64_add(map64 *map, uint64_t key); /* its value, 0 when it is new */
void map64_free(map64 *map);

typedef struct debug_index debug_index;

struct image_dwarf {
    const image *img;
    dwarf_copy main, alt; /* alt: what dwz moved to a common file */
    arena memory;
    uint64_t steps;   /* entries that may still be visited */
    uint32_t damaged; /* records passed over */
    bool units_read;
    unit_list units;   /* of both files, by their order there */
    map64 unit_by_die; /* address of a unit's first entry: its number + 1 */
    map64 line_tables; /* offset in .debug_line * 2 + (alt file): line_table */
    bool ranges_read;
    range_map ranges;   /* code of the units */
    debug_index *index; /* NULL: not asked for yet */
};

/* Never NULL; `main.dw` may be. */
image_dwarf *dwarf_get(const image *img);
void index_free(image_dwarf *dwarf);
void lines_free(image_dwarf *dwarf);

/* --- check.c ------------------------------------------------------------------------------------------------------- */

void units_read(image_dwarf *dwarf);
bool entry_starts_at(const image_dwarf *dwarf, const void *address);

enum { MAX_NESTING = 256 }; /* of entries in a unit */

/* --- die.c ------------------------------------------------------------------------------------------------------- */

dwarf_unit *unit_of(image_dwarf *dwarf, Dwarf_Die *die); /* NULL: of a unit that was passed over */

/* The attribute of the entry or of what it stands for (abstract origin, specification). `from` is the entry that has
 * it; it may be NULL. */
bool die_attribute(image_dwarf *dwarf, Dwarf_Die *die, unsigned name, Dwarf_Attribute *attribute, Dwarf_Die *from);
bool die_own_attribute(Dwarf_Die *die, unsigned name, Dwarf_Attribute *attribute);
const char *die_string(image_dwarf *dwarf, Dwarf_Die *die, unsigned name); /* "" when there is none */
uint64_t die_number(image_dwarf *dwarf, Dwarf_Die *die, unsigned name, uint64_t otherwise);
bool die_flag(Dwarf_Die *die, unsigned name);
bool die_reference(image_dwarf *dwarf, Dwarf_Die *die, unsigned name, Dwarf_Die *target);
const char *die_linkage_name(image_dwarf *dwarf, Dwarf_Die *die); /* or its name, or "" */
/* The file that attribute `name` (DW_AT_decl_file, DW_AT_call_file) numbers; NULL: unknown. */
const char *die_file(image_dwarf *dwarf, Dwarf_Die *die, unsigned name);

typedef VEC(range) range_list;
/* Adds the code ranges of the entry that lie in the module's code. */
void die_ranges(image_dwarf *dwarf, Dwarf_Die *die, uint32_t id, range_list *list);

/* for (bool more = die_child(dwarf, parent, &die); more; more = die_next(dwarf, &die)) */
bool die_child(image_dwarf *dwarf, Dwarf_Die *parent, Dwarf_Die *child);
bool die_next(image_dwarf *dwarf, Dwarf_Die *die);

enum { MAX_SCOPE_DEPTH = 200 };

/* --- line.c ------------------------------------------------------------------------------------------------------ */

bool line_lookup(image_dwarf *dwarf, uint64_t addr, image_line *line);
const char *line_file(image_dwarf *dwarf, dwarf_unit *unit, uint64_t number); /* NULL: unknown */

#endif
