/* Where optimised code keeps its variables, for the names of stack objects and the types of heap objects.
 *
 * static/image says where a variable is when it has one place during the whole function. clang -O2 counts from the
 * stack pointer and writes location lists: in a register here, at 8(%rsp) from there on. An object must have the same
 * name and type at -O0 and -O2, so those are read here, with libdw itself: not from the code under test. */
#include "reach.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    place_list *out;
    image_unwind_row *rows;
    uint32_t row_count;
    int frame_base; /* DWARF register that DW_OP_fbreg counts from, -1: the CFA, -2: something else */
} reader;

/* CFA - rsp at an address; for a variable that is in one place all the time, as it is when the frame is complete. */
static bool cfa_offset(const reader *rd, uint64_t pc, bool always, int64_t *offset)
{
    bool found = false;
    for (uint32_t i = 0; i < rd->row_count; i++) {
        const image_unwind_row *row = &rd->rows[i];
        if (row->cfa_reg != 7 || (!always && row->addr > pc)) continue;
        if (always && found && row->cfa_off <= *offset) continue;
        *offset = row->cfa_off;
        found = true;
    }
    return found;
}

static bool location_offset(const reader *rd, const Dwarf_Op *op, uint64_t pc, bool always, int64_t *offset)
{
    int64_t cfa = 0;
    int from = op->atom == DW_OP_fbreg   ? rd->frame_base
               : op->atom == DW_OP_breg7 ? 7
               : op->atom == DW_OP_breg6 ? 6
                                         : -2;
    *offset = (int64_t)op->number + 8; /* from the CFA to the stack pointer at entry */
    if (from == -1) return true;
    if (from == 6) *offset -= 16;
    if (from == 7 && cfa_offset(rd, pc, always, &cfa))
        *offset -= cfa;
    else if (from != 6)
        return false;
    return true;
}

/* The variable that a DWARF register is, or IR_NOVAR. */
static uint16_t register_of(const Dwarf_Op *op)
{
    static const uint16_t vars[] = {IR_RAX, IR_RDX, IR_RCX, IR_RBX, IR_RSI, IR_RDI, IR_RBP, IR_RSP,
                                    IR_R8,  IR_R9,  IR_R10, IR_R11, IR_R12, IR_R13, IR_R14, IR_R15};
    return op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg15 ? vars[op->atom - DW_OP_reg0] : (uint16_t)IR_NOVAR;
}

static void read_variable(reader *rd, Dwarf_Die *die, uint64_t scope)
{
    Dwarf_Attribute attribute;
    Dwarf_Addr base, start, end;
    Dwarf_Op *ops;
    size_t count;
    int line = 0;
    const char *name = dwarf_diename(die);
    if (!name || !dwarf_attr(die, DW_AT_location, &attribute)) return;
    dwarf_decl_line(die, &line);
    for (ptrdiff_t at = 0; (at = dwarf_getlocations(&attribute, at, &base, &start, &end, &ops, &count)) > 0;) {
        if (count != 1) continue;
        place found = {
            .name = name, .line = (uint32_t)line, .start = start ? start : scope, .var = register_of(&ops[0])};
        if (found.var != IR_NOVAR || location_offset(rd, &ops[0], start, start == 0, &found.offset))
            vec_push(rd->out, found);
    }
}

static void read_scope(reader *rd, Dwarf_Die *scope, unsigned depth)
{
    Dwarf_Die die;
    Dwarf_Addr start = 0;
    if (depth > 30 || dwarf_child(scope, &die)) return;
    dwarf_entrypc(scope, &start);
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter:
            read_variable(rd, &die, start);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_inlined_subroutine:
            read_scope(rd, &die, depth + 1);
            break;
        default:
            break;
        }
    } while (!dwarf_siblingof(&die, &die));
}

static int frame_base_of(Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;
    if (!dwarf_attr(function, DW_AT_frame_base, &attribute) || dwarf_getlocation(&attribute, &ops, &count) ||
        count != 1)
        return -2;
    switch (ops[0].atom) {
    case DW_OP_call_frame_cfa:
        return -1;
    case DW_OP_reg6:
        return 6;
    case DW_OP_reg7:
        return 7;
    default:
        return -2;
    }
}

static void read_unit(reader *rd, Dwarf_Die *unit, const lift_func *func)
{
    Dwarf_Die die;
    if (dwarf_child(unit, &die)) return;
    do {
        if (dwarf_tag(&die) != DW_TAG_subprogram || dwarf_haspc(&die, func->entry) <= 0) continue;
        rd->frame_base = frame_base_of(&die);
        read_scope(rd, &die, 0);
    } while (!dwarf_siblingof(&die, &die));
}

const place_list *place_variables(reach *r, const lift_func *func)
{
    place_list *places = &r->places[func->id];
    if (r->places_read[func->id]) return places;
    r->places_read[func->id] = true;
    const image_fde *fde = image_fde_at(r->module->img, func->entry);
    if (!r->debug) {
        r->debug_file = open(r->module->img->path, O_RDONLY | O_CLOEXEC);
        r->debug = r->debug_file < 0 ? NULL : dwarf_begin(r->debug_file, DWARF_C_READ);
    }
    if (!fde || !r->debug) return places;
    reader rd = {.out = places};
    rd.row_count = image_unwind_rows(r->module->img, fde, &rd.rows);
    Dwarf_Die unit;
    for (Dwarf_CU *cu = NULL; dwarf_get_units(r->debug, cu, &cu, NULL, NULL, &unit, NULL) == 0;)
        read_unit(&rd, &unit, func);
    free(rd.rows);
    return places;
}

const image_variable *place_variable(const image_function *debug, const place *p)
{
    for (uint32_t i = 0; i < debug->variable_count; i++)
        if (debug->variables[i].line == p->line && !strcmp(debug->variables[i].name, p->name))
            return &debug->variables[i];
    return NULL;
}

void place_close(reach *r)
{
    if (!r->debug) return;
    dwarf_end(r->debug);
    close(r->debug_file);
}
