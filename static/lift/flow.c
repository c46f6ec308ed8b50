/* The control-flow graph of one function, by recursive traversal.
 *
 * Instructions are decoded once each, in runs of consecutive ones, and found again by address through a map; so code
 * that overlaps itself at different instruction boundaries is no special case. Blocks are cut from the runs at leaders.
 * Indirect jumps are handed to jumptable.c when everything reachable without them is known; the targets it finds are
 * traversed in turn. When nothing new comes, every answer is asked for again on the whole graph, since a path that was
 * not known at first may lift a bound; when an answer does not hold up, the function is built anew without it. */
#include "static/lift/flow.h"

enum {
    MARK_LEADER = 1, /* a block begins here */
    MARK_PAD = 2,    /* ... a landing pad */
    MARK_TAIL = 4,   /* a conditional tail call */
    MARK_END = 8     /* times lift_end + 1: the block ends here; 0: it goes on */
};

enum { CHUNK_BITS = 6, CHUNK = 1 << CHUNK_BITS, MAX_ROUNDS = 32, MAX_ATTEMPTS = 4 };

typedef struct {
    uint64_t key; /* address / CHUNK */
    uint32_t chunk, generation;
} map_slot;

typedef struct {
    uint64_t addr;
    int32_t depth; /* of the stack, below the return address; DEPTH_UNKNOWN */
} leader;

enum { DEPTH_UNKNOWN = INT32_MIN };

typedef struct {
    uint32_t insn; /* in decoding order */
    uint64_t target;
} insn_addr;

typedef struct {
    uint32_t insn;  /* the indirect jump, in decoding order */
    uint8_t verdict; /* jump_verdict */
    bool denied, weak;
    uint32_t first_target, target_count; /* in scratch->targets */
    uint32_t first_table, table_count;   /* in scratch->tables */
} indirect_jump;

typedef struct {
    uint64_t target;
    uint32_t insn, block;
    uint8_t kind;
} raw_leave;

struct flow_scratch {
    const flow_space *space;
    uint64_t entry, limit; /* the function's own extent: up to its FDE's end, or to the next function */
    uint64_t foreign;      /* instructions it has outside of it */
    const image_fde *fde;  /* the frame description at the address being decoded, or NULL: none in [gap_low, gap_high) */
    uint64_t fde_low, fde_high;
    bool has_fde; /* one covers the entry */

    VEC(lift_insn) insns; /* in decoding order */
    VEC(uint16_t) marks;  /* of each */
    VEC(leader) work;     /* to visit */
    int32_t depth;        /* at the instruction being decoded, in code without frame description */
    bool released;        /* ... and the frame has been given up in this run */
    VEC(insn_addr) pads;  /* calls with landing pads */
    VEC(raw_leave) leaves;
    VEC(uint64_t) refs;
    VEC(indirect_jump) jumps;
    VEC(uint64_t) denied; /* indirect jumps whose answer did not hold up: left unknown */
    uint32_t attempts;    /* from the MAX_ATTEMPTS-th on, all of them */
    flow_addrs targets;
    flow_tables tables;

    map_slot *map; /* address to instruction number + 1, by chunks of addresses */
    uint32_t map_size, map_used, generation;
    uint32_t (*chunks)[CHUNK];
    uint32_t chunk_count, chunk_cap;
    uint64_t last_key;
    uint32_t last_chunk;

    lift_func view; /* the graph as far as it is known; its arrays are the vectors below */
    VEC(uint32_t) leaders;
    VEC(lift_insn) ordered;
    VEC(lift_block) blocks;
    VEC(lift_edge) edges;
    VEC(uint32_t) preds;
    VEC(uint32_t) block_of; /* block of each instruction, in decoding order */
    VEC(uint32_t) position; /* place of each instruction in `ordered` */
    VEC(uint32_t) seen;     /* for duplicate switch edges: block to the source block + 1 */
    jump_memory *memory;
    jump_result result;
};

flow_scratch *flow_scratch_open(void)
{
    flow_scratch *s = base_alloc_zero(1, sizeof *s);
    s->map_size = 256;
    s->map = base_alloc_zero(s->map_size, sizeof *s->map);
    s->memory = jump_memory_open();
    return s;
}

void flow_scratch_close(flow_scratch *s)
{
    vec_free(&s->insns);
    vec_free(&s->marks);
    vec_free(&s->work);
    vec_free(&s->pads);
    vec_free(&s->leaves);
    vec_free(&s->refs);
    vec_free(&s->jumps);
    vec_free(&s->denied);
    vec_free(&s->targets);
    vec_free(&s->tables);
    vec_free(&s->leaders);
    vec_free(&s->ordered);
    vec_free(&s->blocks);
    vec_free(&s->edges);
    vec_free(&s->preds);
    vec_free(&s->block_of);
    vec_free(&s->position);
    vec_free(&s->seen);
    vec_free(&s->result.targets);
    vec_free(&s->result.tables);
    jump_memory_close(s->memory);
    free(s->map);
    free(s->chunks);
    free(s);
}

/* --- address to instruction ---------------------------------------------------------------------------------------- */

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

/* Number of the instruction at addr + 1, or 0. */
static uint32_t map_get(flow_scratch *s, uint64_t addr)
{
    uint32_t *id = map_find(s, addr, false);
    return id ? *id : 0;
}

/* --- traversal ----------------------------------------------------------------------------------------------------- */

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
    return !conditional && s->depth == 0 && (!inside || s->released) && target % 16 == 0 && flow_padding_before(r, target);
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
        if (reloc && reloc->kind == IMAGE_REL_SYMBOL) dead = reloc->name && noreturn_name(reloc->name, false);
        if (reloc && reloc->kind == IMAGE_REL_ADDR && image_is_constant(img, reloc->addr, 8)) target = reloc->target;
    }
    const flow_region *r = target ? flow_region_at(space, target) : NULL;
    if (r) {
        leave(s, id, LEAVE_CALL, target);
        dead |= flow_bit(space->dead, r->first + (target - r->addr));
    }
    const image_fde *fde = fde_at(s, insn->addr);
    /* Nothing of this function is behind it: a function that is not known to never return. */
    if (fde && insn->addr + insn->len >= fde->end) dead = true;
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

static void add_jump(flow_scratch *s, uint32_t id)
{
    indirect_jump jump = {.insn = id, .denied = s->attempts >= MAX_ATTEMPTS};
    for (uint32_t i = 0; i < s->denied.len; i++)
        jump.denied |= s->denied.data[i] == s->insns.data[id].addr;
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
    if (reloc->kind == IMAGE_REL_SYMBOL && reloc->name && noreturn_name(reloc->name, false)) return;
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
        uint32_t known = map_get(s, addr);
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
        if (addr - s->entry >= s->limit - s->entry && s->foreign++ >= space->budget) {
            add_stop(s, addr, END_TAIL); /* too much code of others: a function of its own */
            return;
        }
        uint32_t id = add_insn(s, insn, marks);
        if (ref.kind != REF_NONE && ref.addr - space->low < space->high - space->low && ref.addr < FLOW_POINTER)
            vec_push(&s->refs, ref.addr | (ref.kind == REF_POINTER ? FLOW_POINTER : 0));
        marks = 0;
        if (!s->has_fde) track_depth(s, &insn, r->bytes + offset);
        if (insn.flow != FLOW_PLAIN && insn.flow != FLOW_SYSCALL) {
            if (!visit(s, id, &insn)) return;
            if (s->marks.data[id] >= MARK_END) marks = MARK_LEADER;
        }
        addr += insn.len;
    }
}

static void traverse(flow_scratch *s)
{
    while (s->work.len) {
        leader next = s->work.data[--s->work.len];
        uint32_t known = map_get(s, next.addr);
        s->depth = next.depth;
        s->released = false;
        if (known)
            s->marks.data[known - 1] |= MARK_LEADER;
        else
            run(s, next.addr);
    }
}

/* --- blocks and edges ---------------------------------------------------------------------------------------------- */

static void sort_leaders(flow_scratch *s)
{
    const lift_insn *insns = s->insns.data;
    uint32_t *l = s->leaders.data, n = s->leaders.len;
    /* Runs ascend, so there are few descents: merge the ascending pieces, bottom up. */
    vec_reserve(&s->seen, n);
    uint32_t *other = s->seen.data;
    for (bool sorted = false; !sorted;) {
        sorted = true;
        uint32_t out = 0;
        for (uint32_t i = 0; i < n;) {
            uint32_t mid = i + 1;
            while (mid < n && insns[l[mid - 1]].addr <= insns[l[mid]].addr)
                mid++;
            uint32_t end = mid;
            if (mid < n) {
                end++;
                while (end < n && insns[l[end - 1]].addr <= insns[l[end]].addr)
                    end++;
            }
            uint32_t a = i, b = mid;
            while (a < mid || b < end)
                other[out++] = b == end || (a < mid && insns[l[a]].addr <= insns[l[b]].addr) ? l[a++] : l[b++];
            if (i || end < n) sorted = false;
            i = end;
        }
        memcpy(l, other, n * sizeof *l);
    }
}

static void add_edge(flow_scratch *s, uint32_t from, uint64_t to, lift_edge_kind kind)
{
    uint32_t insn = map_get(s, to);
    if (insn) vec_push(&s->edges, (lift_edge){.from = from, .to = s->block_of.data[insn - 1], .kind = (uint8_t)kind});
}

static const insn_addr *pad_of(const flow_scratch *s, uint32_t insn)
{
    uint32_t low = 0, high = s->pads.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (s->pads.data[mid].insn < insn)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->pads.len && s->pads.data[low].insn == insn ? &s->pads.data[low] : NULL;
}

static indirect_jump *jump_of(const flow_scratch *s, uint32_t insn)
{
    uint32_t low = 0, high = s->jumps.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (s->jumps.data[mid].insn < insn)
            low = mid + 1;
        else
            high = mid;
    }
    return &s->jumps.data[low];
}

static void add_switch(flow_scratch *s, uint32_t block, const indirect_jump *jump)
{
    for (uint32_t i = 0; i < jump->target_count; i++) {
        uint32_t insn = map_get(s, s->targets.data[jump->first_target + i]);
        if (!insn) continue;
        uint32_t to = s->block_of.data[insn - 1];
        if (s->seen.data[to] == block + 1) continue;
        s->seen.data[to] = block + 1;
        vec_push(&s->edges, (lift_edge){.from = block, .to = to, .kind = EDGE_SWITCH});
    }
}

/* The edges of block b, which ends with instruction `last` (in decoding order). */
static void add_edges(flow_scratch *s, uint32_t b, uint32_t last)
{
    lift_block *block = &s->blocks.data[b];
    const lift_insn *insn = &s->insns.data[last];
    block->first_succ = s->edges.len;
    switch (block->end_kind) {
    case END_FALL: add_edge(s, b, block->end, EDGE_FALL); break;
    case END_JUMP: add_edge(s, b, lift_target(insn), EDGE_TAKEN); break;
    case END_BRANCH:
        add_edge(s, b, block->end, EDGE_FALL);
        if (!block->tail) add_edge(s, b, lift_target(insn), EDGE_TAKEN);
        break;
    case END_CALL:
    case END_NORETURN: {
        const insn_addr *pad = pad_of(s, last);
        if (block->end_kind == END_CALL) add_edge(s, b, block->end, EDGE_FALL);
        if (pad) add_edge(s, b, pad->target, EDGE_PAD);
        break;
    }
    case END_UNKNOWN: {
        const indirect_jump *jump = jump_of(s, last);
        if (jump->verdict == JUMP_TAIL) block->end_kind = END_TAIL_IND;
        if (jump->verdict != JUMP_SWITCH) break;
        block->end_kind = END_SWITCH;
        add_switch(s, b, jump);
        break;
    }
    default: break;
    }
    block->succ_count = s->edges.len - block->first_succ;
}

static void add_preds(flow_scratch *s)
{
    uint32_t n = s->blocks.len;
    vec_reserve(&s->preds, s->edges.len + 1);
    for (uint32_t e = 0; e < s->edges.len; e++)
        s->blocks.data[s->edges.data[e].to].pred_count++;
    for (uint32_t b = 0, first = 0; b < n; b++) {
        s->blocks.data[b].first_pred = first;
        first += s->blocks.data[b].pred_count;
        s->blocks.data[b].pred_count = 0;
    }
    for (uint32_t e = 0; e < s->edges.len; e++) {
        lift_block *to = &s->blocks.data[s->edges.data[e].to];
        s->preds.data[to->first_pred + to->pred_count++] = e;
    }
}

/* Makes s->view from what has been decoded. */
static void cut_blocks(flow_scratch *s)
{
    uint32_t n = s->insns.len;
    for (uint32_t i = 0; i < s->pads.len; i++) {
        uint32_t pad = map_get(s, s->pads.data[i].target);
        if (pad) s->marks.data[pad - 1] |= MARK_PAD;
    }
    vec_clear(&s->leaders);
    vec_reserve(&s->block_of, n);
    vec_reserve(&s->position, n);
    for (uint32_t i = 0; i < n; i++)
        if (s->marks.data[i] & MARK_LEADER) vec_push(&s->leaders, i);
    sort_leaders(s);
    uint32_t count = s->leaders.len, entry = map_get(s, s->entry) - 1;
    for (uint32_t i = 0; i < count; i++) { /* the entry becomes block 0 */
        if (s->leaders.data[i] != entry) continue;
        memmove(&s->leaders.data[1], &s->leaders.data[0], i * sizeof(uint32_t));
        s->leaders.data[0] = entry;
        break;
    }
    vec_clear(&s->ordered);
    vec_clear(&s->blocks);
    vec_clear(&s->edges);
    vec_reserve(&s->ordered, n);
    vec_reserve(&s->blocks, count);
    for (uint32_t b = 0; b < count; b++) {
        uint32_t first = s->leaders.data[b], i = first;
        lift_block block = {.start = s->insns.data[first].addr, .first_insn = s->ordered.len, .end_kind = END_FALL};
        for (;; i++) {
            const lift_insn *insn = &s->insns.data[i];
            s->block_of.data[i] = b;
            s->position.data[i] = s->ordered.len;
            block.end = insn->addr + insn->len;
            if (insn->len) s->ordered.data[s->ordered.len++] = *insn;
            uint16_t marks = s->marks.data[i];
            if (marks >= MARK_END) {
                block.end_kind = (uint8_t)(marks / MARK_END - 1);
                block.tail = marks & MARK_TAIL;
                break;
            }
            /* the run ended in code that was known, or a leader follows: both are at block.end */
            if (i + 1 == n || s->insns.data[i + 1].addr != block.end || (s->marks.data[i + 1] & MARK_LEADER)) break;
        }
        block.is_pad = s->marks.data[first] & MARK_PAD;
        block.insn_count = s->ordered.len - block.first_insn;
        s->blocks.data[s->blocks.len++] = block;
        s->leaders.data[b] = i; /* from here on: the last instruction of the block */
    }
    vec_reserve(&s->seen, count);
    memset(s->seen.data, 0, count * sizeof(uint32_t));
    for (uint32_t b = 0; b < count; b++)
        add_edges(s, b, s->leaders.data[b]);
    add_preds(s);
    s->view = (lift_func){.entry = s->entry,
                          .insns = s->ordered.data,
                          .insn_count = s->ordered.len,
                          .blocks = s->blocks.data,
                          .block_count = count,
                          .edges = s->edges.data,
                          .edge_count = s->edges.len,
                          .preds = s->preds.data};
}

/* --- indirect jumps ------------------------------------------------------------------------------------------------ */

static bool same_targets(const flow_scratch *s, const indirect_jump *jump)
{
    return jump->target_count == s->result.targets.len &&
           !memcmp(&s->targets.data[jump->first_target], s->result.targets.data,
                   jump->target_count * sizeof(uint64_t));
}

static void keep_result(flow_scratch *s, indirect_jump *jump)
{
    jump->weak = s->result.weak;
    jump->first_target = s->targets.len;
    jump->target_count = s->result.targets.len;
    jump->first_table = s->tables.len;
    jump->table_count = s->result.tables.len;
    for (uint32_t i = 0; i < s->result.targets.len; i++) {
        vec_push(&s->targets, s->result.targets.data[i]);
        vec_push(&s->work, (leader){s->result.targets.data[i], DEPTH_UNKNOWN});
    }
    for (uint32_t i = 0; i < s->result.tables.len; i++)
        vec_push(&s->tables, s->result.tables.data[i]);
}

/* Asks for each indirect jump on the graph as it is now; `again`: also for those that have an answer. True: something
 * has changed. */
static bool ask_jumps(flow_scratch *s, bool again)
{
    bool changed = false;
    jump_memory_reset(s->memory, &s->view);
    for (uint32_t i = 0; i < s->jumps.len; i++) {
        indirect_jump *jump = &s->jumps.data[i];
        if (jump->denied || (jump->verdict != JUMP_UNKNOWN && !again)) continue;
        vec_clear(&s->result.targets);
        vec_clear(&s->result.tables);
        s->result.weak = false;
        jump_verdict verdict =
            jump_resolve(s->space, &s->view, s->memory, s->block_of.data[jump->insn], &s->result);
        if (verdict == jump->verdict && (verdict != JUMP_SWITCH || same_targets(s, jump))) continue;
        changed = true;
        /* From unknown to an answer is progress, and so is a longer answer; else the first one was wrong. */
        bool progress = verdict == JUMP_SWITCH &&
                        (jump->verdict != JUMP_SWITCH || s->result.targets.len > jump->target_count);
        if (jump->verdict != JUMP_UNKNOWN && !progress) {
            vec_push(&s->denied, s->insns.data[jump->insn].addr);
            continue;
        }
        jump->verdict = (uint8_t)verdict;
        if (verdict == JUMP_SWITCH) keep_result(s, jump);
    }
    return changed;
}

/* False: an answer had to be withdrawn, and what was reached by it is in the graph. */
static bool solve_jumps(flow_scratch *s)
{
    uint32_t rounds = 0, denied = s->denied.len;
    for (bool again = false; rounds++ < MAX_ROUNDS && s->denied.len == denied;) {
        if (ask_jumps(s, again)) {
            traverse(s);
            cut_blocks(s);
        } else if (again) {
            return true;
        } else {
            again = true;
        }
    }
    if (s->denied.len == denied) /* no end to it: trust nothing */
        for (uint32_t i = 0; i < s->jumps.len; i++)
            vec_push(&s->denied, s->insns.data[s->jumps.data[i].insn].addr);
    return false;
}

/* --- one function -------------------------------------------------------------------------------------------------- */

static void reset(flow_scratch *s)
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
    s->fde_low = s->fde_high = 0;
}

/* The end of the part that begins at the entry. */
static uint64_t find_end(flow_scratch *s)
{
    const flow_space *space = s->space;
    const image_fde *fde = image_fde_at(space->img, s->entry);
    const flow_region *r = flow_region_at(space, s->entry);
    if (!r || s->entry + 1 - r->addr >= r->size) return s->entry + (r != NULL);
    uint64_t next = flow_next_bit(space, space->starts, s->entry + 1), end = s->entry;
    if (fde && fde->start == s->entry && fde->end <= next) return fde->end;
    const image_symbol *symbol = space->symbols ? image_symbol_at(space->img, s->entry) : NULL;
    if (symbol && symbol->size && symbol->size <= next - s->entry) return s->entry + symbol->size;
    for (uint32_t b = 0; b < s->view.block_count; b++) {
        const lift_block *block = &s->view.blocks[b];
        if (block->start >= s->entry && block->start < next && block->end > end) end = block->end;
    }
    return end < next ? end : next;
}

static int by_block(const void *a, const void *b)
{
    const raw_leave *x = a, *y = b;
    return x->insn < y->insn ? -1 : x->insn > y->insn;
}

static void *copy(const void *from, size_t count, size_t size)
{
    void *to = base_alloc(count * size);
    if (count) memcpy(to, from, count * size);
    return to;
}

static void count_ends(lift_func *f)
{
    f->complete = true;
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        uint8_t end = block->end_kind;
        bool slot = block->insn_count && f->insns[block->first_insn + block->insn_count - 1].flow == FLOW_JUMP_SLOT;
        if (end == END_SWITCH) f->resolved_jumps++;
        if (end == END_UNKNOWN) f->unresolved_jumps++;
        if (end == END_TAIL_IND || (end == END_TAIL && slot)) f->tail_jumps++;
        if (end == END_UNKNOWN || end == END_BAD) f->complete = false;
    }
}

static void finish(flow_scratch *s, flow_func *out)
{
    lift_func *f = copy(&s->view, 1, sizeof s->view);
    f->end = find_end(s);
    f->insns = copy(f->insns, f->insn_count, sizeof *f->insns);
    f->blocks = copy(f->blocks, f->block_count, sizeof *f->blocks);
    f->edges = copy(f->edges, f->edge_count, sizeof *f->edges);
    f->preds = copy(f->preds, f->edge_count, sizeof *f->preds);
    *out = (flow_func){.func = f};
    for (uint32_t i = 0; i < s->jumps.len; i++) {
        indirect_jump *jump = &s->jumps.data[i];
        if (jump->verdict != JUMP_SWITCH) continue;
        f->table_count += jump->table_count;
        out->has_weak |= jump->weak;
    }
    f->tables = base_alloc(f->table_count * sizeof *f->tables);
    for (uint32_t i = 0, n = 0; i < s->jumps.len; i++) {
        indirect_jump *jump = &s->jumps.data[i];
        for (uint32_t t = 0; jump->verdict == JUMP_SWITCH && t < jump->table_count; t++) {
            f->tables[n] = s->tables.data[jump->first_table + t];
            f->tables[n++].insn = s->position.data[jump->insn];
        }
    }
    count_ends(f);
    for (uint32_t i = 0; i < s->leaves.len; i++)
        s->leaves.data[i].block = s->block_of.data[s->leaves.data[i].insn];
    for (uint32_t i = 0; i < s->leaves.len; i++)
        s->leaves.data[i].insn = s->position.data[s->leaves.data[i].insn];
    if (s->leaves.len) qsort(s->leaves.data, s->leaves.len, sizeof *s->leaves.data, by_block);
    out->leave_count = s->leaves.len;
    out->leaves = base_alloc(s->leaves.len * sizeof *out->leaves);
    for (uint32_t i = 0; i < s->leaves.len; i++)
        out->leaves[i] = (flow_leave){s->leaves.data[i].target, s->leaves.data[i].block, s->leaves.data[i].kind};
    out->refs = copy(s->refs.data, s->refs.len, sizeof *s->refs.data);
    out->ref_count = s->refs.len;
}

void flow_build(const flow_space *space, flow_scratch *s, uint64_t entry, flow_func *out)
{
    s->space = space;
    s->entry = entry;
    const image_fde *fde = image_fde_at(space->img, entry);
    s->has_fde = fde;
    s->limit = fde                                  ? fde->end
               : flow_region_at(space, entry + 1) ? flow_next_bit(space, space->starts, entry + 1)
                                                    : entry + 1;
    vec_clear(&s->denied);
    s->attempts = 0;
    do {
        if (++s->attempts >= MAX_ATTEMPTS) vec_clear(&s->denied);
        reset(s);
        vec_push(&s->work, (leader){entry, 0});
        traverse(s);
        cut_blocks(s);
    } while (s->jumps.len && !solve_jumps(s));
    finish(s, out);
}

void flow_free_func(lift_func *func)
{
    if (!func) return;
    free(func->insns);
    free(func->blocks);
    free(func->edges);
    free(func->preds);
    free(func->tables);
    free(func);
}

void flow_free(flow_func *f)
{
    flow_free_func(f->func);
    free(f->leaves);
    free(f->refs);
    *f = (flow_func){0};
}
