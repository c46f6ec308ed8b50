/* static/lift: from the bytes of a module to functions, control flow and SSA.
 *
 *   decode.c, decode_fast.c  one machine instruction: length, flow kind, branch target (Zydis)
 *   discover.c   where functions start, with or without symbols; seed.c, parts.c, gaps.c: its steps
 *   traverse.c, flow.c  the control-flow graph of one function: blocks, edges, tail calls, landing pads
 *   jumpwalk.c, jumptable.c  the targets of indirect jumps; slice.c, slice_expr.c: backward symbolic evaluation
 *   space.c      what is known about the code meanwhile; depth.c: where the frame is gone
 *   targets.c    where control may come to, whoever knows of it
 *   noreturn.c   which functions and calls never return
 *   module.c     lift_open: all of it, in parallel; objects.c: several modules
 *   lower.c, lower_*.c  machine instructions to IR, not yet SSA
 *   frame.c      the stack pointer and the frame; slot.c: which stack slots become variables
 *   ssa.c        liveness, dead definitions, phi placement, renaming; preserve.c: what survives a call
 *   dom.c        dominators; loop.c: natural loops; live.c: live registers and flags before each machine instruction
 *   print.c      the textual form, and dot
 *   verify.c     ir_verify: these promises, checked
 *
 * A module is lifted once and immutable after. All numbers are dense indices into flat arrays. */
#ifndef RACE_LIFT_H
#define RACE_LIFT_H

#include "static/image/image.h"

/* === machine level ================================================================================================= */

typedef enum {
    FLOW_PLAIN,
    FLOW_JUMP,      /* jmp rel: to lift_target() */
    FLOW_BRANCH,    /* jcc, loop, jrcxz: to lift_target(), or on */
    FLOW_CALL,      /* call rel: lift_target() */
    FLOW_CALL_SLOT, /* call *slot(%rip): the slot is at lift_target() */
    FLOW_CALL_IND,  /* call *anything else */
    FLOW_JUMP_SLOT, /* jmp *slot(%rip) */
    FLOW_JUMP_IND,  /* jmp *anything else */
    FLOW_RET,
    FLOW_SYSCALL,   /* syscall, int 0x80, sysenter */
    FLOW_TRAP       /* ud2, hlt, a run of int3: does not go on. A lone int3 is FLOW_PLAIN: it may be handled */
} lift_flow;

typedef struct {
    uint64_t addr;
    uint16_t mnemonic; /* ZydisMnemonic */
    uint8_t len;
    uint8_t flow;     /* lift_flow */
    int32_t relative; /* of a direct branch, or of a rip-relative slot */
} lift_insn;

static inline uint64_t lift_target(const lift_insn *insn)
{
    return insn->addr + insn->len + (uint64_t)(int64_t)insn->relative;
}

/* Decodes flow only, no operands: fast. False: not an instruction. */
bool lift_decode(const image *img, uint64_t addr, lift_insn *insn);

typedef enum {
    END_FALL,      /* goes on to the next block */
    END_CALL,      /* ends with a call that has a landing pad: two edges */
    END_JUMP,      /* one edge */
    END_BRANCH,    /* fall-through edge, taken edge; one only when the other is a conditional tail call (tail set) */
    END_SWITCH,    /* an indirect jump whose targets are all known: edges without duplicates */
    END_UNKNOWN,   /* an indirect jump whose targets are not known */
    END_TAIL,      /* a jump to another function, direct, by PLT stub or by GOT slot; a block without instructions:
                      execution runs into the function that starts there */
    END_TAIL_IND,  /* an indirect jump that is a tail call: the frame is gone */
    END_RET,
    END_NORETURN,  /* a call that does not return */
    END_TRAP,
    END_BAD        /* a block without instructions: undecodable bytes, or the end of the section. Execution cannot come
                      here in a sound program */
} lift_end;

typedef enum { EDGE_FALL, EDGE_TAKEN, EDGE_SWITCH, EDGE_PAD } lift_edge_kind;

typedef struct {
    uint32_t from, to; /* blocks */
    uint8_t kind;      /* lift_edge_kind */
} lift_edge;

typedef struct {
    uint64_t start, end;
    uint32_t first_insn, insn_count; /* in func->insns; none in a block that stands for falling into another function
                                        (END_TAIL) or into undecodable bytes (END_BAD) at `start` */
    uint32_t first_succ, succ_count; /* in func->edges */
    uint32_t first_pred, pred_count; /* in func->preds, which holds edge numbers */
    uint8_t end_kind;                /* lift_end */
    bool tail;                       /* END_BRANCH: the taken side is a tail call */
    bool is_pad;                     /* a landing pad */
} lift_block;

typedef struct {
    uint32_t insn;  /* the indirect jump, in func->insns */
    uint64_t table; /* address of the first entry */
    uint32_t count; /* entries */
    uint8_t entry_size; /* 4 or 8 */
    bool relative;  /* entries are offsets from `base` */
    uint64_t base;
} lift_table;

enum { /* why we believe that a function starts here; bits */
    FOUND_SYMBOL = 1,
    FOUND_FDE = 2,
    FOUND_ENTRY = 4,   /* e_entry, init and fini functions */
    FOUND_CALL = 8,    /* target of a direct call */
    FOUND_POINTER = 16, /* a relocated data word or a lea points here */
    FOUND_TAIL = 32,   /* target of a tail jump */
    FOUND_GAP = 64     /* code in a gap that nothing else explains */
};

typedef struct ir_func ir_func;

typedef struct {
    uint32_t id;      /* index in module->funcs */
    uint64_t entry;
    uint64_t end;     /* of the part that begins at entry, padding excluded */
    const char *name; /* symbol, or sub_<hex>; owned by the module or image */
    uint32_t found;   /* FOUND_* */
    bool returns;     /* may return to its caller */
    bool complete;    /* no END_UNKNOWN and no END_BAD */
    bool guessed;     /* nothing that is certainly code or data leads here: its bytes look like code, but may be data, or
                         instructions that begin elsewhere */
    lift_insn *insns; /* block by block, in the order of blocks */
    uint32_t insn_count;
    lift_block *blocks; /* block 0 is the entry; the others by address. Parts elsewhere (.cold) are included */
    uint32_t block_count;
    lift_edge *edges; /* grouped by source block */
    uint32_t edge_count;
    uint32_t *preds;
    lift_table *tables;
    uint32_t table_count;
    uint32_t resolved_jumps, unresolved_jumps, tail_jumps; /* of its indirect jumps */
    ir_func *ir; /* NULL until lowered */
} lift_func;

/* === IR ============================================================================================================
 *
 * An instruction is a value: `v7` is the 7th of the function's instruction array, and operands are such numbers.
 * Number 0 is "none". Values are 64-bit integers; an operation of width w uses the low w bytes of its operands and
 * zero-extends its result. `var` is the machine variable that the value is the new content of (IR_NOVAR: a
 * temporary). In SSA form each block begins with its phis, and the values that the function is entered with
 * (IR_ENTRY, and IR_UNDEF for slots) stand in front of block 0. Copies are kept: a value that is used in another block
 * than its own is the content of its `var` on entry to that block. Definitions that nothing needs are gone.
 *
 * What follows exactly from the operands is an exact operation; everything else is IR_OPAQUE, whose result may be
 * anything computed from its operands. */

typedef uint32_t ir_value;

enum { /* variables: 64-bit registers, 8-byte lanes of vector registers, and promoted stack slots */
    IR_RAX, IR_RCX, IR_RDX, IR_RBX, IR_RSP, IR_RBP, IR_RSI, IR_RDI,
    IR_R8, IR_R9, IR_R10, IR_R11, IR_R12, IR_R13, IR_R14, IR_R15,
    IR_FLAGS,     /* status flags together */
    IR_FSBASE, IR_GSBASE,
    IR_X87,       /* the x87 and MMX state together */
    IR_MASKS,     /* k0 to k7 together */
    IR_DF,        /* direction flag: 0 or 1 */
    IR_VECTOR = 32, /* + 8 * register + lane: 32 registers of eight lanes */
    IR_SLOT = IR_VECTOR + 256, /* + slot number */
    IR_NOVAR = 0xffff
};
enum { IR_MAX_SLOTS = 4096 };

typedef enum {
    IR_NONE,
    IR_ENTRY,   /* content of var when the function is entered */
    IR_UNDEF,   /* var is never defined on some path here (a slot), or has no meaning any more */
    IR_CONST,   /* imm */
    IR_ADDRESS, /* the module address imm, as loaded */
    IR_COPY,    /* a, width w */
    IR_SEXT,    /* a sign-extended from w bytes to 8 */
    IR_LEA,     /* a + b * scale + imm; a and b may be none */
    IR_SUB,     /* a - b. From here to IR_SAR: when b is none, imm stands for it */
    IR_MUL,
    IR_AND,
    IR_OR,
    IR_XOR,
    IR_SHL, /* counts are masked as the processor does: 63 when w is 8, else 31 */
    IR_SHR,
    IR_SAR,
    IR_NEG,     /* -a */
    IR_NOT,     /* ~a */
    IR_INSERT,  /* a with w bytes at byte imm replaced by the low bytes of b */
    IR_EXTRACT, /* w bytes at byte imm of a */
    IR_SELECT,  /* condition imm (low four bits of the jcc opcode) on flags c holds ? b : a */
    IR_PHI,     /* args: one per predecessor edge, in the order of the block's preds; in block 0 one more, the entry's */
    IR_OPAQUE,  /* args: inputs, loaded values included */
    IR_CMP,     /* flags of a - b (b none: imm) */
    IR_TEST,    /* flags of a & b (b none: imm) */
    IR_FLAGRES, /* zero, sign and parity flag of the result a; the other flags unknown, but for the carry flag of the
                   flags b if b is given */
    IR_ACCESS,  /* a machine access of `width` bytes to [seg: a + b * scale + imm]; flags: IR_READ, ... */
    IR_LOAD,    /* w bytes at byte imm of access a */
    IR_STORE,   /* w bytes at byte imm of access a become b */
    IR_CALL,    /* args: IR_CALL_*; imm: the target's address for a direct call, the slot's for one through a GOT slot */
    IR_TAIL,    /* the same for a tail call; c: flags and scale = condition + 1 when it is conditional */
    IR_RESULT,  /* a return register (rax, rdx, xmm0, xmm1) after call a: what the callee left there; or b, what it was
                   before, when b is given: gcc's -fipa-ra keeps values in registers that a local callee spares */
    IR_CLOBBER, /* the same for the other registers that a callee may overwrite */
    IR_PAD,     /* rsp at a landing pad: a, but for pushed arguments of the call, which the unwinder has taken off; its place
                   in the frame is exact */
    IR_BRANCH,  /* condition imm on flags c; imm -1: not a flags condition (loop, jrcxz) and a is the counter */
    IR_SWITCH,  /* jump to a */
    IR_RET,     /* args: IR_RET_* */
    IR_SYSCALL, /* args: rax, rdi, rsi, rdx, r10, r8, r9 */
    IR_TRAP,
    IR_OP_COUNT
} ir_op;

enum { /* flags of IR_ACCESS */
    IR_READ = 1,
    IR_WRITE = 2,      /* both: read-modify-write */
    IR_ATOMIC = 4,     /* lock prefix, or xchg with memory */
    IR_COND = 8,       /* some of the bytes may not be accessed (masked, or a conditional store) */
    IR_REP = 16,       /* c elements of width bytes upwards, or downwards when DF is set; the load and store of a rep movs
                          stand for all of its elements */
    IR_WIDE = 32,      /* the address is not known as an expression (gather, scatter, xsave): any address */
    IR_FRAME = 64,     /* in this function's own frame: ir_frame_offset(a) + imm, no index */
    IR_PROMOTED = 128, /* IR_FRAME and carried by a slot variable: its loads and stores are copies */
    IR_IMPLICIT = 256, /* of push, pop, call, ret, leave, enter */
    IR_FS = 512,       /* the segment base is already added into a: these only name it */
    IR_GS = 1024,
    IR_NONTEMPORAL = 2048
};

enum { /* args of IR_CALL and IR_TAIL */
    IR_CALL_TARGET, /* value of an indirect target, or none */
    IR_CALL_RDI, IR_CALL_RSI, IR_CALL_RDX, IR_CALL_RCX, IR_CALL_R8, IR_CALL_R9,
    IR_CALL_RSP, /* stack pointer before the call instruction: stack arguments begin there */
    IR_CALL_RAX, IR_CALL_R10,
    IR_CALL_XMM0, /* low lanes of xmm0 to xmm7; none in a function without vector instructions, here and in IR_RET */
    IR_CALL_ARGS = IR_CALL_XMM0 + 8 /* behind these: the promoted slots at IR_CALL_RSP, +8, ...: stack arguments, if the
                                       callee takes any; of a tail call from IR_CALL_RSP + 8 on, since the return address
                                       comes first */
};
enum { /* args of IR_RET */
    IR_RET_RAX, IR_RET_RDX, IR_RET_XMM0, IR_RET_XMM1, IR_RET_RSP, IR_RET_RBX, IR_RET_RBP, IR_RET_R12, IR_RET_R13,
    IR_RET_R14, IR_RET_R15, IR_RET_ARGS
};

typedef struct {
    uint8_t op;     /* ir_op */
    uint8_t scale;  /* IR_LEA, IR_ACCESS: 1, 2, 4, 8 */
    uint16_t width; /* bytes */
    uint16_t var;   /* what it defines */
    uint16_t flags; /* IR_ACCESS */
    uint32_t insn;  /* machine instruction, in func->insns */
    ir_value a, b, c; /* operands; with args: a is the first in ir->args, b their number */
    int64_t imm;
} ir_insn;

typedef struct {
    uint32_t first, count; /* its instructions; phis first */
    uint32_t idom;         /* immediate dominator; its own number for the entry and for unreachable blocks */
    uint32_t loop;         /* innermost loop + 1, 0: none */
    uint32_t rpo;          /* position in reverse post-order; UINT32_MAX: unreachable */
    uint32_t dom_in, dom_out; /* place in the dominator tree, for ir_dominates: the blocks below have dom_in in
                                 (dom_in, dom_out] of this one */
} ir_block;

typedef struct {
    uint32_t header;  /* block */
    uint32_t parent;  /* enclosing loop + 1, 0: none */
    uint32_t depth;   /* 1 for an outermost loop */
    uint32_t first_block, block_count; /* in ir->loop_blocks, header first */
    bool irreducible; /* entered other than through its header */
} ir_loop;

typedef struct {
    int32_t offset; /* of its first byte, relative to the stack pointer at entry (where the return address lies) */
    uint8_t size;   /* 1 to 8 */
    uint8_t base;   /* 0: relative to entry rsp; 1: relative to the realigned stack pointer */
} ir_slot;

struct ir_func {
    const lift_func *func;
    ir_insn *insns; /* [0] is unused */
    uint32_t insn_count;
    ir_value *args;
    uint32_t arg_count;
    ir_block *blocks; /* same numbers as func->blocks */
    uint32_t *rpo;    /* block numbers in reverse post-order */
    uint32_t rpo_count;
    ir_loop *loops;   /* outer before inner */
    uint32_t loop_count;
    uint32_t *loop_blocks;
    ir_slot *slots;
    uint32_t slot_count;
    int32_t *frame;     /* per value: see ir_frame_offset */
    uint32_t *live;     /* per machine instruction: LIVE_* before it */
    uint64_t written;   /* registers that some instruction of it, or a call out of the module, writes: ir_written_bit */
    bool frame_known;   /* the stack pointer is known at every access through it */
    bool frame_escapes; /* an address of its frame leaves the function */
    struct ir_facts *facts; /* what was found out about its values, once asked (static/hb/value_facts.c); in: */
    arena memory;
};

/* 16 general registers, then 32 vector registers; 0 for everything else. */
static inline uint64_t ir_written_bit(uint16_t var)
{
    if (var < 16) return 1ull << var;
    return var >= IR_VECTOR && var < IR_SLOT ? 1ull << (16 + (var - IR_VECTOR) / 8) : 0;
}

enum { /* ir->live: bits 0 to 15 are the general registers in the order of IR_RAX */
    LIVE_CF = 1 << 16, LIVE_PF = 1 << 17, LIVE_AF = 1 << 18, LIVE_ZF = 1 << 19, LIVE_SF = 1 << 20, LIVE_OF = 1 << 21,
    LIVE_DF = 1 << 22,
    LIVE_STATUS = LIVE_CF | LIVE_PF | LIVE_AF | LIVE_ZF | LIVE_SF | LIVE_OF
};

/* === the module ===================================================================================================== */

typedef struct {
    uint32_t functions, blocks;
    uint64_t instructions;
    uint32_t jumps_resolved, jumps_unresolved, jumps_tail; /* indirect jumps; PLT stubs are not counted */
    uint32_t bad_blocks;     /* END_BAD */
    uint64_t accesses, accesses_promoted, accesses_frame, accesses_wide;
    uint64_t ir_instructions, ir_opaque;
    uint32_t frames_unknown; /* functions whose stack pointer is lost */
    double seconds_flow, seconds_ir;
} lift_stats;

typedef struct {
    uint16_t mnemonic; /* ZydisMnemonic */
    uint64_t count;    /* machine instructions of it with an IR_OPAQUE */
} lift_opaque;

typedef struct lift_targets lift_targets;
typedef struct lift_told lift_told;

typedef struct {
    const image *img;
    lift_func **funcs; /* by entry */
    uint32_t func_count;
    lift_stats stats;
    lift_opaque *opaque; /* most frequent first */
    uint32_t opaque_count;
    bool *outside_dead; /* objects.c: per entry of image->plts: it was taken to never return; NULL */
    lift_told *told; /* objects.c: what it has told the others, and when */
    lift_targets *targets; /* targets.c: lift_next_target */
    uint64_t generation; /* of the options: tells it from one that was closed and lay at the same address */
    arena memory;
} lift_module;

typedef struct {
    int jobs;     /* OpenMP threads; 0: as many as there are cores */
    bool flow_only; /* no IR */
    bool ignore_symbols; /* as if the file were stripped; for tests */
    bool (*ends)(const void *with, const char *name); /* or NULL: a function of another module never returns */
    const void *with;
    uint64_t generation; /* of a program that is updated: another one each time */
} lift_options;

/* Never fails: what cannot be understood is marked and counted. Output does not depend on the number of threads. */
lift_module *lift_open(const image *img, const lift_options *options);
void lift_close(lift_module *module);

void lift_told_free(lift_told *told);

/* objects.c: all modules of a program. Object files learn from each other which functions never return. */
void lift_open_all(const image *const *images, uint32_t count, const lift_options *options, lift_module **out);
/* The same after some images were replaced: modules that are there already (out[i] not NULL, of images[i]) are kept where nothing
 * that they call has begun or ceased to return; else they are closed and lifted again. The result is that of lift_open_all. Returns
 * how often a module was lifted.
 * options->generation is greater than at each call before it, and not 0. */
uint32_t lift_update_all(const image *const *images, uint32_t count, const lift_options *options, lift_module **out);

lift_func *lift_func_at(const lift_module *module, uint64_t entry);       /* starts here, or NULL */
lift_func *lift_func_covering(const lift_module *module, uint64_t addr);  /* has an instruction there, or NULL */
lift_func *lift_func_named(const lift_module *module, const char *name);  /* by symbol, sub_<hex>, or address 0x... */

/* The first address in [from, to) that control may come to otherwise than from the instruction before it: by any jump of any
 * function, or since somebody has the address; `to`: there is none. It need not be where an instruction begins. */
uint64_t lift_next_target(const lift_module *module, uint64_t from, uint64_t to);

/* === the passes ====================================================================================================== */

/* IR of one function, all passes. Requires its control flow; leaves SSA, dominators, loops, liveness. */
ir_func *ir_build(const image *img, const lift_func *func);
void ir_free(ir_func *ir);
/* Requires the IR of all functions; leaves old values after calls only where the callee spares the register: preserve.c. */
void lift_preserve(lift_module *module);

void ir_dominators(ir_func *ir);     /* requires func's edges; fills rpo and idom */
void ir_loops(ir_func *ir);          /* requires ir_dominators */
void ir_liveness(const image *img, ir_func *ir); /* requires func's edges; fills live */
bool ir_dominates(const ir_func *ir, uint32_t a, uint32_t b);

/* Offset of a value from the stack pointer at entry, when it certainly is one: base 0, or 1 for the realigned frame. */
bool ir_frame_offset(const ir_func *ir, ir_value v, int32_t *offset, uint8_t *base);
/* Follows IR_COPY of width 8. */
ir_value ir_origin(const ir_func *ir, ir_value v);
const char *ir_var_name(const ir_func *ir, uint16_t var, char buffer[16]);
const char *ir_op_name(ir_op op);

/* 0 when the function keeps every promise of this header that can be checked; else `error` names the first broken one. */
int ir_verify(const ir_func *ir, race_error *error);

/* print.c, to a stdio stream. `lines`: with source lines. */
#include <stdio.h>
void ir_print(FILE *to, const lift_module *module, const lift_func *func, bool lines);
void ir_print_dot(FILE *to, const lift_module *module, const lift_func *func);

#endif
