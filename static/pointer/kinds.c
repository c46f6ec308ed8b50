/* Without types, `a + b` could be a pointer through either operand, and `a - b` a pointer or a distance; taking everything for
 * possible makes every length that was once computed from two pointers a pointer into their object. What a function does with
 * a value tells mostly: what is dereferenced is a pointer, what is multiplied, scaled as an index or compared with a number is
 * a number; copies, phis and both sides of a comparison are of one kind; a pointer plus something is a pointer and the
 * something a number. Values are put into classes of one kind (union-find), then the rules for sums and differences are applied
 * until nothing changes. A rule takes each kind of its operands for possible and only ever adds kinds: the result is the least
 * fixed point, whatever the order of the statements, and evidence that disagrees makes what follows from it disagree. */
#include "static/pointer/kinds.h"

#include <stdlib.h>

#include "static/pointer/linear.h"

typedef struct {
    const image *img;
    const ir_func *ir;
    uint32_t *parent;
    uint8_t *kind; /* of a class */
    bool *used;    /* all of its bytes, by more than calls that find it in a register; phis of leavings join what has nothing
                      in common */
    bool changed;
    uint32_t *first, *next; /* the rules of a class: 3 * value + the number of its operand, + 1 */
    uint32_t *queue, queued;
    bool *waits;            /* the rule is in the queue */
} inference;

static uint32_t class_of(inference *n, uint32_t v)
{
    while (n->parent[v] != v)
        v = n->parent[v] = n->parent[n->parent[v]];
    return v;
}

static void wait_for(inference *n, ir_value rule)
{
    if (n->waits[rule]) return;
    n->waits[rule] = true;
    n->queue[n->queued++] = rule;
}

static void is(inference *n, ir_value v, value_kind kind)
{
    if (!v) return;
    uint32_t c = class_of(n, v);
    if ((n->kind[c] & kind) == kind) return;
    n->kind[c] |= kind;
    for (uint32_t at = n->first ? n->first[c] : 0; at; at = n->next[at - 1])
        wait_for(n, (at - 1) / 3);
}

static void same(inference *n, ir_value a, ir_value b)
{
    if (!a || !b) return;
    uint32_t x = class_of(n, a), y = class_of(n, b);
    if (x == y) return;
    if (x > y) {
        uint32_t t = x;
        x = y, y = t;
    }
    n->parent[y] = x;
    n->kind[x] |= n->kind[y];
}

static uint8_t kind_of(inference *n, ir_value v)
{
    return v ? n->kind[class_of(n, v)] : KIND_UNKNOWN;
}

bool kinds_is_address(const image *img, int64_t value)
{
    if (img->kind != IMAGE_EXEC || value < 4096) return false;
    for (int64_t behind = 0; behind <= 512; behind = behind ? behind * 2 : 1)
        if (image_section_at(img, (uint64_t)(value - behind))) return true;
    return false;
}

static bool is_address(const inference *n, int64_t value)
{
    return kinds_is_address(n->img, value);
}

/* A constant that no pointer is compared with, as sentinels and error codes are. */
static bool is_plain_number(const inference *n, int64_t value)
{
    return value >= 16 && value <= 1 << 30 && !is_address(n, value);
}

static bool is_general(uint16_t var)
{
    return var == IR_NOVAR || (var != IR_FLAGS && var < IR_FSBASE) || var >= IR_SLOT;
}

/* Constants are no members of a class: one constant may stand for anything. */
static bool is_constant(const inference *n, ir_value v)
{
    return v && n->ir->insns[v].op == IR_CONST;
}

static void join(inference *n, ir_value a, ir_value b)
{
    if (is_constant(n, a) || is_constant(n, b)) {
        ir_value other = is_constant(n, a) ? b : a, constant = is_constant(n, a) ? a : b;
        if (is_plain_number(n, n->ir->insns[constant].imm)) is(n, other, KIND_NUMBER);
        return;
    }
    same(n, a, b);
}

static void use(inference *n, ir_value v)
{
    if (!v || n->used[v]) return;
    n->used[v] = n->changed = true;
}

/* An operation on the low bytes does not use the rest: `setz %sil` keeps the upper part of a register that means nothing. */
static void use_operands(inference *n, const ir_insn *insn)
{
    bool whole = insn->width >= 8 || insn->op == IR_ACCESS || insn->op == IR_LOAD || insn->op == IR_BRANCH || insn->op == IR_SWITCH;
    if (whole || insn->op == IR_STORE || insn->op == IR_INSERT) use(n, insn->a);
    if (whole) use(n, insn->b);
    use(n, insn->c);
}

static void find_uses(inference *n)
{
    const ir_func *ir = n->ir;
    for (bool first = true; first || n->changed; first = false) {
        n->changed = false;
        for (ir_value v = ir->insn_count; v-- > 1;) {
            const ir_insn *insn = &ir->insns[v];
            bool ends = insn->op == IR_ACCESS || insn->op == IR_LOAD || insn->op == IR_STORE || insn->op == IR_BRANCH ||
                        insn->op == IR_SWITCH || insn->op == IR_SYSCALL;
            if (insn->op == IR_CALL || insn->op == IR_TAIL) {
                use(n, ir->args[insn->a + IR_CALL_TARGET]);
            } else if (insn->op == IR_RET || (!ends && !n->used[v])) {
                continue;
            } else if (insn->op == IR_RESULT || insn->op == IR_CLOBBER) {
                continue; /* of what the register had before the call, none is left as a rule */
            } else if (insn->op == IR_PHI || insn->op == IR_OPAQUE || insn->op == IR_SYSCALL) {
                for (uint32_t i = 0; i < insn->b; i++)
                    use(n, ir->args[insn->a + i]);
            } else {
                use_operands(n, insn);
            }
        }
    }
}

bool *kinds_used(const ir_func *ir)
{
    inference n = {.ir = ir, .used = base_alloc_zero(ir->insn_count, sizeof *n.used)};
    find_uses(&n);
    return n.used;
}

/* What holds from the start, and what is of one kind. */
static void look(inference *n, ir_value v)
{
    const ir_insn *insn = &n->ir->insns[v];
    const ir_value *args = n->ir->args + insn->a;
    int32_t offset;
    uint8_t base;
    bool narrow = insn->width < 8 && is_general(insn->var);
    if (ir_frame_offset(n->ir, v, &offset, &base)) is(n, v, KIND_POINTER);
    switch (insn->op) {
    case IR_ADDRESS: is(n, v, KIND_POINTER); break;
    case IR_ENTRY:
        if (insn->var == IR_FSBASE || insn->var == IR_RSP) is(n, v, KIND_POINTER);
        break;
    case IR_COPY:
        if (insn->width == 8)
            join(n, v, insn->a);
        else
            is(n, v, KIND_NUMBER);
        break;
    case IR_SEXT: is(n, v, KIND_NUMBER); break;
    case IR_LEA:
        if (narrow)
            is(n, v, KIND_NUMBER);
        else if (is_address(n, insn->imm))
            break;
        else if (insn->a && (!insn->b || insn->scale > 1))
            join(n, v, insn->a);
        else if (!insn->a && insn->b && insn->scale > 1 && linear_rounded(n->ir, insn->b, insn->scale))
            join(n, v, linear_rounded(n->ir, insn->b, insn->scale));
        else if (!insn->a && insn->b && insn->scale > 1)
            is(n, v, KIND_NUMBER);
        if (insn->b && insn->scale > 1) is(n, insn->b, KIND_NUMBER);
        break;
    case IR_SUB:
        if (narrow)
            is(n, v, KIND_NUMBER);
        else if (!insn->b)
            join(n, v, insn->a);
        break;
    case IR_MUL:
        is(n, v, KIND_NUMBER);
        if (!narrow) is(n, insn->a, KIND_NUMBER);
        if (!narrow && insn->b) is(n, insn->b, KIND_NUMBER);
        break;
    case IR_NEG: is(n, v, KIND_NUMBER); break;
    case IR_SHL:
        if (!narrow && !insn->b && insn->imm < 8 && linear_rounded(n->ir, insn->a, 1ull << insn->imm)) {
            join(n, v, linear_rounded(n->ir, insn->a, 1ull << insn->imm));
            break;
        }
        if (narrow || (!insn->b && insn->imm < 8)) is(n, v, KIND_NUMBER);
        if (!narrow && !insn->b && insn->imm < 8) is(n, insn->a, KIND_NUMBER);
        break;
    case IR_AND:
    case IR_OR:
    case IR_XOR:
    case IR_SHR:
    case IR_SAR:
    case IR_NOT:
        if (narrow) is(n, v, KIND_NUMBER);
        break;
    case IR_LOAD:
        if (insn->width < 8 && is_general(insn->var)) is(n, v, KIND_NUMBER);
        break;
    case IR_SELECT:
        if (narrow) {
            is(n, v, KIND_NUMBER);
            break;
        }
        join(n, v, insn->a);
        join(n, v, insn->b);
        break;
    case IR_PHI:
        for (uint32_t i = 0; n->used[v] && is_general(insn->var) && i < insn->b; i++)
            if (args[i]) join(n, v, args[i]);
        break;
    case IR_CMP:
        if (insn->width != 8) break;
        if (insn->b)
            join(n, insn->a, insn->b);
        else if (is_plain_number(n, insn->imm))
            is(n, insn->a, KIND_NUMBER);
        break;
    case IR_ACCESS:
        if (insn->flags & IR_WIDE) break;
        if (insn->a && (!insn->b || insn->scale > 1) && !is_address(n, insn->imm)) is(n, insn->a, KIND_POINTER);
        if (insn->b && insn->scale > 1) is(n, insn->b, KIND_NUMBER);
        if (!insn->a && insn->b && insn->scale > 1) is(n, linear_rounded(n->ir, insn->b, insn->scale), KIND_POINTER);
        break;
    case IR_CALL:
    case IR_TAIL:
        if (args[IR_CALL_TARGET]) is(n, args[IR_CALL_TARGET], KIND_POINTER);
        break;
    default: break;
    }
}

/* Sums of two: one pointer at most. */
static void balance(inference *n, ir_value sum, ir_value a, ir_value b)
{
    uint8_t ka = kind_of(n, a), kb = kind_of(n, b), ks = sum ? kind_of(n, sum) : KIND_POINTER;
    if (ka & KIND_POINTER) is(n, b, KIND_NUMBER);
    if (kb & KIND_POINTER) is(n, a, KIND_NUMBER);
    if (sum && (ka | kb) & KIND_POINTER) is(n, sum, KIND_POINTER);
    if (ka & kb & KIND_NUMBER && sum) is(n, sum, KIND_NUMBER);
    if (ks & KIND_POINTER && ka & KIND_NUMBER) is(n, b, KIND_POINTER);
    if (ks & KIND_POINTER && kb & KIND_NUMBER) is(n, a, KIND_POINTER);
    if (ks & ka & KIND_NUMBER) is(n, b, KIND_NUMBER);
    if (ks & kb & KIND_NUMBER) is(n, a, KIND_NUMBER);
}

static void balance_difference(inference *n, ir_value v, ir_value a, ir_value b)
{
    uint8_t ka = kind_of(n, a), kb = kind_of(n, b), kd = kind_of(n, v);
    if (kb & KIND_POINTER) {
        is(n, a, KIND_POINTER);
        is(n, v, KIND_NUMBER);
    }
    if (kb & KIND_NUMBER) {
        is(n, v, ka);
        is(n, a, kd);
    }
    if (ka & KIND_NUMBER) {
        is(n, b, KIND_NUMBER);
        is(n, v, KIND_NUMBER);
    }
    if (kd & KIND_POINTER) is(n, b, KIND_NUMBER);
}

/* Whether a value is a sum or difference of two that are not known. */
static bool has_rule(const inference *n, ir_value v)
{
    const ir_insn *insn = &n->ir->insns[v];
    if ((insn->op != IR_ACCESS && insn->op != IR_LEA && insn->op != IR_SUB) || !insn->a || !insn->b) return false;
    if (insn->op == IR_ACCESS) return insn->scale == 1 && !(insn->flags & IR_WIDE) && !is_address(n, insn->imm);
    if (insn->width != 8 || is_constant(n, insn->a) || is_constant(n, insn->b)) return false;
    return insn->op == IR_SUB || (insn->scale == 1 && !is_address(n, insn->imm));
}

static void apply(inference *n, ir_value v)
{
    const ir_insn *insn = &n->ir->insns[v];
    if (insn->op == IR_SUB)
        balance_difference(n, v, insn->a, insn->b);
    else
        balance(n, insn->op == IR_LEA ? v : 0, insn->a, insn->b);
}

/* Each class gets a kind at most twice, and each rule waits for three classes: the work is linear. */
static void solve(inference *n)
{
    uint32_t count = n->ir->insn_count;
    n->first = base_alloc_zero(count, sizeof *n->first);
    n->next = base_alloc_zero((size_t)count * 3, sizeof *n->next);
    n->queue = base_alloc((size_t)count * sizeof *n->queue);
    n->waits = base_alloc_zero(count, sizeof *n->waits);
    for (ir_value v = 1; v < count; v++) {
        if (!has_rule(n, v)) continue;
        ir_value operands[] = {v, n->ir->insns[v].a, n->ir->insns[v].b};
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t c = class_of(n, operands[i]);
            n->next[3 * v + i] = n->first[c];
            n->first[c] = 3 * v + i + 1;
        }
        wait_for(n, v);
    }
    while (n->queued) {
        ir_value v = n->queue[--n->queued];
        n->waits[v] = false;
        apply(n, v);
    }
    free(n->first);
    free(n->next);
    free(n->queue);
    free(n->waits);
}

uint8_t *kinds_infer(const image *img, const ir_func *ir)
{
    inference n = {.img = img, .ir = ir};
    n.parent = base_alloc(ir->insn_count * sizeof *n.parent);
    n.kind = base_alloc_zero(ir->insn_count, 1);
    for (uint32_t v = 0; v < ir->insn_count; v++)
        n.parent[v] = v;
    n.used = kinds_used(ir);
    for (ir_value v = 1; v < ir->insn_count; v++)
        look(&n, v);
    solve(&n);
    uint8_t *kinds = base_alloc_zero(ir->insn_count, 1);
    for (ir_value v = 1; v < ir->insn_count; v++)
        kinds[v] = n.kind[class_of(&n, v)];
    free(n.parent);
    free(n.kind);
    free(n.used);
    return kinds;
}
