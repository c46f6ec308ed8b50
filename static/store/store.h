/* static/store: what is kept of an analysis, so that the next one can say what has changed.
 *
 *   fingerprint.c  what a function is and does, without addresses: survives relinking, other link order, code added in between
 *   match.c        the functions of two builds: unchanged, renamed, changed, added, removed
 *   compare.c      the warnings of two analyses: which are new, which are gone; ids are kept
 *   state.c        an analysis as bytes and back; file.c: as a file, written beside and renamed
 *
 * A record (store_record) is self-contained: all that is printed of an analysis is in it, in words, so that what is gone can
 * still be shown. Everything of it is in its arena. */
#ifndef RACE_STORE_H
#define RACE_STORE_H

#include "static/lift/lift.h"

enum { STORE_NONE = UINT32_MAX };

/* === what was analysed ================================================================================================== */

typedef struct {
    const char *name; /* symbol without the numbers that compilers add; "" when there is none */
    const char *file; /* of a local symbol; "" */
    uint32_t ordinal; /* k-th of that name and file in its module */
    uint64_t entry;
    uint64_t shape;   /* what it does: its IR with every address replaced by what it means, functions by the order of use */
    uint64_t *callees; /* the functions that it names, in that order: store_name_hash; 0: one that has no name */
    uint32_t callee_count;
    uint64_t body;    /* both */
    uint64_t around;  /* the same with what it calls; tells equal bodies apart */
} store_func;

typedef struct {
    const char *path;
    const char *member;   /* of an archive; "" */
    const char *build_id;
    uint64_t content;     /* hash of the file */
    uint64_t facts;       /* what else was read: separate debug files */
    uint64_t instructions;
    store_func *funcs;    /* by entry */
    uint32_t func_count;
} store_module;

/* The functions of a module; strings and arrays are of `memory`. Safe to call for several modules at once with one arena each. */
void store_fingerprint(const lift_module *module, int jobs, arena *memory, store_module *out);
/* The same of a module that is known already; `from` may be of another arena. */
void store_module_copy(const store_module *from, arena *memory, store_module *out);

/* === what was found ===================================================================================================== */

typedef struct { /* a place in code; numbers STORE_NONE: unknown */
    uint32_t module, func; /* of the record */
    uint32_t insn;         /* machine instruction of the function */
    uint64_t addr;
    const char *function;
    const char *file;      /* or NULL */
    uint32_t line, column;
    const char *path;      /* of the module */
} store_place;

typedef struct {
    store_place at;
    bool write, read, atomic;
    bool has_since;
    const char *origin;   /* "main", "thread worker, created in main, a.c:12" */
    const char **locks;   /* held */
    uint32_t lock_count;
    const char *lock;     /* deadlock: the one that is waited for */
    store_place since;    /* deadlock, with has_since: where `held` was taken */
    const char *held;
} store_side;

typedef struct {
    uint8_t kind;       /* detect_kind */
    uint8_t confidence; /* detect_confidence */
    const char *id;
    const char *location, *key;
    const char *about, *why; /* or NULL */
    uint32_t size;
    const char **reasons;
    uint32_t reason_count;
    store_side *sides;  /* of a race: two; of a deadlock: one per lock of the cycle */
    uint32_t side_count;
} store_warning;

typedef struct {
    const char *name;
    uint64_t value;
} store_counter;

typedef struct {
    uint64_t how;       /* hash of all that the result depends on besides the modules */
    store_module *modules;
    uint32_t module_count;
    store_warning *warnings; /* surest first */
    uint32_t warning_count;
    store_counter *counters; /* in the order in which they are shown */
    uint32_t counter_count;
    arena memory;
} store_record;

void store_record_free(store_record *record);

/* === two builds ======================================================================================================== */

typedef enum { STORE_SAME, STORE_RENAMED, STORE_CHANGED, STORE_LONE /* added, or removed */ } store_change;

typedef struct {
    uint32_t module, func; /* in the other build; STORE_NONE with STORE_LONE */
    uint8_t change;        /* store_change */
} store_twin;

typedef struct {
    store_twin **old_twins, **new_twins; /* by module and function */
    uint32_t old_count, new_count;       /* modules */
    uint32_t same, renamed, changed, added, removed;
} store_match;

void store_match_open(const store_record *old, const store_record *new, store_match *out);
void store_match_free(store_match *match);

/* For each warning of `new`, the one of `old` that it is, or STORE_NONE; free() the result. Warnings that were there keep
 * their old ids, so that an id survives the renaming of functions and any relinking. */
uint32_t *store_compare(const store_record *old, store_record *new, const store_match *match);

/* === as bytes and as a file =============================================================================================== */

/* free() the result. */
uint8_t *store_encode(const store_record *record, size_t *size);
/* Trusts nothing: -1 with one line (without a path) when the bytes are not exactly what store_encode of this version makes. */
int store_decode(const uint8_t *bytes, size_t size, store_record *out, race_error *error);
/* Makes the checksum right, for fuzzing. */
void store_seal(uint8_t *bytes, size_t size);

/* Writes beside, syncs and renames; makes the directory. -1: one line that begins with the path. */
int store_save(const char *directory, const char *name, const store_record *record, race_error *error);
/* 1: read; 0: there is none; -1: damaged or unreadable, one line that begins with the path. */
int store_load(const char *directory, const char *name, store_record *out, race_error *error);

uint64_t store_name_hash(const char *name);
uint64_t store_hash(const void *bytes, size_t size, uint64_t seed);
/* Of a file's contents; false: it cannot be read. */
bool store_hash_file(const char *path, uint64_t *hash);

#endif
