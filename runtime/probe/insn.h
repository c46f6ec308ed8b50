/* Machine instructions, as far as moving them needs: where one ends, what in it depends on its place.
 *
 * Zydis is not used here: Debian has it as a shared library only, and an engine that lives inside of other people's
 * processes must not bring libraries along. What is needed is small: lengths, and the few forms that are relative to
 * the instruction pointer. tests/unit/probe compares it with Zydis. */
#ifndef RACE_PROBE_INSN_H
#define RACE_PROBE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSN_MAX = 15 };

typedef enum {
    INSN_PLAIN,    /* goes on to the next instruction */
    INSN_JUMP,     /* jmp rel */
    INSN_BRANCH,   /* jcc rel */
    INSN_LOOP,     /* loop, loope, loopne, jrcxz: rel8 only */
    INSN_CALL,     /* call rel */
    INSN_CALL_IND, /* call through a register or memory */
    INSN_END,      /* never goes on: ret, jmp through a register or memory, ud2, hlt */
    INSN_BEGIN,    /* xbegin rel */
    INSN_STRANGE   /* far, interrupts, system calls: moved, but never left out of sight */
} insn_flow;

typedef struct {
    uint8_t length;
    uint8_t flow;      /* insn_flow */
    uint8_t opcode;    /* its last byte */
    uint8_t opcode_at; /* offset of that byte */
    uint8_t map;       /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a, other maps as they are numbered */
    uint8_t modrm_at;  /* 0: there is none (it never comes first) */
    uint8_t modrm;
    uint8_t disp_at, disp_size; /* of a memory operand */
    uint8_t imm_at, imm_size;   /* also relative targets */
    bool is_rip;                /* memory relative to the instruction pointer */
    bool is_vex;                /* or EVEX, or XOP */
    bool operand_16;            /* has prefix 66 and no REX.W */
    bool address_32;            /* has prefix 67 */
    uint8_t rex;                /* 0: none */
    uint8_t prefixes;           /* bytes before opcode (or rex) that are legacy prefixes */
} insn;

/* False: not an instruction of 64-bit mode, or one that ends after `size` bytes. */
bool insn_decode(const uint8_t *bytes, size_t size, insn *out);
/* Where a relative jump, branch, loop, call or xbegin at addr leads to. */
uint64_t insn_target(const insn *i, const uint8_t *bytes, uint64_t addr);

/* The instruction at `from` (its bytes are `bytes`), so that it does the same at `to`: at most INSN_MOVED bytes into
 * `out`. A call pushes the address behind the original one. Returns how many; 0: it cannot be moved there. */
enum { INSN_MOVED = 32 };
size_t insn_move(const insn *i, const uint8_t *bytes, uint64_t from, uint64_t to, uint8_t *out);

#endif
