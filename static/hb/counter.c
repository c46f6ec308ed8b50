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

/* The numbers that a phi of a loop goes through, by what it starts from and what it is compared with: [first, end). False: it does
 * not count up from one sum. `end` may not be known. */
bool count_range(const ir_func *ir, ir_value phi, value_sum *first, value_sum *end)
{
    const ir_insn *insn = &ir->insns[phi];
    bool has_first = false;
    uint32_t l = 1;
    int64_t step = 0;
    if (insn->op != IR_PHI) return false;
    while (l <= ir->loop_count && !count_step(ir, l, phi, &step))
        l++;
    if (l > ir->loop_count || step <= 0) return false;
    for (uint32_t i = 0; i < insn->b; i++) {
        const ir_insn *next = &ir->insns[value_plain(ir, ir->args[insn->a + i], 4)];
        if (next->op == IR_LEA && !next->b && next->a && value_plain(ir, next->a, 4) == phi) continue;
        if (has_first) return false;
        *first = value_of(ir, ir->args[insn->a + i]);
        has_first = true;
    }
    *end = (value_sum){0};
    const ir_loop *loop = &ir->loops[l - 1];
    for (uint32_t b = 0; has_first && b < loop->block_count && !end->known; b++) {
        value_condition c;
        uint32_t block = ir->loop_blocks[loop->first_block + b];
        if (!value_test(ir, block, true, &c) || !c.a) continue;
        value_sum a = value_of(ir, c.a), z = c.b ? value_of(ir, c.b) : (value_sum){.known = true, .add = c.imm};
        if (!a.known || a.count != 1 || a.terms[0].leaf != phi || a.terms[0].factor != 1 || (a.add && a.add != step)) continue;
        *end = z;
        bool included = c.code == 14 || c.code == 15 || c.code == 6 || c.code == 7;
        bool behind = !a.add && (block != loop->header || loop->block_count == 1); /* the body has run when it is compared */
        end->add += (included ? step : 0) + (behind ? step : 0);
    }
    return has_first && first->known;
}

int64_t count_stride(const ir_func *ir, ir_value phi)
{
    int64_t step = 0;
    for (uint32_t l = 1; l <= ir->loop_count; l++)
        if (count_step(ir, l, phi, &step)) return step;
    return 0;
}
