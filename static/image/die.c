/* Debugging entries, read with libdw but walked with care: references may lead in circles, siblings may overlap. */
#include "static/image/cursor.h"
#include "static/image/dwarf.h"

enum { MAX_ORIGINS = 16 };

/* --- map64 ------------------------------------------------------------------------------------------------------- */

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

/* --- units ------------------------------------------------------------------------------------------------------- */

/* Bytes of the abbreviation table at `offset`: what libdw may have to read and keep for a unit that uses it. */
static uint64_t abbreviations_size(const dwarf_copy *copy, uint64_t offset)
{
    const uint8_t *bytes = copy->sections[SECTION_ABBREV].bytes;
    uint64_t size = copy->sections[SECTION_ABBREV].size;
    if (!bytes || offset >= size) return 0;
    cursor c = {.at = bytes + offset, .end = bytes + size};
    while (!c.bad && cursor_uleb(&c)) {
        cursor_uleb(&c); /* tag */
        cursor_skip(&c, 1);
        for (uint64_t name = 1, form = 1; !c.bad && (name || form);) {
            name = cursor_uleb(&c);
            form = cursor_uleb(&c);
            if (form == DW_FORM_implicit_const) cursor_sleb(&c);
        }
    }
    return (uint64_t)(c.at - (bytes + offset));
}

/* Real files have units of more than 64 bytes on average, and abbreviation tables that are smaller than what uses them
 * or shared by all. What goes beyond is made to hurt: libdw keeps a kilobyte per unit and a copy of the table. */
static void units_of(image_dwarf *dwarf, const dwarf_copy *copy, bool types)
{
    uint64_t limit = 1000 + copy->size / 64, budget = 16 * copy->size + (1 << 20);
    uint64_t last_table = UINT64_MAX, last_size = 0;
    Dwarf_Off at = 0, next, table;
    size_t header;
    uint8_t address_size, offset_size;
    Dwarf_Half version;
    uint64_t signature;
    Dwarf_Off type;
    for (; dwarf_next_unit(copy->dw, at, &next, &header, &version, &table, &address_size, &offset_size,
                           types ? &signature : NULL, types ? &type : NULL) == 0;
         at = next) {
        if (table != last_table) last_size = abbreviations_size(copy, table);
        last_table = table;
        if (!limit || budget < last_size || next <= at) {
            dwarf->damaged++;
            return;
        }
        limit--;
        budget -= last_size;
        dwarf_unit unit = {.copy = copy};
        Dwarf_Die *die = types ? dwarf_offdie_types(copy->dw, at + header, &unit.die)
                               : dwarf_offdie(copy->dw, at + header, &unit.die);
        if (!die || address_size != 8 || dwarf_tag(die) == DW_TAG_invalid) {
            dwarf->damaged++;
            continue;
        }
        vec_push(&dwarf->units, unit);
        *map64_add(&dwarf->unit_by_die, (uintptr_t)unit.die.addr) = dwarf->units.len;
    }
}

void units_read(image_dwarf *dwarf)
{
    if (dwarf->units_read) return;
    dwarf->units_read = true;
    if (!dwarf->main.dw) return;
    units_of(dwarf, &dwarf->main, false);
    units_of(dwarf, &dwarf->main, true);
    if (dwarf->alt.dw) units_of(dwarf, &dwarf->alt, false);
}

dwarf_unit *unit_of(image_dwarf *dwarf, Dwarf_Die *die)
{
    Dwarf_Die unit;
    if (!dwarf_diecu(die, &unit, NULL, NULL)) return NULL;
    const uint64_t *number = map64_find(&dwarf->unit_by_die, (uintptr_t)unit.addr);
    return number ? &dwarf->units.data[*number - 1] : NULL;
}

/* --- attributes -------------------------------------------------------------------------------------------------- */

bool die_own_attribute(Dwarf_Die *die, unsigned name, Dwarf_Attribute *attribute)
{
    return dwarf_attr(die, name, attribute) != NULL;
}

bool die_attribute(Dwarf_Die *die, unsigned name, Dwarf_Attribute *attribute, Dwarf_Die *from)
{
    Dwarf_Die at = *die;
    for (int i = 0; i < MAX_ORIGINS; i++) {
        Dwarf_Attribute reference;
        if (dwarf_attr(&at, name, attribute)) {
            if (from) *from = at;
            return true;
        }
        if (!dwarf_attr(&at, DW_AT_abstract_origin, &reference) && !dwarf_attr(&at, DW_AT_specification, &reference))
            return false;
        Dwarf_Die origin;
        if (!dwarf_formref_die(&reference, &origin)) return false;
        at = origin;
    }
    return false;
}

const char *die_string(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    const char *text = die_attribute(die, name, &attribute, NULL) ? dwarf_formstring(&attribute) : NULL;
    return text ? text : "";
}

uint64_t die_number(Dwarf_Die *die, unsigned name, uint64_t otherwise)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return die_attribute(die, name, &attribute, NULL) && dwarf_formudata(&attribute, &value) == 0 ? value : otherwise;
}

bool die_flag(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    bool value;
    return dwarf_attr(die, name, &attribute) && dwarf_formflag(&attribute, &value) == 0 && value;
}

bool die_reference(Dwarf_Die *die, unsigned name, Dwarf_Die *target)
{
    Dwarf_Attribute attribute;
    return die_attribute(die, name, &attribute, NULL) && dwarf_formref_die(&attribute, target) &&
           dwarf_tag(target) != DW_TAG_invalid;
}

const char *die_linkage_name(Dwarf_Die *die)
{
    const char *name = die_string(die, DW_AT_linkage_name);
    if (!*name) name = die_string(die, DW_AT_MIPS_linkage_name);
    return *name ? name : die_string(die, DW_AT_name);
}

const char *die_file(image_dwarf *dwarf, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Die from;
    Dwarf_Word number;
    if (!die_attribute(die, name, &attribute, &from) || dwarf_formudata(&attribute, &number) != 0) return NULL;
    dwarf_unit *unit = unit_of(dwarf, &from);
    return unit ? line_file(dwarf, unit, number) : NULL;
}

void die_ranges(image_dwarf *dwarf, Dwarf_Die *die, uint32_t id, range_list *list)
{
    Dwarf_Addr base = 0, start, end;
    for (ptrdiff_t at = 0; dwarf->steps && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
        dwarf->steps--;
        /* Code that the linker dropped stays behind at address 0 or beyond all sections. */
        if (start < end && image_is_code(dwarf->img, start) && image_is_code(dwarf->img, end - 1))
            vec_push(list, (range){start, end, id});
    }
}

/* --- walking ----------------------------------------------------------------------------------------------------- */

static bool step(image_dwarf *dwarf, Dwarf_Die *die)
{
    if (!dwarf->steps || dwarf_tag(die) == DW_TAG_invalid) {
        dwarf->damaged++;
        return false;
    }
    dwarf->steps--;
    return true;
}

bool die_child(image_dwarf *dwarf, Dwarf_Die *parent, Dwarf_Die *child)
{
    return dwarf_child(parent, child) == 0 && step(dwarf, child);
}

bool die_next(image_dwarf *dwarf, Dwarf_Die *die)
{
    Dwarf_Die next;
    int result = dwarf_siblingof(die, &next);
    if (result < 0) dwarf->damaged++;
    if (result != 0 || !step(dwarf, &next)) return false;
    *die = next;
    return true;
}
