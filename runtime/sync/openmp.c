/* OpenMP at the interface of its runtime libraries, whose own synchronisation is not seen.
 *
 * A region is named by its function and, with libgomp, by its data. What came before it happens before the bodies, the
 * bodies before what comes after it. The k-th barrier of each thread of a team is the same barrier.
 *
 * A task is named by its function only: with libgomp nothing else is the same where a task is created and where it runs.
 * So a task comes after all that was done before the creation of any task of its function that was created so far; who
 * waits for tasks comes after all that are done; a task with dependences comes after all that are done and have some.
 * This orders more than OpenMP promises, never less. */
#include "runtime/sync/sync.h"

#include <string.h>

static uint64_t hash(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b << 21 | b >> 43)) * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 29) << 6; /* one per line of the core's table of objects */
}

static const uint64_t everything = 0; /* tasks of all teams together */

/* --- regions ------------------------------------------------------------------------------------------------------ */

static void push_team(sync_thread *t, uint64_t id)
{
    if (t->team_depth < SYNC_TEAMS) {
        t->teams[t->team_depth].id = id;
        t->teams[t->team_depth].round = 0;
    }
    t->team_depth++;
}

static void begin_body(sync_thread *t, uint64_t id)
{
    ft_acquire(t->ft, object_make(KIND_REGION, id));
    push_team(t, id);
}

static void end_body(sync_thread *t, uint64_t id)
{
    if (t->team_depth) t->team_depth--;
    ft_release(t->ft, object_make(KIND_REGION_END, id));
}

static void after_region(sync_thread *t, uint64_t id)
{
    ft_acquire(t->ft, object_make(KIND_REGION_END, id));
    ft_acquire(t->ft, object_make(KIND_TASKS_DONE, everything));
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

static bool in_team(const sync_thread *t)
{
    return t->team_depth && t->team_depth <= SYNC_TEAMS;
}

static uint64_t team_object(const sync_thread *t)
{
    return object_make(KIND_TEAM, t->teams[t->team_depth - 1].id);
}

static void enter_barrier(sync_thread *t)
{
    if (in_team(t)) ft_barrier_enter_round(t->ft, team_object(t), t->teams[t->team_depth - 1].round);
}

static void leave_barrier(sync_thread *t, bool is_over)
{
    if (!in_team(t)) return;
    ft_barrier_leave_round(t->ft, team_object(t), t->teams[t->team_depth - 1].round);
    if (is_over) t->teams[t->team_depth - 1].round++;
    if (is_over) ft_acquire(t->ft, object_make(KIND_TASKS_DONE, everything)); /* tasks are done at barriers */
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static void note_dependent(sync_engine *engine, uint64_t function)
{
    uint32_t at = (uint32_t)(hash(function, 0) >> 40) % SYNC_DEPENDENT;
    for (uint32_t i = 0; i < SYNC_DEPENDENT; i++, at = (at + 1) % SYNC_DEPENDENT) {
        uint64_t there = 0;
        if (__atomic_compare_exchange_n(&engine->dependent[at], &there, function, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            there == function)
            return;
    }
}

/* When the table is full, every function is taken as one. */
static bool is_dependent(const sync_engine *engine, uint64_t function)
{
    uint32_t at = (uint32_t)(hash(function, 0) >> 40) % SYNC_DEPENDENT;
    for (uint32_t i = 0; i < SYNC_DEPENDENT; i++, at = (at + 1) % SYNC_DEPENDENT) {
        uint64_t there = __atomic_load_n(&engine->dependent[at], __ATOMIC_ACQUIRE);
        if (there == function) return true;
        if (!there) return false;
    }
    return true;
}

static void create_task(sync_engine *engine, sync_thread *t, uint64_t function, bool has_dependences)
{
    if (has_dependences) note_dependent(engine, function);
    engine->watch(engine->context, function, SYNC_WATCH_TASK);
    ft_release(t->ft, object_make(KIND_TASK, hash(function, 0)));
    if (has_dependences) ft_release(t->ft, object_make(KIND_DEPEND, everything));
}

static void begin_task(sync_engine *engine, sync_thread *t, uint64_t function)
{
    ft_acquire(t->ft, object_make(KIND_TASK, hash(function, 0)));
    if (is_dependent(engine, function)) ft_acquire(t->ft, object_make(KIND_DEPEND, everything));
}

static void end_task(sync_engine *engine, sync_thread *t, uint64_t function)
{
    ft_release(t->ft, object_make(KIND_TASKS_DONE, everything));
    if (is_dependent(engine, function)) ft_release(t->ft, object_make(KIND_DEPEND, everything));
}

/* libgomp's flags of a task are its seventh argument. */
static bool has_dependences(const sync_engine *engine, const sync_call *call)
{
    enum { DEPEND = 8 };
    uint64_t flags;
    return !sync_read(engine, call->stack, &flags, sizeof flags) || flags & DEPEND;
}

/* A pointer on the stack. */
static bool has_target_dependences(const sync_engine *engine, const sync_call *call)
{
    uint64_t depend;
    return sync_read(engine, call->stack + call->row->third * sizeof depend, &depend, sizeof depend) && depend;
}

/* The flags are in front of it: on the stack, too, or the last argument in a register. */
bool openmp_is_task(const sync_engine *engine, const sync_call *call)
{
    enum { NOWAIT = 1 };
    uint64_t flags = call->args[SYNC_ARGS - 1];
    const uint8_t word = call->row->third;
    if (word && !sync_read(engine, call->stack + (word - 1) * sizeof flags, &flags, sizeof flags)) return false;
    return flags & NOWAIT;
}

/* What the runtime calls from now on, until the call returns, comes after what was released there. Tasks that it runs meanwhile have
 * their own order (sync_entered). */
static void begin_wait(sync_thread *t, uint64_t object)
{
    t->waiting = true;
    t->mutex = object;
}

static uint64_t parts_object(const sync_thread *t)
{
    return object_make(KIND_PARTS, in_team(t) ? t->teams[t->team_depth - 1].id : 0);
}

bool openmp_calls_program(const sync_row *row)
{
    return row->meaning == SYNC_TASK_GROUP || row->meaning == SYNC_TASK_PARTS || row->meaning == SYNC_TARGET;
}

void openmp_left(sync_thread *t)
{
    t->waiting = false;
    if (t->published) ft_release(t->ft, parts_object(t)); /* what comes now is not known to them */
    t->published = false;
}

/* The function of a kmp_task_t is its second word. */
static uint64_t function_of(const sync_engine *engine, uint64_t task)
{
    uint64_t function;
    return sync_read(engine, task + 8, &function, sizeof function) ? function : 0;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static uint64_t region_id(const sync_call *call)
{
    return hash(call_object(call), call_argument(call, call->row->other));
}

static uint64_t combine_object(const sync_thread *t)
{
    return object_make(KIND_COMBINE, in_team(t) ? t->teams[t->team_depth - 1].id : 0);
}

void openmp_before(sync_engine *engine, sync_thread *t, const sync_call *call)
{
    uint64_t object = call_object(call), other = call_argument(call, call->row->other);
    switch (call->row->meaning) {
    case SYNC_REGION:
    case SYNC_REGION_START:
        engine->watch(engine->context, object, SYNC_WATCH_REGION);
        ft_release(t->ft, object_make(KIND_REGION, region_id(call)));
        break;
    case SYNC_FORK_CALL:
        engine->watch(engine->context, object, SYNC_WATCH_FORK_CALL);
        ft_release(t->ft, object_make(KIND_REGION, hash(object, 0)));
        break;
    case SYNC_TEAM_BARRIER:
    case SYNC_SINGLE_START:
    case SYNC_SINGLE_END: enter_barrier(t); break;
    case SYNC_TASK:
        create_task(engine, t, object, has_dependences(engine, call));
        break;
    case SYNC_TASK_LOOP: create_task(engine, t, object, false); break;
    case SYNC_TASK_PTR:
    case SYNC_TASK_PTR_LOOP: create_task(engine, t, function_of(engine, object), (int32_t)other > 0); break;
    case SYNC_TASK_ALLOC: engine->watch(engine->context, object, SYNC_WATCH_TASK); break;
    case SYNC_TASK_DONE:
        ft_release(t->ft, object_make(KIND_TASKS_DONE, everything));
        ft_release(t->ft, object_make(KIND_DEPEND, everything));
        break;
    case SYNC_TASK_GROUP:
        ft_release(t->ft, object_make(KIND_TASKS_DONE, everything)); /* what a thread did to its part without a task */
        begin_wait(t, object_make(KIND_TASKS_DONE, everything));
        break;
    case SYNC_TASK_PARTS: begin_wait(t, parts_object(t)); break;
    case SYNC_TARGET:
        if (!openmp_is_task(engine, call)) {
            if (has_target_dependences(engine, call)) begin_wait(t, object_make(KIND_DEPEND, everything));
        } else if (call->row->object != SYNC_NO_ARG) {
            create_task(engine, t, object, has_target_dependences(engine, call));
        }
        break;
    case SYNC_COMBINE:
        if (call->row->object != SYNC_NO_ARG) engine->watch(engine->context, object, SYNC_WATCH_COMBINE);
        ft_release(t->ft, combine_object(t));
        break;
    default: break;
    }
}

void openmp_after(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result)
{
    switch (call->row->meaning) {
    case SYNC_REGION: after_region(t, region_id(call)); break;
    case SYNC_FORK_CALL: after_region(t, hash(call_object(call), 0)); break;
    case SYNC_REGION_END:
        /* which region it was is not said: all that ended before are known */
        ft_acquire(t->ft, object_make(KIND_REGION_END, everything));
        ft_acquire(t->ft, object_make(KIND_TASKS_DONE, everything));
        break;
    case SYNC_TEAM_BARRIER: leave_barrier(t, true); break;
    case SYNC_SINGLE_START:
        if (result) leave_barrier(t, true); /* else it is still to be done: SYNC_SINGLE_END */
        break;
    case SYNC_SINGLE_END:
        leave_barrier(t, false);
        leave_barrier(t, true);
        break;
    case SYNC_TASK_PARTS:
        openmp_left(t);
        ft_acquire(t->ft, parts_object(t));
        break;
    case SYNC_TARGET:
        if (openmp_is_task(engine, call) || !has_target_dependences(engine, call)) break;
        openmp_left(t);
        ft_acquire(t->ft, object_make(KIND_DEPEND, everything));
        ft_release(t->ft, object_make(KIND_DEPEND, everything));
        break;
    case SYNC_TASK_GROUP: openmp_left(t); __attribute__((fallthrough));
    case SYNC_TASK_LOOP:
    case SYNC_TASK_PTR_LOOP:
    case SYNC_TASK_WAIT:
        ft_acquire(t->ft, object_make(KIND_TASKS_DONE, everything));
        ft_acquire(t->ft, object_make(KIND_DEPEND, everything));
        break;
    case SYNC_TASK_ALLOC:
        /* libomp has its own lists of free tasks */
        if (result) ft_clear(t->ft, result, (call->args[3] & 0xffffff) + (call->args[4] & 0xffffff));
        break;
    case SYNC_COMBINE: ft_acquire(t->ft, combine_object(t)); break;
    default: break;
    }
    (void)engine;
}

void sync_entered(sync_engine *engine, sync_thread *t, uint64_t function, sync_watch kind, uint64_t first)
{
    if (t->watched_depth < SYNC_DEPTHS) {
        t->depths[t->watched_depth] = t->depth;
        t->outer[t->watched_depth] = t->waiting ? t->mutex : 0;
    }
    t->waiting = false;
    t->watched_depth++;
    t->depth = 0;
    switch (kind) {
    case SYNC_WATCH_ONCE: break;
    case SYNC_WATCH_REGION: begin_body(t, hash(function, first)); break;
    case SYNC_WATCH_FORK_CALL: begin_body(t, hash(function, 0)); break;
    case SYNC_WATCH_TASK: begin_task(engine, t, function); break;
    case SYNC_WATCH_COMBINE: ft_acquire(t->ft, combine_object(t)); break;
    }
}

void sync_returned(sync_engine *engine, sync_thread *t, uint64_t function, sync_watch kind, uint64_t first)
{
    if (t->watched_depth) t->watched_depth--;
    t->depth = t->watched_depth < SYNC_DEPTHS ? t->depths[t->watched_depth] : 1;
    t->mutex = t->watched_depth < SYNC_DEPTHS ? t->outer[t->watched_depth] : 0;
    t->waiting = t->mutex != 0;
    switch (kind) {
    case SYNC_WATCH_ONCE:
        if (t->once_depth && t->once_depth <= SYNC_ONCES) ft_release(t->ft, t->onces[t->once_depth - 1]);
        break;
    case SYNC_WATCH_REGION:
        end_body(t, hash(function, first));
        ft_release(t->ft, object_make(KIND_REGION_END, everything)); /* for SYNC_REGION_END */
        break;
    case SYNC_WATCH_FORK_CALL: end_body(t, hash(function, 0)); break;
    case SYNC_WATCH_TASK: end_task(engine, t, function); break;
    case SYNC_WATCH_COMBINE: ft_release(t->ft, combine_object(t)); break;
    }
}
