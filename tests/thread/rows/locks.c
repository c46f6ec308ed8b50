/* Locks, conditions, semaphores, barriers, what runs once, and threads: POSIX, C11, and the guards of C++.
 *
 * Options: -lstdc++ */
/* clang-format off */
#include "rows.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define MUST(call) ((call) ? (void)0 : row_failed(#call))
static const struct timespec late = {.tv_sec = 1L << 33};

/* --- mutexes ---------------------------------------------------------------------------------------------------------- */

#define M ((pthread_mutex_t *)o)
#define M_INIT MUST(!pthread_mutex_init(M, NULL))
#define M_LOCK MUST(!pthread_mutex_lock(M))
#define M_UNLOCK MUST(!pthread_mutex_unlock(M))
LOCKED(pthread_mutex_lock, M_INIT, M_LOCK, M_UNLOCK)
LOCKED(pthread_mutex_unlock, M_INIT, M_LOCK, M_UNLOCK)
LOCKED(pthread_mutex_trylock, M_INIT, MUST(!pthread_mutex_trylock(M)), M_UNLOCK)
LOCKED(pthread_mutex_timedlock, M_INIT, MUST(!pthread_mutex_timedlock(M, &late)), M_UNLOCK)
LOCKED(pthread_mutex_clocklock, M_INIT, MUST(!pthread_mutex_clocklock(M, CLOCK_MONOTONIC, &late)), M_UNLOCK)
FORGETS(pthread_mutex_init, M_INIT, M_LOCK, M_UNLOCK, M_INIT)
FORGETS(pthread_mutex_destroy, M_INIT, M_LOCK, M_UNLOCK, ({ MUST(!pthread_mutex_destroy(M));
     *M = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }))

#define C ((mtx_t *)o)
#define C_INIT MUST(mtx_init(C, mtx_timed) == thrd_success)
#define C_LOCK MUST(mtx_lock(C) == thrd_success)
#define C_UNLOCK MUST(mtx_unlock(C) == thrd_success)
LOCKED(mtx_lock, C_INIT, C_LOCK, C_UNLOCK)
LOCKED(mtx_unlock, C_INIT, C_LOCK, C_UNLOCK)
LOCKED(mtx_trylock, C_INIT, MUST(mtx_trylock(C) == thrd_success), C_UNLOCK)
LOCKED(mtx_timedlock, C_INIT, MUST(mtx_timedlock(C, &late) == thrd_success), C_UNLOCK)
FORGETS(mtx_init, C_INIT, C_LOCK, C_UNLOCK, C_INIT)
FORGETS(mtx_destroy, C_INIT, C_LOCK, C_UNLOCK, mtx_destroy(C); memset(C, 0, sizeof *C))

#define S ((pthread_spinlock_t *)o)
#define S_INIT MUST(!pthread_spin_init(S, 0))
#define S_LOCK MUST(!pthread_spin_lock(S))
#define S_UNLOCK MUST(!pthread_spin_unlock(S))
LOCKED(pthread_spin_lock, S_INIT, S_LOCK, S_UNLOCK)
LOCKED(pthread_spin_unlock, S_INIT, S_LOCK, S_UNLOCK)
LOCKED(pthread_spin_trylock, S_INIT, MUST(!pthread_spin_trylock(S)), S_UNLOCK)
FORGETS(pthread_spin_init, S_INIT, S_LOCK, S_UNLOCK, S_INIT)
FORGETS(pthread_spin_destroy, S_INIT, S_LOCK, S_UNLOCK, MUST(!pthread_spin_destroy(S)))

/* --- reader-writer locks ------------------------------------------------------------------------------------------------ */

#define R ((pthread_rwlock_t *)w->a)
#define R_INIT MUST(!pthread_rwlock_init(R, NULL))
#define R_READ MUST(!pthread_rwlock_rdlock(R))
#define R_WRITE MUST(!pthread_rwlock_wrlock(R))
#define R_UNLOCK MUST(!pthread_rwlock_unlock(R))
/* Who reads comes after who wrote; who writes while reading is not alone. */
#define READ_LOCK(name, ...)                                                                                                    \
    PAIR(name, R_INIT, R_WRITE; TOUCH; R_UNLOCK, MUST(!(__VA_ARGS__)); TOUCH; R_UNLOCK, R_READ; TOUCH; R_UNLOCK,                \
         MUST(!(__VA_ARGS__)); TOUCH; R_UNLOCK)
READ_LOCK(pthread_rwlock_rdlock, pthread_rwlock_rdlock(R))
READ_LOCK(pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock(R))
READ_LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_timedrdlock(R, &late))
READ_LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_clockrdlock(R, CLOCK_MONOTONIC, &late))
/* Who writes comes after who read; not after who did before he read. */
#define WRITE_LOCK(name, ...)                                                                                                   \
    PAIR(name, R_INIT, R_READ; TOUCH; R_UNLOCK, MUST(!(__VA_ARGS__)); TOUCH; R_UNLOCK, R_READ; R_UNLOCK; TOUCH,                 \
         MUST(!(__VA_ARGS__)); TOUCH; R_UNLOCK)
WRITE_LOCK(pthread_rwlock_wrlock, pthread_rwlock_wrlock(R))
WRITE_LOCK(pthread_rwlock_trywrlock, pthread_rwlock_trywrlock(R))
WRITE_LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_timedwrlock(R, &late))
WRITE_LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_clockwrlock(R, CLOCK_MONOTONIC, &late))
WRITE_LOCK(pthread_rwlock_unlock, pthread_rwlock_wrlock(R))
FORGETS(pthread_rwlock_init, R_INIT, R_WRITE, R_UNLOCK, R_INIT)
FORGETS(pthread_rwlock_destroy, R_INIT, R_WRITE, R_UNLOCK, MUST(!pthread_rwlock_destroy(R)))

/* --- semaphores ------------------------------------------------------------------------------------------------------- */

#define N ((sem_t *)w->a)
#define N_INIT(value) MUST(!sem_init(N, 0, value))
HAND(sem_post, N_INIT(0), MUST(!sem_post(N)), MUST(!sem_wait(N)))
HAND(sem_wait, N_INIT(0), MUST(!sem_post(N)), MUST(!sem_wait(N)))
HAND(sem_trywait, N_INIT(0), MUST(!sem_post(N)), MUST(!sem_trywait(N)))
HAND(sem_timedwait, N_INIT(0), MUST(!sem_post(N)), MUST(!sem_timedwait(N, &late)))
HAND(sem_clockwait, N_INIT(0), MUST(!sem_post(N)), MUST(!sem_clockwait(N, CLOCK_MONOTONIC, &late)))
FORGETS(sem_init, N_INIT(1), MUST(!sem_wait(N)), MUST(!sem_post(N)), N_INIT(1))
FORGETS(sem_destroy, N_INIT(1), MUST(!sem_wait(N)), MUST(!sem_post(N)), MUST(!sem_destroy(N)))

/* --- conditions --------------------------------------------------------------------------------------------------------- */

/* What is done before the wait happens before what the other does under the mutex, and that before what comes after the wait. */
#define WAITS(name, prepare, lock, unlock, announce, wait)                                                                      \
    TOGETHER(name, void *o = w->a; prepare,                                                                                     \
             void *o = w->a; row_wait(); lock; TOUCH; w->number = 7; announce; unlock,                                          \
             void *o = w->a; lock; TOUCH; row_post(); while (w->number != 7) wait; TOUCH; unlock,                               \
             void *o = w->a; row_wait(); TOUCH; lock; w->number = 7; announce; unlock,                                          \
             void *o = w->a; lock; TOUCH; row_post(); while (w->number != 7) wait; unlock)
#define POSIX(name, ...)                                                                                                        \
    WAITS(name, M_INIT; pthread_cond_init((void *)w->b, NULL), M_LOCK, M_UNLOCK, pthread_cond_signal((void *)w->b),             \
          MUST(!(__VA_ARGS__)))
POSIX(pthread_cond_wait, pthread_cond_wait((void *)w->b, M))
POSIX(pthread_cond_timedwait, pthread_cond_timedwait((void *)w->b, M, &late))
POSIX(pthread_cond_clockwait, pthread_cond_clockwait((void *)w->b, M, CLOCK_MONOTONIC, &late))
#define C11(name, ...)                                                                                                          \
    WAITS(name, C_INIT; cnd_init((void *)w->b), C_LOCK, C_UNLOCK, cnd_signal((void *)w->b), MUST((__VA_ARGS__) == thrd_success))
C11(cnd_wait, cnd_wait((void *)w->b, C))
C11(cnd_timedwait, cnd_timedwait((void *)w->b, C, &late))

/* --- barriers --------------------------------------------------------------------------------------------------------- */

#define B ((pthread_barrier_t *)w->a)
#define B_WAIT pthread_barrier_wait(B)
TOGETHER(pthread_barrier_init, MUST(!pthread_barrier_init(B, NULL, 2)), TOUCH; B_WAIT, B_WAIT; TOUCH, B_WAIT; TOUCH, B_WAIT;
     TOUCH)
TOGETHER(pthread_barrier_wait, MUST(!pthread_barrier_init(B, NULL, 2)), TOUCH; B_WAIT, B_WAIT; TOUCH, B_WAIT; TOUCH, B_WAIT;
     TOUCH)

/* --- what runs once ----------------------------------------------------------------------------------------------------- */

static row_place *current;
static void touch_current(void) { current->data++; }
static void nothing(void) {}

#define O ((pthread_once_t *)w->a)
PAIR(pthread_once, current = w, pthread_once(O, touch_current), pthread_once(O, touch_current); TOUCH,
     pthread_once(O, nothing); TOUCH, pthread_once(O, nothing); TOUCH)
PAIR(call_once, current = w, call_once((void *)O, touch_current), call_once((void *)O, touch_current); TOUCH,
     call_once((void *)O, nothing); TOUCH, call_once((void *)O, nothing); TOUCH)

int __cxa_guard_acquire(void *);
void __cxa_guard_release(void *), __cxa_guard_abort(void *);
HAND(__cxa_guard_acquire, , MUST(__cxa_guard_acquire(w->a)); __cxa_guard_release(w->a), MUST(!__cxa_guard_acquire(w->a)))
HAND(__cxa_guard_release, , MUST(__cxa_guard_acquire(w->a)); __cxa_guard_release(w->a), MUST(!__cxa_guard_acquire(w->a)))
HAND(__cxa_guard_abort, , MUST(__cxa_guard_acquire(w->a)); __cxa_guard_abort(w->a), MUST(__cxa_guard_acquire(w->a));
     __cxa_guard_release(w->a))

/* --- threads ------------------------------------------------------------------------------------------------------------ */

__attribute__((noipa)) static void *child_right(void *argument)
{
    row_place *w = argument;
    TOUCH;
    row_post();
    return NULL;
}
__attribute__((noipa)) static void *child_wrong(void *argument)
{
    row_place *w = argument;
    TOUCH;
    row_post();
    return NULL;
}
__attribute__((noipa)) static int c11_right(void *argument) { return !!child_right(argument); }
__attribute__((noipa)) static int c11_wrong(void *argument) { return !!child_wrong(argument); }

/* The other thread of the case has nothing to do; main has a third one. */
#define THREAD(name, ordered, racy) PAIR_MORE(name, thread, , , ordered; row_wait(), , racy; row_wait(), .wrong = "child_wrong")
#define CREATE(child) pthread_t t; MUST(!pthread_create(&t, NULL, child, w))
#define JOIN MUST(!pthread_join(t, NULL))
#define JOINS(name, ...) THREAD(name, CREATE(child_right); __VA_ARGS__; TOUCH, CREATE(child_wrong); TOUCH; __VA_ARGS__)
THREAD(pthread_create, TOUCH; CREATE(child_right); JOIN, CREATE(child_wrong); TOUCH; JOIN)
JOINS(pthread_join, JOIN)
JOINS(pthread_tryjoin_np, while (pthread_tryjoin_np(t, NULL)) usleep(1000))
JOINS(pthread_timedjoin_np, MUST(!pthread_timedjoin_np(t, NULL, &late)))
JOINS(pthread_clockjoin_np, MUST(!pthread_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &late)))
THREAD(pthread_detach, TOUCH; CREATE(child_right); MUST(!pthread_detach(t)), CREATE(child_wrong); MUST(!pthread_detach(t));
     TOUCH)

static void *number(void *unused) { return unused; }
static int c11_number(void *unused) { return !!unused; }
#define NUMBER pthread_t t; MUST(!pthread_create(&t, NULL, number, NULL))
RANGE(pthread_join, WRITES(8, 0), NOT, NUMBER; MUST(!pthread_join(t, (void **)p)))
RANGE(pthread_tryjoin_np, WRITES(8, 0), NOT, NUMBER; while (pthread_tryjoin_np(t, (void **)p)) usleep(1000))
RANGE(pthread_timedjoin_np, WRITES(8, 0), NOT, NUMBER; MUST(!pthread_timedjoin_np(t, (void **)p, &late)))
RANGE(pthread_clockjoin_np, WRITES(8, 0), NOT, NUMBER; MUST(!pthread_clockjoin_np(t, (void **)p, CLOCK_MONOTONIC, &late)))
RANGE(thrd_join, WRITES(4, 0), NOT, thrd_t t; MUST(thrd_create(&t, c11_number, NULL) == thrd_success); MUST(thrd_join(t,
     (int *)p) == thrd_success))

#define C11_CREATE(child) thrd_t t; MUST(thrd_create(&t, child, w) == thrd_success)
#define C11_JOIN MUST(thrd_join(t, NULL) == thrd_success)
THREAD(thrd_create, TOUCH; C11_CREATE(c11_right); C11_JOIN, C11_CREATE(c11_wrong); TOUCH; C11_JOIN)
THREAD(thrd_join, C11_CREATE(c11_right); C11_JOIN; TOUCH, C11_CREATE(c11_wrong); TOUCH; C11_JOIN)
THREAD(thrd_detach, TOUCH; C11_CREATE(c11_right); MUST(thrd_detach(t) == thrd_success),
       C11_CREATE(c11_wrong); MUST(thrd_detach(t) == thrd_success); TOUCH)
