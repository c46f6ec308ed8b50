/* Inside static/lift: what is known while the functions of a module are being found.
 *
 *   discover.c  the steps, and between them rounds of building until nothing changes
 *   seed.c      what the file says: symbols, frame descriptions, entry points
 *   parts.c     which frame descriptions are cold parts of functions
 *   gaps.c      functions in code that nothing explains, by pointers or by their looks */
#ifndef RACE_DISCOVER_H
#define RACE_DISCOVER_H

#include "static/lift/flow.h"

typedef struct {
    uint64_t addr;
    uint32_t found; /* FOUND_* */
} start;

typedef struct {
    uint64_t start, end;
} piece;

typedef VEC(piece) pieces;

typedef struct {
    flow_space *space;
    int jobs;
    flow_scratch **scratch; /* per thread */
    uint64_t *entries;      /* sorted; the three arrays go together */
    uint32_t *found;
    flow_func *funcs; /* func NULL: to be built */
    uint32_t count, cap;
    VEC(start) fresh;          /* starts found, not yet among the entries */
    uint64_t *called, *jumped; /* bit per code byte: the target of a call, of a tail jump */
    uint64_t *pointed, *named; /* of a pointer in data, of an address that code takes */
    uint32_t builds;           /* rounds of building so far */
    uint64_t work, most_work;  /* done so far, and when to give up; in instructions decoded or gone over */
    uint64_t insns;            /* of all functions that are built */
    bool crowded;              /* too many: functions keep to their own code */
    bool gave_up;              /* what is built from now on is built once, and nothing else is looked for */
    uint64_t trials;           /* instructions that may yet be decoded to see whether they are a function */
} finder;

static inline void finder_add(finder *f, uint64_t addr, uint32_t found)
{
    vec_push(&f->fresh, (start){addr, found});
}

/* Index of the function that starts at addr, or f->count. */
uint32_t finder_index(const finder *f, uint64_t addr);
/* Builds what is not built, decides which functions return, and builds again what hangs on it, until nothing changes.
 */
void finder_settle(finder *f);
/* Builds again what has tables without exact size, or jumps that may be such. */
void finder_settle_tables(finder *f);
/* Forgets the functions that call or jump to an address with a bit in `changed`. */
void finder_forget_callers(finder *f, const uint64_t *changed);
/* Forgets functions whose tables may come out otherwise when more is known. */
void finder_forget_unsettled(finder *f);

void seed_starts(finder *f);
/* Adds the jump tables of all functions. */
void add_tables(const finder *f, pieces *out);
/* Fills f->pointed and f->named. The entries of jump tables are no pointers. */
void note_pointers(finder *f);
/* Takes the parts out of the list, and adds what is none; what jumps to them is to be built again. Requires
 * note_pointers. */
void drop_parts(finder *f);
/* Requires note_pointers; leaves it true. */
void search_gaps(finder *f);
/* The end of a function without frame description, with the code behind its last block that is not reached. */
uint64_t gap_extend_end(const finder *f, const lift_func *func);

static inline int piece_order(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

#endif
