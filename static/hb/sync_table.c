/* The table of sync.h. A function that is not here means nothing to threads: whoever adds a library adds its lines here and in
 * the models of static/pointer. */
#include "static/hb/sync.h"

#define ACQUIRE(names, arg)         {names, SYNC_ACQUIRE, arg, -1, SYNC_ALWAYS, false, false, NULL}
#define ACQUIRE_SHARED(names, arg)  {names, SYNC_ACQUIRE, arg, -1, SYNC_ALWAYS, true, false, NULL}
#define TRY(names, arg, when)       {names, SYNC_ACQUIRE, arg, -1, when, false, false, NULL}
#define TRY_SHARED(names, arg, when) {names, SYNC_ACQUIRE, arg, -1, when, true, false, NULL}
#define RELEASE(names, arg)         {names, SYNC_RELEASE, arg, -1, SYNC_ALWAYS, false, false, NULL}
#define NAMED(names, when, lock)    {names, SYNC_ACQUIRE, -1, -1, when, false, false, lock}
#define NAMED_END(names, lock)      {names, SYNC_RELEASE, -1, -1, SYNC_ALWAYS, false, false, lock}
#define PLAIN(names, kind, arg)     {names, kind, arg, -1, SYNC_ALWAYS, false, false, NULL}
#define PAIR(names, kind, arg, other) {names, kind, arg, other, SYNC_ALWAYS, false, false, NULL}

const sync_entry hb_sync_table[] = {
    /* --- locks ---------------------------------------------------------------------------------------------------------- */
    ACQUIRE("pthread_mutex_lock mtx_lock pthread_spin_lock pthread_rwlock_wrlock omp_set_lock omp_set_nest_lock "
            "uv_mutex_lock uv_rwlock_wrlock sqlite3_mutex_enter g_mutex_lock g_rec_mutex_lock g_rw_lock_writer_lock "
            "_ZNSt5mutex4lockEv _ZNSt15recursive_mutex4lockEv _ZNSt12shared_mutex4lockEv pthread_mutex_lock_full", 0),
    TRY("pthread_mutex_trylock pthread_mutex_timedlock pthread_mutex_clocklock mtx_trylock mtx_timedlock "
        "pthread_spin_trylock pthread_rwlock_trywrlock pthread_rwlock_timedwrlock pthread_rwlock_clockwrlock "
        "uv_mutex_trylock uv_rwlock_trywrlock sqlite3_mutex_try", 0, SYNC_ZERO),
    TRY("_ZNSt11atomic_flag12test_and_setESt12memory_order _ZNVSt11atomic_flag12test_and_setESt12memory_order", 0, SYNC_ZERO), /* made a lock */
    RELEASE("_ZNSt11atomic_flag5clearESt12memory_order _ZNVSt11atomic_flag5clearESt12memory_order", 0),
    TRY("omp_test_lock omp_test_nest_lock g_mutex_trylock g_rec_mutex_trylock g_rw_lock_writer_trylock", 0, SYNC_NONZERO),
    ACQUIRE_SHARED("pthread_rwlock_rdlock uv_rwlock_rdlock g_rw_lock_reader_lock _ZNSt12shared_mutex11lock_sharedEv", 0),
    TRY_SHARED("pthread_rwlock_tryrdlock pthread_rwlock_timedrdlock pthread_rwlock_clockrdlock uv_rwlock_tryrdlock", 0, SYNC_ZERO),
    TRY_SHARED("g_rw_lock_reader_trylock", 0, SYNC_NONZERO),
    RELEASE("pthread_mutex_unlock mtx_unlock pthread_spin_unlock pthread_rwlock_unlock omp_unset_lock omp_unset_nest_lock "
            "uv_mutex_unlock sqlite3_mutex_leave uv_rwlock_wrunlock uv_rwlock_rdunlock g_mutex_unlock g_rec_mutex_unlock "
            "g_rw_lock_writer_unlock g_rw_lock_reader_unlock _ZNSt5mutex6unlockEv _ZNSt15recursive_mutex6unlockEv "
            "_ZNSt12shared_mutex6unlockEv _ZNSt12shared_mutex13unlock_sharedEv", 0),
    PAIR("_ZSt4lockI*", SYNC_ACQUIRE, 0, 1), /* std::lock of two; never waits for one while it holds the other */
    PAIR("pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait cnd_wait cnd_timedwait uv_cond_wait uv_cond_timedwait "
         "g_cond_wait g_cond_wait_until _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", SYNC_COND_WAIT, 0, 1),
    PAIR("pthread_mutex_init", SYNC_LOCK_INIT, 0, 1),
    PAIR("pthread_mutexattr_setrobust pthread_mutexattr_setrobust_np", SYNC_ROBUST, 0, 1),
    PLAIN("pthread_once call_once uv_once g_once_impl _ZSt9call_onceI*", SYNC_ONCE, 0),
    {"__cxa_guard_acquire", SYNC_GUARD, 0, -1, SYNC_NONZERO, false, false, NULL},
    PLAIN("__cxa_guard_release __cxa_guard_abort", SYNC_GUARD_END, 0),

    /* --- OpenMP ---------------------------------------------------------------------------------------------------------- */
    NAMED("GOMP_critical_start", SYNC_ALWAYS, "omp critical"),
    NAMED_END("GOMP_critical_end", "omp critical"),
    ACQUIRE("GOMP_critical_name_start", 0),
    RELEASE("GOMP_critical_name_end", 0),
    ACQUIRE("__kmpc_critical __kmpc_critical_with_hint", 2),
    RELEASE("__kmpc_end_critical", 2),
    NAMED("GOMP_atomic_start", SYNC_ALWAYS, "omp atomic"),
    NAMED_END("GOMP_atomic_end", "omp atomic"),
    NAMED("GOMP_ordered_start __kmpc_ordered", SYNC_ALWAYS, "omp ordered"),
    NAMED_END("GOMP_ordered_end __kmpc_end_ordered", "omp ordered"),
    NAMED("GOMP_single_start __kmpc_single", SYNC_NONZERO, "omp single"),
    NAMED_END("__kmpc_end_single", "omp single"),
    NAMED("__kmpc_master __kmpc_masked", SYNC_NONZERO, "omp thread 0"),
    NAMED_END("__kmpc_end_master __kmpc_end_masked", "omp thread 0"),
    NAMED("__kmpc_reduce __kmpc_reduce_nowait", SYNC_NONZERO, "omp reduction"),
    NAMED_END("__kmpc_end_reduce __kmpc_end_reduce_nowait", "omp reduction"),
    PLAIN("omp_get_thread_num", SYNC_NUMBER, -1),
    PLAIN("GOMP_sections_start GOMP_sections_next", SYNC_SECTION, -1),
    PLAIN("GOMP_barrier GOMP_barrier_cancel __kmpc_barrier GOMP_loop_end GOMP_sections_end", SYNC_BARRIER, -1),
    PLAIN("GOMP_taskwait __kmpc_omp_taskwait", SYNC_JOIN_TASKS, -1),
    PLAIN("GOMP_taskgroup_start __kmpc_taskgroup", SYNC_GROUP, -1),
    PLAIN("GOMP_taskgroup_end __kmpc_end_taskgroup", SYNC_JOIN_GROUP, -1),
    PLAIN("GOMP_parallel GOMP_parallel_loop_* GOMP_parallel_sections GOMP_parallel_reductions GOMP_teams_reg "
          "__kmpc_fork_call __kmpc_fork_call_if __kmpc_fork_teams", SYNC_TEAM, -1),
    PLAIN("GOMP_parallel_end", SYNC_JOIN_TEAM, -1),
    PLAIN("GOMP_task __kmpc_omp_task __kmpc_omp_task_with_deps __kmpc_omp_task_parts", SYNC_TASK, -1),
    /* A task loop of gcc waits for its tasks, unless its flags tell it not to; clang puts a group around it. */
    {"GOMP_taskloop GOMP_taskloop_ull", SYNC_TASK, -1, 5, SYNC_ALWAYS, true, false, NULL},
    {"__kmpc_taskloop __kmpc_taskloop_5", SYNC_TASK, -1, -1, SYNC_ALWAYS, true, false, NULL},

    /* --- threads, semaphores, barriers ----------------------------------------------------------------------------------- */
    PLAIN("pthread_create", SYNC_CREATE, 3),
    PLAIN("thrd_create uv_thread_create g_thread_new g_thread_try_new", SYNC_CREATE, 2),
    PLAIN("uv_thread_create_ex", SYNC_CREATE, 3),
    PLAIN("pthread_join thrd_join g_thread_join", SYNC_JOIN, 0),
    {"pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np", SYNC_JOIN, 0, -1, SYNC_ZERO, false, false, NULL},
    {"_ZNSt6thread4joinEv uv_thread_join", SYNC_JOIN, 0, -1, SYNC_ALWAYS, false, true, NULL},
    /* A thread that nobody has waited for, nor let go, ends the program there. */
    {"_ZNSt6threadD1Ev _ZNSt6threadD2Ev", SYNC_JOIN, 0, -1, SYNC_ALWAYS, true, true, NULL},
    PLAIN("pthread_barrier_wait uv_barrier_wait", SYNC_BARRIER, 0),
    PAIR("pthread_barrier_init", SYNC_BARRIER_INIT, 0, 2),
    PAIR("uv_barrier_init", SYNC_BARRIER_INIT, 0, 1),
    PLAIN("sem_post uv_sem_post", SYNC_POST, 0),
    PLAIN("sem_wait uv_sem_wait", SYNC_WAIT, 0),
    {"sem_trywait sem_timedwait sem_clockwait uv_sem_trywait", SYNC_WAIT, 0, -1, SYNC_ZERO, false, false, NULL},
    PAIR("sem_init", SYNC_SEM_INIT, 0, 2),
    PAIR("uv_sem_init", SYNC_SEM_INIT, 0, 1),

    /* --- messages and signals ---------------------------------------------------------------------------------------------- */
    PAIR("write send sendto __write_chk", SYNC_SEND, 0, 2),
    PAIR("writev sendmsg", SYNC_SEND, 0, -1),
    PAIR("mq_send mq_timedsend msgsnd eventfd_write", SYNC_SEND, 0, -1),
    {"read recv recvfrom __read_chk __recv_chk", SYNC_RECEIVE, 0, 2, SYNC_POSITIVE, false, false, NULL},
    {"readv recvmsg", SYNC_RECEIVE, 0, -1, SYNC_POSITIVE, false, false, NULL},
    {"mq_receive mq_timedreceive msgrcv", SYNC_RECEIVE, 0, -1, SYNC_NOT_NEGATIVE, false, false, NULL},
    {"eventfd_read", SYNC_RECEIVE, 0, -1, SYNC_ZERO, false, false, NULL},
    PLAIN("pipe pipe2", SYNC_PIPE, 0),
    PLAIN("socketpair", SYNC_SOCKETS, 3),
    PAIR("bind", SYNC_BIND, 0, 1),
    PAIR("connect", SYNC_CONNECT, 0, 1),
    PLAIN("accept accept4", SYNC_ACCEPT, 0),
    PLAIN("close shutdown fclose dup2 dup3 closefrom close_range", SYNC_CLOSE, 0),
    PAIR("eventfd", SYNC_QUEUE, -1, 0),
    PLAIN("mq_open msgget", SYNC_QUEUE, -1),
    PLAIN("pthread_kill kill tgkill sigqueue pthread_sigqueue", SYNC_KILL, 1),
    PLAIN("raise", SYNC_KILL, 0),
    {"sigwait", SYNC_SIGWAIT, 0, -1, SYNC_ZERO, false, false, NULL},
    {"sigwaitinfo sigtimedwait", SYNC_SIGWAIT, 0, -1, SYNC_NOT_NEGATIVE, false, false, NULL},
    PLAIN("signalfd", SYNC_SIGNALFD, 1),
    PAIR("sigaddset", SYNC_SIGADD, 0, 1),
    PLAIN("sigfillset", SYNC_SIGADD, 0),

    /* --- events ------------------------------------------------------------------------------------------------------------ */
    PLAIN("signal bsd_signal sysv_signal __sysv_signal ssignal sigset sigaction __sigaction sigvec", SYNC_SIGNAL, -1),
    PLAIN("atexit at_quick_exit __cxa_at_quick_exit on_exit __cxa_atexit __libc_start_main", SYNC_AT_EXIT, -1),
    PLAIN("exit quick_exit", SYNC_EXIT, -1),
    PLAIN("pthread_key_create tss_create", SYNC_KEY, -1),
    PLAIN("pthread_setspecific tss_set", SYNC_SET_KEY, 1),
    PLAIN("uv_queue_work", SYNC_TASK, -1), /* its pool is done with it when the loop ends */
    PLAIN("event_assign", SYNC_EVENT, 1),
    PLAIN("event_new event_base_once evconnlistener_new evconnlistener_new_bind", SYNC_EVENT, 0),
    PAIR("bufferevent_setcb", SYNC_EVENT, 0, 16), /* where the models of static/pointer have its base */
    PAIR("evconnlistener_set_cb", SYNC_EVENT, 0, 0),
    PAIR("event_set", SYNC_EVENT, 0, 64), /* struct event has its base there: event_base_set comes later */
    PLAIN("event_base_loop event_base_dispatch uv_run", SYNC_DISPATCH, 0),
    PLAIN("event_dispatch event_loop g_main_loop_run gtk_main g_main_context_iteration", SYNC_DISPATCH, -1),
};
const uint32_t hb_sync_count = sizeof hb_sync_table / sizeof *hb_sync_table;

const sync_touch hb_sync_touches[] = {
    {"memcpy memmove mempcpy __memcpy_chk __memmove_chk __mempcpy_chk", "w0:2 r1:2"},
    {"*copied*", "w0:2 r1:2"}, /* a block copy whose words static/pointer copies one by one */
    {"bcopy", "r0:2 w1:2"},
    {"free cfree realloc reallocarray _ZdlPv* _ZdaPv*", "f0"},
    {"memset __memset_chk", "w0:2"},
    {"bzero explicit_bzero", "w0:1"},
    {"memcmp bcmp", "r0:2 r1:2"},
    {"memchr rawmemchr memrchr", "r0:2"},
    {"strcpy stpcpy __strcpy_chk __stpcpy_chk", "W0 R1"},
    {"strncpy stpncpy __strncpy_chk", "W0:2 R1"},
    {"strcat strncat __strcat_chk __strncat_chk", "W0 R1"},
    {"strlen strnlen strchr strrchr strdup strndup atoi atol atoll strtol strtoul strtoll strtoull strtod puts perror", "R0"},
    {"strcmp strncmp strcasecmp strncasecmp strstr strspn strcspn strpbrk", "R0 R1"},
    {"strtok", "W0 R1"},
    {"snprintf vsnprintf __snprintf_chk __vsnprintf_chk", "W0:1"},
    {"sprintf vsprintf __sprintf_chk __vsprintf_chk", "W0"},
    {"fgets __fgets_chk", "W0:1"},
    {"read recv pread pread64 __read_chk __recv_chk recvfrom", "w1:2"},
    {"write send pwrite pwrite64 sendto", "r1:2"},
    {"fread", "w0:1*2"},
    {"fwrite", "r0:1*2"},
    {"gettimeofday time", "w0"},
    {"clock_gettime", "w1=16"},
    {"qsort", "w0:1*2"},
    {"fputs", "R0"},
};
const uint32_t hb_sync_touch_count = sizeof hb_sync_touches / sizeof *hb_sync_touches;
