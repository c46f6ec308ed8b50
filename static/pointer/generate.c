/* Statements of one function, value by value. Only what 8 bytes wide
 * operations compute can be a pointer. Multiplication, division, negation and narrow operations end a pointer; shifts
 * by at least a byte, logic and opaque instructions keep its object at an unknown offset. */
#include "static/pointer/form.h"

#include <stdlib.h>

#include <Zydis/Zydis.h>

#include "static/pointer/kinds.h"
#include "static/pointer/linear.h"
#include "static/pointer/passing.h"
#include "static/pointer/typed.h"

static const uint8_t param_of[IR_FLAGS] = { /* + 1; 0: not a parameter */
    [IR_RDI] = PTA_RDI + 1, [IR_RSI] = PTA_RSI + 1, [IR_RDX] = PTA_RDX + 1, [IR_RCX] = PTA_RCX + 1,
    [IR_R8] = PTA_R8 + 1,   [IR_R9] = PTA_R9 + 1,   [IR_RAX] = PTA_RAX + 1, [IR_R10] = PTA_R10 + 1,
};

/* Some instruction uses v itself, not only a phi that merges what a register happens to hold. */
static bool is_used(const generator *g, ir_value v)
{
    for (ir_value u = 1; u < g->ir->insn_count; u++) {
        const ir_insn *insn = &g->ir->insns[u];
        if (insn->op == IR_PHI || insn->op == IR_CALL || insn->op == IR_TAIL || insn->op == IR_RET || insn->op == IR_SYSCALL ||
            insn->op == IR_RESULT || insn->op == IR_CLOBBER)
            continue;
        if (insn->op != IR_OPAQUE && (insn->a == v || insn->b == v || insn->c == v)) return true;
        for (uint32_t i = 0; insn->op == IR_OPAQUE && i < insn->b; i++)
            if (g->ir->args[insn->a + i] == v) return true;
    }
    return false;
}

static form entry_form(generator *g, ir_value v)
{
    const ir_insn *insn = &g->ir->insns[v];
    if (g->left[v]) return (form){0};
    if ((insn->var == IR_RAX || insn->var == IR_R10) && !is_used(g, v)) return (form){0}; /* not for passing arguments in C */
    if (insn->var < IR_FLAGS && param_of[insn->var]) return form_var(param_of[insn->var] - 1u);
    if (insn->var == IR_FSBASE) return (form){FORM_TLS, 0, 0};
    if (insn->var >= IR_SLOT && insn->var - IR_SLOT < (int)g->ir->slot_count) {
        const ir_slot *slot = &g->ir->slots[insn->var - IR_SLOT];
        if (slot->base || slot->offset < 8 || slot->size != 8) return (form){0};
        uint32_t var = form_new_var(g);
        form_emit(g, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = {PTA_RSP, slot->offset}});
        return form_var(var);
    }
    return (form){0};
}

/* a + b * scale + imm, of which each may be the pointer. */
static form sum_form(generator *g, ir_value a, ir_value b, unsigned scale, int64_t imm)
{
    form fa = a ? g->forms[a] : (form){0}, fb = b && scale == 1 ? g->forms[b] : (form){0};
    form_settle(g, a, b, &fa, &fb);
    if (b && scale == 1 && g->ir->insns[b].op == IR_CONST) return form_add(fa, linear_sum(imm, g->ir->insns[b].imm));
    if (fa.kind == FORM_TLS && b && g->forms[b].kind == FORM_TPOFF) return form_add(fa, g->forms[b].value + imm);
    if (fb.kind == FORM_TLS && a && g->forms[a].kind == FORM_TPOFF) return form_add(fb, g->forms[a].value + imm);
    form fixed = form_const(g, imm);
    if (a && g->kinds[a] == KIND_POINTER) fixed.kind = FORM_NONE;
    if (fixed.kind == FORM_NONE && fb.kind == FORM_NONE && (!b || fa.kind == FORM_NONE)) return form_add(fa, imm);
    form_index ia = form_index_of(g, a, 1), ib = form_index_of(g, b, scale);
    if (fixed.kind == FORM_NONE && fb.kind == FORM_NONE && ib.stride == PTA_SAME) return form_add(fa, imm + ib.shift);
    if (fixed.kind == FORM_NONE && fa.kind == FORM_NONE && ia.stride == PTA_SAME) return form_add(fb, imm + ia.shift);
    if (fixed.kind != FORM_NONE && !a && !b) return fixed;
    uint32_t var = form_new_var(g);
    form_copy_indexed(g, var, fa, imm, ib);
    form_copy_indexed(g, var, fb, imm, ia);
    form_copy_indexed(g, var, fixed, 0, (form_index){ia.shift + ib.shift, form_both_strides(ia.stride, ib.stride)});
    return form_var(var);
}

/* An element of an array member: each of them. */
static form element_form(generator *g, const ir_insn *lea)
{
    ir_value base;
    int64_t deltas[TYPED_ELEMENTS];
    uint32_t elements = typed_elements(g, lea, 0, &base, deltas);
    if (!elements || g->forms[base].kind != FORM_VAR) return (form){0};
    uint32_t var = form_new_var(g);
    for (uint32_t i = 0; i < elements; i++)
        form_copy(g, var, g->forms[base], deltas[i], PTA_SAME);
    return form_var(var);
}

/* Memory that is taken from the stack as the function runs, below the stack pointer a: no variable of the frame. */
static void copy_alloca(generator *g, uint32_t dst, ir_value a)
{
    form f = a ? g->forms[a] : (form){0};
    if (f.kind != FORM_FRAME || form_is_far(f.value) || g->ir->insns[ir_origin(g->ir, a)].var != IR_RSP) return;
    uint32_t var = form_new_var(g);
    form_emit_address(g, var, GENERATE_LOCAL | g->frame_site, f.value);
    form_copy(g, dst, form_var(var), 0, PTA_ANY | PTA_BACK);
}

/* The object of each operand at an unknown offset. */
static form any_form(generator *g, const ir_value *values, uint32_t count)
{
    uint32_t var = PTA_NO_VAR;
    for (uint32_t i = 0; i < count; i++) {
        form f = values[i] ? g->forms[values[i]] : (form){0};
        if (f.kind == FORM_NONE || f.kind == FORM_TPOFF) continue;
        if (var == PTA_NO_VAR) var = form_new_var(g);
        form_copy(g, var, f, 0, PTA_ANY);
    }
    return var == PTA_NO_VAR ? (form){0} : form_var(var);
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
    uint32_t var = form_new_var(g);
    form_copy(g, var, f, 0, PTA_ALIGN + (uint32_t)step);
    return form_var(var);
}

/* A tag in the low bits is set or cleared: the offset with and without it. */
static form tag_form(generator *g, const ir_insn *insn)
{
    if (insn->b) return any_form(g, (ir_value[]){insn->a, insn->b}, 2);
    form f = g->forms[insn->a];
    if (f.kind == FORM_NONE) return f;
    if (insn->imm < 0 || insn->imm >= 16) return any_form(g, &insn->a, 1);
    uint32_t var = form_new_var(g);
    form_copy(g, var, f, 0, PTA_SAME);
    form_copy(g, var, f, insn->imm, PTA_SAME);
    if (insn->op == IR_XOR) form_copy(g, var, f, -insn->imm, PTA_SAME);
    return form_var(var);
}

/* Opaque instructions whose result is a number, whatever their operands are. */
static bool is_arithmetic(uint16_t mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_DIV: case ZYDIS_MNEMONIC_IDIV: case ZYDIS_MNEMONIC_MUL: case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MULX: case ZYDIS_MNEMONIC_BSF: case ZYDIS_MNEMONIC_BSR: case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_LZCNT: case ZYDIS_MNEMONIC_POPCNT: case ZYDIS_MNEMONIC_RDTSC: case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_BSWAP: case ZYDIS_MNEMONIC_MOVBE: case ZYDIS_MNEMONIC_CPUID: case ZYDIS_MNEMONIC_XGETBV: case ZYDIS_MNEMONIC_RDRAND: case ZYDIS_MNEMONIC_RDSEED:
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

/* --- calls through pointers to member functions ------------------------------------------------------------------------------------
 *
 * Such a pointer is two words (Itanium C++ ABI 2.3): the function, or an odd number that says where it is in the table of the object's
 * class, and what is to be added to the object's address. That is not zero only for a function of a base class that does not lie at
 * the begin of the object. Templates that make such calls (std::thread, std::bind, std::invoke) have the class in their names. */

static bool has_inner_base(const image_type *type, unsigned depth)
{
    if (!type || type->is_declaration || depth > 8) return true;
    for (uint32_t i = 0; i < type->member_count && !type->members[i].name[0]; i++) /* base classes are the first members */
        if (type->members[i].offset || has_inner_base(type->members[i].type, depth + 1)) return true;
    return false;
}

enum { CLASS_NAME = 128 };

/* The class of a pointer to a member function, in a mangled name. */
static bool names_class(const char *m, char class[CLASS_NAME])
{
    char *end;
    unsigned long length = m[1] >= '1' && m[1] <= '9' ? strtoul(m + 1, &end, 10) : 0;
    if (!length || length >= CLASS_NAME || strlen(end) <= length || (end[length] != 'F' && end[length] != 'K')) return false;
    memcpy(class, end, length);
    class[length] = 0;
    return true;
}

/* All classes with pointers to member functions in a function's name are known, and have no base but at their begin. */
static bool adjusts_nothing(const generator *g)
{
    const char *name = g->program->funcs.data[g->func_id].name;
    bool any = false;
    for (const char *m = strncmp(name, "_Z", 2) ? NULL : strchr(name, 'M'); m; m = strchr(m + 1, 'M')) {
        char class[CLASS_NAME];
        if (!names_class(m, class)) continue;
        if (has_inner_base(image_struct_named(g->img, class), 0)) return false;
        any = true;
    }
    return any;
}

static bool loads_at(const ir_func *ir, ir_value v, ir_value *base, int64_t *at)
{
    const ir_insn *load = v ? &ir->insns[v] : NULL;
    if (!load || load->op != IR_LOAD || load->width != 8) return false;
    const ir_insn *access = &ir->insns[load->a];
    if (!access->a || access->b) return false;
    *base = ir_origin(ir, access->a);
    *at = access->imm + load->imm;
    return true;
}

/* The object whose address is adjusted for such a call, by the second word of what the first was found to be odd or not; 0: none. */
static ir_value adjusted_object(const generator *g, const ir_insn *lea)
{
    const ir_func *ir = g->ir;
    ir_value sides[] = {lea->a, lea->b}, base, other;
    int64_t at, first;
    if (!lea->a || !lea->b || lea->scale > 1 || lea->imm) return 0;
    for (unsigned i = 0; i < 2; i++) {
        if (!loads_at(ir, ir_origin(ir, sides[i]), &base, &at)) continue;
        for (ir_value v = 1; v < ir->insn_count; v++) {
            const ir_insn *test = &ir->insns[v];
            if ((test->op != IR_TEST && test->op != IR_AND) || test->b || test->imm != 1 || !test->a) continue;
            if (loads_at(ir, ir_origin(ir, test->a), &other, &first) && other == base && first == at - 8)
                return adjusts_nothing(g) ? sides[1 - i] : 0;
        }
    }
    return 0;
}

static bool has_table(const image_type *type, unsigned depth)
{
    if (!type || type->is_declaration || depth > 8) return true;
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        if (!strncmp(m->name, "_vptr", 5) || (!m->name[0] && has_table(m->type, depth + 1))) return true;
    }
    return false;
}

/* Some class with pointers to member functions in a function's name has virtual functions. */
static bool is_virtual(const generator *g)
{
    const char *name = g->program->funcs.data[g->func_id].name;
    for (const char *m = strncmp(name, "_Z", 2) ? NULL : strchr(name, 'M'); m; m = strchr(m + 1, 'M')) {
        char class[CLASS_NAME];
        if (names_class(m, class) && has_table(image_struct_named(g->img, class), 0)) return true;
    }
    return false;
}

/* Such a call looks for the object's table only if the function is a virtual one. */
bool generate_is_never(const generator *g, const ir_insn *access)
{
    if (!access->a || access->imm || access->width != 8 || access->flags & (IR_WRITE | IR_REP | IR_WIDE)) return false;
    ir_insn sum = *access; /* the object's address and what is to be added */
    if (!access->b) sum = g->ir->insns[ir_origin(g->ir, access->a)];
    return (access->b || sum.op == IR_LEA) && adjusted_object(g, &sum) && !is_virtual(g);
}

/* A number: only the offset of a thread-local variable, loaded or added to, is of interest. */
static form number_form(generator *g, const ir_insn *insn)
{
    if (insn->op == IR_COPY || insn->op == IR_LEA) {
        form of = insn->width == 8 && insn->a && !(insn->op == IR_LEA && insn->b) ? g->forms[insn->a] : (form){0};
        if (of.kind == FORM_VAR && g->kinds[insn->a] == KIND_NUMBER) return form_add(of, insn->op == IR_LEA ? insn->imm : 0); /* see below */
        return of.kind == FORM_TPOFF ? form_add(of, insn->op == IR_LEA ? insn->imm : 0) : (form){0};
    }
    if (insn->op != IR_LOAD) return (form){0};
    const ir_insn *access = &g->ir->insns[insn->a];
    form f, base = access->a ? g->forms[access->a] : (form){0};
    bool constant = insn->width == 8 && !access->b && base.kind == FORM_CONST &&
                    form_word(g, (uint64_t)(base.value + access->imm + insn->imm), &f);
    const image_reloc *reloc = constant ? image_reloc_at(g->img, (uint64_t)(base.value + access->imm + insn->imm)) : NULL;
    /* of a library: the variable stands for its offset */
    if (reloc && reloc->kind == IMAGE_REL_TPOFF && f.kind == FORM_VAR) return f;
    return constant && f.kind == FORM_TPOFF ? f : (form){0};
}

static form value_form(generator *g, ir_value v)
{
    const ir_insn *insn = &g->ir->insns[v];
    g->insn = insn->insn;
    int32_t offset;
    uint8_t base;
    if (insn->op != IR_ENTRY && ir_frame_offset(g->ir, v, &offset, &base))
        return (form){base ? FORM_ALIGNED : FORM_FRAME, 0, offset};
    if (g->kinds[v] == KIND_NUMBER &&
        (insn->op < IR_ACCESS || insn->op == IR_LOAD || insn->op == IR_RESULT || insn->op == IR_CLOBBER))
        return number_form(g, insn);
    switch (insn->op) {
    case IR_ENTRY:
        return ir_frame_offset(g->ir, v, &offset, &base) && !base ? (form){FORM_FRAME, 0, offset} : entry_form(g, v);
    case IR_CONST: return form_const(g, insn->imm);
    case IR_ADDRESS: return (form){FORM_CONST, 0, insn->imm};
    case IR_COPY: return insn->width == 8 ? g->forms[insn->a] : (form){0};
    case IR_EXTRACT: return insn->width == 8 && !insn->imm ? g->forms[insn->a] : (form){0};
    case IR_LEA: {
        if (insn->width != 8) return (form){0};
        ir_value object = adjusted_object(g, insn);
        if (object) return g->forms[object];
        if (!insn->a && insn->b && insn->scale > 1 && linear_rounded(g->ir, insn->b, insn->scale))
            return form_add(form_rounded(g, insn->b, insn->scale), insn->imm);
        form f = element_form(g, insn);
        if (f.kind == FORM_NONE) f = sum_form(g, insn->a, insn->b, insn->scale, insn->imm);
        if (insn->var == IR_RSP && insn->b && f.kind == FORM_VAR) {
            copy_alloca(g, f.var, insn->a);
            copy_alloca(g, f.var, insn->b);
        }
        return f.kind == FORM_NONE && g->kinds[v] & KIND_POINTER ? form_linear(g, insn->a, insn->b, insn->scale) : f;
    }
    case IR_SUB:
        if (insn->width != 8) return (form){0};
        if (g->forms[insn->a].kind == FORM_NONE)
            return g->kinds[v] & KIND_POINTER ? form_linear(g, insn->a, insn->b, -1) : (form){0};
        if (!insn->b) return form_add(g->forms[insn->a], -insn->imm);
        {
            form_index index = form_index_of(g, insn->b, -1);
            uint32_t var = form_new_var(g);
            form_copy_indexed(g, var, g->forms[insn->a], 0, index);
            copy_alloca(g, var, insn->a);
            return form_var(var);
        }
    case IR_AND: return insn->width == 8 ? and_form(g, insn) : (form){0};
    case IR_OR:
    case IR_XOR: return insn->width == 8 ? tag_form(g, insn) : (form){0};
    case IR_SHL:
        if (insn->width == 8 && !insn->b && insn->imm < 8 && linear_rounded(g->ir, insn->a, 1ull << insn->imm))
            return form_rounded(g, insn->a, 1ull << insn->imm);
        __attribute__((fallthrough));
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
            uint32_t var = form_new_var(g);
            form_copy(g, var, a, 0, PTA_SAME);
            form_copy(g, var, b, 0, PTA_SAME);
            return form_var(var);
        }
    case IR_OPAQUE: return opaque_form(g, insn);
    case IR_LOAD:
        if (g->emptied && g->emptied[v].holds) return g->emptied[v].holds == EMPTIED ? (form){0} : g->forms[g->emptied[v].holds];
        return generate_load(g, insn);
    case IR_RESULT:
    case IR_CLOBBER: return generate_result(g, insn);
    case IR_PAD: return insn->a ? g->forms[insn->a] : (form){0};
    case IR_ACCESS: generate_access(g, insn); return (form){0};
    case IR_STORE: generate_store(g, insn); return (form){0};
    case IR_CALL:
    case IR_TAIL: generate_call(g, v); return (form){0};
    case IR_RET: generate_return(g, insn); return (form){0};
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
    case IR_CONST: return form_const(g, insn->imm).kind != FORM_NONE;
    case IR_CLOBBER: return insn->b && points[insn->b];
    case IR_COPY:
    case IR_EXTRACT:
    case IR_INSERT:
    case IR_SUB:
    case IR_SHR:
    case IR_SAR: return points[insn->a];
    case IR_SHL: {
        ir_value rounded = insn->b || insn->imm >= 8 ? 0 : linear_rounded(g->ir, insn->a, 1ull << insn->imm);
        return points[rounded ? rounded : insn->a];
    }
    case IR_AND:
    case IR_OR:
    case IR_XOR:
    case IR_SELECT: return points[insn->a] || (insn->b && points[insn->b]);
    case IR_LEA:
        if (!insn->a && insn->b && insn->scale > 1 && linear_rounded(g->ir, insn->b, insn->scale))
            return points[linear_rounded(g->ir, insn->b, insn->scale)];
        return (insn->a ? points[insn->a] : form_const(g, insn->imm).kind != FORM_NONE) ||
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
                g->forms[v] = form_var(form_new_var(g));
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
            g->insn = phi->insn;
            for (uint32_t a = 0; a < phi->b; a++) {
                ir_value v = ir->args[phi->a + a];
                if (v && g->forms[v].kind != FORM_TPOFF) form_copy(g, f.var, g->forms[v], 0, PTA_SAME);
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
    g.left = passing_leavings(program, module, func);
    g.types = typed_infer(&g);
    g.guesses = ir->loop_count ? typed_guess(&g) : g.types;
    g.made = made_infer(&g);
    g.emptied = emptied_find(&g);
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (g.types[v].number && g.kinds[v] == KIND_UNKNOWN) g.kinds[v] = KIND_NUMBER;
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
    generate_marches(out);
    generate_hoisted(out);
    free(g.forms);
    free(g.call_of);
    free(g.kinds);
    free(g.left);
    if (g.guesses != g.types) free(g.guesses);
    free(g.types);
    free(g.made);
    free(g.emptied);
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

uint32_t generate_stack(const ir_func *ir)
{
    int64_t most = 0;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        int32_t offset;
        uint8_t base;
        int64_t end = 0;
        if (insn->op == IR_ENTRY && insn->var >= IR_SLOT && insn->var - IR_SLOT < (int)ir->slot_count) {
            const ir_slot *slot = &ir->slots[insn->var - IR_SLOT];
            if (!slot->base && slot->offset >= 8) end = slot->offset + slot->size;
        } else if (insn->op == IR_ACCESS && !(insn->flags & IR_PROMOTED) && insn->a &&
                   ir_frame_offset(ir, insn->a, &offset, &base) && !base) {
            if (offset + insn->imm >= 8 || insn->b) end = offset + insn->imm + insn->width;
        } else if ((insn->op == IR_LEA || insn->op == IR_COPY) && insn->var != IR_RSP && insn->var != IR_RBP &&
                   ir_frame_offset(ir, v, &offset, &base) && !base && offset >= 8) {
            end = offset;
        } else {
            continue;
        }
        bool walks = end && (insn->op == IR_LEA || insn->op == IR_COPY || insn->b);
        if (walks && end < GENERATE_STACK) end = GENERATE_STACK;
        if (end > most) most = end;
    }
    return most < 1 << 20 ? (uint32_t)most : 1 << 20;
}
