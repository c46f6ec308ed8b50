/* Traversal: decoding a function from its entry along every path.
 *
 * Instructions are decoded once each, in runs of consecutive ones, and found again by address through a map; so code
 * that overlaps itself at different instruction boundaries is no special case. What each instruction means for the
 * graph (does it end a block, does it leave the function, may control come back) is decided here, once; flow.c makes
 * blocks of it. */
#include "static/lift/traverse.h"

/* --- address to instruction -------------------------------------------------------------------------------------- */

static uint32_t map_hash(uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32);
}

static void map_grow(flow_scratch *s)
{
    map_slot *old = s->map;
    uint32_t old_size = s->map_size;
    s->map_size *= 2;
    s->map = base_alloc_zero(s->map_size, sizeof *s->map);
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i].generation != s->generation) continue;
        uint32_t h = map_hash(old[i].key) & (s->map_size - 1);
        while (s->map[h].generation == s->generation)
            h = (h + 1) & (s->map_size - 1);
        s->map[h] = old[i];
    }
    free(old);
}

static uint32_t *map_find(flow_scratch *s, uint64_t addr, bool add)
{
    uint64_t key = addr >> CHUNK_BITS;
    if (key != s->last_key) {
        uint32_t h = map_hash(key) & (s->map_size - 1);
        while (s->map[h].generation == s->generation && s->map[h].key != key)
            h = (h + 1) & (s->map_size - 1);
        if (s->map[h].generation != s->generation) {
            if (!add) return NULL;
            if (s->map_used * 2 >= s->map_size) {
                map_grow(s);
                return map_find(s, addr, add);
            }
            if (s->chunk_count == s->chunk_cap)
                s->chunks = base_grow(s->chunks, &s->chunk_cap, s->chunk_count + 1, sizeof *s->chunks);
            memset(s->chunks[s->chunk_count], 0, sizeof *s->chunks);
            s->map[h] = (map_slot){key, s->chunk_count++, s->generation};
            s->map_used++;
        }
        s->last_key = key;
        s->last_chunk = s->map[h].chunk;
    }
    return &s->chunks[s->last_chunk][addr & (CHUNK - 1)];
}

uint32_t traverse_find(flow_scratch *s, uint64_t addr)
{
    uint32_t *id = map_find(s, addr, false);
    return id ? *id : 0;
}

/* --- traversal --------------------------------------------------------------------------------------------------- */

/* The frame description that covers addr, remembered for the neighbours. */
static const image_fde *fde_at(flow_scratch *s, uint64_t addr)
{
    if (addr - s->fde_low < s->fde_high - s->fde_low) return s->fde;
    s->fde = image_fde_at(s->space->img, addr);
    s->fde_low = s->fde ? s->fde->start : addr;
    s->fde_high = s->fde ? s->fde->end : addr + 1;
    return s->fde;
}

static void end_block(flow_scratch *s, uint32_t insn, lift_end end)
{
    s->marks.data[insn] = (uint16_t)((s->marks.data[insn] & (MARK_END - 1)) | MARK_END * ((uint32_t)end + 1));
}

static void leave(flow_scratch *s, uint32_t insn, flow_leave_kind kind, uint64_t target)
{
    vec_push(&s->leaves, (raw_leave){.target = target, .insn = insn, .kind = (uint8_t)kind});
}

/* What an instruction does to the depth of the stack: enough of it to tell a tail call from a jump to a cold part. */
static void track_depth(flow_scratch *s, const lift_insn *insn, const uint8_t *bytes)
{
    if (s->depth == DEPTH_UNKNOWN) return;
    const uint8_t *b = bytes + (bytes[0] == 0x48);
    bool rsp = bytes[0] == 0x48 && (b[0] == 0x83 || b[0] == 0x81) && (b[1] & 7) == 4 && b[1] >= 0xc0;
    int32_t imm = 0;
    if (rsp && b[0] == 0x83)
        imm = (int8_t)b[2];
    else if (rsp)
        memcpy(&imm, b + 2, sizeof imm);
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: s->depth += 8; break;
    case ZYDIS_MNEMONIC_POP: s->depth -= 8; s->released = true; break;
    case ZYDIS_MNEMONIC_LEAVE: s->depth = 0; s->released = true; break;
    case ZYDIS_MNEMONIC_ENTER: s->depth = DEPTH_UNKNOWN; break;
    case ZYDIS_MNEMONIC_SUB: s->depth += rsp ? imm : 0; break;
    case ZYDIS_MNEMONIC_ADD: s->depth -= rsp ? imm : 0; s->released |= rsp; break;
    case ZYDIS_MNEMONIC_AND:
        if (rsp) s->depth = DEPTH_UNKNOWN;
        break;
    default: break;
    }
    if (s->depth < -(1 << 28) || s->depth > 1 << 28) s->depth = DEPTH_UNKNOWN;
}

/* A direct jump to `target`: does it leave the function? */
static bool jump_leaves(flow_scratch *s, uint64_t from, uint64_t target, bool conditional)
{
    const flow_space *space = s->space;
    if (target == s->entry) return false;
    const flow_region *r = flow_region_at(space, target);
    if (!r) return image_plt_at(space->img, target); /* an undefined symbol of a relocatable object */
    uint64_t place = r->first + (target - r->addr);
    if (flow_bit(space->starts, place)) return true;
    bool inside = target - s->entry < s->limit - s->entry;
    if (flow_bit(space->parts, place) || (inside && s->has_fde)) return false;
    if (image_plt_at(space->img, target)) return true;
    if (image_fde_at(space->img, target)) return false;
    if (fde_at(s, from)) return true; /* into assembler code that has no frame description: a function of its own */
    /* Nobody says where functions begin: a jump with the frame given up, to where a compiler would put one. */
    return !conditional && s->depth == 0 && (!inside || s->released) && target % 16 == 0 &&
           flow_padding_before(r, target);
}

/* A jump inside the function, which may yet go into another frame description: this one's cold part, or code that two
 * assembler functions share. */
static void follow(flow_scratch *s, uint32_t insn, uint64_t from, uint64_t target)
{
    vec_push(&s->work, (leader){target, s->depth});
    const image_fde *here = fde_at(s, from);
    if (!here || target - here->start < here->end - here->start) return;
    if (image_fde_at(s->space->img, target)) leave(s, insn, LEAVE_SHARE, target);
}

static void add_pad(flow_scratch *s, uint32_t insn, uint64_t pad)
{
    vec_push(&s->pads, (insn_addr){insn, pad});
    vec_push(&s->work, (leader){pad, s->depth});
}

/* A call: ends its block when it has a landing pad or does not return. True: control comes back. */
static bool visit_call(flow_scratch *s, uint32_t id, const lift_insn *insn)
{
    const flow_space *space = s->space;
    const image *img = space->img;
    bool dead = false;
    uint64_t target = 0;
    if (insn->flow == FLOW_CALL) {
        target = lift_target(insn);
        const image_plt *plt = image_plt_at(img, target);
        if (plt) {
            dead = space->plt_dead[plt - img->plts];
            target = plt->name[0] ? plt->target : 0; /* what an IFUNC's resolver returns is not known */
        }
        if (target == insn->addr + insn->len) target = 0; /* asks for the instruction pointer, calls nothing */
    } else if (insn->flow == FLOW_CALL_SLOT) {
        const image_reloc *reloc = image_reloc_at(img, lift_target(insn));
        if (reloc && reloc->kind == IMAGE_REL_SYMBOL) dead = reloc->name && noreturn_outside(s->space, reloc->name);
        if (reloc && reloc->kind == IMAGE_REL_ADDR && image_is_constant(img, reloc->addr, 8)) target = reloc->target;
    }
    const flow_region *r = target ? flow_region_at(space, target) : NULL;
    const image_fde *fde = fde_at(s, insn->addr);
    bool last = fde && insn->addr + insn->len >= fde->end;
    if (r) {
        leave(s, id, LEAVE_CALL, target);
        s->leaves.data[s->leaves.len - 1].last = last;
        dead |= flow_bit(space->dead, r->first + (target - r->addr));
    }
    dead |= last; /* nothing of this function is behind it: a function that is not known to never return */
    uint64_t pad = fde && fde->pad_count ? image_landing_pad(img, insn->addr) : 0;
    if (pad && flow_place(space, pad) >= 0 && (pad == s->entry || !flow_has(space, space->starts, pad)))
        add_pad(s, id, pad);
    else
        pad = 0;
    if (dead)
        end_block(s, id, END_NORETURN);
    else if (pad)
        end_block(s, id, END_CALL);
    return !dead;
}

static void visit_tail(flow_scratch *s, uint32_t id, uint64_t target, bool conditional)
{
    const image *img = s->space->img;
    const image_plt *plt = image_plt_at(img, target);
    if (plt) {
        if (s->space->plt_dead[plt - img->plts]) return;
        target = plt->name[0] ? plt->target : 0;
    }
    if (!target || flow_place(s->space, target) < 0)
        leave(s, id, LEAVE_OUTSIDE, 0);
    else
        leave(s, id, conditional ? LEAVE_BRANCH : LEAVE_TAIL, target);
}

static bool is_denied(const flow_scratch *s, uint64_t addr)
{
    uint32_t low = 0, high = s->denied.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (s->denied.data[mid] < addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->denied.len && s->denied.data[low] == addr;
}

static void add_jump(flow_scratch *s, uint32_t id)
{
    bool denied = s->attempts >= MAX_ATTEMPTS || is_denied(s, s->insns.data[id].addr);
    indirect_jump jump = {.insn = id, .denied = denied};
    end_block(s, id, END_UNKNOWN);
    vec_push(&s->jumps, jump);
}

static void visit_slot(flow_scratch *s, uint32_t id, const lift_insn *insn)
{
    const image_reloc *reloc = image_reloc_at(s->space->img, lift_target(insn));
    bool known = reloc && (reloc->kind == IMAGE_REL_SYMBOL || reloc->kind == IMAGE_REL_IFUNC ||
                           (reloc->kind == IMAGE_REL_ADDR && image_is_constant(s->space->img, reloc->addr, 8)));
    if (!known) {
        add_jump(s, id);
        return;
    }
    end_block(s, id, END_TAIL);
    if (reloc->kind == IMAGE_REL_SYMBOL && reloc->name && noreturn_outside(s->space, reloc->name)) return;
    visit_tail(s, id, reloc->kind == IMAGE_REL_ADDR ? reloc->target : 0, false);
}

/* What comes after the instruction; true: the run goes on behind it. */
static bool visit(flow_scratch *s, uint32_t id, const lift_insn *insn)
{
    uint64_t target = lift_target(insn);
    switch (insn->flow) {
    case FLOW_JUMP:
        if (jump_leaves(s, insn->addr, target, false)) {
            end_block(s, id, END_TAIL);
            visit_tail(s, id, target, false);
        } else {
            end_block(s, id, END_JUMP);
            follow(s, id, insn->addr, target);
        }
        return false;
    case FLOW_BRANCH:
        end_block(s, id, END_BRANCH);
        if (jump_leaves(s, insn->addr, target, true)) {
            s->marks.data[id] |= MARK_TAIL;
            visit_tail(s, id, target, true);
        } else {
            follow(s, id, insn->addr, target);
        }
        return true;
    case FLOW_CALL:
    case FLOW_CALL_SLOT:
    case FLOW_CALL_IND: return visit_call(s, id, insn);
    case FLOW_JUMP_SLOT: visit_slot(s, id, insn); return false;
    case FLOW_JUMP_IND:
        add_jump(s, id);
        return false;
    case FLOW_RET: end_block(s, id, END_RET); return false;
    case FLOW_TRAP: end_block(s, id, END_TRAP); return false;
    default: return true;
    }
}

static uint32_t add_insn(flow_scratch *s, lift_insn insn, uint16_t marks)
{
    uint32_t id = s->insns.len;
    vec_push(&s->insns, insn);
    vec_push(&s->marks, marks);
    *map_find(s, insn.addr, true) = id + 1;
    return id;
}

/* A block without instructions: where execution runs into another function, or into what is no code. */
static void add_stop(flow_scratch *s, uint64_t addr, lift_end end)
{
    uint32_t id = add_insn(s, (lift_insn){.addr = addr}, MARK_LEADER);
    s->failed |= end == END_BAD;
    end_block(s, id, end);
    if (end == END_TAIL) leave(s, id, LEAVE_TAIL, addr);
}

/* The run has come to where another function begins. When only padding lies between it and a call, that call does not
 * return; else this function goes on in the other one. */
static void run_into(flow_scratch *s, uint32_t first, uint64_t addr)
{
    uint32_t last = s->insns.len;
    while (last > first && s->insns.data[last - 1].mnemonic == ZYDIS_MNEMONIC_NOP &&
           !(s->marks.data[last - 1] & ~MARK_LEADER))
        last--;
    if (last > first) {
        uint8_t flow = s->insns.data[last - 1].flow;
        if (flow == FLOW_CALL || flow == FLOW_CALL_SLOT || flow == FLOW_CALL_IND) {
            end_block(s, last - 1, END_NORETURN);
            for (uint32_t i = last; i < s->insns.len; i++)
                *map_find(s, s->insns.data[i].addr, true) = 0;
            s->insns.len = s->marks.len = last;
            return;
        }
    }
    add_stop(s, addr, END_TAIL);
}

/* Decodes from addr until control leaves or joins what is known. */
static void run(flow_scratch *s, uint64_t addr)
{
    const flow_space *space = s->space;
    const flow_region *r = flow_region_at(space, addr);
    uint32_t first = s->insns.len;
    uint16_t marks = MARK_LEADER;
    if (!r) {
        add_stop(s, addr, END_BAD);
        return;
    }
    for (;;) {
        uint32_t known = traverse_find(s, addr);
        if (known) {
            s->marks.data[known - 1] |= MARK_LEADER;
            return;
        }
        uint64_t offset = addr - r->addr;
        if (offset >= r->size) {
            add_stop(s, addr, END_BAD);
            return;
        }
        if (addr != s->entry && flow_bit(space->starts, r->first + offset)) {
            run_into(s, first, addr);
            return;
        }
        lift_insn insn;
        flow_ref ref;
        if (!flow_decode(r->bytes + offset, r->size - offset, addr, space->absolute, &insn, &ref)) {
            add_stop(s, addr, END_BAD);
            return;
        }
        if (addr - s->entry >= s->own - s->entry && s->foreign++ >= space->budget) {
            add_stop(s, addr, END_TAIL); /* too much code of others: a function of its own */
            return;
        }
        uint32_t id = add_insn(s, insn, marks);
        if (s->trial && id >= s->most) {
            s->failed = true;
            return;
        }
        if (ref.kind != REF_NONE && ref.addr - space->low < space->high - space->low && ref.addr < FLOW_POINTER)
            vec_push(&s->refs, ref.addr | (ref.kind == REF_POINTER ? FLOW_POINTER : 0));
        if (ref.stored - space->low < space->high - space->low && ref.stored < FLOW_POINTER)
            vec_push(&s->refs, ref.stored | FLOW_POINTER);
        marks = 0;
        if (!s->has_fde) track_depth(s, &insn, r->bytes + offset);
        if (insn.flow != FLOW_PLAIN && insn.flow != FLOW_SYSCALL) {
            if (!visit(s, id, &insn)) return;
            if (s->marks.data[id] >= MARK_END) marks = MARK_LEADER;
        }
        addr += insn.len;
    }
}

void traverse(flow_scratch *s)
{
    while (s->work.len && !(s->trial && s->failed)) {
        leader next = s->work.data[--s->work.len];
        uint32_t known = traverse_find(s, next.addr);
        s->depth = next.depth;
        s->released = false;
        if (known)
            s->marks.data[known - 1] |= MARK_LEADER;
        else
            run(s, next.addr);
    }
}

void traverse_reset(flow_scratch *s)
{
    vec_clear(&s->insns);
    vec_clear(&s->marks);
    vec_clear(&s->work);
    vec_clear(&s->pads);
    vec_clear(&s->leaves);
    vec_clear(&s->refs);
    vec_clear(&s->jumps);
    vec_clear(&s->targets);
    vec_clear(&s->tables);
    s->generation++;
    s->map_used = s->chunk_count = 0;
    s->last_key = UINT64_MAX;
    s->foreign = 0;
    s->failed = false;
    s->fde_low = s->fde_high = 0;
}
