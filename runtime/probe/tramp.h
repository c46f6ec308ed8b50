/* What the two files that make trampolines share: tramp.c and inline.c. */
#ifndef RACE_PROBE_TRAMP_H
#define RACE_PROBE_TRAMP_H

#include "runtime/probe/emit.h"
#include "runtime/probe/insn.h"
#include "runtime/probe/probe.h"

enum { SLOW_PARTS = 128, SLOW_JUMPS = 16, RUN_CHECKS = 12, RUNS = 16 };

typedef enum { FORM_FIXED, FORM_COMPUTED, FORM_CALL } check_form;

typedef struct {
    const plan_action *action;
    check_form form;
    uint64_t address; /* FORM_FIXED */
    uint8_t a, b, c;
} check_plan;

typedef enum { /* what is not as it should be */
    SLOW_UNALIGNED, /* the address, which is in a; b is the region. Not of a run */
    SLOW_CELL,    /* a cell: not this thread's epoch */
    SLOW_READERS, /* nor is it known to have read it with others, or parts of it; a and b are still in their registers, of a part
                   * the address is in a */
    SLOW_OTHER,
    SLOW_WAITING /* the check is made, but a signal waits, with all signals blocked */
} slow_entry;

typedef struct { /* a call of C, out of line */
    uint32_t record;
    uint64_t pc;
    uint32_t dead; /* registers of the program */
    check_plan plan;
    size_t jumps[SLOW_JUMPS]; /* that lead here */
    uint8_t to[SLOW_JUMPS];   /* slow_entry */
    uint8_t jump_count, saved_count;
    uint8_t saved[4];
    bool flags, overflow; /* saved in rax */
    size_t back;          /* where it goes on */
    uint8_t run;          /* of a run, plus 1: in the middle of it, with all registers as they are there; 0: of none */
} slow_part;

typedef struct { /* instructions whose checks are made in one go */
    uint64_t start, end;
    size_t again; /* where the copy begins that makes them one by one */
    size_t back;  /* where that goes on */
} tramp_run;

typedef struct { /* of a run */
    const plan_action *action;
    uint32_t record;
} run_check;

typedef struct {
    probe_code *module;
    code c;
    slow_part slow[SLOW_PARTS];
    unsigned slow_count;
    tramp_run runs[RUNS];
    unsigned run_count;
    bool singly; /* no runs */
    const plan_unwind *row; /* the last one that was looked for */
} builder;

/* tramp.c */
void tramp_span(builder *b, span_kind kind, uint64_t pc, const slow_part *slow);

/* inline.c */
/* C is called, or the inlined path makes it needless. `dead`: registers and flags that may be overwritten. */
void inline_action(builder *b, const plan_action *a, uint32_t record, uint64_t pc, uint32_t dead);
bool inline_can_join(const builder *b, const plan_action *a); /* may it be in a run? */
uint32_t inline_registers(const plan_action *a);              /* of its address */
/* Checks in front of the instruction at pc; what they cannot settle leads to `again` of the run. */
void inline_run(builder *b, const run_check *checks, unsigned count, uint64_t pc, uint32_t dead, unsigned run);
void inline_slow_parts(builder *b);

#endif
