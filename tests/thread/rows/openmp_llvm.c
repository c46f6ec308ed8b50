/* libomp, by the calls that clang makes of pragmas.
 *
 * Compiler: clang
 * Options: -fopenmp=libomp */
/* clang-format off */
#include "rows.h"

#include <stdint.h>

#define MUST(call) ((call) ? (void)0 : row_failed(#call))
typedef struct {
    int reserved, flags, more, size;
    const char *source;
} ident;
static ident at = {0, 2, 0, 22, ";unknown;unknown;0;0;;"};
typedef void microtask(int *, int *, ...);
typedef int entry(int, void *);
typedef struct {
    void *shareds;
    entry *routine;
    int32_t part;
    void *data[2];
    uint64_t from, to; /* of taskloop */
    int64_t step;
    int32_t last;
} task;
typedef struct {
    intptr_t address;
    size_t size;
    unsigned char flags;
} dependence;
#define WEAK __attribute__((weak))
#define LOC ident *, int
int __kmpc_global_thread_num(ident *);
void __kmpc_push_num_threads(LOC, int), __kmpc_push_num_teams(LOC, int, int);
void __kmpc_fork_call(ident *, int, microtask *, ...), __kmpc_fork_teams(ident *, int, microtask *, ...);
void __kmpc_barrier(LOC);
int __kmpc_cancel_barrier(LOC);
void __kmpc_critical(LOC, void *), __kmpc_critical_with_hint(LOC, void *, uint32_t), __kmpc_end_critical(LOC, void *);
void __kmpc_init_lock(LOC, void *), __kmpc_set_lock(LOC, void *), __kmpc_unset_lock(LOC, void *);
void __kmpc_init_nest_lock(LOC, void *), __kmpc_set_nest_lock(LOC, void *), __kmpc_unset_nest_lock(LOC, void *);
int __kmpc_test_lock(LOC, void *), __kmpc_test_nest_lock(LOC, void *);
void __kmpc_doacross_init(LOC, int, void *), __kmpc_doacross_post(LOC, const int64_t *), __kmpc_doacross_wait(LOC,
     const int64_t *);
void __kmpc_doacross_fini(LOC);
void __kmpc_dispatch_init_4(LOC, int, int, int, int, int), __kmpc_dispatch_fini_4(LOC);
int __kmpc_dispatch_next_4(LOC, int *, int *, int *, int *);
void __kmpc_ordered(LOC), __kmpc_end_ordered(LOC);
void __kmpc_copyprivate(LOC, size_t, void *, void (*)(void *, void *), int);
int __kmpc_reduce(LOC, int, size_t, void *, void (*)(void *, void *), void *);
int __kmpc_reduce_nowait(LOC, int, size_t, void *, void (*)(void *, void *), void *);
void __kmpc_end_reduce(LOC, void *), __kmpc_end_reduce_nowait(LOC, void *);
void __kmpc_taskgroup(LOC), __kmpc_end_taskgroup(LOC);
task *__kmpc_omp_task_alloc(LOC, int, size_t, size_t, entry *);
WEAK task *__kmpc_omp_target_task_alloc(LOC, int, size_t, size_t, entry *, int64_t);
int __kmpc_omp_task(LOC, task *), __kmpc_omp_task_parts(LOC, task *), __kmpc_omp_taskwait(LOC);
int __kmpc_omp_task_with_deps(LOC, task *, int, dependence *, int, dependence *);
void __kmpc_omp_wait_deps(LOC, int, dependence *, int, dependence *);
WEAK void __kmpc_omp_taskwait_deps_51(LOC, int, dependence *, int, dependence *, int);
void __kmpc_taskloop(LOC, task *, int, uint64_t *, uint64_t *, int64_t, int, int, uint64_t, void *);
WEAK void __kmpc_taskloop_5(LOC, task *, int, uint64_t *, uint64_t *, int64_t, int, int, uint64_t, int, void *);
void *__kmpc_task_reduction_modifier_init(LOC, int, int, void *), *__kmpc_taskred_modifier_init(LOC, int, int, void *);
void *__kmpc_task_reduction_get_th_data(int, void *, void *);
void __kmpc_task_reduction_modifier_fini(LOC, int);

/* --- locks, from any thread ------------------------------------------------------------------------------------------------- */

#define HERE &at, __kmpc_global_thread_num(&at)
LOCKED(__kmpc_critical, , __kmpc_critical(HERE, o), __kmpc_end_critical(HERE, o))
LOCKED(__kmpc_end_critical, , __kmpc_critical(HERE, o), __kmpc_end_critical(HERE, o))
LOCKED(__kmpc_critical_with_hint, , __kmpc_critical_with_hint(HERE, o, 0), __kmpc_end_critical(HERE, o))
LOCKED(__kmpc_set_lock, __kmpc_init_lock(HERE, o), __kmpc_set_lock(HERE, o), __kmpc_unset_lock(HERE, o))
LOCKED(__kmpc_unset_lock, __kmpc_init_lock(HERE, o), __kmpc_set_lock(HERE, o), __kmpc_unset_lock(HERE, o))
LOCKED(__kmpc_test_lock, __kmpc_init_lock(HERE, o), MUST(__kmpc_test_lock(HERE, o)), __kmpc_unset_lock(HERE, o))
LOCKED(__kmpc_set_nest_lock, __kmpc_init_nest_lock(HERE, o), __kmpc_set_nest_lock(HERE, o), __kmpc_unset_nest_lock(HERE, o))
LOCKED(__kmpc_unset_nest_lock, __kmpc_init_nest_lock(HERE, o), __kmpc_set_nest_lock(HERE, o), __kmpc_unset_nest_lock(HERE, o))
LOCKED(__kmpc_test_nest_lock, __kmpc_init_nest_lock(HERE, o), MUST(__kmpc_test_nest_lock(HERE, o)),
     __kmpc_unset_nest_lock(HERE, o))

/* --- teams: main and another thread ------------------------------------------------------------------------------------------ */

/* The bodies know themselves by `me`, which is 0 in main, and the runtime by `g`. */
#define TEAM_MORE(name, before, how, after, right, wrong_body, ...)                                                             \
    ROW_FUNCTION name##_body_right(int *g, int *m, row_place *w) { const int me = *m; (void)me; right; }                        \
    ROW_FUNCTION name##_body_wrong(int *g, int *m, row_place *w) { const int me = *m; (void)me; wrong_body; }                   \
    PAIR_MORE(name, team, , , before; microtask *run = (microtask *)name##_body_right; how; after, ,                            \
              microtask *run = (microtask *)name##_body_wrong; how, .wrong = #name "_body_wrong", __VA_ARGS__)
#define FORK __kmpc_push_num_threads(HERE, 2); __kmpc_fork_call(&at, 1, run, w)
#define IN_TEAM(name, right, racy) TEAM_MORE(name, , FORK, , right, racy, .wrong_other = #name "_body_wrong")

/* What is before the region, in it and behind it is in this order. */
TEAM_MORE(__kmpc_fork_call, TOUCH, FORK, TOUCH, if (me) TOUCH, TOUCH, .wrong_other = "__kmpc_fork_call_body_wrong")
TEAM_MORE(__kmpc_fork_teams, TOUCH; w->number = __kmpc_global_thread_num(&at), __kmpc_push_num_teams(HERE, 2, 1);
     __kmpc_fork_teams(&at, 1, run, w), TOUCH,
          if (__kmpc_global_thread_num(&at) != w->number) TOUCH, TOUCH, .wrong_other = "__kmpc_fork_teams_body_wrong")

IN_TEAM(__kmpc_barrier, if (me) TOUCH; __kmpc_barrier(&at, *g); if (!me) TOUCH, __kmpc_barrier(&at, *g); TOUCH)
IN_TEAM(__kmpc_cancel_barrier, if (me) TOUCH; __kmpc_cancel_barrier(&at, *g); if (!me) TOUCH, __kmpc_cancel_barrier(&at, *g);
     TOUCH)

static void copy(void *to, void *from) { (void)to, (void)from; }
#define COPY __kmpc_copyprivate(&at, *g, 1, w->a, copy, !me)
IN_TEAM(__kmpc_copyprivate, if (!me) TOUCH; COPY; if (me) TOUCH, COPY; TOUCH)

#define REDUCED(reduce, right, racy) if (reduce(&at, *g, 1, 1, w->a, copy, w->b) == 1) { right; } racy
#define REDUCE(name, reduce, end)                                                                                               \
    IN_TEAM(name, REDUCED(reduce, TOUCH; end(&at, *g, w->b), ), REDUCED(reduce, end(&at, *g, w->b), TOUCH))
REDUCE(__kmpc_reduce, __kmpc_reduce, __kmpc_end_reduce)
REDUCE(__kmpc_end_reduce, __kmpc_reduce, __kmpc_end_reduce)
REDUCE(__kmpc_reduce_nowait, __kmpc_reduce_nowait, __kmpc_end_reduce_nowait)
REDUCE(__kmpc_end_reduce_nowait, __kmpc_reduce_nowait, __kmpc_end_reduce_nowait)

/* --- ordered loops ---------------------------------------------------------------------------------------------------------- */

enum { ORDERED_STATIC = 65 };
#define ORDERED_LOOP(...)                                                                                                       \
    ({                                                                                                                          \
        int last, from, to, step;                                                                                               \
        __kmpc_dispatch_init_4(&at, *g, ORDERED_STATIC, 0, 1, 1, 1);                                                            \
        while (__kmpc_dispatch_next_4(&at, *g, &last, &from, &to, &step)) {                                                     \
            __kmpc_ordered(&at, *g);                                                                                            \
            __VA_ARGS__;                                                                                                        \
            __kmpc_dispatch_fini_4(&at, *g);                                                                                    \
        }                                                                                                                       \
    })
#define ORDERED(name) IN_TEAM(name, ORDERED_LOOP(TOUCH; __kmpc_end_ordered(&at, *g)), ORDERED_LOOP(__kmpc_end_ordered(&at, *g); TOUCH))
ORDERED(__kmpc_ordered)
ORDERED(__kmpc_end_ordered)

#define ACROSS(first, ...)                                                                                                      \
    ({                                                                                                                          \
        int64_t bounds[3] = {0, 1, 1}, zero = 0;                                                                                \
        __kmpc_doacross_init(&at, *g, 1, bounds);                                                                               \
        if (!me) { first; } else { __VA_ARGS__; }                                                                               \
        __kmpc_doacross_fini(&at, *g);                                                                                          \
    })
#define POST __kmpc_doacross_post(&at, *g, &zero)
#define WAIT __kmpc_doacross_wait(&at, *g, &zero)
IN_TEAM(__kmpc_doacross_post, ACROSS(TOUCH; POST, WAIT; TOUCH), ACROSS(POST; TOUCH, WAIT; TOUCH))
IN_TEAM(__kmpc_doacross_wait, ACROSS(TOUCH; POST, WAIT; TOUCH), ACROSS(POST; TOUCH, WAIT; TOUCH))

/* --- tasks: main creates them, and the other thread runs them, since main waits for that ------------------------------------------- */

enum { TIED = 1, READ_AND_WRITE = 3 };
#define TASK_FUNCTION(name, ...)                                                                                                \
    __attribute__((noinline)) static int name(int thread, void *argument)                                                       \
    {                                                                                                                           \
        const task *t = argument;                                                                                               \
        row_place *w = *(row_place **)t->shareds;                                                                               \
        (void)thread;                                                                                                           \
        __VA_ARGS__;                                                                                                            \
        return 0;                                                                                                               \
    }
#define ALLOCATED(alloc, ...) ({ task *new = alloc(&at, *g, TIED, sizeof(task), sizeof w, __VA_ARGS__); *(row_place **)new->shareds = w; new; })
#define NEW(routine) ALLOCATED(__kmpc_omp_task_alloc, routine)
#define NEW_TARGET(routine) ALLOCATED(__kmpc_omp_target_task_alloc, routine, -1)
#define DEPENDS 1, &(dependence){(intptr_t)w->a, 1, READ_AND_WRITE}, 0, NULL
#define TASK(name, new, begin, create, ...)                                                                                     \
    TASK_FUNCTION(name##_task_right, TOUCH; row_post())                                                                         \
    TASK_FUNCTION(name##_task_wrong, TOUCH; row_post())                                                                         \
    TEAM_MORE(name, , FORK, ,                                                                                                   \
              if (!me) { begin; TOUCH; task *t = new(name##_task_right); create; row_wait(); __VA_ARGS__; TOUCH; },             \
              if (!me) { begin; task *t = new(name##_task_wrong); create; row_wait(); TOUCH; __VA_ARGS__; },                    \
              .wrong_other = #name "_task_wrong")
#define RUN __kmpc_omp_task(&at, *g, t)
#define RUN_PARTS __kmpc_omp_task_parts(&at, *g, t)
#define RUN_DEPENDENT ({ __kmpc_omp_task_with_deps(&at, *g, t, DEPENDS); })
#define TASKWAIT __kmpc_omp_taskwait(&at, *g)
TASK(__kmpc_omp_task_alloc, NEW, , RUN, TASKWAIT)
TASK(__kmpc_omp_target_task_alloc, NEW_TARGET, , RUN, TASKWAIT)
TASK(__kmpc_omp_task, NEW, , RUN, TASKWAIT)
TASK(__kmpc_omp_task_parts, NEW, , RUN_PARTS, TASKWAIT)
TASK(__kmpc_omp_task_with_deps, NEW, , RUN_DEPENDENT, TASKWAIT)
TASK(__kmpc_omp_taskwait, NEW, , RUN, TASKWAIT)
TASK(__kmpc_end_taskgroup, NEW, __kmpc_taskgroup(&at, *g), RUN, __kmpc_end_taskgroup(&at, *g))
TASK(__kmpc_omp_wait_deps, NEW, , RUN_DEPENDENT, ({ __kmpc_omp_wait_deps(&at, *g, DEPENDS); }))
TASK(__kmpc_omp_taskwait_deps_51, NEW, , RUN_DEPENDENT, ({ __kmpc_omp_taskwait_deps_51(&at, *g, DEPENDS, 0); }))

#define TASKLOOP(name, ...)                                                                                                     \
    TASK_FUNCTION(name##_task_right, row_meet(t->from == 0); if (thread != w->number) TOUCH)                                    \
    TASK_FUNCTION(name##_task_wrong, row_meet(t->from == 0); TOUCH)                                                             \
    TEAM_MORE(name, , FORK, ,                                                                                                   \
              if (!me) { w->number = *g; TOUCH; task *t = NEW(name##_task_right); t->from = 0; t->to = 1; t->step = 1; __VA_ARGS__; TOUCH; }, \
              if (!me) { task *t = NEW(name##_task_wrong); t->from = 0; t->to = 1; t->step = 1; __VA_ARGS__; },                 \
              .wrong = #name "_task_wrong", .wrong_other = #name "_task_wrong")
enum { NUMBER_OF_TASKS = 2 };
TASKLOOP(__kmpc_taskloop, __kmpc_taskloop(&at, *g, t, 1, &t->from, &t->to, 1, 0, NUMBER_OF_TASKS, 2, NULL))
TASKLOOP(__kmpc_taskloop_5, __kmpc_taskloop_5(&at, *g, t, 1, &t->from, &t->to, 1, 0, NUMBER_OF_TASKS, 2, 0, NULL))

/* --- reductions that tasks take part in: one thread makes the parts for all, the last one combines them ------------------------------ */

typedef struct {
    void *shared, *original;
    size_t size;
    void *init, *fini, *combine;
    unsigned flags;
} reduction;
typedef struct { /* the older one */
    void *shared;
    size_t size;
    void *init, *fini, *combine;
    unsigned flags;
} old_reduction;
static void set_part(volatile int *part, int *original) { (void)original; *part = 1; }
static void set_old_part(volatile int *part) { *part = 1; }
static void combine(volatile int *to, volatile int *from) { *to += *from; }
#define PARTS(make, type, set, ...)                                                                                             \
    type r = {.shared = w->a, .size = sizeof(int), .init = (void *)set, .combine = (void *)combine, __VA_ARGS__};               \
    void *parts = make(&at, *g, 0, 1, &r);                                                                                      \
    volatile int *mine = __kmpc_task_reduction_get_th_data(*g, parts, w->a);                                                    \
    ++*mine;                                                                                                                    \
    __kmpc_task_reduction_modifier_fini(&at, *g, 0)
#define REDUCES(name, ...) IN_TEAM(name, ({ PARTS(__VA_ARGS__); }), TOUCH; ({ PARTS(__VA_ARGS__); }))
REDUCES(__kmpc_taskred_modifier_init, __kmpc_taskred_modifier_init, reduction, set_part, .original = w->a)
REDUCES(__kmpc_task_reduction_modifier_init, __kmpc_task_reduction_modifier_init, old_reduction, set_old_part, .flags = 0)
REDUCES(__kmpc_task_reduction_modifier_fini, __kmpc_taskred_modifier_init, reduction, set_part, .original = w->a)
