/* The library functions whose effect on memory the walk must know: threads, allocation, the copies that an optimiser
 * would have written out as instructions, and callbacks. Any other function is taken to return something unknown. */
#include "reach.h"

static const model models[] = {
    {"pthread_create", .args = 4, .starts = 3, .argument = 4},
    {"thrd_create", .args = 3, .starts = 2, .argument = 3},
    {"pthread_once", .args = 2, .calls = 2},
    {"call_once", .args = 2, .calls = 2},
    {"qsort", .args = 4, .calls = 4, .passes = 1},

    {"malloc", .args = 1, .result = RESULT_FRESH},
    {"calloc", .args = 2, .result = RESULT_FRESH},
    {"realloc", .args = 2, .result = RESULT_FRESH, .keeps = 1},
    {"reallocarray", .args = 3, .result = RESULT_FRESH, .keeps = 1},
    {"aligned_alloc", .args = 2, .result = RESULT_FRESH},
    {"strdup", .args = 1, .result = RESULT_FRESH},
    {"free", .args = 1},

    {"memcpy", .args = 3, .result = RESULT_FIRST, .written = 1, .read = 2, .length = 3},
    {"memmove", .args = 3, .result = RESULT_FIRST, .written = 1, .read = 2, .length = 3},
    {"memset", .args = 3, .result = RESULT_FIRST, .written = 1, .length = 3},
    {"strchr", .args = 2, .result = RESULT_INTO_FIRST},
    {"strrchr", .args = 2, .result = RESULT_INTO_FIRST},
    {"strstr", .args = 2, .result = RESULT_INTO_FIRST},
    {"memchr", .args = 3, .result = RESULT_INTO_FIRST},
    {"strcpy", .args = 2, .result = RESULT_FIRST},
    {"strncpy", .args = 3, .result = RESULT_FIRST},

    /* no effect on memory that the program's own code could have had; listed for the number of their arguments */
    {"pthread_join", .args = 2},
    {"thrd_join", .args = 2},
    {"pthread_self", .args = 0},
    {"sched_yield", .args = 0},
    {"thrd_yield", .args = 0},
    {"pthread_mutex_init", .args = 2},
    {"pthread_mutex_destroy", .args = 1},
    {"pthread_mutex_lock", .args = 1},
    {"pthread_mutex_trylock", .args = 1},
    {"pthread_mutex_unlock", .args = 1},
    {"pthread_cond_init", .args = 2},
    {"pthread_cond_destroy", .args = 1},
    {"pthread_cond_wait", .args = 2},
    {"pthread_cond_signal", .args = 1},
    {"pthread_cond_broadcast", .args = 1},
    {"pthread_rwlock_rdlock", .args = 1},
    {"pthread_rwlock_wrlock", .args = 1},
    {"pthread_rwlock_unlock", .args = 1},
    {"pthread_spin_init", .args = 2},
    {"pthread_spin_lock", .args = 1},
    {"pthread_spin_unlock", .args = 1},
    {"pthread_barrier_init", .args = 3},
    {"pthread_barrier_wait", .args = 1},
    {"pthread_barrier_destroy", .args = 1},
    {"mtx_init", .args = 2},
    {"mtx_lock", .args = 1},
    {"mtx_unlock", .args = 1},
    {"mtx_destroy", .args = 1},
    {"sem_init", .args = 3},
    {"sem_wait", .args = 1},
    {"sem_post", .args = 1},
    {"strlen", .args = 1},
    {"strcmp", .args = 2},
    {"strncmp", .args = 3},
    {"memcmp", .args = 3},
    {"atoi", .args = 1},
    {"atol", .args = 1},
    {"strtol", .args = 3},
    {"strtoul", .args = 3},
    {"abort", .args = 0},
    {"exit", .args = 1},
    {"puts", .args = 1},
    {"putchar", .args = 1},
    {"usleep", .args = 1},
    {"sleep", .args = 1},
    {"rand", .args = 0},
};

static const model unknown = {.args = 6, .result = RESULT_UNKNOWN};

const model *model_of(const char *name)
{
    for (unsigned i = 0; i < sizeof models / sizeof *models; i++)
        if (!strcmp(models[i].name, name)) return &models[i];
    return &unknown;
}
