/* Accesses, loads and stores of a function as statements, block copies among them. */
#include "static/pointer/form.h"
#include "static/pointer/kinds.h"
#include "static/pointer/linear.h"
#include "static/pointer/typed.h"

typedef struct {
    pta_operand at;
    uint32_t stride;
} place_term;

enum { TERMS = 6 };
_Static_assert((int)TYPED_ELEMENTS <= (int)TERMS, "one term for each element");

static void add_term(place_term *terms, uint32_t *n, pta_operand at, int64_t delta, uint32_t stride)
{
    if (at.var == PTA_NO_VAR) return;
    form_shift(&at, delta, &stride);
    terms[(*n)++] = (place_term){at, stride};
}

/* Hand-written code reaches its tables from the address of some label of it. */
static bool is_beside_code(const generator *g, form f, int64_t imm)
{
    return f.kind == FORM_CONST && image_is_code(g->img, (uint64_t)f.value) && !image_is_code(g->img, (uint64_t)linear_sum(f.value, imm));
}

/* The places at form `f` plus `imm` plus an index. The index is relative to the object that the constant part names: in the
 * frame that includes the displacement. */
static void add_indexed(generator *g, place_term *terms, uint32_t *n, form f, int64_t imm, form_index index)
{
    if (index.stride == PTA_SAME) {
        add_term(terms, n, form_direct(g, form_add(f, imm + index.shift)), 0, PTA_SAME);
        return;
    }
    bool whole = f.kind == FORM_FRAME || f.kind == FORM_TLS || is_beside_code(g, f, imm);
    pta_operand at = form_indexed(g, whole ? form_add(f, imm) : f, index.stride);
    add_term(terms, n, at, (whole ? 0 : imm) + index.shift, index.stride);
    if (form_is_shifted(index)) add_term(terms, n, at, whole ? 0 : imm, form_without_shift(index).stride);
}

/* The address of an access as terms of which each may be the pointer: base, index, and in a program at a fixed address the
 * displacement. */
static uint32_t address_terms(generator *g, const ir_insn *access, int64_t lane, place_term terms[TERMS])
{
    uint32_t n = 0;
    ir_value a = access->a, b = access->b, array;
    int64_t deltas[TYPED_ELEMENTS];
    uint32_t elements = access->flags & (IR_REP | IR_WIDE | IR_FS | IR_GS) ? 0 : typed_elements(g, access, lane, &array, deltas);
    if (elements && g->forms[array].kind == FORM_VAR) {
        for (uint32_t i = 0; i < elements; i++)
            add_term(terms, &n, form_operand(g, g->forms[array]), deltas[i], PTA_SAME);
        return n;
    }
    form fa = a ? g->forms[a] : (form){0}, fb = b && access->scale == 1 ? g->forms[b] : (form){0};
    if (access->flags & IR_FS && fa.kind == FORM_TLS && fb.kind == FORM_VAR && g->kinds[b] == KIND_NUMBER) { /* number_form */
        add_term(terms, &n, form_operand(g, form_add(fb, access->imm + lane)), 0, PTA_SAME);
        return n;
    }
    form_settle(g, a, b, &fa, &fb);
    uint32_t repeat = access->flags & IR_REP ? access->width | PTA_BLOCK : PTA_SAME;
    if (fa.kind == FORM_TLS && b && g->forms[b].kind == FORM_TPOFF) {
        add_term(terms, &n, form_operand(g, form_add(fa, g->forms[b].value + access->imm + lane)), 0, repeat);
        return n;
    }
    form_index by_a = form_index_of(g, a, 1), by_b = form_index_of(g, b, access->scale);
    form fixed = access->flags & (IR_FS | IR_GS) ? (form){0} : form_const(g, access->imm);
    if (fixed.kind != FORM_NONE && (!a || g->kinds[a] != KIND_POINTER)) {
        uint32_t stride = form_both_strides(form_both_strides(by_b.stride, by_a.stride), repeat);
        add_indexed(g, terms, &n, fixed, lane, (form_index){by_a.shift + by_b.shift, stride});
        if (!a) return n;
    }
    int64_t imm = access->imm + lane;
    by_a.stride = form_both_strides(by_a.stride, repeat);
    by_b.stride = form_both_strides(by_b.stride, repeat);
    if (fa.kind != FORM_NONE) add_indexed(g, terms, &n, fa, imm, by_b);
    if (fb.kind != FORM_NONE) add_indexed(g, terms, &n, fb, imm, by_a);
    if (!n && !a && b && access->scale > 1)
        add_term(terms, &n, form_operand(g, form_rounded(g, b, access->scale)), imm, repeat);
    if (!n && b && !(access->flags & (IR_FS | IR_GS | IR_WIDE)))
        add_term(terms, &n, form_operand(g, form_linear(g, a, b, access->scale)), imm, PTA_SAME);
    return n;
}

/* A type as the module of the function has it: that of another one goes with its module, and what has it is always generated again. */
static const image_type *own_type(const generator *g, const image_type *type)
{
    if (!type || g->program->module_count == 1 || image_owns_type(g->img, type)) return type;
    const image_type *own = type->name && *type->name ? image_struct_named(g->img, type->name) : NULL;
    return own && own->size == type->size ? own : NULL;
}

void generate_access(generator *g, const ir_insn *access)
{
    if (access->flags & IR_PROMOTED || generate_is_never(g, access)) return;
    if (access->flags & IR_WIDE) g->out->unknown_accesses++;
    place_term terms[TERMS];
    uint32_t n = address_terms(g, access, 0, terms);
    pta_access note = {.func = g->func_id, .base = {PTA_NO_VAR, 0}, .insn = access->insn, .width = access->width,
                       .flags = access->flags};
    typed_value declared = made_access(g, access);
    if (declared.at >= 0 && declared.at < INT32_MAX) {
        note.type = own_type(g, declared.to);
        note.at = (int32_t)declared.at;
    }
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
        form_emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = terms[i].at, .stride = terms[i].stride});
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
    int32_t offset;
    uint8_t base;
    if (access->b) return true;
    return access->a && g->ir->insns[ir_origin(g->ir, access->a)].op == IR_PHI &&
           !ir_frame_offset(g->ir, access->a, &offset, &base);
}

/* The byte that v is, loaded at an address; NULL: it is something else. */
static const ir_insn *loaded_byte(const generator *g, ir_value v)
{
    for (unsigned depth = 0; v && depth < 8; depth++) {
        const ir_insn *insn = &g->ir->insns[v];
        if (insn->op == IR_LOAD) return insn->width == 1 ? &g->ir->insns[insn->a] : NULL;
        if (insn->op != IR_COPY && insn->op != IR_SEXT && insn->op != IR_EXTRACT) return NULL;
        v = insn->a;
    }
    return NULL;
}

static bool same_address(const generator *g, const ir_insn *x, const ir_insn *y)
{
    return ir_origin(g->ir, x->a) == ir_origin(g->ir, y->a) && ir_origin(g->ir, x->b) == ir_origin(g->ir, y->b) &&
           x->scale == y->scale && x->imm == y->imm;
}

/* Bytes that are compared with constants are text: who moves memory does not look at it. */
static bool is_looked_at(const generator *g, const ir_insn *from)
{
    for (ir_value v = 1; v < g->ir->insn_count; v++) {
        const ir_insn *insn = &g->ir->insns[v];
        if ((insn->op != IR_CMP && insn->op != IR_TEST) || insn->width > 4) continue;
        if (insn->b && insn->op == IR_CMP && g->ir->insns[insn->b].op != IR_CONST) continue;
        const ir_insn *byte = loaded_byte(g, insn->a);
        if (byte && same_address(g, byte, from)) return true;
    }
    return false;
}

/* A loop that copies memory in narrow pieces moves pointers too, in parts. */
static void narrow_copy(generator *g, const ir_insn *store, const ir_insn *to)
{
    const ir_insn *load = g->ir->blocks[g->block].loop ? narrow_load(g, store->b, 0) : NULL;
    if (!load || load->width != store->width) return;
    const ir_insn *from = &g->ir->insns[load->a];
    if (from->flags & IR_WIDE || !varies(g, from) || !varies(g, to)) return;
    if (load->width == 1 && is_looked_at(g, from)) return;
    place_term source[TERMS], dest[TERMS];
    uint32_t sources = address_terms(g, from, 0, source), dests = address_terms(g, to, 0, dest);
    if (!sources || !dests) return;
    uint32_t var = form_new_var(g);
    for (uint32_t i = 0; i < sources; i++)
        form_emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = source[i].at, .stride = PTA_ANY});
    for (uint32_t i = 0; i < dests; i++)
        form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = dest[i].at, .src = {var, 0}, .stride = PTA_ANY});
}

void generate_note_block(generator *g, form to, uint64_t size)
{
    if (to.kind != FORM_FRAME || !size) return;
    g->block_at = to.value;
    g->block_size = (int64_t)size;
}

/* A block copy of `size` bytes, 0: unknown. */
void generate_block(generator *g, pta_operand to, pta_operand from, uint64_t size)
{
    if (to.var == PTA_NO_VAR || from.var == PTA_NO_VAR) return;
    uint64_t words = size / 8;
    bool each = size && words <= BLOCK_WORDS;
    for (uint32_t i = 0; i < (each ? words : 1); i++) {
        uint32_t var = form_new_var(g), stride = each ? PTA_SAME : size ? 8 | PTA_BLOCK : 8;
        pta_operand source = {from.var, from.delta + 8 * (int32_t)i}, dest = {to.var, to.delta + 8 * (int32_t)i};
        form_emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = source, .stride = stride});
        form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = dest, .src = {var, 0}, .stride = stride});
    }
}

/* The middle of a text that compilers copy in words: its beginning, rounded down to one. */
static bool is_rounded_text(const generator *g, ir_value v)
{
    return v && g->ir->insns[ir_origin(g->ir, v)].op == IR_AND && typed_is_text(g->types[v]);
}

/* rep movs, without what makes an address of a single element of it */
static void repeated_copy(generator *g, const ir_insn *to, const ir_insn *from)
{
    place_term source[TERMS], dest[TERMS];
    uint32_t sources = address_terms(g, from, 0, source), dests = address_terms(g, to, 0, dest);
    if (to->a) generate_note_block(g, g->forms[to->a], form_number(g, to->c) * to->width);
    if (to->width == 1 && !form_number(g, to->c) && generate_copies_bytes(g, to->a, from->a, to->c)) return;
    if (is_rounded_text(g, to->a) || is_rounded_text(g, from->a)) return;
    for (uint32_t s = 0; s < sources; s++)
        for (uint32_t d = 0; d < dests; d++)
            generate_block(g, dest[d].at, source[s].at, form_number(g, to->c) * to->width);
}

/* The index of an access that goes through declared bytes, which does not count words, and stays in the array that it begins in
 * whatever constant it makes up for; 0: it goes through something else. */
static ir_value text_index(const generator *g, const ir_insn *access)
{
    ir_value a = access->a, b = access->b;
    if (!a || !b || access->scale != 1) return 0;
    if (!g->types[a].to) a = access->b, b = access->a;
    return typed_is_text(g->types[a]) && form_index_of(g, b, 1).stride % 8 ? ir_origin(g->ir, b) : 0;
}

static bool has_index(const generator *g, const ir_insn *access, ir_value index)
{
    return index && access->scale == 1 && (ir_origin(g->ir, access->a) == index || ir_origin(g->ir, access->b) == index);
}

/* Eight bytes on their way from or to text, each at the same distance from its beginning, as compilers copy the end of it: no
 * pointer. */
static bool moves_text(const generator *g, const ir_insn *store, const ir_insn *to)
{
    const ir_insn *load = store->b ? &g->ir->insns[ir_origin(g->ir, store->b)] : NULL;
    if (!load || load->op != IR_LOAD) return false;
    const ir_insn *from = &g->ir->insns[load->a];
    return to->a && to->b && from->a && from->b && (has_index(g, from, text_index(g, to)) || has_index(g, to, text_index(g, from)));
}

void generate_store(generator *g, const ir_insn *insn)
{
    const ir_insn *access = &g->ir->insns[insn->a];
    if (access->flags & IR_WIDE) return;
    if (access->flags & IR_REP && insn->b && g->ir->insns[insn->b].op == IR_LOAD) {
        const ir_insn *from = &g->ir->insns[g->ir->insns[insn->b].a];
        if (from->flags & IR_REP) return repeated_copy(g, access, from);
    }
    if (insn->width != 8) return narrow_copy(g, insn, access);
    form f = insn->b ? g->forms[insn->b] : (form){0};
    const lift_insn *machine = &g->func->insns[insn->insn];
    bool is_return = access->flags & IR_IMPLICIT && f.kind == FORM_CONST && (uint64_t)f.value == machine->addr + machine->len;
    if (f.kind == FORM_NONE || f.kind == FORM_TPOFF || is_return) return;
    if (typed_is_number(typed_access(g, access, insn->imm)) || moves_text(g, insn, access)) return;
    place_term terms[TERMS];
    uint32_t n = address_terms(g, access, insn->imm, terms);
    pta_operand src = n ? form_operand(g, f) : (pta_operand){PTA_NO_VAR, 0};
    if (src.var == PTA_NO_VAR) return;
    for (uint32_t i = 0; i < n; i++)
        form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = terms[i].at, .src = src, .stride = terms[i].stride});
}
