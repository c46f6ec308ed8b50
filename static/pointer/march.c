/* Pointers that march: `for (p = a; ...; p++)`. In SSA form they are variables on a cycle of copies that add something. Solved
 * as they stand, such a cycle adds again and again until its places become a class, which then leaves the array that it
 * started in. But it is an index in disguise, and an index stays in its array: each use of a variable of the cycle becomes
 * what the cycle is entered with, plus the least that is added on the way, plus a multiple of what goes once around. */
#include <stdlib.h>

#include "static/pointer/generate.h"
#include "static/pointer/offset.h"

enum { MEMBERS = 24, NO_CYCLE = 0, MOST_STEP = 1 << 24 };

typedef struct {
    uint32_t from, to;
    int64_t delta;
    uint32_t stride;
} step;

typedef struct {
    uint32_t members[MEMBERS], count;
    VEC(step) steps;
    int64_t least[MEMBERS][MEMBERS]; /* from member to member */
    uint64_t stride;
    uint32_t entries[MEMBERS]; /* variable with what the member is given from outside, or PTA_NO_VAR */
} cycle;

typedef struct {
    uint32_t var; /* of a cycle */
    int64_t turns;
    uint32_t use;
} known_use;

typedef struct {
    generated *out;
    uint32_t vars;   /* at the beginning */
    uint32_t *group; /* per variable: its strongly connected group of copies, NO_CYCLE: alone in it */
    uint32_t *index, *low;
    uint32_t *first, *next; /* copies by source: statement + 1 */
    uint32_t visited, groups;
    VEC(uint32_t) stack;
    VEC(known_use) uses;
} marcher;

/* --- cycles --------------------------------------------------------------------------------------------------------------- */

static void visit(marcher *m, uint32_t root)
{
    struct frame { uint32_t var, stmt; };
    VEC(struct frame) frames = {0};
    vec_push(&frames, (struct frame){root, m->first[root]});
    m->index[root] = m->low[root] = ++m->visited;
    vec_push(&m->stack, root);
    while (frames.len) {
        struct frame *f = &frames.data[frames.len - 1];
        if (f->stmt) {
            uint32_t to = m->out->stmts.data[f->stmt - 1].dst.var;
            f->stmt = m->next[f->stmt - 1];
            if (!m->index[to]) {
                m->index[to] = m->low[to] = ++m->visited;
                vec_push(&m->stack, to);
                vec_push(&frames, (struct frame){to, m->first[to]});
            } else if (m->group[to] == UINT32_MAX && m->index[to] < m->low[f->var]) {
                m->low[f->var] = m->index[to];
            }
            continue;
        }
        uint32_t var = f->var;
        frames.len--;
        if (frames.len && m->low[var] < m->low[frames.data[frames.len - 1].var])
            m->low[frames.data[frames.len - 1].var] = m->low[var];
        if (m->low[var] != m->index[var]) continue;
        uint32_t member, group = m->stack.data[m->stack.len - 1] == var ? NO_CYCLE : ++m->groups;
        do {
            member = m->stack.data[--m->stack.len];
            m->group[member] = group;
        } while (member != var);
    }
    vec_free(&frames);
}

static bool is_copy(const pta_stmt *s)
{
    return s->kind == PTA_COPY;
}

/* A variable that is copied to itself is a cycle too. */
static void find_groups(marcher *m)
{
    const generated *out = m->out;
    for (uint32_t i = out->stmts.len; i-- > 0;) {
        const pta_stmt *s = &out->stmts.data[i];
        if (!is_copy(s)) continue;
        m->next[i] = m->first[s->src.var];
        m->first[s->src.var] = i + 1;
    }
    memset(m->group, 0xff, m->vars * sizeof *m->group);
    for (uint32_t v = 0; v < m->vars; v++)
        if (!m->index[v]) visit(m, v);
    for (uint32_t i = 0; i < out->stmts.len; i++) {
        const pta_stmt *s = &out->stmts.data[i];
        if (is_copy(s) && s->src.var == s->dst.var && m->group[s->src.var] == NO_CYCLE) m->group[s->src.var] = ++m->groups;
    }
}

static uint32_t member_of(const cycle *c, uint32_t var)
{
    uint32_t i = 0;
    while (i < c->count && c->members[i] != var)
        i++;
    return i;
}

/* Least sums from member to member, and what goes once around: each step that is not on a least way differs from it by a
 * multiple. */
static void measure(cycle *c)
{
    for (uint32_t a = 0; a < c->count; a++)
        for (uint32_t b = 0; b < c->count; b++)
            c->least[a][b] = a == b ? 0 : INT32_MAX;
    for (uint32_t turn = 0; turn < c->count; turn++)
        for (uint32_t i = 0; i < c->steps.len; i++) {
            const step *s = &c->steps.data[i];
            for (uint32_t a = 0; a < c->count; a++)
                if (c->least[a][s->from] + s->delta < c->least[a][s->to]) c->least[a][s->to] = c->least[a][s->from] + s->delta;
        }
    for (uint32_t i = 0; i < c->steps.len; i++) {
        const step *s = &c->steps.data[i];
        c->stride = offset_gcd((uint64_t)(c->least[0][s->from] + s->delta - c->least[0][s->to]), c->stride);
        c->stride = offset_gcd(s->stride, c->stride);
    }
    if (c->stride) c->stride = offset_fit(c->stride);
}

/* Whether all copies of a cycle go up. */
static bool is_march(const cycle *c)
{
    return c->count <= MEMBERS && c->stride;
}

static bool goes_up(const pta_stmt *s)
{
    return s->stride < PTA_BACK && s->src.delta >= 0 && s->src.delta < MOST_STEP;
}

/* The cycles by their groups; those that do not march have no members. */
static cycle *collect(const marcher *m)
{
    cycle *cycles = base_alloc_zero(m->groups + 1, sizeof *cycles);
    for (uint32_t v = 0; v < m->vars; v++) {
        cycle *c = &cycles[m->group[v]];
        if (m->group[v] == NO_CYCLE) continue;
        if (c->count < MEMBERS) {
            c->entries[c->count] = PTA_NO_VAR;
            c->members[c->count] = v;
        }
        c->count += c->count <= MEMBERS;
    }
    for (uint32_t i = 0; i < m->out->stmts.len; i++) {
        const pta_stmt *s = &m->out->stmts.data[i];
        if (!is_copy(s) || m->group[s->src.var] == NO_CYCLE || m->group[s->src.var] != m->group[s->dst.var]) continue;
        cycle *c = &cycles[m->group[s->src.var]];
        if (c->count > MEMBERS) continue;
        if (!goes_up(s)) {
            c->count = MEMBERS + 1;
            continue;
        }
        vec_push(&c->steps, (step){member_of(c, s->src.var), member_of(c, s->dst.var), s->src.delta, s->stride});
    }
    for (uint32_t g = 1; g <= m->groups; g++) {
        cycle *c = &cycles[g];
        if (c->count <= MEMBERS) measure(c);
        if (!is_march(c)) c->count = 0;
    }
    return cycles;
}

/* --- without them --------------------------------------------------------------------------------------------------------- */

static cycle *cycle_of(const marcher *m, cycle *cycles, uint32_t var)
{
    if (var >= m->vars || m->group[var] == NO_CYCLE || !cycles[m->group[var]].count) return NULL;
    return &cycles[m->group[var]];
}

/* What a member is given from outside goes to a variable of its own. */
static void divert(marcher *m, cycle *cycles, uint32_t *var)
{
    cycle *c = *var == PTA_NO_VAR ? NULL : cycle_of(m, cycles, *var);
    if (!c) return;
    uint32_t *entry = &c->entries[member_of(c, *var)];
    if (*entry == PTA_NO_VAR) *entry = m->out->var_count++;
    *var = *entry;
}

/* Turns once around lead past the place of entry: either it or the place beyond is in the array (form.h: form_index). */
static void define_use(marcher *m, const cycle *c, const known_use *use, uint32_t insn)
{
    uint32_t to = member_of(c, use->var);
    int64_t stride = (int64_t)c->stride;
    for (uint32_t from = 0; from < c->count; from++) {
        if (c->entries[from] == PTA_NO_VAR) continue;
        int64_t least = c->least[from][to] + use->turns * stride, within = c->least[from][to] % stride;
        pta_stmt copy = {.kind = PTA_COPY, .dst = {use->use, 0}, .src = {c->entries[from], (int32_t)least},
                         .stride = (uint32_t)stride, .insn = insn};
        vec_push(&m->out->stmts, copy);
        copy.src.delta = (int32_t)within;
        if (within != least) vec_push(&m->out->stmts, copy);
    }
}

static void replace(marcher *m, cycle *cycles, pta_operand *what, uint32_t insn)
{
    const cycle *c = what->var == PTA_NO_VAR ? NULL : cycle_of(m, cycles, what->var);
    if (!c) return;
    int64_t stride = (int64_t)c->stride, turns = what->delta / stride - (what->delta % stride < 0);
    what->delta -= (int32_t)(turns * stride);
    uint32_t i = 0;
    while (i < m->uses.len && (m->uses.data[i].var != what->var || m->uses.data[i].turns != turns))
        i++;
    if (i == m->uses.len) {
        vec_push(&m->uses, (known_use){what->var, turns, m->out->var_count++});
        define_use(m, c, &m->uses.data[i], insn);
    }
    what->var = m->uses.data[i].use;
}

static bool is_inside(const marcher *m, cycle *cycles, const pta_stmt *s)
{
    return is_copy(s) && cycle_of(m, cycles, s->src.var) && cycle_of(m, cycles, s->src.var) == cycle_of(m, cycles, s->dst.var);
}

static void rewrite(marcher *m, cycle *cycles)
{
    generated *out = m->out;
    uint32_t count = out->stmts.len, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        pta_stmt s = out->stmts.data[i];
        if (is_inside(m, cycles, &s)) continue;
        if (s.kind == PTA_ADDR || s.kind == PTA_COPY || s.kind == PTA_LOAD) divert(m, cycles, &s.dst.var);
        out->stmts.data[kept++] = s;
    }
    out->stmts.len = kept;
    for (uint32_t i = 0; i < out->calls.len; i++) {
        divert(m, cycles, &out->calls.data[i].ret);
        divert(m, cycles, &out->calls.data[i].ret2);
    }
    for (uint32_t i = 0; i < kept; i++) {
        pta_stmt s = out->stmts.data[i];
        if (s.kind == PTA_CALL) {
            pta_call *call = &out->calls.data[s.ref & ~(uint32_t)GENERATE_LOCAL];
            replace(m, cycles, &call->target, s.insn);
            for (unsigned a = 0; a < PTA_PARAMS; a++)
                replace(m, cycles, &call->args[a], s.insn);
            continue;
        }
        if (s.kind != PTA_ADDR) replace(m, cycles, &s.src, s.insn);
        if (s.kind == PTA_STORE) replace(m, cycles, &s.dst, s.insn);
        out->stmts.data[i] = s;
    }
    for (uint32_t i = 0; i < out->accesses.len; i++)
        replace(m, cycles, &out->accesses.data[i].base, out->accesses.data[i].insn);
}

void generate_marches(generated *out)
{
    marcher m = {.out = out, .vars = out->var_count};
    m.group = base_alloc_zero(m.vars, sizeof *m.group);
    m.index = base_alloc_zero(m.vars, sizeof *m.index);
    m.low = base_alloc_zero(m.vars, sizeof *m.low);
    m.first = base_alloc_zero(m.vars, sizeof *m.first);
    m.next = base_alloc_zero(out->stmts.len + 1, sizeof *m.next);
    find_groups(&m);
    if (m.groups) {
        cycle *cycles = collect(&m);
        rewrite(&m, cycles);
        for (uint32_t g = 0; g <= m.groups; g++)
            vec_free(&cycles[g].steps);
        free(cycles);
    }
    free(m.group);
    free(m.index);
    free(m.low);
    free(m.first);
    free(m.next);
    vec_free(&m.stack);
    vec_free(&m.uses);
}
