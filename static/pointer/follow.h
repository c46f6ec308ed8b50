/* Inside follow.c, match.c and view.c: an analysis that goes from program to program.
 *
 * Programs are made anew, with new numbers; the analysis keeps one of its own, in which what stays the same keeps its
 * number. What is gone leaves a hole: dead statements, functions, sites and calls that nothing mentions. What comes
 * back finds its old place. */
#ifndef RACE_POINTER_FOLLOW_H
#define RACE_POINTER_FOLLOW_H

#include "static/pointer/graph.h"
#include "static/pointer/says.h"

enum { FOLLOW_NONE = UINT32_MAX };

typedef struct {     /* a function of the own program */
    uint64_t says;   /* hash of its statements, as the program that is shown has them; 0: it is not there */
    uint32_t *vars;  /* by variable of the program that is shown: its own number; NULL: all are the same */
    uint32_t *stmts; /* the same of statements */
    uint32_t *shown; /* by own statement: its number there, or FOLLOW_NONE; NULL: the same */
    uint32_t var_count, stmt_count; /* there */
} follow_func;

typedef struct {
    uint32_t *in, *out; /* shown to own, own to shown: FOLLOW_NONE where there is none */
    uint32_t in_count, out_count;
} follow_map;

struct follow {
    pta_program *own, *shown;
    VEC(follow_func) funcs;   /* by own number */
    VEC(uint64_t) makes;      /* by own call: what its result is declared to point to, as a hash */
    VEC(bool) gone;           /* by own site: its shape is a copy */
    map64 func_ids, site_ids; /* own numbers by identity */
    follow_map func, site, call;
    bool broken; /* it was interrupted */
};

/* --- match.c ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    struct follow *w;
    saying *says;
    update_plan *plan;
} follow_work;

/* A hash of the statements of a function that is shown, by own numbers of what they mention. */
uint64_t match_says(follow_work *k, uint32_t shown);
/* The statements of a function become those of the one that is shown: what they are not yet is added to the plan. */
void match_function(follow_work *k, uint32_t own, uint32_t shown);
/* Of a function whose statements are the same: its calls. */
void match_calls(follow_work *k, uint32_t own, uint32_t shown);

/* --- follow.c ----------------------------------------------------------------------------------------------------------- */

/* An analysis that was just opened gets a program of its own. */
void follow_open(pta *p);
void follow_close(struct follow *w);

#endif
