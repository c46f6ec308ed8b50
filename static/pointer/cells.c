/* Words of memory as nodes, and which of them may be the same. An exact place is one node; a class is two, one that is
 * stored through and one that is loaded from (graph.h).
 *
 * What is stored through a class is stored in each word that it covers, and in each class of which a part may be meant.
 * To link each word with each class that it meets takes as many edges as there are pairs: nine of ten edges of a
 * program of half a million instructions were such. But most classes lie in each other, up to the one that is
 * everywhere. What is stored through a class is stored through those inside of it, too, and what is loaded through one
 * is loaded through those around it, so to link it with the next smaller and the next larger ones is enough, and each
 * exact word with the smallest classes around it. Classes that overlap are linked across where they have nothing in
 * common that both are linked with. All sets are closed (pointer.h), and so is what they get together, so a word that
 * is on the way changes nothing for those behind it. */
#include "static/pointer/graph.h"

/* Whether two words, of which one is a class, may be the same. */
static bool cells_meet(const pta *p, const graph_cell *a, const graph_cell *b)
{
    return a->low < b->high && b->low < a->high && offset_meet(a->place, b->place, p->shapes.data[a->object]);
}

/* Whether every word that meets b meets a. */
static bool cell_covers(const pta *p, const graph_cell *a, const graph_cell *b)
{
    return a->low <= b->low && a->high >= b->high && offset_covers(a->place, b->place, p->shapes.data[a->object]);
}

static void link_cells(pta *p, uint32_t outer, uint32_t inner)
{
    const graph_cell *a = &p->cells.data[outer], *b = &p->cells.data[inner];
    graph_add_edge(p, a->store, b->store, 0, UINT32_MAX, NO_KEY);
    graph_add_edge(p, b->load, a->load, 0, UINT32_MAX, NO_KEY);
    vec_push(&p->cells.data[inner].around, outer);
}

static void cross_cells(pta *p, uint32_t one, uint32_t other)
{
    const graph_cell *a = &p->cells.data[one], *b = &p->cells.data[other];
    graph_add_edge(p, a->store, b->load, 0, UINT32_MAX, NO_KEY);
    graph_add_edge(p, b->store, a->load, 0, UINT32_MAX, NO_KEY);
}

/* What a new class has to do with the exact words of its object, when the classes that it covers are marked `inside`.
 */
static void link_exact(pta *p, uint32_t id, const id_list *exact, uint32_t stamp)
{
    for (uint32_t i = 0; i < exact->len; i++) {
        const graph_cell *e = &p->cells.data[exact->data[i]];
        if (!cells_meet(p, &p->cells.data[id], e)) continue;
        bool known = false;
        for (uint32_t k = 0; k < e->around.len; k++) {
            graph_cell *around = &p->cells.data[e->around.data[k]];
            around->shares = stamp;
            known |= around->inside == stamp;
        }
        if (!known) link_cells(p, id, exact->data[i]);
    }
}

/* Links a new word with the others of its object. */
static void place_cell(pta *p, uint32_t id)
{
    const object_memory *m = &p->memories.data[p->cells.data[id].object];
    bool exact = offset_is_exact(p->cells.data[id].place);
    uint32_t stamp = id + 1;
    id_list around = {0}, inside = {0}, across = {0};
    for (uint32_t i = 0; i < m->classes.len; i++) {
        uint32_t other = m->classes.data[i];
        const graph_cell *new = &p->cells.data[id];
        graph_cell *k = &p->cells.data[other];
        if (!cells_meet(p, new, k)) continue;
        bool outer = exact || cell_covers(p, k, new);
        if (!outer && cell_covers(p, new, k)) {
            k->inside = stamp;
            vec_push(&inside, other);
        } else {
            vec_push(outer ? &around : &across, other);
        }
        for (uint32_t q = 0; q < k->around.len; q++) {
            graph_cell *larger = &p->cells.data[k->around.data[q]];
            larger->shares = stamp;
            if (outer) larger->larger = stamp;
        }
    }
    for (uint32_t i = 0; i < around.len; i++)
        if (p->cells.data[around.data[i]].larger != stamp) link_cells(p, around.data[i], id);
    for (uint32_t i = 0; i < inside.len; i++) {
        const graph_cell *k = &p->cells.data[inside.data[i]];
        bool known = false;
        for (uint32_t q = 0; q < k->around.len && !known; q++)
            known = p->cells.data[k->around.data[q]].inside == stamp;
        if (!known) link_cells(p, id, inside.data[i]);
    }
    if (!exact) link_exact(p, id, &m->exact, stamp);
    for (uint32_t i = 0; i < across.len; i++)
        if (p->cells.data[across.data[i]].shares != stamp) cross_cells(p, id, across.data[i]);
    vec_free(&around);
    vec_free(&inside);
    vec_free(&across);
}

/* The class of an object that is the same words; or MAP_NONE. */
static uint32_t same_cell(const pta *p, const graph_cell *cell)
{
    const id_list *classes = &p->memories.data[cell->object].classes;
    for (uint32_t i = 0; i < classes->len; i++) {
        const graph_cell *k = &p->cells.data[classes->data[i]];
        if (k->place == cell->place && k->low == cell->low && k->high == cell->high) return classes->data[i];
    }
    return MAP_NONE;
}

static uint32_t add_cell(pta *p, graph_cell cell)
{
    bool exact = offset_is_exact(cell.place);
    uint32_t same = exact ? MAP_NONE : same_cell(p, &cell);
    if (same != MAP_NONE) return same;
    cell.store = graph_add_node(p);
    cell.load = exact ? cell.store : graph_add_node(p);
    p->nodes.data[cell.store].word = p->nodes.data[cell.load].word = true;
    uint32_t id = p->cells.len;
    vec_push(&p->cells, cell);
    if (!exact) graph_add_edge(p, cell.store, cell.load, 0, UINT32_MAX, NO_KEY);
    place_cell(p, id);
    object_memory *m = &p->memories.data[cell.object];
    vec_push(exact ? &m->exact : &m->classes, id);
    return id;
}

/* A class of a part of a larger object as one of that object, which knows no shape: its bounds are those of the cell.
 */
static void move_class(const pta *p, uint32_t object, graph_cell *cell)
{
    const pta_shape *shape = p->shapes.data[object];
    int64_t base = p->program->sites.data[p->objects.data[object].site].base;
    if (offset_is_element(cell->place)) {
        if (shape->total) cell->low = base, cell->high = base + (int64_t)shape->total;
    } else if (offset_has_windows(shape) && offset_window(cell->place)) {
        const shape_window *w = &shape->windows[offset_window(cell->place)];
        cell->low = base + w->start;
        if (w->end != INT32_MAX) cell->high = base + w->end;
    } else if (!offset_has_windows(shape) && offset_least(cell->place) != OFFSET_NO_LEAST) {
        cell->low = base + offset_least(cell->place);
    }
    uint32_t stride = offset_is_element(cell->place) ? shape->element : offset_stride(cell->place);
    cell->place = offset_class(stride, (int64_t)offset_residue(cell->place) + base, 0);
}

/* Of a variable in a frame: an exact place is of no use outside of it, as a class is not, and SET_WILD, which may stand for both. */
bool graph_is_outside(const pta *p, pta_key key)
{
    const graph_object *o = &p->objects.data[key_object(key)];
    const pta_site *site = &p->program->sites.data[o->site];
    if (o->memory == key_object(key) || !site->size || site->open || !offset_is_exact(key_offset(key))) return false;
    int64_t at = offset_value(key_offset(key));
    return at <= -8 || at >= (int64_t)site->size;
}

/* An exact place is found by where it is in memory; a class belongs to the object whose bounds it keeps. */
const graph_cell *graph_cell_of(pta *p, pta_key key)
{
    uint32_t object = key_object(key);
    const graph_object *o = &p->objects.data[object];
    const pta_site *site = &p->program->sites.data[o->site];
    if (site->kind == PTA_FUNCTION || graph_is_outside(p, key)) return NULL;
    if (offset_is_single(key_offset(key)) && !shape_may_point(p->shapes.data[object], offset_at(key_offset(key))))
        return NULL;
    graph_cell cell = {.object = o->memory, .place = key_offset(key), .low = INT64_MIN, .high = INT64_MAX};
    if (offset_is_exact(cell.place)) {
        if (site->base) cell.place = offset_exact(offset_value(cell.place) + site->base);
        const pta_shape *shape = p->shapes.data[o->memory];
        uint64_t size =
            shape && shape->total ? shape->total : p->program->sites.data[p->objects.data[o->memory].site].size;
        cell.low = offset_value(cell.place);
        cell.high = cell.low + 8;
        if (size && (cell.low < 0 || cell.high > (int64_t)size)) return NULL;
        key = key_make(o->memory, cell.place);
    } else {
        if (site->size && !site->open) {
            cell.low = site->base;
            cell.high = site->base + (int64_t)site->size;
        }
        if (o->memory != object) move_class(p, object, &cell);
    }
    uint32_t known = map_get(&p->cell_map, key);
    if (known == MAP_NONE) {
        known = add_cell(p, cell);
        *map_at(&p->cell_map, key) = known;
    }
    return &p->cells.data[known];
}
