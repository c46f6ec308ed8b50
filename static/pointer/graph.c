/* Nodes, edges and instances, and what each statement means as edges. */
#include "static/pointer/graph.h"

/* --- labels, objects, keys ------------------------------------------------------------------------------------------------ */

uint32_t graph_label_of(pta *p, int32_t delta, uint32_t stride)
{
    if (!p->labels.len) vec_push(&p->labels, (graph_label){0, PTA_SAME});
    if (!delta && stride == PTA_SAME) return 0;
    uint32_t *at = map_at(&p->label_map, (uint64_t)stride << 32 | (uint32_t)delta);
    if (*at == MAP_NONE) {
        *at = p->labels.len;
        vec_push(&p->labels, (graph_label){delta, stride});
    }
    return *at;
}

static bool is_per_instance(const pta_site *site)
{
    return site->kind == PTA_FRAME || site->kind == PTA_HEAP;
}

uint32_t graph_object_of(pta *p, uint32_t site, uint32_t context)
{
    const pta_site *s = &p->program->sites.data[site];
    if (s->kind == PTA_TLS)
        context = context_intern(p, (graph_context){.base = p->rules->thread(p, p->contexts.data[context].base)});
    else if (!is_per_instance(s))
        context = 0;
    uint64_t key = (uint64_t)site << 32 | context;
    uint32_t known = map_get(&p->object_map, key);
    if (known != MAP_NONE) return known;
    /* what each thread has of its own is told apart, what it holds is not: which thread runs code is not always known */
    bool own = s->kind != PTA_TLS || !context;
    uint32_t memory = s->memory == site && own ? MAP_NONE : graph_object_of(p, s->memory, own ? context : 0);
    uint32_t object = p->objects.len;
    *map_at(&p->object_map, key) = object;
    vec_push(&p->objects, (graph_object){.site = site, .context = context, .memory = memory == MAP_NONE ? object : memory,
                                         .any = s->kind == PTA_EXTERNAL || s->kind == PTA_WILD || s->any});
    vec_push(&p->wild, s->kind == PTA_FUNCTION ? SET_IS_CODE : 0);
    vec_push(&p->shapes, s->kind == PTA_HEAP ? heap_shape(p, s, context) : s->shape);
    vec_push(&p->memories, (object_memory){0});
    return object;
}

pta_key graph_normal(const pta *p, uint32_t object, offset_t place)
{
    const graph_object *o = &p->objects.data[object];
    const pta_site *site = &p->program->sites.data[o->site];
    if (o->any) return key_make(object, offset_anywhere());
    if (site->kind == PTA_FUNCTION) return place == offset_exact(0) ? key_make(object, place) : NO_KEY;
    if (offset_is_exact(place) && site->size && !site->open) {
        int64_t at = offset_value(place);
        if (at < -OFFSET_SLACK || at > (int64_t)site->size + OFFSET_SLACK) return NO_KEY;
    }
    place = offset_in_element(place, p->shapes.data[object]);
    return place ? key_make(object, place) : NO_KEY;
}

/* The size of an object, 0: unknown. */
static uint64_t object_size(const pta *p, uint32_t object)
{
    const pta_site *site = &p->program->sites.data[p->objects.data[object].site];
    const pta_shape *shape = p->shapes.data[object];
    return shape && shape->total ? shape->total : site->open ? 0 : site->size;
}

/* Whether a pointer that has moved by delta is of no use: nobody accesses what lies outside of an object, and an index leads in
 * again only from below, or when it may go back. Of a class that is said only when it holds for all places that it may cover. */
static bool is_lost(const pta *p, pta_key key, const graph_label *label)
{
    int64_t size = (int64_t)object_size(p, key_object(key)), delta = label->delta;
    if (!size || label->stride >= PTA_ALIGN) return false;
    bool index = label->stride != PTA_SAME, back = label->stride & PTA_BACK;
    if (offset_is_exact(key_offset(key))) return index && !back && offset_value(key_offset(key)) + delta >= size;
    return (delta > size + OFFSET_SLACK && !back) || (delta < -size - OFFSET_SLACK && !index);
}

pta_key graph_transfer(const pta *p, pta_key key, const graph_label *label)
{
    bool code = p->wild.data[key_object(key)] & SET_IS_CODE;
    if (label->stride == PTA_CODE) return code ? key : NO_KEY;
    if (label->stride == PTA_LOOSE) return code ? key : key_object(key) > SET_EXTERNAL_OBJECT ? key_make(key_object(key), offset_anywhere()) : NO_KEY;
    if (is_lost(p, key, label)) return NO_KEY;
    uint32_t object = key_object(key), stride = label->stride & ~(uint32_t)PTA_FLAGS;
    const pta_shape *shape = p->shapes.data[object];
    offset_t place = offset_add(key_offset(key), label->delta, shape);
    if (label->stride >= PTA_ALIGN) {
        const pta_site *site = &p->program->sites.data[p->objects.data[object].site];
        place = offset_align(place, label->stride - PTA_ALIGN, site->align, shape);
    } else if (stride != PTA_SAME) {
        bool up = !(label->stride & PTA_BACK);
        place = label->stride & PTA_BLOCK ? offset_block(place, stride, up, shape) : offset_spread(place, stride, up, shape);
    }
    return place ? graph_normal(p, object, place) : NO_KEY;
}

/* --- nodes and edges ------------------------------------------------------------------------------------------------------- */

uint32_t graph_add_node(pta *p)
{
    uint32_t node = p->nodes.len;
    vec_push(&p->nodes, (graph_node){.component = node, .next = node, .instance = UINT32_MAX});
    return node;
}

void graph_make_wild(pta *p, uint32_t component)
{
    if (p->nodes.data[component].tells) return;
    uint32_t edge = graph_add_edge(p, component, p->wilderness, graph_label_of(p, 0, PTA_LOOSE), UINT32_MAX, NO_KEY);
    p->nodes.data[component].tells = edge + 1;
    graph_note_wild(p, component);
    p->made_wild++;
}

void graph_mark_dirty(pta *p, uint32_t component)
{
    graph_node *node = &p->nodes.data[component];
    if (node->dirty) return;
    node->dirty = true;
    if (!p->options.once) node->level = !set_is_wild(&node->set); /* SET_WILD first: it spares others much */
    while (p->levels.len <= node->level)
        vec_push(&p->levels, (id_list){0});
    id_list *list = &p->levels.data[node->level];
    vec_push(list, component);
    if (node->level < p->lowest) p->lowest = node->level;
}

void graph_mark_woken(pta *p, uint32_t component)
{
    if (p->nodes.data[component].woken) return;
    p->nodes.data[component].woken = true;
    vec_push(&p->woken, component);
}

uint32_t graph_add_edge(pta *p, uint32_t from, uint32_t to, uint32_t label, uint32_t use, pta_key key)
{
    uint32_t edge;
    if (p->free_edges.len) {
        edge = p->free_edges.data[--p->free_edges.len];
    } else {
        edge = p->edges.len;
        vec_push(&p->edges, (graph_edge){0});
    }
    graph_edge *e = &p->edges.data[edge];
    *e = (graph_edge){.key = key, .from = from, .to = to, .label = label, .rank = p->now, .use = use, .next = NO_EDGE};
    if (!p->options.once && use != UINT32_MAX) {
        e->next = p->uses.data[use].edges;
        p->uses.data[use].edges = edge;
    }
    if (!p->options.once) { /* else nobody asks where something comes from, nor takes it away */
        e->in_at = p->nodes.data[to].in.len;
        vec_push(&p->nodes.data[to].in, edge);
    }
    if (from != NO_NODE) {
        e->out_at = p->nodes.data[from].out.len;
        vec_push(&p->nodes.data[from].out, edge);
    }
    vec_push(&p->new_edges, edge);
    p->live_edges++;
    return edge;
}

void graph_remove_edge(pta *p, uint32_t edge)
{
    graph_edge *e = &p->edges.data[edge];
    id_list *in = &p->nodes.data[e->to].in;
    in->data[e->in_at] = in->data[--in->len];
    p->edges.data[in->data[e->in_at]].in_at = e->in_at;
    if (e->from != NO_NODE) {
        id_list *out = &p->nodes.data[e->from].out;
        out->data[e->out_at] = out->data[--out->len];
        p->edges.data[out->data[e->out_at]].out_at = e->out_at;
    }
    if (e->use != UINT32_MAX) {
        uint32_t *link = &p->uses.data[e->use].edges;
        while (*link != edge)
            link = &p->edges.data[*link].next;
        *link = e->next;
    }
    e->to = NO_NODE;
    vec_push(&p->free_edges, edge);
    p->live_edges--;
}

/* --- instances ---------------------------------------------------------------------------------------------------------------- */

static void add_variable(pta *p, uint32_t instance)
{
    uint32_t node = graph_add_node(p);
    p->nodes.data[node].instance = instance;
}

uint32_t graph_instance_of(pta *p, uint32_t func, uint32_t context)
{
    uint32_t *at = map_at(&p->instance_map, (uint64_t)func << 32 | context);
    if (*at != MAP_NONE) return *at;
    *at = p->instances.len;
    const pta_func *f = &p->program->funcs.data[func];
    graph_instance instance = {.func = func, .context = context, .first_node = p->nodes.len, .first_use = p->uses.len,
                               .vars = f->var_count, .stmts = f->stmts.len};
    for (uint32_t i = 0; i < f->var_count; i++)
        add_variable(p, p->instances.len);
    for (uint32_t i = 0; i < f->stmts.len; i++)
        vec_push(&p->uses, (graph_use){.instance = p->instances.len, .stmt = i, .edges = NO_EDGE});
    vec_push(&p->instances_of.data[func], p->instances.len);
    vec_push(&p->instances, instance);
    prone_begin(p, p->instances.len - 1);
    return p->instances.len - 1;
}

/* With room for more: a function that was edited is edited again. */
static uint32_t stretch(stretch_list *list, uint32_t had, uint32_t needs, uint32_t first)
{
    enum { ROOM = 16 };
    uint32_t end = list->len ? list->data[list->len - 1].at + list->data[list->len - 1].count : had;
    if (end >= needs) return 0;
    uint32_t count = needs - end + ROOM + end / 8;
    vec_push(list, (graph_stretch){end, first, count});
    return count;
}

void graph_grow_instances(pta *p, uint32_t func)
{
    const pta_func *f = &p->program->funcs.data[func];
    for (uint32_t k = 0; k < p->instances_of.data[func].len; k++) {
        uint32_t id = p->instances_of.data[func].data[k];
        graph_instance *i = &p->instances.data[id];
        for (uint32_t n = stretch(&i->more_vars, i->vars, f->var_count, p->nodes.len); n; n--)
            add_variable(p, id);
        uint32_t first = p->uses.len, more = stretch(&i->more_stmts, i->stmts, f->stmts.len, first);
        for (uint32_t n = 0; n < more; n++)
            vec_push(&p->uses, (graph_use){.instance = id, .stmt = i->more_stmts.data[i->more_stmts.len - 1].at + n, .edges = NO_EDGE});
    }
}

/* The instance is called: its statements take effect. */
void graph_make_live(pta *p, uint32_t instance)
{
    graph_instance *i = &p->instances.data[instance];
    if (i->live) return;
    i->live = i->waiting = true;
    p->targets_changed = true;
    i->rank = p->now + 1; /* younger than the call */
    vec_push(&p->born, instance);
}

static uint32_t var_node(const pta *p, uint32_t instance, uint32_t var)
{
    return graph_var(&p->instances.data[instance], var);
}

static void pass(pta *p, uint32_t use, pta_key key, uint32_t from, int32_t delta, uint32_t to)
{
    graph_add_edge(p, from, to, graph_label_of(p, delta, PTA_SAME), use, key);
}

void graph_call(pta *p, uint32_t use, uint32_t func, pta_key key)
{
    uint32_t caller = p->uses.data[use].instance, id = graph_stmt(p, use)->ref;
    const pta_call call = p->program->calls.data[id];
    unsigned twins = p->rules->twins(p, caller, id);
    for (unsigned twin = 0; twin < twins; twin++) {
        uint32_t callee = graph_instance_of(p, func, context_callee(p, caller, id, func, twin));
        vec_push(&p->instances.data[callee].callers, (call_in){use, key, p->now});
        graph_make_live(p, callee);
        uint16_t needs = p->program->funcs.data[func].needs;
        for (unsigned i = 0; i < PTA_PARAMS; i++)
            if (call.args[i].var != PTA_NO_VAR && needs >> i & 1)
                pass(p, use, key, var_node(p, caller, call.args[i].var), call.args[i].delta, var_node(p, callee, i));
        if (call.ret != PTA_NO_VAR) pass(p, use, key, var_node(p, callee, PTA_RET), 0, var_node(p, caller, call.ret));
        if (call.ret2 != PTA_NO_VAR) pass(p, use, key, var_node(p, callee, PTA_RET2), 0, var_node(p, caller, call.ret2));
    }
}

/* The variable through which a statement goes to memory or code; PTA_NO_VAR: it depends on no key. */
static pta_operand pointer_of(const pta *p, const pta_stmt *stmt)
{
    switch (stmt->kind) {
    case PTA_LOAD: return stmt->src;
    case PTA_STORE: return stmt->dst;
    case PTA_CALL:
        if (p->program->calls.data[stmt->ref].func == PTA_NO_FUNC) return p->program->calls.data[stmt->ref].target;
        return (pta_operand){PTA_NO_VAR, 0};
    default: return (pta_operand){PTA_NO_VAR, 0};
    }
}

uint32_t graph_pointer_node(const pta *p, uint32_t use)
{
    pta_operand pointer = pointer_of(p, graph_stmt(p, use));
    return pointer.var == PTA_NO_VAR ? NO_NODE : var_node(p, p->uses.data[use].instance, pointer.var);
}

bool graph_is_dormant(const pta *p, const call_in *call)
{
    if (!call->key) return false;
    uint32_t component = graph_component(p, graph_pointer_node(p, call->use));
    return set_covers(&p->nodes.data[component].set, call->key, graph_world(p));
}

void graph_add_use(pta *p, uint32_t use)
{
    uint32_t instance = p->uses.data[use].instance;
    const pta_stmt stmt = *graph_stmt(p, use);
    if (stmt.dead) return;
    pta_operand pointer = pointer_of(p, &stmt);
    p->targets_changed |= stmt.kind == PTA_CALL;
    if (pointer.var != PTA_NO_VAR) {
        uint32_t node = var_node(p, instance, pointer.var), component = graph_component(p, node);
        vec_push(&p->nodes.data[node].uses, use);
        graph_node *c = &p->nodes.data[component];
        if (c->used) { /* those that are still in `fresh` come by themselves */
            uint32_t n = c->fresh.len;
            keys_sort(c->fresh.data, &n);
            c->fresh.len = n;
            for (uint32_t i = 0, k = 0; i < c->set.len; i++) {
                while (k < n && c->fresh.data[k] < c->set.keys[i])
                    k++;
                if (k == n || c->fresh.data[k] != c->set.keys[i]) vec_push(&p->pending, (use_key){.use = use, .key = c->set.keys[i]});
            }
        } else {
            for (uint32_t i = 0; i < c->set.len; i++)
                vec_push(&p->pending, (use_key){.use = use, .key = c->set.keys[i]});
            c->used = true;
        }
        return;
    }
    switch (stmt.kind) {
    case PTA_ADDR: {
        uint32_t object = graph_object_of(p, stmt.ref, p->instances.data[instance].context);
        offset_t place = offset_exact(stmt.src.delta);
        if (stmt.stride != PTA_SAME) place = offset_spread(place, stmt.stride, true, p->shapes.data[object]);
        pta_key key = graph_normal(p, object, place);
        if (key) graph_add_edge(p, NO_NODE, var_node(p, instance, stmt.dst.var), 0, use, key);
        break;
    }
    case PTA_COPY:
        graph_add_edge(p, var_node(p, instance, stmt.src.var), var_node(p, instance, stmt.dst.var),
                       graph_label_of(p, stmt.src.delta, stmt.stride), use, NO_KEY);
        break;
    case PTA_CALL:
        if (p->program->calls.data[stmt.ref].func != PTA_NO_FUNC)
            graph_call(p, use, p->program->calls.data[stmt.ref].func, NO_KEY);
        break;
    default: break;
    }
}

/* Constant data is written by the loader only. */
static bool may_write(const pta *p, uint32_t instance, pta_key at)
{
    const pta_func *f = &p->program->funcs.data[p->instances.data[instance].func];
    return f->loader || !p->program->sites.data[p->objects.data[key_object(at)].site].constant;
}

static void call_wild(pta *p, uint32_t use, pta_key key)
{
    uint32_t count;
    const uint32_t *targets = context_targets(p, p->uses.data[use].instance, graph_stmt(p, use)->ref, &count);
    for (uint32_t i = 0; i < count; i++)
        graph_call(p, use, targets[i], key);
}

void graph_calls_to(pta *p, uint32_t use, uint32_t func, pta_key key, call_list *out)
{
    uint32_t caller = p->uses.data[use].instance, id = graph_stmt(p, use)->ref;
    unsigned twins = p->rules->twins(p, caller, id);
    for (unsigned twin = 0; twin < twins; twin++) {
        uint32_t context = context_callee(p, caller, id, func, twin);
        uint32_t callee = map_get(&p->instance_map, (uint64_t)func << 32 | context), at = 0;
        if (callee == MAP_NONE) continue; /* the key lay dormant */
        const graph_instance *i = &p->instances.data[callee];
        while (at < i->callers.len && (i->callers.data[at].use != use || i->callers.data[at].key != key))
            at++;
        if (at < i->callers.len) vec_push(out, (call_place){callee, at});
    }
}

void graph_calls(pta *p, uint32_t use, pta_key key, call_list *out)
{
    const pta_stmt *stmt = graph_stmt(p, use);
    vec_clear(out);
    if (stmt->kind != PTA_CALL) return;
    uint32_t direct = p->program->calls.data[stmt->ref].func, count = 0;
    if (!key) {
        if (direct != PTA_NO_FUNC) graph_calls_to(p, use, direct, key, out);
        return;
    }
    const pta_site *site = &p->program->sites.data[p->objects.data[key_object(key)].site];
    if (site->kind == PTA_FUNCTION) graph_calls_to(p, use, site->func, key, out);
    if (site->kind == PTA_EXTERNAL) graph_calls_to(p, use, p->program->unknown, key, out);
    if (site->kind != PTA_WILD) return;
    const uint32_t *targets = context_targets(p, p->uses.data[use].instance, stmt->ref, &count);
    for (uint32_t i = 0; i < count; i++)
        graph_calls_to(p, use, targets[i], key, out);
}

void graph_apply_key(pta *p, uint32_t use, pta_key key)
{
    const pta_stmt stmt = *graph_stmt(p, use);
    uint32_t instance = p->uses.data[use].instance;
    pta_operand pointer = pointer_of(p, &stmt);
    p->targets_changed |= stmt.kind == PTA_CALL;
    graph_label label = {pointer.delta, stmt.kind == PTA_CALL ? PTA_SAME : stmt.stride};
    pta_key at = graph_transfer(p, key, &label);
    if (!at) return;
    const graph_cell *cell;
    if (key_object(at) == SET_WILD_OBJECT) {
        if (stmt.kind == PTA_LOAD)
            graph_add_edge(p, p->wilderness + PTA_RET, var_node(p, instance, stmt.dst.var), 0, use, key);
        else if (stmt.kind == PTA_STORE)
            graph_add_edge(p, var_node(p, instance, stmt.src.var), p->wilderness + PTA_RSI,
                           graph_label_of(p, stmt.src.delta, PTA_SAME), use, key);
        else if (stmt.kind == PTA_CALL)
            call_wild(p, use, key);
        return;
    }
    if (p->objects.data[key_object(at)].site == p->program->external) { /* known by one key, whatever it leads to */
        if (stmt.kind == PTA_LOAD) graph_add_edge(p, NO_NODE, var_node(p, instance, stmt.dst.var), 0, use, key);
        const pta_func *caller = &p->program->funcs.data[p->instances.data[instance].func];
        if (stmt.kind == PTA_CALL && caller->lift) graph_call(p, use, p->program->unknown, key); /* outside calls outside */
        if (stmt.kind != PTA_STORE) return;
        at = key_make(graph_object_of(p, p->program->escaped, 0), offset_exact(0));
    }
    switch (stmt.kind) {
    case PTA_LOAD:
        cell = graph_cell_of(p, at);
        if (cell) graph_add_edge(p, cell->load, var_node(p, instance, stmt.dst.var), 0, use, key);
        break;
    case PTA_STORE:
        cell = may_write(p, instance, at) ? graph_cell_of(p, at) : NULL;
        if (cell)
            graph_add_edge(p, var_node(p, instance, stmt.src.var), cell->store, graph_label_of(p, stmt.src.delta, PTA_SAME),
                           use, key);
        break;
    case PTA_CALL: {
        const pta_site *site = &p->program->sites.data[p->objects.data[key_object(at)].site];
        if (site->kind == PTA_FUNCTION && p->program->calls.data[stmt.ref].known != site->func + 1)
            graph_call(p, use, site->func, key);
        break;
    }
    default: break;
    }
}
