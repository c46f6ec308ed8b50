/* runtime/core: FastTrack as a plain library. Events go in, races come out.
 *
 *   check.c    one access: the same-epoch path, FastTrack's rules, races found
 *   quick.h    the frequent case of an access that the same-epoch path does not settle
 *   shadow.c   shadow memory: which cell an access means; blocks that are kept as one cell, and refined on demand
 *   readers.c  the readers of a cell when one epoch cannot name them
 *   thread.c   threads: their vector clocks and slots, fork, join, end
 *   lock.c     locks of blocks of shadow memory; those of pages that one thread uses cost it nothing
 *   reset.c    when clocks, slots or memory run out, and in a forked process: everything so far is ordered
 *   sync.c     synchronisation objects by address: acquire, release, reader-writer locks, barriers
 *   heap.c     the blocks that the program has allocated
 *   stack.c    call stacks, each kept once
 *   report.c   which races have been reported already
 *   memory.c   memory from the host: spin locks, pools, the limit
 *
 * It knows no engine, no plan and no operating system: memory and everything else it needs come from an `ft_host`. It
 * calls nothing of libc but memcpy, memset and the like, and never the program's allocator. It waits only in short
 * spins, for a thread that is inside the core too.
 *
 * An engine gives every thread of the program an `ft_thread` and passes it to every call. Calls for one ft_thread come
 * from one thread at a time. All of the following may run concurrently for different threads.
 *
 * Signals. A handler of the program that interrupts a call may make checks (ft_read, ft_write, their strided forms):
 * they are done when the interrupted call ends. It must make no other call for its thread: an engine that cannot
 * exclude it looks at `inside` and delays the signal, as ThreadSanitizer does.
 *
 * Exactness (tests/unit/core): on a byte that has not raced since it was last cleared, a race is reported by an access
 * if and only if full vector clocks would find one, for any mixture of sizes and alignments. Three things weaken this,
 * and each is counted: a reset, a thread without a slot, a fact that is dropped for want of memory. */
#ifndef RACE_CORE_H
#define RACE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ft_core ft_core;
typedef struct ft_thread ft_thread;

/* Where an access happened. The engine chooses the numbers, below FT_SITES and best dense, so that whatever is kept per
 * site (counters, for one) can be an array; 0 is "unknown". */
typedef uint32_t ft_site;
enum { FT_SITES = 1 << 29 };

/* --- layout that an engine may inline --------------------------------------------------------------------------------
 *
 * Epoch: who and when. A thread's `epoch` is its current one; it changes when the thread releases.
 *
 *   31        22 21                   0
 *   +-----------+----------------------+
 *   |   slot    |        clock         |    0: never. All ones: not an epoch but a mark, see private.h
 *   +-----------+----------------------+
 *
 * Cell: what is known about the four bytes at a multiple of 4, changed by one thread at a time. Two halves of 8 bytes, which
 * lie apart: the same-epoch path looks at epochs only, and so touches half as much memory.
 *
 *   63           32 31            0        63           32 31            0
 *   +--------------+---------------+       +--------------+---------------+
 *   |  read epoch  |  write epoch  |       |  read site   |  write site   |
 *   +--------------+---------------+       +--------------+---------------+
 *
 * The same-epoch path: an aligned write of 4 bytes has nothing to do when the write epoch of its cell is the thread's
 * epoch, a read when the write epoch or the read epoch is; one of 8 bytes when this holds for both cells. Only the
 * thread itself puts its epoch anywhere, so this needs no lock.
 *
 * Data that several threads read: the highest bit of the read site says that it is the number of a read vector. Of
 * vectors only a thread's own entry changes. So a read has nothing to do as well when the thread's epoch is in the vector; this may be remembered as
 * long as core->given_back stays the same, which is to be read after the cell.
 *
 * Directory: epochs of address a = region + ((a mod 2^26) / 4) * 8, where region = core->regions[(a / 2^26) mod 2^21],
 * NULL as long as nothing in it was checked. The sites lie FT_SITES_AT bytes behind the epochs. */
enum {
    FT_SLOT_BITS = 10,
    FT_SLOTS = (1 << FT_SLOT_BITS) - 1,
    FT_CLOCK_BITS = 22,
    FT_CLOCK_MAX = (1 << FT_CLOCK_BITS) - 1
};
enum { FT_GRANULE = 4, FT_REGION_BITS = 26, FT_REGION_COUNT = 1 << 21 };

typedef struct {
    uint32_t write, read;
} ft_epochs;
typedef struct {
    ft_site write, read;
} ft_sites;
enum { FT_SITES_AT = (1 << FT_REGION_BITS) / FT_GRANULE * sizeof(ft_epochs) };

struct ft_thread {   /* the part that an engine may read */
    uint32_t epoch;  /* 0 while the thread has no slot: its accesses are not checked */
    uint32_t inside; /* not 0: in the middle of a call (see Signals) */
    uint32_t number; /* 0 for the first thread, then by creation */
    ft_core *core;
};

struct ft_core {
    uint32_t concurrent; /* 0: all that happened so far is ordered before all that will: no check is needed */
    uint32_t unused;
    uint64_t given_back; /* read vectors that are no more used: their numbers may mean others now */
    ft_epochs *regions[FT_REGION_COUNT];
    /* Changes whenever memory is cleared. That the thread has made an access in this epoch may be remembered, apart from
     * cells, as long as this stays the same; it is to be read before the cell. On a line of its own. */
    _Alignas(64) uint32_t cleared;
};

/* --- host --------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t thread; /* number */
    ft_site site;
    uint32_t stack; /* for ft_stack_get; 0: none was kept */
    bool is_write;
    bool is_free; /* a write that is the free of a block */
} ft_side;

typedef struct {
    uint64_t addr; /* the bytes that raced: of one range access, neighbours with the same earlier side together */
    uint32_t size;
    ft_side now;    /* the access that is being checked */
    ft_side before; /* the earlier one that is not ordered before it */
} ft_race;

typedef struct {
    void *context;
    /* `size` bytes (a multiple of 4096), zeroed, aligned to a page, committed only as they are touched; never given
     * back. NULL: no more. */
    void *(*reserve)(void *context, size_t size);
    /* Whole pages of a reservation become zero again, and should cost no memory any more. NULL: not possible. */
    void (*discard)(void *context, void *pages, size_t size);
    /* Let another thread run. NULL: spin. */
    void (*yield)(void *context);
    /* When it returns, every other thread of the process has executed a full memory barrier. NULL: not possible; then
     * barriers are where they are needed all the time. */
    void (*barrier)(void *context);
    /* A race. May be called by several threads at once; see ft_report_first. May call the functions that take a core,
     * none that take a thread. */
    void (*race)(void *context, const ft_race *race);
    /* One line for the user, once for each kind of it: from now on races may be missed. NULL: not wanted. */
    void (*notice)(void *context, const char *line);
    /* The stack of the access at `site` that the thread is making: what ft_stack_put gave for it, or `site`. Called
     * when the access is about to be remembered, not on the same-epoch path. NULL: only sites are kept. */
    ft_site (*stack)(void *context, ft_thread *thread, ft_site site);
} ft_host;

typedef struct {
    uint64_t races;                                      /* calls of host->race */
    uint64_t threads;                                    /* that were created */
    uint64_t threads_unchecked;                          /* that had no slot for some time: too many ran at once */
    uint64_t slots_reused;                               /* given to another thread after the one that had it */
    uint64_t slots_changed;                              /* a clock ran out: the thread went on in another slot */
    uint64_t resets_clocks, resets_slots, resets_memory; /* each: all accesses so far are taken as ordered */
    uint64_t dropped;                                    /* facts not kept since the host had no memory */
    uint64_t slow;                                       /* accesses that the same-epoch path did not settle */
    uint64_t deferred;                                   /* checks by a handler that interrupted a call */
    uint64_t refined, compacted;                         /* blocks: from one cell to many, and back */
    uint64_t splits, merges;                             /* cells split into bytes, and back */
    uint64_t vectors;                                    /* read vectors made */
    uint64_t revoked;                                    /* pages of one thread that another one came to */
    uint64_t objects;                                    /* synchronisation objects made */
    uint64_t shadow_bytes;                               /* what the limit of memory is about, now */
} ft_stats;

/* NULL when the host has no memory. There is no way to destroy a core: its memory is the host's. */
ft_core *ft_create(const ft_host *host);
void ft_statistics(ft_core *core, ft_stats *out);

typedef struct {           /* 0: as it is by default, which is the first value in the comment */
    uint32_t clock;        /* FT_CLOCK_MAX; not below 4: clocks run out here. For tests. */
    uint32_t slots;        /* FT_SLOTS; for tests */
    uint64_t shadow_bytes; /* none; not below 128 KB: cells, split cells and read vectors together. Above: a reset */
} ft_limits;
void ft_set_limits(ft_core *core, const ft_limits *limits); /* before the first thread */

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* The thread that the program starts with; once. Never NULL, as little memory is needed. */
ft_thread *ft_first_thread(ft_core *core);
/* `parent` is about to create a thread: all it did so far is ordered before all the child does. `site` is where it is
 * created, or what ft_stack_put gave for it. The result is for the child's use; NULL only without memory. */
ft_thread *ft_fork(ft_thread *parent, ft_site site);
/* The creation failed: `child` never ran. */
void ft_fork_undo(ft_thread *parent, ft_thread *child);
/* The thread has done its last access. Its ft_thread may still be joined. */
void ft_end(ft_thread *thread);
/* `child` has ended, and all it did is ordered before what `thread` does from now on. At most once per thread; the
 * child's ft_thread must not be used any more. */
void ft_join(ft_thread *thread, ft_thread *child);
/* `child` has ended, and nobody will join it; its ft_thread must not be used any more. */
void ft_never_joined(ft_core *core, ft_thread *child);
/* In a process that was just forked, where only `thread` lives on: all others are taken as joined. */
void ft_forked_process(ft_thread *thread);

typedef struct {
    uint32_t number, creator;
    ft_site site;   /* where it was created */
    uint32_t stack; /* for ft_stack_get; 0: none was kept */
    bool ended;
} ft_thread_info;
bool ft_describe_thread(ft_core *core, uint32_t number, ft_thread_info *out);

/* --- synchronisation ---------------------------------------------------------------------------------------------- */

/* Objects are named by an address and appear on first use. They go when their memory is cleared or allocated anew. */
void ft_acquire(ft_thread *thread, uint64_t object); /* what was released there is ordered before what comes now */
void ft_release(ft_thread *thread, uint64_t object); /* what was done is ordered before later acquires */
/* So is the next access: of a thread that lets others go on in a place that is not seen, in front of each of its accesses. */
void ft_publish(ft_thread *thread, uint64_t object);
void ft_forget(ft_thread *thread, uint64_t object);  /* initialised or destroyed: nothing was released there */

/* An atomic instruction on `object`: before it, if it writes; after it, if it reads. A plain access of up to 8 bytes at
 * the same address, made after that, is taken as atomic too: on x86 an atomic store or load is a plain move, which nobody
 * can tell. A write is a release; a read is an acquire that is done before the next thing the thread does, since its
 * check comes before it. */
void ft_atomic_before(ft_thread *thread, uint64_t object);
void ft_atomic_after(ft_thread *thread, uint64_t object);

/* A reader-writer lock. `unlock` finds out which of the two it was. */
void ft_lock_read(ft_thread *thread, uint64_t object);
void ft_lock_write(ft_thread *thread, uint64_t object);
void ft_unlock(ft_thread *thread, uint64_t object);

/* A barrier for `count` threads. `enter` before waiting gives the round, which `leave` wants after it. */
void ft_barrier_init(ft_thread *thread, uint64_t object, uint32_t count);
uint32_t ft_barrier_enter(ft_thread *thread, uint64_t object);
void ft_barrier_leave(ft_thread *thread, uint64_t object, uint32_t round);
/* The same for a barrier whose rounds the caller counts, each thread for itself, and whose number of threads is not known:
 * all of a round have entered it before one leaves it. A thread may enter a round more than once, and leaves as often. */
void ft_barrier_enter_round(ft_thread *thread, uint64_t object, uint32_t round);
void ft_barrier_leave_round(ft_thread *thread, uint64_t object, uint32_t round);

/* --- memory ------------------------------------------------------------------------------------------------------- */

void ft_read(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site);
void ft_write(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site);
/* `count` elements of `size` bytes, `stride` bytes from one to the next (any sign; they may overlap). */
typedef struct {
    uint64_t addr, size, count;
    int64_t stride;
} ft_strided;
void ft_read_strided(ft_thread *thread, ft_strided elements, ft_site site);
void ft_write_strided(ft_thread *thread, ft_strided elements, ft_site site);
/* The memory is new: nothing was ever done to it. Also for the stack of a thread that has ended. */
void ft_clear(ft_thread *thread, uint64_t addr, uint64_t size);

/* A block of the program's heap. Freeing counts as a write of all of it; allocating clears it. */
void ft_allocated(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site);
void ft_freed(ft_thread *thread, uint64_t addr, ft_site site);
/* A block is freed by code whose order is not known: it is no more, and that is no access. */
void ft_discarded(ft_thread *thread, uint64_t addr);

typedef struct {
    uint64_t addr, size;
    uint32_t thread; /* that allocated it */
    ft_site site;
} ft_block;
uint64_t ft_block_size(ft_core *core, uint64_t addr);                /* of the live block that starts there, or 0 */
bool ft_block_covering(ft_core *core, uint64_t addr, ft_block *out); /* slow: for reports */

/* --- stacks and reports ------------------------------------------------------------------------------------------- */

/* Keeps a stack (return addresses, innermost first; the innermost FT_FRAMES of them) of accesses at `site`. The result
 * stands for both; `site` itself when there is no memory. */
enum { FT_FRAMES = 64 };
ft_site ft_stack_put(ft_core *core, ft_site site, const uint64_t *frames, uint32_t count);
/* The frames of a stack, at most `cap`; returns how many. 0: an unknown number, or none. */
uint32_t ft_stack_get(ft_core *core, uint32_t stack, uint64_t *frames, uint32_t cap);

/* True for the first race between these two sites, in either order. False too when too many are known to tell. */
bool ft_report_first(ft_core *core, ft_site one, ft_site other);

#endif
