/* What values are: sums of a few others and a constant; loads of one variable; what the flags of a branch compare. */
#include "static/hb/value_facts.h"

enum { DEPTH = 24 };

/* What a register that a callee spares was before the call. */
static ir_value kept(const ir_func *ir, ir_value v)
{
    while (v && (((ir->insns[v].op == IR_CLOBBER || ir->insns[v].op == IR_RESULT) && ir->insns[v].b) || (ir->insns[v].op == IR_COPY && ir->insns[v].width == 8)))
        v = ir->insns[v].op == IR_COPY ? ir->insns[v].a : ir->insns[v].b;
    return v;
}

/* The value that a phi is each time round; 0: it varies. */
static ir_value constant_phi(const ir_func *ir, ir_value v)
{
    ir_value only = 0;
    for (uint32_t i = 0; i < ir->insns[v].b; i++) {
        ir_value arg = kept(ir, ir->args[ir->insns[v].a + i]);
        if (!arg || (arg != v && only && arg != only)) return 0;
        if (arg != v) only = arg;
    }
    return only;
}

ir_value value_plain(const ir_func *ir, ir_value v, unsigned width)
{
    for (unsigned depth = 0; v && depth < DEPTH; depth++) {
        const ir_insn *insn = &ir->insns[v];
        if ((insn->op == IR_COPY || insn->op == IR_SEXT || (insn->op == IR_EXTRACT && !insn->imm)) && insn->width)
            v = insn->a;
        else if (insn->op == IR_INSERT && !insn->imm && insn->width >= width)
            v = insn->b;
        else if ((insn->op == IR_LEA && insn->a && !insn->b && !insn->imm) || (insn->op == IR_SHL && !insn->b && !insn->imm) ||
                 (insn->op == IR_MUL && !insn->b && insn->imm == 1))
            v = insn->a;
        else if (insn->op == IR_AND && !insn->b && (insn->imm == 255 || insn->imm == 65535 || insn->imm == 0xffffffff))
            v = insn->a;
        else if ((insn->op == IR_CLOBBER || insn->op == IR_RESULT) && insn->b)
            v = insn->b;
        else if (insn->op == IR_PHI && constant_phi(ir, v))
            v = constant_phi(ir, v);
        else
            break;
    }
    return v;
}

static void add_term(value_sum *s, ir_value leaf, int64_t factor)
{
    uint32_t i = 0;
    while (i < s->count && s->terms[i].leaf < leaf)
        i++;
    if (i < s->count && s->terms[i].leaf == leaf) {
        s->terms[i].factor += factor;
        if (!s->terms[i].factor) {
            memmove(&s->terms[i], &s->terms[i + 1], (s->count - i - 1) * sizeof *s->terms);
            s->count--;
        }
        return;
    }
    if (s->count == VALUE_TERMS) {
        s->known = false;
        return;
    }
    memmove(&s->terms[i + 1], &s->terms[i], (s->count - i) * sizeof *s->terms);
    s->terms[i].leaf = leaf;
    s->terms[i].factor = factor;
    s->count++;
}

static void add_value(const ir_func *ir, ir_value v, int64_t factor, value_sum *s, unsigned depth);

static ir_value first_equal(const ir_func *ir, ir_value v, unsigned depth);

static ir_value find_equal(const ir_func *ir, ir_value v, unsigned depth)
{
    const ir_insn *insn = &ir->insns[v];
    ir_value of = first_equal(ir, value_plain(ir, insn->a, 4), depth + 1);
    for (ir_value u = 1; u < v; u++) {
        const ir_insn *other = &ir->insns[u];
        if (other->op == insn->op && other->width == insn->width && other->imm == insn->imm && !other->b && other->a &&
            first_equal(ir, value_plain(ir, other->a, 4), depth + 1) == of)
            return u;
    }
    return v;
}

/* The first value that is computed in the same way, with a constant, from the same one: a remainder, a few bits. */
static ir_value first_equal(const ir_func *ir, ir_value v, unsigned depth)
{
    const ir_insn *insn = &ir->insns[v];
    if (insn->op == IR_LOAD) return value_first_load(ir, v);
    bool simple = insn->op == IR_AND || insn->op == IR_OR || insn->op == IR_XOR || insn->op == IR_SHR || insn->op == IR_SAR || insn->op == IR_MUL;
    if (!simple || insn->b || !insn->a || depth >= VALUE_FACTS_DEPTHS) return v;
    ir_value *known = value_known_equal(ir, v, depth);
    if (!*known) *known = find_equal(ir, v, depth);
    return *known;
}

static void add_leaf(const ir_func *ir, ir_value v, int64_t factor, value_sum *s, unsigned depth)
{
    ir_value leaf = value_plain(ir, v, 4);
    if (leaf && ir->insns[leaf].op == IR_NEG) { /* of a constant */
        ir_value of = value_plain(ir, ir->insns[leaf].a, 4);
        if (of && ir->insns[of].op == IR_CONST) {
            s->add -= ir->insns[of].imm * factor;
            return;
        }
    }
    if (leaf && ir->insns[leaf].op == IR_CONST) {
        s->add += ir->insns[leaf].imm * factor;
        return;
    }
    if (leaf && depth < 4) leaf = first_equal(ir, leaf, 0);
    add_term(s, leaf, factor);
}

static void add_value(const ir_func *ir, ir_value v, int64_t factor, value_sum *s, unsigned depth)
{
    if (!v) return;
    const ir_insn *insn = &ir->insns[v];
    if (depth > DEPTH || factor > INT32_MAX || factor < INT32_MIN) {
        s->known = false;
        return;
    }
    bool wide = insn->width >= 4; /* an index does not wrap */
    if (insn->op == IR_SEXT && insn->width == 4) return add_value(ir, insn->a, factor, s, depth + 1);
    if ((insn->op == IR_CLOBBER || insn->op == IR_RESULT) && insn->b) return add_value(ir, insn->b, factor, s, depth + 1);
    if (insn->op == IR_PHI && constant_phi(ir, v)) return add_value(ir, constant_phi(ir, v), factor, s, depth + 1);
    if (insn->op == IR_COPY && wide) return add_value(ir, insn->a, factor, s, depth + 1);
    if (insn->op == IR_LEA && wide) {
        s->add += insn->imm * factor;
        add_value(ir, insn->a, factor, s, depth + 1);
        if (insn->b) add_value(ir, insn->b, factor * (insn->scale ? insn->scale : 1), s, depth + 1);
        return;
    }
    if (insn->op == IR_SUB && wide) {
        add_value(ir, insn->a, factor, s, depth + 1);
        if (insn->b)
            add_value(ir, insn->b, -factor, s, depth + 1);
        else
            s->add -= insn->imm * factor;
        return;
    }
    if (insn->op == IR_SHL && wide && !insn->b && insn->imm < 32)
        return add_value(ir, insn->a, factor * (1ll << insn->imm), s, depth + 1);
    if (insn->op == IR_SAR && insn->width == 8 && !insn->b && insn->imm > 0 && insn->imm <= 32) { /* a number of 4 bytes, sign-extended and scaled */
        const ir_insn *up = &ir->insns[value_plain(ir, insn->a, 8)];
        if (up->op == IR_SHL && up->width == 8 && !up->b && up->imm >= 32 && up->imm < 48 && up->imm - insn->imm < 31)
            return add_value(ir, up->a, factor * (1ll << (up->imm - insn->imm)), s, depth + 1);
        if (up->op == IR_MUL && up->width == 8 && !up->b && up->imm > 0 && !(up->imm & 0xffffffff) && up->imm >> insn->imm <= INT32_MAX)
            return add_value(ir, up->a, factor * (up->imm >> insn->imm), s, depth + 1);
        for (unsigned side = 0; up->op == IR_MUL && up->width == 8 && up->a && up->b && side < 2; side++) {
            const ir_insn *by = &ir->insns[value_plain(ir, side ? up->a : up->b, 8)];
            if (by->op == IR_CONST && by->imm > 0 && !(by->imm & 0xffffffff) && by->imm >> insn->imm <= INT32_MAX)
                return add_value(ir, side ? up->b : up->a, factor * (by->imm >> insn->imm), s, depth + 1);
        }
    }
    if (insn->op == IR_MUL && wide && !insn->b && insn->imm < INT32_MAX && insn->imm > INT32_MIN)
        return add_value(ir, insn->a, factor * insn->imm, s, depth + 1);
    if (insn->op == IR_ADDRESS || insn->op == IR_CONST) {
        s->add += insn->imm * factor;
        return;
    }
    add_leaf(ir, v, factor, s, depth);
}

value_sum value_of(const ir_func *ir, ir_value v)
{
    value_sum s = {.known = true};
    add_value(ir, v, 1, &s, 0);
    return s;
}

value_sum value_address(const ir_func *ir, const ir_insn *access)
{
    value_sum s = {.known = !(access->flags & IR_WIDE), .add = access->imm};
    add_value(ir, access->a, 1, &s, 0);
    if (access->b) add_value(ir, access->b, access->scale ? access->scale : 1, &s, 0);
    return s;
}

bool value_same_terms(const value_sum *a, const value_sum *b)
{
    if (!a->known || !b->known || a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->terms[i].leaf != b->terms[i].leaf || a->terms[i].factor != b->terms[i].factor) return false;
    return true;
}

/* Without looking through loads, since those ask this. */
value_sum value_shallow(const ir_func *ir, const ir_insn *access)
{
    value_sum s = {.known = true, .add = access->imm};
    add_value(ir, access->a, 1, &s, 5);
    if (access->b) add_value(ir, access->b, access->scale ? access->scale : 1, &s, 5);
    return s;
}

bool value_alike(const ir_func *ir, ir_value a, ir_value b)
{
    a = value_plain(ir, a, 4);
    b = value_plain(ir, b, 4);
    if (!a || !b) return false;
    if (a == b) return true;
    const ir_insn *x = &ir->insns[a], *y = &ir->insns[b];
    if (x->op == IR_CONST && y->op == IR_CONST) return x->imm == y->imm;
    if (x->op != IR_LOAD || y->op != IR_LOAD || x->imm != y->imm || x->width != y->width) return false;
    return value_same_access(ir, &ir->insns[x->a], &ir->insns[y->a]);
}

/* A truth value that is compared with zero is what it was made of: setcc, and xor with 1. */
static bool look_through(const ir_func *ir, value_condition *c, ir_value *flags)
{
    *flags = 0;
    bool equality = (c->code == VALUE_EQUAL || c->code == VALUE_NOT_EQUAL) && !c->b && (c->imm == 0 || c->imm == 1);
    if (!equality || !c->a) return false;
    const ir_insn *insn = &ir->insns[c->a];
    bool negated = (c->code == VALUE_EQUAL) == (c->imm == 0);
    bool flips = (insn->op == IR_XOR && !insn->b && (insn->imm == 1 || insn->imm == -1 || insn->imm == 255)) || insn->op == IR_NOT;
    if (flips) { /* of a truth value */
        c->a = value_plain(ir, insn->a, 1);
        uint8_t inner = ir->insns[c->a].op;
        if (insn->imm != 1 && inner != IR_SELECT && inner != IR_XOR && inner != IR_NOT) return c->a = 0, false;
        c->code = negated ? VALUE_NOT_EQUAL : VALUE_EQUAL;
        c->imm = 0;
        *flags = 0;
        return true;
    }
    if (insn->op != IR_SELECT || ir->insns[insn->a].op != IR_CONST || ir->insns[insn->b].op != IR_CONST) return false;
    int64_t no = ir->insns[insn->a].imm, yes = ir->insns[insn->b].imm;
    if ((no != 0 || yes != 1) && (no != 1 || yes != 0)) return false;
    if (yes == 0) negated = !negated;
    c->code = (uint8_t)((insn->imm & 15) ^ (negated ? 1 : 0));
    *flags = insn->c;
    return true;
}

/* A value that is 0 or 1, or the complement of one (clang negates so), which value_explain knows. Of a byte in memory it is taken for granted: a variable of which the lowest bit is tested is a bool. */
static bool is_truth(const ir_func *ir, ir_value v, unsigned depth)
{
    const ir_insn *insn = &ir->insns[v = value_plain(ir, v, 1)];
    if (!v || depth > 4) return false;
    switch (insn->op) {
    case IR_CONST: return insn->imm == 0 || insn->imm == 1;
    case IR_LOAD: return insn->width == 1;
    case IR_AND: return !insn->b && insn->imm == 1;
    case IR_NOT: return is_truth(ir, insn->a, depth + 1);
    case IR_XOR: return !insn->b && (insn->imm == 1 || insn->imm == -1 || insn->imm == 255) && is_truth(ir, insn->a, depth + 1);
    case IR_SELECT: return is_truth(ir, insn->a, depth + 1) && is_truth(ir, insn->b, depth + 1);
    case IR_PHI:
        for (uint32_t i = 0; i < insn->b; i++)
            if (!is_truth(ir, ir->args[insn->a + i], depth + 1)) return false;
        return true;
    default: return false;
    }
}

/* The lowest bit, which is all that clang looks at when a value is a bool. It is not zero only if the value is not; that it is zero
 * says so of the value only if there are no other bits. */
static bool tests_lowest_bit(const ir_func *ir, const ir_insn *test, uint8_t code)
{
    if (test->b || test->imm != 1) return false;
    return code == VALUE_NOT_EQUAL || (code == VALUE_EQUAL && is_truth(ir, test->a, 0));
}

static bool read_flags(const ir_func *ir, ir_value v, value_condition *out)
{
    const ir_insn *flags = &ir->insns[value_plain(ir, v, 8)];
    unsigned width = flags->width;
    out->a = out->b = 0;
    out->imm = 0;
    if (flags->op == IR_TEST) {
        bool own = flags->b && value_plain(ir, flags->a, width) == value_plain(ir, flags->b, width);
        if (!own && !(!flags->b && (flags->imm == -1 || flags->imm == 255)) && !tests_lowest_bit(ir, flags, out->code)) return false;
        out->a = value_plain(ir, flags->a, width);
        return true;
    }
    if (flags->op == IR_CMP) {
        out->a = value_plain(ir, flags->a, width);
        out->b = flags->b ? value_plain(ir, flags->b, width) : 0;
        out->imm = flags->imm;
        if (out->b && ir->insns[out->b].op == IR_CONST) {
            out->imm = ir->insns[out->b].imm;
            out->b = 0;
        }
        return true;
    }
    if (flags->op == IR_FLAGRES) { /* of a result that is compared with zero */
        out->a = value_plain(ir, flags->a, width);
        return out->code == VALUE_EQUAL || out->code == VALUE_NOT_EQUAL;
    }
    return false;
}

bool value_explain(const ir_func *ir, value_condition *c)
{
    ir_value flags;
    for (unsigned depth = 0; depth < 4 && look_through(ir, c, &flags); depth++) {
        value_condition inner = *c;
        if (!flags) continue;
        if (!read_flags(ir, flags, &inner)) return false;
        *c = inner;
    }
    return c->a != 0;
}

bool value_find_test(const ir_func *ir, uint32_t block, bool taken, value_condition *out)
{
    ir_value v = value_branch(ir, block);
    if (!v || ir->insns[v].imm < 0 || !ir->insns[v].c) return false;
    *out = (value_condition){.code = (uint8_t)((ir->insns[v].imm & 15) ^ (taken ? 0 : 1))};
    return read_flags(ir, ir->insns[v].c, out) && value_explain(ir, out);
}

/* --- one of two -------------------------------------------------------------------------------------------------------------------- */

/* The edge of a block by which control comes to `to`, over `from`: directly, or through a block that nothing else leads to. */
static bool edge_over(const lift_func *f, uint32_t block, uint32_t from, uint32_t to, uint32_t *edge)
{
    const lift_block *b = &f->blocks[block];
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
        bool direct = from == block && f->edges[e].to == to;
        bool through = from != block && f->edges[e].to == from && f->blocks[from].pred_count == 1;
        if (!direct && !through) continue;
        *edge = e;
        return true;
    }
    return false;
}

static bool phi_chooses(const ir_func *ir, ir_value v, value_choice *out)
{
    const lift_func *f = ir->func;
    const ir_insn *phi = &ir->insns[v];
    uint32_t block = 0, edges[2];
    while (block < f->block_count && (v < ir->blocks[block].first || v >= ir->blocks[block].first + ir->blocks[block].count))
        block++;
    if (block == f->block_count || phi->b != 2 || f->blocks[block].pred_count != 2) return false;
    uint32_t top = ir->blocks[block].idom;
    if (top == block || f->blocks[top].end_kind != END_BRANCH || f->blocks[top].succ_count != 2) return false;
    for (unsigned i = 0; i < 2; i++)
        if (!edge_over(f, top, f->edges[f->preds[f->blocks[block].first_pred + i]].from, block, &edges[i])) return false;
    bool first = f->edges[edges[0]].kind == EDGE_TAKEN;
    if (first == (f->edges[edges[1]].kind == EDGE_TAKEN)) return false;
    out->yes = value_plain(ir, ir->args[phi->a + (first ? 0 : 1)], 8);
    out->no = value_plain(ir, ir->args[phi->a + (first ? 1 : 0)], 8);
    return value_test(ir, top, true, &out->when);
}

bool value_chooses(const ir_func *ir, ir_value v, value_choice *out)
{
    const ir_insn *insn = &ir->insns[v];
    *out = (value_choice){0};
    if (insn->op == IR_PHI) return phi_chooses(ir, v, out);
    if (insn->op != IR_SELECT || !insn->a || !insn->b || !insn->c) return false;
    out->yes = value_plain(ir, insn->b, 8);
    out->no = value_plain(ir, insn->a, 8);
    out->when.code = (uint8_t)(insn->imm & 15);
    return read_flags(ir, insn->c, &out->when) && value_explain(ir, &out->when);
}

/* The condition that holds where another does not; if the two that are compared are equal, it may hold as well. */
static bool is_opposite(uint8_t x, uint8_t y, bool or_equal)
{
    enum { BELOW = 2, NOT_BELOW, BELOW_EQUAL = 6, ABOVE, LESS = 12, NOT_LESS, LESS_EQUAL, GREATER };
    static const uint8_t pairs[][2] = {{BELOW, ABOVE}, {NOT_BELOW, BELOW_EQUAL}, {LESS, GREATER}, {NOT_LESS, LESS_EQUAL}};
    if ((x ^ 1) == y) return true;
    for (unsigned i = 0; or_equal && i < sizeof pairs / sizeof *pairs; i++)
        if ((x == pairs[i][0] && y == pairs[i][1]) || (x == pairs[i][1] && y == pairs[i][0])) return true;
    return false;
}

bool value_complement(const ir_func *ir, const value_choice *x, const value_choice *y)
{
    const value_condition *p = &x->when, *q = &y->when;
    uint8_t code = q->code;
    bool same = p->a == q->a && p->b == q->b && p->imm == q->imm, swapped = p->b && p->a == q->b && p->b == q->a;
    if (!same && !swapped) return false;
    if (!same) code = value_mirror(code);
    bool alike = value_alike(ir, x->yes, y->yes) && value_alike(ir, x->no, y->no);
    bool crossed = value_alike(ir, x->yes, y->no) && value_alike(ir, x->no, y->yes);
    bool themselves = p->b && ((value_alike(ir, x->yes, p->a) && value_alike(ir, x->no, p->b)) || (value_alike(ir, x->yes, p->b) && value_alike(ir, x->no, p->a)));
    return (alike && is_opposite(p->code, code, themselves)) || (crossed && is_opposite(p->code, code ^ 1, themselves));
}
