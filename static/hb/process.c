/* Processes: what is mapped more than once, and what the child of a fork has for its own.
 *
 * Two shared mappings of the same part of one descriptor are the same memory, at two addresses.
 *
 * The child has one thread and a copy of the memory: what it does behind the edge on which fork() has returned zero meets no thread
 * of its parent, but in memory that is mapped shared. */
#include "static/hb/channel.h"

static const char *callee_name(const hb *h, const hb_call *call)
{
    uint32_t func = h->program->calls.data[call->call].func;
    return func == PTA_NO_FUNC ? "" : h->program->funcs.data[func].name;
}

/* Found once for each function: many pairs ask. */
static const uint64_t *child_blocks(const hb *h, uint32_t instance)
{
    const lift_func *f = hb_instance_code(h, instance);
    hb_func *own = &h->funcs[h->instances[instance].func];
    if (own->in_child) return own->in_child;
    hb_edges edges = {0};
    own->in_child = base_alloc_zero(f->block_count / 64 + 1, sizeof *own->in_child);
    for (uint32_t c = 0; c < own->call_count; c++) {
        if (strcmp(callee_name(h, &own->calls[c]), "fork") || !own->calls[c].value) continue;
        vec_clear(&edges);
        hb_success_edges(h, instance, &own->calls[c], SYNC_ZERO, &edges);
        for (uint32_t i = 0; i < edges.len; i++) {
            uint32_t to = f->edges[edges.data[i].edge].to;
            for (uint32_t block = 0; f->blocks[to].pred_count == 1 && block < f->block_count; block++)
                if (ir_dominates(f->ir, to, block)) hb_set(own->in_child, block);
        }
    }
    vec_free(&edges);
    return own->in_child;
}

static bool is_in_child(const hb *h, hb_point at)
{
    if (!h->funcs[h->instances[at.instance].func].forks) return false;
    return hb_bit(child_blocks(h, at.instance), hb_block_of(hb_instance_code(h, at.instance), at.insn));
}

/* Whether an object may be in memory that processes share. */
static bool is_mapped(const hb *h, const pta_place *place)
{
    uint32_t calls[PTA_HEAP_CALLS];
    uint8_t kind = h->program->sites.data[place->site].kind;
    if (kind == PTA_STATIC || kind == PTA_FRAME || kind == PTA_TLS) return false;
    if (kind != PTA_HEAP) return true;
    uint32_t count = pta_heap_calls(h->p, place, calls);
    for (uint32_t i = 0; i < count; i++) {
        static const char *const own[] = {"malloc", "calloc", "realloc", "strdup", "_Znwm", "_Znam"};
        uint32_t func = h->program->calls.data[calls[i]].func;
        bool known = false;
        for (unsigned k = 0; func != PTA_NO_FUNC && k < sizeof own / sizeof *own; k++)
            known |= !strcmp(h->program->funcs.data[func].name, own[k]);
        if (!known) return true;
    }
    return !count;
}

bool hb_processes_apart(const hb *h, hb_point a, hb_point b, const hb_place *place)
{
    return (is_in_child(h, a) || is_in_child(h, b)) && !is_mapped(h, &place->place);
}

bool hb_in_child(const hb *h, const hb_touch *t)
{
    return is_in_child(h, (hb_point){t->instance, t->insn});
}

bool hb_is_mapped(const hb *h, const hb_place *place)
{
    return is_mapped(h, &place->place);
}

/* A shared mapping of a file: the call that makes it. */
static const hb_call *mapping_of(const hb *h, const pta_place *place, uint32_t *func)
{
    enum { SHARED = 1, ANONYMOUS = 32 };
    uint32_t calls[PTA_HEAP_CALLS];
    if (h->program->sites.data[place->site].kind != PTA_HEAP || pta_heap_calls(h->p, place, calls) != 1) return NULL;
    *func = h->program->calls.data[calls[0]].caller;
    const lift_func *f = hb_code(h, *func);
    const hb_call *call = f ? hb_call_at(h, *func, h->call_insn[calls[0]]) : NULL;
    if (!call || !call->value || strncmp(callee_name(h, call), "mmap", 4)) return NULL;
    const ir_insn *flags = &f->ir->insns[value_plain(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RCX], 4)];
    return flags->op == IR_CONST && flags->imm & SHARED && !(flags->imm & ANONYMOUS) ? call : NULL;
}

uint32_t hb_mapped_object(hb *h, const pta_place *place, uint32_t object)
{
    uint32_t func;
    const hb_call *call = mapping_of(h, place, &func);
    if (!call) return object;
    const ir_func *ir = hb_code(h, func)->ir;
    const ir_value *args = ir->args + ir->insns[call->value].a;
    for (uint32_t i = 0; i < h->mappings.len; i++) {
        const hb_mapping *m = &h->mappings.data[i];
        if (m->func != func || m->object == object) continue;
        const ir_value *its = ir->args + ir->insns[m->call].a;
        if (value_alike(ir, args[IR_CALL_R8], its[IR_CALL_R8]) && value_alike(ir, args[IR_CALL_R9], its[IR_CALL_R9])) return m->object;
    }
    for (uint32_t i = 0; i < h->mappings.len; i++)
        if (h->mappings.data[i].object == object) return object;
    vec_push(&h->mappings, (hb_mapping){func, call->value, object});
    return object;
}
