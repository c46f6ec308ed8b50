/* Where control may come to otherwise than from the instruction before: what may not be moved together with what lies
 * before it.
 *
 * This is about addresses, not about functions. Functions share code (tails that several jump to, and in code without
 * frame descriptions whatever a jump leads to), and each of them knows only its own jumps; an address that is taken is
 * jumped to by somebody, later and elsewhere; and code that is not found jumps, too. So everything counts that could
 * lead somewhere, and what is no address at all costs a boundary, no more:
 *
 *   - starts of functions and of all their blocks, targets of direct jumps and calls, landing pads, symbols;
 *   - relocated words, and words of a module at fixed addresses that are addresses of code, four or eight bytes long;
 *   - addresses that code names: by lea, as an immediate, as a displacement;
 *   - what bytes between the code that is known could jump to or name, wherever an instruction may begin in them;
 *   - every instruction of a function with an indirect jump to somewhere unknown.
 *
 * Functions that are only guessed count as what they look like; and since they may begin at the wrong byte, their first bytes,
 * until the decoder is in step, as bytes between, too. */
#include "static/lift/flow.h"

enum { IN_STEP = 32 }; /* bytes in which two decoders that begin at different ones meet */

struct lift_targets {
    flow_region *regions;
    uint32_t region_count;
    uint64_t *bits; /* per code byte */
};

static void set_target(const flow_space *space, lift_targets *t, uint64_t addr)
{
    int64_t place = flow_place(space, addr);
    if (place >= 0) flow_set(t->bits, (uint64_t)place);
}

static void set_range(uint64_t *bits, uint64_t from, uint64_t to)
{
    while (from < to && from % 64)
        flow_set(bits, from++);
    for (; from + 64 <= to; from += 64)
        bits[from / 64] = ~(uint64_t)0;
    while (from < to)
        flow_set(bits, from++);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void add_file(const flow_space *space, lift_targets *t)
{
    const image *img = space->img;
    for (uint32_t i = 0; i < img->symbol_count; i++)
        if (img->symbols[i].type != IMAGE_SYM_TLS) set_target(space, t, img->symbols[i].addr);
    for (uint32_t i = 0; i < img->fde_count; i++)
        set_target(space, t, img->fdes[i].start);
    for (uint32_t i = 0; i < img->pad_count; i++)
        set_target(space, t, img->pads[i].pad);
    for (uint32_t i = 0; i < img->reloc_count; i++)
        if (img->relocs[i].kind != IMAGE_REL_SYMBOL) set_target(space, t, img->relocs[i].target);
}

static uint32_t load32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Fixed addresses of code are below 2^32 in all but odd modules, whose words of eight bytes the image has among its
 * relocations: the low half of a word tells. */
static void add_words(const flow_space *space, lift_targets *t)
{
    for (uint32_t i = 0; i < space->data_count; i++) {
        const flow_region *r = &space->data[i];
        for (uint64_t at = -r->addr & 3; at + 4 <= r->size; at += 4)
            set_target(space, t, load32(r->bytes + at));
    }
}

/* --- code that is known ------------------------------------------------------------------------------------------- */

/* An indirect jump by a register: its address may be computed from another one. */
static bool is_computed(const flow_space *space, const lift_func *func, const lift_block *block)
{
    if (block->end_kind != END_TAIL_IND || !block->insn_count) return false;
    const lift_insn *jump = &func->insns[block->first_insn + block->insn_count - 1];
    const flow_region *r = flow_region_at(space, jump->addr);
    if (!r || jump->flow != FLOW_JUMP_IND) return false;
    const uint8_t *behind = r->bytes + (jump->addr - r->addr) + jump->len; /* ff e0 to ff e7, and prefixes */
    return jump->len <= 4 && behind[-2] == 0xff && behind[-1] >= 0xe0;
}

/* It takes the address of a place in itself, and jumps to what it computes: that may be any place behind. */
static bool jumps_inside(const flow_space *space, const flow_func *f)
{
    const lift_func *func = f->func;
    bool names = false, computes = false;
    for (uint32_t i = 0; i < f->ref_count && !names; i++) {
        const uint64_t addr = f->refs[i] & ~FLOW_POINTER;
        names = f->refs[i] & FLOW_POINTER && addr > func->entry && addr < func->end;
    }
    for (uint32_t b = 0; names && b < func->block_count && !computes; b++)
        computes = is_computed(space, func, &func->blocks[b]);
    return computes;
}

static void add_function(const flow_space *space, lift_targets *t, const flow_func *f, uint64_t *known)
{
    const lift_func *func = f->func;
    const bool open = !func->complete || jumps_inside(space, f);
    set_target(space, t, func->entry);
    for (uint32_t i = 0; i < f->ref_count; i++)
        set_target(space, t, f->refs[i] & ~FLOW_POINTER);
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        const int64_t place = flow_place(space, block->start);
        if (place < 0) continue;
        flow_set(t->bits, (uint64_t)place);
        const uint64_t unsure = func->guessed && block->start - func->entry < IN_STEP ? func->entry + IN_STEP : block->start;
        if (unsure < block->end)
            set_range(known, (uint64_t)place + (unsure - block->start), (uint64_t)place + (block->end - block->start));
        const bool all = open && (!func->guessed || (block->start >= func->entry && block->end <= func->end));
        for (uint32_t i = 0; i < block->insn_count; i++) {
            const lift_insn *insn = &func->insns[block->first_insn + i];
            if (all) flow_set(t->bits, (uint64_t)place + (insn->addr - block->start));
            if (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH || insn->flow == FLOW_CALL)
                set_target(space, t, lift_target(insn));
        }
    }
}

/* --- what is between ---------------------------------------------------------------------------------------------- */

/* The instruction that may begin here is one that leads, or refers, by a distance. */
static bool refers(const uint8_t *bytes, uint64_t available, uint64_t addr, uint64_t *target)
{
    const uint8_t first = bytes[0], second = available > 1 ? bytes[1] : 0;
    const bool is_short = first == 0xeb || (first >= 0x70 && first < 0x80) || (first >= 0xe0 && first < 0xe4);
    const bool is_long = first == 0xe8 || first == 0xe9;
    const bool is_branch = first == 0x0f && second >= 0x80 && second < 0x90;
    const bool is_lea = first == 0x8d && (second & 0xc7) == 0x05;
    const uint64_t length = is_short ? 2 : is_long ? 5 : is_branch || is_lea ? 6 : 0;
    if (!length || length > available) return false;
    const int64_t distance = is_short ? (int8_t)second : (int32_t)load32(bytes + length - 4);
    *target = addr + length + (uint64_t)distance;
    return true;
}

static void add_unknown(const flow_space *space, lift_targets *t, const uint64_t *known)
{
    for (uint32_t i = 0; i < space->region_count; i++) {
        const flow_region *r = &space->regions[i];
        for (uint64_t at = 0; at < r->size; at++) {
            const uint64_t place = r->first + at;
            uint64_t target;
            if (place % 64 == 0 && known[place / 64] == ~(uint64_t)0) {
                at += 63;
                continue;
            }
            if (flow_bit(known, place)) continue;
            if (refers(r->bytes + at, r->size - at, r->addr + at, &target)) set_target(space, t, target);
            if (space->absolute && at + 4 <= r->size) set_target(space, t, load32(r->bytes + at));
        }
    }
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

lift_targets *targets_open(const flow_space *space, const flow_found *found)
{
    const size_t words = space->code_size / 64 + 1;
    lift_targets *t = base_alloc_zero(1, sizeof *t);
    uint64_t *known = base_alloc_zero(words, sizeof *known);
    t->region_count = space->region_count;
    t->regions = base_alloc_zero(space->region_count, sizeof *t->regions);
    if (space->region_count) memcpy(t->regions, space->regions, space->region_count * sizeof *t->regions);
    t->bits = base_alloc_zero(words, sizeof *t->bits);
    add_file(space, t);
    if (space->absolute) add_words(space, t);
    for (uint32_t i = 0; i < found->count; i++)
        add_function(space, t, &found->funcs[i], known);
    add_unknown(space, t, known);
    free(known);
    return t;
}

void targets_close(lift_targets *t)
{
    if (!t) return;
    free(t->regions);
    free(t->bits);
    free(t);
}

uint64_t lift_next_target(const lift_module *m, uint64_t from, uint64_t to)
{
    const lift_targets *t = m->targets;
    const flow_space space = {.regions = t->regions, .region_count = t->region_count};
    if (from >= to || !flow_region_at(&space, from)) return to;
    const uint64_t next = flow_next_bit(&space, t->bits, from);
    return next < to ? next : to;
}
