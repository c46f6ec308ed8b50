/* Inside static/lift: a function while it is being decoded; shared by traverse.c and flow.c. */
#ifndef RACE_TRAVERSE_H
#define RACE_TRAVERSE_H

#include "static/lift/flow.h"

enum {
    MARK_LEADER = 1, /* a block begins here */
    MARK_PAD = 2,    /* ... a landing pad */
    MARK_TAIL = 4,   /* a conditional tail call */
    MARK_END = 8     /* times lift_end + 1: the block ends here; 0: it goes on */
};

enum {
    CHUNK_BITS = 6,
    CHUNK = 1 << CHUNK_BITS,
    MAX_ASKS = 32,    /* times that the indirect jumps of a function are asked for */
    MAX_ATTEMPTS = 4, /* to build it */
    STEPS_PER_INSN = 400, /* for its indirect jumps */
    FOREIGN_WEIGHT = 8    /* foreign instructions that count as one */
};

typedef struct {
    uint64_t key; /* address / CHUNK */
    uint32_t chunk, generation;
} map_slot;

typedef struct {
    uint64_t addr;
    int32_t depth; /* of the stack, below the return address; DEPTH_UNKNOWN */
} leader;

enum { DEPTH_UNKNOWN = INT32_MIN };

typedef struct {
    uint32_t insn; /* in decoding order */
    uint64_t target;
} insn_addr;

typedef struct {
    uint32_t insn;  /* the indirect jump, in decoding order */
    uint8_t verdict; /* jump_verdict */
    bool denied, weak;
    uint32_t first_target, target_count; /* in scratch->targets */
    uint32_t first_table, table_count;   /* in scratch->tables */
    uint64_t asked;                      /* size of the graph that the verdict is about */
} indirect_jump;

typedef struct {
    uint64_t target;
    uint32_t insn, block;
    uint8_t kind;
    bool last;
} raw_leave;

struct flow_scratch {
    const flow_space *space;
    uint64_t entry, limit; /* the function's extent: up to its FDE's end, or to the next function */
    uint64_t own;          /* the end of what is its alone: no other function starts before */
    uint64_t foreign;      /* instructions it has outside of that */
    uint64_t decoded;      /* instructions, over all attempts */
    uint64_t allowed;      /* steps of jump_memory_allow */
    uint32_t most;         /* instructions to decode at most; beyond, or at what is no code, `failed` */
    bool trial, failed;    /* trial: stop when it has failed */
    const image_fde *fde;  /* of [fde_low, fde_high), where decoding is; or NULL: there is none */
    uint64_t fde_low, fde_high;
    bool has_fde; /* one covers the entry */

    VEC(lift_insn) insns; /* in decoding order */
    VEC(uint16_t) marks;  /* of each */
    VEC(leader) work;     /* to visit */
    int32_t depth;        /* at the instruction being decoded, in code without frame description */
    bool released;        /* ... and the frame has been given up in this run */
    VEC(insn_addr) pads;  /* calls with landing pads */
    VEC(raw_leave) leaves;
    VEC(uint64_t) refs;
    VEC(indirect_jump) jumps;
    VEC(uint64_t) denied; /* indirect jumps whose answer did not hold up, sorted before a traversal: left unknown */
    uint32_t attempts;    /* from the MAX_ATTEMPTS-th on, all of them */
    flow_addrs targets;
    flow_tables tables;

    map_slot *map; /* address to instruction number + 1, by chunks of addresses */
    uint32_t map_size, map_used, generation;
    uint32_t (*chunks)[CHUNK];
    uint32_t chunk_count, chunk_cap;
    uint64_t last_key;
    uint32_t last_chunk;

    lift_func view; /* the graph as far as it is known; its arrays are the vectors below */
    VEC(uint32_t) leaders;
    VEC(lift_insn) ordered;
    VEC(lift_block) blocks;
    VEC(lift_edge) edges;
    VEC(uint32_t) preds;
    VEC(uint32_t) block_of; /* block of each instruction, in decoding order */
    VEC(uint32_t) position; /* place of each instruction in `ordered` */
    VEC(uint32_t) seen;     /* for duplicate switch edges: block to the source block + 1 */
    jump_memory *memory;
    jump_result result;
};

/* Number of the instruction at addr + 1, or 0. */
uint32_t traverse_find(flow_scratch *s, uint64_t addr);
void traverse_reset(flow_scratch *s);
/* Decodes everything reachable from s->work, without what lies behind indirect jumps that have no answer. */
void traverse(flow_scratch *s);

#endif
