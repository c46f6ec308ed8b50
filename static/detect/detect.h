/* static/detect: from what is shared, ordered and guarded to warnings.
 *
 *   type.c       types of objects: of variables, and as far as pointers with types tell, of the heap
 *   declared.c   what accesses are to by declaration: members of structs
 *   name.c       places in the user's words: `stats.curr_conns`, `conn.hits`
 *   entries.c    accesses by object
 *   race.c       pairs of accesses that nothing orders or guards
 *   member.c     the same of accesses of which only the member is known that they are to
 *   guards.c     locks of accesses, by number; company.c: who runs them
 *   decide.c     what was decided about each access, warned of or not
 *   deadlock.c   cycles of locks
 *   rank.c       how sure a warning is, and why
 *   identity.c   ids that survive rebuilds, and the order of warnings
 *   suppress.c   what the user does not want to see: ThreadSanitizer's suppressions; benign.c: RACE_BENIGN
 *   config.c     locks, threads and allocators of the user's own
 *   open.c       detect_open: all of it */
#ifndef RACE_DETECT_H
#define RACE_DETECT_H

#include "static/hb/hb.h"

typedef enum { DETECT_HIGH, DETECT_MEDIUM, DETECT_LOW } detect_confidence;
typedef enum { DETECT_RACE, DETECT_DEADLOCK } detect_kind;

typedef struct {
    uint32_t touch;   /* number of an hb_touch; of a deadlock: unused */
    hb_point at;
    uint32_t func;
    uint32_t origin;
    uint32_t locks;   /* set of locks held */
    uint32_t lock;    /* deadlock: the one that is waited for */
    bool write, read, atomic;
    uint64_t addr;    /* of the instruction */
} detect_access;

enum { DETECT_REASONS = 6 };

typedef struct {
    uint8_t kind;       /* detect_kind */
    uint8_t confidence; /* detect_confidence */
    char id[20];        /* stable */
    char *location;     /* in words */
    const char *symbol; /* that the linker knows the variable by; NULL: it is none, or has none */
    char *key;          /* the same without what a rebuild changes */
    char *about;        /* where the object comes from: "allocated by f at file:line"; NULL */
    uint32_t size;      /* bytes */
    bool benign;        /* a note says that it is meant */
    const char *why;    /* why the accesses are not ordered */
    const char *reasons[DETECT_REASONS];
    uint32_t reason_count;
    detect_access *accesses; /* of a race: two; of a deadlock: one per lock of the cycle */
    uint32_t access_count;
    detect_access *holders;  /* of a deadlock: where each step took what it holds; func PTA_NO_FUNC: not known */
    int rank;           /* smaller: first */
    uint32_t number;    /* of a race: in the order in which they were found */
} detect_warning;

typedef VEC(detect_warning) detect_warnings;

typedef struct {
    uint64_t pairs, pairs_atomic, pairs_ordered, pairs_guarded, pairs_disjoint, pairs_racing;
    uint64_t pairs_skipped; /* of groups of accesses that are in warnings already, on objects with very many pairs */
    uint64_t pairs_handed; /* on objects whose address is handed over in order */
    uint32_t places_shared;
    uint64_t accesses_typed, accesses_untyped; /* that make no pairs by place: those that are paired by member, and those by nothing */
    uint32_t suppressed, benign;
} detect_statistics;

typedef struct detect detect;

typedef struct {
    const struct detect_suppressions *suppressions; /* or NULL */
    bool (*readable)(void *with, const char *text, char *to, size_t size); /* names of C++ as the source has them; false: none in it */
    void *with;
    bool decide; /* keep what is decided about each access: detect_decisions. Requires hb_options.notes */
} detect_options;

detect *detect_open(hb *h, const pta *p, const pta_program *program, const detect_options *options);
void detect_close(detect *d);
const detect_warnings *detect_found(const detect *d);
const detect_statistics *detect_stats(const detect *d);

/* --- decide.c ---- */
typedef enum { /* the surest first */
    DETECT_NO_ACCESS,
    DETECT_UNREACHED, /* never runs */
    DETECT_UNSHARED,  /* no other thread makes an access that conflicts */
    DETECT_ORDERED,   /* those that conflict never run at the same time */
    DETECT_GUARDED,   /* ... or hold a common lock */
    DETECT_APART,     /* ... or are to other bytes of what looks alike */
    DETECT_HANDED,    /* ... or are to an object that one of them has alone, since it is handed over in order */
    DETECT_ATOMIC,    /* taken as atomic */
    DETECT_RACING     /* in a warning, even if it was suppressed */
} detect_verdict;

typedef struct { /* what is known of an instruction, for all who run it */
    uint32_t func, insn;
    uint8_t of_read, of_write; /* detect_verdict */
    bool undecided; /* it may access what nothing is known of: it makes no pairs, or not all that it has */
} detect_decision;

typedef struct {
    uint32_t func, insn, warning; /* the last one: in detect_found */
} detect_racing;
typedef VEC(detect_racing) detect_racings;

/* By function and instruction; an instruction that is not there was not looked at, since nobody is known to run it, or it does
 * not access memory that others could. Calls are there when the library function they go to has a model of what it accesses. */
const detect_decision *detect_decisions(const detect *d, uint32_t *count);
/* All accesses that take part in races, with the warning that speaks of each; several look the same to the user. */
const detect_racings *detect_racing_accesses(const detect *d);

/* A lock in the words of the source: `stats_lock`, `conn.lock`. */
void detect_lock_name(const detect *d, uint32_t lock, char *to, size_t size);

/* --- suppress.c ---- */
typedef struct detect_suppressions detect_suppressions;
/* From the text of a file; NULL with one line in `error` when a line is none. */
detect_suppressions *detect_suppressions_read(const char *path, const char *text, race_error *error);
void detect_suppressions_free(detect_suppressions *s);

/* --- config.c ---- */
typedef struct detect_config detect_config;
/* From the text of a file; NULL with one line in `error` when a line is wrong. */
detect_config *detect_config_read(const char *path, const char *text, race_error *error);
void detect_config_free(detect_config *c);
/* For pta_wishes and hb_options; `config` may be NULL. */
uint16_t detect_config_asks(const void *config, const char *name);
const char *detect_config_model(const void *config, const char *name);
const sync_entry *detect_config_sync(const void *config, const char *name);

#endif
