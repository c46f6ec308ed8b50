/* What each thread of a kind has for its own: accesses that look alike but are never to the same bytes. */
#include "static/hb/private.h"

bool hb_separate(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb)
{
    (void)h, (void)x, (void)a, (void)pa, (void)y, (void)b, (void)pb;
    return false;
}
