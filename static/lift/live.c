/* Which registers and flags may still be read before they are written, before each machine instruction. Injected code
 * takes what is not live here as scratch, so the answer errs on one side only: dead means dead.
 *
 * The ABI alone is not a safe ground. gcc's -fipa-ra, on by default, lets a caller keep a value in a caller-saved
 * register across a call to a function of its own file that does not write it. Hence:
 *   - only a call that leaves the module, or an indirect one, ends the life of caller-saved registers;
 *   - at a return, a register that the function never writes is live, and so is one that it pops: clang's
 * preserve_most, and the slow paths of just-in-time compilers, save what the ABI would let them change.
 *   - code without a frame description need not keep to the ABI: where it jumps away, anything may be passed (GHC);
 *     and its indirect jumps are shared by functions that are not all known, and have targets that only one of them
 * tells. Nor are the edges all there is: a thread may be unwound from any instruction (asynchronous cancellation, or a
 * handler that throws, -fnon-call-exceptions). Its landing pad then finds the registers as they are there, and its
 * caller's those that this function has not saved, even where a loop never ends. Other traps: writes of 8 and 16 bits,
 * conditional writes, rep with a count of zero and shifts by zero keep the old value; -pg's mcount and TLS descriptor
 * calls preserve what a call normally does not; retpoline thunks take their target in r11. */
#include "static/lift/lift.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

#define BIT(var) (1u << (var))

enum {
    LIVE_GPRS = 0xffff,
    LIVE_ALL = LIVE_GPRS | LIVE_STATUS | LIVE_DF,
    LIVE_ALWAYS = BIT(IR_RSP), /* signal handlers run on the stack at any time */
    LIVE_SAVED = BIT(IR_RBX) | BIT(IR_RBP) | BIT(IR_R12) | BIT(IR_R13) | BIT(IR_R14) | BIT(IR_R15) | LIVE_ALWAYS,
    LIVE_SCRATCH = LIVE_GPRS & ~LIVE_SAVED,
    /* What a callee may read. The saved registers belong to it: it pushes them, and an unwinder reads them. */
    LIVE_PASSED = BIT(IR_RDI) | BIT(IR_RSI) | BIT(IR_RDX) | BIT(IR_RCX) | BIT(IR_R8) | BIT(IR_R9) | BIT(IR_RAX) |
                  BIT(IR_R10) | LIVE_SAVED | LIVE_DF,
    LIVE_RETURNED = BIT(IR_RAX) | BIT(IR_RDX) | LIVE_SAVED | LIVE_DF,
    LIVE_SYSCALL = BIT(IR_RAX) | BIT(IR_RDI) | BIT(IR_RSI) | BIT(IR_RDX) | BIT(IR_R10) | BIT(IR_R8) | BIT(IR_R9),
    THUNK_SIZE = 64 /* a callee of this size or less may be a thunk with a convention of its own */
};

typedef struct {
    uint32_t use, kill; /* read before written; written whatever happens */
} live_effect;

typedef struct {
    const image *img;
    const lift_func *func;
    ZydisDecoder decoder;
    const uint8_t *bytes; /* of the section part last looked at: [at, at + available) */
    uint64_t at, available;
    uint32_t written;  /* registers that some instruction, or some callee outside, writes */
    uint32_t restored; /* registers that are popped somewhere */
} live_pass;

typedef struct {
    uint32_t insn;
    uint32_t pad; /* block; UINT32_MAX: not one of this function */
} live_unwind;

/* --- one instruction ---------------------------------------------------------------------------------------------- */

static uint32_t live_register(ZydisRegister reg)
{
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15 ? BIT(full - ZYDIS_REGISTER_RAX) : 0;
}

static uint32_t live_flags(uint32_t flags)
{
    static const struct {
        uint32_t theirs, ours;
    } table[] = {{ZYDIS_CPUFLAG_CF, LIVE_CF}, {ZYDIS_CPUFLAG_PF, LIVE_PF}, {ZYDIS_CPUFLAG_AF, LIVE_AF},
                 {ZYDIS_CPUFLAG_ZF, LIVE_ZF}, {ZYDIS_CPUFLAG_SF, LIVE_SF}, {ZYDIS_CPUFLAG_OF, LIVE_OF},
                 {ZYDIS_CPUFLAG_DF, LIVE_DF}};
    uint32_t mask = 0;
    for (size_t i = 0; flags && i < sizeof table / sizeof *table; i++)
        if (flags & table[i].theirs) mask |= table[i].ours;
    return mask;
}

/* Instructions that may leave their destination as it was although they are said to write it: bit scans of zero (and
 * tzcnt, which old processors run as bsf), and shadow stack instructions, which are no-ops without a shadow stack. */
static bool live_may_keep(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ:
        return true;
    default:
        return false;
    }
}

/* What it really reads are the registers of a state that the operands do not show. */
static bool live_reads_all(const ZydisDecodedInstruction *in)
{
    return (in->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) || in->mnemonic == ZYDIS_MNEMONIC_INT ||
           in->mnemonic == ZYDIS_MNEMONIC_SYSENTER || in->mnemonic == ZYDIS_MNEMONIC_XBEGIN ||
           in->meta.category == ZYDIS_CATEGORY_SYSRET || in->meta.category == ZYDIS_CATEGORY_SGX ||
           in->meta.category == ZYDIS_CATEGORY_VTX ||
           (in->meta.category == ZYDIS_CATEGORY_RET && in->mnemonic != ZYDIS_MNEMONIC_RET);
}

/* x ^ x and x - x do not depend on x; x - x - CF depends on CF only. */
static bool live_cancels(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
    return (in->mnemonic == ZYDIS_MNEMONIC_XOR || in->mnemonic == ZYDIS_MNEMONIC_SUB ||
            in->mnemonic == ZYDIS_MNEMONIC_SBB) &&
           ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ops[0].reg.value == ops[1].reg.value && ops[0].size >= 32;
}

static bool live_shifts_by_zero(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
    if (in->meta.category != ZYDIS_CATEGORY_SHIFT && in->meta.category != ZYDIS_CATEGORY_ROTATE) return false;
    const ZydisDecodedOperand *count = &ops[in->operand_count_visible - 1];
    uint64_t mask = in->operand_width == 64 ? 63 : 31;
    return count->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && (count->imm.value.u & mask) == 0;
}

static live_effect live_operands(live_pass *p, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
    live_effect e = {0, 0};
    if (in->meta.category == ZYDIS_CATEGORY_NOP || in->meta.category == ZYDIS_CATEGORY_WIDENOP) return e;
    uint32_t flags_written = 0;
    bool cancels = live_cancels(in, ops);
    for (int i = 0; i < in->operand_count; i++) {
        const ZydisDecodedOperand *op = &ops[i];
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            e.use |= live_register(op->mem.base) | live_register(op->mem.index);
        } else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == ZYDIS_REGISTER_RFLAGS) {
            if (op->actions & ZYDIS_OPERAND_ACTION_WRITE) flags_written = LIVE_STATUS | LIVE_DF;
        } else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            uint32_t bit = live_register(op->reg.value);
            if ((op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) && !cancels) e.use |= bit;
            if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) p->written |= bit;
            if ((op->actions & ZYDIS_OPERAND_ACTION_WRITE) && op->size >= 32) e.kill |= bit;
        }
    }
    if (live_may_keep(in->mnemonic)) e.kill = 0;
    e.use |= live_flags(in->cpu_flags->tested);
    /* A flag that becomes undefined is not killed: no program reads it, and if one does, it gets what it would have. */
    e.kill |= live_flags(in->cpu_flags->modified | in->cpu_flags->set_0 | in->cpu_flags->set_1) & flags_written;
    if (live_shifts_by_zero(in, ops)) e.kill &= ~(uint32_t)LIVE_STATUS;
    if (in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) e.kill = 0;
    return e;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Functions outside the module that, against the ABI, preserve all registers: profiling hooks. */
static bool live_preserves_all(const char *name)
{
    static const char *const names[] = {"mcount", "_mcount", "__mcount", "__fentry__", "__morestack"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* A direct jump or call to `target` follows the ABI for arguments only if a whole function starts there. */
static bool live_starts_function(const image *img, uint64_t target)
{
    if (image_plt_at(img, target)) return true;
    const image_fde *fde = image_fde_at(img, target);
    if (fde) return fde->start == target && !fde->fragment;
    const image_symbol *symbol = image_symbol_at(img, target);
    return symbol && symbol->type == IMAGE_SYM_FUNC;
}

/* What control passed to `target` (a function of this module) may read. */
static uint32_t live_passed_to(const image *img, uint64_t target)
{
    if (image_plt_at(img, target)) return LIVE_PASSED;
    if (!live_starts_function(img, target)) return LIVE_ALL;
    const image_fde *fde = image_fde_at(img, target);
    return fde && fde->end - fde->start > THUNK_SIZE ? LIVE_PASSED : LIVE_PASSED | BIT(IR_R11);
}

static live_effect live_call(live_pass *p, const lift_insn *insn, live_effect e, const ZydisDecodedOperand *op)
{
    bool leaves = true; /* by the ABI, through the PLT, a GOT slot or a pointer */
    uint32_t passed = LIVE_PASSED;
    const char *name = NULL;
    if (insn->flow == FLOW_CALL) {
        const image_plt *plt = image_plt_at(p->img, lift_target(insn));
        leaves = plt != NULL;
        if (plt)
            name = plt->name;
        else
            passed = live_passed_to(p->img, lift_target(insn));
    } else if (insn->flow == FLOW_CALL_SLOT) {
        const image_reloc *slot = image_reloc_at(p->img, lift_target(insn));
        if (slot) name = slot->name;
    } else { /* call *(%rax) may be the call of a TLS descriptor, which keeps all but rax */
        leaves = !(op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RAX &&
                   op->mem.index == ZYDIS_REGISTER_NONE && op->mem.disp.value == 0);
    }
    if (name && live_preserves_all(name)) leaves = false;
    e.use |= passed;
    e.kill = LIVE_STATUS | (leaves ? LIVE_SCRATCH : 0);
    return e;
}

/* --- the function ------------------------------------------------------------------------------------------------- */

static live_effect live_instruction(live_pass *p, const lift_insn *insn, bool returns)
{
    ZydisDecodedInstruction in;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    if (insn->addr - p->at >= p->available) {
        p->at = insn->addr;
        p->bytes = image_bytes(p->img, insn->addr, &p->available);
        if (!p->bytes) p->available = 0;
    }
    uint64_t offset = insn->addr - p->at;
    if (offset >= p->available ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&p->decoder, p->bytes + offset, p->available - offset, &in, ops)))
        return (live_effect){LIVE_ALL, 0};
    live_effect e = live_operands(p, &in, ops);
    if (in.mnemonic == ZYDIS_MNEMONIC_POP && ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
        p->restored |= live_register(ops[0].reg.value);
    switch (insn->flow) {
    case FLOW_CALL:
    case FLOW_CALL_SLOT:
    case FLOW_CALL_IND:
        e = live_call(p, insn, e, &ops[0]);
        if (returns) p->written |= e.kill & LIVE_GPRS;
        break;
    case FLOW_SYSCALL:
        if (in.mnemonic == ZYDIS_MNEMONIC_SYSCALL) e = (live_effect){LIVE_SYSCALL | LIVE_DF, BIT(IR_RCX) | BIT(IR_R11)};
        break;
    default:
        break;
    }
    if (live_reads_all(&in)) e.use = LIVE_ALL;
    e.use |= LIVE_ALWAYS;
    return e;
}

/* What may be read after the block's last instruction other than by its successors. */
static uint32_t live_beyond(const live_pass *p, const lift_block *b)
{
    const lift_insn *last = b->insn_count ? &p->func->insns[b->first_insn + b->insn_count - 1] : NULL;
    uint32_t unwritten = LIVE_GPRS & (~p->written | p->restored);
    uint32_t tail = LIVE_ALL;
    if (last && !image_fde_at(p->img, last->addr) &&
        (b->end_kind == END_RET || b->end_kind == END_TAIL || b->tail || last->flow == FLOW_JUMP_SLOT ||
         last->flow == FLOW_JUMP_IND))
        return LIVE_ALL;
    if (last && (last->flow == FLOW_JUMP || last->flow == FLOW_BRANCH))
        tail = live_passed_to(p->img, lift_target(last)) | unwritten;
    else if (last && (last->flow == FLOW_JUMP_SLOT || last->flow == FLOW_JUMP_IND))
        tail = LIVE_PASSED | unwritten;

    switch ((lift_end)b->end_kind) {
    case END_RET:
        return LIVE_RETURNED | unwritten;
    case END_TAIL:
    case END_TAIL_IND:
        return tail;
    case END_NORETURN:
        return 0; /* the call itself reads what an unwinder needs */
    case END_TRAP:
        return LIVE_SAVED;
    case END_FALL:
    case END_JUMP:
        return b->succ_count >= 1 ? 0 : LIVE_ALL;
    case END_CALL:
        return b->succ_count >= 2 ? 0 : LIVE_ALL;
    case END_BRANCH:
        return b->succ_count >= 2 ? 0 : b->tail && b->succ_count == 1 ? tail : LIVE_ALL;
    case END_SWITCH:
        return b->succ_count >= 1 ? 0 : LIVE_ALL;
    case END_UNKNOWN:
    case END_BAD:
        break;
    }
    return LIVE_ALL;
}

typedef struct {
    live_effect effect; /* of the whole block */
    uint32_t in, beyond;
} live_block;

static uint32_t live_out(const lift_func *func, const live_block *blocks, uint32_t b)
{
    uint32_t out = blocks[b].beyond;
    for (uint32_t i = 0; i < func->blocks[b].succ_count; i++)
        out |= blocks[func->edges[func->blocks[b].first_succ + i].to].in;
    return out;
}

/* Each block's set grows at most once per bit, so this is linear in the edges. Blocks nobody reaches are solved too. */
static void live_solve(const lift_func *func, live_block *blocks)
{
    uint32_t n = func->block_count, count = 0;
    uint32_t *work = base_alloc((size_t)n * sizeof *work);
    bool *queued = base_alloc((size_t)n);
    for (uint32_t b = 0; b < n; b++) {
        work[count++] = b; /* taken from the end: later blocks first */
        queued[b] = true;
    }
    while (count > 0) {
        uint32_t b = work[--count];
        queued[b] = false;
        uint32_t in = blocks[b].effect.use | (live_out(func, blocks, b) & ~blocks[b].effect.kill);
        if (in == blocks[b].in) continue;
        blocks[b].in = in;
        for (uint32_t i = 0; i < func->blocks[b].pred_count; i++) {
            uint32_t from = func->edges[func->preds[func->blocks[b].first_pred + i]].from;
            if (queued[from]) continue;
            queued[from] = true;
            work[count++] = from;
        }
    }
    free(work);
    free(queued);
}

static bool is_call(const lift_insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_SLOT || insn->flow == FLOW_CALL_IND;
}

static uint32_t block_of_pad(const lift_func *func, uint64_t pad)
{
    for (uint32_t b = 0; b < func->block_count; b++)
        if (func->blocks[b].start == pad && func->blocks[b].insn_count) return b;
    return UINT32_MAX;
}

typedef VEC(live_unwind) live_unwinds;

/* Instructions from which a thread may be unwound to a landing pad without an edge that says so. */
static void live_find_unwinds(const live_pass *p, live_unwinds *found)
{
    const lift_func *func = p->func;
    uint64_t last_pad = 0;
    uint32_t last_block = UINT32_MAX;
    for (uint32_t i = 0; p->img->pad_count && i < func->insn_count; i++) {
        const uint64_t pad = is_call(&func->insns[i]) ? 0 : image_landing_pad(p->img, func->insns[i].addr);
        if (!pad) continue;
        if (pad != last_pad) last_block = block_of_pad(func, pad);
        last_pad = pad;
        vec_push(found, (live_unwind){i, last_block});
    }
}

/* What the landing pads read is read at those instructions. True: something was new. */
static bool live_unwind_all(const live_unwinds *unwinds, const live_block *blocks, live_effect *effects)
{
    const uint32_t given = BIT(IR_RAX) | BIT(IR_RDX); /* by the unwinder */
    bool changed = false;
    for (uint32_t i = 0; i < unwinds->len; i++) {
        const live_unwind *u = &unwinds->data[i];
        const uint32_t read = u->pad == UINT32_MAX ? LIVE_GPRS : blocks[u->pad].in & LIVE_GPRS & ~given;
        changed |= (read & ~effects[u->insn].use) != 0;
        effects[u->insn].use |= read;
    }
    return changed;
}

static void live_sum(const lift_func *func, const live_effect *effects, live_block *blocks)
{
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        live_effect *whole = &blocks[b].effect;
        *whole = (live_effect){0, 0};
        for (uint32_t i = block->insn_count; i-- > 0;) {
            live_effect e = effects[block->first_insn + i];
            whole->use = e.use | (whole->use & ~e.kill);
            whole->kill |= e.kill;
        }
    }
}

/* Requires func's blocks, edges and preds. Leaves ir->live. */
void ir_liveness(const image *img, ir_func *ir)
{
    const lift_func *func = ir->func;
    live_pass pass = {.img = img, .func = func};
    ZydisDecoderInit(&pass.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    live_effect *effects = base_alloc((size_t)func->insn_count * sizeof *effects);
    live_block *blocks = base_alloc_zero(func->block_count, sizeof *blocks);

    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        for (uint32_t i = 0; i < block->insn_count; i++) {
            bool returns = block->end_kind != END_NORETURN || i + 1 < block->insn_count;
            effects[block->first_insn + i] = live_instruction(&pass, &func->insns[block->first_insn + i], returns);
        }
    }
    for (uint32_t b = 0; b < func->block_count; b++) /* needs all that is written */
        blocks[b].beyond = live_beyond(&pass, &func->blocks[b]);
    live_unwinds unwinds = {0};
    live_find_unwinds(&pass, &unwinds);
    do {
        live_sum(func, effects, blocks);
        live_solve(func, blocks);
    } while (live_unwind_all(&unwinds, blocks, effects));
    vec_free(&unwinds);
    const uint32_t callers = LIVE_SAVED & ~pass.written;

    ir->live = arena_alloc(&ir->memory, (size_t)func->insn_count * sizeof *ir->live);
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        uint32_t live = live_out(func, blocks, b);
        for (uint32_t i = block->insn_count; i-- > 0;) {
            live_effect e = effects[block->first_insn + i];
            live = e.use | (live & ~e.kill);
            ir->live[block->first_insn + i] = live | callers;
        }
    }
    free(effects);
    free(blocks);
}
