/* Accesses, loads and stores of a function as statements, block copies among them. */
#include "static/pointer/form.h"
#include "static/pointer/kinds.h"

typedef struct {
    pta_operand at;
    uint32_t stride;
} place_term;

enum { TERMS = 3 };

static void add_term(place_term *terms, uint32_t *n, pta_operand at, int64_t delta, uint32_t stride)
{
    if (at.var == PTA_NO_VAR) return;
    at.delta += (int32_t)delta;
    terms[(*n)++] = (place_term){at, stride};
}

/* The address of an access as terms of which each may be the pointer: base, index, and in a program at a fixed address the
 * displacement. */
static uint32_t address_terms(generator *g, const ir_insn *access, int64_t lane, place_term terms[TERMS])
{
    uint32_t n = 0;
    ir_value a = access->a, b = access->b;
    form fa = a ? g->forms[a] : (form){0}, fb = b && access->scale == 1 ? g->forms[b] : (form){0};
    form_settle(g, a, b, &fa, &fb);
    uint32_t repeat = access->flags & IR_REP ? access->width : PTA_SAME;
    if (fa.kind == FORM_TLS && b && g->forms[b].kind == FORM_TPOFF) {
        add_term(terms, &n, form_operand(g, form_add(fa, g->forms[b].value + access->imm + lane)), 0, repeat);
        return n;
    }
    uint32_t by_index = b ? form_stride(g, b, access->scale) : PTA_SAME;
    form fixed = access->flags & (IR_FS | IR_GS) ? (form){0} : form_const(g, access->imm);
    if (fixed.kind != FORM_NONE && (!a || g->kinds[a] != KIND_POINTER)) {
        uint32_t stride = form_both_strides(form_both_strides(by_index, a ? form_stride(g, a, 1) : PTA_SAME), repeat);
        if (stride == PTA_SAME)
            add_term(terms, &n, form_direct(g, form_add(fixed, lane)), 0, stride);
        else
            add_term(terms, &n, form_indexed(g, fixed, stride), lane, stride);
        if (!a) return n;
    }
    int64_t imm = access->imm + lane;
    if (fa.kind != FORM_NONE) {
        uint32_t stride = form_both_strides(by_index, repeat);
        /* An index is relative to the object that the constant part names: in the frame that includes the displacement. */
        if (stride == PTA_SAME)
            add_term(terms, &n, form_direct(g, form_add(fa, imm)), 0, stride);
        else if (fa.kind == FORM_FRAME || fa.kind == FORM_TLS)
            add_term(terms, &n, form_indexed(g, form_add(fa, imm), stride), 0, stride);
        else
            add_term(terms, &n, form_indexed(g, fa, stride), imm, stride);
    }
    if (fb.kind != FORM_NONE) {
        uint32_t stride = form_both_strides(a ? form_stride(g, a, 1) : PTA_SAME, repeat);
        if (fb.kind == FORM_FRAME || fb.kind == FORM_TLS)
            add_term(terms, &n, form_indexed(g, form_add(fb, imm), stride), 0, stride);
        else
            add_term(terms, &n, form_indexed(g, fb, stride), imm, stride);
    }
    if (!n && b && !(access->flags & (IR_FS | IR_GS | IR_WIDE)))
        add_term(terms, &n, form_operand(g, form_linear(g, a, b, access->scale)), imm, PTA_SAME);
    return n;
}

void generate_access(generator *g, const ir_insn *access)
{
    if (access->flags & IR_PROMOTED) return;
    if (access->flags & IR_WIDE) g->out->unknown_accesses++;
    place_term terms[TERMS];
    uint32_t n = address_terms(g, access, 0, terms);
    pta_access note = {.func = g->func_id, .base = {PTA_NO_VAR, 0}, .insn = access->insn, .width = access->width,
                       .flags = access->flags};
    if (!n) vec_push(&g->out->accesses, note);
    for (uint32_t i = 0; i < n; i++) {
        note.base = terms[i].at;
        note.stride = terms[i].stride;
        vec_push(&g->out->accesses, note);
    }
}

form generate_load(generator *g, const ir_insn *insn)
{
    const ir_insn *access = &g->ir->insns[insn->a];
    if (insn->width != 8 || access->flags & (IR_WIDE | IR_REP)) return (form){0};
    form f, base = access->a ? g->forms[access->a] : (form){0};
    int64_t at = access->imm + insn->imm;
    if (!access->b) {
        if (base.kind == FORM_TLS && base.value + at == 0) return (form){FORM_TLS, 0, 0}; /* the thread pointer itself */
        if (base.kind == FORM_CONST && form_word(g, (uint64_t)(base.value + at), &f)) return f;
        if (!access->a && !(access->flags & (IR_FS | IR_GS)) && form_word(g, (uint64_t)at, &f)) return f;
    }
    place_term terms[TERMS];
    uint32_t n = address_terms(g, access, insn->imm, terms);
    if (!n) return (form){0};
    uint32_t var = form_new_var(g);
    for (uint32_t i = 0; i < n; i++)
        form_emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = terms[i].at, .stride = terms[i].stride,
                           .insn = insn->insn});
    return form_var(var);
}

/* The narrow load whose value v is, through copies and one phi. */
static const ir_insn *narrow_load(const generator *g, ir_value v, unsigned depth)
{
    for (; v && depth < 8; depth++) {
        const ir_insn *insn = &g->ir->insns[v];
        if (insn->op == IR_LOAD) return insn->width < 8 ? insn : NULL;
        if (insn->op == IR_PHI) {
            for (uint32_t i = 0; i < insn->b; i++) {
                const ir_insn *load = narrow_load(g, g->ir->args[insn->a + i], depth + 2);
                if (load) return load;
            }
            return NULL;
        }
        if (insn->op != IR_COPY && insn->op != IR_SEXT && insn->op != IR_EXTRACT) return NULL;
        v = insn->a;
    }
    return NULL;
}

static bool varies(const generator *g, const ir_insn *access)
{
    return access->b || (access->a && g->ir->insns[ir_origin(g->ir, access->a)].op == IR_PHI);
}

/* A loop that copies memory in narrow pieces moves pointers too, in parts. */
static void narrow_copy(generator *g, const ir_insn *store, const ir_insn *to)
{
    const ir_insn *load = g->ir->blocks[g->block].loop ? narrow_load(g, store->b, 0) : NULL;
    if (!load || load->width != store->width) return;
    const ir_insn *from = &g->ir->insns[load->a];
    if (from->flags & IR_WIDE || !varies(g, from) || !varies(g, to)) return;
    place_term source[TERMS], dest[TERMS];
    uint32_t sources = address_terms(g, from, 0, source), dests = address_terms(g, to, 0, dest);
    if (!sources || !dests) return;
    uint32_t var = form_new_var(g);
    for (uint32_t i = 0; i < sources; i++)
        form_emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = source[i].at, .stride = PTA_ANY, .insn = store->insn});
    for (uint32_t i = 0; i < dests; i++)
        form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = dest[i].at, .src = {var, 0}, .stride = PTA_ANY, .insn = store->insn});
}

/* A block copy of `size` bytes, 0: unknown. */
void generate_block(generator *g, pta_operand to, pta_operand from, uint64_t size, uint32_t insn)
{
    if (to.var == PTA_NO_VAR || from.var == PTA_NO_VAR) return;
    uint64_t words = size / 8;
    bool each = size && words <= BLOCK_WORDS;
    for (uint32_t i = 0; i < (each ? words : 1); i++) {
        uint32_t var = form_new_var(g), stride = each ? PTA_SAME : 8;
        pta_operand source = {from.var, from.delta + 8 * (int32_t)i}, dest = {to.var, to.delta + 8 * (int32_t)i};
        form_emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = source, .stride = stride, .insn = insn});
        form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = dest, .src = {var, 0}, .stride = stride, .insn = insn});
    }
}

/* rep movs, without what makes an address of a single element of it */
static void repeated_copy(generator *g, const ir_insn *store, const ir_insn *to, const ir_insn *from)
{
    place_term source[TERMS], dest[TERMS];
    uint32_t sources = address_terms(g, from, 0, source), dests = address_terms(g, to, 0, dest);
    for (uint32_t s = 0; s < sources; s++)
        for (uint32_t d = 0; d < dests; d++)
            generate_block(g, dest[d].at, source[s].at, form_number(g, to->c) * to->width, store->insn);
}

void generate_store(generator *g, const ir_insn *insn)
{
    const ir_insn *access = &g->ir->insns[insn->a];
    if (access->flags & IR_WIDE) return;
    if (access->flags & IR_REP && insn->b && g->ir->insns[insn->b].op == IR_LOAD) {
        const ir_insn *from = &g->ir->insns[g->ir->insns[insn->b].a];
        if (from->flags & IR_REP) return repeated_copy(g, insn, access, from);
    }
    if (insn->width != 8) return narrow_copy(g, insn, access);
    form f = insn->b ? g->forms[insn->b] : (form){0};
    const lift_insn *machine = &g->func->insns[insn->insn];
    bool is_return = access->flags & IR_IMPLICIT && f.kind == FORM_CONST && (uint64_t)f.value == machine->addr + machine->len;
    if (f.kind == FORM_NONE || f.kind == FORM_TPOFF || is_return) return;
    place_term terms[TERMS];
    uint32_t n = address_terms(g, access, insn->imm, terms);
    pta_operand src = n ? form_operand(g, f) : (pta_operand){PTA_NO_VAR, 0};
    if (src.var == PTA_NO_VAR) return;
    for (uint32_t i = 0; i < n; i++)
        form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = terms[i].at, .src = src, .stride = terms[i].stride, .insn = insn->insn});
}
