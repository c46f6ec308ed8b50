/* Processes: what is mapped into several, and what the child of a fork has for its own.
 *
 * The child has one thread and a copy of the memory: what it does behind the edge on which fork() has returned zero meets no thread
 * of its parent, but in memory that is mapped shared. */
#include "static/hb/channel.h"

static const char *callee_name(const hb *h, const hb_call *call)
{
    uint32_t func = h->program->calls.data[call->call].func;
    return func == PTA_NO_FUNC ? "" : h->program->funcs.data[func].name;
}

static bool is_in_child(const hb *h, hb_point at)
{
    const lift_func *f = hb_instance_code(h, at.instance);
    const hb_func *own = &h->funcs[h->instances[at.instance].func];
    hb_edges edges = {0};
    bool found = false;
    for (uint32_t c = 0; c < own->call_count && !found; c++) {
        if (strcmp(callee_name(h, &own->calls[c]), "fork") || !own->calls[c].value) continue;
        vec_clear(&edges);
        hb_success_edges(h, at.instance, &own->calls[c], SYNC_ZERO, &edges);
        for (uint32_t i = 0; i < edges.len && !found; i++) {
            uint32_t to = f->edges[edges.data[i].edge].to;
            found = f->blocks[to].pred_count == 1 && ir_dominates(f->ir, to, hb_block_of(f, at.insn));
        }
    }
    vec_free(&edges);
    return found;
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
