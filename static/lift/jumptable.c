/* The targets of an indirect jump.
 *
 * The jump's operand is followed backwards, along every path, until it has the form of a table access,
 *
 *     target = plus + entry[table + index * scale]        (plus is 0 for tables of absolute addresses)
 *
 * with constants for plus and table. A base that is not constant on the path itself (a register that was loaded before
 * a loop, a spilled one) is constant when all its definitions that reach the point are the same constant. From there on
 * the index is followed, until the conditions passed on the way bound it. When a path has none (compilers drop the
 * comparison when they know that it holds), the table is `weak`: it ends where the form of the index says (a byte, a
 * mask), where the next object begins that code refers to, or before the first entry that is no address of the function.
 *
 * All paths must have an answer, else the jump is unknown. */
#include "static/lift/slice.h"

enum {
    MAX_STATES = 400,        /* of one jump: blocks with different questions */
    MAX_WEAK_STATES = 40,    /* when the form of the index gives a limit: a comparison would be near */
    MAX_TABLES = 16,         /* of one jump */
    MAX_ENTRIES = 1 << 14,   /* of a table */
    LOOK_AHEAD = 16,         /* entries */
    STEPS_PER_BLOCK = 1000,  /* instructions gone over, for all jumps of a function */
    NODES_PER_JUMP = 1500    /* the pool is emptied when it has no room for that many */
};

typedef struct {
    uint64_t table, plus; /* table: the address of entry 0 */
    uint64_t scale, step; /* entries are at table + index * scale; indices are multiples of step */
    uint8_t bits;         /* of an entry */
    bool is_signed;
} table_form;

typedef struct {
    table_form form;
    uint64_t low, high; /* of the index */
    bool weak;
} table_found;

typedef struct {
    uint32_t block;
    uint32_t insn; /* instructions of the block before this one are still to be gone over */
    bool indexed;  /* the form is known, state.x is the index */
    table_form form;
    uint64_t limit; /* of the index, by the forms it has had on the way */
    slice_state state;
} walk;

typedef struct {
    uint64_t key; /* block << 16 | expression */
    uint64_t value;
    uint32_t generation;
    bool found; /* else: not a constant, or, when value is 1, being searched for */
} constant_slot;

struct jump_memory {
    const lift_func *view;
    slice_pool pool;
    slice_frame frame;
    depth_memory depth;
    VEC(uint32_t) writes; /* per block what it writes, WRITES_KNOWN set when computed */
    VEC(walk) stack;
    VEC(walk) visited; /* states at the beginning of blocks */
    VEC(uint64_t) keys; /* of the constant search at work */
    VEC(table_found) tables;
    VEC(table_form) forms; /* that were met, bounded or not */
    constant_slot *constants;
    uint32_t constant_size, constant_used, generation;
    uint64_t steps; /* left */
};

enum { WRITES_KNOWN = 1u << 31 };

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

void jump_memory_reset(jump_memory *m, const lift_func *view)
{
    m->view = view;
    m->frame.read = false;
    depth_reset(&m->depth);
    m->writes.len = 0;
    vec_reserve(&m->writes, view->block_count);
    m->writes.len = view->block_count;
    memset(m->writes.data, 0, view->block_count * sizeof(uint32_t));
    m->steps = (uint64_t)STEPS_PER_BLOCK * (view->block_count + 16);
    empty_pool(m);
}

/* --- constants kept ------------------------------------------------------------------------------------------------ */

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

/* --- walking back -------------------------------------------------------------------------------------------------- */

static slice_context context(const flow_space *space, jump_memory *m)
{
    return (slice_context){.img = space->img, .view = m->view, .pool = &m->pool, .frame = &m->frame};
}

static uint32_t block_writes(const flow_space *space, jump_memory *m, uint32_t b)
{
    const lift_block *block = &m->view->blocks[b];
    if (!(m->writes.data[b] & WRITES_KNOWN)) {
        uint32_t writes = WRITES_KNOWN;
        for (uint32_t i = 0; i < block->insn_count; i++)
            writes |= slice_writes(space->img, &m->view->insns[block->first_insn + i]);
        m->writes.data[b] = writes;
        m->steps -= m->steps < block->insn_count ? m->steps : block->insn_count;
    }
    return m->writes.data[b];
}

/* Nothing in the block touches what the state is about. */
static bool can_skip(const flow_space *space, jump_memory *m, const walk *w)
{
    const slice_node *nodes = m->pool.nodes;
    uint32_t cares = nodes[w->state.x].regs | (nodes[w->state.x].memory ? SLICE_STORES : 0);
    for (uint32_t i = 0; i < w->state.fact_count; i++) {
        const slice_node *a = &nodes[w->state.facts[i].a], *b = &nodes[w->state.facts[i].b];
        cares |= a->regs | b->regs | (a->memory || b->memory ? SLICE_STORES : 0);
    }
    if (w->state.pending_count) cares |= SLICE_FLAGS;
    return !(block_writes(space, m, w->block) & cares);
}

/* Over one instruction; pushes the second way of a conditional move. */
static void step_back(const flow_space *space, jump_memory *m, walk *w)
{
    slice_context c = context(space, m);
    const lift_insn *insn = &m->view->insns[m->view->blocks[w->block].first_insn + --w->insn];
    m->steps -= m->steps > 0;
    walk second = *w;
    if (insn->flow != FLOW_JUMP && slice_back(&c, insn, &w->state, &second.state) == 2) vec_push(&m->stack, second);
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

/* --- constants that all definitions agree on ----------------------------------------------------------------------- */

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
        for (; w.insn && m->pool.nodes[w.state.x].op != X_CONST && w.state.x; ) {
            if (w.insn == m->view->blocks[w.block].insn_count && can_skip(space, m, &w)) {
                w.insn = 0;
                break;
            }
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
        constant_slot *kept = constant_at(m, key);
        if (kept->generation == m->generation) {
            if (!kept->found && kept->value) continue; /* a cycle adds no definition */
            good = kept->found && (!found || *value == kept->value);
            *value = kept->value;
            found = true;
            continue;
        }
        good = !n->any && w.block != 0 && block->pred_count && m->steps && m->keys.len < SLICE_NODES * 16;
        if (!good) break;
        keep_constant(m, key, false, 1);
        vec_push(&m->keys, key);
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

/* --- the form of a table access ------------------------------------------------------------------------------------ */

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

/* --- the walk ------------------------------------------------------------------------------------------------------ */

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

/* No condition will come any more: a table of any size, up to what the form of the index allows. */
static bool end_of_path(jump_memory *m, const walk *w)
{
    uint64_t most = (MAX_ENTRIES - 1) * w->form.step;
    return w->indexed &&
           add_table(m, (table_found){.form = w->form, .high = w->limit < most ? w->limit : most, .weak = true});
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
                if (f->a != g->a || f->b != g->b || f->cc != g->cc || f->bits != g->bits || f->test != g->test) continue;
                same++;
                break;
            }
        if (same == v->state.fact_count &&
            !memcmp(v->state.pending, w->state.pending, v->state.pending_count))
            return true;
    }
    return false;
}

/* Goes back along one path; its forks are pushed. False: it has no answer. */
static bool walk_path(const flow_space *space, jump_memory *m, walk w, jump_result *result)
{
    for (;;) {
        path_verdict verdict = look(space, m, &w, result);
        if (verdict != PATH_ON) return verdict == PATH_DONE;
        if (!m->steps) return false;
        const lift_block *block = &m->view->blocks[w.block];
        if (w.insn == block->insn_count && w.insn && can_skip(space, m, &w)) w.insn = 0;
        if (w.insn) {
            step_back(space, m, &w);
            continue;
        }
        if (!w.indexed) {
            slice_expr old = w.state.x;
            find_bases(space, m, &w);
            if (old != w.state.x) continue;
        }
        if (block->pred_count > 1) forget_facts(m, &w);
        if (is_visited(m, &w)) return true;
        if (w.block == 0 || !block->pred_count) {
            if (!end_of_path(m, &w)) return false;
            if (!block->pred_count) return true;
        }
        if (m->visited.len >= (w.indexed && w.limit / w.form.step < MAX_ENTRIES ? MAX_WEAK_STATES : MAX_STATES))
            return end_of_path(m, &w);
        vec_push(&m->visited, w);
        for (uint32_t p = 1; p < block->pred_count; p++)
            vec_push(&m->stack, walk_pred(m, &w, m->view->preds[block->first_pred + p]));
        w = walk_pred(m, &w, m->view->preds[block->first_pred]);
    }
}

/* --- reading tables ------------------------------------------------------------------------------------------------ */

/* May the jump go there: code of this function, or a part that belongs to functions only by jumps. `strict`: a table
 * whose size is not known for certain. */
static bool is_target(const flow_space *space, const lift_func *view, const lift_insn *jump, uint64_t addr, bool strict)
{
    const flow_region *r = flow_region_at(space, addr);
    if (!r) return false;
    if (addr == view->entry) return true;
    uint64_t place = r->first + (addr - r->addr);
    if (flow_bit(space->starts, place)) return flow_bit(space->doubtful, place);
    const image_fde *own = image_fde_at(space->img, jump->addr), *fde = image_fde_at(space->img, addr);
    if (own && own == fde) return true;
    if (own || fde)
        return fde && (fde->fragment || flow_has(space, space->parts, fde->start) ||
                       flow_has(space, space->doubtful, fde->start) ||
                       view->entry - fde->start < fde->end - fde->start);
    if (!strict) return true;
    uint64_t next = flow_region_at(space, view->entry + 1) ? flow_next_bit(space, space->starts, view->entry + 1) : 0;
    return addr >= view->entry && addr < next;
}

/* The end of the function: what clang puts into a table for values that it knows not to come. */
static bool is_hole(const flow_space *space, const lift_func *view, const lift_insn *jump, uint64_t addr)
{
    const image_fde *own = image_fde_at(space->img, jump->addr);
    if (own) return addr == own->end;
    const flow_region *r = flow_region_at(space, addr);
    if (!r || addr <= view->entry) return false;
    uint64_t next = flow_next_bit(space, space->starts, view->entry + 1);
    for (uint32_t skip; addr < next && (skip = flow_padding(r->bytes + (addr - r->addr), next - addr));)
        addr += skip;
    return addr == next;
}

static bool read_entry(const flow_space *space, const table_form *form, uint64_t addr, uint64_t *target)
{
    uint64_t word = 0;
    uint32_t bytes = form->bits / 8;
    if (bytes == 8 && !form->plus) {
        const image_reloc *reloc = image_reloc_at(space->img, addr);
        if (reloc && reloc->size == 8 && (reloc->kind == IMAGE_REL_ADDR || reloc->kind == IMAGE_REL_GUESS)) {
            *target = reloc->target;
            return true;
        }
        if (reloc || !space->absolute) return false;
    }
    if (!image_read(space->img, addr, &word, bytes)) return false;
    if (form->is_signed && bytes < 8) word = (uint64_t)((int64_t)(word << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    *target = form->plus + word;
    return true;
}

/* A table in memory that can be written to is believed when each entry is a relocated address: labels as values. */
static bool is_fixed(const flow_space *space, const table_form *form, uint64_t addr)
{
    if (image_is_constant(space->img, addr, form->bits / 8)) return true;
    const image_reloc *reloc = image_reloc_at(space->img, addr);
    return form->bits == 64 && reloc && (reloc->kind == IMAGE_REL_ADDR || reloc->kind == IMAGE_REL_GUESS);
}

/* Another object begins in (from, to]? */
static bool has_ref(const flow_space *space, uint64_t from, uint64_t to)
{
    for (uint64_t addr = from + 1; addr <= to; addr++) {
        int64_t place = flow_data_place(space, addr);
        if (place < 0 || flow_bit(space->refs, (uint64_t)place)) return true;
    }
    return false;
}

/* Does a table seem to go on behind an entry that makes no sense? Then its size is not understood. */
static bool goes_on(const flow_space *space, const lift_func *view, const lift_insn *jump, const table_form *form,
                    uint64_t addr)
{
    uint64_t stride = form->scale * form->step, target;
    for (uint32_t i = 0; i < LOOK_AHEAD; i++, addr += stride) {
        if (has_ref(space, addr, addr + stride)) return false;
        if (read_entry(space, form, addr + stride, &target) && is_target(space, view, jump, target, true) &&
            target != view->entry)
            return true;
    }
    return false;
}

/* Adds the targets of one table; false: it cannot be right. */
static bool read_table(const flow_space *space, const lift_func *view, const lift_insn *jump, const table_found *t,
                       jump_result *result)
{
    const table_form *form = &t->form;
    uint64_t count = (t->high - t->low) / form->step + 1, stride = form->scale * form->step, n = 0;
    uint64_t start = form->table + t->low * form->scale;
    if (t->weak && !space->refs_known) return false;
    for (; n < count; n++) {
        uint64_t addr = start + n * stride, target;
        if (t->weak && n && has_ref(space, addr - stride, addr)) break;
        bool good = (count > 1 || t->weak ? is_fixed(space, form, addr)
                                          : image_is_constant(space->img, addr, form->bits / 8)) &&
                    read_entry(space, form, addr, &target);
        if (good && is_hole(space, view, jump, target)) continue;
        /* the address of the function itself in a table of absolute ones: of functions */
        good = good && is_target(space, view, jump, target, t->weak) && (form->plus || target != view->entry);
        if (!good && (!t->weak || !n || goes_on(space, view, jump, form, addr))) return false;
        if (!good) break;
        vec_push(&result->targets, target);
    }
    result->weak |= t->weak;
    vec_push(&result->tables, (lift_table){.table = start,
                                           .count = (uint32_t)n,
                                           .entry_size = (uint8_t)(form->bits / 8),
                                           .relative = form->plus != 0,
                                           .base = form->plus});
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_targets(jump_result *result)
{
    uint32_t kept = 0;
    if (result->targets.len) qsort(result->targets.data, result->targets.len, sizeof(uint64_t), by_number);
    for (uint32_t i = 0; i < result->targets.len; i++)
        if (!i || result->targets.data[i] != result->targets.data[kept - 1])
            result->targets.data[kept++] = result->targets.data[i];
    result->targets.len = kept;
}

/* A table whose entries lie in this function: the jump is no tail call, even where its size is not known. */
static bool is_own_table(const flow_space *space, const lift_func *view, const lift_insn *jump, const table_form *form)
{
    uint64_t target;
    if (form->plus || form->bits < 64) return true;
    return read_entry(space, form, form->table, &target) && is_target(space, view, jump, target, true) &&
           !flow_has(space, space->starts, target);
}

jump_verdict jump_resolve(const flow_space *space, const lift_func *view, jump_memory *m, uint32_t block,
                          jump_result *result)
{
    const lift_block *at = &view->blocks[block];
    uint32_t jump = at->first_insn + at->insn_count - 1;
    if (m->pool.count + NODES_PER_JUMP > SLICE_NODES) empty_pool(m);
    vec_clear(&m->stack);
    vec_clear(&m->visited);
    vec_clear(&m->tables);
    vec_clear(&m->forms);
    slice_context c = context(space, m);
    walk first = {.block = block, .insn = at->insn_count - 1};
    first.state.x = slice_operand(&c, &view->insns[jump]);
    first.state.is_table = true;
    bool good = true;
    vec_push(&m->stack, first);
    while (good && m->stack.len) {
        walk next = m->stack.data[--m->stack.len];
        good = walk_path(space, m, next, result);
    }
    for (uint32_t i = 0; good && i < result->targets.len; i++) /* constants found on the way */
        good = is_target(space, view, &view->insns[jump], result->targets.data[i], false);
    for (uint32_t i = 0; good && i < m->tables.len; i++)
        good = read_table(space, view, &view->insns[jump], &m->tables.data[i], result);
    if (good && result->targets.len) {
        sort_targets(result);
        return JUMP_SWITCH;
    }
    vec_clear(&result->targets);
    vec_clear(&result->tables);
    for (uint32_t i = 0; i < m->forms.len; i++)
        if (is_own_table(space, view, &view->insns[jump], &m->forms.data[i])) return JUMP_UNKNOWN;
    return depth_frame_gone(space->img, view, &m->depth, block) ? JUMP_TAIL : JUMP_UNKNOWN;
}
