/* Objects that nobody else knows: what a function does with what it has just allocated, before it stores the address or hands
 * it on. Another thread that accesses the object has got its address from a word of memory; if the accesses of that word are
 * ordered, so is everything that came before.
 *
 * And objects that nobody else knows any more: a function that holds a lock loads an address from a word and overwrites the word
 * before it lets go (it takes the first one out of a queue). Until it hands the object on, others who have taken theirs in the same
 * way under the same lock, or who reach theirs while they hold it, have another one (ownership as in linear types; O'Hearn, Resources,
 * concurrency and local reasoning, 2007). An access by an address that was remembered from before is neither of these. */
#include "static/hb/private.h"
#include "static/hb/value.h"

/* Calls that do not hand on the addresses they are given. */
static bool keeps_quiet(const hb *h, const hb_call *call)
{
    uint32_t func = h->program->calls.data[call->call].func;
    if (func == PTA_NO_FUNC || h->program->funcs.data[func].lift) return false;
    const char *name = h->program->funcs.data[func].name;
    if (call->touch) return true;
    static const char *const quiet[] = {"pthread_mutex_init", "pthread_cond_init", "pthread_rwlock_init", "pthread_spin_init", "sem_init",
                                        "pthread_barrier_init", "mtx_init", "cnd_init", "free", "abort", "printf", "omp_init_lock"};
    for (unsigned i = 0; i < sizeof quiet / sizeof *quiet; i++)
        if (!strcmp(name, quiet[i])) return true;
    return false;
}

static bool is_about(const ir_func *ir, ir_value v, ir_value leaf)
{
    if (!v) return false;
    value_sum s = value_of(ir, v);
    for (uint32_t i = 0; i < s.count; i++)
        if (s.terms[i].leaf == leaf) return true;
    /* a choice between it and something else */
    const ir_insn *insn = &ir->insns[value_plain(ir, v, 8)];
    for (uint32_t i = 0; insn->op == IR_PHI && i < insn->b; i++)
        if (value_plain(ir, ir->args[insn->a + i], 8) == leaf) return true;
    return false;
}

/* Whether an instruction can be reached from another without passing a third. */
static bool reaches(const lift_func *f, uint32_t from, uint32_t to, uint32_t cut)
{
    uint64_t *seen = base_alloc_zero(f->block_count / 64 + 1, sizeof *seen);
    hb_numbers work = {0};
    bool found = false;
    uint32_t at = from + 1, block = hb_block_of(f, from);
    for (;;) {
        uint32_t end = f->blocks[block].first_insn + f->blocks[block].insn_count;
        bool has_cut = cut >= at && cut < end, has_to = to >= at && to < end;
        if (has_to && (!has_cut || to <= cut)) {
            found = true;
            break;
        }
        for (uint32_t e = f->blocks[block].first_succ; !has_cut && e < f->blocks[block].first_succ + f->blocks[block].succ_count; e++) {
            if (hb_bit(seen, f->edges[e].to)) continue;
            hb_set(seen, f->edges[e].to);
            vec_push(&work, f->edges[e].to);
        }
        if (!work.len) break;
        block = work.data[--work.len];
        at = f->blocks[block].first_insn;
    }
    vec_free(&work);
    free(seen);
    return found;
}

static bool find_out(const hb *h, uint32_t func, const lift_func *f, ir_value leaf, uint32_t made, uint32_t insn)
{
    for (ir_value v = 1; v < f->ir->insn_count; v++) {
        const ir_insn *store = &f->ir->insns[v];
        if (store->op != IR_STORE || !store->b || f->ir->insns[store->a].flags & IR_PROMOTED || store->width != 8) continue;
        if (is_about(f->ir, store->b, leaf) && !is_about(f->ir, f->ir->insns[store->a].a, leaf) && reaches(f, store->insn, insn, made)) return true;
    }
    for (uint32_t c = 0; c < h->funcs[func].call_count; c++) {
        const hb_call *call = &h->funcs[func].calls[c];
        if (!call->value || call->insn == made || keeps_quiet(h, call)) continue;
        bool given = false;
        uint16_t needs = h->program->calls.data[call->call].func == PTA_NO_FUNC ? 63 : h->program->funcs.data[h->program->calls.data[call->call].func].needs;
        for (unsigned a = 0; a < 6 && !given; a++)
            given = needs >> a & 1 && is_about(f->ir, f->ir->args[f->ir->insns[call->value].a + IR_CALL_RDI + a], leaf);
        if (given && reaches(f, call->insn, insn, made)) return true;
    }
    return false;
}

typedef struct {
    uint32_t func, made, insn;
    ir_value leaf;
    bool out;
} asked_out;

struct hb_outs {
    VEC(asked_out) asked;
    map64 numbers;
};

void hb_outs_close(hb *h)
{
    if (!h->outs) return;
    vec_free(&h->outs->asked);
    map_free(&h->outs->numbers);
    free(h->outs);
}

/* Whether the address has got out of the function's hands before an instruction: asked once, whoever runs it, of whatever object. */
static bool is_out(hb *h, uint32_t func, const lift_func *f, ir_value leaf, uint32_t made, uint32_t insn)
{
    if (!h->outs) h->outs = base_alloc_zero(1, sizeof *h->outs);
    struct hb_outs *all = h->outs;
    for (uint64_t hash = map_hash(map_hash((uint64_t)func << 32 | insn) + ((uint64_t)made << 32 | leaf));; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&all->numbers, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = all->asked.len;
            vec_push(&all->asked, ((asked_out){func, made, insn, leaf, find_out(h, func, f, leaf, made, insn)}));
        }
        const asked_out *a = &all->asked.data[*at];
        if (a->func == func && a->made == made && a->insn == insn && a->leaf == leaf) return a->out;
    }
}

/* The pointer that a loop begins with. */
static ir_value root_of(const ir_func *ir, ir_value leaf)
{
    const ir_insn *phi = &ir->insns[leaf];
    ir_value root = 0;
    if (phi->op != IR_PHI) return leaf;
    for (uint32_t i = 0; i < phi->b; i++) {
        value_sum s = value_of(ir, ir->args[phi->a + i]);
        if (!s.known || s.count != 1 || s.terms[0].factor != 1) return leaf;
        if (s.terms[0].leaf == leaf) continue;
        if (root && root != s.terms[0].leaf) return leaf;
        root = s.terms[0].leaf;
    }
    return root ? root : leaf;
}

/* Whether the result of another call may be the object, too. */
static bool returns_it(const hb *h, const hb_touch *t, uint32_t insn, const hb_place *p)
{
    const hb_call *call = hb_call_at(h, t->func, insn);
    uint32_t ret = call ? h->program->calls.data[call->call].ret : PTA_NO_VAR;
    pta_places places = {0};
    if (ret == PTA_NO_VAR) return call == NULL;
    hb_points_to(h, t->instance, (pta_operand){ret, 0}, &places);
    bool found = false;
    for (uint32_t i = 0; i < places.len && !found; i++)
        found = places.data[i].site == p->place.site && places.data[i].context == p->place.context;
    vec_free(&places);
    return found;
}

/* The call of this function that has allocated the object which a pointer is to, if it is to this one. The pointer may be a choice of the
 * results of several allocators. */
static bool made_by(const hb *h, const hb_touch *t, const hb_place *p, const ir_func *ir, ir_value leaf, ir_value *made)
{
    enum { ALLOCATORS = 4 };
    const ir_insn *phi = &ir->insns[leaf];
    uint32_t calls[PTA_HEAP_CALLS], heap = pta_heap_calls(h->p, &p->place, calls), count = phi->op == IR_PHI ? phi->b : 1;
    *made = 0;
    if (count > ALLOCATORS) return false;
    for (uint32_t k = 0; k < count; k++) {
        ir_value root = phi->op == IR_PHI ? value_plain(ir, ir->args[phi->a + k], 8) : leaf;
        const ir_insn *result = &ir->insns[root];
        if (result->op == IR_CONST && !result->imm) continue;
        if (result->op != IR_RESULT || result->var != IR_RAX) return false;
        uint32_t at = ir->insns[result->a].insn;
        bool own = false;
        for (uint32_t i = 0; i < heap && !own; i++)
            own = h->program->calls.data[calls[i]].caller == t->func && h->call_insn[calls[i]] == at;
        if (own && !*made)
            *made = root;
        else if (own || returns_it(h, t, at, p))
            return false;
    }
    return *made;
}

bool hb_fresh(hb *h, const hb_touch *t, const hb_place *p)
{
    enum { FEW = 4 };
    const lift_func *f = hb_code(h, t->func);
    if (t->flags & HB_LIBRARY || !t->ir || f->ir->insns[t->ir].op != IR_ACCESS) return false;
    if (h->program->sites.data[p->place.site].kind != PTA_HEAP || t->place_count > FEW) return false;
    value_sum sum = value_address(f->ir, &f->ir->insns[t->ir]);
    if (!sum.known || sum.count == 0) return false;
    for (uint32_t k = 0; k < sum.count; k++) {
        ir_value leaf = root_of(f->ir, sum.terms[k].leaf), made;
        if (sum.terms[k].factor != 1 || !made_by(h, t, p, f->ir, leaf, &made)) continue;
        if (t->place_count != 1 && leaf == made) continue;
        uint32_t call = f->ir->insns[f->ir->insns[made].a].insn;
        return !is_out(h, t->func, f, leaf, call, t->insn) && (leaf == made || !is_out(h, t->func, f, made, call, t->insn));
    }
    return false;
}

/* The words that hold each object, in their order: asked for object by object, going through all words each time would be the most of the
 * work on a large program. */
static void index_holders(hb *h)
{
    h->has_holders = true;
    for (uint32_t w = h->memory.len; w-- > 0;) {
        const hb_word *word = &h->memory.data[w];
        uint32_t holder = hb_object(h, word->word.site, word->word.context);
        uint8_t kind = h->program->sites.data[word->word.site].kind;
        if (kind == PTA_LIBRARY || kind == PTA_EXTERNAL || hb_stays(h, holder)) continue;
        for (uint32_t i = word->count; i-- > 0;) {
            const pta_place *place = &h->held.data[word->first + i];
            const pta_site *site = &h->program->sites.data[place->site];
            if (site->kind == PTA_FUNCTION) continue;
            uint32_t object = hb_object(h, site->memory, place->context), *first = map_at(&h->holders_of, object);
            if (object == holder || (*first != MAP_NONE && h->holders.data[*first].word == w)) continue;
            vec_push(&h->holders, (hb_held_by){w, *first});
            *first = h->holders.len - 1;
        }
    }
}

bool hb_holder(hb *h, uint32_t object, uint32_t *from, hb_extent *out)
{
    if (!h->has_holders) index_holders(h);
    uint32_t at = *from ? h->holders.data[*from - 1].next : map_get(&h->holders_of, object);
    if (at == MAP_NONE) return false;
    *out = hb_extent_of(h, &h->memory.data[h->holders.data[at].word].word, 8, false);
    *from = at + 1;
    return true;
}

bool hb_held_by_variable(hb *h, uint32_t object)
{
    enum { UNKNOWN, NOT, HELD };
    while (h->held_by_variable.len <= object)
        vec_push(&h->held_by_variable, UNKNOWN);
    if (h->held_by_variable.data[object] != UNKNOWN) return h->held_by_variable.data[object] == HELD;
    if (!h->has_holders) index_holders(h);
    bool held = false;
    for (uint32_t at = map_get(&h->holders_of, object); at != MAP_NONE && !held; at = h->holders.data[at].next)
        held = h->program->sites.data[h->memory.data[h->holders.data[at].word].word.site].kind == PTA_STATIC;
    h->held_by_variable.data[object] = held ? HELD : NOT;
    return held;
}

/* --- taken out of a container ---------------------------------------------------------------------------------------------------- */

/* A lock that is certainly held there, alone. */
static uint32_t sole_lock(hb *h, hb_point at)
{
    uint32_t set = hb_locks_at(h, at);
    for (uint32_t i = 0; set != UINT32_MAX && i < hb_set_size(h, set); i++) {
        uint32_t lock = hb_set_lock(h, set, i);
        if (lock != HB_NONE && !hb_lock_is_value(h, lock) && !hb_lock_shared(h, lock)) return lock;
    }
    return HB_NONE;
}

bool hb_holds_lock(hb *h, hb_point at, uint32_t lock)
{
    uint32_t set = hb_locks_at(h, at);
    for (uint32_t i = 0; set != UINT32_MAX && i < hb_set_size(h, set); i++)
        if (hb_set_lock(h, set, i) == lock) return true;
    return false;
}

/* A store that puts something else where `load` has found an address, on all ways on which it has found one, before anything is
 * called. */
static bool is_removed(hb *h, uint32_t instance, const ir_func *ir, ir_value load, uint32_t lock)
{
    const lift_func *f = ir->func;
    uint32_t func = h->instances[instance].func, from = hb_block_of(f, ir->insns[load].insn);
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *store = &ir->insns[v];
        if (store->op != IR_STORE || store->width != 8 || !store->b || value_plain(ir, store->b, 8) == load) continue;
        if (!value_same_access(ir, &ir->insns[ir->insns[load].a], &ir->insns[store->a])) continue;
        uint32_t to = hb_block_of(f, store->insn);
        if (to == from ? store->insn < ir->insns[load].insn : !ir_dominates(ir, from, to)) continue;
        if (to != from) { /* where the address was found not to be zero */
            value_condition c;
            const lift_edge *e = f->blocks[to].pred_count == 1 ? &f->edges[f->preds[f->blocks[to].first_pred]] : NULL;
            if (!e || e->from != from || !value_test(ir, from, e->kind == EDGE_TAKEN, &c) || c.a != load || c.b || c.imm || c.code != VALUE_NOT_EQUAL)
                continue;
        }
        bool calls = false;
        for (uint32_t c = 0; c < h->funcs[func].call_count; c++) {
            uint32_t insn = h->funcs[func].calls[c].insn, block = hb_block_of(f, insn);
            calls |= (block == from && insn > ir->insns[load].insn && (to != from || insn < store->insn)) || (block == to && to != from && insn < store->insn);
        }
        if (!calls && hb_holds_lock(h, (hb_point){instance, store->insn}, lock)) return true;
    }
    return false;
}

/* The load whose value a leaf is: here, or in a function that returns it. */
static ir_value taking_load(const hb *h, uint32_t *instance, const ir_func **ir, ir_value leaf)
{
    const ir_insn *insn = &(*ir)->insns[leaf];
    if (insn->op == IR_LOAD) return (*ir)->insns[insn->a].flags & (IR_PROMOTED | IR_WRITE) ? 0 : leaf;
    if (insn->op != IR_RESULT || insn->var != IR_RAX) return 0;
    const hb_call *call = hb_call_at(h, h->instances[*instance].func, (*ir)->insns[insn->a].insn);
    uint32_t count = 0, first = call ? hb_callees(h, *instance, call->call, &count) : 0;
    const lift_func *f = count == 1 && !hb_spawns(h, &h->edges[first]) ? hb_instance_code(h, h->edges[first].callee) : NULL;
    ir_value found = 0;
    for (ir_value r = 1; f && r < f->ir->insn_count; r++) {
        if (f->ir->insns[r].op == IR_TAIL) return 0;
        if (f->ir->insns[r].op != IR_RET) continue;
        ir_value v = value_plain(f->ir, f->ir->args[f->ir->insns[r].a + IR_RET_RAX], 8);
        if (!v || f->ir->insns[v].op != IR_LOAD || (found && found != v)) return 0;
        found = v;
    }
    if (!found) return 0;
    *instance = h->edges[first].callee;
    *ir = f->ir;
    return found;
}

static bool address_of(const hb *h, const hb_touch *t, value_sum *out)
{
    const ir_func *ir = hb_code(h, t->func)->ir;
    const hb_call *call = t->flags & HB_LIBRARY ? hb_call_at(h, t->func, t->insn) : NULL;
    if (t->flags & HB_LIBRARY) {
        sync_range ranges[SYNC_RANGES];
        if (!call || !call->value || !call->touch || hb_sync_touch_ranges(call->touch, ranges) != 1) return false;
        *out = value_of(ir, ir->args[ir->insns[call->value].a + IR_CALL_RDI + ranges[0].arg]);
    } else {
        if (!t->ir || ir->insns[t->ir].op != IR_ACCESS) return false;
        *out = value_address(ir, &ir->insns[t->ir]);
    }
    return out->known;
}

uint32_t hb_taken(hb *h, const hb_touch *t, const hb_place *p)
{
    value_sum sum;
    if (h->program->sites.data[p->place.site].kind != PTA_HEAP || !address_of(h, t, &sum)) return HB_NONE;
    for (uint32_t k = 0; k < sum.count; k++) {
        uint32_t instance = t->instance;
        const lift_func *f = hb_code(h, t->func);
        const ir_func *ir = f->ir;
        ir_value leaf = root_of(ir, sum.terms[k].leaf), load = sum.terms[k].factor == 1 ? taking_load(h, &instance, &ir, leaf) : 0;
        if (!load || !hb_touch_at(h, instance, ir->insns[load].insn)) continue;
        uint32_t lock = sole_lock(h, (hb_point){instance, ir->insns[load].insn});
        uint32_t made = f->ir->insns[f->ir->insns[leaf].op == IR_RESULT ? f->ir->insns[leaf].a : leaf].insn;
        if (lock == HB_NONE || !is_removed(h, instance, ir, load, lock) || is_out(h, t->func, f, leaf, made, t->insn)) continue;
        return lock;
    }
    return HB_NONE;
}

/* What the function has allocated was still its own when it took the lock: nothing but the lock was called since then. Compilers store
 * the address first and fill in the object later, under the lock all the same. */
static bool is_own_since(const hb *h, const hb_touch *t, ir_value leaf)
{
    const lift_func *f = hb_code(h, t->func);
    const hb_func *own = &h->funcs[t->func];
    const hb_call *last = NULL;
    uint32_t block = hb_block_of(f, t->insn);
    for (uint32_t c = 0; c < own->call_count; c++)
        if (own->calls[c].insn < t->insn && hb_block_of(f, own->calls[c].insn) == block && (!last || own->calls[c].insn > last->insn)) last = &own->calls[c];
    const ir_insn *result = &f->ir->insns[leaf];
    if (result->op != IR_RESULT || result->var != IR_RAX || !last || !last->sync || last->sync->kind != SYNC_ACQUIRE || last->sync->when != SYNC_ALWAYS) return false;
    uint32_t made = f->ir->insns[result->a].insn;
    const hb_call *call = hb_call_at(h, t->func, made);
    uint32_t callee = call ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
    static const char *const makers[] = {"malloc", "calloc", "_Znwm"};
    bool fresh = false;
    for (unsigned i = 0; callee != PTA_NO_FUNC && i < sizeof makers / sizeof *makers; i++)
        fresh |= !strcmp(h->program->funcs.data[callee].name, makers[i]);
    return fresh && !find_out(h, t->func, f, leaf, made, last->insn);
}

bool hb_reached_under(hb *h, const hb_touch *t, uint32_t lock)
{
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    value_sum sum;
    const ir_func *ir = hb_code(h, t->func)->ir;
    if (!hb_holds_lock(h, (hb_point){t->instance, t->insn}, lock) || !address_of(h, t, &sum)) return false;
    for (uint32_t k = 0; k < sum.count; k++) {
        const ir_insn *leaf = &ir->insns[root_of(ir, sum.terms[k].leaf)];
        if (is_own_since(h, t, (ir_value)(leaf - ir->insns))) continue;
        bool param = false;
        for (unsigned i = 0; i < 6 && leaf->op == IR_ENTRY; i++)
            param |= leaf->var == registers[i];
        if (!param && (leaf->op != IR_LOAD || !hb_holds_lock(h, (hb_point){t->instance, leaf->insn}, lock))) return false;
    }
    return true;
}
