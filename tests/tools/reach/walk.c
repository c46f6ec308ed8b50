/* The walk: from main and every thread that it finds, through all calls, each call chain a context of its own.
 *
 * All contexts are evaluated round after round until nothing changes; everything only grows. A call chain that comes
 * back to a function it has been through is cut there: the inner call joins the outer context. */
#include "reach.h"

#include <stdlib.h>

enum { MOST_CONTEXTS = 20000, MOST_DEPTH = 60, MOST_ROUNDS = 400 };

static const uint16_t argument_vars[] = {
    [IR_CALL_RDI] = IR_RDI, [IR_CALL_RSI] = IR_RSI, [IR_CALL_RDX] = IR_RDX, [IR_CALL_RCX] = IR_RCX, [IR_CALL_R8] = IR_R8,
    [IR_CALL_R9] = IR_R9,   [IR_CALL_RAX] = IR_RAX, [IR_CALL_R10] = IR_R10,
};

static ir_value argument(const ir_func *ir, const ir_insn *call, uint32_t k)
{
    return k < call->b ? ir->args[call->a + k] : 0;
}

static void join_state(reach *r, state *into, const state *from)
{
    r->changed |= pointers_join(&into->to, &from->to);
    r->changed |= number_join(&into->num, &from->num);
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

static number number_of(const context *c, const linear *form, uint32_t but)
{
    number sum = {.count = 1, .offset = {form->constant}};
    for (uint32_t i = 0; i < form->count; i++)
        if (i != but) sum = number_sum(&sum, &c->values[form->value[i]].num, form->factor[i]);
    return sum;
}

static void pointers_of(const context *c, const linear *form, pointers *out)
{
    for (uint32_t i = 0; i < form->count; i++) {
        const pointers *base = &c->values[form->value[i]].to;
        if (form->factor[i] != 1 || !base->len) continue;
        number rest = number_of(c, form, i);
        for (uint32_t k = 0; k < base->len; k++)
            for (uint32_t n = 0; n < rest.count; n++) {
                pointer p = base->data[k];
                p.offset = (int64_t)((uint64_t)p.offset + (uint64_t)rest.offset[n]);
                strides_join(&p.by, &rest.by);
                pointers_add(out, p);
            }
    }
}

void reach_address(const reach *r, const context *c, const ir_insn *access, pointers *out)
{
    (void)r;
    linear form = {.constant = access->imm};
    if (access->flags & IR_WIDE) return;
    if (access->a && !linear_add(&form, &c->forms[access->a], 1, 0)) return;
    if (access->b && !linear_add(&form, &c->forms[access->b], access->scale, 0)) return;
    pointers_of(c, &form, out);
}

static void add_root(reach *r, state *into, root at, int64_t offset)
{
    r->changed |= pointers_add(&into->to, (pointer){.root = root_intern(r, at), .offset = offset});
}

static void add_number(reach *r, state *into, number n)
{
    r->changed |= number_join(&into->num, &n);
}

static void eval_entry(reach *r, uint32_t at, uint16_t var, state *into)
{
    context *c = &r->contexts.data[at];
    const ir_func *ir = c->func->ir;
    if (var == IR_RSP) {
        add_root(r, into, (root){.kind = ROOT_FRAME, .context = at}, 0);
    } else if (var == IR_FSBASE) {
        add_root(r, into, (root){.kind = ROOT_THREAD}, 0);
    } else if (var < PARAMS) {
        join_state(r, into, &c->params[var]);
    } else if (var >= IR_SLOT && ir->slots[var - IR_SLOT].base == 0) { /* a promoted argument on the stack */
        pointers found = {0};
        object_load(r, (pointer){.root = root_intern(r, (root){.kind = ROOT_FRAME, .context = at}),
                                 .offset = ir->slots[var - IR_SLOT].offset}, &found);
        r->changed |= pointers_join(&into->to, &found);
        vec_free(&found);
        add_number(r, into, ANY_NUMBER);
    }
}

static void eval_load(reach *r, uint32_t at, const ir_insn *insn, state *into)
{
    add_number(r, into, ANY_NUMBER);
    if (insn->width != 8) return;
    const context *c = &r->contexts.data[at];
    pointers from = {0}, found = {0};
    reach_address(r, c, &c->func->ir->insns[insn->a], &from);
    for (uint32_t i = 0; i < from.len; i++) {
        from.data[i].offset += insn->imm;
        object_load(r, from.data[i], &found);
    }
    r->changed |= pointers_join(&into->to, &found);
    vec_free(&from);
    vec_free(&found);
}

static void eval_opaque(reach *r, uint32_t at, const ir_insn *insn, state *into)
{
    const context *c = &r->contexts.data[at];
    const ir_func *ir = c->func->ir;
    add_number(r, into, ANY_NUMBER);
    for (uint32_t k = 0; k < insn->b; k++) {
        const pointers *from = &c->values[argument(ir, insn, k)].to;
        for (uint32_t i = 0; i < from->len; i++) {
            pointer p = from->data[i];
            strides_add(&p.by, 1);
            r->changed |= pointers_add(&into->to, p);
        }
    }
}

/* The bits that a constant mask leaves are multiples of its lowest one. */
static number masked(const context *c, const ir_insn *insn)
{
    int64_t mask = insn->imm;
    if ((insn->b && !number_is(&c->values[insn->b].num, &mask)) || mask == 0) return ANY_NUMBER;
    return (number){.count = 1, .by = {1, {(uint64_t)mask & (0 - (uint64_t)mask)}}};
}

static number if_small(const number *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (n->by.count || n->offset[i] < 0 || n->offset[i] > 127) return ANY_NUMBER;
    return *n;
}

/* xor %ecx, %ecx; setb %cl: 0 or 1 */
static number inserted(const context *c, const ir_insn *insn)
{
    int64_t before;
    if (insn->imm || !number_is(&c->values[insn->a].num, &before) || before) return ANY_NUMBER;
    return if_small(&c->values[insn->b].num);
}

/* setb %cl; movzbl %cl, %ecx: the same */
static number narrowed(const context *c, const ir_insn *insn)
{
    const ir_insn *from = &c->func->ir->insns[insn->a];
    bool low = from->op == IR_INSERT && from->imm == 0 && from->width == insn->width;
    return if_small(&c->values[low ? from->b : insn->a].num);
}

static void eval_result(reach *r, uint32_t at, ir_value v, const ir_insn *insn, state *into);

static void eval_own(reach *r, uint32_t at, ir_value v, state *into)
{
    const context *c = &r->contexts.data[at];
    const ir_func *ir = c->func->ir;
    const ir_insn *insn = &ir->insns[v];
    int32_t offset;
    uint8_t base;
    switch (insn->op) {
    case IR_ENTRY: eval_entry(r, at, insn->var, into); return;
    case IR_ADDRESS: add_root(r, into, (root){.kind = ROOT_MODULE}, insn->imm); return;
    case IR_PHI:
        for (uint32_t k = 0; k < insn->b; k++)
            join_state(r, into, &c->values[argument(ir, insn, k)]);
        return;
    case IR_SELECT:
        join_state(r, into, &c->values[insn->a]);
        join_state(r, into, &c->values[insn->b]);
        return;
    case IR_INSERT:
        if (insn->width == 8) join_state(r, into, &c->values[insn->b]);
        else add_number(r, into, inserted(c, insn));
        return;
    case IR_COPY: add_number(r, into, narrowed(c, insn)); return; /* the others are linear forms */
    case IR_EXTRACT:
        if (insn->width == 8 && insn->imm == 0) join_state(r, into, &c->values[insn->a]);
        else add_number(r, into, ANY_NUMBER);
        return;
    case IR_LOAD: eval_load(r, at, insn, into); return;
    case IR_OPAQUE: eval_opaque(r, at, insn, into); return;
    case IR_RESULT:
    case IR_CLOBBER: eval_result(r, at, v, insn, into); return;
    case IR_AND:
        if (ir_frame_offset(ir, v, &offset, &base) && base)
            add_root(r, into, (root){.kind = ROOT_ALIGNED, .context = at}, offset);
        else
            add_number(r, into, masked(c, insn));
        return;
    case IR_ACCESS:
    case IR_UNDEF: return;
    default: add_number(r, into, ANY_NUMBER);
    }
}

static void eval(reach *r, uint32_t at, ir_value v)
{
    context *c = &r->contexts.data[at];
    const linear *form = &c->forms[v];
    if (form->count == 1 && form->value[0] == v && form->factor[0] == 1 && form->constant == 0) {
        eval_own(r, at, v, &c->values[v]); /* may move the contexts, but not their values */
        return;
    }
    pointers found = {0};
    pointers_of(c, form, &found);
    r->changed |= pointers_join(&c->values[v].to, &found);
    vec_free(&found);
    number sum = number_of(c, form, UINT32_MAX);
    r->changed |= number_join(&c->values[v].num, &sum);
}

/* --- contexts ---------------------------------------------------------------------------------------------------------- */

static uint32_t open_context(reach *r, const lift_func *func, uint32_t parent, ir_value call, uint32_t thread)
{
    if (!r->forms[func->id]) r->forms[func->id] = linear_forms(func->ir);
    context c = {.func = func, .parent = parent, .call = call, .thread = thread, .forms = r->forms[func->id]};
    c.depth = parent ? r->contexts.data[parent].depth + 1 : 0;
    c.values = base_alloc_zero(func->ir->insn_count + 1, sizeof *c.values);
    c.params = base_alloc_zero(PARAMS, sizeof *c.params);
    if (parent) {
        const ir_func *ir = r->contexts.data[parent].func->ir;
        const ir_insn *insn = &ir->insns[call];
        int32_t offset;
        uint8_t base;
        ir_value rsp = argument(ir, insn, IR_CALL_RSP);
        if (rsp && ir_frame_offset(ir, rsp, &offset, &base) && !base) {
            c.has_caller_rsp = true;
            c.caller_rsp = insn->op == IR_TAIL ? offset : offset - 8; /* the return address is pushed */
        }
    }
    vec_push(&r->contexts, c);
    r->changed = true;
    return r->contexts.len - 1;
}

/* 0: too many */
static uint32_t callee_context(reach *r, uint32_t at, ir_value call, const lift_func *func)
{
    for (uint32_t up = at; up; up = r->contexts.data[up].parent)
        if (r->contexts.data[up].func == func) return up;
    for (uint32_t i = 1; i < r->contexts.len; i++) {
        const context *c = &r->contexts.data[i];
        if (c->parent == at && c->call == call && c->func == func) return i;
    }
    if (r->contexts.len >= MOST_CONTEXTS || r->contexts.data[at].depth >= MOST_DEPTH) {
        r->cut++;
        return 0;
    }
    return open_context(r, func, at, call, r->contexts.data[at].thread);
}

static void start_thread(reach *r, const lift_func *func, const state *passed)
{
    uint32_t i = 0;
    while (i < r->threads.len && r->threads.data[i].func != func)
        i++;
    if (i == r->threads.len) {
        uint32_t at = open_context(r, func, 0, 0, i);
        vec_push(&r->threads, (thread){.func = func, .context = at});
    }
    join_state(r, &r->contexts.data[r->threads.data[i].context].params[IR_RDI], passed);
}

/* --- calls ------------------------------------------------------------------------------------------------------------- */

/* Addresses of the context's own frame that go where the function cannot see them. */
static void note_escapes(reach *r, uint32_t at, const pointers *set)
{
    for (uint32_t i = 0; i < set->len; i++) {
        const root *from = &r->roots.data[set->data[i].root];
        if ((from->kind != ROOT_FRAME && from->kind != ROOT_ALIGNED) || from->context != at) continue;
        int64_t offset;
        uint32_t o = object_at(r, set->data[i], &offset);
        object_mark(r, o, SLOT_ESCAPES);
    }
}

static bool takes(const ir_func *ir, uint16_t var)
{
    for (ir_value v = 1; v < ir->blocks[0].first; v++)
        if (ir->insns[v].op == IR_ENTRY && ir->insns[v].var == var) return true;
    return false;
}

static void pass(reach *r, uint32_t at, ir_value v, uint32_t to, uint16_t var)
{
    if (!v || !takes(r->contexts.data[to].func->ir, var)) return;
    const state *from = &r->contexts.data[at].values[v];
    note_escapes(r, at, &from->to);
    join_state(r, &r->contexts.data[to].params[var], from);
}

/* How far the arguments reach that the function takes from its caller's frame. */
static int64_t stack_arguments_end(const reach *r, const lift_func *func)
{
    int64_t end = 8;
    const image_function *debug = image_function_at(r->module->img, func->entry);
    for (uint32_t i = 0; i < func->ir->slot_count; i++) {
        const ir_slot *s = &func->ir->slots[i];
        if (!s->base && s->offset + 8 > end) end = s->offset + 8;
    }
    for (uint32_t i = 0; debug && i < debug->parameter_count; i++) {
        const image_variable *v = &debug->variables[i];
        int64_t size = v->type ? (int64_t)v->type->size : 8;
        if (v->place == IMAGE_PLACE_FRAME && v->offset >= 0 && v->offset + 8 + size > end) end = v->offset + 8 + size;
    }
    return end < 4096 ? end : 4096;
}

/* The value that the block of the call has last put at a place of the frame, 0: none. Calls share the place of their
 * arguments, so what memory holds there is not enough. */
static ir_value stored_before(const ir_func *ir, ir_value call, int64_t place)
{
    int32_t offset;
    uint8_t base;
    for (ir_value v = call - 1; v && ir->insns[v].op != IR_CALL && ir->insns[v].op != IR_PHI; v--) {
        const ir_insn *insn = &ir->insns[v];
        if (insn->op != IR_STORE || insn->width != 8) continue;
        const ir_insn *access = &ir->insns[insn->a];
        if ((access->flags & IR_FRAME) && ir_frame_offset(ir, access->a, &offset, &base) && !base &&
            offset + access->imm + insn->imm == place)
            return insn->b;
    }
    return 0;
}

/* The outgoing arguments of the caller are the incoming ones of the callee: in slots that the caller has promoted, or in
 * its frame, which is thus handed over. */
static void pass_on_stack(reach *r, uint32_t at, ir_value call, uint32_t to)
{
    const ir_func *ir = r->contexts.data[at].func->ir;
    const ir_insn *insn = &ir->insns[call];
    int64_t end = stack_arguments_end(r, r->contexts.data[to].func);
    uint32_t mine = root_intern(r, (root){.kind = ROOT_FRAME, .context = at});
    uint32_t theirs = root_intern(r, (root){.kind = ROOT_FRAME, .context = to});
    for (int64_t offset = 8; offset < end; offset += 8) {
        pointers passed = {0};
        uint32_t k = IR_CALL_ARGS + (uint32_t)(offset - 8) / 8;
        if (k < insn->b) pointers_join(&passed, &r->contexts.data[at].values[argument(ir, insn, k)].to);
        if (r->contexts.data[to].has_caller_rsp) {
            pointer out = {.root = mine, .offset = offset + r->contexts.data[to].caller_rsp};
            int64_t within;
            object_mark(r, object_at(r, out, &within), SLOT_ESCAPES);
            ir_value stored = stored_before(ir, call, out.offset);
            if (stored) pointers_join(&passed, &r->contexts.data[at].values[stored].to);
            else object_load(r, out, &passed);
        }
        note_escapes(r, at, &passed);
        r->changed |= object_store(r, (pointer){.root = theirs, .offset = offset}, &passed);
        vec_free(&passed);
    }
}

static void call_local(reach *r, uint32_t at, ir_value call, const lift_func *func)
{
    if (!func->ir || !func->block_count) return;
    uint32_t to = callee_context(r, at, call, func);
    if (!to) return;
    const ir_func *ir = r->contexts.data[at].func->ir;
    const ir_insn *insn = &ir->insns[call];
    for (uint32_t k = IR_CALL_RDI; k <= IR_CALL_R10; k++)
        if (k != IR_CALL_RSP) pass(r, at, argument(ir, insn, k), to, argument_vars[k]);
    for (uint32_t k = 0; k < 8; k++)
        pass(r, at, argument(ir, insn, IR_CALL_XMM0 + k), to, (uint16_t)(IR_VECTOR + 8 * k));
    pass_on_stack(r, at, call, to);
    if (insn->op == IR_TAIL)
        for (unsigned k = 0; k < 4; k++)
            join_state(r, &r->contexts.data[at].results[k], &r->contexts.data[to].results[k]);
}

/* A function whose address is among the pointers, or NULL. */
static const lift_func *function_at(const reach *r, const pointer *p)
{
    return r->roots.data[p->root].kind == ROOT_MODULE ? lift_func_at(r->module, (uint64_t)p->offset) : NULL;
}

static void touch_range(reach *r, uint32_t at, const pointers *to, const number *length, bool write)
{
    int64_t width;
    for (uint32_t i = 0; r->last && i < to->len; i++) {
        touch t = {.context = at, .write = write, .by = to->data[i].by, .width = 1};
        t.object = object_at(r, to->data[i], &t.offset);
        if (number_is(length, &width)) t.width = (uint64_t)width;
        else strides_add(&t.by, 1);
        vec_push(&r->touches, t);
    }
}

static void call_library(reach *r, uint32_t at, ir_value call, const char *name)
{
    const model *m = model_of(name);
    const ir_func *ir = r->contexts.data[at].func->ir;
    const ir_insn *insn = &ir->insns[call];
    const state *values = r->contexts.data[at].values;
    const state *arg[7] = {NULL};
    for (uint32_t k = 1; k <= 6; k++)
        arg[k] = &values[argument(ir, insn, IR_CALL_RDI + k - 1)];
    for (uint32_t k = 1; k <= m->args; k++)
        note_escapes(r, at, &arg[k]->to);

    for (uint32_t i = 0; m->starts && i < arg[m->starts]->to.len; i++) {
        const lift_func *func = function_at(r, &arg[m->starts]->to.data[i]);
        if (func && func->ir && func->block_count) start_thread(r, func, arg[m->argument]);
    }
    for (uint32_t i = 0; m->calls && i < arg[m->calls]->to.len; i++) {
        const lift_func *func = function_at(r, &arg[m->calls]->to.data[i]);
        uint32_t to = func && func->ir && func->block_count ? callee_context(r, at, call, func) : 0;
        for (uint32_t k = 0; to && m->passes && k < arg[m->passes]->to.len; k++) {
            pointer p = arg[m->passes]->to.data[k];
            int64_t size = 1; /* qsort: of an element */
            number_is(&arg[3]->num, &size);
            strides_add(&p.by, (uint64_t)size);
            r->changed |= pointers_add(&r->contexts.data[to].params[IR_RDI].to, p);
            r->changed |= pointers_add(&r->contexts.data[to].params[IR_RSI].to, p);
        }
    }
    if (m->written) touch_range(r, at, &arg[m->written]->to, &arg[m->length]->num, true);
    if (m->read) {
        touch_range(r, at, &arg[m->read]->to, &arg[m->length]->num, false);
        for (uint32_t i = 0; i < arg[m->written]->to.len; i++)
            for (uint32_t k = 0; k < arg[m->read]->to.len; k++)
                r->changed |= object_copy(r, arg[m->written]->to.data[i], arg[m->read]->to.data[k]);
    }
    if (m->keeps) {
        uint64_t site = r->contexts.data[at].func->insns[insn->insn].addr;
        pointer fresh = {.root = root_intern(r, (root){.kind = ROOT_HEAP, .context = at, .site = site})};
        for (uint32_t k = 0; k < arg[m->keeps]->to.len; k++)
            r->changed |= object_copy(r, fresh, arg[m->keeps]->to.data[k]);
    }
}

static void library_result(reach *r, uint32_t at, ir_value call, const char *name, state *into)
{
    const ir_func *ir = r->contexts.data[at].func->ir;
    const ir_insn *insn = &ir->insns[call];
    const state *first = &r->contexts.data[at].values[argument(ir, insn, IR_CALL_RDI)];
    switch (model_of(name)->result) {
    case RESULT_FRESH:
        add_root(r, into, (root){.kind = ROOT_HEAP, .context = at, .site = r->contexts.data[at].func->insns[insn->insn].addr}, 0);
        return;
    case RESULT_FIRST: join_state(r, into, first); return;
    case RESULT_INTO_FIRST:
        for (uint32_t i = 0; i < first->to.len; i++) {
            pointer p = first->to.data[i];
            strides_add(&p.by, 1);
            r->changed |= pointers_add(&into->to, p);
        }
        return;
    case RESULT_UNKNOWN: add_root(r, into, (root){.kind = ROOT_RESULT, .name = name}, 0); break;
    default: break;
    }
    add_number(r, into, ANY_NUMBER);
}

typedef struct {
    const lift_func *func; /* or */
    const char *library;
} target;

/* Calls fn for each target of a call. Returns their number. */
static uint32_t each_target(reach *r, uint32_t at, ir_value call, void (*fn)(reach *, uint32_t, ir_value, target, void *),
                            void *user)
{
    const image *img = r->module->img;
    const context *c = &r->contexts.data[at];
    const ir_insn *insn = &c->func->ir->insns[call];
    ir_value through = argument(c->func->ir, insn, IR_CALL_TARGET);
    pointers direct = {0};
    const pointers *to = &direct;
    uint32_t count = 0;
    if (through) to = &c->values[through].to;
    else pointers_add(&direct, (pointer){.root = root_intern(r, (root){.kind = ROOT_MODULE}), .offset = insn->imm});
    for (uint32_t i = 0; i < to->len; i++) {
        pointer p = to->data[i];
        const root *from = &r->roots.data[p.root];
        target t = {0};
        if (from->kind == ROOT_EXTERN) {
            t.library = from->name;
        } else if (from->kind == ROOT_MODULE) {
            const image_plt *plt = image_plt_at(img, (uint64_t)p.offset);
            if (plt && plt->target) t.func = lift_func_at(r->module, plt->target);
            else if (plt) t.library = plt->name;
            else t.func = lift_func_at(r->module, (uint64_t)p.offset);
        }
        if (!t.func && !t.library) continue;
        count++;
        fn(r, at, call, t, user);
    }
    vec_free(&direct);
    return count;
}

static void do_call(reach *r, uint32_t at, ir_value call, target t, void *user)
{
    (void)user;
    if (t.func) call_local(r, at, call, t.func);
    else call_library(r, at, call, t.library);
}

typedef struct {
    state *into;
    int which; /* of context.results, or -1: a register that only passes through */
} wanted;

static void do_result(reach *r, uint32_t at, ir_value call, target t, void *user)
{
    wanted *w = user;
    if (t.library) {
        if (w->which == 0) library_result(r, at, call, t.library, w->into);
        else add_number(r, w->into, ANY_NUMBER);
        return;
    }
    uint32_t to = t.func->ir && t.func->block_count ? callee_context(r, at, call, t.func) : 0;
    if (to && w->which >= 0) join_state(r, w->into, &r->contexts.data[to].results[w->which]);
}

/* A register that is live behind a call although callees may overwrite it has been spared by this one (-fipa-ra). */
static void eval_result(reach *r, uint32_t at, ir_value v, const ir_insn *insn, state *into)
{
    (void)v;
    const context *c = &r->contexts.data[at];
    if (insn->op == IR_CLOBBER) {
        if (insn->b) join_state(r, into, &c->values[insn->b]);
        else add_number(r, into, ANY_NUMBER);
        return;
    }
    if (c->func->ir->insns[insn->a].op == IR_SYSCALL) {
        add_number(r, into, ANY_NUMBER);
        return;
    }
    wanted w = {.into = into, .which = insn->var == IR_RAX          ? 0
                                       : insn->var == IR_RDX        ? 1
                                       : insn->var == IR_VECTOR     ? 2
                                       : insn->var == IR_VECTOR + 8 ? 3
                                                                    : -1};
    if (!each_target(r, at, insn->a, do_result, &w)) add_number(r, into, ANY_NUMBER);
}

/* --- rounds ------------------------------------------------------------------------------------------------------------ */

static void eval_store(reach *r, uint32_t at, const ir_insn *insn)
{
    const context *c = &r->contexts.data[at];
    const pointers *stored = &c->values[insn->b].to;
    if (insn->width != 8 || !stored->len) return;
    pointers to = {0};
    reach_address(r, c, &c->func->ir->insns[insn->a], &to);
    if (to.len) note_escapes(r, at, stored);
    for (uint32_t i = 0; i < to.len; i++) {
        to.data[i].offset += insn->imm;
        r->changed |= object_store(r, to.data[i], stored);
    }
    vec_free(&to);
}

static void note_touches(reach *r, uint32_t at, ir_value v)
{
    const context *c = &r->contexts.data[at];
    const ir_insn *insn = &c->func->ir->insns[v];
    if (insn->flags & (IR_PROMOTED | IR_IMPLICIT)) return;
    pointers to = {0};
    reach_address(r, c, insn, &to);
    if (!to.len) r->unknown_accesses++;
    for (uint32_t i = 0; i < to.len; i++) {
        touch t = {.context = at, .access = v, .by = to.data[i].by, .width = insn->width};
        t.object = object_at(r, to.data[i], &t.offset);
        if (t.by.count || (insn->flags & IR_REP)) object_mark(r, t.object, SLOT_INDEXED);
        if (insn->flags & IR_REP) {
            int64_t times;
            if (insn->c && number_is(&c->values[insn->c].num, &times)) t.width *= (uint64_t)times;
            else strides_add(&t.by, t.width);
        }
        for (unsigned write = 0; write < 2; write++) {
            if (!(insn->flags & (write ? IR_WRITE : IR_READ))) continue;
            t.write = write;
            vec_push(&r->touches, t);
        }
    }
    vec_free(&to);
}

static void eval_return(reach *r, uint32_t at, const ir_insn *insn)
{
    context *c = &r->contexts.data[at];
    for (uint32_t k = 0; k <= IR_RET_XMM1; k++) {
        const state *from = &c->values[argument(c->func->ir, insn, k)];
        join_state(r, &c->results[k], from);
    }
}

static void eval_context(reach *r, uint32_t at)
{
    const ir_func *ir = r->contexts.data[at].func->ir;
    for (ir_value v = 1; v < ir->blocks[0].first; v++)
        eval(r, at, v);
    for (uint32_t n = 0; n < ir->rpo_count; n++) {
        const ir_block *block = &ir->blocks[ir->rpo[n]];
        for (ir_value v = block->first; v < block->first + block->count; v++) {
            const ir_insn *insn = &ir->insns[v];
            switch (insn->op) {
            case IR_STORE: eval_store(r, at, insn); break;
            case IR_ACCESS:
                if (r->last) note_touches(r, at, v);
                break;
            case IR_CALL:
            case IR_TAIL:
                if (!each_target(r, at, v, do_call, NULL) && r->last) r->unknown_calls++;
                break;
            case IR_RET: eval_return(r, at, insn); break;
            case IR_BRANCH:
            case IR_SWITCH:
            case IR_TRAP: break;
            default: eval(r, at, v);
            }
        }
    }
}

/* argc and argv: the only things that come from outside */
static void open_main(reach *r, const lift_func *func)
{
    uint32_t at = open_context(r, func, 0, 0, 0);
    vec_push(&r->threads, (thread){.func = func, .context = at});
    add_number(r, &r->contexts.data[at].params[IR_RDI], ANY_NUMBER);
    add_root(r, &r->contexts.data[at].params[IR_RSI], (root){.kind = ROOT_ARGUMENT, .context = at, .site = 2}, 0);
    add_root(r, &r->contexts.data[at].params[IR_RDX], (root){.kind = ROOT_ARGUMENT, .context = at, .site = 3}, 0);
}

/* Whose address another thread may have: what threads are started with, and what any such thing holds. */
static void find_shared(reach *r)
{
    VEC(uint32_t) work = {0};
    for (uint32_t i = 1; i < r->threads.len; i++) {
        const pointers *passed = &r->contexts.data[r->threads.data[i].context].params[IR_RDI].to;
        for (uint32_t k = 0; k < passed->len; k++) {
            int64_t offset;
            vec_push(&work, object_at(r, passed->data[k], &offset));
        }
    }
    for (uint32_t i = 0; i < r->objects.len; i++) {
        root_kind kind = r->roots.data[r->objects.data[i].root].kind;
        if (kind == ROOT_MODULE || kind == ROOT_EXTERN) vec_push(&work, i);
    }
    while (work.len) {
        uint32_t at = work.data[--work.len];
        if (r->objects.data[at].shared) continue;
        r->objects.data[at].shared = true;
        for (uint32_t c = 0; c < r->objects.data[at].cells.len; c++)
            for (uint32_t k = 0; k < r->objects.data[at].cells.data[c].to.len; k++) {
                int64_t offset;
                vec_push(&work, object_at(r, r->objects.data[at].cells.data[c].to.data[k], &offset));
            }
    }
    vec_free(&work);
}

bool reach_walk(reach *r)
{
    const lift_func *start = lift_func_named(r->module, "main");
    if (!start || !start->ir || !start->block_count) return false;
    r->forms = base_alloc_zero(r->module->func_count + 1, sizeof *r->forms);
    r->places = base_alloc_zero(r->module->func_count + 1, sizeof *r->places);
    r->places_read = base_alloc_zero(r->module->func_count + 1, sizeof *r->places_read);
    vec_push(&r->contexts, (context){0});
    open_main(r, start);
    do {
        r->changed = false;
        for (uint32_t i = 1; i < r->contexts.len; i++)
            eval_context(r, i);
    } while (r->changed && ++r->rounds < MOST_ROUNDS);
    if (r->changed) r->cut++;
    r->last = true;
    for (uint32_t i = 1; i < r->contexts.len; i++)
        eval_context(r, i);
    find_shared(r);
    return true;
}

static void free_state(state *s)
{
    vec_free(&s->to);
}

void reach_free(reach *r)
{
    for (uint32_t i = 1; i < r->contexts.len; i++) {
        context *c = &r->contexts.data[i];
        for (uint32_t v = 0; v < c->func->ir->insn_count; v++)
            free_state(&c->values[v]);
        for (uint32_t v = 0; v < PARAMS; v++)
            free_state(&c->params[v]);
        for (uint32_t v = 0; v < 4; v++)
            free_state(&c->results[v]);
        free(c->values);
        free(c->params);
    }
    for (uint32_t i = 0; i < r->objects.len; i++) {
        for (uint32_t k = 0; k < r->objects.data[i].cells.len; k++)
            vec_free(&r->objects.data[i].cells.data[k].to);
        vec_free(&r->objects.data[i].cells);
    }
    for (uint32_t i = 0; r->forms && i < r->module->func_count; i++) {
        free(r->forms[i]);
        vec_free(&r->places[i]);
    }
    free(r->forms);
    free(r->places);
    free(r->places_read);
    place_close(r);
    vec_free(&r->roots);
    vec_free(&r->objects);
    vec_free(&r->contexts);
    vec_free(&r->threads);
    vec_free(&r->slots);
    vec_free(&r->touches);
    arena_free(&r->memory);
}
