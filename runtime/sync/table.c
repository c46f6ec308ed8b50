/* The functions that order threads or hand out memory. Arguments are numbered from 0.
 *
 * A condition is a synchronisation object too: POSIX counts signal and broadcast among the functions that synchronise
 * memory, and programs rely on it. Destroying a barrier does not forget it: threads may still be on their way out. */
#include "runtime/sync/sync.h"

#include <string.h>

enum { NONE = SYNC_NO_ARG };

const sync_row sync_table[] = {
    {"aligned_alloc", SYNC_MALLOC, SYNC_POINTER, 1, NONE, NONE},
    {"calloc", SYNC_MALLOC, SYNC_POINTER, 0, 1, NONE},
    {"cfree", SYNC_FREE, SYNC_ALWAYS, 0, NONE, NONE},
    {"free", SYNC_FREE, SYNC_ALWAYS, 0, NONE, NONE},
    {"malloc", SYNC_MALLOC, SYNC_POINTER, 0, NONE, NONE},
    {"memalign", SYNC_MALLOC, SYNC_POINTER, 1, NONE, NONE},
    {"posix_memalign", SYNC_MEMALIGN, SYNC_ZERO, 2, NONE, 0},
    {"pthread_barrier_init", SYNC_BARRIER_INIT, SYNC_ZERO, 0, 2, NONE},
    {"pthread_barrier_wait", SYNC_BARRIER, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_cond_broadcast", SYNC_RELEASE, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_cond_clockwait", SYNC_WAIT, SYNC_ALWAYS, 0, 1, NONE},
    {"pthread_cond_destroy", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_cond_init", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_cond_signal", SYNC_RELEASE, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_cond_timedwait", SYNC_WAIT, SYNC_ALWAYS, 0, 1, NONE},
    {"pthread_cond_wait", SYNC_WAIT, SYNC_ALWAYS, 0, 1, NONE},
    {"pthread_create", SYNC_CREATE, SYNC_ZERO, 0, 2, NONE},
    {"pthread_join", SYNC_JOIN, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_mutex_clocklock", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_mutex_destroy", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_mutex_init", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_mutex_lock", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_mutex_timedlock", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_mutex_trylock", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_mutex_unlock", SYNC_RELEASE, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_once", SYNC_ONCE, SYNC_ZERO, 0, 1, NONE},
    {"pthread_rwlock_clockrdlock", SYNC_LOCK_READ, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_rwlock_clockwrlock", SYNC_LOCK_WRITE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_rwlock_destroy", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_rwlock_init", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_rwlock_rdlock", SYNC_LOCK_READ, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_rwlock_timedrdlock", SYNC_LOCK_READ, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_rwlock_timedwrlock", SYNC_LOCK_WRITE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_rwlock_tryrdlock", SYNC_LOCK_READ, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_rwlock_trywrlock", SYNC_LOCK_WRITE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_rwlock_unlock", SYNC_UNLOCK, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_rwlock_wrlock", SYNC_LOCK_WRITE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_spin_destroy", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_spin_init", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_spin_lock", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_spin_trylock", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_spin_unlock", SYNC_RELEASE, SYNC_ALWAYS, 0, NONE, NONE},
    {"pthread_timedjoin_np", SYNC_JOIN, SYNC_ZERO, 0, NONE, NONE},
    {"pthread_tryjoin_np", SYNC_JOIN, SYNC_ZERO, 0, NONE, NONE},
    {"pvalloc", SYNC_MALLOC, SYNC_POINTER, 0, NONE, NONE},
    {"realloc", SYNC_REALLOC, SYNC_POINTER, 0, 1, NONE},
    {"sem_clockwait", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"sem_destroy", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"sem_init", SYNC_FORGET, SYNC_ALWAYS, 0, NONE, NONE},
    {"sem_post", SYNC_RELEASE, SYNC_ALWAYS, 0, NONE, NONE},
    {"sem_timedwait", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"sem_trywait", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"sem_wait", SYNC_ACQUIRE, SYNC_ZERO, 0, NONE, NONE},
    {"valloc", SYNC_MALLOC, SYNC_POINTER, 0, NONE, NONE},
};
const unsigned sync_table_size = sizeof sync_table / sizeof *sync_table;

const sync_row *sync_find(const char *name)
{
    unsigned from = 0, to = sync_table_size;
    while (from < to) {
        unsigned middle = from + (to - from) / 2;
        int order = strcmp(sync_table[middle].name, name);
        if (!order) return &sync_table[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}
