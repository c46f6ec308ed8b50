/* Which code may run after given points, as long as nothing cuts the way. Context-sensitive in the usual two steps: first up,
 * from the points to the ends of their functions and on behind the calls of these; then down, into whatever is called on the
 * way. A call is passed when its callee can be gone through from its entry to its end.
 *
 * Each block of an instance is gone through once in a walk, wherever the walk came from: what can be reached from several points
 * is what can be reached from each. An instance in which nothing cuts and of which all calls come back is entered as a whole, and
 * what lies behind one of its calls is the same for all instances of its function and all walks: it is found once (find_after). */
#include "static/hb/memo.h"
#include "static/hb/private.h"
#include "static/hb/value_facts.h"

typedef struct {
    const hb *h;
    const hb_walk *walk;
    hb_region *out;
    uint8_t *tainted; /* per instance: something below it cuts (BELOW), or in it (CUTTER); 0: nothing */
    uint8_t *passes;  /* per tainted instance: it can be gone through (PASSES), or could not when it was tried (FAILS) */
    uint64_t *clear;  /* tainted instances of which all calls are known to come back, and in which nothing cuts */
    uint64_t **seen_in; /* per instance: blocks that are in the region already; NULL: none */
    uint64_t **passed; /* the same of calls that were gone through (go_after) */
    uint64_t *entered; /* instances that are in `down` already */
    hb_numbers down;
    hb_points up;
    map64 seen; /* instance and block, or start: in this region already */
    map64 jumps; /* instance and setjmp that was come back to */
    bool record;
} walker;

enum { BELOW = 1, CUTTER };
enum { PASSES = 1, FAILS };

static void find_tainted(walker *w)
{
    const hb *h = w->h;
    hb_numbers work = {0};
    w->tainted = base_alloc_zero(h->instance_count, 1);
    w->passes = base_alloc_zero(h->instance_count, 1);
    for (uint32_t i = 0; i < w->walk->cutter_count; i++) {
        w->tainted[w->walk->cutters[i]] = CUTTER;
        vec_push(&work, w->walk->cutters[i]);
    }
    while (work.len) {
        uint32_t callee = work.data[--work.len];
        for (uint32_t i = h->in_first[callee]; i < h->in_first[callee + 1]; i++) {
            const pta_call_edge *e = &h->edges[h->in_edge[i]];
            if (hb_spawns(h, e) || w->tainted[e->caller]) continue;
            w->tainted[e->caller] = BELOW;
            vec_push(&work, e->caller);
        }
    }
    vec_free(&work);
}

/* Whether execution comes back from a call. */
static bool call_passes(const walker *w, uint32_t instance, const hb_call *call)
{
    uint32_t count, first = hb_callees(w->h, instance, call->call, &count);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        const pta_call_edge *e = &w->h->edges[first + i];
        if (hb_spawns(w->h, e)) continue;
        any = true;
        if (w->walk->waits && hb_bit(w->walk->waits, e->callee)) continue;
        if (!w->tainted[e->callee] || w->passes[e->callee] == PASSES) return true;
    }
    return !any;
}

/* The same of all calls of an instance: its edges lie by call. */
static bool calls_pass(const walker *w, uint32_t instance)
{
    const hb *h = w->h;
    uint32_t end = h->out_first[instance + 1];
    for (uint32_t e = h->out_first[instance]; e < end;) {
        uint32_t call = h->edges[e].call;
        bool any = false, passes = false;
        for (; e < end && h->edges[e].call == call; e++) {
            if (h->spawns[e]) continue;
            any = true;
            passes = passes || !w->tainted[h->edges[e].callee] || w->passes[h->edges[e].callee] == PASSES;
        }
        if (any && !passes) return false;
    }
    return true;
}

/* All calls of a tainted instance come back, and nothing in it cuts. */
static bool is_clear(walker *w, uint32_t instance)
{
    if (hb_bit(w->clear, instance)) return true;
    if (w->tainted[instance] == CUTTER || !calls_pass(w, instance)) return false;
    hb_set(w->clear, instance);
    return true;
}

static void enter(walker *w, uint32_t instance)
{
    if (hb_bit(w->entered, instance)) return;
    hb_set(w->entered, instance);
    vec_push(&w->down, instance);
}

static void enter_callees(walker *w, uint32_t instance, const hb_call *call)
{
    uint32_t count, first = hb_callees(w->h, instance, call->call, &count);
    for (uint32_t i = 0; i < count; i++)
        if (!hb_spawns(w->h, &w->h->edges[first + i])) enter(w, w->h->edges[first + i].callee);
}

static void note(walker *w, uint32_t instance, uint32_t lo, uint32_t hi)
{
    if (!w->record || lo >= hi) return;
    uint32_t *at = map_at(&w->out->part_of, instance);
    if (*at == MAP_NONE) {
        *at = w->out->parts.len;
        vec_reserve(&w->out->parts, w->out->parts.len + 1);
        memset(&w->out->parts.data[w->out->parts.len++], 0, sizeof *w->out->parts.data);
    }
    vec_push(&w->out->parts.data[*at].intervals, (hb_interval){lo, hi});
}

static bool ends_function(const lift_block *block)
{
    return block->end_kind == END_RET || block->end_kind == END_TAIL || block->end_kind == END_TAIL_IND || block->tail ||
           block->end_kind == END_UNKNOWN;
}

/* Goes through a block from an instruction on. True: its end is reached. */
static bool go_block(walker *w, uint32_t instance, const lift_func *f, uint32_t block, uint32_t from)
{
    const hb_func *own = &w->h->funcs[w->h->instances[instance].func];
    const lift_block *b = &f->blocks[block];
    bool cutter = w->tainted[instance] == CUTTER && w->walk->cuts;
    uint32_t end = b->first_insn + b->insn_count;
    uint32_t stop = w->tainted[instance] == CUTTER && w->walk->stops ? w->walk->stops(w->walk, instance, from, end) : HB_NONE;
    for (uint32_t c = hb_first_call(own, from); c < own->call_count && own->calls[c].insn < end; c++) {
        const hb_call *call = &own->calls[c];
        if (stop < call->insn) break;
        if (cutter && w->walk->cuts(w->walk, instance, call)) return note(w, instance, from, call->insn + 1), false;
        if (w->record) enter_callees(w, instance, call);
        if (!call_passes(w, instance, call)) return note(w, instance, from, call->insn + 1), false;
    }
    note(w, instance, from, stop < end ? stop + 1 : end);
    return stop >= end;
}

/* What a load of the block finds that the block has stored there itself: functions with setjmp keep their variables in memory. */
static ir_value stored_here(const ir_func *ir, uint32_t block, ir_value load)
{
    const ir_block *b = &ir->blocks[block];
    for (ir_value v = load; v-- > b->first;) {
        if (ir->insns[v].op == IR_CALL) return 0;
        if (ir->insns[v].op != IR_STORE) continue;
        bool same = ir->insns[v].width == ir->insns[load].width && value_same_access(ir, &ir->insns[ir->insns[v].a], &ir->insns[ir->insns[load].a]);
        return same ? value_plain(ir, ir->insns[v].b, 4) : 0;
    }
    return 0;
}

bool hb_first_return(const hb *h, uint32_t instance, uint32_t block, uint32_t edge, uint32_t setjmp)
{
    value_condition c;
    const lift_func *f = hb_instance_code(h, instance);
    if (f->blocks[block].end_kind != END_BRANCH || !value_test(f->ir, block, f->edges[edge].kind == EDGE_TAKEN, &c)) return false;
    if (!c.a || c.b) return false;
    if (f->ir->insns[c.a].op == IR_LOAD) c.a = stored_here(f->ir, block, c.a);
    const ir_insn *result = &f->ir->insns[c.a];
    if (!c.a || result->op != IR_RESULT || result->var != IR_RAX || f->ir->insns[result->a].insn != setjmp) return false;
    const hb_call *call = hb_call_at(h, h->instances[instance].func, setjmp);
    return call && hb_never_jumps(h, instance, call, c.code, c.imm);
}

/* From an instruction (its block is entered in the middle) or, with HB_NONE, from the entry. True: the function's end is
 * reached. `seen` has a bit per block. `jumped`: the instruction is a setjmp that was come back to, as long as it is not called
 * again. */
static bool go_function(walker *w, uint32_t instance, uint32_t insn, bool jumped, uint64_t *seen)
{
    const lift_func *f = hb_instance_code(w->h, instance);
    bool ends = false, closes = w->tainted[instance] == CUTTER && w->walk->closes;
    hb_numbers work = {0};
    if (insn == HB_NONE) {
        if (hb_bit(seen, 0)) return false;
        hb_set(seen, 0);
        vec_push(&work, 0);
    }
    for (bool first = insn != HB_NONE; first || work.len;) {
        uint32_t block = first ? hb_block_of(f, insn) : work.data[--work.len];
        bool through = go_block(w, instance, f, block, first ? insn + 1 : f->blocks[block].first_insn);
        first = false;
        if (!through) continue;
        const lift_block *b = &f->blocks[block];
        ends |= ends_function(b);
        if (b->end_kind == END_UNKNOWN) /* it may go anywhere in the function */
            for (uint32_t other = 0; other < f->block_count; other++)
                if (!hb_bit(seen, other)) {
                    hb_set(seen, other);
                    vec_push(&work, other);
                }
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            uint32_t to = f->edges[e].to;
            if (hb_bit(seen, to)) continue;
            if (closes && w->walk->closes(w->walk, instance, block, e)) continue;
            if (jumped && hb_first_return(w->h, instance, block, e, insn)) continue;
            hb_set(seen, to);
            vec_push(&work, to);
        }
    }
    vec_free(&work);
    return ends;
}

static int by_begin(const void *a, const void *b)
{
    const hb_interval *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* In order, and none that touches another. */
static void merge(hb_part *part)
{
    uint32_t kept = 0;
    qsort(part->intervals.data, part->intervals.len, sizeof *part->intervals.data, by_begin);
    for (uint32_t i = 1; i < part->intervals.len; i++) {
        hb_interval *last = &part->intervals.data[kept], *next = &part->intervals.data[i];
        if (next->lo > last->hi)
            part->intervals.data[++kept] = *next;
        else if (next->hi > last->hi)
            last->hi = next->hi;
    }
    part->intervals.len = kept + 1;
}

static hb_after *find_after(const hb_func *own, const lift_func *f, uint32_t insn)
{
    hb_after *after = base_alloc_zero(1, sizeof *after);
    VEC(hb_interval) intervals = {0};
    hb_numbers work = {0}, calls = {0};
    uint64_t *seen = base_alloc_zero(f->block_count / 64 + 1, sizeof *seen);
    for (bool first = true; first || work.len; first = false) {
        const lift_block *b = &f->blocks[first ? hb_block_of(f, insn) : work.data[--work.len]];
        uint32_t from = first ? insn + 1 : b->first_insn, end = b->first_insn + b->insn_count;
        for (uint32_t c = hb_first_call(own, from); c < own->call_count && own->calls[c].insn < end; c++)
            vec_push(&calls, c);
        if (from < end) vec_push(&intervals, ((hb_interval){from, end}));
        after->ends |= ends_function(b);
        uint32_t count = b->end_kind == END_UNKNOWN ? f->block_count : b->succ_count; /* it may go anywhere in the function */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t to = b->end_kind == END_UNKNOWN ? i : f->edges[b->first_succ + i].to;
            if (hb_bit(seen, to)) continue;
            hb_set(seen, to);
            vec_push(&work, to);
        }
    }
    vec_free(&work);
    free(seen);
    hb_part part = {.intervals = {intervals.data, intervals.len, intervals.cap}};
    if (part.intervals.len) merge(&part);
    after->intervals = part.intervals.data;
    after->interval_count = part.intervals.len;
    after->calls = calls.data;
    after->call_count = calls.len;
    return after;
}

void hb_afters_free(hb_func *f)
{
    for (uint32_t c = 0; f->after && c < f->call_count; c++) {
        if (!f->after[c]) continue;
        free(f->after[c]->intervals);
        free(f->after[c]->calls);
        free(f->after[c]);
    }
    free(f->after);
}

/* The same as go_function from a call of an instance in which nothing cuts and of which all calls come back. What lies behind a call that was gone
 * through is in the region already. */
static bool go_after(walker *w, uint32_t instance, uint32_t call)
{
    hb_func *own = &w->h->funcs[w->h->instances[instance].func];
    if (!own->after) own->after = base_alloc_zero(own->call_count, sizeof *own->after);
    if (!own->after[call]) own->after[call] = find_after(own, hb_instance_code(w->h, instance), own->calls[call].insn);
    uint64_t **passed = &w->passed[instance];
    if (!*passed) *passed = base_alloc_zero(own->call_count / 64 + 1, sizeof **passed);
    if (hb_bit(*passed, call)) return false;
    const hb_after *after = own->after[call];
    for (uint32_t i = 0; i < after->interval_count; i++)
        note(w, instance, after->intervals[i].lo, after->intervals[i].hi);
    for (uint32_t i = 0; i < after->call_count; i++) {
        if (hb_bit(*passed, after->calls[i])) continue;
        hb_set(*passed, after->calls[i]);
        enter_callees(w, instance, &own->calls[after->calls[i]]);
    }
    return after->ends;
}

static uint64_t *new_seen(const hb *h, uint32_t instance)
{
    return base_alloc_zero(hb_instance_code(h, instance)->block_count / 64 + 1, sizeof(uint64_t));
}

/* The blocks of an instance that the region has already. */
static uint64_t *seen_in(walker *w, uint32_t instance)
{
    if (!w->seen_in[instance]) w->seen_in[instance] = new_seen(w->h, instance);
    return w->seen_in[instance];
}

/* From a point upwards. */
static bool go_from(walker *w, hb_point at)
{
    const hb_func *own = &w->h->funcs[w->h->instances[at.instance].func];
    if (!w->walk->waits && (!w->tainted[at.instance] || is_clear(w, at.instance))) {
        uint32_t call = hb_first_call(own, at.insn);
        if (call < own->call_count && own->calls[call].insn == at.insn) return go_after(w, at.instance, call);
    }
    return go_function(w, at.instance, at.insn, false, seen_in(w, at.instance));
}

/* What can be reached of a function from its entry, when all of its calls come back as those of this instance do. */
static const hb_func *reached(walker *w, uint32_t instance)
{
    hb_func *own = &w->h->funcs[w->h->instances[instance].func];
    if (own->ends) return own;
    const lift_func *f = hb_instance_code(w->h, instance);
    uint64_t *seen = new_seen(w->h, instance);
    bool record = w->record, all = true;
    w->record = false;
    own->ends = go_function(w, instance, HB_NONE, false, seen) ? HB_YES : HB_NO;
    w->record = record;
    for (uint32_t b = 0; b < f->block_count && all; b++)
        all = hb_bit(seen, b) || !f->blocks[b].insn_count;
    own->reached = all ? HB_YES : HB_NO;
    free(seen);
    return own;
}

static bool function_passes(walker *w, uint32_t instance)
{
    const hb *h = w->h;
    if (hb_instance_code(h, instance)) {
        if (is_clear(w, instance)) return reached(w, instance)->ends == HB_YES;
        uint64_t *seen = new_seen(h, instance);
        bool passes = go_function(w, instance, HB_NONE, false, seen);
        free(seen);
        return passes;
    }
    /* a library function runs one of its callees, or none */
    if (strcmp(h->program->funcs.data[h->instances[instance].func].name, "__libc_start_main")) return true;
    for (uint32_t e = h->out_first[instance]; e < h->out_first[instance + 1]; e++)
        if (!hb_spawns(h, &h->edges[e]) && w->tainted[h->edges[e].callee] && w->passes[h->edges[e].callee] != PASSES) return false;
    return true;
}

/* Least fixed point: no tainted function can be gone through until it is shown; its callers are looked at again then. */
static void find_passes(walker *w)
{
    const hb *h = w->h;
    hb_numbers work = {0};
    for (uint32_t n = h->instance_count; n-- > 0;)
        if (w->tainted[h->callees_first[n]]) vec_push(&work, h->callees_first[n]);
    while (work.len) {
        uint32_t i = work.data[--work.len];
        if (w->passes[i] == PASSES) continue;
        w->passes[i] = function_passes(w, i) ? PASSES : FAILS;
        if (w->passes[i] == FAILS) continue;
        for (uint32_t k = h->in_first[i]; k < h->in_first[i + 1]; k++) {
            const pta_call_edge *e = &h->edges[h->in_edge[k]];
            if (w->passes[e->caller] != FAILS || hb_spawns(h, e)) continue;
            w->passes[e->caller] = 0;
            vec_push(&work, e->caller);
        }
    }
    vec_free(&work);
}

static bool may_go(const walker *w, uint32_t instance)
{
    return w->walk->origin == HB_NONE || hb_bit(w->h->origins.data[w->walk->origin].self, instance);
}

/* Behind the calls of a function whose end was reached. */
static void go_up(walker *w, uint32_t instance)
{
    const hb *h = w->h;
    if (w->walk->inside) return;
    bool any = false;
    for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
        const pta_call_edge *e = &h->edges[h->in_edge[i]];
        if (hb_spawns(h, e) || !may_go(w, e->caller)) continue;
        any = true;
        bool code = hb_instance_code(h, e->caller);
        uint32_t insn = code ? h->call_insn[e->call] : HB_NONE;
        if (!code && !strcmp(h->program->funcs.data[h->instances[e->caller].func].name, "__libc_start_main")) w->out->ends = true;
        uint32_t *known = map_at(&w->seen, (uint64_t)e->caller << 32 | insn);
        if (*known != MAP_NONE) continue;
        *known = 1;
        vec_push(&w->up, (hb_point){e->caller, insn});
    }
    if (!any) w->out->ends = true;
}

static void go_down(walker *w)
{
    const hb *h = w->h;
    while (w->down.len) {
        uint32_t instance = w->down.data[--w->down.len];
        if (!hb_instance_code(h, instance)) {
            for (uint32_t i = h->runs_first[instance]; i < h->runs_first[instance + 1]; i++)
                enter(w, h->runs[i]);
            continue;
        }
        if (w->tainted[instance] && (!is_clear(w, instance) || reached(w, instance)->reached != HB_YES)) {
            go_function(w, instance, HB_NONE, false, seen_in(w, instance));
            continue;
        }
        hb_set(w->out->whole, instance);
        for (uint32_t i = h->runs_first[instance]; i < h->runs_first[instance + 1]; i++)
            enter(w, h->runs[i]);
    }
}

/* From anywhere in a function it may come back to where it called setjmp, which is also how a cancelled thread cleans up. */
static void jump_back(walker *w, uint32_t instance)
{
    const hb *h = w->h;
    const hb_func *f = &h->funcs[h->instances[instance].func];
    for (uint32_t c = 0; f->jumps && !w->walk->calm && c < f->call_count; c++) {
        uint32_t func = h->program->calls.data[f->calls[c].call].func;
        const char *name = func == PTA_NO_FUNC ? "" : h->program->funcs.data[func].name;
        if (!strstr(name, "setjmp")) continue;
        uint32_t *known = map_at(&w->jumps, (uint64_t)instance << 32 | f->calls[c].insn);
        if (*known != MAP_NONE) continue;
        *known = 1;
        uint64_t *seen = new_seen(h, instance);
        bool ends = go_function(w, instance, f->calls[c].insn, true, seen);
        if (hb_bit(seen, hb_block_of(hb_instance_code(h, instance), f->calls[c].insn))) /* it is called once more */
            vec_push(&w->up, (hb_point){instance, f->calls[c].insn});
        free(seen);
        if (ends) go_up(w, instance);
    }
}

void hb_region_walk(const hb *h, const hb_walk *walk, const hb_point *starts, uint32_t count, hb_region *out)
{
    walker w = {.h = h, .walk = walk, .out = out};
    uint64_t key = hb_memo_key(h, walk, starts, count);
    if (key && hb_memo_find(h, key, out)) return;
    *out = (hb_region){.whole = base_alloc_zero(h->words, sizeof *out->whole)};
    w.entered = base_alloc_zero(h->words, sizeof *w.entered);
    w.clear = base_alloc_zero(h->words, sizeof *w.clear);
    w.seen_in = base_alloc_zero(h->instance_count, sizeof *w.seen_in);
    w.passed = base_alloc_zero(h->instance_count, sizeof *w.passed);
    find_tainted(&w);
    find_passes(&w);
    w.record = true;
    for (uint32_t i = 0; i < count; i++)
        if (starts[i].insn == HB_NONE)
            enter(&w, starts[i].instance);
        else if (may_go(&w, starts[i].instance))
            vec_push(&w.up, starts[i]);
    while (w.up.len) {
        hb_point at = w.up.data[--w.up.len];
        if (!hb_instance_code(h, at.instance)) {
            go_up(&w, at.instance);
            continue;
        }
        if (go_from(&w, at)) go_up(&w, at.instance);
        jump_back(&w, at.instance);
    }
    go_down(&w);
    for (uint32_t i = 0; i < out->parts.len; i++)
        merge(&out->parts.data[i]);
    if (key) hb_memo_keep(h, key, out);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        free(w.seen_in[i]);
        free(w.passed[i]);
    }
    free(w.seen_in);
    free(w.passed);
    free(w.tainted);
    free(w.passes);
    free(w.entered);
    free(w.clear);
    vec_free(&w.down);
    vec_free(&w.up);
    map_free(&w.seen);
    map_free(&w.jumps);
}

bool hb_goes_on_to(const lift_func *f, uint32_t from, uint32_t to)
{
    const ir_block *blocks = f->ir->blocks;
    return blocks[from].rpo < blocks[to].rpo && hb_bit(value_blocks_behind(f->ir, from), to);
}

bool hb_region_has(const hb_region *r, hb_point at)
{
    if (hb_bit(r->whole, at.instance)) return true;
    uint32_t part = map_get(&r->part_of, at.instance);
    if (part == MAP_NONE) return false;
    const hb_interval *v = r->parts.data[part].intervals.data;
    uint32_t low = 0, high = r->parts.data[part].intervals.len;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (v[middle].hi <= at.insn)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->parts.data[part].intervals.len && at.insn >= v[low].lo;
}

void hb_region_free(hb_region *r)
{
    free(r->whole);
    for (uint32_t i = 0; i < r->parts.len; i++)
        vec_free(&r->parts.data[i].intervals);
    vec_free(&r->parts);
    map_free(&r->part_of);
    *r = (hb_region){0};
}
