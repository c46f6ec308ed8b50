/* What is asked again and again of the values of one function, found once: which loads are of one variable, which
 * values are computed in the same way, where blocks branch, and which lie behind which. It follows from the IR alone,
 * which never changes, so it lies in its memory and lives as long: an analysis of a program in which the function is
 * still the same finds it there (lift_update_all keeps such functions). */
#include "static/hb/value_facts.h"

#include "static/pointer/map.h"

typedef struct {
    value_condition condition;
    bool asked, known;
} known_test;

typedef struct ir_facts {
    uint32_t *kinds; /* per access: a number, equal for those that value_same_access takes for one; 0: like no other */
    ir_value *same[VALUE_FACTS_DEPTHS]; /* per value: value_first_equal at a depth; 0: not asked yet */
    ir_value *loads;                    /* per load: the first one of the same variable; 0: not found yet */
    ir_value *branches;                 /* per block: its IR_BRANCH */
    known_test *tests;                  /* per block, not taken and taken: value_test */
    uint64_t **behind;                  /* per block: value_blocks_behind; NULL: not asked yet */
} ir_facts;

static uint64_t hash_sum(const value_sum *s, uint64_t hash)
{
    hash = map_hash(hash + (uint64_t)s->add);
    for (uint32_t i = 0; i < s->count; i++)
        hash = map_hash(map_hash(hash + s->terms[i].leaf) + (uint64_t)s->terms[i].factor);
    return hash;
}

typedef struct {
    value_sum sum;
    uint32_t kind, segment;
} access_kind;

/* Numbers for the accesses. */
static uint32_t find_kinds(const ir_func *ir, uint32_t *kinds)
{
    map64 known = {0};
    VEC(access_kind) list = {0};
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *access = &ir->insns[v];
        if (access->op != IR_ACCESS || access->flags & IR_WIDE) continue;
        access_kind own = {.sum = value_shallow(ir, access), .segment = access->flags & (IR_FS | IR_GS)};
        if (!own.sum.known) continue;
        for (uint64_t hash = hash_sum(&own.sum, own.segment);; hash = map_hash(hash + 1)) {
            uint32_t *at = map_at(&known, hash & ~(1ull << 63));
            if (*at == MAP_NONE) {
                *at = list.len;
                own.kind = list.len + 1;
                vec_push(&list, own);
            }
            const access_kind *of = &list.data[*at];
            if (of->segment != own.segment || of->sum.add != own.sum.add || !value_same_terms(&of->sum, &own.sum))
                continue;
            kinds[v] = of->kind;
            break;
        }
    }
    uint32_t count = list.len;
    vec_free(&list);
    map_free(&known);
    return count;
}

/* The first load of the same variable, if nothing here stores to it. */
static void find_loads(const ir_func *ir, const uint32_t *kinds, uint32_t kind_count, ir_value *loads)
{
    bool *stored = base_alloc_zero((size_t)kind_count + 1, sizeof *stored);
    map64 first = {0};
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (ir->insns[v].op == IR_STORE) stored[kinds[ir->insns[v].a]] = true;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *load = &ir->insns[v];
        if (load->op != IR_LOAD) continue;
        uint32_t kind = kinds[load->a];
        loads[v] = v;
        if (!kind) continue;
        uint64_t hash = map_hash(map_hash((uint64_t)kind << 8 | load->width) + (uint64_t)load->imm);
        for (;; hash = map_hash(hash + 1)) {
            uint32_t *at = map_at(&first, hash & ~(1ull << 63));
            if (*at == MAP_NONE) *at = v;
            const ir_insn *other = &ir->insns[*at];
            if (kinds[other->a] != kind || other->width != load->width || other->imm != load->imm) continue;
            if (!stored[kind] && !(ir->insns[load->a].flags & IR_REP)) loads[v] = *at;
            break;
        }
    }
    free(stored);
    map_free(&first);
}

/* The IR is const to those who ask, and stays as it is: only what is known of it grows. */
static ir_facts *facts_of(const ir_func *ir)
{
    ir_func *own = (ir_func *)ir;
    if (own->facts) return own->facts;
    ir_facts *f = arena_alloc(&own->memory, sizeof *f);
    size_t size = ir->insn_count * sizeof(uint32_t);
    f->kinds = arena_alloc(&own->memory, size);
    f->loads = arena_alloc(&own->memory, size);
    for (unsigned i = 0; i < VALUE_FACTS_DEPTHS; i++)
        f->same[i] = arena_alloc(&own->memory, size);
    f->branches = arena_alloc(&own->memory, ir->func->block_count * sizeof *f->branches);
    f->tests = arena_alloc(&own->memory, 2 * ir->func->block_count * sizeof *f->tests);
    f->behind = arena_alloc(&own->memory, ir->func->block_count * sizeof *f->behind);
    find_loads(ir, f->kinds, find_kinds(ir, f->kinds), f->loads);
    for (uint32_t b = 0; b < ir->func->block_count; b++) {
        const ir_block *block = &ir->blocks[b];
        for (uint32_t i = block->count; i-- > 0 && !f->branches[b];)
            if (ir->insns[block->first + i].op == IR_BRANCH) f->branches[b] = block->first + i;
    }
    return own->facts = f;
}

bool value_same_access(const ir_func *ir, const ir_insn *x, const ir_insn *y)
{
    const uint32_t *kinds = facts_of(ir)->kinds;
    uint32_t kind = kinds[x - ir->insns];
    return kind && kind == kinds[y - ir->insns];
}

ir_value value_first_load(const ir_func *ir, ir_value load)
{
    return facts_of(ir)->loads[load];
}

ir_value *value_known_equal(const ir_func *ir, ir_value v, unsigned depth)
{
    return &facts_of(ir)->same[depth][v];
}

ir_value value_branch(const ir_func *ir, uint32_t block)
{
    return facts_of(ir)->branches[block];
}

bool value_test(const ir_func *ir, uint32_t block, bool taken, value_condition *out)
{
    known_test *t = &facts_of(ir)->tests[2 * block + taken];
    if (!t->asked) {
        t->asked = true;
        t->known = value_find_test(ir, block, taken, &t->condition);
    }
    *out = t->condition;
    return t->known;
}

const uint64_t *value_blocks_behind(const ir_func *ir, uint32_t block)
{
    uint64_t **known = &facts_of(ir)->behind[block];
    if (*known) return *known;
    const lift_func *f = ir->func;
    uint64_t *seen = arena_alloc(&((ir_func *)ir)->memory, (f->block_count / 64 + 1) * sizeof *seen);
    VEC(uint32_t) work = {0};
    vec_push(&work, block);
    while (work.len) {
        uint32_t at = work.data[--work.len];
        for (uint32_t e = f->blocks[at].first_succ; e < f->blocks[at].first_succ + f->blocks[at].succ_count; e++) {
            uint32_t next = f->edges[e].to;
            if (seen[next / 64] >> next % 64 & 1 || ir->blocks[next].rpo <= ir->blocks[at].rpo) continue;
            seen[next / 64] |= 1ull << next % 64;
            vec_push(&work, next);
        }
    }
    vec_free(&work);
    return *known = seen;
}
