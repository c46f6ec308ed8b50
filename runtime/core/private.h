/* What the files of the core share, and nobody else sees.
 *
 * Tags. An epoch whose slot is FT_TAG says that its cell does not hold the fact itself; the low 24 bits say where:
 *
 *   write epoch tagged, payload < TAG_BUSY   split: the four bytes have a cell each, in split block `payload`
 *   write epoch tagged, payload = TAG_BUSY   one thread is just splitting the cell; the others wait
 *   read epoch tagged                        many threads read: their epochs are in read vector `payload`
 *
 * A cell stays split, and keeps its vector, for ever; clearing it clears them. So a thread that looks at a block or
 * vector while another changes the cell still looks at the right one, and none is ever reused for another cell. */
#ifndef RACE_CORE_PRIVATE_H
#define RACE_CORE_PRIVATE_H

#include "runtime/core/core.h"

#include <string.h>

enum { NO_SLOT = 0xffff, TAG_BUSY = (1 << FT_CLOCK_BITS) - 1 };
enum { POOL_CHUNK = 1 << 16, POOL_CHUNKS = 1 << 8 }; /* together the 2^24 that fit into a tag; the last is TAG_BUSY */
enum { PART_ENTRIES = 16, VECTOR_PARTS = 16 };
enum { OBJECT_BUCKETS = 1 << 16, HEAP_BUCKETS = 1 << 16, REPORT_PAIRS = 1 << 16 };

static inline uint32_t epoch_make(uint32_t slot, uint32_t clock)
{
    return slot << FT_CLOCK_BITS | clock;
}
static inline uint32_t epoch_slot(uint32_t epoch)
{
    return epoch >> FT_CLOCK_BITS;
}
static inline uint32_t epoch_clock(uint32_t epoch)
{
    return epoch & FT_CLOCK_MAX;
}
static inline bool is_tag(uint32_t epoch)
{
    return epoch_slot(epoch) == FT_TAG;
}

typedef struct { /* fixed-size blocks, handed out once, numbered from 0, zeroed */
    uint32_t next;
    uint32_t lock;
    size_t block; /* bytes of one */
    char *chunks[POOL_CHUNKS];
} pool;

typedef struct {
    uint32_t part[VECTOR_PARTS]; /* of PART_ENTRIES slots each: number of the part in its pool plus 1, or 0 */
} read_vector;

typedef struct {
    uint64_t entry[PART_ENTRIES]; /* clock in the low half, site in the high half */
} vector_part;

typedef struct {
    ft_cell byte[FT_GRANULE];
} split_block;

typedef struct { /* bytes of any size from the host, never given back */
    uint32_t lock;
    char *at;
    size_t left;
} bump;

typedef struct {
    uint32_t cap;
    uint32_t *entry;
} vector_clock;

typedef struct barrier_round {
    struct barrier_round *next;
    uint32_t number;
    uint32_t inside; /* threads that have entered and not left */
    vector_clock released;
} barrier_round;

typedef struct sync_object {
    struct sync_object *next;
    uint64_t addr;
    uint32_t lock;
    uint32_t writer;          /* number + 1 of the thread that holds it for writing */
    uint32_t count;           /* barrier: threads of a round */
    uint32_t arrived;         /* barrier: threads of this round that have arrived */
    uint32_t round;           /* barrier: the one that threads enter now */
    vector_clock released[2]; /* [1]: by readers of a reader-writer lock */
    barrier_round *rounds, *spare_rounds;
} sync_object;

typedef struct heap_block {
    struct heap_block *next;
    ft_block block;
} heap_block;

typedef struct {
    uint32_t lock;
    heap_block *first;
} heap_bucket;

typedef struct {
    uint32_t first_clock, number; /* from this clock on, this thread had the slot */
} slot_owner;

typedef struct {
    bool in_use;
    uint32_t last;      /* clock of the last epoch that a thread that left the slot had in it */
    slot_owner *owners; /* by first_clock */
    uint32_t owner_count, owner_cap;
} slot_state;

typedef struct thread_state {
    ft_thread pub;
    uint32_t slot;                      /* or NO_SLOT */
    bool ended, is_known;               /* is_known: counted in threads_unchecked already */
    uint32_t spare_split, spare_vector; /* blocks from the pools that no cell got, plus 1 */
    uint32_t clock[FT_SLOTS];
    struct thread_state *next_free;
    struct thread_state *next; /* all that were ever made */
} thread_state;

typedef struct {
    ft_core pub;
    ft_host host;
    uint32_t clock_limit;
    uint32_t slot_high; /* slots from here on were never used */
    uint32_t lock;      /* of the tables of threads and slots, and of the directory */
    uint32_t running;
    uint32_t thread_count;
    slot_state slots[FT_SLOTS];
    thread_state *free_threads, *all_threads;
    ft_thread_info *infos; /* by number */
    uint32_t info_cap;
    bump memory;
    pool splits, vectors, parts;
    sync_object *objects[OBJECT_BUCKETS];
    heap_bucket heap[HEAP_BUCKETS];
    heap_block *free_blocks;
    uint32_t heap_lock;
    uint64_t pairs[REPORT_PAIRS];
    ft_stats stats;
} core_state;

static inline core_state *core_of(ft_core *core)
{
    return (core_state *)core;
}
static inline thread_state *state_of(ft_thread *thread)
{
    return (thread_state *)thread;
}
static inline core_state *core_of_thread(ft_thread *thread)
{
    return (core_state *)thread->core;
}
static inline void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
static inline bool is_concurrent(const ft_core *core)
{
    return __atomic_load_n(&core->concurrent, __ATOMIC_RELAXED);
}
static inline uint64_t hash_address(uint64_t addr)
{
    return addr * 0x9e3779b97f4a7c15u;
}

/* shadow.c */
void spin_wait(core_state *core);
void spin_lock(core_state *core, uint32_t *lock);
void spin_unlock(uint32_t *lock);
void *memory_take(core_state *core, size_t size); /* zeroed, aligned to 16; NULL: none left (counted) */
void *pool_at(const pool *p, uint32_t number);
bool pool_take(core_state *core, pool *p, uint32_t *number); /* false: full (counted) */
/* The cells of the region that addr is in; created on demand. NULL: no memory (counted). */
ft_cell *region_of(core_state *core, uint64_t addr);
/* The entry of a slot in a read vector; `create`: made when it is not there. NULL: not there, or no memory. */
uint64_t *vector_entry(core_state *core, read_vector *v, uint32_t slot, bool create);

/* check.c */
bool cell_swap(ft_cell *cell, const ft_cell *old, const ft_cell *new);
ft_cell cell_load(const ft_cell *cell);
/* The byte cells of a granule, which is split when it was not; NULL: no memory. */
split_block *cell_split(thread_state *t, ft_cell *cell);

/* thread.c */
void thread_tick(thread_state *t);                       /* a release: later accesses have another epoch */
uint32_t thread_owner(core_state *core, uint32_t epoch); /* number of the thread that had this epoch */

#endif
