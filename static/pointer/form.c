/* Values as forms, and forms as variables of statements. */
#include "static/pointer/form.h"

#include <stdlib.h>

#include "static/pointer/kinds.h"
#include "static/pointer/linear.h"
#include "static/pointer/offset.h"

uint32_t form_new_var(generator *g)
{
    return g->out->var_count++;
}

void form_emit(generator *g, pta_stmt stmt)
{
    stmt.insn = g->insn;
    vec_push(&g->out->stmts, stmt);
}

static uint64_t form_hash(uint8_t kind, int64_t value)
{
    uint64_t h = ((uint64_t)value ^ (uint64_t)kind << 56) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* The variable of a form that is not one itself; *fresh: it has no statements yet. */
uint32_t form_known(generator *g, uint8_t kind, int64_t value, bool *fresh)
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
    g->known[at] = (known_form){kind, value, form_new_var(g)};
    g->known_count++;
    *fresh = true;
    return g->known[at].var;
}

void form_emit_address(generator *g, uint32_t var, uint32_t site, int64_t offset)
{
    form_emit(g, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, (int32_t)offset}, .ref = site});
}

static void emit_places(generator *g, uint32_t var, const address_space *space, int64_t at)
{
    address_place places[2];
    uint32_t n = address_places(space, at, places);
    for (uint32_t i = 0; i < n; i++)
        form_emit_address(g, var, places[i].site, places[i].offset);
}

static void emit_frame(generator *g, uint32_t var, int64_t at)
{
    address_place places[2];
    uint32_t n = address_places(&g->frame, at, places);
    for (uint32_t i = 0; i < n; i++)
        form_emit_address(g, var, GENERATE_LOCAL | places[i].site, places[i].offset);
    if (!address_find(&g->frame, at)) form_emit_address(g, var, GENERATE_LOCAL | g->frame_site, at);
}

/* The return address, which is of this frame, with the arguments of the caller behind it. */
static bool is_return_slot(form f)
{
    return f.kind == FORM_FRAME && f.value >= 0 && f.value < 8;
}

static void emit_const(generator *g, uint32_t var, uint64_t addr)
{
    const lift_func *f = image_is_code(g->img, addr) ? lift_func_at(g->program->modules[g->program->funcs.data[g->func_id].module],
                                                                    addr)
                                                     : NULL;
    if (f)
        form_emit_address(g, var, generate_chosen_site(g->module, f), 0);
    else
        emit_places(g, var, g->module->statics, (int64_t)addr);
}

enum { FAR = 1 << 29 }; /* constants of statements are smaller, so that two of them can be added */

bool form_is_far(int64_t delta)
{
    return delta < -FAR || delta > FAR;
}

/* A constant that no statement has room for: somewhere in what `src` points to. */
static pta_operand somewhere(generator *g, pta_operand src)
{
    uint32_t var = form_new_var(g);
    form_emit(g, (pta_stmt){.kind = PTA_COPY, .dst = {var, 0}, .src = src, .stride = PTA_ANY | PTA_BACK});
    return (pta_operand){var, 0};
}

/* A form as an operand of a statement. */
pta_operand form_operand(generator *g, form f)
{
    bool fresh;
    uint32_t var;
    switch (f.kind) {
    case FORM_VAR:
        return form_is_far(f.value) ? somewhere(g, (pta_operand){f.var, 0}) : (pta_operand){f.var, (int32_t)f.value};
    case FORM_CONST:
        var = form_known(g, FORM_CONST, f.value, &fresh);
        if (fresh) emit_const(g, var, (uint64_t)f.value);
        return (pta_operand){var, 0};
    case FORM_FRAME:
        if (form_is_far(f.value)) return somewhere(g, form_operand(g, (form){FORM_FRAME, 0, 0}));
        if (f.value >= 8) return (pta_operand){PTA_RSP, (int32_t)f.value};
        var = form_known(g, FORM_FRAME, f.value, &fresh);
        if (fresh) emit_frame(g, var, f.value);
        if (fresh && is_return_slot(f))
            form_emit(g, (pta_stmt){.kind = PTA_COPY, .dst = {var, 0}, .src = {PTA_RSP, (int32_t)f.value}});
        return (pta_operand){var, 0};
    case FORM_ALIGNED:
        var = form_known(g, FORM_ALIGNED, 0, &fresh);
        if (fresh) form_emit_address(g, var, GENERATE_LOCAL | g->aligned_site, 0);
        return form_is_far(f.value) ? somewhere(g, (pta_operand){var, 0}) : (pta_operand){var, (int32_t)f.value};
    case FORM_TLS: {
        int64_t at = f.value + (int64_t)g->img->tls_size;
        var = form_known(g, FORM_TLS, f.value, &fresh);
        if (fresh) emit_places(g, var, g->module->tls, at);
        return (pta_operand){var, 0};
    }
    default:
        return (pta_operand){PTA_NO_VAR, 0};
    }
}

/* The same for an access to exactly this address: it can mean one object only. */
pta_operand form_direct(generator *g, form f)
{
    if (f.kind != FORM_CONST) return form_operand(g, f);
    bool fresh;
    uint32_t var = form_known(g, FORM_DIRECT, f.value, &fresh);
    const address_home *home = fresh ? address_find(g->module->statics, f.value) : NULL;
    if (home) form_emit_address(g, var, home->site, f.value - home->start);
    return (pta_operand){var, 0};
}

static pta_operand frame_indexed(generator *g, int64_t at, uint32_t step)
{
    bool fresh;
    address_place places[ADDRESS_INDEXED];
    uint32_t var = form_known(g, FORM_FRAMED, at * 4096 + step, &fresh);
    uint32_t n = fresh ? address_indexed(&g->frame, at, step, places) : 0;
    for (uint32_t i = 0; i < n; i++)
        form_emit_address(g, var, GENERATE_LOCAL | places[i].site, places[i].offset);
    if (fresh && !address_find(&g->frame, at)) form_emit_address(g, var, GENERATE_LOCAL | g->frame_site, at);
    return (pta_operand){var, 0};
}

/* The same for a constant to which an index is added. */
pta_operand form_indexed(generator *g, form f, uint32_t stride)
{
    uint32_t step = stride & ~(uint32_t)PTA_FLAGS;
    bool fresh, frame = f.kind == FORM_FRAME && f.value < 0 && !form_is_far(f.value) && g->frame.homes.len;
    if ((f.kind != FORM_CONST && !frame) || !step || step >= 4096) return form_operand(g, f);
    if (frame) return frame_indexed(g, f.value, step);
    if (image_is_code(g->img, (uint64_t)f.value)) return form_operand(g, f);
    address_place places[ADDRESS_INDEXED];
    uint32_t var = form_known(g, FORM_INDEXED, f.value * 4096 + step, &fresh);
    uint32_t n = fresh ? address_indexed(g->module->statics, f.value, step, places) : 0;
    for (uint32_t i = 0; i < n; i++)
        form_emit_address(g, var, places[i].site, places[i].offset);
    return (pta_operand){var, 0};
}

form form_var(uint32_t var)
{
    return (form){FORM_VAR, var, 0};
}

form form_site(generator *g, uint32_t site)
{
    bool fresh;
    uint32_t var = form_known(g, FORM_SITE, site, &fresh);
    bool external = site == g->module->external;
    if (fresh)
        form_emit(g, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .ref = site,
                           .stride = external ? PTA_ANY : PTA_SAME});
    return form_var(var);
}

form form_add(form f, int64_t k)
{
    if (f.kind != FORM_NONE) f.value = linear_sum(f.value, k);
    return f;
}

void form_shift(pta_operand *at, int64_t delta, uint32_t *stride)
{
    int64_t sum = linear_sum(at->delta, delta);
    at->delta = form_is_far(sum) ? 0 : (int32_t)sum;
    if (form_is_far(sum)) *stride = PTA_ANY | PTA_BACK;
}

/* dst may be what `f` is, changed as `stride` says after adding delta. */
void form_copy(generator *g, uint32_t dst, form f, int64_t delta, uint32_t stride)
{
    pta_operand src = stride == PTA_SAME || stride >= PTA_ALIGN ? form_operand(g, f) : form_indexed(g, f, stride);
    if (src.var == PTA_NO_VAR) return;
    if (src.var == dst && !src.delta && !delta && stride == PTA_SAME) return;
    form_shift(&src, delta, &stride);
    form_emit(g, (pta_stmt){.kind = PTA_COPY, .dst = {dst, 0}, .src = src, .stride = stride});
}

form_index form_index_of(const generator *g, ir_value v, int64_t scale)
{
    form_index index = {0, PTA_SAME};
    if (!v) return index;
    bool back;
    uint64_t m = linear_stride(g->ir, v, scale, &index.shift, &back);
    if (m) index.stride = (uint32_t)m | (back ? PTA_BACK : 0);
    return index;
}

bool form_is_shifted(form_index index)
{
    int64_t stride = index.stride & ~(uint32_t)PTA_FLAGS;
    return index.stride != PTA_SAME && index.shift && (index.shift < 0 || index.shift >= stride || index.stride & PTA_BACK);
}

form_index form_without_shift(form_index index)
{
    uint64_t stride = index.stride & ~(uint32_t)PTA_FLAGS;
    return (form_index){0, (uint32_t)offset_gcd(stride, linear_magnitude(index.shift)) | (index.stride & PTA_FLAGS)};
}

void form_copy_indexed(generator *g, uint32_t dst, form f, int64_t delta, form_index index)
{
    form_copy(g, dst, f, delta + index.shift, index.stride);
    if (form_is_shifted(index)) form_copy(g, dst, f, delta, form_without_shift(index).stride);
}

form form_const(const generator *g, int64_t value)
{
    return kinds_is_address(g->img, value) ? (form){FORM_CONST, 0, value} : (form){0};
}

/* Whether a relocation for thread-local storage is about a variable of this module: its place in the block may be 0. */
bool form_is_own_tls(const image *img, const image_reloc *reloc)
{
    if (!reloc->name || reloc->target) return true;
    for (uint32_t i = img->symbol_count; i-- > 0 && img->symbols[i].type == IMAGE_SYM_TLS;)
        if (!strcmp(img->symbols[i].name, reloc->name)) return true;
    return false;
}

/* What the loader leaves in a word. */
static form reloc_form(generator *g, const image_reloc *reloc)
{
    uint32_t named = g->module->slots[reloc - g->img->relocs];
    switch (reloc->kind) {
    case IMAGE_REL_ADDR:
        if (named != PTA_NO_SITE) return form_add(form_site(g, named), reloc->addend);
        __attribute__((fallthrough));
    case IMAGE_REL_GUESS: return (form){FORM_CONST, 0, (int64_t)reloc->target};
    case IMAGE_REL_TPOFF:
        return form_is_own_tls(g->img, reloc) ? (form){FORM_TPOFF, 0, (int64_t)reloc->target - (int64_t)g->img->tls_size}
                                              : form_site(g, named == PTA_NO_SITE ? g->module->external : named);
    case IMAGE_REL_SYMBOL:
        return form_add(form_site(g, named == PTA_NO_SITE ? g->module->external : named), reloc->addend);
    default: return (form){0};
    }
}

/* A word that never changes after start-up. */
bool form_word(generator *g, uint64_t addr, form *f)
{
    const image_reloc *reloc = image_reloc_at(g->img, addr);
    bool slot = reloc && reloc->slot && reloc->kind != IMAGE_REL_IFUNC;
    if (!slot && !image_is_constant(g->img, addr, 8)) return false;
    *f = reloc ? reloc_form(g, reloc) : (form){0};
    return true;
}

uint32_t form_both_strides(uint32_t a, uint32_t b)
{
    uint32_t flags = (a | b) & PTA_FLAGS;
    a &= ~PTA_FLAGS;
    b &= ~PTA_FLAGS;
    return (a == PTA_SAME ? b : b == PTA_SAME ? a : (uint32_t)offset_gcd(a, b)) | flags;
}

form form_linear(generator *g, ir_value a, ir_value b, int64_t scale)
{
    ir_value pointer = linear_pointer(g->ir, g->kinds, a, b, scale);
    if (!pointer || g->forms[pointer].kind == FORM_NONE || g->forms[pointer].kind == FORM_TPOFF) return (form){0};
    uint32_t var = form_new_var(g);
    form_copy(g, var, g->forms[pointer], 0, PTA_ANY | PTA_BACK);
    return form_var(var);
}

form form_rounded(generator *g, ir_value v, uint64_t scale)
{
    ir_value p = v ? linear_rounded(g->ir, v, scale) : 0;
    if (!p || g->forms[p].kind == FORM_NONE || g->forms[p].kind == FORM_TPOFF) return (form){0};
    uint32_t var = form_new_var(g);
    form_copy(g, var, g->forms[p], 0, scale <= 16 ? PTA_ALIGN + (uint32_t)scale : PTA_ANY | PTA_BACK);
    return form_var(var);
}

/* A pointer is added to a number: the other operand is none, whatever it looks like. */
void form_settle(const generator *g, ir_value a, ir_value b, form *fa, form *fb)
{
    if (!a || !b) return;
    if (g->kinds[a] == KIND_POINTER && g->kinds[b] != KIND_POINTER && fb->kind != FORM_TPOFF) fb->kind = FORM_NONE;
    if (g->kinds[b] == KIND_POINTER && g->kinds[a] != KIND_POINTER && fa->kind != FORM_TPOFF) fa->kind = FORM_NONE;
}

uint64_t form_number(const generator *g, ir_value v)
{
    const ir_insn *insn = v ? &g->ir->insns[ir_origin(g->ir, v)] : NULL;
    return insn && insn->op == IR_CONST && insn->imm > 0 && insn->imm < 1 << 24 ? (uint64_t)insn->imm : 0;
}
