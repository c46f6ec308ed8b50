/* What one thread puts in and another takes out: semaphores, messages, signals. */
#ifndef RACE_HB_CHANNEL_H
#define RACE_HB_CHANNEL_H

#include "static/hb/private.h"
#include "static/hb/value.h"

typedef enum { CHANNEL_SEMAPHORE, CHANNEL_DESCRIPTOR, CHANNEL_EVENTS, CHANNEL_MESSAGES, CHANNEL_SIGNAL } channel_kind;

typedef struct { /* an edge of the control flow */
    uint32_t instance, block, edge;
    int64_t equals; /* what the result of the call was found to be; -1: in a range only */
} hb_edge;
typedef VEC(hb_edge) hb_edges;

static inline bool hb_edges_have(const hb_edges *edges, uint32_t instance, uint32_t block, uint32_t edge)
{
    for (uint32_t i = 0; i < edges->len; i++)
        if (edges->data[i].instance == instance && edges->data[i].block == block && edges->data[i].edge == edge) return true;
    return false;
}

typedef struct {
    uint8_t kind;
    uint32_t object;  /* the semaphore, or the variable that holds its second descriptor; HB_NONE: `at` says which call or signal */
    int64_t at;
    int64_t first;    /* what is in it at first; < 0: not known */
    int64_t unit;     /* bytes that one operation moves; < 0: not known yet */
    bool counted;     /* each post puts in one, each wait takes one out, and no others are known */
    bool open;        /* other processes know it by its name */
    bool parted;      /* what is received is one message as it was sent */
    hb_points posts;
    hb_points waits;  /* calls that come back with one */
    hb_edges edges;   /* of calls that may fail: where they have not */
    hb_numbers cutters; /* instances with waits or edges */
} hb_channel;
typedef VEC(hb_channel) hb_channel_list;

hb_channel_list *hb_channels(const hb *h);
/* The channel that a call sends to, or receives from; negative: it is not known. */
int32_t hb_channel_of(hb *h, uint32_t instance, const hb_call *call, bool sends);

/* Whether what a branch has found of a result means what `when` asks for. */
bool hb_condition_means(const value_condition *c, uint8_t when);
/* The edges on which a call has done what `when` asks for. */
void hb_success_edges(const hb *h, uint32_t instance, const hb_call *call, uint8_t when, hb_edges *out);

/* --- echo.c ---- */
/* Adds those that can only be passed when one of the others has been passed. */
void hb_echo_edges(const hb *h, hb_edges *edges);
/* The same for the edges of a call, from `first` on, that are passed at once. */
void hb_repeat_edges(const hb *h, uint32_t instance, hb_edges *edges, uint32_t first);

/* --- publish.c ---- */
typedef struct {
    const hb_touch *touch;     /* the load */
    value_condition condition; /* what was found: not zero */
} hb_look;
typedef struct { /* a branch finds that a variable, of which there is one and which begins with zero, is set */
    hb_look look;
    hb_edge edge; /* on which it is */
} hb_looking;
/* All of them, by instance and edge; hb_tokens_open finds them. */
const hb_looking *hb_lookings(hb *h, uint32_t *count);
/* Who sets the variable to something else than zero. False: they and the one who looks at it do not agree on a lock, or on atomics.
 * `locked` becomes false when it is not a lock. */
bool hb_setters(hb *h, const hb_touch *look, const hb_place *place, hb_points *out, bool *locked);

/* What an instruction stores is zero. */
bool hb_stores_zero(const hb *h, const hb_touch *t);

/* --- join.c ---- */
/* The calls that wait for a thread of which there is only one, by whomever. */
void hb_joins_of(const hb *h, uint32_t thread, hb_points *waits, hb_edges *edges);

#endif
