/* static/hb: who runs what, what is shared, what is ordered, which locks are held.
 *
 *   sync.c       what library functions mean to threads, by name; sync_table.c: the table
 *   origin.c     threads and events: where they begin, who creates them, which instances of functions they run
 *   call.c       the calls of each function in their order, and where they go
 *   region.c     which code may run between two points: reachability over the code of an origin
 *   join.c       which calls wait for which threads; life.c: where threads are alive; meant.c: where they are meant to be
 *   order.c      shb_ordered: may two points run at the same time? task.c: tasks of OpenMP
 *   event.c      which threads run the handlers of events, signals and exits
 *   lock.c       the locks that are certainly held at each point; lock_name.c: which lock an address means; lock_release.c: letting
 *                go, and calls; lock_flow.c: in one function; lock_sparse.c: where in it; lock_robust.c: robust ones; lockset.c: sets of locks as numbers
 *   optional.c   locks that are taken on a condition
 *   guard.c      locks as an access sees them, and in words
 *   setup.c      what is set up before a thread begins and stays so
 *   given.c      what was so when a thread was created and stays so
 *   waited.c     who has waited for a condition before
 *   doubt.c      what a thread does only against what it knows: mode.c  variables that tell it what to do; flag.c  numbers that
 *                functions are called with
 *   value.c      what values are sums of, and what a branch says about them; value_facts.c: what is found of them once and for all
 *   memory.c     words of memory, owners of objects, what never leaves its thread
 *   touch.c      the accesses, of code and of library functions, as ranges of objects
 *   echo.c       branches that tell the same as others
 *   channel.c    semaphores, messages, signals: what is put in and taken out; publish.c: order by them and by flags; turn.c: a token
 *                that goes round; last.c: the last of those that count down; gather.c: all of them; barrier.c: barriers; letter.c: what a message names; ring.c: slots that two semaphores count; separate.c: all of it, asked
 *   gift.c       what each thread of a kind is given for its own; number*.c: what it has by its number; joined.c: those that are
 *                joined one by one; counter.c: what counts in loops
 *   level.c      how far from its begin an origin runs what
 *   nest.c       what tasks know of the function that made them
 *   process.c    what the child of a fork has for its own
 *   type.c       types at bytes
 *   fresh.c      objects that nobody else knows yet, or any more; handed.c: objects that may have been handed over; poll.c: loads that wait
 *   memo.c       what an analysis leaves for the next one; answers.c: what pointers said
 *   open.c       hb_open: all of it
 *
 * The graph is never built: inside of an origin order is reachability of positions, between origins it follows from where they
 * are created and joined (the papers: ECHO 3, D4 4, O2 in the dissertation 6.3). A subgraph belongs to a function and is shared
 * by all who run it; the numbers of functions, calls and accesses are dense, so that parts of it can be replaced.
 *
 * A position is an instance of a function and a machine instruction of it. */
#ifndef RACE_HB_H
#define RACE_HB_H

#include "static/hb/sync.h"
#include "static/pointer/pointer.h"

enum { HB_NONE = UINT32_MAX };

typedef struct {
    uint32_t instance, insn;
} hb_point;

typedef enum {
    HB_MAIN,
    HB_THREAD,
    HB_EVENT,   /* an event loop runs it */
    HB_SIGNAL,
    HB_AT_EXIT,
    HB_ENTRY,   /* of a library: may be called by anybody at any time */
    HB_OUTSIDE  /* its address is known to code that was not analysed */
} hb_kind;

typedef enum { /* how sure it is that an origin runs a piece of code, the surest first */
    HB_SURE,
    HB_DYING, /* only below a function that never comes back and is called from many places: when it gives up */
    HB_AGAINST, /* only against what it has tested, or been told, before */
    HB_MANY,  /* only if a call through a pointer that may be to many functions goes there */
    HB_WILD,  /* only if a call through a pointer of which nothing is known does */
    HB_DOUBTS
} hb_doubt;

typedef VEC(hb_point) hb_points;
typedef VEC(uint32_t) hb_numbers;

typedef struct {
    uint8_t kind;       /* hb_kind */
    bool overlaps;      /* two of it may run at the same time */
    bool looped;        /* its model starts any number of it at once */
    bool placed;        /* it is known which threads run it (`carriers`) and where */
    bool certain;       /* ... and not only which ones may */
    uint32_t entry;     /* function */
    uint32_t instance;  /* where it begins */
    uint32_t model;     /* the instance of the library function that creates it, or HB_NONE */
    hb_numbers models;  /* all of them */
    uint32_t twin;      /* the other of two that stand for any number, or HB_NONE */
    const sync_entry *by; /* what creates it, or NULL */
    hb_points sites;    /* where in code it is created */
    hb_numbers parents; /* origins that create it */
    hb_numbers carriers; /* events: threads that run it, with the place in `at` */
    hb_points at;
    uint64_t *self;     /* instances that it runs; bits */
    uint64_t *within[HB_WILD]; /* those that it runs with no greater doubt than this */
} hb_origin;

typedef struct hb hb;

/* --- accesses -------------------------------------------------------------------------------------------------------- */

typedef struct { /* bytes at + n * stride, `width` of them each, inside of [low, high) of an object */
    uint32_t object;
    uint32_t stride; /* 0: just one */
    int64_t at, low, high;
    uint32_t width;
    uint32_t period;    /* of a class in a part of each element of an array: bytes [from, to) of every `period`; 0: of none */
    int64_t from, to;
} hb_extent;

enum { HB_LIBRARY = 1 << 15 }; /* in flags: a library function does it */

typedef struct {
    uint32_t instance;
    uint32_t func;
    uint32_t insn;   /* machine instruction, in the function's lift_func->insns */
    uint32_t ir;     /* its IR_ACCESS; of a library function the call */
    uint16_t flags;  /* IR_READ, IR_WRITE, IR_ATOMIC, HB_LIBRARY */
    uint16_t width;  /* 0: unknown */
    uint32_t first_place, place_count; /* in hb->places */
} hb_touch;

typedef struct {
    uint32_t extent;  /* number of an extent */
    pta_place place;
} hb_place;

typedef struct {
    uint32_t origins, threads, events, outside;
    uint32_t joins, joins_unknown; /* calls that wait for threads; those of which it is not known for which */
    uint64_t accesses;             /* of instances */
    uint64_t accesses_unknown;     /* that may be to anything outside, or to anything at all */
    uint64_t accesses_lost;        /* that may be to so many places that nothing is known */
    uint64_t accesses_nowhere;     /* to nothing that is known */
    uint32_t objects, objects_shared;
    uint32_t locks, locksets;
    uint32_t lock_calls, lock_calls_unknown; /* calls that take locks; those of which it is not known which one */
} hb_statistics;

typedef enum { /* why an access, or some place of it, is in no touch */
    HB_LEFT_OUT_LOST,    /* it may be to too many places, or to none that is known: nothing is known of it */
    HB_LEFT_OUT_UNKNOWN, /* it may also be to memory that nothing is known of */
    HB_LEFT_OUT_OWN      /* all its places are of its own thread, or constant */
} hb_reason_left_out;

typedef struct {
    uint32_t instance, func, insn, ir;
    uint16_t flags, width; /* as in hb_touch */
    uint8_t why;           /* hb_reason_left_out */
} hb_left_out;

/* What an analysis leaves for those of nearly the same program, in one thread at a time; they find the same with it, only faster. */
typedef struct hb_memo hb_memo;
hb_memo *hb_memo_open(void);
void hb_memo_close(hb_memo *m);
typedef struct {
    uint32_t hits, misses; /* regions of the last analysis that were there already, or were not */
} hb_memo_statistics;
hb_memo_statistics hb_memo_stats(const hb_memo *m);

typedef struct {
    bool open;  /* exported functions may be called by anybody */
    bool notes; /* note also what is left out for good reasons: HB_LEFT_OUT_OWN */
    /* What functions of the user's own mean; NULL: nothing. May be NULL itself. */
    const sync_entry *(*sync)(const void *with, const char *name);
    const void *with;
    hb_memo *memo; /* or NULL */
    const pta_changes *changes; /* of the result since the last analysis with this memo; NULL: nobody knows */
    bool recheck; /* what is taken over from that one is looked for all the same; the program ends where it is another */
} hb_options;

/* Requires a result of the program; both must outlive it. */
hb *hb_open(const pta *p, const pta_program *program, const hb_options *options);
void hb_close(hb *h);

/* --- asking ---------------------------------------------------------------------------------------------------------- */

const hb_origin *hb_origins(const hb *h, uint32_t *count);
/* Whether an origin runs an instance. */
bool hb_runs(const hb *h, uint32_t origin, uint32_t instance);
/* How sure that is, if it does, and comes to that point. */
hb_doubt hb_runs_how(hb *h, uint32_t origin, hb_point at);
/* A point of the user's own code: where the function of the standard library that a point is in was called. */
hb_point hb_user_point(const hb *h, hb_point at);
const char *hb_origin_name(const hb *h, uint32_t origin);
/* The call that led to the creation of a thread by a function that creates others at its other calls; false: there is no such. */
bool hb_origin_caller(const hb *h, uint32_t origin, hb_point *out);
/* "thread", "event handler"; what its name follows. */
const char *hb_kind_name(uint8_t kind);
/* The calls that may wait for its end and for that of no other kind of thread. */
void hb_waits_for(const hb *h, uint32_t origin, hb_points *out);

/* Whether two points, each run by an origin, can never run at the same time because of what creates, joins or carries whom.
 * `reason` (or NULL) gets a few words when it is false. */
bool shb_ordered(const hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b, const char **reason);

/* The same for many pairs: an origin at a point, by number; points that order cannot tell apart have one number. */
uint32_t hb_stance(hb *h, uint32_t origin, hb_point at, uint32_t position);
/* What of a point order asks about, whoever runs it. */
uint32_t hb_position(hb *h, hb_point at);
uint32_t hb_stance_origin(const hb *h, uint32_t stance);
typedef enum {
    HB_MEET_SURE,
    HB_MEET_UNMEANT, /* only if none of the calls that may wait for a thread has, or after an error that longjmp has come back from */
    HB_MEET_WILD     /* only with what is created if calls through unknown pointers lead there */
} hb_meeting;
/* When it is false: why, and how sure that is. */
bool hb_stances_ordered(hb *h, uint32_t a, uint32_t b, const char **reason, hb_meeting *how);

/* All accesses, by function, instruction and instance. */
const hb_touch *hb_touches(const hb *h, uint32_t *count);
const hb_place *hb_places(const hb *h, const hb_touch *touch);
/* Accesses that make no pairs, or not all of them, once for each instance (HB_LEFT_OUT_OWN: only if hb_options asked for notes). */
const hb_left_out *hb_left_outs(const hb *h, uint32_t *count);
const hb_extent *hb_extent_at(const hb *h, uint32_t extent);
bool hb_overlap(const hb_extent *a, const hb_extent *b);
/* An object that never leaves the thread that owns it. */
bool hb_stays(const hb *h, uint32_t object);
uint32_t hb_object_count(const hb *h);
/* HB_NONE: there is none. */
uint32_t hb_find_object(const hb *h, uint32_t site, uint32_t context);
/* The first access of a function, or behind it. */
uint32_t hb_first_touch(const hb *h, uint32_t func);
void hb_object_at(const hb *h, uint32_t object, uint32_t *site, uint32_t *context);
const hb_statistics *hb_stats(const hb *h);

typedef struct {
    const image_type *scalar; /* or NULL */
    bool is_atomic, is_volatile;
} hb_typed;
/* What lies at a byte of a type. */
hb_typed hb_type_at(const image_type *type, uint64_t offset, uint32_t width);

/* The code of a function accesses a variable of its frame, that of its own activation; another thread has another. */
bool hb_own_frame(const hb *h, const hb_touch *t, const hb_place *p);
/* Two accesses, each by an origin, of places that look alike, but never to the same bytes, or never at the same time. */
/* An access in the child of a fork is separate from all others, but to what may be mapped. */
bool hb_in_child(const hb *h, const hb_touch *t);
bool hb_is_mapped(const hb *h, const hb_place *place);
bool hb_separate(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb);

/* The access is a load that a loop repeats until it finds what it waits for, in a variable that others change atomically. */
bool hb_polls(const hb *h, const hb_touch *t, const hb_place *place);
/* Somebody stores there by an atomic instruction. */
bool hb_changes_atomically(const hb *h, const hb_place *place);
/* A branch of its function depends on what a load finds. */
bool hb_decides(const hb *h, const hb_touch *t);
/* The access is to an object that its function has just allocated and nobody else knows yet. */
bool hb_fresh(hb *h, const hb_touch *t, const hb_place *p);
/* The access is to an object that its function has taken out of a word under a lock, and has not handed on: the lock, or HB_NONE. */
uint32_t hb_taken(hb *h, const hb_touch *t, const hb_place *p);
/* The access is to an object on the heap that its function, or who has called it, has allocated, or has come to under some lock: it may
 * have been handed over. Only for ranking. */
bool hb_handed(hb *h, const hb_touch *t, const hb_place *p);
/* The access is to an object that its function, or its caller, has come to while the lock is held. */
bool hb_reached_under(hb *h, const hb_touch *t, uint32_t lock);
bool hb_holds_lock(hb *h, hb_point at, uint32_t lock);
/* The words that hold an object's address and that others can see, one after the other; `*from` begins with 0. */
bool hb_holder(hb *h, uint32_t object, uint32_t *from, hb_extent *out);
/* All words of memory that hold addresses, and which: as pta_each_word tells them, in its order. */
void hb_each_word(const hb *h, void (*each)(void *with, const pta_place *word, const pta_places *holds), void *with);
/* A global variable has its address. */
bool hb_held_by_variable(hb *h, uint32_t object);

/* --- locks ----------------------------------------------------------------------------------------------------------- */

/* The place is a lock that the program has made of atomics itself. */
bool hb_is_spin(const hb *h, const pta_place *place);
/* The set of locks held in front of a point; UINT32_MAX: the point is never reached. */
uint32_t hb_locks_at(hb *h, hb_point at);

typedef struct { /* a lock, seen from an access */
    uint8_t kind;  /* HB_GUARD_* */
    bool shared;
    uint32_t lock; /* its number; of HB_GUARD_NEAR: of the access's site */
    int64_t at;    /* HB_GUARD_NEAR: place of the lock in the object that is accessed */
} hb_guard;
enum { HB_GUARD_LOCK, HB_GUARD_NEAR, HB_GUARD_INDEX /* lock and access have one index: locks[i], data[i] */ };
typedef VEC(hb_guard) hb_guards;

/* What guards an access of a place when the locks of a set are held. */
void hb_guards_of(hb *h, const hb_touch *touch, const hb_place *place, uint32_t set, hb_guards *out);
/* The same for an access of which it is not known what it is to, or where that does not matter (`place` NULL): HB_GUARD_NEAR then has the
 * distance of the lock from the accessed address, and is common to two that access the same address. */
void hb_guards_near(hb *h, const hb_touch *touch, const hb_place *place, uint32_t set, hb_guards *out);
bool hb_guarded(const hb_guards *a, const hb_guards *b);
/* Whether an origin that is at a point has waited for a condition before. */
bool hb_has_waited(hb *h, uint32_t origin, hb_point at);
/* To be said before: an instruction loads an atomic variable, and a branch depends on it. */
void hb_wait_mark(hb *h, uint32_t func, uint32_t insn);
/* Whether some lock of one set may be one of the other's, as far as it is known which ones they are. */
bool hb_may_share_lock(hb *h, uint32_t a, uint32_t b);
/* The same of two points, of locks that are taken on conditions. */
bool hb_share_optional(hb *h, hb_point a, hb_point b);
/* Whether a set has what a user would call a lock. */
bool hb_holds_locks(const hb *h, uint32_t set);
/* The locks of a set that a user would call so, one after the other; false: no more. */
bool hb_lock_shown(const hb *h, uint32_t set, uint32_t i, uint32_t *lock);
/* Where it lies, or one of the places where it may; false: nothing is known. */
bool hb_lock_place(const hb *h, uint32_t lock, pta_place *out);
void hb_one_lock_name(hb *h, uint32_t lock, char *to, size_t size);

typedef struct { /* taking a lock */
    hb_point at;
    uint32_t held; /* set, before */
    uint32_t lock, value; /* what it is known as; HB_NONE */
    uint64_t kind; /* hb_lock_kind of it; 0: unknown */
    bool tries;    /* does not wait */
    bool shared;
} hb_taking;
typedef VEC(hb_taking) hb_takings;
void hb_lock_takings(hb *h, hb_takings *out);
/* A number that is the same for all locks at one place of objects of one kind; 0: nothing is known. `*many`: there may be
 * several of them. */
uint64_t hb_lock_kind(const hb *h, uint32_t lock, bool *many);
bool hb_lock_is_value(const hb *h, uint32_t lock);
bool hb_lock_shared(const hb *h, uint32_t lock);
/* Whether the function at a point compares the addresses of two locks: it takes them in the order of their addresses. */
bool hb_compares(const hb *h, hb_point at, uint32_t a, uint32_t b);
/* The locks of a set. HB_NONE: none of interest. */
uint32_t hb_set_size(const hb *h, uint32_t set);
uint32_t hb_set_lock(const hb *h, uint32_t set, uint32_t i);

#endif
