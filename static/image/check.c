/* Units and their entries, checked before libdw walks them.
 *
 * libdw skips an entry's children by its DW_AT_sibling and reads an entry wherever a reference points to. In damaged
 * DWARF that makes entries overlap, and reading them all takes time without bound: each may hold a string that reaches
 * to the end of the unit. Here each unit is read once from front to back. It is used only if all its entries are of
 * known abbreviations and forms, nest properly, and have siblings where their children really end. Where entries begin
 * is kept in a bitmap: references to any other place are not followed (die.c).
 *
 * Abbreviation tables are bounded too: libdw keeps a copy of each for every unit that uses it. */
#include "static/image/cursor.h"
#include "static/image/dwarf.h"

enum { MAX_ATTRIBUTES = 128, MAX_LEB = 10 };

typedef struct {
    uint16_t name, form;
} attribute;

typedef struct {
    uint64_t code;
    bool has_children;
    bool has_sibling;
    uint32_t first, count; /* in table->attributes */
    int64_t size;          /* of an entry's attributes, when all forms are of fixed size; -1: not */
} abbreviation;

typedef struct {
    uint64_t size; /* bytes */
    bool bad;
    VEC(abbreviation) list;
    VEC(attribute) attributes;
    sort_key *by_code; /* sorted; NULL: codes count from 1 */
} abbreviation_table;

typedef struct {
    image_dwarf *dwarf;
    dwarf_copy *copy;
    dwarf_section section; /* SECTION_INFO or SECTION_TYPES */
    abbreviation_table table;
    uint64_t table_budget; /* bytes of tables that may still be used, counted for each unit */
} checker;

typedef struct {
    uint64_t offset, end; /* in the section */
    uint64_t first;       /* its first entry */
    uint64_t table;
    unsigned version, offset_size;
} unit_header;

/* --- forms ------------------------------------------------------------------------------------------------------- */

/* Bytes of a value of this form; -1: it depends, -2: no such form. */
static int64_t form_size(uint64_t form, const unit_header *unit)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
        return 4;
    case DW_FORM_addr:
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_ref_addr:
        return unit->version == 2 ? 8 : unit->offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return unit->offset_size;
    case DW_FORM_block:
    case DW_FORM_block1:
    case DW_FORM_block2:
    case DW_FORM_block4:
    case DW_FORM_exprloc:
    case DW_FORM_string:
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
    case DW_FORM_indirect:
        return -1;
    default:
        return -2;
    }
}

/* A number of at most ten bytes, as libdw reads it. */
static uint64_t short_uleb(cursor *c)
{
    const uint8_t *start = c->at;
    uint64_t value = cursor_uleb(c);
    if (c->at - start > MAX_LEB) c->bad = true;
    return value;
}

static void skip_value(cursor *c, uint64_t form, const unit_header *unit)
{
    if (form == DW_FORM_indirect) {
        form = short_uleb(c);
        if (form == DW_FORM_indirect || form == DW_FORM_implicit_const) c->bad = true;
    }
    int64_t size = form_size(form, unit);
    if (size >= 0) {
        cursor_skip(c, (uint64_t)size);
        return;
    }
    const uint8_t *zero;
    switch (form) {
    case DW_FORM_block1:
        cursor_skip(c, cursor_uint(c, 1));
        break;
    case DW_FORM_block2:
        cursor_skip(c, cursor_uint(c, 2));
        break;
    case DW_FORM_block4:
        cursor_skip(c, cursor_uint(c, 4));
        break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        cursor_skip(c, short_uleb(c));
        break;
    case DW_FORM_string:
        zero = cursor_left(c) ? memchr(c->at, 0, cursor_left(c)) : NULL;
        if (zero)
            c->at = zero + 1;
        else
            c->bad = true;
        break;
    default:
        if (size == -1)
            short_uleb(c);
        else
            c->bad = true;
    }
}

/* --- abbreviations ----------------------------------------------------------------------------------------------- */

static bool read_abbreviation(checker *k, cursor *c, uint64_t code, const unit_header *unit)
{
    abbreviation_table *t = &k->table;
    abbreviation a = {.code = code, .first = t->attributes.len};
    short_uleb(c); /* tag */
    a.has_children = cursor_uint(c, 1) == DW_CHILDREN_yes;
    for (;;) {
        uint64_t name = short_uleb(c), form = short_uleb(c);
        if (c->bad || a.count > MAX_ATTRIBUTES) return false;
        if (!name && !form) break;
        int64_t size = form_size(form, unit);
        if (size == -2 || name > UINT16_MAX) return false;
        if (form == DW_FORM_implicit_const) short_uleb(c);
        a.size = size < 0 || a.size < 0 ? -1 : a.size + size;
        a.has_sibling |= name == DW_AT_sibling;
        a.count++;
        vec_push(&t->attributes, (attribute){(uint16_t)name, (uint16_t)form});
    }
    vec_push(&t->list, a);
    return true;
}

static void sort_codes(abbreviation_table *t)
{
    bool counted = true;
    free(t->by_code);
    t->by_code = NULL;
    for (uint32_t i = 0; i < t->list.len; i++)
        counted &= t->list.data[i].code == i + 1;
    if (counted) return;
    t->by_code = base_alloc(t->list.len * sizeof *t->by_code);
    for (uint32_t i = 0; i < t->list.len; i++)
        t->by_code[i] = (sort_key){t->list.data[i].code, i};
    sort_keys(t->by_code, t->list.len);
}

/* Sizes of forms depend on the unit, so a table is read again when another kind of unit uses it. */
static void read_table(checker *k, const unit_header *unit)
{
    abbreviation_table *t = &k->table;
    const uint8_t *bytes = k->copy->sections[SECTION_ABBREV].bytes;
    uint64_t size = k->copy->sections[SECTION_ABBREV].size, code;
    vec_clear(&t->list);
    vec_clear(&t->attributes);
    t->size = 0;
    t->bad = !bytes || unit->table >= size;
    if (t->bad) return;
    cursor c = {.at = bytes + unit->table, .end = bytes + size};
    while (!t->bad && !c.bad && (code = short_uleb(&c)))
        t->bad = !read_abbreviation(k, &c, code, unit);
    t->bad |= c.bad;
    t->size = (uint64_t)(c.at - (bytes + unit->table));
    sort_codes(t);
}

static const abbreviation *find_abbreviation(const abbreviation_table *t, uint64_t code)
{
    if (!t->by_code) return code - 1 < t->list.len ? &t->list.data[code - 1] : NULL;
    uint32_t low = 0, high = t->list.len; /* of equal codes the first counts */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->by_code[mid].key < code)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->list.len && t->by_code[low].key == code ? &t->list.data[t->by_code[low].id] : NULL;
}

/* --- units ------------------------------------------------------------------------------------------------------- */

static bool read_header(const checker *k, cursor *c, const uint8_t *section, unit_header *unit)
{
    *unit = (unit_header){.offset = (uint64_t)(c->at - section), .offset_size = 4};
    uint64_t length = cursor_uint(c, 4), type = DW_UT_compile, address_size;
    if (length == UINT32_MAX) {
        length = cursor_uint(c, 8);
        unit->offset_size = 8;
    }
    if (c->bad || length > cursor_left(c)) return false;
    cursor in = {.at = c->at, .end = c->at + length};
    c->at = in.end;
    unit->end = (uint64_t)(in.end - section);
    unit->version = (unsigned)cursor_uint(&in, 2);
    if (unit->version >= 5) {
        type = cursor_uint(&in, 1);
        address_size = cursor_uint(&in, 1);
        unit->table = cursor_uint(&in, unit->offset_size);
    } else {
        unit->table = cursor_uint(&in, unit->offset_size);
        address_size = cursor_uint(&in, 1);
    }
    if (k->section == SECTION_TYPES || type == DW_UT_type || type == DW_UT_split_type)
        cursor_skip(&in, 8 + unit->offset_size); /* signature, offset of the type */
    else if (type == DW_UT_skeleton || type == DW_UT_split_compile)
        cursor_skip(&in, 8);
    unit->first = (uint64_t)(in.at - section);
    if (in.bad || unit->version < 2 || unit->version > 5 || address_size != 8) unit->first = unit->end; /* none */
    return true;
}

/* The value of an entry's DW_AT_sibling, as an offset in the section; 0: not of a form that we know it in. */
static uint64_t sibling_value(cursor c, uint64_t form, const unit_header *unit)
{
    switch (form) {
    case DW_FORM_ref1:
        return unit->offset + cursor_uint(&c, 1);
    case DW_FORM_ref2:
        return unit->offset + cursor_uint(&c, 2);
    case DW_FORM_ref4:
        return unit->offset + cursor_uint(&c, 4);
    case DW_FORM_ref8:
        return unit->offset + cursor_uint(&c, 8);
    case DW_FORM_ref_udata:
        return unit->offset + cursor_uleb(&c);
    default:
        return 0;
    }
}

/* Skips the attributes of one entry. `sibling` becomes what it says about its sibling, if it does. */
static void skip_entry(const checker *k, cursor *c, const abbreviation *a, const unit_header *unit, uint64_t *sibling)
{
    if (a->size >= 0 && !a->has_sibling) {
        cursor_skip(c, (uint64_t)a->size);
        return;
    }
    for (uint32_t i = 0; i < a->count && !c->bad; i++) {
        const attribute *attr = &k->table.attributes.data[a->first + i];
        if (attr->name == DW_AT_sibling) {
            *sibling = sibling_value(*c, attr->form, unit);
            if (!*sibling) c->bad = true;
        }
        skip_value(c, attr->form, unit);
    }
}

/* Reads all entries of a unit and marks where they begin; `open` holds the siblings that entries promised, for those
 * whose children are open. */
static bool check_entries(checker *k, const uint8_t *section, const unit_header *unit)
{
    VEC(uint64_t) open = {0};
    uint8_t *starts = k->copy->starts[k->section == SECTION_TYPES];
    cursor c = {.at = section + unit->first, .end = section + unit->end};
    bool good = c.at < c.end, closed = false;
    while (good && c.at < c.end && !closed) {
        uint64_t at = (uint64_t)(c.at - section), code = short_uleb(&c), sibling = 0;
        const abbreviation *a = code ? find_abbreviation(&k->table, code) : NULL;
        if (a) {
            starts[at / 8] |= (uint8_t)(1 << at % 8);
            skip_entry(k, &c, a, unit, &sibling);
            if (a->has_children) {
                vec_push(&open, sibling);
                good = !c.bad && open.len <= MAX_NESTING;
                continue;
            }
        } else if (!code && open.len) {
            sibling = open.data[--open.len];
        }
        /* an entry ends here, or its children do */
        good = !c.bad && (a || !code) && (!sibling || sibling == (uint64_t)(c.at - section));
        closed = !open.len; /* the rest is padding */
    }
    vec_free(&open);
    for (uint64_t at = unit->first; at < unit->end && !good; at++)
        starts[at / 8] &= (uint8_t) ~(1 << at % 8);
    return good;
}

static void use_unit(checker *k, const unit_header *unit)
{
    image_dwarf *dwarf = k->dwarf;
    dwarf_unit out = {.copy = k->copy};
    Dwarf_Die *die = k->section == SECTION_TYPES ? dwarf_offdie_types(k->copy->dw, unit->first, &out.die)
                                                 : dwarf_offdie(k->copy->dw, unit->first, &out.die);
    if (!die) {
        dwarf->damaged++;
        return;
    }
    vec_push(&dwarf->units, out);
    *map64_add(&dwarf->unit_by_die, (uintptr_t)out.die.addr) = dwarf->units.len;
}

static void check_units(checker *k)
{
    const uint8_t *section = k->copy->sections[k->section].bytes;
    uint64_t size = k->copy->sections[k->section].size, limit = 1000 + size / 64; /* libdw keeps a kilobyte per unit */
    if (!section) return;
    k->copy->starts[k->section == SECTION_TYPES] = base_alloc_zero(1, size / 8 + 1);
    cursor c = {.at = section, .end = section + size};
    unit_header last = {.table = UINT64_MAX};
    for (unit_header unit; limit && c.at < c.end && read_header(k, &c, section, &unit); limit--) {
        if (unit.table != last.table || unit.version != last.version || unit.offset_size != last.offset_size)
            read_table(k, &unit);
        last = unit;
        if (k->table.size > k->table_budget) break;
        k->table_budget -= k->table.size;
        if (!k->table.bad && check_entries(k, section, &unit))
            use_unit(k, &unit);
        else
            k->dwarf->damaged++;
    }
    if (c.at < c.end || c.bad) k->dwarf->damaged++;
}

static void check_copy(image_dwarf *dwarf, dwarf_copy *copy)
{
    static const dwarf_section sections[] = {SECTION_INFO, SECTION_TYPES};
    for (size_t i = 0; copy->dw && i < sizeof sections / sizeof *sections; i++) {
        checker k = {.dwarf = dwarf, .copy = copy, .section = sections[i]};
        k.table_budget = 16 * copy->size + (1 << 20);
        check_units(&k);
        vec_free(&k.table.list);
        vec_free(&k.table.attributes);
        free(k.table.by_code);
    }
}

void units_read(image_dwarf *dwarf)
{
    if (dwarf->units_read) return;
    dwarf->units_read = true;
    check_copy(dwarf, &dwarf->main);
    check_copy(dwarf, &dwarf->alt);
}

static bool starts_in(const dwarf_copy *copy, dwarf_section section, const void *at)
{
    const uint8_t *starts = copy->starts[section == SECTION_TYPES];
    uint64_t offset = (uintptr_t)at - (uintptr_t)copy->sections[section].bytes;
    if (!starts || offset >= copy->sections[section].size) return false;
    return starts[offset / 8] >> offset % 8 & 1;
}

bool entry_starts_at(const image_dwarf *dwarf, const void *address)
{
    return starts_in(&dwarf->main, SECTION_INFO, address) || starts_in(&dwarf->main, SECTION_TYPES, address) ||
           starts_in(&dwarf->alt, SECTION_INFO, address);
}
