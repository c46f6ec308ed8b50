/* Inside static/lift: the machine level, from bytes to control-flow graphs.
 *
 *   decode.c, decode_fast.c  flow_decode, flow_operands: one instruction
 *   space.c      flow_space_*: what is known about the module's code
 *   traverse.c   traverse: decoding a function, in traverse.h
 *   flow.c       flow_build: the graph of one function
 *   depth.c      depth_*: where the frame is gone
 *   slice.c, slice_expr.c  slice_*: backward symbolic evaluation, in slice.h
 *   jumpwalk.c   jump_walk: where an indirect jump takes its target from
 *   jumptable.c  jump_resolve: its targets
 *   noreturn.c   noreturn_*: which calls and functions never return
 *   discover.c   discover: all functions of a module, in rounds
 *   targets.c    targets_open: all addresses that control may come to
 *
 * A function's graph is a pure function of the image and of the flow_space: which addresses are function starts, which
 * are parts of other functions, which functions never return. Rounds of discover.c build in parallel against a space
 * that does not change during the round, then merge what was learnt in a fixed order; so the result is the same for
 * any number of threads. */
#ifndef RACE_FLOW_H
#define RACE_FLOW_H

#include "static/lift/lift.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

/* --- decode.c ---------------------------------------------------------------------------------------------------- */

typedef enum {
    REF_NONE,
    REF_POINTER, /* the address itself is taken: lea, an immediate of non-PIC code */
    REF_ACCESS   /* memory there is accessed */
} flow_ref_kind;

typedef struct {
    uint64_t addr;
    flow_ref_kind kind;
    uint64_t stored; /* an immediate of non-PIC code beside it that may be an address, too; 0: none */
} flow_ref;

typedef struct { /* the parts of an instruction that flow_decode needs */
    uint16_t mnemonic;
    uint8_t len;
    bool indirect;   /* a jump or call through a register or memory */
    bool rip;        /* memory at rip + disp */
    bool has_disp32; /* a displacement of four bytes */
    bool has_imm;    /* an immediate of four bytes or more that is no branch distance */
    int32_t relative, disp;
    uint64_t imm;
} flow_raw;

/* decode_fast.c. False: not an instruction that it knows; nothing is said about whether it is one. */
bool flow_decode_fast(const uint8_t *bytes, uint64_t available, flow_raw *raw);
/* All instructions, by Zydis. */
bool flow_decode_any(const uint8_t *bytes, uint64_t available, flow_raw *raw);

/* `absolute`: immediates and displacements may be addresses (not position-independent code). */
bool flow_decode(const uint8_t *bytes, uint64_t available, uint64_t addr, bool absolute, lift_insn *insn,
                 flow_ref *ref);
/* All of one instruction, on demand. */
bool flow_operands(const image *img, const lift_insn *insn, ZydisDecodedInstruction *zi,
                   ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT]);
/* Bytes of padding that assemblers and linkers put between functions at `bytes`: nops, int3, zeros; 0: something else.
 */
uint32_t flow_padding(const uint8_t *bytes, uint64_t available);

/* --- space.c ----------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t addr, size;
    const uint8_t *bytes;
    uint64_t first; /* number of its first byte among all code bytes */
} flow_region;

enum { FLOW_NOWHERE = -1 };

typedef struct {
    const image *img;
    flow_region *regions; /* executable sections that have bytes, by address */
    uint32_t region_count;
    uint64_t code_size; /* code bytes in all regions */
    uint64_t low, high; /* of the addresses of all sections */
    uint64_t *starts;   /* bit per code byte: a function starts here */
    uint64_t *parts;    /* bit per code byte: a part of other functions starts here (.cold), not a function */
    uint64_t *doubtful; /* bit per code byte: a start that may yet turn out to be a part */
    uint64_t *dead;     /* bit per code byte: the function that starts here never returns */
    uint64_t *named_dead; /* the same, said by its name */
    bool *plt_dead;     /* per image_plt: the function called never returns */
    flow_region *data;  /* the other sections that have bytes; `first` goes on where the regions end */
    uint32_t data_count;
    uint64_t data_size; /* with the code */
    uint64_t *refs;     /* bit per byte of code and data: code names this address */
    bool refs_known;    /* false: they are not complete yet, tables whose size hangs on them stay unresolved */
    uint64_t budget; /* instructions a function may have outside its own extent */
    uint64_t steps;  /* instructions a function may go over for its indirect jumps, apart from what its size allows */
    bool no_jumps;   /* indirect jumps stay unknown: the module has cost enough */
    bool absolute;   /* code may contain absolute addresses */
    bool symbols;    /* names may be used */
    const lift_options *options;
} flow_space;

void flow_space_open(flow_space *space, const image *img, const lift_options *options);
void flow_space_close(flow_space *space);
const flow_region *flow_region_at(const flow_space *space, uint64_t addr); /* or NULL */
/* Number of the code byte at addr, or FLOW_NOWHERE. */
int64_t flow_place(const flow_space *space, uint64_t addr);
/* Number of the byte at addr among code and data, or FLOW_NOWHERE. */
int64_t flow_data_place(const flow_space *space, uint64_t addr);
/* A nop, int3, zero or return lies right before addr, as far as its last byte tells, or nothing does. */
bool flow_padding_before(const flow_region *region, uint64_t addr);
/* First address >= addr in its region that has a bit set; the region's end when there is none. */
uint64_t flow_next_bit(const flow_space *space, const uint64_t *bits, uint64_t addr);

static inline bool flow_bit(const uint64_t *bits, uint64_t place)
{
    return bits[place / 64] >> place % 64 & 1;
}

static inline void flow_set(uint64_t *bits, uint64_t place)
{
    bits[place / 64] |= (uint64_t)1 << place % 64;
}

static inline void flow_clear(uint64_t *bits, uint64_t place)
{
    bits[place / 64] &= ~((uint64_t)1 << place % 64);
}

bool flow_has(const flow_space *space, const uint64_t *bits, uint64_t addr);

/* --- flow.c ------------------------------------------------------------------------------------------------------ */

typedef enum {
    LEAVE_CALL,   /* a direct call, or one by a slot, of code in this module */
    LEAVE_TAIL,   /* a jump to a function, or falling into it */
    LEAVE_BRANCH, /* a conditional one */
    LEAVE_SHARE,  /* not a leave: jumps into code that a frame entry (FDE) of its own describes, and takes it as a part
                   */
    LEAVE_OUTSIDE /* jumps or falls through PLT or slot to another module and may return from there */
} flow_leave_kind;

typedef struct {
    uint64_t target; /* 0: outside the module */
    uint32_t block;  /* where; leaves are in the order of the function's instructions */
    uint8_t kind;    /* flow_leave_kind */
    bool last;       /* a call with which the code of its function ends, as its frame description says */
} flow_leave;

typedef struct {
    lift_func *func;
    flow_leave *leaves;
    uint32_t leave_count;
    uint64_t *refs; /* addresses that its code names, FLOW_POINTER set where the address itself is taken */
    uint32_t ref_count;
    bool has_weak; /* a table's size hangs on space->refs */
    uint64_t work; /* instructions decoded and gone over to build it */
} flow_func;

#define FLOW_POINTER ((uint64_t)1 << 63)

typedef struct flow_scratch flow_scratch; /* a thread's working memory */

flow_scratch *flow_scratch_open(void);
void flow_scratch_close(flow_scratch *scratch);
/* The graph of the function that starts at entry. Everything but id, name, found and returns is filled. */
void flow_build(const flow_space *space, flow_scratch *scratch, uint64_t entry, flow_func *out);

typedef struct {
    const lift_insn *insns; /* in no order; until the scratch is used again */
    uint32_t count;
    uint64_t end; /* of the part that begins at the entry */
} flow_trial;

/* Decodes what a function at entry would be, indirect jumps aside. False: it runs into what is no code, has more than
 * `most` instructions, or jumps into the middle of others. */
bool flow_try(const flow_space *space, flow_scratch *scratch, uint64_t entry, uint32_t most, flow_trial *trial);
void flow_free(flow_func *f); /* with its lift_func */
void flow_free_func(lift_func *func);

/* --- depth.c ----------------------------------------------------------------------------------------------------- */

typedef struct { /* kept between questions about one graph */
    const image_fde *fde;
    image_unwind_row *rows;
    uint32_t row_count;
    int32_t *last;
} depth_memory;

/* At the last instruction of the block the stack pointer is what it was at the function's entry: the frame is gone. */
bool depth_frame_gone(const image *img, const lift_func *view, depth_memory *memory, uint32_t block);
void depth_reset(depth_memory *memory);

/* --- jumptable.c ------------------------------------------------------------------------------------------------- */

typedef enum { JUMP_UNKNOWN, JUMP_SWITCH, JUMP_TAIL } jump_verdict;

typedef VEC(uint64_t) flow_addrs;
typedef VEC(lift_table) flow_tables;

typedef struct {
    flow_addrs targets; /* sorted, without duplicates */
    flow_tables tables;
    bool weak; /* the size of a table was found by its end, not by a comparison */
} jump_result;

typedef struct jump_memory jump_memory; /* what can be kept between the jumps of one graph */

jump_memory *jump_memory_open(void);
/* Instructions that may be gone over from now on, or that many more; and how many are left of them. */
void jump_memory_allow(jump_memory *memory, uint64_t steps, bool more);
uint64_t jump_memory_left(const jump_memory *memory);
void jump_memory_reset(jump_memory *memory, const lift_func *view); /* another graph, or another form of it */
void jump_memory_close(jump_memory *memory);

/* The targets of the indirect jump that ends `block` of `view`, whose blocks, edges and preds are filled as far as the
 * function is known. */
jump_verdict jump_resolve(const flow_space *space, const lift_func *view, jump_memory *memory, uint32_t block,
                          jump_result *result);

/* --- noreturn.c -------------------------------------------------------------------------------------------------- */

/* `defined`: by the module itself, so that only names with one meaning count. */
bool noreturn_name(const char *name, bool defined);
/* The same for a function of another module, of which the caller of lift_open may know more. */
bool noreturn_outside(const flow_space *space, const char *name);
/* Which of the functions, sorted by entry, may return: returns[i]. */
void noreturn_solve(const flow_space *space, const flow_func *funcs, uint32_t count, bool *returns);

/* --- discover.c -------------------------------------------------------------------------------------------------- */

typedef struct {
    flow_func *funcs; /* by entry; id, found, returns filled, name not */
    uint32_t count;
} flow_found;

void discover(flow_space *space, int jobs, flow_found *found);

/* --- targets.c --------------------------------------------------------------------------------------------------- */

lift_targets *targets_open(const flow_space *space, const flow_found *found);
void targets_close(lift_targets *targets);

#endif
