/* Inside static/hb: the state of one analysis, and what its files give each other. */
#ifndef RACE_HB_PRIVATE_H
#define RACE_HB_PRIVATE_H

#include "static/hb/hb.h"
#include "static/pointer/map.h"

typedef struct {
    uint32_t call;  /* in program->calls */
    uint32_t insn;  /* machine instruction */
    uint32_t value; /* IR_CALL or IR_TAIL; 0: not found */
    const sync_entry *sync;   /* of the function that it names */
    const sync_touch *touch;
} hb_call;

enum { HB_YES = 1, HB_NO };

typedef struct {
    uint32_t lo, hi; /* machine instructions [lo, hi) */
} hb_interval;

typedef struct { /* region.c: what may run behind a call of a function whose calls all come back */
    hb_interval *intervals;
    uint32_t interval_count;
    uint32_t *calls; /* that it goes through; numbers in the function's calls */
    uint32_t call_count;
    bool ends;       /* the function's end is reached */
} hb_after;

typedef struct { /* what hb knows of a function, whoever runs it */
    hb_call *calls; /* by insn */
    uint32_t call_count;
    bool jumps; /* it calls setjmp */
    bool forks; /* and fork */
    uint8_t ends; /* HB_YES, HB_NO: its end can be reached, if all its calls come back; 0: not asked yet */
    uint8_t reached; /* the same of all its blocks */
    hb_after **after; /* per call; made on first use, and each of them, too */
    hb_numbers waits; /* branches on atomic variables (hb_wait_mark); instructions that load them */
    uint64_t *in_child;  /* of one that forks, bits per block: behind the edges on which it is the child (process.c); made on first use */
    uint32_t *access_of; /* per machine instruction: its first IR_ACCESS, 0: none; made on first use */
    hb_numbers returns; /* its IR_RET and IR_TAIL: hb_returns */
    bool has_returns;
} hb_func;

typedef struct {
    VEC(hb_interval) intervals;
} hb_part;

typedef struct { /* code that may run: whole functions, and parts of some */
    uint64_t *whole;  /* instances; bits */
    map64 part_of;    /* instance: number in parts */
    VEC(hb_part) parts;
    bool ends;        /* the end of a start's origin is reached */
} hb_region;

typedef struct hb_walk hb_walk;
struct hb_walk { /* how far a region goes */
    bool (*cuts)(const hb_walk *w, uint32_t instance, const hb_call *call);            /* it does not go on behind this call */
    bool (*closes)(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge); /* nor over this edge; or NULL */
    /* The first instruction of [from, until) behind which it does not go on; HB_NONE: there is none. Or NULL. */
    uint32_t (*stops)(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t until);
    const void *with;
    const uint32_t *cutters; /* the instances in which something may cut */
    uint32_t cutter_count;
    const uint64_t *waits; /* instances that are not gone through; bits; or NULL */
    bool calm;        /* nothing comes back to a setjmp */
    uint32_t origin;  /* it stays in what this one runs; HB_NONE: wherever */
    bool kept;        /* the next analysis may need the same: what it asks depends on its arguments alone */
    bool inside;      /* it does not go back to callers of the functions that it begins in */
};

typedef struct {
    pta_place word;
    uint32_t first, count; /* what it holds, in held */
} hb_word;

typedef struct {
    uint32_t word; /* in memory */
    uint32_t next; /* another that holds the same object, or MAP_NONE */
} hb_held_by;

typedef struct {
    uint32_t origin;
    hb_region live; /* where in its creators it may be alive */
    hb_region ever; /* the same if nobody waited for it */
    hb_region meant; /* and if all did who may; hb_life_meant */
    bool has_live, has_ever, has_meant;
    bool shares_ever; /* with another origin, whose it is */
} hb_life;

typedef struct {
    uint32_t origin;
    hb_point at; /* one of them */
} hb_stand;

typedef struct { /* order.c */
    hb_numbers *parents; /* per origin: those that create it */
    bool *overlaps;      /* per origin: two of it may run at the same time */
    uint32_t words;      /* of a set of origins */
    uint64_t *ancestors; /* per origin: those that led to it */
    uint8_t *meet;       /* per pair: whether they may run at the same time, once it was asked */
    bool meant;          /* by where they are meant to be alive */
} hb_kin;

typedef struct { /* order.c */
    uint32_t *position;  /* per instance: the position of all its points, HB_NONE: not asked yet, HB_NONE - 1: they differ */
    map64 position_of;   /* instance and instruction */
    map64 position_map;  /* by the regions that have it */
    VEC(uint64_t) position_bits;
    map64 stance_map;    /* by position, then origin */
    VEC(uint32_t) few_stances; /* the same of the first ones */
    VEC(hb_stand) stances;
    map64 stance_pairs;  /* whether they are ordered, and why not */
    uint16_t *few_pairs; /* the same of the first ones */
} hb_positions;

typedef struct { /* what the program's calls of longjmp give to setjmp */
    int32_t values[4]; /* in the order of functions, each once */
    uint32_t count;
    bool others;       /* and what else is not known */
} hb_jumps;

typedef struct { /* process.c: a shared mapping of a file */
    uint32_t func;
    uint32_t call; /* IR_CALL */
    uint32_t object;
} hb_mapping;

typedef struct {
    uint32_t touch; /* in touches */
    uint32_t place; /* in places */
} hb_use;

typedef struct {
    uint32_t site, context;
    uint32_t owner; /* origin, or HB_NONE */
    uint8_t state;  /* memory.c */
} hb_object_note;

struct hb {
    const pta *p;
    const pta_program *program;
    hb_options options;
    sync_index names;
    uint64_t memo_program;   /* memo.c: hash of what walks read */
    struct hb_asking *asking; /* answers.c */
    uint32_t instance_count;
    pta_instance *instances; /* func PTA_NO_FUNC: not live */
    const lift_func **code;  /* per instance: hb_code of its function */
    pta_call_edge *edges;    /* by caller, then call; without what threads of a team do in their creator */
    uint32_t edge_count;
    bool *spawns;            /* per edge: hb_spawns */
    uint32_t *out_first;     /* per instance, in edges */
    uint32_t *runs_first, *runs; /* per instance: the instances that it calls, each once, in runs */
    uint32_t *in_first, *in_edge; /* per instance: edges that lead to it, in in_edge */
    uint32_t *callees_first; /* all instances, callees in front of their callers as far as there is no recursion */
    hb_func *funcs;
    const sync_entry **syncs; /* per function: hb_sync of its name */
    uint32_t *call_insn;     /* per call */
    VEC(hb_origin) origins;  /* [0]: main */
    uint32_t words;          /* of a set of instances */
    bool *once;              /* per instance: it runs at most once */
    uint32_t *origin_of_base; /* per context base, HB_NONE */
    uint32_t base_count;
    hb_kin kin[3];           /* by all creations that are known; by those that need no unknown pointer; and by hb_life_meant, on first use */
    hb_positions positions;
    hb_life *lives;          /* per origin */
    struct hb_joins *joins;
    VEC(hb_word) memory;     /* by object */
    VEC(pta_place) held;
    map64 memory_of;         /* object: number of its first word in memory */
    VEC(hb_held_by) holders; /* made on first use (has_holders) */
    map64 holders_of;        /* object: the first of those that hold its address */
    bool has_holders;
    VEC(uint8_t) held_by_variable; /* per object, as it was asked for */
    map64 objects;           /* site and context */
    VEC(hb_object_note) object_list;
    VEC(hb_mapping) mappings;
    struct hb_locks *locks;
    struct hb_locks *optional; /* made on first use, and what they are found by: */
    struct hb_optionals *optionals;
    struct hb_gifts *gifts;
    struct hb_setups *setups;
    struct hb_givens *givens;
    struct hb_waits *waits;  /* made on first use */
    struct hb_doubts *doubts; /* likewise, as is: */
    struct hb_modes *modes;
    struct hb_outs *outs;    /* fresh.c; made on first use */
    map64 handed;            /* hb_handed: instance and value, as they were asked for */
    struct hb_numbering *numbering;
    struct hb_passings *passings; /* number_part.c */
    struct hb_tokens *tokens;
    struct hb_channels *channels;
    struct hb_turns *turns;
    struct hb_lasts *lasts;
    struct hb_gathers *gathers;
    struct hb_nests *nests;
    struct hb_barriers *barriers;
    struct hb_letters *letters;
    struct hb_rings *rings;
    VEC(hb_touch) touches;
    VEC(hb_left_out) left_out;
    VEC(hb_place) places;
    VEC(hb_extent) extents;
    map64 extent_map;
    hb_use *writes;          /* places that are written, by object, then in the order of touches */
    uint32_t *writes_first;  /* per object that has been touched, in writes; one more at the end */
    uint32_t writes_objects;
    struct hb_writes_over *writes_over;
    hb_statistics stats;
    bool has_std_thread;
    bool has_single;         /* some part of the code is run by one thread of a team: task.c */
    hb_jumps jumps;
};

static inline bool hb_bit(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> i % 64 & 1;
}

static inline void hb_set(uint64_t *set, uint32_t i)
{
    set[i / 64] |= 1ull << i % 64;
}

/* A function whose code was analysed. */
static inline const lift_func *hb_code(const hb *h, uint32_t func)
{
    const pta_func *f = &h->program->funcs.data[func];
    return f->modelled || !f->lift || !f->lift->ir ? NULL : f->lift;
}

static inline const lift_func *hb_instance_code(const hb *h, uint32_t instance)
{
    return h->code[instance];
}

/* What a function means to threads: the user's word, then the table's. */
static inline const sync_entry *hb_sync(const hb *h, const char *name)
{
    const sync_entry *own = h->options.sync ? h->options.sync(h->options.with, name) : NULL;
    return own ? own : sync_index_find(&h->names, name);
}

/* --- call.c ---- */
void hb_calls_open(hb *h);
uint32_t hb_first_call(const hb_func *own, uint32_t from); /* the first call of a function from an instruction on */
void hb_calls_close(hb *h);
/* The edges of one call of an instance: index of the first in h->edges, and their number. */
uint32_t hb_callees(const hb *h, uint32_t instance, uint32_t call, uint32_t *count);
const hb_call *hb_call_at(const hb *h, uint32_t func, uint32_t insn);
/* What a call means, whether it names its callee or not. */
const sync_entry *hb_call_sync(const hb *h, uint32_t instance, const hb_call *call);
uint32_t hb_block_of(const lift_func *f, uint32_t insn);
/* A setjmp of this call does not return for the second time with a value of which this holds. */
bool hb_never_jumps(const hb *h, uint32_t instance, const hb_call *call, uint8_t code, int64_t imm);
bool hb_spawns(const hb *h, const pta_call_edge *edge);

/* What is known of a function, with its returns. */
const hb_func *hb_returns(const hb *h, uint32_t func);

/* The IR_ACCESS of an access, or 0. */
uint32_t hb_access_ir(hb *h, uint32_t func, uint32_t insn, uint16_t flags);

/* What an operand may point to, without what lies behind the end of its object. */
void hb_points_to(const hb *h, uint32_t instance, pta_operand what, pta_places *out);

/* --- origin.c ---- */
void hb_origins_open(hb *h);
void hb_origins_close(hb *h);
/* How sure it is that an origin runs an instance, whatever variables tell. */
hb_doubt hb_origin_doubt(const hb *h, uint32_t origin, uint32_t instance);
/* What is run only over edges that are skipped is so with HB_AGAINST. */
void hb_origin_skip(hb *h, uint32_t origin, bool (*skips)(const hb *h, uint32_t origin, uint32_t edge));

/* --- region.c ---- */
void hb_region_walk(const hb *h, const hb_walk *walk, const hb_point *starts, uint32_t count, hb_region *out);
bool hb_region_has(const hb_region *r, hb_point at);
/* A way leads from one block to another that does not go round a loop. */
bool hb_goes_on_to(const lift_func *f, uint32_t from, uint32_t to);
void hb_region_free(hb_region *r);
/* The edge on which a setjmp has returned 0, or what no longjmp gives it: not when it is come back to. */
bool hb_first_return(const hb *h, uint32_t instance, uint32_t block, uint32_t edge, uint32_t setjmp);
void hb_afters_free(hb_func *f);

/* --- join.c, order.c, event.c ---- */
void hb_lives_open(hb *h);
void hb_lives_close(hb *h);
void hb_overlaps_find(hb *h);
void hb_kin_close(hb *h);
void hb_events_place(hb *h);

/* Where in its creators it may be alive if nobody waited for it but who waits for all that it has started, too; found on first use. */
const hb_region *hb_life_ever(const hb *h, uint32_t origin);
/* Where it is alive if every call that may wait for it does, and no error is come back from by longjmp: meant.c. */
const hb_region *hb_life_meant(const hb *h, uint32_t origin);

/* --- task.c ---- */
void hb_singles_open(hb *h);
/* Whether a point is in a part of the code that one thread of a team runs; `part` is the block that it begins with. */
bool hb_single_part(const hb *h, hb_point at, uint32_t *part);
/* The same of a point in what such a part calls, and nothing else does: `root` has the part. */
bool hb_single_of(const hb *h, hb_point at, uint32_t *root, uint32_t *part);
bool hb_has_single(const hb *h, uint32_t instance); /* some of its points are in such a part */
/* There is only one such task at a time. Requires the overlaps of those that led to it. */
bool hb_task_alone(const hb *h, uint32_t origin);
/* One thread of a team has created both, or those that led to them. */
bool hb_tasks_of_one(const hb *h, uint32_t x, uint32_t y, uint32_t *team);
/* They name one address that they depend on, one of them for writing. */
bool hb_tasks_depend(const hb *h, uint32_t x, uint32_t y);
/* The thread that is at this point is the one that has created the task, or those that led to it. */
bool hb_with_creator(const hb *h, uint32_t thread, hb_point at, uint32_t task);

/* --- setup.c ---- */
void hb_setups_open(hb *h);
void hb_setups_close(hb *h);
/* Edges that are not gone as long as an origin is alive, and the instances that have some. */
bool hb_setup_closes(const hb *h, uint32_t origin, uint32_t instance, uint32_t from, uint32_t edge);
void hb_setup_cutters(const hb *h, uint32_t origin, hb_numbers *out);
/* Something that was set up is undone where the origin may be alive: the edges are open, the life has to be found again. */
bool hb_setup_fails(hb *h, uint32_t origin, const hb_region *live);

/* --- given.c: the same for what was so when it was created ---- */
void hb_givens_open(hb *h);
void hb_givens_close(hb *h);
bool hb_given_closes(const hb *h, uint32_t origin, uint32_t instance, uint32_t from, uint32_t edge);
bool hb_given_fails(hb *h, uint32_t origin, const hb_region *live);

/* --- waited.c ---- */
bool hb_call_may_wait(hb *h, uint32_t instance, const hb_call *call);
void hb_waits_close(hb *h);

/* --- doubt.c ---- */
void hb_doubts_close(hb *h);

/* --- fresh.c ---- */
void hb_outs_close(hb *h);

/* --- optional.c ---- */
void hb_optionals_close(hb *h);

/* --- lock.c ---- */
/* There is but one such object. */
bool hb_single(const hb *h, const pta_place *place);

/* --- touch.c ---- */
/* The access of an instruction of a function's own; NULL: it makes none. */
const hb_touch *hb_touch_at(const hb *h, uint32_t instance, uint32_t insn);
/* The bytes of an access of so many bytes at a place; `open`: it may go on to the end of the object. */
hb_extent hb_extent_of(hb *h, const pta_place *place, uint32_t width, bool open);
/* The places of an object that are written. */
const hb_use *hb_writes_to(const hb *h, uint32_t object, uint32_t *count);
/* Of them those that overlap an extent, in their order. */
const hb_use *hb_writes_over_extent(const hb *h, uint32_t extent, uint32_t *count);
void hb_touches_open(hb *h);
void hb_touches_close(hb *h);

/* --- gift.c ---- */
/* A loop creates it with a function from a table, in which each function is but once. */
bool hb_from_table(const hb *h, uint32_t origin, hb_point site);
void hb_gifts_open(hb *h);
void hb_gifts_close(hb *h);
/* Both accesses are of what their threads have for their own. */
bool hb_gifts_apart(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb);

/* --- number_part.c ---- */
void hb_passings_open(hb *h);
void hb_passings_close(hb *h);

/* --- channel.c ---- */
void hb_semaphores_open(hb *h); /* what they begin with; then, with accesses: */
void hb_channels_open(hb *h);
void hb_channels_close(hb *h);
/* The first value of the semaphore that a call is about; -1: not known. */
int64_t hb_semaphore_value(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync);

/* --- publish.c, turn.c, last.c, gather.c, barrier.c ---- */
void hb_tokens_open(hb *h);
void hb_tokens_close(hb *h);
/* One comes before something is posted that the other has waited for. */
bool hb_tokens_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b);
void hb_turns_open(hb *h);
void hb_turns_close(hb *h);
/* Both need the one token that goes round. */
bool hb_turns_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b);
void hb_lasts_open(hb *h);
void hb_lasts_close(hb *h);
/* One of them has found a counter to be zero that the other had not decreased yet, or is the only one to find it so. */
bool hb_lasts_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b);
void hb_gathers_open(hb *h);
void hb_gathers_close(hb *h);
/* One has waited until all have reported, and the other has not reported yet. */
bool hb_gathers_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b);
void hb_barriers_open(hb *h);
void hb_barriers_close(hb *h);
/* A barrier lies between them. */
bool hb_barriers_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b);

/* --- letter.c ---- */
void hb_letters_open(hb *h);
void hb_letters_close(hb *h);
/* One uses what a message names, which the other has sent when it was done with it. */
bool hb_letters_order(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b);

/* --- ring.c ---- */
void hb_rings_open(hb *h);
void hb_rings_close(hb *h);
/* Both are to slots of a ring that two semaphores count. */
bool hb_rings_order(hb *h, const hb_touch *a, const hb_touch *b);

/* --- nest.c ---- */
void hb_nests_close(hb *h);
/* Variables of two activations of a function, or one before and after its tasks. */
bool hb_nests_apart(hb *h, uint32_t x, const hb_touch *a, const hb_place *pa, uint32_t y, const hb_touch *b, const hb_place *pb);

/* --- process.c ---- */
/* One of the points is run by the child of a fork, in memory that is its own. */
bool hb_processes_apart(const hb *h, hb_point a, hb_point b, const hb_place *place);

/* The object that a place of an object is in: the same for all mappings of one file. */
uint32_t hb_mapped_object(hb *h, const pta_place *place, uint32_t object);

/* --- memory.c ---- */
void hb_words_open(hb *h);  /* what words of memory hold; then, with origins: */
void hb_memory_open(hb *h);
void hb_memory_close(hb *h);
uint32_t hb_object(hb *h, uint32_t site, uint32_t context);
/* It never leaves the thread that owns it. */
bool hb_stays(const hb *h, uint32_t object);
/* Only the thread that has made it knows it, and the destructor of a key that it has set to it. */
bool hb_specific(hb *h, uint32_t object);
/* What the words of a place may hold. */
void hb_holds(hb *h, const pta_place *place, pta_places *out);

#endif
