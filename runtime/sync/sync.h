/* runtime/sync: what the functions of a program's libraries mean for happens-before and for memory.
 *
 *   table.c   one row per function: a name, a meaning, which arguments it concerns, which results mean success
 *   apply.c   a call of such a function, as events for the core: one half before it, one half after
 *
 * No engine is known here. An engine finds the functions of the table in the modules it sees, stops at their entry and
 * at their return, and passes arguments and result on. Creation of threads is not done here: when a child begins to
 * run is for the engine to know. */
#ifndef RACE_SYNC_H
#define RACE_SYNC_H

#include "runtime/core/core.h"

typedef enum {
    SYNC_CREATE,    /* creates a thread: `site` is where, the engine does the rest */
    SYNC_JOIN,      /* waits for the end of thread `object` */
    SYNC_ACQUIRE,   /* after it, what was released at `object` is ordered before what comes */
    SYNC_RELEASE,   /* what was done before it is ordered before later acquires of `object` */
    SYNC_LOCK_READ, /* a reader-writer lock */
    SYNC_LOCK_WRITE,
    SYNC_UNLOCK,
    SYNC_WAIT,         /* a condition `object` with mutex `other`, which is released while it waits */
    SYNC_BARRIER_INIT, /* for `other` threads */
    SYNC_BARRIER,
    SYNC_ONCE,     /* runs the function `other` if nobody has; all callers come after it */
    SYNC_FORGET,   /* `object` is initialised, or destroyed */
    SYNC_MALLOC,   /* of argument `object` times argument `other` bytes (none: times 1); returns the block */
    SYNC_MEMALIGN, /* the same, but stores the block at argument `third` and returns 0 */
    SYNC_REALLOC,  /* block `object` gets `other` bytes; returns it, perhaps moved */
    SYNC_FREE      /* of block `object` */
} sync_meaning;

typedef enum {
    SYNC_ALWAYS,
    SYNC_ZERO,   /* an int 0 (also thrd_success), or EOWNERDEAD: the lock is held, its last owner died */
    SYNC_POINTER /* not NULL */
} sync_success;

enum { SYNC_ARGS = 6, SYNC_NO_ARG = 0xff };

typedef struct {
    const char *name;
    uint8_t meaning;              /* sync_meaning */
    uint8_t success;              /* sync_success: otherwise there is no second half */
    uint8_t object, other, third; /* numbers of arguments, or SYNC_NO_ARG */
} sync_row;

extern const sync_row sync_table[]; /* sorted by name */
extern const unsigned sync_table_size;
const sync_row *sync_find(const char *name); /* or NULL */

typedef struct { /* what the engine knows */
    void *context;
    /* The thread that the program calls `handle` (a pthread_t), or NULL. */
    ft_thread *(*thread_of)(void *context, uint64_t handle);
    /* The thread was joined: its ft_thread and its handle mean nothing any more. */
    void (*joined)(void *context, ft_thread *thread);
    bool (*read_word)(void *context, uint64_t addr, uint64_t *word);
} sync_engine;

typedef struct { /* one call, from its entry to its return; made by the engine, zeroed */
    const sync_row *row;
    uint64_t args[SYNC_ARGS];
    ft_site site;      /* where it is called from; used by SYNC_MALLOC to SYNC_FREE only */
    ft_thread *joined; /* SYNC_JOIN: found before, since the handle may belong to another thread after it */
    uint32_t round;    /* SYNC_BARRIER */
    uint64_t old_size; /* SYNC_REALLOC */
} sync_call;

void sync_before(const sync_engine *engine, ft_thread *thread, sync_call *call);
void sync_after(const sync_engine *engine, ft_thread *thread, sync_call *call, uint64_t result);
/* SYNC_ONCE: the function `other` has run, called from the function of the row. */
void sync_once_ran(ft_thread *thread, const sync_call *call);

/* Does the call's site matter? Finding it may cost the engine something. */
static inline bool sync_wants_site(const sync_row *row)
{
    return row->meaning == SYNC_CREATE || row->meaning >= SYNC_MALLOC;
}

#endif
