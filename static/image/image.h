/* static/image: one module as the rest of the analysis sees it: bytes, names, relocations, unwind and debug facts.
 *
 * Owns everything that comes from ELF (libelf) and DWARF (libdw). Nothing above this folder reads a file format.
 *
 *   open.c       image_open, image_open_all, image_close: files, archives, build id, one clear line for bad input
 *   elf.c        the header tables of a file, checked once; debugfile.c: separate debug files
 *   layout.c     sections, permissions, RELRO
 *   object.c     relocatable objects, laid out and linked onto themselves
 *   symbol.c     symbols of .symtab and .dynsym, of the module and of its separate debug file
 *   reloc.c      relocations as data facts; GOT slots; words of non-PIC data that may be pointers
 *   plt.c        PLT stubs by name (.plt, .plt.sec, .plt.got, IRELATIVE stubs of static programs)
 *   frame.c      .eh_frame: FDEs, landing pads; unwind.c: their rows
 *   dwarf.c      the DWARF sections as libdw gets them; die.c: reading entries without trusting them
 *   line.c       source lines, read on first use
 *   debug.c      functions and globals from DWARF 4 and 5, read on first use; scope.c: the inside of a function: variables,
 *                inlined calls; type.c: types
 *   describe.c   places inside typed things, in words and as scalars
 *
 * Addresses are module-relative: the ELF virtual addresses of the file, before any load bias. A relocatable object
 * (.o) gets addresses too: its allocated sections are laid out one after another, undefined symbols get a place of
 * their own in a pseudo section `*extern*` (16 bytes to 64 KiB each, no bytes, no permissions), GOT relocations get slots in a
 * pseudo section `*got*`, and its relocations are applied to a private copy of the bytes. Code above this folder thus
 * treats a .o like a linked module: a call to an undefined symbol is a direct call into `*extern*`, for which
 * `image_plt_at` answers with the name.
 *
 * An image is immutable once open, except for the lazily read debug facts, which are guarded by a lock inside: all
 * queries may be called from several threads at once. */
#ifndef RACE_IMAGE_H
#define RACE_IMAGE_H

#include "static/base/base.h"

typedef struct image image;

typedef enum { IMAGE_EXEC, IMAGE_PIE, IMAGE_SHARED, IMAGE_OBJECT } image_kind;

enum { IMAGE_R = 1, IMAGE_W = 2, IMAGE_X = 4, IMAGE_RELRO = 8, IMAGE_TLS = 16 };

typedef struct {
    uint64_t addr, size;  /* [addr, addr+size) of the module */
    const uint8_t *bytes; /* the first `filled` bytes of it; NULL when filled is 0 (.bss) */
    uint64_t filled;
    const char *name; /* section name; "segment" where the file has no section headers */
    uint32_t flags;   /* IMAGE_R | IMAGE_W | IMAGE_X | IMAGE_RELRO (written by the loader only) | IMAGE_TLS */
} image_section;

typedef enum { IMAGE_SYM_OTHER, IMAGE_SYM_FUNC, IMAGE_SYM_OBJECT, IMAGE_SYM_TLS, IMAGE_SYM_IFUNC } image_symbol_type;
enum { IMAGE_BIND_LOCAL, IMAGE_BIND_GLOBAL, IMAGE_BIND_WEAK };

typedef struct {
    uint64_t addr, size; /* for IMAGE_SYM_TLS: offset in the module's TLS block */
    const char *name;    /* without version suffix */
    const char *file;    /* STT_FILE name of a local symbol, or NULL */
    uint8_t type;        /* image_symbol_type */
    uint8_t bind;
    bool exported; /* in .dynsym and visible from outside */
} image_symbol;

typedef enum {
    IMAGE_REL_ADDR,   /* the word holds `target`, an address of this module (the symbol's name is kept if there is one) */
    IMAGE_REL_SYMBOL, /* the word holds the address of `name` + addend, defined in some other module */
    IMAGE_REL_IFUNC,  /* the word holds what the resolver at `target` returns */
    IMAGE_REL_COPY,   /* `size` bytes here are a copy of the data object `name` of another module */
    IMAGE_REL_TPOFF,  /* the word holds the thread-pointer offset of TLS symbol `name` (or module offset `addend`) */
    IMAGE_REL_DTPMOD, /* the word holds a TLS module id */
    IMAGE_REL_DTPOFF, /* the word holds an offset in a TLS block */
    IMAGE_REL_GUESS   /* no relocation, but the aligned word of non-PIC data is an address of this module: `target` */
} image_reloc_kind;

typedef struct {
    uint64_t addr; /* where the word is */
    uint8_t kind;  /* image_reloc_kind */
    uint8_t slot;  /* 1: a GOT slot (JUMP_SLOT, GLOB_DAT, or of `*got*`) */
    uint32_t size; /* bytes of the word: 8, or less in relocatable objects; the object's size for COPY */
    uint64_t target; /* of TPOFF and DTPOFF: the TLS block offset, when the symbol is of this module */
    int64_t addend;
    const char *name; /* or NULL */
} image_reloc;

typedef struct {
    uint64_t addr, size;
    uint64_t got;     /* the slot it jumps through; 0 for an entry of `*extern*` */
    const char *name; /* the called symbol; "" for an IFUNC of this module: then `target` is its resolver */
    uint64_t target;  /* address in this module when it is defined here too, else 0 */
} image_plt;

typedef struct {
    uint64_t start, end; /* the code it describes */
    uint64_t lsda;       /* language-specific data, or 0 */
    uint32_t first_pad, pad_count; /* its landing pads in image->pads */
    uint32_t entry;      /* for frame.c */
    bool fragment;       /* the CFA at its first instruction is not rsp+8: a part of a function (.cold), not a function */
    bool signal;         /* a signal frame */
} image_fde;

typedef struct {
    uint64_t start, end; /* calls in [start, end) ... */
    uint64_t pad;        /* ... continue here when an exception passes */
} image_pad;

struct image {
    const char *path;
    const char *member;   /* name of the archive member, or NULL */
    image_kind kind;
    char build_id[65];    /* hex; of NT_GNU_BUILD_ID, else a hash of the contents */
    bool has_build_id;    /* false: build_id is the hash */
    bool has_symtab;      /* false: stripped, with no separate debug file found */
    bool has_debug;       /* DWARF is there */
    bool is_static;       /* a program that no loader adds libraries to */
    uint64_t libc;        /* of such a program: where the code of its C library (and libgomp) begins; 0: none, or no names */
    uint64_t entry;       /* e_entry, or 0 */
    uint64_t tls_size;    /* bytes of the module's TLS block, aligned: x at TLS offset o is at fs:[o - tls_size] in an
                             executable */
    image_section *sections; /* allocated ones, by address, never overlapping */
    uint32_t section_count;
    image_symbol *symbols; /* by address, then name; TLS ones last */
    uint32_t symbol_count;
    image_reloc *relocs; /* by address */
    uint32_t reloc_count;
    image_plt *plts; /* by address */
    uint32_t plt_count;
    image_fde *fdes; /* by start */
    uint32_t fde_count;
    image_pad *pads;
    uint32_t pad_count;
    uint64_t *init;  /* DT_INIT, DT_FINI, preinit_array, init_array, fini_array: addresses of functions */
    uint32_t init_count;
    const char **needed; /* DT_NEEDED */
    uint32_t needed_count;
    uint32_t unread; /* damaged records passed over (FDEs, LSDAs, relocations of unknown type, ...) */
    struct image_private *private;
};

/* Opens an ELF file. On failure `*out` is NULL and `error` says why in one line that starts with the path. */
int image_open(const char *path, image **out, race_error *error);
/* The same from memory; `bytes` must outlive the image. `path` is only a name. For tests and fuzzing. */
int image_open_memory(const char *path, const void *bytes, size_t size, image **out, race_error *error);

typedef struct {
    image **images;
    uint32_t count;
} image_list;

/* Opens an ELF file or every ELF member of an `.a` archive. An archive without any is an error. */
int image_open_all(const char *path, image_list *out, race_error *error);
void image_list_close(image_list *list);
void image_close(image *img);

/* --- bytes ------------------------------------------------------------------------------------------------------- */

const image_section *image_section_at(const image *img, uint64_t addr);
/* Bytes at `addr` up to the end of what the section has; NULL when there are none. */
const uint8_t *image_bytes(const image *img, uint64_t addr, uint64_t *available);
bool image_read(const image *img, uint64_t addr, void *to, size_t size); /* false: not all there */
bool image_is_code(const image *img, uint64_t addr);
/* What tells builds apart whose ids are the same: race_code_of the file (include/race/code.h). */
uint32_t image_code(const image *img);
/* Never changes after start-up: not writable, or RELRO. */
bool image_is_constant(const image *img, uint64_t addr, uint64_t size);

/* --- names ------------------------------------------------------------------------------------------------------- */

const image_symbol *image_symbol_at(const image *img, uint64_t addr);       /* starts here; functions first */
const image_symbol *image_symbol_covering(const image *img, uint64_t addr); /* addr in [start, start+size) */
const image_symbol *image_symbol_tls(const image *img, uint64_t offset);
const image_plt *image_plt_at(const image *img, uint64_t addr);      /* starts here */
const image_reloc *image_reloc_at(const image *img, uint64_t addr);  /* exactly here */
/* Relocations in [start, end): index of the first, and their number. */
uint32_t image_relocs_in(const image *img, uint64_t start, uint64_t end, uint32_t *first);
const image_fde *image_fde_at(const image *img, uint64_t addr); /* covers addr */
uint64_t image_landing_pad(const image *img, uint64_t addr);    /* for a call instruction at addr; 0: none */

/* --- unwind rows: how to find the caller's frame at an address ----------------------------------------------------- */

enum { IMAGE_UNWIND_REGS = 17 };             /* DWARF numbers of x86-64: 0-15 and 16, the return address */
enum { IMAGE_UNWIND_UNSAVED = INT32_MIN };   /* the register still has the caller's value */
enum { IMAGE_UNWIND_COMPLEX = INT32_MAX };   /* an expression, or another register */

typedef struct {
    uint64_t addr;   /* from here to the next row, or to the FDE's end */
    int16_t cfa_reg; /* DWARF register, or -1: an expression */
    int32_t cfa_off; /* CFA = cfa_reg + cfa_off */
    int32_t saved[IMAGE_UNWIND_REGS]; /* CFA-relative place of the caller's value */
    uint32_t args_size; /* bytes of pushed arguments that the unwinder takes off the stack before a landing pad */
} image_unwind_row;

/* The rows of an FDE; free() the result. Returns their number, 0 when they cannot be read. */
uint32_t image_unwind_rows(const image *img, const image_fde *fde, image_unwind_row **rows);

/* --- debug facts, read on first use --------------------------------------------------------------------------------- */

typedef struct {
    const char *file; /* as DWARF names it, made absolute with the compilation directory; NULL: unknown */
    uint32_t line, column;
} image_line;

bool image_line_at(const image *img, uint64_t addr, image_line *line);

typedef struct {
    const char *function; /* name of the function this frame is in */
    image_line at;        /* where in it: the instruction's line for frame 0, the call's line for those outside */
} image_frame;

/* Innermost first: the inlined functions at `addr` and last the real one. Returns the number filled, at most `max`. */
uint32_t image_frames_at(const image *img, uint64_t addr, image_frame *frames, uint32_t max);

typedef enum {
    IMAGE_TYPE_VOID, IMAGE_TYPE_INT, IMAGE_TYPE_FLOAT, IMAGE_TYPE_BOOL, IMAGE_TYPE_ENUM, IMAGE_TYPE_POINTER,
    IMAGE_TYPE_STRUCT, IMAGE_TYPE_UNION, IMAGE_TYPE_ARRAY, IMAGE_TYPE_FUNCTION, IMAGE_TYPE_OTHER
} image_type_kind;

typedef struct image_type image_type;

typedef struct {
    const char *name; /* "" when anonymous */
    uint64_t offset;  /* bytes */
    uint16_t bit_size, bit_offset; /* bit fields: size in bits (0: not one), offset from the start of the struct's byte */
    bool is_address;  /* declared as uintptr_t or intptr_t */
    const image_type *type;
} image_member;

/* Types are canonical within an image: same type, same pointer. Typedefs are looked through; const is dropped. */
struct image_type {
    image_type_kind kind;
    bool is_atomic;   /* _Atomic, or std::atomic<...> */
    bool is_volatile;
    bool is_declaration; /* incomplete */
    uint64_t size;
    const char *name;       /* tag, typedef name of an anonymous struct, or base type; "" when there is none */
    const image_type *target; /* pointee, element, or returned type */
    uint64_t count;         /* array elements; 0: unknown */
    const image_member *members; /* struct and union, base classes first (name "") */
    uint32_t member_count;
};

typedef enum {
    IMAGE_PLACE_NONE,    /* optimised out */
    IMAGE_PLACE_FRAME,   /* CFA + offset, during the whole function */
    IMAGE_PLACE_STATIC,  /* module address `offset` */
    IMAGE_PLACE_TLS,     /* TLS block offset */
    IMAGE_PLACE_VARYING  /* registers, location lists, expressions */
} image_place;

typedef struct {
    const char *name;
    const image_type *type; /* or NULL */
    image_place place;
    int64_t offset;
    bool is_parameter;
    uint32_t line;
} image_variable;

typedef struct {
    uint64_t start, end; /* low and high pc of its first range */
    const char *name;    /* linkage name when there is one, else name */
    const char *file;
    uint32_t line;
    bool is_optimised;   /* false: unoptimised code: every parameter and local has one place in memory, nothing is
                            inlined into it, and the producer names no -O level (see debug.c) */
    const image_variable *variables; /* parameters first, in order, then locals of all its scopes */
    uint32_t variable_count, parameter_count;
    const image_type *returns;       /* or NULL: void */
} image_function;

/* The function whose code covers addr (any of its ranges), or NULL. */
bool image_owns_type(const image *img, const image_type *type); /* it was this image that gave it */
const image_function *image_function_at(const image *img, uint64_t addr);

/* Globals and function-level statics (IMAGE_PLACE_STATIC by address, IMAGE_PLACE_TLS by TLS offset), or NULL. */
const image_variable *image_global_at(const image *img, uint64_t addr);
const image_variable *image_global_tls(const image *img, uint64_t offset);
/* The only struct of that size; NULL: there is none, or there are several. */
const image_type *image_struct_of_size(const image *img, uint64_t size);
/* The struct, union or class of that name outside of all others; NULL: there is none, or there are several that differ. */
const image_type *image_struct_named(const image *img, const char *name);
uint32_t image_globals(const image *img, const image_variable **all);

/* Whether any type of the debug information may be atomic; false is sure. */
bool image_has_atomics(const image *img);

typedef struct { /* what a variable or parameter of optimised code points to, an inlined function's too, while it is in a register */
    uint64_t start, end; /* code */
    uint8_t reg;         /* DWARF's number */
    int64_t plus;        /* the pointer is the register and this */
    const image_type *type; /* that it points to */
} image_held;
typedef bool image_wanted(const void *with, const image_type *type); /* must not ask the image */
/* Those that point to types that are wanted, by `start`; free() them. Returns their number. */
uint32_t image_held_pointers(const image *img, image_wanted *wanted, const void *with, image_held **out);

/* Damaged debug records that were passed over so far (`unread` counts those met while opening). */
uint32_t image_debug_unread(const image *img);

/* Writes what lies `offset` bytes into a thing called `name` of type `type` in the user's words, e.g. `stats.conns`,
 * `table[3].next`; an offset that no member matches is written as `+N`. Always NUL-terminated. */
void image_describe(const image_type *type, const char *name, uint64_t offset, char *to, size_t size);
/* The innermost scalar at `offset` and `size` bytes of `type`, looking through structs and arrays; NULL: none fits. */
const image_type *image_type_at(const image_type *type, uint64_t offset, uint64_t size);

#endif
