/* Functions that nothing tells of: code that no frame description, no symbol and no call explains.
 *
 * Assembler functions and start-up code have no frame descriptions; programs built without them have none at all. Such
 * functions are looked for in what is not explained, first where pointers lead. */
#include "static/lift/discover.h"

enum {
    MAX_FINDS = 12,       /* searches that begin anew */
    TRIAL_INSNS = 20000,  /* of a function that may be one */
    TRIALS_PER_BYTE = 16  /* of code: instructions of all trials */
};

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
    if (out->len) qsort(out->data, out->len, sizeof *out->data, piece_order);
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
    flow_trial trial;
    uint64_t most = f->trials < TRIAL_INSNS ? f->trials : TRIAL_INSNS;
    bool good = most && flow_try(f->space, f->scratch[0], addr, (uint32_t)most, &trial);
    if (most) f->trials -= trial.count < f->trials ? trial.count : f->trials;
    for (uint32_t i = 0; good && i < trial.count; i++) {
        const lift_insn *insn = &trial.insns[i];
        const flow_region *r = flow_region_at(f->space, insn->addr);
        const uint8_t *bytes = insn->len > 1 ? r->bytes + (insn->addr - r->addr) : NULL;
        good = !is_odd(insn->mnemonic) && !(bytes && bytes[0] == 0 && bytes[1] == 0); /* add %al,(%rax) */
    }
    if (good) *end = trial.end;
    return good;
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
            finder_add(f, at, bits ? FOUND_POINTER : FOUND_GAP);
            at = end;
            padded = false;
        } else {
            at = bits ? at + 1 : skip_dead(r, at, to);
            padded = false;
        }
    }
}

static void search_all(finder *f, const pieces *known, search_kind kind)
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
void search_gaps(finder *f)
{
    pieces known = {0};
    uint32_t finds = 0;
    f->trials = TRIALS_PER_BYTE * f->space->code_size;
    for (search_kind kind = AT_NAMES; kind <= AT_GAPS && !f->gave_up;) {
        if (!known.len) explained(f, &known);
        search_all(f, &known, kind);
        if (!f->fresh.len) {
            kind++;
            continue;
        }
        vec_clear(&known);
        finder_settle(f);
        finder_settle_tables(f);
        finder_settle(f);
        note_pointers(f);
        kind = ++finds < MAX_FINDS ? AT_NAMES : kind + 1;
    }
    vec_free(&known);
}

uint64_t gap_extend_end(const finder *f, const lift_func *func)
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
