/* The targets of an indirect jump: reads the tables that jumpwalk.c finds.
 *
 * A table whose size a comparison gives must have a sensible target in every entry. A weak one ends where the form of
 * its index says, where the next object begins that code refers to, or before the first entry that is no address of the
 * function; when it seems to go on behind such an entry, its size is not understood. What is not understood is unknown,
 * unless the frame is gone: then it is a tail call. */
#include "static/lift/jumptable.h"

enum {
    LOOK_AHEAD = 16, /* entries */
    ENTRY_COST = 4,  /* steps for an entry of a table, ... */
    BYTES_PER_STEP = 16 /* ... and for the bytes between */
};

/* May the jump go there: code of this function, or a part that belongs to functions only by jumps. `strict`: a table
 * whose size is not known for certain. */
static bool is_target(const flow_space *space, const lift_func *view, const lift_insn *jump, uint64_t addr, bool strict)
{
    const flow_region *r = flow_region_at(space, addr);
    if (!r) return false;
    if (addr == view->entry) return true;
    uint64_t place = r->first + (addr - r->addr);
    if (flow_bit(space->starts, place)) return flow_bit(space->doubtful, place);
    const image_fde *own = image_fde_at(space->img, jump->addr), *fde = image_fde_at(space->img, addr);
    if (own && own == fde) return true;
    if (own || fde)
        return fde && (fde->fragment || flow_has(space, space->parts, fde->start) ||
                       flow_has(space, space->doubtful, fde->start) ||
                       view->entry - fde->start < fde->end - fde->start);
    if (!strict) return true;
    uint64_t next = flow_region_at(space, view->entry + 1) ? flow_next_bit(space, space->starts, view->entry + 1) : 0;
    return addr >= view->entry && addr < next;
}

/* The end of the function: what clang puts into a table for values that it knows not to come. */
static bool is_hole(const flow_space *space, const lift_func *view, const lift_insn *jump, uint64_t addr)
{
    const image_fde *own = image_fde_at(space->img, jump->addr);
    if (own) return addr == own->end;
    const flow_region *r = flow_region_at(space, addr);
    if (!r || addr <= view->entry) return false;
    uint64_t next = flow_next_bit(space, space->starts, view->entry + 1);
    for (uint32_t skip; addr < next && (skip = flow_padding(r->bytes + (addr - r->addr), next - addr));)
        addr += skip;
    return addr == next;
}

static bool read_entry(const flow_space *space, const table_form *form, uint64_t addr, uint64_t *target)
{
    uint64_t word = 0;
    uint32_t bytes = form->bits / 8;
    if (bytes == 8 && !form->plus) {
        const image_reloc *reloc = image_reloc_at(space->img, addr);
        if (reloc && reloc->size == 8 && (reloc->kind == IMAGE_REL_ADDR || reloc->kind == IMAGE_REL_GUESS)) {
            *target = reloc->target;
            return true;
        }
        if (reloc || !space->absolute) return false;
    }
    if (!image_read(space->img, addr, &word, bytes)) return false;
    if (form->is_signed && bytes < 8) word = (uint64_t)((int64_t)(word << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    *target = form->plus + word;
    return true;
}

/* A table in memory that can be written to is believed when each entry is a relocated address: labels as values. */
static bool is_fixed(const flow_space *space, const table_form *form, uint64_t addr)
{
    if (image_is_constant(space->img, addr, form->bits / 8)) return true;
    const image_reloc *reloc = image_reloc_at(space->img, addr);
    return form->bits == 64 && reloc && (reloc->kind == IMAGE_REL_ADDR || reloc->kind == IMAGE_REL_GUESS);
}

/* Another object begins in (from, to]? */
static bool has_ref(const flow_space *space, uint64_t from, uint64_t to)
{
    for (uint64_t addr = from + 1; addr <= to; addr++) {
        int64_t place = flow_data_place(space, addr);
        if (place < 0 || flow_bit(space->refs, (uint64_t)place)) return true;
    }
    return false;
}

/* Does a table seem to go on behind an entry that makes no sense? Then its size is not understood. */
static bool goes_on(const flow_space *space, const lift_func *view, const lift_insn *jump, const table_form *form,
                    uint64_t addr)
{
    uint64_t stride = form->scale * form->step, target;
    for (uint32_t i = 0; i < LOOK_AHEAD; i++, addr += stride) {
        if (has_ref(space, addr, addr + stride)) return false;
        if (read_entry(space, form, addr + stride, &target) && is_target(space, view, jump, target, true) &&
            target != view->entry)
            return true;
    }
    return false;
}

/* Adds the targets of one table; false: it cannot be right. */
static bool read_table(const flow_space *space, const lift_func *view, jump_memory *m, const lift_insn *jump,
                       const table_found *t, jump_result *result)
{
    const table_form *form = &t->form;
    uint64_t count = (t->high - t->low) / form->step + 1, stride = form->scale * form->step, n = 0;
    uint64_t start = form->table + t->low * form->scale;
    if (t->weak && !space->refs_known) return false;
    for (; n < count; n++) {
        uint64_t addr = start + n * stride, target;
        if (!m->steps) return false;
        jump_spend(m, ENTRY_COST + stride / BYTES_PER_STEP);
        if (t->weak && n && has_ref(space, addr - stride, addr)) break;
        bool good = (count > 1 || t->weak ? is_fixed(space, form, addr)
                                          : image_is_constant(space->img, addr, form->bits / 8)) &&
                    read_entry(space, form, addr, &target);
        if (good && is_hole(space, view, jump, target)) continue;
        /* the address of the function itself in a table of absolute ones: of functions */
        good = good && is_target(space, view, jump, target, t->weak) && (form->plus || target != view->entry);
        if (!good && (!t->weak || !n || goes_on(space, view, jump, form, addr))) return false;
        if (!good) break;
        vec_push(&result->targets, target);
    }
    result->weak |= t->weak;
    vec_push(&result->tables, (lift_table){.table = start,
                                           .count = (uint32_t)n,
                                           .entry_size = (uint8_t)(form->bits / 8),
                                           .relative = form->plus != 0,
                                           .base = form->plus});
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_targets(jump_result *result)
{
    uint32_t kept = 0;
    if (result->targets.len) qsort(result->targets.data, result->targets.len, sizeof(uint64_t), by_number);
    for (uint32_t i = 0; i < result->targets.len; i++)
        if (!i || result->targets.data[i] != result->targets.data[kept - 1])
            result->targets.data[kept++] = result->targets.data[i];
    result->targets.len = kept;
}

/* A table whose entries lie in this function: the jump is no tail call, even where its size is not known. */
static bool is_own_table(const flow_space *space, const lift_func *view, const lift_insn *jump, const table_form *form)
{
    uint64_t target;
    if (form->plus || form->bits < 64) return true;
    return read_entry(space, form, form->table, &target) && is_target(space, view, jump, target, true) &&
           !flow_has(space, space->starts, target);
}

static bool frame_gone(const flow_space *space, const lift_func *view, jump_memory *m, uint32_t block)
{
    const image_fde *fde = m->depth.fde;
    const int32_t *last = m->depth.last;
    bool gone = m->steps && depth_frame_gone(space->img, view, &m->depth, block);
    if (m->depth.fde != fde) jump_spend(m, m->depth.row_count);
    if (m->depth.last != last) jump_spend(m, view->insn_count);
    return gone;
}

jump_verdict jump_resolve(const flow_space *space, const lift_func *view, jump_memory *m, uint32_t block,
                          jump_result *result)
{
    const lift_block *at = &view->blocks[block];
    const lift_insn *jump = &view->insns[at->first_insn + at->insn_count - 1];
    bool good = jump_walk(space, m, block, result);
    for (uint32_t i = 0; good && i < result->targets.len; i++) /* constants found on the way */
        good = is_target(space, view, jump, result->targets.data[i], false);
    for (uint32_t i = 0; good && i < m->tables.len; i++)
        good = read_table(space, view, m, jump, &m->tables.data[i], result);
    if (good && result->targets.len) {
        sort_targets(result);
        return JUMP_SWITCH;
    }
    vec_clear(&result->targets);
    vec_clear(&result->tables);
    for (uint32_t i = 0; i < m->forms.len; i++)
        if (is_own_table(space, view, jump, &m->forms.data[i])) return JUMP_UNKNOWN;
    return frame_gone(space, view, m, block) ? JUMP_TAIL : JUMP_UNKNOWN;
}
