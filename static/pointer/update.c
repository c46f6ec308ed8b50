/* Changes of a program, as edits of its statements: what goes, then what comes. */
#include "static/pointer/delete.h"
#include "static/pointer/view.h"

static bool *dead_flag(const pta *p, const pta_edit *edit)
{
    return &p->program->funcs.data[edit->func].stmts.data[edit->stmt].dead;
}

/* The uses of one statement in all live instances of its function. */
static void statement_uses(const pta *p, uint32_t func, uint32_t stmt, id_list *out)
{
    vec_clear(out);
    for (uint32_t i = 0; i < p->instances_of.data[func].len; i++) {
        const graph_instance *instance = &p->instances.data[p->instances_of.data[func].data[i]];
        if (instance->live && !instance->waiting) vec_push(out, graph_use_of(instance, stmt));
    }
}

/* From scratch; on failure everything is as it was. `current`: but p->plain is up to date. */
static int begin_anew(pta *p, bool current, race_error *error)
{
    pta *fresh;
    if (analysis_open(p->program, &p->options, current ? p->plain : NULL, &fresh, error)) return -1;
    if (current) p->plain = NULL;
    pta old = *p;
    *p = *fresh;
    *fresh = old;
    p->begun = old.begun + 1;
    p->wild_turned_all = true;
    p->follow = old.follow;
    fresh->follow = NULL;
    pta_close(fresh);
    return 0;
}

/* --- what a function or a call is, besides statements ------------------------------------------------------------------------- */

static void switch_program(const pta *p, const update_plan *plan, bool now)
{
    for (uint32_t i = 0; i < plan->amended.len; i++)
        p->program->calls.data[plan->amended.data[i].call] = now ? plan->amended.data[i].is : plan->amended.data[i].was;
    for (uint32_t i = 0; i < plan->switched.len; i++) {
        const func_switch *s = &plan->switched.data[i];
        p->program->funcs.data[s->func].needs = now ? s->needs : s->needed;
        p->program->funcs.data[s->func].clone = now ? s->clone : s->cloned;
    }
}

/* What a function needed before, or needs when all is done. */
static uint16_t needs_of(const pta *p, const update_plan *plan, uint32_t func, bool now)
{
    for (uint32_t i = 0; i < plan->switched.len; i++)
        if (plan->switched.data[i].func == func)
            return now ? plan->switched.data[i].needs : plan->switched.data[i].needed;
    return p->program->funcs.data[func].needs;
}

static void retract_between(pta *p, uint32_t use, pta_key key, uint32_t from, uint32_t to)
{
    for (uint32_t e = p->uses.data[use].edges, next; e != NO_EDGE; e = next) {
        const graph_edge *edge = &p->edges.data[e];
        next = edge->next;
        if (edge->key == key && edge->to == to && edge->from == from) delete_edge(p, e);
    }
}

static bool is_passed(const pta_call *call, uint16_t needs, unsigned a)
{
    return call->args[a].var != PTA_NO_VAR && needs >> a & 1;
}

/* One call edge of a call by name whose arguments or results are other ones: what it passes no more goes, or what it
 * passes now comes. */
static void amend_call(pta *p, const update_plan *plan, const call_amend *a, uint32_t use, uint32_t callee, bool come)
{
    const graph_instance *from = &p->instances.data[p->uses.data[use].instance], *to = &p->instances.data[callee];
    uint16_t needed = needs_of(p, plan, to->func, false), needs = needs_of(p, plan, to->func, true);
    for (unsigned i = 0; i < PTA_PARAMS; i++) {
        bool was = is_passed(&a->was, needed, i), is = is_passed(&a->is, needs, i);
        if (was == is &&
            (!was || (a->was.args[i].var == a->is.args[i].var && a->was.args[i].delta == a->is.args[i].delta)))
            continue;
        if (!come && was) retract_between(p, use, NO_KEY, graph_var(from, a->was.args[i].var), graph_var(to, i));
        if (come && is)
            graph_add_edge(p, graph_var(from, a->is.args[i].var), graph_var(to, i),
                           graph_label_of(p, a->is.args[i].delta, PTA_SAME), use, NO_KEY);
    }
    const uint32_t was[] = {a->was.ret, a->was.ret2}, is[] = {a->is.ret, a->is.ret2};
    for (unsigned i = 0; i < 2; i++) {
        if (was[i] == is[i]) continue;
        if (!come && was[i] != PTA_NO_VAR)
            retract_between(p, use, NO_KEY, graph_var(to, PTA_RET + i), graph_var(from, was[i]));
        if (come && is[i] != PTA_NO_VAR)
            graph_add_edge(p, graph_var(to, PTA_RET + i), graph_var(from, is[i]), 0, use, NO_KEY);
    }
}

static void amend_calls(pta *p, const update_plan *plan, bool come)
{
    id_list uses = {0};
    call_list calls = {0};
    for (uint32_t i = 0; i < plan->amended.len; i++) {
        const call_amend *a = &plan->amended.data[i];
        if (a->whole) continue;
        statement_uses(p, a->at.func, a->at.stmt, &uses);
        for (uint32_t u = 0; u < uses.len; u++) {
            vec_clear(&calls);
            graph_calls_to(p, uses.data[u], a->is.func, NO_KEY, &calls);
            for (uint32_t c = 0; c < calls.len; c++)
                amend_call(p, plan, a, uses.data[u], calls.data[c].callee, come);
        }
    }
    vec_free(&uses);
    vec_free(&calls);
}

/* What calls through pointers pass to a function that needs other parameters now. Calls by name are amended. */
static void change_needs(pta *p, const update_plan *plan, bool come)
{
    for (uint32_t i = 0; i < plan->switched.len; i++) {
        const func_switch *s = &plan->switched.data[i];
        uint16_t bits = come ? s->needs & (uint16_t)~s->needed : s->needed & (uint16_t)~s->needs;
        const id_list *of = &p->instances_of.data[s->func];
        for (uint32_t k = 0; k < of->len && bits; k++) {
            const graph_instance *to = &p->instances.data[of->data[k]];
            for (uint32_t c = 0; c < to->callers.len; c++) {
                call_in in = to->callers.data[c];
                if (in.key == NO_KEY) continue;
                const pta_call *call = &p->program->calls.data[graph_stmt(p, in.use)->ref];
                const graph_instance *from = &p->instances.data[p->uses.data[in.use].instance];
                for (unsigned a = 0; a < PTA_PARAMS; a++) {
                    if (!(bits >> a & 1) || call->args[a].var == PTA_NO_VAR) continue;
                    uint32_t source = graph_var(from, call->args[a].var);
                    if (come)
                        graph_add_edge(p, source, graph_var(to, a), graph_label_of(p, call->args[a].delta, PTA_SAME),
                                       in.use, in.key);
                    else
                        retract_between(p, in.use, in.key, source, graph_var(to, a));
                }
            }
        }
    }
}

/* --- one change ------------------------------------------------------------------------------------------------------------------ */

enum { FORGET_AFTER = 256 }; /* nodes that have become wild, and may have much that lies dormant */

/* Whether a use does something, and its pointer is wild. */
static bool is_wild_use(const pta *p, uint32_t use)
{
    const graph_instance *instance = &p->instances.data[p->uses.data[use].instance];
    return instance->live && !instance->waiting && !graph_stmt(p, use)->dead &&
           set_is_wild(&p->nodes.data[graph_pointer_node(p, use)].set);
}

static void delete_statement(pta *p, uint32_t func, uint32_t stmt, id_list *uses)
{
    statement_uses(p, func, stmt, uses);
    for (uint32_t u = 0; u < uses->len && !p->stale; u++)
        delete_use(p, uses->data[u]);
}

static void insert_statement(pta *p, uint32_t func, uint32_t stmt, id_list *uses)
{
    statement_uses(p, func, stmt, uses);
    for (uint32_t u = 0; u < uses->len && !p->stale; u++)
        graph_add_use(p, uses->data[u]);
}

/* Deletions, then insertions; of both only those that change something. `before`: what is dead now. Calls whose callees
 * get another context are deleted and inserted. */
static int change(pta *p, const update_plan *plan, const bool *before, race_error *error)
{
    id_list uses = {0}, moved = {0}, prone = {0};
    retarget_list targets = {0};
    bool current = p->plain && !p->stale;
    p->wild_turned_all = false;
    vec_clear(&p->wild_turned);
    if (current) {
        p->plain->targets_changed = false;
        if (change(p->plain, plan, before, error)) return -1;
        for (uint32_t i = 0; i < plan->edits.len; i++)
            *dead_flag(p, &plan->edits.data[i]) = before[i];
        switch_program(p, plan, false);
        if (p->plain->targets_changed) context_changed(p, p->plain, &moved, &targets);
        for (uint32_t i = 0; i < moved.len; i++)
            delete_use(p, moved.data[i]);
        for (uint32_t i = 0; i < targets.len; i++)
            if (targets.data[i].gone) delete_call(p, targets.data[i].use, targets.data[i].func, set_wild_key());
        if (p->plain->targets_changed) context_note_plain(p, p->plain);
        prone_follow_plain(p, p->plain, &prone);
    }
    if (!p->stale) {
        change_needs(p, plan, false);
        amend_calls(p, plan, false);
    }
    for (uint32_t i = 0; i < plan->renewed.len; i++)
        delete_statement(p, plan->renewed.data[i].func, plan->renewed.data[i].stmt, &uses);
    for (uint32_t i = 0; i < plan->edits.len; i++) {
        const pta_edit *edit = &plan->edits.data[i];
        bool *dead = dead_flag(p, edit);
        if (edit->insert || *dead) continue;
        delete_statement(p, edit->func, edit->stmt, &uses);
        *dead = true;
    }
    if (!p->stale && !delete_run(p)) p->stale = true;
    if (!p->stale && prone.len) solve_consider(p, prone.data, prone.len);
    switch_program(p, plan, true);
    if (!p->stale) {
        change_needs(p, plan, true);
        amend_calls(p, plan, true);
    }
    for (uint32_t i = 0; i < targets.len && !p->stale; i++)
        if (!targets.data[i].gone && is_wild_use(p, targets.data[i].use))
            graph_call(p, targets.data[i].use, targets.data[i].func, set_wild_key());
    for (uint32_t i = 0; i < plan->edits.len; i++) {
        const pta_edit *edit = &plan->edits.data[i];
        bool *dead = dead_flag(p, edit);
        if (!edit->insert || !*dead) continue;
        *dead = false;
        insert_statement(p, edit->func, edit->stmt, &uses);
    }
    for (uint32_t i = 0; i < plan->renewed.len; i++)
        insert_statement(p, plan->renewed.data[i].func, plan->renewed.data[i].stmt, &uses);
    for (uint32_t i = 0; i < moved.len && !p->stale; i++) {
        const graph_instance *instance = &p->instances.data[p->uses.data[moved.data[i]].instance];
        if (instance->live && !instance->waiting) graph_add_use(p, moved.data[i]);
    }
    vec_free(&uses);
    vec_free(&moved);
    vec_free(&prone);
    vec_free(&targets);
    p->toil = 0;
    p->most = p->options.algorithm == PTA_IPA ? 10000 + 2 * p->scratch : 0;
    if (!p->stale && solve_run(p, error)) return -1;
    if (p->stale) return begin_anew(p, current, error);
    if (p->made_wild > FORGET_AFTER + p->nodes.len / 64) dormant_forget(p);
    return 0;
}

int update_run(pta *p, const update_plan *plan, race_error *error)
{
    VEC(bool) before = {0};
    for (uint32_t i = 0; i < plan->edits.len; i++)
        vec_push(&before, *dead_flag(p, &plan->edits.data[i]));
    int status = change(p, plan, before.data, error);
    if (status) { /* the statements are as they were, and the next change finds out what they mean */
        p->stale = true;
        for (uint32_t i = 0; i < plan->edits.len; i++)
            *dead_flag(p, &plan->edits.data[i]) = before.data[i];
        switch_program(p, plan, false);
    }
    vec_free(&before);
    return status;
}

/* --- edits of statements alone ------------------------------------------------------------------------------------------------ */

bool pta_may_edit(const pta_program *program, uint32_t func)
{
    return func != program->wilderness && func != program->wild_call;
}

int pta_update(pta *p, const pta_edit *edits, uint32_t count, race_error *error)
{
    if (p->options.once) return base_fail(error, "the analysis was made for one result only");
    if (p->follow) return base_fail(error, "the analysis follows programs, not statements");
    update_plan plan = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (!pta_may_edit(p->program, edits[i].func))
            return vec_free(&plan.edits), base_fail(error, "not a statement of the program");
        vec_push(&plan.edits, edits[i]);
    }
    view_close(p);
    int status = update_run(p, &plan, error);
    vec_free(&plan.edits);
    return status;
}
