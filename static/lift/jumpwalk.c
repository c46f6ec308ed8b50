/* Where an indirect jump takes its target from.
 *
 * The jump's operand is followed backwards, along every path, until it has the form of a table access,
 *
 *     target = plus + entry[table + index * scale]        (plus is 0 for tables of absolute addresses)
 *
 * with constants for plus and table. A base that is not constant on the path itself (a register that was loaded before
 * a loop, a spilled one) is constant when all its definitions that reach the point are the same constant. From there on
 * the index is followed, until the conditions passed on the way bound it. When a path has none (compilers drop the
 * comparison when they know that it holds), the table is `weak`: as large as the form of the index allows (a byte, a
 * mask); jumptable.c finds its end. */
#include "static/lift/jumptable.h"

enum {
    MAX_STATES = 400,      /* of one jump: blocks with different questions */
    MAX_WEAK_STATES = 40,  /* when the form of the index gives a limit: a comparison would be near */
    MAX_OPEN_STATES = 12,  /* before a word at a register turns out to be in a table */
    MAX_TABLES = 16,       /* of one jump */
    ENTERED = 64,          /* first size of the table of states at the end of blocks */
    SKIPS_PER_STEP = 16,   /* instructions passed over are cheap, ... */
    WAYS_PER_STEP = 4,     /* ... and so are ways into a block */
    NODES_PER_JUMP = 1500, /* the pool is emptied when it has no room for that many */
    WRITES_KNOWN = 1u << 31
};

#define CONSTANT_AT_END ((uint64_t)1 << 63)

jump_memory *jump_memory_open(void)
{
    jump_memory *m = base_alloc_zero(1, sizeof *m);
    m->constant_size = 256;
    m->constants = base_alloc_zero(m->constant_size, sizeof *m->constants);
    slice_pool_reset(&m->pool);
    return m;
}

void jump_memory_close(jump_memory *m)
{
    depth_reset(&m->depth);
    vec_free(&m->frame.taken);
    vec_free(&m->writes);
    vec_free(&m->stack);
    vec_free(&m->visited);
    vec_free(&m->entered);
    vec_free(&m->entered_hash);
    vec_free(&m->keys);
    vec_free(&m->tables);
    vec_free(&m->forms);
    free(m->constants);
    free(m);
}

static void empty_pool(jump_memory *m)
{
    slice_pool_reset(&m->pool);
    m->generation++;
    m->constant_used = 0;
}

void jump_memory_allow(jump_memory *m, uint64_t steps, bool more)
{
    m->steps = more ? m->steps + steps : steps;
}

uint64_t jump_memory_left(const jump_memory *m)
{
    return m->steps;
}

void jump_memory_reset(jump_memory *m, const lift_func *view)
{
    m->view = view;
    m->frame.read = false;
    depth_reset(&m->depth);
    m->writes.len = 0;
    vec_reserve(&m->writes, view->insn_count);
    m->writes.len = view->insn_count;
    memset(m->writes.data, 0, view->insn_count * sizeof(uint32_t));
    empty_pool(m);
}

/* --- constants kept ---------------------------------------------------------------------------------------------- */

static constant_slot *constant_at(jump_memory *m, uint64_t key)
{
    uint32_t h = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (m->constant_size - 1);
    while (m->constants[h].generation == m->generation && m->constants[h].key != key)
        h = (h + 1) & (m->constant_size - 1);
    return &m->constants[h];
}

static void keep_constant(jump_memory *m, uint64_t key, bool found, uint64_t value)
{
    if (m->constant_used * 2 >= m->constant_size) {
        constant_slot *old = m->constants;
        uint32_t old_size = m->constant_size;
        m->constant_size *= 2;
        m->constants = base_alloc_zero(m->constant_size, sizeof *m->constants);
        for (uint32_t i = 0; i < old_size; i++)
            if (old[i].generation == m->generation) *constant_at(m, old[i].key) = old[i];
        free(old);
    }
    constant_slot *slot = constant_at(m, key);
    m->constant_used += slot->generation != m->generation;
    *slot = (constant_slot){key, value, m->generation, found};
}

/* --- walking back ------------------------------------------------------------------------------------------------ */

static slice_context context(const flow_space *space, jump_memory *m)
{
    return (slice_context){.img = space->img, .view = m->view, .pool = &m->pool, .frame = &m->frame};
}

/* What an instruction writes, computed once for each graph: most are not decoded again. */
static uint32_t insn_writes(const flow_space *space, jump_memory *m, uint32_t insn)
{
    uint32_t *writes = &m->writes.data[insn];
    if (!*writes) {
        *writes = slice_writes(space->img, &m->view->insns[insn]) | WRITES_KNOWN;
        jump_spend(m, 1);
    }
    return *writes;
}

/* Registers, memory and flags that the state is about. */
static uint32_t cares(const jump_memory *m, const slice_state *state)
{
    const slice_node *nodes = m->pool.nodes;
    uint32_t what = nodes[state->x].regs | (nodes[state->x].memory ? SLICE_STORES : 0);
    for (uint32_t i = 0; i < state->fact_count; i++) {
        const slice_node *a = &nodes[state->facts[i].a], *b = &nodes[state->facts[i].b];
        what |= a->regs | b->regs | (a->memory || b->memory ? SLICE_STORES : 0);
    }
    return what | (state->pending_count ? SLICE_FLAGS : 0);
}

/* Goes back in the block to the next instruction that touches what the state is about. True: there is one. */
static bool skip_back(const flow_space *space, jump_memory *m, walk *w)
{
    const lift_block *block = &m->view->blocks[w->block];
    uint32_t what = cares(m, &w->state), from = w->insn;
    while (w->insn && !(insn_writes(space, m, block->first_insn + w->insn - 1) & what))
        w->insn--;
    jump_spend(m, (from - w->insn) / SKIPS_PER_STEP);
    return w->insn;
}

/* Over one instruction; pushes the second way of a conditional move. True: the state has changed. */
static bool step_back(const flow_space *space, jump_memory *m, walk *w)
{
    slice_context c = context(space, m);
    const lift_insn *insn = &m->view->insns[m->view->blocks[w->block].first_insn + --w->insn];
    jump_spend(m, 1);
    if (insn->flow == FLOW_JUMP) return false;
    slice_state other;
    int ways = slice_back(&c, insn, &w->state, &other);
    if (ways == 2) {
        walk second = *w;
        second.state = other;
        vec_push(&m->stack, second);
    }
    return ways;
}

/* The state at the end of the block that edge e comes from. */
static walk walk_pred(const jump_memory *m, const walk *w, uint32_t e)
{
    const lift_edge *edge = &m->view->edges[e];
    const lift_block *from = &m->view->blocks[edge->from];
    walk next = *w;
    next.block = edge->from;
    next.insn = from->insn_count;
    if (from->end_kind == END_BRANCH && from->insn_count)
        slice_assume(&next.state,
                     slice_branch(&m->view->insns[from->first_insn + from->insn_count - 1], edge->kind == EDGE_TAKEN));
    return next;
}

/* --- constants that all definitions agree on --------------------------------------------------------------------- */

/* The question has been asked before: takes its answer into account. */
static bool is_kept(jump_memory *m, uint64_t key, bool *found, uint64_t *value, bool *good)
{
    const constant_slot *kept = constant_at(m, key);
    if (kept->generation != m->generation) return false;
    if (!kept->found && kept->value) return true; /* by this search: a cycle adds no definition */
    *good = kept->found && (!*found || *value == kept->value);
    *value = kept->value;
    *found = true;
    return true;
}

/* x at the beginning of block b, when it is one constant on all ways there. */
static bool constant_of(const flow_space *space, jump_memory *m, uint32_t b, slice_expr x, uint64_t *value)
{
    uint32_t base = m->stack.len;
    bool found = false, good = true;
    walk w = {.block = b, .state = {.x = x}};
    vec_clear(&m->keys);
    vec_push(&m->stack, w);
    while (good && m->stack.len > base) {
        w = m->stack.data[--m->stack.len];
        if (w.insn && w.insn == m->view->blocks[w.block].insn_count) { /* many ways may lead to the end of a block */
            uint64_t key = CONSTANT_AT_END | (uint64_t)w.block << 16 | w.state.x;
            if (is_kept(m, key, &found, value, &good)) continue;
            keep_constant(m, key, false, 1);
            vec_push(&m->keys, key);
        }
        while (m->pool.nodes[w.state.x].op != X_CONST && w.state.x && skip_back(space, m, &w)) {
            step_back(space, m, &w);
            w.state.fact_count = w.state.pending_count = 0;
        }
        const slice_node *n = &m->pool.nodes[w.state.x];
        const lift_block *block = &m->view->blocks[w.block];
        if (n->op == X_CONST) {
            good = !found || *value == n->k;
            *value = n->k;
            found = true;
            continue;
        }
        uint64_t key = (uint64_t)w.block << 16 | w.state.x;
        if (is_kept(m, key, &found, value, &good)) continue;
        good = !n->any && w.block != 0 && block->pred_count && m->steps && m->keys.len < SLICE_NODES * 32;
        if (!good) break;
        keep_constant(m, key, false, 1);
        vec_push(&m->keys, key);
        jump_spend(m, 1 + block->pred_count / WAYS_PER_STEP);
        for (uint32_t p = 0; p < block->pred_count; p++) {
            walk next = walk_pred(m, &w, m->view->preds[block->first_pred + p]);
            next.state.pending_count = 0;
            vec_push(&m->stack, next);
        }
    }
    m->stack.len = base;
    good &= found;
    /* What holds where the search began holds everywhere it went. */
    for (uint32_t i = 0; i < m->keys.len; i++)
        keep_constant(m, m->keys.data[i], good, good ? *value : 0);
    return good;
}

/* --- the form of a table access ---------------------------------------------------------------------------------- */

/* An entry of memory, sign- or zero-extended. */
static bool is_entry(const slice_pool *pool, slice_expr x, slice_expr *addr, table_form *form)
{
    const slice_node *n = &pool->nodes[x];
    form->is_signed = n->op == X_SX;
    uint32_t extended = n->op == X_SX ? n->bits : 64;
    if (n->op == X_SX) n = &pool->nodes[n->a];
    if (n->op != X_MEM || n->bits > extended) return false;
    if (n->bits < extended && form->is_signed) form->is_signed = false;
    form->bits = n->bits;
    *addr = n->a;
    return true;
}

typedef enum { FORM_OTHER, FORM_PARTIAL, FORM_CONST, FORM_TABLE } form_kind;

/* What x is; FORM_PARTIAL: a table if *leaf were constant. */
static form_kind match(const image *img, slice_pool *pool, slice_expr x, table_form *form, slice_expr *index,
                       slice_expr *leaf)
{
    slice_expr addr;
    const slice_node *n = &pool->nodes[x];
    if (n->op == X_CONST) return FORM_CONST;
    *form = (table_form){0};
    slice_expr entry = slice_split(pool, x, &form->plus);
    n = &pool->nodes[entry];
    if (!is_entry(pool, entry, &addr, form)) {
        if (n->op != X_ADD) return FORM_OTHER;
        bool first = is_entry(pool, n->a, &addr, form);
        if (!first && !is_entry(pool, n->b, &addr, form)) return FORM_OTHER;
        *leaf = first ? n->b : n->a;
        return FORM_PARTIAL;
    }
    slice_expr term = slice_split(pool, addr, &form->table);
    n = &pool->nodes[term];
    if (n->op == X_CONST) { /* one entry of it */
        *form = (table_form){n->k, form->plus, form->bits / 8, 1, form->bits, form->is_signed};
        *index = slice_const(pool, 0);
        return FORM_TABLE;
    }
    bool based = image_section_at(img, form->table) != NULL;
    if (n->op == X_ADD) {
        const slice_node *a = &pool->nodes[n->a], *b = &pool->nodes[n->b];
        if (based || (a->op == X_MUL && b->op == X_MUL)) return FORM_OTHER;
        *leaf = a->op == X_MUL || a->op == X_AND || (b->op == X_REG && a->op != X_REG) ? n->b : n->a;
        return FORM_PARTIAL;
    }
    if (!based) return FORM_OTHER;
    form->scale = n->op == X_MUL ? n->k : 1;
    form->step = 1;
    *index = n->op == X_MUL ? n->a : term;
    const slice_node *i = &pool->nodes[*index];
    if (i->op == X_AND && i->k) form->step = i->k & -i->k;
    uint64_t stride = form->scale * form->step;
    return stride >= form->bits / 8 && stride <= 256 && form->scale <= 256 ? FORM_TABLE : FORM_OTHER;
}

/* At the beginning of a block: replaces what all definitions agree on. */
static void find_bases(const flow_space *space, jump_memory *m, walk *w)
{
    for (uint32_t tries = 0; tries < 3; tries++) {
        table_form form;
        slice_expr index, leaf;
        uint64_t value = 0;
        if (match(space->img, &m->pool, w->state.x, &form, &index, &leaf) != FORM_PARTIAL) return;
        if (m->pool.nodes[leaf].any || !constant_of(space, m, w->block, leaf, &value)) return;
        w->state.x = slice_replace(&m->pool, w->state.x, leaf, slice_const(&m->pool, value));
    }
}

/* --- the walk ---------------------------------------------------------------------------------------------------- */

static bool same_form(const table_form *a, const table_form *b)
{
    return a->table == b->table && a->plus == b->plus && a->scale == b->scale && a->step == b->step &&
           a->bits == b->bits && a->is_signed == b->is_signed;
}

static bool add_table(jump_memory *m, table_found found)
{
    for (uint32_t i = 0; i < m->tables.len; i++) {
        table_found *t = &m->tables.data[i];
        if (!same_form(&t->form, &found.form)) continue;
        if (found.low < t->low) t->low = found.low;
        if (found.high > t->high) t->high = found.high;
        t->weak |= found.weak;
        return true;
    }
    if (m->tables.len == MAX_TABLES) return false;
    vec_push(&m->tables, found);
    return true;
}

/* What the forms of the index on the way allow. */
static uint64_t most_index(const walk *w)
{
    uint64_t most = (MAX_ENTRIES - 1) * w->form.step;
    return w->limit < most ? w->limit : most;
}

/* No condition will come any more: a table of any size, up to what the form of the index allows. */
static bool end_of_path(jump_memory *m, const walk *w)
{
    return w->indexed && add_table(m, (table_found){.form = w->form, .high = most_index(w), .weak = true});
}

/* The table is known to have any size already: the path adds nothing to it. */
static bool is_covered(const jump_memory *m, const walk *w)
{
    for (uint32_t i = 0; w->indexed && i < m->tables.len; i++) {
        const table_found *t = &m->tables.data[i];
        if (t->weak && !t->low && t->high >= most_index(w) && same_form(&t->form, &w->form)) return true;
    }
    return false;
}

typedef enum { PATH_ON, PATH_DONE, PATH_FAILED } path_verdict;

/* Has the path an answer here? */
static path_verdict look(const flow_space *space, jump_memory *m, walk *w, jump_result *result)
{
    slice_expr index = 0, leaf;
    if (w->state.impossible) return PATH_DONE;
    if (!w->indexed) {
        switch (match(space->img, &m->pool, w->state.x, &w->form, &index, &leaf)) {
        case FORM_CONST: vec_push(&result->targets, m->pool.nodes[w->state.x].k); return PATH_DONE;
        case FORM_TABLE:
            vec_push(&m->forms, w->form);
            w->indexed = true;
            w->limit = UINT64_MAX;
            w->state.x = index;
            w->state.is_table = false;
            break;
        default: return w->state.x ? PATH_ON : PATH_FAILED;
        }
    }
    const slice_node *n = &m->pool.nodes[w->state.x];
    uint64_t low, high, limit = slice_limit(&m->pool, w->state.x);
    if (limit < w->limit) w->limit = limit;
    if (n->op == X_CONST) low = high = n->k;
    if (n->op == X_CONST || slice_bound(&m->pool, &w->state, w->state.x, &low, &high)) {
        if ((high - low) / w->form.step >= MAX_ENTRIES) return PATH_ON;
        return add_table(m, (table_found){.form = w->form, .low = low, .high = high}) ? PATH_DONE : PATH_FAILED;
    }
    if (n->any) return end_of_path(m, w) ? PATH_DONE : PATH_FAILED;
    return PATH_ON;
}

/* Where ways join, what else was learnt on them does not matter any more, and would only tell them apart. */
static void forget_facts(const jump_memory *m, walk *w)
{
    const slice_node *nodes = m->pool.nodes, *x = &nodes[w->state.x];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->state.fact_count; i++) {
        const slice_node *a = &nodes[w->state.facts[i].a], *b = &nodes[w->state.facts[i].b];
        bool related = ((a->regs | b->regs) & x->regs) && (a->memory || b->memory) == x->memory;
        if (w->indexed && related) w->state.facts[kept++] = w->state.facts[i];
    }
    w->state.fact_count = (uint8_t)kept;
}

static bool same_fact(const slice_fact *f, const slice_fact *g)
{
    return f->a == g->a && f->b == g->b && f->cc == g->cc && f->bits == g->bits && f->test == g->test;
}

/* This question has been asked here before, under no more conditions. */
static bool is_visited(const jump_memory *m, const walk *w)
{
    for (uint32_t i = 0; i < m->visited.len; i++) {
        const walk *v = &m->visited.data[i];
        if (v->block != w->block || v->state.x != w->state.x || v->indexed != w->indexed ||
            (v->indexed && !same_form(&v->form, &w->form)) || v->state.pending_count > w->state.pending_count)
            continue;
        uint32_t same = 0;
        for (uint32_t a = 0; a < v->state.fact_count; a++)
            for (uint32_t b = 0; b < w->state.fact_count; b++) {
                const slice_fact *f = &v->state.facts[a], *g = &w->state.facts[b];
                if (!same_fact(f, g)) continue;
                same++;
                break;
            }
        if (same == v->state.fact_count &&
            !memcmp(v->state.pending, w->state.pending, v->state.pending_count))
            return true;
    }
    return false;
}

/* --- states at the end of blocks: a switch is come to from each of its cases ------------------------------------- */

static uint32_t walk_hash(const walk *w)
{
    uint64_t h = (uint64_t)w->block << 32 | (uint32_t)w->state.x << 8 | w->state.pending_count;
    for (uint32_t i = 0; i < w->state.fact_count; i++) {
        const slice_fact *f = &w->state.facts[i];
        h = h * 0x9e3779b97f4a7c15u + ((uint64_t)f->a << 32 | (uint64_t)f->b << 16 | f->cc);
    }
    return (uint32_t)(h * 0x9e3779b97f4a7c15u >> 32);
}

static bool same_walk(const walk *v, const walk *w)
{
    if (v->block != w->block || v->indexed != w->indexed || v->state.x != w->state.x ||
        v->state.is_table != w->state.is_table || v->state.impossible != w->state.impossible ||
        v->state.fact_count != w->state.fact_count || v->state.pending_count != w->state.pending_count ||
        memcmp(v->state.pending, w->state.pending, w->state.pending_count))
        return false;
    if (w->indexed && (!same_form(&v->form, &w->form) || v->limit != w->limit)) return false;
    for (uint32_t i = 0; i < w->state.fact_count; i++)
        if (!same_fact(&v->state.facts[i], &w->state.facts[i])) return false;
    return true;
}

static uint32_t *entered_slot(jump_memory *m, const walk *w)
{
    uint32_t h = walk_hash(w) & (m->entered_hash.len - 1);
    while (m->entered_hash.data[h] && !same_walk(&m->entered.data[m->entered_hash.data[h] - 1], w))
        h = (h + 1) & (m->entered_hash.len - 1);
    return &m->entered_hash.data[h];
}

/* Makes the table of that size, with what has been entered in it. */
static void hash_entered(jump_memory *m, uint32_t size)
{
    vec_reserve(&m->entered_hash, size);
    m->entered_hash.len = size;
    memset(m->entered_hash.data, 0, size * sizeof(uint32_t));
    for (uint32_t i = 0; i < m->entered.len; i++)
        *entered_slot(m, &m->entered.data[i]) = i + 1;
}

/* The same question has been asked at the end of this block; if not, it has now. */
static bool was_entered(jump_memory *m, const walk *w)
{
    if (2 * (m->entered.len + 1) > m->entered_hash.len) hash_entered(m, 2 * m->entered_hash.len);
    uint32_t *slot = entered_slot(m, w);
    if (*slot) return true;
    vec_push(&m->entered, *w);
    *slot = m->entered.len;
    return false;
}

/* How far to go: a word at a register that is no table access near the jump is a pointer in some object. */
static uint32_t most_states(const jump_memory *m, const walk *w)
{
    if (w->indexed) return w->limit / w->form.step < MAX_ENTRIES ? MAX_WEAK_STATES : MAX_STATES;
    const slice_node *n = &m->pool.nodes[w->state.x];
    uint64_t k;
    if (n->op != X_MEM) return MAX_STATES;
    n = &m->pool.nodes[slice_split(&m->pool, n->a, &k)];
    return n->op == X_REG && n->k != IR_RSP ? MAX_OPEN_STATES : MAX_STATES;
}

/* Goes back along one path; its forks are pushed. False: it has no answer. */
static bool walk_path(const flow_space *space, jump_memory *m, walk w, jump_result *result)
{
    for (bool changed = true;;) {
        path_verdict verdict = changed ? look(space, m, &w, result) : PATH_ON;
        if (verdict != PATH_ON) return verdict == PATH_DONE;
        if (!m->steps) return false;
        const lift_block *block = &m->view->blocks[w.block];
        if (w.insn && w.insn == block->insn_count && (is_covered(m, &w) || was_entered(m, &w))) return true;
        if (skip_back(space, m, &w)) {
            changed = step_back(space, m, &w);
            continue;
        }
        changed = true;
        if (!w.indexed) {
            slice_expr old = w.state.x;
            find_bases(space, m, &w);
            if (old != w.state.x) continue;
        }
        if (block->pred_count > 1) forget_facts(m, &w);
        jump_spend(m, 1 + m->visited.len / 16);
        if (is_visited(m, &w)) return true;
        if (w.block == 0 || !block->pred_count) {
            if (!end_of_path(m, &w)) return false;
            if (!block->pred_count) return true;
        }
        if (m->visited.len >= most_states(m, &w)) return end_of_path(m, &w);
        vec_push(&m->visited, w);
        jump_spend(m, block->pred_count / WAYS_PER_STEP);
        for (uint32_t p = 1; p < block->pred_count; p++)
            vec_push(&m->stack, walk_pred(m, &w, m->view->preds[block->first_pred + p]));
        w = walk_pred(m, &w, m->view->preds[block->first_pred]);
    }
}

bool jump_walk(const flow_space *space, jump_memory *m, uint32_t block, jump_result *result)
{
    const lift_block *at = &m->view->blocks[block];
    if (m->pool.count + NODES_PER_JUMP > SLICE_NODES) empty_pool(m);
    vec_clear(&m->stack);
    vec_clear(&m->visited);
    vec_clear(&m->entered);
    hash_entered(m, ENTERED);
    vec_clear(&m->tables);
    vec_clear(&m->forms);
    slice_context c = context(space, m);
    walk first = {.block = block, .insn = at->insn_count - 1};
    first.state.x = slice_operand(&c, &m->view->insns[at->first_insn + at->insn_count - 1]);
    first.state.is_table = true;
    vec_push(&m->stack, first);
    while (m->stack.len) {
        walk next = m->stack.data[--m->stack.len];
        if (!walk_path(space, m, next, result)) return false;
    }
    return true;
}
