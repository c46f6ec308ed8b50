/* The locks that are certainly held at each point. */
#ifndef RACE_HB_LOCK_H
#define RACE_HB_LOCK_H

#include "static/hb/lockset.h"
#include "static/hb/private.h"
#include "static/hb/value.h"

typedef struct { /* a lock that a function lets go of without having taken it */
    uint8_t kind;  /* RELEASE_* */
    uint8_t param;
    int64_t at;    /* param + at; of a holder: the variable at param + at holds it */
    uint32_t lock; /* RELEASE_LOCK; RELEASE_PLACES: one of these places, by number; LOCK_ANYWHERE: of any */
} lock_release;

enum { RELEASE_LOCK, RELEASE_PARAM, RELEASE_HOLDER, RELEASE_PLACES };
enum { LOCK_ANYWHERE = 0 }; /* the number of the empty list of places: nothing is known */

typedef struct { /* what a call has last left of a set, when the summaries were those of a version; 0: never */
    uint32_t set, version, result;
} lock_step;

typedef struct { /* lock_sparse.c: what of an instance may change what is held */
    uint32_t *calls; /* numbers in the function's calls, in their order */
    uint32_t call_count;
    uint64_t *edges; /* bits */
    uint32_t *blocks; /* that have some of these, in reverse postorder */
    uint32_t block_count;
    bool ends;    /* the function's end can be reached, if all calls come back */
    bool unknown; /* it may go anywhere */
} lock_sparse;

typedef struct {
    bool matters;   /* something in it, or below it, takes or lets go of locks */
    bool lets_all_go; /* more releases than are kept: of any lock */
    bool calm;      /* when none is held on entry, none is held anywhere: once the gains are known */
    bool has_spin;  /* it may store to a lock that is made of atomics */
    uint32_t entry; /* held on entry, whoever calls; LOCKSET_ALL: nobody does */
    uint32_t gain;  /* held at its end when none is held on entry; LOCKSET_ALL: the end is not reached */
    VEC(lock_release) releases;
    uint32_t *blocks; /* per block: held on entry to it */
    uint32_t *stores; /* numbers of its accesses that may store to a lock that is made of atomics; of those with has_spin, once asked */
    uint32_t *store_places; /* of these: lock_places_number */
    uint32_t store_count;
    bool has_stores;
    lock_step *steps; /* per call; NULL: none yet */
    lock_sparse *sparse; /* of those that matter; NULL: none yet. With `optional` those of the certain ones, which own them */
} lock_instance;

typedef struct {
    pta_place place; /* in the memory's site */
} spin_place;

typedef struct {
    uint32_t first, count; /* in all_places */
} lock_places;

typedef struct {
    uint32_t object;
    int64_t at;
} lock_once;

typedef struct { /* what an address may be */
    uint32_t object, value; /* locks; UINT32_MAX: none */
    value_sum sum;
    uint32_t places;        /* number of a list */
} lock_name;

typedef struct {
    uint32_t instance, call;
    uint8_t arg;
    bool shared;
    int64_t add;
    lock_name name;
} lock_argument;

typedef struct { /* what a pointer was found to lead to */
    uint32_t instance;
    pta_operand what;
    uint32_t list;
} lock_asked;

typedef struct hb_locks {
    bool optional; /* with those that are taken on conditions: optional.c */
    const struct hb_locks *certain; /* of optional ones: those without */
    lockset_table table;
    lock_instance *instances;
    uint64_t *matters; /* the same as lock_instance.matters, as bits: most callees do not, and there are many */
    uint8_t *effects;  /* per instance: LOCK_EFFECT_*, for the same reason */
    uint64_t *summaries; /* the same: hash of its gain and releases, which is all that a call of it depends on: lock_is_known_kind */
    uint32_t version;  /* grows whenever the summary of an instance changes */
    uint32_t *changed; /* per instance: the version that this began */
    VEC(value_sum) sums; /* of LOCK_VALUE: terms, by number */
    VEC(uint32_t) sum_func;
    map64 sum_map;
    VEC(lock_argument) names; /* of arguments of calls, as they were asked for */
    map64 name_map;
    VEC(lock_places) place_lists; /* equal lists have one number; [LOCK_ANYWHERE]: none */
    VEC(pta_place) all_places;
    map64 place_map;
    map64 asked_map; /* by pta_hash_in and distance: */
    VEC(lock_asked) asked;
    map64 may_be;       /* lock and list of places: whether it may lie at one of them */
    map64 instance_map; /* func and context */
    VEC(uint64_t) kinds; /* per lock: of a LOCK_VALUE, where it lies; 0: unknown */
    map64 lists;         /* LOCK_VALUE: its places, by number */
    map64 shares;        /* pairs of sets: hb_may_share_lock */
    VEC(spin_place) spins;
    VEC(spin_place) guards; /* of C++ statics */
    VEC(lock_once) once_variables;   /* those, and what pthread_once is given: held as shared they stand for what has been done, and order
                               it; nobody would call them a lock */
    VEC(spin_place) robust;
    hb_numbers onces; /* locks: shared by whoever has passed a pthread_once */
} hb_locks;

enum { LOCK_EFFECT_ENDLESS, LOCK_EFFECT_NONE, LOCK_EFFECT_SOME }; /* its end is not reached; it leaves what is held; it may not */

/* --- lock_name.c ------------------------------------------------------------------------------------------------------ */

uint32_t lock_sum_number(hb *h, uint32_t func, const value_sum *sum); /* in hb_locks.sums */
uint64_t lock_place_kind(const hb *h, const pta_place *place); /* where in objects of which kind */
uint32_t lock_places_number(hb *h, const pta_places *places);
static inline const pta_place *lock_places_of(const hb *h, uint32_t list, uint32_t *count)
{
    *count = h->locks->place_lists.data[list].count;
    return h->locks->all_places.data + h->locks->place_lists.data[list].first;
}
/* What `sum`, which may point to `places`, means in a function. */
void lock_name_address(hb *h, uint32_t func, const value_sum *sum, uint32_t places, bool shared, lock_name *out);
/* What argument `arg` of a call, plus `add`, means. */
void lock_name_argument(hb *h, uint32_t instance, const hb_call *call, unsigned arg, int64_t add, bool shared, lock_name *out);
uint32_t lock_by_name(hb *h, const char *name, bool shared);
uint32_t lock_add(hb *h, uint32_t set, const lock_name *name);
/* The same by a call: one that is held already is held twice then. */
uint32_t lock_take(hb *h, uint32_t set, const lock_name *name);
/* Lets go of a lock that is held more than once. */
bool lock_undo_again(hb *h, uint32_t *set, uint32_t lock);

/* --- lock_release.c --------------------------------------------------------------------------------------------------- */

uint32_t lock_drop(hb *h, uint32_t set, uint32_t lock, bool *found);
uint32_t lock_release_named(hb *h, uint32_t instance, uint32_t set, const lock_name *name);
/* To be called when the summary of an instance has changed. */
void lock_summary_changed(hb *h, uint32_t instance);
enum { LOCK_KINDS = 8 };
typedef struct { /* callees of a call that were gone through, one of each summary: a call through a pointer may be to very many */
    uint32_t callees[LOCK_KINDS];
    uint32_t count;
} lock_kinds;
/* A callee that does the same was gone through, so that this one changes nothing more; else it is noted. */
bool lock_is_known_kind(const hb *h, lock_kinds *kinds, uint32_t instance, uint32_t callee);
/* The instance lets go of a lock that it has not taken. */
void lock_note_release(hb *h, uint32_t instance, lock_release r);
ir_value lock_call_argument(const ir_func *ir, const hb_call *call, unsigned arg);
/* Nothing is left of a set, and the instance lets go of everything: one more callee would change neither. A call through a wild pointer
 * has very many. */
static inline bool lock_is_spent(const hb *h, uint32_t instance, uint32_t set)
{
    return set == LOCKSET_EMPTY && h->locks->instances[instance].lets_all_go;
}
uint32_t lock_after_callee(hb *h, uint32_t instance, uint32_t set, const hb_call *call, uint32_t callee, unsigned depth);

/* --- lock_flow.c ------------------------------------------------------------------------------------------------------ */

/* From the begin of a block to instruction `until`. */
uint32_t lock_through_block(hb *h, uint32_t instance, const lift_func *f, uint32_t block, uint32_t set, uint32_t until);
/* What is held at the end, when `entry` is held at the begin; fills `blocks`. */
uint32_t lock_through_function(hb *h, uint32_t instance, uint32_t entry, uint32_t *blocks);
static inline bool lock_ends_function(const lift_block *b)
{
    return b->end_kind == END_RET || b->end_kind == END_TAIL || b->end_kind == END_TAIL_IND || b->tail;
}
/* The access of an xchg or cmpxchg that found a lock free, when a branch goes this way; 0: none. */
ir_value lock_spin_access(const ir_func *ir, const value_condition *c);

/* --- lock_sparse.c ---------------------------------------------------------------------------------------------------- */

lock_sparse *lock_sparse_make(const hb *h, uint32_t instance);
void lock_sparse_free(lock_sparse *s);

/* --- lock_robust.c ---------------------------------------------------------------------------------------------------- */

void lock_find_robust(hb *h);
/* A call that may not have taken the lock, as nobody looks whether it has. */
bool lock_is_lost(const hb *h, uint32_t instance, const hb_call *call, uint32_t places);

/* --- optional.c: of locks that are taken on conditions ---------------------------------------------------------------- */

/* An edge on which a lock is neither taken nor let go of, as it is on the other. */
bool lock_goes_past(const hb *h, uint32_t instance, uint32_t edge);
/* No edge of its function does. To be asked when some edge was. */
bool lock_goes_nowhere_past(const hb *h, uint32_t instance);
/* A call through a pointer that may be to many functions: one that lets go of other locks than its own is not what is meant. */
bool lock_is_broad(const hb *h, uint32_t instance, const hb_call *call);
/* A call through a pointer: what it calls that leaves locks alone is not what is meant. */
bool lock_ignores_idle(const hb *h, uint32_t instance, const hb_call *call);

/* --- lock.c ----------------------------------------------------------------------------------------------------------- */

void hb_locks_open(hb *h, bool optional);
void hb_locks_close(hb *h);

#endif
