/* What passing.c needs of a function and can be told from its own code and declaration: values are looked at once, and
 * what is found between functions is found on what remains, a few numbers for each call. It is kept from one program to
 * the next. */
#include <stdlib.h>

#include "static/pointer/kinds.h"
#include "static/pointer/passing.h"

static const uint8_t arg_of[IR_FLAGS] = {
    /* + 1 */
    [IR_RDI] = PTA_RDI + 1, [IR_RSI] = PTA_RSI + 1, [IR_RDX] = PTA_RDX + 1,
    [IR_RCX] = PTA_RCX + 1, [IR_R8] = PTA_R8 + 1,   [IR_R9] = PTA_R9 + 1,
};

unsigned passing_argument(const ir_insn *insn)
{
    return insn->op == IR_ENTRY && insn->var < IR_FLAGS ? arg_of[insn->var] : 0;
}

/* --- declarations --------------------------------------------------------------------------------------------------------- */

static bool is_aggregate(const image_type *type)
{
    return !type || type->kind == IMAGE_TYPE_STRUCT || type->kind == IMAGE_TYPE_UNION ||
           type->kind == IMAGE_TYPE_ARRAY || type->kind == IMAGE_TYPE_OTHER;
}

/* The most registers that a value of a type may need. */
static unsigned most_registers(const image_type *type)
{
    if (is_aggregate(type)) return 2;
    return type->kind == IMAGE_TYPE_FLOAT ? 0 : type->size > 8 ? 2 : 1;
}

/* A function whose name has a suffix is a compiler's variant, with other arguments than declared. */
static void read_declaration(const image *img, const lift_func *func, passing_local *out)
{
    const image_function *debug = img->has_debug ? image_function_at(img, func->entry) : NULL;
    out->takes = PASSING_ALL;
    out->gives = PASSING_RET | PASSING_RET2;
    if (!debug || debug->start != func->entry) return;
    out->pair = debug->returns && most_registers(debug->returns) > 1;
    if (!out->pair) out->gives = PASSING_RET;
    if (strchr(func->name, '.')) return;
    unsigned count = debug->returns && is_aggregate(debug->returns);
    for (uint32_t i = 0; i < debug->parameter_count && count < PASSING_ARGS; i++)
        count += most_registers(debug->variables[i].type);
    out->takes = count < PASSING_ARGS ? (uint16_t)((1u << count) - 1) : PASSING_ALL;
    out->sure = (uint8_t)out->takes;
}

/* --- what values are made of ------------------------------------------------------------------------------------------------ */

/* Per value, over copies, phis and what calls spare: the arguments that it is made of, and PASSING_SECOND if second
 * results too. */
static uint8_t *find_sources(const ir_func *ir)
{
    uint8_t *from = base_alloc_zero(ir->insn_count, 1);
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        unsigned argument = passing_argument(insn);
        if (argument) from[v] = (uint8_t)(1u << (argument - 1));
        if (insn->op == IR_RESULT && insn->var == IR_RDX) from[v] = PASSING_SECOND;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (ir_value v = 1; v < ir->insn_count; v++) {
            const ir_insn *insn = &ir->insns[v];
            uint8_t all = from[v];
            if (insn->op == IR_COPY || insn->op == IR_EXTRACT) all |= from[insn->a];
            if (insn->op == IR_RESULT || insn->op == IR_CLOBBER) all |= from[insn->b];
            for (uint32_t i = 0; insn->op == IR_PHI && i < insn->b; i++)
                all |= from[ir->args[insn->a + i]];
            changed |= all != from[v];
            from[v] = all;
        }
    }
    return from;
}

typedef struct {
    const ir_func *ir;
    const uint8_t *from;
    uint32_t *seen; /* per value: the last round that came here */
    uint32_t round;
    VEC(ir_value) work;
    passing_local *out;
} seconds;

static void visit(seconds *s, ir_value v)
{
    if (!v || s->seen[v] == s->round || !(s->from[v] & PASSING_SECOND)) return;
    s->seen[v] = s->round;
    vec_push(&s->work, v);
}

/* The number of a call, or PTA_NO_FUNC: it is none, but a system call. */
static uint32_t number_of(const passing_local *local, ir_value call)
{
    uint32_t low = 0, high = local->calls.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (local->calls.data[mid].call < call)
            low = mid + 1;
        else
            high = mid;
    }
    return low < local->calls.len && local->calls.data[low].call == call ? low : PTA_NO_FUNC;
}

/* Notes the nearest second results that a value is made of, for what is wanted at `entry`. */
static void list_seconds(seconds *s, uint32_t entry, ir_value first)
{
    visit(s, first);
    while (s->work.len) {
        const ir_insn *insn = &s->ir->insns[s->work.data[--s->work.len]];
        uint32_t call = insn->op == IR_RESULT && insn->var == IR_RDX ? number_of(s->out, insn->a) : PTA_NO_FUNC;
        if (call != PTA_NO_FUNC) {
            vec_push(&s->out->seconds, (passing_second){entry, call});
            continue; /* what it was before the call: see passing_spared */
        }
        if (insn->op == IR_COPY || insn->op == IR_EXTRACT) visit(s, insn->a);
        if (insn->op == IR_RESULT || insn->op == IR_CLOBBER) visit(s, insn->b);
        for (uint32_t i = 0; insn->op == IR_PHI && i < insn->b; i++)
            visit(s, s->ir->args[insn->a + i]);
    }
}

/* Whether a value that is in the second return register at the end was computed to be there; marks what that is said
 * of. */
static bool is_meant(const ir_func *ir, const bool *used, bool *asked, ir_value v, unsigned depth)
{
    enum { DEPTH = 4 };
    const ir_insn *insn = &ir->insns[v];
    if (!v || depth > DEPTH || used[v]) return false;
    asked[v] = true;
    if (insn->op == IR_PHI) {
        for (uint32_t i = 0; i < insn->b; i++)
            if (!is_meant(ir, used, asked, ir->args[insn->a + i], depth + 1)) return false;
        return insn->b > 0;
    }
    return insn->op != IR_ENTRY && insn->op != IR_RESULT && insn->op != IR_CLOBBER && insn->op != IR_UNDEF &&
           insn->op != IR_OPAQUE;
}

/* Its returns, and the second register there. */
static void read_returns(const ir_func *ir, const bool *used, seconds *s)
{
    passing_local *out = s->out;
    bool *asked = base_alloc_zero(ir->insn_count, sizeof *asked), ends = false, meant = true;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_RET) continue;
        ir_value second = ir->args[ir->insns[v].a + IR_RET_RDX];
        out->ended |= s->from[second] & PASSING_ALL;
        list_seconds(s, PASSING_ENDED, second);
        meant = meant && is_meant(ir, used, asked, second, 0);
        ends = true;
    }
    out->means_second = ends && meant;
    for (uint32_t i = 0; out->means_second && i < out->calls.len; i++)
        for (unsigned a = 0; a < PASSING_ARGS; a++)
            if (asked[ir->args[ir->insns[out->calls.data[i].call].a + passing_call_args[a]]])
                out->calls.data[i].meant |= (uint8_t)(1u << a);
    free(asked);
}

static void read_calls(const lift_module *module, const lift_func *func, passing_local *out)
{
    const ir_func *ir = func->ir;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        if (insn->op == IR_ADDRESS || insn->op == IR_CONST) {
            const lift_func *f =
                image_is_code(module->img, (uint64_t)insn->imm) ? lift_func_at(module, (uint64_t)insn->imm) : NULL;
            if (f) vec_push(&out->taken, f->id);
        }
        if (insn->op != IR_CALL && insn->op != IR_TAIL) continue;
        vec_push(&out->calls,
                 (passing_call){.call = v, .name = generate_name(module, func, insn), .tail = insn->op == IR_TAIL});
    }
}

void passing_read(const lift_module *module, const lift_func *func, passing_local *out)
{
    *out = (passing_local){.known = true};
    read_declaration(module->img, func, out);
    const ir_func *ir = func->ir;
    if (!ir) return;
    read_calls(module, func, out);
    bool *used = kinds_used(ir);
    uint8_t *from = find_sources(ir);
    seconds s = {.ir = ir, .from = from, .seen = base_alloc_zero(ir->insn_count, sizeof *s.seen), .out = out};
    ir_value *spared = base_alloc_zero(out->calls.len + 1, sizeof *spared);
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        uint32_t call = insn->op == IR_RESULT && insn->var == IR_RDX ? number_of(out, insn->a) : PTA_NO_FUNC;
        if (call != PTA_NO_FUNC) spared[call] = insn->b;
    }
    for (uint32_t i = 0; i < out->calls.len; i++) {
        for (unsigned a = 0; a < PASSING_ARGS; a++) {
            ir_value v = ir->args[ir->insns[out->calls.data[i].call].a + passing_call_args[a]];
            out->calls.data[i].from[a] = from[v];
            s.round++;
            list_seconds(&s, passing_entry(i, a), v);
        }
        s.round++;
        list_seconds(&s, passing_spared(i), spared[i]);
    }
    s.round++;
    read_returns(ir, used, &s);
    s.round++;
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (used[v]) {
            out->used |= from[v] & PASSING_ALL;
            list_seconds(&s, PASSING_USED, v);
        }
    free(spared);
    vec_free(&s.work);
    free(s.seen);
    free(from);
    free(used);
}

void passing_local_free(passing_local *local)
{
    vec_free(&local->taken);
    vec_free(&local->calls);
    vec_free(&local->seconds);
    for (uint32_t i = 0; i < local->left.len; i++)
        free(local->left.data[i].bits);
    vec_free(&local->left);
    *local = (passing_local){0};
}
