/* A result for another program.
 *
 * Functions are the same by module, name and number among those of that name; sites also by all that the result depends
 * on, so that one that changed is another; statements as match.c says. What is not the same is deleted and inserted as
 * by pta_update. Types are no statements: where heap objects, which are shaped by them, would have another shape now,
 * all is begun anew, and so it is where a module came or went, or where the parts that the analysis relies on (wild
 * pointers) are not what they were. */
#include "static/pointer/follow.h"

#include <stdlib.h>

#include "static/pointer/view.h"

/* --- identity ---------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return map_hash(hash * 0x100000001b3u + value + 1);
}

/* Compilers' suffixes (`.constprop.0`, `counter.1234`) are no part of a name, nor are addresses of functions that have
 * none. */
static uint64_t name_hash(const char *name)
{
    uint64_t hash = 1;
    bool numbered = !strncmp(name, "sub_", 4);
    for (const char *at = name; *at && (*at != '.' || at == name) && !(numbered && at == name + 4); at++)
        hash = mix(hash, (unsigned char)*at);
    return hash;
}

/* The k-th of what has this hash. */
static uint64_t ordinal(map64 *seen, uint64_t hash)
{
    uint32_t *count = map_at(seen, hash >> 1);
    *count = *count == MAP_NONE ? 0 : *count + 1;
    return mix(hash, *count) >> 1;
}

static uint64_t *identify_funcs(const pta_program *program)
{
    uint64_t *ids = base_alloc((program->funcs.len + 1) * sizeof *ids);
    map64 seen = {0};
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        const pta_func *func = &program->funcs.data[f];
        ids[f] = ordinal(&seen, mix(name_hash(func->name), func->lift ? func->module + 1 : 0));
    }
    map_free(&seen);
    return ids;
}

static uint64_t site_hash(saying *says, const pta_program *program, const uint64_t *funcs, uint32_t id)
{
    const pta_site *s = &program->sites.data[id];
    uint64_t hash = mix(s->kind | (uint64_t)s->constant << 8 | (uint64_t)s->any << 9 | (uint64_t)s->open << 10 |
                            (uint64_t)s->sized << 16 | (uint64_t)s->counted << 24 | (uint64_t)s->align << 32 |
                            (uint64_t)(s->memory == id) << 40,
                        s->func == PTA_NO_FUNC ? 0 : funcs[s->func]);
    hash = mix(mix(mix(hash, s->size), (uint64_t)s->base), says_shape(says, s->shape));
    if (s->kind == PTA_STATIC || s->kind == PTA_TLS) hash = mix(hash, s->module);
    if (s->kind == PTA_FRAME) hash = mix(hash, s->start);
    if (s->name && s->kind != PTA_FUNCTION) hash = mix(hash, name_hash(s->name));
    return hash;
}

static uint64_t *identify_sites(saying *says, const pta_program *program, const uint64_t *funcs)
{
    uint32_t count = program->sites.len;
    uint64_t *hashes = base_alloc((count + 1) * sizeof *hashes);
    map64 seen = {0};
    for (uint32_t s = 0; s < count; s++)
        hashes[s] = site_hash(says, program, funcs, s);
    for (uint32_t s = 0; s < count; s++)
        if (program->sites.data[s].memory == s) hashes[s] = ordinal(&seen, hashes[s]);
    for (uint32_t s = 0; s < count; s++) /* what lies in another is the same only there */
        if (program->sites.data[s].memory != s)
            hashes[s] = ordinal(&seen, mix(hashes[s], hashes[program->sites.data[s].memory]));
    map_free(&seen);
    return hashes;
}

/* --- the own program ------------------------------------------------------------------------------------------------------------ */

static void map_reset(follow_map *map, uint32_t in, uint32_t out, uint32_t room)
{
    free(map->in);
    free(map->out);
    *map = (follow_map){.in_count = in, .out_count = out};
    map->in = base_alloc(((size_t)in + 1) * sizeof *map->in);
    map->out = base_alloc(((size_t)out + room + 1) * sizeof *map->out);
    memset(map->in, 0xff, ((size_t)in + 1) * sizeof *map->in);
    memset(map->out, 0xff, ((size_t)out + room + 1) * sizeof *map->out);
}

static void map_same(follow_map *map, uint32_t count)
{
    map_reset(map, count, count, 0);
    for (uint32_t i = 0; i < count; i++)
        map->in[i] = map->out[i] = i;
}

static pta_program *copy_program(const pta_program *from)
{
    pta_program *own = base_alloc_zero(1, sizeof *own);
    *own = *from;
    own->maps = NULL;
    own->memory = (arena){0};
    own->funcs.data = NULL, own->funcs.len = own->funcs.cap = 0;
    own->sites.data = NULL, own->sites.len = own->sites.cap = 0;
    own->calls.data = NULL, own->calls.len = own->calls.cap = 0;
    own->modules = base_alloc(((size_t)from->module_count + 1) * sizeof *own->modules);
    memcpy(own->modules, from->modules, from->module_count * sizeof *own->modules);
    vec_reserve(&own->funcs, from->funcs.len);
    for (uint32_t f = 0; f < from->funcs.len; f++) {
        pta_func func = from->funcs.data[f];
        func.name = NULL;
        func.accesses = NULL;
        func.access_count = 0;
        func.stmts.data = NULL, func.stmts.len = func.stmts.cap = 0;
        vec_reserve(&func.stmts, from->funcs.data[f].stmts.len);
        func.stmts.len = from->funcs.data[f].stmts.len;
        if (func.stmts.len)
            memcpy(func.stmts.data, from->funcs.data[f].stmts.data, func.stmts.len * sizeof *func.stmts.data);
        vec_push(&own->funcs, func);
    }
    vec_reserve(&own->sites, from->sites.len);
    for (uint32_t s = 0; s < from->sites.len; s++)
        vec_push(&own->sites, from->sites.data[s]);
    vec_reserve(&own->calls, from->calls.len);
    for (uint32_t c = 0; c < from->calls.len; c++)
        vec_push(&own->calls, from->calls.data[c]);
    return own;
}

static void free_program(pta_program *own)
{
    for (uint32_t f = 0; f < own->funcs.len; f++)
        vec_free(&own->funcs.data[f].stmts);
    vec_free(&own->funcs);
    vec_free(&own->sites);
    vec_free(&own->calls);
    arena_free(&own->memory);
    free(own->modules);
    free(own);
}

/* The shapes of objects, as hashes: their types may be gone when they are asked for. */
static void note_shapes(pta *p, saying *says)
{
    for (uint32_t o = p->object_says.len; o < p->objects.len; o++)
        vec_push(&p->object_says, says_shape(says, p->shapes.data[o]));
    if (p->plain) note_shapes(p->plain, says);
}

static void set_program(pta *p, pta_program *own)
{
    p->program = own;
    if (p->plain) set_program(p->plain, own);
}

void follow_open(pta *p)
{
    struct follow *w = p->follow = base_alloc_zero(1, sizeof *w);
    saying says = {0};
    w->shown = p->program;
    w->own = copy_program(p->program);
    set_program(p, w->own);
    map_same(&w->func, w->shown->funcs.len);
    map_same(&w->site, w->shown->sites.len);
    map_same(&w->call, w->shown->calls.len);
    uint64_t *funcs = identify_funcs(w->shown), *sites = identify_sites(&says, w->shown, funcs);
    for (uint32_t c = 0; c < w->shown->calls.len; c++)
        vec_push(&w->makes, says_type(&says, w->shown->calls.data[c].makes));
    follow_work k = {w, &says, NULL};
    for (uint32_t f = 0; f < w->shown->funcs.len; f++) {
        const pta_func *func = &w->shown->funcs.data[f];
        *map_at(&w->func_ids, funcs[f]) = f;
        vec_push(&w->funcs,
                 (follow_func){.says = match_says(&k, f), .var_count = func->var_count, .stmt_count = func->stmts.len});
    }
    for (uint32_t s = 0; s < w->shown->sites.len; s++) {
        *map_at(&w->site_ids, sites[s]) = s;
        vec_push(&w->gone, false);
    }
    note_shapes(p, &says);
    says_free(&says);
    free(funcs);
    free(sites);
}

void follow_close(struct follow *w)
{
    if (!w) return;
    for (uint32_t f = 0; f < w->funcs.len; f++) {
        free(w->funcs.data[f].vars);
        free(w->funcs.data[f].stmts);
        free(w->funcs.data[f].shown);
    }
    const follow_map *maps[] = {&w->func, &w->site, &w->call};
    for (unsigned i = 0; i < 3; i++) {
        free(maps[i]->in);
        free(maps[i]->out);
    }
    vec_free(&w->funcs);
    vec_free(&w->makes);
    vec_free(&w->gone);
    map_free(&w->func_ids);
    map_free(&w->site_ids);
    free_program(w->own);
    free(w);
}

/* --- what is the same ------------------------------------------------------------------------------------------------------------ */

static void match_funcs(struct follow *w, const uint64_t *ids)
{
    const pta_program *shown = w->shown;
    map_reset(&w->func, shown->funcs.len, w->own->funcs.len, shown->funcs.len);
    for (uint32_t f = 0; f < shown->funcs.len; f++) {
        const pta_func *func = &shown->funcs.data[f];
        uint32_t *known = map_at(&w->func_ids, ids[f]), own = *known;
        if (own == MAP_NONE) {
            own = *known = w->own->funcs.len;
            vec_push(&w->own->funcs, (pta_func){.lift = func->lift,
                                                .module = func->module,
                                                .var_count = PTA_FIRST_LOCAL,
                                                .needs = func->needs,
                                                .clone = func->clone,
                                                .root = func->root,
                                                .loader = func->loader});
            vec_push(&w->funcs, (follow_func){.var_count = PTA_FIRST_LOCAL});
            w->func.out_count++;
        }
        w->func.in[f] = own;
        w->func.out[own] = f;
    }
}

static pta_site own_site(const struct follow *w, uint32_t shown)
{
    pta_site site = w->shown->sites.data[shown];
    if (site.func != PTA_NO_FUNC) site.func = w->func.in[site.func];
    site.memory = w->site.in[site.memory];
    return site;
}

/* A shape that outlives its program, and has no type: nothing is stored in what is gone. */
static void keep_shape(struct follow *w, uint32_t own)
{
    pta_site *site = &w->own->sites.data[own];
    site->type = NULL;
    site->name = NULL;
    w->gone.data[own] = true;
    if (!site->shape) return;
    pta_shape *copy =
        arena_copy(&w->own->memory, site->shape, sizeof *copy + site->shape->count * sizeof *copy->windows);
    copy->type = NULL;
    site->shape = copy;
}

static void match_sites(struct follow *w, const uint64_t *ids)
{
    uint32_t count = w->shown->sites.len, had = w->own->sites.len;
    map_reset(&w->site, count, had, count);
    for (uint32_t s = 0; s < count; s++) {
        uint32_t *known = map_at(&w->site_ids, ids[s]);
        if (*known == MAP_NONE) {
            *known = w->own->sites.len;
            vec_push(&w->own->sites, (pta_site){0});
            vec_push(&w->gone, false);
            w->site.out_count++;
        }
        w->site.in[s] = *known;
        w->site.out[*known] = s;
    }
    for (uint32_t s = 0; s < count; s++) {
        w->own->sites.data[w->site.in[s]] = own_site(w, s);
        w->gone.data[w->site.in[s]] = false;
    }
    for (uint32_t o = 0; o < had; o++)
        if (w->site.out[o] == FOLLOW_NONE && !w->gone.data[o]) keep_shape(w, o);
}

/* Whether what the analysis relies on is where it was. */
static bool is_founded(const struct follow *w)
{
    const pta_program *own = w->own, *shown = w->shown;
    const uint32_t funcs[][2] = {{own->wilderness, shown->wilderness},
                                 {own->wild_call, shown->wild_call},
                                 {own->outside, shown->outside},
                                 {own->unknown, shown->unknown}};
    const uint32_t sites[][2] = {
        {own->external, shown->external}, {own->wild, shown->wild}, {own->escaped, shown->escaped}};
    for (unsigned i = 0; i < sizeof funcs / sizeof *funcs; i++)
        if (w->func.in[funcs[i][1]] != funcs[i][0]) return false;
    for (unsigned i = 0; i < sizeof sites / sizeof *sites; i++)
        if (w->site.in[sites[i][1]] != sites[i][0]) return false;
    for (uint32_t f = 0; f < shown->funcs.len; f++) {
        const pta_func *is = &shown->funcs.data[f], *was = &own->funcs.data[w->func.in[f]];
        if (is->loader != was->loader || !is->lift != !was->lift || (!is->lift && is->root != was->root)) return false;
    }
    for (uint32_t f = 0; f < w->func.out_count; f++) /* one that begins by itself cannot end */
        if (w->func.out[f] == FOLLOW_NONE && own->funcs.data[f].root && !own->funcs.data[f].lift) return false;
    return true;
}

/* --- shapes ---------------------------------------------------------------------------------------------------------------------- */

/* Whether the calls that lead to an object are there. */
static bool is_led_to(const struct follow *w, const graph_context *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (w->call.out[c->calls[i]] == FOLLOW_NONE) return false;
    return true;
}

/* Objects get their shapes of now. False: one of them has another. */
static bool renew_shapes(pta *p, struct follow *w, saying *says)
{
    bool same = true;
    arena before = p->shape_memory;
    p->shape_memory = (arena){0};
    vec_clear(&p->heap_shapes);
    vec_clear(&p->asked);
    map_free(&p->type_map);
    map_free(&p->shape_map);
    for (uint32_t o = 1; o < p->objects.len && same; o++) {
        const graph_object *object = &p->objects.data[o];
        const pta_site *site = &w->own->sites.data[object->site];
        const pta_shape *old = p->shapes.data[o];
        if (site->kind != PTA_HEAP) {
            p->shapes.data[o] = site->shape;
        } else if (w->site.out[object->site] != FOLLOW_NONE && is_led_to(w, &p->contexts.data[object->context])) {
            p->shapes.data[o] = heap_shape(p, site, object->context);
            same = says_shape(says, p->shapes.data[o]) == p->object_says.data[o];
        } else if (old) {
            pta_shape *copy = arena_copy(&p->shape_memory, old, sizeof *copy + old->count * sizeof *copy->windows);
            copy->type = NULL;
            p->shapes.data[o] = copy;
        }
    }
    arena_free(&before);
    return same && (!p->plain || renew_shapes(p->plain, w, says));
}

/* --- the change ------------------------------------------------------------------------------------------------------------------ */

static void free_plan(update_plan *plan)
{
    vec_free(&plan->edits);
    vec_free(&plan->renewed);
    vec_free(&plan->amended);
    vec_free(&plan->switched);
}

/* Calls by name of functions that become clones, or cease to be. */
static void renew_calls(struct follow *w, update_plan *plan)
{
    bool *turns = base_alloc_zero(w->own->funcs.len + 1, 1), any = false;
    for (uint32_t i = 0; i < plan->switched.len; i++)
        any |= turns[plan->switched.data[i].func] = plan->switched.data[i].clone != plan->switched.data[i].cloned;
    map64 deleted = {0};
    for (uint32_t i = 0; i < plan->edits.len && any; i++)
        if (!plan->edits.data[i].insert)
            *map_at(&deleted, (uint64_t)plan->edits.data[i].func << 32 | plan->edits.data[i].stmt) = 1;
    for (uint32_t f = 0; f < w->own->funcs.len && any; f++) {
        const pta_func *func = &w->own->funcs.data[f];
        for (uint32_t s = 0; s < func->stmts.len; s++) {
            if (func->stmts.data[s].dead || func->stmts.data[s].kind != PTA_CALL) continue;
            uint32_t callee = w->own->calls.data[func->stmts.data[s].ref].func;
            if (callee == PTA_NO_FUNC || !turns[callee] || map_get(&deleted, (uint64_t)f << 32 | s) != MAP_NONE)
                continue;
            vec_push(&plan->renewed, (stmt_place){f, s});
            for (uint32_t i = 0; i < plan->amended.len; i++)
                if (plan->amended.data[i].call == func->stmts.data[s].ref) plan->amended.data[i].whole = true;
        }
    }
    map_free(&deleted);
    free(turns);
}

/* Makes the own program say both what it said and what it will, and plans the way from the one to the other. False:
 * there is none. */
static bool plan_change(pta *p, follow_work *k, bool *changed)
{
    struct follow *w = k->w;
    uint32_t had = w->own->funcs.len;
    uint64_t *funcs = identify_funcs(w->shown), *sites = identify_sites(k->says, w->shown, funcs);
    match_funcs(w, funcs);
    match_sites(w, sites);
    free(funcs);
    free(sites);
    if (!is_founded(w)) return false;
    map_reset(&w->call, w->shown->calls.len, w->own->calls.len, w->shown->calls.len);
    bool sound = true;
    for (uint32_t f = 0; f < w->shown->funcs.len; f++) {
        uint32_t own = w->func.in[f];
        const pta_func *is = &w->shown->funcs.data[f];
        pta_func *was = &w->own->funcs.data[own];
        was->lift = is->lift;
        was->module = is->module;
        was->root = is->root;
        if (own < had && (was->needs != is->needs || was->clone != is->clone))
            vec_push(&k->plan->switched, (func_switch){own, was->needs, is->needs, was->clone, is->clone});
        uint64_t says = match_says(k, f);
        changed[f] = says != w->funcs.data[own].says;
        if (changed[f]) {
            sound &= pta_may_edit(w->own, own);
            match_function(k, own, f);
            w->funcs.data[own].says = says;
        } else {
            match_calls(k, own, f);
        }
    }
    for (uint32_t o = 0; o < had; o++) {
        follow_func *ff = &w->funcs.data[o];
        if (w->func.out[o] != FOLLOW_NONE || !ff->says) continue;
        for (uint32_t i = 0; i < ff->stmt_count; i++)
            vec_push(&k->plan->edits, (pta_edit){o, ff->stmts ? ff->stmts[i] : i, false});
        if (!ff->shown) ff->shown = base_alloc(((size_t)w->own->funcs.data[o].stmts.len + 1) * sizeof *ff->shown);
        memset(ff->shown, 0xff, ((size_t)w->own->funcs.data[o].stmts.len + 1) * sizeof *ff->shown);
        ff->says = ff->stmt_count = 0;
        ff->var_count = PTA_FIRST_LOCAL;
    }
    memcpy(w->own->modules, w->shown->modules, w->shown->module_count * sizeof *w->own->modules);
    for (uint32_t c = 0; c < w->call.out_count; c++)
        if (w->call.out[c] == FOLLOW_NONE) w->own->calls.data[c].makes = NULL;
    renew_calls(w, k->plan);
    return sound && renew_shapes(p, w, k->says);
}

static void grow(pta *p, const bool *changed, const struct follow *w)
{
    while (p->instances_of.len < p->program->funcs.len)
        vec_push(&p->instances_of, (id_list){0});
    for (uint32_t f = 0; f < w->func.in_count; f++)
        if (changed[f]) graph_grow_instances(p, w->func.in[f]);
    if (!p->plain) return;
    uint32_t kept = 0; /* calls through pointers of functions that did not change */
    for (uint32_t i = 0; i < p->pointer_calls.len; i++) {
        uint32_t shown = w->func.out[p->pointer_calls.data[i].func];
        if (shown != FOLLOW_NONE && !changed[shown]) p->pointer_calls.data[kept++] = p->pointer_calls.data[i];
    }
    p->pointer_calls.len = kept;
    for (uint32_t f = 0; f < p->program->funcs.len; f++) {
        uint32_t shown = w->func.out[f];
        const pta_func *func = &p->program->funcs.data[f];
        for (uint32_t i = 0; (shown == FOLLOW_NONE || changed[shown]) && i < func->stmts.len; i++)
            if (func->stmts.data[i].kind == PTA_CALL &&
                p->program->calls.data[func->stmts.data[i].ref].func == PTA_NO_FUNC)
                vec_push(&p->pointer_calls, (stmt_place){f, i});
    }
    grow(p->plain, changed, w);
}

/* All from scratch, and with no holes. */
static int begin_anew(pta *p, pta_program *next, race_error *error)
{
    pta *fresh;
    if (pta_open(next, &p->options, &fresh, error)) return -1;
    pta old = *p;
    *p = *fresh;
    *fresh = old;
    pta_close(fresh);
    return 0;
}

/* Holes are cheap, but not for ever. */
static bool is_full_of_holes(const struct follow *w)
{
    enum { ROOM = 4096 };
    return w->own->calls.len > 2 * w->shown->calls.len + ROOM || w->own->sites.len > 2 * w->shown->sites.len + ROOM ||
           w->own->funcs.len > 2 * w->shown->funcs.len + ROOM;
}

/* --- what has changed ------------------------------------------------------------------------------------------------------------ */

typedef struct { /* numbers that were shown, by own ones */
    uint32_t *funcs, *sites, *calls, *contexts, *instances;
    uint32_t func_count, site_count, call_count, context_count, instance_count;
} numbers;

static uint32_t *copy_numbers(const uint32_t *from, uint32_t count)
{
    uint32_t *to = base_alloc(((size_t)count + 1) * sizeof *to);
    memcpy(to, from, count * sizeof *to);
    return to;
}

static numbers numbers_of(const pta *p, uint32_t contexts)
{
    const struct follow *w = p->follow;
    return (numbers){.funcs = copy_numbers(w->func.out, w->func.out_count),
                     .func_count = w->func.out_count,
                     .sites = copy_numbers(w->site.out, w->site.out_count),
                     .site_count = w->site.out_count,
                     .calls = copy_numbers(w->call.out, w->call.out_count),
                     .call_count = w->call.out_count,
                     .contexts = copy_numbers(p->view->context_of, contexts),
                     .context_count = contexts,
                     .instances = copy_numbers(p->view->instance_of, p->instances.len),
                     .instance_count = p->instances.len};
}

static void free_numbers(numbers *n)
{
    free(n->funcs);
    free(n->sites);
    free(n->calls);
    free(n->contexts);
    free(n->instances);
}

/* What each that is shown now (its own number: `in`) was shown as before. */
static uint32_t *numbers_before(const uint32_t *in, uint32_t count, const uint32_t *before, uint32_t before_count)
{
    uint32_t *to = base_alloc(((size_t)count + 1) * sizeof *to);
    for (uint32_t i = 0; i < count; i++)
        to[i] = in[i] < before_count ? before[in[i]] : PTA_NEW;
    return to;
}

/* Instances with a node that got or lost something; words of memory are nobody's. */
static void find_moved(pta *p, pta_changes *c)
{
    map64 touched = {0};
    for (uint32_t i = 0; i < p->touched.len; i++) {
        uint32_t node = p->touched.data[i];
        p->nodes.data[node].noted = false;
        c->memory |= p->nodes.data[node].word;
        c->wild |= node == p->wilderness;
        *map_at(&touched, node) = 1;
    }
    for (uint32_t i = 0; i < c->instance_count; i++) {
        const graph_instance *instance = &p->instances.data[p->view->instances[i]];
        uint32_t count = p->program->funcs.data[instance->func].var_count;
        c->moved[i] = c->instances[i] == PTA_NEW;
        for (uint32_t v = 0; v < count && touched.count && !c->moved[i]; v++)
            c->moved[i] = map_get(&touched, graph_var(instance, v)) != MAP_NONE;
    }
    map_free(&touched);
}

/* A hash of the calls to each instance, and of those that it makes: by own numbers. */
static uint64_t *hash_calls(const pta *p)
{
    uint64_t *hashes = base_alloc_zero(p->instances.len + 1, sizeof *hashes);
    for (uint32_t i = 0; i < p->instances.len; i++) {
        const graph_instance *callee = &p->instances.data[i];
        for (uint32_t c = 0; c < callee->callers.len; c++) {
            if (graph_is_dormant(p, &callee->callers.data[c])) continue;
            uint32_t use = callee->callers.data[c].use;
            uint64_t hash = mix(mix(use, i), graph_stmt(p, use)->ref);
            hashes[i] += hash;
            hashes[p->uses.data[use].instance] += hash;
        }
    }
    return hashes;
}

static void tell(pta *p, const numbers *before, const uint64_t *calls, pta_changes *c)
{
    const struct follow *w = p->follow;
    c->func_count = w->func.in_count;
    c->site_count = w->site.in_count;
    c->call_count = w->call.in_count;
    c->context_count = p->view->context_count;
    c->instance_count = p->view->instance_count;
    c->funcs = numbers_before(w->func.in, c->func_count, before->funcs, before->func_count);
    c->sites = numbers_before(w->site.in, c->site_count, before->sites, before->site_count);
    c->calls = numbers_before(w->call.in, c->call_count, before->calls, before->call_count);
    c->contexts = numbers_before(p->view->contexts, c->context_count, before->contexts, before->context_count);
    c->instances = numbers_before(p->view->instances, c->instance_count, before->instances, before->instance_count);
    c->moved = base_alloc_zero(c->instance_count + 1, 1);
    c->called = base_alloc_zero(c->instance_count + 1, 1);
    find_moved(p, c);
    uint64_t *now = hash_calls(p);
    for (uint32_t i = 0; i < c->instance_count; i++)
        c->called[i] = c->instances[i] == PTA_NEW || now[p->view->instances[i]] != calls[p->view->instances[i]];
    free(now);
}

int pta_follow(pta *p, pta_program *next, pta_changes *changes, race_error *error)
{
    struct follow *w = p->follow;
    *changes = (pta_changes){0};
    if (!w) return base_fail(error, "the analysis was not made to follow");
    if (w->broken || p->stale || next->module_count != w->shown->module_count || is_full_of_holes(w)) {
        changes->anew = true;
        return begin_anew(p, next, error);
    }
    saying says = {0};
    update_plan plan = {0};
    follow_work k = {w, &says, &plan};
    bool *changed = base_alloc_zero(next->funcs.len + 1, 1);
    numbers before = numbers_of(p, p->contexts.len);
    uint64_t *calls = hash_calls(p);
    w->shown = next;
    int status = 0;
    changes->anew = !plan_change(p, &k, changed);
    if (changes->anew) {
        w->broken = true;
        status = begin_anew(p, next, error);
        free(changed);
    } else {
        uint32_t begun = p->begun;
        grow(p, changed, w);
        for (uint32_t i = 0; i < p->touched.len; i++)
            p->nodes.data[p->touched.data[i]].noted = false;
        vec_clear(&p->touched);
        status = update_run(p, &plan, error);
        w->broken = status;
        changes->anew = p->begun != begun;
        changes->changed = changed;
        if (!status) {
            note_shapes(p, &says);
            view_open(p);
            if (!changes->anew) tell(p, &before, calls, changes);
        }
    }
    free_numbers(&before);
    free(calls);
    free_plan(&plan);
    says_free(&says);
    if (status) pta_changes_free(changes);
    return status;
}

void pta_changes_free(pta_changes *changes)
{
    free(changes->funcs);
    free(changes->sites);
    free(changes->calls);
    free(changes->contexts);
    free(changes->instances);
    free(changes->changed);
    free(changes->moved);
    free(changes->called);
    *changes = (pta_changes){0};
}
