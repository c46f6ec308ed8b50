/* Inside pta_bench: measurements in processes of their own, and tables of them. */
#ifndef RACE_TEST_BENCH_H
#define RACE_TEST_BENCH_H

#include "tests/lib/pta_tool.h"

/* --- child.c: a measurement in a process of its own, so that its memory is its own and it may take too much ------ */

typedef struct {
    uint32_t seconds; /* of one measurement; 0: any */
    uint32_t memory;  /* megabytes of address space; 0: any */
    bool processor;   /* time of the processor, of all threads together, is measured, not what has passed */
} bench_limits;

typedef enum { BENCH_DONE, BENCH_TIME, BENCH_MEMORY, BENCH_FAILED } bench_end;

enum { BENCH_VALUES = 20 };
enum { NOTE_LOADED, NOTE_VALUES, NOTE_SAMPLE, NOTE_COLUMN, NOTE_ERROR }; /* kinds */

typedef struct { /* what a child tells */
    uint32_t kind, column;
    union {
        double value[BENCH_VALUES];
        char text[BENCH_VALUES * 8];
    };
} bench_note;

typedef struct {
    char *const *paths;
    uint32_t count;
    bench_limits limits;
    int out;
    tool_program program; /* loaded */
} bench_child;

/* Loads the program in a child and calls `work` there; the child's notes are given to `take` here. `parts`: how many
 * measurements of limits->seconds there are. */
bench_end bench_run(const bench_limits *limits, char *const *paths, uint32_t count, uint32_t parts,
                    void (*work)(bench_child *child, const void *with), const void *with,
                    void (*take)(void *to, const bench_note *note), void *to);

/* In the child: */
void bench_tell(bench_child *child, const bench_note *note);
void bench_fail(bench_child *child, const char *text);
volatile int *bench_stop(void); /* for pta_options */
void bench_arm(double seconds); /* it becomes 1 after that time; 0: never */
double bench_now(const bench_child *child);
double bench_peak(void);        /* megabytes of this process */

/* --- measure.c --------------------------------------------------------------------------------------------------- */

typedef struct {
    bench_end end;
    double instructions, functions, statements, lift, generate; /* the last two in seconds */
    double seconds, peak, nodes, facts, instances;
} scratch_result;

void measure_scratch(const bench_limits *limits, char *const *paths, uint32_t count, const pta_options *options,
                     scratch_result *result);

enum { MAX_COLUMNS = 12 };

typedef struct {
    pta_algorithm algorithm;
    int threads;
    uint32_t every; /* takes part in one of so many edits */
} edit_column;

typedef struct {
    uint32_t edit;
    double deletion, insertion;
} edit_sample;

typedef struct {
    bench_end end;
    bool opened, over;    /* over: it has had its seconds */
    bool finished, equal; /* after all edits; the relation is that of before */
    VEC(edit_sample) samples;
} column_result;

typedef struct {
    pta_options options;
    edit_column columns[MAX_COLUMNS];
    uint32_t column_count;
    uint32_t edits, seed;
} edit_plan;

typedef struct {
    bench_end end;
    double candidates; /* statements that edits were chosen from */
    column_result columns[MAX_COLUMNS];
} edit_result;

/* Deletes statements and inserts them again, each in every column before the next. */
void measure_edits(const bench_limits *limits, char *const *paths, uint32_t count, const edit_plan *plan,
                   edit_result *result);
void edit_result_free(edit_result *result);

/* --- share.c ----------------------------------------------------------------------------------------------------- */

typedef struct {
    double origins;  /* of the program, the start among them; one that is created in a loop is two */
    double accesses; /* of code that runs, other than to the own frame */
    double pointed;  /* of them: those with places */
    double places;   /* of these, over all instances of their function together */
    double largest;
    double in_instances, places_in;       /* the same for each instance: accesses with places, and their places */
    double insns, insns_any, insns_write; /* instructions: all, shared in some origin, shared with a write */
    double insns_wild, insns_tame;        /* of them those by wild pointers; shared with a write without these */
    double pairs, pairs_any, pairs_write; /* instruction and origin */
    double ran, ran_write, ran_shared;    /* of insns those in `ran`, of them shared with a write, and those that were in the run */
} share_counts;

/* `ran`: what libsharing.so has recorded of the first module, or NULL. */
void share_count(const pta *p, const pta_program *program, pta_context_kind kind, const char *ran, share_counts *out);

typedef struct {
    bench_end end;
    double instructions, seconds;
    share_counts counts;
} share_result;

void measure_share(const bench_limits *limits, char *const *paths, uint32_t count, const pta_options *options, const char *ran,
                   share_result *result);

#endif
