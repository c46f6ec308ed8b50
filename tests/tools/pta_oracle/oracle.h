/* Inside pta_oracle: the parts of the tool. */
#ifndef PTA_ORACLE_H
#define PTA_ORACLE_H

#include "static/pointer/pointer.h"

#include <stdio.h>

/* list.c: what libaccesses.so has to know about a module (see tests/dynamorio/accesses.c). */
void list_write(FILE *to, const lift_module *m, const char *path);

/* record.c: what libaccesses.so wrote. */

typedef enum {
    SEEN_OWN, SEEN_FRAME, SEEN_HEAP, SEEN_LIBRARY, SEEN_STATIC, SEEN_TLS, SEEN_EXTERNAL, SEEN_KINDS
} seen_kind;

enum { SEEN_OFFSETS = 18 }; /* a sample, the least and the largest */
enum { SEEN_OUTER = 2 };

typedef struct {
    uint32_t module; /* of the instruction: analysed module */
    uint64_t addr;
    char direction;  /* r, w, m: both */
    uint32_t width;
    uint8_t kind;    /* seen_kind */
    uint32_t in;     /* module of the object; of EXTERNAL: UINT32_MAX */
    uint64_t where;
    struct {
        uint32_t module;
        uint64_t addr;
    } outer[SEEN_OUTER]; /* HEAP: the calls that led to the function that allocated it, outwards */
    uint32_t outer_count;
    int64_t offsets[SEEN_OFFSETS]; /* distinct */
    uint32_t offset_count;
} seen;

typedef struct {
    VEC(seen) all;      /* by module, address, direction */
    uint64_t executed;  /* distinct instructions of the analysed modules */
    uint64_t skipped;   /* lines that were not understood */
    VEC(char *) notes;  /* `x` lines */
} seen_list;

/* `paths`: the analysed modules, by realpath. -1: the file cannot be read. */
int record_read(const char *file, char *const *paths, uint32_t path_count, seen_list *out, race_error *error);
void record_free(seen_list *list);
extern const char *const seen_names[SEEN_KINDS];

/* check.c: each of them against the points-to sets. */

typedef struct {
    uint64_t checked, objects_missed, offsets_missed, instructions; /* pairs; instructions with an access */
    uint64_t promoted, own, arguments; /* of checked: to slots and other parts of the own frame, to stack arguments */
    uint64_t thread;                   /* to the thread control block */
    uint64_t wide;                     /* accesses whose address is no expression: any address is right */
    uint64_t external[3];              /* run-time `external` or `library` matched by EXTERNAL, LIBRARY, HEAP */
    uint64_t unlifted;                 /* instructions that are in no function */
    uint64_t missed_instructions;
    uint64_t never_called;             /* of the misses: in functions that the analysis never calls */
} check_counts;

void check_all(const pta *p, const pta_program *program, const seen_list *list, uint32_t max_printed, check_counts *n);

#endif
