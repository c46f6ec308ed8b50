/* The control-flow graph of one function.
 *
 * Blocks are cut at leaders from what traverse.c has decoded. Indirect jumps are handed to jumptable.c when everything
 * reachable without them is known; the targets it finds are traversed in turn. When nothing new comes, every answer is
 * asked for again on the whole graph, since a path that was not known at first may lift a bound; when an answer does
 * not hold up, the function is built anew without it. */
#include "static/lift/traverse.h"

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

/* --- blocks and edges -------------------------------------------------------------------------------------------- */

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
    uint32_t insn = traverse_find(s, to);
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
        uint32_t insn = traverse_find(s, s->targets.data[jump->first_target + i]);
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
        uint32_t pad = traverse_find(s, s->pads.data[i].target);
        if (pad) s->marks.data[pad - 1] |= MARK_PAD;
    }
    vec_clear(&s->leaders);
    vec_reserve(&s->block_of, n);
    vec_reserve(&s->position, n);
    for (uint32_t i = 0; i < n; i++)
        if (s->marks.data[i] & MARK_LEADER) vec_push(&s->leaders, i);
    sort_leaders(s);
    uint32_t count = s->leaders.len, entry = traverse_find(s, s->entry) - 1;
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

/* --- indirect jumps ---------------------------------------------------------------------------------------------- */

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

/* Asks for each indirect jump on the graph as it is now; `again`: also for those that have an answer from when the graph
 * was smaller. True: something has changed. */
static bool ask_jumps(flow_scratch *s, bool again)
{
    bool changed = false;
    uint64_t graph = (uint64_t)s->insns.len << 32 | s->edges.len; /* it only grows, so that its size tells it apart */
    jump_memory_reset(s->memory, &s->view);
    for (uint32_t i = 0; i < s->jumps.len; i++) {
        indirect_jump *jump = &s->jumps.data[i];
        if (jump->denied || jump->asked == graph || (jump->verdict != JUMP_UNKNOWN && !again)) continue;
        jump->asked = graph;
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

/* Its instructions; foreign ones are others' too and count for less, so that they do not count many times over. */
static uint64_t own_insns(const flow_scratch *s)
{
    return (s->insns.len > s->foreign ? s->insns.len - s->foreign : 0) + s->foreign / FOREIGN_WEIGHT;
}

static void allow_steps(flow_scratch *s, uint64_t steps, bool more)
{
    jump_memory_allow(s->memory, steps, more);
    s->allowed = more ? s->allowed + steps : steps;
}

/* False: an answer had to be withdrawn, and what was reached by it is in the graph. */
static bool solve_jumps(flow_scratch *s)
{
    uint32_t rounds = 0, denied = s->denied.len;
    for (bool again = false; rounds++ < MAX_ASKS && s->denied.len == denied;) {
        if (ask_jumps(s, again)) {
            uint64_t before = own_insns(s);
            traverse(s);
            uint64_t after = own_insns(s);
            if (after > before) allow_steps(s, STEPS_PER_INSN * (after - before), true);
            cut_blocks(s);
            s->decoded += s->insns.len;
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

/* --- one function ------------------------------------------------------------------------------------------------ */

/* The end of the part that begins at the entry. */
static uint64_t find_end(flow_scratch *s)
{
    const flow_space *space = s->space;
    const image_fde *fde = image_fde_at(space->img, s->entry);
    const flow_region *r = flow_region_at(space, s->entry);
    if (!r || s->entry + 1 - r->addr >= r->size) return s->entry + (r != NULL);
    uint64_t next = flow_next_bit(space, space->starts, s->entry + 1), end = s->entry;
    bool first = fde && s->entry - fde->start < 16 && flow_next_bit(space, space->starts, fde->start) == s->entry;
    if (first && fde->end <= next) return fde->end;
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

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
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
        out->leaves[i] = (flow_leave){s->leaves.data[i].target, s->leaves.data[i].block, s->leaves.data[i].kind,
                                       s->leaves.data[i].last};
    out->refs = copy(s->refs.data, s->refs.len, sizeof *s->refs.data);
    out->ref_count = s->refs.len;
}

static void begin(const flow_space *space, flow_scratch *s, uint64_t entry)
{
    const image_fde *fde = image_fde_at(space->img, entry);
    s->space = space;
    s->entry = entry;
    s->has_fde = fde;
    uint64_t next = flow_region_at(space, entry + 1) ? flow_next_bit(space, space->starts, entry + 1) : entry + 1;
    s->limit = fde ? fde->end : next;
    s->own = next < s->limit ? next : s->limit;
    s->decoded = 0;
    vec_clear(&s->denied);
    s->attempts = 0;
    s->trial = false;
}

void flow_build(const flow_space *space, flow_scratch *s, uint64_t entry, flow_func *out)
{
    begin(space, s, entry);
    do {
        if (++s->attempts >= MAX_ATTEMPTS) vec_clear(&s->denied);
        if (s->denied.len) qsort(s->denied.data, s->denied.len, sizeof *s->denied.data, by_number);
        traverse_reset(s);
        vec_push(&s->work, (leader){entry, 0});
        traverse(s);
        cut_blocks(s);
        s->decoded += s->insns.len;
        if (s->attempts == 1) allow_steps(s, space->steps + STEPS_PER_INSN * own_insns(s), false);
    } while (s->jumps.len && !space->no_jumps && !solve_jumps(s));
    finish(s, out);
    out->work = s->decoded + s->allowed - jump_memory_left(s->memory);
}

bool flow_try(const flow_space *space, flow_scratch *s, uint64_t entry, uint32_t most, flow_trial *trial)
{
    begin(space, s, entry);
    traverse_reset(s);
    s->trial = true;
    s->most = most;
    vec_push(&s->work, (leader){entry, 0});
    traverse(s);
    *trial = (flow_trial){.insns = s->insns.data, .count = s->insns.len, .end = entry};
    if (s->failed) return false;
    for (uint32_t i = 0; i < s->leaves.len; i++)
        if (s->leaves.data[i].kind == LEAVE_SHARE) return false;
    for (uint32_t i = 0; i < s->insns.len; i++) {
        uint64_t end = s->insns.data[i].addr + s->insns.data[i].len;
        if (s->insns.data[i].addr - entry < s->limit - entry && end > trial->end) trial->end = end;
    }
    return trial->end > entry;
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
