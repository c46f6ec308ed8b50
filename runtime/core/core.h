/* runtime/core: FastTrack as a plain library. Events go in, races come out.
 *
 *   thread.c   threads: their vector clocks and slots, fork, join, end
 *   sync.c     synchronisation objects by address: acquire, release, reader-writer locks, barriers
 *   shadow.c   shadow memory: where the cells are, clearing them, pools for what does not fit into a cell
 *   check.c    one access: the fast path, and FastTrack's rules
 *   heap.c     the blocks that the program has allocated
 *   report.c   which races have been reported already
 *
 * It knows no engine, no plan and no operating system: memory and everything else it needs come from an `ft_host`. It
 * calls nothing of libc but memcpy, memset and the like, never the program's allocator, and never blocks, except for
 * short spins (on a synchronisation object that another thread is updating, on the table of threads, on a cell that is
 * being split while many threads read it); an engine must not let a signal handler of the program run in the middle of
 * a call.
 *
 * An engine gives every thread of the program an `ft_thread` and passes it to every call. Calls for one ft_thread come
 * from one thread at a time. All of the following may run concurrently for different threads.
 *
 * Exactness (tests/unit/core): on a byte that has not raced since it was last cleared, a race is reported by an access
 * if and only if full vector clocks would find one, for any mixture of sizes and alignments. */
#ifndef RACE_CORE_H
#define RACE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ft_core ft_core;
typedef struct ft_thread ft_thread;

/* Where an access happened. The engine chooses the numbers; 0 is "unknown". */
typedef uint32_t ft_site;

/* --- layout that an engine may inline --------------------------------------------------------------------------------
 *
 * Epoch: who and when. A thread's `epoch` is its current one; it changes when the thread releases.
 *
 *   31      24 23                     0
 *   +---------+------------------------+
 *   |  slot   |         clock          |    0: never. slot 0xff: not an epoch but a tag, see private.h
 *   +---------+------------------------+
 *
 * Cell: what is known about the four bytes at a multiple of 4. 16 bytes, updated as one unit.
 *
 *   127          96 95           64 63           32 31            0
 *   +--------------+---------------+---------------+---------------+
 *   |  read site   |  write site   |  read epoch   |  write epoch  |
 *   +--------------+---------------+---------------+---------------+
 *
 * The same-epoch path: an aligned write of 4 bytes has nothing to do when the write epoch of its cell is the thread's
 * epoch, a read when the write epoch or the read epoch is; one of 8 bytes when this holds for both cells.
 *
 * Directory: cell of address a = region + ((a mod 2^26) / 4) * 16, where region = core->regions[(a / 2^26) mod 2^21],
 * NULL as long as nothing in it was checked. */
enum { FT_SLOTS = 255, FT_TAG = 255, FT_CLOCK_BITS = 24, FT_CLOCK_MAX = (1 << FT_CLOCK_BITS) - 1 };
enum { FT_GRANULE = 4, FT_REGION_BITS = 26, FT_REGION_COUNT = 1 << 21 };

typedef struct {
    uint32_t write, read; /* epochs */
    ft_site write_site, read_site;
} ft_cell;

struct ft_thread {   /* the part that an engine may read */
    uint32_t epoch;  /* 0 while the thread has no slot: its accesses are not checked */
    uint32_t number; /* 0 for the first thread, then by creation */
    ft_core *core;
};

struct ft_core {
    uint32_t concurrent; /* 0: all that happened so far is ordered before all that will: no check is needed */
    uint32_t unused;
    ft_cell *regions[FT_REGION_COUNT];
};

/* --- host --------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t thread; /* number */
    ft_site site;
    bool is_write;
} ft_side;

typedef struct {
    uint64_t addr; /* the bytes that raced: 1 to 4 */
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
    /* A race. May be called by several threads at once and for each byte of an access; see ft_report_first. */
    void (*race)(void *context, const ft_race *race);
} ft_host;

typedef struct {
    uint64_t races;             /* calls of host->race */
    uint64_t threads;           /* that were created */
    uint64_t threads_unchecked; /* that had no slot, or lost it when its clock ran out and no other was free */
    uint64_t slots_changed;     /* a clock ran out: the thread went on in another slot */
    uint64_t splits, vectors;   /* cells split into bytes; cells with a read vector */
    uint64_t dropped;           /* facts not kept since a pool was full or memory ran out: races may be missed */
    uint64_t objects;           /* synchronisation objects */
} ft_stats;

/* NULL when the host has no memory. There is no way to destroy a core: its memory is the host's. */
ft_core *ft_create(const ft_host *host);
void ft_statistics(ft_core *core, ft_stats *out);
/* For tests: clocks run out at `limit` instead of FT_CLOCK_MAX. */
void ft_limit_clock(ft_core *core, uint32_t limit);

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* The thread that the program starts with; once. Never NULL, as little memory is needed. */
ft_thread *ft_first_thread(ft_core *core);
/* `parent` is about to create a thread: all it did so far is ordered before all the child does. `site` is where it is
 * created. The result is for the child's use; NULL only without memory. */
ft_thread *ft_fork(ft_thread *parent, ft_site site);
/* The creation failed: `child` never ran. */
void ft_fork_undo(ft_thread *parent, ft_thread *child);
/* The thread has done its last access. Its ft_thread may still be joined. */
void ft_end(ft_thread *thread);
/* `child` has ended, and all it did is ordered before what `thread` does from now on. At most once per thread; the
 * child's ft_thread must not be used any more. */
void ft_join(ft_thread *thread, ft_thread *child);
/* In a process that was just forked, where only `thread` lives on: all others are taken as joined. */
void ft_forked_process(ft_thread *thread);

typedef struct {
    uint32_t number, creator;
    ft_site site; /* where it was created */
    bool ended;
} ft_thread_info;
bool ft_describe_thread(ft_core *core, uint32_t number, ft_thread_info *out);

/* --- synchronisation ---------------------------------------------------------------------------------------------- */

/* Objects are named by an address and appear on first use. */
void ft_acquire(ft_thread *thread, uint64_t object); /* what was released there is ordered before what comes now */
void ft_release(ft_thread *thread, uint64_t object); /* what was done is ordered before later acquires */
void ft_forget(ft_thread *thread, uint64_t object);  /* initialised or destroyed: nothing was released there */

/* A reader-writer lock. `unlock` finds out which of the two it was. */
void ft_lock_read(ft_thread *thread, uint64_t object);
void ft_lock_write(ft_thread *thread, uint64_t object);
void ft_unlock(ft_thread *thread, uint64_t object);

/* A barrier for `count` threads. `enter` before waiting gives the round, which `leave` wants after it. */
void ft_barrier_init(ft_thread *thread, uint64_t object, uint32_t count);
uint32_t ft_barrier_enter(ft_thread *thread, uint64_t object);
void ft_barrier_leave(ft_thread *thread, uint64_t object, uint32_t round);

/* --- memory ------------------------------------------------------------------------------------------------------- */

void ft_read(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site);
void ft_write(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site);
/* The memory is new: nothing was ever done to it. */
void ft_clear(ft_thread *thread, uint64_t addr, uint64_t size);

/* A block of the program's heap. Freeing counts as a write of its first FT_FREE_CHECKED bytes: touching all of a large
 * block that the program itself never touched would cost more memory than the program has. */
enum { FT_FREE_CHECKED = 4096 };
void ft_allocated(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site);
void ft_freed(ft_thread *thread, uint64_t addr, ft_site site);

typedef struct {
    uint64_t addr, size;
    uint32_t thread; /* that allocated it */
    ft_site site;
} ft_block;
uint64_t ft_block_size(ft_core *core, uint64_t addr);                /* of the live block that starts there, or 0 */
bool ft_block_covering(ft_core *core, uint64_t addr, ft_block *out); /* slow: for reports */

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* True for the first race between these two sites, in either order. False too when too many are known to tell. */
bool ft_report_first(ft_core *core, ft_site one, ft_site other);

#endif
