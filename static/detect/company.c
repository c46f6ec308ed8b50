/* Companies: the stances (hb_stance) of accesses that are paired with others, as a set. Most groups of accesses of a
 * large program are run by few sets of threads; whether two sets can meet at all, and whom of a set a thread can meet,
 * is asked once. */
#include "static/detect/private.h"

enum { FEW = 1024 };
enum { MOST_MEETINGS = 64 }; /* of a company, as bits */

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static uint32_t size_of(const detect_companies *all, uint32_t company)
{
    return all->first.data[company + 1] - all->first.data[company];
}

uint32_t detect_company_number(detect_companies *all, hb_numbers *stances)
{
    uint32_t count = 0;
    if (!all->first.len) vec_push(&all->first, 0);
    bool sorted = true;
    for (uint32_t i = 1; i < stances->len && sorted; i++)
        sorted = stances->data[i - 1] <= stances->data[i];
    if (!sorted) qsort(stances->data, stances->len, sizeof *stances->data, by_number);
    for (uint32_t i = 0; i < stances->len; i++)
        if (!i || stances->data[i] != stances->data[count - 1]) stances->data[count++] = stances->data[i];
    stances->len = count;
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = map_hash(hash * 31 + stances->data[i]);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&all->numbers, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = all->first.len - 1;
            for (uint32_t i = 0; i < count; i++)
                vec_push(&all->stances, stances->data[i]);
            vec_push(&all->first, all->stances.len);
            return *at;
        }
        const uint32_t *own = all->stances.data + all->first.data[*at];
        if (size_of(all, *at) == count && (!count || !memcmp(own, stances->data, count * sizeof *own))) return *at;
    }
}

static bool same_thread(const detect *d, uint32_t x, uint32_t y)
{
    uint32_t count;
    return detect_same_thread(hb_origins(d->h, &count), hb_stance_origin(d->h, x), hb_stance_origin(d->h, y));
}

static detect_meeting find_meeting(const detect *d, const detect_companies *all, uint32_t a, uint32_t b)
{
    detect_meeting found = DETECT_MEET_NEVER;
    for (uint32_t i = all->first.data[a]; i < all->first.data[a + 1]; i++)
        for (uint32_t k = all->first.data[b]; k < all->first.data[b + 1]; k++) {
            const char *why;
            hb_meeting how = HB_MEET_WILD;
            uint32_t x = all->stances.data[i], y = all->stances.data[k];
            if (same_thread(d, x, y) || hb_stances_ordered(d->h, x, y, &why, &how)) continue;
            if (how != HB_MEET_WILD) return DETECT_MEET_SURE;
            found = DETECT_MEET_UNSURE;
        }
    return found;
}

detect_meeting detect_companies_meet(const detect *d, detect_companies *all, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    if (high < FEW) {
        if (!all->few_pairs) all->few_pairs = base_alloc_zero(FEW * FEW, 1);
        uint8_t *few = &all->few_pairs[low * FEW + high];
        if (!*few) *few = (uint8_t)(find_meeting(d, all, low, high) + 1);
        return (detect_meeting)(*few - 1);
    }
    uint32_t *known = map_at(&all->pairs, (uint64_t)low << 32 | high);
    if (*known == MAP_NONE) *known = find_meeting(d, all, low, high);
    return (detect_meeting)*known;
}

uint64_t detect_company_meetings(const detect *d, detect_companies *all, uint32_t stance, uint32_t company)
{
    if (size_of(all, company) > MOST_MEETINGS) return UINT64_MAX;
    uint32_t *known = map_at(&all->meetings_of, (uint64_t)stance << 32 | company);
    if (*known != MAP_NONE) return all->meetings.data[*known];
    *known = all->meetings.len;
    uint64_t meets = 0;
    for (uint32_t i = 0; i < size_of(all, company); i++) {
        const char *why;
        hb_meeting how;
        uint32_t other = all->stances.data[all->first.data[company] + i];
        if (!same_thread(d, stance, other) && !hb_stances_ordered(d->h, stance, other, &why, &how)) meets |= 1ull << i;
    }
    vec_push(&all->meetings, meets);
    return meets;
}

uint8_t detect_company_place(const detect_companies *all, uint32_t company, uint32_t stance)
{
    const uint32_t *stances = all->stances.data + all->first.data[company];
    uint32_t at = 0, end = size_of(all, company);
    if (end > MOST_MEETINGS) return 0;
    while (end - at > 1) { /* they are sorted, and it is one of them */
        uint32_t middle = at + (end - at) / 2;
        if (stances[middle] <= stance)
            at = middle;
        else
            end = middle;
    }
    return (uint8_t)at;
}

void detect_companies_close(detect_companies *all)
{
    vec_free(&all->stances);
    vec_free(&all->first);
    vec_free(&all->meetings);
    map_free(&all->numbers);
    map_free(&all->pairs);
    map_free(&all->meetings_of);
    free(all->few_pairs);
}
