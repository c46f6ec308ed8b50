/* static/pointer: which objects each pointer of a program may point to, and who calls whom.
 *
 *   program.c    a set of modules as functions and statements; generate.c: from the IR of one function;
 *                generate_memory.c, generate_call.c: its accesses and calls; form.c: what its values are
 *   reuse.c      functions that are generated already
 *   passing.c    which registers are arguments and results; passing_local.c: what one function tells of it
 *   typed.c      what values point to by declaration
 *   made.c       what results are declared to point to: what allocators are called for
 *   march.c      pointers that march through an array, as indices; hoist.c: constants are added before indices
 *   link.c       object files as one program; names.c: what names stand for
 *   surround.c   the functions that no module has: start-up, the loader, unknown code, wild pointers
 *   allocator.c  allocators behind pointers
 *   wrapper.c    allocator wrappers; helper.c: small functions as if inlined
 *   prune.c      without what no access can need
 *   kinds.c      pointers and numbers, as far as a function tells
 *   linear.c     strides of indices
 *   address.c    which object an address of a module belongs to
 *   model.c      library functions in a small language; model_name.c: by their names; model_table.c: the table
 *   shape.c      what is inside of an object: elements, arrays; heap.c: by the arguments of an allocator
 *   offset.h     places inside an object: exact bytes and strided classes, as one number
 *   set.c        points-to sets with the age of each fact
 *   graph.c      nodes, edges, instances of functions; cells.c: words of memory
 *   context.c    context_none.c, context_origin.c, context_cfa.c: which instance a call goes to;
 *                prone.c: what is wild without contexts
 *   analysis.c   opening an analysis and asking it; view.c: the numbers that answers are in;
 *                words.c: words of memory
 *   update.c     changes: what goes, then what comes
 *   solve.c      insertion: propagation in steps, in parallel; scc.c: cycles are one node
 *   delete.c     deletion: by incoming neighbours (IPA), by reachability, by reset; support.c: what supports a fact;
 *                repair.c: what else does; suspect.c: what is left of what it supported; dormant.c: fewer facts to keep true;
 *                holders.c: who has something of an object
 *   follow.c     a result for another program: what is the same, and what changes; match.c: of a function; says.c: of types
 *   relation.c   the result as a canonical relation, and its hash
 *   describe.c   objects and places in words
 *
 * The analysis is inclusion-based (Andersen) with an on-the-fly call graph, field-sensitive by byte offset.
 *
 * Offsets. For each variable and object, the offsets form a closed set: at most PTA_EXACT single ones, exact or of each element
 * of an array (more when they are so far apart that no stride can be written), or one class `r mod s` in bounds. Closing a set that got too large is the smallest
 * class that covers it. This is a closure operator, so the closed sets are a lattice of finite height and the result is the
 * least fixed point: it depends on the statements only, never on the order of solving. */
#ifndef RACE_POINTER_H
#define RACE_POINTER_H

#include "static/lift/lift.h"

enum { PTA_EXACT = 6 }; /* exact offsets that one variable keeps of one object */

/* === the program ====================================================================================================
 *
 * Functions are lists of statements over function-local variables. Variables 0 to PTA_PARAMS - 1 are what a function is
 * entered with, PTA_RET and PTA_RET2 what it returns. */

typedef struct pta_program pta_program;
typedef struct pta_wishes pta_wishes;

enum { PTA_RDI, PTA_RSI, PTA_RDX, PTA_RCX, PTA_R8, PTA_R9, PTA_RSP, PTA_RAX, PTA_R10, PTA_PARAMS,
       PTA_RET = PTA_PARAMS, PTA_RET2, PTA_FIRST_LOCAL };
enum { PTA_NO_VAR = UINT32_MAX, PTA_NO_FUNC = UINT32_MAX, PTA_NO_SITE = UINT32_MAX };

typedef struct {
    uint32_t var;   /* of the function, or PTA_NO_VAR */
    int32_t delta;  /* bytes added to it */
} pta_operand;

typedef enum {
    PTA_ADDR,    /* dst may be the address of place `src.delta` of object site `ref` */
    PTA_COPY,    /* dst may be src, changed as `stride` says */
    PTA_LOAD,    /* dst may be what is stored at src */
    PTA_STORE,   /* what is stored at dst may be src; `stride` belongs to dst */
    PTA_CALL     /* call `ref` of program->calls */
} pta_kind;

enum { /* values of pta_stmt.stride */
    PTA_SAME = 0, /* exactly delta */
    PTA_ANY = 1,  /* any number of bytes away; n > 1: delta and a multiple of n bytes away */
    PTA_BLOCK = 1 << 28, /* or-ed to it: a block, which does not end with the array or struct that it begins in */
    PTA_BACK = 1 << 29,  /* or-ed to it: also towards lower addresses, from behind the end of an object */
    PTA_FLAGS = PTA_BLOCK | PTA_BACK,
    PTA_ALIGN = 1 << 30, /* + n: rounded down to a multiple of n, a power of two up to 16 */
};
#define PTA_CODE 0xfffffffeu  /* only pointers to functions */
#define PTA_LOOSE 0xffffffffu /* only what wild pointers do not say of their own: set.h */

typedef struct {
    uint8_t kind;     /* pta_kind */
    bool dead;        /* deleted by an edit */
    pta_operand dst, src;
    uint32_t stride;
    uint32_t ref;
    uint32_t insn;    /* machine instruction, in the function's lift_func->insns; of models: 0 */
} pta_stmt;

enum { PTA_SIZES = 4 }; /* arguments that may be a size */

typedef struct { /* what is known of a number that is passed */
    uint32_t multiple; /* it is a multiple of this; 0: unknown */
    bool exact;        /* it is this */
    uint8_t param;     /* + 1: it is this parameter of the caller plus delta; 0: it is none */
    int16_t delta;
} pta_size;

typedef struct {
    uint32_t func;      /* of a direct call, or PTA_NO_FUNC */
    pta_operand target; /* of an indirect call */
    uint32_t known;     /* of an indirect call, + 1: a function that another statement calls in its place; 0: none */
    pta_operand args[PTA_PARAMS];
    uint32_t ret, ret2; /* variables, or PTA_NO_VAR */
    uint32_t caller;    /* function */
    uint64_t addr;      /* of the call instruction; 0 in a model */
    pta_size sizes[PTA_SIZES];
    const image_type *makes; /* what its result is declared to point to; or NULL */
    uint8_t spawn;      /* pta_spawn: the callee runs as another origin */
    bool in_loop;       /* may run more than once in one activation of its function */
} pta_call;

typedef enum { PTA_SPAWN_NONE, PTA_SPAWN_THREAD, PTA_SPAWN_EVENT } pta_spawn;

typedef enum {
    PTA_STATIC,   /* a global, or a stretch of a section that nothing names */
    PTA_TLS,      /* the same in a TLS block */
    PTA_FRAME,    /* a variable in a frame, or the rest of the frame */
    PTA_HEAP,     /* allocated here; one per instance of the function */
    PTA_FUNCTION, /* code */
    PTA_LIBRARY,  /* static data of a modelled library */
    PTA_WILD,     /* any place of any object that a wild pointer may point into: see pta_set in set.h */
    PTA_EXTERNAL  /* everything that code outside of the program owns or knows: a pointer to it may also point anywhere into
                     any object that has escaped (pta_escaped) */
} pta_site_kind;

typedef struct {
    uint8_t kind;    /* pta_site_kind */
    bool constant;   /* never written after start-up */
    bool any;        /* holds no pointers: places in it are not told apart */
    uint8_t sized, counted; /* HEAP: + 1: the argument of the model that is the size of its elements, their number */
    uint32_t module; /* of STATIC, TLS and FUNCTION */
    uint32_t func;   /* of FRAME, HEAP, FUNCTION */
    uint64_t start;  /* STATIC: address; TLS: offset in the block; FRAME: as int64_t, place relative to the stack pointer at
                        entry; HEAP: 0 */
    uint64_t size;   /* 0: unknown */
    uint32_t memory; /* the site that holds its words: its own; of a variable in a frame, the frame; of a stretch of a section
                        that nothing names, the section */
    int64_t base;    /* place of its first byte there */
    bool open;       /* nobody knows where it ends: its arrays may be larger */
    uint8_t align;   /* its first byte is at a multiple of this, 1 to 16 */
    const char *name; /* or NULL */
    const image_type *type; /* or NULL */
    const struct pta_shape *shape; /* or NULL; of HEAP: known only when it is allocated */
} pta_site;

/* An access of the code: the statement's address operand in words of variables, found by machine instruction. */
typedef struct {
    uint32_t func;
    pta_operand base;
    uint32_t stride;
    uint32_t insn;   /* in lift_func->insns */
    uint16_t width;
    uint16_t flags;  /* IR_READ, IR_WRITE, IR_ATOMIC, ... */
    const image_type *type; /* by declaration its address is `at` bytes into one of these; NULL: unknown */
    int32_t at;
} pta_access;

typedef struct {
    const lift_func *lift; /* NULL: a model, or a part of the program that has no code */
    uint32_t module;
    const char *name;
    VEC(pta_stmt) stmts;
    uint32_t var_count;
    pta_access *accesses;
    uint32_t access_count;
    uint16_t needs;   /* bits: parameters that matter */
    uint16_t takes;   /* bits: of the first six, those in which it may be given arguments */
    uint8_t gives;    /* bits: 1: the first result, 2: the second */
    uint32_t stack;   /* bytes that it may be passed on the stack, return address included; 0: none */
    bool clone;       /* a model or an allocator wrapper: each call has its own instance */
    bool root;        /* may be called from outside */
    bool at_load;     /* and the loader calls it, when the module comes or goes */
    bool loader;      /* does what the loader does: it writes constants */
    bool modelled;    /* a model took the place of its code */
} pta_func;

struct pta_program {
    lift_module **modules;
    uint32_t module_count;
    VEC(pta_func) funcs;
    VEC(pta_site) sites;
    VEC(pta_call) calls;
    struct pta_maps *maps; /* maps.h: names, address spaces */
    uint32_t external;     /* the PTA_EXTERNAL site */
    uint32_t wild;         /* the PTA_WILD site */
    uint32_t wilderness;   /* the function that loads and stores through wild pointers: its first parameter may point to all
                              that they point into; it stores its second one there and returns what is there */
    uint32_t wild_call;    /* the function that a call through a wild pointer goes to: it calls all that they point to */
    uint32_t escaped;      /* the site whose one word holds all pointers that have escaped */
    uint32_t unknown;      /* the function that stands for every unknown one */
    uint32_t outside;      /* the function that stands for what code outside does on its own; its variable PTA_RET is what it
                              knows */
    uint32_t stack;        /* the most bytes that any function is passed on the stack */
    arena memory;
    const pta_wishes *wishes;  /* or NULL; only while it is opened */
    uint64_t unknown_calls;    /* calls of functions that are neither here nor in the table */
    uint64_t unknown_accesses; /* accesses whose address is no expression (IR_WIDE) */
    uint32_t generated;        /* functions of modules whose statements were not there in the program before */
};

/* Builds the statements of all modules; they must outlive the program. Modules see each other's exported symbols. */
pta_program *pta_program_open(lift_module **modules, uint32_t count, int jobs);

/* What somebody wants of a program beyond its accesses. */
struct pta_wishes {
    /* Bits: the parameters of a function whose values will be asked for at its calls; without this, what no access needs is
     * not computed. May be NULL. */
    uint16_t (*asks)(const void *with, const char *name);
    /* The model (the language of program.h) that takes the place of a function, whether a module defines it or not; NULL:
     * none. A text that is wrong is as if there were none. May be NULL. */
    const char *(*model)(const void *with, const char *name);
    const void *with;
    bool keep; /* another program will be opened after this one, with `before`: */
    pta_program *before; /* or NULL: the program before, of the same modules or some of them; what need not be done again is taken from
                            it, which leaves it good for being asked and closed */
    bool open; /* whatever is exported may be called from outside, of a program that exports all it has, too */
};
pta_program *pta_program_open_for(lift_module **modules, uint32_t count, int jobs, const pta_wishes *wishes);
void pta_program_close(pta_program *program);

/* Every access of function `func` that is not to a promoted slot; owned by the program. */
const pta_access *pta_accesses(const pta_program *program, uint32_t func, uint32_t *count);

/* === the analysis ==================================================================================================== */

typedef struct pta pta;

typedef enum { PTA_CONTEXT_NONE, PTA_CONTEXT_ORIGIN, PTA_CONTEXT_CFA } pta_context_kind;
typedef enum { PTA_IPA, PTA_RESET, PTA_REACH } pta_algorithm;

typedef struct {
    pta_context_kind context;
    unsigned k;
    pta_algorithm algorithm;
    bool once;           /* no pta_update will follow: cycles of the graph are collapsed, which is faster */
    bool follow;         /* pta_follow will: it gets a program of its own */
    int jobs;            /* 0: all cores */
    bool patient;        /* share large steps only, as without a number of jobs */
    uint32_t wild_at;    /* objects that a pointer may point anywhere into before it is wild (set.h); 0: as a rule */
    volatile int *stop;  /* when it becomes nonzero the work ends */
} pta_options;

/* From scratch. On failure (stop) `*out` is NULL and `error` has one line. */
int pta_open(pta_program *program, const pta_options *options, pta **out, race_error *error);
void pta_close(pta *p);

typedef struct {
    uint32_t func;
    uint32_t stmt;     /* deletion: index in funcs[func].stmts */
    bool insert;       /* else delete; a deleted statement may come back as it was */
} pta_edit;

/* False: what the function does is not the program's but the analysis's own, which relies on it: program->wilderness and
 * program->wild_call. */
bool pta_may_edit(const pta_program *program, uint32_t func);

/* Applies the edits as one change; the result is that of pta_open on the edited program. On failure (stop) the statements are as
 * they were, and the analysis is good for nothing but another change, even one of no edits, or pta_close. */
int pta_update(pta *p, const pta_edit *edits, uint32_t count, race_error *error);

/* --- following a program that changes ----------------------------------------------------------------------------------
 *
 * pta_follow makes the result that of another program, `next`, as pta_open on it would: functions, data and calls that are the
 * same in both are found (follow.c), and only what is not is taken out and put in. From then on all answers speak of `next`: numbers
 * of functions, variables, sites and calls are its own. Numbers of instances, contexts and bases of contexts are small and follow
 * from the result alone (view.c), not from the way to it: they are those of pta_open(next), whatever was followed before.
 *
 * So numbers move from one program to the next; `changes` says what a number of now was before, and what has to be looked at again.
 * All arrays are indexed by numbers of now. */
enum { PTA_NEW = UINT32_MAX }; /* it was not there before, or nothing there was the same */

typedef struct {
    bool anew; /* too much has changed, and it was begun anew: nothing below is filled in, all is new */
    /* What each had for a number before, or PTA_NEW. A function keeps its identity (module, name) although its statements changed; a
     * site or call that has one is the same in all that the analysis depends on. */
    uint32_t *funcs, *sites, *calls, *contexts, *instances;
    uint32_t func_count, site_count, call_count, context_count, instance_count;
    /* Per function: its statements, its variables' numbers or its accesses' pointers are not what they were. What they do not show
     * (addresses, machine instructions, lines, kinds of accesses) may have changed nevertheless: compare lift_func. */
    bool *changed;
    /* Per instance: something in it may point elsewhere than before (new instances: true). What wild pointers point to is left out:
     * `wild` says that it changed, which concerns every variable that pta_breadth_in says more of than its own facts. */
    bool *moved;
    bool *called; /* per instance: it calls, or is called by, other instances than before (new ones: true) */
    bool wild;
    bool memory;  /* what some word of memory may hold has changed; which words pta_each_word tells of hangs on statements as well */
} pta_changes;

/* `p` was opened with `follow`. The program that it was of must still be there, its modules and images need not; `next` must outlive
 * the analysis or the next pta_follow. On failure (stop) the analysis is good for nothing but another pta_follow, or pta_close, and
 * `changes` is empty. */
int pta_follow(pta *p, pta_program *next, pta_changes *changes, race_error *error);
void pta_changes_free(pta_changes *changes);

typedef struct {
    uint64_t nodes, edges, facts, instances, objects, contexts, components, largest_component, steps, bytes;
    double seconds;
} pta_stats;
void pta_statistics(const pta *p, pta_stats *stats);

/* === asking ========================================================================================================== */

typedef struct {
    uint32_t site;    /* in program->sites */
    uint32_t context; /* of the instance that owns it; 0 for static objects */
    bool exact;
    int32_t offset;   /* exact: byte offset; else offset mod stride, in its element */
    uint32_t stride;
    uint32_t element; /* of a class: the object is an array of such elements; 0: of none */
    int32_t least, end; /* of a class: it lies in these bounds, in its element; INT32_MIN, INT32_MAX: unknown */
} pta_place;

/* What variable `var` of `func` may point to, over all of its instances; sorted, normalised. Returns the number; the
 * array is valid until the next call with the same vector. */
typedef VEC(pta_place) pta_places;
void pta_points_to(const pta *p, uint32_t func, pta_operand what, uint32_t stride, pta_places *out);
/* The same in one instance of the function. */
void pta_points_to_in(const pta *p, uint32_t instance, pta_operand what, uint32_t stride, pta_places *out);

/* How many facts there are of a variable in one instance, before they are put in order: cheap, for those who do not want to know
 * all of a pointer that may point nearly anywhere. */
uint32_t pta_breadth_in(const pta *p, uint32_t instance, uint32_t var);
/* Whether it is wild: next to nothing is known of it. */
bool pta_is_wild_in(const pta *p, uint32_t instance, uint32_t var);

/* Whether two variables surely point to the same, without listing it, and a hash that is the same then; of this result alone. Cheap. */
bool pta_is_same_in(const pta *p, uint32_t instance, uint32_t var, uint32_t other_instance, uint32_t other);
uint64_t pta_hash_in(const pta *p, uint32_t instance, uint32_t var);

/* True only if it has more than `most` places in their objects: as cheap, for those who do not want that many. */
bool pta_is_broad_in(const pta *p, uint32_t instance, pta_operand what, uint32_t stride, uint32_t most);

/* The objects of which variable `var` of `func` may be just the address, in some instance of it. Sets of which `told` says that all
 * their objects were told of already are left out; it belongs to this result as it is now. */
typedef struct pta_told pta_told;
typedef void pta_begin(void *with, uint32_t site, uint32_t context);
pta_told *pta_told_open(const pta *p);
void pta_told_close(pta_told *told);
void pta_each_begin(const pta *p, uint32_t func, uint32_t var, pta_told *told, pta_begin *found, void *with);

/* The places that an access may be to: those of its pointer that lie in their object. */
void pta_access_places(const pta *p, const pta_access *access, pta_places *out);
/* The same in one instance of its function. */
void pta_access_places_in(const pta *p, uint32_t instance, const pta_access *access, pta_places *out);
/* What code outside of the program may reach. */
void pta_escaped(const pta *p, pta_places *out);

typedef struct {
    uint32_t func, context;
} pta_instance;
uint32_t pta_instance_count(const pta *p);
bool pta_instance_at(const pta *p, uint32_t instance, pta_instance *out); /* false: it is not called any more */

typedef struct {
    uint32_t caller, callee; /* instances */
    uint32_t call;           /* in program->calls */
} pta_call_edge;
/* The call graph; free() the result. */
uint32_t pta_call_graph(const pta *p, pta_call_edge **edges);

/* The part of a context that its rules give: with origins, which one; with none 0. Small numbers. */
uint32_t pta_context_base(const pta *p, uint32_t context);

/* Visits each word of memory that may hold pointers, and what it may hold, by site and context. The word is a place in the site that holds the
 * memory (pta_site.memory). */
typedef void pta_visit_word(void *with, const pta_place *word, const pta_places *holds);
void pta_each_word(const pta *p, pta_visit_word *visit, void *with);

/* A hash of the whole relation that does not depend on any internal number. */
uint64_t pta_relation_hash(const pta *p);

/* The call that allocated a PTA_HEAP object, the innermost one in analysed code. False: none is known. */
bool pta_heap_call(const pta *p, const pta_place *place, uint32_t *module, uint64_t *addr);
/* The same for level 0; then outwards through allocator wrappers. False: no further call tells objects apart. */
bool pta_heap_outer_call(const pta *p, const pta_place *place, uint32_t level, uint32_t *module, uint64_t *addr);
enum { PTA_HEAP_CALLS = 3 };
/* All calls that led to it, outermost first; their number. */
uint32_t pta_heap_calls(const pta *p, const pta_place *place, uint32_t calls[PTA_HEAP_CALLS]);

/* `&table[*].next`, `malloc@conn_new:612`; always NUL-terminated. */
void pta_describe(const pta *p, const pta_place *place, char *to, size_t size);
void pta_describe_context(const pta *p, uint32_t context, char *to, size_t size);

#endif
