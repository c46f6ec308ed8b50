/* Tasks of OpenMP: who creates them, and which of them are one.
 *
 * All threads of a team run the same code, but one of them runs a `single` or `master` part. A task that such a part creates is
 * created once in the team (as often as the part is run, and before that happens again its barrier has waited for the task), by the
 * thread that also runs what comes before and after in that part. Tasks that depend on one address, one of them for writing, run in
 * the order in which one thread creates them (OpenMP 5.0, 2.17.11). */
#include "static/hb/channel.h"
#include "static/hb/gift.h"

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

void hb_singles_open(hb *h)
{
    for (uint32_t f = 0; f < h->program->funcs.len && !h->has_single; f++)
        for (uint32_t c = 0; c < h->funcs[f].call_count && !h->has_single; c++)
            h->has_single = chooses(&h->funcs[f].calls[c]);
}

bool hb_has_single(const hb *h, uint32_t instance)
{
    if (!h->has_single) return false;
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

static bool is_run(const hb *h, uint32_t instance)
{
    for (uint32_t o = 0; o < h->origins.len; o++)
        if (hb_bit(h->origins.data[o].self, instance)) return true;
    return false;
}

enum { MOST_CALLERS = 32 };

bool hb_single_of(const hb *h, hb_point at, uint32_t *root, uint32_t *part)
{
    if (!h->has_single) return false;
    hb_point work[MOST_CALLERS] = {at};
    uint32_t count = 1;
    bool found = false;
    for (uint32_t w = 0; w < count; w++) { /* all ways in, through functions that may call each other */
        uint32_t instance = work[w].instance, here;
        if (hb_has_single(h, instance)) {
            if (!hb_single_part(h, work[w], &here) || (found && (*root != instance || *part != here))) return false;
            *root = instance;
            *part = here;
            found = true;
            continue;
        }
        if (h->in_first[instance] == h->in_first[instance + 1]) return false;
        for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
            const pta_call_edge *e = &h->edges[h->in_edge[i]];
            hb_point from = {e->caller, h->call_insn[e->call]};
            bool known = false, parts = hb_has_single(h, e->caller);
            for (uint32_t k = 0; k < count && !known; k++)
                known = work[k].instance == from.instance && (!parts || work[k].insn == from.insn);
            if (known || !is_run(h, e->caller)) continue;
            if (hb_spawns(h, e) || count == MOST_CALLERS) return false;
            work[count++] = from;
        }
    }
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

typedef struct {
    bool found;
    uint32_t team, root, part; /* a thread of the team, the instance and its part */
} task_part;

/* The single part in which one thread of a team creates a task, or those that led to it, all of them. */
static bool find_part(const hb *h, uint32_t o, task_part *out, uint64_t *seen)
{
    const hb_origin *origin = &h->origins.data[o];
    if (!is_made_by(origin, SYNC_TASK) || !origin->parents.len) return false;
    hb_set(seen, o);
    for (uint32_t i = 0; i < origin->parents.len; i++) {
        uint32_t up = origin->parents.data[i], root, part;
        const hb_origin *parent = &h->origins.data[up];
        if (is_made_by(parent, SYNC_TASK)) {
            if (!hb_bit(seen, up) && !find_part(h, up, out, seen)) return false;
            continue;
        }
        if (!is_made_by(parent, SYNC_TEAM) || (out->found && out->team != up && parent->twin != out->team)) return false;
        out->team = up;
        for (uint32_t k = 0; k < origin->sites.len; k++) {
            if (!hb_bit(parent->self, origin->sites.data[k].instance)) continue;
            if (!hb_single_of(h, origin->sites.data[k], &root, &part) || !is_body(h, up, root)) return false;
            if (out->found && (h->instances[out->root].func != h->instances[root].func || out->part != part)) return false;
            out->root = root;
            out->part = part;
            out->found = true;
        }
    }
    return true;
}

static bool part_below(const hb *h, uint32_t o, task_part *out)
{
    uint64_t *seen = base_alloc_zero(h->origins.len / 64 + 1, sizeof *seen);
    *out = (task_part){0};
    bool right = find_part(h, o, out, seen) && out->found;
    free(seen);
    return right;
}

bool hb_task_alone(const hb *h, uint32_t o)
{
    const hb_origin *origin = &h->origins.data[o];
    uint32_t func, part;
    if (!is_made_by(origin, SYNC_TASK) || origin->by->shared || !origin->sites.len || !origin->parents.len) return false;
    for (uint32_t i = 0; i < origin->sites.len; i++)
        if (hb_region_has(&h->lives[o].live, origin->sites.data[i]) && !hb_tasks_depend(h, o, o)) return false;
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
    task_part a, b;
    if (!part_below(h, x, &a) || !part_below(h, y, &b)) return false;
    if (h->instances[a.root].func != h->instances[b.root].func || a.part != b.part) return false;
    *team = a.team;
    return a.team == b.team || h->origins.data[a.team].twin == b.team;
}

bool hb_with_creator(const hb *h, uint32_t thread, hb_point at, uint32_t task)
{
    task_part p;
    uint32_t root, part;
    if (!part_below(h, task, &p) || (p.team != thread && h->origins.data[p.team].twin != thread)) return false;
    return hb_single_of(h, at, &root, &part) && h->instances[root].func == h->instances[p.root].func && is_body(h, thread, root) && part == p.part;
}

/* --- dependences -------------------------------------------------------------------------------------------------------------- */

enum { MOST_DEPENDS = 8 };

typedef struct {
    value_sum address;
    bool writes;
} depend;

typedef struct {
    depend of[MOST_DEPENDS];
    uint32_t count;
} depend_list;

/* What was stored last at a place of the frame in front of a call; 0: not known. */
static ir_value stored_before(const ir_func *ir, int64_t at, uint8_t base, uint32_t insn, uint32_t size)
{
    uint32_t here = hb_block_of(ir->func, insn);
    ir_value found = 0;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        int32_t to;
        uint8_t other;
        if (ir->insns[v].op != IR_STORE) continue;
        const ir_insn *access = &ir->insns[ir->insns[v].a];
        if (access->b || !access->a || !ir_frame_offset(ir, access->a, &to, &other) || other != base) continue;
        int64_t first = to + access->imm + ir->insns[v].imm;
        if (first + ir->insns[v].width <= at || first >= at + (int64_t)size) continue;
        uint32_t block = hb_block_of(ir->func, ir->insns[v].insn);
        if (block == here ? ir->insns[v].insn > insn : !ir_dominates(ir, block, here)) {
            if (ir->blocks[block].loop && ir->blocks[block].loop == ir->blocks[here].loop && first != at) return 0;
            continue;
        }
        uint32_t before = found ? hb_block_of(ir->func, ir->insns[found].insn) : 0;
        if (!found || (before == block ? ir->insns[found].insn < ir->insns[v].insn : ir_dominates(ir, before, block))) found = v;
        if (found == v && (first != at || ir->insns[v].width > 8)) return 0;
    }
    return found ? ir->insns[found].b : 0;
}

/* A number, which a compiler may have put into constant data. */
static bool read_number(const hb *h, uint32_t func, const ir_func *ir, ir_value v, int64_t *out)
{
    value_sum s = value_of(ir, v);
    if (!v || !s.known) return false;
    if (!s.count) return *out = s.add, true;
    const ir_insn *load = &ir->insns[s.terms[0].leaf];
    if (s.count != 1 || s.terms[0].factor != 1 || s.add || load->op != IR_LOAD) return false;
    value_sum address = value_address(ir, &ir->insns[load->a]);
    const image *img = h->program->modules[h->program->funcs.data[func].module]->img;
    uint64_t at = (uint64_t)(address.add + load->imm);
    uint8_t bytes[8] = {0};
    if (!address.known || address.count || load->width > 8 || !image_is_constant(img, at, load->width) || !image_read(img, at, bytes, load->width)) return false;
    *out = 0;
    memcpy(out, bytes, 8);
    return true;
}

static bool frame_of(const ir_func *ir, ir_value v, int64_t *at, uint8_t *base)
{
    int32_t offset;
    if (!v || !ir_frame_offset(ir, ir_origin(ir, v), &offset, base)) return false;
    *at = offset;
    return true;
}

/* The list of a call of GOMP_task: number of addresses, number of those that are written, the addresses. */
static bool gomp_depends(const hb *h, uint32_t func, const ir_func *ir, const hb_call *call, depend_list *out)
{
    enum { DEPEND = 8, STACK_FLAGS = IR_CALL_ARGS, STACK_LIST };
    const ir_insn *insn = &ir->insns[call->value];
    int64_t at, flags, count, writes;
    uint8_t base;
    if (insn->b <= STACK_LIST || !read_number(h, func, ir, ir->args[insn->a + STACK_FLAGS], &flags)) return false;
    if (!(flags & DEPEND)) return true;
    if (!frame_of(ir, ir->args[insn->a + STACK_LIST], &at, &base)) return false;
    if (!read_number(h, func, ir, stored_before(ir, at, base, call->insn, 8), &count) ||
        !read_number(h, func, ir, stored_before(ir, at + 8, base, call->insn, 8), &writes) || count < 1 || count > MOST_DEPENDS)
        return false;
    for (int64_t i = 0; i < count; i++) {
        ir_value v = stored_before(ir, at + 16 + 8 * i, base, call->insn, 8);
        if (!v) return false;
        out->of[out->count++] = (depend){value_of(ir, v), i < writes};
    }
    return true;
}

/* The list of a call of __kmpc_omp_task_with_deps: records of address, length and flags. */
static bool kmpc_depends(const hb *h, uint32_t func, const ir_func *ir, const hb_call *call, depend_list *out)
{
    enum { RECORD = 24, WRITES = 2 };
    int64_t at, count, flags;
    uint8_t base;
    const ir_value *args = ir->args + ir->insns[call->value].a;
    if (!read_number(h, func, ir, args[IR_CALL_RCX], &count) || count < 1 || count > MOST_DEPENDS || !frame_of(ir, args[IR_CALL_R8], &at, &base))
        return false;
    for (int64_t i = 0; i < count; i++) {
        ir_value v = stored_before(ir, at + RECORD * i, base, call->insn, 8);
        if (!v || !read_number(h, func, ir, stored_before(ir, at + RECORD * i + 16, base, call->insn, 8), &flags)) return false;
        out->of[out->count++] = (depend){value_of(ir, v), (flags & WRITES) != 0};
    }
    return true;
}

static bool depends_of(const hb *h, uint32_t o, depend_list *out)
{
    const hb_origin *origin = &h->origins.data[o];
    *out = (depend_list){0};
    if (!is_made_by(origin, SYNC_TASK) || !origin->sites.len) return false;
    hb_point at = origin->sites.data[0];
    uint32_t func = h->instances[at.instance].func;
    for (uint32_t i = 1; i < origin->sites.len; i++)
        if (h->instances[origin->sites.data[i].instance].func != func || origin->sites.data[i].insn != at.insn) return false;
    const hb_call *call = hb_call_at(h, func, at.insn);
    if (!call || !call->value || h->program->calls.data[call->call].func == PTA_NO_FUNC) return false;
    const char *name = h->program->funcs.data[h->program->calls.data[call->call].func].name;
    const ir_func *ir = hb_instance_code(h, at.instance)->ir;
    if (!strcmp(name, "GOMP_task")) return gomp_depends(h, func, ir, call, out);
    return !strcmp(name, "__kmpc_omp_task_with_deps") && kmpc_depends(h, func, ir, call, out);
}

bool hb_tasks_depend(const hb *h, uint32_t x, uint32_t y)
{
    depend_list a, b;
    if (!depends_of(h, x, &a) || !depends_of(h, y, &b)) return false;
    for (uint32_t i = 0; i < a.count; i++)
        for (uint32_t k = 0; k < b.count; k++) {
            const value_sum *p = &a.of[i].address, *q = &b.of[k].address;
            if (p->known && q->known && !p->count && !q->count && p->add == q->add && (a.of[i].writes || b.of[k].writes)) return true;
        }
    return false;
}

/* --- numbers ------------------------------------------------------------------------------------------------------------------ */

/* What the function that makes a task has put into a word of its block last; 0: not known. gcc's code fills a block in its frame,
 * which is copied; clang's code fills the one that it has just allocated. */
static ir_value block_word(const hb *h, hb_point site, int64_t at, uint32_t width)
{
    const ir_func *ir = hb_instance_code(h, site.instance)->ir;
    const hb_call *call = hb_call_at(h, h->instances[site.instance].func, site.insn);
    uint32_t callee = call && call->value ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
    const char *name = callee == PTA_NO_FUNC ? "" : h->program->funcs.data[callee].name;
    int64_t block;
    uint8_t base;
    if (!strcmp(name, "GOMP_task"))
        return frame_of(ir, ir->args[ir->insns[call->value].a + IR_CALL_RSI], &block, &base) ? stored_before(ir, block + at, base, call->insn, width) : 0;
    if (strcmp(name, "__kmpc_omp_task")) return 0;
    value_sum task = value_of(ir, ir->args[ir->insns[call->value].a + IR_CALL_RDX]);
    uint32_t here = hb_block_of(ir->func, call->insn);
    ir_value found = 0;
    if (!task.known || task.count != 1 || ir->insns[task.terms[0].leaf].op != IR_RESULT) return 0;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_STORE) continue;
        value_sum to = value_address(ir, &ir->insns[ir->insns[v].a]);
        int64_t first = to.add + ir->insns[v].imm - task.add;
        if (!to.known || !value_same_terms(&to, &task) || first + ir->insns[v].width <= at || first >= at + (int64_t)width) continue;
        uint32_t from = hb_block_of(ir->func, ir->insns[v].insn);
        if (found || first != at || (from == here ? ir->insns[v].insn > call->insn : !ir_dominates(ir, from, here))) return 0;
        found = v;
    }
    return found ? ir->insns[found].b : 0;
}

bool task_counts(const hb *h, uint32_t origin, uint32_t instance, ir_value leaf, int64_t *step)
{
    const hb_origin *o = &h->origins.data[origin];
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    uint32_t func, part;
    if (!is_made_by(o, SYNC_TASK) || o->by->shared || !o->sites.len || instance != o->instance || ir->insns[leaf].op != IR_LOAD) return false;
    value_sum address = value_address(ir, &ir->insns[ir->insns[leaf].a]);
    int param = address.known && address.count == 1 && address.terms[0].factor == 1 ? gift_param(ir, address.terms[0].leaf) : -1;
    const hb_call *call = hb_call_at(h, h->instances[o->sites.data[0].instance].func, o->sites.data[0].insn);
    uint32_t callee = call ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
    if (callee == PTA_NO_FUNC || param != (strncmp(h->program->funcs.data[callee].name, "__kmpc", 6) ? 0 : 1) || !part_of(h, origin, &func, &part)) return false;
    for (uint32_t i = 0; i < o->sites.len; i++) {
        hb_point site = o->sites.data[i];
        const ir_func *from = hb_instance_code(h, site.instance)->ir;
        uint32_t loop = from->blocks[hb_block_of(from->func, site.insn)].loop;
        if (site.insn != o->sites.data[0].insn || !loop || gift_counts_again(h, origin, site, loop)) return false;
        ir_value word = block_word(h, site, address.add + ir->insns[leaf].imm, ir->insns[leaf].width), counter;
        value_sum stored = word ? value_of(from, word) : (value_sum){0};
        if (!word || !stored.known || !count_leaf(from, loop, &stored, &counter, step)) return false;
    }
    if (*step < 0) *step = -*step;
    return *step != 0;
}
