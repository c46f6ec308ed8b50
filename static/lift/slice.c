/* Going back over one machine instruction: what registers, memory and flags were before it, in terms of which what is
 * asked for can be rewritten. An instruction that is not modelled leaves its outputs unknown. */
#include "static/lift/slice.h"

enum { RSP = IR_RSP, RBP = IR_RBP };
enum { /* registers that a call does not preserve */
    CLOBBERED = 1 << IR_RAX | 1 << IR_RCX | 1 << IR_RDX | 1 << IR_RSI | 1 << IR_RDI | 1 << IR_R8 | 1 << IR_R9 |
                1 << IR_R10 | 1 << IR_R11
};

typedef struct {
    uint32_t written;   /* registers */
    slice_expr reg[16]; /* their new contents, over the registers before the instruction */
    bool stores, wild;  /* writes memory; wild: who knows where */
    slice_expr addr, value;
    uint32_t bits; /* bytes * 8 written at addr */
} effect;

typedef struct {
    const slice_context *c;
    const lift_insn *insn;
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    effect e;
} step;

/* --- operands ---------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t number, bits; /* number 16 and more: not a general register */
    bool high;             /* ah, ch, dh, bh */
} gpr;

static gpr gpr_of(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return (gpr){.number = 16};
    return (gpr){.number = (uint32_t)(whole - ZYDIS_REGISTER_RAX),
                 .bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg),
                 .high = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH};
}

static slice_expr read_reg(const slice_context *c, ZydisRegister reg)
{
    gpr r = gpr_of(reg);
    if (r.number > 15) return 0;
    slice_expr x = slice_reg(c->pool, r.number);
    if (r.high) x = slice_shr(c->pool, x, 8);
    return slice_zx(c->pool, x, r.bits);
}

static slice_expr address_of(const step *s, const ZydisDecodedOperand *op)
{
    slice_pool *pool = s->c->pool;
    if (op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS) return 0;
    if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB) return 0;
    uint64_t k = op->mem.disp.has_displacement ? (uint64_t)op->mem.disp.value : 0;
    slice_expr x;
    if (op->mem.base == ZYDIS_REGISTER_RIP) return slice_const(pool, s->insn->addr + s->insn->len + k);
    x = slice_const(pool, k);
    if (op->mem.base != ZYDIS_REGISTER_NONE) x = slice_add(pool, x, read_reg(s->c, op->mem.base));
    if (op->mem.index != ZYDIS_REGISTER_NONE)
        x = slice_add(pool, x, slice_mul(pool, read_reg(s->c, op->mem.index), op->mem.scale));
    return s->zi.address_width == 32 ? slice_zx(pool, x, 32) : x;
}

/* Zero-extended from the operand's size. */
static slice_expr read_op(const step *s, const ZydisDecodedOperand *op)
{
    switch (op->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: return read_reg(s->c, op->reg.value);
    case ZYDIS_OPERAND_TYPE_IMMEDIATE: return slice_const(s->c->pool, op->imm.value.u);
    case ZYDIS_OPERAND_TYPE_MEMORY: return slice_mem(s->c->pool, address_of(s, op), op->size);
    default: return 0;
    }
}

static void set_reg(step *s, uint32_t number, slice_expr x)
{
    s->e.written |= 1u << number;
    s->e.reg[number] = x;
}

static void write_op(step *s, const ZydisDecodedOperand *op, slice_expr x)
{
    slice_pool *pool = s->c->pool;
    if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        s->e.wild |= s->e.stores; /* two stores: not modelled */
        s->e.stores = true;
        s->e.addr = address_of(s, op);
        s->e.value = x;
        s->e.bits = op->size;
        if (!op->size || (s->zi.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
            s->e.wild = true;
        return;
    }
    if (op->type != ZYDIS_OPERAND_TYPE_REGISTER) return;
    gpr r = gpr_of(op->reg.value);
    if (r.number > 15) return;
    if (r.bits >= 32)
        set_reg(s, r.number, slice_zx(pool, x, r.bits));
    else if (r.high)
        set_reg(s, r.number, 0);
    else
        set_reg(s, r.number, slice_insert(pool, slice_reg(pool, r.number), x, r.bits));
}

/* --- effects ----------------------------------------------------------------------------------------------------- */

static void unknown_effect(step *s)
{
    for (uint32_t i = 0; i < s->zi.operand_count; i++)
        if (s->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) write_op(s, &s->ops[i], 0);
    /* A partial write of something unknown leaves nothing known. */
    for (uint32_t r = 0; r < 16; r++)
        if (s->e.written >> r & 1) s->e.reg[r] = 0;
}

static void call_effect(step *s)
{
    for (uint32_t r = 0; r < 16; r++)
        if (CLOBBERED >> r & 1) set_reg(s, r, 0);
    s->e.stores = s->e.wild = true;
}

static slice_expr plus(const step *s, slice_expr x, int64_t k)
{
    return slice_add(s->c->pool, x, slice_const(s->c->pool, (uint64_t)k));
}

/* The value that the first operand gets; false: not modelled. */
static bool arithmetic(const step *s, slice_expr *x)
{
    slice_pool *pool = s->c->pool;
    const ZydisDecodedOperand *ops = s->ops;
    slice_expr a = read_op(s, &ops[0]), b = read_op(s, &ops[1]);
    const slice_node *nb = &pool->nodes[b];
    switch (s->zi.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX: *x = b; return true;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD: *x = slice_sx(pool, b, ops[1].size); return true;
    case ZYDIS_MNEMONIC_LEA: *x = address_of(s, &ops[1]); return true;
    case ZYDIS_MNEMONIC_ADD: *x = slice_add(pool, a, b); return true;
    case ZYDIS_MNEMONIC_SUB: *x = slice_add(pool, a, slice_mul(pool, b, UINT64_MAX)); return true;
    case ZYDIS_MNEMONIC_INC: *x = plus(s, a, 1); return true;
    case ZYDIS_MNEMONIC_DEC: *x = plus(s, a, -1); return true;
    case ZYDIS_MNEMONIC_NEG: *x = slice_mul(pool, a, UINT64_MAX); return true;
    case ZYDIS_MNEMONIC_AND:
        if (nb->op != X_CONST) return false;
        *x = slice_and(pool, a, nb->k & (ops[0].size < 64 ? ((uint64_t)1 << ops[0].size) - 1 : UINT64_MAX));
        return true;
    case ZYDIS_MNEMONIC_XOR:
        if (ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER || ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
            ops[0].reg.value != ops[1].reg.value)
            return false;
        *x = slice_const(pool, 0);
        return true;
    case ZYDIS_MNEMONIC_SHL:
        if (nb->op != X_CONST || nb->k > 31) return false;
        *x = slice_mul(pool, a, (uint64_t)1 << nb->k);
        return true;
    case ZYDIS_MNEMONIC_SHR:
        if (nb->op != X_CONST || nb->k >= ops[0].size) return false;
        *x = slice_shr(pool, a, (uint32_t)nb->k);
        return true;
    case ZYDIS_MNEMONIC_IMUL:
        if (s->zi.operand_count_visible != 3 || ops[2].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
        *x = slice_mul(pool, b, ops[2].imm.value.u);
        return true;
    default: return false;
    }
}

static bool is_setcc(ZydisMnemonic m)
{
    return m >= ZYDIS_MNEMONIC_SETB && m <= ZYDIS_MNEMONIC_SETZ && m != ZYDIS_MNEMONIC_SETSSBSY;
}

static void find_effect(step *s)
{
    slice_pool *pool = s->c->pool;
    slice_expr x;
    switch (s->zi.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST: return;
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_SYSCALL: call_effect(s); return;
    case ZYDIS_MNEMONIC_PUSH:
        if (s->zi.operand_width != 64) break;
        s->e.stores = true;
        s->e.addr = plus(s, slice_reg(pool, RSP), -8);
        s->e.value = read_op(s, &s->ops[0]);
        s->e.bits = 64;
        set_reg(s, RSP, s->e.addr);
        return;
    case ZYDIS_MNEMONIC_POP:
        if (s->zi.operand_width != 64 || s->ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER) break;
        set_reg(s, RSP, plus(s, slice_reg(pool, RSP), 8));
        write_op(s, &s->ops[0], slice_mem(pool, slice_reg(pool, RSP), 64));
        return;
    case ZYDIS_MNEMONIC_LEAVE:
        set_reg(s, RSP, plus(s, slice_reg(pool, RBP), 8));
        set_reg(s, RBP, slice_mem(pool, slice_reg(pool, RBP), 64));
        return;
    case ZYDIS_MNEMONIC_CDQE: set_reg(s, IR_RAX, slice_sx(pool, slice_reg(pool, IR_RAX), 32)); return;
    case ZYDIS_MNEMONIC_CWDE:
        set_reg(s, IR_RAX, slice_zx(pool, slice_sx(pool, slice_reg(pool, IR_RAX), 16), 32));
        return;
    case ZYDIS_MNEMONIC_XCHG:
        if (s->ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER || s->ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER) break;
        x = read_op(s, &s->ops[0]);
        write_op(s, &s->ops[0], read_op(s, &s->ops[1]));
        write_op(s, &s->ops[1], x);
        return;
    default: break;
    }
    if (is_setcc(s->zi.mnemonic))
        write_op(s, &s->ops[0], slice_zx(pool, 0, 1));
    else if (arithmetic(s, &x) && s->ops[0].type != ZYDIS_OPERAND_TYPE_UNUSED)
        write_op(s, &s->ops[0], x);
    else
        unknown_effect(s);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t frame_key(uint32_t reg, uint64_t displacement)
{
    return (uint64_t)reg << 32 | (uint32_t)displacement;
}

static void read_frame(const slice_context *c)
{
    step s = {.c = c};
    c->frame->read = true;
    vec_clear(&c->frame->taken);
    for (uint32_t i = 0; i < c->view->insn_count; i++) {
        s.insn = &c->view->insns[i];
        if (s.insn->mnemonic != ZYDIS_MNEMONIC_LEA || !flow_operands(c->img, s.insn, &s.zi, s.ops)) continue;
        uint32_t base = gpr_of(s.ops[1].mem.base).number;
        if (base == RSP || base == RBP)
            vec_push(&c->frame->taken, frame_key(base, (uint64_t)s.ops[1].mem.disp.value));
    }
    if (c->frame->taken.len) qsort(c->frame->taken.data, c->frame->taken.len, sizeof(uint64_t), by_number);
}

/* An address computed from the stack or frame pointer itself. */
static bool is_frame(const slice_context *c, slice_expr addr)
{
    const slice_node *n = &c->pool->nodes[addr];
    if (n->op == X_REG) return n->k == RSP || n->k == RBP;
    if (n->op == X_MEM || n->op == X_CONST || n->op == X_ANY) return false;
    return is_frame(c, n->a) || ((n->op == X_ADD || n->op == X_INSERT) && is_frame(c, n->b));
}

/* A place in the frame that nothing points to. */
static bool is_private(const slice_context *c, slice_expr addr)
{
    uint64_t k;
    const slice_node *base = &c->pool->nodes[slice_split(c->pool, addr, &k)];
    if (base->op != X_REG || (base->k != RSP && base->k != RBP)) return false;
    if (!c->frame->read) read_frame(c);
    if (!c->frame->taken.len) return true;
    uint64_t key = frame_key((uint32_t)base->k, k);
    return !bsearch(&key, c->frame->taken.data, c->frame->taken.len, sizeof key, by_number);
}

static bool is_constant(const slice_context *c, slice_expr addr, uint32_t bits)
{
    const slice_node *n = &c->pool->nodes[addr];
    return n->op == X_CONST && image_is_constant(c->img, n->k, bits / 8);
}

/* Memory at `addr`, before the instruction, in terms of what it stores. */
static slice_expr load_before(const step *s, slice_expr addr, uint32_t bits, bool is_table)
{
    const slice_context *c = s->c;
    uint64_t k, stored_k;
    slice_expr base = slice_split(c->pool, addr, &k), stored = slice_split(c->pool, s->e.addr, &stored_k);
    slice_expr same = slice_mem(c->pool, addr, bits), changed = slice_zx(c->pool, 0, bits);
    if (!s->e.stores) return same;
    if (!s->e.wild && s->e.addr && base == stored && !c->pool->nodes[base].any) {
        if (addr == s->e.addr && s->e.bits >= bits) return slice_zx(c->pool, s->e.value, bits);
        int64_t apart = (int64_t)(k - stored_k);
        return apart >= (int64_t)s->e.bits / 8 || -apart >= (int64_t)bits / 8 ? same : changed;
    }
    if (is_table || is_constant(c, addr, bits) || is_private(c, addr)) return same;
    /* Nothing points to a private place, so nothing else is changed through it. */
    return !s->e.wild && is_private(c, s->e.addr) && !is_frame(c, addr) ? same : changed;
}

/* x, which is over the state after the instruction, over the state before it. */
static slice_expr before(const step *s, slice_expr x, bool is_table)
{
    slice_pool *pool = s->c->pool;
    slice_node n = pool->nodes[x];
    if (!(n.regs & s->e.written) && !(n.memory && s->e.stores)) return x;
    switch (n.op) {
    case X_REG: return s->e.written >> n.k & 1 ? s->e.reg[n.k] : x;
    case X_MEM: return load_before(s, before(s, n.a, false), n.bits, is_table);
    case X_ADD: {
        slice_expr a = before(s, n.a, is_table);
        return slice_add(pool, a, before(s, n.b, is_table));
    }
    case X_MUL: return slice_mul(pool, before(s, n.a, is_table), n.k);
    case X_ZX: return slice_zx(pool, before(s, n.a, is_table), n.bits);
    case X_SX: return slice_sx(pool, before(s, n.a, is_table), n.bits);
    case X_AND: return slice_and(pool, before(s, n.a, is_table), n.k);
    case X_SHR: return slice_shr(pool, before(s, n.a, is_table), (uint32_t)n.k);
    case X_INSERT: {
        slice_expr a = before(s, n.a, is_table);
        return slice_insert(pool, a, before(s, n.b, is_table), n.bits);
    }
    default: return x;
    }
}

/* True: something changed. */
static bool rewrite(const step *s, slice_state *state)
{
    const slice_pool *pool = s->c->pool;
    if (!s->e.written && !s->e.stores) return false;
    slice_expr x = before(s, state->x, state->is_table);
    bool changed = x != state->x;
    uint32_t kept = 0;
    state->x = x;
    for (uint32_t i = 0; i < state->fact_count; i++) {
        slice_fact f = state->facts[i];
        f.a = before(s, f.a, false);
        f.b = before(s, f.b, false);
        changed |= f.a != state->facts[i].a || f.b != state->facts[i].b;
        if (!slice_holds(pool, &f)) state->impossible = true;
        if (!pool->nodes[f.a].any && !pool->nodes[f.b].any) state->facts[kept++] = f;
    }
    state->fact_count = (uint8_t)kept;
    return changed;
}

/* --- flags ------------------------------------------------------------------------------------------------------- */

enum { STATUS = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_PF };

static bool sets_flags(const ZydisDecodedInstruction *zi)
{
    const ZydisAccessedFlags *f = zi->cpu_flags;
    return f && (f->modified | f->set_0 | f->set_1 | f->undefined) & STATUS;
}

static void add_fact(const slice_pool *pool, slice_state *state, slice_fact fact)
{
    if (pool->nodes[fact.a].any || pool->nodes[fact.b].any) return;
    if (state->fact_count == SLICE_FACTS) { /* give up one that has nothing to do with x, or this one */
        uint16_t regs = pool->nodes[state->x].regs;
        uint32_t i = 0;
        while (i < SLICE_FACTS && pool->nodes[state->facts[i].a].regs & regs)
            i++;
        if (i == SLICE_FACTS) return;
        memmove(&state->facts[i], &state->facts[i + 1], (SLICE_FACTS - i - 1) * sizeof fact);
        state->fact_count--;
    }
    state->facts[state->fact_count++] = fact;
}

/* The pending conditions are on the flags that this instruction leaves. True: they were. */
static bool settle(const step *s, slice_state *state)
{
    if (!state->pending_count || !sets_flags(&s->zi)) return false;
    slice_fact fact = {.a = read_op(s, &s->ops[0]), .b = read_op(s, &s->ops[1]), .bits = (uint8_t)s->ops[0].size};
    bool known = true;
    switch (s->zi.mnemonic) {
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_SUB: fact.test = TEST_CMP; break;
    case ZYDIS_MNEMONIC_ADD: fact.test = TEST_ADD; break;
    case ZYDIS_MNEMONIC_SHR: fact.test = TEST_SHR; break;
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
        fact.test = TEST_AND;
        if (s->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && s->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            s->ops[0].reg.value == s->ops[1].reg.value) {
            fact.test = TEST_CMP;
            fact.b = slice_const(s->c->pool, 0);
        } else if (s->zi.mnemonic == ZYDIS_MNEMONIC_OR) {
            known = false;
        }
        break;
    default: known = false;
    }
    for (uint32_t i = 0; known && i < state->pending_count; i++) {
        fact.cc = state->pending[i];
        add_fact(s->c->pool, state, fact);
    }
    state->pending_count = 0;
    return true;
}

void slice_assume(slice_state *state, slice_cc cc)
{
    if (cc != CC_NONE && state->pending_count < SLICE_PENDING) state->pending[state->pending_count++] = (uint8_t)cc;
}

/* clang-format off */
static const struct { uint16_t jump, move; } conditions[] = {
    [CC_O] = {ZYDIS_MNEMONIC_JO, ZYDIS_MNEMONIC_CMOVO},   [CC_NO] = {ZYDIS_MNEMONIC_JNO, ZYDIS_MNEMONIC_CMOVNO},
    [CC_B] = {ZYDIS_MNEMONIC_JB, ZYDIS_MNEMONIC_CMOVB},   [CC_NB] = {ZYDIS_MNEMONIC_JNB, ZYDIS_MNEMONIC_CMOVNB},
    [CC_Z] = {ZYDIS_MNEMONIC_JZ, ZYDIS_MNEMONIC_CMOVZ},   [CC_NZ] = {ZYDIS_MNEMONIC_JNZ, ZYDIS_MNEMONIC_CMOVNZ},
    [CC_BE] = {ZYDIS_MNEMONIC_JBE, ZYDIS_MNEMONIC_CMOVBE}, [CC_NBE] = {ZYDIS_MNEMONIC_JNBE, ZYDIS_MNEMONIC_CMOVNBE},
    [CC_S] = {ZYDIS_MNEMONIC_JS, ZYDIS_MNEMONIC_CMOVS},   [CC_NS] = {ZYDIS_MNEMONIC_JNS, ZYDIS_MNEMONIC_CMOVNS},
    [CC_P] = {ZYDIS_MNEMONIC_JP, ZYDIS_MNEMONIC_CMOVP},   [CC_NP] = {ZYDIS_MNEMONIC_JNP, ZYDIS_MNEMONIC_CMOVNP},
    [CC_L] = {ZYDIS_MNEMONIC_JL, ZYDIS_MNEMONIC_CMOVL},   [CC_NL] = {ZYDIS_MNEMONIC_JNL, ZYDIS_MNEMONIC_CMOVNL},
    [CC_LE] = {ZYDIS_MNEMONIC_JLE, ZYDIS_MNEMONIC_CMOVLE}, [CC_NLE] = {ZYDIS_MNEMONIC_JNLE, ZYDIS_MNEMONIC_CMOVNLE},
};
/* clang-format on */

slice_cc slice_branch(const lift_insn *insn, bool taken)
{
    for (uint32_t cc = CC_O; cc < CC_NONE; cc++)
        if (insn->mnemonic == conditions[cc].jump) return taken ? (slice_cc)cc : (slice_cc)(cc ^ 1);
    return CC_NONE;
}

static slice_cc moves_if(const lift_insn *insn)
{
    for (uint32_t cc = CC_O; cc < CC_NONE; cc++)
        if (insn->mnemonic == conditions[cc].move) return (slice_cc)cc;
    return CC_NONE;
}

/* --- one step back ----------------------------------------------------------------------------------------------- */

/* A conditional move: as if it were a branch around a move. */
static int back_move(step *s, slice_cc cc, slice_state *state, slice_state *other)
{
    slice_pool *pool = s->c->pool;
    uint32_t target = gpr_of(s->ops[0].reg.value).number;
    *other = *state;
    write_op(s, &s->ops[0], read_op(s, &s->ops[1]));
    if (!(pool->nodes[state->x].regs >> target & 1)) {
        s->e.reg[target] = 0;
        rewrite(s, state);
        return 1;
    }
    rewrite(s, state);
    slice_assume(state, cc);
    write_op(s, &s->ops[0], read_op(s, &s->ops[0])); /* 32 bits are zero-extended either way */
    rewrite(s, other);
    slice_assume(other, cc ^ 1);
    return 2;
}

int slice_back(const slice_context *c, const lift_insn *insn, slice_state *state, slice_state *other)
{
    step s; /* its operands are large, and are filled below */
    s.c = c;
    s.insn = insn;
    s.e = (effect){0};
    if (!flow_operands(c->img, insn, &s.zi, s.ops)) {
        *state = (slice_state){.is_table = state->is_table};
        return 1;
    }
    slice_cc cc = moves_if(insn);
    if (cc != CC_NONE) return back_move(&s, cc, state, other);
    find_effect(&s);
    return rewrite(&s, state) | settle(&s, state);
}

uint32_t slice_writes(const image *img, const lift_insn *insn)
{
    step s = {0};
    uint32_t writes = 0;
    if (!flow_operands(img, insn, &s.zi, s.ops)) return UINT32_MAX;
    if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_IND || insn->flow == FLOW_CALL_SLOT ||
        insn->flow == FLOW_SYSCALL)
        return CLOBBERED | SLICE_STORES | SLICE_FLAGS;
    for (uint32_t i = 0; i < s.zi.operand_count; i++) {
        if (!(s.ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) continue;
        if (s.ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY) writes |= SLICE_STORES;
        if (s.ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        uint32_t r = gpr_of(s.ops[i].reg.value).number;
        if (r < 16) writes |= 1u << r;
    }
    return writes | (sets_flags(&s.zi) ? SLICE_FLAGS : 0);
}

slice_expr slice_operand(const slice_context *c, const lift_insn *insn)
{
    step s = {.c = c, .insn = insn};
    if (!flow_operands(c->img, insn, &s.zi, s.ops) || s.ops[0].size != 64) return 0;
    return read_op(&s, &s.ops[0]);
}
