/* Random states. A state in which every address is nonsense would test little: what a block uses as an address gets
 * a pointer, an index is small, a rep count smaller still, and registers and slots that the IR takes for places in the
 * frame are that. */
#include "irdiff.h"

enum { REALIGNED_BELOW = 32768 }; /* how far the realigned frame is from the entry */

typedef enum { ROLE_ANY, ROLE_INDEX, ROLE_COUNT, ROLE_POINTER } role;

typedef struct {
    interpreter *in;
    machine *m;
    role roles[16];
    bool uses_df;
} state;

static bool is_outside(const state *s, ir_value v)
{
    const ir_block *b = &s->in->ir->blocks[s->in->block];
    uint8_t op = s->in->ir->insns[v].op;
    return v < b->first || v >= b->first + b->count || op == IR_PHI || op == IR_ENTRY;
}

/* Follows simple arithmetic back to the register the block was entered with. */
static void assign_role(state *s, ir_value v, role r)
{
    for (int depth = 0; v && depth < 8; depth++) {
        const ir_insn *insn = &s->in->ir->insns[v];
        if (is_outside(s, v)) {
            if (insn->var < 16 && s->roles[insn->var] < r) s->roles[insn->var] = r;
            return;
        }
        switch ((ir_op)insn->op) {
        case IR_LEA:
            if (insn->b && r == ROLE_POINTER) assign_role(s, insn->b, ROLE_INDEX);
            v = insn->a;
            break;
        case IR_COPY:
        case IR_SEXT:
        case IR_SHL:
        case IR_SUB:
            v = insn->a;
            break;
        default:
            return;
        }
    }
}

static void find_df(void *context, ir_value v)
{
    state *s = context;
    s->uses_df |= s->in->ir->insns[v].var == IR_DF;
}

static bool is_string(uint16_t mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
    case ZYDIS_MNEMONIC_LODSB:
    case ZYDIS_MNEMONIC_LODSW:
    case ZYDIS_MNEMONIC_LODSD:
    case ZYDIS_MNEMONIC_LODSQ:
    case ZYDIS_MNEMONIC_SCASB:
    case ZYDIS_MNEMONIC_SCASW:
    case ZYDIS_MNEMONIC_SCASD:
    case ZYDIS_MNEMONIC_SCASQ:
    case ZYDIS_MNEMONIC_CMPSB:
    case ZYDIS_MNEMONIC_CMPSW:
    case ZYDIS_MNEMONIC_CMPSD:
    case ZYDIS_MNEMONIC_CMPSQ:
        return true;
    default:
        return false;
    }
}

static void assign_roles(state *s)
{
    const lift_block *code = &s->in->ir->func->blocks[s->in->block];
    for (uint32_t i = 0; i < code->insn_count;
         i++) /* whatever the IR says of them: nobody has time for 2^64 elements */
        if (is_string(s->in->ir->func->insns[code->first_insn + i].mnemonic)) s->roles[IR_RCX] = ROLE_COUNT;
    const ir_block *b = &s->in->ir->blocks[s->in->block];
    for (uint32_t v = b->first; v < b->first + b->count; v++) {
        const ir_insn *insn = &s->in->ir->insns[v];
        interpret_operands(s->in->ir, insn, find_df, s);
        if (insn->op != IR_ACCESS) continue;
        assign_role(s, insn->a, ROLE_POINTER);
        assign_role(s, insn->b, ROLE_INDEX);
        if (insn->flags & IR_REP) assign_role(s, insn->c, ROLE_COUNT);
    }
}

static uint64_t state_value(role r, uint64_t *random)
{
    uint64_t x = random_next(random), kind = x & 15, bits = random_next(random);
    if (r == ROLE_COUNT) return bits % 40;
    if (r == ROLE_INDEX) return kind < 14 ? bits % 512 : kind == 14 ? -(bits % 64) : bits & 0xffff;
    if (r == ROLE_POINTER || kind < 5)
        return MEMORY_HEAP + MEMORY_HEAP_SIZE / 4 + (bits % (MEMORY_HEAP_SIZE / 2) & (kind & 1 ? ~63ull : ~7ull));
    if (kind < 9) return bits & 0xff;
    if (kind == 9) return -(bits & 0xff);
    if (kind == 10) return (bits & 1) << (bits >> 8 & 63);
    if (kind < 13) return bits & 0xffffffff;
    return bits;
}

static void need_realigned(interpreter *in)
{
    if (in->has_realigned) return;
    in->has_realigned = true;
    in->realigned_sp = (in->entry_sp - REALIGNED_BELOW) & ~4095ull;
}

/* Puts `bits` into a variable. */
static void state_put(state *s, uint16_t var, uint64_t bits)
{
    if (var < 16) {
        s->m->gpr[var] = bits;
    } else if (var >= IR_VECTOR && var < IR_VECTOR + 256) {
        s->m->vector[(var - IR_VECTOR) / 8][(var - IR_VECTOR) % 8] = bits;
    } else if (var >= IR_SLOT && (uint32_t)(var - IR_SLOT) < s->in->ir->slot_count) {
        const ir_slot *slot = &s->in->ir->slots[var - IR_SLOT];
        uint64_t addr;
        if (interpret_slot(s->in, slot, &addr)) memory_write(s->in->mem, addr, &bits, slot->size <= 8 ? slot->size : 8);
    }
}

static void apply_fact(void *context, ir_value v)
{
    state *s = context;
    const ir_insn *insn = &s->in->ir->insns[v];
    int32_t offset;
    uint8_t base;
    if (!is_outside(s, v) || insn->var == IR_NOVAR) return;
    if (insn->var >= IR_SLOT && (uint32_t)(insn->var - IR_SLOT) < s->in->ir->slot_count &&
        s->in->ir->slots[insn->var - IR_SLOT].base)
        need_realigned(s->in);
    if (!ir_frame_offset(s->in->ir, v, &offset, &base)) return;
    if (base) need_realigned(s->in);
    state_put(s, insn->var, (base ? s->in->realigned_sp : s->in->entry_sp) + (uint64_t)(int64_t)offset);
}

/* The stack pointer that a landing pad begins with is not the one of the call. */
static void apply_pad(state *s, ir_value v)
{
    int32_t offset;
    uint8_t base;
    if (!ir_frame_offset(s->in->ir, v, &offset, &base)) return;
    if (base) need_realigned(s->in);
    state_put(s, IR_RSP, (base ? s->in->realigned_sp : s->in->entry_sp) + (uint64_t)(int64_t)offset);
}

void state_random(interpreter *in, machine *m, uint64_t *random)
{
    state s = {.in = in, .m = m};
    assign_roles(&s);
    for (int i = 0; i < 16; i++)
        m->gpr[i] = state_value(s.roles[i], random);
    for (int i = 0; i < 32; i++)
        for (int lane = 0; lane < 8; lane++)
            m->vector[i][lane] = state_value(ROLE_ANY, random);
    m->fs = state_value(ROLE_POINTER, random) & ~63ull;
    m->gs = state_value(ROLE_POINTER, random) & ~63ull;
    uint64_t x = random_next(random);
    m->flags = x & FLAG_STATUS;
    if ((x >> 32 & (s.uses_df ? 3 : 31)) == 0) m->flags |= FLAG_DF;
    for (int i = 0; i < 16; i++) { /* equal numbers do not come by chance */
        uint64_t y = random_next(random);
        if ((y & 7) == 0 && s.roles[i] == s.roles[y >> 8 & 15]) m->gpr[i] = m->gpr[y >> 8 & 15];
    }

    in->entry_sp = MEMORY_STACK + MEMORY_STACK_SIZE / 2 + 16 * (random_next(random) & 0xff) + 8;
    in->has_realigned = false;
    /* Where the stack pointer is not known (alloca) it is at least below every slot. */
    int32_t lowest = 0;
    bool realigned = false;
    for (uint32_t i = 0; i < in->ir->slot_count; i++) {
        if (in->ir->slots[i].offset < lowest) lowest = in->ir->slots[i].offset;
        realigned |= in->ir->slots[i].base;
    }
    m->gpr[IR_RSP] = in->entry_sp - 16 * (random_next(random) & 31) - 8 - ((uint64_t) - (int64_t)lowest & ~15ull);
    if (realigned) m->gpr[IR_RSP] -= 2 * REALIGNED_BELOW;
    uint64_t back = state_value(ROLE_POINTER, random); /* a return to an address that cannot be one is a fault */
    memory_write(in->mem, in->entry_sp, &back, sizeof back);
    const ir_block *b = &in->ir->blocks[in->block];
    for (uint32_t v = b->first; v < b->first + b->count; v++) {
        const ir_insn *insn = &in->ir->insns[v];
        if (insn->op == IR_PAD)
            apply_pad(&s, v);
        else if (insn->op == IR_PHI || insn->op == IR_ENTRY)
            apply_fact(&s, v);
        else
            interpret_operands(in->ir, insn, apply_fact, &s);
    }
}
