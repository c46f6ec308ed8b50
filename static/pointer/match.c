/* Which statements of a function are the same in two programs.
 *
 * Variables are numbered anew in each program, so statements are compared without their variables first, by longest
 * common subsequence, and then all pairs must agree on which variable is which. A pair that disagrees with those before
 * it is none: its statement is deleted and inserted, which is always right. So is any choice of pairs: a bad one costs
 * time, never the result. */
#include "static/pointer/follow.h"

typedef struct {
    follow_work *k;
    uint32_t own, shown;
    uint32_t *vars;     /* by shown variable: own */
    uint32_t *back;     /* by own variable: shown */
    uint32_t *stmts;    /* by shown statement: own */
    bool *kept;         /* by own statement: it has a shown one */
    uint64_t *was, *is; /* hashes: of `list`, of shown statements */
    uint32_t *list;     /* own statements that are not dead, as they were shown */
    uint32_t old_count, new_count;
    struct {
        uint32_t shown, own;
    } bound[PTA_PARAMS + 3]; /* by the statement that is looked at */
    uint32_t bound_count;
} matching;

static uint32_t own_func(const struct follow *w, uint32_t shown)
{
    return shown == PTA_NO_FUNC ? PTA_NO_FUNC : w->func.in[shown];
}

/* --- hashes --------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return map_hash(hash * 0x100000001b3u + value + 1);
}

static uint64_t call_hash(const pta_call *c, uint32_t func, uint32_t known, uint64_t makes)
{
    uint64_t hash = mix(mix(makes, (uint64_t)func << 32 | known), (uint64_t)c->spawn << 1 | c->in_loop);
    for (unsigned i = 0; i < PTA_SIZES; i++)
        hash = mix(hash, (uint64_t)c->sizes[i].multiple << 32 | (uint64_t)(uint16_t)c->sizes[i].delta << 16 |
                             (uint64_t)c->sizes[i].param << 1 | c->sizes[i].exact);
    if (func != PTA_NO_FUNC) return hash;
    hash = mix(hash, (uint32_t)c->target.delta);
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        hash = mix(hash, (uint64_t)(c->args[i].var != PTA_NO_VAR) << 32 | (uint32_t)c->args[i].delta);
    return hash;
}

static uint64_t shown_call_hash(follow_work *k, const pta_call *c)
{
    uint32_t known = c->known ? own_func(k->w, c->known - 1) + 1 : 0;
    return call_hash(c, own_func(k->w, c->func), known, says_type(k->says, c->makes));
}

static uint32_t var_kind(uint32_t var)
{
    return var < PTA_FIRST_LOCAL || var == PTA_NO_VAR ? var : PTA_FIRST_LOCAL;
}

/* Of all but the variables. */
static uint64_t stmt_hash(const pta_stmt *s, uint64_t ref)
{
    uint64_t hash = mix(ref, (uint64_t)s->kind << 32 | s->stride);
    if (s->kind == PTA_CALL) return hash;
    hash = mix(hash, (uint64_t)(uint32_t)s->dst.delta << 32 | (uint32_t)s->src.delta);
    return mix(hash, (uint64_t)var_kind(s->dst.var) << 32 | var_kind(s->src.var));
}

static uint64_t shown_hash(follow_work *k, const pta_stmt *s)
{
    if (s->kind == PTA_CALL) return stmt_hash(s, shown_call_hash(k, &k->w->shown->calls.data[s->ref]));
    return stmt_hash(s, s->kind == PTA_ADDR ? k->w->site.in[s->ref] : s->ref);
}

static uint64_t own_hash(const struct follow *w, const pta_stmt *s)
{
    if (s->kind != PTA_CALL) return stmt_hash(s, s->ref);
    const pta_call *c = &w->own->calls.data[s->ref];
    return stmt_hash(s, call_hash(c, c->func, c->known, w->makes.data[s->ref]));
}

uint64_t match_says(follow_work *k, uint32_t shown)
{
    const pta_func *f = &k->w->shown->funcs.data[shown];
    uint64_t hash = mix(f->var_count, f->stmts.len);
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        const pta_stmt *s = &f->stmts.data[i];
        hash = mix(hash, shown_hash(k, s));
        if (s->kind != PTA_CALL) {
            hash = mix(hash, (uint64_t)s->dst.var << 32 | s->src.var);
            continue;
        }
        const pta_call *c = &k->w->shown->calls.data[s->ref];
        hash = mix(mix(hash, (uint64_t)c->ret << 32 | c->ret2), c->target.var);
        for (unsigned a = 0; a < PTA_PARAMS; a++)
            hash = mix(hash, (uint64_t)c->args[a].var << 32 | (uint32_t)c->args[a].delta);
    }
    return hash | 1;
}

/* --- which variable is which -------------------------------------------------------------------------------------------------- */

static bool bind(matching *m, uint32_t shown, uint32_t own)
{
    if (var_kind(shown) != PTA_FIRST_LOCAL || var_kind(own) != PTA_FIRST_LOCAL) return shown == own;
    if (m->vars[shown] != FOLLOW_NONE || m->back[own] != FOLLOW_NONE) return m->vars[shown] == own;
    m->vars[shown] = own;
    m->back[own] = shown;
    m->bound[m->bound_count].shown = shown;
    m->bound[m->bound_count++].own = own;
    return true;
}

static bool bind_strictly(matching *m, const pta_call *is, const pta_call *was)
{
    bool agree = bind(m, is->target.var, was->target.var) && bind(m, is->ret, was->ret) && bind(m, is->ret2, was->ret2);
    for (unsigned a = 0; a < PTA_PARAMS && agree; a++)
        agree = bind(m, is->args[a].var, was->args[a].var);
    return agree;
}

/* A call by name may have other arguments: it is amended. */
static void bind_loosely(matching *m, const pta_call *is, const pta_call *was)
{
    bind(m, is->ret, was->ret);
    bind(m, is->ret2, was->ret2);
    for (unsigned a = 0; a < PTA_PARAMS; a++)
        if (is->args[a].delta == was->args[a].delta) bind(m, is->args[a].var, was->args[a].var);
}

/* Makes two statements with the same hash one, if their variables agree. */
static bool pair(matching *m, uint32_t shown, uint32_t own)
{
    const struct follow *w = m->k->w;
    const pta_stmt *is = &w->shown->funcs.data[m->shown].stmts.data[shown],
                   *was = &w->own->funcs.data[m->own].stmts.data[own];
    bool agree = true;
    m->bound_count = 0;
    if (is->kind == PTA_CALL) {
        const pta_call *call = &w->shown->calls.data[is->ref], *old = &w->own->calls.data[was->ref];
        if (call->func == PTA_NO_FUNC)
            agree = bind_strictly(m, call, old);
        else
            bind_loosely(m, call, old);
    } else {
        agree = bind(m, is->dst.var, was->dst.var) && bind(m, is->src.var, was->src.var);
    }
    for (uint32_t i = 0; !agree && i < m->bound_count; i++)
        m->vars[m->bound[i].shown] = m->back[m->bound[i].own] = FOLLOW_NONE;
    if (!agree) return false;
    m->stmts[shown] = own;
    m->kept[own] = true;
    return true;
}

/* --- which statement is which --------------------------------------------------------------------------------------------------- */

/* Longest common subsequence of what is between; `from` and the ends are places in `list` and among shown statements.
 */
static void pair_between(matching *m, uint32_t from, uint32_t old_end, uint32_t new_end)
{
    enum { MOST = 4 << 20 };
    uint32_t n = old_end - from, k = new_end - from;
    if (!n || !k) return;
    if ((uint64_t)(n + 1) * (k + 1) > MOST) { /* the first of each hash with the first */
        map64 first = {0};
        uint32_t *next = base_alloc(n * sizeof *next);
        for (uint32_t i = n; i-- > 0;) {
            uint32_t *at = map_at(&first, m->was[from + i] >> 1);
            next[i] = *at;
            *at = i;
        }
        for (uint32_t j = 0; j < k; j++) {
            uint32_t *at = map_at(&first, m->is[from + j] >> 1);
            if (*at == MAP_NONE) continue;
            uint32_t i = *at;
            *at = next[i];
            if (m->was[from + i] == m->is[from + j]) pair(m, from + j, m->list[from + i]);
        }
        free(next);
        map_free(&first);
        return;
    }
    uint16_t *length = base_alloc_zero((size_t)(n + 1) * (k + 1), sizeof *length);
#define AT(i, j) length[(size_t)(i) * (k + 1) + (j)]
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t j = k; j-- > 0;) {
            uint16_t skip = AT(i + 1, j) > AT(i, j + 1) ? AT(i + 1, j) : AT(i, j + 1);
            AT(i, j) = m->was[from + i] == m->is[from + j] ? (uint16_t)(AT(i + 1, j + 1) + 1) : skip;
        }
    for (uint32_t i = 0, j = 0; i < n && j < k;) {
        if (m->was[from + i] == m->is[from + j] && AT(i, j) == AT(i + 1, j + 1) + 1) {
            pair(m, from + j, m->list[from + i]);
            i++;
            j++;
        } else if (AT(i + 1, j) >= AT(i, j + 1)) {
            i++;
        } else {
            j++;
        }
    }
#undef AT
    free(length);
}

static void pair_statements(matching *m)
{
    uint32_t from = 0, old_end = m->old_count, new_end = m->new_count, most = old_end < new_end ? old_end : new_end;
    while (from < most && m->was[from] == m->is[from] && pair(m, from, m->list[from]))
        from++;
    while (old_end > from && new_end > from && m->was[old_end - 1] == m->is[new_end - 1]) {
        pair(m, new_end - 1, m->list[old_end - 1]);
        old_end--;
        new_end--;
    }
    pair_between(m, from, old_end, new_end);
}

/* A statement that was deleted once may be just what is wanted. */
static void revive(matching *m)
{
    const pta_func *f = &m->k->w->own->funcs.data[m->own];
    map64 first = {0};
    uint32_t *next = base_alloc(f->stmts.len * sizeof *next);
    for (uint32_t s = f->stmts.len; s-- > 0;) {
        if (!f->stmts.data[s].dead) continue;
        uint32_t *at = map_at(&first, own_hash(m->k->w, &f->stmts.data[s]) >> 1);
        next[s] = *at;
        *at = s;
    }
    for (uint32_t i = 0; i < m->new_count && first.count; i++) {
        if (m->stmts[i] != FOLLOW_NONE) continue;
        for (uint32_t s = map_get(&first, m->is[i] >> 1); s != MAP_NONE && m->stmts[i] == FOLLOW_NONE; s = next[s])
            if (!m->kept[s] && own_hash(m->k->w, &f->stmts.data[s]) == m->is[i] && pair(m, i, s))
                vec_push(&m->k->plan->edits, (pta_edit){m->own, s, true});
    }
    free(next);
    map_free(&first);
}

/* --- what is left ------------------------------------------------------------------------------------------------------------- */

/* Variables that nothing has told of. */
static void number_variables(matching *m)
{
    pta_func *f = &m->k->w->own->funcs.data[m->own];
    uint32_t count = m->k->w->shown->funcs.data[m->shown].var_count, had = f->var_count, at = PTA_FIRST_LOCAL;
    for (uint32_t v = 0; v < PTA_FIRST_LOCAL; v++)
        m->vars[v] = v;
    for (uint32_t v = PTA_FIRST_LOCAL; v < count; v++) {
        if (m->vars[v] != FOLLOW_NONE) continue;
        while (at < had && m->back[at] != FOLLOW_NONE)
            at++;
        m->vars[v] = at < had ? at++ : f->var_count++;
    }
}

static pta_operand own_operand(const uint32_t *vars, pta_operand shown)
{
    return (pta_operand){shown.var == PTA_NO_VAR ? PTA_NO_VAR : vars[shown.var], shown.delta};
}

static uint32_t own_var(const uint32_t *vars, uint32_t shown)
{
    return shown == PTA_NO_VAR ? PTA_NO_VAR : vars[shown];
}

static pta_call own_call(const matching *m, const pta_call *shown)
{
    const struct follow *w = m->k->w;
    pta_call call = *shown;
    call.func = own_func(w, shown->func);
    if (shown->known) call.known = own_func(w, shown->known - 1) + 1;
    call.caller = m->own;
    call.target = own_operand(m->vars, shown->target);
    call.ret = own_var(m->vars, shown->ret);
    call.ret2 = own_var(m->vars, shown->ret2);
    for (unsigned a = 0; a < PTA_PARAMS; a++)
        call.args[a] = own_operand(m->vars, shown->args[a]);
    return call;
}

static void set_call(struct follow *w, uint32_t shown, uint32_t own)
{
    w->call.in[shown] = own;
    while (w->call.out_count <= own)
        w->call.out[w->call.out_count++] = FOLLOW_NONE;
    w->call.out[own] = shown;
}

static pta_stmt own_stmt(matching *m, const pta_stmt *shown)
{
    struct follow *w = m->k->w;
    pta_stmt s = *shown;
    s.dead = true;
    if (s.kind == PTA_CALL) {
        const pta_call *call = &w->shown->calls.data[s.ref];
        uint64_t makes = says_type(m->k->says, call->makes);
        uint32_t id = w->own->calls.len;
        vec_push(&w->own->calls, own_call(m, call));
        vec_push(&w->makes, makes);
        set_call(w, s.ref, id);
        s.ref = id;
        return s;
    }
    s.dst = own_operand(m->vars, s.dst);
    s.src = own_operand(m->vars, s.src);
    if (s.kind == PTA_ADDR) s.ref = w->site.in[s.ref];
    return s;
}

static bool is_same_operand(pta_operand a, pta_operand b)
{
    return a.var == b.var && a.delta == b.delta;
}

/* A call that has stayed, or comes back: where it is now, and what it passes. */
static void amend(matching *m, uint32_t shown, uint32_t own)
{
    struct follow *w = m->k->w;
    uint32_t from = w->shown->funcs.data[m->shown].stmts.data[shown].ref,
             to = w->own->funcs.data[m->own].stmts.data[own].ref;
    bool dead = w->own->funcs.data[m->own].stmts.data[own].dead;
    pta_call is = own_call(m, &w->shown->calls.data[from]), *was = &w->own->calls.data[to];
    set_call(w, from, to);
    bool same = is.ret == was->ret && is.ret2 == was->ret2;
    for (unsigned a = 0; a < PTA_PARAMS; a++)
        same &= is_same_operand(is.args[a], was->args[a]);
    was->makes = is.makes;
    was->addr = is.addr;
    if (same || dead)
        *was = is;
    else
        vec_push(&m->k->plan->amended, (call_amend){.at = {m->own, own}, .call = to, .was = *was, .is = is});
}

/* Deletes what is not kept, puts what is new into places that were free before, or behind all. */
static void plan_edits(matching *m)
{
    struct follow *w = m->k->w;
    const pta_func *shown = &w->shown->funcs.data[m->shown];
    uint32_t had = w->own->funcs.data[m->own].stmts.len, room = 0;
    for (uint32_t i = 0; i < m->old_count; i++)
        if (!m->kept[m->list[i]]) vec_push(&m->k->plan->edits, (pta_edit){m->own, m->list[i], false});
    for (uint32_t i = 0; i < m->new_count; i++) {
        if (m->stmts[i] != FOLLOW_NONE) {
            if (shown->stmts.data[i].kind == PTA_CALL) amend(m, i, m->stmts[i]);
            continue;
        }
        pta_stmt s = own_stmt(m, &shown->stmts.data[i]);
        pta_func *f = &w->own->funcs.data[m->own];
        while (room < had && (!f->stmts.data[room].dead || m->kept[room]))
            room++;
        uint32_t at = room < had ? room++ : f->stmts.len;
        if (at == f->stmts.len)
            vec_push(&f->stmts, s);
        else
            f->stmts.data[at] = s;
        m->stmts[i] = at;
        vec_push(&m->k->plan->edits, (pta_edit){m->own, at, true});
    }
}

void match_function(follow_work *k, uint32_t own, uint32_t shown)
{
    struct follow *w = k->w;
    follow_func *ff = &w->funcs.data[own];
    const pta_func *f = &w->own->funcs.data[own], *g = &w->shown->funcs.data[shown];
    matching m = {.k = k, .own = own, .shown = shown, .old_count = ff->stmt_count, .new_count = g->stmts.len};
    uint32_t vars = f->var_count, stmts = f->stmts.len;
    m.vars = base_alloc((size_t)(g->var_count + 1) * sizeof *m.vars);
    m.back = base_alloc((size_t)(vars + 1) * sizeof *m.back);
    m.stmts = base_alloc((size_t)(g->stmts.len + 1) * sizeof *m.stmts);
    m.kept = base_alloc_zero(stmts + 1, 1);
    m.was = base_alloc((size_t)(m.old_count + 1) * sizeof *m.was);
    m.is = base_alloc((size_t)(m.new_count + 1) * sizeof *m.is);
    m.list = base_alloc((size_t)(m.old_count + 1) * sizeof *m.list);
    memset(m.vars, 0xff, (g->var_count + 1) * sizeof *m.vars);
    memset(m.back, 0xff, (vars + 1) * sizeof *m.back);
    memset(m.stmts, 0xff, (g->stmts.len + 1) * sizeof *m.stmts);
    for (uint32_t i = 0; i < m.old_count; i++) {
        m.list[i] = ff->stmts ? ff->stmts[i] : i;
        m.was[i] = own_hash(w, &f->stmts.data[m.list[i]]);
    }
    for (uint32_t i = 0; i < m.new_count; i++)
        m.is[i] = shown_hash(k, &g->stmts.data[i]);
    pair_statements(&m);
    revive(&m);
    number_variables(&m);
    plan_edits(&m);
    free(ff->vars);
    free(ff->stmts);
    free(ff->shown);
    ff->vars = m.vars;
    ff->stmts = m.stmts;
    ff->var_count = g->var_count;
    ff->stmt_count = g->stmts.len;
    uint32_t count = w->own->funcs.data[own].stmts.len;
    ff->shown = base_alloc((size_t)(count + 1) * sizeof *ff->shown);
    memset(ff->shown, 0xff, (count + 1) * sizeof *ff->shown);
    for (uint32_t i = 0; i < g->stmts.len; i++)
        ff->shown[ff->stmts[i]] = i;
    free(m.back);
    free(m.kept);
    free(m.was);
    free(m.is);
    free(m.list);
}

void match_calls(follow_work *k, uint32_t own, uint32_t shown)
{
    struct follow *w = k->w;
    const follow_func *ff = &w->funcs.data[own];
    const pta_func *g = &w->shown->funcs.data[shown], *f = &w->own->funcs.data[own];
    for (uint32_t i = 0; i < g->stmts.len; i++) {
        if (g->stmts.data[i].kind != PTA_CALL) continue;
        uint32_t to = f->stmts.data[ff->stmts ? ff->stmts[i] : i].ref;
        set_call(w, g->stmts.data[i].ref, to);
        w->own->calls.data[to].makes = w->shown->calls.data[g->stmts.data[i].ref].makes;
        w->own->calls.data[to].addr = w->shown->calls.data[g->stmts.data[i].ref].addr;
    }
}
