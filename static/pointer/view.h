/* Inside static/pointer: the numbers that answers are in.
 *
 * Functions, variables, sites and calls are those of the program that is shown; instances, contexts and their bases are
 * numbered by what they mean there (view.c). An analysis without a view answers in its own numbers. */
#ifndef RACE_POINTER_VIEW_H
#define RACE_POINTER_VIEW_H

#include "static/pointer/follow.h"

struct pta_view {
    uint32_t *instances, *contexts; /* own numbers by those that are shown */
    uint32_t instance_count, context_count;
    uint32_t *instance_of, *context_of, *base_of; /* the other way round; FOLLOW_NONE: it is not there any more */
};

/* Requires that nothing is left to propagate. */
void view_open(pta *p);
void view_close(pta *p);

static inline const pta_program *view_program(const pta *p)
{
    return p->follow ? p->follow->shown : p->program;
}

/* --- from what is shown ------------------------------------------------------------------------------------------------- */

static inline uint32_t view_instance(const pta *p, uint32_t shown)
{
    return p->view ? p->view->instances[shown] : shown;
}

static inline uint32_t view_context(const pta *p, uint32_t shown)
{
    return p->view ? p->view->contexts[shown] : shown;
}

static inline uint32_t view_func(const pta *p, uint32_t shown)
{
    return p->follow ? p->follow->func.in[shown] : shown;
}

/* A variable of an own function. */
static inline uint32_t view_var(const pta *p, uint32_t func, uint32_t shown)
{
    const uint32_t *vars = p->follow && shown != PTA_NO_VAR ? p->follow->funcs.data[func].vars : NULL;
    return vars ? vars[shown] : shown;
}

/* --- to what is shown --------------------------------------------------------------------------------------------------- */

static inline uint32_t view_func_of(const pta *p, uint32_t own)
{
    return p->follow && own != PTA_NO_FUNC ? p->follow->func.out[own] : own;
}

static inline uint32_t view_site_of(const pta *p, uint32_t own)
{
    return p->follow ? p->follow->site.out[own] : own;
}

static inline uint32_t view_call_of(const pta *p, uint32_t own)
{
    return p->follow && own != UINT32_MAX ? p->follow->call.out[own] : own;
}

static inline uint32_t view_stmt_of(const pta *p, uint32_t func, uint32_t own)
{
    const uint32_t *shown = p->follow ? p->follow->funcs.data[func].shown : NULL;
    return shown ? shown[own] : own;
}

static inline uint32_t view_instance_of(const pta *p, uint32_t own)
{
    return p->view ? p->view->instance_of[own] : own;
}

static inline uint32_t view_context_of(const pta *p, uint32_t own)
{
    return p->view ? p->view->context_of[own] : own;
}

static inline uint32_t view_base_of(const pta *p, uint32_t own)
{
    return p->view ? p->view->base_of[own] : own;
}

#endif
