/* Order by something that one thread sets and another waits for: a channel that begins empty, or a variable that begins with
 * zero, is set by one thread, and is found set by another (`while (!ready) pthread_cond_wait(...)`, `while (!atomic_load(&ready))`).
 *
 * What comes before all posts, in the one thread that posts, comes before what can only be reached over a wait. A variable counts
 * when it is atomic, or when all who set it and the one who looks hold one lock. Channels are those of channel.c. Threads that run one
 * function with different constants are told apart by its branches on them: who posts, and who waits. */
#include "static/hb/channel.h"
#include "static/hb/gift.h"
#include "static/hb/lock.h"

typedef struct {
    uint32_t object;
    int64_t at;
    uint32_t width;
    bool is_variable;
    bool is_end; /* of the thread `poster` */
    bool locked; /* set and looked at under one lock */
    hb_points posts, waits;
    hb_edges edges;
    hb_numbers cutters;
    uint32_t poster;        /* the one origin that posts; HB_NONE: there are several */
    hb_region posted;       /* what may run behind a post */
    hb_region *unwaited;    /* per origin: what may run without having waited */
    bool *has_unwaited;
    hb *h;        /* while a walk asks */
    bool constant; /* whose thread is created with a constant */
} token;

struct hb_tokens {
    VEC(token) all;
    VEC(hb_looking) lookings;
};

static token *variable_token(hb *h, uint32_t object, int64_t at)
{
    for (uint32_t i = 0; i < h->tokens->all.len; i++) {
        token *t = &h->tokens->all.data[i];
        if (t->object == object && t->at == at && t->is_variable) return t;
    }
    vec_push(&h->tokens->all, (token){.object = object, .at = at, .is_variable = true});
    return &h->tokens->all.data[h->tokens->all.len - 1];
}

static void add_number(hb_numbers *to, uint32_t n)
{
    for (uint32_t i = 0; i < to->len; i++)
        if (to->data[i] == n) return;
    vec_push(to, n);
}

/* Channels that begin empty: whoever takes something out comes after somebody who has put something in. */
static void take_channels(hb *h)
{
    const hb_channel_list *all = hb_channels(h);
    for (uint32_t i = 0; i < all->len; i++) {
        const hb_channel *c = &all->data[i];
        if ((c->first != 0 && c->kind != CHANNEL_SIGNAL) || !c->posts.len) continue;
        token t = {.object = c->object, .at = c->at};
        for (uint32_t k = 0; k < c->posts.len; k++)
            vec_push(&t.posts, c->posts.data[k]);
        for (uint32_t k = 0; k < c->waits.len; k++)
            vec_push(&t.waits, c->waits.data[k]);
        for (uint32_t k = 0; k < c->edges.len; k++)
            vec_push(&t.edges, c->edges.data[k]);
        for (uint32_t k = 0; k < c->cutters.len; k++)
            vec_push(&t.cutters, c->cutters.data[k]);
        vec_push(&h->tokens->all, t);
    }
}

/* A thread that somebody waits for, who need not be the one that created it: all that it does comes before. */
static void take_joins(hb *h)
{
    for (uint32_t o = 0; o < h->origins.len; o++) {
        token t = {.object = HB_NONE, .at = -1, .is_end = true, .poster = o};
        if (h->origins.data[o].overlaps) continue;
        hb_joins_of(h, o, &t.waits, &t.edges);
        if (!t.waits.len && !t.edges.len) continue;
        for (uint32_t i = 0; i < t.waits.len; i++)
            add_number(&t.cutters, t.waits.data[i].instance);
        for (uint32_t i = 0; i < t.edges.len; i++)
            add_number(&t.cutters, t.edges.data[i].instance);
        t.posted.whole = base_alloc_zero(h->words, sizeof *t.posted.whole);
        vec_push(&h->tokens->all, t);
    }
}

/* --- variables -------------------------------------------------------------------------------------------------------------- */

static bool begins_with_zero(const hb *h, const pta_place *place, uint32_t width)
{
    const pta_site *site = &h->program->sites.data[place->site];
    uint8_t bytes[8] = {0};
    if (site->kind != PTA_STATIC || width > 8) return false;
    const image *img = h->program->modules[site->module]->img;
    uint64_t addr = site->start + (uint64_t)(int64_t)place->offset;
    const image_section *section = image_section_at(img, addr);
    if (!section || image_reloc_at(img, addr)) return false;
    if (addr - section->addr < section->filled && !image_read(img, addr, bytes, width)) return false;
    for (uint32_t i = 0; i < width; i++)
        if (bytes[i]) return false;
    return true;
}

bool hb_stores_zero(const hb *h, const hb_touch *t)
{
    const ir_func *ir = hb_code(h, t->func)->ir;
    for (ir_value v = t->ir + 1; t->ir && v < ir->insn_count && ir->insns[v].insn == t->insn; v++) {
        if (ir->insns[v].op != IR_STORE || ir->insns[v].a != t->ir) continue;
        ir_value stored = value_plain(ir, ir->insns[v].b, 4);
        return stored && ir->insns[stored].op == IR_CONST && !ir->insns[stored].imm;
    }
    return false;
}

static bool is_atomic(const hb *h, const pta_place *place, uint32_t width)
{
    const pta_site *site = &h->program->sites.data[place->site];
    return place->offset >= 0 && hb_type_at(site->type, (uint64_t)place->offset, width).is_atomic;
}

bool hb_setters(hb *h, const hb_touch *look, const hb_place *place, hb_points *out, bool *locked)
{
    hb_guards mine = {0}, theirs = {0};
    bool atomic = look->flags & IR_ATOMIC || is_atomic(h, &place->place, look->width) || hb_polls(h, look, place), agreed = true;
    hb_guards_of(h, look, place, hb_locks_at(h, (hb_point){look->instance, look->insn}), &mine);
    uint32_t count;
    const hb_use *writes = hb_writes_over_extent(h, place->extent, &count);
    for (uint32_t i = 0; i < count && agreed; i++) {
        const hb_touch *touch = &h->touches.data[writes[i].touch];
        const hb_place *p = &h->places.data[writes[i].place];
        if (hb_stores_zero(h, touch)) continue;
        hb_guards_of(h, touch, p, hb_locks_at(h, (hb_point){touch->instance, touch->insn}), &theirs);
        bool guarded = hb_guarded(&mine, &theirs);
        if (!atomic && !guarded) agreed = !mine.len && touch->flags & IR_ATOMIC;
        *locked &= guarded;
        vec_push(out, (hb_point){touch->instance, touch->insn});
    }
    vec_free(&mine);
    vec_free(&theirs);
    return agreed;
}

static void take_variable(hb *h, const hb_touch *look, const hb_place *place, hb_edge edge)
{
    const hb_extent *x = &h->extents.data[place->extent];
    hb_points posts = {0};
    bool locked = true;
    if (!hb_setters(h, look, place, &posts, &locked) || !posts.len) {
        vec_free(&posts);
        return;
    }
    token *known = variable_token(h, x->object, x->at);
    if (known->posts.len)
        vec_free(&posts);
    else
        known->posts.data = posts.data, known->posts.len = posts.len, known->posts.cap = posts.cap, known->locked = true;
    known->locked &= locked;
    vec_push(&known->edges, edge);
    add_number(&known->cutters, edge.instance);
}

/* The access whose value is v: a load here, or in a function that does nothing but return it. */
static const hb_touch *looked_at(const hb *h, uint32_t instance, const ir_func *ir, ir_value v, unsigned depth)
{
    const ir_insn *value = &ir->insns[v];
    if (value->op == IR_LOAD) {
        const ir_insn *access = &ir->insns[value->a];
        return access->flags & (IR_PROMOTED | IR_WRITE) ? NULL : hb_touch_at(h, instance, access->insn);
    }
    if (value->op != IR_RESULT || value->var != IR_RAX || depth > 3) return NULL;
    const hb_call *call = hb_call_at(h, h->instances[instance].func, ir->insns[value->a].insn);
    uint32_t count = 0, first = call ? hb_callees(h, instance, call->call, &count) : 0;
    const lift_func *f = count == 1 && !hb_spawns(h, &h->edges[first]) ? hb_instance_code(h, h->edges[first].callee) : NULL;
    ir_value returned = 0;
    const hb_func *own = f ? hb_returns(h, h->instances[h->edges[first].callee].func) : NULL;
    for (uint32_t i = 0; own && i < own->returns.len; i++) {
        ir_value r = own->returns.data[i];
        if (f->ir->insns[r].op != IR_RET) continue;
        if (returned) return NULL;
        returned = value_plain(f->ir, f->ir->args[f->ir->insns[r].a + IR_RET_RAX], 4);
    }
    return returned ? looked_at(h, h->edges[first].callee, f->ir, returned, depth + 1) : NULL;
}

/* The only value, besides zeros, that a phi may stand for, through other phis; 0: there are several. */
static ir_value only_source(const ir_func *ir, ir_value v, ir_value seen, unsigned depth)
{
    v = value_plain(ir, v, 4);
    const ir_insn *phi = &ir->insns[v];
    if (phi->op != IR_PHI) return v;
    for (uint32_t i = 0; i < phi->b; i++) {
        ir_value arg = value_plain(ir, ir->args[phi->a + i], 4);
        if (arg == v || (ir->insns[arg].op == IR_CONST && !ir->insns[arg].imm)) continue;
        if (ir->insns[arg].op == IR_PHI && depth > 3) return 0;
        ir_value source = only_source(ir, arg, seen, depth + 1);
        if (!source || (seen && seen != source)) return 0;
        seen = source;
    }
    return seen;
}

/* What was compared is not zero. */
static bool is_set(const value_condition *c)
{
    enum { NOT_BELOW = 3, ABOVE = 7, LESS = 12, NOT_LESS = 13, NOT_GREATER = 14, GREATER = 15 };
    switch (c->code) {
    case VALUE_EQUAL: return c->imm != 0;
    case VALUE_NOT_EQUAL: return c->imm == 0;
    case NOT_BELOW: return c->imm != 0;
    case ABOVE: return true;
    case LESS: return c->imm <= 0;
    case NOT_LESS: return c->imm > 0;
    case NOT_GREATER: return c->imm < 0;
    case GREATER: return c->imm >= 0;
    default: return false;
    }
}

/* A constant, or a parameter that is the same constant in all calls. */
static bool number_in(const hb *h, uint32_t instance, ir_value v, int64_t *out)
{
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    const ir_insn *insn = &ir->insns[value_plain(ir, v, 4)];
    unsigned param = 0;
    bool found = false;
    if (insn->op == IR_CONST) return *out = insn->imm, true;
    while (param < 6 && (insn->op != IR_ENTRY || insn->var != registers[param]))
        param++;
    for (uint32_t i = h->in_first[instance]; param < 6 && i < h->in_first[instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        const lift_func *f = hb_instance_code(h, e->caller);
        const hb_call *call = f && !hb_spawns(h, e) ? hb_call_at(h, h->instances[e->caller].func, h->call_insn[e->call]) : NULL;
        ir_value arg = call && call->value ? value_plain(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + param], 4) : 0;
        if (!arg || f->ir->insns[arg].op != IR_CONST || (found && f->ir->insns[arg].imm != *out)) return false;
        *out = f->ir->insns[arg].imm;
        found = true;
    }
    return found;
}

/* With a number on the right. */
static bool settle(const hb *h, uint32_t instance, value_condition *c)
{
    if (!c->b) return true;
    if (number_in(h, instance, c->b, &c->imm)) return c->b = 0, true;
    if (!number_in(h, instance, c->a, &c->imm)) return false;
    c->a = c->b;
    c->b = 0;
    c->code = value_mirror(c->code);
    return true;
}

/* gcc makes `a | b` of `a || b`: where that was found not to be zero, and a is zero, b is not. */
static bool settle_other(const ir_func *ir, uint32_t block, value_condition *c)
{
    const lift_func *f = ir->func;
    if (c->b || c->code != VALUE_EQUAL || c->imm) return false;
    for (uint32_t at = block; ir->blocks[at].idom != at; at = ir->blocks[at].idom) {
        const lift_block *b = &f->blocks[at];
        const lift_edge *e = b->pred_count == 1 ? &f->edges[f->preds[b->first_pred]] : NULL;
        value_condition both;
        if (!e || f->blocks[e->from].end_kind != END_BRANCH || !value_test(ir, e->from, e->kind == EDGE_TAKEN, &both) || !both.a || both.b) continue;
        const ir_insn *either = &ir->insns[both.a];
        if (both.code != VALUE_NOT_EQUAL || both.imm || either->op != IR_OR || !either->a || !either->b) continue;
        ir_value x = value_plain(ir, either->a, 4), y = value_plain(ir, either->b, 4);
        if (x != c->a && y != c->a) continue;
        *c = (value_condition){.code = VALUE_NOT_EQUAL, .a = x == c->a ? y : x};
        return true;
    }
    return false;
}

/* Whether a branch finds that a variable, of which there is one and which begins with zero, is set. */
static bool looks(hb *h, uint32_t instance, uint32_t block, bool taken, hb_look *out)
{
    const lift_func *f = hb_instance_code(h, instance);
    value_condition *c = &out->condition;
    if (!value_test(f->ir, block, taken, c) || !c->a || !settle(h, instance, c) || (!is_set(c) && !settle_other(f->ir, block, c))) return false;
    ir_value found = only_source(f->ir, c->a, 0, 0);
    out->touch = found ? looked_at(h, instance, f->ir, found, 0) : NULL;
    if (!out->touch || out->touch->place_count != 1) return false;
    const pta_place *place = &h->places.data[out->touch->first_place].place;
    return hb_single(h, place) && begins_with_zero(h, place, out->touch->width);
}

static void find_lookings(hb *h, uint32_t instance)
{
    const lift_func *f = hb_instance_code(h, instance);
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        for (uint32_t e = block->first_succ; block->end_kind == END_BRANCH && e < block->first_succ + block->succ_count; e++) {
            hb_looking found = {.edge = {instance, b, e, -1}};
            if (looks(h, instance, b, f->edges[e].kind == EDGE_TAKEN, &found.look)) vec_push(&h->tokens->lookings, found);
        }
    }
}

const hb_looking *hb_lookings(hb *h, uint32_t *count)
{
    *count = h->tokens->lookings.len;
    return h->tokens->lookings.data;
}

/* --- all of them --------------------------------------------------------------------------------------------------------------- */

/* Whoever sets a variable under a lock has it until a call lets go of it: what it does before that is seen together with the
 * variable. (Compilers change the order of the stores in between.) */
static hb_point last_of(hb *h, hb_point post)
{
    const lift_func *f = hb_instance_code(h, post.instance);
    const hb_func *own = &h->funcs[h->instances[post.instance].func];
    const lift_block *b = &f->blocks[hb_block_of(f, post.insn)];
    uint32_t end = b->first_insn + b->insn_count;
    for (uint32_t c = 0; c < own->call_count; c++)
        if (own->calls[c].insn > post.insn && own->calls[c].insn < end) end = own->calls[c].insn;
    uint32_t held = hb_locks_at(h, post);
    for (uint32_t i = post.insn + 1; i < end; i++) /* nor a store that lets go of a lock of one's own making */
        if (hb_locks_at(h, (hb_point){post.instance, i}) != held) end = i;
    return (hb_point){post.instance, end > post.insn ? end - 1 : post.insn};
}

static void find_poster(hb *h, token *t)
{
    if (t->is_end) return;
    t->poster = HB_NONE;
    bool several = false;
    for (uint32_t i = 0; i < t->posts.len; i++)
        for (uint32_t o = 0; o < h->origins.len; o++) {
            if (!hb_bit(h->origins.data[o].self, t->posts.data[i].instance) || hb_constant_never(h, o, t->posts.data[i])) continue;
            several |= t->poster != HB_NONE && t->poster != o;
            t->poster = o;
        }
    if (t->poster == HB_NONE) return;
    const hb_origin *o = &h->origins.data[t->poster];
    if (several || o->overlaps || o->twin != HB_NONE || o->kind > HB_THREAD) {
        t->poster = HB_NONE;
        return;
    }
    hb_walk walk = {.origin = t->poster};
    for (uint32_t i = 0; i < t->posts.len && t->locked && t->is_variable; i++)
        t->posts.data[i] = last_of(h, t->posts.data[i]);
    hb_region_walk(h, &walk, t->posts.data, t->posts.len, &t->posted);
}

void hb_tokens_open(hb *h)
{
    h->tokens = base_alloc_zero(1, sizeof *h->tokens);
    take_channels(h);
    take_joins(h);
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (hb_instance_code(h, i)) find_lookings(h, i);
    for (uint32_t i = 0; i < h->tokens->lookings.len; i++) {
        const hb_looking *l = &h->tokens->lookings.data[i];
        take_variable(h, l->look.touch, &h->places.data[l->look.touch->first_place], l->edge);
    }
    for (uint32_t i = 0; i < h->tokens->all.len; i++) {
        token *t = &h->tokens->all.data[i];
        if (t->is_variable) hb_echo_edges(h, &t->edges);
        find_poster(h, t);
        t->unwaited = base_alloc_zero(h->origins.len, sizeof *t->unwaited);
        t->has_unwaited = base_alloc_zero(h->origins.len, sizeof *t->has_unwaited);
    }
}

void hb_tokens_close(hb *h)
{
    for (uint32_t i = 0; h->tokens && i < h->tokens->all.len; i++) {
        token *t = &h->tokens->all.data[i];
        if (t->posted.whole) hb_region_free(&t->posted);
        for (uint32_t o = 0; o < h->origins.len; o++)
            if (t->has_unwaited[o]) hb_region_free(&t->unwaited[o]);
        free(t->unwaited);
        free(t->has_unwaited);
        vec_free(&t->posts);
        vec_free(&t->waits);
        vec_free(&t->edges);
        vec_free(&t->cutters);
    }
    if (h->tokens) {
        vec_free(&h->tokens->all);
        vec_free(&h->tokens->lookings);
    }
    free(h->tokens);
}

static bool cuts(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    const token *t = w->with;
    for (uint32_t i = 0; i < t->waits.len; i++)
        if (t->waits.data[i].instance == instance && t->waits.data[i].insn == call->insn) return true;
    return false;
}

static bool closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    const token *t = w->with;
    return hb_edges_have(&t->edges, instance, from, edge) || (t->constant && hb_constant_closes(t->h, w->origin, instance, from, edge));
}

/* The point can only be reached over a wait. */
static bool has_waited(hb *h, token *t, uint32_t origin, hb_point at)
{
    if (h->origins.data[origin].kind > HB_THREAD) return false;
    if (!t->has_unwaited[origin]) {
        t->h = h;
        t->constant = hb_has_constant(h, origin);
        if (t->constant) add_number(&t->cutters, h->origins.data[origin].instance);
        hb_walk walk = {.cuts = cuts, .closes = closes, .with = t, .cutters = t->cutters.data, .cutter_count = t->cutters.len,
                        .origin = origin};
        hb_point start = {h->origins.data[origin].instance, HB_NONE};
        hb_region_walk(h, &walk, &start, 1, &t->unwaited[origin]);
        t->has_unwaited[origin] = true;
    }
    return !hb_region_has(&t->unwaited[origin], at);
}

bool hb_tokens_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    if (x == y || h->origins.data[x].twin == y) return false;
    for (uint32_t i = 0; i < h->tokens->all.len; i++) {
        token *t = &h->tokens->all.data[i];
        if (t->poster == x && !hb_region_has(&t->posted, a) && has_waited(h, t, y, b)) return true;
        if (t->poster == y && !hb_region_has(&t->posted, b) && has_waited(h, t, x, a)) return true;
    }
    return false;
}
