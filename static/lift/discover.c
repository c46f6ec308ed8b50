/* Where functions start, with or without symbols.
 *
 * Starts come, in this order, from what is certain to what is likely: symbols, frame descriptions (FDEs), the entry point
 * and init functions; then the targets of calls and tail jumps in what these reach; then pointers to code that nothing
 * has explained yet; last, gaps between functions. Between these steps everything known is built, calls that never
 * return are cut, and what depends on the change is built again, until nothing changes.
 *
 * Cold parts of functions have frame descriptions of their own, which do not always look different from a function's.
 * One that nothing calls or points to, and that lies where functions do not begin (not aligned, or packed among such),
 * is taken for a part when a conditional jump leads to it, when it jumps back into the middle of another function, or
 * when just one function jumps to it. */
#include "static/lift/flow.h"

#include <omp.h>

enum {
    MAX_ROUNDS = 40, /* of one settling; beyond it calls are only found to return after all, not the contrary */
    MAX_TABLE_ROUNDS = 8,
    STEPS = 50000, MAX_STEPS = 100000000, /* for indirect jumps: of a function, of all */
    MAX_FINDS = 12,  /* searches that begin anew */
    MAX_BUILDS = 2000 /* rounds of building altogether; chains of calls that are longer are left to the gaps */
};

typedef struct {
    uint64_t addr;
    uint32_t found;
} start;

typedef struct {
    uint64_t start, end;
} piece;

typedef VEC(piece) pieces;

typedef struct {
    flow_space *space;
    int jobs;
    flow_scratch **scratch; /* per thread */
    uint64_t *entries;      /* sorted; the three arrays go together */
    uint32_t *found;
    flow_func *funcs; /* func NULL: to be built */
    uint32_t count, cap;
    VEC(start) fresh; /* starts found, not yet among the entries */
    uint64_t *called, *jumped; /* bit per code byte: the target of a call, of a tail jump */
    uint64_t *pointed, *named; /* of a pointer in data, of an address that code takes */
    uint32_t builds;
} finder;

static int by_addr(const void *a, const void *b)
{
    const start *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void add_start(finder *f, uint64_t addr, uint32_t found)
{
    vec_push(&f->fresh, (start){addr, found});
}

static uint32_t index_of(const finder *f, uint64_t addr)
{
    uint32_t low = 0, high = f->count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (f->entries[mid] < addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* --- rounds of building -------------------------------------------------------------------------------------------- */

/* A function that contains the first instruction of another one must be built again. */
static void forget_overlaps(finder *f)
{
    const flow_space *space = f->space;
#pragma omp parallel for schedule(dynamic, 64) num_threads(f->jobs)
    for (uint32_t i = 0; i < f->count; i++) {
        lift_func *func = f->funcs[i].func;
        bool overlaps = false;
        for (uint32_t b = 0; func && b < func->block_count && !overlaps; b++) {
            const lift_block *block = &func->blocks[b];
            if (!block->insn_count) continue;
            uint64_t from = block->start == func->entry ? func->entry + 1 : block->start;
            if (from >= block->end || !flow_region_at(space, from)) continue;
            uint64_t next = flow_next_bit(space, space->starts, from);
            if (next >= block->end) continue;
            for (uint32_t n = 0; n < block->insn_count && !overlaps; n++) {
                uint64_t addr = func->insns[block->first_insn + n].addr;
                overlaps = addr != func->entry && flow_has(space, space->starts, addr);
            }
        }
        if (overlaps) flow_free(&f->funcs[i]);
    }
}

/* Sorts the fresh starts in among the entries. True: there were new ones. */
static bool merge_fresh(finder *f)
{
    uint32_t n = f->fresh.len, kept = 0;
    if (n) qsort(f->fresh.data, n, sizeof *f->fresh.data, by_addr);
    for (uint32_t i = 0; i < n; i++) {
        start s = f->fresh.data[i];
        uint32_t at = index_of(f, s.addr);
        if (at < f->count && f->entries[at] == s.addr)
            f->found[at] |= s.found;
        else if (kept && f->fresh.data[kept - 1].addr == s.addr)
            f->fresh.data[kept - 1].found |= s.found;
        else
            f->fresh.data[kept++] = s;
    }
    f->fresh.len = 0;
    if (!kept) return false;
    if (f->count + kept > f->cap) {
        f->cap = (f->count + kept) * 2;
        f->entries = base_realloc(f->entries, f->cap * sizeof *f->entries);
        f->found = base_realloc(f->found, f->cap * sizeof *f->found);
        f->funcs = base_realloc(f->funcs, f->cap * sizeof *f->funcs);
    }
    for (uint32_t from = f->count, fresh = kept, to = f->count + kept; to-- > 0;) {
        if (fresh && (!from || f->entries[from - 1] < f->fresh.data[fresh - 1].addr)) {
            start s = f->fresh.data[--fresh];
            f->entries[to] = s.addr;
            f->found[to] = s.found;
            f->funcs[to] = (flow_func){0};
            uint64_t place = (uint64_t)flow_place(f->space, s.addr);
            flow_set(f->space->starts, place);
            flow_clear(f->space->parts, place);
        } else {
            from--;
            f->entries[to] = f->entries[from];
            f->found[to] = f->found[from];
            f->funcs[to] = f->funcs[from];
        }
    }
    f->count += kept;
    f->space->budget = 64 + 64 * (f->space->code_size / f->count);
    f->space->steps = MAX_STEPS / f->count < STEPS ? MAX_STEPS / f->count : STEPS;
    return true;
}

/* Code at addr is the target of a call or tail jump. */
static void note(finder *f, uint64_t *bits, uint64_t addr, uint32_t found)
{
    int64_t place = flow_place(f->space, addr);
    if (place < 0 || flow_bit(bits, (uint64_t)place)) return;
    flow_set(bits, (uint64_t)place);
    if (!flow_bit(f->space->starts, (uint64_t)place)) add_start(f, addr, found);
}

/* Builds what is not built, and takes note of where its calls and jumps lead. */
static void build_pending(finder *f)
{
    VEC(uint32_t) todo = {0};
    for (uint32_t i = 0; i < f->count; i++)
        if (!f->funcs[i].func) vec_push(&todo, i);
#pragma omp parallel for schedule(dynamic, 8) num_threads(f->jobs)
    for (uint32_t i = 0; i < todo.len; i++) {
        uint32_t id = todo.data[i];
        flow_build(f->space, f->scratch[omp_get_thread_num()], f->entries[id], &f->funcs[id]);
    }
    for (uint32_t i = 0; i < todo.len; i++) {
        const flow_func *func = &f->funcs[todo.data[i]];
        for (uint32_t l = 0; l < func->leave_count; l++) {
            const flow_leave *leave = &func->leaves[l];
            if (leave->kind == LEAVE_CALL)
                note(f, f->called, leave->target, FOUND_CALL);
            else if (leave->kind == LEAVE_TAIL || leave->kind == LEAVE_BRANCH)
                note(f, f->jumped, leave->target, FOUND_TAIL);
        }
    }
    vec_free(&todo);
}

/* Forgets the functions that call or jump to one in `changed`. */
static void forget_callers(finder *f, const uint64_t *changed)
{
#pragma omp parallel for schedule(dynamic, 64) num_threads(f->jobs)
    for (uint32_t i = 0; i < f->count; i++) {
        flow_func *func = &f->funcs[i];
        bool stale = false;
        for (uint32_t l = 0; l < func->leave_count && !stale; l++)
            stale = func->leaves[l].target && flow_has(f->space, changed, func->leaves[l].target);
        if (stale) flow_free(func);
    }
}

/* Finds which functions never return. True: some changed, and their callers are to be built again. */
static bool settle_returns(finder *f, bool only_more)
{
    flow_space *space = f->space;
    bool *returns = base_alloc_zero(f->count, sizeof *returns);
    uint64_t *changed = base_alloc_zero(space->code_size / 64 + 1, sizeof *changed);
    bool any = false;
    noreturn_solve(space, f->funcs, f->count, returns);
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t place = (uint64_t)flow_place(space, f->entries[i]);
        bool dead = !returns[i];
        f->funcs[i].func->returns = returns[i];
        if (flow_bit(space->dead, place) == dead || (dead && only_more)) continue;
        if (dead)
            flow_set(space->dead, place);
        else
            flow_clear(space->dead, place);
        flow_set(changed, place);
        any = true;
    }
    if (any) forget_callers(f, changed);
    free(returns);
    free(changed);
    return any;
}

/* Builds what is not built, and what that calls. */
static void build(finder *f)
{
    do {
        bool anew = f->count > 0;
        if (merge_fresh(f) && anew) forget_overlaps(f);
        build_pending(f);
    } while (f->fresh.len && f->builds++ < MAX_BUILDS);
}

/* Builds until nothing changes. */
static void settle(finder *f)
{
    for (uint32_t round = 0; round < 2 * MAX_ROUNDS; round++) {
        build(f);
        if (!settle_returns(f, round >= MAX_ROUNDS)) return;
    }
}

/* --- what the file says -------------------------------------------------------------------------------------------- */

static bool is_cold_name(const char *name)
{
    const char *cold = strstr(name, ".cold");
    return cold && (cold[5] == 0 || cold[5] == '.');
}

static void set_part(finder *f, uint64_t addr)
{
    int64_t place = flow_place(f->space, addr);
    if (place >= 0) flow_set(f->space->parts, (uint64_t)place);
}

static void seed_symbols(finder *f)
{
    const image *img = f->space->img;
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        const image_symbol *s = &img->symbols[i];
        if (s->type != IMAGE_SYM_FUNC && s->type != IMAGE_SYM_IFUNC) continue;
        if (!f->space->symbols && !s->exported) continue;
        int64_t place = flow_place(f->space, s->addr);
        if (place < 0 || image_plt_at(img, s->addr)) continue;
        if (is_cold_name(s->name)) {
            flow_set(f->space->parts, (uint64_t)place);
            continue;
        }
        add_start(f, s->addr, FOUND_SYMBOL);
        if (noreturn_name(s->name, true)) {
            flow_set(f->space->named_dead, (uint64_t)place);
            flow_set(f->space->dead, (uint64_t)place);
        }
    }
}

/* The frame description of PLT stubs is not one of a function. */
static bool is_plt_fde(const image *img, const image_fde *fde)
{
    uint32_t low = 0, high = img->plt_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (img->plts[mid].addr < fde->start)
            low = mid + 1;
        else
            high = mid;
    }
    return low < img->plt_count && img->plts[low].addr < fde->end;
}

static void seed_frames(finder *f)
{
    const image *img = f->space->img;
    for (uint32_t i = 0; i < img->pad_count; i++) { /* a function does not begin with a landing pad, or a nop and one */
        uint64_t pad = img->pads[i].pad;
        const image_fde *fde = image_fde_at(img, pad);
        uint8_t first = 0;
        if (!fde || pad - fde->start > 1) continue;
        if (pad == fde->start || (image_read(img, fde->start, &first, 1) && first == 0x90)) set_part(f, fde->start);
    }
    for (uint32_t i = 0; i < img->fde_count; i++) {
        const image_fde *fde = &img->fdes[i];
        int64_t place = flow_place(f->space, fde->start);
        if (place < 0 || fde->start >= fde->end || is_plt_fde(img, fde)) continue;
        const image_symbol *s = f->space->symbols ? image_symbol_covering(img, fde->start) : NULL;
        bool inside = s && s->addr != fde->start && (s->type == IMAGE_SYM_FUNC || s->type == IMAGE_SYM_IFUNC);
        if (fde->fragment || inside) flow_set(f->space->parts, (uint64_t)place);
        if (flow_bit(f->space->parts, (uint64_t)place)) continue;
        add_start(f, fde->start, FOUND_FDE);
        if (fde->start % 16) flow_set(f->space->doubtful, (uint64_t)place);
    }
}

static void seed_entry_points(finder *f)
{
    const image *img = f->space->img;
    if (img->entry && flow_place(f->space, img->entry) >= 0) add_start(f, img->entry, FOUND_ENTRY);
    for (uint32_t i = 0; i < img->init_count; i++)
        if (flow_place(f->space, img->init[i]) >= 0) add_start(f, img->init[i], FOUND_ENTRY);
}

/* --- parts that look like functions -------------------------------------------------------------------------------- */

static void note_pointer(const finder *f, uint64_t *bits, uint64_t addr)
{
    int64_t place = flow_place(f->space, addr);
    if (place >= 0) flow_set(bits, (uint64_t)place);
}

static int by_start(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void add_tables(const finder *f, pieces *out)
{
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t t = 0; t < f->funcs[i].func->table_count; t++) {
            const lift_table *table = &f->funcs[i].func->tables[t];
            vec_push(out, (piece){table->table, table->table + (uint64_t)table->count * table->entry_size});
        }
}

/* What data and code point to; the entries of jump tables are no pointers. */
static void note_pointers(finder *f)
{
    const image *img = f->space->img;
    pieces tables = {0};
    uint32_t t = 0;
    uint64_t done = 0;
    add_tables(f, &tables);
    if (tables.len) qsort(tables.data, tables.len, sizeof *tables.data, by_start);
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
            uint32_t to = index_of(f, leave->target);
            if (to == f->count || f->entries[to] != leave->target) continue;
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

/* Frame descriptions without padding between them, not aligned: where the linker gathers what is cold. */
static bool is_packed(const image *img, uint64_t addr)
{
    const image_fde *fde = image_fde_at(img, addr), *first = img->fdes, *last = img->fdes + img->fde_count - 1;
    if (!fde) return false;
    bool before = fde > first && fde[-1].end == fde->start, after = fde < last && fde[1].start == fde->end;
    return before && after && (fde[-1].start % 16 || fde[1].start % 16);
}

/* Forgets functions whose tables may come out otherwise when more is known. */
static void forget_unsettled(finder *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->funcs[i].has_weak || (f->funcs[i].func && f->funcs[i].func->unresolved_jumps)) flow_free(&f->funcs[i]);
}

/* Takes the parts out of the list; what jumps to them is to be built again. */
static void drop_parts(finder *f)
{
    flow_space *space = f->space;
    bool aligned = are_aligned(f);
    uint64_t *changed = base_alloc_zero(space->code_size / 64 + 1, sizeof *changed);
    uint8_t *how = connections(f);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t place = (uint64_t)flow_place(space, f->entries[i]);
        bool wanted = (f->found[i] & ~(uint32_t)(FOUND_FDE | FOUND_TAIL)) || flow_bit(f->called, place) ||
                      flow_bit(f->pointed, place) || flow_bit(f->named, place);
        bool odd = f->entries[i] % 16 || is_packed(space->img, f->entries[i]);
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
    forget_callers(f, changed);
    forget_unsettled(f);
    free(how);
    free(changed);
}

/* --- tables without an exact size ---------------------------------------------------------------------------------- */

/* Takes note of all addresses that code names: they end the tables before them. `changed`: bits of those that came or
 * went since. */
static void note_refs(finder *f, uint64_t *changed)
{
    flow_space *space = f->space;
    uint64_t words = space->data_size / 64 + 1;
    memcpy(changed, space->refs, words * sizeof *changed);
    memset(space->refs, 0, words * sizeof *space->refs);
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t r = 0; r < f->funcs[i].ref_count; r++) {
            int64_t place = flow_data_place(space, f->funcs[i].refs[r] & ~FLOW_POINTER);
            if (place >= 0) flow_set(space->refs, (uint64_t)place);
        }
    for (uint64_t i = 0; i < words; i++)
        changed[i] ^= space->refs[i];
}

/* One of them is inside a table of the function, or right behind it. */
static bool hits_table(const flow_space *space, const lift_func *func, const uint64_t *changed)
{
    for (uint32_t t = 0; t < func->table_count; t++) {
        const lift_table *table = &func->tables[t];
        int64_t place = flow_data_place(space, table->table);
        uint64_t size = (uint64_t)table->count * table->entry_size;
        for (uint64_t i = 1; place >= 0 && i <= size && (uint64_t)place + i < space->data_size; i++)
            if (flow_bit(changed, (uint64_t)place + i)) return true;
    }
    return false;
}

/* Builds again what has tables without exact size, or jumps that may be such. Code that becomes known in this way may
 * name further addresses. */
static void build_tables(finder *f)
{
    flow_space *space = f->space;
    uint64_t *changed = base_alloc((space->data_size / 64 + 1) * sizeof *changed);
    for (uint32_t round = 0; round < MAX_TABLE_ROUNDS; round++) {
        bool any = false, first = !space->refs_known;
        note_refs(f, changed);
        space->refs_known = true;
        for (uint32_t i = 0; i < f->count; i++) {
            flow_func *func = &f->funcs[i];
            bool stale = func->has_weak ? first || hits_table(space, func->func, changed)
                                        : round == 0 && func->func->unresolved_jumps;
            any |= stale;
            if (stale) flow_free(func);
        }
        if (!any) break;
        build(f);
    }
    free(changed);
}

/* --- pointers and gaps --------------------------------------------------------------------------------------------- */

/* Code that is explained, sorted. */
static void explained(const finder *f, pieces *out)
{
    const image *img = f->space->img;
    for (uint32_t i = 0; i < img->fde_count; i++)
        vec_push(out, (piece){img->fdes[i].start, img->fdes[i].end});
    for (uint32_t i = 0; i < img->plt_count; i++)
        vec_push(out, (piece){img->plts[i].addr, img->plts[i].addr + img->plts[i].size});
    for (uint32_t i = 0; i < img->section_count; i++)
        if (!strncmp(img->sections[i].name, ".plt", 4))
            vec_push(out, (piece){img->sections[i].addr, img->sections[i].addr + img->sections[i].size});
    add_tables(f, out);
    for (uint32_t i = 0; i < f->count; i++) {
        const lift_func *func = f->funcs[i].func;
        const image_fde *fde = image_fde_at(img, func->entry);
        for (uint32_t b = 0; b < func->block_count; b++)
            if (!fde || func->blocks[b].start < fde->start || func->blocks[b].end > fde->end)
                vec_push(out, (piece){func->blocks[b].start, func->blocks[b].end});
    }
    if (out->len) qsort(out->data, out->len, sizeof *out->data, by_start);
}

/* Instructions that compilers and programmers never put into a user's program, but that data often decode to. */
static bool is_odd(uint16_t mnemonic)
{
    static const uint16_t odd[] = {
        ZYDIS_MNEMONIC_IN,   ZYDIS_MNEMONIC_OUT,  ZYDIS_MNEMONIC_INSB, ZYDIS_MNEMONIC_INSD, ZYDIS_MNEMONIC_OUTSB,
        ZYDIS_MNEMONIC_OUTSD, ZYDIS_MNEMONIC_CLI, ZYDIS_MNEMONIC_STI,  ZYDIS_MNEMONIC_IRETD, ZYDIS_MNEMONIC_ENTER,
        ZYDIS_MNEMONIC_LOOPE, ZYDIS_MNEMONIC_LOOPNE, ZYDIS_MNEMONIC_XLAT, ZYDIS_MNEMONIC_CMC, ZYDIS_MNEMONIC_SALC,
    };
    for (uint32_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (odd[i] == mnemonic) return true;
    return false;
}

/* Would a function that starts at addr make sense? Then `*end` is where its code ends. */
static bool is_plausible(finder *f, uint64_t addr, uint64_t *end)
{
    flow_func trial;
    flow_build(f->space, f->scratch[0], addr, &trial);
    const lift_func *func = trial.func;
    bool good = func->insn_count > 0;
    for (uint32_t b = 0; b < func->block_count && good; b++)
        good = func->blocks[b].end_kind != END_BAD;
    for (uint32_t i = 0; i < func->insn_count && good; i++) {
        const lift_insn *insn = &func->insns[i];
        const uint8_t *bytes = image_bytes(f->space->img, insn->addr, &(uint64_t){0});
        good = !is_odd(insn->mnemonic) && !(bytes[0] == 0 && bytes[1] == 0); /* add %al,(%rax) */
    }
    for (uint32_t l = 0; l < trial.leave_count && good; l++)
        good = trial.leaves[l].kind != LEAVE_SHARE || trial.leaves[l].target == 0;
    if (good) *end = func->end;
    flow_free(&trial);
    return good && *end > addr;
}

/* Instructions with which only functions begin. */
static bool is_prologue(const flow_region *r, uint64_t addr)
{
    const uint8_t *b = r->bytes + (addr - r->addr);
    uint64_t n = r->size - (addr - r->addr);
    static const struct { uint8_t len, bytes[4]; } begins[] = {
        {4, {0xf3, 0x0f, 0x1e, 0xfa}}, /* endbr64 */
        {4, {0x55, 0x48, 0x89, 0xe5}}, /* push %rbp; mov %rsp,%rbp */
        {3, {0x48, 0x83, 0xec}},       /* sub $n,%rsp */
        {3, {0x48, 0x81, 0xec}},
        {2, {0x41, 0x54}}, {2, {0x41, 0x55}}, {2, {0x41, 0x56}}, {2, {0x41, 0x57}}, /* push %r12 ... */
        {1, {0x53}}, {1, {0x55}},
    };
    for (uint32_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (n >= begins[i].len && !memcmp(b, begins[i].bytes, begins[i].len)) return true;
    return false;
}

/* Behind the code that begins at addr: it is not reached, the rest of a function behind a call that does not return. */
static uint64_t skip_dead(const flow_region *r, uint64_t addr, uint64_t to)
{
    lift_insn insn;
    flow_ref ref;
    while (addr < to && flow_decode(r->bytes + (addr - r->addr), to - addr, addr, false, &insn, &ref)) {
        addr += insn.len;
        if (insn.flow == FLOW_RET || insn.flow == FLOW_JUMP || insn.flow == FLOW_JUMP_IND ||
            insn.flow == FLOW_JUMP_SLOT || insn.flow == FLOW_TRAP)
            return addr;
    }
    return addr < to ? (addr | 15) + 1 : to;
}

/* Where to look, from what is most likely a function to what is least. The entries of jump tables that are not known
 * yet are pointers too: hence the order, and what has been found is followed before the next step. */
typedef enum {
    AT_NAMES,    /* where code takes the address */
    AT_PROLOGUES, /* where data point and a prologue is */
    AT_ALIGNED,  /* where data point and a function would be aligned */
    AT_POINTERS, /* where data point */
    AT_GAPS      /* anywhere */
} search_kind;

static bool is_likely(const flow_region *r, uint64_t at, bool padded, search_kind kind)
{
    bool aligned = at % 16 == 0 && (padded || flow_padding_before(r, at));
    switch (kind) {
    case AT_PROLOGUES: return is_prologue(r, at);
    case AT_ALIGNED: return aligned;
    case AT_GAPS: return aligned || is_prologue(r, at);
    default: return true;
    }
}

/* Starts in code that no frame description and no function explains. */
static void search_gap(finder *f, const flow_region *r, uint64_t from, uint64_t to, search_kind kind)
{
    const uint64_t *bits = kind == AT_GAPS ? NULL : kind == AT_NAMES ? f->named : f->pointed;
    bool padded = from == r->addr; /* padding, or nothing, lies before */
    for (uint64_t at = from; at < to;) {
        uint64_t place = r->first + (at - r->addr), end = at;
        if (bits && !flow_bit(bits, place)) {
            at = flow_next_bit(f->space, bits, at);
            padded = false;
            continue;
        }
        uint32_t skip = flow_padding(r->bytes + (at - r->addr), to - at);
        if (skip) {
            at += skip;
            padded = true;
        } else if (is_likely(r, at, padded, kind) && !flow_bit(f->space->parts, place) && is_plausible(f, at, &end)) {
            add_start(f, at, bits ? FOUND_POINTER : FOUND_GAP);
            at = end;
            padded = false;
        } else {
            at = bits ? at + 1 : skip_dead(r, at, to);
            padded = false;
        }
    }
}

static void search_gaps(finder *f, const pieces *known, search_kind kind)
{
    uint32_t k = 0;
    uint64_t done = 0; /* what is before it is explained or has been searched */
    for (uint32_t i = 0; i < f->space->region_count; i++) {
        const flow_region *r = &f->space->regions[i];
        uint64_t end = r->addr + r->size;
        if (done < r->addr) done = r->addr;
        while (done < end) {
            for (; k < known->len && known->data[k].start <= done; k++)
                if (known->data[k].end > done) done = known->data[k].end;
            uint64_t stop = k < known->len && known->data[k].start < end ? known->data[k].start : end;
            if (done < stop) search_gap(f, r, done, stop, kind);
            if (done < stop) done = stop;
        }
    }
}

/* What is found names and points to more: after each find the search begins anew. */
static void search(finder *f)
{
    pieces known = {0};
    uint32_t finds = 0;
    for (search_kind kind = AT_NAMES; kind <= AT_GAPS;) {
        if (!known.len) explained(f, &known);
        search_gaps(f, &known, kind);
        if (!f->fresh.len) {
            kind++;
            continue;
        }
        vec_clear(&known);
        settle(f);
        build_tables(f);
        settle(f);
        note_pointers(f);
        kind = ++finds < MAX_FINDS ? AT_NAMES : kind + 1;
    }
    vec_free(&known);
}

/* --- all ----------------------------------------------------------------------------------------------------------- */

/* Code behind the last block that is not reached belongs to the function, up to padding or the next one. */
static uint64_t extend_end(const finder *f, const lift_func *func)
{
    const flow_region *r = flow_region_at(f->space, func->end);
    if (!r || func->end == func->entry || image_fde_at(f->space->img, func->entry)) return func->end;
    uint64_t end = func->end, next = flow_next_bit(f->space, f->space->starts, end);
    while (end < next && !image_fde_at(f->space->img, end) && !flow_padding(r->bytes + (end - r->addr), next - end)) {
        uint64_t behind = skip_dead(r, end, next);
        if (behind > next || behind % 16 == 0) break;
        end = behind;
    }
    return end;
}

static void fill_found(finder *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t place = (uint64_t)flow_place(f->space, f->entries[i]);
        lift_func *func = f->funcs[i].func;
        func->id = i;
        func->end = extend_end(f, func);
        bool pointed = flow_bit(f->pointed, place) || flow_bit(f->named, place);
        func->found = f->found[i] | (flow_bit(f->called, place) ? FOUND_CALL : 0) |
                      (flow_bit(f->jumped, place) ? FOUND_TAIL : 0) | (pointed ? FOUND_POINTER : 0);
    }
}

void discover(flow_space *space, int jobs, flow_found *found)
{
    size_t words = space->code_size / 64 + 1;
    finder f = {.space = space, .jobs = jobs};
    f.scratch = base_alloc((size_t)jobs * sizeof *f.scratch);
    for (int i = 0; i < jobs; i++)
        f.scratch[i] = flow_scratch_open();
    f.called = base_alloc_zero(words, sizeof *f.called);
    f.jumped = base_alloc_zero(words, sizeof *f.jumped);
    f.pointed = base_alloc_zero(words, sizeof *f.pointed);
    f.named = base_alloc_zero(words, sizeof *f.named);
    seed_symbols(&f);
    seed_frames(&f);
    seed_entry_points(&f);
    settle(&f);
    build_tables(&f);
    note_pointers(&f);
    drop_parts(&f);
    settle(&f);
    note_pointers(&f);
    search(&f);
    fill_found(&f);
    *found = (flow_found){.funcs = f.funcs, .count = f.count};
    for (int i = 0; i < jobs; i++)
        flow_scratch_close(f.scratch[i]);
    free(f.scratch);
    free(f.entries);
    free(f.found);
    free(f.called);
    free(f.jumped);
    free(f.pointed);
    free(f.named);
    vec_free(&f.fresh);
}
