/* Functions and globals by address: one walk over all units on first use. What is inside a function is read when that
 * function is asked for (scope.c), a type when something of that type is (type.c).
 *
 * On the way the walk notes, for type.c, in which namespace, class or function each type is defined: a hash of the
 * names around it, the context. */
#include "static/image/cursor.h"
#include "static/image/index.h"

uint64_t context_inside(uint64_t context, const char *name)
{
    uint64_t std = (context & 1) | (context == 0 && strcmp(name, "std") == 0);
    return (hash_text(context + 2, name) & ~1ull) | std;
}

uint64_t context_of(const debug_index *index, Dwarf_Die *die)
{
    Dwarf_Die declared;
    if (!die_reference(index->dwarf, die, DW_AT_specification, &declared)) declared = *die;
    const uint64_t *context = map64_find(&index->contexts, (uintptr_t)declared.addr);
    return context ? *context : 0;
}

uint64_t definition_key(unsigned tag, uint64_t context, const char *name)
{
    if (tag == DW_TAG_class_type) tag = DW_TAG_structure_type;
    return hash_text(hash_number(context, tag), name) | 1;
}

/* --- places ------------------------------------------------------------------------------------------------------ */

int32_t frame_base_of(image_dwarf *dwarf, Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    Dwarf_Block block;
    if (!die_attribute(dwarf, function, DW_AT_frame_base, &attribute, NULL) || dwarf_formblock(&attribute, &block) != 0)
        return FRAME_UNKNOWN;
    if (block.length == 1 && block.data[0] == DW_OP_call_frame_cfa) return 0;
    /* rbp: clang, when there is a frame pointer; after the prologue it is 16 below the CFA */
    if (block.length == 1 && block.data[0] == DW_OP_reg6) return -16;
    if (block.length == 2 && block.data[0] == DW_OP_breg6 && block.data[1] == 0) return -16;
    return FRAME_UNKNOWN;
}

/* DWARF 5 keeps addresses in a table of their own. */
static bool indexed_address(Dwarf_Attribute *location, uint64_t *address)
{
    Dwarf_Op *ops;
    size_t count;
    Dwarf_Attribute value;
    Dwarf_Addr found;
    if (dwarf_getlocation(location, &ops, &count) != 0 || !count) return false;
    if (dwarf_getlocation_attr(location, &ops[0], &value) != 0 || dwarf_formaddr(&value, &found) != 0) return false;
    *address = found;
    return true;
}

image_place place_of(image_dwarf *dwarf, Dwarf_Die *die, int32_t frame_base, int64_t *offset, bool *in_memory)
{
    Dwarf_Attribute location;
    Dwarf_Block block;
    *offset = 0;
    *in_memory = false;
    if (!die_attribute(dwarf, die, DW_AT_location, &location, NULL)) return IMAGE_PLACE_NONE;
    if (dwarf_formblock(&location, &block) != 0) return IMAGE_PLACE_VARYING; /* a list */
    if (!block.length) return IMAGE_PLACE_NONE;
    cursor c = {.at = block.data, .end = block.data + block.length};
    uint64_t op = cursor_uint(&c, 1), number = 0;
    switch (op) {
    case DW_OP_fbreg: {
        int64_t from_base = cursor_sleb(&c);
        bool simple = !c.bad && c.at == c.end;
        *in_memory = simple || (c.at < c.end && *c.at == DW_OP_deref);
        if (!simple || frame_base == FRAME_UNKNOWN || from_base > INT32_MAX || from_base < INT32_MIN)
            return IMAGE_PLACE_VARYING;
        *offset = frame_base + from_base;
        return IMAGE_PLACE_FRAME;
    }
    case DW_OP_addr:
    case DW_OP_const8u:
        number = cursor_uint(&c, 8);
        break;
    case DW_OP_const4u:
        number = cursor_uint(&c, 4);
        break;
    case DW_OP_addrx:
    case DW_OP_constx:
    case DW_OP_GNU_addr_index:
    case DW_OP_GNU_const_index:
        cursor_uleb(&c);
        if (!indexed_address(&location, &number)) return IMAGE_PLACE_VARYING;
        break;
    default:
        return IMAGE_PLACE_VARYING;
    }
    bool is_address = op == DW_OP_addr || op == DW_OP_addrx || op == DW_OP_GNU_addr_index;
    if (c.at < c.end && *c.at == DW_OP_plus_uconst) {
        cursor_skip(&c, 1);
        number += cursor_uleb(&c);
    }
    bool tls = c.at + 1 == c.end && (*c.at == DW_OP_form_tls_address || *c.at == DW_OP_GNU_push_tls_address);
    if (c.bad || (!tls && (c.at != c.end || !is_address))) return IMAGE_PLACE_VARYING;
    *offset = (int64_t)number;
    *in_memory = true;
    return tls ? IMAGE_PLACE_TLS : IMAGE_PLACE_STATIC;
}

/* --- the walk ---------------------------------------------------------------------------------------------------- */

static void walk(debug_index *index, range_list *ranges, Dwarf_Die *parent, uint64_t context, unsigned depth);

static void add_function(debug_index *index, range_list *ranges, Dwarf_Die *die)
{
    uint32_t first = ranges->len;
    die_ranges(index->dwarf, die, index->functions.len, ranges);
    if (ranges->len == first) return;
    vec_push(&index->functions,
             (debug_function){.die = *die, .start = ranges->data[first].start, .end = ranges->data[first].end});
}

static void add_global(debug_index *index, Dwarf_Die *die)
{
    debug_global global = {.die = *die};
    bool in_memory;
    Dwarf_Attribute location;
    if (!die_own_attribute(die, DW_AT_location, &location)) return;
    global.place = place_of(index->dwarf, die, FRAME_UNKNOWN, &global.offset, &in_memory);
    bool here = global.place == IMAGE_PLACE_STATIC && image_section_at(index->dwarf->img, (uint64_t)global.offset);
    if (here || global.place == IMAGE_PLACE_TLS) vec_push(&index->global_dies, global);
}

static void add_definition(debug_index *index, Dwarf_Die *die, unsigned tag, const char *name)
{
    type_definition d = {.die = *die,
                         .size = die_number(index->dwarf, die, DW_AT_byte_size, 0),
                         .line = die_number(index->dwarf, die, DW_AT_decl_line, 0)};
    uint64_t *number = map64_add(&index->definitions, definition_key(tag, context_of(index, die), name));
    if (!*number) {
        vec_push(&index->definition_list, d);
        *number = index->definition_list.len;
        return;
    }
    type_definition *known = &index->definition_list.data[*number - 1];
    known->ambiguous |= known->size != d.size || known->line != d.line;
}

static void add_sized(debug_index *index, Dwarf_Die *die, const char *name)
{
    uint64_t size = die_number(index->dwarf, die, DW_AT_byte_size, 0);
    sized_struct s = {.die = *die, .name = hash_text(1, name), .line = die_number(index->dwarf, die, DW_AT_decl_line, 0)};
    uint64_t *number = map64_add(&index->sizes, size);
    if (!*number) {
        vec_push(&index->sized_list, s);
        *number = index->sized_list.len;
        return;
    }
    sized_struct *known = &index->sized_list.data[*number - 1];
    known->ambiguous |= known->name != s.name || known->line != s.line;
}

static void visit_type(debug_index *index, range_list *ranges, Dwarf_Die *die, unsigned tag, uint64_t context,
                       unsigned depth)
{
    const char *name = die_string(index->dwarf, die, DW_AT_name);
    if (context) *map64_add(&index->contexts, (uintptr_t)die->addr) = context;
    Dwarf_Attribute signature;
    if (*name && !die_flag(die, DW_AT_declaration) && !die_own_attribute(die, DW_AT_signature, &signature))
        add_definition(index, die, tag, name);
    bool is_struct = tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
    if (is_struct && !die_flag(die, DW_AT_declaration)) add_sized(index, die, name);
    if (tag == DW_TAG_enumeration_type) return;
    const void *outer = index->class;
    index->class = die->addr;
    walk(index, ranges, die, context_inside(context_of(index, die), name), depth + 1);
    index->class = outer;
}

static void visit_typedef(debug_index *index, Dwarf_Die *die)
{
    Dwarf_Die type;
    Dwarf_Attribute name;
    if (!die_reference(index->dwarf, die, DW_AT_type, &type)) return;
    unsigned tag = (unsigned)dwarf_tag(&type);
    if (tag != DW_TAG_structure_type && tag != DW_TAG_union_type && tag != DW_TAG_class_type &&
        tag != DW_TAG_enumeration_type)
        return;
    if (die_attribute(index->dwarf, &type, DW_AT_name, &name, NULL)) return;
    /* templates of C++ have members that name their arguments, lambdas for example, from elsewhere: `typedef _Tp type;` */
    if (index->class && ((const char *)type.addr < (const char *)index->class || (const char *)type.addr > (const char *)die->addr)) return;
    uint64_t *known = map64_add(&index->typedef_names, (uintptr_t)type.addr);
    if (!*known) *known = (uintptr_t)die_string(index->dwarf, die, DW_AT_name);
}

static void visit(debug_index *index, range_list *ranges, Dwarf_Die *die, uint64_t context, unsigned depth)
{
    unsigned tag = (unsigned)dwarf_tag(die);
    switch (tag) {
    case DW_TAG_subprogram:
        add_function(index, ranges, die);
        walk(index, ranges, die, context_inside(context, die_linkage_name(index->dwarf, die)), depth + 1);
        break;
    case DW_TAG_lexical_block:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
    case DW_TAG_common_block:
        walk(index, ranges, die, context, depth + 1);
        break;
    case DW_TAG_namespace:
    case DW_TAG_module:
        walk(index, ranges, die, context_inside(context, die_string(index->dwarf, die, DW_AT_name)), depth + 1);
        break;
    case DW_TAG_variable:
        add_global(index, die);
        break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
        visit_type(index, ranges, die, tag, context, depth);
        break;
    case DW_TAG_typedef:
        visit_typedef(index, die);
        break;
    default:
        break;
    }
}

static void walk(debug_index *index, range_list *ranges, Dwarf_Die *parent, uint64_t context, unsigned depth)
{
    Dwarf_Die die;
    if (depth > MAX_SCOPE_DEPTH) {
        index->dwarf->damaged++;
        return;
    }
    for (bool more = die_child(index->dwarf, parent, &die); more; more = die_next(index->dwarf, &die))
        visit(index, ranges, &die, context, depth);
}

debug_index *index_get(const image *img)
{
    image_dwarf *dwarf = dwarf_get(img);
    if (dwarf->index) return dwarf->index;
    debug_index *index = dwarf->index = base_alloc_zero(1, sizeof *index);
    range_list ranges = {0};
    index->dwarf = dwarf;
    units_read(dwarf);
    for (uint32_t i = 0; i < dwarf->units.len; i++)
        walk(index, &ranges, &dwarf->units.data[i].die, 0, 0);
    sort_ranges(ranges.data, ranges.len);
    index->function_ranges = range_map_build(ranges.data, ranges.len);
    vec_free(&ranges);
    return index;
}

void index_free(image_dwarf *dwarf)
{
    debug_index *index = dwarf->index;
    if (!index) return;
    for (uint32_t i = 0; i < index->functions.len; i++)
        free(index->functions.data[i].inlined.ranges);
    vec_free(&index->functions);
    free(index->function_ranges.ranges);
    vec_free(&index->global_dies);
    free(index->global_ranges.ranges);
    free(index->tls_ranges.ranges);
    map64_free(&index->contexts);
    map64_free(&index->definitions);
    vec_free(&index->definition_list);
    map64_free(&index->sizes);
    vec_free(&index->sized_list);
    map64_free(&index->typedef_names);
    map64_free(&index->types_by_die);
    map64_free(&index->types_by_key);
    vec_free(&index->unfilled);
    free(index);
}

/* --- globals ----------------------------------------------------------------------------------------------------- */

static int global_compare(const void *a, const void *b)
{
    const image_variable *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->offset != y->offset) return (uint64_t)x->offset < (uint64_t)y->offset ? -1 : 1;
    int names = x->name == y->name ? 0 : strncmp(x->name, y->name, MAX_HASHED);
    if (names) return names;
    return x->line < y->line ? -1 : x->line > y->line;
}

static range_map map_globals(const image_variable *globals, uint32_t from, uint32_t to)
{
    range_list list = {0};
    for (uint32_t i = from; i < to; i++) {
        uint64_t start = (uint64_t)globals[i].offset, size = globals[i].type ? globals[i].type->size : 0;
        uint64_t end = start + (size ? size : 1);
        vec_push(&list, (range){start, end < start ? UINT64_MAX : end, i});
    }
    range_map map = range_map_build(list.data, list.len);
    vec_free(&list);
    return map;
}

/* One variable may be described by every unit that has it: template statics, inline variables. */
static uint32_t without_repeats(image_variable *globals, uint32_t count)
{
    uint32_t out = 0;
    for (uint32_t i = 0; i < count; i++) {
        image_variable *before = out ? &globals[out - 1] : NULL;
        if (before && before->place == globals[i].place && before->offset == globals[i].offset &&
            strncmp(before->name, globals[i].name, MAX_HASHED) == 0) {
            if (!before->type) before->type = globals[i].type;
        } else {
            globals[out++] = globals[i];
        }
    }
    return out;
}

static void globals_read(debug_index *index)
{
    if (index->globals_read) return;
    index->globals_read = true;
    uint32_t count = index->global_dies.len;
    image_variable *globals = arena_alloc(&index->dwarf->memory, count * sizeof *globals);
    for (uint32_t i = 0; i < count; i++) {
        debug_global *g = &index->global_dies.data[i];
        globals[i] = (image_variable){.name = die_string(index->dwarf, &g->die, DW_AT_name),
                                      .type = type_of(index, &g->die),
                                      .place = g->place,
                                      .offset = g->offset,
                                      .line = (uint32_t)die_number(index->dwarf, &g->die, DW_AT_decl_line, 0)};
    }
    type_finish(index);
    if (count) qsort(globals, count, sizeof *globals, global_compare);
    index->globals = globals;
    index->global_count = without_repeats(globals, count);
    while (index->static_count < index->global_count && globals[index->static_count].place == IMAGE_PLACE_STATIC)
        index->static_count++;
    index->global_ranges = map_globals(globals, 0, index->static_count);
    index->tls_ranges = map_globals(globals, index->static_count, index->global_count);
}

/* --- lookups ----------------------------------------------------------------------------------------------------- */

static debug_function *function_at(debug_index *index, uint64_t addr)
{
    const range *found = range_map_find(&index->function_ranges, addr);
    return found ? &index->functions.data[found->id] : NULL;
}

const image_function *image_function_at(const image *img, uint64_t addr)
{
    if (!img->has_debug) return NULL;
    pthread_mutex_lock(&img->private->lock);
    debug_index *index = index_get(img);
    debug_function *function = function_at(index, addr);
    const image_function *facts = function ? function_read(index, function) : NULL;
    pthread_mutex_unlock(&img->private->lock);
    return facts;
}

static const image_variable *global_in(const image *img, uint64_t where, bool tls)
{
    if (!img->has_debug) return NULL;
    pthread_mutex_lock(&img->private->lock);
    debug_index *index = index_get(img);
    globals_read(index);
    const range *found = range_map_find(tls ? &index->tls_ranges : &index->global_ranges, where);
    const image_variable *variable = found ? &index->globals[found->id] : NULL;
    pthread_mutex_unlock(&img->private->lock);
    return variable;
}

const image_variable *image_global_at(const image *img, uint64_t addr)
{
    return global_in(img, addr, false);
}

const image_variable *image_global_tls(const image *img, uint64_t offset)
{
    return global_in(img, offset, true);
}

uint32_t image_globals(const image *img, const image_variable **all)
{
    *all = NULL;
    if (!img->has_debug) return 0;
    pthread_mutex_lock(&img->private->lock);
    debug_index *index = index_get(img);
    globals_read(index);
    *all = index->globals;
    uint32_t count = index->global_count;
    pthread_mutex_unlock(&img->private->lock);
    return count;
}

bool image_owns_type(const image *img, const image_type *type)
{
    if (!img->has_debug) return false;
    pthread_mutex_lock(&img->private->lock);
    bool owns = arena_has(&index_get(img)->dwarf->memory, type);
    pthread_mutex_unlock(&img->private->lock);
    return owns;
}

const image_type *image_struct_of_size(const image *img, uint64_t size)
{
    if (!img->has_debug || !size) return NULL;
    pthread_mutex_lock(&img->private->lock);
    debug_index *index = index_get(img);
    const uint64_t *number = map64_find(&index->sizes, size);
    sized_struct *found = number ? &index->sized_list.data[*number - 1] : NULL;
    const image_type *type = found && !found->ambiguous ? type_at(index, &found->die) : NULL;
    type_finish(index);
    pthread_mutex_unlock(&img->private->lock);
    return type;
}

const image_type *image_struct_named(const image *img, const char *name)
{
    static const unsigned tags[] = {DW_TAG_structure_type, DW_TAG_union_type, DW_TAG_class_type};
    const image_type *type = NULL;
    if (!img->has_debug || !*name) return NULL;
    pthread_mutex_lock(&img->private->lock);
    debug_index *index = index_get(img);
    for (size_t i = 0; !type && i < sizeof tags / sizeof *tags; i++) {
        const uint64_t *number = map64_find(&index->definitions, definition_key(tags[i], 0, name));
        type_definition *found = number ? &index->definition_list.data[*number - 1] : NULL;
        if (found && !found->ambiguous) type = type_at(index, &found->die);
    }
    type_finish(index);
    pthread_mutex_unlock(&img->private->lock);
    return type;
}

/* What is inlined at `addr` into `function`, innermost first, then the function itself. */
static uint32_t frames_of(debug_index *index, debug_function *function, uint64_t addr, image_line at,
                          image_frame *frames, uint32_t max)
{
    uint32_t count = 0;
    function_read_inlined(index, function);
    const range *found = range_map_find(&function->inlined, addr);
    for (uint32_t call = found ? found->id + 1 : 0; call && count < max; call = function->calls[call - 1].parent) {
        frames[count++] = (image_frame){function->calls[call - 1].function, at};
        at = function->calls[call - 1].call;
    }
    if (count == max) return count;
    if (!function->name) function->name = die_linkage_name(index->dwarf, &function->die);
    frames[count++] = (image_frame){function->name, at};
    return count;
}

uint32_t image_frames_at(const image *img, uint64_t addr, image_frame *frames, uint32_t max)
{
    uint32_t count = 0;
    image_line line = {0};
    if (img->has_debug) {
        pthread_mutex_lock(&img->private->lock);
        debug_index *index = index_get(img);
        debug_function *function = function_at(index, addr);
        line_lookup(index->dwarf, addr, &line);
        if (function) count = frames_of(index, function, addr, line, frames, max);
        pthread_mutex_unlock(&img->private->lock);
    }
    if (count || !max) return count;
    const image_symbol *symbol = image_symbol_covering(img, addr);
    if (!symbol) return 0;
    frames[0] = (image_frame){symbol->name, line};
    return 1;
}
