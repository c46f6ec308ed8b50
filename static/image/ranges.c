/* Sorting by address, and lookups by address among ranges that may overlap. */
#include "static/image/private.h"

/* Least significant byte first; bytes in which all keys agree are skipped, so addresses need three or four rounds. */
void sort_keys(sort_key *keys, uint32_t count)
{
    uint64_t all_or = 0, all_and = UINT64_MAX;
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        all_or |= keys[i].key;
        all_and &= keys[i].key;
        sorted &= i == 0 || keys[i - 1].key <= keys[i].key;
    }
    if (sorted) return;
    sort_key *from = keys, *to = base_alloc(count * sizeof *keys), *spare = to;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((((all_or ^ all_and) >> shift) & 0xff) == 0) continue;
        uint32_t place[256] = {0}, sum = 0;
        for (uint32_t i = 0; i < count; i++)
            place[(from[i].key >> shift) & 0xff]++;
        for (unsigned b = 0; b < 256; b++) {
            uint32_t here = place[b];
            place[b] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < count; i++)
            to[place[(from[i].key >> shift) & 0xff]++] = from[i];
        sort_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, count * sizeof *keys);
    free(spare);
}

void sort_ranges(range *ranges, uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count; i++)
        sorted &= ranges[i - 1].start <= ranges[i].start;
    if (sorted) return;
    sort_key *keys = base_alloc(count * sizeof *keys);
    range *copy = base_alloc(count * sizeof *copy);
    memcpy(copy, ranges, count * sizeof *copy);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (sort_key){ranges[i].start, i};
    sort_keys(keys, count);
    for (uint32_t i = 0; i < count; i++)
        ranges[i] = copy[keys[i].id];
    free(copy);
    free(keys);
}

typedef struct {
    VEC(range) out;
    VEC(uint32_t) open; /* ranges that have started, the last on top; those below may have ended */
    const range *in;
} sweep;

/* What holds in [from, to), from the open ranges; those that end on the way are dropped. */
static void sweep_to(sweep *s, uint64_t from, uint64_t to)
{
    while (s->open.len && from < to) {
        const range *top = &s->in[s->open.data[s->open.len - 1]];
        if (top->end <= from) {
            s->open.len--;
            continue;
        }
        uint64_t end = top->end < to ? top->end : to;
        vec_push(&s->out, (range){from, end, top->id});
        from = end;
    }
}

range_map range_map_build(const range *sorted, uint32_t count)
{
    sweep s = {.in = sorted};
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (sorted[i].start >= sorted[i].end) continue;
        sweep_to(&s, at, sorted[i].start);
        at = sorted[i].start;
        vec_push(&s.open, i);
    }
    sweep_to(&s, at, UINT64_MAX);
    vec_free(&s.open);
    return (range_map){s.out.data, s.out.len};
}

const range *range_map_find(const range_map *map, uint64_t addr)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (map->ranges[mid].start <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low && addr < map->ranges[low - 1].end ? &map->ranges[low - 1] : NULL;
}
