/* Tasks of OpenMP: who creates them, and which of them are one.
 *
 * All threads of a team run the same code, but one of them runs a `single` or `master` part. A task that such a part creates is
 * created once in the team (as often as the part is run, and before that happens again its barrier has waited for the task), by the
 * thread that also runs what comes before and after in that part. Tasks that depend on one address, one of them for writing, run in
 * the order in which one thread creates them (OpenMP 5.0, 2.17.11). */
#include "static/hb/channel.h"

static bool is_made_by(const hb_origin *o, uint8_t kind)
{
    return o->by && o->by->kind == kind;
}

/* A call that chooses one of the threads of a team. */
static bool chooses(const hb_call *call)
{
    const sync_entry *sync = call->sync;
    return sync && sync->kind == SYNC_ACQUIRE && sync->lock && sync->when == SYNC_NONZERO &&
           (!strcmp(sync->lock, "omp single") || !strcmp(sync->lock, "omp thread 0"));
}

bool hb_has_single(const hb *h, uint32_t instance)
{
    const hb_func *own = &h->funcs[h->instances[instance].func];
    for (uint32_t c = 0; c < own->call_count; c++)
        if (chooses(&own->calls[c])) return true;
    return false;
}

bool hb_single_part(const hb *h, hb_point at, uint32_t *part)
{
    const lift_func *f = hb_instance_code(h, at.instance);
    const hb_func *own = &h->funcs[h->instances[at.instance].func];
    hb_edges edges = {0};
    bool found = false;
    for (uint32_t c = 0; c < own->call_count && !found; c++) {
        vec_clear(&edges);
        if (chooses(&own->calls[c]) && own->calls[c].value) hb_success_edges(h, at.instance, &own->calls[c], SYNC_NONZERO, &edges);
        for (uint32_t i = 0; i < edges.len && !found; i++) {
            uint32_t to = f->edges[edges.data[i].edge].to;
            found = f->blocks[to].pred_count == 1 && ir_dominates(f->ir, to, hb_block_of(f, at.insn));
            *part = to;
        }
    }
    vec_free(&edges);
    return found;
}

/* The team of a task that its threads create, in whichever of them; HB_NONE: it is not like that. */
static uint32_t team_of(const hb *h, uint32_t o)
{
    const hb_origin *origin = &h->origins.data[o];
    if (!is_made_by(origin, SYNC_TASK) || !origin->parents.len) return HB_NONE;
    uint32_t team = origin->parents.data[0];
    if (!is_made_by(&h->origins.data[team], SYNC_TEAM)) return HB_NONE;
    for (uint32_t i = 1; i < origin->parents.len; i++)
        if (origin->parents.data[i] != team && origin->parents.data[i] != h->origins.data[team].twin) return HB_NONE;
    return team;
}

/* What a thread of a team runs once: where it begins, and what that calls once and nobody else does. */
static bool is_body(const hb *h, uint32_t thread, uint32_t instance)
{
    for (unsigned depth = 0; depth < 3; depth++) {
        if (instance == h->origins.data[thread].instance) return true;
        if (h->in_first[instance + 1] - h->in_first[instance] != 1) return false;
        const pta_call_edge *e = &h->edges[h->in_edge[h->in_first[instance]]];
        if (hb_spawns(h, e) || h->program->calls.data[e->call].in_loop) return false;
        instance = e->caller;
    }
    return false;
}

/* The single part that creates a task. */
static bool part_of(const hb *h, uint32_t o, uint32_t *func, uint32_t *part)
{
    const hb_origin *origin = &h->origins.data[o];
    uint32_t team = team_of(h, o), other;
    if (team == HB_NONE) return false;
    for (uint32_t i = 0; i < origin->sites.len; i++) {
        hb_point at = origin->sites.data[i];
        const hb_origin *t = &h->origins.data[team];
        if (!is_body(h, team, at.instance) && (t->twin == HB_NONE || !is_body(h, t->twin, at.instance))) return false;
        if (!hb_single_part(h, at, i ? &other : part) || (i && other != *part)) return false;
        *func = h->instances[at.instance].func;
    }
    return origin->sites.len > 0;
}

/* The task, of those that led to this one and itself, that threads of a team create. */
static uint32_t root_of(const hb *h, uint32_t o)
{
    for (unsigned depth = 0; depth < 8; depth++) {
        const hb_origin *origin = &h->origins.data[o];
        if (!is_made_by(origin, SYNC_TASK) || !origin->parents.len) return HB_NONE;
        if (team_of(h, o) != HB_NONE) return o;
        uint32_t up = origin->parents.data[0];
        for (uint32_t i = 1; i < origin->parents.len; i++)
            if (origin->parents.data[i] != up && origin->parents.data[i] != h->origins.data[up].twin) return HB_NONE;
        o = up;
    }
    return HB_NONE;
}

bool hb_task_alone(const hb *h, uint32_t o)
{
    const hb_origin *origin = &h->origins.data[o];
    uint32_t func, part;
    if (!is_made_by(origin, SYNC_TASK) || origin->by->shared || !origin->sites.len || !origin->parents.len) return false;
    for (uint32_t i = 0; i < origin->sites.len; i++)
        if (hb_region_has(&h->lives[o].live, origin->sites.data[i])) return false;
    if (part_of(h, o, &func, &part)) {
        const hb_origin *team = &h->origins.data[team_of(h, o)];
        for (uint32_t i = 0; i < team->parents.len; i++)
            if (h->origins.data[team->parents.data[i]].overlaps || team->parents.len > 1) return false;
        return true;
    }
    uint32_t up = origin->parents.data[0]; /* by a task that is alone itself */
    for (uint32_t i = 0; i < origin->parents.len; i++) {
        uint32_t parent = origin->parents.data[i];
        if (h->origins.data[parent].overlaps || (parent != up && parent != h->origins.data[up].twin)) return false;
    }
    return up != o && h->origins.data[up].twin != o;
}

bool hb_tasks_of_one(const hb *h, uint32_t x, uint32_t y, uint32_t *team)
{
    uint32_t rx = root_of(h, x), ry = root_of(h, y), fx, fy, px, py;
    if (rx == HB_NONE || ry == HB_NONE || !part_of(h, rx, &fx, &px) || !part_of(h, ry, &fy, &py) || fx != fy || px != py) return false;
    *team = team_of(h, rx);
    return *team == team_of(h, ry) || h->origins.data[*team].twin == team_of(h, ry);
}

bool hb_with_creator(const hb *h, uint32_t thread, hb_point at, uint32_t task)
{
    uint32_t root = root_of(h, task), func, part, here;
    if (root == HB_NONE || !part_of(h, root, &func, &part)) return false;
    uint32_t team = team_of(h, root);
    if (team != thread && h->origins.data[team].twin != thread) return false;
    return h->instances[at.instance].func == func && is_body(h, thread, at.instance) && hb_single_part(h, at, &here) && here == part;
}
