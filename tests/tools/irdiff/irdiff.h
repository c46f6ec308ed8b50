/* The differential test of the IR: does a block do what its IR says?
 *
 *   memory.c     guest memory, shared by the interpreter, the emulator and the native process
 *   interpret.c  the meaning of the IR: values and accesses predicted for one machine instruction
 *   emulate.c    one machine instruction in unicorn, with every access seen
 *   native.c     one machine instruction on the processor, in a traced process, with accesses seen by watchpoints
 *   state.c      a random state for a block
 *   compare.c    what was predicted against what happened
 *   block.c      one block, step by step
 *   dead.c       the same block again with all that liveness calls dead changed: nothing else may change
 *   zoo.c        a module of random instructions
 *   ../irdiff.c  the command: which blocks, counting, reporting
 *
 * The state of the machine is one plain struct that passes between the engines, so that each instruction of a block
 * runs where it can be run. What the IR calls opaque is taken over from the machine after each instruction, so that
 * the exact operations behind it can be checked. */
#ifndef RACE_IRDIFF_H
#define RACE_IRDIFF_H

#include "static/lift/lift.h"

#include <Zydis/Zydis.h>

enum {
    FLAG_CF = 1 << 0,
    FLAG_PF = 1 << 2,
    FLAG_AF = 1 << 4,
    FLAG_ZF = 1 << 6,
    FLAG_SF = 1 << 7,
    FLAG_DF = 1 << 10,
    FLAG_OF = 1 << 11,
    FLAG_STATUS = FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF
};

typedef struct {
    uint64_t gpr[16]; /* in the order of IR_RAX */
    uint64_t rip;
    uint64_t flags; /* FLAG_* only */
    uint64_t fs, gs;
    uint64_t vector[32][8];
} machine;

/* --- memory.c ----------------------------------------------------------------------------------------------------- */

enum {
    MEMORY_PAGE = 4096,
    MEMORY_CHUNK = 16 * 1024, /* what is mapped at once where something wild is accessed */
    MEMORY_MAX_REGIONS = 200
};
#define MEMORY_LOW        0x10000ull        /* the kernel maps nothing below */
#define MEMORY_HIGH       0x100000000000ull /* 2^44: sums of a few pointers stay below */
#define MEMORY_HEAP       0x240000000ull    /* where random pointers point to */
#define MEMORY_HEAP_SIZE  (1ull << 20)
#define MEMORY_STACK      0x780000000ull
#define MEMORY_STACK_SIZE (1ull << 20)
#define MEMORY_BIAS       0x5600000000ull /* of modules that can be moved */

typedef struct {
    uint64_t base, size; /* guest addresses */
    uint64_t offset;     /* in the memory file */
    uint8_t *host;
} memory_region;

typedef struct memory memory;
memory *memory_open(uint64_t seed);
void memory_close(memory *mem);
/* Puts the module in at base + bias; its constant data as the loader leaves it, what is writable random. */
void memory_load(memory *mem, const image *img, uint64_t bias);
/* Forgets every region but the module when there are many. True: it did. */
bool memory_trim(memory *mem);
int memory_file(const memory *mem);
uint32_t memory_generation(const memory *mem); /* changes when regions are forgotten */
uint32_t memory_regions(const memory *mem, const memory_region **all);
/* False: [addr, addr+size) is not in the range that is ever mapped. */
bool memory_map(memory *mem, uint64_t addr, uint64_t size);
bool memory_read(memory *mem, uint64_t addr, void *to, uint64_t size); /* maps */
bool memory_write(memory *mem, uint64_t addr, const void *from, uint64_t size);
/* Keeps the old content, to be put back by memory_undo down to the mark. */
bool memory_save(memory *mem, uint64_t addr, uint64_t size);
uint32_t memory_mark(const memory *mem);
void memory_undo(memory *mem, uint32_t mark);

/* --- random numbers: one stream, reproducible --------------------------------------------------------------------- */

static inline uint64_t random_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

static inline uint64_t random_next(uint64_t *state)
{
    return random_mix(*state += 0x9e3779b97f4a7c15ull);
}

/* --- accesses ----------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t addr, size;
    bool read, write;
    bool maybe; /* predicted: some of it may not happen */
} mem_access;

typedef VEC(mem_access) access_list;

/* --- interpret.c -------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t bits, known; /* known: which bits mean something; all or none, except for flags */
} value;

typedef struct {
    memory *mem;
    const ir_func *ir;
    uint32_t block;
    uint64_t bias;
    uint64_t entry_sp, realigned_sp; /* what slots and frame offsets are relative to */
    bool has_realigned;
    value *values; /* by ir_value; of the block, and what it uses from outside */
    uint32_t cap;
    access_list predicted;
    uint32_t wide;      /* predicted accesses to any address */
    bool wide_on_stack; /* one of them writes near the frame: how much, only the processor knows */
    bool lost;          /* an address depends on an unknown value */
} interpreter;

void interpret_close(interpreter *in);
/* Takes what the block uses from outside, and its phis, from the state. */
void interpret_begin(interpreter *in, const machine *m);
/* Values and accesses of the IR instructions [from, to), all of one machine instruction. */
void interpret_before(interpreter *in, uint32_t from, uint32_t to, const machine *m);
/* The machine has made the step: opaque results are read back, and what depends on them is computed. */
void interpret_after(interpreter *in, uint32_t from, uint32_t to, const machine *m);
value interpret_var(const interpreter *in, uint16_t var, const machine *m); /* content of a variable */
value interpret_value(const interpreter *in, ir_value v);
bool interpret_slot(const interpreter *in, const ir_slot *slot, uint64_t *addr);
uint64_t interpret_address(const interpreter *in, const ir_insn *access, bool *known); /* of an IR_ACCESS */
/* Whether condition `code` holds; -1: the flags it needs are not known. */
int interpret_condition(value flags, unsigned code);
/* Calls `visit` with each operand of an instruction. */
typedef void interpret_visit(void *context, ir_value v);
void interpret_operands(const ir_func *ir, const ir_insn *insn, interpret_visit *visit, void *context);

/* --- engines ------------------------------------------------------------------------------------------------------ */

typedef enum { STEP_OK, STEP_FAULT, STEP_UNSUPPORTED } step_status;

typedef struct emulator emulator;
emulator *emulator_open(memory *mem);
void emulator_close(emulator *e);
void emulator_begin(emulator *e); /* of a block: resets what is in no `machine` */
typedef struct {
    uint64_t until; /* where it is expected to go: the emulator looks at no code there */
    bool vectors;   /* concerns vector registers */
    bool repeats;   /* has a rep prefix, and stays where it is until it is done */
    bool jumps;     /* may not go on to the next instruction */
} step_kind;

/* Executes the instruction at m->rip. Old contents of memory are saved. */
step_status emulator_step(emulator *e, machine *m, const step_kind *kind, access_list *performed);

typedef struct native native;
native *native_open(memory *mem); /* NULL: this system does not let us trace */
void native_close(native *n);

typedef struct {
    uint64_t addr;
    bool write_only; /* watch writes only; else reads and writes */
    bool hit;
} native_probe;
enum { NATIVE_PROBES = 4 };
step_status native_step(native *n, machine *m, const step_kind *kind, native_probe *probes, unsigned count);

/* --- state.c ------------------------------------------------------------------------------------------------------ */

/* A random state in which the block can run: registers are pointers, indices or counts as the block uses them, and what
 * the IR claims about the frame holds. Fills entry_sp, and realigned_sp if something depends on it. */
void state_random(interpreter *in, machine *m, uint64_t *random);

/* --- compare.c ---------------------------------------------------------------------------------------------------- */

enum { MNEMONICS = ZYDIS_MNEMONIC_MAX_VALUE + 1 };

typedef struct {
    uint64_t blocks, instructions, native_instructions;
    uint64_t blocks_whole; /* compared to their end */
    uint64_t accesses, accesses_cond, accesses_wide, accesses_promoted;
    uint64_t exact, opaque; /* definitions: compared; taken over from the machine */
    uint64_t called;        /* what a call leaves: made up */
    uint64_t unknown;       /* exact, but computed from something that cannot be read back */
    uint64_t stores, targets, frames;
    uint64_t arguments;         /* of calls, returns and system calls, compared */
    uint64_t passed;            /* values that the block hands to its successors, compared */
    uint64_t dead_blocks, dead; /* run again with dead registers and flags changed; how many of them */
    uint64_t stopped_address, stopped_fault, stopped_count; /* blocks cut short: wild address, fault, long rep */
    uint64_t skipped[MNEMONICS];                            /* blocks cut short by an instruction that no engine runs */
    uint64_t emulator_wrong[MNEMONICS];                     /* the processor sides with the IR against the emulator */
    uint64_t mismatches[MNEMONICS];
    uint64_t mismatch_count;
} irdiff_stats;

/* One machine instruction being compared. */
typedef struct {
    const lift_insn *insn;
    ZydisDecodedInstruction zydis;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    uint32_t from, to; /* its IR instructions */
    step_kind kind;
} step;

enum { COMPARE_TEXT = 400 };

/* All return false after writing to `why` what differs. */
bool compare_accesses(const interpreter *in, access_list *performed, access_list scratch[4], char *why);
/* Where the IR says that control goes; false: it does not say. */
bool compare_predicted_target(const interpreter *in, const step *s, uint64_t *target);
bool compare_target(const interpreter *in, const step *s, const machine *after, irdiff_stats *stats, char *why);
/* What calls, returns and system calls are given, before they are made. */
bool compare_arguments(const interpreter *in, const step *s, const machine *before, irdiff_stats *stats, char *why);
bool compare_stores(const interpreter *in, const step *s, irdiff_stats *stats, char *why);

/* What the successors of the block take for the content of a variable, and so has to be that when it ends. */
typedef struct {
    uint32_t block; /* the successor */
    uint16_t var;
    ir_value v;     /* defined in this block, or ... */
    value at_entry; /* ... passed through it */
} handover;
typedef VEC(handover) handover_list;
/* `handovers`: where else values are used. */
bool compare_definitions(const interpreter *in, const handover_list *handovers, const step *s, const machine *after,
                         irdiff_stats *stats, char *why);
void compare_handover_begin(const interpreter *in, const machine *m, handover_list *all);
bool compare_handover(const interpreter *in, const handover_list *all, uint32_t block, const machine *m,
                      irdiff_stats *stats, char *why);

/* --- block.c ------------------------------------------------------------------------------------------------------ */

/* What dead.c needs to know of the first run. */
typedef struct {
    step how;
    machine after;
    uint64_t random;  /* the stream of random numbers before the instruction */
    bool returns;     /* a call that came back */
    bool native;      /* the processor made the step */
    mem_access equal; /* what was made equal to the accumulator, size 0: nothing */
    uint64_t equal_to;
    mem_access written[4]; /* for the native engine, which does not see what it writes */
    uint32_t written_count;
} trace_entry;
typedef VEC(trace_entry) trace;

typedef struct {
    const lift_module *module;
    uint64_t bias;
    memory *mem;
    emulator *emu;
    native *nat;      /* or NULL */
    bool native_only; /* for code that the emulator is known to get wrong */
    interpreter in;
    access_list performed, scratch[4];
    trace trace;
    handover_list handovers;
    irdiff_stats *stats;
    uint64_t most_reports; /* mismatches written to stdout */
    ZydisDecoder decoder;
    ZydisFormatter formatter;
} irdiff;

/* The callee has run and returned: what it may change is changed. */
void block_return_from_call(machine *m, uint64_t next, uint64_t *random);
void block_scribble_below(irdiff *d, const machine *m, uint64_t *random);
void block_simulate_syscall(machine *m, uint64_t next, uint64_t *random);
void block_report(irdiff *d, const lift_func *func, uint64_t seed, const step *s, const machine *before,
                  const char *why);
/* Memory must be as at the block's entry. */
void dead_check(irdiff *d, const lift_func *func, uint32_t block, uint64_t seed, const machine *entry, const trace *t);

/* zoo.c: the bytes of an ELF file of at most `count` functions of one random instruction each; free() them. */
uint8_t *zoo_make(uint32_t count, uint64_t seed, size_t *size);

/* Tests one block of `func` in a random state made from `seed`. */
void irdiff_block(irdiff *d, const lift_func *func, uint32_t block, uint64_t seed);

#endif
