/* Debugging entries, read with libdw but walked with care: references may lead in circles, siblings may overlap. */
#include "static/image/dwarf.h"

enum { MAX_ORIGINS = 16 };

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

/* To an entry of a unit that was checked, or not at all. */
static bool follow(image_dwarf *dwarf, Dwarf_Attribute *reference, Dwarf_Die *target)
{
    Dwarf_Die found;
    if (!dwarf_formref_die(reference, &found)) return false;
    if (!entry_starts_at(dwarf, found.addr) || dwarf_tag(&found) == DW_TAG_invalid) {
        dwarf->damaged++;
        return false;
    }
    *target = found;
    return true;
}

bool die_attribute(image_dwarf *dwarf, Dwarf_Die *die, unsigned name, Dwarf_Attribute *attribute, Dwarf_Die *from)
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
        if (!follow(dwarf, &reference, &at)) return false;
    }
    return false;
}

const char *die_string(image_dwarf *dwarf, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    const char *text = die_attribute(dwarf, die, name, &attribute, NULL) ? dwarf_formstring(&attribute) : NULL;
    return text ? text : "";
}

uint64_t die_number(image_dwarf *dwarf, Dwarf_Die *die, unsigned name, uint64_t otherwise)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return die_attribute(dwarf, die, name, &attribute, NULL) && dwarf_formudata(&attribute, &value) == 0 ? value
                                                                                                         : otherwise;
}

bool die_flag(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    bool value;
    return dwarf_attr(die, name, &attribute) && dwarf_formflag(&attribute, &value) == 0 && value;
}

bool die_reference(image_dwarf *dwarf, Dwarf_Die *die, unsigned name, Dwarf_Die *target)
{
    Dwarf_Attribute attribute;
    return die_attribute(dwarf, die, name, &attribute, NULL) && follow(dwarf, &attribute, target);
}

const char *die_linkage_name(image_dwarf *dwarf, Dwarf_Die *die)
{
    const char *name = die_string(dwarf, die, DW_AT_linkage_name);
    if (!*name) name = die_string(dwarf, die, DW_AT_MIPS_linkage_name);
    return *name ? name : die_string(dwarf, die, DW_AT_name);
}

const char *die_file(image_dwarf *dwarf, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Die from;
    Dwarf_Word number;
    if (!die_attribute(dwarf, die, name, &attribute, &from) || dwarf_formudata(&attribute, &number) != 0) return NULL;
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
