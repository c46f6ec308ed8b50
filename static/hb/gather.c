/* All of them: somebody waits until as many have reported as there are. Each thread adds one to a counter, or posts a semaphore, at
 * most once, and no more than n threads do so; whoever finds that the counter has come to n, or has taken n times what the semaphore
 * had, comes after all of the reports, and so after all that these threads have done before them.
 *
 * Why: the counter begins with zero and each report adds one to what it has read, so it is never more than the number of reports
 * made; there are at most n of them in the whole run, so at n all were made. (An update that is lost, or a store of zero, only makes
 * it less.) Reports and the look hold one lock, or are atomic, and so the look comes after each of them. The n-th wait of a semaphore
 * that begins with zero takes the n-th post. */
#include "static/hb/channel.h"
#include "static/hb/counter.h"

typedef struct {
    uint32_t object;
    int64_t at;
    bool is_variable;
    hb_points posts;
    hb_points waits;    /* the one that is the n-th */
    hb_edges edges;     /* where n were found */
    hb_numbers cutters;
    hb_region *posted;  /* per origin: what may run behind its report; made when it is asked for */
    hb_region *early;   /* per origin: what may run without having found all */
} gather;

struct hb_gathers {
    VEC(gather) all;
};

/* --- how many there are ---------------------------------------------------------------------------------------------------------- */

/* How often a loop goes round at most; -1: not known. */
static int64_t rounds_of(const ir_func *ir, uint32_t loop)
{
    const ir_block *header = &ir->blocks[ir->loops[loop - 1].header];
    for (ir_value v = header->first; v < header->first + header->count; v++) {
        int64_t step;
        value_sum first, end;
        if (ir->insns[v].op != IR_PHI || !count_step(ir, loop, v, &step) || step <= 0) continue;
        if (!count_range(ir, v, &first, &end) || first.count || !end.known || end.count || end.add < first.add) continue;
        return (end.add - first.add + step - 1) / step;
    }
    return -1;
}

/* How often a point of an instance that runs once is passed at most; -1: not known. */
static int64_t times_at(const hb *h, hb_point at)
{
    const lift_func *f = hb_instance_code(h, at.instance);
    uint32_t loop = h->once[at.instance] ? f->ir->blocks[hb_block_of(f, at.insn)].loop : 0;
    if (!h->once[at.instance] || (loop && f->ir->loops[loop - 1].parent)) return -1;
    return loop ? rounds_of(f->ir, loop) : 1;
}

static bool at_most_once(hb *h, uint32_t origin, const hb_points *posts)
{
    hb_points own = {0};
    hb_region behind = {0};
    for (uint32_t i = 0; i < posts->len; i++)
        if (hb_bit(h->origins.data[origin].self, posts->data[i].instance)) vec_push(&own, posts->data[i]);
    hb_walk walk = {.origin = origin};
    hb_region_walk(h, &walk, own.data, own.len, &behind);
    bool once = true;
    for (uint32_t i = 0; i < own.len; i++)
        once &= !hb_region_has(&behind, own.data[i]);
    hb_region_free(&behind);
    vec_free(&own);
    return once;
}

static bool posts_it(const hb *h, uint32_t origin, const hb_points *posts)
{
    for (uint32_t i = 0; i < posts->len; i++)
        if (hb_bit(h->origins.data[origin].self, posts->data[i].instance)) return true;
    return false;
}

/* The most reports that can be made in a run; -1: not known. */
static int64_t most_posts(hb *h, const hb_points *posts)
{
    enum { MANY = 1 << 20 };
    int64_t sum = 0;
    hb_points seen = {0};
    for (uint32_t o = 0; o < h->origins.len && sum >= 0; o++) {
        const hb_origin *origin = &h->origins.data[o];
        if (!posts_it(h, o, posts)) continue;
        bool plain = origin->kind == HB_THREAD && origin->by && origin->by->kind == SYNC_CREATE && !origin->looped && origin->sites.len;
        if (!plain || !at_most_once(h, o, posts)) sum = -1;
        for (uint32_t i = 0; i < origin->sites.len && sum >= 0; i++) {
            hb_point at = origin->sites.data[i];
            bool known = false; /* of its twin */
            for (uint32_t k = 0; k < seen.len && !known; k++)
                known = seen.data[k].instance == at.instance && seen.data[k].insn == at.insn;
            int64_t times = known ? 0 : times_at(h, at);
            sum = times < 0 || sum + times > MANY ? -1 : sum + times;
            vec_push(&seen, at);
        }
    }
    vec_free(&seen);
    return sum;
}

/* --- counters ---------------------------------------------------------------------------------------------------------------------- */

/* A store of what was loaded from the same place, and one. */
static bool adds_one(const hb *h, const hb_touch *t)
{
    const lift_func *f = t->flags & HB_LIBRARY ? NULL : hb_code(h, t->func);
    for (ir_value v = t->ir + 1; f && t->ir && v < f->ir->insn_count && f->ir->insns[v].insn == t->insn; v++) {
        const ir_insn *store = &f->ir->insns[v];
        if (store->op != IR_STORE || f->ir->insns[store->a].insn != t->insn) continue;
        value_sum s = value_of(f->ir, store->b);
        if (!s.known || s.count != 1 || s.terms[0].factor != 1 || s.add != 1) return false;
        const ir_insn *load = &f->ir->insns[s.terms[0].leaf];
        return load->op == IR_LOAD && load->width == store->width &&
               (load->a == store->a || value_same_access(f->ir, &f->ir->insns[load->a], &f->ir->insns[store->a]));
    }
    return false;
}

/* The least number that a condition lets pass; 0: it says nothing. */
static int64_t least_of(const value_condition *c)
{
    enum { NOT_BELOW = 3, ABOVE = 7, NOT_LESS = 13, GREATER = 15 };
    if (c->imm < 0 || c->imm >= INT32_MAX) return 0;
    if (c->code == VALUE_EQUAL || c->code == NOT_BELOW || c->code == NOT_LESS) return c->imm;
    return c->code == ABOVE || c->code == GREATER ? c->imm + 1 : 0;
}

static gather *gather_at(hb *h, uint32_t object, int64_t at, bool is_variable)
{
    for (uint32_t i = 0; i < h->gathers->all.len; i++) {
        gather *g = &h->gathers->all.data[i];
        if (g->object == object && g->at == at && g->is_variable == is_variable) return g;
    }
    vec_push(&h->gathers->all, (gather){.object = object, .at = at, .is_variable = is_variable});
    return &h->gathers->all.data[h->gathers->all.len - 1];
}

static void take_counter(hb *h, const hb_look *look, hb_edge edge)
{
    int64_t least = least_of(&look->condition);
    hb_points posts = {0};
    const hb_place *place = &h->places.data[look->touch->first_place];
    bool locked = true;
    if (least < 2 || !hb_setters(h, look->touch, place, &posts, &locked)) {
        vec_free(&posts);
        return;
    }
    bool right = posts.len > 0;
    for (uint32_t i = 0; i < posts.len && right; i++) {
        const hb_touch *t = hb_touch_at(h, posts.data[i].instance, posts.data[i].insn);
        right = t && adds_one(h, t);
    }
    int64_t most = right ? most_posts(h, &posts) : -1;
    if (most >= 0 && most <= least) {
        gather *g = gather_at(h, h->extents.data[place->extent].object, h->extents.data[place->extent].at, true);
        if (!g->posts.len)
            for (uint32_t i = 0; i < posts.len; i++)
                vec_push(&g->posts, posts.data[i]);
        vec_push(&g->edges, edge);
        vec_push(&g->cutters, edge.instance);
    }
    vec_free(&posts);
}

/* --- semaphores -------------------------------------------------------------------------------------------------------------------- */

static bool in_loop(const ir_func *ir, uint32_t loop, uint32_t block)
{
    for (uint32_t l = ir->blocks[block].loop; l; l = ir->loops[l - 1].parent)
        if (l == loop) return true;
    return false;
}

/* The edges over which a loop is left when it has counted to its end, in which each round waits once. */
static bool counted_exits(const ir_func *ir, uint32_t loop, uint32_t wait, hb_numbers *blocks, hb_numbers *edges)
{
    const lift_func *f = ir->func;
    const lift_block *header = &f->blocks[ir->loops[loop - 1].header];
    for (uint32_t p = header->first_pred; p < header->first_pred + header->pred_count; p++) {
        uint32_t from = f->edges[f->preds[p]].from;
        if (in_loop(ir, loop, from) && !ir_dominates(ir, wait, from)) return false;
    }
    const ir_loop *l = &ir->loops[loop - 1];
    for (uint32_t i = 0; i < l->block_count; i++) {
        uint32_t block = ir->loop_blocks[l->first_block + i];
        const lift_block *b = &f->blocks[block];
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            if (in_loop(ir, loop, f->edges[e].to)) continue;
            vec_push(blocks, block);
            vec_push(edges, e);
        }
    }
    return edges->len == 1;
}

static void take_waits(hb *h, const hb_channel *c, int64_t most)
{
    for (uint32_t i = 0; i < c->waits.len; i++) {
        hb_point at = c->waits.data[i];
        const lift_func *f = hb_instance_code(h, at.instance);
        uint32_t block = hb_block_of(f, at.insn), loop = f->ir->blocks[block].loop;
        hb_numbers blocks = {0}, edges = {0};
        if (loop && h->once[at.instance] && !f->ir->loops[loop - 1].parent && rounds_of(f->ir, loop) >= most && most > 0 &&
            counted_exits(f->ir, loop, block, &blocks, &edges)) {
            gather *g = gather_at(h, c->object, c->at, false);
            vec_push(&g->edges, (hb_edge){at.instance, blocks.data[0], edges.data[0], -1});
            vec_push(&g->cutters, at.instance);
        }
        vec_free(&blocks);
        vec_free(&edges);
        int64_t before = 1; /* waits that this one comes behind, and itself */
        for (uint32_t k = 0; k < c->waits.len && !loop; k++) {
            hb_point other = c->waits.data[k];
            if (k == i || other.instance != at.instance) continue;
            uint32_t from = hb_block_of(f, other.insn);
            before += from == block ? other.insn < at.insn : ir_dominates(f->ir, from, block);
        }
        if (loop || before < most || most < 2) continue;
        gather *g = gather_at(h, c->object, c->at, false);
        vec_push(&g->waits, at);
        vec_push(&g->cutters, at.instance);
    }
}

static void find_semaphores(hb *h)
{
    const hb_channel_list *all = hb_channels(h);
    for (uint32_t i = 0; i < all->len; i++) {
        const hb_channel *c = &all->data[i];
        if (c->kind != CHANNEL_SEMAPHORE || c->first != 0 || !c->counted || !c->posts.len || !c->waits.len) continue;
        int64_t most = most_posts(h, &c->posts);
        if (most < 1) continue;
        uint32_t known = h->gathers->all.len;
        take_waits(h, c, most);
        for (uint32_t g = known; g < h->gathers->all.len; g++)
            for (uint32_t k = 0; k < c->posts.len; k++)
                vec_push(&h->gathers->all.data[g].posts, c->posts.data[k]);
    }
}

/* --- all of them ---------------------------------------------------------------------------------------------------------------------- */

void hb_gathers_open(hb *h)
{
    h->gathers = base_alloc_zero(1, sizeof *h->gathers);
    uint32_t count;
    const hb_looking *lookings = hb_lookings(h, &count);
    for (uint32_t i = 0; i < count; i++)
        take_counter(h, &lookings[i].look, lookings[i].edge);
    find_semaphores(h);
    for (uint32_t i = 0; i < h->gathers->all.len; i++) {
        h->gathers->all.data[i].posted = base_alloc_zero(h->origins.len, sizeof(hb_region));
        h->gathers->all.data[i].early = base_alloc_zero(h->origins.len, sizeof(hb_region));
    }
}

void hb_gathers_close(hb *h)
{
    for (uint32_t i = 0; h->gathers && i < h->gathers->all.len; i++) {
        gather *g = &h->gathers->all.data[i];
        for (uint32_t o = 0; o < h->origins.len; o++) {
            if (g->posted[o].whole) hb_region_free(&g->posted[o]);
            if (g->early[o].whole) hb_region_free(&g->early[o]);
        }
        free(g->posted);
        free(g->early);
        vec_free(&g->posts);
        vec_free(&g->waits);
        vec_free(&g->edges);
        vec_free(&g->cutters);
    }
    if (h->gathers) vec_free(&h->gathers->all);
    free(h->gathers);
}

static bool cuts(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    const gather *g = w->with;
    for (uint32_t i = 0; i < g->waits.len; i++)
        if (g->waits.data[i].instance == instance && g->waits.data[i].insn == call->insn) return true;
    return false;
}

static bool closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    const gather *g = w->with;
    return hb_edges_have(&g->edges, instance, from, edge);
}

/* The point can only be reached by who has found all of them. */
static bool has_all(hb *h, gather *g, uint32_t origin, hb_point at)
{
    if (h->origins.data[origin].kind > HB_THREAD) return false;
    if (!g->early[origin].whole) {
        hb_walk walk = {.cuts = cuts, .closes = closes, .with = g, .cutters = g->cutters.data, .cutter_count = g->cutters.len, .origin = origin};
        hb_point start = {h->origins.data[origin].instance, HB_NONE};
        hb_region_walk(h, &walk, &start, 1, &g->early[origin]);
    }
    return !hb_region_has(&g->early[origin], at);
}

/* The thread has not reported yet. That it will is not needed: nobody finds all of them before it has. */
static bool is_before(hb *h, gather *g, uint32_t origin, hb_point at)
{
    if (!posts_it(h, origin, &g->posts)) return false;
    if (!g->posted[origin].whole) {
        hb_walk walk = {.origin = origin};
        hb_points own = {0};
        for (uint32_t i = 0; i < g->posts.len; i++)
            if (hb_bit(h->origins.data[origin].self, g->posts.data[i].instance)) vec_push(&own, g->posts.data[i]);
        hb_region_walk(h, &walk, own.data, own.len, &g->posted[origin]);
        vec_free(&own);
    }
    return !hb_region_has(&g->posted[origin], at);
}

bool hb_gathers_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    for (uint32_t i = 0; i < h->gathers->all.len; i++) {
        gather *g = &h->gathers->all.data[i];
        if ((is_before(h, g, x, a) && !posts_it(h, y, &g->posts) && has_all(h, g, y, b)) ||
            (is_before(h, g, y, b) && !posts_it(h, x, &g->posts) && has_all(h, g, x, a)))
            return true;
    }
    return false;
}
