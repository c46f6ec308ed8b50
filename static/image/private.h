/* What the files of static/image share and nobody else sees.
 *
 *   elf.c        elf_parse: the header tables of a file, checked once, so that everything after may trust them
 *   ranges.c     sorting by address, and the ranges of a module without overlaps for lookups by address
 *   debugfile.c  separate debug files
 *   dwarf.c      the DWARF sections as libdw gets them: checked, unpacked, relocated
 *
 * Whatever is read through an `elf_file` lies inside the file: a section's `bytes` has `h.sh_size` bytes (or is NULL),
 * a string comes from `elf_string`, which only gives terminated ones. */
#ifndef RACE_IMAGE_PRIVATE_H
#define RACE_IMAGE_PRIVATE_H

#include "static/image/image.h"

#include <elf.h>
#include <pthread.h>
#include <stdlib.h>

/* --- reading bytes that may be anywhere -------------------------------------------------------------------------- */

static inline uint16_t load16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint32_t load32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* [offset, offset+size) lies in [0, total). */
static inline bool fits(uint64_t offset, uint64_t size, uint64_t total)
{
    return offset <= total && size <= total - offset;
}

static inline bool power_of_two(uint64_t n)
{
    return n && !(n & (n - 1));
}

/* Rounds up; `align` is 0 or a power of two. */
static inline uint64_t align_up(uint64_t n, uint64_t align)
{
    return align ? (n + align - 1) & ~(align - 1) : n;
}

/* --- elf.c: a file's tables -------------------------------------------------------------------------------------- */

typedef struct {
    Elf64_Shdr h;
    const char *name;     /* "" when it has none */
    const uint8_t *bytes; /* its contents; NULL for SHT_NOBITS */
    uint8_t *relocated;   /* in a .o: the copy that relocations were applied to; then `bytes` is that */
    uint64_t addr;        /* module address: sh_addr, or the place that object.c chose; 0: not allocated */
} elf_section;

typedef struct {
    const uint8_t *bytes;
    uint64_t size;
    Elf64_Ehdr h;
    elf_section *sections; /* [0] is the null section, as in the file */
    uint32_t section_count;
    Elf64_Phdr *segments;
    uint32_t segment_count;
} elf_file;

/* Reads and checks the header tables. `name` is for the error. */
int elf_parse(elf_file *file, const char *name, const void *bytes, uint64_t size, arena *memory, race_error *error);
/* The string at `index` of a SHT_STRTAB section, "" when there is none. */
const char *elf_string(const elf_section *strings, uint64_t index);
const char *elf_string_in(const uint8_t *bytes, uint64_t size, uint64_t index);
const elf_section *elf_section_named(const elf_file *file, const char *name);
/* The section that sh_link of `section` names, if it is of type `type`. */
const elf_section *elf_linked(const elf_file *file, const elf_section *section, uint32_t type);
/* File contents that the loader puts at `addr`: at least `size` bytes, or NULL. `available` may be NULL. */
const uint8_t *elf_loaded(const elf_file *file, uint64_t addr, uint64_t size, uint64_t *available);
/* The build id of its notes, in hex. */
bool elf_build_id(const elf_file *file, char hex[65]);

/* A whole file in memory: read, since a mapped file that shrinks would kill us; mapped only when it is huge. */
typedef struct {
    uint8_t *bytes; /* followed by at least 16 zero bytes */
    uint64_t size;
    uint64_t mapped; /* bytes to unmap; 0: of the heap */
} file_bytes;

int file_read(file_bytes *file, const char *path, race_error *error);
void file_free(file_bytes *file);

/* --- ranges.c ---------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t key;
    uint32_t id;
} sort_key;

void sort_keys(sort_key *keys, uint32_t count); /* stable */

typedef struct {
    uint64_t start, end;
    uint32_t id;
} range;

typedef struct {
    range *ranges; /* by start, not overlapping */
    uint32_t count;
} range_map;

void sort_ranges(range *ranges, uint32_t count); /* by start, stable */
/* From ranges sorted by start: where some overlap, the one that starts last holds; of equal starts, the last given. */
range_map range_map_build(const range *sorted, uint32_t count);
const range *range_map_find(const range_map *map, uint64_t addr);

/* --- the inside of an image -------------------------------------------------------------------------------------- */

typedef struct { /* what PT_DYNAMIC says; addresses of the module */
    bool present;
    uint64_t strings, strings_size, symbols;
    uint64_t rela, rela_size, plt_rela, plt_rela_size, relr, relr_size;
    uint64_t init, fini, init_array, init_array_size, fini_array, fini_array_size, preinit_array, preinit_array_size;
    bool soname, pie;
} elf_dynamic;

typedef struct {            /* a symbol table as relocations see it */
    const uint8_t *symbols; /* Elf64_Sym, any alignment */
    uint64_t count;
    const uint8_t *strings;
    uint64_t strings_size;
} symbol_table;

typedef struct {    /* a symbol of a .o */
    uint64_t value; /* module address, TLS block offset, or offset in a section that is not allocated */
    uint64_t size;
    const char *name;
    uint32_t slot[3]; /* number + 1 of its slot in `*got*`: address, TLS offset, TLS pair; 0: none */
    uint8_t type;     /* STT_* */
    bool known;       /* `value` means something */
    bool placed;      /* ... in the module: not of a debug section */
    bool defined;     /* not in `*extern*` */
    bool tls;         /* value is a TLS block offset */
} object_symbol;

typedef struct frame_table frame_table;
typedef struct image_dwarf image_dwarf;

struct image_private {
    arena memory;
    const char *name;           /* path, or path(member): for errors */
    file_bytes owned;           /* the file, when we read it */
    file_bytes owned_debug;     /* the separate debug file */
    file_bytes owned_alternate; /* what dwz moved to a file of its own */
    elf_file file;
    elf_file debug; /* the separate debug file; no bytes: none */
    const char *debug_path;
    bool has_path; /* `path` names a real file: others may be looked for beside it */
    elf_dynamic dynamic;
    object_symbol *object_symbols; /* of a .o, by symbol number */
    uint32_t object_symbol_count;
    uint32_t plain_symbols; /* symbols before the TLS ones */
    uint32_t *best_symbols; /* of each address where symbols start, the one that names it best; by address */
    uint32_t best_count;
    range_map symbols; /* ranges of symbols with a size, by number */
    range_map fdes;
    frame_table *frames;
    pthread_mutex_t lock; /* guards `dwarf` and everything behind it */
    image_dwarf *dwarf;   /* NULL: not asked for yet */
};
typedef struct image_private image_private;

/* Each fills its part of the image; what is damaged is passed over and counted. Only layout can fail. */
int layout_linked(image *img, race_error *error);
int layout_object(image *img, race_error *error);
/* Applies one relocation of a .o to `bytes`, the copy of a section that is not allocated. */
void object_relocate_debug(const image *img, uint8_t *bytes, uint64_t size, const Elf64_Rela *rela);
void dynamic_read(image *img);
void symbols_read(image *img);
void relocs_read(image *img); /* of a linked module */
void relocs_sort(image *img);
void plt_read(image *img);
void frames_read(image *img);
void frames_free(image *img);
void init_read(image *img);
void debug_file_find(image *img); /* the separate debug file, when the module lacks symbols or DWARF */
void debug_free(image *img);

bool dwarf_present(const image *img);
/* .debug_frame of the module or its debug file, unpacked and relocated; or NULL. */
const uint8_t *dwarf_frame_section(const image *img, uint64_t *size);
/* The file that .gnu_debugaltlink of `file` names; its bytes stay with the image. */
bool debug_file_alternate(const image *img, const elf_file *file, elf_file *alternate);

bool symbol_get(const symbol_table *table, uint64_t index, Elf64_Sym *symbol, const char **name);

#endif
