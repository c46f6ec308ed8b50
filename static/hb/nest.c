/* Tasks that know variables of the function that made them: `low = half(...)` in a task, `return low + high` behind the taskwait.
 * The function may run many times at once, in tasks of tasks, but each activation has variables of its own.
 *
 * The address of such a variable is nowhere but in frames of its function F and of F's tasks, and in the blocks of tasks, no
 * parameter of F is such an address, and nothing outside knows it. Then F, wherever it runs, accesses its own activation's variable:
 * no other activation's address ever comes into it. And a task that is created in F only has the address from the activation that
 * created it; if that runs it at once, it is a part of F. So
 *  - two accesses in F are of one activation, which one thread runs, or of two variables;
 *  - two tasks of one construct, which is not in a loop, were created by two activations;
 *  - F and such a task share a variable only if this activation of F has created the task: what F cannot come to from there without a
 *    taskwait, which waits for the children that this activation has created (OpenMP 5.0, 2.17.5), is before it or after it.
 *  - F and a team that it creates: the team has ended when the call comes back, so they are ordered.
 * The same holds of the blocks that clang's code allocates and fills for its tasks. Requires a pair with a task or a team in it. */
#include "static/hb/private.h"

typedef struct {
    uint32_t func; /* whose activations have one each; HB_NONE: nothing is known */
} nest_note;

struct hb_nests {
    map64 map; /* site, and context of a block: number in notes */
    VEC(nest_note) notes;
};

static bool is_block(const hb *h, const pta_site *site)
{
    const char *name = site->kind == PTA_HEAP && site->func != PTA_NO_FUNC ? h->program->funcs.data[site->func].name : "";
    return !strncmp(name, "GOMP_task", 9) || !strncmp(name, "__kmpc_omp_task_alloc", 21);
}

static bool is_it(const pta_place *place, const pta_place *variable, bool frame)
{
    return place->site == variable->site && (frame || place->context == variable->context);
}

static bool has_it(const pta_places *places, const pta_place *variable, bool frame)
{
    for (uint32_t i = 0; i < places->len; i++)
        if (is_it(&places->data[i], variable, frame)) return true;
    return false;
}

/* The function that allocates a block. */
static uint32_t allocates(const hb *h, const pta_place *block)
{
    uint32_t module;
    uint64_t addr;
    if (!pta_heap_call(h->p, block, &module, &addr)) return HB_NONE;
    for (uint32_t c = 0; c < h->program->calls.len; c++) {
        const pta_call *call = &h->program->calls.data[c];
        if (call->addr == addr && h->program->funcs.data[call->caller].module == module) return call->caller;
    }
    return HB_NONE;
}

static bool is_made_by(const hb *h, uint32_t origin, uint8_t kind)
{
    return h->origins.data[origin].by && h->origins.data[origin].by->kind == kind;
}

/* The one place where a function creates a task, or a team; HB_NONE: it is not like that. */
static uint32_t creation(const hb *h, uint32_t func, uint32_t origin)
{
    const hb_origin *o = &h->origins.data[origin];
    bool task = is_made_by(h, origin, SYNC_TASK) && !o->by->shared;
    if ((!task && !is_made_by(h, origin, SYNC_TEAM)) || !o->sites.len) return HB_NONE;
    for (uint32_t i = 0; i < o->sites.len; i++)
        if (h->instances[o->sites.data[i].instance].func != func || o->sites.data[i].insn != o->sites.data[0].insn) return HB_NONE;
    return o->sites.data[0].insn;
}

/* Where a task begins, or what it calls and nobody else. */
static bool is_body(const hb *h, uint32_t func, uint32_t origin, uint32_t instance)
{
    for (unsigned depth = 0; instance != h->origins.data[origin].instance; depth++) {
        if (depth > 2 || h->in_first[instance + 1] - h->in_first[instance] != 1 || h->instances[instance].func == func) return false;
        const pta_call_edge *e = &h->edges[h->in_edge[h->in_first[instance]]];
        if (hb_spawns(h, e)) return false;
        instance = e->caller;
    }
    return h->instances[instance].func != func;
}

/* Where a function calls what an instance is part of, itself or through the library that runs a task at once; HB_NONE: it does not,
 * at one place. */
static uint32_t called_at(const hb *h, uint32_t func, uint32_t instance, unsigned depth)
{
    uint32_t found = HB_NONE;
    if (depth > 3 || h->instances[instance].func == func) return HB_NONE;
    for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        if (hb_spawns(h, e)) return HB_NONE;
        uint32_t at = h->instances[e->caller].func == func ? h->call_insn[e->call] : called_at(h, func, e->caller, depth + 1);
        if (at == HB_NONE || (found != HB_NONE && found != at)) return HB_NONE;
        found = at;
    }
    return found;
}

/* All that runs a function are tasks that another function creates, or itself. */
static bool is_of_tasks(const hb *h, uint32_t func, uint32_t code)
{
    bool any = false;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (h->instances[i].func != code) continue;
        bool found = called_at(h, func, i, 0) != HB_NONE;
        for (uint32_t o = 1; o < h->origins.len && !found; o++)
            found = hb_bit(h->origins.data[o].self, i) && creation(h, func, o) != HB_NONE && is_body(h, func, o, i);
        if (!found) return false;
        any = true;
    }
    return any;
}

static uint32_t find_func(hb *h, const pta_place *variable)
{
    const pta_site *site = &h->program->sites.data[variable->site];
    bool frame = site->kind == PTA_FRAME;
    uint32_t func = frame ? site->func : allocates(h, variable);
    pta_places places = {0};
    if (func == HB_NONE || !hb_code(h, func)) return HB_NONE;
    bool right = true;
    for (uint32_t w = 0; w < h->memory.len && right; w++) {
        const hb_word *word = &h->memory.data[w];
        const pta_site *holder = &h->program->sites.data[word->word.site];
        if ((holder->kind == PTA_FRAME && holder->func == func) || is_block(h, holder)) continue;
        for (uint32_t i = 0; i < word->count && right; i++)
            right = !is_it(&h->held.data[word->first + i], variable, frame) || (holder->kind == PTA_FRAME && is_of_tasks(h, func, holder->func));
    }
    if (right) pta_escaped(h->p, &places);
    right &= !has_it(&places, variable, frame);
    for (uint32_t reg = 0; reg < PTA_PARAMS && right; reg++) {
        pta_points_to(h->p, func, (pta_operand){reg, 0}, PTA_SAME, &places);
        right = !has_it(&places, variable, frame);
    }
    vec_free(&places);
    return right ? func : HB_NONE;
}

static uint32_t func_of(hb *h, const pta_place *variable)
{
    bool frame = h->program->sites.data[variable->site].kind == PTA_FRAME;
    if (!h->nests) h->nests = base_alloc_zero(1, sizeof *h->nests);
    uint32_t *at = map_at(&h->nests->map, (uint64_t)variable->site << 32 | (frame ? 0 : variable->context));
    if (*at == MAP_NONE) {
        *at = h->nests->notes.len;
        vec_push(&h->nests->notes, (nest_note){find_func(h, variable)});
    }
    return h->nests->notes.data[*at].func;
}

void hb_nests_close(hb *h)
{
    if (!h->nests) return;
    map_free(&h->nests->map);
    vec_free(&h->nests->notes);
    free(h->nests);
}

/* Whether the function may come from one instruction to another without waiting for its tasks. */
static bool reaches(const hb *h, uint32_t func, uint32_t from, uint32_t to)
{
    const lift_func *f = hb_code(h, func);
    const hb_func *own = &h->funcs[func];
    uint64_t *seen = base_alloc_zero(f->block_count / 64 + 1, sizeof *seen);
    hb_numbers work = {0};
    bool found = false, first = true;
    vec_push(&work, hb_block_of(f, from));
    while (work.len && !found) {
        uint32_t block = work.data[--work.len], last = f->blocks[block].first_insn + f->blocks[block].insn_count;
        uint32_t begin = first ? from + 1 : f->blocks[block].first_insn, end = last;
        first = false;
        for (uint32_t c = 0; c < own->call_count; c++) {
            if (own->calls[c].insn < begin || own->calls[c].insn >= end) continue;
            if (own->calls[c].sync && own->calls[c].sync->kind == SYNC_JOIN_TASKS) end = own->calls[c].insn;
        }
        found = to >= begin && to < end;
        for (uint32_t e = f->blocks[block].first_succ; end == last && e < f->blocks[block].first_succ + f->blocks[block].succ_count; e++) {
            if (hb_bit(seen, f->edges[e].to)) continue;
            hb_set(seen, f->edges[e].to);
            vec_push(&work, f->edges[e].to);
        }
    }
    vec_free(&work);
    free(seen);
    return found;
}

bool hb_nests_apart(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb)
{
    const pta_site *site = &h->program->sites.data[pa->place.site];
    bool made = is_made_by(h, x, SYNC_TASK) || is_made_by(h, x, SYNC_TEAM) || is_made_by(h, y, SYNC_TASK) || is_made_by(h, y, SYNC_TEAM);
    if (!made || (site->kind != PTA_FRAME && !is_block(h, site)) || pa->place.site != pb->place.site || (a->flags | b->flags) & HB_LIBRARY)
        return false;
    uint32_t func = func_of(h, &pa->place);
    if (func == HB_NONE) return false;
    uint32_t at_a = a->func == func ? a->insn : called_at(h, func, a->instance, 0), at_b = b->func == func ? b->insn : called_at(h, func, b->instance, 0);
    uint32_t from_a = creation(h, func, x), from_b = creation(h, func, y);
    if (at_a == HB_NONE && (from_a == HB_NONE || !is_body(h, func, x, a->instance))) return false;
    if (at_b == HB_NONE && (from_b == HB_NONE || !is_body(h, func, y, b->instance))) return false;
    if (at_a != HB_NONE && at_b != HB_NONE) return true;
    if (at_a != HB_NONE) return (is_made_by(h, y, SYNC_TEAM) && at_a != from_b) || !reaches(h, func, from_b, at_a);
    if (at_b != HB_NONE) return (is_made_by(h, x, SYNC_TEAM) && at_b != from_a) || !reaches(h, func, from_a, at_b);
    if (is_made_by(h, x, SYNC_TEAM)) return false; /* it shares the variable */
    const lift_func *f = hb_code(h, func);
    return from_a == from_b && (x == y || h->origins.data[x].twin == y) && !f->ir->blocks[hb_block_of(f, from_a)].loop;
}
