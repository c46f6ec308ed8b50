/* Inside static/hb: regions that the last analyses have found (memo.c). */
#ifndef RACE_HB_MEMO_H
#define RACE_HB_MEMO_H

#include "static/hb/private.h"

/* Requires calls and instances. */
void hb_memo_begin(hb *h);
/* 0: what this walk finds is not kept. */
uint64_t hb_memo_key(const hb *h, const hb_walk *walk, const hb_point *starts, uint32_t count);
bool hb_memo_find(const hb *h, uint64_t key, hb_region *out);
void hb_memo_keep(const hb *h, uint64_t key, const hb_region *region);

#endif
