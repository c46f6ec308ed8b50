/* Is the frame gone where a block ends? An indirect jump there is a tail call.
 *
 * The unwind rows say so where there are any: the CFA is then eight bytes above the stack pointer, as at the entry.
 * Code without them is interpreted: what matters of it is only push, pop, leave and constants added to the stack
 * pointer or copied from it to the frame pointer. */
#include "static/lift/flow.h"

enum { DWARF_RSP = 7, UNKNOWN = INT32_MIN, UNREACHED = INT32_MAX, LIMIT = 1 << 28 };

typedef struct {
    int32_t rsp, rbp; /* relative to the stack pointer at entry, or UNKNOWN */
} depth;

static int32_t plus(int32_t a, int64_t k)
{
    int64_t sum = a + k;
    return a == UNKNOWN || k > LIMIT || k < -LIMIT || sum > LIMIT || sum < -LIMIT ? UNKNOWN : (int32_t)sum;
}

static bool is_reg(const ZydisDecodedOperand *op, ZydisRegister reg)
{
    return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

static int32_t value_of(const depth *d, ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_RSP ? d->rsp : reg == ZYDIS_REGISTER_RBP ? d->rbp : UNKNOWN;
}

/* The new content of rsp or rbp, the first operand. */
static int32_t written(const depth *d, const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
    int32_t old = value_of(d, ops[0].reg.value);
    bool immediate = ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_ADD: return immediate ? plus(old, ops[1].imm.value.s) : UNKNOWN;
    case ZYDIS_MNEMONIC_SUB: return immediate ? plus(old, -ops[1].imm.value.s) : UNKNOWN;
    case ZYDIS_MNEMONIC_MOV:
        return ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER ? value_of(d, ops[1].reg.value) : UNKNOWN;
    case ZYDIS_MNEMONIC_LEA:
        return ops[1].mem.index == ZYDIS_REGISTER_NONE ? plus(value_of(d, ops[1].mem.base), ops[1].mem.disp.value)
                                                       : UNKNOWN;
    default: return UNKNOWN;
    }
}

static void interpret(const image *img, const lift_insn *insn, depth *d)
{
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_SLOT || insn->flow == FLOW_CALL_IND) return;
    if (!flow_operands(img, insn, &zi, ops)) {
        *d = (depth){UNKNOWN, UNKNOWN};
        return;
    }
    switch (zi.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: d->rsp = plus(d->rsp, -(zi.operand_width / 8)); return;
    case ZYDIS_MNEMONIC_POP:
        d->rsp = plus(d->rsp, zi.operand_width / 8);
        if (is_reg(&ops[0], ZYDIS_REGISTER_RBP)) d->rbp = UNKNOWN;
        if (is_reg(&ops[0], ZYDIS_REGISTER_RSP)) d->rsp = UNKNOWN;
        return;
    case ZYDIS_MNEMONIC_LEAVE: *d = (depth){plus(d->rbp, 8), UNKNOWN}; return;
    default: break;
    }
    for (uint32_t i = 0; i < zi.operand_count; i++) {
        if (!(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) || ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[i].reg.value);
        bool exact = i == 0 && whole == ops[0].reg.value;
        if (whole == ZYDIS_REGISTER_RSP) d->rsp = exact ? written(d, &zi, ops) : UNKNOWN;
        if (whole == ZYDIS_REGISTER_RBP) d->rbp = exact ? written(d, &zi, ops) : UNKNOWN;
    }
}

static bool merge(depth *to, const depth *from)
{
    depth old = *to;
    if (to->rsp == UNREACHED)
        *to = *from;
    else {
        if (to->rsp != from->rsp) to->rsp = UNKNOWN;
        if (to->rbp != from->rbp) to->rbp = UNKNOWN;
    }
    return old.rsp != to->rsp || old.rbp != to->rbp;
}

/* The stack pointer before the last instruction of each block. A block is visited at most three times, since each of
 * the two values goes from unreached to known to unknown. */
static void interpret_all(const image *img, const lift_func *view, int32_t *last)
{
    depth *in = base_alloc(view->block_count * sizeof *in);
    uint32_t *work = base_alloc(((size_t)view->edge_count * 3 + 1) * sizeof *work), count = 0;
    for (uint32_t b = 0; b < view->block_count; b++) {
        in[b] = (depth){UNREACHED, UNREACHED};
        last[b] = UNKNOWN;
    }
    in[0] = (depth){0, UNKNOWN};
    work[count++] = 0;
    while (count) {
        uint32_t b = work[--count];
        const lift_block *block = &view->blocks[b];
        depth d = in[b];
        for (uint32_t i = 0; i < block->insn_count; i++) {
            last[b] = d.rsp;
            interpret(img, &view->insns[block->first_insn + i], &d);
        }
        for (uint32_t e = block->first_succ; e < block->first_succ + block->succ_count; e++)
            if (merge(&in[view->edges[e].to], &d)) work[count++] = view->edges[e].to;
    }
    free(in);
    free(work);
}

void depth_reset(depth_memory *m)
{
    free(m->rows);
    free(m->last);
    *m = (depth_memory){0};
}

static const image_unwind_row *row_at(const image *img, depth_memory *m, const image_fde *fde, uint64_t addr)
{
    if (m->fde != fde) {
        free(m->rows);
        m->rows = NULL;
        m->row_count = image_unwind_rows(img, fde, &m->rows);
        m->fde = fde;
    }
    uint32_t low = 0, high = m->row_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (m->rows[mid].addr <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? &m->rows[low - 1] : NULL;
}

bool depth_frame_gone(const image *img, const lift_func *view, depth_memory *m, uint32_t block)
{
    const lift_block *b = &view->blocks[block];
    uint64_t addr = view->insns[b->first_insn + b->insn_count - 1].addr;
    const image_fde *fde = image_fde_at(img, addr);
    const image_unwind_row *row = fde ? row_at(img, m, fde, addr) : NULL;
    if (row) return row->cfa_reg == DWARF_RSP && row->cfa_off == 8;
    if (!m->last) {
        m->last = base_alloc(view->block_count * sizeof *m->last);
        interpret_all(img, view, m->last);
    }
    return m->last[block] == 0;
}
