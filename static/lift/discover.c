/* Where functions start, with or without symbols.
 *
 * Starts come, in this order, from what is certain to what is likely: symbols, frame descriptions (FDEs), the entry
 * point and init functions; then the targets of calls and tail jumps in what these reach; then pointers to code that
 * nothing has explained yet; last, gaps between functions. Between these steps everything known is built, calls that
 * never return are cut, and what depends on the change is built again, until nothing changes. */
#include "static/lift/discover.h"

#include <omp.h>

enum {
    MAX_ROUNDS = 40,       /* of one settling; beyond it calls are only found to return after all, not the contrary */
    MAX_TABLE_ROUNDS = 8,  /* of settling tables */
    MAX_BUILDS = 2000,     /* rounds of building altogether; longer chains of calls are left to the gaps */
    STEPS = 50000,         /* for the indirect jumps of a function, apart from what its size allows */
    WORK = 2000000,        /* on the whole module, ... */
    WORK_PER_BYTE = 40,    /* ... and by its code; compilers' code takes 1, the hardest known 2.3 */
    ROUND_COST = 32,       /* instructions known that make a round of looking at all of them cost one more */
    INSNS = 1 << 20,       /* of all functions together, ... */
    INSNS_PER_BYTE = 4,    /* ... and by the module's code */
    OVERLAP = 64,          /* of them in others' code that a function may have, for each byte of an average function */
    BATCHES = 16,          /* in which all functions are built: between them the work is counted; ... */
    MIN_BATCH = 16,
    MAX_BATCH = 1024       /* ... of that many functions at most */
};

static int by_addr(const void *a, const void *b)
{
    const start *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

uint32_t finder_index(const finder *f, uint64_t addr)
{
    uint32_t low = 0, high = f->count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (f->entries[mid] < addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->count && f->entries[low] == addr ? low : f->count;
}

/* --- rounds of building ------------------------------------------------------------------------------------------ */

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

/* What a function may take without the module's share being exceeded by all together. */
static void set_budgets(finder *f)
{
    flow_space *space = f->space;
    uint64_t share = f->most_work / f->count;
    space->budget = f->crowded ? 0 : OVERLAP + OVERLAP * (space->code_size / f->count);
    space->steps = share < STEPS ? share : STEPS;
}

/* Sorts the fresh starts in among the entries. True: there were new ones. */
static bool merge_fresh(finder *f)
{
    uint32_t n = f->fresh.len, kept = 0;
    if (n) qsort(f->fresh.data, n, sizeof *f->fresh.data, by_addr);
    for (uint32_t i = 0; i < n; i++) {
        start s = f->fresh.data[i];
        uint32_t at = finder_index(f, s.addr);
        if (at < f->count)
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
    set_budgets(f);
    return true;
}

/* Code at addr is the target of a call or tail jump. */
static void note(finder *f, uint64_t *bits, uint64_t addr, uint32_t found)
{
    int64_t place = flow_place(f->space, addr);
    if (place < 0 || flow_bit(bits, (uint64_t)place)) return;
    flow_set(bits, (uint64_t)place);
    if (!flow_bit(f->space->starts, (uint64_t)place)) finder_add(f, addr, found);
}

/* Takes note of where the calls and jumps of a function lead, and of what it took to build it. */
static void note_built(finder *f, const flow_func *func)
{
    f->work += func->work;
    f->insns += func->func->insn_count;
    for (uint32_t l = 0; l < func->leave_count; l++) {
        const flow_leave *leave = &func->leaves[l];
        if (leave->kind == LEAVE_CALL)
            note(f, f->called, leave->target, FOUND_CALL);
        else if (leave->kind == LEAVE_TAIL || leave->kind == LEAVE_BRANCH)
            note(f, f->jumped, leave->target, FOUND_TAIL);
    }
}

/* Builds what is not built. The work is counted between batches, whose size hangs on no number of threads. */
static void build_pending(finder *f)
{
    VEC(uint32_t) todo = {0};
    f->insns = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->funcs[i].func)
            f->insns += f->funcs[i].func->insn_count;
        else
            vec_push(&todo, i);
    }
    f->work += (f->count + f->insns) / ROUND_COST;
    uint32_t batch = f->count / BATCHES;
    batch = batch < MIN_BATCH ? MIN_BATCH : batch > MAX_BATCH ? MAX_BATCH : batch;
    for (uint32_t from = 0, to; from < todo.len; from = to) {
        to = todo.len - from < batch ? todo.len : from + batch;
#pragma omp parallel for schedule(dynamic, 8) num_threads(f->jobs)
        for (uint32_t i = from; i < to; i++) {
            uint32_t id = todo.data[i];
            flow_build(f->space, f->scratch[omp_get_thread_num()], f->entries[id], &f->funcs[id]);
        }
        for (uint32_t i = from; i < to; i++)
            note_built(f, &f->funcs[todo.data[i]]);
        if (f->work > f->most_work) f->space->no_jumps = true;
        if (f->insns > INSNS + INSNS_PER_BYTE * f->space->code_size) f->crowded = true;
        set_budgets(f);
    }
    vec_free(&todo);
}

void finder_forget_callers(finder *f, const uint64_t *changed)
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
    if (any) finder_forget_callers(f, changed);
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
    } while (f->fresh.len && f->builds++ < MAX_BUILDS && f->work <= f->most_work);
}

/* The work on the module has no end in sight: what it was for is left open. Every function returns that does not say
 * otherwise by its name, no indirect jump is looked into any more, and tables whose size hangs on what else is found
 * are forgotten. */
static void give_up(finder *f)
{
    flow_space *space = f->space;
    uint64_t words = space->code_size / 64 + 1;
    if (!f->gave_up) {
        uint64_t *changed = base_alloc(words * sizeof *changed);
        f->gave_up = space->no_jumps = true;
        for (uint64_t i = 0; i < words; i++)
            changed[i] = space->dead[i] & ~space->named_dead[i];
        memcpy(space->dead, space->named_dead, words * sizeof *space->dead);
        finder_forget_callers(f, changed);
        for (uint32_t i = 0; i < f->count; i++)
            if (f->funcs[i].has_weak) flow_free(&f->funcs[i]);
        free(changed);
    }
    build(f);
    vec_clear(&f->fresh);
    for (uint32_t i = 0; i < f->count; i++)
        f->funcs[i].func->returns = !flow_has(space, space->dead, f->entries[i]);
}

void finder_settle(finder *f)
{
    for (uint32_t round = 0; round < 2 * MAX_ROUNDS && !f->gave_up; round++) {
        build(f);
        if (f->work > f->most_work) break;
        if (!settle_returns(f, round >= MAX_ROUNDS)) return;
    }
    give_up(f);
}

/* --- tables without an exact size -------------------------------------------------------------------------------- */

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

/* Code that becomes known by this may name further addresses. */
void finder_settle_tables(finder *f)
{
    flow_space *space = f->space;
    uint64_t *changed = base_alloc((space->data_size / 64 + 1) * sizeof *changed);
    for (uint32_t round = 0; round < MAX_TABLE_ROUNDS && !f->gave_up; round++) {
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

void finder_forget_unsettled(finder *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->funcs[i].has_weak || (f->funcs[i].func && f->funcs[i].func->unresolved_jumps)) flow_free(&f->funcs[i]);
}

/* --- what is only guessed ------------------------------------------------------------------------------------------ */

typedef struct {
    const finder *f;
    VEC(uint32_t) work;
    uint64_t *heads, *insides; /* bit per code byte: some function has an instruction that begins here, or goes on here */
} sureness;

static void note_steps(sureness *s, const lift_func *func)
{
    for (uint32_t i = 0; i < func->insn_count; i++) {
        const int64_t place = flow_place(s->f->space, func->insns[i].addr);
        if (place < 0) continue;
        flow_set(s->heads, (uint64_t)place);
        for (uint32_t k = 1; k < func->insns[i].len; k++)
            flow_set(s->insides, (uint64_t)place + k);
    }
}

/* Another function has instructions that begin in the middle of its own, or the other way round: one of them is wrong. */
static bool is_out_of_step(const sureness *s, const lift_func *func)
{
    for (uint32_t i = 0; i < func->insn_count; i++) {
        const int64_t place = flow_place(s->f->space, func->insns[i].addr);
        if (place < 0) continue;
        if (flow_bit(s->insides, (uint64_t)place)) return true;
        for (uint32_t k = 1; k < func->insns[i].len; k++)
            if (flow_bit(s->heads, (uint64_t)place + k)) return true;
    }
    return false;
}

static void make_sure(sureness *s, uint64_t addr)
{
    uint32_t id = finder_index(s->f, addr);
    if (id == s->f->count || !s->f->funcs[id].func->guessed) return;
    s->f->funcs[id].func->guessed = false;
    vec_push(&s->work, id);
}

/* At fixed addresses any number may be one that is no address: functions that only a number leads to begin where
 * compilers let them begin, and agree with all others. */
static void make_sure_by_number(sureness *s, uint64_t addr)
{
    const flow_region *r = flow_region_at(s->f->space, addr);
    const uint32_t id = r ? finder_index(s->f, addr) : s->f->count;
    if (id == s->f->count || !s->f->funcs[id].func->guessed) return;
    if (s->f->space->absolute && ((addr % 8 && !flow_padding_before(r, addr)) || is_out_of_step(s, s->f->funcs[id].func)))
        return;
    make_sure(s, addr);
}

/* A word of constants that is a short text, filled up with zeroes: " %d" is 0x642520. */
static bool is_text(const image *img, const image_reloc *reloc)
{
    const image_section *section = image_section_at(img, reloc->addr);
    if (reloc->kind != IMAGE_REL_GUESS || !section || section->flags & IMAGE_W) return false;
    for (uint64_t rest = reloc->target; rest; rest >>= 8)
        if ((rest & 0xff) < 0x20 && ((rest & 0xff) < '\t' || (rest & 0xff) > '\r')) return false;
    return true;
}

/* What was found in a gap by its looks calls and names other places: they are guesses as well, unless something else
 * leads there. Requires note_pointers. */
static void mark_guessed(const finder *f)
{
    const uint32_t told = FOUND_SYMBOL | FOUND_FDE | FOUND_ENTRY;
    const size_t words = f->space->code_size / 64 + 1;
    sureness s = {.f = f};
    s.heads = base_alloc_zero(words, sizeof *s.heads);
    s.insides = base_alloc_zero(words, sizeof *s.insides);
    for (uint32_t i = 0; i < f->count; i++) {
        f->funcs[i].func->guessed = true;
        if (f->space->absolute) note_steps(&s, f->funcs[i].func);
    }
    for (uint32_t i = 0; i < f->count; i++)
        if (f->found[i] & told) make_sure(&s, f->entries[i]);
    const image *img = f->space->img;
    for (uint32_t i = 0; i < img->reloc_count; i++) /* pointers, as note_pointers has them */
        if (flow_has(f->space, f->pointed, img->relocs[i].target) && !is_text(img, &img->relocs[i]))
            make_sure_by_number(&s, img->relocs[i].target);
    while (s.work.len) {
        const flow_func *func = &f->funcs[s.work.data[--s.work.len]];
        for (uint32_t i = 0; i < func->leave_count; i++)
            make_sure(&s, func->leaves[i].target);
        for (uint32_t i = 0; i < func->ref_count; i++)
            if (func->refs[i] & FLOW_POINTER) make_sure_by_number(&s, func->refs[i] & ~FLOW_POINTER);
    }
    vec_free(&s.work);
    free(s.heads);
    free(s.insides);
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static void fill_found(finder *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t place = (uint64_t)flow_place(f->space, f->entries[i]);
        lift_func *func = f->funcs[i].func;
        func->id = i;
        func->end = gap_extend_end(f, func);
        bool pointed = flow_bit(f->pointed, place) || flow_bit(f->named, place);
        func->found = f->found[i] | (flow_bit(f->called, place) ? FOUND_CALL : 0) |
                      (flow_bit(f->jumped, place) ? FOUND_TAIL : 0) | (pointed ? FOUND_POINTER : 0);
    }
}

void discover(flow_space *space, int jobs, flow_found *found)
{
    size_t words = space->code_size / 64 + 1;
    finder f = {.space = space, .jobs = jobs, .most_work = WORK + WORK_PER_BYTE * space->code_size};
    f.scratch = base_alloc((size_t)jobs * sizeof *f.scratch);
    for (int i = 0; i < jobs; i++)
        f.scratch[i] = flow_scratch_open();
    f.called = base_alloc_zero(words, sizeof *f.called);
    f.jumped = base_alloc_zero(words, sizeof *f.jumped);
    f.pointed = base_alloc_zero(words, sizeof *f.pointed);
    f.named = base_alloc_zero(words, sizeof *f.named);
    seed_starts(&f);
    finder_settle(&f);
    finder_settle_tables(&f);
    note_pointers(&f);
    drop_parts(&f);
    finder_settle(&f);
    note_pointers(&f);
    search_gaps(&f);
    fill_found(&f);
    mark_guessed(&f);
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
