/* The symbols of object files, resolved as the linker would. */
#include "static/pointer/link.h"

#include <stdlib.h>

#include "static/pointer/maps.h"

typedef enum { WEAK, COMMON, STRONG } strength;

typedef struct {
    const char *name; /* NULL: free */
    uint32_t module;
    const image_symbol *symbol;
    strength strength;
} definition;

struct link_map {
    definition *all; /* open hashing */
    uint32_t capacity;
};

static definition *find(const link_map *map, const char *name)
{
    if (!map->capacity) return NULL;
    uint64_t at = names_hash(name) & (map->capacity - 1);
    while (map->all[at].name && strcmp(map->all[at].name, name))
        at = (at + 1) & (map->capacity - 1);
    return &map->all[at];
}

static strength strength_of(const image *img, const image_symbol *symbol)
{
    const image_section *section = symbol->type == IMAGE_SYM_TLS ? NULL : image_section_at(img, symbol->addr);
    if (section && !strcmp(section->name, "*common*")) return COMMON;
    return symbol->bind == IMAGE_BIND_WEAK ? WEAK : STRONG;
}

static bool is_global(const image *img, const image_symbol *symbol)
{
    return img->kind == IMAGE_OBJECT && symbol->bind != IMAGE_BIND_LOCAL && *symbol->name;
}

link_map *link_open(lift_module **modules, uint32_t count)
{
    link_map *map = base_alloc_zero(1, sizeof *map);
    uint32_t total = 0;
    for (uint32_t m = 0; m < count; m++)
        total += modules[m]->img->kind == IMAGE_OBJECT ? modules[m]->img->symbol_count : 0;
    if (!total) return map;
    for (map->capacity = 64; map->capacity < total * 2; map->capacity *= 2)
        continue;
    map->all = base_alloc_zero(map->capacity, sizeof *map->all);
    for (uint32_t m = 0; m < count; m++) {
        const image *img = modules[m]->img;
        for (uint32_t i = 0; i < img->symbol_count; i++) {
            const image_symbol *symbol = &img->symbols[i];
            if (!is_global(img, symbol)) continue;
            definition *d = find(map, symbol->name), own = {symbol->name, m, symbol, strength_of(img, symbol)};
            bool larger = d->name && own.strength == COMMON && d->strength == COMMON && symbol->size > d->symbol->size;
            if (!d->name || own.strength > d->strength || larger) *d = own;
        }
    }
    return map;
}

void link_close(link_map *map)
{
    if (!map) return;
    free(map->all);
    free(map);
}

bool link_is_chosen(const link_map *map, uint32_t module, const image_symbol *symbol)
{
    const definition *d = find(map, symbol->name);
    return d && d->name && d->module == module && d->symbol == symbol;
}

bool link_defines(const link_map *map, const char *name)
{
    const definition *d = find(map, name);
    return d && d->name;
}
