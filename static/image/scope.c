/* The inside of one function: its variables, and the calls that were inlined into it. */
#include "static/image/index.h"

/* --- variables --------------------------------------------------------------------------------------------------- */

typedef struct {
    debug_index *index;
    int32_t frame_base;
    VEC(image_variable) parameters, locals;
    bool optimised; /* some variable has no single place in memory, or something is inlined */
} scope_reader;

static void add_variable(scope_reader *r, Dwarf_Die *die, bool is_parameter)
{
    Dwarf_Attribute constant;
    bool in_memory;
    image_variable v = {.name = die_string(r->index->dwarf, die, DW_AT_name), .is_parameter = is_parameter};
    v.place = place_of(r->index->dwarf, die, r->frame_base, &v.offset, &in_memory);
    if (v.place == IMAGE_PLACE_NONE && die_flag(die, DW_AT_declaration)) return; /* of another scope */
    if (v.place == IMAGE_PLACE_NONE && die_flag(die, DW_AT_external) && !is_parameter) return;
    v.type = type_of(r->index, die);
    v.line = (uint32_t)die_number(r->index->dwarf, die, DW_AT_decl_line, 0);
    if (!in_memory && !die_attribute(r->index->dwarf, die, DW_AT_const_value, &constant, NULL)) r->optimised = true;
    if (is_parameter)
        vec_push(&r->parameters, v);
    else
        vec_push(&r->locals, v);
}

static void read_scope(scope_reader *r, Dwarf_Die *scope, bool outermost, unsigned depth)
{
    Dwarf_Die die;
    if (depth > MAX_SCOPE_DEPTH) return;
    for (bool more = die_child(r->index->dwarf, scope, &die); more; more = die_next(r->index->dwarf, &die)) {
        switch (dwarf_tag(&die)) {
        case DW_TAG_formal_parameter:
            add_variable(r, &die, outermost);
            break;
        case DW_TAG_variable:
            add_variable(r, &die, false);
            break;
        case DW_TAG_inlined_subroutine:
            r->optimised = true;
            read_scope(r, &die, false, depth + 1);
            break;
        case DW_TAG_GNU_formal_parameter_pack:
            read_scope(r, &die, outermost, depth + 1);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            read_scope(r, &die, false, depth + 1);
            break;
        default:
            break;
        }
    }
}

/* gcc tells its options, the last -O holds; other compilers do not. An assembler's functions follow no rules. */
static void read_producer(image_dwarf *dwarf, dwarf_unit *unit)
{
    const char *producer = die_string(dwarf, &unit->die, DW_AT_producer);
    bool optimised = die_number(dwarf, &unit->die, DW_AT_language, 0) == DW_LANG_Mips_Assembler;
    for (const char *at = producer; (at = strstr(at, " -O")); at += 3)
        optimised = !(at[3] == '0' && (at[4] == ' ' || at[4] == 0));
    bool options = strncmp(producer, "GNU ", 4) == 0 && strstr(producer, " -");
    unit->producer = optimised ? PRODUCER_OPTIMISES : options ? PRODUCER_DOES_NOT : PRODUCER_SAYS_NOTHING;
}

/* clang marks functions whose calls are all described, which it does only when it optimises; gcc marks leaf functions
 * at -O0 too. */
static bool optimised_by_name(image_dwarf *dwarf, Dwarf_Die *function)
{
    dwarf_unit *unit = unit_of(dwarf, function);
    if (!unit) return true;
    if (unit->producer == PRODUCER_UNREAD) read_producer(dwarf, unit);
    if (unit->producer != PRODUCER_SAYS_NOTHING) return unit->producer == PRODUCER_OPTIMISES;
    return die_flag(function, DW_AT_call_all_calls) || die_flag(function, DW_AT_GNU_all_call_sites);
}

const image_function *function_read(debug_index *index, debug_function *function)
{
    if (function->facts) return function->facts;
    image_dwarf *dwarf = index->dwarf;
    scope_reader r = {.index = index, .frame_base = frame_base_of(dwarf, &function->die)};
    read_scope(&r, &function->die, true, 0);
    image_function *f = function->facts = arena_alloc(&dwarf->memory, sizeof *f);
    f->start = function->start;
    f->end = function->end;
    f->name = die_linkage_name(dwarf, &function->die);
    f->file = die_file(dwarf, &function->die, DW_AT_decl_file);
    f->line = (uint32_t)die_number(dwarf, &function->die, DW_AT_decl_line, 0);
    image_line at;
    if (!f->file && line_lookup(dwarf, f->start, &at)) { /* what a compiler makes itself (OpenMP) is declared nowhere */
        f->file = at.file;
        f->line = at.line;
    }
    f->returns = type_of(index, &function->die);
    f->is_optimised = r.optimised || optimised_by_name(dwarf, &function->die);
    f->parameter_count = r.parameters.len;
    f->variable_count = r.parameters.len + r.locals.len;
    image_variable *variables = arena_alloc(&dwarf->memory, f->variable_count * sizeof *variables);
    if (r.parameters.len) memcpy(variables, r.parameters.data, r.parameters.len * sizeof *variables);
    if (r.locals.len) memcpy(variables + r.parameters.len, r.locals.data, r.locals.len * sizeof *variables);
    f->variables = variables;
    vec_free(&r.parameters);
    vec_free(&r.locals);
    type_finish(index);
    return f;
}

/* --- inlined calls ----------------------------------------------------------------------------------------------- */

typedef struct {
    debug_index *index;
    VEC(inlined_call) calls;
    range_list ranges;
} inline_reader;

/* Outer calls come before those inside them, so that of equal ranges the inner one holds (range_map_build). */
static void read_inlined(inline_reader *r, Dwarf_Die *scope, uint32_t parent, unsigned depth)
{
    image_dwarf *dwarf = r->index->dwarf;
    Dwarf_Die die;
    if (depth > MAX_SCOPE_DEPTH) return;
    for (bool more = die_child(dwarf, scope, &die); more; more = die_next(dwarf, &die)) {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_inlined_subroutine) {
            inlined_call call = {.parent = parent, .function = die_linkage_name(dwarf, &die)};
            call.call.file = die_file(dwarf, &die, DW_AT_call_file);
            call.call.line = (uint32_t)die_number(dwarf, &die, DW_AT_call_line, 0);
            call.call.column = (uint32_t)die_number(dwarf, &die, DW_AT_call_column, 0);
            die_ranges(dwarf, &die, r->calls.len, &r->ranges);
            vec_push(&r->calls, call);
            read_inlined(r, &die, r->calls.len, depth + 1);
        } else if (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block) {
            read_inlined(r, &die, parent, depth + 1);
        }
    }
}

void function_read_inlined(debug_index *index, debug_function *function)
{
    if (function->inlined_read) return;
    function->inlined_read = true;
    inline_reader r = {.index = index};
    read_inlined(&r, &function->die, 0, 0);
    sort_ranges(r.ranges.data, r.ranges.len);
    function->inlined = range_map_build(r.ranges.data, r.ranges.len);
    function->calls = arena_copy(&index->dwarf->memory, r.calls.data, r.calls.len * sizeof *r.calls.data);
    vec_free(&r.ranges);
    vec_free(&r.calls);
}
