/* Random edits of a program. Statements have numbers, function after function; which of them are dead is kept here too,
 * since the edits of one batch must not name a statement twice. The share of dead ones hovers around a few percent, so
 * that the program stays the program. */
#include "tests/tools/pta_law/law.h"

#include "static/pointer/program.h"

enum { DEAD_SHARE = 40 }; /* one of so many statements is dead in the long run */
enum { TRIES = 30 };
enum { NEVER = UINT32_MAX }; /* a stamp: the statement is not the program's */

typedef VEC(uint32_t) number_list;

struct edits {
    pta_program *program;
    uint64_t state;
    uint32_t *first; /* per function: number of its first statement; one more at the end */
    uint32_t count;  /* statements, variants among them */
    bool *dead;
    uint32_t *stamp; /* per statement: batch that has it last */
    uint32_t batch;
    uint32_t *other; /* per statement: its variant or, of a variant, the original; UINT32_MAX: none */
    bool *reached;   /* per function */
    number_list calls, allocations, functions;
    number_list gone;  /* originals that are dead */
    uint32_t *gone_at; /* per statement: its place there */
};

static uint32_t func_of(const edits *e, uint32_t statement)
{
    uint32_t low = 0, high = e->program->funcs.len;
    while (high - low > 1) {
        uint32_t mid = (low + high) / 2;
        if (e->first[mid] <= statement)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* --- variants ---------------------------------------------------------------------------------------------------- */

static uint32_t random_var(uint64_t *state, const pta_func *f, uint32_t otherwise)
{
    for (unsigned i = 0; i < TRIES; i++) {
        const pta_stmt *s = &f->stmts.data[tool_below(state, f->stmts.len)];
        uint32_t var = tool_random(state) & 1 << 20 ? s->src.var : s->dst.var;
        if (s->kind != PTA_CALL && s->kind != PTA_ADDR && var != PTA_NO_VAR) return var;
    }
    return otherwise;
}

static uint32_t random_func(uint64_t *state, const pta_program *program, uint32_t otherwise)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t func = tool_below(state, program->funcs.len);
        if (program->funcs.data[func].lift && program->funcs.data[func].stmts.len) return func;
    }
    return otherwise;
}

/* The object of some statement of any function; of a frame only in its own one. */
static uint32_t random_site(uint64_t *state, const pta_program *program, uint32_t func, uint32_t otherwise)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t from = tool_below(state, program->funcs.len);
        const pta_func *f = &program->funcs.data[from];
        const pta_stmt *s = f->stmts.len ? &f->stmts.data[tool_below(state, f->stmts.len)] : NULL;
        if (!s || s->kind != PTA_ADDR) continue;
        if (program->sites.data[s->ref].kind != PTA_FRAME || from == func) return s->ref;
    }
    return otherwise;
}

static pta_stmt variant_of(pta_program *program, uint32_t func, uint32_t stmt, uint64_t *state)
{
    pta_stmt s = program->funcs.data[func].stmts.data[stmt];
    const pta_func *f = &program->funcs.data[func];
    switch (s.kind) {
    case PTA_CALL: {
        pta_call call = program->calls.data[s.ref];
        if (call.func == PTA_NO_FUNC || !program->funcs.data[call.func].lift)
            call.args[tool_below(state, 3)].var = random_var(state, f, PTA_RDI);
        else
            call.func = random_func(state, program, call.func);
        s.ref = program_add_call(program, call);
        break;
    }
    case PTA_ADDR:
        s.ref = random_site(state, program, func, s.ref);
        break;
    default:
        if (tool_below(state, 3) == 0)
            s.src.delta += 8;
        else if (tool_below(state, 2) == 0)
            s.src.var = random_var(state, f, s.src.var);
        else
            s.dst.var = random_var(state, f, s.dst.var);
    }
    s.dead = true;
    return s;
}

enum { VARIANTS = 6 }; /* one of so many statements has one */

typedef struct {
    uint32_t func, original, variant;
} pairing;

/* --- opening ----------------------------------------------------------------------------------------------------- */

/* Models that allocate, and the wrappers around them. */
static bool *find_allocators(const pta_program *program)
{
    bool *allocates = base_alloc_zero(program->funcs.len, sizeof *allocates), changed = true;
    while (changed) {
        changed = false;
        for (uint32_t f = 0; f < program->funcs.len; f++) {
            const pta_func *func = &program->funcs.data[f];
            for (uint32_t s = 0; func->clone && !allocates[f] && s < func->stmts.len; s++) {
                const pta_stmt *stmt = &func->stmts.data[s];
                uint32_t callee = stmt->kind == PTA_CALL ? program->calls.data[stmt->ref].func : PTA_NO_FUNC;
                allocates[f] = (stmt->kind == PTA_ADDR && program->sites.data[stmt->ref].kind == PTA_HEAP) ||
                               (callee != PTA_NO_FUNC && allocates[callee]);
                changed |= allocates[f];
            }
        }
    }
    return allocates;
}

edits *edits_open(pta_program *program, uint64_t seed)
{
    edits *e = base_alloc_zero(1, sizeof *e);
    e->program = program;
    e->state = tool_seed(seed);
    VEC(pairing) pairs = {0};
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        uint32_t count = pta_may_edit(program, f) ? program->funcs.data[f].stmts.len : 0;
        for (uint32_t s = 0; s < count; s++) {
            if (tool_below(&e->state, VARIANTS)) continue;
            vec_push(&pairs, (pairing){f, s, program->funcs.data[f].stmts.len});
            program_add_stmt(program, f, variant_of(program, f, s, &e->state));
        }
    }
    e->first = base_alloc((program->funcs.len + 1) * sizeof *e->first);
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        e->first[f] = e->count;
        e->count += program->funcs.data[f].stmts.len;
        if (program->funcs.data[f].stmts.len && pta_may_edit(program, f)) vec_push(&e->functions, f);
    }
    e->first[program->funcs.len] = e->count;
    e->dead = base_alloc_zero(e->count, sizeof *e->dead);
    e->stamp = base_alloc_zero(e->count, sizeof *e->stamp);
    e->gone_at = base_alloc_zero(e->count, sizeof *e->gone_at);
    e->other = base_alloc(e->count * sizeof *e->other);
    e->reached = base_alloc_zero(program->funcs.len, sizeof *e->reached);
    memset(e->other, 0xff, e->count * sizeof *e->other);
    for (uint32_t i = 0; i < pairs.len; i++) {
        uint32_t a = e->first[pairs.data[i].func] + pairs.data[i].original,
                 b = e->first[pairs.data[i].func] + pairs.data[i].variant;
        e->other[a] = b;
        e->other[b] = a;
        e->dead[b] = true;
    }
    vec_free(&pairs);
    bool *allocates = find_allocators(program);
    for (uint32_t f = 0; f < program->funcs.len; f++)
        for (uint32_t s = 0; s < program->funcs.data[f].stmts.len; s++) {
            const pta_stmt *stmt = &program->funcs.data[f].stmts.data[s];
            if (!pta_may_edit(program, f)) e->stamp[e->first[f] + s] = NEVER;
            if (stmt->dead) continue;
            uint32_t callee = stmt->kind == PTA_CALL ? program->calls.data[stmt->ref].func : PTA_NO_FUNC;
            if (stmt->kind == PTA_CALL) vec_push(&e->calls, e->first[f] + s);
            if ((stmt->kind == PTA_ADDR && program->sites.data[stmt->ref].kind == PTA_HEAP) ||
                (callee != PTA_NO_FUNC && allocates[callee]))
                vec_push(&e->allocations, e->first[f] + s);
        }
    free(allocates);
    return e;
}

void edits_prefer(edits *e, const pta *p)
{
    pta_instance instance;
    for (uint32_t i = 0; i < pta_instance_count(p); i++)
        if (pta_instance_at(p, i, &instance)) e->reached[instance.func] = true;
}

void edits_close(edits *e)
{
    free(e->first);
    free(e->dead);
    free(e->stamp);
    free(e->other);
    free(e->reached);
    free(e->gone_at);
    vec_free(&e->calls);
    vec_free(&e->allocations);
    vec_free(&e->functions);
    vec_free(&e->gone);
    free(e);
}

/* --- choosing ---------------------------------------------------------------------------------------------------- */

static bool is_variant(const edits *e, uint32_t statement)
{
    return e->other[statement] < statement;
}

static bool is_free(const edits *e, uint32_t statement)
{
    return e->stamp[statement] != e->batch && e->stamp[statement] != NEVER;
}

static void change(edits *e, uint32_t statement, bool insert, edit_list *out)
{
    uint32_t func = func_of(e, statement);
    e->stamp[statement] = e->batch;
    e->dead[statement] = !insert;
    if (!is_variant(e, statement)) {
        if (insert) {
            uint32_t at = e->gone_at[statement], last = e->gone.data[--e->gone.len];
            e->gone.data[at] = last;
            e->gone_at[last] = at;
        } else {
            e->gone_at[statement] = e->gone.len;
            vec_push(&e->gone, statement);
        }
    }
    vec_push(out, (pta_edit){.func = func, .stmt = statement - e->first[func], .insert = insert});
}

/* Each statement of a function that is there goes, or each of its own that is gone comes back. */
static void change_function(edits *e, uint32_t func, bool insert, edit_list *out)
{
    for (uint32_t s = e->first[func]; s < e->first[func + 1]; s++)
        if (is_free(e, s) && e->dead[s] == insert && !(insert && is_variant(e, s))) change(e, s, insert, out);
}

/* One of a list that is there (of all statements, without a list); UINT32_MAX: none found. */
static uint32_t choose(edits *e, const number_list *list)
{
    bool any = tool_below(&e->state, 20) == 0;
    for (unsigned i = 0; i < TRIES && e->count; i++) {
        if (list && !list->len) break;
        uint32_t statement = list ? list->data[tool_below(&e->state, list->len)] : tool_below(&e->state, e->count);
        if (!e->dead[statement] && is_free(e, statement) && (any || e->reached[func_of(e, statement)]))
            return statement;
    }
    return UINT32_MAX;
}

static void replace(edits *e, uint32_t statement, edit_list *out)
{
    uint32_t other = e->other[statement];
    if (other == UINT32_MAX && e->gone.len) { /* one that was there before, of the same function if one is found soon */
        for (unsigned i = 0; i < TRIES; i++) {
            other = e->gone.data[tool_below(&e->state, e->gone.len)];
            if (func_of(e, other) == func_of(e, statement)) break;
        }
    }
    change(e, statement, false, out);
    if (other != UINT32_MAX && other != statement && e->dead[other] && is_free(e, other)) change(e, other, true, out);
}

static void bring_back(edits *e, edit_list *out)
{
    for (unsigned i = 0; i < TRIES && e->gone.len; i++) {
        uint32_t statement = e->gone.data[tool_below(&e->state, e->gone.len)];
        if (!is_free(e, statement)) continue;
        if (tool_below(&e->state, 8))
            change(e, statement, true, out);
        else
            change_function(e, func_of(e, statement), true, out);
        return;
    }
}

static void edit_once(edits *e, edit_list *out)
{
    uint32_t usual = e->count / DEAD_SHARE + 8;
    if (tool_below(&e->state, 2 * usual) < e->gone.len) {
        bring_back(e, out);
        return;
    }
    uint32_t dice = tool_below(&e->state, 100), statement;
    if (dice < 4) {
        uint32_t func = e->functions.len ? e->functions.data[tool_below(&e->state, e->functions.len)] : 0;
        if (e->functions.len) change_function(e, func, false, out);
    } else if ((statement = choose(e, dice < 20 ? &e->calls : dice < 32 ? &e->allocations : NULL)) != UINT32_MAX) {
        if (dice >= 32 && dice < 50)
            replace(e, statement, out);
        else
            change(e, statement, false, out);
    }
}

void edits_next(edits *e, uint32_t count, edit_list *out)
{
    vec_clear(out);
    e->batch++;
    for (; count; count--)
        edit_once(e, out);
}

uint32_t edits_batch(uint64_t *state, uint32_t most)
{
    static const struct {
        uint32_t percent, from, to;
    } sizes[] = {{60, 1, 1}, {25, 2, 20}, {13, 21, 100}, {2, 101, 500}};
    uint32_t dice = tool_below(state, 100), i = 0;
    while (dice >= sizes[i].percent)
        dice -= sizes[i++].percent;
    uint32_t size = sizes[i].from + tool_below(state, sizes[i].to - sizes[i].from + 1);
    return size < most ? size : 1 + (size - 1) % most;
}
