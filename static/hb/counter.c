/* What counts in loops: by how much a value grows each time round, and from where to where it goes. */
#include "static/hb/counter.h"

/* A phi of the innermost loop around a block that grows by a constant each time round. */
bool count_step(const ir_func *ir, uint32_t loop, ir_value v, int64_t *step)
{
    const ir_insn *phi = &ir->insns[v];
    if (phi->op != IR_PHI || !loop) return false;
    uint32_t header = ir->loops[loop - 1].header;
    if (v < ir->blocks[header].first || v >= ir->blocks[header].first + ir->blocks[header].count) return false;
    bool found = false;
    for (uint32_t i = 0; i < phi->b; i++) {
        ir_value arg = ir->args[phi->a + i];
        const ir_insn *next = &ir->insns[value_plain(ir, arg, 4)];
        if (next->op == IR_LEA && !next->b && next->a && value_plain(ir, next->a, 4) == v && next->imm) {
            if (found && *step != next->imm) return false;
            *step = next->imm;
            found = true;
        } else if (value_plain(ir, arg, 4) == v) {
            return false;
        }
    }
    return found;
}

/* The only leaf of a sum that counts in a loop; the others do not change in it. */
bool count_leaf(const ir_func *ir, uint32_t loop, const value_sum *sum, ir_value *counter, int64_t *step)
{
    bool found = false;
    for (uint32_t i = 0; i < sum->count; i++) {
        int64_t by;
        ir_value leaf = sum->terms[i].leaf;
        if (count_step(ir, loop, leaf, &by)) {
            if (found) return false;
            found = true;
            *counter = leaf;
            *step = by * sum->terms[i].factor;
        } else if (ir->insns[leaf].op == IR_PHI || ir->insns[leaf].op == IR_LOAD) {
            const ir_loop *l = &ir->loops[loop - 1];
            for (uint32_t b = 0; b < l->block_count; b++) {
                const ir_block *block = &ir->blocks[ir->loop_blocks[l->first_block + b]];
                if (leaf >= block->first && leaf < block->first + block->count && ir->insns[leaf].op == IR_PHI) return false;
            }
        }
    }
    return found;
}

static bool in_loop(const ir_func *ir, uint32_t loop, uint32_t block)
{
    for (uint32_t l = ir->blocks[block].loop; l; l = ir->loops[l - 1].parent)
        if (l == loop) return true;
    return false;
}

/* A block that each round passes, and that may leave the loop. */
static bool is_exit(const ir_func *ir, uint32_t loop, uint32_t block)
{
    const lift_func *f = ir->func;
    const lift_block *b = &f->blocks[block], *header = &f->blocks[ir->loops[loop - 1].header];
    bool leaves = false, always = true;
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++)
        leaves |= !in_loop(ir, loop, f->edges[e].to);
    for (uint32_t p = header->first_pred; p < header->first_pred + header->pred_count; p++) {
        uint32_t from = f->edges[f->preds[p]].from;
        if (in_loop(ir, loop, from)) always &= ir_dominates(ir, block, from);
    }
    return leaves && always;
}

static uint32_t loop_of(const ir_func *ir, ir_value phi, int64_t *step)
{
    uint32_t l = 1;
    if (ir->insns[phi].op != IR_PHI) return 0;
    while (l <= ir->loop_count && !count_step(ir, l, phi, step))
        l++;
    return l > ir->loop_count ? 0 : l;
}

static bool begins_with(const ir_func *ir, ir_value phi, value_sum *first)
{
    const ir_insn *insn = &ir->insns[phi];
    bool found = false;
    for (uint32_t i = 0; i < insn->b; i++) {
        const ir_insn *next = &ir->insns[value_plain(ir, ir->args[insn->a + i], 4)];
        if (next->op == IR_LEA && !next->b && next->a && value_plain(ir, next->a, 4) == phi) continue;
        if (found) return false;
        *first = value_of(ir, ir->args[insn->a + i]);
        found = true;
    }
    return found && first->known;
}

/* Whether a loop whose phi grows by `step` ends when `phi CODE end`, which it goes on with, becomes false; `included`: not before the
 * phi has been `end` itself. What goes on only while they are equal goes on at most until they have been. */
static bool goes_to_end(uint8_t code, int64_t step, bool *included)
{
    enum { BELOW = 2, NOT_BELOW, EQUAL, NOT_EQUAL, BELOW_EQUAL, ABOVE, LESS = 12, NOT_LESS, LESS_EQUAL, GREATER };
    switch (code) {
    case NOT_EQUAL: return *included = false, true;
    case EQUAL: return *included = true, true;
    case BELOW:
    case LESS: return *included = false, step > 0;
    case BELOW_EQUAL:
    case LESS_EQUAL: return *included = true, step > 0;
    case ABOVE:
    case GREATER: return *included = false, step < 0;
    case NOT_BELOW:
    case NOT_LESS: return *included = true, step < 0;
    default: return false;
    }
}

/* The taken edge of a block's branch leads out of the loop. */
static bool leaves_if_taken(const ir_func *ir, uint32_t loop, uint32_t block)
{
    const lift_block *b = &ir->func->blocks[block];
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++)
        if (ir->func->edges[e].kind == EDGE_TAKEN) return !in_loop(ir, loop, ir->func->edges[e].to);
    return false;
}

/* What a loop compares a phi of its own with, when it decides whether to go on. */
static bool ends_with(const ir_func *ir, uint32_t l, ir_value phi, int64_t step, value_sum *end)
{
    const ir_loop *loop = &ir->loops[l - 1];
    for (uint32_t b = 0; b < loop->block_count; b++) {
        value_condition c;
        uint32_t block = ir->loop_blocks[loop->first_block + b];
        if (!is_exit(ir, l, block) || !value_test(ir, block, !leaves_if_taken(ir, l, block), &c) || !c.a) continue;
        value_sum a = value_of(ir, c.a), z = c.b ? value_of(ir, c.b) : (value_sum){.known = true, .add = c.imm};
        if (c.b && z.known && z.count == 1 && z.terms[0].leaf == phi) { /* `n > i` */
            value_sum other = a;
            a = z;
            z = other;
            c.code = value_mirror(c.code);
        }
        if (!a.known || a.count != 1 || a.terms[0].leaf != phi || a.terms[0].factor != 1 || (a.add && a.add != step)) continue;
        bool included;
        if (!goes_to_end(c.code, step, &included)) continue;
        bool behind = !a.add && (block != loop->header || loop->block_count == 1); /* the body has run when it is compared */
        *end = z;
        end->add += (included ? step : 0) + (behind ? step : 0);
        return end->known;
    }
    return false;
}

bool count_range(const ir_func *ir, ir_value phi, value_sum *first, value_sum *end)
{
    int64_t step = 0, other;
    uint32_t l = loop_of(ir, phi, &step);
    *end = (value_sum){0};
    if (!l || step <= 0 || !begins_with(ir, phi, first)) return false;
    if (ends_with(ir, l, phi, step, end)) return true;
    const ir_block *header = &ir->blocks[ir->loops[l - 1].header];
    for (ir_value q = header->first; q < header->first + header->count && !end->known; q++) { /* as often as another one counts */
        value_sum from, to;
        if (q == phi || ir->insns[q].op != IR_PHI || !count_step(ir, l, q, &other) || !other || !begins_with(ir, q, &from)) continue;
        if (!ends_with(ir, l, q, other, &to) || !value_same_terms(&from, &to) || (to.add - from.add) / other <= 0) continue;
        *end = *first;
        end->add += (to.add - from.add + other - (other > 0 ? 1 : -1)) / other * step;
    }
    return true;
}

int64_t count_stride(const ir_func *ir, ir_value phi)
{
    int64_t step = 0;
    for (uint32_t l = 1; l <= ir->loop_count; l++)
        if (count_step(ir, l, phi, &step)) return step;
    return 0;
}
