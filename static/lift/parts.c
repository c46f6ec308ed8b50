/* Cold parts of functions have frame descriptions of their own, which do not always look different from a function's.
 * One that nothing calls or points to, and that lies where functions do not begin (not aligned, or packed among such),
 * is taken for a part when a conditional jump leads to it, when it jumps back into the middle of another function, or
 * when just one function jumps to it. */
#include "static/lift/discover.h"

static void note_pointer(const finder *f, uint64_t *bits, uint64_t addr)
{
    int64_t place = flow_place(f->space, addr);
    if (place >= 0) flow_set(bits, (uint64_t)place);
}

void add_tables(const finder *f, pieces *out)
{
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t t = 0; t < f->funcs[i].func->table_count; t++) {
            const lift_table *table = &f->funcs[i].func->tables[t];
            vec_push(out, (piece){table->table, table->table + (uint64_t)table->count * table->entry_size});
        }
}

void note_pointers(finder *f)
{
    const image *img = f->space->img;
    pieces tables = {0};
    uint32_t t = 0;
    uint64_t done = 0;
    add_tables(f, &tables);
    if (tables.len) qsort(tables.data, tables.len, sizeof *tables.data, piece_order);
    memset(f->pointed, 0, (f->space->code_size / 64 + 1) * sizeof *f->pointed);
    memset(f->named, 0, (f->space->code_size / 64 + 1) * sizeof *f->named);
    for (uint32_t i = 0; i < img->reloc_count; i++) {
        const image_reloc *r = &img->relocs[i];
        for (; t < tables.len && tables.data[t].start <= r->addr; t++)
            if (tables.data[t].end > done) done = tables.data[t].end;
        if (r->addr >= done && (r->kind == IMAGE_REL_ADDR || r->kind == IMAGE_REL_GUESS || r->kind == IMAGE_REL_IFUNC))
            note_pointer(f, f->pointed, r->target);
    }
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t r = 0; r < f->funcs[i].ref_count; r++)
            if (f->funcs[i].refs[r] & FLOW_POINTER) note_pointer(f, f->named, f->funcs[i].refs[r] & ~FLOW_POINTER);
    vec_free(&tables);
}

enum { BY_JUMP = 1, BY_BRANCH = 2, BY_MANY = 4, JUMPS_BACK = 8 };

/* In the middle of a function that has a frame description, as against the beginning of a part. */
static bool is_inside(const finder *f, uint64_t addr)
{
    const image_fde *fde = image_fde_at(f->space->img, addr);
    return fde && fde->start != addr && flow_has(f->space, f->space->starts, fde->start);
}

/* Marks, per function, how it is connected to others by jumps. */
static uint8_t *connections(const finder *f)
{
    uint8_t *how = base_alloc_zero(f->count, sizeof *how);
    uint32_t *from = base_alloc(f->count * sizeof *from);
    for (uint32_t i = 0; i < f->count; i++) {
        const flow_func *func = &f->funcs[i];
        for (uint32_t l = 0; l < func->leave_count; l++) {
            const flow_leave *leave = &func->leaves[l];
            if (leave->kind == LEAVE_SHARE && is_inside(f, leave->target)) how[i] |= JUMPS_BACK;
            if (leave->kind != LEAVE_TAIL && leave->kind != LEAVE_BRANCH) continue;
            uint32_t to = finder_index(f, leave->target);
            if (to == f->count) continue;
            if ((how[to] & (BY_JUMP | BY_BRANCH)) && from[to] != i) how[to] |= BY_MANY;
            how[to] |= leave->kind == LEAVE_BRANCH ? BY_BRANCH : BY_JUMP;
            from[to] = i;
        }
    }
    free(from);
    return how;
}

/* Functions that certainly are ones begin at multiples of 16, as compilers that make cold parts do it. */
static bool are_aligned(const finder *f)
{
    uint32_t sure = 0, aligned = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (!flow_bit(f->called, (uint64_t)flow_place(f->space, f->entries[i]))) continue;
        sure++;
        aligned += f->entries[i] % 16 == 0;
    }
    return aligned >= sure - sure / 4;
}

/* Among frame descriptions that are not aligned, without padding between, or first of all: where the linker gathers
 * what is cold. */
static bool is_packed(const flow_space *space, uint64_t addr)
{
    const image *img = space->img;
    const image_fde *fde = image_fde_at(img, addr), *first = img->fdes, *last = img->fdes + img->fde_count - 1;
    if (!fde) return false;
    if (flow_region_at(space, addr)->addr == addr) return true;
    return (fde > first && fde[-1].end == fde->start && fde[-1].start % 16) ||
           (fde < last && fde[1].start == fde->end && fde[1].start % 16);
}

/* Functions that are entered with a deeper stack (by the loader) or by the kernel: their frame descriptions look like
 * parts, but something points to them. Where they are not aligned, one of a signal frame begins a byte before. */
static void raise_parts(finder *f)
{
    const flow_space *space = f->space;
    for (uint32_t i = 0; i < space->img->fde_count; i++) {
        const image_fde *fde = &space->img->fdes[i];
        uint64_t entry = fde->start + (fde->signal && fde->start % 16 == 15);
        int64_t place = fde->fragment && entry % 16 == 0 ? flow_place(space, entry) : FLOW_NOWHERE;
        if (place < 0 || flow_bit(space->starts, (uint64_t)place)) continue;
        if (flow_bit(f->named, (uint64_t)place) || flow_bit(f->pointed, (uint64_t)place))
            finder_add(f, entry, FOUND_POINTER);
    }
}

void drop_parts(finder *f)
{
    flow_space *space = f->space;
    bool aligned = are_aligned(f);
    raise_parts(f);
    uint64_t *changed = base_alloc_zero(space->code_size / 64 + 1, sizeof *changed);
    uint8_t *how = connections(f);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t place = (uint64_t)flow_place(space, f->entries[i]);
        bool wanted = (f->found[i] & ~(uint32_t)(FOUND_FDE | FOUND_TAIL)) || flow_bit(f->called, place) ||
                      flow_bit(f->pointed, place) || flow_bit(f->named, place);
        bool odd = f->entries[i] % 16 || is_packed(space, f->entries[i]);
        bool part = !wanted && odd && (how[i] & (BY_BRANCH | BY_JUMP)) &&
                    ((how[i] & (JUMPS_BACK | BY_BRANCH)) || (aligned && !(how[i] & BY_MANY)));
        if (part) {
            flow_set(changed, place);
            flow_set(space->parts, place);
            flow_clear(space->starts, place);
            flow_clear(space->dead, place);
            flow_free(&f->funcs[i]);
            continue;
        }
        f->entries[kept] = f->entries[i];
        f->found[kept] = f->found[i];
        f->funcs[kept++] = f->funcs[i];
    }
    memset(space->doubtful, 0, (space->code_size / 64 + 1) * sizeof *space->doubtful);
    f->count = kept;
    finder_forget_callers(f, changed);
    finder_forget_unsettled(f);
    free(how);
    free(changed);
}
