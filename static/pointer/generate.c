/* Statements of one function. Each IR value has a form: a constant address, a place in the frame or in the TLS block, or a
 * variable plus a constant, so that address arithmetic with constants costs no statement. Only what 8 bytes wide
 * operations compute can be a pointer. Multiplication, division, negation and narrow operations end a pointer; shifts
 * by at least a byte, logic and opaque instructions keep its object at an unknown offset. */
#include "static/pointer/generate.h"

#include <stdlib.h>

#include <Zydis/Zydis.h>

#include "static/pointer/kinds.h"
#include "static/pointer/linear.h"
#include "static/pointer/offset.h"

typedef enum {
    FORM_NONE,    /* not a pointer */
    FORM_VAR,     /* var + value */
    FORM_CONST,   /* the module address `value` */
    FORM_FRAME,   /* stack pointer at entry + value */
    FORM_ALIGNED, /* realigned stack pointer + value */
    FORM_TLS,     /* thread pointer + value */
    FORM_TPOFF,   /* the number `value`, to be added to the thread pointer */
    FORM_SITE,    /* the address of site `value`; only as a key */
    FORM_INDEXED, /* address * 4096 + stride: the base of an indexed access; only as a key */
    FORM_STACK,   /* the arguments on the stack at that place of the frame; only as a key */
    FORM_DIRECT   /* the word at module address `value`, accessed as such; only as a key */
} form_kind;

typedef struct {
    uint8_t kind;
    uint32_t var;
    int64_t value;
} form;

typedef struct {
    uint8_t kind; /* FORM_NONE: free */
    int64_t value;
    uint32_t var;
} known_form;

typedef struct {
    const pta_program *program;
    const generate_module *module;
    const image *img;
    const lift_func *func;
    const ir_func *ir;
    uint32_t func_id;
    generated *out;
    form *forms;
    uint8_t *kinds; /* value_kind of each value */
    uint32_t *call_of; /* per value: local call number + 1 */
    known_form *known; /* hash table of forms that have a variable */
    uint32_t known_count, known_capacity;
    address_space frame;
    uint32_t frame_site, aligned_site;
    uint32_t block;
} generator;

static uint32_t new_var(generator *g)
{
    return g->out->var_count++;
}

static void emit(generator *g, pta_stmt stmt)
{
    vec_push(&g->out->stmts, stmt);
}

static uint64_t form_hash(uint8_t kind, int64_t value)
{
    uint64_t h = ((uint64_t)value ^ (uint64_t)kind << 56) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* The variable of a form that is not one itself; *fresh: it has no statements yet. */
static uint32_t known_var(generator *g, uint8_t kind, int64_t value, bool *fresh)
{
    if (g->known_count * 2 >= g->known_capacity) {
        uint32_t capacity = g->known_capacity ? g->known_capacity * 2 : 32;
        known_form *old = g->known;
        g->known = base_alloc_zero(capacity, sizeof *g->known);
        for (uint32_t i = 0; i < g->known_capacity; i++) {
            if (old[i].kind == FORM_NONE) continue;
            uint64_t at = form_hash(old[i].kind, old[i].value) & (capacity - 1);
            while (g->known[at].kind != FORM_NONE)
                at = (at + 1) & (capacity - 1);
            g->known[at] = old[i];
        }
        free(old);
        g->known_capacity = capacity;
    }
    uint64_t at = form_hash(kind, value) & (g->known_capacity - 1);
    for (; g->known[at].kind != FORM_NONE; at = (at + 1) & (g->known_capacity - 1))
        if (g->known[at].kind == kind && g->known[at].value == value) return *fresh = false, g->known[at].var;
    g->known[at] = (known_form){kind, value, new_var(g)};
    g->known_count++;
    *fresh = true;
    return g->known[at].var;
}

static void emit_address(generator *g, uint32_t var, uint32_t site, int64_t offset)
{
    emit(g, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, (int32_t)offset}, .ref = site});
}

static void emit_places(generator *g, uint32_t var, const address_space *space, int64_t at)
{
    address_place places[2];
    uint32_t n = address_places(space, at, places);
    for (uint32_t i = 0; i < n; i++)
        emit_address(g, var, places[i].site, places[i].offset);
}

static void emit_frame(generator *g, uint32_t var, int64_t at)
{
    address_place places[2];
    uint32_t n = address_places(&g->frame, at, places);
    for (uint32_t i = 0; i < n; i++)
        emit_address(g, var, GENERATE_LOCAL | places[i].site, places[i].offset);
    if (!address_find(&g->frame, at)) emit_address(g, var, GENERATE_LOCAL | g->frame_site, at);
}

static void emit_const(generator *g, uint32_t var, uint64_t addr)
{
    const lift_func *f = image_is_code(g->img, addr) ? lift_func_at(g->program->modules[g->program->funcs.data[g->func_id].module],
                                                                    addr)
                                                     : NULL;
    if (f)
        emit_address(g, var, g->module->first_function_site + f->id, 0);
    else
        emit_places(g, var, g->module->statics, (int64_t)addr);
}

/* A form as an operand of a statement. */
static pta_operand operand(generator *g, form f)
{
    bool fresh;
    uint32_t var;
    switch (f.kind) {
    case FORM_VAR:
        if (f.value < -(1 << 29) || f.value > 1 << 29) return (pta_operand){PTA_NO_VAR, 0};
        return (pta_operand){f.var, (int32_t)f.value};
    case FORM_CONST:
        var = known_var(g, FORM_CONST, f.value, &fresh);
        if (fresh) emit_const(g, var, (uint64_t)f.value);
        return (pta_operand){var, 0};
    case FORM_FRAME:
        if (f.value < -(1 << 29) || f.value > 1 << 29) return (pta_operand){PTA_NO_VAR, 0};
        if (f.value >= 0) return (pta_operand){PTA_RSP, (int32_t)f.value};
        var = known_var(g, FORM_FRAME, f.value, &fresh);
        if (fresh) emit_frame(g, var, f.value);
        return (pta_operand){var, 0};
    case FORM_ALIGNED:
        var = known_var(g, FORM_ALIGNED, 0, &fresh);
        if (fresh) emit_address(g, var, GENERATE_LOCAL | g->aligned_site, 0);
        return (pta_operand){var, (int32_t)f.value};
    case FORM_TLS: {
        int64_t at = f.value + (int64_t)g->img->tls_size;
        var = known_var(g, FORM_TLS, f.value, &fresh);
        if (fresh) emit_places(g, var, g->module->tls, at);
        return (pta_operand){var, 0};
    }
    default:
        return (pta_operand){PTA_NO_VAR, 0};
    }
}

/* The same for an access to exactly this address: it can mean one object only. */
static pta_operand direct(generator *g, form f)
{
    if (f.kind != FORM_CONST) return operand(g, f);
    bool fresh;
    uint32_t var = known_var(g, FORM_DIRECT, f.value, &fresh);
    const address_home *home = fresh ? address_find(g->module->statics, f.value) : NULL;
    if (home) emit_address(g, var, home->site, f.value - home->start);
    return (pta_operand){var, 0};
}

/* The same for a constant to which an index is added. */
static pta_operand indexed(generator *g, form f, uint32_t stride)
{
    uint32_t step = stride & ~(uint32_t)PTA_BACK;
    if (f.kind != FORM_CONST || step <= 1 || step >= 4096 || image_is_code(g->img, (uint64_t)f.value)) return operand(g, f);
    bool fresh;
    address_place places[4];
    uint32_t var = known_var(g, FORM_INDEXED, f.value * 4096 + step, &fresh);
    uint32_t n = fresh ? address_indexed(g->module->statics, f.value, step, places) : 0;
    for (uint32_t i = 0; i < n; i++)
        emit_address(g, var, places[i].site, places[i].offset);
    return (pta_operand){var, 0};
}

static form var_form(uint32_t var)
{
    return (form){FORM_VAR, var, 0};
}

static form site_form(generator *g, uint32_t site)
{
    bool fresh;
    uint32_t var = known_var(g, FORM_SITE, site, &fresh);
    bool external = site == g->module->external;
    if (fresh)
        emit(g, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .ref = site,
                           .stride = external ? PTA_ANY : PTA_SAME});
    return var_form(var);
}

static form add_const(form f, int64_t k)
{
    if (f.kind != FORM_NONE) f.value += k;
    return f;
}

/* dst may be what `f` is, changed as `stride` says after adding delta. */
static void emit_copy(generator *g, uint32_t dst, form f, int64_t delta, uint32_t stride)
{
    pta_operand src = stride == PTA_SAME || stride >= PTA_ALIGN ? operand(g, f) : indexed(g, f, stride);
    if (src.var == PTA_NO_VAR) return;
    if (src.var == dst && !src.delta && !delta && stride == PTA_SAME) return;
    src.delta += (int32_t)delta;
    emit(g, (pta_stmt){.kind = PTA_COPY, .dst = {dst, 0}, .src = src, .stride = stride});
}

/* The stride of adding v * scale; PTA_SAME when that is nothing. */
static uint32_t stride_of(const generator *g, ir_value v, int64_t scale)
{
    bool back;
    uint64_t m = linear_stride(g->ir, v, scale, &back);
    if (!m) return PTA_SAME;
    return (m < PTA_BACK ? (uint32_t)m : PTA_ANY) | (back ? PTA_BACK : 0);
}

/* --- values ----------------------------------------------------------------------------------------------------------- */

static form const_form(const generator *g, int64_t value)
{
    return kinds_is_address(g->img, value) ? (form){FORM_CONST, 0, value} : (form){0};
}

/* What the loader leaves in a word. */
static form reloc_form(generator *g, const image_reloc *reloc)
{
    switch (reloc->kind) {
    case IMAGE_REL_ADDR:
    case IMAGE_REL_GUESS: return (form){FORM_CONST, 0, (int64_t)reloc->target};
    case IMAGE_REL_TPOFF:
        return reloc->name && !reloc->target ? site_form(g, g->module->external)
                                             : (form){FORM_TPOFF, 0, (int64_t)reloc->target - (int64_t)g->img->tls_size};
    case IMAGE_REL_SYMBOL: {
        uint32_t site = g->module->slots[reloc - g->img->relocs];
        return add_const(site_form(g, site == PTA_NO_SITE ? g->module->external : site), reloc->addend);
    }
    default: return (form){0};
    }
}

/* A word that never changes after start-up. */
static bool constant_word(generator *g, uint64_t addr, form *f)
{
    const image_reloc *reloc = image_reloc_at(g->img, addr);
    bool slot = reloc && reloc->slot && reloc->kind != IMAGE_REL_IFUNC;
    if (!slot && !image_is_constant(g->img, addr, 8)) return false;
    *f = reloc ? reloc_form(g, reloc) : (form){0};
    return true;
}

static const uint8_t param_of[IR_FLAGS] = { /* + 1; 0: not a parameter */
    [IR_RDI] = PTA_RDI + 1, [IR_RSI] = PTA_RSI + 1, [IR_RDX] = PTA_RDX + 1, [IR_RCX] = PTA_RCX + 1,
    [IR_R8] = PTA_R8 + 1,   [IR_R9] = PTA_R9 + 1,   [IR_RAX] = PTA_RAX + 1, [IR_R10] = PTA_R10 + 1,
};

static form entry_form(generator *g, const ir_insn *insn)
{
    if (insn->var < IR_FLAGS && param_of[insn->var]) return var_form(param_of[insn->var] - 1u);
    if (insn->var == IR_FSBASE) return (form){FORM_TLS, 0, 0};
    if (insn->var >= IR_SLOT && insn->var - IR_SLOT < (int)g->ir->slot_count) {
        const ir_slot *slot = &g->ir->slots[insn->var - IR_SLOT];
        if (slot->base || slot->offset < 8 || slot->size != 8) return (form){0};
        uint32_t var = new_var(g);
        emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = {PTA_RSP, slot->offset}});
        return var_form(var);
    }
    return (form){0};
}

static uint32_t both_strides(uint32_t a, uint32_t b)
{
    uint32_t back = (a | b) & PTA_BACK;
    a &= ~PTA_BACK;
    b &= ~PTA_BACK;
    return (a == PTA_SAME ? b : b == PTA_SAME ? a : (uint32_t)offset_gcd(a, b)) | back;
}

/* A pointer is added to a number: the other operand is none, whatever it looks like. */
static void settle(const generator *g, ir_value a, ir_value b, form *fa, form *fb)
{
    if (!a || !b) return;
    if (g->kinds[a] == KIND_POINTER && g->kinds[b] != KIND_POINTER && fb->kind != FORM_TPOFF) fb->kind = FORM_NONE;
    if (g->kinds[b] == KIND_POINTER && g->kinds[a] != KIND_POINTER && fa->kind != FORM_TPOFF) fa->kind = FORM_NONE;
}

/* a + b * scale + imm, of which each may be the pointer. */
static form sum_form(generator *g, ir_value a, ir_value b, unsigned scale, int64_t imm)
{
    form fa = a ? g->forms[a] : (form){0}, fb = b && scale == 1 ? g->forms[b] : (form){0};
    settle(g, a, b, &fa, &fb);
    if (b && scale == 1 && g->ir->insns[b].op == IR_CONST) return add_const(fa, imm + g->ir->insns[b].imm);
    if (fa.kind == FORM_TLS && b && g->forms[b].kind == FORM_TPOFF) return add_const(fa, g->forms[b].value + imm);
    if (fb.kind == FORM_TLS && a && g->forms[a].kind == FORM_TPOFF) return add_const(fb, g->forms[a].value + imm);
    form fixed = const_form(g, imm);
    if (a && g->kinds[a] == KIND_POINTER) fixed.kind = FORM_NONE;
    if (fixed.kind == FORM_NONE && fb.kind == FORM_NONE && (!b || fa.kind == FORM_NONE)) return add_const(fa, imm);
    uint32_t sa = a ? stride_of(g, a, 1) : PTA_SAME, sb = b ? stride_of(g, b, scale) : PTA_SAME;
    if (fixed.kind == FORM_NONE && fb.kind == FORM_NONE && sb == PTA_SAME) return add_const(fa, imm);
    if (fixed.kind == FORM_NONE && fa.kind == FORM_NONE && sa == PTA_SAME) return add_const(fb, imm);
    if (fixed.kind != FORM_NONE && !a && !b) return fixed;
    uint32_t var = new_var(g);
    emit_copy(g, var, fa, imm, sb);
    emit_copy(g, var, fb, imm, sa);
    emit_copy(g, var, fixed, 0, both_strides(sa, sb));
    return var_form(var);
}

/* The object of each operand at an unknown offset. */
static form any_form(generator *g, const ir_value *values, uint32_t count)
{
    uint32_t var = PTA_NO_VAR;
    for (uint32_t i = 0; i < count; i++) {
        form f = values[i] ? g->forms[values[i]] : (form){0};
        if (f.kind == FORM_NONE || f.kind == FORM_TPOFF) continue;
        if (var == PTA_NO_VAR) var = new_var(g);
        emit_copy(g, var, f, 0, PTA_ANY);
    }
    return var == PTA_NO_VAR ? (form){0} : var_form(var);
}

static form and_form(generator *g, const ir_insn *insn)
{
    if (insn->b) return any_form(g, (ir_value[]){insn->a, insn->b}, 2);
    if (insn->imm >= 0) /* what is left of an address: its low bits, or all but a tag in its high bits */
        return insn->imm < 1ll << 40 ? (form){0} : any_form(g, &insn->a, 1);
    form f = g->forms[insn->a];
    if (f.kind == FORM_NONE) return f;
    uint64_t step = linear_magnitude(insn->imm & -insn->imm);
    if (insn->imm != -(int64_t)step || step > 16) return any_form(g, &insn->a, 1);
    uint32_t var = new_var(g);
    emit_copy(g, var, f, 0, PTA_ALIGN + (uint32_t)step);
    return var_form(var);
}

/* A tag in the low bits is set or cleared: the offset with and without it. */
static form tag_form(generator *g, const ir_insn *insn)
{
    if (insn->b) return any_form(g, (ir_value[]){insn->a, insn->b}, 2);
    form f = g->forms[insn->a];
    if (f.kind == FORM_NONE) return f;
    if (insn->imm < 0 || insn->imm >= 16) return any_form(g, &insn->a, 1);
    uint32_t var = new_var(g);
    emit_copy(g, var, f, 0, PTA_SAME);
    emit_copy(g, var, f, insn->imm, PTA_SAME);
    if (insn->op == IR_XOR) emit_copy(g, var, f, -insn->imm, PTA_SAME);
    return var_form(var);
}

/* Opaque instructions whose result is a number, whatever their operands are. */
static bool is_arithmetic(uint16_t mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_DIV: case ZYDIS_MNEMONIC_IDIV: case ZYDIS_MNEMONIC_MUL: case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MULX: case ZYDIS_MNEMONIC_BSF: case ZYDIS_MNEMONIC_BSR: case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_LZCNT: case ZYDIS_MNEMONIC_POPCNT: case ZYDIS_MNEMONIC_RDTSC: case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_CPUID: case ZYDIS_MNEMONIC_XGETBV: case ZYDIS_MNEMONIC_RDRAND: case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_CVTSI2SD: case ZYDIS_MNEMONIC_CVTSI2SS: case ZYDIS_MNEMONIC_CVTTSD2SI:
    case ZYDIS_MNEMONIC_CVTTSS2SI: case ZYDIS_MNEMONIC_CVTSD2SI: case ZYDIS_MNEMONIC_CVTSS2SI:
    case ZYDIS_MNEMONIC_CVTSD2SS: case ZYDIS_MNEMONIC_CVTSS2SD: case ZYDIS_MNEMONIC_ADDSD: case ZYDIS_MNEMONIC_SUBSD:
    case ZYDIS_MNEMONIC_MULSD: case ZYDIS_MNEMONIC_DIVSD: case ZYDIS_MNEMONIC_ADDSS: case ZYDIS_MNEMONIC_SUBSS:
    case ZYDIS_MNEMONIC_MULSS: case ZYDIS_MNEMONIC_DIVSS: case ZYDIS_MNEMONIC_SQRTSD: case ZYDIS_MNEMONIC_SQRTSS:
    case ZYDIS_MNEMONIC_ADDPD: case ZYDIS_MNEMONIC_MULPD: case ZYDIS_MNEMONIC_ADDPS: case ZYDIS_MNEMONIC_MULPS:
    case ZYDIS_MNEMONIC_PMOVMSKB: case ZYDIS_MNEMONIC_CRC32: case ZYDIS_MNEMONIC_PMULUDQ:
    case ZYDIS_MNEMONIC_PCMPEQB: case ZYDIS_MNEMONIC_PCMPEQD: case ZYDIS_MNEMONIC_PCMPEQW: case ZYDIS_MNEMONIC_PCMPEQQ:
    case ZYDIS_MNEMONIC_PCMPGTB: case ZYDIS_MNEMONIC_PCMPGTD: case ZYDIS_MNEMONIC_PCMPGTW:
        return true;
    default: return false;
    }
}

static form opaque_form(generator *g, const ir_insn *insn)
{
    if (insn->width < 8 || insn->var == IR_FLAGS || insn->var == IR_X87 || insn->var == IR_MASKS) return (form){0};
    if (is_arithmetic(g->func->insns[insn->insn].mnemonic)) return (form){0};
    return any_form(g, g->ir->args + insn->a, insn->b);
}

/* --- memory ------------------------------------------------------------------------------------------------------------ */

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
    settle(g, a, b, &fa, &fb);
    uint32_t repeat = access->flags & IR_REP ? access->width : PTA_SAME;
    if (fa.kind == FORM_TLS && b && g->forms[b].kind == FORM_TPOFF) {
        add_term(terms, &n, operand(g, add_const(fa, g->forms[b].value + access->imm + lane)), 0, repeat);
        return n;
    }
    uint32_t by_index = b ? stride_of(g, b, access->scale) : PTA_SAME;
    form fixed = access->flags & (IR_FS | IR_GS) ? (form){0} : const_form(g, access->imm);
    if (fixed.kind != FORM_NONE && (!a || g->kinds[a] != KIND_POINTER)) {
        uint32_t stride = both_strides(both_strides(by_index, a ? stride_of(g, a, 1) : PTA_SAME), repeat);
        if (stride == PTA_SAME)
            add_term(terms, &n, direct(g, add_const(fixed, lane)), 0, stride);
        else
            add_term(terms, &n, indexed(g, fixed, stride), lane, stride);
        if (!a) return n;
    }
    int64_t imm = access->imm + lane;
    if (fa.kind != FORM_NONE) {
        uint32_t stride = both_strides(by_index, repeat);
        /* An index is relative to the object that the constant part names: in the frame that includes the displacement. */
        if (stride == PTA_SAME)
            add_term(terms, &n, direct(g, add_const(fa, imm)), 0, stride);
        else if (fa.kind == FORM_FRAME || fa.kind == FORM_TLS)
            add_term(terms, &n, operand(g, add_const(fa, imm)), 0, stride);
        else
            add_term(terms, &n, indexed(g, fa, stride), imm, stride);
    }
    if (fb.kind != FORM_NONE) {
        uint32_t stride = both_strides(a ? stride_of(g, a, 1) : PTA_SAME, repeat);
        if (fb.kind == FORM_FRAME || fb.kind == FORM_TLS)
            add_term(terms, &n, operand(g, add_const(fb, imm)), 0, stride);
        else
            add_term(terms, &n, indexed(g, fb, stride), imm, stride);
    }
    return n;
}

static void note_access(generator *g, const ir_insn *access)
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

static form load_form(generator *g, const ir_insn *insn)
{
    const ir_insn *access = &g->ir->insns[insn->a];
    if (insn->width != 8 || access->flags & (IR_WIDE | IR_REP)) return (form){0};
    form f, base = access->a ? g->forms[access->a] : (form){0};
    int64_t at = access->imm + insn->imm;
    if (!access->b) {
        if (base.kind == FORM_TLS && base.value + at == 0) return (form){FORM_TLS, 0, 0}; /* the thread pointer itself */
        if (base.kind == FORM_CONST && constant_word(g, (uint64_t)(base.value + at), &f)) return f;
        if (!access->a && !(access->flags & (IR_FS | IR_GS)) && constant_word(g, (uint64_t)at, &f)) return f;
    }
    place_term terms[TERMS];
    uint32_t n = address_terms(g, access, insn->imm, terms);
    if (!n) return (form){0};
    uint32_t var = new_var(g);
    for (uint32_t i = 0; i < n; i++)
        emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = terms[i].at, .stride = terms[i].stride,
                           .insn = insn->insn});
    return var_form(var);
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
    uint32_t var = new_var(g);
    for (uint32_t i = 0; i < sources; i++)
        emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = source[i].at, .stride = PTA_ANY, .insn = store->insn});
    for (uint32_t i = 0; i < dests; i++)
        emit(g, (pta_stmt){.kind = PTA_STORE, .dst = dest[i].at, .src = {var, 0}, .stride = PTA_ANY, .insn = store->insn});
}

enum { BLOCK_WORDS = 64 }; /* a larger block is copied from any word to any word */

/* A block copy of `size` bytes, 0: unknown. */
static void copy_block(generator *g, pta_operand to, pta_operand from, uint64_t size, uint32_t insn)
{
    if (to.var == PTA_NO_VAR || from.var == PTA_NO_VAR) return;
    uint64_t words = size / 8;
    bool each = size && words <= BLOCK_WORDS;
    for (uint32_t i = 0; i < (each ? words : 1); i++) {
        uint32_t var = new_var(g), stride = each ? PTA_SAME : 8;
        pta_operand source = {from.var, from.delta + 8 * (int32_t)i}, dest = {to.var, to.delta + 8 * (int32_t)i};
        emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = source, .stride = stride, .insn = insn});
        emit(g, (pta_stmt){.kind = PTA_STORE, .dst = dest, .src = {var, 0}, .stride = stride, .insn = insn});
    }
}

static uint64_t constant_of(const generator *g, ir_value v)
{
    const ir_insn *insn = v ? &g->ir->insns[ir_origin(g->ir, v)] : NULL;
    return insn && insn->op == IR_CONST && insn->imm > 0 && insn->imm < 1 << 24 ? (uint64_t)insn->imm : 0;
}

/* rep movs, without what makes an address of a single element of it */
static void repeated_copy(generator *g, const ir_insn *store, const ir_insn *to, const ir_insn *from)
{
    place_term source[TERMS], dest[TERMS];
    uint32_t sources = address_terms(g, from, 0, source), dests = address_terms(g, to, 0, dest);
    for (uint32_t s = 0; s < sources; s++)
        for (uint32_t d = 0; d < dests; d++)
            copy_block(g, dest[d].at, source[s].at, constant_of(g, to->c) * to->width, store->insn);
}

static void store_stmt(generator *g, const ir_insn *insn)
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
    pta_operand src = n ? operand(g, f) : (pta_operand){PTA_NO_VAR, 0};
    if (src.var == PTA_NO_VAR) return;
    for (uint32_t i = 0; i < n; i++)
        emit(g, (pta_stmt){.kind = PTA_STORE, .dst = terms[i].at, .src = src, .stride = terms[i].stride, .insn = insn->insn});
}

/* --- calls ------------------------------------------------------------------------------------------------------------ */

static uint32_t slot_func(const generator *g, uint64_t slot)
{
    const image_reloc *reloc = image_reloc_at(g->img, slot);
    if (!reloc || !reloc->slot) return PTA_NO_FUNC;
    if (reloc->kind == IMAGE_REL_ADDR) {
        const lift_func *f = lift_func_at(g->program->modules[g->program->funcs.data[g->func_id].module], reloc->target);
        return f ? g->module->first_func + f->id : PTA_NO_FUNC;
    }
    if (reloc->kind != IMAGE_REL_SYMBOL) return PTA_NO_FUNC;
    uint32_t site = g->module->slots[reloc - g->img->relocs];
    if (site == PTA_NO_SITE) return g->module->unknown;
    return g->program->sites.data[site].kind == PTA_FUNCTION ? g->program->sites.data[site].func : PTA_NO_FUNC;
}

/* The function that a call names; PTA_NO_FUNC: only the value of the target tells. */
static uint32_t named_callee(generator *g, const ir_insn *call)
{
    uint8_t flow = g->func->insns[call->insn].flow;
    if (!call->imm) return PTA_NO_FUNC;
    uint64_t target = (uint64_t)call->imm;
    if (flow == FLOW_CALL_SLOT || flow == FLOW_JUMP_SLOT) return slot_func(g, target);
    const image_plt *plt = image_plt_at(g->img, target);
    if (plt) {
        uint32_t func = g->module->plts[plt - g->img->plts];
        return func == PTA_NO_FUNC ? g->module->unknown : func;
    }
    const lift_func *f = lift_func_at(g->program->modules[g->program->funcs.data[g->func_id].module], target);
    return f ? g->module->first_func + f->id : g->module->unknown;
}

/* `__tls_get_addr(&{module, offset})`: the place in the TLS block that the two words name. */
static bool tls_call(generator *g, const ir_insn *call, form *f)
{
    form arg = g->forms[g->ir->args[call->a + IR_CALL_RDI]];
    if (arg.kind != FORM_CONST) return false;
    const image_reloc *mod = image_reloc_at(g->img, (uint64_t)arg.value);
    if (!mod || mod->kind != IMAGE_REL_DTPMOD) return false;
    const image_reloc *off = image_reloc_at(g->img, (uint64_t)arg.value + 8);
    uint64_t offset = 0;
    if (off && off->kind == IMAGE_REL_DTPOFF) {
        if (off->name && !off->target) return *f = site_form(g, g->module->external), true;
        offset = off->target;
    } else {
        image_read(g->img, (uint64_t)arg.value + 8, &offset, 8);
    }
    *f = (form){FORM_TLS, 0, (int64_t)offset - (int64_t)g->img->tls_size};
    return true;
}

enum { STACK_ARGUMENTS = 8 + 8 * 64 }; /* return address and words that a callee may walk through */

/* The stack pointer that a callee is entered with: the outgoing arguments, not the whole frame. */
static pta_operand callee_stack(generator *g, form sp)
{
    bool fresh;
    if (sp.kind != FORM_FRAME || sp.value >= 8) return operand(g, add_const(sp, -8));
    int64_t at = sp.value - 8;
    uint32_t var = known_var(g, FORM_STACK, at, &fresh);
    if (fresh) {
        emit_address(g, var, GENERATE_LOCAL | g->out->sites.len, 0);
        vec_push(&g->out->sites, (pta_site){.kind = PTA_FRAME, .func = g->func_id, .memory = GENERATE_LOCAL | g->frame_site,
                                            .start = (uint64_t)at, .base = at, .size = STACK_ARGUMENTS, .align = 8,
                                            .name = "arguments"});
    }
    return (pta_operand){var, 0};
}

static bool copies_block(const generator *g, uint32_t func)
{
    static const char *const names[] = {"memcpy", "memmove", "__memcpy_chk", "__memmove_chk"};
    const pta_func *f = &g->program->funcs.data[func];
    for (unsigned i = 0; !f->lift && i < sizeof names / sizeof *names; i++)
        if (!strcmp(f->name, names[i])) return true;
    return false;
}

static void call_stmt(generator *g, ir_value v)
{
    static const uint8_t arg_of[PTA_PARAMS] = {[PTA_RDI] = IR_CALL_RDI, [PTA_RSI] = IR_CALL_RSI, [PTA_RDX] = IR_CALL_RDX,
                                               [PTA_RCX] = IR_CALL_RCX, [PTA_R8] = IR_CALL_R8,   [PTA_R9] = IR_CALL_R9,
                                               [PTA_RSP] = IR_CALL_RSP, [PTA_RAX] = IR_CALL_RAX, [PTA_R10] = IR_CALL_R10};
    const ir_insn *insn = &g->ir->insns[v];
    const ir_value *args = g->ir->args + insn->a;
    bool tail = insn->op == IR_TAIL;
    pta_call call = {.func = named_callee(g, insn), .target = {PTA_NO_VAR, 0}, .ret = PTA_NO_VAR, .ret2 = PTA_NO_VAR,
                     .caller = g->func_id, .addr = g->func->insns[insn->insn].addr,
                     .in_loop = g->ir->blocks[g->block].loop != 0};
    if (call.func == g->module->unknown) g->out->unknown_calls++;
    if (call.func == PTA_NO_FUNC) {
        form target = args[IR_CALL_TARGET] ? g->forms[args[IR_CALL_TARGET]] : (form){0};
        call.target = operand(g, target);
    }
    bool takes_stack = call.func == PTA_NO_FUNC || g->program->funcs.data[call.func].takes_stack;
    for (unsigned i = 0; i < PTA_PARAMS; i++) {
        ir_value arg = args[arg_of[i]];
        form f = arg ? g->forms[arg] : (form){0};
        if (i == PTA_RSP && !takes_stack) f.kind = FORM_NONE;
        call.args[i] = i == PTA_RSP && !tail ? callee_stack(g, f) : operand(g, f);
    }
    form sp = args[IR_CALL_RSP] ? g->forms[args[IR_CALL_RSP]] : (form){0};
    for (uint32_t i = IR_CALL_ARGS; takes_stack && i < insn->b; i++) { /* promoted slots, as the callee sees them */
        pta_operand value = args[i] ? operand(g, g->forms[args[i]]) : (pta_operand){PTA_NO_VAR, 0};
        pta_operand at = operand(g, add_const(sp, 8 * (int64_t)(i - IR_CALL_ARGS) + (tail ? 8 : 0)));
        if (value.var != PTA_NO_VAR && at.var != PTA_NO_VAR)
            emit(g, (pta_stmt){.kind = PTA_STORE, .dst = at, .src = value, .insn = insn->insn});
    }
    uint64_t size = call.func == PTA_NO_FUNC ? 0 : constant_of(g, args[IR_CALL_RDX]);
    if (size && size / 8 <= BLOCK_WORDS && copies_block(g, call.func)) {
        copy_block(g, call.args[PTA_RDI], call.args[PTA_RSI], size, insn->insn);
        call.func = g->module->copied;
    }
    if (tail) call.ret = PTA_RET, call.ret2 = PTA_RET2;
    g->call_of[v] = g->out->calls.len + 1;
    emit(g, (pta_stmt){.kind = PTA_CALL, .ref = GENERATE_LOCAL | g->out->calls.len, .insn = insn->insn});
    vec_push(&g->out->calls, call);
}

static form result_form(generator *g, const ir_insn *insn)
{
    const ir_insn *of = &g->ir->insns[insn->a];
    form f = {0};
    if (insn->op == IR_RESULT && of->op == IR_SYSCALL && insn->var == IR_RAX) {
        f = site_form(g, g->module->external);
    } else if (insn->op == IR_RESULT && (insn->var == IR_RAX || insn->var == IR_RDX) && g->call_of[insn->a]) {
        const image_plt *plt = of->imm ? image_plt_at(g->img, (uint64_t)of->imm) : NULL;
        if (insn->var == IR_RAX && plt && plt->name && !strcmp(plt->name, "__tls_get_addr") && tls_call(g, of, &f)) return f;
        pta_call *call = &g->out->calls.data[g->call_of[insn->a] - 1];
        uint32_t *ret = insn->var == IR_RAX ? &call->ret : &call->ret2;
        if (*ret == PTA_NO_VAR) *ret = new_var(g);
        f = var_form(*ret);
    }
    if (!insn->b || g->forms[insn->b].kind == FORM_NONE) return f;
    if (f.kind == FORM_NONE) return g->forms[insn->b];
    uint32_t var = new_var(g);
    emit_copy(g, var, f, 0, PTA_SAME);
    emit_copy(g, var, g->forms[insn->b], 0, PTA_SAME);
    return var_form(var);
}

static void return_stmts(generator *g, const ir_insn *insn)
{
    static const uint8_t from[] = {IR_RET_RAX, IR_RET_RDX};
    for (unsigned i = 0; i < 2; i++) {
        ir_value v = g->ir->args[insn->a + from[i]];
        if (v && g->forms[v].kind != FORM_TPOFF) emit_copy(g, PTA_RET + i, g->forms[v], 0, PTA_SAME);
    }
}

/* --- parts of the frame that no variable names ------------------------------------------------------------------------------ */

enum { SAVE_AREA = 6 * 8 + 8 * 16 }; /* registers that a variadic function saves: System V ABI, figure 3.33 */

/* The place of the register save area: r8 and r9 are stored beside each other, as they came. 0: there is none. */
static int64_t save_area(const generator *g)
{
    static const uint16_t registers[] = {IR_RCX, IR_R8, IR_R9};
    int64_t at[3] = {0};
    for (ir_value v = 1; v < g->ir->insn_count; v++) {
        const ir_insn *store = &g->ir->insns[v];
        if (store->op != IR_STORE || !store->b) continue;
        const ir_insn *access = &g->ir->insns[store->a], *value = &g->ir->insns[ir_origin(g->ir, store->b)];
        int32_t offset;
        uint8_t base;
        if (value->op != IR_ENTRY || access->b || !access->a || !ir_frame_offset(g->ir, access->a, &offset, &base) || base) continue;
        for (unsigned i = 0; i < 3; i++)
            if (value->var == registers[i]) at[i] = offset + access->imm + store->imm;
    }
    bool together = at[0] && at[1] == at[0] + 8 && at[2] == at[1] + 8;
    return together && at[2] - 40 + SAVE_AREA <= 0 ? at[2] - 40 : 0;
}

static void name_save_area(generator *g)
{
    int64_t at = save_area(g);
    if (!at) return;
    for (uint32_t i = 0; i < g->frame.homes.len; i++)
        if (g->frame.homes.data[i].start < at + SAVE_AREA && at < g->frame.homes.data[i].end) return;
    address_add(&g->frame, at, at + SAVE_AREA, g->out->sites.len, true);
    address_seal(&g->frame);
    vec_push(&g->out->sites, (pta_site){.kind = PTA_FRAME, .func = g->func_id, .memory = GENERATE_LOCAL | g->frame_site,
                                        .start = (uint64_t)at, .base = at, .size = SAVE_AREA, .align = 8,
                                        .name = "saved registers"});
}

/* --- the function ------------------------------------------------------------------------------------------------------- */

/* A number that is loaded: only the offset of a thread-local variable is of interest. */
static form number_form(generator *g, const ir_insn *insn)
{
    const ir_insn *access = &g->ir->insns[insn->a];
    form f, base = access->a ? g->forms[access->a] : (form){0};
    bool constant = insn->width == 8 && !access->b && base.kind == FORM_CONST &&
                    constant_word(g, (uint64_t)(base.value + access->imm + insn->imm), &f);
    return constant && f.kind == FORM_TPOFF ? f : (form){0};
}

static form value_form(generator *g, ir_value v)
{
    const ir_insn *insn = &g->ir->insns[v];
    int32_t offset;
    uint8_t base;
    if (insn->op != IR_ENTRY && ir_frame_offset(g->ir, v, &offset, &base))
        return (form){base ? FORM_ALIGNED : FORM_FRAME, 0, offset};
    if (g->kinds[v] == KIND_NUMBER && insn->op < IR_ACCESS) return (form){0};
    if (g->kinds[v] == KIND_NUMBER && (insn->op == IR_LOAD || insn->op == IR_RESULT || insn->op == IR_CLOBBER))
        return insn->op == IR_LOAD ? number_form(g, insn) : (form){0};
    switch (insn->op) {
    case IR_ENTRY:
        return ir_frame_offset(g->ir, v, &offset, &base) && !base ? (form){FORM_FRAME, 0, offset} : entry_form(g, insn);
    case IR_CONST: return const_form(g, insn->imm);
    case IR_ADDRESS: return (form){FORM_CONST, 0, insn->imm};
    case IR_COPY: return insn->width == 8 ? g->forms[insn->a] : (form){0};
    case IR_EXTRACT: return insn->width == 8 && !insn->imm ? g->forms[insn->a] : (form){0};
    case IR_LEA: return insn->width == 8 ? sum_form(g, insn->a, insn->b, insn->scale, insn->imm) : (form){0};
    case IR_SUB:
        if (insn->width != 8 || g->forms[insn->a].kind == FORM_NONE) return (form){0};
        if (!insn->b) return add_const(g->forms[insn->a], -insn->imm);
        {
            uint32_t stride = stride_of(g, insn->b, -1), var = new_var(g);
            emit_copy(g, var, g->forms[insn->a], 0, stride);
            return var_form(var);
        }
    case IR_AND: return insn->width == 8 ? and_form(g, insn) : (form){0};
    case IR_OR:
    case IR_XOR: return insn->width == 8 ? tag_form(g, insn) : (form){0};
    case IR_SHL:
    case IR_SHR:
    case IR_SAR:
        return insn->width == 8 && (insn->b || insn->imm >= 8) ? any_form(g, &insn->a, 1) : (form){0};
    case IR_INSERT: return any_form(g, &insn->a, 1);
    case IR_SELECT:
        if (insn->width < 8) return (form){0};
        {
            form a = g->forms[insn->a], b = g->forms[insn->b];
            if (a.kind == FORM_NONE) return b;
            if (b.kind == FORM_NONE) return a;
            uint32_t var = new_var(g);
            emit_copy(g, var, a, 0, PTA_SAME);
            emit_copy(g, var, b, 0, PTA_SAME);
            return var_form(var);
        }
    case IR_OPAQUE: return opaque_form(g, insn);
    case IR_LOAD: return load_form(g, insn);
    case IR_RESULT:
    case IR_CLOBBER: return result_form(g, insn);
    case IR_PAD: return insn->a ? g->forms[insn->a] : (form){0};
    case IR_ACCESS: note_access(g, insn); return (form){0};
    case IR_STORE: store_stmt(g, insn); return (form){0};
    case IR_CALL:
    case IR_TAIL: call_stmt(g, v); return (form){0};
    case IR_RET: return_stmts(g, insn); return (form){0};
    default: return (form){0};
    }
}

/* Which values may be pointers, by what they are computed from: a phi of numbers is none. */
static bool may_point(const generator *g, const uint8_t *points, ir_value v)
{
    const ir_insn *insn = &g->ir->insns[v];
    if (insn->width < 8 && insn->op != IR_CONST && insn->op != IR_ADDRESS) return false;
    switch (insn->op) {
    case IR_ENTRY:
    case IR_ADDRESS:
    case IR_LOAD:
    case IR_RESULT:
    case IR_PAD: return g->kinds[v] != KIND_NUMBER;
    case IR_CONST: return const_form(g, insn->imm).kind != FORM_NONE;
    case IR_CLOBBER: return insn->b && points[insn->b];
    case IR_COPY:
    case IR_EXTRACT:
    case IR_INSERT:
    case IR_SUB:
    case IR_SHL:
    case IR_SHR:
    case IR_SAR: return points[insn->a];
    case IR_AND:
    case IR_OR:
    case IR_XOR:
    case IR_SELECT: return points[insn->a] || (insn->b && points[insn->b]);
    case IR_LEA:
        return (insn->a ? points[insn->a] : const_form(g, insn->imm).kind != FORM_NONE) ||
               (insn->b && insn->scale == 1 && points[insn->b]);
    case IR_PHI:
    case IR_OPAQUE:
        for (uint32_t i = 0; i < insn->b; i++)
            if (g->ir->args[insn->a + i] && points[g->ir->args[insn->a + i]]) return true;
        return false;
    default: return false;
    }
}

static bool is_state(uint16_t var)
{
    return var == IR_FLAGS || var == IR_X87 || var == IR_MASKS || var == IR_DF;
}

/* Phis have their variables before anything else is looked at. */
static void mark_phis(generator *g)
{
    const ir_func *ir = g->ir;
    uint8_t *points = base_alloc_zero(ir->insn_count, 1);
    for (bool changed = true; changed;) {
        changed = false;
        for (ir_value v = 1; v < ir->insn_count; v++) {
            if (points[v] || g->kinds[v] == KIND_NUMBER || is_state(ir->insns[v].var) || !may_point(g, points, v)) continue;
            points[v] = 1;
            changed = true;
        }
    }
    for (uint32_t i = 0; i < ir->rpo_count; i++) {
        const ir_block *block = &ir->blocks[ir->rpo[i]];
        for (ir_value v = block->first; v < block->first + block->count && ir->insns[v].op == IR_PHI; v++) {
            int32_t offset;
            uint8_t base;
            if (ir_frame_offset(ir, v, &offset, &base))
                g->forms[v] = (form){base ? FORM_ALIGNED : FORM_FRAME, 0, offset};
            else if (points[v])
                g->forms[v] = var_form(new_var(g));
        }
    }
    free(points);
}

static void phi_stmts(generator *g)
{
    const ir_func *ir = g->ir;
    for (uint32_t i = 0; i < ir->rpo_count; i++) {
        const ir_block *block = &ir->blocks[ir->rpo[i]];
        for (uint32_t k = 0; k < block->count && ir->insns[block->first + k].op == IR_PHI; k++) {
            const ir_insn *phi = &ir->insns[block->first + k];
            form f = g->forms[block->first + k];
            if (f.kind != FORM_VAR) continue;
            for (uint32_t a = 0; a < phi->b; a++) {
                ir_value v = ir->args[phi->a + a];
                if (v && g->forms[v].kind != FORM_TPOFF) emit_copy(g, f.var, g->forms[v], 0, PTA_SAME);
            }
        }
    }
}

void generate_function(const pta_program *program, const generate_module *module, uint32_t func, generated *out)
{
    const pta_func *f = &program->funcs.data[func];
    const ir_func *ir = f->lift->ir;
    out->var_count = PTA_FIRST_LOCAL;
    if (!ir) return;
    generator g = {.program = program, .module = module, .img = program->modules[f->module]->img, .func = f->lift,
                   .ir = ir, .func_id = func, .out = out};
    g.forms = base_alloc_zero(ir->insn_count, sizeof *g.forms);
    g.call_of = base_alloc_zero(ir->insn_count, sizeof *g.call_of);
    pta_site *variables;
    uint32_t variable_count;
    address_frame(g.img, f->lift, func, &g.frame, &variables, &variable_count);
    for (uint32_t i = 0; i < variable_count; i++) { /* names for parts of the frame, which temporaries may share */
        variables[i].memory = GENERATE_LOCAL | variable_count;
        vec_push(&out->sites, variables[i]);
    }
    free(variables);
    g.frame_site = out->sites.len;
    vec_push(&out->sites, (pta_site){.kind = PTA_FRAME, .func = func, .align = 8});
    g.aligned_site = out->sites.len;
    vec_push(&out->sites, (pta_site){.kind = PTA_FRAME, .func = func, .align = 16});
    name_save_area(&g);

    g.kinds = kinds_infer(g.img, ir);
    mark_phis(&g);
    for (ir_value v = 1; v < ir->blocks[0].first; v++)
        g.forms[v] = value_form(&g, v);
    for (uint32_t i = 0; i < ir->rpo_count; i++) {
        g.block = ir->rpo[i];
        const ir_block *block = &ir->blocks[g.block];
        for (uint32_t k = 0; k < block->count; k++)
            if (ir->insns[block->first + k].op != IR_PHI) g.forms[block->first + k] = value_form(&g, block->first + k);
    }
    phi_stmts(&g);
    free(g.forms);
    free(g.call_of);
    free(g.kinds);
    free(g.known);
    vec_free(&g.frame.homes);
}

void generate_free(generated *out)
{
    vec_free(&out->stmts);
    vec_free(&out->calls);
    vec_free(&out->sites);
    vec_free(&out->accesses);
}

bool generate_takes_stack(const ir_func *ir)
{
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        int32_t offset;
        uint8_t base;
        if (insn->op == IR_ENTRY && insn->var >= IR_SLOT && insn->var - IR_SLOT < (int)ir->slot_count) {
            const ir_slot *slot = &ir->slots[insn->var - IR_SLOT];
            if (!slot->base && slot->offset >= 8) return true;
        }
        if (insn->op == IR_ACCESS && !(insn->flags & IR_PROMOTED) && insn->a &&
            ir_frame_offset(ir, insn->a, &offset, &base) && !base && (offset + insn->imm >= 8 || insn->b))
            return true;
        if ((insn->op == IR_LEA || insn->op == IR_COPY) && insn->var != IR_RSP && insn->var != IR_RBP &&
            ir_frame_offset(ir, v, &offset, &base) && !base && offset >= 8)
            return true;
    }
    return false;
}
