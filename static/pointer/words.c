/* The words of memory that hold pointers.
 *
 * Which cells there are depends on what was solved and deleted before: one that a pointer went through once stays, and
 * so do those of facts that lie dormant since. Shown are those that some statement goes through by a fact that counts,
 * which the result tells alone. */
#include <stdlib.h>

#include "static/pointer/view.h"

/* The cell of a key, if there is one. */
static uint32_t cell_at(const pta *p, pta_key at)
{
    const graph_object *o = &p->objects.data[key_object(at)];
    const pta_site *site = &p->program->sites.data[o->site];
    offset_t place = key_offset(at);
    if (!offset_is_exact(place)) return map_get(&p->cell_map, at);
    if (graph_is_outside(p, at)) return MAP_NONE;
    if (site->base) place = offset_exact(offset_value(place) + site->base);
    return map_get(&p->cell_map, key_make(o->memory, place));
}

static void mark_use(const pta *p, const graph_instance *i, const pta_stmt *stmt, key_list *keys, bool *marked)
{
    bool load = stmt->kind == PTA_LOAD;
    const pta_operand pointer = load ? stmt->src : stmt->dst;
    const pta_func *func = &p->program->funcs.data[i->func];
    graph_label label = {pointer.delta, stmt->stride};
    vec_clear(keys);
    set_normal(&p->nodes.data[graph_component(p, graph_var(i, pointer.var))].set, graph_world(p), keys);
    for (uint32_t k = 0; k < keys->len; k++) {
        pta_key at = graph_transfer(p, keys->data[k], &label);
        if (!at || key_object(at) == SET_WILD_OBJECT) continue;
        const pta_site *site = &p->program->sites.data[p->objects.data[key_object(at)].site];
        if (site->kind == PTA_EXTERNAL) {
            uint32_t escaped = load ? MAP_NONE : map_get(&p->object_map, (uint64_t)p->program->escaped << 32);
            if (escaped == MAP_NONE) continue;
            at = key_make(escaped, offset_exact(0));
        } else if (!load && site->constant && !func->loader) {
            continue;
        }
        uint32_t cell = cell_at(p, at);
        if (cell != MAP_NONE) marked[cell] = true;
    }
}

static bool *mark_cells(const pta *p)
{
    bool *marked = base_alloc_zero(p->cells.len + 1, 1);
    key_list keys = {0};
    for (uint32_t i = 0; i < p->instances.len; i++) {
        const graph_instance *instance = &p->instances.data[i];
        const pta_func *f = &p->program->funcs.data[instance->func];
        for (uint32_t s = 0; instance->live && s < f->stmts.len; s++)
            if (!f->stmts.data[s].dead && (f->stmts.data[s].kind == PTA_LOAD || f->stmts.data[s].kind == PTA_STORE))
                mark_use(p, instance, &f->stmts.data[s], &keys, marked);
    }
    vec_free(&keys);
    return marked;
}

typedef struct {
    uint32_t site, context;
    offset_t place;
    uint32_t cell;
} word_order;

static int by_place(const void *a, const void *b)
{
    const word_order *x = a, *y = b;
    if (x->site != y->site) return x->site < y->site ? -1 : 1;
    if (x->context != y->context) return x->context < y->context ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

void pta_each_word(const pta *p, pta_visit_word *visit, void *with)
{
    bool *marked = mark_cells(p);
    VEC(word_order) words = {0};
    for (uint32_t i = 0; i < p->cells.len; i++) {
        const graph_cell *cell = &p->cells.data[i];
        const graph_object *o = &p->objects.data[cell->object];
        if (marked[i] && p->nodes.data[graph_component(p, cell->load)].set.len)
            vec_push(&words, (word_order){view_site_of(p, o->site), view_context_of(p, o->context), cell->place, i});
    }
    if (words.len) qsort(words.data, words.len, sizeof *words.data, by_place);
    pta_places holds = {0};
    for (uint32_t i = 0; i < words.len; i++) {
        const graph_cell *cell = &p->cells.data[words.data[i].cell];
        places_of_set(p, &p->nodes.data[graph_component(p, cell->load)].set, &holds);
        pta_place word = places_one(p, cell->object, cell->place);
        visit(with, &word, &holds);
    }
    vec_free(&holds);
    vec_free(&words);
    free(marked);
}
