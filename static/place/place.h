/* static/place: where checks go. From a lifted module to a plan (include/race/plan.h).
 *
 *   operand.c   the memory operands of one machine instruction, as actions of a plan
 *   every.c     place_every: a check at every access that another thread might touch
 *   draft.c     the plan while it is being made: sites, actions, sources, objects, strings
 *   declared.c  which accesses are of what is declared as atomic
 *   opinion.c   what the analysis thinks of each instruction: warnings, and claims for an audit
 *   unwind.c    how to find callers, from the module's unwind tables
 *   write.c     its bytes, and the file
 *
 * The expressions of a plan are over machine registers, so they come from the instruction itself and not from the IR;
 * the IR says which accesses need no check. */
#ifndef RACE_PLACE_H
#define RACE_PLACE_H

#include "include/race/plan.h"
#include "static/lift/lift.h"

/* --- one instruction (operand.c) ---------------------------------------------------------------------------------- */

enum { PLACE_OPERANDS = 4 };

typedef struct {
    plan_action action; /* a PLAN_CHECK, PLAN_READ and PLAN_WRITE as the decoder says */
    bool known;         /* false: no expression of a plan says which bytes (gather, scatter, masked moves, xlat) */
} place_operand;

typedef struct {
    place_operand operands[PLACE_OPERANDS]; /* without the stack accesses of push, pop, call, ret, enter, leave */
    unsigned operand_count;
    bool is_vector;   /* works on vector registers: no compiler makes an atomic access of it */
    bool is_exchange; /* cmpxchg: its store may not happen, but the processor always does a write cycle */
    bool is_repeated;
    bool is_ordering; /* may order something, or enters the kernel */
    uint32_t writes;  /* general registers, by their machine numbers */
} place_insn;

/* False: it cannot be decoded. */
bool place_decode(const image *img, const lift_insn *insn, place_insn *out);

/* --- the draft (draft.c) ------------------------------------------------------------------------------------------ */

typedef struct place_table place_table; /* from contents to numbers */

typedef struct {
    const image *img;
    VEC(plan_site) sites; /* in any order, and several for one address, until draft_finish */
    VEC(plan_action) actions;
    VEC(plan_source) sources;
    VEC(plan_object) objects;
    VEC(char) strings;
    VEC(plan_unwind) unwind;
    place_table *known_sources, *known_strings;
    uint64_t planned, local, unplanned, functions;
    bool only_atomics;
} plan_draft;

void draft_start(plan_draft *draft, const image *img);
void draft_free(plan_draft *draft);
uint32_t draft_string(plan_draft *draft, const char *text);
/* The source of an instruction plus 1: its line and the inlined frames around it; 0 when nothing is known. */
uint32_t draft_source(plan_draft *draft, const lift_func *func, uint64_t addr);
/* Sorts the sites; of several for one instruction (code that two functions share) one is made that is right for both.
 * Adds the module's data objects. */
void draft_finish(plan_draft *draft);

/* --- callers (unwind.c) ------------------------------------------------------------------------------------------- */

void draft_unwind(plan_draft *draft); /* all rows of the module; by draft_finish */

/* --- opinions (opinion.c) ----------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t addr; /* of an instruction */
    char *ids;     /* of the warnings that it takes part in, separated by blanks; NULL: none */
    uint8_t read_claim, write_claim; /* PLAN_CLAIM_*: why its read, its write, cannot race */
    bool decided;  /* PLAN_DECIDED */
} place_opinion;
typedef VEC(place_opinion) place_opinions; /* by address */

/* Analyses the module by itself. An error leaves it empty. */
int place_ask(lift_module *module, int jobs, place_opinions *out, race_error *error);
const place_opinion *place_opinion_at(const place_opinions *all, uint64_t addr); /* or NULL */
void place_opinions_free(place_opinions *all);

/* --- declarations (declared.c) ------------------------------------------------------------------------------------ */

typedef struct {
    VEC(uint64_t) atomics; /* instructions that access what is declared as atomic, by address */
    image_held *held;      /* pointers to something atomic in registers, by address */
    uint32_t held_count;
    uint64_t longest;      /* bytes of code that one of them holds for, at most */
} place_declared;
void place_declared_open(lift_module *module, int jobs, place_declared *out);
void place_declared_close(place_declared *d);
/* Whether an access of the instruction at an address is of something that is declared as atomic, as far as debug information tells. */
bool place_is_atomic(const place_declared *d, uint64_t addr, const plan_action *a);

/* --- placement (every.c) ------------------------------------------------------------------------------------------ */

/* A check at every access, except those that certainly are of this thread alone or of memory that nobody writes; atomic
 * accesses become synchronisation. Requires a module lifted with IR. The draft is started and finished here. */
typedef struct {
    const place_opinions *opinions; /* noted at the sites; or NULL */
    bool only_warned; /* only accesses that take part in warnings are checked */
    bool claims; /* accesses that need no check become sites too, and what cannot race says so, with the reason as their claim:
                    for an audit */
    bool only_atomics; /* of a library that is not to be checked: only its atomic instructions; the IR of its functions is built here */
    int jobs;    /* 0: all cores */
} place_options;
void place_every(lift_module *module, const place_options *options, plan_draft *draft);

/* Modules whose code is not checked: those with code of Go. Its stacks are small and lie side by side, and its linker leaves calls
 * no more room than they are known to need, so that a check would write over what is next to them; and its atomics are plain
 * moves. place_every has no sites for them either. */
bool place_is_left_out(const image *img);
void place_nothing(const image *img, plan_draft *draft);

/* --- output (write.c) --------------------------------------------------------------------------------------------- */

/* The bytes of the plan; free() the result. Requires draft_finish. */
void *plan_encode(const plan_draft *draft, size_t *size);
/* Writes the file beside and renames it. */
int plan_write(const plan_draft *draft, const char *path, race_error *error);

#endif
