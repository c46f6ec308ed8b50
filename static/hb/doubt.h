/* Inside static/hb: code that a thread comes to only against what it has tested, or been told, before. */
#ifndef RACE_HB_DOUBT_H
#define RACE_HB_DOUBT_H

#include "static/hb/private.h"
#include "static/hb/value.h"

/* A set of values: bits for 0 to 62, and one for all others. */
enum { HB_NUMBERS = 63, HB_OTHERS = 63 };
static const uint64_t HB_ANY = UINT64_MAX;

/* --- doubt.c ---- */
uint64_t hb_values_of(const value_condition *c); /* with which it holds; requires that it compares with a number */
/* Of blocks that code leads to, `at` has 0 for those that the origin does not come to. */
void hb_doubt_blocks(hb *h, uint32_t origin, uint32_t instance, const uint64_t *at);
bool hb_is_doubted(const hb *h, uint32_t origin, uint32_t instance, uint32_t block);

/* --- flag.c, mode.c: they note what they find by hb_doubt_blocks ---- */
void hb_flags_find(hb *h, uint32_t origin);
void hb_modes_find(hb *h, uint32_t origin);
void hb_modes_close(hb *h);

#endif
