/* Opening and closing an analysis, and asking it. */
#include <time.h>

#include "static/pointer/view.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Without contexts first: which calls are wild must not depend on contexts. `plain`: an analysis that is up to date, or NULL. */
static int open_plain(pta *p, pta *plain, race_error *error)
{
    for (uint32_t f = 0; f < p->program->funcs.len; f++) {
        const pta_func *func = &p->program->funcs.data[f];
        for (uint32_t i = 0; i < func->stmts.len; i++)
            if (func->stmts.data[i].kind == PTA_CALL && p->program->calls.data[func->stmts.data[i].ref].func == PTA_NO_FUNC)
                vec_push(&p->pointer_calls, (stmt_place){f, i});
    }
    pta_options options = p->options;
    options.context = PTA_CONTEXT_NONE;
    options.wild_at -= options.wild_at / 4; /* there are fewer objects without contexts */
    p->plain = plain;
    if (!plain && analysis_open(p->program, &options, NULL, &p->plain, error)) return -1;
    context_note_plain(p, p->plain);
    prone_note_plain(p, p->plain);
    for (uint32_t i = 0; i < p->instances.len; i++) /* the roots */
        prone_begin(p, i);
    if (!p->options.once) return 0;
    for (uint32_t i = 0; i < p->plain->asked.len; i++)
        vec_push(&p->asked, (heap_ask){p->plain->asked.data[i].size, p->plain->asked.data[i].call, HEAP_NO_SHAPE});
    pta_close(p->plain);
    p->plain = NULL;
    return 0;
}

int analysis_open(pta_program *program, const pta_options *options, pta *plain, pta **out, race_error *error)
{
    static const context_rules *const rules[] = {
        [PTA_CONTEXT_NONE] = &context_none, [PTA_CONTEXT_ORIGIN] = &context_origin, [PTA_CONTEXT_CFA] = &context_cfa};
    double start = now();
    pta *p = base_alloc_zero(1, sizeof *p);
    p->program = program;
    p->options = *options;
    if (!p->options.wild_at) p->options.wild_at = SET_WILD_AT;
    p->rules = rules[options->context];
    graph_label_of(p, 0, PTA_SAME);
    for (uint32_t f = 0; f < program->funcs.len; f++)
        vec_push(&p->instances_of, (id_list){0});
    context_intern(p, (graph_context){0});
    vec_push(&p->objects, (graph_object){.site = program->sites.len}); /* so that no key is NO_KEY */
    vec_push(&p->shapes, NULL);
    vec_push(&p->wild, 0);
    vec_push(&p->memories, (object_memory){0});
    graph_object_of(p, program->wild, 0);     /* SET_WILD_OBJECT */
    graph_object_of(p, program->external, 0); /* SET_EXTERNAL_OBJECT */
    uint32_t wilderness = graph_instance_of(p, program->wilderness, 0), outside = graph_instance_of(p, program->outside, 0);
    p->wilderness = p->instances.data[wilderness].first_node;
    p->nodes.data[p->wilderness].set.tame = true;
    p->nodes.data[p->instances.data[outside].first_node + PTA_RET].set.tame = true;
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        if (!program->funcs.data[f].root || program->funcs.data[f].lift) continue;
        uint32_t root = graph_instance_of(p, f, 0);
        p->instances.data[root].live = p->instances.data[root].root = true;
        vec_push(&p->born, root);
    }
    int status = options->context == PTA_CONTEXT_NONE ? 0 : open_plain(p, plain, error);
    if (!status) status = solve_run(p, error);
    if (!status && !p->options.once) dormant_forget(p);
    p->scratch = p->toil;
    p->seconds = now() - start;
    if (status) {
        if (plain) p->plain = NULL;
        pta_close(p);
        p = NULL;
    }
    *out = p;
    return status;
}

int pta_open(pta_program *program, const pta_options *options, pta **out, race_error *error)
{
    if (analysis_open(program, options, NULL, out, error)) return -1;
    if (options->follow) follow_open(*out);
    view_open(*out);
    return 0;
}

void pta_close(pta *p)
{
    if (!p) return;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        graph_node *n = &p->nodes.data[i];
        set_free(&n->set);
        vec_free(&n->delta);
        vec_free(&n->fresh);
        vec_free(&n->in);
        vec_free(&n->out);
        vec_free(&n->uses);
        vec_free(&n->lost);
    }
    for (uint32_t i = 0; i < p->memories.len; i++) {
        vec_free(&p->memories.data[i].exact);
        vec_free(&p->memories.data[i].classes);
    }
    for (uint32_t i = 0; i < p->cells.len; i++)
        vec_free(&p->cells.data[i].around);
    for (uint32_t i = 0; i < p->instances.len; i++) {
        vec_free(&p->instances.data[i].callers);
        vec_free(&p->instances.data[i].more_vars);
        vec_free(&p->instances.data[i].more_stmts);
    }
    for (uint32_t i = 0; i < p->levels.len; i++)
        vec_free(&p->levels.data[i]);
    for (uint32_t i = 0; i < p->instances_of.len; i++)
        vec_free(&p->instances_of.data[i]);
    vec_free(&p->instances_of);
    if (p->plain) pta_close(p->plain);
    view_close(p);
    follow_close(p->follow);
    vec_free(&p->object_says);
    vec_free(&p->touched);
    vec_free(&p->pointer_calls);
    map_free(&p->plain_calls);
    vec_free(&p->plain_targets);
    map_free(&p->plain_wild_of);
    vec_free(&p->plain_wild);
    vec_free(&p->wild_turned);
    solve_close(p);
    delete_close(p);
    holders_free(p);
    p->rules->close(p);
    vec_free(&p->nodes);
    vec_free(&p->edges);
    vec_free(&p->free_edges);
    vec_free(&p->labels);
    vec_free(&p->objects);
    vec_free(&p->shapes);
    vec_free(&p->wild);
    vec_free(&p->heap_shapes);
    vec_free(&p->asked);
    map_free(&p->shape_map);
    map_free(&p->type_map);
    arena_free(&p->shape_memory);
    vec_free(&p->memories);
    vec_free(&p->cells);
    vec_free(&p->instances);
    vec_free(&p->uses);
    vec_free(&p->contexts);
    vec_free(&p->levels);
    vec_free(&p->woken);
    vec_free(&p->new_edges);
    vec_free(&p->born);
    vec_free(&p->pending);
    map_free(&p->label_map);
    map_free(&p->object_map);
    map_free(&p->cell_map);
    map_free(&p->instance_map);
    map_free(&p->context_map);
    free(p);
}

void pta_statistics(const pta *p, pta_stats *stats)
{
    *stats = (pta_stats){.nodes = p->nodes.len, .edges = p->live_edges, .objects = p->objects.len - 1,
                         .contexts = p->contexts.len, .steps = p->step, .seconds = p->seconds};
    stats->bytes = (uint64_t)p->nodes.cap * sizeof *p->nodes.data + (uint64_t)p->edges.cap * sizeof *p->edges.data;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const graph_node *n = &p->nodes.data[i];
        stats->bytes += (uint64_t)n->set.cap * 16 + (uint64_t)(n->in.cap + n->out.cap + n->uses.cap) * 4;
        if (n->component != i) continue;
        stats->components++;
        stats->facts += n->set.len;
        uint64_t size = 0;
        uint32_t member = i;
        do {
            size++;
            member = p->nodes.data[member].next;
        } while (member != i);
        if (size > stats->largest_component) stats->largest_component = size;
    }
    for (uint32_t i = 0; i < p->instances.len; i++)
        stats->instances += p->instances.data[i].live;
}

/* What a variable of an instance holds, as keys in no order. True: and what wild pointers point to. */
static bool add_keys_of(const pta *p, uint32_t component, pta_operand what, uint32_t stride, key_list *keys)
{
    const pta_set *set = &p->nodes.data[component].set;
    graph_label label = {what.delta, stride};
    for (uint32_t i = 0; i < set->len; i++) {
        pta_key key = graph_transfer(p, set->keys[i], &label);
        if (key && key != set_wild_key()) vec_push(keys, key);
    }
    return set_is_wild(set);
}

/* Sorted keys, with those of wild pointers. */
static void add_wild_keys(const pta *p, key_list *keys)
{
    const pta_set *wild = &p->nodes.data[graph_component(p, p->wilderness)].set;
    uint32_t own = keys->len, more = wild->len, to = own + more;
    vec_reserve(keys, to);
    keys->len = to;
    while (more) /* merge from the end */
        keys->data[--to] = own && keys->data[own - 1] > wild->keys[more - 1] ? keys->data[--own] : wild->keys[--more];
}

/* Keys as a closed set; lets go of them. */
static void close_keys(const pta *p, key_list *keys, bool wild, pta_set *to)
{
    key_list added = {0};
    keys_sort(keys->data, &keys->len);
    if (wild) add_wild_keys(p, keys);
    set_add(to, keys->data, keys->len, 0, graph_world(p), &added);
    vec_free(keys);
    vec_free(&added);
}

/* The component of a variable, in numbers that are shown. */
static uint32_t shown_component(const pta *p, uint32_t instance, uint32_t var)
{
    const graph_instance *i = &p->instances.data[view_instance(p, instance)];
    return graph_component(p, graph_var(i, view_var(p, i->func, var)));
}

uint32_t pta_breadth_in(const pta *p, uint32_t instance, uint32_t var)
{
    if (var == PTA_NO_VAR) return 0;
    const pta_set *set = &p->nodes.data[shown_component(p, instance, var)].set;
    return set->len + (set_is_wild(set) ? p->nodes.data[graph_component(p, p->wilderness)].set.len : 0);
}

bool pta_is_wild_in(const pta *p, uint32_t instance, uint32_t var)
{
    return var != PTA_NO_VAR && set_is_wild(&p->nodes.data[shown_component(p, instance, var)].set);
}

uint64_t pta_hash_in(const pta *p, uint32_t instance, uint32_t var)
{
    const pta_set *set = &p->nodes.data[shown_component(p, instance, var)].set;
    uint64_t hash = set->len;
    for (uint32_t i = 0; i < set->len; i++)
        hash = (hash ^ set->keys[i]) * 0x9e3779b97f4a7c15u;
    return map_hash(hash);
}

bool pta_is_same_in(const pta *p, uint32_t instance, uint32_t var, uint32_t other_instance, uint32_t other)
{
    uint32_t a = shown_component(p, instance, var), b = shown_component(p, other_instance, other);
    const pta_set *x = &p->nodes.data[a].set, *y = &p->nodes.data[b].set;
    return a == b || (x->len == y->len && (!x->len || !memcmp(x->keys, y->keys, x->len * sizeof *x->keys)));
}

pta_place places_one(const pta *p, uint32_t object, offset_t at)
{
    const graph_object *o = &p->objects.data[object];
    const pta_shape *shape = p->shapes.data[object];
    pta_place place = {.site = view_site_of(p, o->site), .context = view_context_of(p, o->context), .exact = offset_is_exact(at), .least = INT32_MIN, .end = INT32_MAX};
    place.offset = (int32_t)offset_at(at);
    if (place.exact) return place;
    place.element = shape ? shape->element : 0;
    place.stride = offset_is_element(at) ? place.element : offset_stride(at);
    if (offset_is_element(at)) return place;
    if (!offset_has_windows(shape)) {
        if (offset_least(at) != OFFSET_NO_LEAST) place.least = (int32_t)offset_least(at);
    } else if (offset_window(at)) {
        place.least = shape->windows[offset_window(at)].start;
        place.end = shape->windows[offset_window(at)].end;
    }
    return place;
}

static bool is_later(const pta_place *a, const pta_place *b)
{
    return a->site != b->site ? a->site > b->site : a->context > b->context;
}

/* By object, as they are shown; those of one object stay in their order. Mostly they are sorted but for a few. */
static void sort_places(pta_places *places)
{
    enum { FEW = 16 };
    uint32_t n = places->len, from = 1;
    while (from < n && !is_later(&places->data[from - 1], &places->data[from]))
        from++;
    if (from >= n) return;
    if (n <= FEW) {
        for (uint32_t i = from; i < n; i++)
            for (uint32_t k = i; k && is_later(&places->data[k - 1], &places->data[k]); k--) {
                pta_place t = places->data[k];
                places->data[k] = places->data[k - 1];
                places->data[k - 1] = t;
            }
        return;
    }
    pta_place *to = base_alloc(n * sizeof *to), *data = places->data;
    for (uint32_t width = 1; width < n; width *= 2) { /* merge sort: stable */
        for (uint32_t low = 0; low < n; low += 2 * width) {
            uint32_t middle = low + width < n ? low + width : n, end = low + 2 * width < n ? low + 2 * width : n, a = low, b = middle;
            for (uint32_t k = low; k < end; k++)
                to[k] = b == end || (a < middle && !is_later(&data[a], &data[b])) ? data[a++] : data[b++];
        }
        pta_place *t = data;
        data = to;
        to = t;
    }
    if (data != places->data) {
        memcpy(places->data, data, n * sizeof *data);
        free(data);
    } else {
        free(to);
    }
}

/* The places of a closed set. */
void places_of_set(const pta *p, const pta_set *set, pta_places *out)
{
    key_list normal = {0};
    set_normal(set, graph_world(p), &normal);
    vec_clear(out);
    vec_reserve(out, normal.len);
    for (uint32_t i = 0; i < normal.len; i++)
        out->data[out->len++] = places_one(p, key_object(normal.data[i]), key_offset(normal.data[i]));
    vec_free(&normal);
    sort_places(out);
}

static void give_places(const pta *p, pta_set *set, pta_places *out)
{
    places_of_set(p, set, out);
    set_free(set);
}

/* Of one component alone. */
static void component_places(const pta *p, uint32_t component, pta_operand what, uint32_t stride, pta_places *out)
{
    const pta_set *set = &p->nodes.data[component].set;
    if (!what.delta && stride == PTA_SAME && !set_is_wild(set)) { /* it is closed as it is */
        places_of_set(p, set, out);
        return;
    }
    pta_set all = {.tame = true};
    key_list keys = {0};
    bool wild = add_keys_of(p, component, what, stride, &keys);
    close_keys(p, &keys, wild, &all);
    give_places(p, &all, out);
}

/* Only what does not lie dormant: that other keys are kept, too, is for the sake of later deletions, and not part of the result. */
static void tell_begins(const pta *p, const pta_set *set, pta_begin *found, void *with)
{
    key_list normal = {0};
    set_normal(set, graph_world(p), &normal);
    for (uint32_t i = 0; i < normal.len; i++) {
        const graph_object *o = &p->objects.data[key_object(normal.data[i])];
        offset_t at = key_offset(normal.data[i]);
        if (offset_is_exact(at) && !offset_value(at)) found(with, view_site_of(p, o->site), view_context_of(p, o->context));
    }
    vec_free(&normal);
}

struct pta_told {
    uint64_t *components; /* bits */
};

pta_told *pta_told_open(const pta *p)
{
    pta_told *told = base_alloc_zero(1, sizeof *told);
    told->components = base_alloc_zero(p->nodes.len / 64 + 1, sizeof *told->components);
    return told;
}

void pta_told_close(pta_told *told)
{
    free(told->components);
    free(told);
}

static bool is_told(pta_told *told, uint32_t component)
{
    uint64_t *word = &told->components[component / 64], bit = 1ull << component % 64;
    bool known = *word & bit;
    *word |= bit;
    return known;
}

void pta_each_begin(const pta *p, uint32_t func, uint32_t var, pta_told *told, pta_begin *found, void *with)
{
    const id_list *of = &p->instances_of.data[view_func(p, func)];
    var = view_var(p, view_func(p, func), var);
    bool wild = false;
    for (uint32_t i = 0, last = NO_NODE; i < of->len; i++) {
        const graph_instance *instance = &p->instances.data[of->data[i]];
        uint32_t component = graph_component(p, graph_var(instance, var));
        if (!instance->live || component == last) continue;
        last = component;
        const pta_set *set = &p->nodes.data[component].set;
        wild |= set_is_wild(set);
        if (!is_told(told, component)) tell_begins(p, set, found, with);
    }
    uint32_t wilderness = graph_component(p, p->wilderness);
    if (wild && !is_told(told, wilderness)) tell_begins(p, &p->nodes.data[wilderness].set, found, with);
}

void pta_points_to_in(const pta *p, uint32_t instance, pta_operand what, uint32_t stride, pta_places *out)
{
    vec_clear(out);
    if (what.var != PTA_NO_VAR)
        component_places(p, shown_component(p, instance, what.var), what, stride, out);
}

void pta_points_to(const pta *p, uint32_t func, pta_operand what, uint32_t stride, pta_places *out)
{
    const id_list *of = &p->instances_of.data[view_func(p, func)];
    what.var = view_var(p, view_func(p, func), what.var);
    id_list components = {0};
    for (uint32_t i = 0; i < of->len && what.var != PTA_NO_VAR; i++)
        if (p->instances.data[of->data[i]].live)
            vec_push(&components, graph_component(p, graph_var(&p->instances.data[of->data[i]], what.var)));
    bool one = components.len > 0, wild = false;
    for (uint32_t i = 1; i < components.len && one; i++)
        one = components.data[i] == components.data[0];
    vec_clear(out);
    if (one) {
        component_places(p, components.data[0], what, stride, out);
    } else {
        pta_set all = {.tame = true};
        key_list keys = {0};
        for (uint32_t i = 0; i < components.len; i++)
            if (!i || components.data[i] != components.data[i - 1]) wild |= add_keys_of(p, components.data[i], what, stride, &keys);
        close_keys(p, &keys, wild, &all);
        give_places(p, &all, out);
    }
    vec_free(&components);
}

static bool is_inside(const pta_site *site, bool exact, int64_t offset)
{
    bool bounded = exact && site->size && !site->open && site->kind != PTA_FUNCTION;
    return !bounded || (offset >= 0 && (uint64_t)offset < site->size);
}

/* Drops the places that lie outside of their object. */
static void keep_inside(const pta *p, pta_places *places)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < places->len; i++) {
        const pta_place *place = &places->data[i];
        if (is_inside(&view_program(p)->sites.data[place->site], place->exact, place->offset)) places->data[kept++] = *place;
    }
    places->len = kept;
}

/* The objects that some key leads into, until there are more than `most`. */
static uint32_t count_objects(const pta *p, const pta_set *set, const graph_label *label, uint32_t most)
{
    uint32_t objects = 0, last = 0; /* no object has number 0 */
    for (uint32_t i = 0; i < set->len && objects <= most && set->len - i > most - objects; i++) {
        uint32_t object = key_object(set->keys[i]);
        if (object == last) continue;
        pta_key key = label ? graph_transfer(p, set->keys[i], label) : set->keys[i];
        if (!key || key == set_wild_key()) continue;
        offset_t at = key_offset(key);
        if (!is_inside(&p->program->sites.data[p->objects.data[object].site], offset_is_exact(at), (int32_t)offset_at(at))) continue;
        last = object;
        objects++;
    }
    return objects;
}

/* A key that leads into its object stays a place there, or becomes part of a class: either way the object has one. What wild
 * pointers point to is counted alone, since some of its own may be the same. */
bool pta_is_broad_in(const pta *p, uint32_t instance, pta_operand what, uint32_t stride, uint32_t most)
{
    if (what.var == PTA_NO_VAR) return false;
    const pta_set *set = &p->nodes.data[shown_component(p, instance, what.var)].set;
    if (count_objects(p, set, &(graph_label){what.delta, stride}, most) > most) return true;
    return set_is_wild(set) && count_objects(p, &p->nodes.data[graph_component(p, p->wilderness)].set, NULL, most) > most;
}

void pta_access_places(const pta *p, const pta_access *access, pta_places *out)
{
    pta_points_to(p, access->func, access->base, access->stride, out);
    keep_inside(p, out);
}

void pta_access_places_in(const pta *p, uint32_t instance, const pta_access *access, pta_places *out)
{
    pta_points_to_in(p, instance, access->base, access->stride, out);
    keep_inside(p, out);
}

void pta_escaped(const pta *p, pta_places *out)
{
    pta_points_to(p, view_program(p)->outside, (pta_operand){PTA_RET, 0}, PTA_SAME, out);
}

uint32_t pta_instance_count(const pta *p)
{
    return p->view ? p->view->instance_count : p->instances.len;
}

bool pta_instance_at(const pta *p, uint32_t instance, pta_instance *out)
{
    const graph_instance *i = &p->instances.data[view_instance(p, instance)];
    *out = (pta_instance){view_func_of(p, i->func), view_context_of(p, i->context)};
    return i->live;
}

static int by_callee(const void *a, const void *b)
{
    const pta_call_edge *x = a, *y = b;
    if (x->callee != y->callee) return x->callee < y->callee ? -1 : 1;
    if (x->caller != y->caller) return x->caller < y->caller ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

uint32_t pta_call_graph(const pta *p, pta_call_edge **edges)
{
    VEC(pta_call_edge) all = {0};
    for (uint32_t i = 0; i < p->instances.len; i++) {
        const graph_instance *callee = &p->instances.data[i];
        for (uint32_t c = 0; c < callee->callers.len; c++) { /* of a live one */
            if (graph_is_dormant(p, &callee->callers.data[c])) continue;
            uint32_t use = callee->callers.data[c].use;
            vec_push(&all, (pta_call_edge){view_instance_of(p, p->uses.data[use].instance), view_instance_of(p, i),
                                           view_call_of(p, graph_stmt(p, use)->ref)});
        }
    }
    if (all.len) qsort(all.data, all.len, sizeof *all.data, by_callee);
    *edges = all.data;
    return all.len;
}

bool pta_heap_call(const pta *p, const pta_place *place, uint32_t *module, uint64_t *addr)
{
    const graph_context *c = &p->contexts.data[view_context(p, place->context)];
    for (uint32_t i = c->count; i-- > 0;) {
        const pta_call *call = &view_program(p)->calls.data[view_call_of(p, c->calls[i])];
        if (!call->addr) continue;
        *module = view_program(p)->funcs.data[call->caller].module;
        *addr = call->addr;
        return true;
    }
    return false;
}

uint32_t pta_heap_calls(const pta *p, const pta_place *place, uint32_t calls[PTA_HEAP_CALLS])
{
    const graph_context *c = &p->contexts.data[view_context(p, place->context)];
    for (uint32_t i = 0; i < c->count && i < PTA_HEAP_CALLS; i++)
        calls[i] = view_call_of(p, c->calls[i]);
    return c->count < PTA_HEAP_CALLS ? c->count : PTA_HEAP_CALLS;
}

uint32_t pta_context_base(const pta *p, uint32_t context)
{
    return view_base_of(p, p->contexts.data[view_context(p, context)].base);
}
