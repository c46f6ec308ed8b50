/* The walk: from main and every thread that it finds, through all calls, each call chain a context of its own.
 *
 * All contexts are evaluated round after round until nothing changes; everything only grows. One more round notes the
 * accesses. */
#include "reach.h"

#include <stdlib.h>

enum { MOST_ROUNDS = 400 };

static void eval_store(reach *r, uint32_t at, const ir_insn *insn)
{
    const context *c = &r->contexts.data[at];
    const pointers *stored = &c->values[insn->b].to;
    if (insn->width != 8 || !stored->len) return;
    pointers to = {0};
    reach_address(c, &c->func->ir->insns[insn->a], &to);
    if (to.len) walk_escapes(r, at, stored);
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
    reach_address(c, insn, &to);
    if (!to.len) r->unknown_accesses++;
    for (uint32_t i = 0; i < to.len; i++) {
        touch t = {.context = at, .access = v, .by = to.data[i].by, .width = insn->width};
        t.object = object_at(r, to.data[i], &t.offset);
        if (t.by.count || to.len > 1 || (insn->flags & IR_REP)) object_mark(r, t.object, SLOT_INDEXED);
        if (insn->flags & IR_REP) {
            int64_t times;
            if (insn->c && number_is(&c->values[insn->c].num, &times))
                t.width *= (uint64_t)times;
            else
                strides_add(&t.by, t.width);
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
        const state *from = &c->values[walk_argument(c->func->ir, insn, k)];
        state_join(r, &c->results[k], from);
    }
}

static void eval_context(reach *r, uint32_t at)
{
    const ir_func *ir = r->contexts.data[at].func->ir;
    for (ir_value v = 1; v < ir->blocks[0].first; v++)
        walk_value(r, at, v);
    for (uint32_t n = 0; n < ir->rpo_count; n++) {
        const ir_block *block = &ir->blocks[ir->rpo[n]];
        for (ir_value v = block->first; v < block->first + block->count; v++) {
            const ir_insn *insn = &ir->insns[v];
            switch (insn->op) {
            case IR_STORE:
                eval_store(r, at, insn);
                break;
            case IR_ACCESS:
                if (r->last) note_touches(r, at, v);
                break;
            case IR_CALL:
            case IR_TAIL:
                if (!walk_call(r, at, v) && r->last) r->unknown_calls++;
                break;
            case IR_RET:
                eval_return(r, at, insn);
                break;
            case IR_BRANCH:
            case IR_SWITCH:
            case IR_TRAP:
                break;
            default:
                walk_value(r, at, v);
                if (insn->var >= IR_SLOT && insn->var != IR_NOVAR) /* stored, although the place is promoted */
                    walk_escapes(r, at, &r->contexts.data[at].values[v].to);
            }
        }
    }
}

/* argc and argv: the only things that come from outside */
static void open_main(reach *r, const lift_func *func)
{
    uint32_t at = walk_open(r, func, 0, 0, 0);
    vec_push(&r->threads, (thread){.func = func, .context = at});
    state_add_number(r, &r->contexts.data[at].params[IR_RDI], ANY_NUMBER);
    state_add_root(r, &r->contexts.data[at].params[IR_RSI], (root){.kind = ROOT_ARGUMENT, .context = at, .site = 2}, 0);
    state_add_root(r, &r->contexts.data[at].params[IR_RDX], (root){.kind = ROOT_ARGUMENT, .context = at, .site = 3}, 0);
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
