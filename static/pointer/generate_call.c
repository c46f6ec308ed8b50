/* Calls by the System V ABI as statements: whom they name, what they pass, what comes back. */
#include "static/pointer/form.h"
#include "static/pointer/kinds.h"
#include "static/pointer/linear.h"
#include "static/pointer/passing.h"
#include "static/pointer/typed.h"

/* --- whom a call names ---------------------------------------------------------------------------------------------------- */

enum { NAME_NONE, NAME_UNKNOWN, NAME_PLT, NAME_FUNC, NAME_SLOT, NAME_BITS = 3 };

static uint32_t name_of(uint32_t kind, uint64_t index)
{
    return kind | (uint32_t)index << NAME_BITS;
}

uint32_t generate_name(const lift_module *module, const lift_func *func, const ir_insn *call)
{
    uint64_t target = (uint64_t)call->imm;
    if (!target) return NAME_NONE;
    const lift_insn *at = call->insn < func->insn_count ? &func->insns[call->insn] : NULL; /* NULL: a function without any */
    const bool falls = !at || target == at->addr + at->len; /* which it may do behind a call of its own */
    if (!falls && (at->flow == FLOW_CALL_SLOT || at->flow == FLOW_JUMP_SLOT)) {
        const image_reloc *reloc = image_reloc_at(module->img, target);
        return reloc && reloc->slot ? name_of(NAME_SLOT, (uint64_t)(reloc - module->img->relocs)) : NAME_NONE;
    }
    const image_plt *plt = image_plt_at(module->img, target);
    if (plt) return name_of(NAME_PLT, (uint64_t)(plt - module->img->plts));
    const lift_func *f = lift_func_at(module, target);
    return f ? name_of(NAME_FUNC, f->id) : NAME_UNKNOWN;
}

static uint32_t slot_func(const pta_program *program, const generate_module *module, uint32_t m, uint32_t index)
{
    const image_reloc *reloc = &program->modules[m]->img->relocs[index];
    uint32_t site = module->slots[index];
    if (reloc->kind == IMAGE_REL_ADDR && site == PTA_NO_SITE) {
        const lift_func *f = lift_func_at(program->modules[m], reloc->target);
        return f ? generate_chosen(module, f) : PTA_NO_FUNC;
    }
    if (reloc->kind != IMAGE_REL_SYMBOL && reloc->kind != IMAGE_REL_ADDR) return PTA_NO_FUNC;
    if (site == PTA_NO_SITE) return module->unknown;
    return program->sites.data[site].kind == PTA_FUNCTION ? program->sites.data[site].func : PTA_NO_FUNC;
}

uint32_t generate_named(const pta_program *program, const generate_module *module, uint32_t m, uint32_t name)
{
    uint32_t index = name >> NAME_BITS;
    switch (name & ((1u << NAME_BITS) - 1)) {
    case NAME_NONE: return PTA_NO_FUNC;
    case NAME_PLT: return module->plts[index] == PTA_NO_FUNC ? module->unknown : module->plts[index];
    case NAME_FUNC: return module->chosen[index];
    case NAME_SLOT: return slot_func(program, module, m, index);
    default: return module->unknown;
    }
}

uint32_t generate_callee(const pta_program *program, const generate_module *module, uint32_t func, const ir_insn *call)
{
    const pta_func *f = &program->funcs.data[func];
    return generate_named(program, module, f->module, generate_name(program->modules[f->module], f->lift, call));
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
        uint32_t named = g->module->slots[off - g->img->relocs];
        if (!form_is_own_tls(g->img, off)) return *f = form_site(g, named == PTA_NO_SITE ? g->module->external : named), true;
        offset = off->target;
    } else {
        image_read(g->img, (uint64_t)arg.value + 8, &offset, 8);
    }
    *f = (form){FORM_TLS, 0, (int64_t)offset - (int64_t)g->img->tls_size};
    return true;
}

/* The bytes on the stack that a callee may access, return address included: what it accesses itself, and at least what the
 * caller has copied there as a block, of which it may pass on the address. */
static uint32_t passed_bytes(const generator *g, uint32_t callee, int64_t sp)
{
    uint32_t bytes = callee == PTA_NO_FUNC ? g->program->stack : g->program->funcs.data[callee].stack;
    uint64_t block = g->block_at == sp ? g->block_size + 8 : 0;
    if (bytes < GENERATE_STACK) bytes = GENERATE_STACK;
    return block > bytes && block < 1 << 20 ? (uint32_t)block : bytes;
}

/* The stack pointer that a callee is entered with: the outgoing arguments, not the whole frame. */
static pta_operand callee_stack(generator *g, form sp, uint32_t callee)
{
    bool fresh;
    if (sp.kind != FORM_FRAME || sp.value >= 8) return form_operand(g, form_add(sp, -8));
    int64_t at = sp.value - 8;
    uint32_t bytes = passed_bytes(g, callee, sp.value);
    uint32_t var = form_known(g, FORM_STACK, at * (1 << 21) + bytes, &fresh);
    if (fresh) {
        form_emit_address(g, var, GENERATE_LOCAL | g->out->sites.len, 0);
        vec_push(&g->out->sites, (pta_site){.kind = PTA_FRAME, .func = g->func_id, .memory = GENERATE_LOCAL | g->frame_site,
                                            .start = (uint64_t)at, .base = at, .size = bytes, .align = 8,
                                            .name = "arguments"});
    }
    return (pta_operand){var, 0};
}

enum { WORD = 8 };

/* Promoted slots, as the callee sees them on its stack. What lies there is this call's alone: the next one may push other things
 * to the same place, so it has memory of its own. */
static pta_operand pass_slots(generator *g, const ir_insn *call, pta_operand stack)
{
    const ir_value *args = g->ir->args + call->a;
    form sp = args[IR_CALL_RSP] ? g->forms[args[IR_CALL_RSP]] : (form){0};
    bool tail = call->op == IR_TAIL, own = !tail && stack.var != PTA_NO_VAR && sp.kind == FORM_FRAME && sp.value < 8;
    uint32_t var = PTA_NO_VAR;
    for (uint32_t i = IR_CALL_ARGS; i < call->b; i++) {
        int64_t offset = 8 * (int64_t)(i - IR_CALL_ARGS);
        pta_operand value = args[i] ? form_operand(g, g->forms[args[i]]) : (pta_operand){PTA_NO_VAR, 0}, at;
        if (value.var == PTA_NO_VAR) continue;
        if (own && var == PTA_NO_VAR) {
            uint32_t site = g->out->sites.len;
            var = form_new_var(g);
            form_emit_address(g, var, GENERATE_LOCAL | site, 0);
            vec_push(&g->out->sites, (pta_site){.kind = PTA_FRAME, .func = g->func_id, .memory = GENERATE_LOCAL | site,
                                                .start = (uint64_t)(sp.value - 8), .size = 8 * (call->b - IR_CALL_ARGS + 1), .align = 8,
                                                .name = "arguments"});
        }
        at = own ? (pta_operand){var, (int32_t)offset + 8} : form_operand(g, form_add(sp, offset + (tail ? 8 : 0)));
        if (at.var != PTA_NO_VAR) form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = at, .src = value});
    }
    if (var == PTA_NO_VAR) return stack;
    uint32_t both = form_new_var(g);
    form_emit(g, (pta_stmt){.kind = PTA_COPY, .dst = {both, 0}, .src = stack});
    form_emit(g, (pta_stmt){.kind = PTA_COPY, .dst = {both, 0}, .src = {var, 0}});
    return (pta_operand){both, 0};
}

/* The address of a unique pointer of which is known what it holds (emptied.c): that alone, in memory of its own. */
static pta_operand pass_pointer(generator *g, const emptied *pointer)
{
    uint32_t var = form_new_var(g), site = g->out->sites.len;
    form_emit_address(g, var, GENERATE_LOCAL | site, 0);
    vec_push(&g->out->sites, (pta_site){.kind = PTA_FRAME, .func = g->func_id, .memory = GENERATE_LOCAL | site,
                                        .start = (uint64_t)(int64_t)pointer->at, .size = WORD, .align = WORD,
                                        .name = "arguments"});
    pta_operand held = pointer->holds == EMPTIED ? (pta_operand){PTA_NO_VAR, 0} : form_operand(g, g->forms[pointer->holds]);
    if (held.var != PTA_NO_VAR) form_emit(g, (pta_stmt){.kind = PTA_STORE, .dst = {var, 0}, .src = held});
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

enum { DEPTH = 6 };

/* A message of a few words may be a pointer to an object that changes hands (`send(fd, &request, sizeof request, 0)`). Which
 * descriptor leads where is not known: what is received may be any such message. Longer ones, and those of any length, are
 * taken for text and records. */
static void generate_message(generator *g, const pta_call *call, const ir_value *args)
{
    static const char *const sends[] = {"write", "send", "sendto", "mq_send", "mq_timedsend"};
    static const char *const receives[] = {"read", "recv", "recvfrom", "mq_receive", "mq_timedreceive"};
    enum { MOST_WORDS = 4 };
    const pta_func *f = &g->program->funcs.data[call->func];
    uint64_t size = form_number(g, args[IR_CALL_RDX]);
    if (f->lift || !size || size % WORD || size > MOST_WORDS * WORD) return;
    bool to = false, from = false;
    for (unsigned i = 0; i < sizeof sends / sizeof *sends; i++) {
        to |= !strcmp(f->name, sends[i]);
        from |= !strcmp(f->name, receives[i]);
    }
    if (!to && !from) return;
    pta_operand wire = form_operand(g, form_site(g, g->module->messages));
    generate_block(g, to ? wire : call->args[PTA_RSI], to ? call->args[PTA_RSI] : wire, size);
}

/* Whether a pointer is computed here in steps of bytes. */
static bool walks_bytes(const generator *g, ir_value v, unsigned depth)
{
    v = ir_origin(g->ir, v);
    const ir_insn *insn = &g->ir->insns[v];
    if (!v || depth > DEPTH) return false;
    if (insn->op == IR_PHI) {
        for (uint32_t i = 0; i < insn->b; i++)
            if (walks_bytes(g, g->ir->args[insn->a + i], depth + 2)) return true;
        return false;
    }
    if (insn->op != IR_LEA || !insn->a) return false;
    if (!insn->b) return walks_bytes(g, insn->a, depth + 1);
    form_index index = form_index_of(g, g->kinds[insn->b] == KIND_POINTER ? insn->a : insn->b, insn->scale);
    return (index.stride && index.stride % WORD) || walks_bytes(g, insn->a, depth + 1);
}

static bool is_string_function(const char *name)
{
    static const char *const names[] = {"strlen", "strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strchr", "strrchr", "strstr",
                                        "atoi", "atol", "atoll", "strtol", "strtoul", "strtoll", "strtoull", "strtod"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* Whether a value is a string that a library function takes in this function. */
static bool is_string(const generator *g, ir_value what)
{
    what = ir_origin(g->ir, what);
    for (ir_value v = 1; what && v < g->ir->insn_count; v++) {
        const ir_insn *call = &g->ir->insns[v];
        if (call->op != IR_CALL || ir_origin(g->ir, g->ir->args[call->a + IR_CALL_RDI]) != what) continue;
        const image_plt *plt = call->imm ? image_plt_at(g->img, (uint64_t)call->imm) : NULL;
        if (plt && plt->name && is_string_function(plt->name)) return true;
    }
    return false;
}

/* What is copied from or to the middle of bytes, or to where bytes are declared, and is not a number of words long, is text or a
 * packet: no pointers. So is what is a string elsewhere. */
bool generate_copies_bytes(const generator *g, ir_value to, ir_value from, ir_value size)
{
    int64_t constant;
    bool back;
    uint64_t stride = size ? linear_stride(g->ir, size, 1, &constant, &back) : 1;
    if (stride % WORD == 0) return false;
    if ((typed_is_bytes(g->types[to]) || made_is_bytes(g, to)) && (typed_is_bytes(g->types[from]) || made_is_bytes(g, from))) return true;
    if (typed_is_text(g->types[to]) || typed_is_text(g->types[from])) return true;
    return walks_bytes(g, to, 0) || walks_bytes(g, from, 0) || is_string(g, from);
}

/* The value that flags compare with zero; 0: they are of something else. */
static ir_value compared_with_zero(const generator *g, ir_value flags)
{
    const ir_insn *test = &g->ir->insns[flags];
    bool itself = test->op == IR_TEST && ir_origin(g->ir, test->a) == ir_origin(g->ir, test->b);
    bool zero = test->op == IR_CMP && !test->b && !test->imm;
    return itself || zero ? ir_origin(g->ir, test->a) : 0;
}

enum { WHEN_ZERO = 4, WHEN_NOT = 5 }; /* conditions, as jcc has them */

/* Of two that a phi joins, the one that comes when the other is zero; 2: neither does. */
static unsigned joined_when_zero(const generator *g, ir_value v)
{
    const ir_insn *phi = &g->ir->insns[v];
    uint32_t b = 0;
    while (b < g->func->block_count && (v < g->ir->blocks[b].first || v >= g->ir->blocks[b].first + g->ir->blocks[b].count))
        b++;
    if (b == g->func->block_count || phi->b != 2 || g->func->blocks[b].pred_count != 2) return 2;
    uint32_t d = g->ir->blocks[b].idom;
    const ir_block *above = &g->ir->blocks[d];
    const ir_insn *branch = above->count ? &g->ir->insns[above->first + above->count - 1] : NULL;
    if (d == b || !branch || branch->op != IR_BRANCH || (branch->imm != WHEN_ZERO && branch->imm != WHEN_NOT)) return 2;
    ir_value tested = compared_with_zero(g, branch->c);
    for (unsigned i = 0; tested && i < 2; i++) {
        if (ir_origin(g->ir, g->ir->args[phi->a + 1 - i]) != tested) continue;
        const lift_edge *in = &g->func->edges[g->func->preds[g->func->blocks[b].first_pred + i]];
        const lift_block *from = &g->func->blocks[in->from];
        if (in->from != d && (from->pred_count != 1 || from->succ_count != 1)) return 2;
        const lift_edge *side = in->from == d ? in : &g->func->edges[g->func->preds[from->first_pred]];
        return side->from == d && side->kind == (branch->imm == WHEN_ZERO ? EDGE_TAKEN : EDGE_FALL) ? i : 2;
    }
    return 2;
}

/* x of `x ? x : 8`, as allocators round up: nobody accesses an object of no size. */
static ir_value unless_zero(const generator *g, ir_value v)
{
    const ir_insn *insn = &g->ir->insns[v];
    ir_value other = 0, x = 0;
    if (insn->op == IR_SELECT && (insn->imm == WHEN_ZERO || insn->imm == WHEN_NOT)) {
        other = insn->imm == WHEN_ZERO ? insn->b : insn->a;
        x = ir_origin(g->ir, insn->imm == WHEN_ZERO ? insn->a : insn->b);
        if (x != compared_with_zero(g, insn->c)) return v;
    } else if (insn->op == IR_PHI) {
        unsigned zero = joined_when_zero(g, v);
        if (zero == 2) return v;
        other = g->ir->args[insn->a + zero];
        x = ir_origin(g->ir, g->ir->args[insn->a + 1 - zero]);
    }
    return x && other && g->ir->insns[ir_origin(g->ir, other)].op == IR_CONST ? x : v;
}

/* What is known of a number that is passed; allocators want to know. */
static pta_size passed_size(const generator *g, ir_value v)
{
    static const uint16_t registers[PTA_SIZES] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX};
    v = unless_zero(g, ir_origin(g->ir, v));
    const ir_insn *insn = &g->ir->insns[v];
    if (!v) return (pta_size){0};
    if (insn->op == IR_CONST)
        return insn->imm > 0 && insn->imm < INT32_MAX ? (pta_size){.multiple = (uint32_t)insn->imm, .exact = true} : (pta_size){0};
    int64_t delta = 0;
    if (insn->op == IR_LEA && insn->width == 8 && insn->a && !insn->b && insn->imm >= INT16_MIN && insn->imm <= INT16_MAX) {
        delta = insn->imm;
        insn = &g->ir->insns[ir_origin(g->ir, insn->a)];
    }
    for (uint8_t i = 0; insn->op == IR_ENTRY && i < PTA_SIZES; i++)
        if (insn->var == registers[i]) return (pta_size){.param = (uint8_t)(i + 1), .delta = (int16_t)delta};
    bool back;
    int64_t constant;
    uint64_t stride = linear_stride(g->ir, v, 1, &constant, &back);
    return (pta_size){.multiple = constant ? 0 : (uint32_t)stride};
}

void generate_call(generator *g, ir_value v)
{
    static const uint8_t arg_of[PTA_PARAMS] = {[PTA_RDI] = IR_CALL_RDI, [PTA_RSI] = IR_CALL_RSI, [PTA_RDX] = IR_CALL_RDX,
                                               [PTA_RCX] = IR_CALL_RCX, [PTA_R8] = IR_CALL_R8,   [PTA_R9] = IR_CALL_R9,
                                               [PTA_RSP] = IR_CALL_RSP, [PTA_RAX] = IR_CALL_RAX, [PTA_R10] = IR_CALL_R10};
    const ir_insn *insn = &g->ir->insns[v];
    const ir_value *args = g->ir->args + insn->a;
    bool tail = insn->op == IR_TAIL;
    pta_call call = {.func = generate_callee(g->program, g->module, g->func_id, insn), .target = {PTA_NO_VAR, 0}, .ret = PTA_NO_VAR, .ret2 = PTA_NO_VAR,
                     .caller = g->func_id, .addr = g->func->insns[insn->insn].addr,
                     .in_loop = g->ir->blocks[g->block].loop != 0};
    if (call.func == g->module->unknown) g->out->unknown_calls++;
    if (call.func == PTA_NO_FUNC) {
        form target = args[IR_CALL_TARGET] ? g->forms[args[IR_CALL_TARGET]] : (form){0};
        call.target = form_operand(g, target);
    }
    bool takes_stack = call.func == PTA_NO_FUNC || g->program->funcs.data[call.func].stack;
    /* Arguments fill their registers in order: behind one that nobody put anything into there are none. Of a known callee they may
     * be missing where it does not read them. */
    bool known = call.func != PTA_NO_FUNC && call.func != g->module->unknown, ended = false;
    for (unsigned i = 0; i < PTA_PARAMS; i++) {
        ir_value arg = args[arg_of[i]];
        form f = arg ? g->forms[arg] : (form){0};
        ended |= i < PASSING_ARGS && arg && g->left[arg];
        if (i < PASSING_ARGS && (known ? arg && g->left[arg] : ended)) f.kind = FORM_NONE;
        if (i == PTA_RSP && !takes_stack) f.kind = FORM_NONE;
        bool handed_on = i == PTA_RSP && tail && f.kind == FORM_FRAME && !f.value; /* the caller's arguments */
        call.args[i] = handed_on               ? (pta_operand){PTA_RSP, 0}
                       : i == PTA_RSP && !tail ? callee_stack(g, f, call.func)
                                               : form_operand(g, f);
    }
    const emptied *pointer = g->emptied && g->emptied[v].holds ? &g->emptied[v] : NULL;
    if (pointer) call.args[pointer->argument - IR_CALL_RDI + PTA_RDI] = pointer->unasked ? (pta_operand){PTA_NO_VAR, 0} : pass_pointer(g, pointer);
    static const uint8_t size_of[PTA_SIZES] = {IR_CALL_RDI, IR_CALL_RSI, IR_CALL_RDX, IR_CALL_RCX};
    for (unsigned i = 0; i < PTA_SIZES; i++)
        call.sizes[i] = passed_size(g, args[size_of[i]]);
    if (takes_stack) call.args[PTA_RSP] = pass_slots(g, insn, call.args[PTA_RSP]);
    if (call.func != PTA_NO_FUNC && copies_block(g, call.func)) {
        uint64_t size = form_number(g, args[IR_CALL_RDX]);
        if (args[IR_CALL_RDI]) generate_note_block(g, g->forms[args[IR_CALL_RDI]], size);
        if (size) generate_block(g, call.args[PTA_RDI], call.args[PTA_RSI], size);
        if (size || generate_copies_bytes(g, args[IR_CALL_RDI], args[IR_CALL_RSI], args[IR_CALL_RDX])) call.func = g->module->copied;
    }
    if (call.func != PTA_NO_FUNC) generate_message(g, &call, args);
    if (tail) call.ret = PTA_RET, call.ret2 = PTA_RET2;
    g->call_of[v] = g->out->calls.len + 1;
    form_emit(g, (pta_stmt){.kind = PTA_CALL, .ref = GENERATE_LOCAL | g->out->calls.len});
    vec_push(&g->out->calls, call);
}

form generate_result(generator *g, const ir_insn *insn)
{
    const ir_insn *of = &g->ir->insns[insn->a];
    form f = {0};
    if (insn->op == IR_RESULT && of->op == IR_SYSCALL && insn->var == IR_RAX) {
        f = form_site(g, g->module->external);
    } else if (insn->op == IR_RESULT && (insn->var == IR_RAX || insn->var == IR_RDX) && g->call_of[insn->a]) {
        const image_plt *plt = of->imm ? image_plt_at(g->img, (uint64_t)of->imm) : NULL;
        if (insn->var == IR_RAX && plt && plt->name && !strcmp(plt->name, "__tls_get_addr") && tls_call(g, of, &f)) return f;
        pta_call *call = &g->out->calls.data[g->call_of[insn->a] - 1];
        uint32_t *ret = insn->var == IR_RAX ? &call->ret : &call->ret2;
        bool given = insn->var == IR_RAX || call->func == PTA_NO_FUNC || g->program->funcs.data[call->func].gives & PASSING_RET2;
        if (!given || g->left[insn - g->ir->insns]) return insn->b ? g->forms[insn->b] : f;
        if (*ret == PTA_NO_VAR) *ret = form_new_var(g);
        if (insn->var == IR_RAX) call->makes = g->made[insn - g->ir->insns];
        f = form_var(*ret);
    }
    if (!insn->b || g->forms[insn->b].kind == FORM_NONE) return f;
    if (f.kind == FORM_NONE) return g->forms[insn->b];
    uint32_t var = form_new_var(g);
    form_copy(g, var, f, 0, PTA_SAME);
    form_copy(g, var, g->forms[insn->b], 0, PTA_SAME);
    return form_var(var);
}

void generate_return(generator *g, const ir_insn *insn)
{
    static const uint8_t from[] = {IR_RET_RAX, IR_RET_RDX};
    for (unsigned i = 0; i < 2; i++) {
        ir_value v = g->ir->args[insn->a + from[i]];
        if (v && !g->left[v] && g->program->funcs.data[g->func_id].gives >> i & 1 && g->forms[v].kind != FORM_TPOFF) form_copy(g, PTA_RET + i, g->forms[v], 0, PTA_SAME);
    }
}
