/* A hash map from 64-bit keys to 32-bit numbers; keys are never removed. */
#ifndef RACE_POINTER_MAP_H
#define RACE_POINTER_MAP_H

#include <stdlib.h>

#include "static/base/base.h"

enum { MAP_NONE = UINT32_MAX };

typedef struct {
    uint64_t *keys;   /* UINT64_MAX: free */
    uint32_t *values;
    uint32_t count, capacity;
} map64;

static inline uint64_t map_hash(uint64_t key)
{
    key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 32;
}

/* The value of a key, which is MAP_NONE when it is new; valid until the next call. */
static inline uint32_t *map_at(map64 *map, uint64_t key)
{
    if (map->count * 2 >= map->capacity) {
        map64 bigger = {.capacity = map->capacity ? map->capacity * 2 : 256};
        bigger.keys = base_alloc((size_t)bigger.capacity * sizeof *bigger.keys);
        bigger.values = base_alloc((size_t)bigger.capacity * sizeof *bigger.values);
        memset(bigger.keys, 0xff, (size_t)bigger.capacity * sizeof *bigger.keys);
        for (uint32_t i = 0; i < map->capacity; i++) {
            if (map->keys[i] == UINT64_MAX) continue;
            uint64_t at = map_hash(map->keys[i]) & (bigger.capacity - 1);
            while (bigger.keys[at] != UINT64_MAX)
                at = (at + 1) & (bigger.capacity - 1);
            bigger.keys[at] = map->keys[i];
            bigger.values[at] = map->values[i];
        }
        bigger.count = map->count;
        free(map->keys);
        free(map->values);
        *map = bigger;
    }
    uint64_t at = map_hash(key) & (map->capacity - 1);
    while (map->keys[at] != UINT64_MAX && map->keys[at] != key)
        at = (at + 1) & (map->capacity - 1);
    if (map->keys[at] == UINT64_MAX) {
        map->keys[at] = key;
        map->values[at] = MAP_NONE;
        map->count++;
    }
    return &map->values[at];
}

static inline uint32_t map_get(const map64 *map, uint64_t key)
{
    if (!map->capacity) return MAP_NONE;
    uint64_t at = map_hash(key) & (map->capacity - 1);
    while (map->keys[at] != UINT64_MAX && map->keys[at] != key)
        at = (at + 1) & (map->capacity - 1);
    return map->keys[at] == key ? map->values[at] : MAP_NONE;
}

static inline void map_free(map64 *map)
{
    free(map->keys);
    free(map->values);
    *map = (map64){0};
}

#endif
