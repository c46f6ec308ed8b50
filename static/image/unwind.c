/* Unwind rows: the call frame instructions of one FDE, executed (DWARF 5, section 6.4.2). */
#include "static/image/frame.h"

#include <dwarf.h>

enum { MAX_ROWS = 1 << 20, MAX_REMEMBERED = 1 << 10, RSP = 7 };

typedef struct {
    const frame_cie *cie;
    image_unwind_row now, initial;
    VEC(image_unwind_row) remembered;
    VEC(image_unwind_row) rows;
    bool keep_rows; /* false: stop at the first advance */
    bool failed;
} machine;

static void set_rule(machine *m, uint64_t reg, int32_t rule)
{
    if (reg < IMAGE_UNWIND_REGS) m->now.saved[reg] = rule;
}

static void set_offset(machine *m, uint64_t reg, int64_t factor)
{
    int64_t offset;
    bool far = __builtin_mul_overflow(factor, m->cie->data_align, &offset) || offset <= IMAGE_UNWIND_UNSAVED ||
               offset >= IMAGE_UNWIND_COMPLEX;
    set_rule(m, reg, far ? IMAGE_UNWIND_COMPLEX : (int32_t)offset);
}

static void set_cfa(machine *m, int64_t reg, int64_t offset)
{
    bool known = reg >= 0 && reg < IMAGE_UNWIND_REGS && offset > INT32_MIN && offset < INT32_MAX;
    m->now.cfa_reg = known ? (int16_t)reg : -1;
    m->now.cfa_off = known ? (int32_t)offset : 0;
}

static void set_cfa_factored(machine *m, int64_t reg, int64_t factor)
{
    int64_t offset;
    bool far = __builtin_mul_overflow(factor, m->cie->data_align, &offset);
    set_cfa(m, far ? -1 : reg, offset);
}

static bool advance(machine *m, uint64_t to)
{
    if (to == m->now.addr) return true;
    if (!m->keep_rows) return false;
    if (to < m->now.addr || m->rows.len >= MAX_ROWS) {
        m->failed = true;
        return false;
    }
    vec_push(&m->rows, m->now);
    m->now.addr = to;
    return true;
}

/* One instruction. False: to stop, because it is an advance that is not wanted or because it is not understood. */
static bool step(machine *m, cursor *c)
{
    uint64_t op = cursor_uint(c, 1), low = op & 0x3f, reg;
    switch (op & 0xc0) {
    case DW_CFA_advance_loc:
        return advance(m, m->now.addr + low * m->cie->code_align);
    case DW_CFA_offset:
        set_offset(m, low, (int64_t)cursor_uleb(c));
        return true;
    case DW_CFA_restore:
        if (low < IMAGE_UNWIND_REGS) m->now.saved[low] = m->initial.saved[low];
        return true;
    default:
        break;
    }
    switch (op) {
    case DW_CFA_nop:
        return true;
    case DW_CFA_set_loc: { /* position-relative forms need the place, which compilers never use */
        uint64_t to;
        bool known = frame_pointer(c, m->cie->encoding, 0, &to) && (m->cie->encoding & FRAME_BASE) == 0;
        if (!known) m->failed = true;
        return known && advance(m, to);
    }
    case DW_CFA_advance_loc1:
        return advance(m, m->now.addr + cursor_uint(c, 1) * m->cie->code_align);
    case DW_CFA_advance_loc2:
        return advance(m, m->now.addr + cursor_uint(c, 2) * m->cie->code_align);
    case DW_CFA_advance_loc4:
        return advance(m, m->now.addr + cursor_uint(c, 4) * m->cie->code_align);
    case DW_CFA_offset_extended:
        reg = cursor_uleb(c);
        set_offset(m, reg, (int64_t)cursor_uleb(c));
        return true;
    case DW_CFA_offset_extended_sf:
        reg = cursor_uleb(c);
        set_offset(m, reg, cursor_sleb(c));
        return true;
    case DW_CFA_GNU_negative_offset_extended:
        reg = cursor_uleb(c);
        set_offset(m, reg, (int64_t)(0 - cursor_uleb(c)));
        return true;
    case DW_CFA_restore_extended:
        reg = cursor_uleb(c);
        if (reg < IMAGE_UNWIND_REGS) m->now.saved[reg] = m->initial.saved[reg];
        return true;
    case DW_CFA_undefined:
        set_rule(m, cursor_uleb(c), IMAGE_UNWIND_COMPLEX);
        return true;
    case DW_CFA_same_value:
        set_rule(m, cursor_uleb(c), IMAGE_UNWIND_UNSAVED);
        return true;
    case DW_CFA_register:
    case DW_CFA_val_offset:
        set_rule(m, cursor_uleb(c), IMAGE_UNWIND_COMPLEX);
        cursor_uleb(c);
        return true;
    case DW_CFA_val_offset_sf:
        set_rule(m, cursor_uleb(c), IMAGE_UNWIND_COMPLEX);
        cursor_sleb(c);
        return true;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        set_rule(m, cursor_uleb(c), IMAGE_UNWIND_COMPLEX);
        cursor_skip(c, cursor_uleb(c));
        return true;
    case DW_CFA_remember_state:
        if (m->remembered.len >= MAX_REMEMBERED) m->failed = true;
        vec_push(&m->remembered, m->now);
        return !m->failed;
    case DW_CFA_restore_state: {
        if (!m->remembered.len) {
            m->failed = true;
            return false;
        }
        uint64_t addr = m->now.addr;
        uint32_t args_size = m->now.args_size; /* not part of what is remembered */
        m->now = m->remembered.data[--m->remembered.len];
        m->now.addr = addr;
        m->now.args_size = args_size;
        return true;
    }
    case DW_CFA_def_cfa:
        reg = cursor_uleb(c);
        set_cfa(m, (int64_t)reg, (int64_t)cursor_uleb(c));
        return true;
    case DW_CFA_def_cfa_sf:
        reg = cursor_uleb(c);
        set_cfa_factored(m, (int64_t)reg, cursor_sleb(c));
        return true;
    case DW_CFA_def_cfa_register:
        set_cfa(m, (int64_t)cursor_uleb(c), m->now.cfa_off);
        return true;
    case DW_CFA_def_cfa_offset:
        set_cfa(m, m->now.cfa_reg, (int64_t)cursor_uleb(c));
        return true;
    case DW_CFA_def_cfa_offset_sf:
        set_cfa_factored(m, m->now.cfa_reg, cursor_sleb(c));
        return true;
    case DW_CFA_def_cfa_expression:
        set_cfa(m, -1, 0);
        cursor_skip(c, cursor_uleb(c));
        return true;
    case DW_CFA_GNU_args_size: {
        uint64_t size = cursor_uleb(c);
        m->now.args_size = size < INT32_MAX ? (uint32_t)size : 0;
        return true;
    }
    default:
        m->failed = true;
        return false;
    }
}

/* False when an instruction is damaged or unknown. */
static bool execute(machine *m, cursor c)
{
    while (c.at < c.end && !c.bad && step(m, &c)) {
    }
    return !c.bad && !m->failed;
}

void frame_initial(frame_cie *cie)
{
    machine m = {.cie = cie, .now = {.cfa_reg = -1}};
    for (int i = 0; i < IMAGE_UNWIND_REGS; i++)
        m.now.saved[i] = IMAGE_UNWIND_UNSAVED;
    m.initial = m.now;
    cie->readable = execute(&m, cie->program);
    cie->initial = m.now;
    vec_free(&m.remembered);
}

bool frame_starts_inside(const frame_cie *cie, cursor program)
{
    machine m = {.cie = cie, .now = cie->initial, .initial = cie->initial};
    bool good = cie->readable && execute(&m, program);
    vec_free(&m.remembered);
    return !good || m.now.cfa_reg != RSP || m.now.cfa_off != 8;
}

uint32_t image_unwind_rows(const image *img, const image_fde *fde, image_unwind_row **rows)
{
    const frame_table *table = img->private->frames;
    const frame_entry *entry = &table->entries.data[fde->entry];
    const frame_cie *cie = &table->cies.data[entry->cie];
    machine m = {.cie = cie, .now = cie->initial, .initial = cie->initial, .keep_rows = true};
    m.now.addr = fde->start;
    bool good = cie->readable && execute(&m, entry->program);
    if (good) vec_push(&m.rows, m.now);
    while (good && m.rows.len > 1 && m.rows.data[m.rows.len - 1].addr >= fde->end)
        m.rows.len--;
    vec_free(&m.remembered);
    if (!good) {
        vec_free(&m.rows);
        *rows = NULL;
        return 0;
    }
    *rows = m.rows.data;
    return m.rows.len;
}
