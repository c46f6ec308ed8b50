/* Contexts and calls: from the caller's arguments to the callee's parameters, and from its results back.
 *
 * A call chain that comes back to a function it has been through is cut there: the inner call joins the outer context.
 */
#include "reach.h"

#include <stdlib.h>

enum { MOST_CONTEXTS = 20000, MOST_DEPTH = 60 };

static const uint16_t argument_vars[] = {
    [IR_CALL_RDI] = IR_RDI, [IR_CALL_RSI] = IR_RSI, [IR_CALL_RDX] = IR_RDX, [IR_CALL_RCX] = IR_RCX,
    [IR_CALL_R8] = IR_R8,   [IR_CALL_R9] = IR_R9,   [IR_CALL_RAX] = IR_RAX, [IR_CALL_R10] = IR_R10,
};

/* --- contexts ---------------------------------------------------------------------------------------------------- */

uint32_t walk_open(reach *r, const lift_func *func, uint32_t parent, ir_value call, uint32_t thread)
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
        ir_value rsp = walk_argument(ir, insn, IR_CALL_RSP);
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
    return walk_open(r, func, at, call, r->contexts.data[at].thread);
}

static void start_thread(reach *r, const lift_func *func, const state *passed)
{
    uint32_t i = 0;
    while (i < r->threads.len && r->threads.data[i].func != func)
        i++;
    if (i == r->threads.len) {
        uint32_t at = walk_open(r, func, 0, 0, i);
        vec_push(&r->threads, (thread){.func = func, .context = at});
    }
    state_join(r, &r->contexts.data[r->threads.data[i].context].params[IR_RDI], passed);
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

/* Addresses of the context's own frame that go where the function cannot see them. */
void walk_escapes(reach *r, uint32_t at, const pointers *set)
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
    walk_escapes(r, at, &from->to);
    state_join(r, &r->contexts.data[to].params[var], from);
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

/* The outgoing arguments of the caller are the incoming ones of the callee: in slots that the caller has promoted, or
 * in its frame, which is thus handed over. */
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
        if (k < insn->b) pointers_join(&passed, &r->contexts.data[at].values[walk_argument(ir, insn, k)].to);
        if (r->contexts.data[to].has_caller_rsp) {
            pointer out = {.root = mine, .offset = offset + r->contexts.data[to].caller_rsp};
            int64_t within;
            object_mark(r, object_at(r, out, &within), SLOT_ESCAPES);
            ir_value stored = stored_before(ir, call, out.offset);
            if (stored)
                pointers_join(&passed, &r->contexts.data[at].values[stored].to);
            else
                object_load(r, out, &passed);
        }
        walk_escapes(r, at, &passed);
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
        if (k != IR_CALL_RSP) pass(r, at, walk_argument(ir, insn, k), to, argument_vars[k]);
    for (uint32_t k = 0; k < 8; k++)
        pass(r, at, walk_argument(ir, insn, IR_CALL_XMM0 + k), to, (uint16_t)(IR_VECTOR + 8 * k));
    pass_on_stack(r, at, call, to);
    if (insn->op == IR_TAIL)
        for (unsigned k = 0; k < 4; k++)
            state_join(r, &r->contexts.data[at].results[k], &r->contexts.data[to].results[k]);
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
        if (number_is(length, &width))
            t.width = (uint64_t)width;
        else
            strides_add(&t.by, 1);
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
        arg[k] = &values[walk_argument(ir, insn, IR_CALL_RDI + k - 1)];
    for (uint32_t k = 1; k <= m->args; k++)
        walk_escapes(r, at, &arg[k]->to);

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
    const state *first = &r->contexts.data[at].values[walk_argument(ir, insn, IR_CALL_RDI)];
    switch (model_of(name)->result) {
    case RESULT_FRESH:
        state_add_root(
            r, into,
            (root){.kind = ROOT_HEAP, .context = at, .site = r->contexts.data[at].func->insns[insn->insn].addr}, 0);
        return;
    case RESULT_FIRST:
        state_join(r, into, first);
        return;
    case RESULT_INTO_FIRST:
        for (uint32_t i = 0; i < first->to.len; i++) {
            pointer p = first->to.data[i];
            strides_add(&p.by, 1);
            r->changed |= pointers_add(&into->to, p);
        }
        return;
    case RESULT_UNKNOWN:
        state_add_root(r, into, (root){.kind = ROOT_RESULT, .name = name}, 0);
        break;
    default:
        break;
    }
    state_add_number(r, into, ANY_NUMBER);
}

typedef struct {
    const lift_func *func; /* or */
    const char *library;
} target;

/* Calls fn for each target of a call. Returns their number. */
static uint32_t each_target(reach *r, uint32_t at, ir_value call,
                            void (*fn)(reach *, uint32_t, ir_value, target, void *), void *user)
{
    const image *img = r->module->img;
    const context *c = &r->contexts.data[at];
    const ir_insn *insn = &c->func->ir->insns[call];
    ir_value through = walk_argument(c->func->ir, insn, IR_CALL_TARGET);
    pointers direct = {0};
    const pointers *to = &direct;
    uint32_t count = 0;
    if (through)
        to = &c->values[through].to;
    else
        pointers_add(&direct, (pointer){.root = root_intern(r, (root){.kind = ROOT_MODULE}), .offset = insn->imm});
    for (uint32_t i = 0; i < to->len; i++) {
        pointer p = to->data[i];
        const root *from = &r->roots.data[p.root];
        target t = {0};
        if (from->kind == ROOT_EXTERN) {
            t.library = from->name;
        } else if (from->kind == ROOT_MODULE) {
            const image_plt *plt = image_plt_at(img, (uint64_t)p.offset);
            if (plt && plt->target)
                t.func = lift_func_at(r->module, plt->target);
            else if (plt)
                t.library = plt->name;
            else
                t.func = lift_func_at(r->module, (uint64_t)p.offset);
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
    if (t.func)
        call_local(r, at, call, t.func);
    else
        call_library(r, at, call, t.library);
}

typedef struct {
    state *into;
    int which; /* of context.results, or -1: a register that only passes through */
} wanted;

static void do_result(reach *r, uint32_t at, ir_value call, target t, void *user)
{
    wanted *w = user;
    if (t.library) {
        if (w->which == 0)
            library_result(r, at, call, t.library, w->into);
        else
            state_add_number(r, w->into, ANY_NUMBER);
        return;
    }
    uint32_t to = t.func->ir && t.func->block_count ? callee_context(r, at, call, t.func) : 0;
    if (to && w->which >= 0) state_join(r, w->into, &r->contexts.data[to].results[w->which]);
}

/* A register that is live behind a call although callees may overwrite it has been spared by this one (-fipa-ra). */
void walk_result(reach *r, uint32_t at, const ir_insn *insn, state *into)
{
    const context *c = &r->contexts.data[at];
    if (insn->op == IR_CLOBBER) {
        if (insn->b)
            state_join(r, into, &c->values[insn->b]);
        else
            state_add_number(r, into, ANY_NUMBER);
        return;
    }
    if (c->func->ir->insns[insn->a].op == IR_SYSCALL) {
        state_add_number(r, into, ANY_NUMBER);
        return;
    }
    wanted w = {.into = into,
                .which = insn->var == IR_RAX          ? 0
                         : insn->var == IR_RDX        ? 1
                         : insn->var == IR_VECTOR     ? 2
                         : insn->var == IR_VECTOR + 8 ? 3
                                                      : -1};
    if (!each_target(r, at, insn->a, do_result, &w)) state_add_number(r, into, ANY_NUMBER);
}

bool walk_call(reach *r, uint32_t at, ir_value call)
{
    return each_target(r, at, call, do_call, NULL) > 0;
}
