/* runtime/sync: what the functions of a program's libraries mean for happens-before and for memory.
 *
 *   table.c        one row per function: its name, what it means, which arguments it concerns, when it succeeds
 *   apply.c        a call of such a function, as events for the core: one half before it, one half after
 *   range.c        the memory that a call reads and writes
 *   format.c       which strings a format of printf names
 *   descriptor.c   pipes, sockets, epoll, message queues: what is written happens before what is read
 *   openmp.c       libgomp and libomp: regions, barriers, tasks
 *   order.c        the order in which locks are taken, and its cycles
 *
 * No engine is known here. An engine finds the functions of the table in the modules it sees, stops at their entry and
 * at their return, and passes arguments and result on: sync_before, sync_after. It does the same with functions that
 * libraries call back (`watch`: the routine of pthread_once, the body of a parallel region): sync_entered,
 * sync_returned. Creation of threads is not done here: when a child begins to run is for the engine to know.
 *
 * Calls that a modelled library (libc, OpenMP) makes inside of another are not the program's: sync_concerns says no. What such a
 * library, or one without a plan, frees is taken out of the shadow memory without being checked: how it orders its
 * threads is not known.
 *
 * Objects that have no address of their own (descriptors, signals, regions) get one above all addresses of programs. */
#ifndef RACE_SYNC_H
#define RACE_SYNC_H

#include "runtime/report/report.h"

typedef enum {
    SYNC_NOTHING, /* only its memory accesses matter */
    SYNC_CREATE,  /* creates a thread: `site` is where, the engine does the rest */
    SYNC_JOIN,    /* waits for the end of thread `object` */
    SYNC_DETACH,  /* nobody will wait for thread `object` */
    SYNC_ACQUIRE, /* after it, what was released at `object` is ordered before what comes */
    SYNC_RELEASE, /* what was done before it is ordered before later acquires of `object` */
    SYNC_BOTH,    /* a release before it and an acquire after it */
    SYNC_LOCK,    /* a mutex */
    SYNC_TRY,     /* the same, without waiting for ever: no deadlock can come of it */
    SYNC_UNLOCK,
    SYNC_LOCK_READ, /* a reader-writer lock */
    SYNC_TRY_READ,
    SYNC_LOCK_WRITE,
    SYNC_TRY_WRITE,
    SYNC_UNLOCK_RW,
    SYNC_WAIT,         /* for a condition `object`; the mutex `other` is released meanwhile */
    SYNC_BARRIER_INIT, /* for `other` threads */
    SYNC_BARRIER,
    SYNC_ONCE,   /* runs the function `other` if nobody has; all callers come after it */
    SYNC_FORGET, /* `object` is initialised, or destroyed */

    SYNC_MALLOC,   /* of argument `object` times argument `other` bytes (none: times 1); returns the block */
    SYNC_MEMALIGN, /* the same, but stores the block at argument `third` and returns 0 */
    SYNC_REALLOC,  /* block `object` gets `other` times `third` bytes (none: times 1); returns it, perhaps moved */
    SYNC_FREE,     /* of block `object` */
    SYNC_MAP,      /* maps `other` bytes; returns where */
    SYNC_UNMAP,    /* `other` bytes at `object` */

    SYNC_FD_READ,    /* from descriptor `object` */
    SYNC_FD_WRITE,   /* to it */
    SYNC_FD_MOVE,    /* what is read from descriptor `object` is written to `other` */
    SYNC_FD_CONTROL, /* fcntl(`object`, `other`, `third`): locks, and another one for `object` */
    SYNC_AIO_START,  /* reads from or writes to the descriptor that the aiocb `object` names */
    SYNC_AIO_DONE,   /* has done so */
    SYNC_FD_CLOSE,   /* whoever is at the other end learns of it */
    SYNC_FD_PIPE,    /* two ends of one channel, stored at argument `object` */
    SYNC_FD_OWN,     /* returns a descriptor with a channel of its own (eventfd, ...) */
    SYNC_FD_SIGNALS, /* returns one that tells of signals (signalfd) */
    SYNC_FD_FILE,    /* returns one of a file: all of them share one channel */
    SYNC_FD_SOCKET,  /* returns one of a socket: likewise, since both ends may be in this process */
    SYNC_FD_NAMED,   /* returns one of what the string `object` names (mq_open) */
    SYNC_FD_DUP,     /* returns another one for `object` */
    SYNC_FD_DUP2,    /* `other` becomes another one for `object` */
    SYNC_EPOLL_CTL,  /* epoll `object` watches descriptor `other` */
    SYNC_EPOLL_WAIT, /* epoll `object` has events */
    SYNC_POLL,       /* `other` pollfds at `object` */
    SYNC_SELECT,     /* the sets `other` (to read) and `third` (to write) of `object` descriptors */
    SYNC_FLOCK,      /* flock(`object`, `other`) */
    SYNC_STREAM_FILE, /* returns a FILE whose descriptor is of a file */
    SYNC_STREAM_READ, /* from the FILE `object` */
    SYNC_STREAM_WRITE,

    SYNC_SIGNAL_SET,  /* the handler of signal `object` */
    SYNC_SIGNAL_SEND, /* signal `object` */
    SYNC_SIGNAL_WAIT, /* for a signal, whose number is returned, or stored at `object` */

    SYNC_REGION,       /* runs function `object` with argument `other` in all threads of a team, and waits for them */
    SYNC_REGION_START, /* the same, without waiting and without this thread: it calls the function by itself */
    SYNC_REGION_END,   /* waits for them */
    SYNC_FORK_CALL,    /* libomp's: runs function `object` in all threads of a team, and waits for them */
    SYNC_TEAM_BARRIER,
    SYNC_SINGLE_START, /* single with copyprivate: returns 0 for the thread that does it, else waits for it */
    SYNC_SINGLE_END,
    SYNC_TASK,      /* libgomp's: creates a task that runs function `object`; the first argument on the stack has flags */
    SYNC_TASK_PTR,  /* libomp's: creates the task that the kmp_task_t `object` describes; `other`: how many dependences */
    SYNC_TASK_PTR_LOOP, /* the same, many of it, and waits for them */
    SYNC_TASK_LOOP, /* creates tasks that run function `object`, and waits for them */
    SYNC_TASK_WAIT, /* for tasks */
    SYNC_TASK_DONE, /* a task is done, although its function may have returned long ago */
    SYNC_TASK_ALLOC, /* libomp's: a kmp_task_t for function `object`; returned, of arguments 3 and 4 bytes together */
    SYNC_TASK_GROUP, /* waits for tasks, and calls functions of the program with what they did */
    SYNC_TASK_PARTS, /* libomp's: one thread of the team makes parts for all to reduce into, by calling the program, the others wait for it */
    SYNC_TARGET,     /* libgomp's: runs function `object`, if there is one, after the dependences, if there are any, in word `third` of
                        the arguments on the stack; the flags, the argument before them, may make it a task */
    SYNC_COMBINE,    /* each thread of the team gives data, and function `object` may work on all of them */

    SYNC_MEANINGS
} sync_meaning;

typedef enum {
    SYNC_ALWAYS,
    SYNC_ZERO,    /* an int 0 (also thrd_success), or EOWNERDEAD: the lock is held, its last owner died */
    SYNC_POINTER, /* not NULL, not MAP_FAILED */
    SYNC_TRUE,    /* an int that is not 0 */
    SYNC_COUNT,   /* an ssize_t that is not below 0 */
    SYNC_POSITIVE /* an int above 0 */
} sync_success;

enum { SYNC_ARGS = 6, SYNC_NO_ARG = 0xff };

typedef enum { /* bytes of a range */
    SIZE_NONE,    /* no range */
    SIZE_ARG,     /* argument `arg` */
    SIZE_PRODUCT, /* arguments `arg` and `arg` + 1, multiplied */
    SIZE_CONST,   /* `arg` */
    SIZE_STRING,  /* a string with its zero */
    SIZE_PATH,    /* the same, but it is the kernel that reads it: a wrong pointer is an error, and no fault */
    SIZE_BOUNDED, /* a string with its zero, or argument `arg` bytes if they come first */
    SIZE_FORMAT,  /* a format of printf with its zero, and the strings that it names among the arguments from `arg` on */
    SIZE_FORMAT_LIST, /* the same, of the va_list that is argument `arg` */
    SIZE_NUMBER,  /* a number in words to base `arg` (an argument; NONE: with a point and an exponent), and what ends it */
    SIZE_TO_CHAR, /* a string up to the character in argument `arg`, or its zero */
    SIZE_COMMON,  /* as far as the strings at arguments 0 and 1 are equal, and the first difference; at most argument `arg` */
    SIZE_COMMON_CASE, /* the same, small letters and capitals being equal */
    SIZE_RESULT,  /* what the call returns, after it; at most argument `arg` (NONE: any) */
    SIZE_STORED,  /* `arg`, after it, if it succeeds */
    SIZE_ITEMS,   /* what the call returns times argument `arg`, after it */
    SIZE_PRINTED, /* what the call returns and a zero, after it */
    SIZE_LIMITED, /* the same, but at most argument `arg` */
    SIZE_LINE,    /* a string with its zero, after the call if it returned something */
    SIZE_VECTOR,  /* the iovecs at the pointer, argument `arg` of them: before it all, after it as far as it came */
    SIZE_MESSAGE, /* the iovecs of a msghdr, likewise */
    SIZE_MESSAGES, /* those of argument `arg` mmsghdrs; after it of as many as it returns, each as far as it came */
    SIZE_INDIRECT, /* *pointer is where, and a string with its zero is there; after it */
    SIZE_SCANNED, /* a format of scanf: what it stores through arguments from `arg` on, as many as the call returns; after it */
    SIZE_UNTIL    /* up to what the call returns (a pointer into it), after it; all of argument `arg` if it is NULL */
} sync_size;

typedef struct {
    bool is_write;
    uint8_t pointer; /* number of an argument */
    uint8_t size;    /* sync_size */
    uint8_t arg;
} sync_range;

typedef struct {
    const char *name;
    const char *category;         /* of samples: each has racy and race-free ones */
    uint8_t meaning;              /* sync_meaning */
    uint8_t success;              /* sync_success: otherwise there is no second half */
    uint8_t object, other, third; /* numbers of arguments, or SYNC_NO_ARG; for an object that is no argument (unnamed critical
                                     sections, ...) `third` is its number */
    sync_range ranges[2];
} sync_row;

extern const sync_row sync_table[]; /* sorted by name */
extern const unsigned sync_table_size;
const sync_row *sync_find(const char *name); /* or NULL */

/* Is there something to do after the call returned, or could there be? If not, an engine need not stop there. */
bool sync_has_second_half(const sync_row *row);
/* Does the row only say which memory is accessed? Then it matters only while there are several threads. */
static inline bool sync_is_only_ranges(const sync_row *row)
{
    return row->meaning == SYNC_NOTHING;
}
/* Does the function read for itself what it is given? Then an engine may do so too: who passes a wrong pointer gets a fault. */
static inline bool sync_reads_itself(const sync_row *row)
{
    return sync_is_only_ranges(row) && row->ranges[0].size != SIZE_PATH && row->ranges[1].size != SIZE_PATH;
}

/* --- the process -------------------------------------------------------------------------------------------------- */

typedef enum { SYNC_WATCH_ONCE = 1, SYNC_WATCH_REGION, SYNC_WATCH_FORK_CALL, SYNC_WATCH_TASK, SYNC_WATCH_COMBINE } sync_watch;

typedef struct sync_call sync_call;
typedef struct sync_engine sync_engine;
/* The argument of a call that is a function which is to be watched, of which row, args and stack are filled in; SYNC_NO_ARG: none. */
uint8_t sync_watched(const sync_engine *engine, const sync_call *call, sync_watch *kind);
bool sync_watches(const sync_row *row); /* does it ever? */

enum { SYNC_DEPENDENT = 256 };
enum { SYNC_FDS = 1 << 16, SYNC_EPOLL_FDS = 1021, SYNC_EPOLLS = 256, SYNC_MOVES = 256 };

typedef struct {
    uint32_t epoll; /* descriptor plus 1 */
    uint32_t has_sockets; /* they have one channel, and are not among: */
    uint32_t count;
    uint32_t fds[SYNC_EPOLL_FDS];
} sync_epoll;

typedef struct { /* what comes out of channel `to` may have come from `from` */
    uint64_t from, to;
} sync_move;

typedef struct order_graph order_graph;

struct sync_engine { /* what the engine knows; made by the engine, then sync_create */
    void *context;
    report *report;
    /* The thread that the program calls `handle` (a pthread_t), or NULL. */
    ft_thread *(*thread_of)(void *context, uint64_t handle);
    /* The thread was joined: its ft_thread and its handle mean nothing any more. */
    void (*joined)(void *context, ft_thread *thread);
    /* Nobody will join the thread: once it has ended, ft_never_joined. */
    void (*detached)(void *context, ft_thread *thread);
    /* From now on, entries and returns of the function are to be told: sync_entered, sync_returned. Repeated for one
     * function; a function has one kind. */
    void (*watch)(void *context, uint64_t function, sync_watch kind);
    bool sees_mappings; /* the engine sees the system calls that map memory by itself */

    /* for this folder */
    uint64_t *channels; /* of descriptors: object addresses, or 0 */
    sync_epoll *epolls;
    uint32_t epoll_top; /* of them have been used */
    sync_move moves[SYNC_MOVES];
    uint32_t move_count;
    uint32_t lock; /* of channels and epolls */
    uint64_t next_channel;
    uint64_t dependent[SYNC_DEPENDENT]; /* functions of tasks with dependences, by hash; openmp.c */
    order_graph *order; /* or NULL */
};

/* False: no memory. */
bool sync_create(sync_engine *engine);
void sync_forked(sync_engine *engine); /* in a process that was just forked */

/* --- threads ------------------------------------------------------------------------------------------------------ */

enum { SYNC_TEAMS = 8, SYNC_HELD = 32, SYNC_ONCES = 16, SYNC_DEPTHS = 16 };

typedef struct { /* made by the engine, zeroed but for `ft`; one per thread */
    ft_thread *ft;         /* never NULL in the calls below */
    bool waiting;          /* a SYNC_WAIT is running, or what the program does in a call comes after something, with: */
    bool published;        /* others may have come to know what the thread does now */
    uint64_t mutex;        /* or another object; or the other way round, what others wait for (sync_settle) */
    struct {
        uint64_t id;
        uint32_t round; /* of its barriers */
    } teams[SYNC_TEAMS];
    uint32_t team_depth;
    struct {
        uint64_t lock;
        ft_site site;   /* where it was locked */
        uint32_t depth; /* it is recursive */
        bool is_shared;
    } held[SYNC_HELD];
    uint32_t held_count;
    uint64_t onces[SYNC_ONCES]; /* objects of the pthread_onces that are running, outermost first */
    uint32_t once_depth;
    uint32_t depth;             /* calls of the table that are running, since the last watched function began */
    uint64_t inside;            /* `stack` of the innermost of them that has a second half */
    uint32_t depths[SYNC_DEPTHS]; /* the same before that, outermost first */
    uint32_t watched_depth;
    uint64_t outer[SYNC_DEPTHS]; /* `mutex` of what was `waiting` when the watched functions began; 0: nothing was */
} sync_thread;

/* `parent` has created `child` (the engine has called ft_fork). */
void sync_created(sync_engine *engine, const ft_thread *parent, const ft_thread *child);
/* The thread is about to end, before ft_end. */
void sync_ending(sync_engine *engine, sync_thread *t);
/* A signal is about to be handled by the program in this thread. */
void sync_signalled(sync_engine *engine, sync_thread *t, int signal);
/* The thread runs code of the program although a wait has not returned: it was cancelled, and has its mutex again, or a library
 * calls the program before it lets the thread, or others, go on. An
 * engine calls it before a check, when `waiting` is set. */
void sync_settle(sync_thread *t);

/* --- calls -------------------------------------------------------------------------------------------------------- */

struct sync_call { /* one call, from its entry to its return; made by the engine, zeroed */
    const sync_row *row;
    uint64_t args[SYNC_ARGS]; /* all of them: rdi, rsi, rdx, rcx, r8, r9 */
    uint64_t stack;           /* where further arguments are: rsp at the entry plus 8 */
    ft_site site;             /* where it is called from */
    bool is_checked;          /* by code whose accesses are checked: of a module with a plan, or with -all; or by a jump from
                                 such code, which a modelled library has called */
    ft_thread *joined;        /* SYNC_JOIN: found before, since the handle may belong to another thread after it */
    uint32_t round;           /* SYNC_BARRIER */
    uint64_t old_size;        /* SYNC_REALLOC */
    uint64_t outside;         /* `inside` of the thread before it */
};

/* Is the call of a function of the table, which will return into this module (NULL: none is known), one of the program?
 * Not if a modelled library makes it inside of another call of the table. A return into a modelled library alone says
 * nothing: a function of the program that such a library has called may end with a jump to it. */
static inline bool sync_concerns(const sync_thread *t, const sync_row *row, const report_module *caller)
{
    bool is_inside = caller && caller->is_modelled && t->depth;
    return !is_inside || (row->meaning >= SYNC_MALLOC && row->meaning <= SYNC_UNMAP);
}

/* Is a call whose arguments on the stack are at `stack` made by another one that ends in a jump to it? (calloc to memset) */
static inline bool sync_is_jump(const sync_thread *t, uint64_t stack)
{
    return t->depth && t->inside == stack;
}

void sync_before(sync_engine *engine, sync_thread *t, sync_call *call);
void sync_after(sync_engine *engine, sync_thread *t, sync_call *call, uint64_t result);
/* The call was left by longjmp, by an exception or by the end of the thread. */
void sync_left(sync_engine *engine, sync_thread *t, sync_call *call);

/* A watched function begins and returns, or is left. `first`: its first argument. */
void sync_entered(sync_engine *engine, sync_thread *t, uint64_t function, sync_watch kind, uint64_t first);
void sync_returned(sync_engine *engine, sync_thread *t, uint64_t function, sync_watch kind, uint64_t first);

/* --- between the files of this folder ----------------------------------------------------------------------------- */

/* Objects without an address of their own. */
typedef enum {
    KIND_NUMBER = 1,
    KIND_CHANNEL,
    KIND_SIGNAL,
    KIND_REGION,
    KIND_REGION_END,
    KIND_TEAM,
    KIND_TASK,
    KIND_TASKS_DONE,
    KIND_DEPEND,
    KIND_COMBINE,
    KIND_PARTS,
    KIND_STREAM,
    KIND_FLOCK
} object_kind;
static inline uint64_t object_make(object_kind kind, uint64_t value)
{
    return (uint64_t)kind << 56 | (value & (((uint64_t)1 << 47) - 1));
}

static inline uint64_t call_argument(const sync_call *call, uint8_t number)
{
    return number < SYNC_ARGS ? call->args[number] : 0;
}
/* A signal by its number; 0: any, which is what a descriptor for signals tells of. */
static inline uint64_t object_of_signal(uint64_t number)
{
    return object_make(KIND_SIGNAL, (number & 127) * 64);
}

uint64_t call_object(const sync_call *call);
bool call_succeeded(const sync_row *row, uint64_t result);
bool sync_read(const sync_engine *engine, uint64_t from, void *to, size_t size);

/* range.c */
void ranges_before(sync_engine *engine, sync_thread *t, const sync_call *call);
void ranges_after(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result);

uint64_t range_string_size(const sync_engine *engine, uint64_t addr, uint64_t limit); /* with its zero; at most `limit` */
void range_check(sync_thread *t, const sync_call *call, bool is_write, uint64_t addr, uint64_t size);

/* format.c: the strings of a call whose format, argument `format`, is for arguments from `arg` on, or for the va_list in `arg`. */
void format_check(sync_engine *engine, sync_thread *t, const sync_call *call, uint8_t format, uint8_t arg, bool is_list);
/* What a call stored whose format of scanf is argument `format`, through pointers from argument `arg` on; `count` of them. */
void format_check_stores(sync_engine *engine, sync_thread *t, const sync_call *call, uint8_t format, uint8_t arg, int32_t count);

/* descriptor.c */
bool descriptor_create(sync_engine *engine);
void descriptor_before(sync_engine *engine, sync_thread *t, const sync_call *call);
void descriptor_after(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result);

/* openmp.c */
bool openmp_is_task(const sync_engine *engine, const sync_call *call); /* a SYNC_TARGET that is not waited for */
void openmp_before(sync_engine *engine, sync_thread *t, const sync_call *call);
bool openmp_calls_program(const sync_row *row);
void openmp_left(sync_thread *t); /* a call in which the program's code waited for something */
void openmp_after(sync_engine *engine, sync_thread *t, const sync_call *call, uint64_t result);

/* order.c: a thread has a lock, or has not any more. */
order_graph *order_create(report *r);
void order_locked(sync_engine *engine, sync_thread *t, uint64_t lock, bool is_shared, bool tried, ft_site site);
void order_unlocked(sync_thread *t, uint64_t lock);
void order_forget(sync_engine *engine, uint64_t lock); /* destroyed, or made anew */
void order_forget_range(sync_engine *engine, uint64_t addr, uint64_t size); /* the memory is new */
void order_forked_thread(order_graph *g, uint32_t parent, uint32_t child);
void order_joined_thread(order_graph *g, uint32_t thread, uint32_t child);

#endif
