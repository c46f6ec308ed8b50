/* What each thread of a kind is given for its own by the loop that creates it. */
#ifndef RACE_HB_GIFT_H
#define RACE_HB_GIFT_H

#include "static/hb/counter.h"
#include "static/hb/private.h"

typedef enum { GIFT_NONE, GIFT_FRESH, GIFT_ELEMENT, GIFT_NUMBER } gift_kind;

typedef struct { /* what the creator passes as one parameter */
    uint8_t kind;
    uint8_t param;    /* of the thread's entry */
    hb_point site;    /* of the creation */
    value_sum sum;    /* in the creator */
    ir_value counter; /* GIFT_ELEMENT, GIFT_NUMBER: the leaf that counts */
    int64_t step;     /* bytes, or numbers, between two threads */
    int64_t count;    /* GIFT_NUMBER: the numbers are below this; 0: not known */
    uint32_t object;  /* GIFT_FRESH, GIFT_ELEMENT */
    int64_t delta;    /* of a handler: what it is given is so much behind what its thread was given */
} gift;

struct hb_gifts {
    gift *of; /* per origin: of its first parameter that is one */
    map64 own; /* instance * 8 + parameter: number in deltas + 1, 0: not the thread's own */
    VEC(int64_t) deltas;
};

/* The parameter of a function that a value is on entry to it, or -1. */
int gift_param(const ir_func *ir, ir_value leaf);
/* A parameter that in all calls is the thread's argument plus a constant. */
bool gift_is_own(const hb *h, uint32_t instance, int param, int64_t *delta);

/* Whether a thread may be alive when the loop that creates it is entered once more, and counts from the start again. */
bool gift_counts_again(const hb *h, uint32_t origin, hb_point site, uint32_t loop);

/* --- task.c ---- */
/* A word of the block of a task that a loop has filled with what counts: by how much it grows from one task to the next. */
bool task_counts(const hb *h, uint32_t origin, uint32_t instance, ir_value leaf, int64_t *step);

/* --- number.c ---- */
void hb_numbers_open(hb *h);
void hb_numbers_close(hb *h);
/* Two threads of a kind, by their numbers, access different bytes, or are one. */
bool hb_numbers_apart(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b);
/* The creator of numbered threads has waited for those that could meet its access. */
bool hb_numbers_joined(hb *h, uint32_t creator, const hb_touch *a, uint32_t thread, const hb_touch *b);
/* The access cannot be at that place: it lies in front of all that it may reach. */
bool hb_numbers_behind(hb *h, uint32_t origin, const hb_touch *t, const hb_place *p);
bool hb_constants_apart(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b);
/* A thread that is created with a constant never comes to a point, or over an edge: a branch on it says so. */
bool hb_constant_never(hb *h, uint32_t origin, hb_point at);
bool hb_constant_closes(hb *h, uint32_t origin, uint32_t instance, uint32_t from, uint32_t edge); /* requires hb_has_constant */
bool hb_has_constant(const hb *h, uint32_t origin);


/* --- joined.c ---- */
/* On all ways to a point, the creator of numbered threads has joined those with the numbers [low, high]. */
bool hb_joined_before(const hb *h, uint32_t creator, hb_point at, uint32_t thread, int64_t low, int64_t high);

#endif
