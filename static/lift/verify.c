/* The promises of lift.h, checked: what every later pass relies on. Run by the tests and fuzz targets on whole programs. */
#include "static/lift/raw.h"

#include <stdlib.h>

typedef struct {
    const ir_func *ir;
    uint32_t *home; /* value -> its block; UINT32_MAX: in front of block 0 */
    race_error *error;
} verifier;

static int wrong(const verifier *v, ir_value at, const char *what)
{
    return base_fail(v->error, "%s: v%u (%s): %s", v->ir->func->name, at,
                     at < v->ir->insn_count ? ir_op_name((ir_op)v->ir->insns[at].op) : "?", what);
}

/* `use` is in `block`, in front of number `before`. */
static int verify_use(const verifier *v, ir_value at, ir_value use, uint32_t block, uint32_t before)
{
    if (!use) return 0;
    if (use >= v->ir->insn_count) return wrong(v, at, "an operand that does not exist");
    uint32_t home = v->home[use];
    if (home == UINT32_MAX) return 0;
    if (home == block) return use < before ? 0 : wrong(v, at, "an operand is used in front of its definition");
    if (!ir_dominates(v->ir, home, block)) return wrong(v, at, "an operand's block does not dominate its use");
    if (v->ir->insns[use].var == IR_NOVAR) return wrong(v, at, "a temporary is used in another block");
    return 0;
}

static int verify_args(const verifier *v, ir_value at, uint32_t block)
{
    const ir_insn *insn = &v->ir->insns[at];
    const lift_func *func = v->ir->func;
    if (insn->a > v->ir->arg_count || insn->b > v->ir->arg_count - insn->a)
        return wrong(v, at, "arguments that do not exist");
    if (insn->op == IR_PHI) {
        const lift_block *b = &func->blocks[block];
        if (insn->b != b->pred_count + (block == 0)) return wrong(v, at, "a phi without one argument per predecessor");
        for (uint32_t k = 0; k < insn->b; k++) {
            ir_value use = v->ir->args[insn->a + k];
            uint32_t from = k < b->pred_count ? func->edges[func->preds[b->first_pred + k]].from : 0;
            bool reached = k == b->pred_count || v->ir->blocks[from].rpo != UINT32_MAX;
            if (reached && !use) return wrong(v, at, "a phi argument is missing");
            if (use && use < v->ir->insn_count && v->ir->insns[use].var != insn->var)
                return wrong(v, at, "a phi of different variables");
            if (k < b->pred_count && reached && verify_use(v, at, use, from, UINT32_MAX)) return -1;
        }
        return 0;
    }
    for (uint32_t k = 0; k < insn->b; k++)
        if (verify_use(v, at, v->ir->args[insn->a + k], block, at)) return -1;
    if ((insn->op == IR_CALL || insn->op == IR_TAIL) && insn->b < IR_CALL_ARGS) return wrong(v, at, "too few arguments");
    return 0;
}

static int verify_insn(const verifier *v, ir_value at, uint32_t block)
{
    const ir_insn *insn = &v->ir->insns[at];
    const lift_block *b = &v->ir->func->blocks[block];
    if (insn->op >= IR_OP_COUNT || insn->op == IR_NONE) return wrong(v, at, "not an operation");
    if (b->insn_count && (insn->insn < b->first_insn || insn->insn >= b->first_insn + b->insn_count))
        return wrong(v, at, "belongs to a machine instruction of another block");
    if (insn->var != IR_NOVAR && insn->var >= IR_SLOT + v->ir->slot_count) return wrong(v, at, "not a variable");
    if (raw_has_args(insn->op)) {
        if (verify_args(v, at, block)) return -1;
    } else if (verify_use(v, at, insn->a, block, at) || verify_use(v, at, insn->b, block, at)) {
        return -1;
    }
    if (insn->op != IR_PHI && verify_use(v, at, insn->c, block, at)) return -1;
    if ((insn->op == IR_LOAD || insn->op == IR_STORE) && v->ir->insns[insn->a].op != IR_ACCESS)
        return wrong(v, at, "not of an access");
    if ((insn->op == IR_RESULT || insn->op == IR_CLOBBER) && v->ir->insns[insn->a].op != IR_CALL &&
        v->ir->insns[insn->a].op != IR_SYSCALL)
        return wrong(v, at, "not of a call");
    return 0;
}

static int verify_block(const verifier *v, uint32_t block)
{
    const ir_block *b = &v->ir->blocks[block];
    bool phis_over = false;
    uint32_t machine = 0;
    for (uint32_t i = b->first; i < b->first + b->count; i++) {
        const ir_insn *insn = &v->ir->insns[i];
        if (insn->op == IR_PHI && phis_over) return wrong(v, i, "a phi behind another instruction");
        phis_over |= insn->op != IR_PHI;
        if (insn->op != IR_PHI && insn->insn < machine) return wrong(v, i, "machine instructions out of order");
        if (insn->op != IR_PHI) machine = insn->insn;
        if (verify_insn(v, i, block)) return -1;
    }
    return 0;
}

static int verify_graph(const verifier *v)
{
    const lift_func *func = v->ir->func;
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        if (b > 1 && block->start <= func->blocks[b - 1].start)
            return base_fail(v->error, "%s: block %u: not in the order of addresses", func->name, b);
        if (!block->insn_count && block->end_kind != END_TAIL && block->end_kind != END_BAD)
            return base_fail(v->error, "%s: block %u: empty", func->name, b);
        for (uint32_t k = 0; k < block->succ_count; k++)
            if (func->edges[block->first_succ + k].from != b || func->edges[block->first_succ + k].to >= func->block_count)
                return base_fail(v->error, "%s: block %u: a successor edge that is not its own", func->name, b);
        for (uint32_t k = 0; k < block->pred_count; k++)
            if (func->edges[func->preds[block->first_pred + k]].to != b)
                return base_fail(v->error, "%s: block %u: a predecessor edge that is not its own", func->name, b);
    }
    return 0;
}

int ir_verify(const ir_func *ir, race_error *error)
{
    verifier v = {.ir = ir, .error = error};
    v.home = base_alloc((size_t)ir->insn_count * sizeof *v.home);
    for (uint32_t i = 0; i < ir->insn_count; i++)
        v.home[i] = UINT32_MAX;
    for (uint32_t b = 0; b < ir->func->block_count; b++)
        for (uint32_t i = ir->blocks[b].first; i < ir->blocks[b].first + ir->blocks[b].count; i++)
            v.home[i] = b;
    int result = verify_graph(&v);
    for (uint32_t b = 0; !result && b < ir->func->block_count; b++)
        result = verify_block(&v, b);
    free(v.home);
    return result;
}
