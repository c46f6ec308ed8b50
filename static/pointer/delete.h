/* Inside delete.c, repair.c and suspect.c: what is in doubt while something is deleted. */
#ifndef RACE_POINTER_DELETE_H
#define RACE_POINTER_DELETE_H

#include "static/pointer/graph.h"

typedef struct {
    uint64_t rank; /* of the fact when it was asked about */
    uint32_t node;
    pta_key key;
} question;

typedef struct {
    uint32_t node;
    pta_key key;
    bool hope; /* something was seen that may support it */
} suspect;

typedef struct {
    uint32_t node, at; /* in its set */
} fact_place;

struct deletion {
    VEC(question) questions; /* a heap: the oldest fact first, so that what a fact is derived from is decided before it */
    VEC(suspect) suspects;
    id_list waning;       /* instances whose life is suspect */
    uint32_t waned;       /* of them, those whose statements are known to be */
    VEC(fact_place) cleared; /* facts that are suspect no more, of which nobody has heard yet */
    id_list revived;      /* the same of instances */
    uint64_t youngest;    /* rank that was given to one of them */
    id_list dying;        /* instances whose statements have yet to go */
    id_list losers;       /* nodes that have lost keys: graph_node.lost says of which objects */
    id_list woken;        /* nodes that have been wild */
    id_list unborn;       /* instances that nobody older calls */
    id_list doubted;      /* objects that the wilderness may list no more */
    id_list tamed;        /* those that it does not */
    call_list calls;      /* for use at once */
    uint64_t repairs;     /* steps that may yet be made for repairs */
    uint64_t work, most;  /* edges looked at, and how many may be before it is given up */
};

struct deletion *delete_state(pta *p);
/* The fact may have lost its support. */
void delete_question(pta *p, uint32_t node, uint32_t at);
/* An edge does not bring a key any more. */
void delete_ask(pta *p, uint32_t node, pta_key key, uint32_t edge);
/* The facts whose reason an edge was. */
void delete_ask_all(pta *p, uint32_t edge);

/* --- repair.c ----------------------------------------------------------------------------------------------------------- */

/* Whether something younger supports a fact, or a life, that does not depend on it; that is older from then on. NO_EDGE:
 * something over any edge. */
bool repair_fact(pta *p, uint32_t node, uint32_t at, uint32_t over);
bool repair_life(pta *p, uint32_t instance);

/* --- suspect.c ---------------------------------------------------------------------------------------------------------- */

/* A fact for which no support is found that is older. `hope`: something younger is there. */
void suspect_fact(pta *p, uint32_t node, uint32_t at, bool hope);
/* A live instance that has lost a caller, if no older one is left. */
void suspect_life(pta *p, uint32_t instance);
/* The instances of deletion->waning, and of those that they call, that no call from elsewhere leads to. */
void suspect_contexts(pta *p, id_list *invalid);
/* What the statements of an instance of deletion->waning do. */
void suspect_statements(pta *p, uint32_t instance);
/* Clears all suspects that have support from elsewhere. */
void suspect_clear(pta *p);

#endif
