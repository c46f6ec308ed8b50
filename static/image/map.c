/* A hash table from numbers to numbers, open addressing. */
#include "static/image/dwarf.h"

static uint32_t map_slot(const map64 *map, uint64_t key)
{
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (map->size - 1);
    while (map->keys[at] && map->keys[at] != key)
        at = (at + 1) & (map->size - 1);
    return at;
}

uint64_t *map64_find(const map64 *map, uint64_t key)
{
    if (!map->count || !key) return NULL;
    uint32_t at = map_slot(map, key);
    return map->keys[at] ? &map->values[at] : NULL;
}

uint64_t *map64_add(map64 *map, uint64_t key)
{
    if (map->count >= map->size / 2) {
        map64 larger = {.size = map->size ? map->size * 2 : 64, .count = map->count};
        larger.keys = base_alloc_zero(larger.size, sizeof *larger.keys);
        larger.values = base_alloc_zero(larger.size, sizeof *larger.values);
        for (uint32_t i = 0; i < map->size; i++) {
            if (!map->keys[i]) continue;
            uint32_t at = map_slot(&larger, map->keys[i]);
            larger.keys[at] = map->keys[i];
            larger.values[at] = map->values[i];
        }
        free(map->keys);
        free(map->values);
        *map = larger;
    }
    uint32_t at = map_slot(map, key);
    if (!map->keys[at]) {
        map->keys[at] = key;
        map->count++;
    }
    return &map->values[at];
}

void map64_free(map64 *map)
{
    free(map->keys);
    free(map->values);
    *map = (map64){0};
}
