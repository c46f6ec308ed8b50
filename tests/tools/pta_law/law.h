/* Inside pta_law: random edits, and what must hold after them. */
#ifndef RACE_TEST_LAW_H
#define RACE_TEST_LAW_H

#include "tests/lib/pta_tool.h"

typedef VEC(pta_edit) edit_list;

/* --- edits.c ------------------------------------------------------------------------------------------------------ */

typedef struct edits edits;

/* Adds variants of statements to the program, all of them dead: what replacements put in place of the original. So it
 * comes before every analysis of the program. */
edits *edits_open(pta_program *program, uint64_t seed);
/* Edits prefer functions that the analysis reaches. */
void edits_prefer(edits *e, const pta *p);
void edits_close(edits *e);
/* Random edits as one list for pta_update; it is taken as done. An edit is a statement, call, allocation or whole
 * function that goes or comes back, or a statement that another one takes the place of. */
void edits_next(edits *e, uint32_t count, edit_list *out);
/* How many edits an update has: mostly few, at most `most`. */
uint32_t edits_batch(uint64_t *state, uint32_t most);

/* --- trial.c ------------------------------------------------------------------------------------------------------ */

enum { LAW_THREADS = 4 };

typedef struct {
    pta_program *program;
    pta_options options;
    int threads[LAW_THREADS]; /* an analysis for each number; from scratch with the first, and `once` with the last */
    uint32_t thread_count;
    bool *start; /* the dead statements before all edits, all functions in order */
    double update_seconds, scratch_seconds, worst;
} law;

typedef struct {
    pta *analyses[LAW_THREADS];
} law_state;

typedef enum { LAW_HOLDS, LAW_UPDATED, LAW_SCRATCH, LAW_STOPPED } law_verdict;

bool *law_flags(const pta_program *program); /* free() the result */
int law_open(law *l, law_state *s, race_error *error);
void law_close(law *l, law_state *s);
/* One change, in each of the analyses. */
int law_update(law *l, law_state *s, const pta_edit *list, uint32_t count, race_error *error);
/* LAW_UPDATED: an updated analysis is not what it is from scratch; LAW_SCRATCH: two from scratch differ. `text`: which.
 */
law_verdict law_check(law *l, const law_state *s, char *text, size_t size);
/* The last change is taken back, but interrupted: the statements stay as they were, and the next change finds their result.
 * `stop` is what interrupts the analyses. */
law_verdict law_interrupt(law *l, law_state *s, const edit_list *last, volatile int *stop, char *text, size_t size);

typedef struct {
    VEC(edit_list) updates; /* the first: what is different from the start before anything is analysed */
} law_history;

void law_history_clear(law_history *h);
void law_history_add(law_history *h, const edit_list *list);
/* A history that begins with the program as it is now. */
void law_history_begin(const law *l, law_history *h);
/* What becomes of the program, from its start, when it has had this history; it stays as it is then. */
law_verdict law_replay(law *l, const law_history *h, law_verdict wanted, char *text, size_t size);
/* Fewer edits after which the law still does not hold, looking for that many seconds at most; prints them. */
void law_shrink(law *l, law_history *h, law_verdict verdict, double seconds);
void law_print(const law *l, const law_history *h);
/* What law_print has printed; -1: not that. */
int law_read(const law *l, const char *path, law_history *h);

#endif
