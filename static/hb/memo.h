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

/* The same for walks of which no region is kept, since they stop in the middle of blocks: what was found with them, as bits. The key is
 * the asker's, of hb_memo_mix and, for where a point lies among the blocks and calls of its function, hb_memo_point. */
static inline uint64_t hb_memo_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u ^ hash >> 32;
}
uint64_t hb_memo_point(const hb *h, hb_point at, uint64_t hash);
bool hb_memo_told(const hb *h, uint64_t key, uint64_t *bits, uint32_t words);
void hb_memo_tell(const hb *h, uint64_t key, const uint64_t *bits, uint32_t words);

/* What answers.c keeps, or NULL; of no memo NULL. */
struct hb_answers **hb_memo_answers(hb_memo *m);
void hb_answers_free(struct hb_answers *all);

/* What was taken over is not what is found (hb_options.recheck): ends the program. */
void hb_memo_differs(const char *what);

#endif
