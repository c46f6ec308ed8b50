/* Origins: the program's start, threads, events. An origin is an instance of its entry function and the call that creates it;
 * what it runs follows from the call graph. A thread that a loop creates comes as two, which stand for any number. */
#include "static/hb/private.h"

enum { LEADS = 6 }; /* library functions between the code and what creates a thread */

/* The points of code from which an instance of a library function is called. */
static void leading_points(const hb *h, uint32_t instance, unsigned depth, hb_points *out)
{
    for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        if (hb_instance_code(h, e->caller))
            vec_push(out, (hb_point){e->caller, h->call_insn[e->call]});
        else if (depth < LEADS)
            leading_points(h, e->caller, depth + 1, out);
    }
}

static bool leads_in_loop(const hb *h, uint32_t instance, unsigned depth)
{
    for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        if (h->program->calls.data[e->call].in_loop) return true;
        if (!hb_instance_code(h, e->caller) && depth < LEADS && leads_in_loop(h, e->caller, depth + 1)) return true;
    }
    return false;
}

static uint8_t kind_of(const hb *h, const pta_call_edge *e, const sync_entry *by)
{
    if (h->instances[e->caller].func == h->program->outside) return HB_OUTSIDE;
    if (by && by->kind == SYNC_KEY) return HB_EVENT;
    if (h->program->calls.data[e->call].spawn == PTA_SPAWN_THREAD) return HB_THREAD;
    if (by && by->kind == SYNC_SIGNAL) return HB_SIGNAL;
    if (by && by->kind == SYNC_AT_EXIT) return HB_AT_EXIT;
    return HB_EVENT;
}

static void add_points(hb_points *to, const hb_points *from)
{
    for (uint32_t i = 0; i < from->len; i++) {
        bool known = false;
        for (uint32_t k = 0; k < to->len && !known; k++)
            known = to->data[k].instance == from->data[i].instance && to->data[k].insn == from->data[i].insn;
        if (!known) vec_push(to, from->data[i]);
    }
}

/* What a thread does at its end, the second `thread` of a model. It is not followed yet: most of it is counts of shared_ptr, of which too
 * little is known. */
static bool is_end(const hb *h, const pta_call_edge *e)
{
    const pta_call *call = &h->program->calls.data[e->call], *before = e->call ? call - 1 : NULL;
    return before && call->spawn == PTA_SPAWN_THREAD && before->spawn == PTA_SPAWN_THREAD && before->caller == call->caller &&
           !hb_instance_code(h, e->caller);
}

static void add_spawned(hb *h, const pta_call_edge *e)
{
    if (is_end(h, e)) return;
    const char *model = h->program->funcs.data[h->instances[e->caller].func].name;
    const sync_entry *by = hb_sync(h, model);
    uint8_t kind = kind_of(h, e, by);
    hb_points sites = {0};
    if (kind != HB_OUTSIDE) {
        if (hb_instance_code(h, e->caller))
            vec_push(&sites, (hb_point){e->caller, h->call_insn[e->call]});
        else
            leading_points(h, e->caller, 0, &sites);
    }
    for (uint32_t o = 1; o < h->origins.len; o++) {
        hb_origin *known = &h->origins.data[o];
        bool same = known->instance == e->callee && known->kind == kind;
        bool here = !sites.len || !known->sites.len ||
                    (known->sites.data[0].insn == sites.data[0].insn &&
                     h->instances[known->sites.data[0].instance].func == h->instances[sites.data[0].instance].func);
        if (!same || !here) continue;
        add_points(&known->sites, &sites);
        vec_push(&known->models, e->caller);
        vec_free(&sites);
        return;
    }
    hb_origin o = {.kind = kind, .entry = h->instances[e->callee].func, .instance = e->callee, .model = e->caller,
                   .twin = HB_NONE, .by = by, .looped = h->program->calls.data[e->call].in_loop && kind == HB_THREAD};
    o.sites.data = sites.data, o.sites.len = sites.len, o.sites.cap = sites.cap;
    for (uint32_t t = 1; t < h->origins.len && kind == HB_THREAD; t++) {
        hb_origin *twin = &h->origins.data[t];
        if (twin->model != o.model || twin->entry != o.entry || twin->twin != HB_NONE) continue;
        twin->twin = h->origins.len;
        o.twin = t;
        break;
    }
    vec_push(&o.models, e->caller);
    vec_push(&h->origins, o);
}

/* libstdc++ starts a thread with a virtual call, and all states pass through the same helpers. The state that a constructor of
 * std::thread starts is one that it has allocated itself: does a vtable of such a state lead to this function? */
static bool is_state_of(const hb *h, uint32_t constructor, uint32_t entry)
{
    bool any = false;
    for (uint32_t w = 0; w < h->memory.len; w++) {
        const hb_word *word = &h->memory.data[w];
        uint32_t calls[PTA_HEAP_CALLS];
        if (h->program->sites.data[word->word.site].kind != PTA_HEAP || word->word.offset) continue;
        bool own = false;
        for (uint32_t i = 0, n = pta_heap_calls(h->p, &word->word, calls); i < n; i++)
            own |= h->program->calls.data[calls[i]].caller == constructor;
        for (uint32_t i = 0; own && i < word->count; i++) {
            const pta_place *table = &h->held.data[word->first + i];
            if (h->program->sites.data[table->site].kind != PTA_STATIC) continue;
            for (uint32_t v = 0; v < h->memory.len; v++) {
                const hb_word *slot = &h->memory.data[v];
                if (slot->word.site != h->program->sites.data[table->site].memory ||
                    slot->word.offset != h->program->sites.data[table->site].base + table->offset + 16)
                    continue;
                any = true;
                for (uint32_t k = 0; k < slot->count; k++) {
                    const pta_site *site = &h->program->sites.data[h->held.data[slot->first + k].site];
                    if (site->kind == PTA_FUNCTION && site->func == entry) return true;
                }
            }
        }
    }
    return !any;
}

static void drop_foreign_states(hb *h)
{
    uint32_t kept = 1;
    uint32_t *now = base_alloc(h->origins.len * sizeof *now);
    now[0] = 0;
    for (uint32_t o = 1; o < h->origins.len; o++) {
        hb_origin *origin = &h->origins.data[o];
        bool keep = true;
        if (origin->kind == HB_THREAD && origin->sites.len) {
            uint32_t func = h->instances[origin->sites.data[0].instance].func;
            keep = strncmp(h->program->funcs.data[func].name, "_ZNSt6threadC", 13) || is_state_of(h, func, origin->entry);
        }
        now[o] = keep ? kept : HB_NONE;
        if (keep) {
            h->origins.data[kept++] = *origin;
        } else {
            vec_free(&origin->sites);
            vec_free(&origin->models);
        }
    }
    h->origins.len = kept;
    for (uint32_t o = 1; o < kept; o++)
        if (h->origins.data[o].twin != HB_NONE) h->origins.data[o].twin = now[h->origins.data[o].twin];
    free(now);
}

/* The functions that never come back and that many calls name: whoever calls them gives up. One that a single call names may as well be
 * the loop of a server. */
static bool *find_dying(const hb *h)
{
    enum { SEVERAL = 3 };
    bool *dying = base_alloc_zero(h->program->funcs.len, sizeof *dying);
    uint32_t *named = base_alloc_zero(h->program->funcs.len, sizeof *named);
    for (uint32_t c = 0; c < h->program->calls.len; c++)
        if (h->program->calls.data[c].func != PTA_NO_FUNC) named[h->program->calls.data[c].func]++;
    for (uint32_t f = 0; f < h->program->funcs.len; f++)
        dying[f] = named[f] >= SEVERAL && hb_code(h, f) && !hb_code(h, f)->returns;
    free(named);
    return dying;
}

enum { MANY = 8 }; /* functions that a call may go to until it is hardly known where it does */

static hb_doubt edge_doubt(const hb *h, const bool *dying, uint32_t edge, bool is_main)
{
    const pta_call_edge *e = &h->edges[edge];
    uint32_t count;
    if (h->instances[e->caller].func == h->program->wild_call) return HB_WILD;
    /* Somebody runs what such a call is made for, and that is main, if anybody. */
    if (!is_main && h->program->calls.data[e->call].func == PTA_NO_FUNC) {
        hb_callees(h, e->caller, e->call, &count);
        if (count > MANY) return HB_MANY;
    }
    return dying[h->instances[e->callee].func] ? HB_DYING : HB_SURE;
}

typedef bool skip_edge(const hb *h, uint32_t origin, uint32_t edge);

static uint64_t *find_reached(const hb *h, const hb_origin *o, const uint32_t *roots, uint32_t count, hb_doubt most, const bool *dying,
                              skip_edge *skips)
{
    hb_numbers work = {0};
    uint64_t *reached = base_alloc_zero(h->words, sizeof *reached);
    for (uint32_t i = 0; i < count; i++) {
        if (hb_bit(reached, roots[i])) continue;
        hb_set(reached, roots[i]);
        vec_push(&work, roots[i]);
    }
    while (work.len) {
        uint32_t caller = work.data[--work.len];
        for (uint32_t e = h->out_first[caller]; e < h->out_first[caller + 1]; e++) {
            uint32_t callee = h->edges[e].callee;
            if (hb_spawns(h, &h->edges[e]) || hb_bit(reached, callee)) continue;
            if (most < HB_WILD && edge_doubt(h, dying, e, o->kind == HB_MAIN) > most) continue;
            if (skips && skips(h, (uint32_t)(o - h->origins.data), e)) continue;
            hb_set(reached, callee);
            vec_push(&work, callee);
        }
    }
    vec_free(&work);
    return reached;
}

static void find_runs(hb *h, hb_origin *o, const uint32_t *roots, uint32_t count, const bool *dying)
{
    o->self = find_reached(h, o, roots, count, HB_WILD, dying, NULL);
    for (unsigned doubt = 0; doubt < HB_WILD; doubt++)
        o->within[doubt] = find_reached(h, o, roots, count, (hb_doubt)doubt, dying, NULL);
}

void hb_origin_skip(hb *h, uint32_t origin, skip_edge *skips)
{
    hb_origin *o = &h->origins.data[origin];
    bool *dying = find_dying(h);
    for (unsigned doubt = 0; doubt < HB_AGAINST; doubt++) {
        free(o->within[doubt]);
        o->within[doubt] = find_reached(h, o, &o->instance, 1, (hb_doubt)doubt, dying, skips);
    }
    free(dying);
}

/* What code outside may call matters only where nobody is known who calls it: else every function whose address leaves the
 * program would also run at any time. */
static void drop_known_outside(hb *h)
{
    bool *known = base_alloc_zero(h->program->funcs.len, sizeof *known);
    for (uint32_t o = 0; o < h->origins.len; o++)
        for (uint32_t i = 0; i < h->instance_count && h->origins.data[o].kind != HB_OUTSIDE; i++)
            if (hb_bit(h->origins.data[o].self, i)) known[h->instances[i].func] = true;
    for (uint32_t o = 0; o < h->origins.len; o++) {
        hb_origin *origin = &h->origins.data[o];
        if (origin->kind == HB_OUTSIDE && known[origin->entry]) memset(origin->self, 0, h->words * sizeof *origin->self);
    }
    free(known);
}

static bool is_run(const hb *h, uint32_t instance)
{
    for (uint32_t o = 0; o < h->origins.len; o++)
        if (hb_bit(h->origins.data[o].self, instance)) return true;
    return false;
}

/* What is created by code that nobody runs is not created: the share of its creator in a team, which brings nothing new. */
static void drop_uncreated(hb *h)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t o = 1; o < h->origins.len; o++) {
            hb_origin *origin = &h->origins.data[o];
            uint32_t kept = 0;
            if (origin->kind != HB_THREAD || !origin->sites.len) continue;
            for (uint32_t i = 0; i < origin->sites.len; i++)
                if (is_run(h, origin->sites.data[i].instance)) origin->sites.data[kept++] = origin->sites.data[i];
            changed |= kept != origin->sites.len && !kept;
            origin->sites.len = kept;
            if (!kept) memset(origin->self, 0, h->words * sizeof *origin->self);
        }
    }
}

static void find_parents(hb *h, hb_origin *o)
{
    for (uint32_t p = 0; p < h->origins.len; p++) {
        bool creates = false;
        for (uint32_t s = 0; s < o->sites.len && !creates; s++)
            creates = hb_bit(h->origins.data[p].self, o->sites.data[s].instance);
        if (creates) vec_push(&o->parents, p);
    }
}

static bool is_start(const hb *h, uint32_t instance)
{
    uint32_t func = h->instances[instance].func;
    return func != PTA_NO_FUNC && h->program->funcs.data[func].root && !h->program->funcs.data[func].lift;
}

static void find_once(hb *h)
{
    h->once = base_alloc_zero(h->instance_count, sizeof *h->once);
    hb_numbers work = {0};
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (is_start(h, i)) {
            h->once[i] = true;
            vec_push(&work, i);
        }
    while (work.len) {
        uint32_t caller = work.data[--work.len];
        for (uint32_t e = h->out_first[caller]; e < h->out_first[caller + 1]; e++) {
            uint32_t callee = h->edges[e].callee;
            bool looped = h->program->calls.data[h->edges[e].call].in_loop && !is_start(h, caller);
            if (looped || h->once[callee] || h->in_first[callee + 1] - h->in_first[callee] != 1) continue;
            if (hb_spawns(h, &h->edges[e]) && (!hb_instance_code(h, caller) && leads_in_loop(h, caller, 0))) continue;
            h->once[callee] = true;
            vec_push(&work, callee);
        }
    }
    vec_free(&work);
}

/* In a library, whatever it exports may run at any time; not what the loader runs before and behind it. */
static void add_entries(hb *h)
{
    for (uint32_t e = 0; e < h->edge_count; e++) {
        const pta_call_edge *edge = &h->edges[e];
        if (!is_start(h, edge->caller) || !hb_instance_code(h, edge->callee)) continue;
        if (h->program->funcs.data[h->instances[edge->callee].func].at_load) continue;
        vec_push(&h->origins, (hb_origin){.kind = HB_ENTRY, .entry = h->instances[edge->callee].func,
                                          .instance = edge->callee, .model = HB_NONE, .twin = HB_NONE, .overlaps = true});
    }
}

void hb_origins_open(hb *h)
{
    hb_numbers roots = {0};
    h->words = (h->instance_count + 63) / 64;
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (is_start(h, i)) vec_push(&roots, i);
    uint32_t start = 0;
    for (uint32_t i = 0; i < roots.len; i++)
        if (!strcmp(h->program->funcs.data[h->instances[roots.data[i]].func].name, "*start*")) start = roots.data[i];
    vec_push(&h->origins, (hb_origin){.kind = HB_MAIN, .entry = PTA_NO_FUNC, .instance = start,
                                      .model = HB_NONE, .twin = HB_NONE});
    if (h->options.open) add_entries(h);
    for (uint32_t e = 0; e < h->edge_count; e++)
        if (hb_spawns(h, &h->edges[e])) add_spawned(h, &h->edges[e]);
    drop_foreign_states(h);
    if (h->options.open) vec_clear(&roots);
    bool *dying = find_dying(h);
    find_runs(h, &h->origins.data[0], roots.data, roots.len, dying);
    for (uint32_t o = 1; o < h->origins.len; o++)
        find_runs(h, &h->origins.data[o], &h->origins.data[o].instance, 1, dying);
    free(dying);
    drop_known_outside(h);
    drop_uncreated(h);
    for (uint32_t o = 1; o < h->origins.len; o++)
        find_parents(h, &h->origins.data[o]);
    h->base_count = 1;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        uint32_t base = pta_context_base(h->p, h->instances[i].context);
        if (h->instances[i].func != PTA_NO_FUNC && base >= h->base_count) h->base_count = base + 1;
    }
    h->origin_of_base = base_alloc(h->base_count * sizeof *h->origin_of_base);
    memset(h->origin_of_base, 0xff, h->base_count * sizeof *h->origin_of_base);
    for (uint32_t o = 0; o < h->origins.len; o++) {
        uint32_t base = pta_context_base(h->p, h->instances[h->origins.data[o].instance].context);
        if (h->origin_of_base[base] == HB_NONE) h->origin_of_base[base] = o;
    }
    find_once(h);
    vec_free(&roots);
}

void hb_origins_close(hb *h)
{
    for (uint32_t o = 0; o < h->origins.len; o++) {
        hb_origin *origin = &h->origins.data[o];
        vec_free(&origin->sites);
        vec_free(&origin->parents);
        vec_free(&origin->models);
        vec_free(&origin->carriers);
        vec_free(&origin->at);
        free(origin->self);
        for (unsigned doubt = 0; doubt < HB_WILD; doubt++)
            free(origin->within[doubt]);
    }
    vec_free(&h->origins);
    free(h->once);
    free(h->origin_of_base);
}

const hb_origin *hb_origins(const hb *h, uint32_t *count)
{
    *count = h->origins.len;
    return h->origins.data;
}

bool hb_runs(const hb *h, uint32_t origin, uint32_t instance)
{
    return hb_bit(h->origins.data[origin].self, instance);
}

hb_doubt hb_origin_doubt(const hb *h, uint32_t origin, uint32_t instance)
{
    unsigned doubt = HB_SURE;
    while (doubt < HB_WILD && !hb_bit(h->origins.data[origin].within[doubt], instance))
        doubt++;
    return (hb_doubt)doubt;
}

const char *hb_origin_name(const hb *h, uint32_t origin)
{
    const hb_origin *o = &h->origins.data[origin];
    return o->kind == HB_MAIN ? "main" : h->program->funcs.data[o->entry].name;
}

const char *hb_kind_name(uint8_t kind)
{
    static const char *const names[] = {[HB_MAIN] = "main", [HB_THREAD] = "thread", [HB_EVENT] = "event handler",
                                        [HB_SIGNAL] = "signal handler", [HB_AT_EXIT] = "exit handler",
                                        [HB_ENTRY] = "a caller of", [HB_OUTSIDE] = "code outside, which knows"};
    return names[kind];
}

bool hb_origin_caller(const hb *h, uint32_t origin, hb_point *out)
{
    const hb_origin *o = &h->origins.data[origin];
    if (!o->sites.len) return false;
    hb_point at = o->sites.data[0];
    bool others = false;
    for (uint32_t k = 0; k < h->origins.len && !others; k++) {
        const hb_origin *other = &h->origins.data[k];
        others = k != origin && other->sites.len && other->sites.data[0].insn == at.insn && other->sites.data[0].instance != at.instance &&
                 h->instances[other->sites.data[0].instance].func == h->instances[at.instance].func;
    }
    if (!others || o->sites.len != 1 || h->in_first[at.instance + 1] - h->in_first[at.instance] != 1) return false;
    const pta_call_edge *e = &h->edges[h->in_edge[h->in_first[at.instance]]];
    *out = (hb_point){e->caller, h->call_insn[e->call]};
    return hb_instance_code(h, e->caller);
}

hb_point hb_user_point(const hb *h, hb_point at)
{
    for (unsigned depth = 0; depth < LEADS; depth++) {
        const char *name = h->program->funcs.data[h->instances[at.instance].func].name;
        bool library = !strncmp(name, "_ZNSt", 5) || !strncmp(name, "_ZNKSt", 6) || !strncmp(name, "_ZSt", 4) || !strncmp(name, "_ZN9__gnu_cxx", 13) ||
                       (!strncmp(name, "_ZL", 3) && strstr(name, "__gthread_"));
        if (!library || h->in_first[at.instance + 1] - h->in_first[at.instance] != 1) break;
        const pta_call_edge *e = &h->edges[h->in_edge[h->in_first[at.instance]]];
        if (!hb_instance_code(h, e->caller)) break;
        at = (hb_point){e->caller, h->call_insn[e->call]};
    }
    return at;
}
