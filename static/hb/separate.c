/* Pairs that creation and joins leave open: different bytes after all, or order by something that one waits for. */
#include "static/hb/private.h"

bool hb_separate(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb)
{
    hb_point at = {a->instance, a->insn}, bt = {b->instance, b->insn};
    if (hb_specific(h, h->extents.data[pa->extent].object)) return true; /* of what one thread has set for a key: its own */
    return hb_gifts_apart(h, x, a, pa, y, b, pb) || hb_tokens_order(h, x, at, y, bt) || hb_turns_order(h, x, at, y, bt) ||
           hb_barriers_order(h, x, at, y, bt);
}
