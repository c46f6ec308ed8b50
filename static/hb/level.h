/* Inside static/hb: how far from its begin an origin runs what. */
#ifndef RACE_HB_LEVEL_H
#define RACE_HB_LEVEL_H

#include "static/hb/private.h"

enum { HB_MOST_LEVELS = 400 };

/* Per instance that the origin runs: one more than the most that a caller of it has, without those that create threads;
 * 0: it has no such number, since it takes part in a cycle of calls, or a caller has as many as there are. free() the
 * result. */
uint16_t *hb_levels(const hb *h, uint32_t origin);

#endif
