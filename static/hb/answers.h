/* Inside static/hb: what pointers say of accesses, and have said the last time (answers.c). */
#ifndef RACE_HB_ANSWERS_H
#define RACE_HB_ANSWERS_H

#include "static/hb/memo.h"

/* Requires instances. */
void hb_answers_open(hb *h);
/* Hands everything over to the next analysis. */
void hb_answers_close(hb *h);

enum { HB_MOST_PLACES = 48 }; /* an access that may be to more places than this is as good as unknown */

typedef struct {
    pta_operand what;
    uint32_t stride;
    const pta_access *access; /* NULL: it is the argument of a library function, with PTA_SAME */
} hb_question;

/* From here on it is an instance that is asked about. */
void hb_answers_begin(hb *h, uint32_t instance);
/* What it may be to; valid until the next question, not to be freed. False: to too many places. */
bool hb_answers_next(hb *h, const hb_question *q, pta_places *out);

#endif
