/* libgomp, by the calls that gcc makes of pragmas.
 *
 * Options: -fopenmp */
/* clang-format off */
#include "rows.h"

#include <omp.h>
#include <stdlib.h>

typedef unsigned long long ull;
typedef void body(void *);
#define MUST(call) ((call) ? (void)0 : row_failed(#call))
void GOMP_atomic_start(void), GOMP_atomic_end(void), GOMP_critical_start(void), GOMP_critical_end(void);
void GOMP_critical_name_start(void **), GOMP_critical_name_end(void **);
void GOMP_barrier(void), GOMP_loop_end(void), GOMP_loop_end_nowait(void), GOMP_sections_end(void),
     GOMP_sections_end_nowait(void);
bool GOMP_barrier_cancel(void), GOMP_loop_end_cancel(void), GOMP_sections_end_cancel(void);
unsigned GOMP_sections_start(unsigned), GOMP_sections_next(void);
bool GOMP_loop_static_start(long, long, long, long, long *, long *), GOMP_loop_static_next(long *, long *);
bool GOMP_loop_ordered_static_start(long, long, long, long, long *, long *), GOMP_loop_ordered_static_next(long *, long *);
void GOMP_ordered_start(void), GOMP_ordered_end(void);
bool GOMP_loop_doacross_static_start(unsigned, long *, long, long *, long *);
bool GOMP_loop_ull_doacross_static_start(unsigned, ull *, ull, ull *, ull *);
void GOMP_doacross_post(long *), GOMP_doacross_wait(long, ...), GOMP_doacross_ull_post(ull *), GOMP_doacross_ull_wait(ull, ...);
void *GOMP_single_copy_start(void);
void GOMP_single_copy_end(void *);
void GOMP_parallel(body *, void *, unsigned, unsigned), GOMP_parallel_start(body *, void *, unsigned), GOMP_parallel_end(void);
void GOMP_parallel_sections(body *, void *, unsigned, unsigned, unsigned);
void GOMP_parallel_sections_start(body *, void *, unsigned, unsigned);
void GOMP_teams_reg(body *, void *, unsigned, unsigned, unsigned);
void GOMP_task(body *, void *, void (*)(void *, void *), long, long, bool, unsigned, void **, int, void *);
void GOMP_taskwait(void), GOMP_taskwait_depend(void **), GOMP_taskgroup_start(void), GOMP_taskgroup_end(void);
void GOMP_taskloop(body *, void *, void (*)(void *, void *), long, long, unsigned, unsigned long, int, long, long, long);
void GOMP_taskloop_ull(body *, void *, void (*)(void *, void *), long, long, unsigned, unsigned long, int, ull, ull, ull);
void GOMP_target_ext(int, body *, size_t, void **, size_t *, unsigned short *, unsigned, void **, void **);
void GOMP_target_update_ext(int, size_t, void **, size_t *, unsigned short *, unsigned, void **);
void GOMP_target_enter_exit_data(int, size_t, void **, size_t *, unsigned short *, unsigned, void **);

/* --- locks, from any thread ------------------------------------------------------------------------------------------------- */

#define SECTION(kind) GOMP_##kind##_start(); GOMP_##kind##_end()
HAND(GOMP_atomic_start, , SECTION(atomic), SECTION(atomic))
HAND(GOMP_atomic_end, , SECTION(atomic), SECTION(atomic))
HAND(GOMP_critical_start, , SECTION(critical), SECTION(critical))
HAND(GOMP_critical_end, , SECTION(critical), SECTION(critical))
LOCKED(GOMP_critical_name_start, , GOMP_critical_name_start(o), GOMP_critical_name_end(o))
LOCKED(GOMP_critical_name_end, , GOMP_critical_name_start(o), GOMP_critical_name_end(o))
LOCKED(omp_set_lock, omp_init_lock(o), omp_set_lock(o), omp_unset_lock(o))
LOCKED(omp_unset_lock, omp_init_lock(o), omp_set_lock(o), omp_unset_lock(o))
LOCKED(omp_test_lock, omp_init_lock(o), MUST(omp_test_lock(o)), omp_unset_lock(o))
LOCKED(omp_set_nest_lock, omp_init_nest_lock(o), omp_set_nest_lock(o), omp_unset_nest_lock(o))
LOCKED(omp_unset_nest_lock, omp_init_nest_lock(o), omp_set_nest_lock(o), omp_unset_nest_lock(o))
LOCKED(omp_test_nest_lock, omp_init_nest_lock(o), MUST(omp_test_nest_lock(o)), omp_unset_nest_lock(o))
FORGETS(omp_init_lock, omp_init_lock(o), omp_set_lock(o), omp_unset_lock(o), omp_init_lock(o))
FORGETS(omp_destroy_lock, omp_init_lock(o), omp_set_lock(o), omp_unset_lock(o), omp_destroy_lock(o))
FORGETS(omp_init_nest_lock, omp_init_nest_lock(o), omp_set_nest_lock(o), omp_unset_nest_lock(o), omp_init_nest_lock(o))
FORGETS(omp_destroy_nest_lock, omp_init_nest_lock(o), omp_set_nest_lock(o), omp_unset_nest_lock(o), omp_destroy_nest_lock(o))

/* --- teams: main and another thread ------------------------------------------------------------------------------------------ */

/* The bodies know themselves by `me`. */
#define TEAM_MORE(name, before, how, after, right, wrong_body, ...)                                                             \
    ROW_FUNCTION name##_body_right(void *argument) { row_place *w = argument; const int me = omp_get_thread_num(); (void)me; right; } \
    ROW_FUNCTION name##_body_wrong(void *argument) { row_place *w = argument; const int me = omp_get_thread_num(); (void)me; wrong_body; } \
    PAIR_MORE(name, team, , , before; body *run = name##_body_right; how; after, , body *run = name##_body_wrong; how,          \
              .wrong = #name "_body_wrong", __VA_ARGS__)
#define IN_TEAM(name, right, racy)                                                                                              \
    TEAM_MORE(name, , GOMP_parallel(run, w, 2, 0), , right, racy, .wrong_other = #name "_body_wrong")

/* What is before the region, in it and behind it is in this order. */
#define REGION(name, how, end)                                                                                                  \
    TEAM_MORE(name, TOUCH, how, TOUCH, if (me) TOUCH; end, TOUCH; end, .wrong_other = #name "_body_wrong")
#define OLD_REGION(name, start, end) REGION(name, start; run(w); GOMP_parallel_end(), end)
#define LOOP(kind, ...)                                                                                                         \
    void GOMP_parallel_loop_##kind(body *, void *, unsigned, long, long, long, __VA_ARGS__ unsigned)
LOOP(static, long,);
LOOP(dynamic, long,);
LOOP(guided, long,);
LOOP(nonmonotonic_dynamic, long,);
LOOP(nonmonotonic_guided, long,);
LOOP(runtime,);
LOOP(nonmonotonic_runtime,);
LOOP(maybe_nonmonotonic_runtime,);
void GOMP_parallel_loop_static_start(body *, void *, unsigned, long, long, long, long);
void GOMP_parallel_loop_dynamic_start(body *, void *, unsigned, long, long, long, long);
void GOMP_parallel_loop_guided_start(body *, void *, unsigned, long, long, long, long);
void GOMP_parallel_loop_runtime_start(body *, void *, unsigned, long, long, long);

REGION(GOMP_parallel, GOMP_parallel(run, w, 2, 0), )
REGION(GOMP_parallel_sections, GOMP_parallel_sections(run, w, 2, 2, 0), GOMP_sections_end_nowait())
#define CHUNKS(name) REGION(name, name(run, w, 2, 0, 2, 1, 1, 0), GOMP_loop_end_nowait())
#define NO_CHUNKS(name) REGION(name, name(run, w, 2, 0, 2, 1, 0), GOMP_loop_end_nowait())
CHUNKS(GOMP_parallel_loop_static)
CHUNKS(GOMP_parallel_loop_dynamic)
CHUNKS(GOMP_parallel_loop_guided)
CHUNKS(GOMP_parallel_loop_nonmonotonic_dynamic)
CHUNKS(GOMP_parallel_loop_nonmonotonic_guided)
NO_CHUNKS(GOMP_parallel_loop_runtime)
NO_CHUNKS(GOMP_parallel_loop_nonmonotonic_runtime)
NO_CHUNKS(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
OLD_REGION(GOMP_parallel_start, GOMP_parallel_start(run, w, 2), )
OLD_REGION(GOMP_parallel_end, GOMP_parallel_start(run, w, 2), )
OLD_REGION(GOMP_parallel_sections_start, GOMP_parallel_sections_start(run, w, 2, 2), GOMP_sections_end_nowait())
OLD_REGION(GOMP_parallel_loop_static_start, GOMP_parallel_loop_static_start(run, w, 2, 0, 2, 1, 1), GOMP_loop_end_nowait())
OLD_REGION(GOMP_parallel_loop_dynamic_start, GOMP_parallel_loop_dynamic_start(run, w, 2, 0, 2, 1, 1), GOMP_loop_end_nowait())
OLD_REGION(GOMP_parallel_loop_guided_start, GOMP_parallel_loop_guided_start(run, w, 2, 0, 2, 1, 1), GOMP_loop_end_nowait())
OLD_REGION(GOMP_parallel_loop_runtime_start, GOMP_parallel_loop_runtime_start(run, w, 2, 0, 2, 1), GOMP_loop_end_nowait())
/* Teams run one after the other, in one thread. */
ROW_FUNCTION teams_body_right(void *argument) { row_place *w = argument; TOUCH; }
ROW_FUNCTION teams_body_wrong(void *argument) { row_place *w = argument; TOUCH; }
PAIR_MORE(GOMP_teams_reg, pair, , , TOUCH; GOMP_teams_reg(teams_body_right, w, 2, 1, 0); TOUCH, TOUCH,
          GOMP_teams_reg(teams_body_wrong, w, 2, 1, 0), .wrong_other = "teams_body_wrong")

/* --- barriers --------------------------------------------------------------------------------------------------------------- */

#define BARRIER(name, start, ...)                                                                                               \
    IN_TEAM(name, start; if (!me) TOUCH; __VA_ARGS__; if (me) TOUCH, start; __VA_ARGS__; TOUCH)
#define STATIC_LOOP ({ long from, to; while (GOMP_loop_static_start(0, 2, 1, 1, &from, &to) && GOMP_loop_static_next(&from, &to)) {} })
#define SECTIONS ({ for (unsigned s = GOMP_sections_start(2); s; s = GOMP_sections_next()) {} })
BARRIER(GOMP_barrier, , GOMP_barrier())
BARRIER(GOMP_barrier_cancel, , GOMP_barrier_cancel())
BARRIER(GOMP_loop_end, STATIC_LOOP, GOMP_loop_end())
BARRIER(GOMP_loop_end_cancel, STATIC_LOOP, GOMP_loop_end_cancel())
BARRIER(GOMP_sections_end, SECTIONS, GOMP_sections_end())
BARRIER(GOMP_sections_end_cancel, SECTIONS, GOMP_sections_end_cancel())
#define SINGLE(name)                                                                                                            \
    IN_TEAM(name, if (GOMP_single_copy_start()) { TOUCH; } else { TOUCH; GOMP_single_copy_end(w); },                            \
            if (GOMP_single_copy_start()) { TOUCH; } else { GOMP_single_copy_end(w); TOUCH; })
SINGLE(GOMP_single_copy_start)
SINGLE(GOMP_single_copy_end)

/* --- ordered loops ---------------------------------------------------------------------------------------------------------- */

#define ORDERED_LOOP(...)                                                                                                       \
    ({                                                                                                                          \
        long from, to;                                                                                                          \
        if (GOMP_loop_ordered_static_start(0, 2, 1, 1, &from, &to)) {                                                           \
            do {                                                                                                                \
                GOMP_ordered_start();                                                                                           \
                __VA_ARGS__;                                                                                                    \
            } while (GOMP_loop_ordered_static_next(&from, &to));                                                                \
        }                                                                                                                       \
        GOMP_loop_end_nowait();                                                                                                 \
    })
#define ORDERED(name) IN_TEAM(name, ORDERED_LOOP(TOUCH; GOMP_ordered_end()), ORDERED_LOOP(GOMP_ordered_end(); TOUCH))
ORDERED(GOMP_ordered_start)
ORDERED(GOMP_ordered_end)

#define ACROSS(type, start, first, second)                                                                                      \
    ({                                                                                                                          \
        type counts[1] = {2}, from, to;                                                                                         \
        if (start(1, counts, 0, &from, &to)) {                                                                                  \
            if (from == 0) { first; } else { second; }                                                                          \
        }                                                                                                                       \
        GOMP_loop_end_nowait();                                                                                                 \
    })
#define POST(type, post) ({ type at[1] = {0}; post(at); })
#define DOACROSS(name, type, start, post, wait)                                                                                 \
    IN_TEAM(name, ACROSS(type, start, TOUCH; POST(type, post), wait(0); TOUCH), ACROSS(type, start, POST(type, post); TOUCH,    \
          wait(0); TOUCH))
DOACROSS(GOMP_doacross_post, long, GOMP_loop_doacross_static_start, GOMP_doacross_post, GOMP_doacross_wait)
DOACROSS(GOMP_doacross_wait, long, GOMP_loop_doacross_static_start, GOMP_doacross_post, GOMP_doacross_wait)
DOACROSS(GOMP_doacross_ull_post, ull, GOMP_loop_ull_doacross_static_start, GOMP_doacross_ull_post, GOMP_doacross_ull_wait)
DOACROSS(GOMP_doacross_ull_wait, ull, GOMP_loop_ull_doacross_static_start, GOMP_doacross_ull_post, GOMP_doacross_ull_wait)

/* --- tasks: main creates them, and the other thread runs them, since main waits for that ------------------------------------------- */

#define TASK_FUNCTIONS(name)                                                                                                    \
    ROW_FUNCTION name##_task_right(void *argument) { row_place *w = *(row_place **)argument; TOUCH; row_post(); }               \
    ROW_FUNCTION name##_task_wrong(void *argument) { row_place *w = *(row_place **)argument; TOUCH; row_post(); }
#define CREATE(task, flags, depend) GOMP_task(task, &w, NULL, sizeof w, sizeof w, true, flags, depend, 0, NULL)
enum { DEPEND = 8 };
static void *depends[] = {(void *)1, (void *)1, &depends}; /* one, which is written */
#define TASK(name, begin, flags, depend, ...)                                                                                   \
    TASK_FUNCTIONS(name)                                                                                                        \
    TEAM_MORE(name, , GOMP_parallel(run, w, 2, 0), ,                                                                            \
              if (!me) { begin; TOUCH; CREATE(name##_task_right, flags, depend); row_wait(); __VA_ARGS__; TOUCH; },             \
              if (!me) { begin; CREATE(name##_task_wrong, flags, depend); row_wait(); TOUCH; __VA_ARGS__; },                    \
              .wrong_other = #name "_task_wrong")
TASK(GOMP_task, , 0, NULL, GOMP_taskwait())
TASK(GOMP_taskwait, , 0, NULL, GOMP_taskwait())
TASK(GOMP_taskgroup_end, GOMP_taskgroup_start(), 0, NULL, GOMP_taskgroup_end())
TASK(GOMP_taskwait_depend, , DEPEND, depends, GOMP_taskwait_depend(depends))
TASK(GOMP_target_update_ext, , DEPEND, depends, GOMP_target_update_ext(-1, 0, NULL, NULL, NULL, 0, depends))
TASK(GOMP_target_enter_exit_data, , DEPEND, depends, GOMP_target_enter_exit_data(-1, 0, NULL, NULL, NULL, 0, depends))

typedef struct {
    long from, to;
    row_place *place;
} part;
#define TASKLOOP(name)                                                                                                          \
    ROW_FUNCTION name##_task_right(void *argument)                                                                              \
    {                                                                                                                           \
        const part *p = argument;                                                                                               \
        row_place *w = p->place;                                                                                                \
        row_meet(p->from == 0);                                                                                                 \
        if (omp_get_thread_num()) TOUCH;                                                                                        \
    }                                                                                                                           \
    ROW_FUNCTION name##_task_wrong(void *argument)                                                                              \
    {                                                                                                                           \
        const part *p = argument;                                                                                               \
        row_place *w = p->place;                                                                                                \
        row_meet(p->from == 0);                                                                                                 \
        TOUCH;                                                                                                                  \
    }                                                                                                                           \
    TEAM_MORE(name, , GOMP_parallel(run, w, 2, 0), ,                                                                            \
              if (!me) { part p = {.place = w}; TOUCH; name(name##_task_right, &p, NULL, sizeof p, 8, PARTS, 2, 0, 0, 2, 1); TOUCH; }, \
              if (!me) { part p = {.place = w}; name(name##_task_wrong, &p, NULL, sizeof p, 8, PARTS, 2, 0, 0, 2, 1); },        \
              .wrong = #name "_task_wrong", .wrong_other = #name "_task_wrong")
enum { PARTS = 1 << 8 | 1 << 10 }; /* upwards, and not at once */
TASKLOOP(GOMP_taskloop)
TASKLOOP(GOMP_taskloop_ull)

static row_place *current;
ROW_FUNCTION target_right(void *unused) { (void)unused; current->data++; row_post(); }
ROW_FUNCTION target_wrong(void *unused) { (void)unused; current->data++; row_post(); }
#define TARGET(function) GOMP_target_ext(-1, function, 0, (void *[]){NULL}, NULL, NULL, NOWAIT, NULL, (void *[]){NULL}); row_wait()
enum { NOWAIT = 1 };
TEAM_MORE(GOMP_target_ext, current = w, current = w; GOMP_parallel(run, w, 2, 0), ,
          if (!me) { TOUCH; TARGET(target_right); GOMP_taskwait(); TOUCH; }, if (!me) { TARGET(target_wrong); TOUCH; },
     .wrong_other = "target_wrong")

enum { DETACH = 1 << 13 };
static omp_event_handle_t event;
/* Main runs it, while the other thread waits. */
ROW_FUNCTION only_post(void *unused) { (void)unused; row_post(); }
#define DETACHED GOMP_task(only_post, (void *[]){NULL}, NULL, sizeof w, sizeof w, true, DETACH, NULL, 0, &event)
IN_TEAM(omp_fulfill_event, if (!me) { DETACHED; GOMP_taskwait(); TOUCH; } else { row_wait(); TOUCH; omp_fulfill_event(event); },
        if (!me) { DETACHED; GOMP_taskwait(); TOUCH; } else { row_wait(); omp_fulfill_event(event); TOUCH; })

/* --- reductions that tasks take part in ----------------------------------------------------------------------------------------- */

#define REDUCTION(name)                                                                                                         \
    ROW_FUNCTION name##_sum_right(row_place *w) { TOUCH; }                                                                      \
    ROW_FUNCTION name##_sum_wrong(row_place *w) { TOUCH; }                                                                      \
    ROW_FUNCTION name##_reduce_right(row_place *w)                                                                              \
    {                                                                                                                           \
        int sum = 0;                                                                                                            \
        TOUCH;                                                                                                                  \
        _Pragma("omp parallel reduction(task, + : sum) num_threads(2)")                                                         \
        {                                                                                                                       \
            if (omp_get_thread_num()) name##_sum_right(w);                                                                      \
            _Pragma("omp task in_reduction(+ : sum)") sum++;                                                                    \
        }                                                                                                                       \
        w->data += sum;                                                                                                         \
    }                                                                                                                           \
    ROW_FUNCTION name##_reduce_wrong(row_place *w)                                                                              \
    {                                                                                                                           \
        int sum = 0;                                                                                                            \
        _Pragma("omp parallel reduction(task, + : sum) num_threads(2)")                                                         \
        {                                                                                                                       \
            name##_sum_wrong(w);                                                                                                \
            _Pragma("omp task in_reduction(+ : sum)") sum++;                                                                    \
        }                                                                                                                       \
        w->data += sum;                                                                                                         \
    }                                                                                                                           \
    PAIR_MORE(name, reduction, , , name##_reduce_right(w), , name##_reduce_wrong(w), .wrong = #name "_sum_wrong",               \
              .wrong_other = #name "_sum_wrong")
REDUCTION(GOMP_parallel_reductions)
REDUCTION(GOMP_workshare_task_reduction_unregister)
