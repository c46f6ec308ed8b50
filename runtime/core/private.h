/* What the files of the core share, and nobody else sees.
 *
 * Shadow memory. A region (64 MB of the program) has cells, and above them two levels of blocks:
 *
 *   chunk   64 KB of the program   16 pages
 *   page     4 KB                  1024 cells
 *   cell     4 bytes               or, split, 4 byte cells in a block of a pool
 *
 * A block is compact as long as all of it has the same history: its one cell says it, and everything below it is empty
 * (all cells zero). An access to a part of it makes it fine: what is below it says it. An access to all of a fine block
 * makes it compact again when what is below has become equal. So a check of a large range looks at one cell per 64 KB.
 *
 * Locks. A page's lock guards its form, its cell and everything below; a chunk's lock the same for the chunk. A chunk
 * becomes compact only under its own lock and those of all its pages, so who holds a page's lock and sees the chunk
 * fine may rely on it. Order: chunk, pages upwards; all other locks are taken last, one at a time. A lock is a sequence
 * number, odd while it is held: who only looks can do so without it, and looks at the number again afterwards. The page
 * of one thread is locked without an atomic instruction (lock.c).
 *
 * Marks in a cell:
 *
 *   write epoch = CELL_SPLIT          split: byte cells in block `write_site` of pool POOL_SPLIT; read epoch the same
 *   read site has WHERE_READERS       several unordered readers: they are in a vector (readers.c); the read epoch is
 * the one that came last, for its same-epoch path a site has WHERE_STACK            the rest is the number of a stack
 * (stack.c) which knows its site */
#ifndef RACE_CORE_PRIVATE_H
#define RACE_CORE_PRIVATE_H

#include "runtime/core/core.h"

#include <string.h>

typedef struct { /* a cell as a whole: a copy, a byte cell, or that of a block */
    uint32_t write, read; /* epochs */
    ft_site write_site, read_site;
} ft_cell;

#define WHERE_READERS 0x80000000u
#define WHERE_STACK   0x40000000u
#define SITE_FREE     0x20000000u /* of a site: the access is the free of a block */
#define CELL_SPLIT    0xffffffffu

enum { NO_SLOT = 0xffff };
enum { HOST_PAGE = 4096 };
enum { PAGE_BITS = 12, CHUNK_BITS = 16 };
enum { PAGE_SIZE = 1 << PAGE_BITS, CHUNK_SIZE = 1 << CHUNK_BITS, REGION_SIZE = 1 << FT_REGION_BITS };
enum { PAGE_CELLS = PAGE_SIZE / FT_GRANULE, CHUNK_PAGES = CHUNK_SIZE / PAGE_SIZE };
enum { OBJECT_BUCKETS = 1 << 16, HEAP_BUCKETS = 1 << 16, REPORT_PAIRS = 1 << 16, STACK_BUCKETS = 1 << 16 };

static inline bool likely(bool condition) /* for the paths that are counted in instructions */
{
    return __builtin_expect(condition, true);
}
static inline bool unlikely(bool condition)
{
    return __builtin_expect(condition, false);
}
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
static inline uint64_t hash_address(uint64_t addr)
{
    return addr * 0x9e3779b97f4a7c15u;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct { /* bytes of any size from the host, never given back */
    uint32_t lock;
    char *at;
    size_t left;
} bump;

/* Blocks of one size, by number. They stay where they are, so that looking at one that was given back is harmless. */
enum { POOL_SPLIT, POOL_READERS, READER_CLASSES = 5, POOLS = POOL_READERS + READER_CLASSES };
enum { POOL_CHUNK_BYTES = 1 << 22, POOL_CHUNKS = 1 << 12, MAGAZINE = 32 };

typedef struct {
    uint32_t lock;
    uint32_t fresh; /* numbers from here on were never given out */
    uint32_t free;  /* number + 1 of the first one given back; each begins with the next */
    uint32_t shift; /* 2^shift of them in a chunk */
    size_t block;   /* bytes of one */
    char *chunks[POOL_CHUNKS];
} pool;

typedef struct { /* blocks that a thread has at hand */
    uint32_t count;
    uint32_t number[MAGAZINE];
} magazine;

/* --- shadow ------------------------------------------------------------------------------------------------------- */

enum { FORM_COMPACT, FORM_FINE }; /* zeroed memory is compact and empty */

typedef struct {
    uint32_t seq; /* the lock */
    uint16_t form;
    uint16_t hits;      /* accesses to a part that the one cell settled: after some, refining is cheaper */
    uint32_t committed; /* page: its cells cost memory */
    uint32_t revoked;   /* the first page of a chunk: how often pages of it were (lock.c) */
    uint64_t objects; /* page: in which of its 64 lines there may be synchronisation objects; chunk: or 0 */
    struct thread_state *owner; /* page: lock.c */
    ft_cell cell;               /* when compact */
    uint64_t atomics; /* page: in which of its lines there may be locations of atomic instructions */
    uint64_t filler;
} block;
_Static_assert(sizeof(block) == 64, "a power of two: it is an index's factor");

typedef struct {
    ft_epochs cells[REGION_SIZE / FT_GRANULE];
    ft_sites sites[REGION_SIZE / FT_GRANULE];
    block pages[REGION_SIZE / PAGE_SIZE];
    block chunks[REGION_SIZE / CHUNK_SIZE];
} region;
_Static_assert(offsetof(region, cells) == 0 && offsetof(region, sites) == FT_SITES_AT, "core.h: layout");
_Static_assert(offsetof(region, pages) % (CHUNK_PAGES * sizeof(block)) == 0, "chunk_id");

typedef struct region_entry {
    struct region_entry *next;
    region *region;
} region_entry;

typedef struct {
    ft_cell byte[FT_GRANULE];
} split_block;

/* --- threads ------------------------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t first_clock, number; /* from this clock on, this thread had the slot */
} slot_owner;

typedef struct {
    bool in_use;
    uint32_t last;      /* clock of the last epoch that a thread that left the slot had in it */
    slot_owner *owners; /* by first_clock */
    uint32_t owner_count, owner_cap;
} slot_state;

typedef enum { OP_READ, OP_WRITE, OP_CLEAR } access_op;

typedef struct { /* a check that a signal handler made in the middle of a call */
    ft_strided elements;
    ft_site site;
    access_op op;
} deferred_check;

typedef struct { /* readers.c: a cell with these readers got this vector when this access came */
    uint32_t read;
    ft_site read_site;
    uint32_t epoch;
    ft_site where;
    ft_site result; /* 0: empty */
} readers_memo;

typedef struct { /* readers.c: the vector had the thread's epoch, when so many had been given back */
    ft_site readers;
    uint32_t epoch;
    uint64_t given_back;
} known_readers;

enum { MEMOS = 32, KNOWN = 128, DEFERRED = 32, PENDING = 4 };
enum { INSIDE_NOT, INSIDE_CALL, INSIDE_QUICK }; /* the last: in an engine's own short way, which waits for nobody (lock.c) */
typedef enum { RESET_NONE, RESET_CLOCKS, RESET_SLOTS, RESET_MEMORY } reset_kind;

typedef struct thread_state {
    ft_thread pub;
    uint64_t hazard;               /* chunk_id() of the pages of its own that this thread has locked (lock.c); or 0 */
    uint32_t slot;                 /* or NO_SLOT */
    bool ended, is_known, is_free; /* is_known: counted in threads_unchecked already */
    reset_kind wants_reset;        /* when the call ends */
    uint32_t deferred_head,
        deferred_tail; /* a ring: handlers put at the tail, the interrupted call takes at the head */
    deferred_check deferred[DEFERRED];
    union { /* locations that are to be acquired before the next thing that the thread does: */
        struct {
            uint32_t pending_count; /* atomic ones that it has read plainly */
            uint32_t told_count;    /* that it had read plainly before they became atomic: others put them here */
        };
        uint64_t has_pending;
    };
    uint64_t pending[PENDING], told[PENDING];
    uint32_t told_lock;
    magazine magazines[POOLS];
    readers_memo memos[MEMOS];
    uint32_t memos_used; /* a bit for each that is not empty */
    known_readers known[KNOWN];
    ft_stats stats; /* its part of them, kept when the state is used for another thread */
    uint32_t clock[FT_SLOTS + 1];
    struct thread_state *next_free;
    struct thread_state *next; /* all that were ever made */
} thread_state;

/* --- other tables ------------------------------------------------------------------------------------------------- */

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
    uint32_t writer;          /* number + 1 of the thread that holds it for writing */
    uint32_t known_to;        /* number + 1 of a thread that knows all of released[0] */
    bool is_atomic;           /* the location of atomic instructions */
    uint32_t count;           /* barrier: threads of a round */
    uint32_t arrived;         /* barrier: threads of this round that have arrived */
    uint32_t round;           /* barrier: the one that threads enter now */
    vector_clock released[2]; /* [1]: by readers of a reader-writer lock */
    barrier_round *rounds, *spare_rounds;
} sync_object;

typedef struct {
    uint32_t lock;
    sync_object *first;
} object_bucket;

typedef struct heap_block {
    struct heap_block *next;
    ft_block block;
} heap_block;

typedef struct {
    uint32_t lock;
    heap_block *first;
} heap_bucket;

typedef struct stack_entry {
    struct stack_entry *next;
    uint64_t hash;
    ft_site site;
    uint32_t number, count;
    uint64_t frames[];
} stack_entry;

enum { STACK_PAGE = 1 << 12, STACK_PAGES = 1 << 8 }; /* together 2^20 stacks: later ones are not kept */

typedef struct {
    uint32_t lock;
    uint32_t count;
    stack_entry *buckets[STACK_BUCKETS];
    stack_entry **pages[STACK_PAGES]; /* by number */
} stack_depot;

enum { NOTICE_CLOCKS, NOTICE_SLOTS, NOTICE_MEMORY, NOTICE_NO_SLOT, NOTICE_NO_MEMORY, NOTICE_STOPPED, NOTICES };

typedef struct {
    ft_core pub;
    ft_host host;
    ft_limits limits;
    uint32_t slot_high; /* slots from here on were never used since the last reset */
    uint32_t lock;      /* of the tables of threads and slots, and of the directory */
    uint32_t running;
    uint32_t thread_count;
    slot_state slots[FT_SLOTS];
    thread_state *free_threads, *all_threads;
    ft_thread_info *infos; /* by number */
    uint32_t info_cap;
    uint32_t reset_lock;
    uint32_t resetting; /* a reset waits for threads to leave, or is being done: nobody enters */
    uint32_t resets;    /* done so far */
    uint32_t noticed[NOTICES];
    bool is_stopped; /* nothing is checked any more */
    region_entry *regions;
    bump memory;
    pool pools[POOLS];
    uint64_t shadow_bytes;
    object_bucket objects[OBJECT_BUCKETS];
    sync_object *free_objects;
    uint32_t free_objects_lock;
    heap_bucket heap[HEAP_BUCKETS];
    heap_block *free_blocks;
    uint32_t heap_lock;
    stack_depot stacks;
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
static inline void count(uint64_t *counter) /* a counter that threads share */
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
__attribute__((always_inline)) static inline void count_own(uint64_t *counter) /* a counter of the calling thread */
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}
static inline bool is_concurrent(const ft_core *core)
{
    return __atomic_load_n(&core->concurrent, __ATOMIC_RELAXED);
}

/* Two threads that each write one thing and then read what the other has written: one of them must see it. The frequent
 * side has the light barrier, the rare one the heavy one, which costs the frequent side nothing if the host has it. */
__attribute__((always_inline)) static inline void barrier_light(const core_state *core)
{
    if (likely(core->host.barrier != NULL))
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void barrier_heavy(core_state *core)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (core->host.barrier) core->host.barrier(core->host.context);
}

/* --- access ------------------------------------------------------------------------------------------------------- */

/* Races found under a lock are told after it: the host may take its time, and locks of its own. One cell adds at most
 * RACES_PER_CELL. */
enum { RACES_PER_CELL = 16, RACES_PENDING = 5 * RACES_PER_CELL };

typedef struct {
    uint64_t addr;
    uint32_t size;
    uint32_t epoch;
    ft_site where;
    bool is_write;
} found_race;

typedef struct { /* the access being checked */
    core_state *core;
    thread_state *t;
    access_op op;
    uint32_t epoch;
    ft_site site, where; /* where: what the cells get */
    bool renew;          /* what the cell knows of this epoch gets this access's site: makes neighbours equal */
    unsigned races;
    found_race race[RACES_PENDING];
} access_state;

/* A cell without its lock held is read in two halves and is right only if its lock's number has not changed. */
typedef uint64_t __attribute__((may_alias)) cell_half;
static inline ft_cell cell_load(const ft_cell *cell)
{
    const cell_half *from = (const cell_half *)cell;
    union {
        uint64_t half[2];
        ft_cell cell;
    } now = {.half = {__atomic_load_n(&from[0], __ATOMIC_ACQUIRE), __atomic_load_n(&from[1], __ATOMIC_ACQUIRE)}};
    return now.cell;
}
static inline void cell_store(ft_cell *cell, ft_cell value)
{
    union {
        uint64_t half[2];
        ft_cell cell;
    } from = {.cell = value};
    cell_half *to = (cell_half *)cell;
    __atomic_store_n(&to[0], from.half[0], __ATOMIC_RELEASE);
    __atomic_store_n(&to[1], from.half[1], __ATOMIC_RELEASE);
}
/* The same of a cell of the shadow, whose sites lie apart. */
static inline ft_sites *sites_of(const ft_epochs *cell)
{
    return (ft_sites *)((char *)(uintptr_t)cell + FT_SITES_AT);
}
static inline ft_cell shadow_load(const ft_epochs *cell)
{
    union {
        uint64_t half[2];
        ft_cell cell;
    } now = {.half = {__atomic_load_n((const cell_half *)cell, __ATOMIC_ACQUIRE),
                      __atomic_load_n((const cell_half *)sites_of(cell), __ATOMIC_ACQUIRE)}};
    return now.cell;
}
static inline void shadow_store(ft_epochs *cell, ft_cell value)
{
    union {
        uint64_t half[2];
        ft_cell cell;
    } from = {.cell = value};
    __atomic_store_n((cell_half *)cell, from.half[0], __ATOMIC_RELEASE);
    __atomic_store_n((cell_half *)sites_of(cell), from.half[1], __ATOMIC_RELEASE);
}
static inline bool cell_equal(ft_cell a, ft_cell b)
{
    return !memcmp(&a, &b, sizeof a);
}
static inline bool cell_is_empty(ft_cell c)
{
    return !(c.write | c.read);
}
__attribute__((always_inline)) static inline bool is_ordered(const thread_state *t, uint32_t epoch)
{
    return epoch_clock(epoch) <= t->clock[epoch_slot(epoch)];
}

/* The rule where it is simple, which is nearly always: one reader at most, and nothing that is not ordered. False: it
 * is not, and nothing was done (check.c has all of it). */
static inline bool cell_apply_simply(const access_state *a, ft_cell *c)
{
    if (c->read_site & WHERE_READERS || c->write == CELL_SPLIT) return false;
    if (a->op == OP_CLEAR) {
        if (a->site && c->read) return false; /* who has read it must be told (sync_tell_readers) */
        *c = (ft_cell){0};
        return true;
    }
    if (c->write == a->epoch) return !a->renew; /* settled */
    if (!is_ordered(a->t, c->write) || !is_ordered(a->t, c->read)) return false;
    if (a->op == OP_WRITE) {
        *c = (ft_cell){.write = a->epoch, .write_site = a->where};
    } else {
        if (c->read == a->epoch) return false;
        c->read = a->epoch;
        c->read_site = a->where;
    }
    return true;
}

/* memory.c */
void spin_wait(core_state *core);
void spin_lock(core_state *core, uint32_t *lock);
void spin_unlock(uint32_t *lock);
void core_notice(core_state *core, unsigned notice);
void core_stop(core_state *core); /* a synchronisation cannot be kept: later races may be false, so none is reported */
void *host_reserve(core_state *core, size_t size); /* NULL: none left (counted) */
void *memory_take(core_state *core, size_t size);  /* zeroed, aligned to 16; NULL: none left (counted) */
/* An array that grows; the old one is left behind. False: no memory. */
bool memory_grow(core_state *core, void **data, uint32_t *cap, uint32_t needed, size_t item);
/* More shadow memory is about to be used; false: that would be above the limit, and a reset is asked for. */
bool shadow_charge(thread_state *t, size_t size);
bool pool_take(thread_state *t, unsigned which, uint32_t *number); /* false: no memory */
void pool_give(thread_state *t, unsigned which, uint32_t number);
void pool_return_all(thread_state *t); /* what the thread has at hand */
void pool_forget(core_state *core);    /* all blocks become free at once; nobody may use one */
static inline void *pool_at(const pool *p, uint32_t number)
{
    char *chunk = __atomic_load_n(&p->chunks[number >> p->shift], __ATOMIC_ACQUIRE);
    return chunk + (size_t)(number & ((1u << p->shift) - 1)) * p->block;
}

/* readers.c */
typedef struct {
    uint32_t refs; /* cells and memos that have it; of one that is free: the pool's link */
    uint32_t count;
    uint64_t entry[]; /* site in the high half, epoch in the low half */
} read_vector;
enum { VECTOR_SMALLEST = 4, VECTOR_BLOCK = 2 * sizeof(uint32_t) + VECTOR_SMALLEST * sizeof(uint64_t) };
uint32_t readers_block_size(unsigned class);
bool readers_have(const core_state *core, ft_site readers, uint32_t epoch);
void readers_add(access_state *a, ft_cell *c); /* a read that is not ordered after all readers of c */
/* The same, in the cell itself. */
void readers_add_to(thread_state *t, ft_epochs *cell, uint32_t epoch, ft_site where);
/* The same for `count` cells that have one vector, if they alone have it, and the thread is in it already. False: not so. */
bool readers_renew(thread_state *t, ft_epochs *cells, uint32_t count, uint32_t epoch, ft_site where);
void readers_hold(core_state *core, ft_site readers, uint32_t times);
void readers_drop(thread_state *t, ft_site readers, uint32_t times);
void readers_find_races(access_state *a, ft_site readers, uint64_t addr, uint32_t size);
void readers_forget_memos(thread_state *t);
/* Does the vector have the thread's epoch? False: it may. Requires that `readers` was read from a cell before. */
static inline bool readers_known(const core_state *core, const thread_state *t, ft_site readers, uint32_t epoch)
{
    const known_readers *k = &t->known[readers % KNOWN];
    return k->readers == readers && k->epoch == epoch &&
           k->given_back == __atomic_load_n(&core->pub.given_back, __ATOMIC_ACQUIRE);
}
/* It has, or had it when `given_back` was read. */
static inline void readers_learn(thread_state *t, ft_site readers, uint32_t epoch, uint64_t given_back)
{
    t->known[readers % KNOWN] = (known_readers){readers, epoch, given_back};
}

/* lock.c */
void block_lock(core_state *core, block *b);
__attribute__((always_inline)) static inline void block_unlock(block *b)
{
    __atomic_store_n(&b->seq, __atomic_load_n(&b->seq, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}
/* The same for all pages of a chunk, another one for others; not 0. */
__attribute__((always_inline)) static inline uint64_t chunk_id(const block *page)
{
    return (uint64_t)page / (CHUNK_PAGES * sizeof(block));
}
/* The page if it is the thread's own, without waiting; the hazard stays set in any case. */
__attribute__((always_inline)) static inline bool page_lock_own(thread_state *t, block *page)
{
    __atomic_store_n(&t->hazard, chunk_id(page), __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a light barrier: where there is no heavy one, no page has an owner */
    if (unlikely(__atomic_load_n(&page->owner, __ATOMIC_ACQUIRE) != t)) return false;
    __atomic_store_n(&page->seq, __atomic_load_n(&page->seq, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    return true;
}
#define OWNER_SHARED ((thread_state *)2) /* nobody's any more */
/* The same for a page that is shared as well, if nobody has it just now; no hazard is left when it fails. */
__attribute__((always_inline)) static inline bool page_lock_quickly(thread_state *t, block *page)
{
    const thread_state *owner = __atomic_load_n(&page->owner, __ATOMIC_ACQUIRE);
    if (likely(owner == t)) {
        if (likely(page_lock_own(t, page))) return true;
        __atomic_store_n(&t->hazard, 0, __ATOMIC_RELEASE);
        return false;
    }
    uint32_t seq = __atomic_load_n(&page->seq, __ATOMIC_RELAXED);
    return owner == OWNER_SHARED && !(seq & 1) &&
           __atomic_compare_exchange_n(&page->seq, &seq, seq + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
void page_lock_slowly(thread_state *t, block *page);
static inline void page_lock(thread_state *t, block *page)
{
    bool is_own = __atomic_load_n(&page->owner, __ATOMIC_RELAXED) == t;
    if (unlikely(!is_own) || unlikely(!page_lock_own(t, page))) page_lock_slowly(t, page);
}
bool page_try_lock(thread_state *t, block *page); /* one of several; unlock them by page_unlock too */
__attribute__((always_inline)) static inline void page_unlock(thread_state *t, block *page)
{
    block_unlock(page);
    __atomic_store_n(&t->hazard, 0, __ATOMIC_RELEASE);
}

/* shadow.c */
static inline region *region_at(const core_state *core, uint64_t addr) /* that addr is in, or NULL */
{
    ft_epochs *const *slot = &core->pub.regions[addr >> FT_REGION_BITS & (FT_REGION_COUNT - 1)];
    return (region *)__atomic_load_n(slot, __ATOMIC_ACQUIRE);
}
region *region_make(core_state *core, uint64_t addr); /* the same; made when it is not there. NULL: no memory */
/* Does the access to [addr, addr + size), part of one region, change nothing? Without locks; false when in doubt. */
bool shadow_settled(const access_state *a, uint64_t addr, uint64_t size);
/* Makes the access to a part of one page that is fine already; false: it is not, and perhaps not all was done. */
bool shadow_apply_in_page(access_state *a, uint64_t addr, uint64_t size);
/* `size` bytes of one cell, if its page is fine, with no location of atomic instructions near. Requires a thread that is inside. */
bool shadow_apply_part(thread_state *t, region *r, uint64_t addr, uint32_t size, access_op op, ft_site where);
void shadow_apply(access_state *a, uint64_t addr, uint64_t size);
void shadow_apply_strided(access_state *a, ft_strided elements); /* ascending, not overlapping */
void shadow_forget(core_state *core);                            /* all of it becomes empty; nobody may be inside */

/* check.c */
bool cell_settled(const access_state *a, const ft_cell *c);
void cell_apply(access_state *a, ft_cell *c, uint64_t addr, uint32_t size); /* under its lock; c is a copy */
void access_note_race(access_state *a, uint64_t addr, uint32_t size, uint32_t epoch, ft_site where, bool is_write);
void access_tell_races(access_state *a);
void check_deferred(thread_state *t);
void check_wipe(thread_state *t, uint64_t addr, uint64_t size); /* clears cells, but not the objects there */

/* thread.c */
bool thread_enter_later(thread_state *t);
static inline bool thread_enter(thread_state *t) /* every call begins so; false: it has interrupted another one */
{
    core_state *core = core_of_thread(&t->pub);
    if (unlikely(__atomic_load_n(&t->pub.inside, __ATOMIC_RELAXED) != INSIDE_NOT)) return false;
    __atomic_store_n(&t->pub.inside, INSIDE_CALL, __ATOMIC_RELAXED);
    barrier_light(core);
    return likely(!__atomic_load_n(&core->resetting, __ATOMIC_ACQUIRE)) || thread_enter_later(t);
}
void thread_tick(thread_state *t);                                  /* a release: later accesses have another epoch */
void thread_give_slot(core_state *core, thread_state *t);           /* requires core->lock */
uint32_t thread_owner(core_state *core, uint32_t epoch);            /* number of the thread that had this epoch */
void thread_end(core_state *core, thread_state *t);                 /* requires core->lock */
void thread_rest_if_alone(core_state *core, const thread_state *t); /* requires core->lock */

void thread_leave_busily(thread_state *t);
static inline void thread_leave(thread_state *t) /* and ends so; does a reset that is asked for */
{
    bool is_busy = t->wants_reset || t->deferred_head != __atomic_load_n(&t->deferred_tail, __ATOMIC_RELAXED);
    if (!is_busy) __atomic_store_n(&t->pub.inside, INSIDE_NOT, __ATOMIC_RELEASE);
    if (unlikely(is_busy) || unlikely(t->deferred_head != __atomic_load_n(&t->deferred_tail, __ATOMIC_RELAXED)))
        thread_leave_busily(t);
}

/* reset.c */
/* Outside of a call; `seen`: how many there had been when it was asked for. */
void core_reset(thread_state *t, reset_kind kind, uint32_t seen);

/* sync.c */
void sync_reset(core_state *core, bool unlock);                         /* nothing was released anywhere */
void sync_forget_range(core_state *core, uint64_t addr, uint64_t size); /* the objects there are no more */
bool sync_is_atomic_object(core_state *core, uint64_t addr);
static inline uint64_t sync_line(uint64_t addr) /* the bit of its line in `objects` and `atomics` of its page */
{
    return (uint64_t)1 << (addr >> 6 & 63);
}
static inline bool sync_is_atomic(core_state *core, uint64_t addr) /* plain accesses there are atomic too */
{
    const region *r = region_at(core, addr);
    if (!r) return false;
    uint64_t lines = __atomic_load_n(&r->pages[(addr & (REGION_SIZE - 1)) >> PAGE_BITS].atomics, __ATOMIC_ACQUIRE);
    return lines & sync_line(addr) && sync_is_atomic_object(core, addr);
}
void sync_plain_read(thread_state *t, uint64_t addr); /* a plain read of such a location is about to happen */
void sync_tell_readers(access_state *a, const ft_cell *c, uint64_t addr); /* what they have read is atomic from now on */
void sync_acquire_pending(thread_state *t);
static inline bool sync_has_pending(const thread_state *t)
{
    return __atomic_load_n(&t->has_pending, __ATOMIC_ACQUIRE);
}
static inline void sync_catch_up(thread_state *t) /* every call that is not settled begins so, outside of the core */
{
    if (sync_has_pending(t) && __atomic_load_n(&t->pub.inside, __ATOMIC_RELAXED) == INSIDE_NOT) sync_acquire_pending(t);
}

/* stack.c */
ft_site where_site(core_state *core, ft_site where);
uint32_t where_stack(ft_site where);

#endif
