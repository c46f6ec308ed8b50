/* Names and what they stand for: open hashing, nothing is ever taken out. */
#include "static/pointer/maps.h"

#include <stdlib.h>

uint64_t names_hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h ^ h >> 32;
}

name_entry *names_find(const name_map *map, const char *name)
{
    if (!map->capacity) return NULL;
    for (uint64_t at = names_hash(name) & (map->capacity - 1); map->entries[at].name; at = (at + 1) & (map->capacity - 1))
        if (!strcmp(map->entries[at].name, name)) return &map->entries[at];
    return NULL;
}

name_entry *names_add(name_map *map, name_entry entry)
{
    if (map->count * 2 >= map->capacity) {
        name_map bigger = {.capacity = map->capacity ? map->capacity * 2 : 64};
        bigger.entries = base_alloc_zero(bigger.capacity, sizeof *bigger.entries);
        for (uint32_t i = 0; i < map->capacity; i++)
            if (map->entries[i].name) names_add(&bigger, map->entries[i]);
        free(map->entries);
        *map = bigger;
    }
    uint64_t at = names_hash(entry.name) & (map->capacity - 1);
    while (map->entries[at].name)
        at = (at + 1) & (map->capacity - 1);
    map->entries[at] = entry;
    map->count++;
    return &map->entries[at];
}
