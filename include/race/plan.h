/* The plan of one module: where checks go and what they cover. The static phase writes it, an engine reads it.
 *
 * A plan is one file, named `<build id>.plan`. It is little-endian, every record has a fixed size and its natural
 * alignment, and nothing in it is a pointer, so that an engine maps it read-only and uses it in place:
 *
 *   header | sites | actions | sources | objects | strings | unwind
 *
 * Addresses are module-relative: ELF virtual addresses of the file, before the load bias. An engine adds the bias.
 *
 * A *site* is an instruction of the module. Its actions are done before the instruction, in order; those of kind
 * PLAN_SYNC have a second half after it. A site without actions says only which source line the instruction belongs
 * to: call instructions have one, so that return addresses can be shown with file and line; or that it is a system call.
 *
 * A *value* of an address expression is one byte: a general register as it is right before the instruction, the load
 * bias, a value captured earlier in the same frame, or none. The address of element i of an action is
 *
 *   segment base + base + index * scale + disp + i * stride          [+ the bit offset's bytes, see `bits`]
 *
 * computed modulo 2^64, or cut to its low 32 bits before the segment base is added when `width` is 4.
 *
 * The format has a version and no compatibility: a reader refuses every version but its own, and the plan is made
 * anew. It is not frozen before both engines, captures and unwind tables have used it. */
#ifndef RACE_PLAN_H
#define RACE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_MAGIC "RACEPLAN"
enum { PLAN_VERSION = 9 }; /* also for plans that are only better: old ones would go on being used */

enum { PLAN_SITES, PLAN_ACTIONS, PLAN_SOURCES, PLAN_OBJECTS, PLAN_STRINGS, PLAN_UNWIND, PLAN_TABLES };

typedef struct {
    uint64_t offset; /* from the start of the file, a multiple of 8 */
    uint32_t count;  /* records; bytes for PLAN_STRINGS */
    uint32_t record; /* bytes of one record */
} plan_table;

enum { /* header flags */
    PLAN_ID_IS_HASH = 1, /* the module has no build id; `build_id` is a hash of its contents */
    PLAN_FROM_DEBUG = 2, /* debug information was there when it was made: without it atomics may be taken for plain accesses */
    PLAN_ONLY_ATOMICS = 4 /* the module's accesses are not to be checked: its sites are atomic instructions */
};

typedef struct {
    char magic[8];        /*   0  PLAN_MAGIC */
    uint32_t version;     /*   8  PLAN_VERSION */
    uint32_t header_size; /*  12  sizeof(plan_header) */
    uint64_t file_size;   /*  16  bytes of the whole file */
    uint64_t checksum;    /*  24  XXH64, seed 0, of the file from byte 32 to its end */
    char build_id[72];    /*  32  lower-case hex, filled up with zeroes, at least one zero */
    uint32_t flags;       /* 104  PLAN_ID_IS_HASH, PLAN_FROM_DEBUG, PLAN_ONLY_ATOMICS */
    uint32_t code;        /* 108  race_code_of the module's file (include/race/code.h); 0: not known */
    uint64_t low, high;   /* 112  sites and objects lie in [low, high), the addresses that the module is loaded to */
    uint64_t accesses_planned;   /* 128  machine accesses with an action */
    uint64_t accesses_local;     /* 136  left out, since no other thread can touch the memory, or nobody writes it */
    uint64_t accesses_unplanned; /* 144  left out, since no action can express them, or since they may be no code: races on them are missed */
    uint64_t functions;          /* 152  that were analysed */
    plan_table tables[PLAN_TABLES]; /* 160  in this order in the file, not overlapping */
} plan_header;

enum { /* site flags */
    PLAN_CALL = 1,   /* the instruction is a call */
    PLAN_SYSTEM = 4, /* the instruction is a system call */
    PLAN_DECIDED = 2 /* the analysis knows all that the instruction may access, itself or by the library function that it
                        calls, and has compared it with the others of which this is so */
};

typedef struct {
    uint64_t addr;         /*  0  strictly increasing over the table */
    uint32_t first_action; /*  8  its actions, in the table of actions */
    uint8_t action_count;  /* 12  may be 0 */
    uint8_t length;        /* 13  bytes of the instruction: 1 to 15 */
    uint8_t window;        /* 14  bytes from addr on, whole instructions, that may be displaced together: no jump leads
                                  between them. At least `length` */
    uint8_t flags;         /* 15  PLAN_CALL, PLAN_SYSTEM, PLAN_DECIDED */
    uint32_t dead;         /* 16  PLAN_DEAD_*: free to overwrite right before the instruction */
    uint32_t source;       /* 20  in the table of sources, plus 1; 0: unknown */
    uint32_t warnings;     /* 24  ids of the static warnings that the site takes part in, separated by blanks, in the
                                  table of strings; 0: none */
    uint32_t early;        /* 28  its checks may also be made at any instruction that starts so many bytes before it, or
                                  less: up to there nothing changes their addresses or the stack pointer, and nothing
                                  orders anything. At most PLAN_EARLY */
} plan_site;
enum { PLAN_EARLY = 255 };

enum { /* bits of plan_site.dead; bits 0 to 15 are the general registers by their machine numbers, rax to r15 */
    PLAN_DEAD_CF = 1 << 16,
    PLAN_DEAD_PF = 1 << 17,
    PLAN_DEAD_AF = 1 << 18,
    PLAN_DEAD_ZF = 1 << 19,
    PLAN_DEAD_SF = 1 << 20,
    PLAN_DEAD_OF = 1 << 21,
    PLAN_DEAD_STATUS = 0x3f << 16,
    PLAN_DEAD_ALL = 0x3fffff
};

typedef enum {
    PLAN_CHECK = 1,   /* [address, size) is read or written, by count elements */
    PLAN_SYNC = 2,    /* an atomic access: its location is a synchronisation object. PLAN_RELEASE: publish before the
                         instruction; PLAN_ACQUIRE: acquire after it, at the address computed before it */
    PLAN_CAPTURE = 3  /* the address becomes captured value `slot` of this frame; no memory is accessed */
} plan_kind;

enum { /* action flags */
    PLAN_READ = 1,
    PLAN_WRITE = 2,   /* with PLAN_READ: read and then written; checked as a write, which covers the read */
    PLAN_ACQUIRE = 4,
    PLAN_RELEASE = 8,
    PLAN_DOWN = 16,   /* a string instruction: elements go downwards when the direction flag is set */
    PLAN_UNTIL = 32   /* repe/repne: the repetition may end before `count` elements were accessed */
};

enum { /* a value of an address expression */
    PLAN_REGISTER = 0x00, /* + machine number of a general register, 0 to 15 */
    PLAN_MODULE = 0x20,   /* the load bias of the module; as base only */
    PLAN_CAPTURED = 0x40, /* + slot */
    PLAN_NOTHING = 0xff
};
enum { PLAN_CAPTURES = 32 };           /* slots of a frame */
enum { PLAN_MAX_ELEMENT = 4096 };      /* bytes of one element */
enum { PLAN_MAX_COUNT = 1 << 30 };     /* elements, when the count is not a value */

enum { PLAN_SEGMENT_NONE, PLAN_SEGMENT_FS, PLAN_SEGMENT_GS };

typedef struct {
    uint8_t kind;    /*  0  plan_kind */
    uint8_t flags;   /*  1 */
    uint8_t base;    /*  2  a value */
    uint8_t index;   /*  3  a value, not PLAN_MODULE */
    uint8_t scale;   /*  4  1, 2, 4, 8 */
    uint8_t segment; /*  5  PLAN_SEGMENT_* */
    uint8_t bits;    /*  6  a register or nothing: a signed bit offset (bt, bts, ...): the address of the accessed
                            element is (bits >> log2(8 * size)) * size further */
    uint8_t width;   /*  7  8, or 4: the address-size prefix */
    int64_t disp;    /*  8  a module address when base is PLAN_MODULE */
    uint32_t size;   /* 16  bytes of an element, 1 to PLAN_MAX_ELEMENT; 0 for PLAN_CAPTURE */
    uint32_t count;  /* 20  elements, at least 1; 0 when counter is a value; 0 for PLAN_CAPTURE */
    int32_t stride;  /* 24  bytes from one element to the next; 0 when count is 1 */
    uint8_t counter; /* 28  a value that holds the number of elements, or nothing */
    uint8_t slot;    /* 29  PLAN_CAPTURE: less than PLAN_CAPTURES; else 0 */
    uint8_t claim;   /* 30  PLAN_CLAIM_*: not PLAN_CLAIM_NONE: a PLAN_CHECK that the analysis says is not needed, and why;
                            engines skip it unless the claims are being audited */
    uint8_t reserved;    /* 31  0 */
} plan_action;

enum { /* why a check is not needed */
    PLAN_CLAIM_NONE,
    PLAN_CLAIM_LOCAL,     /* no other thread ever touches the memory, as long as it has this use */
    PLAN_CLAIM_READ_ONLY, /* nobody writes it while there are several threads */
    /* The others are about PLAN_DECIDED sites only. Each allows for what stands above it, too. */
    PLAN_CLAIM_UNREACHED, /* it never runs */
    PLAN_CLAIM_UNSHARED,  /* no other thread makes an access that conflicts */
    PLAN_CLAIM_ORDERED,   /* every access that conflicts is ordered by fork, join, ... */
    PLAN_CLAIM_GUARDED,   /* every access that conflicts holds a common lock */
    PLAN_CLAIM_APART,     /* every access that looks as if it conflicted is to other bytes, or comes at another time */
    PLAN_CLAIM_HANDED,    /* every access that conflicts comes before or after the object was handed over in order */
    PLAN_CLAIMS
};
const char *plan_claim_text(uint8_t claim); /* a word, or two; "" of none */

typedef struct {
    uint32_t function; /*  0  name, in the table of strings; 0 (the empty string): unknown */
    uint32_t file;     /*  4  likewise */
    uint32_t line;     /*  8  0: unknown */
    uint32_t column;   /* 12  0: unknown */
    uint32_t outer;    /* 16  the frame this one is inlined into: an earlier source, plus 1; 0: none */
    uint32_t reserved; /* 20  0 */
} plan_source;

typedef struct {
    uint64_t addr;     /*  0  of a data object; increasing over the table */
    uint64_t size;     /*  8 */
    uint32_t name;     /* 16  in the table of strings */
    uint32_t reserved; /* 20  0 */
} plan_object;

typedef struct {       /* from `start` on, to the next row: how to find the caller's frame */
    uint32_t start;    /*  0  relative to `low` of the header; strictly increasing over the table */
    int32_t cfa;       /*  4  the frame's address (CFA) is register `base` plus this; the return address lies 8 below it */
    int32_t rbp;       /*  8  the caller's rbp lies at the CFA plus this; 0: it still is in rbp */
    uint8_t base;      /* 12  PLAN_UNWIND_RSP, PLAN_UNWIND_RBP; PLAN_UNWIND_END: unknown, or there is no caller */
    uint8_t reserved[3]; /* 13  0 */
} plan_unwind;
enum { PLAN_UNWIND_END = 0xff, PLAN_UNWIND_RSP = 4, PLAN_UNWIND_RBP = 5 }; /* machine numbers of registers */

_Static_assert(sizeof(plan_unwind) == 16, "format");
_Static_assert(sizeof(plan_header) == 256, "format");
_Static_assert(sizeof(plan_site) == 32, "format");
_Static_assert(sizeof(plan_action) == 32, "format");
_Static_assert(sizeof(plan_source) == 24, "format");
_Static_assert(sizeof(plan_object) == 24, "format");

/* --- reading (runtime/plan/read.c) -----------------------------------------------------------------------------------
 * Plain C without allocation, system calls or locks; usable in any engine and from any number of threads. */

typedef enum {
    PLAN_OK,
    PLAN_SHORT,     /* smaller than a header, or than it says */
    PLAN_LONG,      /* larger than it says */
    PLAN_NOT_PLAN,  /* another kind of file */
    PLAN_OTHER_VERSION,
    PLAN_DAMAGED,   /* the checksum is not that of the contents */
    PLAN_BAD_TABLE, /* a table lies outside, overlaps, or has records of another size */
    PLAN_BAD_SITE,
    PLAN_BAD_ACTION,
    PLAN_BAD_SOURCE,
    PLAN_BAD_OBJECT,
    PLAN_BAD_STRING,
    PLAN_BAD_UNWIND
} plan_status;

typedef struct {
    const plan_header *header;
    const plan_site *sites;
    const plan_action *actions;
    const plan_source *sources;
    const plan_object *objects;
    const char *strings;
    const plan_unwind *unwind;
    uint32_t site_count, action_count, source_count, object_count, string_bytes, unwind_count;
} plan;

/* Checks everything this header says about the `size` bytes at `bytes` (aligned to 8) and fills `out`, which points
 * into them. After PLAN_OK every index, offset, register and size in the plan may be used as it is. */
plan_status plan_read(const void *bytes, size_t size, plan *out);
const char *plan_status_text(plan_status status); /* one line, a phrase */

const plan_site *plan_site_at(const plan *p, uint64_t addr);       /* starts at addr, or NULL */
const plan_site *plan_site_covering(const plan *p, uint64_t addr); /* addr in [start, start + length), or NULL */
const plan_object *plan_object_covering(const plan *p, uint64_t addr);
const char *plan_string(const plan *p, uint32_t offset);
const plan_unwind *plan_unwind_at(const plan *p, uint64_t addr); /* the row that addr is in, or NULL */

/* The id of a module that has no build id, as its plan is named: XXH3-128, in hex, of the whole file. */
void plan_content_id(const void *bytes, size_t size, char id[33]);

/* The checksum that the header must have. Requires size >= sizeof(plan_header). */
uint64_t plan_checksum(const void *bytes, size_t size);

#endif
