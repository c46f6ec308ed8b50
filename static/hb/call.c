/* The calls of each function in the order of its instructions, and where each instance of a call goes. */
#include "static/hb/private.h"
#include "static/hb/value.h"

static int by_insn(const void *a, const void *b)
{
    const hb_call *x = a, *y = b;
    if (x->insn != y->insn) return x->insn < y->insn ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

/* The IR of each call, found by machine instruction. */
static void find_values(hb_func *f, const ir_func *ir)
{
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_CALL && ir->insns[v].op != IR_TAIL) continue;
        for (uint32_t c = 0; c < f->call_count; c++)
            if (f->calls[c].insn == ir->insns[v].insn && !f->calls[c].value) {
                f->calls[c].value = v;
                break;
            }
    }
}

/* What a call of longjmp returns from setjmp: never 0. */
static void note_jump(hb *h, const ir_func *ir, const hb_call *call)
{
    hb_jumps *jumps = &h->jumps;
    ir_value v = call->value ? value_plain(ir, ir->args[ir->insns[call->value].a + IR_CALL_RSI], 4) : 0;
    if (!v || ir->insns[v].op != IR_CONST) {
        jumps->others = true;
        return;
    }
    int32_t value = (int32_t)ir->insns[v].imm ? (int32_t)ir->insns[v].imm : 1;
    for (uint32_t i = 0; i < jumps->count; i++)
        if (jumps->values[i] == value) return;
    if (jumps->count == sizeof jumps->values / sizeof *jumps->values)
        jumps->others = true;
    else
        jumps->values[jumps->count++] = value;
}

static void note_jumps(hb *h, uint32_t func)
{
    const hb_func *own = &h->funcs[func];
    for (uint32_t c = 0; hb_code(h, func) && c < own->call_count; c++) {
        uint32_t callee = h->program->calls.data[own->calls[c].call].func;
        if (callee != PTA_NO_FUNC && strstr(h->program->funcs.data[callee].name, "longjmp")) note_jump(h, hb_code(h, func)->ir, &own->calls[c]);
    }
}

static bool holds(uint8_t code, int32_t a, int32_t b)
{
    switch (code & 14) {
    case 2: return ((uint32_t)a < (uint32_t)b) != (code & 1);
    case 4: return (a == b) != (code & 1);
    case 6: return ((uint32_t)a <= (uint32_t)b) != (code & 1);
    case 12: return (a < b) != (code & 1);
    case 14: return (a <= b) != (code & 1);
    default: return true;
    }
}

/* Who has the buffer and is not analysed, or cancels the thread, may jump with any value but 0. */
bool hb_never_jumps(const hb *h, uint32_t instance, const hb_call *call, uint8_t code, int64_t imm)
{
    const pta_call *c = &h->program->calls.data[call->call];
    if (code == VALUE_EQUAL && !imm) return true;
    if (h->jumps.others || !h->jumps.count || c->args[0].var == PTA_NO_VAR || strstr(h->program->funcs.data[c->func].name, "sigsetjmp")) return false;
    for (uint32_t i = 0; i < h->jumps.count; i++)
        if (holds(code, h->jumps.values[i], (int32_t)imm)) return false;
    pta_places buffers = {0};
    hb_points_to(h, instance, c->args[0], &buffers);
    bool own = buffers.len;
    for (uint32_t i = 0; i < buffers.len && own; i++) {
        uint8_t kind = h->program->sites.data[buffers.data[i].site].kind;
        own = kind != PTA_EXTERNAL && kind != PTA_WILD;
    }
    vec_free(&buffers);
    return own;
}

static void open_func(hb *h, uint32_t func)
{
    const pta_func *f = &h->program->funcs.data[func];
    hb_func *own = &h->funcs[func];
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->stmts.len; i++)
        count += f->stmts.data[i].kind == PTA_CALL;
    own->calls = base_alloc_zero(count, sizeof *own->calls);
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        if (stmt->kind != PTA_CALL) continue;
        hb_call call = {.call = stmt->ref, .insn = stmt->insn};
        uint32_t callee = h->program->calls.data[stmt->ref].func;
        if (callee != PTA_NO_FUNC) {
            call.sync = h->syncs[callee];
            call.touch = sync_index_touch_find(&h->names, h->program->funcs.data[callee].name);
            own->jumps |= strstr(h->program->funcs.data[callee].name, "setjmp") != NULL;
            own->forks |= !strcmp(h->program->funcs.data[callee].name, "fork");
        }
        own->calls[own->call_count++] = call;
        h->call_insn[stmt->ref] = stmt->insn;
    }
    if (own->call_count) qsort(own->calls, own->call_count, sizeof *own->calls, by_insn);
    if (hb_code(h, func) && own->call_count) find_values(own, f->lift->ir);
}

static int by_caller(const void *a, const void *b)
{
    const pta_call_edge *x = a, *y = b;
    if (x->caller != y->caller) return x->caller < y->caller ? -1 : 1;
    if (x->call != y->call) return x->call < y->call ? -1 : 1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

bool hb_spawns(const hb *h, const pta_call_edge *edge)
{
    if (h->spawns) return h->spawns[edge - h->edges];
    return h->program->calls.data[edge->call].spawn != PTA_SPAWN_NONE || h->instances[edge->caller].func == h->program->outside;
}

/* A model that starts threads or tasks also runs the same function in its caller, as one more of them: which brings nothing new,
 * but would be a thread against itself. */
static bool is_share(const hb *h, const pta_call_edge *edge, const pta_call_edge *all, uint32_t count)
{
    if (hb_spawns(h, edge) || hb_instance_code(h, edge->caller)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (h->program->calls.data[all[i].call].spawn == PTA_SPAWN_THREAD &&
            h->instances[all[i].callee].func == h->instances[edge->callee].func)
            return true;
    return false;
}

/* What futures call once, to set their result. It is not followed: what comes before it and what comes behind get() is ordered by the
 * state of the future, of which nothing is known here. */
static bool is_of_future(const hb *h, const pta_call_edge *edge)
{
    return !hb_instance_code(h, edge->caller) && !strcmp(h->program->funcs.data[h->instances[edge->caller].func].name, "__once_proxy") &&
           strstr(h->program->funcs.data[h->instances[edge->callee].func].name, "13__future_base");
}

static void drop_shares(hb *h)
{
    uint32_t kept = 0;
    bool *drop = base_alloc_zero(h->edge_count, sizeof *drop);
    for (uint32_t i = 0, end; i < h->edge_count; i = end) {
        for (end = i; end < h->edge_count && h->edges[end].caller == h->edges[i].caller;)
            end++;
        for (uint32_t e = i; e < end; e++)
            drop[e] = is_share(h, &h->edges[e], h->edges + i, end - i) || is_of_future(h, &h->edges[e]);
    }
    for (uint32_t e = 0; e < h->edge_count; e++)
        if (!drop[e]) h->edges[kept++] = h->edges[e];
    h->edge_count = kept;
    free(drop);
}

/* All instances, callees in front of their callers as far as there is no recursion. */
static uint32_t *find_callees_first(const hb *h)
{
    uint32_t *order = base_alloc(h->instance_count * sizeof *order), count = 0;
    uint32_t *next = base_alloc(h->instance_count * sizeof *next); /* per instance: the edge to go on with */
    uint64_t *seen = base_alloc_zero(h->instance_count / 64 + 1, sizeof *seen);
    hb_numbers path = {0};
    memcpy(next, h->out_first, h->instance_count * sizeof *next);
    for (uint32_t root = 0; root < h->instance_count; root++) {
        if (hb_bit(seen, root)) continue;
        hb_set(seen, root);
        vec_push(&path, root);
        while (path.len) {
            uint32_t at = path.data[path.len - 1];
            if (next[at] == h->out_first[at + 1]) {
                order[count++] = at;
                path.len--;
                continue;
            }
            uint32_t callee = h->edges[next[at]++].callee;
            if (hb_bit(seen, callee)) continue;
            hb_set(seen, callee);
            vec_push(&path, callee);
        }
    }
    vec_free(&path);
    free(seen);
    free(next);
    return order;
}

/* Those that a thread goes on in, whichever call leads to them. */
static void find_runs(hb *h)
{
    uint32_t *last = base_alloc_zero(h->instance_count, sizeof *last), count = 0; /* per callee: the caller that has it already, + 1 */
    h->runs_first = base_alloc((h->instance_count + 1) * sizeof *h->runs_first);
    h->runs = base_alloc(h->edge_count * sizeof *h->runs);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        h->runs_first[i] = count;
        for (uint32_t e = h->out_first[i]; e < h->out_first[i + 1]; e++) {
            uint32_t callee = h->edges[e].callee;
            if (h->spawns[e] || last[callee] == i + 1) continue;
            last[callee] = i + 1;
            h->runs[count++] = callee;
        }
    }
    h->runs_first[h->instance_count] = count;
    free(last);
}

/* By caller, of which there are many, then what few of them do not have in order. */
static void sort_edges(hb *h)
{
    pta_call_edge *sorted = base_alloc(h->edge_count * sizeof *sorted);
    uint32_t *first = base_alloc_zero((size_t)h->instance_count + 1, sizeof *first);
    for (uint32_t e = 0; e < h->edge_count; e++)
        first[h->edges[e].caller + 1]++;
    for (uint32_t i = 0; i < h->instance_count; i++)
        first[i + 1] += first[i];
    for (uint32_t e = 0; e < h->edge_count; e++)
        sorted[first[h->edges[e].caller]++] = h->edges[e];
    for (uint32_t i = 0, from = 0; i < h->instance_count; from = first[i++]) { /* which is now where the next one begins */
        bool ordered = true;
        for (uint32_t e = from + 1; e < first[i] && ordered; e++)
            ordered = by_caller(&sorted[e - 1], &sorted[e]) <= 0;
        if (!ordered) qsort(sorted + from, first[i] - from, sizeof *sorted, by_caller);
    }
    free(first);
    free(h->edges);
    h->edges = sorted;
}

void hb_calls_open(hb *h)
{
    h->instance_count = pta_instance_count(h->p);
    h->instances = base_alloc(h->instance_count * sizeof *h->instances);
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (!pta_instance_at(h->p, i, &h->instances[i])) h->instances[i].func = PTA_NO_FUNC;
    h->code = base_alloc_zero(h->instance_count, sizeof *h->code);
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (h->instances[i].func != PTA_NO_FUNC) h->code[i] = hb_code(h, h->instances[i].func);
    h->call_insn = base_alloc_zero(h->program->calls.len, sizeof *h->call_insn);
    h->funcs = base_alloc_zero(h->program->funcs.len, sizeof *h->funcs);
    sync_index_open(&h->names);
    h->syncs = base_alloc(h->program->funcs.len * sizeof *h->syncs);
    for (uint32_t f = 0; f < h->program->funcs.len; f++)
        h->syncs[f] = hb_sync(h, h->program->funcs.data[f].name);
    for (uint32_t f = 0; f < h->program->funcs.len; f++) {
        open_func(h, f);
        note_jumps(h, f);
    }
    h->edge_count = pta_call_graph(h->p, &h->edges);
    sort_edges(h);
    drop_shares(h);
    bool *spawns = base_alloc(h->edge_count * sizeof *spawns);
    for (uint32_t e = 0; e < h->edge_count; e++)
        spawns[e] = hb_spawns(h, &h->edges[e]);
    h->spawns = spawns;
    h->out_first = base_alloc_zero(h->instance_count + 1, sizeof *h->out_first);
    h->in_first = base_alloc_zero(h->instance_count + 2, sizeof *h->in_first);
    h->in_edge = base_alloc(h->edge_count * sizeof *h->in_edge);
    for (uint32_t e = 0; e < h->edge_count; e++) {
        h->out_first[h->edges[e].caller + 1]++;
        h->in_first[h->edges[e].callee + 2]++;
    }
    for (uint32_t i = 0; i < h->instance_count; i++) {
        h->out_first[i + 1] += h->out_first[i];
        h->in_first[i + 2] += h->in_first[i + 1];
    }
    for (uint32_t e = 0; e < h->edge_count; e++)
        h->in_edge[h->in_first[h->edges[e].callee + 1]++] = e;
    find_runs(h);
    h->callees_first = find_callees_first(h);
}

void hb_calls_close(hb *h)
{
    sync_index_close(&h->names);
    free(h->code);
    for (uint32_t f = 0; h->funcs && f < h->program->funcs.len; f++) {
        hb_afters_free(&h->funcs[f]);
        free(h->funcs[f].calls);
        free(h->funcs[f].access_of);
        free(h->funcs[f].in_child);
        vec_free(&h->funcs[f].returns);
        vec_free(&h->funcs[f].waits);
    }
    free(h->funcs);
    free(h->syncs);
    free(h->instances);
    free(h->call_insn);
    free(h->edges);
    free(h->spawns);
    free(h->out_first);
    free(h->runs_first);
    free(h->runs);
    free(h->in_first);
    free(h->in_edge);
    free(h->callees_first);
}

uint32_t hb_callees(const hb *h, uint32_t instance, uint32_t call, uint32_t *count)
{
    uint32_t low = h->out_first[instance], high = h->out_first[instance + 1], end = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->edges[middle].call < call)
            low = middle + 1;
        else
            high = middle;
    }
    enum { FEW = 4 };
    for (*count = 0; *count < FEW && low + *count < end && h->edges[low + *count].call == call;)
        ++*count;
    if (*count < FEW) return low;
    for (high = low + FEW; high < end;) { /* where the next call begins: those through a pointer may be to very many */
        uint32_t middle = high + (end - high) / 2;
        if (h->edges[middle].call == call)
            high = middle + 1;
        else
            end = middle;
    }
    *count = high - low;
    return low;
}

const hb_call *hb_call_at(const hb *h, uint32_t func, uint32_t insn)
{
    const hb_func *f = &h->funcs[func];
    uint32_t low = 0, high = f->call_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (f->calls[middle].insn < insn)
            low = middle + 1;
        else
            high = middle;
    }
    return low < f->call_count && f->calls[low].insn == insn ? &f->calls[low] : NULL;
}

const sync_entry *hb_call_sync(const hb *h, uint32_t instance, const hb_call *call)
{
    if (call->sync || h->program->calls.data[call->call].func != PTA_NO_FUNC) return call->sync;
    uint32_t count, first = hb_callees(h, instance, call->call, &count);
    if (count != 1) return NULL;
    return h->syncs[h->instances[h->edges[first].callee].func];
}

/* The block of a machine instruction: blocks lie in the order of their instructions. */
const hb_func *hb_returns(const hb *h, uint32_t func)
{
    hb_func *own = &h->funcs[func];
    const lift_func *f = hb_code(h, func);
    for (ir_value v = 1; f && !own->has_returns && v < f->ir->insn_count; v++)
        if (f->ir->insns[v].op == IR_RET || f->ir->insns[v].op == IR_TAIL) vec_push(&own->returns, v);
    own->has_returns = true;
    return own;
}

uint32_t hb_block_of(const lift_func *f, uint32_t insn)
{
    uint32_t low = 0, high = f->block_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (f->blocks[middle].first_insn <= insn)
            low = middle;
        else
            high = middle;
    }
    while (low > 0 && !f->blocks[low].insn_count)
        low--;
    return low;
}

void hb_points_to(const hb *h, uint32_t instance, pta_operand what, pta_places *out)
{
    uint32_t kept = 0;
    pta_points_to_in(h->p, instance, what, PTA_SAME, out);
    for (uint32_t i = 0; i < out->len; i++) {
        const pta_place *place = &out->data[i];
        const pta_site *site = &h->program->sites.data[place->site];
        bool bounded = place->exact && site->size && !site->open && site->kind != PTA_FUNCTION;
        if (!bounded || (place->offset >= 0 && (uint64_t)place->offset < site->size)) out->data[kept++] = *place;
    }
    out->len = kept;
}

uint32_t hb_first_call(const hb_func *own, uint32_t from)
{
    uint32_t low = 0, high = own->call_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (own->calls[middle].insn < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
